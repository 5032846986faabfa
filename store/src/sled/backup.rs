//! How is the tree copied while the committer writes it?
//!
//! A scan of the tree is no snapshot. So the writes of each group that is committed meanwhile are
//! kept in a file, and follow the scanned rows in the backup. Applied in this order, the last write
//! of each key wins, and the result is the tree after the last of these groups.
//!
//! ```text
//!  begin: keep writes | scan: rows -> stream | end: keep none | kept writes -> stream | trailer
//! ```

pub(super) mod format;
pub(super) mod restore;

use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, Builder};

use sled::Db;
use tokio::sync::mpsc::{Sender, channel};

use self::format::BackupWriter;
use super::SledStore;
use super::fault::Fault;
use super::overlay::Overlay;
use crate::{Backup, BackupRefused, BackupStream, Unavailable};

/// The pieces that wait for a reader: half a mebibyte.
const PIECES_MAX: usize = 8;

/// The bytes of a piece.
const PIECE_BYTES: usize = 64 * 1_024;

/// What the committer keeps of its groups for the backup in progress; clones share it.
///
/// The committer holds it from before a group is applied until it is durable, so a backup begins
/// and ends between groups.
#[derive(Clone)]
pub(super) struct KeptWrites {
    /// Where writes are kept; the file has no name.
    path: PathBuf,
    kept: Arc<Mutex<Keeping>>,
}

/// Whether the writes of groups are kept.
pub(super) enum Keeping {
    /// There is no backup.
    No,
    /// For the backup in progress.
    Yes(BufWriter<File>),
    /// They were, and some are missing.
    Incomplete,
    /// Not any more, but the backup is still being sent.
    Sending,
}

impl KeptWrites {
    /// Those of the store in a directory.
    pub(super) fn of(store: &Path) -> Self {
        Self {
            path: store.join("backup"),
            kept: Arc::new(Mutex::new(Keeping::No)),
        }
    }

    /// Held while a group is applied and made durable.
    pub(super) fn hold(&self) -> MutexGuard<'_, Keeping> {
        let kept = self.kept.lock();
        kept.unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn begin(&self) -> Result<(), BackupRefused> {
        let mut kept = self.hold();
        let Keeping::No = *kept else {
            return Err(BackupRefused::UnderWay);
        };
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(true);
        let file = options.open(&self.path);
        let nameless = file.and_then(|file| fs::remove_file(&self.path).map(|()| file));
        let file = nameless.map_err(|error| {
            tracing::warn!(%error, "the backup cannot begin");
            BackupRefused::Unavailable
        })?;
        *kept = Keeping::Yes(BufWriter::new(file));
        Ok(())
    }

    /// Keeps nothing any more; returns what was kept.
    fn end(&self) -> Result<File, io::Error> {
        match std::mem::replace(&mut *self.hold(), Keeping::Sending) {
            Keeping::Yes(writes) => {
                let mut file = writes
                    .into_inner()
                    .map_err(io::IntoInnerError::into_error)?;
                file.rewind()?;
                Ok(file)
            }
            Keeping::No | Keeping::Incomplete | Keeping::Sending => Err(io::Error::other(
                "some of the writes meanwhile could not be kept",
            )),
        }
    }
}

impl Keeping {
    /// The writes of a group, encoded, if they are wanted.
    pub(super) fn encoded(&self, rows: &Overlay<'_>) -> Option<Vec<u8>> {
        let Self::Yes(_) = self else {
            return None;
        };
        let mut bytes = Vec::new();
        for (key, row) in rows.writes() {
            format::encode(&mut bytes, key, row);
        }
        Some(bytes)
    }

    /// Keeps the writes of a group that is durable.
    pub(super) fn keep(&mut self, encoded: &[u8]) {
        if let Self::Yes(writes) = self
            && let Err(error) = writes.write_all(encoded)
        {
            tracing::warn!(%error, "the backup is given up");
            *self = Self::Incomplete;
        }
    }

    /// Notes that a group may have been applied and is not kept.
    pub(super) fn miss(&mut self) {
        if let Self::Yes(_) = self {
            *self = Self::Incomplete;
        }
    }
}

impl Backup for SledStore {
    fn backup(&self) -> Result<BackupStream, BackupRefused> {
        if self.state.failed() || self.state.disk_full() {
            return Err(BackupRefused::Unavailable);
        }
        self.kept_writes.begin()?;
        let (pieces, stream) = channel(PIECES_MAX);
        let source = BackupSource {
            db: self.db.clone(),
            kept_writes: self.kept_writes.clone(),
            pieces,
        };
        let thread = Builder::new().name("store-backup".to_owned());
        match thread.spawn(move || source.run()) {
            Ok(_) => Ok(stream),
            Err(error) => {
                tracing::warn!(%error, "the backup cannot begin");
                Err(BackupRefused::Unavailable)
            }
        }
    }
}

/// Sends a backup. The next one may begin when this is dropped, also because its thread panicked or
/// was not started.
struct BackupSource {
    db: Db,
    kept_writes: KeptWrites,
    pieces: Sender<Result<Vec<u8>, Unavailable>>,
}

/// Why a backup ends early.
#[derive(Debug, thiserror::Error)]
enum Incomplete {
    #[error("nobody takes it")]
    Abandoned,
    #[error(transparent)]
    Unreadable(#[from] Fault),
    #[error(transparent)]
    Missing(#[from] io::Error),
}

impl BackupSource {
    fn run(self) {
        if let Err(why) = self.send() {
            tracing::warn!(%why, "a backup ended early");
            self.end_early();
        }
    }

    /// Reports that the backup is incomplete; nobody may be there to take that.
    fn end_early(&self) {
        self.pieces.blocking_send(Err(Unavailable)).ok();
    }

    fn send(&self) -> Result<(), Incomplete> {
        let mut writer = BackupWriter::begin();
        for row in self.db.iter() {
            let (key, row) = row.map_err(Fault::from)?;
            writer.row(&key, &row);
            if writer.pending() >= PIECE_BYTES {
                self.pass_on(&mut writer)?;
            }
        }
        let mut kept = self.kept_writes.end()?;
        loop {
            let mut bytes = Vec::with_capacity(PIECE_BYTES);
            let read = (&mut kept)
                .take(PIECE_BYTES as u64)
                .read_to_end(&mut bytes)?;
            if read == 0 {
                break;
            }
            writer.encoded(&bytes);
            self.pass_on(&mut writer)?;
        }
        writer.end();
        self.pass_on(&mut writer)
    }

    fn pass_on(&self, writer: &mut BackupWriter) -> Result<(), Incomplete> {
        let sent = self.pieces.blocking_send(Ok(writer.take()));
        sent.map_err(|_| Incomplete::Abandoned)
    }
}

impl Drop for BackupSource {
    fn drop(&mut self) {
        *self.kept_writes.hold() = Keeping::No;
        if thread::panicking() {
            self.end_early();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_whose_thread_panics_ends_early_and_the_next_one_may_begin() {
        let home = tempfile::tempdir().unwrap();
        let kept_writes = KeptWrites::of(home.path());
        assert_eq!(kept_writes.begin(), Ok(()));
        let (pieces, mut stream) = channel(PIECES_MAX);
        let source = BackupSource {
            db: sled::Config::new().temporary(true).open().unwrap(),
            kept_writes: kept_writes.clone(),
            pieces,
        };
        let panicked = thread::spawn(move || {
            let _source = source;
            panic!("a backup panics in a test");
        });
        assert!(panicked.join().is_err());
        assert_eq!(stream.blocking_recv(), Some(Err(Unavailable)));
        assert_eq!(stream.blocking_recv(), None);
        assert_eq!(kept_writes.begin(), Ok(()));
    }
}
