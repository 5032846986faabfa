//! Do our blocks and our assembly agree with a recording of a server and a device, datagram by
//! datagram?

#[path = "given/hex.rs"]
mod hex;

use protocol::coap::assembly::{Assembly, AssemblyOutcome};
use protocol::coap::block::BlockSize;
use protocol::coap::code::Code;
use protocol::coap::exchange::Transmission;
use protocol::coap::message::Message;
use protocol::coap::option;
use protocol::coap::transfer::{FreshIds, Transfer, TransferReception, TransferRules};

use crate::hex::bytes_of;

/// A server writes a resource twice, in blocks.
const CONVERSATION: &str = include_str!("vectors/coap/write_in_blocks_leshan_anjay.hex");

#[test]
fn a_recorded_write_is_sent_as_the_recorded_server_sent_it() {
    for (write, length_and_blocks) in writes().iter().zip(LENGTHS) {
        assert_eq!((body_of(write).len(), write.len()), length_and_blocks);
        let rules = rules();
        let mut transfer = Transfer::begin(0, &rules, whole_request(write), 0);
        for (place, (request, response)) in write.iter().enumerate() {
            assert_eq!(transfer.datagram(), request.encode(), "block {place}");
            let receipt = transfer.handle(0, &rules, response);
            if let Some((next, _)) = write.get(place + 1) {
                let acknowledge = None;
                assert_eq!(receipt, TransferReception::Proceeds { acknowledge });
                transfer.proceed(0, &rules, fresh(next));
            } else {
                let (acknowledge, whole) = (None, None);
                assert_eq!(receipt, TransferReception::Answered { acknowledge, whole });
            }
        }
    }
}

#[test]
fn a_recorded_write_is_received_as_by_the_recorded_device() {
    let mut assembly = Assembly::default();
    for write in writes() {
        for (request, response) in &write {
            let taken = assembly.take(0, request, 2_608);
            let code = match &taken {
                AssemblyOutcome::Continue => Code::CONTINUE,
                AssemblyOutcome::Whole(whole) => {
                    assert_eq!(whole.payload, body_of(&write));
                    Code::CHANGED
                }
                AssemblyOutcome::Incomplete
                | AssemblyOutcome::TooLarge { .. }
                | AssemblyOutcome::Malformed => Code::BAD_REQUEST,
            };
            let block = request.block1().expect("all of a write is blocks");
            let ours = Message::response_to(request, code, request.message_id).with_block1(block);
            assert_eq!(&ours, response);
        }
        assert!(assembly.is_empty());
    }
}

/// The length of each body and the number of its blocks.
const LENGTHS: [(usize, usize); 2] = [(2_608, 6), (1_504, 3)];

type Write = Vec<(Message, Message)>;

fn rules() -> TransferRules<'static> {
    TransferRules {
        transmission: &Transmission::STANDARD,
        block: BlockSize::of_bytes(512).expect("a size of blocks"),
        answer_bytes_max: 1_024,
        idle_ms: 247_000,
    }
}

/// The requests with a block and their responses, write by write.
fn writes() -> Vec<Write> {
    let messages: Vec<Message> = CONVERSATION
        .lines()
        .filter_map(|line| line.rsplit_once(" | "))
        .map(|(_, hex)| Message::decode(&bytes_of(hex)).expect("it was recorded"))
        .collect();
    let pairs = messages
        .chunks_exact(2)
        .map(|pair| (pair[0].clone(), pair[1].clone()));
    let mut writes: Vec<Write> = Vec::new();
    for (request, response) in pairs.filter(|(request, _)| request.block1().is_some()) {
        match request.block1().map_or(0, |block| block.number()) {
            0 => writes.push(vec![(request, response)]),
            _ => writes
                .last_mut()
                .expect("a first block")
                .push((request, response)),
        }
    }
    writes
}

fn body_of(write: &Write) -> Vec<u8> {
    let payloads = write.iter().map(|(request, _)| request.payload.as_slice());
    payloads.collect::<Vec<_>>().concat()
}

fn whole_request(write: &Write) -> Message {
    let (first, _) = write.first().expect("a write has blocks");
    let bare = first.clone().without_option(option::BLOCK1);
    bare.without_option(option::SIZE1)
        .with_payload(body_of(write))
}

fn fresh(recorded: &Message) -> FreshIds {
    FreshIds {
        message_id: recorded.message_id,
        token: recorded.token,
        jitter: 0,
    }
}
