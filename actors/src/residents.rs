//! Who lives here: the devices of an arbiter by key, and what state their actor is in.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::hint::black_box;

use actix::Addr;
use engine::ids::DeviceKey;

use crate::device::{DeviceActor, INPUTS_MAX, Input};

/// A device of this arbiter.
pub(crate) enum Resident {
    /// Its actor runs.
    Live(Live),
    /// It is being brought back from the store; its inputs wait.
    Restoring(Vec<Input>),
    /// Its actor fell over again and again.
    Parked,
}

/// A running actor.
pub(crate) struct Live {
    pub(crate) actor: Addr<DeviceActor>,
    /// Tells this actor from the device's earlier ones.
    pub(crate) generation: u32,
    /// How many inputs it was sent.
    pub(crate) sent: u64,
}

/// An input that found no place.
pub(crate) struct Crowded(pub(crate) Input);

impl Resident {
    /// Hands an input to the device, now or when it is back.
    pub(crate) fn hand(&mut self, input: Input) -> Result<(), Crowded> {
        match self {
            Self::Live(live) => live.hand(input),
            Self::Restoring(waiting) if waiting.len() < INPUTS_MAX => {
                waiting.push(input);
                Ok(())
            }
            Self::Restoring(_) | Self::Parked => Err(Crowded(input)),
        }
    }
}

impl Live {
    fn hand(&mut self, input: Input) -> Result<(), Crowded> {
        match self.actor.try_send(input) {
            Ok(()) => {
                self.sent += 1;
                Ok(())
            }
            Err(error) => Err(Crowded(error.into_inner())),
        }
    }
}

/// The devices of an arbiter.
#[derive(Default)]
pub(crate) struct Residents {
    /// Keys are digests, so their first bytes spread as well as any hash of them.
    by_prefix: HashMap<[u8; 8], (DeviceKey, Resident), BuildHasherDefault<PrefixHasher>>,
}

impl Residents {
    /// The device with this key; nothing for another that shares its prefix.
    pub(crate) fn get(&mut self, key: DeviceKey) -> Option<&mut Resident> {
        let (found, resident) = self.by_prefix.get_mut(&key.prefix())?;
        (*found == key).then_some(resident)
    }

    /// The key of the device whose key begins so.
    pub(crate) fn key_at(&self, prefix: [u8; 8]) -> Option<DeviceKey> {
        self.by_prefix.get(&prefix).map(|(key, _)| *key)
    }

    /// Fetches what handing inputs to these devices will look at. In a large fleet none of it is in
    /// the processor's cache, and fetches that do not wait for each other overlap.
    pub(crate) fn bring_near(&self, prefixes: impl Iterator<Item = [u8; 8]> + Clone) {
        let live = |prefix: [u8; 8]| match self.by_prefix.get(&prefix) {
            Some((_, Resident::Live(live))) => Some(live),
            Some((_, Resident::Restoring(_) | Resident::Parked)) | None => None,
        };
        let found = prefixes.clone().filter_map(live).count();
        let connected = prefixes
            .filter_map(live)
            .filter(|live| live.actor.connected());
        black_box((found, connected.count()));
    }

    /// Puts a device in a state. Two devices of one prefix cannot both live here; with 64 bits
    /// that befalls one fleet of a million in forty million, and the later device stays out.
    pub(crate) fn put(&mut self, key: DeviceKey, resident: Resident) {
        let slot = self
            .by_prefix
            .entry(key.prefix())
            .or_insert_with(|| (key, Resident::Parked));
        if slot.0 == key {
            slot.1 = resident;
        }
    }

    /// Lets a device move out.
    pub(crate) fn remove(&mut self, key: DeviceKey) {
        if self.get(key).is_some() {
            self.by_prefix.remove(&key.prefix());
        }
    }
}

/// Takes the eight bytes of a digest as their own hash.
#[derive(Default)]
pub(crate) struct PrefixHasher(u64);

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
