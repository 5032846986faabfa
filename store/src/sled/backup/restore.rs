//! How does a backup become a store again?
//!
//! It is written beside the place of the store and moved there when it is whole and durable: an
//! interrupted restore leaves no store.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use sled::Batch;

use super::super::committer::free_replaced;
use super::super::last_group;
use super::super::open::{self, OpenError};
use super::format::{BackupFault, BackupReader};
use crate::SledStore;

/// The rows that are written together.
const BATCH_ROWS: usize = 4_096;

/// Why a backup cannot be restored. The place of the store is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// There is a store already.
    #[error("{path} is not empty; a backup is restored only where no store is")]
    Occupied {
        /// Where the store should be.
        path: PathBuf,
    },
    /// The backup cannot be read.
    #[error("the backup cannot be restored: {0}")]
    Backup(#[from] BackupFault),
    /// The store cannot be written.
    #[error(transparent)]
    Store(#[from] OpenError),
}

impl SledStore {
    /// Restores a backup as the store in a directory; returns how many rows were read.
    pub fn restore(path: &Path, backup: impl Read) -> Result<u64, RestoreError> {
        let refused = |source| RestoreError::Store(open::refusal(path, source));
        if !is_free(path).map_err(refused)? {
            return Err(RestoreError::Occupied {
                path: path.to_path_buf(),
            });
        }
        let mut backup = BackupReader::begin(backup)?;
        let unfinished = path.with_extension("restoring");
        remove(&unfinished).map_err(refused)?;
        fs::create_dir_all(&unfinished).map_err(refused)?;
        let rows = write(&unfinished, &mut backup);
        if rows.is_err() {
            remove(&unfinished).map_err(refused)?;
        }
        let rows = rows?;
        if path.exists() {
            fs::remove_dir(path).map_err(refused)?;
        }
        fs::rename(&unfinished, path).map_err(refused)?;
        open::sync_directories(path, &path.join("rows")).map_err(refused)?;
        Ok(rows)
    }

    /// Reads a backup and checks that it is whole; returns how many rows it has.
    pub fn check_backup(backup: impl Read) -> Result<u64, BackupFault> {
        let mut backup = BackupReader::begin(backup)?;
        let mut rows = 0;
        while backup.next()?.is_some() {
            rows += 1;
        }
        Ok(rows)
    }
}

fn write(store: &Path, backup: &mut BackupReader<impl Read>) -> Result<u64, RestoreError> {
    let rows = store.join("rows");
    let db = open::open_tree(store, &rows, open::CACHE_BYTES)?;
    let unwritten = |error: sled::Error| RestoreError::Store(open::refusal(store, error.into()));
    let (mut batch, mut pending, mut written) = (Batch::default(), 0, 0);
    loop {
        let record = backup.next()?;
        if let Some(record) = &record {
            written += 1;
            pending += 1;
            match &record.value {
                Some(value) => batch.insert(record.key.as_slice(), value.as_slice()),
                None => batch.remove(record.key.as_slice()),
            }
        }
        if pending >= BATCH_ROWS || record.is_none() {
            db.apply_batch(std::mem::take(&mut batch))
                .map_err(unwritten)?;
            free_replaced(pending);
            pending = 0;
        }
        if record.is_none() {
            break;
        }
    }
    db.flush().map_err(unwritten)?;
    let synced = File::open(rows.join("db"))
        .and_then(|file| file.sync_all())
        .and_then(|()| last_group::note_whole(&store.join("last-group"), &db));
    synced.map_err(|source| RestoreError::Store(open::refusal(store, source)))?;
    Ok(written)
}

/// Whether nothing is there, or an empty directory.
fn is_free(path: &Path) -> io::Result<bool> {
    match fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
