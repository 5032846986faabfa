//! Is data in blocks assembled, and are wrong blocks refused (RFC 7959)?

mod answers;
mod large;
mod mixed;
mod requests;

use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;
use serde_json::json;

use super::{ELSEWHERE, ID, IP, PlainService};
use crate::vocabulary::blockwise::{blocks, body, size};
use crate::vocabulary::plain::{ReportedData, data};
use crate::vocabulary::poll::until;
use crate::vocabulary::wire::{DeviceSocket, location_of, register_with, request};

/// Every block size.
const SIZES: [u16; 7] = [16, 32, 64, 128, 256, 512, 1_024];

#[test]
fn data_in_blocks_of_any_size_is_one_event() {
    let setup = PlainService::new();
    let mut expected = Vec::new();
    let mut id = 0;
    for bytes in SIZES {
        let size = size(bytes);
        for length in [
            1,
            size.bytes(),
            size.bytes() + 1,
            3 * size.bytes(),
            5 * size.bytes() - 1,
        ] {
            let whole = body(length);
            let first = id + 1;
            let answer = upload(&setup.coap, &whole, size, |block| {
                id += 1;
                post(block, id)
            });
            assert_eq!(answer.code, Code::CHANGED, "{length} in {bytes}");
            assert_eq!(usize::from(id - first) + 1, length.div_ceil(size.bytes()));
            expected.push(ReportedData::over_coap("t", whole));
        }
    }
    assert_eq!(setup.caller.reported(ID), expected);
}

#[test]
fn a_body_begun_again_replaces_the_one_before() {
    let setup = PlainService::new();
    let (left, whole) = (body(200), vec![b'x'; 100]);
    for (id, (block, part)) in (1..=3).zip(blocks(&left, size(32))) {
        let answer = setup.coap.ask(&post(block, id).with_payload(part));
        assert_eq!(answer.code, Code::CONTINUE);
    }
    let mut id = 10;
    let answer = upload(&setup.coap, &whole, size(64), |block| {
        id += 1;
        post(block, id)
    });
    assert_eq!(answer.code, Code::CHANGED);
    for id in 100..150 {
        // Each begins a body that is never completed.
        let begun = request(Code::POST, id)
            .with_uri_query([format!("t=topic-{id}")])
            .with_block1(Block::new(0, More::Yes, BlockSize::MAX))
            .with_payload(vec![b'y'; 1_024]);
        assert_eq!(setup.coap.ask(&begun).code, Code::CONTINUE);
    }
    assert_eq!(setup.coap.ask(&data("t", "short", 200)).code, Code::CHANGED);
    let reported = [whole, b"short".to_vec()].map(|it| ReportedData::over_coap("t", it));
    assert_eq!(setup.caller.reported(ID), reported);
}

#[test]
fn the_bodies_of_several_devices_do_not_mix() {
    let setup = PlainService::new();
    setup.caller.create_device("other", ELSEWHERE);
    let other = DeviceSocket::from(ELSEWHERE, &setup.service);
    let (mine, theirs) = (body(500), vec![b'x'; 500]);
    let pairs = blocks(&mine, size(64)).zip(blocks(&theirs, size(64)));
    for (id, (my, their)) in (1..).zip(pairs) {
        setup.coap.ask(&post(my.0, id).with_payload(my.1));
        other.ask(&post(their.0, id).with_payload(their.1));
    }
    assert_eq!(
        setup.caller.reported(ID),
        [ReportedData::over_coap("t", mine)]
    );
    assert_eq!(
        setup.caller.reported("other"),
        [ReportedData::over_coap("t", theirs)]
    );
}

#[test]
fn a_body_that_is_too_long_is_refused_as_early_as_possible() {
    let setup = PlainService::with(&[("SIGNALBOX_DATA_BYTES_MAX", "2048")]);
    let size = size(512);
    let mut id = 0;
    let answer = upload(&setup.coap, &body(2_048), size, |block| {
        id += 1;
        post(block, id)
    });
    assert_eq!(answer.code, Code::CHANGED);
    let answer = upload(&setup.coap, &body(2_049), size, |block| {
        id += 1;
        post(block, id)
    });
    assert_eq!(answer.code, Code::REQUEST_ENTITY_TOO_LARGE);
    assert_eq!(answer.size1(), Some(2_048), "the answer has the limit");
    let endless = (0..100).map(|number| {
        let block = Block::new(number, More::Yes, size);
        let id = 100 + u16::try_from(number).unwrap();
        setup.coap.ask(&post(block, id).with_payload([7; 512])).code
    });
    let codes: Vec<Code> = endless.take_while(|code| *code == Code::CONTINUE).collect();
    assert_eq!(codes.len(), 4, "what fits, and no more");
    let announced = post(Block::new(0, More::Yes, size), 300).with_size1(2_049);
    let refused = setup.coap.ask(&announced.with_payload([7; 512]));
    assert_eq!(refused.code, Code::REQUEST_ENTITY_TOO_LARGE);
    assert_eq!(
        setup.caller.reported(ID),
        [ReportedData::over_coap("t", body(2_048))]
    );
}

#[test]
fn the_oldest_unfinished_body_of_all_devices_gives_way() {
    let bound = ("SIGNALBOX_UNFINISHED_BYTES_MAX", "65536");
    let setup = PlainService::with(&[bound, ("SIGNALBOX_ARBITERS", "1")]);
    let of_another = |id: &str, ip: &str| {
        setup.caller.create_device(id, ip);
        DeviceSocket::from(ip, &setup.service)
    };
    let (second, third) = (
        of_another("second", ELSEWHERE),
        of_another("third", "127.8.4.33"),
    );
    let block = |wire: &DeviceSocket, number: u16| {
        let begins = Block::new(number.into(), More::Yes, BlockSize::MAX);
        wire.ask(&post(begins, number).with_payload(vec![b'x'; 1_024]))
            .code
    };
    // Twenty blocks each: the memory of a body that grows has room for as much again.
    for wire in [&setup.coap, &second] {
        for number in 0..20 {
            assert_eq!(block(wire, number), Code::CONTINUE);
        }
    }
    assert_eq!(block(&third, 0), Code::CONTINUE);
    let mut numbers = 20..;
    let refused = until("the oldest body is dropped", || {
        let code = block(&setup.coap, numbers.next().unwrap());
        (code != Code::CONTINUE).then_some(code)
    });
    assert_eq!(refused, Code::REQUEST_ENTITY_INCOMPLETE);
    assert_eq!(block(&second, 20), Code::CONTINUE);
    let last = Block::new(1, More::No, BlockSize::MAX);
    assert_eq!(third.ask(&post(last, 1)).code, Code::CHANGED);
}

#[test]
fn an_invalid_topic_is_refused_in_blocks_too() {
    let setup = PlainService::new();
    let mut id = 0;
    let answer = upload(&setup.coap, &body(100), size(64), |block| {
        id += 1;
        let message = request(Code::POST, id).with_uri_query(["t=a/#"]);
        message.with_block1(block)
    });
    assert_eq!(answer.code, Code::BAD_REQUEST);
    assert_eq!(setup.caller.reported(ID), []);
}

#[test]
fn a_registration_in_blocks_returns_its_location_at_the_end() {
    let setup = PlainService::new();
    let links = "</1/0>,</3/0>,</6/0>,</3303/0>,</3303/1>,</3304/0>";
    let endpoint = format!("ep={ID}");
    let wire = DeviceSocket::from(IP, &setup.service);
    let mut id = 0;
    let answer = upload(&wire, links.as_bytes(), size(16), |block| {
        id += 1;
        let queries = [&endpoint, "lt=300", "lwm2m=1.1", "b=U"];
        register_with(&queries, "", id).with_block1(block)
    });
    assert_eq!(answer.code, Code::CREATED);
    let location = location_of(&answer);
    assert_eq!(location[0], "rd");
    let objects = setup.caller.inspect(ID)["registration"]["objects"].clone();
    let ids: Vec<_> = objects
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].clone())
        .collect();
    assert_eq!(ids, [1, 3, 6, 3303, 3304].map(|id| json!(id)));

    let answer = upload(&wire, b"</1/0>,</3/0>,</5/0>", size(16), |block| {
        id += 1;
        let message = request(Code::POST, id).with_uri_path(&location);
        let message = message.with_content_format(ContentFormat::LINK_FORMAT);
        message.with_block1(block)
    });
    assert_eq!(answer.code, Code::CHANGED);
    let objects = &setup.caller.inspect(ID)["registration"]["objects"];
    assert_eq!(objects[2]["id"], 5, "{objects}");

    let senml = r#"[{"bn":"/3/0/","n":"0","vs":"ACME"},{"n":"9","v":80},{"n":"15","vs":"UTC"}]"#;
    let answer = upload(&wire, senml.as_bytes(), size(32), |block| {
        id += 1;
        let message = request(Code::POST, id).with_uri_path(["dp"]);
        let message = message.with_content_format(ContentFormat::SENML_JSON);
        message.with_block1(block)
    });
    assert_eq!(answer.code, Code::CHANGED);
    let reported = setup.caller.messages(ID).remove(0);
    let expected = json!({ "/3/0/0": "ACME", "/3/0/9": 80, "/3/0/15": "UTC" });
    assert_eq!(reported["payload"]["value"], expected, "{reported}");
}

/// One block of data.
fn post(block: Block, id: u16) -> Message {
    data("t", "", id).with_block1(block)
}

/// Sends a body in blocks until the final answer.
fn upload(
    wire: &DeviceSocket,
    whole: &[u8],
    size: BlockSize,
    mut message: impl FnMut(Block) -> Message,
) -> Message {
    let mut last = None;
    for (block, part) in blocks(whole, size) {
        let answer = wire.ask(&message(block).with_payload(part));
        if answer.code != Code::CONTINUE {
            return answer;
        }
        assert_eq!(answer.block1(), Some(block), "it names what it took");
        assert_eq!(location_of(&answer), Vec::<String>::new());
        assert!(answer.payload.is_empty() && block.has_more(), "{answer:?}");
        last = Some(answer);
    }
    panic!("never answered for good: {last:?}")
}
