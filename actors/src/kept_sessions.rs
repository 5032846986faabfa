//! How do sessions over DTLS survive a clean restart? In a file for each arbiter, sealed, that
//! whoever has the arbiter next removes before it uses it.
//!
//! ```text
//!  frame..  = length:4 | sealed(record..)      sealed for the epoch, the arbiter and the frame
//!  record   = length:2 | record
//! ```
//!
//! A session that is used twice repeats nonces, which gives away what was encrypted. So the files
//! are gone from the disk before anything is sent, and they open only in the epoch after the one
//! that they were written in: a file that was put back opens no more. Only a copy of the whole data
//! directory, started a second time, would use them twice.
//!
//! Of several nodes the next one to have an arbiter is another one, which gets the file over the
//! network, sealed as it is (`relay/sessions.rs`): it is gone from this disk before it leaves.
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
    cached: Arc<CachedSessions>,
}

/// What another node has kept.
#[derive(Debug, Default)]
pub struct HandedOver {
    /// The files of the sessions of an arbiter, of which one may open.
    pub sessions: Vec<Vec<u8>>,
    /// With what sessions are resumed by their ids.
    pub cached: Vec<u8>,
}

/// An arbiter, and the epoch in which it is owned.
type OwnedArbiter = (u16, u64);

/// Writes the file of an arbiter.
struct Writer<'k> {
    file: BufWriter<File>,
    kept: &'k KeptSessions,
    arbiter: OwnedArbiter,
    frames: u32,
    frame: Zeroizing<Vec<u8>>,
}

impl KeptSessions {
    /// Those in two directories of their own below the data directory.
    pub fn new(data_dir: &Path, master_key: Arc<MasterKey>) -> Self {
        let cached = data_dir.join("dtls-cached-sessions");
        let cached = CachedSessions::new(cached, Arc::clone(&master_key), RESUMABLE_SESSIONS_MAX);
        Self {
            path: data_dir.join("dtls-sessions"),
            master_key,
            cached: Arc::new(cached),
        }
    }

    /// Takes the file of an arbiter, which is gone from the disk when this returns.
    pub fn take_file(&self, arbiter: u16) -> io::Result<Vec<u8>> {
        let file = read_if_there(&self.path_of(arbiter))?;
        if !file.is_empty() {
            fs::remove_file(self.path_of(arbiter))?;
            File::open(&self.path)?.sync_all()?;
            // Unless there are those of others.
            let _ = fs::remove_dir(&self.path);
        }
        Ok(file)
    }

    /// Whether no file is left.
    pub fn are_taken(&self) -> bool {
        fs::read_dir(&self.path).map_or(true, |mut files| files.next().is_none())
    }

    /// A copy of the files of what sessions are resumed with by their ids.
    pub fn copy_cached(&self) -> io::Result<Vec<u8>> {
        self.cached.copy()
    }

    /// Takes with what sessions are resumed by their ids from the files here, and from those of
    /// another node.
    pub(crate) fn take_cached(&self, handed_over: &[u8]) -> Arc<[SessionRecord]> {
        self.cached.take_up(handed_over).into()
    }

    /// Whether there is more of it than was taken.
    pub(crate) fn has_new_cached(&self) -> bool {
        self.cached.has_new()
    }

    /// Keeps with what a session is resumed by its id.
    pub(crate) fn cache(&self, record: &[u8]) {
        self.cached.append(record);
    }

    /// Takes the sessions that were kept of an arbiter in the epoch before: here, or at another
    /// node, which has handed over its file.
    pub(crate) fn take(
        &self,
        (arbiter, epoch): OwnedArbiter,
        handed_over: Vec<Vec<u8>>,
    ) -> Vec<SessionRecord> {
        let here = self.take_file(arbiter).unwrap_or_else(|error| {
            let path = self.path.display();
            warn!(%error, %path, "the kept DTLS sessions cannot be used: devices resume theirs");
            Vec::new()
        });
        let former = (arbiter, epoch.wrapping_sub(1));
        let files = [here].into_iter().chain(handed_over);
        let files: Vec<Vec<u8>> = files.filter(|file| !file.is_empty()).collect();
        let mut opened = files.iter().map(|file| self.open(former, file));
        let opened = opened.find(|records| !records.is_empty());
        if opened.is_none() && !files.is_empty() {
            warn!(
                arbiter,
                "the kept DTLS sessions are not of the last process"
            );
        }
        opened.unwrap_or_default()
    }

    /// Removes the files of arbiters beyond so many: they would never be taken.
    pub(crate) fn keep_only(&self, arbiters: u16) {
        let Ok(files) = fs::read_dir(&self.path) else {
            return;
        };
        for file in files.flatten() {
            let number = file
                .file_name()
                .to_str()
                .and_then(|it| it.parse::<u16>().ok());
            if number.is_none_or(|it| it >= arbiters)
                && let Err(error) = fs::remove_file(file.path())
            {
                warn!(%error, path = %file.path().display(), "a file cannot be removed");
            }
        }
    }

    /// Keeps the sessions that `export` hands over for an arbiter.
    pub(crate) fn keep(&self, arbiter: OwnedArbiter, export: impl FnOnce(&mut dyn FnMut(&[u8]))) {
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
            Some(Ok(())) => info!(arbiter = arbiter.0, "DTLS sessions are kept"),
            Some(Err(error)) => warn!(arbiter = arbiter.0, %error, "DTLS sessions are not kept"),
            None => {}
        }
    }

    /// The records in a file, up to the first frame that is not whole or not of this epoch.
    fn open(&self, arbiter: OwnedArbiter, file: &[u8]) -> Vec<SessionRecord> {
        let mut records = Vec::new();
        let (mut rest, mut number) = (file, 0_u32);
        while let Some((sealed, behind)) = split_frame(rest) {
            let context = context(arbiter, number);
            let Ok(frame) = self.master_key.open(&sealed, &context) else {
                break;
            };
            records.extend(records_in(&frame));
            (rest, number) = (behind, number.wrapping_add(1));
        }
        records
    }

    fn writer(&self, arbiter: OwnedArbiter) -> io::Result<Writer<'_>> {
        let mut folder = fs::DirBuilder::new();
        folder.recursive(true).mode(0o700).create(&self.path)?;
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        Ok(Writer {
            file: BufWriter::new(options.open(self.path_of(arbiter.0))?),
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
        let context = context(self.arbiter, self.frames);
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
fn context((arbiter, epoch): OwnedArbiter, frame: u32) -> Vec<u8> {
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
    fn kept_sessions_are_taken_once_and_in_the_next_epoch_alone() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("dtls-sessions");
        let kept = kept_in(&home);
        let records: Vec<Vec<u8>> = (0..5_000_u32).map(|it| vec![it as u8; 40]).collect();
        kept.keep((1, 7), |record| records.iter().for_each(|it| record(it)));
        let file = fs::read(path.join("1")).unwrap();
        let taken = kept.take((1, 8), vec![]);
        let taken = taken.iter().map(|it| &***it);
        assert!(taken.eq(records.iter().map(|it| &**it)));
        assert!(!path.exists());
        assert!(kept.take((1, 8), vec![]).is_empty(), "a second time");

        // Put back from a copy, for a later epoch and for another arbiter.
        let write = |name: &str, bytes: &[u8]| {
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join(name), bytes).unwrap();
        };
        for (name, arbiter) in [("1", (1, 9)), ("0", (0, 8))] {
            write(name, &file);
            assert!(kept.take(arbiter, vec![]).is_empty());
        }
        // A process that was killed while it wrote.
        write("1", &file[..file.len() - 1]);
        let cut = kept.take((1, 8), vec![]).len();
        assert!((1..records.len()).contains(&cut), "{cut}");
        // One with fewer arbiters than before.
        write("1", &file);
        kept.keep_only(1);
        assert!(!path.join("1").exists());
    }

    #[test]
    fn sessions_that_are_handed_over_go_on_at_the_next_node_alone() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (stopped, next) = (kept_in(&here), kept_in(&there));
        stopped.take_cached(&[]);
        stopped.cache(&[1; 40]);
        let keep = || {
            stopped.keep((1, 7), |record| {
                (0..5).for_each(|it| record(&[it; 40]));
            });
            stopped.take_file(1).unwrap()
        };
        let file = keep();
        assert!(stopped.take((1, 8), vec![]).is_empty(), "where it was kept");
        assert_eq!(next.take((1, 8), vec![b"stale".to_vec(), file]).len(), 5);
        // A node that has it later.
        assert!(next.take((1, 9), vec![keep()]).is_empty());

        // The next node had a session of its own that is resumed by its id.
        next.take_cached(&[]);
        next.cache(&[2; 40]);
        let cached = next.take_cached(&stopped.copy_cached().unwrap());
        let cached: Vec<u8> = cached.iter().map(|record| record[0]).collect();
        assert_eq!(cached, [2, 1]);
        // An arbiter that begins later knows what all others were told.
        assert!(!next.has_new_cached());
        (0..2).for_each(|_| next.cache(&[3; 40]));
        assert!(next.has_new_cached());
        assert_eq!(next.take_cached(&[]).len(), 3);
        assert!(!next.has_new_cached());
        // What is resumed by its id may be so at either, and is there once.
        assert_eq!(next.take_cached(&stopped.copy_cached().unwrap()).len(), 3);
    }

    fn kept_in(home: &tempfile::TempDir) -> KeptSessions {
        let key = Arc::new(MasterKey::from_bytes(&[7; 32]));
        KeptSessions::new(home.path(), key)
    }
}
