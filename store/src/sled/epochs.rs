//! Which owners were superseded?

use std::collections::HashMap;

use engine::change::{Fence, Owner};
use sled::{IVec, Tree};

use super::fault::Fault;
use super::key;
use super::overlay::Overlay;
use crate::record::{Unreadable, number};

/// The newest epochs.
pub(super) struct Epochs {
    /// The newest epoch begun; owners of earlier ones are refused.
    begun: u64,
    /// The newest epoch in which each owner wrote.
    written: HashMap<Fence, u64>,
}

impl Epochs {
    /// Reads the epochs of a tree.
    pub(super) fn load(tree: &Tree) -> Result<Self, Fault> {
        let mut epochs = Self {
            begun: 0,
            written: HashMap::new(),
        };
        let prefix = key::epoch_begun();
        for row in tree.scan_prefix(&prefix) {
            let (key, row) = row?;
            let epoch = number::read_epoch(&row)?;
            match key::rest_of(&key, &prefix) {
                [] => epochs.begun = epoch,
                [high, low] => {
                    let fence = Fence(u16::from_be_bytes([*high, *low]));
                    epochs.written.insert(fence, epoch);
                }
                _ => return Err(Unreadable::Damaged("an epoch of no shard").into()),
            }
        }
        Ok(epochs)
    }

    /// Begins an epoch later than any before.
    pub(super) fn begin(&mut self, rows: &mut Overlay<'_>) -> u64 {
        let written = self.written.iter();
        let written = written.filter(|(fence, _)| fence.is_of_shard());
        let newest = written.map(|(_, epoch)| *epoch).fold(self.begun, u64::max);
        self.begun = newest.saturating_add(1);
        rows.put(key::epoch_begun().into(), epoch_row(self.begun));
        self.begun
    }

    /// Whether an owner of a later epoch is known.
    pub(super) fn fence(&self, owner: Owner) -> bool {
        let Some((fence, epoch)) = owner.fence() else {
            return false;
        };
        let written = self.written.get(&fence).copied().unwrap_or_default();
        let begun = if fence.is_of_shard() { self.begun } else { 0 };
        epoch < written.max(begun)
    }

    /// Records the epoch of an owner that writes.
    pub(super) fn record(&mut self, owner: Owner, rows: &mut Overlay<'_>) {
        let Some((fence, epoch)) = owner.fence() else {
            return;
        };
        if self.written.insert(fence, epoch) != Some(epoch) {
            rows.put(key::epoch(fence).into(), epoch_row(epoch));
        }
    }
}

fn epoch_row(epoch: u64) -> IVec {
    IVec::from(&number::write_epoch(epoch))
}
