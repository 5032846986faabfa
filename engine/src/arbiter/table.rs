//! Which devices does an arbiter have in memory, and in what state is the actor of each?

use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::arbiter::admission::CustomerSlot;
use crate::arbiter::input::DeviceInput;
use crate::ids::DeviceKey;
use crate::indexed_map::IndexedMap;
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
    loaded_by_prefix: IndexedMap<ByPrefix, Loaded<H, R>, BuildHasherDefault<PrefixHasher>>,
}

/// A device, which is the same as any other with its prefix.
#[derive(Clone, Copy, Debug)]
struct ByPrefix(DeviceKey);

impl<H, R> DeviceTable<H, R> {
    /// The device with this key; none for another device with the same prefix.
    pub(super) fn get(&self, key: DeviceKey) -> Option<&Loaded<H, R>> {
        let (ByPrefix(found), loaded) = self.loaded_by_prefix.entry(&ByPrefix(key))?;
        (*found == key).then_some(loaded)
    }

    /// The same, mutable.
    pub(super) fn slot(&mut self, key: DeviceKey) -> Option<&mut Loaded<H, R>> {
        let (ByPrefix(found), loaded) = self.loaded_by_prefix.entry_mut(&ByPrefix(key))?;
        (*found == key).then_some(loaded)
    }

    /// The device with this key prefix, with its key.
    pub(super) fn at(&self, prefix: [u8; 8]) -> Option<(DeviceKey, &Loaded<H, R>)> {
        let any = ByPrefix(DeviceKey::with_prefix(prefix));
        let (ByPrefix(found), loaded) = self.loaded_by_prefix.entry(&any)?;
        Some((*found, loaded))
    }

    /// Sets the state of a device and returns the previous one. Two devices with one prefix cannot
    /// both be in memory here: with 64 bits that happens to one fleet of a million in forty
    /// million, and the later device is not loaded.
    pub(super) fn put(&mut self, key: DeviceKey, loaded: Loaded<H, R>) -> Option<Loaded<H, R>> {
        match self.loaded_by_prefix.entry_mut(&ByPrefix(key)) {
            Some((ByPrefix(found), before)) => {
                (*found == key).then(|| std::mem::replace(before, loaded))
            }
            None => {
                self.loaded_by_prefix.insert(ByPrefix(key), loaded);
                Some(Child::Parked)
            }
        }
    }

    /// Removes a device.
    pub(super) fn remove(&mut self, key: DeviceKey) -> Option<Loaded<H, R>> {
        self.get(key)?;
        self.loaded_by_prefix.remove(&ByPrefix(key))
    }

    /// The devices in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (DeviceKey, &Loaded<H, R>)> {
        let entries = self.loaded_by_prefix.iter();
        entries.map(|(ByPrefix(key), loaded)| (*key, loaded))
    }
}

impl<H, R> Default for DeviceTable<H, R> {
    fn default() -> Self {
        Self {
            loaded_by_prefix: IndexedMap::default(),
        }
    }
}

impl PartialEq for ByPrefix {
    fn eq(&self, other: &Self) -> bool {
        self.0.prefix() == other.0.prefix()
    }
}

impl Eq for ByPrefix {}

impl Hash for ByPrefix {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0.prefix());
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

    fn finish(&self) -> u64 {
        self.0
    }
}
