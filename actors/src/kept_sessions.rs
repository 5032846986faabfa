//! How do sessions over DTLS survive a clean restart? In a file for each arbiter, sealed, that the
//! next process removes before it uses it.
//!
//! ```text
//!  frame..  = length:4 | sealed(record..)      sealed for the epoch, the arbiter and the frame
//!  record   = length:2 | record
//! ```
//!
//! A session that is used twice repeats nonces, which gives away what was encrypted. So the files
//! are gone from the disk before anything is sent, and they open only in the process after the one
//! that wrote them, which its epoch tells: a file that was put back opens no more. Only a copy of
//! the whole data directory, started a second time, would use them twice.
//!
//! Of several nodes the next process is another one, which gets the files over the network, sealed
//! as they are (`relay/sessions.rs`): they are gone from this disk before they leave.
//!
//! What a session is resumed with by its id is in files of its own (`cached`), because it has to
//! survive a crash, too.

mod cached;
mod frame;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::associations::export::SessionRecord;
use engine::limits::RESUMABLE_SESSIONS_MAX;
use store::sealed::MasterKey;
use tracing::{info, warn};
use zeroize::Zeroizing;

use cached::CachedSessions;
use frame::{append_frame, split_frame};

/// How many bytes are sealed at once.
const FRAME_BYTES: usize = 64 * 1_024;

/// Where sessions are kept from one process to the next.
#[derive(Clone)]
pub struct KeptSessions {
    path: PathBuf,
    master_key: Arc<MasterKey>,
    /// The epoch of this process.
    epoch: u64,
    cached: Arc<CachedSessions>,
    handed_over: Arc<Mutex<HandedOver>>,
}

/// The files of a node that has stopped.
#[derive(Debug, Default)]
pub struct HandedOver {
    /// The sessions that go on, by arbiter.
    pub by_arbiter: Vec<Vec<u8>>,
    /// With what sessions are resumed by their ids.
    pub cached: Vec<u8>,
}

/// The sessions of earlier processes.
#[derive(Default)]
pub(crate) struct EarlierSessions {
    /// Those that go on, by arbiter.
    pub(crate) by_arbiter: Vec<Vec<SessionRecord>>,
    /// With what sessions are resumed by their ids, at every arbiter.
    pub(crate) cached: Arc<[SessionRecord]>,
}

/// Writes the file of an arbiter.
struct Writer<'k> {
    file: BufWriter<File>,
    kept: &'k KeptSessions,
    arbiter: u16,
    frames: u32,
    frame: Zeroizing<Vec<u8>>,
}

impl KeptSessions {
    /// Those in two directories of their own below the data directory.
    pub fn new(data_dir: &Path, master_key: Arc<MasterKey>, epoch: u64) -> Self {
        let cached = data_dir.join("dtls-cached-sessions");
        let cached = CachedSessions::new(cached, Arc::clone(&master_key), RESUMABLE_SESSIONS_MAX);
        Self {
            path: data_dir.join("dtls-sessions"),
            master_key,
            epoch,
            cached: Arc::new(cached),
            handed_over: Arc::default(),
        }
    }

    /// Receives the files of the node that had the lease before this one, for the start.
    pub fn receive(&self, files: HandedOver) {
        *self.handed_over() = files;
    }

    fn handed_over(&self) -> MutexGuard<'_, HandedOver> {
        let files = self.handed_over.lock();
        files.unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over the file of an arbiter, which is gone from the disk when this returns.
    pub fn hand_over(&self, arbiter: u16) -> io::Result<Vec<u8>> {
        let file = read_if_there(&self.path_of(arbiter))?;
        if !file.is_empty() {
            fs::remove_file(self.path_of(arbiter))?;
            File::open(&self.path)?.sync_all()?;
        }
        Ok(file)
    }

    /// A copy of the files of what sessions are resumed with by their ids.
    pub fn copy_cached(&self) -> io::Result<Vec<u8>> {
        self.cached.copy()
    }

    /// Takes the sessions of earlier processes for so many arbiters.
    pub(crate) fn take(&self, arbiters: usize) -> EarlierSessions {
        let HandedOver { by_arbiter, cached } = std::mem::take(&mut *self.handed_over());
        EarlierSessions {
            by_arbiter: self.take_kept(arbiters, by_arbiter),
            cached: self.cached.take_up(&cached).into(),
        }
    }

    /// Keeps with what a session is resumed by its id.
    pub(crate) fn cache(&self, record: &[u8]) {
        self.cached.append(record);
    }

    /// Takes the sessions that the process before this one has kept: here, or at another node.
    fn take_kept(&self, arbiters: usize, handed_over: Vec<Vec<u8>>) -> Vec<Vec<SessionRecord>> {
        let here = self.take_files(arbiters).unwrap_or_else(|error| {
            let path = self.path.display();
            warn!(%error, %path, "the kept DTLS sessions cannot be used: devices resume theirs");
            Vec::new()
        });
        let taken = match handed_over.is_empty() {
            true => here,
            false => handed_over,
        };
        let of_each = (0..).zip(&taken).map(|(arbiter, file)| {
            let records = self.open(arbiter, file);
            if records.is_empty() && !file.is_empty() {
                warn!(
                    arbiter,
                    "the kept DTLS sessions are not of the last process"
                );
            }
            records
        });
        let mut of_each: Vec<_> = of_each.collect();
        of_each.resize_with(arbiters, Vec::new);
        of_each
    }

    /// Keeps the sessions that `export` hands over for an arbiter.
    pub(crate) fn keep(&self, arbiter: u16, export: impl FnOnce(&mut dyn FnMut(&[u8]))) {
        let mut written: Option<io::Result<Writer<'_>>> = None;
        export(&mut |record| {
            let writer = written.get_or_insert_with(|| self.writer(arbiter));
            if let Ok(open) = writer
                && let Err(error) = open.write(record)
            {
                *writer = Err(error);
            }
        });
        match written.map(|it| it.and_then(Writer::finish)) {
            Some(Ok(())) => info!(arbiter, "DTLS sessions are kept"),
            Some(Err(error)) => warn!(arbiter, %error, "DTLS sessions are not kept"),
            None => {}
        }
    }

    /// The bytes of the files, which are gone from the disk when this returns.
    fn take_files(&self, arbiters: usize) -> io::Result<Vec<Vec<u8>>> {
        let numbers = (0..=u16::MAX).take(arbiters);
        let files = numbers.map(|arbiter| read_if_there(&self.path_of(arbiter)));
        let files = files.collect::<io::Result<Vec<_>>>()?;
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let parent = self.path.parent().unwrap_or(Path::new("."));
        File::open(parent)?.sync_all()?;
        Ok(files)
    }

    /// The records in a file, up to the first frame that is not whole or not of the last process.
    fn open(&self, arbiter: u16, file: &[u8]) -> Vec<SessionRecord> {
        let mut records = Vec::new();
        let (mut rest, mut number) = (file, 0_u32);
        while let Some((sealed, behind)) = split_frame(rest) {
            let context = context(self.epoch.wrapping_sub(1), arbiter, number);
            let Ok(frame) = self.master_key.open(&sealed, &context) else {
                break;
            };
            records.extend(records_in(&frame));
            (rest, number) = (behind, number.wrapping_add(1));
        }
        records
    }

    fn writer(&self, arbiter: u16) -> io::Result<Writer<'_>> {
        let mut folder = fs::DirBuilder::new();
        folder.recursive(true).mode(0o700).create(&self.path)?;
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        Ok(Writer {
            file: BufWriter::new(options.open(self.path_of(arbiter))?),
            kept: self,
            arbiter,
            frames: 0,
            frame: Zeroizing::new(Vec::with_capacity(2 * FRAME_BYTES)),
        })
    }

    fn path_of(&self, arbiter: u16) -> PathBuf {
        self.path.join(arbiter.to_string())
    }
}

impl Writer<'_> {
    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        let length = u16::try_from(record.len()).map_err(io::Error::other)?;
        self.frame.extend_from_slice(&length.to_be_bytes());
        self.frame.extend_from_slice(record);
        match self.frame.len() {
            ..FRAME_BYTES => Ok(()),
            FRAME_BYTES.. => self.end_frame(),
        }
    }

    fn end_frame(&mut self) -> io::Result<()> {
        let context = context(self.kept.epoch, self.arbiter, self.frames);
        let sealed = self.kept.master_key.seal(&self.frame, &context);
        append_frame(&mut self.file, &sealed)?;
        self.frames = self.frames.wrapping_add(1);
        self.frame.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        if !self.frame.is_empty() {
            self.end_frame()?;
        }
        self.file.into_inner()?.sync_all()
    }
}

/// The bytes of a file; none, if it does not exist.
fn read_if_there(path: &Path) -> io::Result<Vec<u8>> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}

fn records_in(frame: &[u8]) -> Vec<SessionRecord> {
    let (mut records, mut rest) = (Vec::new(), frame);
    while let Some((length, behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(*length));
        let Some((record, behind)) = behind.split_at_checked(length) else {
            break;
        };
        records.push(SessionRecord::new(record.to_vec()));
        rest = behind;
    }
    records
}

/// What a frame is sealed for.
fn context(epoch: u64, arbiter: u16, frame: u32) -> Vec<u8> {
    let (epoch, arbiter, frame) = (
        epoch.to_be_bytes(),
        arbiter.to_be_bytes(),
        frame.to_be_bytes(),
    );
    [&b"DTLS sessions "[..], &epoch, &arbiter, &frame].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_sessions_are_taken_once_and_by_the_next_process_alone() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("dtls-sessions");
        let of = |epoch| {
            let key = Arc::new(MasterKey::from_bytes(&[7; 32]));
            KeptSessions::new(home.path(), key, epoch)
        };
        let records: Vec<Vec<u8>> = (0..5_000_u32).map(|it| vec![it as u8; 40]).collect();
        let keep = |epoch| {
            of(epoch).keep(1, |record| records.iter().for_each(|it| record(it)));
            fs::read(path.join("1")).unwrap()
        };
        let file = keep(7);
        let taken = of(8).take(2).by_arbiter;
        assert!(taken[0].is_empty());
        assert!(
            taken[1]
                .iter()
                .map(|it| &***it)
                .eq(records.iter().map(|it| &**it))
        );
        assert!(!path.exists());
        assert!(of(8).take(2).by_arbiter[1].is_empty(), "a second time");

        // Put back from a copy, for the process after the next and for another arbiter.
        for (epoch, name, arbiter) in [(9, "1", 1), (8, "0", 0)] {
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join(name), &file).unwrap();
            assert!(of(epoch).take(2).by_arbiter[arbiter].is_empty());
        }
        // A process that was killed while it wrote.
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("1"), &file[..file.len() - 1]).unwrap();
        let cut = of(8).take(2).by_arbiter[1].len();
        assert!((1..records.len()).contains(&cut), "{cut}");
    }

    #[test]
    fn sessions_that_are_handed_over_go_on_at_the_next_node_alone() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let of = |home: &tempfile::TempDir, epoch| {
            let key = Arc::new(MasterKey::from_bytes(&[7; 32]));
            KeptSessions::new(home.path(), key, epoch)
        };
        let count = |taken: &EarlierSessions| taken.by_arbiter.iter().map(Vec::len).sum::<usize>();
        let stopped = of(&here, 7);
        stopped.take(2);
        stopped.cache(&[1; 40]);
        for (arbiter, sessions) in [(0, 3), (1, 5)] {
            stopped.keep(arbiter, |record| {
                (0..sessions).for_each(|it| record(&[it; 40]));
            });
        }
        // The next node had a session of its own that is resumed by its id.
        let next = of(&there, 8);
        next.take(2);
        next.cache(&[2; 40]);
        let files = || HandedOver {
            by_arbiter: vec![stopped.hand_over(0).unwrap(), stopped.hand_over(1).unwrap()],
            cached: stopped.copy_cached().unwrap(),
        };
        next.receive(files());
        let taken = next.take(2);
        assert_eq!(count(&taken), 8);
        let cached: Vec<u8> = taken.cached.iter().map(|record| record[0]).collect();
        assert_eq!(cached, [2, 1]);
        assert_eq!(count(&next.take(2)), 0, "a second time");
        // What is resumed by its id may be so at either, and is there once.
        next.receive(files());
        assert_eq!(next.take(2).cached.len(), 2);
        assert_eq!(count(&of(&here, 8).take(2)), 0, "where it was kept");

        // A node that took over later.
        stopped.keep(1, |record| record(&[1; 40]));
        let late = of(&there, 9);
        late.receive(files());
        assert_eq!(count(&late.take(2)), 0);
    }
}
