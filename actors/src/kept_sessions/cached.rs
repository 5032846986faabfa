//! How does a session that is resumed by its id survive a crash? Its record is appended to a file,
//! sealed, when the session begins.
//!
//! Nothing waits for the disk: SIGKILL leaves what was written to the operating system, and after a
//! power cut a device whose record was lost makes a full handshake. The newest records are in one
//! file and those before them in another, which gives way to it when it is full: so both together
//! have at least the sessions that are resumable, and at most twice as many.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use engine::associations::export::SessionRecord;
use store::sealed::MasterKey;
use tracing::{info, warn};

use super::frame::{append_frame, split_frame};
use super::read_if_there;

/// What a record is sealed for.
const CONTEXT: &[u8] = b"resumable DTLS session";

/// With what sessions are resumed by their ids, in two files.
pub(super) struct CachedSessions {
    folder: PathBuf,
    master_key: Arc<MasterKey>,
    /// How many records are in a file that is full.
    records_max: usize,
    newest: Mutex<Option<Newest>>,
    /// Whether there are records that were not taken up.
    has_new: AtomicBool,
    hasher: RandomState,
}

/// The file with the newest records.
struct Newest {
    file: File,
    /// Where its last whole record ends.
    length: u64,
    /// The hashes of its records, and of those in the file before it.
    known: HashSet<u64>,
    former: HashSet<u64>,
    /// Whether the last write failed, which may have left a part of a record.
    is_failing: bool,
}

impl CachedSessions {
    pub(super) fn new(folder: PathBuf, master_key: Arc<MasterKey>, records_max: usize) -> Self {
        Self {
            folder,
            master_key,
            records_max,
            newest: Mutex::new(None),
            has_new: AtomicBool::new(false),
            hasher: RandomState::new(),
        }
    }

    /// Whether there are records that were not taken up.
    pub(super) fn has_new(&self) -> bool {
        self.has_new.load(Ordering::Relaxed)
    }

    /// The records of earlier processes, the oldest first, and behind them those in the files of
    /// another node; from now on `append` adds to them.
    pub(super) fn take_up(&self, handed_over: &[u8]) -> Vec<SessionRecord> {
        self.has_new.store(false, Ordering::Relaxed);
        let mut records = self.read_and_open().unwrap_or_else(|error| {
            let path = self.folder.display();
            warn!(%error, %path, "DTLS sessions without tickets are not resumed after a restart");
            Vec::new()
        });
        let known: HashSet<&[u8]> = records.iter().map(|record| &***record).collect();
        let (mut others, _) = self.records_in(handed_over);
        others.retain(|record| !known.contains(&***record));
        for record in &others {
            self.add(record);
        }
        records.extend(others);
        if !records.is_empty() {
            let count = records.len();
            info!(count, "DTLS sessions without tickets can be resumed");
        }
        records
    }

    /// A copy of the files, the oldest records first.
    pub(super) fn copy(&self) -> io::Result<Vec<u8>> {
        let mut files = read_if_there(&self.folder.join("former"))?;
        files.extend(read_if_there(&self.folder.join("newest"))?);
        Ok(files)
    }

    /// Adds the record of a session that has begun, unless it is there: each arbiter is told of
    /// each session.
    pub(super) fn append(&self, record: &[u8]) {
        if self.add(record) {
            self.has_new.store(true, Ordering::Relaxed);
        }
    }

    /// Adds a record; returns whether it was not there, and is now.
    fn add(&self, record: &[u8]) -> bool {
        let hash = self.hasher.hash_one(record);
        // A panic leaves at most a record that is not whole, which the next start cuts off.
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(current) = newest.as_mut() else {
            return false;
        };
        if current.former.contains(&hash) || current.known.contains(&hash) {
            return false;
        }
        let appended = match current.known.len() < self.records_max {
            true => Ok(()),
            false => self.begin_next(current),
        };
        let appended = appended.and_then(|()| current.append(&self.master_key, record));
        if appended.is_ok() {
            current.known.insert(hash);
        }
        if let Err(error) = &appended
            && !current.is_failing
        {
            warn!(%error, "DTLS sessions without tickets may not be resumed after a restart");
        }
        current.is_failing = appended.is_err();
        appended.is_ok()
    }

    fn read_and_open(&self) -> io::Result<Vec<SessionRecord>> {
        // Nothing is added meanwhile.
        let mut opened = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let mut folder = fs::DirBuilder::new();
        folder.recursive(true).mode(0o700).create(&self.folder)?;
        let read = |name| read_if_there(&self.folder.join(name));
        let (mut records, _) = self.records_in(&read("former")?);
        let (newest, length) = self.records_in(&read("newest")?);
        let file = self.open(OpenOptions::new().create(true))?;
        // What a process that was killed did not write to the end, or sealed with another key.
        file.set_len(length)?;
        let known = |records: &[SessionRecord]| {
            let records = records.iter();
            records.map(|it| self.hasher.hash_one(&***it)).collect()
        };
        *opened = Some(Newest {
            file,
            length,
            known: known(&newest),
            former: known(&records),
            is_failing: false,
        });
        records.extend(newest);
        Ok(records)
    }

    /// The records in a file, and where the last one that opens ends.
    fn records_in(&self, file: &[u8]) -> (Vec<SessionRecord>, u64) {
        let (mut records, mut rest) = (Vec::new(), file);
        while let Some((sealed, behind)) = split_frame(rest)
            && let Ok(record) = self.master_key.open(&sealed, CONTEXT)
        {
            records.push(record);
            rest = behind;
        }
        (records, (file.len() - rest.len()) as u64)
    }

    fn begin_next(&self, current: &mut Newest) -> io::Result<()> {
        match fs::rename(self.folder.join("newest"), self.folder.join("former")) {
            // It has its new name since the last try.
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        *current = Newest {
            file: self.open(OpenOptions::new().create_new(true))?,
            length: 0,
            known: HashSet::new(),
            former: std::mem::take(&mut current.known),
            is_failing: false,
        };
        Ok(())
    }

    fn open(&self, options: &mut OpenOptions) -> io::Result<File> {
        let options = options.append(true).mode(0o600);
        options.open(self.folder.join("newest"))
    }
}

impl Newest {
    fn append(&mut self, key: &MasterKey, record: &[u8]) -> io::Result<()> {
        let mut frame = Vec::with_capacity(record.len() + 64);
        append_frame(&mut frame, &key.seal(record, CONTEXT))?;
        if self.is_failing {
            self.file.set_len(self.length)?;
        }
        self.file.write_all(&frame)?;
        self.length += frame.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cached(home: &tempfile::TempDir, key: u8) -> CachedSessions {
        let key = Arc::new(MasterKey::from_bytes(&[key; 32]));
        CachedSessions::new(home.path().join("cached"), key, 3)
    }

    fn taken_up(sessions: &CachedSessions) -> Vec<u8> {
        let records = sessions.take_up(&[]);
        records.iter().map(|record| record[0]).collect()
    }

    #[test]
    fn at_least_the_newest_records_are_there_after_every_start() {
        let home = tempfile::tempdir().unwrap();
        let mut sessions = cached(&home, 7);
        assert!(taken_up(&sessions).is_empty());
        for number in 1..=20_u8 {
            sessions.append(&[number; 40]);
            sessions = cached(&home, 7);
            let all: Vec<u8> = (1..=number).collect();
            let is_full = number.saturating_sub(1) / 3;
            let first = usize::from(is_full.saturating_sub(1) * 3);
            assert_eq!(taken_up(&sessions), all[first..]);
        }
    }

    #[test]
    fn a_record_that_is_not_whole_is_left_out_and_the_next_one_follows_those_before() {
        let home = tempfile::tempdir().unwrap();
        let sessions = cached(&home, 7);
        sessions.take_up(&[]);
        sessions.append(&[1; 40]);
        let path = home.path().join("cached/newest");
        let length = fs::metadata(&path).unwrap().len();
        sessions.append(&[2; 40]);
        let whole = fs::read(&path).unwrap();
        for cut in usize::try_from(length).unwrap()..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let sessions = cached(&home, 7);
            assert_eq!(taken_up(&sessions), [1]);
            sessions.append(&[3; 40]);
            assert_eq!(taken_up(&cached(&home, 7)), [1, 3]);
        }
    }

    #[test]
    fn another_master_key_opens_nothing_and_goes_on_with_its_own_records() {
        let home = tempfile::tempdir().unwrap();
        let sessions = cached(&home, 7);
        sessions.take_up(&[]);
        sessions.append(&[1; 40]);
        let sessions = cached(&home, 8);
        assert!(taken_up(&sessions).is_empty());
        sessions.append(&[2; 40]);
        assert_eq!(taken_up(&cached(&home, 8)), [2]);
    }

    #[test]
    fn what_a_failed_write_has_left_is_cut_off_before_the_next_record() {
        let home = tempfile::tempdir().unwrap();
        let sessions = cached(&home, 7);
        sessions.take_up(&[]);
        sessions.append(&[1; 40]);
        let swap = |file| {
            let mut newest = sessions.newest.lock().unwrap();
            std::mem::replace(&mut newest.as_mut().unwrap().file, file)
        };
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let mut file = swap(full);
        sessions.append(&[2; 40]);
        file.write_all(b"a part of a record").unwrap();
        swap(file);
        sessions.append(&[3; 40]);
        assert_eq!(taken_up(&cached(&home, 7)), [1, 3]);
    }

    #[test]
    fn a_folder_that_cannot_be_used_leaves_sessions_to_the_process() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("cached"), "a file").unwrap();
        let sessions = cached(&home, 7);
        assert!(taken_up(&sessions).is_empty());
        sessions.append(&[1; 40]);
        assert_eq!(fs::read(home.path().join("cached")).unwrap(), b"a file");
    }
}
