//! What is stored for a call, so that a repeated call creates nothing again (`Idempotency-Key`)?
//!
//! A call that creates action requests has one record per device, committed in one batch with the
//! request that it names. The record of a removed device does not apply to a new device with the
//! same id. A call that creates anything else has one record, committed with what it creates: its
//! response, which may hold a secret and is therefore sealed. A refused call leaves no record.

use sha2::{Digest, Sha256};

use crate::ids::{ActionId, DeviceKey, JobId, kept_as_bytes};
use crate::moment::Timestamp;
use crate::sealed::Sealed;

/// The longest key a call may have, in characters.
pub const KEY_CHARACTERS_MAX: usize = 255;

/// An invalid key.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("must be 1 to {KEY_CHARACTERS_MAX} visible ASCII characters")]
pub struct InvalidIdempotencyKey;

/// The text of an idempotency key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IdempotencyKeyText(Box<str>);

impl IdempotencyKeyText {
    /// Parses a key.
    pub fn parse(text: &str) -> Result<Self, InvalidIdempotencyKey> {
        let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        if !visible || text.is_empty() || text.len() > KEY_CHARACTERS_MAX {
            return Err(InvalidIdempotencyKey);
        }
        Ok(Self(text.into()))
    }
}

/// The id of a call: 128 bits of SHA-256 over its customer and the text of its key.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct IdempotencyKey([u8; 16]);

impl IdempotencyKey {
    /// The key of a customer with this text. The customer's number is part of it, because a new
    /// customer with the id of a removed one must not inherit its keys.
    pub fn of(customer_number: u64, text: &IdempotencyKeyText) -> Self {
        let number = customer_number.to_be_bytes();
        Self(digest_of(&[&number, text.0.as_bytes()]))
    }

    /// The key under which a part of a job creates its requests: one for each of its devices.
    pub fn of_job(job: JobId, part: u32) -> Self {
        Self(digest_of(&[b"job", job.as_bytes(), &part.to_be_bytes()]))
    }

    /// The key of the operator with this text.
    pub fn of_operator(text: &IdempotencyKeyText) -> Self {
        Self(digest_of(&[b"operator", &[], text.0.as_bytes()]))
    }
}

kept_as_bytes!(IdempotencyKey, 16);

/// A digest of the content of a call: equal calls have equal fingerprints.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CallFingerprint([u8; 16]);

impl CallFingerprint {
    /// The fingerprint of a call made of these parts.
    pub fn of(parts: &[&[u8]]) -> Self {
        Self(digest_of(parts))
    }
}

kept_as_bytes!(CallFingerprint, 16);

/// A call that must not happen twice.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct IdempotentCall {
    /// Its key.
    pub key: IdempotencyKey,
    /// The digest of its content.
    pub fingerprint: CallFingerprint,
}

/// The record of a call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IdempotencyRecord {
    /// The call.
    pub call: IdempotentCall,
    /// What it created.
    pub created: CreatedByCall,
    /// When it was created.
    pub at: Timestamp,
}

/// What a call with an idempotency key created.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CreatedByCall {
    /// An action request for one of its devices.
    Action {
        /// The device.
        device: IdentifiedDevice,
        /// The request.
        action: ActionId,
    },
    /// Something else, to which this was the response.
    Answered(Sealed),
}

/// A device and its number, because a new device may have the same device key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct IdentifiedDevice {
    /// The key of the device.
    pub key: DeviceKey,
    /// Its number.
    pub number: u64,
}

impl IdempotencyRecord {
    /// The device for which the record is, if its call created action requests.
    pub fn device(&self) -> Option<IdentifiedDevice> {
        match self.created {
            CreatedByCall::Action { device, .. } => Some(device),
            CreatedByCall::Answered(_) => None,
        }
    }
}

/// The length precedes each part, so that different lists of parts have different digests.
fn digest_of(parts: &[&[u8]]) -> [u8; 16] {
    let mut digest = Sha256::new();
    for part in parts {
        let length = u64::try_from(part.len()).expect("a length in memory");
        digest.update(length.to_be_bytes());
        digest.update(part);
    }
    let digest: [u8; 32] = digest.finalize().into();
    let mut half = [0; 16];
    half.copy_from_slice(&digest[..16]);
    half
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_1_to_255_visible_ascii_characters() {
        let longest = "x".repeat(KEY_CHARACTERS_MAX);
        for text in ["x", "5f0c7b1e-9d0f-4f4b", "!~", longest.as_str()] {
            assert!(IdempotencyKeyText::parse(text).is_ok(), "{text}");
        }
        let too_long = "x".repeat(KEY_CHARACTERS_MAX + 1);
        for text in ["", "a b", "a\tb", "\u{7f}", "caf\u{e9}", too_long.as_str()] {
            assert_eq!(
                IdempotencyKeyText::parse(text),
                Err(InvalidIdempotencyKey),
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_key_belongs_to_one_customer() {
        let key = |customer, text| {
            IdempotencyKey::of(customer, &IdempotencyKeyText::parse(text).unwrap())
        };
        assert_eq!(key(1, "x"), key(1, "x"));
        assert_ne!(key(1, "x"), key(2, "x"));
        assert_ne!(key(1, "x"), key(1, "y"));
        let of_operator = IdempotencyKey::of_operator(&IdempotencyKeyText::parse("x").unwrap());
        assert_ne!(key(0, "x"), of_operator);
    }

    #[test]
    fn a_fingerprint_depends_on_where_parts_end() {
        assert_eq!(
            CallFingerprint::of(&[b"ab", b"c"]),
            CallFingerprint::of(&[b"ab", b"c"])
        );
        assert_ne!(
            CallFingerprint::of(&[b"ab", b"c"]),
            CallFingerprint::of(&[b"a", b"bc"])
        );
        assert_ne!(
            CallFingerprint::of(&[b"ab"]),
            CallFingerprint::of(&[b"ab", b""])
        );
    }
}
