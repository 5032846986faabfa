//! Is every pack read as specified, in JSON and in CBOR, and every fault reported?

mod numbers;
mod vocabulary;

use self::vocabulary::{as_cbor, bytes, read, read_as, sample, type_of};
use super::{decode_cbor, decode_json, decode_paths_cbor, decode_paths_json};
use crate::lwm2m::path::Path;
use crate::lwm2m::payload::samples::{MalformedSamples, ReadSamples};
use crate::lwm2m::payload::{Measured, SAMPLES_MAX, Scope};
use crate::lwm2m::value::{DataType, Value};

const BATTERY_LEVEL: Path = Path::resource(3, 0, 9);
const SENSOR_VALUE: Path = Path::resource(3303, 0, 5700);

/// Packs that are refused, and the fault of each.
const FAULTS: &[(&str, MalformedSamples)] = &[
    (r#"[{"n":"/3/0/9"}]"#, MalformedSamples::NoValue(1)),
    (r#"[{"bn":"/3/0/9","u":"%"}]"#, MalformedSamples::NoValue(1)),
    (r#"[{"bn":"/3/0/9","t":1}]"#, MalformedSamples::NoValue(1)),
    (
        r#"[{"bn":"/0000000000000000000000000/"}]"#,
        MalformedSamples::Name(1),
    ),
    (
        r#"[{"n":"/3/0/9","v":1},{"n":"/3/0/20"}]"#,
        MalformedSamples::NoValue(2),
    ),
    (
        r#"[{"n":"/3/0/9","v":1,"vs":"1"}]"#,
        MalformedSamples::SeveralValues(1),
    ),
    (
        r#"[{"n":"/3/0/9","v":1,"v":1}]"#,
        MalformedSamples::Repeated(1),
    ),
    (
        r#"[{"n":"/3/0/9","v":1,"n":"/3/0/9"}]"#,
        MalformedSamples::Repeated(1),
    ),
    (
        r#"[{"n":"/3/0/9","v":1,"u":"a","u":"a"}]"#,
        MalformedSamples::Repeated(1),
    ),
    (
        r#"[{"n":"/3/0/9","v":1,"x_":1}]"#,
        MalformedSamples::NotUnderstood(1),
    ),
    (
        r#"[{"bver":11,"n":"/3/0/9","v":1}]"#,
        MalformedSamples::Version(1),
    ),
    (r#"[{"v":1}]"#, MalformedSamples::Name(1)),
    (r#"[{}]"#, MalformedSamples::Name(1)),
    (r#"[{"n":"3/0/9","v":1}]"#, MalformedSamples::Name(1)),
    (r#"[{"n":"/3/0","v":1}]"#, MalformedSamples::Name(1)),
    (r#"[{"n":"/3","v":1}]"#, MalformedSamples::Name(1)),
    (r#"[{"n":"/","v":1}]"#, MalformedSamples::Name(1)),
    (r#"[{"n":"/3/0/9/0/1","v":1}]"#, MalformedSamples::Name(1)),
    (r#"[{"n":"/3/0/9/","v":1}]"#, MalformedSamples::Name(1)),
    (r#"[{"n":"/3//9","v":1}]"#, MalformedSamples::Name(1)),
    (r#"[{"n":"/3/0/65536","v":1}]"#, MalformedSamples::Name(1)),
    (r#"[{"n":"/lwm2m/3/0/9","v":1}]"#, MalformedSamples::Name(1)),
    (
        r#"[{"bn":"/0000000000000000000000000/","n":"9","v":1}]"#,
        MalformedSamples::Name(1),
    ),
    (r#"[{"n":"/3/0/9","v":"1"}]"#, MalformedSamples::Field(1)),
    (r#"[{"n":"/3/0/9","vb":1}]"#, MalformedSamples::Field(1)),
    (r#"[{"n":"/3/0/9","vs":1}]"#, MalformedSamples::Field(1)),
    (r#"[{"n":"/3/0/9","vlo":1}]"#, MalformedSamples::Field(1)),
    (r#"[{"n":"/3/0/9","vd":1}]"#, MalformedSamples::Field(1)),
    (r#"[{"n":9,"v":1}]"#, MalformedSamples::Field(1)),
    (r#"[{"bn":9,"v":1}]"#, MalformedSamples::Field(1)),
    (
        r#"[{"n":"/3/0/9","t":"0","v":1}]"#,
        MalformedSamples::Field(1),
    ),
    (
        r#"[{"n":"/3/0/9","bt":true,"v":1}]"#,
        MalformedSamples::Field(1),
    ),
    (
        r#"[{"n":"/3/0/9","bver":"10","v":1}]"#,
        MalformedSamples::Field(1),
    ),
    (
        r#"[{"n":"/3/0/9","bver":9.5,"v":1}]"#,
        MalformedSamples::Field(1),
    ),
    (r#"[{"n":"/3/0/9","vs":"full"}]"#, NO_INTEGER),
    (r#"[{"n":"/3/0/9","v":0.5}]"#, NO_INTEGER),
    (r#"[{"n":"/3/0/9","vd":"A"}]"#, MalformedSamples::Field(1)),
    (
        r#"[{"n":"/42000/0/1","vlo":"1"}]"#,
        MalformedSamples::NoType(Path::resource(42_000, 0, 1)),
    ),
    (
        r#"[{"n":"/3/0/7","v":1},{"n":"/3/0/9","v":1},{"n":"/3/0/7/0","v":1}]"#,
        MalformedSamples::Ambiguous(Path::resource(3, 0, 7)),
    ),
];

const NO_INTEGER: MalformedSamples = MalformedSamples::Value {
    path: BATTERY_LEVEL,
    data_type: DataType::Integer,
};

#[test]
fn a_name_is_put_together_from_the_base_and_its_own() {
    let cases = [
        (r#"[{"n":"/3/0/9","v":1}]"#, "/3/0/9"),
        (r#"[{"bn":"/3/0/9","v":1}]"#, "/3/0/9"),
        (r#"[{"bn":"/3/0/9","n":"","v":1}]"#, "/3/0/9"),
        (r#"[{"bn":"/3/0/","n":"9","v":1}]"#, "/3/0/9"),
        (r#"[{"bn":"/3/0","n":"/9","v":1}]"#, "/3/0/9"),
        (r#"[{"bn":"/3","n":"/0/9","v":1}]"#, "/3/0/9"),
        (r#"[{"bn":"/","n":"3/0/9","v":1}]"#, "/3/0/9"),
        (r#"[{"bn":"","n":"/3/0/9","v":1}]"#, "/3/0/9"),
        (r#"[{"v":1,"n":"9","bn":"/3/0/"}]"#, "/3/0/9"),
        (r#"[{"bn":"/3/0/","n":"7/1","v":1}]"#, "/3/0/7/1"),
        (r#"[{"bn":"/3/0/7/","n":"1","v":1}]"#, "/3/0/7/1"),
        (
            r#"[{"n":"/65535/65535/65535/65535","v":1}]"#,
            "/65535/65535/65535/65535",
        ),
    ];
    for (pack, path) in cases {
        let read = read(pack, Scope::All).unwrap();
        let paths: Vec<String> = read.iter().map(|sample| sample.path.to_string()).collect();
        assert_eq!(paths, [path], "{pack}");
    }
}

#[test]
fn a_base_holds_until_the_next_one() {
    let pack = r#"[
        {"bn":"/3/0/","bt":1700000000,"n":"9","v":1},
        {"n":"20","v":2},
        {"bn":"/3303/0/","n":"5700","v":3,"t":-10},
        {"bt":1800000000,"n":"5601","v":4}
    ]"#;
    let absolute = |at_s: i64| Some(Measured::Absolute(at_s * 1000));
    let expected = [
        ("/3/0/9", Value::Integer(1), absolute(1_700_000_000)),
        ("/3/0/20", Value::Integer(2), absolute(1_700_000_000)),
        ("/3303/0/5700", Value::Float(3.0), absolute(1_699_999_990)),
        ("/3303/0/5601", Value::Integer(4), absolute(1_800_000_000)),
    ];
    let expected = expected.map(|(path, value, measured)| sample(path, value, measured));
    assert_eq!(read(pack, Scope::All), Ok(expected.to_vec()));
}

#[test]
fn a_time_is_relative_below_2_to_the_28_and_in_whole_milliseconds() {
    let relative = |ms| Ok(Some(Measured::Relative(ms)));
    let absolute = |ms| Ok(Some(Measured::Absolute(ms)));
    let cases = [
        ("", Ok(None)),
        (r#""t":0,"#, relative(0)),
        (r#""bt":0,"#, relative(0)),
        (r#""t":-5,"#, relative(-5000)),
        (r#""t":-0.0005,"#, relative(0)),
        (r#""t":-0.0006,"#, relative(-1)),
        (r#""t":0.1,"#, relative(100)),
        (r#""t":5e-1,"#, relative(500)),
        (r#""t":268435455,"#, relative(268_435_455_000)),
        (r#""t":268435455.9999,"#, relative(268_435_456_000)),
        (r#""t":268435456,"#, absolute(268_435_456_000)),
        (r#""bt":1700000000.123,"#, absolute(1_700_000_000_123)),
        (r#""bt":1700000000,"t":-1.5,"#, absolute(1_699_999_998_500)),
        (
            r#""bt":200000000,"t":200000000,"#,
            absolute(400_000_000_000),
        ),
        (r#""bt":268435456,"t":-1,"#, relative(268_435_455_000)),
        (r#""t":253402300799.999,"#, absolute(253_402_300_799_999)),
        (r#""t":253402300800,"#, Err(MalformedSamples::Time(1))),
        (r#""t":-253402300800,"#, Err(MalformedSamples::Time(1))),
        (
            r#""t":18446744073709551615,"#,
            Err(MalformedSamples::Time(1)),
        ),
        (r#""bt":1e300,"t":-1e300,"#, Err(MalformedSamples::Time(1))),
    ];
    for (fields, measured) in cases {
        let pack = format!(r#"[{{"n":"/3/0/9",{fields}"v":1}}]"#);
        let read = read(&pack, Scope::All).map(|samples| samples[0].measured);
        assert_eq!(read, measured, "{pack}");
    }
}

#[test]
fn values_of_one_path_stay_apart_in_the_order_of_the_pack() {
    let pack = r#"[
        {"bn":"/3303/0/5700","bt":1700000000,"t":2,"v":20.5},
        {"t":1,"v":20.25},
        {"t":2,"v":21}
    ]"#;
    let at = |ms, value| {
        let measured = Some(Measured::Absolute(ms));
        sample("/3303/0/5700", Value::Float(value), measured)
    };
    let expected = vec![
        at(1_700_000_002_000, 20.5),
        at(1_700_000_001_000, 20.25),
        at(1_700_000_002_000, 21.0),
    ];
    assert_eq!(read(pack, Scope::All), Ok(expected));
}

#[test]
fn a_base_value_is_added_to_numbers() {
    let pack = r#"[
        {"bn":"/3/0/","bv":20,"n":"9","v":1},
        {"n":"0","vs":"a"},
        {"bv":0.5,"n":"20","v":1.5}
    ]"#;
    let expected = [
        ("/3/0/9", Value::Integer(21)),
        ("/3/0/0", Value::String("a".into())),
        ("/3/0/20", Value::Integer(2)),
    ];
    let expected = expected.map(|(path, value)| sample(path, value, None));
    assert_eq!(read(pack, Scope::All), Ok(expected.to_vec()));
}

#[test]
fn each_kind_of_value_becomes_one_of_the_type_of_the_resource() {
    let cases = [
        (DataType::Boolean, r#""vb":true"#, "true"),
        (DataType::Boolean, r#""v":0"#, "false"),
        (DataType::Boolean, r#""v":1"#, "true"),
        (DataType::CoreLink, r#""vs":"</3/0>""#, "</3/0>"),
        (DataType::Float, r#""v":21.5"#, "21.5"),
        (DataType::Float, r#""v":21"#, "21"),
        (
            DataType::Integer,
            r#""v":-9223372036854775808"#,
            "-9223372036854775808",
        ),
        (DataType::Integer, r#""v":5.0"#, "5"),
        (
            DataType::ObjectLink,
            r#""vlo":"65535:65535""#,
            "65535:65535",
        ),
        (DataType::ObjectLink, r#""vs":"3:0""#, "3:0"),
        (DataType::Opaque, r#""vd":"-_8B""#, "+/8B"),
        (DataType::Opaque, r#""vd":"+/8B""#, "+/8B"),
        (DataType::Opaque, r#""vd":"AQ""#, "AQ=="),
        (DataType::Opaque, r#""vd":"AQ==""#, "AQ=="),
        (DataType::Opaque, r#""vd":"""#, ""),
        (DataType::String, r#""vs":"""#, ""),
        (DataType::String, r#""vs":"Gr\u00fc\u00dfe""#, "Grüße"),
        (DataType::Time, r#""v":1700000000"#, "1700000000"),
        (
            DataType::UnsignedInteger,
            r#""v":18446744073709551615"#,
            "18446744073709551615",
        ),
    ];
    for (data_type, field, text) in cases {
        let pack = format!(r#"[{{"n":"/42000/0/1",{field}}}]"#);
        let expected = Value::parse(data_type, text).unwrap();
        let read = read_as(&pack, Scope::All, Some(data_type)).unwrap();
        assert_eq!(read, [sample("/42000/0/1", expected, None)], "{pack}");
    }
}

#[test]
fn a_resource_the_model_does_not_know_takes_the_type_of_its_value() {
    let cases = [
        (r#""v":5"#, Value::Integer(5)),
        (
            r#""v":9223372036854775808"#,
            Value::UnsignedInteger(1 << 63),
        ),
        (r#""v":5.5"#, Value::Float(5.5)),
        (r#""vs":"5""#, Value::String("5".into())),
        (r#""vb":false"#, Value::Boolean(false)),
        (r#""vd":"AQI""#, Value::Opaque(vec![1, 2])),
        (
            r#""vlo":"1:2""#,
            Value::parse(DataType::ObjectLink, "1:2").unwrap(),
        ),
    ];
    for (field, value) in cases {
        let pack = format!(r#"[{{"n":"/42000/0/1",{field}}}]"#);
        let read = read_as(&pack, Scope::All, None).unwrap();
        assert_eq!(read, [sample("/42000/0/1", value, None)], "{pack}");
    }
}

#[test]
fn unused_fields_are_skipped() {
    let cases = [
        r#"[{"bver":10,"n":"/3/0/9","v":5}]"#,
        r#"[{"bver":1,"n":"/3/0/9","v":5}]"#,
        r#"[{"bu":"%","bs":1,"u":"%","s":5,"ut":60,"n":"/3/0/9","v":5}]"#,
        r#"[{"x":null,"y":[1,{"z":2}],"_z":{"a_":true},"n":"/3/0/9","v":5}]"#,
    ];
    for pack in cases {
        let expected = vec![sample("/3/0/9", Value::Integer(5), None)];
        assert_eq!(read(pack, Scope::All), Ok(expected), "{pack}");
    }
    assert_eq!(read("[]", Scope::All), Ok(vec![]));
}

#[test]
fn a_fault_is_named_with_its_record() {
    for (pack, fault) in FAULTS {
        assert_eq!(read(pack, Scope::All), Err(*fault), "{pack}");
    }
}

#[test]
fn values_that_were_not_requested_are_refused() {
    let pack = r#"[{"bn":"/3/0/","n":"9","v":1},{"n":"7/0","v":1},{"n":"7/1","v":1}]"#;
    for scope in [Path::object(3), Path::instance(3, 0)] {
        let read = read(pack, Scope::Within(scope)).unwrap();
        assert_eq!(read.len(), 3, "{scope}");
    }
    let cases = [
        (BATTERY_LEVEL, Path::resource_instance(3, 0, 7, 0)),
        (Path::resource(3, 0, 7), BATTERY_LEVEL),
        (Path::resource_instance(3, 0, 7, 0), BATTERY_LEVEL),
        (Path::instance(3, 1), BATTERY_LEVEL),
        (Path::object(4), BATTERY_LEVEL),
    ];
    for (scope, elsewhere) in cases {
        let read = read(pack, Scope::Within(scope));
        assert_eq!(read, Err(MalformedSamples::Elsewhere(elsewhere)), "{scope}");
    }
}

#[test]
fn samples_and_fields_are_bounded() {
    let pack = |records: usize| {
        let more = r#",{"v":1}"#.repeat(records - 1);
        format!(r#"[{{"bn":"/3/0/9","v":1}}{more}]"#)
    };
    let read_many = read(&pack(SAMPLES_MAX), Scope::All).unwrap();
    assert_eq!(read_many.len(), SAMPLES_MAX);
    assert_eq!(
        read(&pack(SAMPLES_MAX + 1), Scope::All),
        Err(MalformedSamples::TooMany)
    );

    let fields: String = (0..40).map(|field| format!(r#""x{field}":1,"#)).collect();
    let wide = format!(r#"[{{{fields}"n":"/3/0/9","v":1}}]"#);
    assert_eq!(read(&wide, Scope::All), Err(MalformedSamples::Field(1)));
}

#[test]
fn malformed_packs_are_refused() {
    for json in [
        "",
        "{}",
        "1",
        "null",
        "[1]",
        "[[]]",
        "[null]",
        "[{}",
        r#"{"n":"/3/0/9","v":1}"#,
    ] {
        let read = decode_json(Scope::All, json.as_bytes(), &type_of).and_then(ReadSamples::whole);
        assert_eq!(read, Err(MalformedSamples::Json), "{json}");
    }
    let cases = [
        "",
        "a0",
        "01",
        "f6",
        "8101",
        "8180",
        "81f6",
        "81",
        "9f",
        "8000",
        "81a1",
        "81a100",
        "81bf00ff",
        "81a1f600",
        "81a1410000",
        "81a11bffffffffffffffff00",
        "81a10281",
        "9bffffffffffffffff",
        "81bbffffffffffffffff",
        "82a2006632",
    ];
    for hex in cases {
        let read = decode_cbor(Scope::All, &bytes(hex), &type_of).and_then(ReadSamples::whole);
        assert_eq!(read, Err(MalformedSamples::Cbor), "{hex}");
    }
    let nameless = decode_cbor(Scope::All, &bytes("81a100f6"), &type_of);
    let nameless = nameless.and_then(ReadSamples::whole);
    assert_eq!(nameless, Err(MalformedSamples::Field(1)));
    let nothing = r#"[{"n":"/3/0/9","v":null}]"#;
    let read = decode_json(Scope::All, nothing.as_bytes(), &type_of).and_then(ReadSamples::whole);
    assert_eq!(read, Err(MalformedSamples::Field(1)));
}

#[test]
fn a_pack_in_cbor_is_read_however_its_items_are_written() {
    let battery = vec![sample("/3/0/9", Value::Integer(5), None)];
    let at = |measured| vec![sample("/3/0/9", Value::Integer(5), Some(measured))];
    let cases = [
        ("9fbf007f632f332f6330 2f39ff0205ffff", battery.clone()),
        ("81a2020500662f332f302f39", battery.clone()),
        ("81a2190002051800662f332f302f39", battery.clone()),
        ("81a2616e662f332f302f396176 05", battery.clone()),
        ("81a200662f332f302f3902f94500", battery.clone()),
        ("81a200662f332f302f3902c24105", battery.clone()),
        ("81a200662f332f302f3902c4820005", battery.clone()),
        ("81a300662f332f302f39386300 0205", battery.clone()),
        (
            "81a300662f332f302f39061a6553f1000205",
            at(Measured::Absolute(1_700_000_000_000)),
        ),
        (
            "81a300662f332f302f3906f9c5000205",
            at(Measured::Relative(-5000)),
        ),
        (
            "81a300662f332f302f3906fac0a000000205",
            at(Measured::Relative(-5000)),
        ),
        (
            "81a300662f332f302f3906fbbfb99999 9999999a0205",
            at(Measured::Relative(-100)),
        ),
        (
            "81a300662f332f302f3906c11a6553f1000205",
            at(Measured::Absolute(1_700_000_000_000)),
        ),
        (
            "81a300662f332f302f3906c482281b18ea0927767719d00205",
            at(Measured::Absolute(1_795_257_466_556)),
        ),
    ];
    for (hex, expected) in cases {
        let hex = hex.replace(' ', "");
        let read = decode_cbor(Scope::All, &bytes(&hex), &type_of).and_then(ReadSamples::whole);
        assert_eq!(read, Ok(expected), "{hex}");
    }
}

#[test]
fn a_record_of_base_fields_applies_to_the_next_records() {
    let pack = r#"[
        {"bver":10,"bn":"/3/0/","bt":1700000000,"bu":"%","bs":1},
        {"n":"9","v":5},
        {"bv":20},
        {"n":"20","v":1},
        {"bn":"/3/0/9","bv":0}
    ]"#;
    let at = Some(Measured::Absolute(1_700_000_000_000));
    let expected = vec![
        sample("/3/0/9", Value::Integer(5), at),
        sample("/3/0/20", Value::Integer(21), at),
    ];
    assert_eq!(read(pack, Scope::All), Ok(expected));
    assert_eq!(read(r#"[{"bn":"/3/0/9"}]"#, Scope::All), Ok(vec![]));
}

#[test]
fn a_list_of_paths_has_names_alone() {
    let paths = |list: &str| {
        let json = decode_paths_json(list.as_bytes());
        assert_eq!(decode_paths_cbor(&as_cbor(list)), json, "{list}");
        json
    };
    let found = paths(r#"[{"n":"/3/0/9"},{"bn":"/3303/"},{"n":"0/5700"},{"bn":"/1"}]"#);
    assert_eq!(found, Err(MalformedSamples::Name(2)));
    let found = paths(r#"[{"n":"/3/0/9"},{"bn":"/3303","n":"/0"},{"n":"/1/5700"},{"bn":"/1"}]"#);
    let expected = ["/3/0/9", "/3303/0", "/3303/1/5700", "/1"];
    assert_eq!(
        found,
        Ok(expected.map(|path| path.parse().unwrap()).to_vec())
    );
    assert_eq!(
        paths(r#"[{"n":"/3/0/9","v":1}]"#),
        Err(MalformedSamples::Field(1))
    );
    let many = format!("[{}{{\"n\":\"/3\"}}]", r#"{"n":"/3"},"#.repeat(SAMPLES_MAX));
    assert_eq!(paths(&many), Err(MalformedSamples::TooMany));
}
