//! Which record is in a row? A row that is written with another one has none.

use engine::admin_log::payload::EntryPayload;
use engine::bootstrap::BootstrapScope;
use engine::change::{Change, Fence};
use engine::definition::{Definition, DefinitionId};
use engine::delivery::backlog::{QueuedEvent, Sequence};
use engine::idempotency::{IdempotencyKey, IdentifiedDevice};
use engine::ids::{
    CampaignId, CustomerId, DestinationId, DeviceKey, EntryId, EventId, Iccid, JobId, Partition,
    ScheduleId, SmsId,
};
use engine::moment::Timestamp;
use engine::sms::PartsKey;
use engine::{Path, Version};

use super::rows::NO_ENTRY;
use crate::migration::moved::Moved;
use crate::postgres::cell::Cell;
use crate::postgres::sql_types::{SqlId, SqlTime};
use crate::postgres::table::SqlTable;
use crate::record::customer::customer_id;
use crate::record::entry_place::{EntryPlace, Kind};
use crate::record::{self, Unreadable, code};

/// The cells of a row, in the order in which they are moved.
pub(super) struct RowCells<'a>(pub(super) &'a [Cell]);

/// Reads the record of a row; `None` if the row says nothing.
pub(super) type RowReader = fn(&RowCells<'_>) -> Result<Option<Moved>, Unreadable>;

/// The tables of records in the order in which they are moved, how their rows are read, and the
/// columns that order them, by which an index finds them.
pub(super) const RECORDS: [(SqlTable, &[&str], RowReader); 36] = [
    (SqlTable::ShardEpoch, &["shard"], |row| {
        let fence = Fence(row.small(0)?);
        one(Moved::Epoch(fence, row.number(1)?))
    }),
    (SqlTable::Customer, &["id"], |row| {
        put(Change::PutCustomer(record::customer::read_customer(
            row.record()?,
        )?))
    }),
    (SqlTable::ApiClient, &["id"], |row| {
        put(Change::PutClient(record::customer::read_client(
            row.record()?,
        )?))
    }),
    (SqlTable::AccessToken, &["digest"], |row| {
        put(Change::PutToken(record::customer::read_token(
            row.record()?,
        )?))
    }),
    (SqlTable::Setting, &["customer", "name"], |row| {
        put(Change::PutSetting(record::customer::read_setting(
            row.record()?,
        )?))
    }),
    (
        SqlTable::Definition,
        &["customer", "object", "major", "minor"],
        |row| {
            let id = DefinitionId {
                customer: row.customer(0)?,
                object: row.small(1)?,
                version: Version {
                    major: row.small(2)?,
                    minor: row.small(3)?,
                },
            };
            let xml = record::definition::read_text(row.record()?)?;
            let at = row.time(4)?;
            put(Change::PutDefinition(Box::new(Definition { id, xml, at })))
        },
    ),
    (SqlTable::RemovedDefinition, &["id"], |row| {
        let xml = record::definition::read_text(row.record()?)?;
        one(Moved::RemovedDefinition(row.id(0)?, xml))
    }),
    (SqlTable::CustomerBootstrapConfig, &["customer"], |row| {
        let scope = BootstrapScope::Customer(row.customer(0)?);
        let config = Box::new(record::bootstrap::read_config(row.record()?)?);
        put(Change::PutBootstrapConfig { scope, config })
    }),
    (SqlTable::Device, &["key"], |row| {
        let profile = record::profile::read_profile(row.bytes(5)?)?;
        one(Moved::Device(Box::new(profile), None))
    }),
    (SqlTable::DeviceState, &["device"], |row| {
        let device = DeviceKey::from_bytes(row.id(0)?);
        let record = Box::new(record::device::read_device(row.record()?)?);
        put(Change::PutRecord { device, record })
    }),
    (SqlTable::DeviceBootstrapConfig, &["device"], |row| {
        let scope = BootstrapScope::Device(DeviceKey::from_bytes(row.id(0)?));
        let config = Box::new(record::bootstrap::read_config(row.record()?)?);
        put(Change::PutBootstrapConfig { scope, config })
    }),
    (SqlTable::Bootstrap, &["device"], |row| {
        let device = DeviceKey::from_bytes(row.id(0)?);
        let bootstrap = Box::new(record::bootstrap::read_bootstrap(row.record()?)?);
        put(Change::PutBootstrap { device, bootstrap })
    }),
    (SqlTable::KnownValue, &["device", "path"], |row| {
        let device = DeviceKey::from_bytes(row.id(0)?);
        let path = Path::from_bytes(row.bytes(1)?);
        let path = path.ok_or(Unreadable::Damaged("no path"))?;
        let known = record::value::read_known(path, row.record()?)?;
        one(Moved::KnownValue(device, Box::new(known)))
    }),
    (SqlTable::Action, &["id"], |row| {
        let action = Box::new(record::action::read_action(row.record()?)?);
        put(Change::PutAction { was: None, action })
    }),
    (
        SqlTable::Idempotency,
        &["key", "device", "device_number"],
        |row| {
            let key = IdempotencyKey::from_bytes(row.id(0)?);
            let device = match (row.id(1)?, row.number(2)?) {
                (device, 0) if device == [0; 16] => None,
                (device, number) => Some(IdentifiedDevice {
                    key: DeviceKey::from_bytes(device),
                    number,
                }),
            };
            let record = record::idempotency::read_idempotency_record(key, device, row.record()?)?;
            put(Change::PutIdempotencyRecord(record))
        },
    ),
    (SqlTable::LogEntry, &["customer", "id"], entry),
    (
        SqlTable::FormerSim,
        &["customer", "iccid", "device"],
        |row| {
            let iccid = Iccid::parse(row.text(1)?);
            one(Moved::FormerSim(
                row.customer(0)?,
                iccid.map_err(|_| Unreadable::Damaged("no ICCID"))?,
                DeviceKey::from_bytes(row.id(2)?),
                EntryId::from_bytes(row.id(3)?),
            ))
        },
    ),
    (
        SqlTable::Event,
        &["customer", "partition", "sequence"],
        |row| {
            let queued = QueuedEvent {
                sequence: Sequence(row.number(1)?),
                device: DeviceKey::from_bytes(row.id(4)?),
                event: EventId::from_bytes(row.id(0)?),
                event_type: code::event_type(row.small(5)?)?,
                lifecycle: match *row.cell(6)? == Cell::Null {
                    true => None,
                    false => Some(code::lifecycle(row.small(6)?)?),
                },
            };
            let event = record::event::read_event(&row.customer(2)?, &queued, row.record()?)?;
            one(Moved::Event(queued.sequence, Box::new(event)))
        },
    ),
    (SqlTable::RemovedHistory, &["device"], |row| {
        let last = Sequence(row.number(1)?);
        one(Moved::RemovedHistory(
            DeviceKey::from_bytes(row.id(0)?),
            last,
        ))
    }),
    (SqlTable::RemovedCustomer, &["customer"], |row| {
        let entry = Some(row.id(1)?).filter(|entry| *entry != NO_ENTRY);
        let entry = entry.map(EntryId::from_bytes);
        let last = Sequence(row.number(2)?);
        let customer = row.customer(0)?;
        let says = entry.is_some() || last > Sequence::default();
        Ok(says.then_some(Moved::RemovedCustomer(customer, entry, last)))
    }),
    (SqlTable::Destination, &["id"], |row| {
        let destination = record::destination::read_destination(row.record()?)?;
        let since = Sequence(row.number(2)?);
        one(Moved::Destination(Box::new(destination), since))
    }),
    (SqlTable::RemovedDestination, &["id"], |row| {
        one(Moved::RemovedDestination(DestinationId::from_bytes(
            row.id(0)?,
        )))
    }),
    (
        SqlTable::DestinationCursor,
        &["destination", "partition"],
        |row| {
            let id = DestinationId::from_bytes(row.id(0)?);
            let reached = Sequence(row.number(2)?);
            one(Moved::Cursor(id, Partition(row.small(1)?), reached))
        },
    ),
    (
        SqlTable::PendingRetry,
        &["destination", "sequence"],
        |row| {
            let id = DestinationId::from_bytes(row.id(0)?);
            let retry = record::outbox::read_retry(Sequence(row.number(1)?), row.record()?)?;
            one(Moved::Retry(id, Box::new(retry)))
        },
    ),
    (SqlTable::DeadLetter, &["destination", "sequence"], |row| {
        let id = DestinationId::from_bytes(row.id(0)?);
        let letter = record::outbox::read_dead(Sequence(row.number(1)?), row.record()?)?;
        one(Moved::Dead(id, Box::new(letter)))
    }),
    (SqlTable::Job, &["id"], |row| {
        put(Change::PutJob(Box::new(record::job::read_job(
            row.record()?,
        )?)))
    }),
    (SqlTable::JobRequest, &["job"], |row| {
        let job = JobId::from_bytes(row.id(0)?);
        let request = Box::new(record::job::read_job_request(row.record()?)?);
        put(Change::PutJobRequest { job, request })
    }),
    (SqlTable::JobPart, &["job", "part"], |row| {
        put(Change::PutJobPart {
            job: JobId::from_bytes(row.id(0)?),
            part: row.small(1)?,
            devices: record::job::read_job_part(row.record()?)?.into(),
        })
    }),
    (SqlTable::RemovedJob, &["id"], |row| {
        one(Moved::RemovedJob(JobId::from_bytes(row.id(0)?)))
    }),
    (SqlTable::Schedule, &["customer", "id"], |row| {
        let schedule = record::schedule::read_schedule(row.record()?)?;
        put(Change::PutSchedule(Box::new(schedule)))
    }),
    (SqlTable::ScheduleContents, &["schedule"], |row| {
        let contents = record::schedule::read_schedule_contents(row.record()?)?;
        put(Change::PutScheduleContents {
            schedule: ScheduleId::from_bytes(row.id(0)?),
            contents: Box::new(contents),
        })
    }),
    (SqlTable::Sms, &["id"], |row| {
        let sms = Box::new(record::sms::read_sms(row.record()?)?);
        put(Change::PutSms { was: None, sms })
    }),
    (
        SqlTable::SmsParts,
        &["device_number", "total", "identifier"],
        |row| {
            let parts = PartsKey {
                device_number: row.number(0)?,
                total: row.small(1)?,
                identifier: row.small(2)?,
            };
            let sms = SmsId::from_number(row.number(3)?);
            one(Moved::SmsOfParts(parts, sms.ok_or(OUT_OF_RANGE)?))
        },
    ),
    (SqlTable::FirmwareImage, &["customer", "id"], |row| {
        let image = record::firmware::read_image(row.record()?)?;
        put(Change::PutImage(Box::new(image)))
    }),
    (SqlTable::Campaign, &["id"], |row| {
        let campaign = record::firmware::read_campaign(row.record()?)?;
        put(Change::PutCampaign(Box::new(campaign)))
    }),
    (SqlTable::CampaignDevice, &["campaign", "place"], |row| {
        put(Change::PutCampaignDevice {
            campaign: CampaignId::from_bytes(row.id(0)?),
            place: row.small(1)?,
            row: Box::new(record::firmware::read_campaign_device(row.record()?)?),
        })
    }),
];

/// The tables whose rows are written with those of records.
pub(super) const DERIVED: [SqlTable; 4] = [
    SqlTable::DeviceName,
    SqlTable::DeviceTag,
    SqlTable::SmsId,
    SqlTable::SmsMessage,
];

const OUT_OF_RANGE: Unreadable = Unreadable::Damaged("a number out of its range");

fn one(moved: Moved) -> Result<Option<Moved>, Unreadable> {
    Ok(Some(moved))
}

fn put(change: Change) -> Result<Option<Moved>, Unreadable> {
    one(Moved::Put(change))
}

fn entry(row: &RowCells<'_>) -> Result<Option<Moved>, Unreadable> {
    let kind = Kind::from_bytes([row.small(2)?, row.small(3)?]);
    let id = EntryId::from_bytes(row.id(1)?);
    let place = EntryPlace { id, kind };
    let mut entry = record::entry::read_entry(row.text(0)?, place, row.bytes(5)?)?;
    if let Cell::Bytes(payload) = row.cell(6)? {
        let bytes = record::entry::read_payload(payload)?;
        entry.payload = Some(EntryPayload::Whole(bytes));
    }
    put(Change::AppendEntry(Box::new(entry)))
}

impl RowCells<'_> {
    fn cell(&self, place: usize) -> Result<&Cell, Unreadable> {
        let cell = self.0.get(place);
        cell.ok_or(Unreadable::Damaged("a row without a column"))
    }

    /// The record, which is the last column.
    fn record(&self) -> Result<&[u8], Unreadable> {
        self.bytes(self.0.len().saturating_sub(1))
    }

    fn bytes(&self, place: usize) -> Result<&[u8], Unreadable> {
        let Cell::Bytes(bytes) = self.cell(place)? else {
            return Err(Unreadable::Damaged("a column without bytes"));
        };
        Ok(bytes)
    }

    fn id(&self, place: usize) -> Result<[u8; 16], Unreadable> {
        let Cell::Id(SqlId(id)) = self.cell(place)? else {
            return Err(Unreadable::Damaged("a column without id"));
        };
        Ok(*id)
    }

    fn text(&self, place: usize) -> Result<&str, Unreadable> {
        let Cell::Text(text) = self.cell(place)? else {
            return Err(Unreadable::Damaged("a column without text"));
        };
        Ok(text)
    }

    fn time(&self, place: usize) -> Result<Timestamp, Unreadable> {
        let Cell::Time(SqlTime(at)) = self.cell(place)? else {
            return Err(Unreadable::Damaged("a column without time"));
        };
        Ok(*at)
    }

    fn number(&self, place: usize) -> Result<u64, Unreadable> {
        let Cell::Number(number) = self.cell(place)? else {
            return Err(Unreadable::Damaged("a column without number"));
        };
        Ok(number.cast_unsigned())
    }

    fn small<N: TryFrom<u64>>(&self, place: usize) -> Result<N, Unreadable> {
        N::try_from(self.number(place)?).map_err(|_| OUT_OF_RANGE)
    }

    fn customer(&self, place: usize) -> Result<CustomerId, Unreadable> {
        customer_id(self.text(place)?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::{fs, path};

    use super::*;
    use crate::postgres::migration::rows::layout_of;

    /// The tables without records: they have one row, are of a process or a node, or count records.
    const OTHERS: [&str; 9] = [
        "action_count",
        "campaign_device_count",
        "committer",
        "partition_lease",
        "device_count",
        "event_sequence",
        "node",
        "shard_lease",
        "store_state",
    ];

    type Columns = BTreeMap<String, BTreeSet<String>>;

    #[test]
    fn every_column_of_every_table_is_moved() {
        let mut schema = schema();
        for other in OTHERS {
            assert!(schema.remove(other).is_some(), "{other}");
        }
        let tables = RECORDS.into_iter().map(|(table, _, _)| table);
        let moved: Columns = tables
            .chain(DERIVED)
            .map(|table| {
                let layout = layout_of(table);
                let columns = layout.columns.iter().map(|(name, _)| (*name).to_owned());
                (layout.name.to_owned(), columns.collect())
            })
            .collect();
        assert_eq!(moved, schema);
    }

    /// The columns of each table, as the migrations of the schema make them.
    fn schema() -> Columns {
        let directory = path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/postgres/migrations");
        let files = fs::read_dir(directory).unwrap();
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        let files = files.iter().map(|path| fs::read_to_string(path).unwrap());
        let files = files.collect::<Vec<_>>().join("\n");
        let lines = files.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("--"));
        let mut schema = Columns::new();
        for statement in lines.collect::<Vec<_>>().join("\n").split(";\n") {
            let mut lines = statement.lines();
            let first: Vec<_> = lines.next().unwrap_or_default().split(' ').collect();
            match first[..] {
                ["CREATE", "TABLE", table, "("] => {
                    let columns = lines.take_while(|line| !line.starts_with(')'));
                    let columns = columns.filter_map(|line| line.split(' ').next());
                    let columns = columns.filter(|word| *word != "PRIMARY");
                    let columns = columns.map(str::to_owned).collect();
                    schema.insert(table.to_owned(), columns);
                }
                ["ALTER", "TABLE", table, "ADD", "COLUMN", column, ..] => {
                    let columns = schema.entry(table.to_owned()).or_default();
                    columns.insert(column.to_owned());
                }
                ["ALTER", "TABLE", table, "RENAME", "TO", name] => {
                    let columns = schema.remove(table).unwrap_or_default();
                    schema.insert(name.to_owned(), columns);
                }
                ["ALTER", "TABLE", ..] => panic!("another change of a table: {statement}"),
                _ => {}
            }
        }
        schema
    }
}
