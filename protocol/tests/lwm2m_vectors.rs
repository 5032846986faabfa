//! Do we read what real devices register and answer, and send requests like a real server?
//!
//! Reads the recorded conversations under `vectors/coap`: the sender, a summary, the bytes.

#[path = "given/hex.rs"]
mod hex;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path as FilePath, PathBuf};

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;
use protocol::lwm2m::links::ObjectLinks;
use protocol::lwm2m::model;
use protocol::lwm2m::operation::{self, ExchangeLabel, PlannedWrite};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::formats::WriteMethod;
use protocol::lwm2m::payload::{self, Reading, Undecodable};
use protocol::lwm2m::registration::{Register, Update};
use protocol::lwm2m::value::{DataType, Value};
use protocol::lwm2m::version::EnablerVersion;

use crate::hex::bytes_of;

const ANJAY: &str = "</2>,</3/0>,</4/0>,</5/0>,</6/0>,</7/0>,</9/0>,</9/1>,</10>;ver=1.1,</10/0>,\
    </11>,</16>,</19>,</20/0>,</3303/0>,</3313/0>,</3347/0>,</33605>,</33606/0>,</33607/0>,\
    </33608>,</33609/0>";
const LESHAN: &str = "</>;rt=\"oma.lwm2m\";ct=\"60 110 112 11542 11543\",</1/0>,</3>;ver=1.2,\
    </3/0>,</6/0>,</3303>;ver=1.1,</3303/0>,</3442/0>";

#[test]
fn every_recorded_register_is_read_as_the_device_meant_it() {
    let found: BTreeSet<String> = requests_at_rd(1)
        .map(|message| Register::decode(message.uri_query(), &message.payload).unwrap())
        .map(|register| {
            let Register {
                endpoint,
                version,
                binding,
                links,
                ..
            } = &register;
            let lifetime_s = register.lifetime_s.unwrap();
            format!(
                "{endpoint} {version} {lifetime_s} {binding} {}",
                links.encode()
            )
        })
        .collect();
    let mut expected = BTreeSet::from([format!("an10 1.0 300 U </1/1>,{ANJAY}")]);
    for version in ["1.1", "1.2"] {
        expected.insert(format!("anjay1 {version} 120 U </1/1>,{ANJAY}"));
        for endpoint in ["anjay2", "anjay3", "anjay4", "anjay5", "anjay6"] {
            expected.insert(format!("{endpoint} {version} 300 U </1/1>,{ANJAY}"));
        }
        expected.insert(format!("bsanjay {version} 300 U </1/0>,{ANJAY}"));
    }
    expected.insert(format!("ls1 1.1 120 UT {LESHAN}"));
    for endpoint in ["ls2", "ls4", "bsls"] {
        expected.insert(format!("{endpoint} 1.1 300 UT {LESHAN}"));
    }
    assert_eq!(found, expected);
}

#[test]
fn devices_that_offer_the_same_have_equal_links() {
    let links: BTreeSet<ObjectLinks> = requests_at_rd(1)
        .map(|message| {
            Register::decode(message.uri_query(), &message.payload)
                .unwrap()
                .links
        })
        .collect();
    assert_eq!(links.len(), 3);
    assert!(
        links
            .iter()
            .any(|links| links.content_formats() == [60, 110, 112, 11542, 11543])
    );
}

#[test]
fn every_recorded_update_is_read_as_the_device_meant_it() {
    let updates: Vec<Update> = requests_at_rd(2)
        .map(|message| Update::decode(message.uri_query(), &message.payload).unwrap())
        .collect();
    let lifetime = Update {
        lifetime_s: Some(300),
        ..Update::default()
    };
    assert_eq!(updates, [Update::default(), lifetime]);
}

#[test]
fn every_recorded_text_and_byte_answer_becomes_its_value() {
    let values: Vec<(String, Value)> = answered_reads()
        .filter(|(_, answer)| answer.content_format().is_some_and(|format| format.0 == 0))
        .map(|(path, answer)| {
            let format = answer.content_format();
            let read = payload::decode(format, path, &answer.payload, type_of).unwrap();
            (path.to_string(), read[&path].clone())
        })
        .collect();
    let expected = [
        ("/3/0/0", Value::String("Anjay".into())),
        ("/3/0/0", Value::String("Leshan Demo Device".into())),
        ("/3/0/13", Value::Time(1_795_260_874)),
        ("/5/0/3", Value::Integer(0)),
    ];
    assert_eq!(
        values,
        expected.map(|(path, value)| (path.to_owned(), value))
    );
    assert_eq!(values[2].1.to_text(), "2026-11-21T11:34:34Z");
}

#[test]
fn every_recorded_tlv_answer_and_notification_becomes_its_values() {
    let recorded = recorded();
    let answers: Vec<&Message> = recorded
        .iter()
        .map(|(message, _)| message)
        .filter(|message| message.code == Code::CONTENT)
        .filter(|message| message.content_format() == Some(ContentFormat::LWM2M_TLV))
        .collect();
    let counts: Vec<(String, usize)> = answers
        .into_iter()
        .map(|answer| {
            let mut others = recorded.iter().map(|(message, _)| message);
            let request =
                others.find(|other| other.code == Code::GET && other.token == answer.token);
            let path = request
                .and_then(path_of)
                .expect("each answer has its request");
            let format = answer.content_format();
            let values = payload::decode(format, path, &answer.payload, type_of).unwrap();
            (path.to_string(), values.len())
        })
        .collect();
    let expected = [("/3/0", 20), ("/3/0/6", 1), ("/3/0", 16)]
        .into_iter()
        .chain([("/3/0/13", 1); 5])
        .chain([("/3/0", 20)])
        .map(|(path, count)| (path.to_owned(), count));
    assert_eq!(counts, expected.collect::<Vec<_>>());
}

#[test]
fn a_firmware_package_is_written_as_a_real_server_writes_it() {
    let blocks: Vec<Vec<u8>> = recorded()
        .into_iter()
        .map(|(message, _)| message)
        .filter(|message| message.code == Code::PUT && message.block1().is_some())
        .filter(|message| message.content_format() == Some(ContentFormat::LWM2M_TLV))
        .map(|message| message.payload)
        .collect();
    let package = Path::resource(5, 0, 0);
    let values = Reading::from([(package, Value::Opaque(vec![0xaa; 1500]))]);
    assert_eq!(payload::tlv::encode(package, &values), blocks.concat());
}

#[test]
fn every_recorded_answer_in_a_structured_format_becomes_its_values() {
    let recorded = recorded();
    let answers = recorded.iter().map(|(message, _)| message);
    let answers = answers.filter(|message| message.code == Code::CONTENT);
    let mut counts = BTreeMap::new();
    for answer in answers.filter(|message| message.observe().is_none()) {
        let mut requests = recorded.iter().map(|(message, _)| message);
        let request = requests.find(|other| other.code == Code::GET && other.token == answer.token);
        let (Some(format), Some(path)) = (answer.content_format(), request.and_then(path_of))
        else {
            continue;
        };
        if is_structured(format) {
            let values = payload::decode(Some(format), path, &answer.payload, type_of).unwrap();
            let all: &mut Vec<(String, usize)> = counts.entry(format.0).or_default();
            all.push((path.to_string(), values.len()));
        }
    }
    let device = |leshan, anjay| {
        let counts = [("/3/0".to_owned(), leshan), ("/3/0".to_owned(), anjay)];
        counts.to_vec()
    };
    let expected = [
        (
            60,
            [("/3/0/9".to_owned(), 1), ("/3/0/9".to_owned(), 1)].to_vec(),
        ),
        (110, device(20, 16)),
        (112, device(20, 16)),
        (11543, device(20, 16)),
    ];
    assert_eq!(counts, BTreeMap::from(expected));
}

#[test]
fn a_device_reports_the_same_values_in_every_format() {
    for device in ["anjay", "leshan"] {
        let file = format!("device_management_in_all_formats_leshan_{device}.hex");
        let reading_in = |format: u16| -> Reading {
            let read = instance_in(&file, ContentFormat(format));
            // Values that a device measures again at each read differ.
            let moving = [9, 10, 13, 20].map(|id| Path::resource(3, 0, id));
            let is_still = |(path, _): &(Path, Value)| !moving.contains(path);
            read.into_iter().filter(is_still).collect()
        };
        let as_tlv = reading_in(11542);
        assert!(as_tlv.len() > 10);
        for format in [110, 112, 11543] {
            let differences: Vec<_> = reading_in(format)
                .into_iter()
                .filter(|(path, value)| as_tlv.get(path) != Some(value))
                .collect();
            assert_eq!(differences, [], "{device} {format}");
        }
    }
}

#[test]
fn an_answer_that_lists_links_is_not_taken_for_a_number() {
    let links = Some(ContentFormat::LINK_FORMAT);
    let listed = answered_reads().filter(|(_, answer)| answer.content_format() == links);
    let reasons: Vec<_> = listed
        .map(|(path, answer)| payload::decode(links, path, &answer.payload, type_of))
        .collect();
    let unsupported = Err(Undecodable::UnsupportedFormat(ContentFormat::LINK_FORMAT));
    assert_eq!(reasons, [unsupported.clone(), unsupported]);
}

#[test]
fn our_requests_are_byte_for_byte_those_of_a_real_server() {
    let mut reads = 0;
    let mut writes = 0;
    let mut executes = 0;
    for (message, bytes) in recorded()
        .into_iter()
        .filter(|(message, _)| is_plain(message))
    {
        let Some(path) = path_of(&message) else {
            continue;
        };
        let label = ExchangeLabel {
            message_id: message.message_id,
            token: message.token,
        };
        let ours = match message.code {
            Code::GET => {
                reads += 1;
                operation::read(label, "", path, message.accept())
            }
            Code::PUT => {
                writes += 1;
                let planned = PlannedWrite {
                    method: WriteMethod::Replace,
                    target: path,
                    format: message.content_format().unwrap(),
                    payload: message.payload.clone(),
                };
                operation::write(label, "", planned)
            }
            _ => {
                executes += 1;
                operation::execute(label, "", path, "")
            }
        };
        assert_eq!(ours.encode(), bytes, "{} {path}", message.code);
    }
    assert_eq!((reads, writes, executes), (24, 14, 2));
}

#[test]
fn our_observations_are_byte_for_byte_those_of_a_real_server() {
    let mut starts = 0;
    let mut ends = 0;
    for (message, bytes) in recorded() {
        let (Some(observe), Some(path), Code::GET) =
            (message.observe(), path_of(&message), message.code)
        else {
            continue;
        };
        let label = ExchangeLabel {
            message_id: message.message_id,
            token: message.token,
        };
        let ours = if observe == 0 {
            starts += 1;
            operation::observe(label, "", path, message.accept())
        } else {
            ends += 1;
            operation::cancel_observation(label, "", path, message.accept())
        };
        assert_eq!(ours.encode(), bytes, "{path}");
    }
    assert_eq!((starts, ends), (3, 1));
}

#[test]
fn a_text_write_carries_what_a_real_server_writes() {
    let written = payload::encode_resource(&Value::parse(DataType::String, "+04:00").unwrap());
    let recorded = recorded().into_iter().any(|(message, _)| {
        message.code == Code::PUT
            && message.content_format() == Some(written.0)
            && message.payload == written.1
    });
    assert!(recorded);
}

/// Requests to the registration interface whose path has this many segments.
fn requests_at_rd(segments: usize) -> impl Iterator<Item = Message> {
    recorded()
        .into_iter()
        .map(|(message, _)| message)
        .filter(move |message| {
            message.code == Code::POST
                && message.uri_path().next() == Some("rd")
                && message.uri_path().count() == segments
        })
}

/// The reads and first observations of a single resource, each with its successful answer.
fn answered_reads() -> impl Iterator<Item = (Path, Message)> {
    let recorded = recorded();
    let answers = recorded.clone();
    recorded.into_iter().filter_map(move |(request, _)| {
        let path = path_of(&request).filter(|path| path.is_resource())?;
        let is_read = request.code == Code::GET && request.observe() != Some(1);
        let answer = answers
            .iter()
            .map(|(answer, _)| answer)
            .find(|answer| answer.code == Code::CONTENT && answer.token == request.token)?;
        is_read.then(|| (path, answer.clone()))
    })
}

/// Returns whether a message is a read, write or execute without observation, attributes or blocks.
fn is_plain(message: &Message) -> bool {
    let asks = [Code::GET, Code::PUT, Code::POST].contains(&message.code);
    let special = message.observe().is_some()
        || message.block1().is_some()
        || message.uri_query().next().is_some();
    asks && !special
}

fn path_of(message: &Message) -> Option<Path> {
    Path::from_segments(message.uri_path()).ok()
}

fn is_structured(format: ContentFormat) -> bool {
    let formats = [
        ContentFormat::CBOR,
        ContentFormat::SENML_JSON,
        ContentFormat::SENML_CBOR,
        ContentFormat::LWM2M_JSON,
    ];
    formats.contains(&format)
}

/// The values of a device's own object in a recording, read in a format.
fn instance_in(file: &str, format: ContentFormat) -> Reading {
    let device = Path::instance(3, 0);
    let recorded = recorded_in(file);
    let asks = |message: &&Message| message.accept() == Some(format);
    let messages = recorded.iter().map(|(message, _)| message);
    let mut requests = messages.clone().filter(asks);
    let request = requests.find(|message| path_of(message) == Some(device));
    let token = request.expect("the instance is read in each format").token;
    let is_answer = |message: &&Message| message.code == Code::CONTENT && message.token == token;
    let answer = messages.clone().find(is_answer).expect("each is answered");
    payload::decode(answer.content_format(), device, &answer.payload, type_of)
        .expect("a recorded answer can be read")
}

fn type_of(path: Path) -> Option<DataType> {
    let version = model::default_version(path.object_id(), EnablerVersion::V1_1);
    model::resource(path.object_id(), version, path.resource_id()?)?.data_type()
}

fn recorded() -> Vec<(Message, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder())
        .expect("the vectors are part of the repository")
        .map(|entry| entry.expect("a folder can be listed").path())
        .collect();
    files.sort();
    files.iter().flat_map(|file| messages_of(file)).collect()
}

fn recorded_in(file: &str) -> Vec<(Message, Vec<u8>)> {
    messages_of(&folder().join(file))
}

fn folder() -> PathBuf {
    FilePath::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/coap")
}

fn messages_of(file: &FilePath) -> Vec<(Message, Vec<u8>)> {
    let text = fs::read_to_string(file).expect("a vector file is text");
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let bytes = bytes_of(line.rsplit(" | ").next().unwrap_or_default().trim());
            (Message::decode(&bytes).expect("a real datagram"), bytes)
        })
        .collect()
}
