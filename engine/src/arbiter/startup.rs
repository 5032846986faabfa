//! How far has an arbiter come with restoring its devices at a start?

use std::collections::HashSet;
use std::ops::RangeInclusive;

use crate::arbiter::effect::{StartupProgress, StoreLookup};
use crate::ids::DeviceKey;
use crate::moment::Timestamp;

/// Devices that are restored in one turn; the next page waits for it, so that what devices and
/// callers want comes first.
const PAGE_DEVICES: u32 = 256;

/// A start that is under way.
#[derive(Debug)]
pub(super) struct Startup {
    begun_at: Timestamp,
    restored: u64,
    /// Which devices left the memory since the page under way was asked for: what it says of them
    /// is out of date.
    left: HashSet<DeviceKey>,
}

impl Startup {
    /// A start that begins now.
    pub(super) fn begun_at(now: Timestamp) -> Self {
        Self {
            begun_at: now,
            restored: 0,
            left: HashSet::new(),
        }
    }

    /// Asks for the next page.
    pub(super) fn ask_page(&mut self, keys: RangeInclusive<DeviceKey>) -> StoreLookup {
        self.left.clear();
        StoreLookup::Page(keys, PAGE_DEVICES)
    }

    /// Counts a device of a page; whether what the page says of it is still true.
    pub(super) fn counts(&mut self, key: DeviceKey) -> bool {
        self.restored += 1;
        !self.left.contains(&key)
    }

    /// Notes that a device left the memory.
    pub(super) fn note_left(&mut self, key: DeviceKey) {
        self.left.insert(key);
    }

    /// How many devices were restored.
    pub(super) fn restored(&self) -> u64 {
        self.restored
    }

    /// How far it has come: to the devices from this one on.
    pub(super) fn progress(
        &self,
        next: DeviceKey,
        keys: &RangeInclusive<DeviceKey>,
    ) -> StartupProgress {
        StartupProgress::Underway {
            restored: self.restored,
            part: part_before(next, keys),
        }
    }

    /// Its end.
    pub(super) fn restored_all(&self, now: Timestamp) -> StartupProgress {
        StartupProgress::Restored {
            restored: self.restored,
            took_ms: now.since_ms(self.begun_at),
        }
    }
}

/// Which part of a range of keys lies before one of them, from 0 to 1: keys are digests, so the
/// same part of the devices does.
fn part_before(key: DeviceKey, keys: &RangeInclusive<DeviceKey>) -> f64 {
    let place = |key: &DeviceKey| u64::from_be_bytes(key.prefix()) as f64;
    let (first, last) = (place(keys.start()), place(keys.end()));
    (place(&key) - first) / (last - first).max(1.0)
}
