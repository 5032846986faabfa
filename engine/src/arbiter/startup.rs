//! How far has an arbiter come in restoring its devices at a start?

use std::collections::HashSet;
use std::ops::RangeInclusive;

use crate::arbiter::effect::{StartupProgress, StoreLookup};
use crate::ids::DeviceKey;
use crate::moment::Timestamp;

/// Devices that are restored in one turn. The next page waits for its own turn, so that datagrams
/// and commands come first.
const PAGE_DEVICES: u32 = 256;

/// A start in progress.
#[derive(Debug)]
pub(super) struct Startup {
    begun_at: Timestamp,
    restored: u64,
    /// Devices that were unloaded since the current page was requested: the page is out of date for
    /// them.
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

    /// The query for the next page.
    pub(super) fn query_page(&mut self, keys: RangeInclusive<DeviceKey>) -> StoreLookup {
        self.left.clear();
        StoreLookup::Page(keys, PAGE_DEVICES)
    }

    /// Counts a device of a page. Returns whether the page is still up to date for it.
    pub(super) fn counts(&mut self, key: DeviceKey) -> bool {
        self.restored += 1;
        !self.left.contains(&key)
    }

    /// Notes that a device was unloaded.
    pub(super) fn note_left(&mut self, key: DeviceKey) {
        self.left.insert(key);
    }

    /// The number of devices restored.
    pub(super) fn restored(&self) -> u64 {
        self.restored
    }

    /// The progress, when the next page begins with this device.
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

    /// The end of the start.
    pub(super) fn restored_all(&self, now: Timestamp) -> StartupProgress {
        StartupProgress::Restored {
            restored: self.restored,
            took_ms: now.since_ms(self.begun_at),
        }
    }
}

/// The part of a key range before a key, from 0 to 1. Keys are digests, so it is also the part of
/// the devices.
fn part_before(key: DeviceKey, keys: &RangeInclusive<DeviceKey>) -> f64 {
    let place = |key: &DeviceKey| u64::from_be_bytes(key.prefix()) as f64;
    let (first, last) = (place(keys.start()), place(keys.end()));
    (place(&key) - first) / (last - first).max(1.0)
}
