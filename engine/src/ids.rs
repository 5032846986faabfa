//! What names a thing: customers, devices, action requests, log entries, traces.
//!
//! Ids made here sort by time and need no coordination (UUID version 7). A device is addressed
//! inside by its [`DeviceKey`], a digest of customer and device id, so that any process finds its
//! home shard and its rows without asking anybody.

use std::fmt;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::limits::SHARDS;

/// A text that does not name a thing of the wanted kind.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidId {
    /// The text is empty.
    #[error("must not be empty")]
    Empty,
    /// The text is longer than its kind allows.
    #[error("must not be longer than {max} bytes")]
    TooLong {
        /// The longest that would do.
        max: usize,
    },
    /// The text has a character its kind does not allow.
    #[error("must not contain {0:?}")]
    Character(char),
    /// The text means something else where the API writes such an id into a path.
    #[error("must not be {0:?}, which is reserved")]
    Reserved(&'static str),
    /// The text is not a UUID.
    #[error("must be a UUID")]
    NotUuid,
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $max:expr, $allowed:expr, $reserved:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub struct $name(Box<str>);

        impl $name {
            /// The most bytes of such an id.
            pub const LENGTH_MAX: usize = $max;

            /// The texts that would be such an id and are none.
            pub const RESERVED: &[&str] = $reserved;

            /// Reads the id from text; the error says what is wrong with it.
            pub fn parse(text: &str) -> Result<Self, InvalidId> {
                let allowed: fn(char) -> bool = $allowed;
                check(text, Self::LENGTH_MAX, allowed)?;
                check_reserved(text, Self::RESERVED)?;
                Ok(Self(text.into()))
            }

            /// The text of the id.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id! {
    /// Names a customer, service-wide.
    CustomerId, 64, is_plain, &DOTS
}
text_id! {
    /// Names a device within its customer; by default its ICCID.
    DeviceId, 128, is_name, &IN_PATHS_OF_DEVICES
}
text_id! {
    /// The identifier of a SIM (ITU-T E.118), service-wide; where a customer gives none, the
    /// device id stands for it, so whatever may name a device may stand here, and nothing else.
    Iccid, 128, is_name, &IN_PATHS_OF_DEVICES
}
text_id! {
    /// The International Mobile Subscriber Identity (3GPP TS 23.003), service-wide.
    Imsi, 15, |c| c.is_ascii_digit(), &[]
}
text_id! {
    /// The telephone number of a SIM (ITU-T E.164), digits without the plus sign.
    Msisdn, 15, |c| c.is_ascii_digit(), &[]
}
text_id! {
    /// The endpoint client name of an LwM2M device (LwM2M Core 1.2 section 6.2.1).
    Endpoint, 255, |c| !c.is_control(), &[]
}
text_id! {
    /// Names an API client of a customer.
    ClientId, 64, is_plain, &DOTS
}

/// Segments of a path that clients of HTTP take out before they call (RFC 3986 section 5.2.4).
const DOTS: [&str; 2] = [".", ".."];

/// What stands beside the devices in the paths of the API, so that no device can be called so.
const IN_PATHS_OF_DEVICES: [&str; 3] = [".", "..", "import"];

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// What may stand in one segment of a URL path without surprises, `urn:` names included.
fn is_name(c: char) -> bool {
    is_plain(c) || matches!(c, ':' | '@' | '+' | '=')
}

/// Checks a text by its length and its characters.
pub(crate) fn check(text: &str, max: usize, allowed: fn(char) -> bool) -> Result<(), InvalidId> {
    if text.is_empty() {
        return Err(InvalidId::Empty);
    }
    if text.len() > max {
        return Err(InvalidId::TooLong { max });
    }
    match text.chars().find(|c| !allowed(*c)) {
        Some(c) => Err(InvalidId::Character(c)),
        None => Ok(()),
    }
}

fn check_reserved(text: &str, reserved: &[&'static str]) -> Result<(), InvalidId> {
    match reserved.iter().find(|it| **it == text) {
        Some(reserved) => Err(InvalidId::Reserved(reserved)),
        None => Ok(()),
    }
}

/// Names a device service-wide: 128 bits of SHA-256 over customer and device id.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DeviceKey([u8; 16]);

/// What is kept as so many bytes.
macro_rules! kept_as_bytes {
    ($name:ident, $length:expr) => {
        impl $name {
            /// What was kept as bytes.
            pub fn from_bytes(bytes: [u8; $length]) -> Self {
                Self(bytes)
            }

            /// The bytes to keep.
            pub fn as_bytes(&self) -> &[u8; $length] {
                &self.0
            }
        }
    };
}
pub(crate) use kept_as_bytes;

kept_as_bytes!(DeviceKey, 16);

impl DeviceKey {
    /// The key of the device this customer calls so.
    pub fn of(customer: &CustomerId, device: &DeviceId) -> Self {
        let mut digest = Sha256::new();
        digest.update(customer.as_str());
        digest.update([0]);
        digest.update(device.as_str());
        let digest: [u8; 32] = digest.finalize().into();
        let mut key = [0; 16];
        key.copy_from_slice(&digest[..16]);
        Self(key)
    }

    /// The virtual shard that is the device's home; the devices of a shard are neighbours in the
    /// order of their keys.
    pub fn shard(&self) -> Shard {
        Shard::of([self.0[0], self.0[1]])
    }

    /// The half of the key that a registration's location carries.
    pub fn prefix(&self) -> [u8; 8] {
        let mut prefix = [0; 8];
        prefix.copy_from_slice(&self.0[..8]);
        prefix
    }
}

impl fmt::Display for DeviceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// One of the virtual shards among which devices are spread.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Shard(pub u16);

impl Shard {
    /// The shard of the devices whose keys begin so.
    pub fn of(beginning: [u8; 2]) -> Self {
        Self(u16::from_be_bytes(beginning) / KEYS_PER_SHARD)
    }

    /// The first key that may belong to the shard.
    pub fn first_key(self) -> DeviceKey {
        let mut key = [0; 16];
        key[..2].copy_from_slice(&self.0.saturating_mul(KEYS_PER_SHARD).to_be_bytes());
        DeviceKey(key)
    }

    /// The last key that may belong to the shard.
    pub fn last_key(self) -> DeviceKey {
        let mut key = [u8::MAX; 16];
        let first = self.0.saturating_mul(KEYS_PER_SHARD);
        key[..2].copy_from_slice(&first.saturating_add(KEYS_PER_SHARD - 1).to_be_bytes());
        DeviceKey(key)
    }
}

/// Beginnings of keys, of two bytes, that belong to one shard.
const KEYS_PER_SHARD: u16 = (1 << 15) / (SHARDS / 2);

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps the id a moment made.
            pub fn new(id: Uuid) -> Self {
                Self(id)
            }

            /// Reads the id from text.
            pub fn parse(text: &str) -> Result<Self, InvalidId> {
                Uuid::try_parse(text).map(Self).map_err(|_| InvalidId::NotUuid)
            }

            /// The id kept as bytes.
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// The bytes to keep; their order is the order of making.
            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }
    };
}

uuid_id! {
    /// Names an event: something a device said or did.
    EventId
}
uuid_id! {
    /// Names an action request.
    ActionId
}
impl ActionId {
    /// The id that follows this one in their order.
    pub fn next(self) -> Self {
        Self(Uuid::from_u128(self.0.as_u128().saturating_add(1)))
    }
}

uuid_id! {
    /// Names an administration log entry.
    EntryId
}
uuid_id! {
    /// Names a destination: where the events of a customer are delivered to.
    DestinationId
}
uuid_id! {
    /// Ties together what one call or one datagram set in motion.
    TraceId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_key_depends_on_customer_and_device_id() {
        let acme = CustomerId::parse("acme").unwrap();
        let meter = DeviceId::parse("meter").unwrap();
        let other = CustomerId::parse("acmem").unwrap();
        let eter = DeviceId::parse("eter").unwrap();
        assert_eq!(DeviceKey::of(&acme, &meter), DeviceKey::of(&acme, &meter));
        assert_ne!(DeviceKey::of(&acme, &meter), DeviceKey::of(&other, &eter));
        assert!(DeviceKey::of(&acme, &meter).shard().0 < SHARDS);
    }

    #[test]
    fn shards_divide_all_keys_in_their_order() {
        let mut last = None;
        for beginning in 0..=u16::MAX {
            let shard = Shard::of(beginning.to_be_bytes());
            if last != Some(shard) {
                assert_eq!(last.map_or(0, |Shard(before)| before + 1), shard.0);
                assert_eq!(shard.first_key().as_bytes()[..2], beginning.to_be_bytes());
                assert_eq!(shard.first_key().shard(), shard);
                assert_eq!(shard.last_key().shard(), shard);
            }
            last = Some(shard);
        }
        assert_eq!(last, Some(Shard(SHARDS - 1)));
    }

    #[test]
    fn an_id_says_what_is_wrong_with_it() {
        assert_eq!(CustomerId::parse(""), Err(InvalidId::Empty));
        assert_eq!(DeviceId::parse("a/b"), Err(InvalidId::Character('/')));
        assert_eq!(
            Imsi::parse("1234567890123456"),
            Err(InvalidId::TooLong { max: 15 })
        );
        assert_eq!(ActionId::parse("17"), Err(InvalidId::NotUuid));
        assert!(DeviceId::parse("urn:imei:356938035643809").is_ok());
    }

    #[test]
    fn an_id_that_means_something_else_in_a_path_names_nothing() {
        for text in [".", ".."] {
            let reserved = InvalidId::Reserved(text);
            assert_eq!(CustomerId::parse(text), Err(reserved.clone()));
            assert_eq!(ClientId::parse(text), Err(reserved.clone()));
            assert_eq!(DeviceId::parse(text), Err(reserved.clone()));
            assert_eq!(Iccid::parse(text), Err(reserved));
        }
        let reserved = InvalidId::Reserved("import");
        assert_eq!(DeviceId::parse("import"), Err(reserved.clone()));
        assert_eq!(Iccid::parse("import"), Err(reserved));
        assert!(CustomerId::parse("import").is_ok());
        for text in ["...", ".a", "a..", "imports", "IMPORT"] {
            assert!(DeviceId::parse(text).is_ok(), "{text}");
        }
    }
}
