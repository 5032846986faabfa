//! Do we read and write SenML like the standard's examples and real devices, for any bytes?
//!
//! Each file under `vectors/senml` is one payload: its format, the payload, and the samples.

#[path = "given/hex.rs"]
mod hex;
#[path = "given/recorded.rs"]
mod recorded;
#[path = "given/values.rs"]
mod values;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path as FilePath;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use proptest::sample::{Index, select};
use proptest::{prop_assert, prop_assert_eq};
use protocol::coap::content::ContentFormat;
use protocol::lwm2m::model;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{
    Measured, Reading, Sample, Scope, decode, decode_paths, decode_samples, encode, encode_all,
    encode_paths,
};
use protocol::lwm2m::value::{DataType, Value};

use crate::hex::bytes_of;
use crate::recorded::{files_of, type_in_model, value_of};
use crate::values::{type_by_number, values};

const SENML: [ContentFormat; 2] = [ContentFormat::SENML_JSON, ContentFormat::SENML_CBOR];

#[test]
fn every_vector_is_read_as_it_was_meant() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 22);
    for Vector {
        name,
        format,
        payload,
        samples,
    } in vectors
    {
        let read = decode_samples(Some(format), Scope::All, &payload, &types_of(&samples));
        assert_eq!(read, Ok(samples), "{name}");
    }
}

#[test]
fn every_vector_of_a_known_object_is_of_the_types_of_the_model() {
    for Vector { name, samples, .. } in vectors() {
        let known = samples
            .iter()
            .filter(|sample| !model::versions(sample.path.object_id()).is_empty());
        for Sample { path, value, .. } in known {
            let in_model = type_in_model(*path);
            assert_eq!(in_model, Some(value.data_type()), "{path} in {name}");
        }
    }
}

#[test]
fn every_vector_is_the_same_in_the_other_form() {
    for Vector { name, samples, .. } in vectors() {
        let newest: Reading = samples
            .iter()
            .map(|it| (it.path, it.value.clone()))
            .collect();
        for format in SENML {
            let written = encode_all(format, &newest).unwrap();
            let types = types_of(&samples);
            let read = decode_samples(Some(format), Scope::All, &written, &types).unwrap();
            let read: Reading = read.into_iter().map(|it| (it.path, it.value)).collect();
            assert_eq!(read, newest, "{name} as {format}");
        }
    }
}

#[test]
fn no_vector_is_read_when_it_is_cut_off() {
    for Vector {
        name,
        format,
        payload,
        samples,
    } in vectors()
    {
        for end in 0..payload.len() {
            let types = types_of(&samples);
            let read = decode_samples(Some(format), Scope::All, &payload[..end], &types);
            assert!(read.is_err(), "{name} cut off at {end}");
        }
    }
}

#[test]
fn a_reading_holds_the_newest_value_of_each_path() {
    let path = Path::resource(3303, 0, 5700);
    let newest = |pack: &str| {
        let format = Some(ContentFormat::SENML_JSON);
        let read = decode(format, path, pack.as_bytes(), |_| None).unwrap();
        read[&path].to_text()
    };
    let cases = [
        (
            r#"[{"bn":"/3303/0/5700","t":-1,"v":1},{"t":-2,"v":2}]"#,
            "1",
        ),
        (
            r#"[{"bn":"/3303/0/5700","bt":1e9,"t":1,"v":1},{"t":2,"v":2}]"#,
            "2",
        ),
        (r#"[{"bn":"/3303/0/5700","v":1},{"t":-2,"v":2}]"#, "1"),
        (
            r#"[{"bn":"/3303/0/5700","t":-2,"v":1},{"t":1e9,"v":2}]"#,
            "1",
        ),
        (r#"[{"bn":"/3303/0/5700","t":5,"v":1},{"t":5,"v":2}]"#, "2"),
        (r#"[{"bn":"/3303/0/5700","v":1},{"v":2}]"#, "2"),
    ];
    for (pack, value) in cases {
        assert_eq!(newest(pack), value, "{pack}");
    }
}

#[test]
fn values_are_written_as_a_compact_server_writes_them() {
    let time_zone = Path::resource(3, 0, 14);
    let offset = |text: &str| (time_zone, Value::String(text.into()));
    let one = Reading::from([offset("+04:45")]);
    assert_eq!(
        json(time_zone, &one),
        vector("resource_written_json_leshan").payload
    );
    assert_eq!(
        hex(&cbor(time_zone, &one)),
        "81a221672f332f302f313403662b30343a3435"
    );

    let link = Value::parse(DataType::ObjectLink, "33606:0").unwrap();
    let several = Reading::from([
        offset("Z"),
        (Path::resource(3, 0, 9), Value::Integer(-1)),
        (Path::resource(3, 0, 13), Value::Time(1_700_000_000)),
        (Path::resource_instance(3, 0, 22, 0), link),
        (Path::resource(3, 0, 26), Value::Float(0.5)),
        (Path::resource(3, 0, 27), Value::Opaque(vec![251, 255])),
        (Path::resource(3, 0, 28), Value::Boolean(true)),
        (Path::resource(4, 0, 1), Value::Boolean(true)),
    ]);
    assert_eq!(
        String::from_utf8(json(Path::instance(3, 0), &several)).unwrap(),
        concat!(
            r#"[{"bn":"/3/0/","n":"9","v":-1},{"n":"13","v":1700000000},{"n":"14","vs":"Z"},"#,
            r#"{"n":"22/0","vlo":"33606:0"},{"n":"26","v":0.5},{"n":"27","vd":"-_8"},"#,
            r#"{"n":"28","vb":true}]"#
        )
    );
    assert_eq!(
        hex(&cbor(Path::instance(3, 0), &several)),
        concat!(
            "87a321652f332f302f0061390220a200623133021a6553f100a20062313403615a",
            "a2006432322f3063766c6f6733333630363a30a20062323602fa3f000000",
            "a2006232370842fbffa20062323804f5"
        )
    );
    let outside = json(Path::object(9), &several);
    assert_eq!(outside, b"[]");
}

#[test]
fn a_composite_write_begins_with_what_its_names_share() {
    let written = |paths: &[&str]| {
        let value = |path: &&str| (path.parse().unwrap(), Value::Integer(1));
        let values: Reading = paths.iter().map(value).collect();
        String::from_utf8(encode_all(ContentFormat::SENML_JSON, &values).unwrap()).unwrap()
    };
    let cases = [
        (&["/3/0/14"][..], r#"[{"bn":"/3/0/14","v":1}]"#),
        (
            &["/3/0/14", "/3/0/15"],
            r#"[{"bn":"/3/0/","n":"14","v":1},{"n":"15","v":1}]"#,
        ),
        (
            &["/3/0/14", "/3/1/15"],
            r#"[{"bn":"/3/","n":"0/14","v":1},{"n":"1/15","v":1}]"#,
        ),
        (
            &["/3/0/7/0", "/3/0/7/1"],
            r#"[{"bn":"/3/0/7/","n":"0","v":1},{"n":"1","v":1}]"#,
        ),
        (
            &["/1/0/1", "/3/0/14"],
            r#"[{"n":"/1/0/1","v":1},{"n":"/3/0/14","v":1}]"#,
        ),
        (&[], "[]"),
    ];
    for (paths, pack) in cases {
        assert_eq!(written(paths), pack);
    }
}

#[test]
fn a_list_of_paths_is_byte_for_byte_that_of_a_real_server() {
    let paths =
        |paths: &[&str]| -> Vec<Path> { paths.iter().map(|path| path.parse().unwrap()).collect() };
    let three = paths(&["/3/0/0", "/3/0/1", "/1/0/1"]);
    let in_cbor = encode_paths(ContentFormat::SENML_CBOR, &three).unwrap();
    assert_eq!(
        hex(&in_cbor),
        "83a100662f332f302f30a100662f332f302f31a100662f312f302f31"
    );
    let two = paths(&["/3/0/0", "/3/0/1"]);
    let in_json = encode_paths(ContentFormat::SENML_JSON, &two).unwrap();
    assert_eq!(in_json, br#"[{"n":"/3/0/0"},{"n":"/3/0/1"}]"#);
    assert_eq!(decode_paths(ContentFormat::SENML_CBOR, &in_cbor), Ok(three));
    assert_eq!(decode_paths(ContentFormat::SENML_JSON, &in_json), Ok(two));
}

proptest! {
    #[test]
    fn every_value_survives_as_one_item(value in values()) {
        let path = Path::resource(3, 0, 0);
        let format = ContentFormat::CBOR;
        let values = Reading::from([(path, value.clone())]);
        let bytes = encode(format, path, &values).unwrap();
        let read = decode(Some(format), path, &bytes, |_| Some(value.data_type()));
        prop_assert_eq!(read, Ok(values));
    }

    #[test]
    fn any_payload_is_decoded_or_refused((format, bytes) in payloads(), salt in any::<u16>()) {
        let type_of = |at: Path| type_by_number(at, salt);
        let paths = [Path::object(3), Path::instance(3, 0)].map(Scope::Within);
        for scope in paths.into_iter().chain([Scope::All]) {
            let Ok(samples) = decode_samples(Some(format), scope, &bytes, &type_of) else {
                continue;
            };
            prop_assert!(samples.iter().all(|sample| scope.contains(sample.path)));
            let values: Reading = samples.into_iter().map(|it| (it.path, it.value)).collect();
            let written = encode_all(format, &values).unwrap();
            let again = decode_samples(Some(format), scope, &written, &type_of).unwrap();
            let again: Reading = again.into_iter().map(|it| (it.path, it.value)).collect();
            prop_assert_eq!(again, values);
        }
        let _ = decode_paths(format, &bytes);
        let _ = decode(Some(ContentFormat::CBOR), Path::resource(3, 0, 0), &bytes, type_of);
    }
}

/// Noise, and payloads of devices that are cut or changed.
fn payloads() -> impl Strategy<Value = (ContentFormat, Vec<u8>)> {
    let noise = (select(SENML.to_vec()), vec(any::<u8>(), 0..40));
    let recorded = vectors().into_iter();
    let recorded: Vec<_> = recorded.map(|it| (it.format, it.payload)).collect();
    let changes = vec((any::<Index>(), any::<u8>(), 0..4_u8), 0..4);
    let spoilt = (select(recorded), changes).prop_map(|((format, mut bytes), changes)| {
        for (place, byte, change) in changes {
            spoil(&mut bytes, place, byte, change);
        }
        (format, bytes)
    });
    prop_oneof![1 => noise, 4 => spoilt]
}

fn spoil(bytes: &mut Vec<u8>, place: Index, byte: u8, change: u8) {
    if bytes.is_empty() {
        return;
    }
    let place = place.index(bytes.len());
    match change {
        0 => bytes[place] = byte,
        1 => bytes.insert(place, byte),
        2 => drop(bytes.remove(place)),
        _ => bytes.truncate(place),
    }
}

fn types_of(samples: &[Sample]) -> impl Fn(Path) -> Option<DataType> + use<> {
    let types = samples
        .iter()
        .map(|sample| (sample.path, sample.value.data_type()));
    let types: BTreeMap<Path, DataType> = types.collect();
    move |path| types.get(&path).copied()
}

fn json(path: Path, values: &Reading) -> Vec<u8> {
    encode(ContentFormat::SENML_JSON, path, values).expect("every finite value has a form")
}

fn cbor(path: Path, values: &Reading) -> Vec<u8> {
    encode(ContentFormat::SENML_CBOR, path, values).expect("every finite value has a form")
}

/// One payload and its samples.
struct Vector {
    name: String,
    format: ContentFormat,
    payload: Vec<u8>,
    samples: Vec<Sample>,
}

fn vector(name: &str) -> Vector {
    let found = vectors().into_iter().find(|vector| vector.name == name);
    found.expect("the vector is in the repository")
}

fn vectors() -> Vec<Vector> {
    let files = files_of("senml");
    files.iter().map(|file| Vector::read(file)).collect()
}

impl Vector {
    fn read(file: &FilePath) -> Vector {
        let text = fs::read_to_string(file).expect("a vector is text");
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let head = lines.next().and_then(|line| line.split_once(" | "));
        let (format, payload) = head.expect("a vector begins with its format and its payload");
        let format = ContentFormat(format.parse().expect("a Content-Format"));
        let name = file.file_stem().expect("a vector has a name");
        Vector {
            name: name.to_string_lossy().into_owned(),
            format,
            payload: match format {
                ContentFormat::SENML_JSON => payload.as_bytes().to_vec(),
                _ => bytes_of(payload),
            },
            samples: lines.map(sample_of).collect(),
        }
    }
}

/// Reads a line such as `absolute 1700000000000 /3/0/9 INTEGER 100`; the time may be missing, and
/// an empty text is left out.
fn sample_of(line: &str) -> Sample {
    let (measured, rest) = match line.split_once(' ') {
        Some((kind @ ("absolute" | "relative"), rest)) => {
            let (time, rest) = rest.split_once(' ').expect("a value behind the time");
            let time_ms = time.parse().expect("milliseconds");
            let absolute = kind == "absolute";
            let measured = if absolute {
                Measured::Absolute
            } else {
                Measured::Relative
            };
            (Some(measured(time_ms)), rest)
        }
        _ => (None, line),
    };
    let (path, value) = value_of(rest);
    Sample {
        path,
        value,
        measured,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
