//! Is there room on the disk?
//!
//! sled stops for good when it meets a full disk, so the committer checks before every group and
//! refuses it while less than a reserve is free.

use std::io;
use std::path::{Path, PathBuf};

/// Reads the free bytes of the file system of a path.
pub(super) type FreeBytes = Box<dyn Fn(&Path) -> io::Result<u64> + Send>;

/// The file system the store is on.
pub(super) struct Disk {
    path: PathBuf,
    reserve_bytes: u64,
    free_bytes: FreeBytes,
}

impl Disk {
    /// The file system of a path, of which a reserve stays free.
    pub(super) fn new(path: &Path, reserve_bytes: u64, free_bytes: FreeBytes) -> Self {
        Self {
            path: path.to_path_buf(),
            reserve_bytes,
            free_bytes,
        }
    }

    /// Whether new things may be written.
    pub(super) fn has_room(&self) -> bool {
        self.has_free(self.reserve_bytes)
    }

    /// Whether a service may take the store over and remove what is old: that writes a little, too,
    /// and must go on when adding may not.
    pub(super) fn has_room_to_tidy(&self) -> bool {
        self.has_free(self.reserve_bytes / 2)
    }

    fn has_free(&self, bytes: u64) -> bool {
        match (self.free_bytes)(&self.path) {
            Ok(free) => free >= bytes,
            Err(error) => {
                tracing::error!(%error, "the free disk space cannot be read");
                false
            }
        }
    }
}

/// Asks the file system.
pub(super) fn free_bytes() -> FreeBytes {
    Box::new(|path| fs2::available_space(path))
}
