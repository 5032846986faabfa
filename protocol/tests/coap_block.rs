//! Do blocks and their options identify the right bytes of a body?

use proptest::prelude::{any, proptest};
use proptest::prop_assert_eq;
use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::option;
use protocol::coap::token::Token;

#[test]
fn sizes_are_the_powers_of_two_from_16_to_1024() {
    let sizes: Vec<u16> = (0..=u16::MAX)
        .filter(|bytes| BlockSize::of_bytes(*bytes).is_some())
        .collect();
    assert_eq!(sizes, [16, 32, 64, 128, 256, 512, 1_024]);
    for bytes in sizes {
        let size = BlockSize::of_bytes(bytes).unwrap();
        assert_eq!(size.bytes(), usize::from(bytes));
        let block = Block::new(3, More::Yes, size);
        assert_eq!(block.size(), Some(size));
    }
    assert_eq!(BlockSize::MIN.bytes(), 16);
    assert_eq!(BlockSize::MAX.bytes(), 1_024);
}

#[test]
fn the_reserved_size_has_no_size_and_no_place() {
    let reserved = Block::from_value(0x1F);
    assert_eq!((reserved.size(), reserved.offset()), (None, None));
    assert_eq!((reserved.number(), reserved.has_more()), (1, true));
}

#[test]
fn the_highest_number_has_a_place() {
    let block = Block::new(Block::NUMBER_MAX, More::No, BlockSize::MAX);
    assert_eq!(block.value(), 0xFF_FFF6);
    assert_eq!(block.offset(), Some(((1 << 20) - 1) * 1_024));
    let beyond = Block::new(Block::NUMBER_MAX + 1, More::No, BlockSize::MAX);
    assert_eq!(beyond.number(), 0, "20 bits count");
}

#[test]
fn options_of_blocks_are_read_as_they_were_given() {
    let message = message()
        .with_size1(70_000)
        .with_size2(0)
        .with_etag(b"v1")
        .with_block1(Block::new(4, More::Yes, BlockSize::MIN));
    let read = Message::decode(&message.encode()).unwrap();
    assert_eq!((read.size1(), read.size2()), (Some(70_000), Some(0)));
    assert_eq!(read.etag(), Some(&b"v1"[..]));
    assert_eq!(read.block1().and_then(Block::offset), Some(64));
    assert_eq!(
        message.with_size1(7).size1(),
        Some(7),
        "there is one at most"
    );
}

#[test]
fn a_removed_option_leaves_all_others() {
    let full = message()
        .with_etag(b"1")
        .with_etag(b"2")
        .with_uri_path(["a", "b"])
        .with_size1(9);
    let without = full.clone().without_option(option::ETAG);
    assert_eq!(without, message().with_uri_path(["a", "b"]).with_size1(9));
    assert_eq!(full.clone().without_option(option::OBSERVE), full);
    let bare = full
        .without_option(option::ETAG)
        .without_option(option::SIZE1)
        .without_option(option::URI_PATH);
    assert_eq!(bare, message());
}

proptest! {
    #[test]
    fn every_block_is_read_as_it_was_made(number in 0..=Block::NUMBER_MAX, power in 4..11_u32) {
        let size = BlockSize::of_bytes(1 << power).unwrap();
        for more in [More::Yes, More::No] {
            let block = Block::from_value(Block::new(number, more, size).value());
            prop_assert_eq!(block.number(), number);
            prop_assert_eq!(block.has_more(), more == More::Yes);
            prop_assert_eq!(block.size(), Some(size));
            prop_assert_eq!(block.offset(), Some(usize::try_from(number).unwrap() << power));
        }
    }

    #[test]
    fn any_option_value_is_accepted(value in any::<u32>()) {
        let block = Block::from_value(value);
        let is_reserved = value & 7 == 7;
        let is_without = (block.size().is_none(), block.offset().is_none());
        prop_assert_eq!(is_without, (is_reserved, is_reserved));
    }
}

fn message() -> Message {
    Message::request(
        MessageKind::Confirmable,
        Code::PUT,
        MessageId(1),
        Token::EMPTY,
    )
}
