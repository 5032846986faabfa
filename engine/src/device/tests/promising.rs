//! What is kept of a call that must not happen twice.

use super::vocabulary::{Bench, Lines, read, write};
use crate::promise::{Fingerprint, KeyText, Once, OnceKey};

#[test]
fn what_a_call_was_promised_is_kept_with_its_request() {
    let mut bench = Bench::new();
    let (accepted, kept) = bench.submit(read("/3/0/9").when_active());
    assert!(accepted.is_ok());
    let mut bench = Bench::new();
    let (accepted, kept_once) = bench.submit(read("/3/0/9").when_active().once(once()));
    assert!(accepted.is_ok());
    let (promise, rest) = kept_once.split_at(2);
    assert_eq!(promise, ["expect nothing promised", "promise #1"]);
    assert_eq!(rest, kept);
}

#[test]
fn a_call_is_promised_a_request_that_fails_at_once() {
    let mut bench = Bench::registered();
    let (accepted, kept) = bench.submit(write("/3/0/13", "tomorrow").once(once()));
    assert!(accepted.is_ok());
    assert_eq!(kept[..2], ["expect nothing promised", "promise #1"]);
}

#[test]
fn a_refused_call_leaves_its_key_free() {
    let mut bench = Bench::new();
    let (refused, kept) = bench.submit(read("/3/0/9").once(once()));
    assert!(refused.is_err());
    assert_eq!(kept, Lines::new());
}

fn once() -> Once {
    Once {
        key: OnceKey::of(1, &KeyText::parse("x").unwrap()),
        call: Fingerprint::of(&[b"read"]),
    }
}
