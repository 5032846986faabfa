//! Which addresses are those of a device? A cache of bounded size, for devices that are found by
//! their address with each message.

use std::net::IpAddr;

/// Addresses in the cache: half a mebibyte.
const SLOTS: usize = 1 << 16;

/// The addresses that were found last. One that is forgotten, or whose device was removed, changes
/// only whether a message is handled during a flood.
#[derive(Debug)]
pub(super) struct KnownAddresses {
    digests: Box<[u64]>,
}

impl Default for KnownAddresses {
    fn default() -> Self {
        Self {
            digests: vec![0; SLOTS].into(),
        }
    }
}

impl KnownAddresses {
    /// Notes an address.
    pub(super) fn note(&mut self, ip: IpAddr) {
        let digest = super::digest(&ip);
        if let Some(slot) = self.digests.get_mut(place(digest)) {
            *slot = digest;
        }
    }

    /// Whether an address was noted, as far as is remembered.
    pub(super) fn has(&self, ip: IpAddr) -> bool {
        let digest = super::digest(&ip);
        self.digests.get(place(digest)) == Some(&digest)
    }
}

fn place(digest: u64) -> usize {
    usize::try_from(digest >> 48).expect("sixteen bits")
}
