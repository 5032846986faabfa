//! Which rows does a moved record have? Those that a commit writes for it, where a commit does.

use engine::change::{Batch, Change};
use engine::delivery::backlog::Sequence;
use sled::IVec;

use crate::migration::moved::Moved;
use crate::record::definition::write_text;
use crate::record::number::{write_epoch, write_last_entry, write_sequence};
use crate::record::outbox::{DestinationCounts, read_tally, write_dead, write_retry, write_tally};
use crate::record::sms::write_place;
use crate::sled::apply::apply;
use crate::sled::epochs::Epochs;
use crate::sled::fault::Fault;
use crate::sled::key::{self, Key, Table};
use crate::sled::kv::{Rows as _, Value};
use crate::sled::ledger::{EventEntry, Ledger, put_values};
use crate::sled::overlay::Overlay;
use crate::sled::plan::Plan;

/// Puts the records of a page, with what is derived from them.
pub(super) fn put_all(
    page: Vec<Moved>,
    epochs: &mut Epochs,
    ledger: &mut Ledger,
    rows: &mut Overlay<'_>,
) -> Result<(), Fault> {
    let of = |is: fn(&Change) -> bool| {
        let mut puts = page.iter();
        puts.any(|moved| matches!(moved, Moved::Put(change) if is(change)))
    };
    let has_entries = of(|change| matches!(change, Change::AppendEntry(_)));
    let has_sms = of(|change| matches!(change, Change::PutSms { .. }));
    let mut values = Vec::new();
    for moved in page {
        if let Moved::KnownValue(device, known) = moved {
            values.push((device, *known));
        } else {
            put(moved, epochs, ledger, rows)?;
        }
    }
    put_values(values, rows)?;
    // A commit notes the SIM of an entry and the parts of an SMS. These rows are moved as they are,
    // later: they may be of another record by now.
    if has_entries {
        remove_all(Table::FormerSim, rows)?;
    }
    if has_sms {
        remove_all(Table::SmsOfParts, rows)?;
    }
    Ok(())
}

fn put(
    moved: Moved,
    epochs: &mut Epochs,
    ledger: &mut Ledger,
    rows: &mut Overlay<'_>,
) -> Result<(), Fault> {
    let adds = moved.counters();
    let mut commit = |changes, rows: &mut Overlay<'_>, ledger: &mut Ledger| {
        let batch = Batch {
            changes,
            adds: adds.clone(),
            ..Batch::default()
        };
        // Nothing is expected, so nothing can be in conflict; what cannot be applied is logged.
        match apply(Plan::of(&batch), epochs, ledger, rows)? {
            Ok(()) => Ok(()),
            Err(_) => Err(Fault::from(crate::record::Unreadable::Damaged(
                "a record that cannot be applied",
            ))),
        }
    };
    match moved {
        Moved::Put(change) => commit(vec![change], rows, ledger)?,
        Moved::Device(profile, record) => {
            let device = profile.key();
            let mut changes = vec![Change::PutDevice { was: None, profile }];
            changes.extend(record.map(|record| Change::PutRecord { device, record }));
            commit(changes, rows, ledger)?;
        }
        // They are put page by page.
        Moved::KnownValue(..) => {}
        Moved::FormerSim(customer, iccid, device, last) => {
            let key = key::log::former_sim(&customer, &iccid, device);
            rows.put(key.into(), IVec::from(&write_last_entry(last)));
        }
        Moved::Event(number, event) => {
            ledger.append_numbered(Box::new(EventEntry::of(&event)), number);
        }
        Moved::RemovedHistory(device, last) => {
            put_sequence(key::event::removed_of(device), last, rows);
        }
        Moved::RemovedCustomer(customer, log, events) => {
            if let Some(last) = log {
                let key = key::log::removed_of(&customer);
                rows.put(key.into(), IVec::from(&write_last_entry(last)));
            }
            if events > Sequence::default() {
                put_sequence(key::event::removed_of_customer(&customer), events, rows);
            }
        }
        Moved::RemovedDefinition(id, xml) => {
            put_value(key::definition::text(id), &write_text(&xml), rows)?;
            rows.put(key::definition::removed_text(id).into(), IVec::default());
        }
        Moved::Destination(destination, since) => {
            let tally = key::outbox::tally(destination.id);
            commit(vec![Change::PutDestination(destination)], rows, ledger)?;
            put_tally(tally, &DestinationCounts { since, dead: 0 }, rows);
        }
        Moved::RemovedDestination(id) => {
            rows.put(key::outbox::removed_of(id).into(), IVec::default());
        }
        Moved::Cursor(id, partition, reached) => {
            put_sequence(key::outbox::cursor(id, partition), reached, rows);
        }
        Moved::Retry(id, retry) => {
            let key = key::outbox::retry(id, retry.queued.sequence);
            put_value(key, &write_retry(&retry), rows)?;
        }
        Moved::Dead(id, letter) => {
            let sequence = letter.queued.sequence;
            let by_age = key::outbox::dead_by_age(letter.at, id, sequence);
            rows.put(by_age.into(), IVec::default());
            put_value(key::outbox::dead(id, sequence), &write_dead(&letter), rows)?;
            let tally = key::outbox::tally(id);
            if let Some(row) = rows.row(&tally)? {
                let mut counts = read_tally(&row)?;
                counts.dead += 1;
                put_tally(tally, &counts, rows);
            }
        }
        Moved::RemovedJob(id) => rows.put(key::job::removed(id).into(), IVec::default()),
        Moved::SmsOfParts(parts, sms) => {
            let place = write_place(parts.device_number, sms);
            rows.put(key::sms::of_parts(parts).into(), place.as_slice().into());
        }
        Moved::Epoch(fence, epoch) => {
            let row = IVec::from(&write_epoch(epoch));
            rows.put(key::epoch(fence).into(), row);
        }
    }
    Ok(())
}

/// Removes the rows of a table, of which only the page that is being written can have some.
fn remove_all(table: Table, rows: &mut Overlay<'_>) -> Result<(), Fault> {
    for key in rows.keys(&table.prefix(), usize::MAX)? {
        rows.remove(key);
    }
    Ok(())
}

fn put_value(key: Key, value: &[u8], rows: &mut Overlay<'_>) -> Result<(), Fault> {
    let value = Value::cut(&key, value);
    rows.replace(key.into(), value)
}

fn put_sequence(key: Key, sequence: Sequence, rows: &mut Overlay<'_>) {
    rows.put(key.into(), IVec::from(&write_sequence(sequence)));
}

fn put_tally(key: Key, tally: &DestinationCounts, rows: &mut Overlay<'_>) {
    rows.put(key.into(), IVec::from(write_tally(tally).as_slice()));
}
