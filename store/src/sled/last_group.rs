//! Which group of commits was made durable last?
//!
//! sled drops a damaged end of its log and opens what is before it, without a word. So each group
//! has a number, in a row that is written with it, and a file beside the rows says which group was
//! made durable last. The file is written after the group was synced and is itself synced at least
//! once a second: it may be behind, but never ahead. A store whose row is behind the file has lost
//! groups that were durable.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use engine::moment::Timestamp;
use sha2::{Digest, Sha256};
use sled::{IVec, Tree};

use super::fault::Fault;
use super::key;
use super::overlay::Overlay;
use crate::Loss;
use crate::record::group::{GroupMark, read_group, write_group};

/// How long the file may stay unsynced.
const SYNC_EVERY: Duration = Duration::from_secs(1);

const DIGEST_BYTES: usize = 8;

/// The last group, in the rows and in the file.
pub(super) struct LastGroup {
    file: File,
    last: GroupMark,
    /// Since when the file is unsynced.
    unsynced: Option<Instant>,
    now: fn() -> Timestamp,
}

/// What a file says of the last group.
enum Noted {
    /// There is no file: the store is new.
    Nothing,
    /// It was written halfway or damaged, so it says nothing.
    Unreadable,
    Mark(GroupMark),
}

impl LastGroup {
    /// Compares the rows of a store with the file, and returns what is lost. The file is not
    /// changed.
    pub(super) fn open(
        path: &Path,
        tree: &Tree,
        now: fn() -> Timestamp,
    ) -> Result<(Self, Option<Loss>), Fault> {
        let (last, end) = end_of(path, tree)?;
        let lost = match end {
            StoreEnd::Lost(loss) => Some(loss),
            StoreEnd::Complete => None,
            StoreEnd::Unknown => {
                tracing::warn!(
                    file = %path.display(),
                    "the number of the last group cannot be read: nobody knows whether the end of \
                     the store is complete"
                );
                None
            }
        };
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let opened = Self {
            file: file.map_err(Fault::Sync)?,
            last,
            unsynced: None,
            now,
        };
        Ok((opened, lost))
    }

    /// Numbers a group that is about to be written.
    pub(super) fn number(&mut self, rows: &mut Overlay<'_>) {
        self.last = GroupMark {
            number: self.last.number.saturating_add(1),
            at: (self.now)(),
        };
        rows.put(
            key::last_group().into(),
            IVec::from(&write_group(self.last)),
        );
    }

    /// Notes that the last group is durable. If that fails the file stays behind, which costs only
    /// the proof that this group is not lost.
    pub(super) fn note(&mut self) {
        let noted = noted(&write_group(self.last));
        if let Err(error) = self.file.write_all_at(&noted, 0) {
            tracing::warn!(%error, "the number of the last group cannot be written");
            return;
        }
        let since = *self.unsynced.get_or_insert_with(Instant::now);
        if since.elapsed() >= SYNC_EVERY {
            self.sync();
        }
    }

    /// In what time the file is to be synced, if it is not.
    pub(super) fn sync_due(&self) -> Option<Duration> {
        let since = self.unsynced?;
        Some(SYNC_EVERY.saturating_sub(since.elapsed()))
    }

    /// Syncs the file.
    pub(super) fn sync(&mut self) {
        self.unsynced = None;
        if let Err(error) = self.file.sync_data() {
            tracing::warn!(%error, "the number of the last group cannot be synced");
        }
    }
}

/// Notes the last group in the rows of a store that was written as a whole and is durable.
pub(super) fn note_whole(path: &Path, tree: &Tree) -> io::Result<()> {
    let Some(last) = tree.get(key::last_group())? else {
        return Ok(());
    };
    let file = File::create(path)?;
    file.write_all_at(&noted(&last), 0)?;
    file.sync_all()
}

/// Whether what was durable is there.
pub(super) enum StoreEnd {
    Complete,
    /// The file does not say.
    Unknown,
    Lost(Loss),
}

/// Compares the rows of a store with the file, and returns the last group there is. Nothing is
/// changed.
pub(super) fn end_of(path: &Path, tree: &Tree) -> Result<(GroupMark, StoreEnd), Fault> {
    let last = match tree.get(key::last_group())? {
        Some(row) => read_group(&row)?,
        None => GroupMark::default(),
    };
    let end = match read(path).map_err(Fault::Sync)? {
        Noted::Mark(noted) if noted.number > last.number => StoreEnd::Lost(Loss {
            groups: noted.number - last.number,
            from: last.at,
            until: noted.at,
        }),
        Noted::Mark(_) => StoreEnd::Complete,
        Noted::Nothing if last.number == 0 => StoreEnd::Complete,
        Noted::Nothing | Noted::Unreadable => StoreEnd::Unknown,
    };
    Ok((last, end))
}

fn read(path: &Path) -> io::Result<Noted> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Noted::Nothing),
        Err(error) => return Err(error),
    };
    let mut noted = [0; GroupMark::BYTES + DIGEST_BYTES];
    let read = file.read_exact_at(&mut noted, 0);
    let (mark, found) = noted.split_at(GroupMark::BYTES);
    Ok(match (read, read_group(mark)) {
        (Ok(()), Ok(mark_read)) if found == digest(mark) => Noted::Mark(mark_read),
        _ => Noted::Unreadable,
    })
}

/// What the file has.
fn noted(mark: &[u8]) -> Vec<u8> {
    [mark, &digest(mark)].concat()
}

fn digest(mark: &[u8]) -> [u8; DIGEST_BYTES] {
    let whole: [u8; 32] = Sha256::digest(mark).into();
    let mut digest = [0; DIGEST_BYTES];
    digest.copy_from_slice(&whole[..DIGEST_BYTES]);
    digest
}

#[cfg(test)]
mod tests {
    use std::fs;

    use sled::Db;

    use super::*;

    const NOW: fn() -> Timestamp = || Timestamp::from_ms(7_000);

    fn group(last: &mut LastGroup, db: &Db) {
        let mut rows = Overlay::new(db);
        last.number(&mut rows);
        db.apply_batch(rows.into_batch()).unwrap();
        last.note();
    }

    #[test]
    fn a_store_behind_its_file_has_lost_groups_and_one_ahead_of_it_has_not() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("last-group");
        let db = sled::Config::new().temporary(true).open().unwrap();
        let (mut last, lost) = LastGroup::open(&path, &db, NOW).unwrap();
        assert_eq!(lost, None);
        group(&mut last, &db);
        let row = db.get(key::last_group()).unwrap();
        let behind = fs::read(&path).unwrap();
        for _ in 0..3 {
            group(&mut last, &db);
        }
        let (_, lost) = LastGroup::open(&path, &db, NOW).unwrap();
        assert_eq!(lost, None);

        let ahead = fs::read(&path).unwrap();
        fs::write(&path, &behind).unwrap();
        let (_, lost) = LastGroup::open(&path, &db, NOW).unwrap();
        assert_eq!(lost, None, "the file may be behind");

        fs::write(&path, &ahead).unwrap();
        db.insert(key::last_group(), row.unwrap()).unwrap();
        let (mut last, lost) = LastGroup::open(&path, &db, NOW).unwrap();
        let loss = Loss {
            groups: 3,
            from: NOW(),
            until: NOW(),
        };
        assert_eq!(lost, Some(loss));
        assert_eq!(fs::read(&path).unwrap(), ahead, "opening changes nothing");
        last.note();
        assert_eq!(LastGroup::open(&path, &db, NOW).unwrap().1, None);
    }

    #[test]
    fn a_file_that_says_nothing_accuses_nobody() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("last-group");
        let db = sled::Config::new().temporary(true).open().unwrap();
        let (mut last, _) = LastGroup::open(&path, &db, NOW).unwrap();
        group(&mut last, &db);
        let noted = fs::read(&path).unwrap();
        for damaged in [&[][..], &noted[1..], &[7; 100]] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(LastGroup::open(&path, &db, NOW).unwrap().1, None);
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(LastGroup::open(&path, &db, NOW).unwrap().1, None);
    }
}
