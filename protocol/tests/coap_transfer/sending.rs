//! Is the body of a request sent in blocks, in the size the device wants?

use protocol::coap::block::Block;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;
use protocol::coap::transfer::{TransferFault, TransferReception};

use super::given::{
    ANSWERED, Conversation, PROCEEDS, body, broken, last, more, put, request, reserved,
};

#[test]
fn a_body_that_fits_one_block_is_sent_in_one_message() {
    for length in [0, 1, 64] {
        let conversation = Conversation::begin(64, put(length));
        assert_eq!(conversation.sent(), put(length));
    }
    let conversation = Conversation::begin(64, put(65));
    assert_eq!(conversation.sent().block1(), Some(more(0, 64)));
}

#[test]
fn a_longer_body_is_sent_in_blocks_and_the_first_states_its_size() {
    let mut conversation = Conversation::begin(64, put(150));
    let mut sent = vec![conversation.sent()];
    for _ in 0..2 {
        assert_eq!(conversation.continues(), PROCEEDS);
        sent.push(conversation.sent());
    }
    let blocks: Vec<_> = sent.iter().map(Message::block1).collect();
    assert_eq!(
        blocks,
        [Some(more(0, 64)), Some(more(1, 64)), Some(last(2, 64))]
    );
    let sizes: Vec<_> = sent.iter().map(Message::size1).collect();
    assert_eq!(sizes, [Some(150), None, None]);
    let payloads: Vec<u8> = sent
        .iter()
        .flat_map(|message| message.payload.clone())
        .collect();
    assert_eq!(payloads, body(150));
    for (place, message) in sent.iter().enumerate() {
        assert!(message.uri_path().eq(["5", "0", "0"]));
        assert_eq!(message.content_format(), put(0).content_format());
        assert_eq!(
            usize::from(message.message_id.0),
            place + 1,
            "ids are fresh"
        );
        assert_eq!(
            message.token.as_bytes().last(),
            u8::try_from(place + 1).ok().as_ref()
        );
    }
    let changed = conversation.reply(Code::CHANGED).with_block1(last(2, 64));
    assert_eq!(conversation.receives(&changed), ANSWERED);
}

#[test]
fn a_body_of_full_blocks_ends_with_a_full_one() {
    let mut conversation = Conversation::begin(64, put(128));
    assert_eq!(conversation.continues(), PROCEEDS);
    assert_eq!(conversation.sent().block1(), Some(last(1, 64)));
    assert_eq!(conversation.sent().payload.len(), 64);
}

#[test]
fn a_smaller_size_is_used_after_the_transferred_bytes() {
    let mut conversation = Conversation::begin(128, put(300));
    let reply = conversation.reply(Code::CONTINUE).with_block1(more(0, 32));
    assert_eq!(conversation.receives(&reply), PROCEEDS);
    assert_eq!(conversation.sent().block1(), Some(more(4, 32)));
    assert_eq!(conversation.sent().payload, &body(300)[128..160]);

    // Our block 4 of 32 bytes, by our number and by the device's.
    for named in [more(4, 16), more(8, 16)] {
        let mut conversation = Conversation::begin(32, put(300));
        (0..4).for_each(|_| assert_eq!(conversation.continues(), PROCEEDS));
        let reply = conversation.reply(Code::CONTINUE).with_block1(named);
        assert_eq!(conversation.receives(&reply), PROCEEDS, "{named:?}");
        assert_eq!(conversation.sent().block1(), Some(more(10, 16)));
        assert_eq!(conversation.sent().payload, &body(300)[160..176]);
    }
}

#[test]
fn a_larger_size_than_ours_is_not_used() {
    let mut conversation = Conversation::begin(64, put(300));
    let reply = conversation
        .reply(Code::CONTINUE)
        .with_block1(more(0, 1_024));
    assert_eq!(conversation.receives(&reply), PROCEEDS);
    assert_eq!(conversation.sent().block1(), Some(more(1, 64)));
}

#[test]
fn a_confirmation_that_does_not_fit_ends_the_transfer() {
    let cases = [
        (None, TransferFault::BlockMissing),
        (Some(more(0, 64)), TransferFault::WrongNumber),
        (Some(more(2, 64)), TransferFault::WrongNumber),
        (Some(reserved()), TransferFault::ReservedSize),
    ];
    for (block, fault) in cases {
        let mut conversation = Conversation::begin(64, put(300));
        assert_eq!(conversation.continues(), PROCEEDS);
        let reply = conversation.reply(Code::CONTINUE);
        let reply = block.into_iter().fold(reply, Message::with_block1);
        assert_eq!(conversation.receives(&reply), broken(fault), "{block:?}");
    }
}

#[test]
fn a_demand_for_more_than_the_last_block_ends_the_transfer() {
    let mut conversation = Conversation::begin(64, put(100));
    assert_eq!(conversation.continues(), PROCEEDS);
    assert_eq!(
        conversation.continues(),
        broken(TransferFault::ContinuedPastEnd)
    );
}

#[test]
fn a_device_that_processes_each_block_gets_them_all() {
    for code in [Code::CHANGED, Code::CREATED] {
        let mut conversation = Conversation::begin(64, put(150));
        for number in [0, 1] {
            let outcome = conversation.reply(code).with_block1(last(number, 64));
            assert_eq!(conversation.receives(&outcome), PROCEEDS);
        }
        let outcome = conversation.reply(code).with_block1(last(2, 64));
        assert_eq!(conversation.receives(&outcome), ANSWERED);
    }
}

#[test]
fn an_answer_before_the_last_block_is_the_answer() {
    let early = [
        Code::REQUEST_ENTITY_INCOMPLETE,
        Code::REQUEST_ENTITY_TOO_LARGE,
        Code::NOT_FOUND,
        Code::INTERNAL_SERVER_ERROR,
        Code::CHANGED,
    ];
    for code in early {
        let mut conversation = Conversation::begin(64, put(150));
        assert_eq!(conversation.continues(), PROCEEDS);
        let reply = conversation.reply(code);
        assert_eq!(conversation.receives(&reply), ANSWERED, "{code}");
    }
    let mut conversation = Conversation::begin(64, put(150));
    let named = conversation.reply(Code::NOT_FOUND).with_block1(more(0, 64));
    assert_eq!(conversation.receives(&named), ANSWERED);
}

#[test]
fn a_device_may_refuse_a_size_once_and_name_a_smaller_one() {
    let too_large = Code::REQUEST_ENTITY_TOO_LARGE;
    for blocks_before in [0, 2] {
        let mut conversation = Conversation::begin(128, put(500));
        (0..blocks_before).for_each(|_| assert_eq!(conversation.continues(), PROCEEDS));
        let refusal = conversation
            .reply(too_large)
            .with_block1(more(blocks_before, 32));
        assert_eq!(conversation.receives(&refusal), PROCEEDS);
        assert_eq!(conversation.sent().block1(), Some(more(0, 32)));
        assert_eq!(conversation.sent().size1(), Some(500));
        assert_eq!(conversation.continues(), PROCEEDS);
        let refusal = conversation.reply(too_large).with_block1(more(1, 16));
        assert_eq!(conversation.receives(&refusal), ANSWERED);
    }
}

#[test]
fn a_refusal_that_names_no_smaller_size_is_the_answer() {
    let too_large = Code::REQUEST_ENTITY_TOO_LARGE;
    for block in [more(0, 128), more(0, 1_024), reserved()] {
        let mut conversation = Conversation::begin(128, put(500));
        let refusal = conversation.reply(too_large).with_block1(block);
        assert_eq!(conversation.receives(&refusal), ANSWERED, "{block:?}");
    }
    let mut conversation = Conversation::begin(128, put(500));
    let refusal = conversation.reply(too_large).with_size1(400);
    assert_eq!(conversation.receives(&refusal), ANSWERED);
}

#[test]
fn a_body_refused_in_one_message_is_sent_in_blocks_of_the_named_size() {
    let too_large = Code::REQUEST_ENTITY_TOO_LARGE;
    let mut conversation = Conversation::begin(128, put(100));
    let refusal = conversation.reply(too_large).with_block1(last(0, 64));
    assert_eq!(conversation.receives(&refusal), PROCEEDS);
    assert_eq!(conversation.sent().block1(), Some(more(0, 64)));
    assert_eq!(conversation.sent().size1(), Some(100));
    assert_eq!(conversation.continues(), PROCEEDS);
    assert_eq!(conversation.sent().block1(), Some(last(1, 64)));
    assert_eq!(conversation.sent().payload, &body(100)[64..]);

    let mut conversation = Conversation::begin(128, put(64));
    let refusal = conversation.reply(too_large).with_block1(last(0, 64));
    assert_eq!(conversation.receives(&refusal), ANSWERED);
    let mut conversation = Conversation::begin(128, put(100));
    let refusal = conversation.reply(too_large);
    assert_eq!(conversation.receives(&refusal), ANSWERED);
}

#[test]
fn a_body_beyond_the_block_numbers_is_sent_in_larger_blocks_or_not_at_all() {
    let reach = 16 << 20;
    let mut conversation = Conversation::begin(16, put(reach));
    assert_eq!(conversation.sent().block1(), Some(more(0, 16)));
    assert_eq!(conversation.continues(), PROCEEDS);

    let mut conversation = Conversation::begin(16, put(reach + 1));
    assert_eq!(conversation.sent().block1(), Some(more(0, 32)));
    let smaller = conversation.reply(Code::CONTINUE).with_block1(more(0, 16));
    let fault = TransferFault::TooLong { max: reach };
    assert_eq!(conversation.receives(&smaller), broken(fault));
}

#[test]
fn a_request_that_names_its_block_is_sent_unchanged() {
    let named = put(200).with_block1(more(3, 256));
    let mut conversation = Conversation::begin(64, named.clone());
    assert_eq!(conversation.sent(), named);
    let reply = conversation
        .reply(Code::REQUEST_ENTITY_TOO_LARGE)
        .with_block1(more(3, 64));
    assert_eq!(conversation.receives(&reply), ANSWERED);
}

#[test]
fn the_answer_to_a_body_in_blocks_may_come_in_blocks() {
    let post = request(Code::POST)
        .with_accept(ContentFormat::TEXT)
        .with_payload(body(100));
    let mut conversation = Conversation::begin(64, post);
    assert_eq!(conversation.continues(), PROCEEDS);
    let first = conversation
        .reply(Code::CHANGED)
        .with_block1(last(1, 64))
        .with_block2(more(0, 16))
        .with_payload(&body(20)[..16]);
    assert_eq!(conversation.receives(&first), PROCEEDS);
    let next = conversation.sent();
    assert_eq!(next.code, Code::POST);
    assert!(next.accept().is_some());
    assert_eq!((next.block1(), next.size1()), (None, None));
    assert_eq!(next.block2(), Some(last(1, 16)));
    assert!(next.payload.is_empty());
    let second = conversation
        .reply(Code::CHANGED)
        .with_block2(last(1, 16))
        .with_payload(&body(20)[16..]);
    let TransferReception::Answered {
        whole: Some(whole), ..
    } = conversation.receives(&second)
    else {
        panic!("the answer is whole");
    };
    assert_eq!(whole.payload, body(20));
    assert_eq!(whole.block1().map(Block::number), Some(1));
}

#[test]
fn a_body_that_is_supplied_goes_in_blocks_of_the_size_that_the_device_wants() {
    let mut conversation = Conversation::streaming(64, 150, 0);
    let first = conversation.sent();
    assert_eq!(first.block1(), Some(more(0, 64)));
    assert_eq!(first.size1(), Some(150));
    assert_eq!(first.payload, body(64));
    let smaller = conversation.reply(Code::CONTINUE);
    let smaller = smaller.with_block1(more(0, 32));
    assert_eq!(conversation.receives(&smaller), PROCEEDS);
    assert_eq!(conversation.transfer.wanted(), Some(64..96));
    assert_eq!(conversation.sent().block1(), Some(more(2, 32)));
    assert_eq!(conversation.sent().payload, body(96)[64..]);
    assert_eq!(conversation.continues(), PROCEEDS);
    assert_eq!(conversation.continues(), PROCEEDS);
    assert_eq!(conversation.sent().block1(), Some(last(4, 32)));
    let position = conversation.transfer.position().map(|at| at.bytes);
    assert_eq!(position, Some(128));
    let done = conversation.reply(Code::CHANGED);
    assert_eq!(conversation.receives(&done), ANSWERED);
}

#[test]
fn a_body_that_is_supplied_goes_on_where_an_earlier_transfer_stood() {
    let mut conversation = Conversation::streaming(64, 150, 64);
    let sent = conversation.sent();
    assert_eq!((sent.block1(), sent.size1()), (Some(more(1, 64)), None));
    assert_eq!(conversation.continues(), PROCEEDS);
    assert_eq!(conversation.sent().block1(), Some(last(2, 64)));
}

#[test]
fn a_body_that_is_supplied_begins_anew_in_the_size_of_a_refusal() {
    let mut conversation = Conversation::streaming(64, 150, 0);
    conversation.continues();
    let refusal = conversation.reply(Code::REQUEST_ENTITY_TOO_LARGE);
    let refusal = refusal.with_block1(more(0, 16));
    assert_eq!(conversation.receives(&refusal), PROCEEDS);
    assert_eq!(conversation.sent().block1(), Some(more(0, 16)));
    assert_eq!(conversation.sent().payload, body(16));
}

#[test]
fn a_body_that_is_supplied_and_fits_one_block_is_one_message() {
    let mut conversation = Conversation::streaming(64, 64, 0);
    let sent = conversation.sent();
    assert_eq!((sent.block1(), sent.size1()), (None, None));
    assert_eq!(sent.payload, body(64));
    let done = conversation.reply(Code::CHANGED);
    assert_eq!(conversation.receives(&done), ANSWERED);
}
