//! What does a sweep remove, and how much of it at once?

mod budget;
mod events;
mod old;
mod removed;

use tokio::sync::oneshot;

use super::fault::Fault;
use super::ledger::Ledger;
use super::overlay::Overlay;
use crate::{Retention, SweepReport, Unavailable};
use budget::{RemovedRows, SweepBudget};

/// The rows one sweep may write, however much is requested. The rows of a thing are spread over the
/// tree, so removing a request of eight takes up to 0.3 ms, in which no commit is written and,
/// while sled applies the rows, nothing is read: those of 64 take about as long as a group of
/// commits. The caller sweeps again.
pub(super) const ROWS: usize = 512;

/// The rows one sweep may write after commits that wrote as many since the one before: removal
/// keeps up with arrival, and commits wait for it no longer than they take themselves. It is twice
/// what a full group of 1,024 batches leaves to be removed when each of them has an event, and
/// takes little longer than such a group, so that a backlog is removed as well.
pub(super) const ROWS_MAX: usize = 4_096;

/// A requested sweep.
pub(super) struct SweepRequest {
    /// What is too old.
    pub(super) retention: Retention,
    /// How much to remove at most.
    pub(super) max: u32,
    /// Where the answer goes.
    pub(super) reply: oneshot::Sender<Result<SweepReport, Unavailable>>,
}

/// What is to be removed.
pub(super) struct SweepTargets<'a> {
    /// What is too old.
    pub(super) retention: Retention,
    /// The stored events.
    pub(super) ledger: &'a mut Ledger,
}

/// Removes things of one kind.
type Sweep = fn(&mut SweepTargets<'_>, SweepBudget, &mut Overlay<'_>) -> Result<RemovedRows, Fault>;

/// Every kind of thing that is swept.
const SORTS: [Sweep; 17] = [
    old::tokens,
    old::idempotency_records,
    old::actions,
    old::entries,
    events::expired,
    old::dead_letters,
    old::jobs,
    old::job_requests,
    old::job_parts,
    old::sms,
    removed::logs,
    events::of_removed_customers,
    events::of_removed_devices,
    removed::texts,
    removed::destinations,
    removed::jobs,
    removed::sms,
];

/// Removes what is due, after commits that wrote this many rows while something was due. Every kind
/// of thing has its share first, so that none waits for another; the rest of the room is shared by
/// those that have more.
pub(super) fn sweep(
    due: &mut SweepTargets<'_>,
    max: u32,
    rows_written: usize,
    rows: &mut Overlay<'_>,
) -> Result<SweepReport, Fault> {
    let mut room = SweepBudget {
        things: usize::try_from(max).unwrap_or(usize::MAX),
        rows_end: rows.len() + rows_written.clamp(ROWS, ROWS_MAX),
    };
    let mut swept = SweepReport::default();
    let mut sorts = SORTS.to_vec();
    while !sorts.is_empty() && room.keys(rows) > 0 {
        let mut unfinished = Vec::new();
        for (place, sort) in sorts.iter().enumerate() {
            let share = room.share(sorts.len() - place, rows);
            rows.begin();
            let removed = match sort(due, share, rows) {
                Ok(removed) => removed,
                Err(fault) if fault.is_fatal() => return Err(fault),
                Err(fault) => {
                    tracing::error!(%fault, "expired rows of one kind cannot be deleted");
                    rows.roll_back();
                    continue;
                }
            };
            room = room.behind(removed);
            swept.removed += u64::try_from(removed.things).expect("a bounded count");
            if removed.full {
                unfinished.push(*sort);
            }
        }
        sorts = unfinished;
    }
    swept.more = !sorts.is_empty();
    Ok(swept)
}
