//! Which names, addresses and keys may be those of devices? A set in memory (a Bloom filter) that
//! contains those of every device and, by chance, few others, so that a message of anybody else is
//! refused without a look-up in the store.
//!
//! It grows by layers of doubling size; a removed device stays until the next start. A place takes
//! 16 bits: 4 to 8 MiB for the name, the address and the key of each of a million devices.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::net::IpAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The entries of the first layer.
const FIRST_ENTRIES: usize = 1 << 16;

/// The most layers: entries for more devices than a machine has memory for.
const LAYERS_MAX: usize = 16;

/// The words of a block. All bits of an entry are in one block, a line of the processor's cache.
const BLOCK_WORDS: usize = 8;

/// The entries for which a block has 16 bits each.
const BLOCK_ENTRIES: usize = BLOCK_WORDS * 64 / 16;

/// The bits that an entry sets. With 16 bits for each entry, one of 300 others has the same.
const ENTRY_BITS: usize = 4;

/// What a message says about the device it is from.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum DeviceMark<'a> {
    /// Its endpoint name.
    Endpoint(&'a str),
    /// The address of its sender.
    Address(IpAddr),
    /// The first half of its key.
    Key([u8; 8]),
}

/// The marks of all devices. Threads share it: one adds what it commits, others ask.
pub struct KnownDevices {
    layers: [OnceLock<Layer>; LAYERS_MAX],
    is_complete: AtomicBool,
}

struct Layer {
    blocks: Box<[[AtomicU64; BLOCK_WORDS]]>,
    entries: AtomicUsize,
}

impl KnownDevices {
    /// Adds a mark of a device; before the device can be told to exist.
    pub fn add(&self, mark: DeviceMark<'_>) {
        let digest = digest(mark);
        if self.contains(digest) {
            return;
        }
        for (number, layer) in self.layers.iter().enumerate() {
            let layer = layer.get_or_init(|| Layer::of(FIRST_ENTRIES << number));
            // The last one takes more than it is made for, and is then right less often.
            if layer.has_room() || number + 1 == LAYERS_MAX {
                return layer.add(digest);
            }
        }
    }

    /// The marks of all devices are there: from now on others are known not to be.
    pub fn complete(&self) {
        self.is_complete.store(true, Ordering::Release);
    }

    /// Whether a device may have this mark. If not, none has it.
    pub fn may_have(&self, mark: DeviceMark<'_>) -> bool {
        !self.is_complete.load(Ordering::Acquire) || self.contains(digest(mark))
    }

    fn contains(&self, digest: u64) -> bool {
        let mut layers = self.layers.iter().map_while(OnceLock::get);
        layers.any(|layer| layer.contains(digest))
    }
}

/// Without devices, and not complete: every mark may be one of a device.
impl Default for KnownDevices {
    fn default() -> Self {
        Self {
            layers: [const { OnceLock::new() }; LAYERS_MAX],
            is_complete: AtomicBool::new(false),
        }
    }
}

impl fmt::Debug for KnownDevices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layers = self.layers.iter().map_while(OnceLock::get);
        let entries = layers.map(|layer| layer.entries.load(Ordering::Relaxed));
        f.debug_struct("KnownDevices")
            .field("marks", &entries.sum::<usize>())
            .field("is_complete", &self.is_complete)
            .finish()
    }
}

impl Layer {
    fn of(entries: usize) -> Self {
        let block = || [const { AtomicU64::new(0) }; BLOCK_WORDS];
        Self {
            blocks: (0..entries / BLOCK_ENTRIES).map(|_| block()).collect(),
            entries: AtomicUsize::new(0),
        }
    }

    fn has_room(&self) -> bool {
        self.entries.load(Ordering::Relaxed) < self.blocks.len() * BLOCK_ENTRIES
    }

    fn add(&self, digest: u64) {
        for (word, bit) in self.bits(digest) {
            word.fetch_or(bit, Ordering::Release);
        }
        self.entries.fetch_add(1, Ordering::Relaxed);
    }

    fn contains(&self, digest: u64) -> bool {
        let mut bits = self.bits(digest);
        bits.all(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
    }

    /// The bits of an entry: the block is chosen by the upper 28 bits of the digest, each bit in it
    /// by nine of the others.
    fn bits(&self, digest: u64) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let block = ((digest >> 36) as usize * self.blocks.len()) >> 28;
        let block = self.blocks.get(block).into_iter();
        block.flat_map(move |block| {
            (0..ENTRY_BITS).filter_map(move |number| {
                let place = (digest >> (9 * number)) as usize % (BLOCK_WORDS * 64);
                Some((block.get(place / 64)?, 1 << (place % 64)))
            })
        })
    }
}

fn digest(mark: DeviceMark<'_>) -> u64 {
    let mark = match mark {
        DeviceMark::Address(ip) => DeviceMark::Address(ip.to_canonical()),
        DeviceMark::Endpoint(_) | DeviceMark::Key(_) => mark,
    };
    let mut hasher = DefaultHasher::new();
    mark.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn until_it_is_complete_every_mark_may_be_one_of_a_device() {
        let known = KnownDevices::default();
        assert!(known.may_have(DeviceMark::Endpoint("meter-1")));
        known.complete();
        assert!(!known.may_have(DeviceMark::Endpoint("meter-1")));
    }

    #[test]
    fn the_kinds_of_marks_are_told_apart() {
        let known = KnownDevices::default();
        known.complete();
        known.add(DeviceMark::Endpoint("10.0.0.1"));
        known.add(DeviceMark::Key([7; 8]));
        assert!(known.may_have(DeviceMark::Endpoint("10.0.0.1")));
        assert!(known.may_have(DeviceMark::Key([7; 8])));
        assert!(!known.may_have(DeviceMark::Address([10, 0, 0, 1].into())));
    }

    #[test]
    fn all_marks_are_found_in_any_number_of_layers_and_few_others() {
        let known = KnownDevices::default();
        known.complete();
        let mark = |number: u64| DeviceMark::Key(number.to_be_bytes());
        let there = 5 * FIRST_ENTRIES as u64;
        for number in 0..there {
            known.add(mark(number));
            // A second time changes nothing.
            known.add(mark(number));
        }
        assert!((0..there).all(|number| known.may_have(mark(number))));
        let others = (there..2 * there).filter(|number| known.may_have(mark(*number)));
        let others = others.count() as u64;
        assert!(others < there / 50, "{others} of {there}");
        let layers = known.layers.iter().filter(|it| it.get().is_some());
        assert_eq!(layers.count(), 3);
    }
}
