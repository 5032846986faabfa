//! Does a device receive, send and answer long bodies block-wise? (RFC 7959)

use harness::device::configuration::Configuration;
use harness::device::event::{DeviceEvent, DeviceOutput, Operation, Uplink};
use harness::device::plain::PlainPath;
use harness::device::resource::Resource;
use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageKind};
use protocol::lwm2m::value::Value;

use super::world::{Fixture, answer, at, created};

const SMALL: BlockSize = BlockSize::MIN;
const LONG: &str = "the quick brown fox jumps over the lazy dog";

#[test]
fn a_block_wise_read_is_one_operation() {
    let mut fixture = lamp();
    let mut whole = Vec::new();
    for number in 0..3 {
        let ask = fixture.read("/3/0/15");
        let ask = match number {
            0 => ask,
            _ => ask.with_block2(Block::new(number, More::No, SMALL)),
        };
        fixture.deliver(&ask);
        let part = fixture.messages().remove(0);
        let more = if number < 2 { More::Yes } else { More::No };
        assert_eq!(part.code, Code::CONTENT);
        assert_eq!(part.block2(), Some(Block::new(number, more, SMALL)));
        assert!(part.etag().is_some());
        whole.extend(part.payload);
    }
    assert_eq!(whole, LONG.as_bytes());
    assert_eq!(fixture.device.performed_count(), 1);
    let beyond = fixture
        .read("/3/0/15")
        .with_block2(Block::new(3, More::No, SMALL));
    fixture.deliver(&beyond);
    assert_eq!(fixture.messages().remove(0).code, Code::BAD_REQUEST);
}

#[test]
fn a_long_value_is_notified_with_its_first_block() {
    let mut fixture = lamp();
    let observe = fixture.observe("/3/0/15");
    fixture.deliver(&observe);
    let first = fixture.messages().remove(0);
    assert!(first.observe().is_some() && first.block2().is_some_and(Block::has_more));
    let news = format!("no, {LONG}");
    fixture
        .device
        .set(at("/3/0/15"), Value::String(news.clone()));
    fixture.pass_to_timeout();
    let notification = fixture.messages().remove(0);
    assert!(notification.observe().is_some());
    assert_eq!(notification.payload, &news.as_bytes()[..16]);
    assert_ne!(notification.etag(), first.etag());
}

#[test]
fn a_block_wise_write_is_performed_once_it_is_complete() {
    let mut fixture = lamp();
    let blocks = blocks_of(&mut fixture, LONG.as_bytes());
    for block in &blocks[..2] {
        fixture.deliver(block);
        let reply = fixture.message();
        assert_eq!(
            (reply.code, reply.block1()),
            (Code::CONTINUE, block.block1())
        );
        assert_eq!(fixture.device.performed_count(), 0);
    }
    // The last one arrives twice, and is written once.
    for _ in 0..2 {
        fixture.deliver(&blocks[2]);
        let reply = fixture.messages().remove(0);
        assert_eq!(
            (reply.code, reply.block1()),
            (Code::CHANGED, blocks[2].block1())
        );
    }
    let written = Value::String(LONG.to_owned());
    assert_eq!(fixture.device.value(at("/3/0/14")), Some(&written));
    assert_eq!(fixture.device.executed(at("/3/0/14")), 1);
}

#[test]
fn blocks_with_a_gap_are_not_written() {
    let mut fixture = lamp();
    let blocks = blocks_of(&mut fixture, LONG.as_bytes());
    fixture.deliver(&blocks[0]);
    fixture.take();
    fixture.deliver(&blocks[2]);
    assert_eq!(fixture.message().code, Code::REQUEST_ENTITY_INCOMPLETE);
    fixture.deliver(&blocks[1]);
    assert_eq!(fixture.message().code, Code::REQUEST_ENTITY_INCOMPLETE);
    // An incomplete body is forgotten after a while.
    let blocks = blocks_of(&mut fixture, LONG.as_bytes());
    fixture.deliver(&blocks[0]);
    fixture.take();
    fixture.now_ms += 247_000;
    fixture.deliver(&blocks[1]);
    assert_eq!(fixture.message().code, Code::REQUEST_ENTITY_INCOMPLETE);
    assert_eq!(fixture.device.performed_count(), 0);
}

#[test]
fn a_device_with_small_blocks_registers_block_wise() {
    let mut fixture = Fixture::start(small(Vec::new()));
    let mut links = Vec::new();
    let last = loop {
        let block = fixture.message();
        links.extend(block.payload.clone());
        assert_eq!(block.payload.len().min(16), block.payload.len());
        assert!(block.uri_query().any(|query| query == "ep=lamp"));
        if !block.block1().unwrap().has_more() {
            break block;
        }
        let sized = block.block1().unwrap();
        fixture.deliver(&answer(&block, Code::CONTINUE).with_block1(sized));
    };
    fixture.deliver(&created(&last));
    assert!(matches!(
        fixture.take()[..],
        [DeviceOutput::Report(DeviceEvent::Registered { .. })]
    ));
    assert!(String::from_utf8(links).unwrap().contains("</3303/0>"));
}

#[test]
fn block_wise_data_resumes_at_its_block_and_is_given_up_in_the_end() {
    let mut fixture = Fixture::start(Configuration {
        block: SMALL,
        ..Configuration::plain("pump", Vec::new())
    });
    fixture.order(|device, now_ms, out| {
        let data = ("flow", LONG.as_bytes());
        device
            .tell(now_ms, MessageKind::Confirmable, data, out)
            .unwrap();
    });
    let first = fixture.message();
    let sized = first.block1().unwrap();
    fixture.deliver(&answer(&first, Code::CONTINUE).with_block1(sized));
    let second = fixture.message();
    assert_eq!(second.block1().unwrap().number(), 1);
    fixture.pass(240_000);
    let again = fixture.messages();
    assert!(again.iter().all(|block| block.block1() == second.block1()));
    assert!(
        again
            .iter()
            .any(|block| block.message_id != second.message_id)
    );
    fixture.pass(10_000);
    assert_eq!(fixture.events(), [DeviceEvent::GaveUp(Uplink::Data)]);
}

#[test]
fn later_blocks_of_a_plain_response_do_not_repeat_the_request() {
    let state = PlainPath::holding("/log", LONG);
    let mut fixture = Fixture::start(Configuration {
        block: SMALL,
        ..Configuration::plain("pump", vec![state])
    });
    let mut ask = fixture.execute("/log").with_payload("!");
    fixture.deliver(&ask);
    let first = fixture.messages().remove(0);
    assert_eq!(first.code, Code::CHANGED);
    ask = fixture
        .execute("/log")
        .with_block2(Block::new(2, More::No, SMALL));
    fixture.deliver(&ask);
    let last = fixture.messages().remove(0);
    assert_eq!(last.payload, &format!("{LONG}!").as_bytes()[32..]);
    assert_eq!(last.etag(), first.etag());
    assert_eq!(fixture.device.plain_performed_count(), 1);
}

fn small(resources: Vec<Resource>) -> Configuration {
    let plain = Configuration::new("lamp");
    Configuration {
        block: SMALL,
        resources: [plain.resources.clone(), resources].concat(),
        ..plain
    }
}

/// A registered device with a long value, which then uses small blocks.
fn lamp() -> Fixture {
    let text = Resource::holding(at("/3/0/15"), Value::String(LONG.to_owned()));
    let mut fixture = Fixture::start(small(vec![text]));
    loop {
        let block = fixture.message();
        let sized = block.block1().unwrap();
        if !sized.has_more() {
            fixture.deliver(&created(&block));
            fixture.take();
            return fixture;
        }
        fixture.deliver(&answer(&block, Code::CONTINUE).with_block1(sized));
    }
}

fn blocks_of(fixture: &mut Fixture, body: &[u8]) -> Vec<Message> {
    let chunks = body.chunks(SMALL.bytes());
    let last = chunks.len() - 1;
    let block = |(place, chunk): (usize, &[u8])| {
        let more = if place < last { More::Yes } else { More::No };
        let number = u32::try_from(place).unwrap();
        fixture
            .request(MessageKind::Confirmable, Operation::Write, "/3/0/14")
            .with_content_format(ContentFormat::TEXT)
            .with_block1(Block::new(number, more, SMALL))
            .with_payload(chunk)
    };
    chunks.enumerate().map(block).collect()
}
