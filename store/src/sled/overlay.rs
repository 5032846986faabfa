//! What will the tree hold once the group is written?
//!
//! The batches of a group see each other's rows before any of them is in the tree. A row written
//! by several of them, such as a count, is written once.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;

use sled::{Batch, IVec, Tree};

use super::fault::Fault;
use super::kv::{self, Rows, Value};
use crate::key::{self, Key};
use crate::record::number;

/// The tree with the writes of a group on top.
pub(super) struct Overlay<'t> {
    tree: &'t Tree,
    writes: BTreeMap<IVec, Option<IVec>>,
}

impl Rows for Overlay<'_> {
    fn row(&self, key: &[u8]) -> Result<Option<IVec>, Fault> {
        match self.writes.get(key) {
            Some(written) => Ok(written.clone()),
            None => Ok(self.tree.get(key)?),
        }
    }
}

impl<'t> Overlay<'t> {
    /// The tree as it is.
    pub(super) fn new(tree: &'t Tree) -> Self {
        Self {
            tree,
            writes: BTreeMap::new(),
        }
    }

    /// Puts a row.
    pub(super) fn put(&mut self, key: IVec, row: IVec) {
        self.writes.insert(key, Some(row));
    }

    /// Removes a row.
    pub(super) fn remove(&mut self, key: impl Into<IVec>) {
        self.writes.insert(key.into(), None);
    }

    /// Puts a value over what was there.
    pub(super) fn replace(&mut self, key: IVec, value: Value) -> Result<(), Fault> {
        let kept = u16::try_from(value.pieces.len()).expect("a cut value counts its pieces");
        if let Some(old) = self.row(&key)? {
            self.remove_pieces(&key, kept..kv::pieces_behind(&old));
        }
        for (key, piece) in value.pieces {
            self.put(key, piece);
        }
        self.put(key, value.head);
        Ok(())
    }

    /// Removes a value and says whether it was there.
    pub(super) fn erase(&mut self, key: impl Into<IVec>) -> Result<bool, Fault> {
        let key = key.into();
        let Some(old) = self.row(&key)? else {
            return Ok(false);
        };
        self.remove_pieces(&key, 0..kv::pieces_behind(&old));
        self.remove(key);
        Ok(true)
    }

    /// Counts; a count of zero has no row.
    pub(super) fn add(&mut self, key: IVec, delta: i64) -> Result<(), Fault> {
        let before = match self.row(&key)? {
            Some(row) => number::read_count(&row)?,
            None => 0,
        };
        match before.saturating_add(delta) {
            0 => self.remove(key),
            count => self.put(key, IVec::from(&number::write_count(count))),
        }
        Ok(())
    }

    /// The keys that begin with a prefix, ascending, at most so many.
    pub(super) fn keys(&self, prefix: &[u8], max: usize) -> Result<Vec<IVec>, Fault> {
        self.keys_between(prefix, &key::behind(prefix.to_vec()), max)
    }

    /// The keys from a first one to before an end, ascending, at most so many.
    pub(super) fn keys_between(
        &self,
        first: &[u8],
        end: &[u8],
        max: usize,
    ) -> Result<Vec<IVec>, Fault> {
        if first >= end {
            return Ok(Vec::new());
        }
        let bounds = (Bound::Included(first), Bound::Excluded(end));
        let mut keys = BTreeMap::new();
        for (key, write) in self.writes.range::<[u8], _>(bounds) {
            keys.insert(key.clone(), write.is_some());
        }
        // Written keys hide at most as many of the tree's, so this many suffice.
        let enough = max.saturating_add(keys.len());
        for key in self.tree.range::<&[u8], _>(first..end).keys().take(enough) {
            if let Entry::Vacant(vacant) = keys.entry(key?) {
                vacant.insert(true);
            }
        }
        Ok(keys
            .into_iter()
            .filter_map(|(key, there)| there.then_some(key))
            .take(max)
            .collect())
    }

    /// The last key that begins with a prefix.
    pub(super) fn last_key(&self, prefix: &[u8]) -> Result<Option<IVec>, Fault> {
        let end = key::behind(prefix.to_vec());
        let bounds = (Bound::Included(prefix), Bound::Excluded(end.as_slice()));
        let written = self.writes.range::<[u8], _>(bounds).rev();
        let written = written
            .filter(|(_, write)| write.is_some())
            .map(|(key, _)| key.clone());
        let mut last = written.into_iter().next();
        for key in self
            .tree
            .range::<&[u8], _>(prefix..end.as_slice())
            .keys()
            .rev()
        {
            let key = key?;
            if last.as_ref().is_some_and(|last| *last >= key) {
                break;
            }
            if !matches!(self.writes.get(&key), Some(None)) {
                last = Some(key);
                break;
            }
        }
        Ok(last)
    }

    /// Whether nothing is to be written.
    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// What is to be written, as one.
    pub(super) fn into_batch(self) -> Batch {
        let mut batch = Batch::default();
        for (key, write) in self.writes {
            match write {
                Some(row) => batch.insert(key, row),
                None => batch.remove(key),
            }
        }
        batch
    }

    fn remove_pieces(&mut self, of: &[u8], numbers: std::ops::Range<u16>) {
        for number in numbers {
            let piece: Key = key::piece(of, number);
            self.remove(piece);
        }
    }
}
