//! How is a store opened, and what prevents that?

use std::cell::Cell;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::thread;
use std::time::{Duration, Instant};

use engine::limits::LAST_VALUES_MAX;
use engine::moment::Timestamp;
use sled::{Db, IVec};

use super::epochs::Epochs;
use super::fault::Fault;
use super::key;
use super::last_group::LastGroup;
use super::ledger::Ledger;
use super::reserve_file::ReserveFile;
use crate::Loss;
use crate::record::number;

/// The format of the whole store: which tables there are and what their keys mean. A store of
/// another format is refused; records have versions of their own.
///
/// Format 1 had no counts of the log and its entries in another order; up to format 3 an event did
/// not contain the ids of its device; up to format 4 devices were not found by their addresses, nor
/// were the protocols stored that they had used; up to format 5 an API client had one secret; up
/// to format 6 each event had rows of its own; up to format 7 each entry of the log was listed by
/// its SIM and its age; up to format 8 an entry was stored as it is, a device had one key, every
/// API client was one of a customer, and SMS were not found by the message ids of their parts; up
/// to format 9 the service had no key of its own, and there were no firmware images and campaigns;
/// up to format 10 the newest events were kept under one number for all devices, and each name of a
/// device had a row of its own; up to format 11 each last known value had one; up to format 12 the
/// requests of a device were counted and listed by their last changes, each final one had a row by
/// its age, and one in progress was listed by its last change. No release wrote them.
pub(super) const FORMAT: u64 = 13;

/// The memory sled uses for the tree: enough for the indexes of a million devices, and fixed,
/// because sled's own default of 1 GiB is more than a small machine has.
pub(super) const CACHE_BYTES: u64 = 256 * 1_024 * 1_024;

/// The batches that may be queued for the committer: a quarter of a second of its work. One more is
/// refused; new work is refused earlier.
const QUEUE_MAX: usize = 8_192;

/// What stays free on the disk: the segments a group may open, the page table sled writes when it
/// is opened again, and room for an operator to work in.
const DISK_RESERVE_BYTES: u64 = 256 * 1_024 * 1_024;

/// sled's threads may hold its file for a moment after it was closed in this process.
const LINGER_MAX: Duration = Duration::from_secs(10);

/// Where the store is and how much it may take.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory of the store, and of nothing else.
    pub path: PathBuf,
    /// How much of it is cached in memory.
    pub cache_bytes: u64,
    /// How many batches may be queued.
    pub queue_max: usize,
    /// How much of the disk stays free: with less, commits are refused.
    pub disk_reserve_bytes: u64,
    /// How much of the disk a file takes that is given up when the disk is full; 0 for none.
    pub reserve_file_bytes: u64,
    /// The resources of a device whose last value is stored.
    pub last_values_max: u32,
    /// Whether a store is opened that has lost what was durable.
    pub accept_loss: bool,
    /// The time.
    pub now: fn() -> Timestamp,
}

impl Options {
    /// The default options, for a store in this directory.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            cache_bytes: CACHE_BYTES,
            queue_max: QUEUE_MAX,
            disk_reserve_bytes: DISK_RESERVE_BYTES,
            reserve_file_bytes: 0,
            last_values_max: LAST_VALUES_MAX,
            accept_loss: false,
            now: Timestamp::default,
        }
    }
}

/// How long opening waits for a store that is in use: a killed process is gone only once its memory
/// is freed, and whoever starts the next one should not have to know.
const LEAVING_FOR: Duration = Duration::from_secs(3);

/// How often opening checks whether the store is free.
const LEAVING_LOOK: Duration = Duration::from_millis(50);

/// Why a store cannot be opened. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error("the store in {path} is in use by another process")]
    Held {
        /// Where it is.
        path: PathBuf,
    },
    /// There is none, and none is to be created.
    #[error("there is no store in {path}")]
    Absent {
        /// Where it should be.
        path: PathBuf,
    },
    /// A newer version of signalbox wrote it.
    #[error(
        "the store in {path} was written by a newer version of signalbox: it has format {found} \
         and this version reads up to {known}"
    )]
    Newer {
        /// Where it is.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// The newest format known.
        known: u64,
    },
    /// A version of signalbox from before the first release wrote it.
    #[error(
        "the store in {path} has format {found}, which no release of signalbox wrote and this \
         version cannot read: begin with an empty directory"
    )]
    Older {
        /// Where it is.
        path: PathBuf,
        /// Its format.
        found: u64,
    },
    /// Its files are not what was written.
    #[error("the store in {path} is damaged: {detail}; restore a backup")]
    Damaged {
        /// Where it is.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// What was durable is missing from its end.
    #[error(
        "the store in {path} has lost {loss} that were durable: its files were damaged, or \
         replaced by older ones. Restore a backup, or start with --accept-loss to go on without \
         them"
    )]
    EndLost {
        /// Where it is.
        path: PathBuf,
        /// What is missing.
        loss: Loss,
    },
    /// It is a part of a store that is moved here.
    #[error(
        "the store in {path} is the part of one whose migration has not ended: run `signalbox \
         migrate` again, or remove the directory"
    )]
    Unfinished {
        /// Where it is.
        path: PathBuf,
    },
    /// The process may not use the directory.
    #[error("no permission to use {path} as a store")]
    Forbidden {
        /// Where it should be.
        path: PathBuf,
    },
    /// The path leads to something else.
    #[error("{path} is not a directory, so no store can be there")]
    NotADirectory {
        /// Where it should be.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("the store in {path} cannot be opened: {source}")]
    Io {
        /// Where it should be.
        path: PathBuf,
        /// Its error.
        source: io::Error,
    },
}

/// The files of a store that is open.
pub(super) struct Opened {
    /// The tree.
    pub(super) db: Db,
    /// The file that holds its bytes, to be fsynced.
    pub(super) file: File,
    /// Keeps other processes out while it is open.
    pub(super) lock: File,
    /// The epochs of the store.
    pub(super) epochs: Epochs,
    /// The committer's view of the stored events.
    pub(super) ledger: Ledger,
    /// The last group of commits.
    pub(super) last_group: LastGroup,
    /// What was lost, if that is accepted.
    pub(super) lost: Option<Loss>,
}

/// Opens the files of a store, and creates them if they do not exist.
pub(super) fn open(options: &Options) -> Result<Opened, OpenError> {
    let path = options.path.as_path();
    let refused = |source| refusal(path, source);
    fs::create_dir_all(path).map_err(refused)?;
    let lock = lock(path)?;
    let free = fs2::available_space(path).map_err(refused)?;
    ReserveFile::of(path, options.reserve_file_bytes).make_way(free);
    let rows = path.join("rows");
    remove_unfinished(&rows).map_err(refused)?;
    let db = open_tree(path, &rows, options.cache_bytes)?;
    let file = File::open(rows.join("db")).map_err(refused)?;
    check_format(path, &db)?;
    let unreadable = |fault: Fault| damaged(path, &fault.to_string());
    let epochs = Epochs::load(&db).map_err(unreadable)?;
    let values_max = Some(options.last_values_max);
    let ledger = Ledger::load(&db, (options.now)(), values_max).map_err(unreadable)?;
    let (mut last_group, lost) =
        LastGroup::open(&path.join("last-group"), &db, options.now).map_err(unreadable)?;
    if let Some(loss) = lost {
        if !options.accept_loss {
            let path = path.to_path_buf();
            return Err(OpenError::EndLost { path, loss });
        }
        tracing::error!(store = %path.display(), "lost, and accepted by --accept-loss: {loss}");
    }
    last_group.note();
    last_group.sync();
    file.sync_all().map_err(refused)?;
    sync_directories(path, &rows).map_err(refused)?;
    Ok(Opened {
        db,
        file,
        lock,
        epochs,
        ledger,
        last_group,
        lost,
    })
}

/// Opens the rows of a store and nothing else, and keeps other processes out.
pub(super) fn open_offline(path: &Path, cache_bytes: u64) -> Result<(Db, File), OpenError> {
    let rows = path.join("rows");
    let log = fs::metadata(rows.join("db"));
    if log.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        let path = path.to_path_buf();
        return Err(OpenError::Absent { path });
    }
    let lock = lock(path)?;
    remove_unfinished(&rows).map_err(|source| refusal(path, source))?;
    let db = open_tree(path, &rows, cache_bytes)?;
    check_format(path, &db)?;
    Ok((db, lock))
}

/// Opens the rows of a store that is being written by a migration, or none yet, and keeps other
/// processes out; the file is that with the rows. The caller checks that there is no other store.
pub(super) fn open_unfinished(
    path: &Path,
    cache_bytes: u64,
) -> Result<(Db, File, File), OpenError> {
    let refused = |source| refusal(path, source);
    fs::create_dir_all(path).map_err(refused)?;
    let lock = lock(path)?;
    let rows = path.join("rows");
    remove_unfinished(&rows).map_err(refused)?;
    let db = open_tree(path, &rows, cache_bytes)?;
    let file = File::open(rows.join("db")).map_err(refused)?;
    Ok((db, lock, file))
}

/// Makes the directories of a new store durable.
pub(super) fn sync_created(path: &Path) -> Result<(), OpenError> {
    sync_directories(path, &path.join("rows")).map_err(|source| refusal(path, source))
}

/// The row with the format of a store of this version.
pub(super) fn format_row() -> IVec {
    IVec::from(&number::write_epoch(FORMAT))
}

fn lock(path: &Path) -> Result<File, OpenError> {
    let refused = |source| refusal(path, source);
    let lock = File::create(path.join("lock")).map_err(refused)?;
    let until = Instant::now() + LEAVING_FOR;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(LEAVING_LOOK),
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::Held {
                    path: path.to_path_buf(),
                });
            }
            Err(TryLockError::Error(source)) => return Err(refused(source)),
        }
    }
}

/// Removes files that sled was writing when it was stopped while opening, because it would call the
/// store corrupt over them: a snapshot (the one before it, or the log, has everything), and the
/// parameters of a store that has no log yet.
fn remove_unfinished(rows: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(rows) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let has_log = match fs::metadata(rows.join("db")) {
        Ok(log) => log.len() > 0,
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let snapshot = name.starts_with("snap.") && name.ends_with(".generating");
        if snapshot || (name == "conf" && !has_log) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

pub(super) fn open_tree(path: &Path, rows: &Path, cache_bytes: u64) -> Result<Db, OpenError> {
    let config = sled::Config::new()
        .path(rows)
        .cache_capacity(cache_bytes)
        .flush_every_ms(None);
    let deadline = Instant::now() + LINGER_MAX;
    loop {
        // sled may panic over bytes it did not write.
        let opened =
            quietly(|| config.open()).map_err(|_| damaged(path, "its log cannot be read"))?;
        match opened {
            Ok(db) => return Ok(db),
            Err(sled::Error::Io(error)) if is_held(&error) => {
                if Instant::now() >= deadline {
                    return Err(OpenError::Held {
                        path: path.to_path_buf(),
                    });
                }
                thread::sleep(Duration::from_millis(5));
            }
            Err(sled::Error::Io(error)) => return Err(refusal(path, error)),
            Err(sled::Error::Corruption { .. }) => {
                return Err(damaged(
                    path,
                    "bytes of its log changed after they were written",
                ));
            }
            Err(error) => return Err(damaged(path, &error.to_string())),
        }
    }
}

/// Catches a panic before the hook of the process prints it: the caller says what it means.
pub(super) fn quietly<T>(run: impl FnOnce() -> T) -> thread::Result<T> {
    thread_local! {
        static IS_QUIET: Cell<bool> = const { Cell::new(false) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                usual(info);
            }
        }));
    });
    IS_QUIET.set(true);
    let ran = panic::catch_unwind(AssertUnwindSafe(run));
    IS_QUIET.set(false);
    ran
}

/// sled has no error of its own for a file that another process has locked.
fn is_held(error: &io::Error) -> bool {
    error.kind() == ErrorKind::Other && error.to_string().contains("could not acquire lock")
}

fn check_format(path: &Path, db: &Db) -> Result<(), OpenError> {
    let unreadable = |error: sled::Error| damaged(path, &error.to_string());
    let Some(row) = db.get(key::format()).map_err(unreadable)? else {
        if db.contains_key(key::migration()).map_err(unreadable)? {
            let path = path.to_path_buf();
            return Err(OpenError::Unfinished { path });
        }
        if db.iter().next().is_some() {
            return Err(damaged(path, "its format is missing"));
        }
        db.insert(key::format(), format_row()).map_err(unreadable)?;
        db.flush().map_err(unreadable)?;
        return Ok(());
    };
    let found = number::read_epoch(&row).map_err(|error| damaged(path, &error.to_string()))?;
    if found > FORMAT {
        return Err(OpenError::Newer {
            path: path.to_path_buf(),
            found,
            known: FORMAT,
        });
    }
    if found < FORMAT {
        let path = path.to_path_buf();
        return Err(OpenError::Older { path, found });
    }
    Ok(())
}

/// A file survives a power cut only if its directory was synced.
pub(super) fn sync_directories(path: &Path, rows: &Path) -> io::Result<()> {
    File::open(rows)?.sync_all()?;
    File::open(path)?.sync_all()?;
    match path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        Some(parent) => File::open(parent)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

pub(super) fn refusal(path: &Path, source: io::Error) -> OpenError {
    let path = path.to_path_buf();
    let kind = source.kind();
    if matches!(
        kind,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
    ) {
        OpenError::Forbidden { path }
    } else if matches!(kind, ErrorKind::NotADirectory | ErrorKind::AlreadyExists) {
        OpenError::NotADirectory { path }
    } else {
        OpenError::Io { path, source }
    }
}

fn damaged(path: &Path, detail: &str) -> OpenError {
    OpenError::Damaged {
        path: path.to_path_buf(),
        detail: detail.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_operating_system_are_distinguished() {
        let path = Path::new("/data/store");
        let refused = |kind: ErrorKind| refusal(path, kind.into());
        assert!(matches!(
            refused(ErrorKind::PermissionDenied),
            OpenError::Forbidden { .. }
        ));
        assert!(matches!(
            refused(ErrorKind::ReadOnlyFilesystem),
            OpenError::Forbidden { .. }
        ));
        assert!(matches!(
            refused(ErrorKind::NotADirectory),
            OpenError::NotADirectory { .. }
        ));
        assert!(matches!(
            refused(ErrorKind::StorageFull),
            OpenError::Io { .. }
        ));
        let text = refused(ErrorKind::PermissionDenied).to_string();
        assert_eq!(text, "no permission to use /data/store as a store");
    }
}
