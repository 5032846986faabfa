//! How much may a part of a sweep remove?

use sled::IVec;

use crate::sled::fault::Fault;
use crate::sled::overlay::Overlay;

/// A thing has at least two rows: itself, and the one it is found by.
const ROWS_OF_THING: usize = 2;

/// The room for removals.
#[derive(Clone, Copy, Debug)]
pub(super) struct SweepBudget {
    /// How many things.
    pub(super) things: usize,
    /// Things are removed until this many rows are to be written. The last of them may exceed it.
    pub(super) rows_end: usize,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RemovedRows {
    /// How many things.
    pub(super) things: usize,
    /// Whether the room was used up.
    pub(super) full: bool,
}

impl SweepBudget {
    /// How many keys are worth reading.
    pub(super) fn keys(self, rows: &Overlay<'_>) -> usize {
        let rows_left = self.rows_end.saturating_sub(rows.len());
        self.things.min(rows_left.div_ceil(ROWS_OF_THING))
    }

    /// An equal part of it, for one of `of`.
    pub(super) fn share(self, of: usize, rows: &Overlay<'_>) -> Self {
        let rows_left = self.rows_end.saturating_sub(rows.len());
        Self {
            things: self.things.div_ceil(of),
            rows_end: rows.len() + rows_left.div_ceil(of),
        }
    }

    /// What is left of it.
    pub(super) fn behind(self, removed: RemovedRows) -> Self {
        Self {
            things: self.things.saturating_sub(removed.things),
            ..self
        }
    }

    /// Removes the things of the keys from a first one to before an end.
    pub(super) fn clear(
        self,
        first: &[u8],
        end: &[u8],
        rows: &mut Overlay<'_>,
        remove: impl FnMut(IVec, &mut Overlay<'_>) -> Result<(), Fault>,
    ) -> Result<RemovedRows, Fault> {
        let keys = rows.keys_between(first, end, self.keys(rows))?;
        self.clear_all(keys, rows, remove)
    }

    /// Removes the things of these keys, which are at most [`SweepBudget::keys`].
    pub(super) fn clear_all(
        self,
        keys: Vec<IVec>,
        rows: &mut Overlay<'_>,
        mut remove: impl FnMut(IVec, &mut Overlay<'_>) -> Result<(), Fault>,
    ) -> Result<RemovedRows, Fault> {
        let mut removed = RemovedRows {
            things: 0,
            full: keys.len() >= self.keys(rows),
        };
        for key in keys {
            if rows.len() >= self.rows_end {
                removed.full = true;
                break;
            }
            remove(key, rows)?;
            removed.things += 1;
        }
        Ok(removed)
    }
}

impl RemovedRows {
    /// Adds what else was removed.
    pub(super) fn add(&mut self, more: Self) {
        self.things += more.things;
        self.full |= more.full;
    }
}
