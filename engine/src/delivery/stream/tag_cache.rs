//! Which devices pass the tags of a filter, as far as that was read not long ago?

use std::collections::HashMap;

use crate::ids::DeviceKey;
use crate::limits::{STREAM_DEVICES_MAX, STREAM_TAGS_MS};
use crate::moment::Timestamp;

/// What is known of devices.
#[derive(Debug, Default)]
pub(super) struct TagCache {
    known_by_device: HashMap<DeviceKey, KnownTags>,
}

#[derive(Clone, Copy, Debug)]
struct KnownTags {
    passes: bool,
    read_at: Timestamp,
}

impl TagCache {
    /// Whether a device passes; none if that has to be read.
    pub(super) fn passes(&self, device: DeviceKey, now: Timestamp) -> Option<bool> {
        let known = self.known_by_device.get(&device)?;
        (now.since_ms(known.read_at) < STREAM_TAGS_MS).then_some(known.passes)
    }

    /// Remembers whether a device passes. What was read at another time is forgotten first if there
    /// is no room, so that what is read for one page stays.
    pub(super) fn learn(&mut self, device: DeviceKey, passes: bool, read_at: Timestamp) {
        if self.known_by_device.len() >= STREAM_DEVICES_MAX {
            self.known_by_device
                .retain(|_, known| known.read_at == read_at);
        }
        let known = KnownTags { passes, read_at };
        self.known_by_device.insert(device, known);
    }
}
