//! Which devices have sent a body in part (RFC 7959), and whose is dropped when all need too much
//! memory? The oldest: its device has had the most time to finish it.

use std::collections::{BTreeMap, HashMap};

use crate::ids::DeviceKey;

/// The bodies that the devices of an arbiter have sent in part.
#[derive(Debug)]
pub(super) struct UnfinishedBodies {
    bytes_max: usize,
    /// Bytes of those that are not given up.
    bytes: usize,
    unfinished_by_device: HashMap<DeviceKey, Unfinished>,
    /// The devices whose bodies are not given up, in the order in which they began.
    device_by_turn: BTreeMap<u64, DeviceKey>,
    turns: u64,
}

/// The unfinished bodies of one device.
#[derive(Debug)]
struct Unfinished {
    turn: u64,
    bytes: usize,
    is_given_up: bool,
}

impl UnfinishedBodies {
    /// None yet, and this many bytes at most.
    pub(super) fn within(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            bytes: 0,
            unfinished_by_device: HashMap::new(),
            device_by_turn: BTreeMap::new(),
            turns: 0,
        }
    }

    /// Notes how many bytes those of a device occupy; zero if none is left.
    pub(super) fn note(&mut self, device: DeviceKey, bytes: usize) {
        let before = self.unfinished_by_device.remove(&device);
        if let Some(before) = &before {
            self.discount(before);
        }
        if bytes == 0 {
            return;
        }
        let unfinished = match before {
            Some(before) => Unfinished { bytes, ..before },
            None => {
                self.turns += 1;
                Unfinished {
                    turn: self.turns,
                    bytes,
                    is_given_up: false,
                }
            }
        };
        self.count(device, unfinished);
    }

    /// Whether some have to be given up.
    pub(super) fn are_too_many(&self) -> bool {
        self.bytes > self.bytes_max
    }

    /// Gives up those of the device that began first, if they are too many.
    pub(super) fn give_up_oldest(&mut self) -> Option<DeviceKey> {
        if !self.are_too_many() {
            return None;
        }
        let (_, device) = self.device_by_turn.pop_first()?;
        let unfinished = self.unfinished_by_device.get_mut(&device)?;
        unfinished.is_given_up = true;
        self.bytes = self.bytes.saturating_sub(unfinished.bytes);
        Some(device)
    }

    /// Counts those of a device again that were given up and could not be dropped.
    pub(super) fn keep(&mut self, device: DeviceKey) {
        if let Some(mut unfinished) = self.unfinished_by_device.remove(&device) {
            self.discount(&unfinished);
            unfinished.is_given_up = false;
            self.count(device, unfinished);
        }
    }

    fn count(&mut self, device: DeviceKey, unfinished: Unfinished) {
        if !unfinished.is_given_up {
            self.bytes = self.bytes.saturating_add(unfinished.bytes);
            self.device_by_turn.insert(unfinished.turn, device);
        }
        self.unfinished_by_device.insert(device, unfinished);
    }

    fn discount(&mut self, unfinished: &Unfinished) {
        if !unfinished.is_given_up {
            self.bytes = self.bytes.saturating_sub(unfinished.bytes);
            self.device_by_turn.remove(&unfinished.turn);
        }
    }
}
