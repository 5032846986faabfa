//! Are all numbers of CBOR accepted as values of a pack? (RFC 8428 section 6)

use super::vocabulary::{bytes, sample, type_of};
use super::{BATTERY_LEVEL, SENSOR_VALUE};
use crate::coap::content::ContentFormat;
use crate::lwm2m::path::Path;
use crate::lwm2m::payload::samples::{MalformedSamples, ReadSamples};
use crate::lwm2m::payload::senml::{decode_cbor, encode_json};
use crate::lwm2m::payload::{Reading, Scope, Unencodable};
use crate::lwm2m::value::{DataType, Value};

#[test]
fn a_number_tagged_as_a_time_is_a_number() {
    let pack = bytes("81a2006a2f34323030302f302f3102c11a6b01745f");
    let read =
        |data_type| decode_cbor(Scope::All, &pack, &|_| data_type).and_then(ReadSamples::whole);
    let at = 1_795_257_439;
    let cases = [
        (None, Value::Integer(at)),
        (Some(DataType::Integer), Value::Integer(at)),
        (Some(DataType::Time), Value::Time(at)),
    ];
    for (data_type, value) in cases {
        assert_eq!(read(data_type), Ok(vec![sample("/42000/0/1", value, None)]));
    }
}

#[test]
fn nan_and_infinity_are_not_read_and_do_not_affect_the_other_values() {
    let type_of_number = |of_number| {
        move |path: Path| match path {
            SENSOR_VALUE => of_number,
            _ => type_of(path),
        }
    };
    for number in [
        "f97e00",
        "fb7ff8000000000000",
        "f97c00",
        "faff800000",
        "c4821903e801",
    ] {
        let pack = format!("82a2006c2f333330332f302f3537303002{number}a200662f332f302f390205");
        for of_number in [Some(DataType::Float), None] {
            let read = decode_cbor(Scope::All, &bytes(&pack), &type_of_number(of_number)).unwrap();
            let level = sample("/3/0/9", Value::Integer(5), None);
            assert_eq!(read.samples, [level]);
            let reason = MalformedSamples::NotFinite(SENSOR_VALUE);
            assert_eq!(read.unreadable, [(Some(SENSOR_VALUE), reason)]);
        }
    }
    for number in [f64::NAN, f64::INFINITY] {
        let values = Reading::from([(SENSOR_VALUE, Value::Float(number))]);
        let (path, format) = (SENSOR_VALUE, ContentFormat::SENML_JSON);
        let json = encode_json(format, None, &values);
        assert_eq!(json, Err(Unencodable::Value { format, path }));
    }
    let level = MalformedSamples::Value {
        path: BATTERY_LEVEL,
        data_type: DataType::Integer,
    };
    let none = "81a200662f332f302f3902f97e00";
    let read = decode_cbor(Scope::All, &bytes(none), &type_of).and_then(ReadSamples::whole);
    assert_eq!(read, Err(level));
    let time = "81a300662f332f302f3906f97e000205";
    let read = decode_cbor(Scope::All, &bytes(time), &type_of).and_then(ReadSamples::whole);
    assert_eq!(read, Err(MalformedSamples::Time(1)));
}
