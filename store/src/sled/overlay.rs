//! What will the tree hold once the group is written?
//!
//! The batches of a group see each other's rows before any of them is in the tree. A row written
//! by several of them, such as a count, is written once.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;

use sled::{Batch, IVec, Tree};

use super::fault::Fault;
use super::key::{self, Key};
use super::kv::{self, Rows, Value};
use crate::record::number;

/// The tree with the writes of a group on top.
pub(super) struct Overlay<'t> {
    tree: &'t Tree,
    writes: BTreeMap<IVec, Option<IVec>>,
    /// What the writes since the last [`Overlay::begin`] replaced among the writes, in order.
    replaced: Vec<(IVec, Option<Option<IVec>>)>,
}

/// A row to be written: its key, its old value and its new one.
pub(super) type Rewritten = (IVec, Option<IVec>, Option<IVec>);

impl Rows for Overlay<'_> {
    fn row(&self, key: &[u8]) -> Result<Option<IVec>, Fault> {
        match self.writes.get(key) {
            Some(written) => Ok(written.clone()),
            None => Ok(self.tree.get(key)?),
        }
    }
}

impl<'t> Overlay<'t> {
    /// The tree without writes.
    pub(super) fn new(tree: &'t Tree) -> Self {
        Self {
            tree,
            writes: BTreeMap::new(),
            replaced: Vec::new(),
        }
    }

    /// Begins a part that can be rolled back as a whole.
    pub(super) fn begin(&mut self) {
        self.replaced.clear();
    }

    /// Rolls back everything written since the last [`Overlay::begin`].
    pub(super) fn roll_back(&mut self) {
        while let Some((key, before)) = self.replaced.pop() {
            match before {
                Some(write) => self.writes.insert(key, write),
                None => self.writes.remove(&key),
            };
        }
    }

    /// Puts a row.
    pub(super) fn put(&mut self, key: IVec, row: IVec) {
        self.write(key, Some(row));
    }

    /// Removes a row.
    pub(super) fn remove(&mut self, key: impl Into<IVec>) {
        self.write(key.into(), None);
    }

    /// Replaces a value.
    pub(super) fn replace(&mut self, key: IVec, value: Value) -> Result<(), Fault> {
        let kept = u16::try_from(value.pieces.len()).expect("a cut value counts its pieces");
        let there = self.row(&key)?.map_or(0, |old| kv::pieces_behind(&old));
        self.remove_pieces(&key, kept..there);
        for ((key, piece), number) in value.pieces.into_iter().zip(0..) {
            // Most pieces of a large value that changes little stay as they are.
            if number >= there || self.row(&key)?.as_ref() != Some(&piece) {
                self.put(key, piece);
            }
        }
        self.put(key, value.head);
        Ok(())
    }

    /// Removes a value and returns whether it existed.
    pub(super) fn erase(&mut self, key: impl Into<IVec>) -> Result<bool, Fault> {
        let key = key.into();
        let Some(old) = self.row(&key)? else {
            return Ok(false);
        };
        self.remove_pieces(&key, 0..kv::pieces_behind(&old));
        self.remove(key);
        Ok(true)
    }

    /// Adds to a count; a count of zero has no row.
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

    /// The keys with a prefix, ascending, at most `max`.
    pub(super) fn keys(&self, prefix: &[u8], max: usize) -> Result<Vec<IVec>, Fault> {
        self.keys_between(prefix, &key::behind(prefix.to_vec()), max)
    }

    /// The keys from a first one to before an end, ascending, at most `max`.
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
        // Written keys hide at most as many of the tree's, so this many are enough.
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

    /// The last key with a prefix.
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

    /// The rows to be written whose keys have a prefix: the old value, and the new one.
    pub(super) fn written(&self, prefix: &[u8]) -> Result<Vec<Rewritten>, Fault> {
        let end = key::behind(prefix.to_vec());
        let bounds = (Bound::Included(prefix), Bound::Excluded(end.as_slice()));
        let written = self.writes.range::<[u8], _>(bounds);
        let rewritten = written.map(|(key, after)| {
            let before = self.tree.get(key)?;
            Ok((key.clone(), before, after.clone()))
        });
        rewritten.collect()
    }

    /// The rows to be written with a value whose keys have a prefix.
    pub(super) fn put_under(&self, prefix: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
        let end = key::behind(prefix.to_vec());
        let bounds = (Bound::Included(prefix), Bound::Excluded(end.as_slice()));
        let written = self.writes.range::<[u8], _>(bounds);
        written.filter_map(|(key, write)| Some((key.as_ref(), write.as_deref()?)))
    }

    /// Whether a row is to be written whose key has a prefix.
    pub(super) fn changes_under(&self, prefix: &[u8]) -> bool {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let mut written = self.writes.range::<[u8], _>(from);
        written
            .next()
            .is_some_and(|(key, _)| key.starts_with(prefix))
    }

    /// The rows to be written; those without a value are removed.
    pub(super) fn writes(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let writes = self.writes.iter();
        writes.map(|(key, write)| (key.as_ref(), write.as_deref()))
    }

    /// Whether nothing is to be written.
    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// How many rows are to be written.
    pub(super) fn len(&self) -> usize {
        self.writes.len()
    }

    /// The rows there are after everything was written to an empty tree.
    pub(super) fn into_rows(self) -> Vec<(IVec, IVec)> {
        let rows = self.writes.into_iter();
        rows.filter_map(|(key, row)| Some((key, row?))).collect()
    }

    /// Everything to be written, as one batch.
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

    fn write(&mut self, key: IVec, row: Option<IVec>) {
        let before = self.writes.insert(key.clone(), row);
        self.replaced.push((key, before));
    }

    fn remove_pieces(&mut self, of: &[u8], numbers: std::ops::Range<u16>) {
        for number in numbers {
            let piece: Key = key::piece(of, number);
            self.remove(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(keys: &[&str]) -> (tempfile::TempDir, sled::Db) {
        let home = tempfile::tempdir().unwrap();
        let db = sled::Config::new()
            .path(home.path())
            .flush_every_ms(None)
            .open()
            .unwrap();
        for key in keys {
            db.insert(key, "tree").unwrap();
        }
        (home, db)
    }

    fn text(keys: Vec<IVec>) -> Vec<String> {
        keys.into_iter()
            .map(|key| String::from_utf8(key.to_vec()).unwrap())
            .collect()
    }

    #[test]
    fn writes_hide_the_rows_of_the_tree() {
        let (_home, db) = tree(&["a1", "a3", "a5", "b1"]);
        let mut rows = Overlay::new(&db);
        rows.put("a2".into(), "new".into());
        rows.put("a3".into(), "new".into());
        rows.remove("a5");
        assert_eq!(rows.row(b"a1").unwrap(), Some("tree".into()));
        assert_eq!(rows.row(b"a3").unwrap(), Some("new".into()));
        assert_eq!(rows.row(b"a5").unwrap(), None);
        assert_eq!(text(rows.keys(b"a", 9).unwrap()), ["a1", "a2", "a3"]);
        assert_eq!(text(rows.keys(b"a", 2).unwrap()), ["a1", "a2"]);
        assert_eq!(rows.keys(b"c", 9).unwrap(), Vec::<IVec>::new());
    }

    #[test]
    fn writes_since_begin_are_rolled_back() {
        let (_home, db) = tree(&["a1", "a2"]);
        let mut rows = Overlay::new(&db);
        rows.remove("a1");
        rows.put("a3".into(), "kept".into());
        rows.begin();
        rows.put("a1".into(), "lost".into());
        rows.remove("a2");
        rows.remove("a3");
        rows.put("a3".into(), "lost".into());
        rows.put("a4".into(), "lost".into());
        rows.roll_back();
        assert_eq!(text(rows.keys(b"a", 9).unwrap()), ["a2", "a3"]);
        assert_eq!(rows.row(b"a3").unwrap(), Some("kept".into()));
        assert_eq!(rows.len(), 2);
    }

    #[test]
    fn the_last_key_is_the_last_one_that_will_be_there() {
        let (_home, db) = tree(&["a1", "a3", "a5", "b1"]);
        let mut rows = Overlay::new(&db);
        assert_eq!(rows.last_key(b"a").unwrap(), Some("a5".into()));
        rows.remove("a5");
        assert_eq!(rows.last_key(b"a").unwrap(), Some("a3".into()));
        rows.put("a4".into(), "new".into());
        rows.put("a9".into(), "new".into());
        rows.remove("a9");
        assert_eq!(rows.last_key(b"a").unwrap(), Some("a4".into()));
        assert_eq!(rows.last_key(b"c").unwrap(), None);
    }

    #[test]
    fn a_smaller_value_leaves_no_piece_of_the_larger_one() {
        let (_home, db) = tree(&[]);
        let mut rows = Overlay::new(&db);
        for size in [40_000, 9_000, 3] {
            let value = Value::cut(b"key", &vec![1; size]);
            let rows_needed = value.pieces.len() + 1;
            rows.replace("key".into(), value).unwrap();
            assert_eq!(kv::load(&rows, b"key").unwrap().unwrap().len(), size);
            assert_eq!(rows.writes.values().flatten().count(), rows_needed);
        }
        assert!(rows.erase("key").unwrap());
        assert!(!rows.erase("key").unwrap());
        assert_eq!(rows.writes.values().flatten().count(), 0);
    }

    #[test]
    fn unchanged_pieces_are_not_written_again() {
        let (_home, db) = tree(&[]);
        let mut value = vec![1; 40_000];
        let mut rows = Overlay::new(&db);
        rows.replace("key".into(), Value::cut(b"key", &value))
            .unwrap();
        let whole = rows.len();
        db.apply_batch(rows.into_batch()).unwrap();
        let mut rows = Overlay::new(&db);
        for (changed, written) in [(0, 1), (39_999, 2), (20_000, 3)] {
            value[changed] = 2;
            let cut = Value::cut(b"key", &value);
            rows.replace("key".into(), cut).unwrap();
            assert_eq!(rows.len(), written, "of {whole}");
            assert_eq!(*kv::load(&rows, b"key").unwrap().unwrap(), *value);
        }
    }

    #[test]
    fn a_count_that_comes_back_to_zero_leaves_no_row() {
        let (_home, db) = tree(&[]);
        let mut rows = Overlay::new(&db);
        rows.add("count".into(), -2).unwrap();
        rows.add("count".into(), 5).unwrap();
        let row = rows.row(b"count").unwrap().unwrap();
        assert_eq!(number::read_count(&row), Ok(3));
        rows.add("count".into(), -3).unwrap();
        assert_eq!(rows.row(b"count").unwrap(), None);
    }
}
