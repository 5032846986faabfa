//! Idempotent calls: what is saved of a call that must not take effect twice.

use super::vocabulary::{DeviceFixture, Lines, read, write};
use crate::idempotency::{CallFingerprint, IdempotencyKey, IdempotencyKeyText, IdempotentCall};

#[test]
fn an_idempotency_record_is_saved_with_its_request() {
    let mut fixture = DeviceFixture::new();
    let (accepted, saved) = fixture.submit(read("/3/0/9").when_active());
    assert!(accepted.is_ok());
    let mut fixture = DeviceFixture::new();
    let (accepted, saved_once) = fixture.submit(read("/3/0/9").when_active().once(once()));
    assert!(accepted.is_ok());
    let (record, rest) = saved_once.split_at(2);
    assert_eq!(record, ["expect no record", "record of #1"]);
    assert_eq!(rest, saved);
}

#[test]
fn an_idempotency_record_is_saved_for_a_request_that_fails_at_once() {
    let mut fixture = DeviceFixture::registered();
    let (accepted, saved) = fixture.submit(write("/3/0/13", "tomorrow").once(once()));
    assert!(accepted.is_ok());
    assert_eq!(saved[..2], ["expect no record", "record of #1"]);
}

#[test]
fn a_refused_call_leaves_its_key_free() {
    let mut fixture = DeviceFixture::new();
    let (refused, saved) = fixture.submit(read("/3/0/9").once(once()));
    assert!(refused.is_err());
    assert_eq!(saved, Lines::new());
}

fn once() -> IdempotentCall {
    IdempotentCall {
        key: IdempotencyKey::of(1, &IdempotencyKeyText::parse("x").unwrap()),
        fingerprint: CallFingerprint::of(&[b"read"]),
    }
}
