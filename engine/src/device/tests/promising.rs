//! Idempotent calls: what is saved of a call that must not take effect twice.

use super::vocabulary::{DeviceFixture, Lines, read, write};
use crate::idempotency::{CallFingerprint, IdempotencyKey, IdempotencyKeyText, IdempotentCall};

#[test]
fn an_idempotency_record_is_saved_with_its_request() {
    let mut fixture = DeviceFixture::new();
    let (accepted, kept) = fixture.submit(read("/3/0/9").when_active());
    assert!(accepted.is_ok());
    let mut fixture = DeviceFixture::new();
    let (accepted, kept_once) = fixture.submit(read("/3/0/9").when_active().once(once()));
    assert!(accepted.is_ok());
    let (record, rest) = kept_once.split_at(2);
    assert_eq!(record, ["expect nothing promised", "promise #1"]);
    assert_eq!(rest, kept);
}

#[test]
fn an_idempotency_record_is_saved_for_a_request_that_fails_at_once() {
    let mut fixture = DeviceFixture::registered();
    let (accepted, kept) = fixture.submit(write("/3/0/13", "tomorrow").once(once()));
    assert!(accepted.is_ok());
    assert_eq!(kept[..2], ["expect nothing promised", "promise #1"]);
}

#[test]
fn a_refused_call_leaves_its_key_free() {
    let mut fixture = DeviceFixture::new();
    let (refused, kept) = fixture.submit(read("/3/0/9").once(once()));
    assert!(refused.is_err());
    assert_eq!(kept, Lines::new());
}

fn once() -> IdempotentCall {
    IdempotentCall {
        key: IdempotencyKey::of(1, &IdempotencyKeyText::parse("x").unwrap()),
        fingerprint: CallFingerprint::of(&[b"read"]),
    }
}
