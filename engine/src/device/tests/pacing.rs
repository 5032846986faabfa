//! How much of what a device notifies is taken: what it can have written has a bound.

use protocol::coap::message::Kind;

use super::vocabulary::{BATTERY, Bench, HOME, Lines, MINUTE, S, logged, sent, told};
use crate::limits::NOTIFICATIONS_MAX;

#[test]
fn more_notifications_than_are_taken_in_a_minute_are_neither_told_nor_acknowledged() {
    let mut bench = Bench::observed();
    let max = u32::from(NOTIFICATIONS_MAX);
    for sequence in 11..11 + max {
        let notification = bench.notification(Kind::NonConfirmable, sequence, "86");
        assert_eq!(bench.at(S).hears(HOME, &notification), told_of("86"));
    }
    let excessive = bench.notification(Kind::Confirmable, 11 + max, "85");
    assert_eq!(bench.at(2 * S).hears(HOME, &excessive), Lines::new());
    let again = bench.at(MINUTE + S).hears(HOME, &excessive);
    let acknowledgement = sent(&format!("ACK to {}", excessive.message_id.0));
    assert_eq!(again, [told_of("85"), acknowledgement].concat());
}

#[test]
fn a_clock_that_goes_back_does_not_silence_a_device() {
    let mut bench = Bench::observed();
    let ahead = bench.notification(Kind::NonConfirmable, 11, "86");
    bench.at(10 * MINUTE).hears(HOME, &ahead);
    for sequence in 12..12 + u32::from(NOTIFICATIONS_MAX) {
        let notification = bench.notification(Kind::NonConfirmable, sequence, "86");
        assert_eq!(bench.at(S).hears(HOME, &notification), told_of("86"));
    }
}

#[test]
fn bytes_that_cannot_be_read_are_kept_at_most_once_a_minute() {
    let mut bench = Bench::observed();
    let unreadable = logged(&format!(
        "Translator[UserPayloadError] Error: A payload cannot be decoded: \
         a notification of {BATTERY} cannot be read: the payload is not a value of type INTEGER. \
         Kept: \"warm\""
    ));
    for (at, is_kept) in [(S, true), (2 * S, false), (S + MINUTE, true)] {
        let sequence = u32::try_from(at / S).unwrap() + 10;
        let notification = bench.notification(Kind::NonConfirmable, sequence, "warm");
        let effects = bench.at(at).hears(HOME, &notification);
        let expected = if is_kept {
            unreadable.clone()
        } else {
            Lines::new()
        };
        assert_eq!(effects, expected, "at {at}");
    }
    bench.at(3 * MINUTE).timeout();
    assert!(
        bench.device().busy.is_none(),
        "nothing is remembered for ever"
    );
}

fn told_of(value: &str) -> Lines {
    told(&format!("{BATTERY}={value} for observed {BATTERY}"))
}
