//! How many bytes of its rejected payloads may a device still have stored in the log today?
//!
//! The answer is a part of the device's record, so that neither unloading the device nor a restart
//! renews the quota, and a device that is not loaded keeps nothing in memory for it.

use crate::limits::DAY_MS;
use crate::moment::Timestamp;

/// A payload counts as a multiple of this: an entry takes space of its own in the log, and the
/// quota bounds the number of entries, too.
pub const LOG_QUOTA_UNIT: u32 = 256;

/// What a device has used of its quota. Compact, because every device has one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LogQuota {
    /// The day of the use (UTC), in days since 1970.
    day: u16,
    /// What was used on that day, in units of [`LOG_QUOTA_UNIT`].
    used: u16,
}

impl LogQuota {
    /// Restores what was used on a day, if anything.
    pub fn restored(day: u16, used: u16) -> Self {
        Self { day, used }
    }

    /// The day of the use, and how much it is; none if nothing was ever used.
    pub fn used(self) -> Option<(u16, u16)> {
        (self.used > 0).then_some((self.day, self.used))
    }

    /// Uses the quota for a payload. Returns whether the quota of `bytes_per_day` has room for it.
    pub(super) fn take(&mut self, now: Timestamp, bytes: usize, bytes_per_day: u32) -> bool {
        let today = now.as_ms().div_euclid(DAY_MS);
        let today = u16::try_from(today.max(0)).unwrap_or(u16::MAX);
        let before = if self.day == today { self.used } else { 0 };
        let unit = usize::try_from(LOG_QUOTA_UNIT).unwrap_or(usize::MAX);
        let units = u16::try_from(bytes.div_ceil(unit).max(1)).ok();
        let used = units.and_then(|units| before.checked_add(units));
        let fits = |used: &u16| u32::from(*used) * LOG_QUOTA_UNIT <= bytes_per_day;
        let Some(used) = used.filter(fits) else {
            return false;
        };
        *self = Self { day: today, used };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MORNING: Timestamp = Timestamp::from_ms(20_000 * DAY_MS);

    #[test]
    fn a_day_has_room_for_its_quota_and_the_next_day_begins_anew() {
        let mut quota = LogQuota::default();
        assert_eq!(quota.used(), None);
        assert!(quota.take(MORNING, 600, 1_024));
        assert_eq!(quota.used(), Some((20_000, 3)));
        assert!(
            !quota.take(MORNING, 257, 1_024),
            "two units are more than the rest"
        );
        assert!(
            quota.take(MORNING.plus_ms(DAY_MS - 1), 0, 1_024),
            "no payload is free"
        );
        assert!(!quota.take(MORNING.plus_ms(DAY_MS - 1), 1, 1_024));
        assert!(quota.take(MORNING.plus_ms(DAY_MS), 1_024, 1_024));
        assert_eq!(quota.used(), Some((20_001, 4)));
    }

    #[test]
    fn the_largest_quota_has_room_for_itself_and_none_for_nothing() {
        let largest = u32::from(u16::MAX) * LOG_QUOTA_UNIT;
        let bytes = usize::try_from(largest).unwrap();
        let mut quota = LogQuota::default();
        assert!(quota.take(MORNING, bytes, largest));
        assert!(!quota.take(MORNING, 1, u32::MAX));
        assert!(!LogQuota::default().take(MORNING, 1, 0));
        assert!(!LogQuota::default().take(MORNING, 1, LOG_QUOTA_UNIT - 1));
    }

    #[test]
    fn a_time_outside_the_calendar_has_a_quota_of_its_own() {
        for at_ms in [i64::MIN, -1, i64::MAX] {
            let mut quota = LogQuota::default();
            assert!(quota.take(Timestamp::from_ms(at_ms), 1, 256));
            assert!(!quota.take(Timestamp::from_ms(at_ms), 1, 256));
        }
    }
}
