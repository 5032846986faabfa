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
//! What a session is resumed with by its id is in files of its own (`cached`), because it has to
//! survive a crash, too.

mod cached;
mod frame;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
        }
    }

    /// Takes the sessions of earlier processes for so many arbiters.
    pub(crate) fn take(&self, arbiters: usize) -> EarlierSessions {
        EarlierSessions {
            by_arbiter: self.take_kept(arbiters),
            cached: self.cached.take_up().into(),
        }
    }

    /// Keeps with what a session is resumed by its id.
    pub(crate) fn cache(&self, record: &[u8]) {
        self.cached.append(record);
    }

    /// Takes the sessions that the process before this one has kept.
    fn take_kept(&self, arbiters: usize) -> Vec<Vec<SessionRecord>> {
        let taken = self.take_files(arbiters).unwrap_or_else(|error| {
            let path = self.path.display();
            warn!(%error, %path, "the kept DTLS sessions cannot be used: devices resume theirs");
            Vec::new()
        });
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
        let read = |arbiter| match fs::read(self.path_of(arbiter)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            read => read,
        };
        let numbers = (0..=u16::MAX).take(arbiters);
        let files = numbers.map(read).collect::<io::Result<Vec<_>>>()?;
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
}
