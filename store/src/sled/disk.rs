//! Is there room on the disk?
//!
//! sled stops for good when it meets a full disk. So the committer checks before every group and
//! refuses it while less than a reserve is free. Another program may fill the disk at once all the
//! same: then the store has failed, and a file of reserved bytes is given up when it is opened
//! again, so that it can be read and old data removed. Files that are gone have no room either.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::reserve_file::ReserveFile;

/// Reads the free bytes of the file system of a path.
pub(super) type FreeBytes = Box<dyn Fn(&Path) -> io::Result<u64> + Send>;

/// Its device and its number there.
type FileIdentity = (u64, u64);

/// The file system the store is on.
pub(super) struct Disk {
    path: PathBuf,
    /// The file with the rows, as it was when the store was opened.
    rows: io::Result<FileIdentity>,
    reserve_bytes: u64,
    file: ReserveFile,
    free_bytes: FreeBytes,
    /// Whether the last question could not be answered, so that this is logged once.
    is_gone: bool,
    /// What the last question was answered with.
    seen: DiskUse,
}

/// How full the disk is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DiskUse {
    /// The free bytes of the file system.
    pub(super) free_bytes: u64,
    /// The size of the file with the rows.
    pub(super) rows_bytes: u64,
}

impl Disk {
    /// The file system of a path, of which a reserve stays free, and some more is in a file.
    pub(super) fn new(
        path: &Path,
        (reserve_bytes, file): (u64, ReserveFile),
        free_bytes: FreeBytes,
    ) -> Self {
        Self {
            path: path.to_path_buf(),
            rows: file_of_rows(path).map(|file| identity_of(&file)),
            reserve_bytes,
            file,
            free_bytes,
            is_gone: false,
            seen: DiskUse::default(),
        }
    }

    /// How full it was when it was last looked at.
    pub(super) fn seen(&self) -> DiskUse {
        self.seen
    }

    /// Whether new things may be written. If there is more room than needed, the reserve file is
    /// made again.
    pub(super) fn has_room(&mut self) -> bool {
        let free = self.free();
        if free >= self.reserve_bytes.saturating_add(self.file.bytes()) {
            self.file.make();
        }
        free >= self.reserve_bytes
    }

    /// Whether a service may take the store over and remove what is old: that writes a little, too,
    /// and must go on when adding may not. The reserve file is given up for it.
    pub(super) fn has_room_to_tidy(&mut self) -> bool {
        let half = self.reserve_bytes / 2;
        let needed = match self.file.bytes() {
            0 => half,
            bytes => half.min(bytes / 2),
        };
        self.free() >= needed || self.file.give_up() && self.free() >= needed
    }

    fn free(&mut self) -> u64 {
        let is_in_place = self.check_place();
        self.seen.free_bytes = 0;
        match is_in_place.and_then(|()| (self.free_bytes)(&self.path)) {
            Ok(free) => {
                self.is_gone = false;
                self.seen.free_bytes = free;
                free
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_gone, true) {
                    tracing::error!(%error, "the free disk space cannot be read");
                }
                0
            }
        }
    }

    /// What is written to files that were moved or deleted would not be found again.
    fn check_place(&mut self) -> io::Result<()> {
        let Ok(rows) = &self.rows else {
            return Ok(());
        };
        let file = file_of_rows(&self.path)?;
        self.seen.rows_bytes = file.len();
        match identity_of(&file) == *rows {
            true => Ok(()),
            false => Err(io::Error::new(
                ErrorKind::NotFound,
                "the files of the store were replaced",
            )),
        }
    }
}

fn file_of_rows(store: &Path) -> io::Result<Metadata> {
    fs::metadata(store.join("rows/db"))
}

fn identity_of(file: &Metadata) -> FileIdentity {
    (file.dev(), file.ino())
}

/// Asks the file system.
pub(super) fn free_bytes() -> FreeBytes {
    Box::new(|path| fs2::available_space(path))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn the_reserve_file_is_made_in_plenty_and_given_up_in_need() {
        let home = tempfile::tempdir().unwrap();
        let reserve = || ReserveFile::of(home.path(), 4_000);
        let free = Arc::new(AtomicU64::new(0));
        let asked = Arc::clone(&free);
        let reads = Box::new(move |_: &Path| Ok(asked.load(Ordering::SeqCst)));
        let mut disk = Disk::new(home.path(), (10_000, reserve()), reads);
        let file = home.path().join("reserve");
        for (bytes, has_room, is_there) in [
            (13_999, true, false),
            (14_000, true, true),
            (10_000, true, true),
            (9_999, false, true),
        ] {
            free.store(bytes, Ordering::SeqCst);
            assert_eq!((disk.has_room(), file.exists()), (has_room, is_there));
        }
        assert_eq!(fs::metadata(&file).unwrap().len(), 4_000);
        free.store(2_000, Ordering::SeqCst);
        assert!(disk.has_room_to_tidy() && file.exists());
        free.store(1_999, Ordering::SeqCst);
        assert!(!disk.has_room_to_tidy(), "this disk frees nothing");
        assert!(!file.exists());

        free.store(u64::MAX, Ordering::SeqCst);
        assert!(disk.has_room());
        reserve().make_way(4_000);
        assert!(file.exists());
        reserve().make_way(3_999);
        assert!(!file.exists());
    }
}
