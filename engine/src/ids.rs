//! The ids of customers, devices, action requests, log entries, traces.
//!
//! Ids generated here sort by time and need no coordination (UUID version 7). Internally a device
//! is addressed by its [`DeviceKey`], a digest of customer and device id, from which its shard and
//! its rows follow without a look-up.

use std::fmt;

use protocol::coap::dedup::MessageMark;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::limits::{PARTITIONS, SHARDS};
use crate::moment::{Moment, STEPS_PER_MS, Timestamp, UUID_END_BYTES};

/// Why a text is not an id of a kind.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidId {
    /// The text is empty.
    #[error("must not be empty")]
    Empty,
    /// The text is longer than its kind allows.
    #[error("must not be longer than {max} bytes")]
    TooLong {
        /// The longest allowed.
        max: usize,
    },
    /// The text has a character its kind does not allow.
    #[error("must not contain {0:?}")]
    Character(char),
    /// The text has another meaning in a path of the API.
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
            /// The longest id in bytes.
            pub const LENGTH_MAX: usize = $max;

            /// The texts that are reserved.
            pub const RESERVED: &[&str] = $reserved;

            /// Parses an id.
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
    /// The identifier of a SIM (ITU-T E.118), service-wide; it defaults to the device id, so both
    /// allow the same texts.
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

/// Path segments that HTTP clients remove before they send a request (RFC 3986 section 5.2.4).
const DOTS: [&str; 2] = [".", ".."];

/// Segments next to device ids in the paths of the API, which cannot be device ids.
const IN_PATHS_OF_DEVICES: [&str; 3] = [".", "..", "import"];

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// The characters that one segment of a URL path may have unescaped, `urn:` names included.
fn is_name(c: char) -> bool {
    is_plain(c) || matches!(c, ':' | '@' | '+' | '=')
}

/// Checks the length and the characters of a text.
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

/// Conversions of a new-type that is stored as bytes.
macro_rules! kept_as_bytes {
    ($name:ident, $length:expr) => {
        impl $name {
            /// Restores it from stored bytes.
            pub fn from_bytes(bytes: [u8; $length]) -> Self {
                Self(bytes)
            }

            /// The bytes to store.
            pub fn as_bytes(&self) -> &[u8; $length] {
                &self.0
            }
        }
    };
}
pub(crate) use kept_as_bytes;

kept_as_bytes!(DeviceKey, 16);

impl DeviceKey {
    /// The key of the device of this customer with this id.
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

    /// The key that is shown as this text.
    pub fn parse(text: &str) -> Option<Self> {
        let number = u128::from_str_radix(text, 16).ok();
        let number = number.filter(|number| format!("{number:032x}") == text);
        number.map(|number| Self(number.to_be_bytes()))
    }

    /// The virtual shard of the device; the devices of a shard are neighbours in key order.
    pub fn shard(&self) -> Shard {
        Shard::of([self.0[0], self.0[1]])
    }

    /// The partition of its customer's events that has those of the device.
    pub fn partition(&self) -> Partition {
        Partition(self.0[0] / KEYS_PER_PARTITION)
    }

    /// A key with this prefix.
    pub(crate) fn with_prefix(prefix: [u8; 8]) -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&prefix);
        Self(bytes)
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

/// One of the ordered logs that a customer's events are divided among; all events of a device are
/// in one of them.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Partition(pub u8);

impl Partition {
    /// Every partition.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..PARTITIONS).map(Self)
    }

    /// The shards of the devices whose events it has.
    pub fn shards(self) -> impl Iterator<Item = Shard> {
        let shards = SHARDS / u16::from(PARTITIONS);
        let first = u16::from(self.0) * shards;
        (first..first + shards).map(Shard)
    }
}

/// The number of one-byte key prefixes per partition.
const KEYS_PER_PARTITION: u8 = (1 << 7) / (PARTITIONS / 2);

/// One of the virtual shards that devices are distributed among.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Shard(pub u16);

impl Shard {
    /// The shard of the keys that begin with these bytes.
    pub fn of(prefix: [u8; 2]) -> Self {
        Self(u16::from_be_bytes(prefix) / KEYS_PER_SHARD)
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

/// The number of two-byte key prefixes per shard.
const KEYS_PER_SHARD: u16 = (1 << 15) / (SHARDS / 2);

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID of a moment.
            pub fn new(id: Uuid) -> Self {
                Self(id)
            }

            /// Parses an id.
            pub fn parse(text: &str) -> Result<Self, InvalidId> {
                Uuid::try_parse(text).map(Self).map_err(|_| InvalidId::NotUuid)
            }

            /// The id from its bytes.
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// The bytes to store; their order is the order of creation.
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
    /// Names an event.
    EventId
}
impl EventId {
    /// The least id that an event of this time may have.
    pub fn first_at(at: Timestamp) -> Self {
        let ms = u64::try_from(at.as_ms()).unwrap_or_default();
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&ms.to_be_bytes()[2..]);
        Self::from_bytes(bytes)
    }

    /// The id of an event that a message of a device reported. It ends with the mark of the
    /// message, disguised by the key of the device: devices with the same message have different
    /// ids.
    pub(crate) fn of_message(m: &mut Moment, device: DeviceKey, mark: MessageMark) -> Self {
        Self::new(m.uuid_ending(disguised(mark.to_bytes(), device)))
    }

    /// The mark of the message that reported the event of a device, if a message did.
    pub(crate) fn message_mark(self, device: DeviceKey) -> MessageMark {
        let [.., a, b, c, d, e, f] = *self.as_bytes();
        MessageMark::from_bytes(disguised([a, b, c, d, e, f], device))
    }

    /// When the event was made.
    pub fn made_at(&self) -> Timestamp {
        let [a, b, c, d, e, f, ..] = *self.as_bytes();
        Timestamp::from_ms(i64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }
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
    /// Names a job.
    JobId
}
uuid_id! {
    /// Names a schedule.
    ScheduleId
}
uuid_id! {
    /// Names a firmware image.
    ImageId
}
uuid_id! {
    /// Names a firmware campaign.
    CampaignId
}
uuid_id! {
    /// Names an administration log entry.
    EntryId
}
uuid_id! {
    /// Names a destination: where the events of a customer are delivered to.
    DestinationId
}
impl DestinationId {
    /// Which of the nodes that share deliveries deliver to it: those with the lease of this
    /// partition.
    pub fn partition(&self) -> Partition {
        // The last byte is random (RFC 9562 section 5.7).
        let [.., last] = *self.as_bytes();
        Partition(last % PARTITIONS)
    }
}

uuid_id! {
    /// Names a secret of an API client.
    SecretId
}
uuid_id! {
    /// Names a process that serves devices or stands by to do so. A process that is started again
    /// is another node.
    NodeId
}
uuid_id! {
    /// Ties together everything that one call or one datagram caused.
    TraceId
}

/// Names an SMS, service-wide: an integer, because the SMS events of seed 6 have one. Ids sort by
/// time. JSON numbers are exact up to 2^53 (RFC 8259 section 6), which is reached in 2089.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SmsId(u64);

/// Where the milliseconds of an [`SmsId`] begin: 2020-01-01T00:00:00Z.
const SMS_EPOCH: Timestamp = Timestamp::from_ms(1_577_836_800_000);

/// The steps of a millisecond in an [`SmsId`], as its lower bits.
const SMS_STEPS: u64 = STEPS_PER_MS as u64;

impl SmsId {
    /// The greatest id.
    pub const MAX: u64 = (1 << 53) - 1;

    /// A new id. Another SMS may have it: whoever stores it expects that it is free.
    pub fn new(m: &Moment) -> Self {
        let first = Self::first_at(m.now());
        Self((first.0 + u64::from(m.step())).min(Self::MAX))
    }

    /// Parses an id.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| is_digits)?;
        Self::from_number(number)
    }

    /// The id with this number.
    pub fn from_number(number: u64) -> Option<Self> {
        (number <= Self::MAX).then_some(Self(number))
    }

    /// The least id that an SMS of this time may have.
    pub fn first_at(at: Timestamp) -> Self {
        let ms = u64::try_from(at.since_ms(SMS_EPOCH)).unwrap_or_default();
        Self(ms.saturating_mul(SMS_STEPS).min(Self::MAX))
    }

    /// The number.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for SmsId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The end of the id of an event of a device for a mark, or the mark for such an end. Keys of
/// devices are digests, so ids of different devices differ as if they were random.
fn disguised(mark: [u8; UUID_END_BYTES], device: DeviceKey) -> [u8; UUID_END_BYTES] {
    let mut disguised = mark;
    for (byte, key) in disguised.iter_mut().zip(device.0) {
        *byte ^= key;
    }
    disguised
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_sms_sort_by_time_and_are_exact_json_numbers() {
        let at = |ms: i64| Timestamp::from_ms(1_795_521_600_000 + ms);
        let id = |ms, step| SmsId::new(&Moment::new(at(ms), 7).at_step(step));
        assert!(id(0, 17) < id(0, 18) && id(0, STEPS_PER_MS) < id(1, 0));
        assert_eq!(SmsId::first_at(at(1)), id(1, 0));
        let in_2088 = SmsId::first_at(Timestamp::from_ms(3_723_926_400_000));
        assert!(in_2088.number() < SmsId::MAX);
        assert_eq!(SmsId::parse(&in_2088.to_string()), Some(in_2088));
        for text in ["", "-1", "+1", "1.0", "x", "9007199254740992"] {
            assert_eq!(SmsId::parse(text), None, "{text}");
        }
        assert_eq!(
            SmsId::parse("9007199254740991").map(SmsId::number),
            Some(SmsId::MAX)
        );
    }

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
        for prefix in 0..=u16::MAX {
            let shard = Shard::of(prefix.to_be_bytes());
            if last != Some(shard) {
                assert_eq!(last.map_or(0, |Shard(before)| before + 1), shard.0);
                assert_eq!(shard.first_key().as_bytes()[..2], prefix.to_be_bytes());
                assert_eq!(shard.first_key().shard(), shard);
                assert_eq!(shard.last_key().shard(), shard);
            }
            last = Some(shard);
        }
        assert_eq!(last, Some(Shard(SHARDS - 1)));
    }

    #[test]
    fn an_invalid_id_is_refused_with_its_reason() {
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
    fn a_text_with_another_meaning_in_a_path_is_not_an_id() {
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
