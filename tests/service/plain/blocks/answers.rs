//! Is a long answer of a device fetched block by block, and are blocks that do not fit refused?

use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use serde_json::{Value, json};

use super::super::{ID, IP, PlainService};
use super::size;
use crate::vocabulary::blockwise::block_of;
use crate::vocabulary::lwm2m::{observe_start, outcome, read};
use crate::vocabulary::plain::{answer, coap, path_of};
use crate::vocabulary::wire::DeviceSocket;

const TEXT: Option<ContentFormat> = Some(ContentFormat::TEXT);

#[test]
fn a_long_answer_is_fetched_whole_in_blocks_of_the_device_s_size() {
    let setup = PlainService::new();
    for bytes in [16, 128, 1_024] {
        let (size, text) = (size(bytes), text(usize::from(bytes) * 4 + 3));
        let id = setup.create_coap(&coap("GET", "/log?from=1", setup.coap.port()));
        let mut tokens = Vec::new();
        for number in 0..5 {
            let request = setup.coap.receive_request();
            assert_eq!((request.code, &*path_of(&request)), (Code::GET, "/log"));
            assert!(request.uri_query().eq(["from=1"]), "{request:?}");
            if number > 0 {
                let wanted = Block::new(number, More::No, size);
                assert_eq!(request.block2(), Some(wanted));
            }
            assert!(
                !tokens.contains(&request.token),
                "each is a request of its own"
            );
            tokens.push(request.token);
            setup
                .coap
                .send(&block_of(&request, text.as_bytes(), TEXT, size).encode());
        }
        let action = setup.caller.final_action(&id);
        let expected = json!({ "code": "205", "payload": text, "payloadType": "TEXT" });
        assert_eq!(action["resultData"], expected);
    }
}

#[test]
fn an_answer_that_changes_meanwhile_is_fetched_again_once() {
    let setup = PlainService::new();
    let versions: [(&[u8], String); 3] = [(b"1", text(40)), (b"2", text(50)), (b"3", text(60))];
    // Which version each request receives, and the version of the result.
    let cases: [(&[usize], Option<usize>); 3] = [
        (&[0, 0, 0], Some(0)),
        (&[0, 0, 1, 1, 1, 1, 1], Some(1)),
        (&[0, 1, 1, 2, 2], None),
    ];
    for (met, expected) in cases {
        let id = setup.create_coap(&coap("GET", "/state", setup.coap.port()));
        let mut met = met.iter().copied().chain(std::iter::repeat(2));
        let action = loop {
            let action = setup.caller.action(&id);
            if action["status"] != "IN_PROGRESS" {
                break action;
            }
            for request in setup.coap.received() {
                let (etag, text) = &versions[met.next().unwrap()];
                let response = block_of(&request, text.as_bytes(), TEXT, size(16));
                setup.coap.send(&response.with_etag(etag).encode());
            }
        };
        match expected {
            Some(version) => {
                assert_eq!(action["status"], "SUCCEEDED", "{action}");
                assert_eq!(action["resultData"]["payload"], versions[version].1);
            }
            None => check_failed(&action),
        }
    }
}

#[test]
fn blocks_that_do_not_fit_fail_the_request() {
    let setup = PlainService::with(&[("SIGNALBOX_COAP_ANSWER_BYTES_MAX", "1024")]);
    let block = |number, more| Block::new(number, more, size(16));
    let (yes, no) = (More::Yes, More::No);
    // The second answer, after a first block of 16 bytes.
    let second: [(Block, usize); 6] = [
        (block(2, yes), 16),
        (block(0, yes), 16),
        (block(1, yes), 15),
        (block(1, no), 17),
        (Block::new(0, yes, size(32)), 32),
        (Block::from_value(0b1_1111), 16),
    ];
    for (wrong, length) in second {
        let id = setup.create_coap(&coap("GET", "/odd", setup.coap.port()));
        let request = setup.coap.receive_request();
        setup
            .coap
            .send(&block_of(&request, &[7; 40], None, size(16)).encode());
        let request = setup.coap.receive_request();
        let response = answer(&request, Code::CONTENT).with_payload(vec![7; length]);
        setup.coap.send(&response.with_block2(wrong).encode());
        check_failed(&setup.caller.final_action(&id));
        assert_eq!(setup.coap.received(), [], "{wrong:?}");
    }
    let first: [(Block, Option<u32>); 3] = [
        (block(3, yes), None),
        (Block::from_value(0b1111), None),
        (block(0, yes), Some(1_025)),
    ];
    for (wrong, total) in first {
        let id = setup.create_coap(&coap("GET", "/odd", setup.coap.port()));
        let request = setup.coap.receive_request();
        let response = answer(&request, Code::CONTENT)
            .with_payload([7; 16])
            .with_block2(wrong);
        let response = match total {
            Some(total) => response.with_size2(total),
            None => response,
        };
        setup.coap.send(&response.encode());
        check_failed(&setup.caller.final_action(&id));
    }
}

#[test]
fn values_over_lwm2m_may_need_blocks() {
    let setup = PlainService::new();
    let wire = DeviceSocket::from(IP, &setup.service);
    wire.register(ID, 1);
    let (first, second) = (text(100), text(70));
    let id = setup.caller.create_action(ID, &read("/3/0/0"));
    serve_blocks(&wire, &first);
    let action = setup.caller.final_action(&id);
    assert_eq!(action["resultData"]["payload"], first, "{action}");

    let id = setup.caller.create_action(ID, &observe_start("/3/0/1"));
    let request = wire.receive_request();
    assert_eq!(request.observe(), Some(0));
    let response = block_of(&request, first.as_bytes(), TEXT, size(32)).with_observe(5);
    wire.send(&response.encode());
    fetch_rest(&wire, &first);
    let action = setup.caller.final_action(&id);
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert_eq!(action["resultData"]["payload"], first, "{action}");

    for (number, text) in (6..).zip([&second, &first]) {
        let own = MessageId(1_000 + u16::try_from(number).unwrap());
        let notification =
            Message::separate(MessageKind::Confirmable, Code::CONTENT, own, request.token)
                .with_observe(number)
                .with_content_format(ContentFormat::TEXT)
                .with_block2(Block::new(0, More::Yes, size(32)))
                .with_payload(&text.as_bytes()[..32]);
        wire.send(&notification.encode());
        assert_eq!(wire.receive(), Message::acknowledgement(own));
        fetch_rest(&wire, text);
        let times = usize::try_from(number - 5).unwrap();
        let values = setup.caller.once_notified(ID, "/3/0/1", times);
        assert_eq!(values.last().unwrap()["/3/0/1"], **text);
    }
}

/// Answers a request and the requests for the following blocks.
fn serve_blocks(wire: &DeviceSocket, text: &str) {
    let request = wire.receive_request();
    wire.send(&block_of(&request, text.as_bytes(), TEXT, size(32)).encode());
    fetch_rest(wire, text);
}

/// Answers the requests for all but the first block of 32 bytes.
fn fetch_rest(wire: &DeviceSocket, text: &str) {
    let mut number = 1;
    while usize::try_from(number).unwrap() < text.len().div_ceil(32) {
        let request = wire.receive_request();
        assert_eq!(
            request.block2(),
            Some(Block::new(number, More::No, size(32)))
        );
        assert_eq!(request.observe(), None, "{request:?}");
        wire.send(&block_of(&request, text.as_bytes(), TEXT, BlockSize::MAX).encode());
        number += 1;
    }
}

fn check_failed(action: &Value) {
    assert_eq!(action["status"], "FAILED", "{action}");
    assert!(action["resultData"]["errorMessage"].is_string(), "{action}");
}

/// A text of this length in which no two blocks are equal.
fn text(length: usize) -> String {
    let numbers = (0..).map(|number| format!("{number:07} "));
    let text: String = numbers.take(length / 8 + 1).collect();
    text[..length].to_owned()
}
