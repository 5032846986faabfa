//! Which events are removed? Those of an age, and those of removed customers, block by block.
//!
//! A block goes when all its events are due. Whether they were delivered does not matter: what a
//! destination has not reached by then is lost to it.

use super::SweepTargets;
use super::budget::{RemovedRows, SweepBudget};
use crate::record::Unreadable;
use crate::record::number::read_sequence;
use crate::sled::fault::Fault;
use crate::sled::key;
use crate::sled::kv::Rows;
use crate::sled::ledger::{Ledger, PartitionKey};
use crate::sled::overlay::Overlay;

/// Removes the events of before an instant.
pub(super) fn expired(
    due: &mut SweepTargets<'_>,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    let before = due.retention.events_before;
    clear(due.ledger, room, rows, |ledger| ledger.expired(before))
}

/// Removes the events of removed customers, and the marks of those that have none left.
pub(super) fn of_removed_customers(
    due: &mut SweepTargets<'_>,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    let mut removed = RemovedRows::default();
    let marks_max = room.keys(rows);
    let marks = rows.keys(&key::event::removed_customers(), marks_max)?;
    removed.full = marks.len() >= marks_max;
    for mark in marks {
        let customer = key::event::customer_of_removed(&mark);
        let customer = customer.ok_or(Unreadable::Damaged("the mark of a customer"))?;
        let last = rows.row(&mark)?.unwrap_or_default();
        let last = read_sequence(&last)?;
        let room = room.behind(removed);
        let of_customer = clear(due.ledger, room, rows, |ledger| {
            ledger.removed(&customer, last)
        })?;
        removed.add(of_customer);
        if of_customer.full {
            break;
        }
        rows.remove(mark);
    }
    Ok(removed)
}

/// Removes the marks of histories whose events are gone.
pub(super) fn of_removed_devices(
    due: &mut SweepTargets<'_>,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    let oldest = due.ledger.oldest();
    let first = key::event::removed();
    let end = key::behind(first.clone());
    room.clear(&first, &end, rows, |mark, rows| {
        let last = rows.row(&mark)?.unwrap_or_default();
        if read_sequence(&last)? < oldest {
            rows.remove(mark);
        }
        Ok(())
    })?;
    // Marks are no things, and those that stay must not keep a sweep going.
    Ok(RemovedRows::default())
}

/// Removes the oldest blocks of partitions, one after the other.
fn clear(
    ledger: &mut Ledger,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
    next: impl Fn(&Ledger) -> Option<PartitionKey>,
) -> Result<RemovedRows, Fault> {
    let mut removed = RemovedRows::default();
    while let Some(partition) = next(ledger) {
        if room.behind(removed).keys(rows) == 0 {
            removed.full = true;
            break;
        }
        ledger.remove_oldest(partition, rows)?;
        removed.things += 1;
        // What was removed so far stays removed, whatever becomes of the next one.
        rows.begin();
    }
    Ok(removed)
}
