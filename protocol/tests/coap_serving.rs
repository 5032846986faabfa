//! Does a request get the requested block of the response?

use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::serving::cut;
use protocol::coap::token::Token;

#[test]
fn a_body_that_fits_is_sent_whole_unless_blocks_are_requested() {
    for length in [0, 1, 64] {
        assert_eq!(cut_64(content(length), &get()), content(length));
    }
    let requested = get().with_block2(block(0, More::No, 64));
    assert_eq!(cut_64(content(0), &requested), content(0));
    let only = cut_64(content(64), &requested);
    assert_eq!(only.block2(), Some(block(0, More::No, 64)));
    assert_eq!(only.payload, body(64));
}

#[test]
fn a_longer_body_is_sent_from_its_first_block() {
    let response = content(150).with_etag(b"v").with_observe(4);
    let first = cut_64(response, &get());
    assert_eq!(first.block2(), Some(block(0, More::Yes, 64)));
    assert_eq!((first.size2(), first.observe()), (Some(150), Some(4)));
    assert_eq!(first.etag(), Some(&b"v"[..]));
    assert_eq!(first.payload, body(64));
}

#[test]
fn each_block_is_the_requested_one() {
    let cases = [
        (block(1, More::No, 64), block(1, More::Yes, 64), 64..128),
        (block(2, More::No, 64), block(2, More::No, 64), 128..150),
        (block(1, More::Yes, 64), block(1, More::Yes, 64), 64..128),
        (block(3, More::No, 32), block(3, More::Yes, 32), 96..128),
        (block(0, More::No, 16), block(0, More::Yes, 16), 0..16),
        (block(1, More::No, 128), block(2, More::No, 64), 128..150),
        (block(0, More::No, 1_024), block(0, More::Yes, 64), 0..64),
    ];
    for (requested, expected, range) in cases {
        let response = content(150).with_etag(b"v").with_observe(4);
        let cut = cut_64(response, &get().with_block2(requested));
        assert_eq!(cut.block2(), Some(expected), "{requested:?}");
        assert_eq!(cut.payload, &body(150)[range], "{requested:?}");
        let is_first = requested.number() == 0;
        assert_eq!(cut.observe().is_some(), is_first);
        assert_eq!(cut.size2().is_some(), is_first);
        assert_eq!(cut.etag(), Some(&b"v"[..]));
        assert_eq!(cut.code, Code::CONTENT);
    }
}

#[test]
fn the_size_of_the_body_is_sent_whenever_it_is_requested() {
    let requested = get().with_block2(block(1, More::No, 64)).with_size2(0);
    assert_eq!(cut_64(content(150), &requested).size2(), Some(150));
}

#[test]
fn a_block_behind_the_end_and_the_reserved_size_are_bad_requests() {
    let bad = [
        (150, block(3, More::No, 64)),
        (128, block(2, More::No, 64)),
        (64, block(1, More::No, 64)),
        (0, block(1, More::No, 64)),
        (150, block(Block::NUMBER_MAX, More::No, 1_024)),
        (150, Block::from_value(7)),
        (150, Block::from_value(0x17)),
        (0, Block::from_value(7)),
    ];
    for (length, requested) in bad {
        let response = content(length).with_observe(4).with_etag(b"v");
        let refused = cut_64(response, &get().with_block2(requested));
        let expected = Message::response_to(&get(), Code::BAD_REQUEST, MessageId(5));
        assert_eq!(refused, expected, "{requested:?} of {length}");
    }
}

#[test]
fn an_error_is_sent_unchanged() {
    let requested = get().with_block2(block(9, More::No, 16));
    for code in [Code::NOT_FOUND, Code::SERVICE_UNAVAILABLE, Code::CONTINUE] {
        let mut response = content(100);
        response.code = code;
        assert_eq!(cut_64(response.clone(), &requested), response);
    }
}

#[test]
fn the_blocks_of_a_body_are_the_body() {
    for bytes in [16, 32, 64, 128, 256, 512, 1_024] {
        let mut joined = Vec::new();
        for number in 0.. {
            let requested = get().with_block2(block(number, More::No, bytes));
            let cut = cut(content(2_000), &requested, BlockSize::MAX);
            joined.extend_from_slice(&cut.payload);
            if !cut.block2().unwrap().has_more() {
                break;
            }
        }
        assert_eq!(joined, body(2_000), "in blocks of {bytes}");
    }
}

fn cut_64(response: Message, request: &Message) -> Message {
    cut(
        response,
        request,
        BlockSize::of_bytes(64).expect("a size of blocks"),
    )
}

fn get() -> Message {
    Message::request(
        MessageKind::Confirmable,
        Code::GET,
        MessageId(1),
        Token::EMPTY,
    )
}

fn content(length: usize) -> Message {
    Message::response_to(&get(), Code::CONTENT, MessageId(5)).with_payload(body(length))
}

fn block(number: u32, more: More, bytes: u16) -> Block {
    Block::new(
        number,
        more,
        BlockSize::of_bytes(bytes).expect("a size of blocks"),
    )
}

fn body(length: usize) -> Vec<u8> {
    (0..=u8::MAX).cycle().take(length).collect()
}
