//! Is each payload read in its format, and requested in one that is supported?

use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, proptest};

use super::{MalformedValue, Reading, Undecodable, decode, decode_resource, encode_resource};
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
