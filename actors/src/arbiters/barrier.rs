//! Are all devices of this process restored?

use std::sync::atomic::{AtomicUsize, Ordering};

/// How many arbiters still restore devices since they began: one of them may have the device that
/// nobody knows.
#[derive(Debug, Default)]
pub(crate) struct StartupBarrier(AtomicUsize);

impl StartupBarrier {
    /// Records that an arbiter begins to restore its devices.
    pub(crate) fn note_begun(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that an arbiter has restored its devices, or ends.
    pub(crate) fn note_complete(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether all that began have.
    pub(crate) fn is_complete(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}
