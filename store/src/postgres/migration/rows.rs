//! Which rows does a moved record have? Those that a commit writes for it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use engine::change::{Batch, Change};

use crate::migration::moved::Moved;
use crate::migration::totals::Totals;
use crate::postgres::cell::{Cell, ColumnType};
use crate::postgres::partitions::Day;
use crate::postgres::plan::{Numbers, RowPlan, Step};
use crate::postgres::sql_types::SqlId;
use crate::postgres::table::{Layout, SqlTable};
use crate::record::definition::write_text;
use crate::record::outbox::{write_dead, write_retry};
use crate::record::value::write_known;

/// The columns of a device, with its flags: its state is moved with it.
const DEVICE: &[(&str, ColumnType)] = &[
    ("key", ColumnType::Id),
    ("customer", ColumnType::Text),
    ("device_id", ColumnType::Text),
    ("number", ColumnType::Number),
    ("address", ColumnType::Ip),
    ("record", ColumnType::Bytes),
    ("flags", ColumnType::Number),
];

/// The columns of a last known value, without the bound of their number.
const KNOWN_VALUE: &[(&str, ColumnType)] = &[
    ("device", ColumnType::Id),
    ("path", ColumnType::Bytes),
    ("measured_at", ColumnType::Time),
    ("record", ColumnType::Bytes),
];

/// The counts are those of the first slot.
const NUMBERS: Numbers = Numbers {
    slot: 0,
    values_max: u32::MAX,
};

/// The entry that no log has, as the last one of a removed log without entries.
pub(super) const NO_ENTRY: [u8; 16] = [0; 16];

/// The rows of a page.
#[derive(Default)]
pub(crate) struct PageRows {
    /// The rows of each table.
    pub(super) tables: BTreeMap<SqlTable, Vec<Vec<Cell>>>,
    /// What is added to counts, by their keys.
    counts: BTreeMap<SqlTable, BTreeMap<Vec<Cell>, i64>>,
    /// The days of its events and entries.
    pub(super) days: Vec<Day>,
    bytes: usize,
}

impl PageRows {
    /// Adds the rows of a record.
    pub(crate) fn add(&mut self, moved: Moved) {
        let adds = moved.counters();
        let (changes, number) = match moved {
            Moved::Put(change) => (vec![change], 0),
            Moved::Device(profile, record) => {
                let device = profile.key();
                let mut changes = vec![Change::PutDevice { was: None, profile }];
                changes.extend(record.map(|record| Change::PutRecord { device, record }));
                (changes, 0)
            }
            Moved::Event(number, event) => (vec![Change::AppendEvent(event)], number.0),
            Moved::Destination(it, since) => (vec![Change::PutDestination(it)], since.0),
            Moved::KnownValue(device, known) => {
                let record = write_known(known.at, &known.value);
                let path = known.path.to_bytes().to_vec();
                let row = [
                    device.as_bytes().into(),
                    Cell::Bytes(path),
                    known.at.into(),
                    record.into(),
                ];
                return self.push(SqlTable::KnownValue, row.into());
            }
            Moved::FormerSim(customer, iccid, device, last) => {
                let row = [
                    customer.as_str().into(),
                    iccid.as_str().into(),
                    device.as_bytes().into(),
                    last.as_bytes().into(),
                ];
                return self.push(SqlTable::FormerSim, row.into());
            }
            Moved::RemovedHistory(device, last) => {
                let row = [device.as_bytes().into(), last.0.into()];
                return self.push(SqlTable::RemovedHistory, row.into());
            }
            Moved::RemovedCustomer(customer, log, events) => {
                let last = log.map_or(NO_ENTRY, |entry| *entry.as_bytes());
                let row = [customer.as_str().into(), (&last).into(), events.0.into()];
                return self.push(SqlTable::RemovedCustomer, row.into());
            }
            Moved::RemovedDefinition(id, xml) => {
                let row = [Cell::from(&id), write_text(&xml).into()];
                return self.push(SqlTable::RemovedDefinition, row.into());
            }
            Moved::RemovedDestination(id) => {
                return self.push(SqlTable::RemovedDestination, vec![id.as_bytes().into()]);
            }
            Moved::Cursor(id, partition, reached) => {
                let row = [id.as_bytes().into(), partition.0.into(), reached.0.into()];
                return self.push(SqlTable::DestinationCursor, row.into());
            }
            Moved::Retry(id, retry) => {
                let row = [
                    id.as_bytes().into(),
                    retry.queued.sequence.0.into(),
                    write_retry(&retry).into(),
                ];
                return self.push(SqlTable::PendingRetry, row.into());
            }
            Moved::Dead(id, letter) => {
                let row = [
                    id.as_bytes().into(),
                    letter.queued.sequence.0.into(),
                    letter.at.into(),
                    write_dead(&letter).into(),
                ];
                return self.push(SqlTable::DeadLetter, row.into());
            }
            Moved::RemovedJob(id) => {
                return self.push(SqlTable::RemovedJob, vec![id.as_bytes().into()]);
            }
            Moved::SmsOfParts(parts, sms) => {
                let row = [
                    parts.device_number.into(),
                    parts.total.into(),
                    parts.identifier.into(),
                    sms.number().into(),
                ];
                return self.push(SqlTable::SmsParts, row.into());
            }
            Moved::Epoch(fence, epoch) => {
                return self.push(SqlTable::ShardEpoch, vec![fence.0.into(), epoch.into()]);
            }
        };
        let batch = Batch {
            changes,
            adds,
            ..Batch::default()
        };
        self.take(RowPlan::of(&batch, NUMBERS), number);
    }

    /// The memory it takes, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the rows to totals.
    pub(crate) fn add_to(&self, totals: &mut Totals) {
        for (table, rows) in &self.tables {
            let name = table.layout().name;
            rows.iter().for_each(|row| totals.add(name, &encoded(row)));
        }
    }

    /// The rows of a table.
    pub(super) fn of(&self, table: SqlTable) -> &[Vec<Cell>] {
        self.tables.get(&table).map_or(&[], Vec::as_slice)
    }

    /// What is added to counts, as rows.
    pub(super) fn counts(&self) -> Vec<(SqlTable, Vec<Vec<Cell>>)> {
        let tables = self.counts.iter().map(|(table, counts)| {
            let rows = counts.iter().map(|(key, count)| {
                let mut row = key.clone();
                row.push((*count).into());
                row
            });
            (*table, rows.collect())
        });
        tables.collect()
    }

    /// Takes the rows of a record, which has this number if it is an event, or begins behind it if
    /// it is a destination.
    fn take(&mut self, plan: RowPlan, number: u64) {
        self.days.extend(plan.days);
        for step in plan.steps {
            match step {
                Step::Put(SqlTable::DeviceFlags, flags) => self.set_flags(&flags),
                // The last known values, the parts of SMS and the former SIMs are moved as they
                // are: others may be stored by now than this record put.
                Step::Put(
                    SqlTable::KnownValue | SqlTable::UnknownValue | SqlTable::SmsParts,
                    _,
                )
                | Step::Raise(..)
                | Step::MoveAddress(..) => {}
                Step::Put(SqlTable::Device, mut row) => {
                    row.push(0_u8.into());
                    self.push(SqlTable::Device, row);
                }
                Step::Put(table, row) => self.push(table, row),
                Step::AppendEvent(_, mut row) => {
                    row.insert(1, number.into());
                    self.push(SqlTable::Event, row);
                }
                Step::PutDestination(mut row) => {
                    row.insert(2, number.into());
                    self.push(SqlTable::Destination, row);
                }
                Step::Add(table, mut key) => {
                    if let Some(Cell::Number(delta)) = key.pop() {
                        let counts = self.counts.entry(table).or_default();
                        *counts.entry(key).or_default() += delta;
                    }
                }
                Step::Remove(..) | Step::RemoveMany(_) => {
                    unreachable!("nothing is before a record that is moved")
                }
            }
        }
    }

    /// Sets the flags of the device before.
    fn set_flags(&mut self, flags: &[Cell]) {
        let devices = self.tables.get_mut(&SqlTable::Device);
        let device = devices.and_then(|devices| devices.last_mut());
        if let (Some(device), [key, flags]) = (device, flags)
            && device.first() == Some(key)
            && let Some(last) = device.last_mut()
        {
            last.clone_from(flags);
        }
    }

    fn push(&mut self, table: SqlTable, row: Vec<Cell>) {
        self.bytes += row.iter().map(Cell::bytes).sum::<usize>();
        self.tables.entry(table).or_default().push(row);
    }
}

/// How the rows of a table are moved.
pub(super) fn layout_of(table: SqlTable) -> Layout {
    let layout = table.layout();
    if table == SqlTable::Device {
        layout.with(DEVICE)
    } else if table == SqlTable::KnownValue {
        layout.with(KNOWN_VALUE)
    } else {
        layout
    }
}

/// A row in an encoding that tells any two apart.
pub(super) fn encoded(row: &[Cell]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64 + row.iter().map(Cell::bytes).sum::<usize>());
    let mut add = |kind: u8, value: &[u8]| {
        bytes.push(kind);
        bytes.extend_from_slice(&(value.len() as u64).to_be_bytes());
        bytes.extend_from_slice(value);
    };
    for cell in row {
        match cell {
            Cell::Null => add(0, &[]),
            Cell::Bool(yes) => add(1, &[u8::from(*yes)]),
            Cell::Bytes(value) => add(2, value),
            Cell::Id(id) => add(3, &id.0),
            Cell::Ip(IpAddr::V4(ip)) => add(4, &ip.octets()),
            Cell::Ip(IpAddr::V6(ip)) => add(4, &ip.octets()),
            Cell::Number(number) => add(5, &number.to_be_bytes()),
            Cell::Text(text) => add(6, text.as_bytes()),
            Cell::Time(time) => add(7, &time.stored().to_be_bytes()),
        }
    }
    bytes
}

/// The cells of a key in that encoding.
pub(super) fn decoded(mut bytes: &[u8]) -> Option<Vec<Cell>> {
    let mut cells = Vec::new();
    while let Some((kind, rest)) = bytes.split_first() {
        let (length, rest) = rest.split_first_chunk()?;
        let length = usize::try_from(u64::from_be_bytes(*length)).ok()?;
        let (value, rest) = rest.split_at_checked(length)?;
        cells.push(match kind {
            2 => Cell::Bytes(value.to_vec()),
            3 => Cell::Id(SqlId(value.try_into().ok()?)),
            5 => Cell::Number(i64::from_be_bytes(value.try_into().ok()?)),
            6 => Cell::Text(String::from_utf8(value.to_vec()).ok()?),
            _ => return None,
        });
        bytes = rest;
    }
    Some(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_from_its_encoding_and_other_bytes_are_not() {
        let key = [
            Cell::from("acme"),
            Cell::from(&[7; 16]),
            Cell::from(-5_i64),
            Cell::Bytes(vec![1, 2]),
        ];
        let bytes = encoded(&key);
        assert_eq!(decoded(&bytes).as_deref(), Some(&key[..]));
        for length in [1, 9, bytes.len() - 1] {
            assert_eq!(decoded(&bytes[..length]), None, "{length}");
        }
        assert_ne!(
            encoded(&["ab".into(), "c".into()]),
            encoded(&["a".into(), "bc".into()])
        );
        assert_ne!(encoded(&[Cell::Null]), encoded(&["".into()]));
    }
}
