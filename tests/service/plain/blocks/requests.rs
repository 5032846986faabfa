//! Is a long request sent in blocks of the size the device prefers?

use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::message::Message;
use serde_json::Value;

use super::super::{ID, PlainService, progress};
use super::{SIZES, body, size};
use crate::vocabulary::plain::{answer, carrying_bytes, coap, path_of};

#[test]
fn a_long_request_is_sent_in_blocks_of_the_configured_size() {
    for bytes in [16, 256, 1_024] {
        let setup = PlainService::with(&[("SIGNALBOX_COAP_BLOCK_BYTES", &bytes.to_string())]);
        let (size, whole) = (size(bytes), body(3 * usize::from(bytes) + 1));
        let id = setup.create_coap(&put(&setup, &whole));
        for number in 0..4 {
            let request = setup.coap.receive_request();
            check_block(&request, &whole, number, size);
            let total = request.size1().map(usize::try_from);
            if number == 0 {
                assert_eq!(total, Some(Ok(whole.len())), "how long it will be");
            }
            confirm(&setup, &request, size);
        }
        let action = setup.caller.final_action(&id);
        assert_eq!(progress(&action), ("SUCCEEDED", 0), "{action}");
        assert_eq!(action["resultData"]["code"], "204", "{action}");
    }
}

#[test]
fn a_device_that_prefers_smaller_blocks_gets_them_from_the_next_block_on() {
    let setup = PlainService::new();
    let whole = body(3_000);
    for bytes in &SIZES[..6] {
        let wanted = size(*bytes);
        let id = setup.create_coap(&put(&setup, &whole));
        let request = setup.coap.receive_request();
        check_block(&request, &whole, 0, BlockSize::MAX);
        confirm(&setup, &request, wanted);
        let first = 1_024 / u32::from(*bytes);
        for number in first..u32::try_from(whole.len().div_ceil(wanted.bytes())).unwrap() {
            let request = setup.coap.receive_request();
            check_block(&request, &whole, number, wanted);
            confirm(&setup, &request, wanted);
        }
        let action = setup.caller.final_action(&id);
        assert_eq!(action["status"], "SUCCEEDED", "{bytes}: {action}");
    }
}

#[test]
fn a_request_refused_for_large_blocks_is_sent_again_in_small_ones() {
    let setup = PlainService::new();
    let whole = body(1_500);
    let id = setup.create_coap(&put(&setup, &whole));
    let request = setup.coap.receive_request();
    let hint = Block::new(0, More::Yes, size(512));
    let refused = answer(&request, Code::REQUEST_ENTITY_TOO_LARGE).with_block1(hint);
    setup.coap.send(&refused.encode());
    for number in 0..3 {
        let request = setup.coap.receive_request();
        check_block(&request, &whole, number, size(512));
        confirm(&setup, &request, size(512));
    }
    let action = setup.caller.final_action(&id);
    assert_eq!(progress(&action), ("SUCCEEDED", 0), "{action}");
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
        let request = setup.coap.receive_request();
        confirm(&setup, &request, BlockSize::MAX);
        let request = setup.coap.receive_request();
        setup.coap.send(&answer(&request, code).encode());
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
        let request = setup.coap.receive_request();
        let response = answer(&request, Code::CONTINUE);
        let response = match block {
            Some(block) => response.with_block1(block),
            None => response,
        };
        setup.coap.send(&response.encode());
        let action = setup.caller.final_action(&id);
        assert_eq!(action["status"], "FAILED", "{block:?}: {action}");
        assert!(action["resultData"]["errorMessage"].is_string(), "{action}");
    }
}

#[test]
fn no_other_request_begins_while_a_request_in_blocks_is_in_flight() {
    let setup = PlainService::new();
    let whole = body(2_000);
    let first = setup.create_coap(&put(&setup, &whole));
    let request = setup.coap.receive_request();
    let second = setup.create_coap(&coap("GET", "/other", setup.coap.port()));
    confirm(&setup, &request, BlockSize::MAX);
    let request = setup.coap.receive_request();
    check_block(&request, &whole, 1, BlockSize::MAX);
    assert_eq!(setup.coap.received(), []);
    confirm(&setup, &request, BlockSize::MAX);
    let request = setup.answer_next(Code::CONTENT, "other");
    assert_eq!(path_of(&request), "/other");
    for id in [first, second] {
        assert_eq!(setup.caller.final_action(&id)["status"], "SUCCEEDED");
    }
    assert_eq!(setup.caller.reported(ID), []);
}

/// The body that puts bytes to the device.
fn put(setup: &PlainService, bytes: &[u8]) -> Value {
    carrying_bytes(coap("PUT", "/image", setup.coap.port()), bytes)
}

/// Checks that a request carries this block of the body.
fn check_block(request: &Message, whole: &[u8], number: u32, size: BlockSize) {
    assert_eq!((request.code, &*path_of(request)), (Code::PUT, "/image"));
    let offset = usize::try_from(number).unwrap() * size.bytes();
    let end = whole.len().min(offset + size.bytes());
    let more = if end < whole.len() {
        More::Yes
    } else {
        More::No
    };
    assert_eq!(request.block1(), Some(Block::new(number, more, size)));
    assert_eq!(request.payload, whole[offset..end], "block {number}");
}

/// Has the device confirm a block with the block size it prefers.
fn confirm(setup: &PlainService, request: &Message, wanted: BlockSize) {
    let block = request.block1().unwrap();
    let response = if block.has_more() {
        let taken = Block::new(block.number(), More::Yes, wanted);
        answer(request, Code::CONTINUE).with_block1(taken)
    } else {
        answer(request, Code::CHANGED).with_block1(block)
    };
    setup.coap.send(&response.encode());
}
