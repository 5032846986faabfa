//! Which devices does an arbiter have in memory, and in what state is the actor of each?

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::arbiter::admission::CustomerSlot;
use crate::arbiter::input::DeviceInput;
use crate::ids::DeviceKey;
use crate::supervision::Child;

/// The actor of a device, or the inputs that wait for it.
pub(super) type Loaded<H, R> = Child<Mailbox<H>, Vec<DeviceInput<R>>>;

/// A running actor.
#[derive(Debug)]
pub(super) struct Mailbox<H> {
    /// Reaches the actor.
    pub(super) handle: H,
    /// The customer of the device.
    pub(super) customer: CustomerSlot,
    /// The number of inputs delivered: an actor that handled fewer is not idle.
    pub(super) delivered: u32,
}

/// The devices of an arbiter that are in memory.
#[derive(Debug)]
pub(super) struct DeviceTable<H, R> {
    /// Keys are digests, so their first bytes are as evenly distributed as any hash of them.
    device_by_prefix: ByPrefix<(DeviceKey, Loaded<H, R>)>,
}

type ByPrefix<T> = HashMap<[u8; 8], T, BuildHasherDefault<PrefixHasher>>;

impl<H, R> DeviceTable<H, R> {
    /// The device with this key; none for another device with the same prefix.
    pub(super) fn get(&self, key: DeviceKey) -> Option<&Loaded<H, R>> {
        let (found, loaded) = self.device_by_prefix.get(&key.prefix())?;
        (*found == key).then_some(loaded)
    }

    /// The same, mutable.
    pub(super) fn slot(&mut self, key: DeviceKey) -> Option<&mut Loaded<H, R>> {
        let (found, loaded) = self.device_by_prefix.get_mut(&key.prefix())?;
        (*found == key).then_some(loaded)
    }

    /// The device with this key prefix, with its key.
    pub(super) fn at(&self, prefix: [u8; 8]) -> Option<&(DeviceKey, Loaded<H, R>)> {
        self.device_by_prefix.get(&prefix)
    }

    /// Sets the state of a device and returns the previous one. Two devices with one prefix cannot
    /// both be in memory here: with 64 bits that happens to one fleet of a million in forty
    /// million, and the later device is not loaded.
    pub(super) fn put(&mut self, key: DeviceKey, loaded: Loaded<H, R>) -> Option<Loaded<H, R>> {
        let slot = self
            .device_by_prefix
            .entry(key.prefix())
            .or_insert_with(|| (key, Child::Parked));
        (slot.0 == key).then(|| std::mem::replace(&mut slot.1, loaded))
    }

    /// Removes a device.
    pub(super) fn remove(&mut self, key: DeviceKey) -> Option<Loaded<H, R>> {
        self.get(key)?;
        let (_, loaded) = self.device_by_prefix.remove(&key.prefix())?;
        Some(loaded)
    }

    /// The devices in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (DeviceKey, &Loaded<H, R>)> {
        self.device_by_prefix
            .values()
            .map(|(key, loaded)| (*key, loaded))
    }
}

impl<H, R> Default for DeviceTable<H, R> {
    fn default() -> Self {
        Self {
            device_by_prefix: HashMap::default(),
        }
    }
}

/// Uses the first eight bytes of a digest as their own hash.
#[derive(Debug, Default)]
pub(super) struct PrefixHasher(u64);

impl Hasher for PrefixHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mut prefix = [0; 8];
        for (to, from) in prefix.iter_mut().zip(bytes) {
            *to = *from;
        }
        self.0 = u64::from_be_bytes(prefix);
    }

    fn write_usize(&mut self, _length: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}
