//! Is a body assembled from its blocks completely, once, and within its limit?

use protocol::coap::assembly::{Assembly, AssemblyOutcome};
use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::option;
use protocol::coap::token::Token;

const BYTES_MAX: usize = 200;
const TOO_LARGE: AssemblyOutcome = AssemblyOutcome::TooLarge { max: BYTES_MAX };

#[test]
fn a_request_without_blocks_is_whole_and_keeps_the_gathered_blocks() {
    let mut assembly = gathering();
    let alone = post().with_payload(body(1_000));
    assert_eq!(
        take(&mut assembly, &alone),
        AssemblyOutcome::Whole(alone.clone())
    );
    assert_eq!(assembly.bytes(), 64);
    assert_eq!(
        take(&mut assembly, &block(2, More::Yes)),
        AssemblyOutcome::Continue
    );
}

#[test]
fn a_body_of_one_block_is_whole_at_once() {
    let mut assembly = gathering();
    let only = block(0, More::No);
    assert_eq!(
        take(&mut assembly, &only),
        AssemblyOutcome::Whole(only.clone())
    );
    assert!(assembly.is_empty());
    let empty = only.with_payload([]);
    assert_eq!(
        take(&mut assembly, &empty),
        AssemblyOutcome::Whole(empty.clone())
    );
}

#[test]
fn blocks_in_sequence_make_the_body_under_the_last_ones_options() {
    let mut assembly = Assembly::default();
    for number in 0..3 {
        let block = block(number, More::Yes).with_size1(100);
        assert_eq!(take(&mut assembly, &block), AssemblyOutcome::Continue);
    }
    assert_eq!(assembly.bytes(), 96);
    let mut last = block(3, More::No).with_payload(&body(100)[96..]);
    last.message_id = MessageId(77);
    last.token = Token::from_u64(77);
    let AssemblyOutcome::Whole(whole) = take(&mut assembly, &last) else {
        panic!("the body is whole");
    };
    assert_eq!(whole, last.with_payload(body(100)));
    assert!(assembly.is_empty());
}

#[test]
fn an_empty_last_block_ends_a_body_of_whole_blocks() {
    let mut assembly = gathering();
    let last = block(2, More::No).with_payload([]);
    let whole = last.clone().with_payload(body(64));
    assert_eq!(take(&mut assembly, &last), AssemblyOutcome::Whole(whole));
}

#[test]
fn sizes_may_change_as_long_as_the_bytes_follow_each_other() {
    let mut assembly = gathering();
    let wide = sized(1, More::Yes, 64).with_payload(&body(128)[64..]);
    assert_eq!(take(&mut assembly, &wide), AssemblyOutcome::Continue);
    let narrow = sized(8, More::No, 16).with_payload(&body(144)[128..]);
    let whole = narrow.clone().with_payload(body(144));
    assert_eq!(take(&mut assembly, &narrow), AssemblyOutcome::Whole(whole));
}

#[test]
fn a_duplicate_block_is_accepted_once() {
    let mut assembly = gathering();
    let latest = block(1, More::Yes);
    let same_bytes_in_larger_blocks = sized(1, More::Yes, 16).with_payload(&body(32)[16..]);
    for again in [&latest, &latest, &same_bytes_in_larger_blocks] {
        assert_eq!(take(&mut assembly, again), AssemblyOutcome::Continue);
        assert_eq!(assembly.bytes(), 64);
    }
    let last = block(2, More::No);
    let whole = last.clone().with_payload(body(96));
    assert_eq!(take(&mut assembly, &last), AssemblyOutcome::Whole(whole));
}

#[test]
fn a_block_that_contradicts_the_one_before_is_incomplete() {
    let other = block(1, More::Yes).with_payload(vec![9; 32]);
    let ended = block(1, More::No);
    for block in [other, ended] {
        let mut assembly = gathering();
        assert_eq!(take(&mut assembly, &block), AssemblyOutcome::Incomplete);
        assert!(assembly.is_empty());
    }
}

#[test]
fn the_first_block_starts_a_new_body() {
    let mut assembly = gathering();
    let first = block(0, More::Yes).with_payload(vec![9; 32]);
    assert_eq!(take(&mut assembly, &first), AssemblyOutcome::Continue);
    assert_eq!(assembly.bytes(), 32);
    let other = first.with_option(option::URI_QUERY, b"t=other");
    assert_eq!(take(&mut assembly, &other), AssemblyOutcome::Continue);
    assert_eq!(
        take(&mut assembly, &block(1, More::No)),
        AssemblyOutcome::Incomplete
    );
}

#[test]
fn a_first_block_that_comes_late_changes_nothing() {
    let mut assembly = gathering();
    assert_eq!(
        take(&mut assembly, &block(0, More::Yes)),
        AssemblyOutcome::Continue
    );
    assert_eq!(assembly.bytes(), 64);
    let last = block(2, More::No);
    let whole = last.clone().with_payload(body(96));
    assert_eq!(take(&mut assembly, &last), AssemblyOutcome::Whole(whole));
}

#[test]
fn a_peer_that_starts_again_may_send_another_body_after_the_same_first_block() {
    let other = |more| block(1, more).with_payload(vec![9; 32]);
    let replaced = [body(32), vec![9; 32]].concat();
    let begun_again = || {
        let mut assembly = gathering();
        assert_eq!(
            take(&mut assembly, &block(2, More::Yes)),
            AssemblyOutcome::Continue
        );
        assert_eq!(
            take(&mut assembly, &block(0, More::Yes)),
            AssemblyOutcome::Continue
        );
        assembly
    };
    let mut assembly = begun_again();
    let whole = other(More::No).with_payload(replaced);
    assert_eq!(
        take(&mut assembly, &other(More::No)),
        AssemblyOutcome::Whole(whole)
    );

    let mut assembly = begun_again();
    assert_eq!(
        take(&mut assembly, &other(More::Yes)),
        AssemblyOutcome::Continue
    );
    assert_eq!(assembly.bytes(), 64);
    assert_eq!(
        take(&mut assembly, &block(3, More::No)),
        AssemblyOutcome::Incomplete
    );

    let mut assembly = begun_again();
    let shorter = block(1, More::No);
    let whole = shorter.clone().with_payload(body(64));
    assert_eq!(take(&mut assembly, &shorter), AssemblyOutcome::Whole(whole));

    let mut assembly = begun_again();
    assert_eq!(
        take(&mut assembly, &block(1, More::Yes)),
        AssemblyOutcome::Continue
    );
    let other = block(2, More::No).with_payload(vec![9; 32]);
    let whole = other.clone().with_payload([body(64), vec![9; 32]].concat());
    assert_eq!(take(&mut assembly, &other), AssemblyOutcome::Whole(whole));
}

#[test]
fn a_late_block_does_not_let_others_replace_known_blocks() {
    let mut assembly = gathering();
    assert_eq!(
        take(&mut assembly, &block(2, More::Yes)),
        AssemblyOutcome::Continue
    );
    assert_eq!(
        take(&mut assembly, &block(1, More::Yes)),
        AssemblyOutcome::Continue
    );
    let other = block(2, More::Yes).with_payload(vec![9; 32]);
    assert_eq!(take(&mut assembly, &other), AssemblyOutcome::Incomplete);
}

#[test]
fn a_missing_block_drops_the_earlier_ones() {
    for number in [3, Block::NUMBER_MAX] {
        let mut assembly = gathering();
        assert_eq!(
            take(&mut assembly, &block(number, More::Yes)),
            AssemblyOutcome::Incomplete
        );
        assert!(assembly.is_empty());
    }
    let mut assembly = Assembly::default();
    assert_eq!(
        take(&mut assembly, &block(1, More::No)),
        AssemblyOutcome::Incomplete
    );
}

#[test]
fn blocks_of_another_request_do_not_join() {
    let next = || block(2, More::Yes);
    let mut put = next();
    put.code = Code::PUT;
    let others = [
        put,
        next().with_uri_path(["elsewhere"]),
        next().with_uri_query(["t=other"]),
        next().with_content_format(ContentFormat::TEXT),
        next().with_option(option::REQUEST_TAG, b"2"),
        next().without_option(option::REQUEST_TAG),
    ];
    for other in others {
        let mut assembly = gathering();
        assert_eq!(
            take(&mut assembly, &other),
            AssemblyOutcome::Incomplete,
            "{other:?}"
        );
        assert!(assembly.is_empty());
    }
}

#[test]
fn options_that_are_not_about_the_body_may_differ() {
    let next = || block(2, More::Yes);
    let others = [
        next().with_size1(100),
        next().with_size2(0),
        next().with_block2(Block::new(0, More::No, BlockSize::MIN)),
        next().with_option(option::ECHO, b"fresh"),
    ];
    for other in others {
        assert_eq!(
            take(&mut gathering(), &other),
            AssemblyOutcome::Continue,
            "{other:?}"
        );
    }
}

#[test]
fn a_body_over_the_limit_is_refused_as_soon_as_that_is_known() {
    let mut assembly = Assembly::default();
    let announced = block(0, More::Yes).with_size1(201);
    assert_eq!(take(&mut assembly, &announced), TOO_LARGE);
    let honest = block(0, More::Yes).with_size1(200);
    assert_eq!(take(&mut assembly, &honest), AssemblyOutcome::Continue);
    let grown = block(1, More::Yes).with_size1(201);
    assert_eq!(take(&mut assembly, &grown), TOO_LARGE);
    assert!(assembly.is_empty());

    let mut assembly = Assembly::default();
    for number in 0..6 {
        assert_eq!(
            take(&mut assembly, &block(number, More::Yes)),
            AssemblyOutcome::Continue
        );
    }
    let full = block(6, More::No).with_payload(&body(200)[192..]);
    let mut second = assembly.clone();
    assert_eq!(take(&mut assembly, &block(6, More::Yes)), TOO_LARGE);
    assert!(assembly.is_empty());
    let whole = full.clone().with_payload(body(200));
    assert_eq!(take(&mut second, &full), AssemblyOutcome::Whole(whole));
    let only = sized(0, More::No, 1_024).with_payload(body(201));
    assert_eq!(take(&mut second, &only), TOO_LARGE);
}

#[test]
fn an_inconsistent_block_drops_the_earlier_ones() {
    let reserved = |block: Message| block.with_block1(Block::from_value(0x2F));
    let malformed = [
        reserved(block(2, More::Yes)),
        block(2, More::Yes).with_payload([]),
        block(2, More::Yes).with_payload(body(31)),
        block(2, More::Yes).with_payload(body(33)),
        block(2, More::No).with_payload(body(33)),
        block(0, More::Yes).with_payload(body(31)),
    ];
    for block in malformed {
        let mut assembly = gathering();
        assert_eq!(
            take(&mut assembly, &block),
            AssemblyOutcome::Malformed,
            "{block:?}"
        );
        assert!(assembly.is_empty());
    }
}

#[test]
fn gathered_blocks_expire_after_the_last_one() {
    let mut assembly = Assembly::default();
    assert_eq!(assembly.expires_at(1_000), i64::MAX);
    assembly.take(5, &block(0, More::Yes), BYTES_MAX);
    assert_eq!(assembly.expires_at(1_000), 1_005);
    assembly.take(800, &block(1, More::Yes), BYTES_MAX);
    assert_eq!(assembly.expires_at(1_000), 1_800);
    assembly.take(900, &block(2, More::No), BYTES_MAX);
    assert_eq!(assembly.expires_at(1_000), i64::MAX);
}

/// An assembly with two blocks of 32 bytes.
fn gathering() -> Assembly {
    let mut assembly = Assembly::default();
    for number in 0..2 {
        assert_eq!(
            take(&mut assembly, &block(number, More::Yes)),
            AssemblyOutcome::Continue
        );
    }
    assembly
}

fn take(assembly: &mut Assembly, request: &Message) -> AssemblyOutcome {
    assembly.take(0, request, BYTES_MAX)
}

/// A block of 32 bytes at its offset.
fn block(number: u32, more: More) -> Message {
    let offset = usize::try_from(number % 8).expect("eight are few") * 32;
    sized(number, more, 32).with_payload(&body(offset + 32)[offset..])
}

fn sized(number: u32, more: More, bytes: u16) -> Message {
    let size = BlockSize::of_bytes(bytes).expect("a size of blocks");
    post().with_block1(Block::new(number, more, size))
}

fn post() -> Message {
    Message::request(
        MessageKind::Confirmable,
        Code::POST,
        MessageId(1),
        Token::EMPTY,
    )
    .with_uri_query(["t=topic"])
    .with_option(option::REQUEST_TAG, b"1")
}

fn body(length: usize) -> Vec<u8> {
    (0..=u8::MAX).cycle().take(length).collect()
}
