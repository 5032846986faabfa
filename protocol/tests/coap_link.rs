//! Does a body arrive intact over a link that loses, duplicates and reorders datagrams?
//!
//! Time is simulated, and every run follows from its seed.

#[path = "coap_link/link.rs"]
mod link;
#[path = "coap_link/peer.rs"]
mod peer;
#[path = "coap_link/talk.rs"]
mod talk;

use proptest::prelude::{Strategy, any, proptest};
use proptest::prop_assert_eq;
use protocol::coap::code::Code;

use crate::link::LinkConditions;
use crate::peer::{ResponseMode, body};
use crate::talk::{TransferOutcome, TransferSpec, conversation};

const SIZES: [u16; 7] = [16, 32, 64, 128, 256, 512, 1_024];
const MEBIBYTE: usize = 1_048_576;

/// Longer than any series of losses.
const PATIENT_MS: i64 = 3_600_000;
/// EXCHANGE_LIFETIME of RFC 7252 section 4.8.2.
const USUAL_MS: i64 = 247_000;

#[test]
fn a_mebibyte_arrives_intact_in_blocks_of_every_size() {
    for (seed, block_bytes) in (1..).zip(SIZES) {
        let task = TransferSpec {
            block_bytes,
            to_peer: MEBIBYTE,
            from_peer: 0,
            idle_ms: PATIENT_MS,
            manner: ResponseMode::InAcknowledgements,
        };
        check(&task, &conditions(20), seed);
    }
}

#[test]
fn a_mebibyte_is_fetched_intact_in_blocks_of_every_size() {
    for (seed, block_bytes) in (1..).zip(SIZES) {
        let task = TransferSpec {
            block_bytes,
            to_peer: 0,
            from_peer: MEBIBYTE,
            idle_ms: PATIENT_MS,
            manner: ResponseMode::InAcknowledgements,
        };
        check(&task, &conditions(20), seed);
    }
}

#[test]
fn a_loss_of_a_tenth_does_not_exceed_the_usual_idle_time() {
    for (seed, (to_peer, from_peer)) in (1..).zip([(MEBIBYTE, 0), (0, MEBIBYTE)]) {
        let task = TransferSpec {
            block_bytes: 1_024,
            to_peer,
            from_peer,
            idle_ms: USUAL_MS,
            manner: ResponseMode::InAcknowledgements,
        };
        check(&task, &conditions(10), seed);
    }
}

#[test]
fn a_link_that_is_cut_ends_the_transfer_when_it_is_idle() {
    let task = TransferSpec {
        block_bytes: 1_024,
        to_peer: MEBIBYTE,
        from_peer: 0,
        idle_ms: USUAL_MS,
        manner: ResponseMode::InAcknowledgements,
    };
    let cut_at_ms = 10_000;
    let conditions = LinkConditions {
        cut_at_ms,
        ..conditions(10)
    };
    let (outcome, peer) = conversation(&task, &conditions, 1);
    let TransferOutcome::GaveUp { at_ms, .. } = outcome else {
        panic!("nothing arrives after the cut: {outcome:?}");
    };
    assert!(
        (USUAL_MS..=cut_at_ms + USUAL_MS).contains(&at_ms),
        "{at_ms}"
    );
    assert!(peer.received.is_empty());
}

#[test]
fn a_first_request_that_arrives_again_after_many_others_is_processed_once() {
    let task = TransferSpec {
        block_bytes: 128,
        to_peer: 1,
        from_peer: 1_281,
        idle_ms: PATIENT_MS,
        manner: ResponseMode::InAcknowledgements,
    };
    check(&task, &conditions(24), 13_351_520_974_258_463_586);
}

proptest! {
    #[test]
    fn bodies_arrive_intact_whatever_the_link_does(
        task in tasks(),
        loss_percent in 10..=30_u64,
        seed in any::<u64>(),
    ) {
        let (outcome, peer) = conversation(&task, &conditions(loss_percent), seed);
        // A first message may be lost as often as it is sent: then no transfer is in progress.
        if matches!(outcome, TransferOutcome::GaveUp { is_under_way: false, .. }) {
            return Ok(());
        }
        let TransferOutcome::Answered(answer) = outcome else {
            panic!("the link is slow, not cut: {outcome:?}");
        };
        prop_assert_eq!(peer.received, expected(task.to_peer));
        // The answer to the last block may be lost so often that the retransmitted block reaches a
        // peer that has forgotten the others.
        if answer.code != Code::REQUEST_ENTITY_INCOMPLETE {
            prop_assert_eq!(answer.payload, body(task.from_peer));
        }
    }
}

fn tasks() -> impl Strategy<Value = TransferSpec> {
    let manners =
        proptest::sample::select(&[ResponseMode::InAcknowledgements, ResponseMode::Apart][..]);
    let sizes = proptest::sample::select(&SIZES[..]);
    (sizes, 0..5_000_usize, 0..5_000_usize, manners).prop_map(
        |(block_bytes, to_peer, from_peer, manner)| TransferSpec {
            block_bytes,
            to_peer,
            from_peer,
            idle_ms: PATIENT_MS,
            manner,
        },
    )
}

fn check(task: &TransferSpec, conditions: &LinkConditions, seed: u64) {
    let (outcome, peer) = conversation(task, conditions, seed);
    let answer = match outcome {
        TransferOutcome::Answered(answer) => Some(answer),
        TransferOutcome::Failed | TransferOutcome::GaveUp { .. } => None,
    };
    let answer = answer.expect("the link is slow, not cut");
    assert!(peer.received == expected(task.to_peer), "{task:?} {seed}");
    assert_eq!(
        answer.code,
        peer::answer_code(task.to_peer),
        "{task:?} {seed}"
    );
    assert!(answer.payload == body(task.from_peer), "{task:?} {seed}");
}

// What the peer processed: one body, once.
fn expected(length: usize) -> Vec<Vec<u8>> {
    match length {
        0 => Vec::new(),
        length => vec![body(length)],
    }
}

fn conditions(percent: u64) -> LinkConditions {
    LinkConditions {
        loss_percent: percent,
        repeat_percent: percent,
        delay_percent: percent,
        cut_at_ms: i64::MAX,
    }
}
