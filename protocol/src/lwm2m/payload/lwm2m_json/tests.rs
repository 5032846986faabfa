//! Is the JSON of LwM2M 1.0 read with all its variants of names and times, and written plainly?

use super::{decode, encode};
use crate::lwm2m::path::Path;
use crate::lwm2m::payload::samples::{MalformedSamples, ReadSamples};
use crate::lwm2m::payload::{Measured, Reading, Sample, Scope};
use crate::lwm2m::value::{DataType, ObjectLink, Value};

const LEVEL: Path = Path::resource(3, 0, 9);
const SOURCE: Path = Path::resource_instance(3, 0, 6, 0);

#[test]
fn names_are_put_together_wherever_their_slashes_are() {
    let device = Path::instance(3, 0);
    let cases: [(Path, &str, Path); 18] = [
        (device, r#"{"bn":"/3/0/","e":[{"n":"9","v":7}]}"#, LEVEL),
        (device, r#"{"bn":"/3/0","e":[{"n":"/9","v":7}]}"#, LEVEL),
        (device, r#"{"bn":"/3/0","e":[{"n":"9","v":7}]}"#, LEVEL),
        (device, r#"{"bn":"/3/0/","e":[{"n":"/9","v":7}]}"#, LEVEL),
        (device, r#"{"bn":"3/0/","e":[{"n":"9","v":7}]}"#, LEVEL),
        (device, r#"{"bn":"/3/0/","e":[{"n":"6/0","v":7}]}"#, SOURCE),
        (device, r#"{"bn":"/","e":[{"n":"3/0/9","v":7}]}"#, LEVEL),
        (
            Path::object(3),
            r#"{"bn":"/3/","e":[{"n":"0/9","v":7}]}"#,
            LEVEL,
        ),
        (LEVEL, r#"{"bn":"/3/0/9","e":[{"v":7}]}"#, LEVEL),
        (LEVEL, r#"{"bn":"/3/0/9/","e":[{"n":"","v":7}]}"#, LEVEL),
        // Without a base name, names are relative to the requested path.
        (device, r#"{"e":[{"n":"9","v":7}]}"#, LEVEL),
        (device, r#"{"bn":"","e":[{"n":"/9","v":7}]}"#, LEVEL),
        (device, r#"{"e":[{"n":"6/0","v":7}]}"#, SOURCE),
        (Path::object(3), r#"{"e":[{"n":"0/9","v":7}]}"#, LEVEL),
        (LEVEL, r#"{"e":[{"v":7}]}"#, LEVEL),
        (LEVEL, r#"{"e":[{"n":"","v":7}]}"#, LEVEL),
        // Unless they are whole paths.
        (device, r#"{"e":[{"n":"/3/0/9","v":7}]}"#, LEVEL),
        (LEVEL, r#"{"e":[{"n":"/3/0/9","v":7}]}"#, LEVEL),
    ];
    for (requested, payload, path) in cases {
        let expected = vec![sample(path, Value::Integer(7), None)];
        assert_eq!(
            read(requested, payload, DataType::Integer),
            Ok(expected),
            "{payload}"
        );
    }
}

#[test]
fn names_of_a_payload_about_everything_are_whole_paths() {
    let whole = r#"{"bn":"/","e":[{"n":"3/0/9","v":7},{"n":"6/0/0","v":1}]}"#;
    let bare = r#"{"e":[{"n":"/3/0/9","v":7},{"n":"/6/0/0","v":1}]}"#;
    for payload in [whole, bare] {
        let read = decode(Scope::All, payload.as_bytes(), &|_| None).and_then(ReadSamples::whole);
        let paths: Vec<Path> = read.unwrap().iter().map(|sample| sample.path).collect();
        assert_eq!(paths, [LEVEL, Path::resource(6, 0, 0)]);
    }
}

#[test]
fn each_type_has_its_field() {
    let (object, instance) = (33_606, 0);
    let cases = [
        (r#""bv":true"#, Value::Boolean(true)),
        (r#""v":0"#, Value::Boolean(false)),
        (r#""v":1"#, Value::Boolean(true)),
        (r#""sv":"</1>""#, Value::CoreLink("</1>".into())),
        (r#""v":21.5"#, Value::Float(21.5)),
        (r#""v":21"#, Value::Float(21.0)),
        (r#""v":1e3"#, Value::Float(1000.0)),
        (r#""v":-9223372036854775808"#, Value::Integer(i64::MIN)),
        (r#""v":2.0"#, Value::Integer(2)),
        (
            r#""ov":"33606:0""#,
            Value::ObjectLink(ObjectLink { object, instance }),
        ),
        (
            r#""sv":"33606:0""#,
            Value::ObjectLink(ObjectLink { object, instance }),
        ),
        (r#""sv":"AQI=""#, Value::Opaque(vec![1, 2])),
        (r#""sv":"AQI""#, Value::Opaque(vec![1, 2])),
        (r#""sv":"Gr\u00fc\u00dfe""#, Value::String("Grüße".into())),
        (r#""v":1795257412"#, Value::Time(1_795_257_412)),
        (
            r#""v":18446744073709551615"#,
            Value::UnsignedInteger(u64::MAX),
        ),
    ];
    for (field, value) in cases {
        let payload = format!(r#"{{"bn":"/3/0/9","e":[{{{field}}}]}}"#);
        let expected = vec![sample(LEVEL, value.clone(), None)];
        assert_eq!(
            read(LEVEL, &payload, value.data_type()),
            Ok(expected),
            "{field}"
        );
    }
}

#[test]
fn a_resource_unknown_to_the_model_has_the_type_of_its_field() {
    let cases = [
        (r#""bv":false"#, Value::Boolean(false)),
        (r#""v":21.0"#, Value::Float(21.0)),
        (r#""v":21"#, Value::Integer(21)),
        (r#""sv":"AQI=""#, Value::String("AQI=".into())),
    ];
    for (field, value) in cases {
        let payload = format!(r#"{{"bn":"/3/0/9","e":[{{{field}}}]}}"#);
        let read = decode(Scope::Within(LEVEL), payload.as_bytes(), &|_| None)
            .and_then(ReadSamples::whole);
        assert_eq!(read, Ok(vec![sample(LEVEL, value, None)]), "{field}");
    }
}

#[test]
fn times_count_from_the_base_time_or_from_the_receipt() {
    let absolute = Measured::Absolute;
    let cases = [
        (r#""e":[{"v":7}]"#, None),
        (r#""e":[{"v":7,"t":-5}]"#, Some(Measured::Relative(-5_000))),
        (r#""e":[{"v":7,"t":-0.25}]"#, Some(Measured::Relative(-250))),
        (r#""e":[{"v":7,"t":0}]"#, Some(Measured::Relative(0))),
        (
            r#""e":[{"v":7,"t":1795257412.5}]"#,
            Some(absolute(1_795_257_412_500)),
        ),
        (
            r#""bt":1795257412,"e":[{"v":7}]"#,
            Some(absolute(1_795_257_412_000)),
        ),
        (
            r#""bt":1795257412,"e":[{"v":7,"t":-5}]"#,
            Some(absolute(1_795_257_407_000)),
        ),
        (
            r#""bt":1795257412.001,"e":[{"v":7,"t":1}]"#,
            Some(absolute(1_795_257_413_001)),
        ),
        // The standard's own example has a date of 1970.
        (
            r#""bt":25462634,"e":[{"v":7,"t":-5}]"#,
            Some(absolute(25_462_629_000)),
        ),
        (
            r#""bt":0,"e":[{"v":7,"t":-5}]"#,
            Some(Measured::Relative(-5_000)),
        ),
        (
            r#""bt":-60,"e":[{"v":7,"t":-5}]"#,
            Some(Measured::Relative(-65_000)),
        ),
    ];
    for (fields, measured) in cases {
        let payload = format!(r#"{{"bn":"/3/0/9",{fields}}}"#);
        let expected = vec![sample(LEVEL, Value::Integer(7), measured)];
        assert_eq!(
            read(LEVEL, &payload, DataType::Integer),
            Ok(expected),
            "{fields}"
        );
    }
}

#[test]
fn one_resource_may_have_values_of_many_times() {
    let payload = r#"{"bn":"/3/0/9","bt":1000000000,"e":[{"v":1,"t":-1},{"v":2},{"v":3,"t":1}]}"#;
    let at = |at_ms, number| {
        let measured = Some(Measured::Absolute(at_ms));
        sample(LEVEL, Value::Integer(number), measured)
    };
    let expected = [
        at(999_999_999_000, 1),
        at(1_000_000_000_000, 2),
        at(1_000_000_001_000, 3),
    ];
    assert_eq!(read(LEVEL, payload, DataType::Integer), Ok(expected.into()));
}

#[test]
fn malformed_objects_are_refused() {
    let unfit = MalformedSamples::Value {
        path: LEVEL,
        data_type: DataType::Integer,
    };
    let cases = [
        ("", MalformedSamples::Json),
        ("[]", MalformedSamples::Json),
        ("{}", MalformedSamples::Json),
        (r#"{"e":{}}"#, MalformedSamples::Json),
        (r#"{"e":[7]}"#, MalformedSamples::Json),
        (r#"{"e":[]"#, MalformedSamples::Json),
        (r#"{"e":[]} x"#, MalformedSamples::Json),
        (r#"{"bn":7,"e":[]}"#, MalformedSamples::Json),
        (r#"{"bt":"7","e":[]}"#, MalformedSamples::Json),
        (r#"{"e":[{"n":7,"v":7}]}"#, MalformedSamples::Field(1)),
        (r#"{"e":[{"v":"7"}]}"#, MalformedSamples::Field(1)),
        (r#"{"e":[{"v":7,"t":"1"}]}"#, MalformedSamples::Field(1)),
        (r#"{"e":[{"v":7},{"bv":1}]}"#, MalformedSamples::Field(2)),
        (r#"{"e":[{"v":7},{"t":1}]}"#, MalformedSamples::NoValue(2)),
        (r#"{"e":[{"v":7,"v":8}]}"#, MalformedSamples::Repeated(1)),
        (
            r#"{"e":[{"v":7,"bv":true}]}"#,
            MalformedSamples::SeveralValues(1),
        ),
        (r#"{"e":[{"n":"0/0","v":7}]}"#, MalformedSamples::Name(1)),
        (r#"{"e":[{"n":"x","v":7}]}"#, MalformedSamples::Name(1)),
        (r#"{"bn":"/3/0","e":[{"v":7}]}"#, MalformedSamples::Name(1)),
        (r#"{"e":[{"v":7,"t":1e300}]}"#, MalformedSamples::Time(1)),
        (
            r#"{"e":[{"v":7,"t":253402300800}]}"#,
            MalformedSamples::Time(1),
        ),
        (r#"{"e":[{"sv":"7"}]}"#, unfit),
        (r#"{"e":[{"v":0.5}]}"#, unfit),
        (
            r#"{"bn":"/3/0/8","e":[{"v":7}]}"#,
            MalformedSamples::Elsewhere(Path::resource(3, 0, 8)),
        ),
    ];
    for (payload, why) in cases {
        assert_eq!(
            read(LEVEL, payload, DataType::Integer),
            Err(why),
            "{payload}"
        );
    }
    let no_bytes = r#"{"e":[{"sv":"*"}]}"#;
    let refused = read(LEVEL, no_bytes, DataType::Opaque);
    assert_eq!(refused, Err(MalformedSamples::Field(1)));
}

#[test]
fn an_empty_object_has_no_entries() {
    let payload = r#"{"bn":"/3/0/","e":[]}"#;
    assert_eq!(
        read(Path::instance(3, 0), payload, DataType::Integer),
        Ok(vec![])
    );
}

#[test]
fn values_are_written_as_real_devices_write_them() {
    let (object, instance) = (3, 0);
    let values = Reading::from([
        (Path::resource(3, 0, 0), Value::String("a\"b".into())),
        (SOURCE, Value::Integer(1)),
        (LEVEL, Value::Float(95.0)),
        (Path::resource(3, 0, 13), Value::Time(9)),
        (Path::resource(3, 0, 22), Value::Boolean(true)),
        (Path::resource(3, 0, 23), Value::Opaque(vec![1, 2])),
        (
            Path::resource(3, 1, 0),
            Value::ObjectLink(ObjectLink { object, instance }),
        ),
    ]);
    let written = |path| {
        let payload = encode(Scope::Within(path), &values).unwrap();
        String::from_utf8(payload).unwrap()
    };
    let device = [
        r#"{"bn":"/3/0/","e":[{"n":"0","sv":"a\"b"},{"n":"6/0","v":1},{"n":"9","v":95.0},"#,
        r#"{"n":"13","v":9},{"n":"22","bv":true},{"n":"23","sv":"AQI="}]}"#,
    ]
    .concat();
    assert_eq!(written(Path::instance(3, 0)), device);
    let other = r#"{"bn":"/3/1/","e":[{"n":"0","ov":"3:0"}]}"#;
    assert_eq!(written(Path::instance(3, 1)), other);
    assert_eq!(written(LEVEL), r#"{"bn":"/3/0/9","e":[{"v":95.0}]}"#);
    let sources = r#"{"bn":"/3/0/6/","e":[{"n":"0","v":1}]}"#;
    assert_eq!(written(Path::resource(3, 0, 6)), sources);
}

#[test]
fn values_of_several_objects_are_written_under_the_root() {
    let values = Reading::from([
        (LEVEL, Value::Integer(95)),
        (Path::resource(6, 0, 0), Value::Float(0.5)),
    ]);
    let written = encode(Scope::All, &values).unwrap();
    let all = br#"{"bn":"/","e":[{"n":"3/0/9","v":95},{"n":"6/0/0","v":0.5}]}"#;
    assert_eq!(written, all);
    assert_eq!(
        encode(Scope::All, &Reading::new()).unwrap(),
        br#"{"bn":"/","e":[]}"#
    );
}

#[test]
fn nan_and_infinity_cannot_be_written() {
    for number in [f64::NAN, f64::INFINITY] {
        let values = Reading::from([(LEVEL, Value::Float(number))]);
        assert_eq!(encode(Scope::All, &values), Err(LEVEL));
    }
}

fn read(
    requested: Path,
    payload: &str,
    data_type: DataType,
) -> Result<Vec<Sample>, MalformedSamples> {
    let read = decode(Scope::Within(requested), payload.as_bytes(), &|_| {
        Some(data_type)
    });
    read.and_then(ReadSamples::whole)
}

fn sample(path: Path, value: Value, measured: Option<Measured>) -> Sample {
    Sample {
        path,
        value,
        measured,
    }
}
