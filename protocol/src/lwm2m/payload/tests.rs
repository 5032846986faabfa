//! Is each payload read in its format, and requested in one that is supported?

use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, proptest};

use super::{
    Decoded, MalformedValue, Reading, Scope, Undecodable, decode, decode_readable, decode_resource,
    encode_resource,
};
use crate::coap::content::ContentFormat;
use crate::lwm2m::model::{self, Resource};
use crate::lwm2m::path::Path;
use crate::lwm2m::payload::tlv;
use crate::lwm2m::value::{DataType, Value};
use crate::lwm2m::version::Version;

const BATTERY_LEVEL: Path = Path::resource(3, 0, 9);
const POWER_SOURCES: Path = Path::resource(3, 0, 6);
const SINGLE_VALUED: [Option<ContentFormat>; 5] = [
    None,
    Some(ContentFormat::TEXT),
    Some(ContentFormat::LEGACY_TEXT),
    Some(ContentFormat::OCTET_STREAM),
    Some(ContentFormat(1544)),
];
const NOT_A_FLOAT: &str = "the value of /3303/0/5700 is not of type FLOAT";
const NOT_FINITE: &str = "the value of /3303/0/5601 is not a finite number";
const TLV: [ContentFormat; 2] = [ContentFormat::LWM2M_TLV, ContentFormat::LEGACY_TLV];

#[test]
fn bytes_are_sent_unchanged_and_the_rest_as_text() {
    let opaque = encode_resource(&Value::Opaque(vec![0, 255]));
    assert_eq!(opaque, (ContentFormat::OCTET_STREAM, vec![0, 255]));
    let boolean = encode_resource(&Value::Boolean(true));
    assert_eq!(boolean, (ContentFormat::TEXT, b"1".to_vec()));
}

#[test]
fn an_answer_without_format_follows_the_model() {
    let text = |kind| decode_resource(None, b"AQI=", kind);
    assert_eq!(
        text(Some(DataType::String)),
        Ok(Value::String("AQI=".into()))
    );
    assert_eq!(
        text(Some(DataType::Opaque)),
        Ok(Value::Opaque(b"AQI=".to_vec()))
    );
    assert_eq!(text(None), Ok(Value::String("AQI=".into())));
    assert_eq!(
        decode_resource(None, &[0xff], None),
        Ok(Value::Opaque(vec![0xff]))
    );
}

#[test]
fn an_answer_with_format_follows_the_format() {
    let opaque = Some(DataType::Opaque);
    for text in [ContentFormat::TEXT, ContentFormat::LEGACY_TEXT] {
        assert_eq!(
            decode_resource(Some(text), b"AQI=", opaque),
            Ok(Value::Opaque(vec![1, 2]))
        );
    }
    for bytes in [ContentFormat::OCTET_STREAM, ContentFormat(1544)] {
        let read = decode_resource(Some(bytes), b"AQI=", opaque);
        assert_eq!(read, Ok(Value::Opaque(b"AQI=".to_vec())));
        assert_eq!(
            decode_resource(Some(bytes), b"a", None),
            Ok(Value::Opaque(b"a".to_vec()))
        );
    }
    let unfit = decode_resource(Some(ContentFormat::TEXT), b"warm", Some(DataType::Float));
    let malformed = MalformedValue {
        data_type: DataType::Float,
    };
    assert_eq!(unfit, Err(Undecodable::Malformed(malformed)));
}

#[test]
fn a_format_without_reader_is_named() {
    for format in [41, 50, 65535].map(ContentFormat) {
        for data_type in [None, Some(DataType::Integer), Some(DataType::Opaque)] {
            let read = decode_resource(Some(format), b"1", data_type);
            assert_eq!(read, Err(Undecodable::UnsupportedFormat(format)));
        }
    }
}

#[test]
fn links_are_the_value_of_a_resource_that_holds_text() {
    let read = |data_type| {
        let format = Some(ContentFormat::LINK_FORMAT);
        decode(format, BATTERY_LEVEL, b"</1/0>", |_| data_type)
    };
    let link = Reading::from([(BATTERY_LEVEL, Value::CoreLink("</1/0>".into()))]);
    assert_eq!(read(None), Ok(link.clone()));
    assert_eq!(read(Some(DataType::CoreLink)), Ok(link));
    let text = Reading::from([(BATTERY_LEVEL, Value::String("</1/0>".into()))]);
    assert_eq!(read(Some(DataType::String)), Ok(text));
    let unsupported = Undecodable::UnsupportedFormat(ContentFormat::LINK_FORMAT);
    assert_eq!(read(Some(DataType::Integer)), Err(unsupported));
    let device = Path::instance(3, 0);
    let read = decode(Some(ContentFormat::LINK_FORMAT), device, b"</1/0>", type_of);
    assert_eq!(read, Err(Undecodable::OneValue(ContentFormat::LINK_FORMAT)));
}

#[test]
fn a_resource_is_read_in_any_format_of_one_value() {
    for format in SINGLE_VALUED {
        for path in [BATTERY_LEVEL, Path::resource_instance(3, 0, 7, 1)] {
            let read = decode(format, path, b"100", type_of);
            assert_eq!(read, Ok(Reading::from([(path, Value::Integer(100))])));
        }
    }
    let unfit = decode(None, BATTERY_LEVEL, b"full", type_of);
    let malformed = MalformedValue {
        data_type: DataType::Integer,
    };
    assert_eq!(unfit, Err(Undecodable::Malformed(malformed)));
}

#[test]
fn tlv_is_read_under_its_number_and_that_of_the_drafts() {
    let one = Reading::from([(BATTERY_LEVEL, Value::Integer(100))]);
    for format in TLV {
        for path in [BATTERY_LEVEL, Path::instance(3, 0), Path::object(3)] {
            let read = decode(Some(format), path, &[0xc1, 9, 100], type_of);
            assert_eq!(read, Ok(one.clone()), "{path}");
        }
        let cut_off = decode(Some(format), BATTERY_LEVEL, &[0xc1, 9], type_of);
        let malformed = Undecodable::MalformedTlv(tlv::MalformedTlv::CutOff);
        assert_eq!(cut_off, Err(malformed));
    }
}

#[test]
fn an_instance_without_format_is_tlv() {
    let read = decode(None, Path::instance(3, 0), &[0xc1, 9, 100], type_of);
    assert_eq!(
        read,
        Ok(Reading::from([(BATTERY_LEVEL, Value::Integer(100))]))
    );
}

#[test]
fn an_instance_is_more_than_one_value() {
    for path in [Path::instance(3, 0), Path::object(3)] {
        for format in SINGLE_VALUED.into_iter().flatten() {
            let read = decode(Some(format), path, b"100", type_of);
            assert_eq!(read, Err(Undecodable::OneValue(format)));
        }
    }
}

#[test]
fn a_format_without_reader_is_named_at_every_level() {
    for format in [41, 50, 65535].map(ContentFormat) {
        for path in [POWER_SOURCES, Path::instance(3, 0), Path::object(3)] {
            let read = decode(Some(format), path, b"1", type_of);
            assert_eq!(read, Err(Undecodable::UnsupportedFormat(format)));
        }
    }
}

#[test]
fn an_unreadable_value_is_named_and_the_others_are_read() {
    // The unit can be read; 5700 is a text, 5601 is NaN where the format has one, or null.
    let cases: [(ContentFormat, &[u8], [&str; 2]); 6] = [
        (
            ContentFormat::SENML_JSON,
            br#"[{"bn":"/3303/0/","n":"5700","vs":"hot"},{"n":"5601","v":null},
                {"n":"5701","vs":"Cel"}]"#,
            [
                NOT_A_FLOAT,
                "the value of /3303/0/5601 cannot be read, because a field of record 2 \
             has a value of the wrong kind",
            ],
        ),
        (
            ContentFormat::SENML_CBOR,
            b"\x83\xa2\x00\x6c/3303/0/5700\x03\x63hot\xa2\x00\x6c/3303/0/5601\x02\xf9\x7e\x00\
              \xa2\x00\x6c/3303/0/5701\x03\x63Cel",
            [NOT_A_FLOAT, NOT_FINITE],
        ),
        (
            ContentFormat::SENML_CBOR,
            b"\x83\xa2\x00\x6c/3303/0/5700\x03\x63hot\xa2\x00\x6c/3303/0/5601\x02\xf6\
              \xa2\x00\x6c/3303/0/5701\x03\x63Cel",
            [
                NOT_A_FLOAT,
                "the value of /3303/0/5601 cannot be read, because a field of record 2 \
             has a value of the wrong kind",
            ],
        ),
        (
            ContentFormat::LWM2M_JSON,
            br#"{"bn":"/3303/0/","e":[{"n":"5700","sv":"hot"},{"n":"5601"},
                {"n":"5701","sv":"Cel"}]}"#,
            [
                NOT_A_FLOAT,
                "the value of /3303/0/5601 cannot be read, because record 2 has no value",
            ],
        ),
        (
            ContentFormat::LWM2M_CBOR,
            b"\xa1\x82\x19\x0c\xe7\x00\xa3\x19\x16\x44\x63hot\x19\x15\xe1\xf9\x7e\x00\
              \x19\x16\x45\x63Cel",
            [NOT_A_FLOAT, NOT_FINITE],
        ),
        (
            ContentFormat::LWM2M_TLV,
            b"\xe3\x16\x44hot\xe4\x15\xe1\x7f\xc0\x00\x00\xe3\x16\x45Cel",
            [NOT_A_FLOAT, NOT_FINITE],
        ),
    ];
    let sensor = Path::instance(3303, 0);
    for (format, payload, reasons) in cases {
        let scope = Scope::Within(sensor);
        let read = decode_readable(Some(format), scope, payload, &type_of).unwrap();
        let values: Vec<_> = read.samples.iter().map(|it| (it.path, &it.value)).collect();
        let unit = (Path::resource(3303, 0, 5701), &Value::String("Cel".into()));
        assert_eq!(values, [unit], "{format}");
        let named: Vec<String> = read.unreadable.iter().map(|it| it.to_string()).collect();
        assert_eq!(named, reasons, "{format}");
        let paths: Vec<_> = read.unreadable.iter().map(|it| it.path).collect();
        assert_eq!(paths, [5700, 5601].map(|id| sensor.child(id)), "{format}");
        let whole = decode(Some(format), sensor, payload, type_of);
        assert_eq!(whole, Err(read.unreadable[0].reason), "{format}");
    }
}

#[test]
fn a_number_that_is_not_finite_is_refused_with_its_path_in_every_format_that_has_such() {
    let tlv: &[u8] = b"\xe4\x16\x44\xff\x80\x00\x00";
    let cases: [(ContentFormat, &[u8]); 11] = [
        (ContentFormat::TEXT, b"NaN"),
        (ContentFormat::TEXT, b"-inf"),
        (ContentFormat::TEXT, b"1e999"),
        (ContentFormat::LEGACY_TEXT, b"Infinity"),
        (ContentFormat::CBOR, b"\xf9\x7e\x00"),
        (ContentFormat::CBOR, b"\xf9\x7c\x00"),
        (
            ContentFormat::SENML_CBOR,
            b"\x81\xa2\x00\x6c/3303/0/5700\x02\xfa\x7f\x80\x00\x00",
        ),
        (
            ContentFormat::LWM2M_CBOR,
            b"\xa1\x83\x19\x0c\xe7\x00\x19\x16\x44\xf9\xfc\x00",
        ),
        (ContentFormat::LWM2M_TLV, tlv),
        (ContentFormat::LEGACY_TLV, tlv),
        (ContentFormat::LWM2M_TLV, b"\xe4\x16\x44\x7f\xc0\x00\x00"),
    ];
    let path = Path::resource(3303, 0, 5700);
    for (format, payload) in cases {
        let refused = decode(Some(format), path, payload, type_of).unwrap_err();
        let text = refused.to_string();
        let reason = "the value of /3303/0/5700 is not a finite number";
        assert!(text.ends_with(reason), "{format} {payload:?}: {text}");
    }
    for number in ["NaN", "Infinity", "1e999"] {
        let json = format!(r#"[{{"n":"/3303/0/5700","v":{number}}}]"#);
        let refused = decode(
            Some(ContentFormat::SENML_JSON),
            path,
            json.as_bytes(),
            type_of,
        );
        assert!(refused.is_err(), "JSON has no {number}");
    }
}

#[test]
fn a_payload_without_a_readable_value_is_undecodable() {
    let cases: [(ContentFormat, &[u8]); 5] = [
        (
            ContentFormat::SENML_JSON,
            br#"[{"n":"/3/0/9","vs":"a"},{"n":"/3/0/9"}]"#,
        ),
        (
            ContentFormat::SENML_CBOR,
            b"\x81\xa2\x00\x66/3/0/9\x02\xf9\x7e\x00",
        ),
        (
            ContentFormat::LWM2M_JSON,
            br#"{"e":[{"n":"/3/0/9","sv":"a"}]}"#,
        ),
        (ContentFormat::LWM2M_CBOR, b"\xa1\x83\x03\x00\x09\x61a"),
        (ContentFormat::LWM2M_TLV, b"\xc0\x09"),
    ];
    for (format, payload) in cases {
        let scope = Scope::Within(BATTERY_LEVEL);
        let read = decode_readable(Some(format), scope, payload, &type_of);
        assert!(read.is_err(), "{format}: {read:?}");
    }
    let nothing = decode_readable(Some(ContentFormat::SENML_JSON), Scope::All, b"[]", &type_of);
    assert_eq!(nothing, Ok(Decoded::default()));
}

#[test]
fn a_record_without_a_path_and_a_resource_given_both_ways_do_not_affect_the_others() {
    let pack = br#"[{"n":"3/0","v":1},{"n":5,"v":2},{"n":"/3/0/6","v":1},{"n":"/3/0/6/1","v":5},
        {"n":"/3/0/9","v":87},{"n":"/3/0/9","v":87,"v":88},{"n":"/3/0/9","v":1,"vb":true}]"#;
    let format = Some(ContentFormat::SENML_JSON);
    let read = decode_readable(format, Scope::All, pack, &type_of).unwrap();
    let values: Vec<_> = read.samples.iter().map(|it| (it.path, &it.value)).collect();
    assert_eq!(values, [(BATTERY_LEVEL, &Value::Integer(87))]);
    let named: Vec<String> = read.unreadable.iter().map(|it| it.to_string()).collect();
    let expected = [
        "record 1 does not name a resource",
        "a field of record 2 has a value of the wrong kind",
        "the value of /3/0/9 cannot be read, because a field of record 6 is given twice",
        "the value of /3/0/9 cannot be read, because record 7 has several values",
        "it contains /3/0/6 both as a single and as a multiple resource",
    ];
    assert_eq!(named, expected);
}

#[test]
fn a_fault_in_a_base_field_concerns_the_whole_payload() {
    for pack in [
        r#"[{"n":"/3/0/9","v":87},{"bn":5,"n":"/3/0/9","v":87}]"#,
        r#"[{"n":"/3/0/9","v":87},{"bver":11,"n":"/3/0/9","v":87}]"#,
        r#"[{"n":"/3/0/9","v":87},{"n":"/3/0/9","v":87,"x_":1}]"#,
        r#"[{"n":"/3/0/9","v":87}"#,
    ] {
        let format = Some(ContentFormat::SENML_JSON);
        let read = decode_readable(format, Scope::All, pack.as_bytes(), &type_of);
        assert!(read.is_err(), "{pack}: {read:?}");
    }
}

#[test]
fn a_failure_says_what_was_wrong() {
    let failure = |path, payload: &[u8]| {
        let read = decode(Some(ContentFormat::LWM2M_TLV), path, payload, type_of);
        read.unwrap_err().to_string()
    };
    assert_eq!(
        failure(BATTERY_LEVEL, &[0xc1, 10, 100]),
        "the TLV payload is malformed: it contains /3/0/10, which was not requested"
    );
    assert_eq!(
        failure(BATTERY_LEVEL, &[0xc0, 9]),
        "the TLV payload is malformed: the value of /3/0/9 is not of type INTEGER"
    );
}

proptest! {
    #[test]
    fn a_payload_of_unknown_type_always_becomes_a_value(payload in vec(any::<u8>(), 0..64)) {
        prop_assert!(decode_resource(None, &payload, None).is_ok());
    }
}

fn type_of(path: Path) -> Option<DataType> {
    resource_at(path)?.data_type()
}

fn resource_at(path: Path) -> Option<&'static Resource> {
    model::resource(path.object_id(), Version::new(1, 1), path.resource_id()?)
}
