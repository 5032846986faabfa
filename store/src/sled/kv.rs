//! How is a value of any size stored in rows of bounded size?
//!
//! sled writes what is too large for its log to `blobs/`, without fsync. So a larger value is cut:
//! its first row has the number of pieces that follow and the digest of the whole, and each piece
//! is a row of its own. A reader that meets the pieces of two versions detects it by the digest and
//! reads again.

use sha2::{Digest, Sha256};
use sled::IVec;

use super::fault::Fault;
use super::key;
use crate::record::Unreadable;

/// The largest value of a row. sled keeps up to 16 rows on a page and writes a page of more than
/// 128 KiB to `blobs/`.
const ROW_BYTES_MAX: usize = 4_096;

/// What the first row of a cut value begins with; no format has this version.
const CUT: u8 = 0xff;

/// The mark, how many pieces follow, and the digest.
const HEAD_BYTES: usize = 1 + 2 + DIGEST_BYTES;
const DIGEST_BYTES: usize = 8;

/// A value is overwritten at most once per group, so a reader that fails this often in a row has
/// met damage, not a writer.
const READS_MAX: u32 = 16;

/// Where rows are read from.
pub(super) trait Rows {
    /// A row.
    fn row(&self, key: &[u8]) -> Result<Option<IVec>, Fault>;
}

impl Rows for sled::Tree {
    fn row(&self, key: &[u8]) -> Result<Option<IVec>, Fault> {
        Ok(self.get(key)?)
    }
}

/// A value cut into rows.
#[derive(Debug)]
pub(super) struct Value {
    /// The row under the key of the value.
    pub(super) head: IVec,
    /// The rows that follow.
    pub(super) pieces: Vec<(IVec, IVec)>,
}

impl Value {
    /// Cuts a value into as many rows as needed.
    pub(super) fn cut(key: &[u8], value: &[u8]) -> Self {
        if value.len() <= ROW_BYTES_MAX {
            return Self {
                head: IVec::from(value),
                pieces: Vec::new(),
            };
        }
        let (first, rest) = value.split_at(ROW_BYTES_MAX - HEAD_BYTES);
        let pieces: Vec<_> = rest
            .chunks(ROW_BYTES_MAX)
            .zip(0..)
            .map(|(piece, number)| (IVec::from(key::piece(key, number)), IVec::from(piece)))
            .collect();
        let count = u16::try_from(pieces.len()).expect("no value reaches 256 MiB");
        let mut head = Vec::with_capacity(ROW_BYTES_MAX);
        head.push(CUT);
        head.extend_from_slice(&count.to_be_bytes());
        head.extend_from_slice(&digest(value));
        head.extend_from_slice(first);
        Self {
            head: IVec::from(head),
            pieces,
        }
    }

    /// The size of all rows.
    pub(super) fn bytes(&self) -> usize {
        let pieces = self
            .pieces
            .iter()
            .map(|(key, piece)| key.len() + piece.len());
        self.head.len() + pieces.sum::<usize>()
    }
}

/// Reads a value.
pub(super) fn load(rows: &impl Rows, key: &[u8]) -> Result<Option<IVec>, Fault> {
    for _ in 0..READS_MAX {
        let Some(head) = rows.row(key)? else {
            return Ok(None);
        };
        let Some(cut) = Head::of(&head) else {
            return Ok(Some(head));
        };
        if let Some(value) = join(rows, key, &cut)? {
            return Ok(Some(IVec::from(value)));
        }
    }
    Err(Fault::Unreadable(Unreadable::Damaged(
        "pieces of a value are missing",
    )))
}

/// How many pieces follow this first row.
pub(super) fn pieces_behind(head: &[u8]) -> u16 {
    Head::of(head).map_or(0, |head| head.pieces)
}

/// The beginning of a value, from its first row.
pub(super) fn beginning(head: &[u8]) -> &[u8] {
    Head::of(head).map_or(head, |head| head.first)
}

/// The first row of a cut value.
struct Head<'a> {
    pieces: u16,
    digest: [u8; DIGEST_BYTES],
    first: &'a [u8],
}

impl<'a> Head<'a> {
    /// Nothing for a value that was not cut.
    fn of(row: &'a [u8]) -> Option<Self> {
        let rest = row.strip_prefix(&[CUT])?;
        let (pieces, rest) = rest.split_first_chunk()?;
        let (digest, first) = rest.split_first_chunk()?;
        Some(Self {
            pieces: u16::from_be_bytes(*pieces),
            digest: *digest,
            first,
        })
    }
}

/// Nothing if the pieces do not belong to this head.
fn join(rows: &impl Rows, key: &[u8], head: &Head<'_>) -> Result<Option<Vec<u8>>, Fault> {
    let mut value = head.first.to_vec();
    for number in 0..head.pieces {
        let Some(piece) = rows.row(&key::piece(key, number))? else {
            return Ok(None);
        };
        value.extend_from_slice(&piece);
    }
    Ok((digest(&value) == head.digest).then_some(value))
}

fn digest(value: &[u8]) -> [u8; DIGEST_BYTES] {
    let whole: [u8; 32] = Sha256::digest(value).into();
    let mut digest = [0; DIGEST_BYTES];
    digest.copy_from_slice(&whole[..DIGEST_BYTES]);
    digest
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Rows in memory.
    #[derive(Default)]
    struct Memory(BTreeMap<Vec<u8>, IVec>);

    impl Rows for Memory {
        fn row(&self, key: &[u8]) -> Result<Option<IVec>, Fault> {
            Ok(self.0.get(key).cloned())
        }
    }

    impl Memory {
        fn put(&mut self, key: &[u8], value: &[u8]) {
            let value = Value::cut(key, value);
            self.0.insert(key.to_vec(), value.head);
            self.0.extend(
                value
                    .pieces
                    .into_iter()
                    .map(|(key, piece)| (key.to_vec(), piece)),
            );
        }
    }

    fn value(size: usize, seed: u8) -> Vec<u8> {
        (0..size)
            .map(|at| seed.wrapping_add((at % 251) as u8) | 1)
            .collect()
    }

    #[test]
    fn a_value_of_any_size_is_read_back_and_no_row_is_too_large() {
        for size in [1, 4_085, 4_086, 4_095, 4_096, 4_097, 8_181, 8_182, 100_000] {
            let mut rows = Memory::default();
            rows.put(b"key", &value(size, 7));
            assert!(rows.0.values().all(|row| row.len() <= ROW_BYTES_MAX));
            let read = load(&rows, b"key").unwrap().unwrap();
            assert_eq!(read, value(size, 7), "{size}");
            let head = rows.row(b"key").unwrap().unwrap();
            assert_eq!(beginning(&head)[0], value(size, 7)[0]);
            assert_eq!(usize::from(pieces_behind(&head)), rows.0.len() - 1);
        }
        assert!(load(&Memory::default(), b"key").unwrap().is_none());
    }

    #[test]
    fn pieces_of_two_versions_are_not_mixed() {
        let mut rows = Memory::default();
        rows.put(b"key", &value(10_000, 7));
        let mut other = Memory::default();
        other.put(b"key", &value(10_000, 9));
        let piece = key::piece(b"key", 1);
        rows.0.insert(piece.clone(), other.0[&piece].clone());
        assert!(matches!(load(&rows, b"key"), Err(Fault::Unreadable(_))));
        rows.0.remove(&piece);
        assert!(matches!(load(&rows, b"key"), Err(Fault::Unreadable(_))));
    }
}
