//! What are the keys of the counts of the administration log?
//!
//! Entries are counted by the time of their ids, in buckets of four sizes, and devices by the
//! quarter of an hour of their last entry.

use engine::admin_log::entry::Category;
use engine::ids::{CustomerId, DeviceKey, EntryId};
use engine::moment::Timestamp;

use crate::SWEPT_MS;
use crate::record::code;
use crate::sled::key::{Builder, Key, Table, append, made_at};

/// The size of the buckets in which entries are counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BucketSize {
    /// Five seconds: the entries that a fleet writes in them when it registers at once can be
    /// skipped in milliseconds. Entries are removed for their age bucket by bucket.
    FiveSeconds,
    /// A minute.
    Minute,
    /// A quarter of an hour: the days of every time zone consist of whole ones.
    Quarter,
    /// A day of UTC.
    Day,
}

impl BucketSize {
    /// Every size, smallest first.
    pub(crate) const ALL: [Self; 4] = [Self::FiveSeconds, Self::Minute, Self::Quarter, Self::Day];

    /// Its length.
    pub(crate) fn ms(self) -> i64 {
        match self {
            Self::FiveSeconds => SWEPT_MS,
            Self::Minute => 60_000,
            Self::Quarter => 15 * 60_000,
            Self::Day => 86_400_000,
        }
    }

    /// The number of the bucket an id was made in.
    pub(crate) fn bucket_of(self, id: EntryId) -> u32 {
        self.bucket(made_at(*id.as_bytes()))
    }

    /// The number of the bucket that contains an instant. Ids begin at the epoch.
    pub(crate) fn bucket(self, at: Timestamp) -> u32 {
        let bucket = at.as_ms().max(0).div_euclid(self.ms());
        u32::try_from(bucket).unwrap_or(u32::MAX)
    }

    /// The first instant of a bucket.
    pub(crate) fn start(self, bucket: u32) -> Timestamp {
        Timestamp::from_ms(i64::from(bucket) * self.ms())
    }

    fn code(self) -> u8 {
        match self {
            Self::Minute => 1,
            Self::Quarter => 2,
            Self::Day => 3,
            Self::FiveSeconds => 4,
        }
    }
}

/// How many entries of each kind a customer has in a bucket.
pub(crate) fn entries(customer: &CustomerId, span: BucketSize, bucket: u32) -> Key {
    Builder::of(Table::EntryCount)
        .text(customer.as_str())
        .byte(span.code())
        .bytes(&bucket.to_be_bytes())
        .end()
}

/// The bucket of a count, from its key.
pub(crate) fn counted(key: &[u8]) -> Option<u32> {
    key.last_chunk().copied().map(u32::from_be_bytes)
}

/// The last entries about a device.
pub(crate) fn device(customer: &CustomerId, device: DeviceKey) -> Key {
    append(devices(customer), device.as_bytes())
}

/// The prefix of the keys of the devices that a customer's log is about.
pub(crate) fn devices(customer: &CustomerId) -> Key {
    Builder::of(Table::DeviceInLog)
        .text(customer.as_str())
        .end()
}

/// How many devices have their last entry of a category, or of any, in a quarter of an hour.
pub(crate) fn devices_in(customer: &CustomerId, among: Option<Category>, bucket: u32) -> Key {
    append(devices_among(customer, among), &bucket.to_be_bytes())
}

/// The prefix of the keys of the counts of devices.
pub(crate) fn devices_among(customer: &CustomerId, among: Option<Category>) -> Key {
    Builder::of(Table::DevicesCounted)
        .text(customer.as_str())
        .byte(among.map_or(0, code::of_category))
        .end()
}

#[cfg(test)]
mod tests {
    use engine::moment::Moment;

    use super::*;
    use crate::sled::key::rest_of;

    #[test]
    fn a_bucket_is_read_from_the_key_of_its_count() {
        let acme = CustomerId::parse("acme").unwrap();
        for bucket in [0, 1, 0x0102_0304, u32::MAX] {
            let key = entries(&acme, BucketSize::Quarter, bucket);
            assert_eq!(counted(&key), Some(bucket));
        }
        assert_eq!(counted(b"cut"), None);
        let device = device(&acme, DeviceKey::from_bytes([7; 16]));
        assert_eq!(rest_of(&device, &devices(&acme)), [7; 16]);
    }

    #[test]
    fn an_entry_is_counted_by_the_time_in_its_id() {
        for ms in [0, 1, 1_700_000_000_123, 1 << 43] {
            let mut moment = Moment::new(Timestamp::from_ms(ms), u128::MAX);
            let id = EntryId::new(moment.uuid());
            for span in BucketSize::ALL {
                assert_eq!(i64::from(span.bucket_of(id)), ms / span.ms());
            }
        }
        let noon = Timestamp::from_ms(12 * 3_600_000);
        let buckets =
            BucketSize::ALL.map(|span| (span.bucket(noon.plus_ms(-1)), span.bucket(noon)));
        assert_eq!(buckets, [(8_639, 8_640), (719, 720), (47, 48), (0, 0)]);
        assert_eq!(BucketSize::Minute.bucket(Timestamp::from_ms(-1)), 0);
    }
}
