//! What does it cost to decode and encode the messages of devices?

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use protocol::coap::assembly::{Assembly, AssemblyOutcome};
use protocol::coap::block::BlockSize;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::exchange::Transmission;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::option;
use protocol::coap::serving;
use protocol::coap::token::Token;
use protocol::coap::transfer::{FreshIds, Transfer, TransferReception, TransferRules};
use protocol::lwm2m::links::ObjectLinks;
use protocol::lwm2m::model;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload;
use protocol::lwm2m::registration::{Register, Update};
use protocol::lwm2m::value::DataType;
use protocol::lwm2m::version::Version;

/// The recorded messages between an Anjay client and a server.
const CONVERSATION: &str =
    include_str!("../protocol/tests/vectors/coap/register_update_deregister_anjay.hex");

/// A device's response to a read of its Device instance: the path, the bytes, and the decoded
/// values.
const INSTANCE: &str = include_str!("../protocol/tests/vectors/tlv/device_instance_anjay.hex");

/// A body that exceeds any datagram.
const MEBIBYTE: usize = 1_048_576;

criterion_group!(codecs, update, register, links, text, instance, blocks);
criterion_main!(codecs);

fn update(criterion: &mut Criterion) {
    let message = Message::request(
        MessageKind::Confirmable,
        Code::POST,
        MessageId(7),
        Token::from_u64(7),
    )
    .with_option(option::URI_HOST, b"coap.acme.test")
    .with_uri_path(["rd", "0123456789abcdef"])
    .with_uri_query(["lt=86400", "b=U"]);
    let bytes = message.encode();
    assert_eq!(bytes.len(), 62);
    criterion.bench_function("update of 62 bytes: decode the message", |bench| {
        bench.iter(|| Message::decode(black_box(&bytes)));
    });
    criterion.bench_function("update: read its parameters", |bench| {
        bench.iter(|| Update::decode(black_box(&message).uri_query(), &message.payload));
    });
    criterion.bench_function("update: encode the answer 2.04", |bench| {
        bench.iter(|| {
            Message::response_to(black_box(&message), Code::CHANGED, MessageId(0)).encode()
        });
    });
}

fn register(criterion: &mut Criterion) {
    let bytes = recorded_register();
    let message = Message::decode(&bytes).expect("the recorded datagram is a message");
    criterion.bench_function("register of Anjay: decode the message", |bench| {
        bench.iter(|| Message::decode(black_box(&bytes)));
    });
    criterion.bench_function("register of Anjay: encode the message", |bench| {
        bench.iter(|| black_box(&message).encode());
    });
    criterion.bench_function(
        "register of Anjay: read its parameters and links",
        |bench| {
            bench.iter(|| Register::decode(black_box(&message).uri_query(), &message.payload));
        },
    );
}

fn links(criterion: &mut Criterion) {
    let message = Message::decode(&recorded_register()).expect("the datagram is a message");
    let links = ObjectLinks::decode(&message.payload).expect("the payload is a list of links");
    criterion.bench_function("links of Anjay, 22 of them: decode", |bench| {
        bench.iter(|| ObjectLinks::decode(black_box(&message.payload)));
    });
    criterion.bench_function("links of Anjay, 22 of them: encode", |bench| {
        bench.iter(|| black_box(&links).encode());
    });
}

fn text(criterion: &mut Criterion) {
    let format = Some(ContentFormat::TEXT);
    let path = Path::resource(3303, 0, 5700);
    let decode = |bytes| payload::decode(format, path, bytes, |_| Some(DataType::Float));
    let read = decode(b"21.5").expect("a decimal number is a float");
    let value = &read[&path];
    criterion.bench_function("text payload of a float: decode", |bench| {
        bench.iter(|| decode(black_box(b"21.5")));
    });
    criterion.bench_function("text payload of a float: encode", |bench| {
        bench.iter(|| payload::encode_resource(black_box(value)));
    });
}

fn instance(criterion: &mut Criterion) {
    let path = Path::instance(3, 0);
    let head = INSTANCE.lines().find_map(|line| line.split_once(" | "));
    let (_, hex) = head.expect("the bytes are behind the path");
    let bytes: Vec<u8> = hex.as_bytes().chunks(2).map(byte).collect();
    let version = Version::new(1, 1);
    let type_of = |at: Path| model::resource(3, version, at.resource_id()?)?.data_type();
    let decode = |bytes| payload::decode(Some(ContentFormat::LWM2M_TLV), path, bytes, type_of);
    let values = decode(&bytes).expect("the answer is the instance's values");
    assert_eq!((bytes.len(), values.len()), (118, 20));
    criterion.bench_function("instance of Anjay, 20 values in TLV: decode", |bench| {
        bench.iter(|| decode(black_box(&bytes)));
    });
    criterion.bench_function("instance of Anjay, 20 values in TLV: encode", |bench| {
        bench.iter(|| payload::tlv::encode(path, black_box(&values)));
    });
}

fn blocks(criterion: &mut Criterion) {
    let body = vec![7; MEBIBYTE];
    criterion.bench_function("1 MiB in 1,024 blocks: send, take and confirm", |bench| {
        bench.iter(|| {
            let mut assembly = Assembly::default();
            carry(Code::PUT, black_box(&body), |request| {
                let gathered = assembly.take(0, request, MEBIBYTE);
                let is_whole = matches!(gathered, AssemblyOutcome::Whole(_));
                assert!(is_whole || gathered == AssemblyOutcome::Continue);
                let code = if is_whole {
                    Code::CHANGED
                } else {
                    Code::CONTINUE
                };
                let block = request.block1().expect("all of it is blocks");
                Message::response_to(request, code, MessageId(0)).with_block1(block)
            })
        });
    });
    criterion.bench_function("1 MiB in 1,024 blocks: ask, give and join", |bench| {
        bench.iter(|| {
            carry(Code::GET, &[], |request| {
                let head = Message::response_to(request, Code::CONTENT, MessageId(0));
                serving::cut_from(head, black_box(&body), request, BlockSize::MAX)
            })
        });
    });
}

/// Transfers a request and its response as bytes, encoded and decoded on both sides, to the end.
fn carry(code: Code, body: &[u8], mut peer: impl FnMut(&Message) -> Message) -> TransferReception {
    let rules = TransferRules {
        transmission: &Transmission::STANDARD,
        block: BlockSize::MAX,
        answer_bytes_max: MEBIBYTE,
        idle_ms: 247_000,
    };
    let request = Message::request(
        MessageKind::Confirmable,
        code,
        MessageId(0),
        Token::from_u64(0),
    )
    .with_uri_path(["5", "0", "0"])
    .with_payload(body);
    let mut transfer = Transfer::begin(0, &rules, request, 0);
    for message_id in 1.. {
        let request = Message::decode(transfer.datagram()).expect("it was just written");
        let response = Message::decode(&peer(&request).encode()).expect("it was just written");
        let receipt = transfer.handle(0, &rules, &response);
        if !matches!(receipt, TransferReception::Proceeds { .. }) {
            assert!(matches!(receipt, TransferReception::Answered { .. }));
            return receipt;
        }
        let fresh = FreshIds {
            message_id: MessageId(message_id),
            token: Token::from_u64(message_id.into()),
            jitter: 0,
        };
        transfer.proceed(0, &rules, fresh);
    }
    unreachable!("there are fewer blocks than ids")
}

/// The first Register of the recording that the server accepted.
fn recorded_register() -> Vec<u8> {
    let line = CONVERSATION
        .lines()
        .find(|line| line.contains("Uri-Query=lwm2m=1.1"))
        .expect("the conversation has a Register of release 1.1");
    let (_, hex) = line
        .rsplit_once("| ")
        .expect("the bytes are behind the last bar");
    hex.as_bytes().chunks(2).map(byte).collect()
}

fn byte(digits: &[u8]) -> u8 {
    let digits = std::str::from_utf8(digits).expect("the digits are text");
    u8::from_str_radix(digits, 16).expect("the digits are hexadecimal")
}
