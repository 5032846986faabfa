//! Is a response in blocks assembled from blocks of one version, and from nothing else?

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use protocol::coap::transfer::{TransferFault, TransferReception};

use super::given::{
    ANSWER_BYTES_MAX, ANSWERED, Conversation, PROCEEDS, apart, body, broken, last, more, part, put,
    request, reserved,
};

type Change = fn(Message) -> Message;

#[test]
fn an_answer_in_blocks_is_assembled_with_the_first_ones_options() {
    let observe = request(Code::GET)
        .with_observe(0)
        .with_accept(ContentFormat::TEXT)
        .with_uri_query(["a=b"]);
    let mut conversation = Conversation::begin(64, observe);
    let first = part(&conversation, 0)
        .with_observe(7)
        .with_etag(b"v1")
        .with_content_format(ContentFormat::TEXT)
        .with_size2(150);
    assert_eq!(conversation.receives(&first), PROCEEDS);
    assert_asks_for(&conversation.sent(), 1, 2);
    let second = part(&conversation, 1).with_etag(b"v1").with_max_age(3);
    assert_eq!(conversation.receives(&second), PROCEEDS);
    assert_asks_for(&conversation.sent(), 2, 3);
    let third = rest(&conversation, 2, 150).with_etag(b"v1");
    let whole = whole_of(conversation.receives(&third));

    let options: Vec<u16> = whole.options().map(|(number, _)| number).collect();
    assert_eq!(options, [4, 6, 12], "ETag, Observe and Content-Format");
    assert_eq!((whole.code, whole.observe()), (Code::CONTENT, Some(7)));
    assert_eq!(whole.payload, body(150));
    assert_eq!(conversation.transfer.token(), Token::from_u64(1));
}

#[test]
fn an_answer_of_one_block_is_unchanged() {
    for block in [last(0, 64), last(0, 16)] {
        let mut conversation = Conversation::begin(64, request(Code::GET));
        let only = conversation
            .reply(Code::CONTENT)
            .with_block2(block)
            .with_payload(body(16));
        assert_eq!(conversation.receives(&only), ANSWERED);
    }
}

#[test]
fn a_smaller_size_counts_from_the_received_bytes() {
    let mut conversation = Conversation::begin(64, request(Code::GET));
    assert_eq!(conversation.receives(&part(&conversation, 0)), PROCEEDS);
    let smaller = conversation
        .reply(Code::CONTENT)
        .with_block2(more(4, 16))
        .with_payload(&body(80)[64..]);
    assert_eq!(conversation.receives(&smaller), PROCEEDS);
    assert_eq!(conversation.sent().block2(), Some(last(5, 16)));
    let end = conversation
        .reply(Code::CONTENT)
        .with_block2(last(5, 16))
        .with_payload(&body(90)[80..]);
    assert_eq!(whole_of(conversation.receives(&end)).payload, body(90));
}

#[test]
fn an_empty_last_block_ends_a_body_of_whole_blocks() {
    let mut conversation = Conversation::begin(64, request(Code::GET));
    assert_eq!(conversation.receives(&part(&conversation, 0)), PROCEEDS);
    assert_eq!(
        whole_of(conversation.receives(&rest(&conversation, 1, 64))).payload,
        body(64)
    );
}

#[test]
fn a_first_block_that_does_not_fit_ends_the_transfer() {
    let too_long = TransferFault::TooLong {
        max: ANSWER_BYTES_MAX,
    };
    let content = |conversation: &Conversation| conversation.reply(Code::CONTENT);
    let cases: [(Change, TransferFault); 7] = [
        (
            |reply| reply.with_block2(more(1, 64)),
            TransferFault::WrongNumber,
        ),
        (
            |reply| reply.with_block2(last(1, 64)),
            TransferFault::WrongNumber,
        ),
        (
            |reply| reply.with_block2(reserved()),
            TransferFault::ReservedSize,
        ),
        (
            |reply| reply.with_block2(more(0, 128)),
            TransferFault::NotFilled,
        ),
        (
            |reply| reply.with_block2(more(0, 32)),
            TransferFault::NotFilled,
        ),
        (
            |reply| reply.with_block2(more(0, 64)).with_payload([]),
            TransferFault::NotFilled,
        ),
        (
            |reply| reply.with_block2(more(0, 64)).with_size2(1_001),
            too_long,
        ),
    ];
    for (change, fault) in cases {
        let mut conversation = Conversation::begin(64, request(Code::GET));
        let first = change(content(&conversation).with_payload(body(64)));
        assert_eq!(conversation.receives(&first), broken(fault), "{first:?}");
    }
}

#[test]
fn a_later_block_that_does_not_fit_ends_the_transfer() {
    let too_long = TransferFault::TooLong {
        max: ANSWER_BYTES_MAX,
    };
    let cases: [(Change, TransferFault); 8] = [
        (
            |reply| reply.with_block2(more(0, 64)),
            TransferFault::WrongNumber,
        ),
        (
            |reply| reply.with_block2(more(2, 64)),
            TransferFault::WrongNumber,
        ),
        (
            |reply| reply.with_block2(last(2, 64)),
            TransferFault::WrongNumber,
        ),
        (
            |reply| reply.with_block2(more(1, 32)),
            TransferFault::WrongNumber,
        ),
        (
            |reply| reply.with_block2(more(0, 128)),
            TransferFault::WrongSize,
        ),
        (
            |reply| reply.with_block2(reserved()),
            TransferFault::ReservedSize,
        ),
        (
            |reply| reply.with_block2(more(1, 64)).with_payload(body(63)),
            TransferFault::NotFilled,
        ),
        (
            |reply| reply.with_block2(last(1, 64)).with_size2(1_001),
            too_long,
        ),
    ];
    for (change, fault) in cases {
        let mut conversation = Conversation::begin(64, request(Code::GET));
        assert_eq!(conversation.receives(&part(&conversation, 0)), PROCEEDS);
        let second = change(conversation.reply(Code::CONTENT).with_payload(body(64)));
        assert_eq!(conversation.receives(&second), broken(fault), "{second:?}");
    }
    let mut conversation = Conversation::begin(64, request(Code::GET));
    assert_eq!(conversation.receives(&part(&conversation, 0)), PROCEEDS);
    let overfull = conversation
        .reply(Code::CONTENT)
        .with_block2(last(1, 64))
        .with_payload(body(65));
    assert_eq!(
        conversation.receives(&overfull),
        broken(TransferFault::NotFilled)
    );
}

#[test]
fn an_answer_that_never_ends_ends_at_the_longest_answer() {
    let mut conversation = Conversation::begin(64, request(Code::GET));
    for number in 0..15 {
        assert_eq!(
            conversation.receives(&part(&conversation, number)),
            PROCEEDS
        );
    }
    let fault = TransferFault::TooLong {
        max: ANSWER_BYTES_MAX,
    };
    assert_eq!(
        conversation.receives(&part(&conversation, 15)),
        broken(fault)
    );

    let mut conversation = Conversation::begin(64, request(Code::GET));
    for number in 0..15 {
        assert_eq!(
            conversation.receives(&part(&conversation, number)),
            PROCEEDS
        );
    }
    assert_eq!(
        whole_of(conversation.receives(&rest(&conversation, 15, 1_000))).payload,
        body(1_000)
    );
}

#[test]
fn an_error_in_the_middle_is_the_answer() {
    let mut conversation = Conversation::begin(64, request(Code::GET));
    assert_eq!(conversation.receives(&part(&conversation, 0)), PROCEEDS);
    let gone = conversation.reply(Code::NOT_FOUND);
    assert_eq!(conversation.receives(&gone), ANSWERED);
}

#[test]
fn of_an_error_in_blocks_the_first_is_the_answer() {
    let mut conversation = Conversation::begin(64, request(Code::GET));
    let mut error = part(&conversation, 0);
    error.code = Code::INTERNAL_SERVER_ERROR;
    assert_eq!(conversation.receives(&error), ANSWERED);
}

#[test]
fn a_body_that_changes_is_requested_once_more() {
    let changes: [Change; 3] = [
        |reply| reply.with_etag(b"v2").with_block2(more(1, 64)),
        |reply| reply.with_block2(more(1, 64)),
        |reply| reply.with_etag(b"v1"),
    ];
    for change in changes {
        let mut conversation = Conversation::begin(64, request(Code::GET).with_observe(0));
        let first = part(&conversation, 0).with_etag(b"v1").with_observe(5);
        assert_eq!(conversation.receives(&first), PROCEEDS);
        let other = change(conversation.reply(Code::CONTENT).with_payload(body(64)));
        assert_eq!(conversation.receives(&other), PROCEEDS);
        assert_asks_for(&conversation.sent(), 0, 3);
        let first = part(&conversation, 0).with_etag(b"v2");
        assert_eq!(conversation.receives(&first), PROCEEDS);
        let end = rest(&conversation, 1, 100).with_etag(b"v2");
        let whole = whole_of(conversation.receives(&end));
        assert_eq!(whole.payload, body(100));
        assert_eq!((whole.etag(), whole.observe()), (Some(&b"v2"[..]), Some(5)));
    }
}

#[test]
fn a_body_that_shrinks_into_one_message_is_that_message() {
    let mut conversation = Conversation::begin(64, request(Code::GET).with_observe(0));
    let first = part(&conversation, 0).with_observe(5);
    assert_eq!(conversation.receives(&first), PROCEEDS);
    let small = conversation.reply(Code::CONTENT).with_payload(b"small");
    assert_eq!(conversation.receives(&small), PROCEEDS);
    assert_asks_for(&conversation.sent(), 0, 3);
    let small = conversation.reply(Code::CONTENT).with_payload(b"small");
    let whole = whole_of(conversation.receives(&small));
    assert_eq!(
        (whole.payload.as_slice(), whole.observe()),
        (&b"small"[..], Some(5))
    );
}

#[test]
fn a_body_that_changes_again_ends_the_transfer() {
    let mut conversation = Conversation::begin(64, request(Code::GET));
    assert_eq!(
        conversation.receives(&part(&conversation, 0).with_etag(b"v1")),
        PROCEEDS
    );
    assert_eq!(
        conversation.receives(&part(&conversation, 1).with_etag(b"v2")),
        PROCEEDS
    );
    assert_eq!(
        conversation.receives(&part(&conversation, 0).with_etag(b"v2")),
        PROCEEDS
    );
    let again = part(&conversation, 1).with_etag(b"v3");
    assert_eq!(
        conversation.receives(&again),
        broken(TransferFault::Changed)
    );
}

#[test]
fn a_request_with_an_effect_is_not_repeated_for_an_answer_that_changes() {
    let mut conversation = Conversation::begin(64, request(Code::POST).with_payload(b"do"));
    assert_eq!(
        conversation.receives(&part(&conversation, 0).with_etag(b"v1")),
        PROCEEDS
    );
    let other = part(&conversation, 1).with_etag(b"v2");
    assert_eq!(
        conversation.receives(&other),
        broken(TransferFault::Changed)
    );
}

#[test]
fn a_fetch_repeats_its_body_for_every_block_and_a_post_does_not() {
    for (code, expected) in [(Code::FETCH, &b"which"[..]), (Code::POST, b"")] {
        let mut conversation = Conversation::begin(64, request(code).with_payload(b"which"));
        assert_eq!(conversation.receives(&part(&conversation, 0)), PROCEEDS);
        assert_eq!(conversation.sent().payload, expected, "{code}");
    }
}

#[test]
fn an_etag_of_the_request_is_not_sent_for_further_blocks() {
    let mut conversation = Conversation::begin(64, request(Code::GET).with_etag(b"old"));
    assert_eq!(conversation.receives(&part(&conversation, 0)), PROCEEDS);
    assert_eq!(conversation.sent().etag(), None);
}

#[test]
fn a_request_that_names_a_block_gets_that_block() {
    let mut conversation = Conversation::begin(64, request(Code::GET).with_block2(last(2, 64)));
    assert_eq!(conversation.receives(&part(&conversation, 2)), ANSWERED);

    let mut conversation = Conversation::begin(64, request(Code::GET).with_block2(last(0, 64)));
    assert_eq!(conversation.receives(&part(&conversation, 0)), PROCEEDS);
    assert_eq!(conversation.sent().block2(), Some(last(1, 64)));
}

#[test]
fn separate_responses_are_acknowledged_at_every_step() {
    let mut conversation = Conversation::begin(64, request(Code::GET));
    let acknowledge = Some(MessageId(900));
    let fault = TransferFault::WrongNumber;
    let steps = [
        (0, TransferReception::Proceeds { acknowledge }),
        (3, TransferReception::Broken { acknowledge, fault }),
    ];
    for (number, expected) in steps {
        let acknowledgement = Message::acknowledgement(conversation.sent().message_id);
        assert_eq!(
            conversation.receives(&acknowledgement),
            TransferReception::Acknowledged
        );
        let separate = apart(MessageKind::Confirmable, part(&conversation, number));
        assert_eq!(conversation.receives(&separate), expected);
    }
}

#[test]
fn a_block_with_an_unknown_critical_option_is_not_taken() {
    let mut conversation = Conversation::begin(64, request(Code::GET));
    assert_eq!(conversation.receives(&part(&conversation, 0)), PROCEEDS);
    let unknown = part(&conversation, 1).with_option(65_001, b"x");
    let unusable = TransferReception::Unusable {
        option: 65_001,
        reset: None,
    };
    assert_eq!(conversation.receives(&unknown), unusable);
    assert_eq!(conversation.transfer.next_timeout(), i64::MAX);
}

#[test]
fn the_size_of_our_own_blocks_does_not_limit_the_devices() {
    let mut conversation = Conversation::begin(16, put(0));
    assert_eq!(conversation.receives(&part(&conversation, 0)), PROCEEDS);
    assert_eq!(conversation.sent().block2(), Some(last(1, 64)));
}

/// The last block of a body of the length in blocks of 64 bytes.
fn rest(conversation: &Conversation, number: u32, length: usize) -> Message {
    let offset = last(number, 64).offset().expect("a size of blocks");
    conversation
        .reply(Code::CONTENT)
        .with_block2(last(number, 64))
        .with_payload(&body(length)[offset..])
}

fn whole_of(receipt: TransferReception) -> Message {
    let whole = if let TransferReception::Answered { whole, .. } = receipt {
        whole
    } else {
        None
    };
    *whole.expect("the answer is put together")
}

fn assert_asks_for(message: &Message, number: u32, nth: u16) {
    assert_eq!(message.code, Code::GET);
    assert!(message.uri_path().eq(["5", "0", "0"]));
    assert_eq!(message.block2(), Some(last(number, 64)));
    assert_eq!((message.observe(), message.payload.len()), (None, 0));
    assert_eq!(message.message_id, MessageId(nth));
    assert_eq!(message.token, Token::from_u64(nth.into()));
}
