//! Why did datagrams reach no device? Counted, and logged for the operator.

use std::collections::HashMap;

use engine::dispatch::DropReason;
use tracing::info;

/// Counts by reason; there are a few dozen reasons at most.
#[derive(Default)]
pub(crate) struct DropTally {
    counts: HashMap<DropReason, u64>,
    untold: u64,
}

impl DropTally {
    /// Counts a datagram.
    pub(crate) fn note(&mut self, reason: DropReason) {
        *self.counts.entry(reason).or_default() += 1;
        self.untold += 1;
    }

    /// The counts since the start.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (DropReason, u64)> {
        self.counts.iter().map(|(reason, count)| (*reason, *count))
    }

    /// Logs the counts since the start, if there is anything new.
    pub(crate) fn log(&mut self) {
        if std::mem::take(&mut self.untold) > 0 {
            info!(counts = ?self.counts, "datagrams without a device were dropped");
        }
    }
}
