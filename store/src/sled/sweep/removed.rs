//! What is left of removed customers, devices, destinations and jobs? A mark holds up to where
//! something is removed; it is deleted when nothing of that is left.

use std::ops::Range;

use engine::ids::EntryId;

use super::SweepTargets;
use super::budget::{RemovedRows, SweepBudget};
use crate::record::entry_place::Kind;
use crate::record::{Unreadable, number};
use crate::sled::destinations::remove_dead;
use crate::sled::fault::Fault;
use crate::sled::key::{self, Key};
use crate::sled::kv::Rows;
use crate::sled::log_entries::remove_entry;
use crate::sled::overlay::Overlay;
use crate::sled::sms::remove as remove_sms;

/// Removes what is left of the logs of removed customers.
pub(super) fn logs(
    _: &mut SweepTargets<'_>,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    each_marked(key::range_of(key::log::removed()), room, rows, log)
}

/// Removes what is left of the texts of removed customers.
pub(super) fn texts(
    _: &mut SweepTargets<'_>,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    each_marked(key::range_of(key::definition::removed()), room, rows, text)
}

/// Removes what is left of removed destinations.
pub(super) fn destinations(
    _: &mut SweepTargets<'_>,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    each_marked(
        key::range_of(key::outbox::removed()),
        room,
        rows,
        destination,
    )
}

/// Removes what is left of removed jobs.
pub(super) fn jobs(
    _: &mut SweepTargets<'_>,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    each_marked(key::range_of(key::job::all_removed()), room, rows, job)
}

/// Removes the SMS of removed devices.
pub(super) fn sms(
    _: &mut SweepTargets<'_>,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    each_marked(key::range_of(key::sms::all_removed()), room, rows, sms_of)
}

/// Removes what a mark with this row refers to.
pub(super) type Clear =
    fn(&[u8], &[u8], SweepBudget, &mut Overlay<'_>) -> Result<RemovedRows, Fault>;

pub(super) fn each_marked(
    marks: Range<Key>,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
    clear: Clear,
) -> Result<RemovedRows, Fault> {
    // A mark of nothing is a row itself, so the number of marks to look at is bounded as well.
    let marks_max = room.keys(rows);
    let marks = rows.keys_between(&marks.start, &marks.end, marks_max)?;
    let mut removed = RemovedRows {
        things: 0,
        full: marks.len() >= marks_max,
    };
    for mark in marks {
        let Some(row) = rows.row(&mark)? else {
            continue;
        };
        let of_mark = clear(&mark, &row, room.behind(removed), rows)?;
        removed.add(of_mark);
        if of_mark.full {
            break;
        }
        rows.remove(mark);
    }
    Ok(removed)
}

fn log(
    mark: &[u8],
    row: &[u8],
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    let (log, last) = (key::log::of_removed(mark), number::read_last_entry(row)?);
    let mut removed = RemovedRows::default();
    for kind in Kind::all(None, None) {
        let first = key::log::of_kind(log.clone(), kind);
        let end = end_of_removed(&first, last);
        let room = room.behind(removed);
        removed.add(room.clear(&first, &end, rows, |entry, rows| remove_entry(&entry, rows))?);
    }
    Ok(removed)
}

/// The first key after the last entry of a kind that a removed log may have.
fn end_of_removed(of_kind: &[u8], last: EntryId) -> Key {
    key::behind(key::append(of_kind.to_vec(), last.as_bytes()))
}

/// A text has a few dozen rows at most, so it is removed as a whole.
fn text(
    mark: &[u8],
    _: &[u8],
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    if room.keys(rows) == 0 {
        return Ok(RemovedRows {
            things: 0,
            full: true,
        });
    }
    let text = key::definition::text_of_removed(mark);
    let text = text.ok_or(Unreadable::Damaged("the mark of a text"))?;
    let things = usize::from(rows.erase(key::definition::text(text))?);
    Ok(RemovedRows {
        things,
        full: false,
    })
}

fn destination(
    mark: &[u8],
    _: &[u8],
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    let id = key::outbox::destination_of_removed(mark);
    let id = id.ok_or(Unreadable::Damaged("the mark of a destination"))?;
    let (held, dead) = (key::outbox::all_retries(id), key::outbox::all_dead(id));
    let end = key::behind(held.clone());
    let mut removed = room.clear(&held, &end, rows, |held, rows| {
        rows.remove(held);
        Ok(())
    })?;
    let (left, end) = (room.behind(removed), key::behind(dead.clone()));
    removed.add(left.clear(&dead, &end, rows, |dead, rows| {
        let sequence = key::outbox::last_number(&dead);
        let sequence = sequence.ok_or(Unreadable::Damaged("the key of a dead letter"))?;
        remove_dead(id, sequence, rows).map(|_| ())
    })?);
    if !removed.full {
        // A row for each partition at most, so they are removed as a whole.
        for reached in rows.keys(&key::outbox::all_cursors(id), usize::MAX)? {
            rows.remove(reached);
        }
    }
    Ok(removed)
}

fn sms_of(
    mark: &[u8],
    _: &[u8],
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    let device = key::sms::device_of_removed(mark);
    let device = device.ok_or(Unreadable::Damaged("the mark of the SMS of a device"))?;
    let first = key::sms::of_device(device);
    let end = key::behind(first.clone());
    room.clear(&first, &end, rows, |sms, rows| {
        let id = key::sms::last_sms(&sms);
        remove_sms(
            device,
            id.ok_or(Unreadable::Damaged("the key of an SMS"))?,
            rows,
        )
    })
}

fn job(
    mark: &[u8],
    _: &[u8],
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    let id = key::job::job_of_removed(mark);
    let id = id.ok_or(Unreadable::Damaged("the mark of a job"))?;
    let first = key::job::parts_of(id);
    let end = key::behind(first.clone());
    room.clear(&first, &end, rows, |part, rows| rows.erase(part).map(drop))
}
