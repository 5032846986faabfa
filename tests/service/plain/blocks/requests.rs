//! Is a long request taken to a device in blocks, as large as the device likes them?

use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::message::Message;
use serde_json::Value;

use super::super::{ID, PlainService, standing};
use super::{SIZES, body, size};
use crate::vocabulary::plain::{answer, carrying_bytes, coap, path_of};

#[test]
fn a_long_request_goes_in_blocks_of_the_size_the_operator_says() {
    for bytes in [16, 256, 1_024] {
        let setup = PlainService::with(&[("SIGNALBOX_COAP_BLOCK_BYTES", &bytes.to_string())]);
        let (size, whole) = (size(bytes), body(3 * usize::from(bytes) + 1));
        let id = setup.create_coap(&put(&setup, &whole));
        for number in 0..4 {
            let asked = setup.coap.receive_request();
            check_block(&asked, &whole, number, size);
            let total = asked.size1().map(usize::try_from);
            if number == 0 {
                assert_eq!(total, Some(Ok(whole.len())), "how long it will be");
            }
            confirm(&setup, &asked, size);
        }
        let action = setup.caller.final_action(&id);
        assert_eq!(standing(&action), ("SUCCEEDED", 0), "{action}");
        assert_eq!(action["resultData"]["code"], "204", "{action}");
    }
}

#[test]
fn a_device_that_wants_smaller_blocks_gets_them_from_where_it_is() {
    let setup = PlainService::new();
    let whole = body(3_000);
    for bytes in &SIZES[..6] {
        let wanted = size(*bytes);
        let id = setup.create_coap(&put(&setup, &whole));
        let asked = setup.coap.receive_request();
        check_block(&asked, &whole, 0, BlockSize::MAX);
        confirm(&setup, &asked, wanted);
        let first = 1_024 / u32::from(*bytes);
        for number in first..u32::try_from(whole.len().div_ceil(wanted.bytes())).unwrap() {
            let asked = setup.coap.receive_request();
            check_block(&asked, &whole, number, wanted);
            confirm(&setup, &asked, wanted);
        }
        let action = setup.caller.final_action(&id);
        assert_eq!(action["status"], "SUCCEEDED", "{bytes}: {action}");
    }
}

#[test]
fn a_device_that_refuses_large_blocks_is_asked_again_in_small_ones() {
    let setup = PlainService::new();
    let whole = body(1_500);
    let id = setup.create_coap(&put(&setup, &whole));
    let asked = setup.coap.receive_request();
    let hint = Block::new(0, More::Yes, size(512));
    let refused = answer(&asked, Code::REQUEST_ENTITY_TOO_LARGE).with_block1(hint);
    setup.coap.send(&refused.encode());
    for number in 0..3 {
        let asked = setup.coap.receive_request();
        check_block(&asked, &whole, number, size(512));
        confirm(&setup, &asked, size(512));
    }
    let action = setup.caller.final_action(&id);
    assert_eq!(standing(&action), ("SUCCEEDED", 0), "{action}");
}

#[test]
fn an_answer_before_the_last_block_ends_the_request() {
    let setup = PlainService::new();
    let cases = [
        (Code::REQUEST_ENTITY_TOO_LARGE, "413", "FAILED"),
        (Code::NOT_FOUND, "404", "FAILED"),
        (Code::REQUEST_ENTITY_INCOMPLETE, "408", "FAILED"),
        (Code::CHANGED, "204", "SUCCEEDED"),
    ];
    for (code, digits, status) in cases {
        let id = setup.create_coap(&put(&setup, &body(5_000)));
        let asked = setup.coap.receive_request();
        confirm(&setup, &asked, BlockSize::MAX);
        let asked = setup.coap.receive_request();
        setup.coap.send(&answer(&asked, code).encode());
        let action = setup.caller.final_action(&id);
        assert_eq!(action["status"], status, "{action}");
        assert_eq!(action["resultData"]["code"], digits, "{action}");
        assert_eq!(setup.coap.received(), [], "{digits}");
    }
}

#[test]
fn a_confirmation_that_fits_nothing_fails_the_request() {
    let setup = PlainService::new();
    let wrong = [
        None,
        Some(Block::new(1, More::Yes, BlockSize::MAX)),
        Some(Block::from_value(0b1111)),
    ];
    for block in wrong {
        let id = setup.create_coap(&put(&setup, &body(5_000)));
        let asked = setup.coap.receive_request();
        let said = answer(&asked, Code::CONTINUE);
        let said = match block {
            Some(block) => said.with_block1(block),
            None => said,
        };
        setup.coap.send(&said.encode());
        let action = setup.caller.final_action(&id);
        assert_eq!(action["status"], "FAILED", "{block:?}: {action}");
        assert!(action["resultData"]["errorMessage"].is_string(), "{action}");
    }
}

#[test]
fn nothing_else_is_asked_while_a_request_in_blocks_is_under_way() {
    let setup = PlainService::new();
    let whole = body(2_000);
    let first = setup.create_coap(&put(&setup, &whole));
    let asked = setup.coap.receive_request();
    let second = setup.create_coap(&coap("GET", "/other", setup.coap.port()));
    confirm(&setup, &asked, BlockSize::MAX);
    let asked = setup.coap.receive_request();
    check_block(&asked, &whole, 1, BlockSize::MAX);
    assert_eq!(setup.coap.received(), []);
    confirm(&setup, &asked, BlockSize::MAX);
    let asked = setup.answer_next(Code::CONTENT, "other");
    assert_eq!(path_of(&asked), "/other");
    for id in [first, second] {
        assert_eq!(setup.caller.final_action(&id)["status"], "SUCCEEDED");
    }
    assert_eq!(setup.caller.reported(ID), []);
}

/// Puts bytes to the device.
fn put(setup: &PlainService, bytes: &[u8]) -> Value {
    carrying_bytes(coap("PUT", "/image", setup.coap.port()), bytes)
}

/// It is this block of the body, whole.
fn check_block(asked: &Message, whole: &[u8], number: u32, size: BlockSize) {
    assert_eq!((asked.code, &*path_of(asked)), (Code::PUT, "/image"));
    let offset = usize::try_from(number).unwrap() * size.bytes();
    let end = whole.len().min(offset + size.bytes());
    let more = if end < whole.len() {
        More::Yes
    } else {
        More::No
    };
    assert_eq!(asked.block1(), Some(Block::new(number, more, size)));
    assert_eq!(asked.payload, whole[offset..end], "block {number}");
}

/// Has the device take a block, and say which size it likes.
fn confirm(setup: &PlainService, asked: &Message, wanted: BlockSize) {
    let block = asked.block1().unwrap();
    let said = if block.has_more() {
        let taken = Block::new(block.number(), More::Yes, wanted);
        answer(asked, Code::CONTINUE).with_block1(taken)
    } else {
        answer(asked, Code::CHANGED).with_block1(block)
    };
    setup.coap.send(&said.encode());
}
