//! How is room kept on the disk for the time when there is no other?

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use fs2::FileExt as _;

/// A file that takes room on the disk, to be given up when there is no other.
pub(super) struct ReserveFile {
    path: PathBuf,
    bytes: u64,
}

impl ReserveFile {
    /// The reserve file of the store in a directory; none if it has no bytes.
    pub(super) fn of(store: &Path, bytes: u64) -> Self {
        Self {
            path: store.join("reserve"),
            bytes,
        }
    }

    /// How much room it takes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gives the file up if less is free than it takes: opening a store writes a little.
    pub(super) fn make_way(&self, free: u64) {
        if free < self.bytes {
            self.give_up();
        }
    }

    /// Takes the room, unless it is taken. A file that cannot be made whole is none.
    pub(super) fn make(&self) {
        if self.bytes == 0 || self.path.exists() {
            return;
        }
        let file = File::create(&self.path);
        if let Err(error) = file.and_then(|file| file.allocate(self.bytes)) {
            tracing::warn!(%error, "the disk reserve cannot be allocated");
            self.give_up();
        }
    }

    /// Frees the room; returns whether it was taken.
    pub(super) fn give_up(&self) -> bool {
        fs::remove_file(&self.path).is_ok()
    }
}
