//! What are the bytes of a backup?
//!
//! ```text
//!  "signalbox backup\n" version:1 format:8 | record.. | trailer
//!  record:  key length:4, not the mark | value length:4, or the mark for a removal | key | value
//!  trailer: the mark | bytes before the trailer:8 | SHA-256 of them:32
//! ```
//!
//! Numbers are big-endian. Records are applied in order: the last one of a key counts.

use std::io::{self, ErrorKind, Read};

use sha2::{Digest as _, Sha256};

use super::super::open::FORMAT;

const MAGIC: &[u8] = b"signalbox backup\n";
const VERSION: u8 = 1;
const MARK: u32 = u32::MAX;

/// The longest key and the longest value that are believed: longer than any in a store.
const LENGTH_MAX: u32 = 1 << 20;

/// Writes a backup, piece by piece.
pub(super) struct BackupWriter {
    piece: Vec<u8>,
    taken: u64,
    digest: Sha256,
}

impl BackupWriter {
    /// A backup of a store of the present format.
    pub(super) fn begin() -> Self {
        let mut piece = MAGIC.to_vec();
        piece.push(VERSION);
        piece.extend(FORMAT.to_be_bytes());
        Self {
            piece,
            taken: 0,
            digest: Sha256::new(),
        }
    }

    /// Appends a row.
    pub(super) fn row(&mut self, key: &[u8], value: &[u8]) {
        encode(&mut self.piece, key, Some(value));
    }

    /// Appends a part of encoded records.
    pub(super) fn encoded(&mut self, bytes: &[u8]) {
        self.piece.extend_from_slice(bytes);
    }

    /// Appends the trailer.
    pub(super) fn end(&mut self) {
        self.digest.update(&self.piece);
        let length = self.taken + self.piece.len() as u64;
        self.piece.extend(MARK.to_be_bytes());
        self.piece.extend(length.to_be_bytes());
        self.piece
            .extend(std::mem::take(&mut self.digest).finalize());
    }

    /// How many bytes wait to be taken.
    pub(super) fn pending(&self) -> usize {
        self.piece.len()
    }

    /// Takes the bytes that wait.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.digest.update(&self.piece);
        self.taken += self.piece.len() as u64;
        std::mem::take(&mut self.piece)
    }
}

/// Appends a record: a row, or the removal of one.
pub(super) fn encode(bytes: &mut Vec<u8>, key: &[u8], value: Option<&[u8]>) {
    bytes.extend(length_of(key).to_be_bytes());
    bytes.extend(value.map_or(MARK, length_of).to_be_bytes());
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(value.unwrap_or_default());
}

/// A row of a backup, or the removal of one.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct BackupRecord {
    pub(super) key: Vec<u8>,
    pub(super) value: Option<Vec<u8>>,
}

/// Reads a backup, and checks it.
pub(super) struct BackupReader<R> {
    source: R,
    read: u64,
    digest: Sha256,
}

/// Why a backup cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BackupFault {
    /// It is something else.
    #[error("it is no backup of signalbox")]
    Foreign,
    /// A newer version of signalbox made it, or one from before the first release.
    #[error("it has format {found}, and this version reads {known}")]
    OtherFormat {
        /// Its format.
        found: u64,
        /// The one known.
        known: u64,
    },
    /// Its end is missing.
    #[error("it is incomplete: its end is missing")]
    Truncated,
    /// Bytes were changed.
    #[error("it is damaged")]
    Damaged,
    /// It cannot be read.
    #[error(transparent)]
    Io(io::Error),
}

impl<R: Read> BackupReader<R> {
    /// Reads the beginning.
    pub(super) fn begin(source: R) -> Result<Self, BackupFault> {
        let mut reader = Self {
            source,
            read: 0,
            digest: Sha256::new(),
        };
        let magic = reader.bytes(MAGIC.len()).map_err(foreign)?;
        let [version] = reader.array().map_err(foreign)?;
        if magic != MAGIC || version != VERSION {
            return Err(BackupFault::Foreign);
        }
        let found = u64::from_be_bytes(reader.array()?);
        match found == FORMAT {
            true => Ok(reader),
            false => Err(BackupFault::OtherFormat {
                found,
                known: FORMAT,
            }),
        }
    }

    /// The next record; none at the end, when everything before was right.
    pub(super) fn next(&mut self) -> Result<Option<BackupRecord>, BackupFault> {
        let (before, digest) = (self.read, self.digest.clone());
        let key_length = u32::from_be_bytes(self.array()?);
        if key_length == MARK {
            return self.check(before, digest).map(|()| None);
        }
        let value_length = u32::from_be_bytes(self.array()?);
        let key = self.text(key_length)?;
        let value = match value_length {
            MARK => None,
            length => Some(self.text(length)?),
        };
        Ok(Some(BackupRecord { key, value }))
    }

    fn check(&mut self, before: u64, digest: Sha256) -> Result<(), BackupFault> {
        let length = u64::from_be_bytes(self.array()?);
        let expected: [u8; 32] = self.array()?;
        match length == before && expected == *digest.finalize() {
            true => Ok(()),
            false => Err(BackupFault::Damaged),
        }
    }

    fn text(&mut self, length: u32) -> Result<Vec<u8>, BackupFault> {
        match usize::try_from(length) {
            Ok(bytes) if length <= LENGTH_MAX => self.bytes(bytes),
            Ok(_) | Err(_) => Err(BackupFault::Damaged),
        }
    }

    fn bytes(&mut self, length: usize) -> Result<Vec<u8>, BackupFault> {
        let mut bytes = vec![0; length];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BackupFault> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), BackupFault> {
        self.source.read_exact(bytes).map_err(|error| {
            let ended = error.kind() == ErrorKind::UnexpectedEof;
            match ended {
                true => BackupFault::Truncated,
                false => BackupFault::Io(error),
            }
        })?;
        self.digest.update(&*bytes);
        self.read += bytes.len() as u64;
        Ok(())
    }
}

fn length_of(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("keys and rows are short")
}

/// A file that ends before the version is none of ours.
fn foreign(fault: BackupFault) -> BackupFault {
    match fault {
        BackupFault::Truncated => BackupFault::Foreign,
        other @ (BackupFault::Foreign
        | BackupFault::OtherFormat { .. }
        | BackupFault::Damaged
        | BackupFault::Io(_)) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_read_as_it_was_written() {
        let bytes = backup();
        assert_eq!(
            read(&bytes).unwrap(),
            [row("a", Some("1")), row("b", Some("")), row("a", None)]
        );
    }

    #[test]
    fn a_backup_without_its_end_is_incomplete() {
        let bytes = backup();
        for length in MAGIC.len() + 1..bytes.len() {
            let fault = read(&bytes[..length]).unwrap_err();
            assert!(matches!(fault, BackupFault::Truncated), "{length}: {fault}");
        }
    }

    #[test]
    fn no_changed_byte_goes_unnoticed() {
        let bytes = backup();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(read(&changed).is_err(), "{at}");
        }
    }

    #[test]
    fn another_file_and_another_format_are_named() {
        for other in [
            &b""[..],
            b"signalbox",
            b"PK\x03\x04 a file of another program",
        ] {
            assert!(matches!(read(other), Err(BackupFault::Foreign)));
        }
        let mut newer = backup();
        newer[MAGIC.len() + 8] += 1;
        let fault = read(&newer).unwrap_err();
        assert!(matches!(fault, BackupFault::OtherFormat { .. }), "{fault}");
    }

    fn backup() -> Vec<u8> {
        let mut writer = BackupWriter::begin();
        writer.row(b"a", b"1");
        let mut bytes = writer.take();
        writer.row(b"b", b"");
        let mut removal = Vec::new();
        encode(&mut removal, b"a", None);
        writer.encoded(&removal);
        writer.end();
        bytes.extend(writer.take());
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Vec<BackupRecord>, BackupFault> {
        let mut reader = BackupReader::begin(bytes)?;
        let mut records = Vec::new();
        while let Some(record) = reader.next()? {
            records.push(record);
        }
        Ok(records)
    }

    fn row(key: &str, value: Option<&str>) -> BackupRecord {
        BackupRecord {
            key: key.into(),
            value: value.map(Into::into),
        }
    }
}
