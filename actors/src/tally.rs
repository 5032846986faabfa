//! What became of datagrams that reached no device? Counted, and told to the operator.

use std::collections::HashMap;

use engine::registry::Fate;
use tracing::info;

/// Counts by fate; there are a few dozen fates at most.
#[derive(Default)]
pub(crate) struct Tally {
    counts: HashMap<Fate, u64>,
    untold: u64,
}

impl Tally {
    /// Counts a datagram.
    pub(crate) fn note(&mut self, fate: Fate) {
        *self.counts.entry(fate).or_default() += 1;
        self.untold += 1;
    }

    /// The counts since the start.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (Fate, u64)> {
        self.counts.iter().map(|(fate, count)| (*fate, *count))
    }

    /// Tells the counts since the start, if there is anything new.
    pub(crate) fn tell(&mut self) {
        if std::mem::take(&mut self.untold) > 0 {
            info!(counts = ?self.counts, "datagrams without a device were dropped");
        }
    }
}
