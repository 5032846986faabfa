//! Do we read recordings of real devices and servers correctly?
//!
//! Each file under `vectors/coap` is a recorded conversation: the sender, a summary, the bytes.

#[path = "given/hex.rs"]
mod hex;

use std::fs;
use std::path::Path;

use protocol::coap::block::{Block, BlockSize};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::dedup::{DedupWindow, Duplicate};
use protocol::coap::exchange::{Exchange, ExchangeReception, Transmission};
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::option;

use crate::hex::bytes_of;

#[test]
fn every_recorded_datagram_says_what_its_summary_says() {
    let lines = recorded();
    assert_eq!(lines.len(), 238);
    for line in lines {
        assert_eq!(describe(&line.message), line.summary, "in {}", line.file);
    }
}

#[test]
fn every_recorded_datagram_is_written_as_it_was_read() {
    for line in recorded() {
        assert_eq!(
            line.message.encode(),
            line.bytes,
            "{} in {}",
            line.summary,
            line.file
        );
    }
}

#[test]
fn every_recorded_request_carries_known_critical_options_only() {
    let known = [
        option::URI_PATH,
        option::URI_QUERY,
        option::ACCEPT,
        option::BLOCK1,
        option::BLOCK2,
    ];
    for line in recorded() {
        let unknown = line.message.unknown_critical_option(&known);
        assert_eq!(unknown, None, "{} in {}", line.summary, line.file);
    }
}

#[test]
fn every_recorded_request_finds_its_answer() {
    let mut requests_by_speaker = [0, 0];
    for (place, line) in recorded().iter().enumerate() {
        if !line.message.code.is_request() {
            continue;
        }
        let mut exchange = Exchange::begin(0, &Transmission::STANDARD, &line.message, 0);
        let later = recorded().into_iter().skip(place + 1);
        let receptions: Vec<ExchangeReception> = later
            .filter(|other| other.file == line.file && other.speaker != line.speaker)
            .map(|other| exchange.handle(1, &other.message))
            .filter(|reception| *reception != ExchangeReception::NotMine)
            .collect();
        assert!(
            is_answer(&receptions),
            "{receptions:?} to {} in {}",
            line.summary,
            line.file
        );
        requests_by_speaker[usize::from(line.speaker == "S")] += 1;
    }
    assert_eq!(requests_by_speaker, [33, 75]);
}

#[test]
fn a_notification_does_not_answer_the_request_that_ends_it() {
    let lines = conversation("observe_and_cancel_by_request_anjay.hex");
    let cancels =
        |line: &&Line| line.message.code == Code::GET && line.message.observe() == Some(1);
    let cancel = lines
        .iter()
        .find(cancels)
        .expect("the conversation has a cancel");
    let notifications: Vec<&Line> = lines
        .iter()
        .filter(|line| line.message.kind == MessageKind::NonConfirmable)
        .filter(|line| line.message.token == cancel.message.token)
        .collect();
    assert_eq!(notifications.len(), 3);

    let mut exchange = Exchange::begin(0, &Transmission::STANDARD, &cancel.message, 0);
    for notification in notifications {
        assert_eq!(
            exchange.handle(1, &notification.message),
            ExchangeReception::NotMine
        );
    }
}

#[test]
fn no_recorded_message_is_a_duplicate() {
    for speaker in ["C", "S"] {
        let mut recent = DedupWindow::default();
        for line in recorded().iter().filter(|line| line.speaker == speaker) {
            assert_eq!(
                recent.find(0, &line.message),
                None,
                "{} in {}",
                line.summary,
                line.file
            );
            recent.remember(0, &line.message, Duplicate::Acknowledged);
            let repeated = Message::decode(&line.bytes).expect("it was read once");
            assert_eq!(recent.find(1, &repeated), Some(Duplicate::Acknowledged));
        }
    }
}

#[test]
fn a_registration_is_read_in_its_parts() {
    let lines = conversation("register_deregister_leshan.hex");
    let register = &lines
        .first()
        .expect("the conversation has datagrams")
        .message;
    assert_eq!(register.uri_path().collect::<Vec<_>>(), ["rd"]);
    let queries: Vec<&str> = register.uri_query().collect();
    assert_eq!(queries, ["b=UT", "lwm2m=1.1", "lt=120", "ep=ls1"]);
    assert_eq!(register.content_format(), Some(ContentFormat::LINK_FORMAT));
    assert_eq!(register.payload.len(), 116);

    let created = &lines.get(1).expect("the registration was answered").message;
    assert_eq!(
        created.location_path().collect::<Vec<_>>(),
        ["rd", "QoUQDAaYKU"]
    );
}

#[test]
fn a_block_is_read_in_its_parts() {
    let lines = conversation("write_in_blocks_leshan_anjay.hex");
    let blocks: Vec<Block> = lines
        .iter()
        .filter(|line| line.speaker == "S")
        .filter_map(|line| line.message.block1())
        .collect();
    let last = blocks.get(5).expect("the write took six blocks");
    assert_eq!(
        (last.number(), last.has_more(), last.size()),
        (5, false, BlockSize::of_bytes(512))
    );
}

/// One line of a conversation.
struct Line {
    file: String,
    speaker: String,
    summary: String,
    bytes: Vec<u8>,
    message: Message,
}

fn recorded() -> Vec<Line> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/coap");
    let entries = fs::read_dir(folder).expect("the vectors are in the repository");
    let mut files: Vec<String> = entries
        .map(|entry| entry.expect("the folder is readable").file_name())
        .map(|name| name.into_string().expect("vectors have plain names"))
        .collect();
    files.sort();
    files.iter().flat_map(|file| conversation(file)).collect()
}

fn conversation(file: &str) -> Vec<Line> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/coap");
    let text = fs::read_to_string(folder.join(file)).expect("the vector is in the repository");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| Line::read(file, line)).collect()
}

impl Line {
    fn read(file: &str, line: &str) -> Line {
        let mut parts = line.split(" | ").map(str::to_owned);
        let mut part = || parts.next().expect("a line has three parts");
        let (speaker, summary, hex) = (part(), part(), part());
        let bytes = bytes_of(&hex);
        let message = Message::decode(&bytes).expect("recorded datagrams are well-formed");
        Line {
            file: file.to_owned(),
            speaker,
            summary,
            bytes,
            message,
        }
    }
}

fn is_answer(receptions: &[ExchangeReception]) -> bool {
    matches!(
        receptions,
        [ExchangeReception::Answered { acknowledge: None }]
            | [
                ExchangeReception::Acknowledged,
                ExchangeReception::Answered {
                    acknowledge: Some(_)
                }
            ]
    )
}

/// Describes a message in the words of the summaries.
fn describe(message: &Message) -> String {
    let kind = match message.kind {
        MessageKind::Confirmable => "CON",
        MessageKind::NonConfirmable => "NON",
        MessageKind::Acknowledgement => "ACK",
        MessageKind::Reset => "RST",
    };
    let code = match message.code {
        Code::EMPTY => "empty".to_owned(),
        Code::GET => "GET".to_owned(),
        Code::POST => "POST".to_owned(),
        Code::PUT => "PUT".to_owned(),
        Code::DELETE => "DELETE".to_owned(),
        Code::FETCH => "FETCH".to_owned(),
        Code::IPATCH => "iPATCH".to_owned(),
        other => other.to_string(),
    };
    let MessageId(message_id) = message.message_id;
    let token = message.token;
    let options = describe_options(message).join(" ");
    let length = message.payload.len();
    format!("{kind} {code} mid={message_id} tok={token} {options} payload={length}B")
}

fn describe_options(message: &Message) -> Vec<String> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let number = |value: &[u8]| {
        value
            .iter()
            .fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte))
    };
    let block = |value: &[u8]| {
        let value = number(value);
        format!("{}/{}/{}", value >> 4, value >> 3 & 1, 16 << (value & 7))
    };
    let describe = |(option, value): (u16, &[u8])| match option {
        option::OBSERVE => format!("Observe={}", number(value)),
        option::LOCATION_PATH => format!("Location-Path={}", text(value)),
        option::URI_PATH => format!("Uri-Path={}", text(value)),
        option::CONTENT_FORMAT => format!("Content-Format={}", number(value)),
        option::URI_QUERY => format!("Uri-Query={}", text(value)),
        option::ACCEPT => format!("Accept={}", number(value)),
        option::BLOCK1 => format!("Block1={}", block(value)),
        option::SIZE1 => format!("Size1={}", number(value)),
        other => format!("{other}?"),
    };
    message.options().map(describe).collect()
}
