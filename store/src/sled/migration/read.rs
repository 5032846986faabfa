//! Which records are in a row? A row that is derived from another one has none.

use engine::admin_log::payload::EntryPayload;
use engine::bootstrap::BootstrapScope;
use engine::change::{Change, Fence};
use engine::definition::Definition;
use engine::delivery::backlog::Sequence;
use engine::ids::{
    CampaignId, CustomerId, DestinationId, DeviceKey, EntryId, Iccid, JobId, Partition, ScheduleId,
};
use engine::sms::PartsKey;
use sled::Db;

use crate::migration::moved::Moved;
use crate::record::block::Block;
use crate::record::{self, Unreadable, number};
use crate::sled::check::derived::idempotency_record;
use crate::sled::fault::Fault;
use crate::sled::key::{self, Key, Table};
use crate::sled::kv::{self, Rows as _};
use crate::sled::ledger::{SharedHeads, values_of};
use crate::sled::log_entries::read_entry;

/// A row with records.
pub(super) struct RecordRow<'a> {
    pub(super) db: &'a Db,
    pub(super) heads: &'a SharedHeads,
    pub(super) key: &'a [u8],
    /// The key behind the number of the table.
    pub(super) rest: &'a [u8],
    pub(super) value: &'a [u8],
}

/// Reads the records of a row.
pub(super) type RecordReader = fn(&RecordRow<'_>) -> Result<Vec<Moved>, Fault>;

/// The tables with records, in the order of their keys, and how their rows are read.
pub(super) fn tables() -> Vec<(Table, RecordReader)> {
    let tables = Table::ALL.into_iter();
    let mut tables: Vec<_> = tables
        .filter_map(|table| Some((table, reader(table)?)))
        .collect();
    tables.sort_by_key(|(table, _)| *table);
    tables
}

/// How the rows of a table are read. A table without records is derived, or of this engine alone,
/// or has one row, or is read with the records to which its rows belong.
fn reader(table: Table) -> Option<RecordReader> {
    use record::{bootstrap, customer, device, firmware, job, outbox, profile, schedule};
    let reader: RecordReader = match table {
        Table::Epoch => |row| match row.rest {
            // The newest epoch begun: there is one.
            [] => Ok(Vec::new()),
            shard => {
                let fence = Fence(u16::from_be_bytes(exactly(shard)?));
                one(Moved::Epoch(fence, number::read_epoch(row.value)?))
            }
        },
        Table::Customer => |row| put(Change::PutCustomer(customer::read_customer(row.value)?)),
        Table::Client => |row| put(Change::PutClient(customer::read_client(row.value)?)),
        Table::Token => |row| put(Change::PutToken(customer::read_token(row.value)?)),
        Table::Setting => |row| put(Change::PutSetting(customer::read_setting(row.value)?)),
        Table::Device => |row| {
            let profile = Box::new(profile::read_profile(row.value)?);
            let state = kv::load(&**row.db, &key::device::record(profile.key()))?;
            let state = state.map(|value| device::read_device(&value)).transpose()?;
            let device = profile.key();
            let mut moved = vec![Moved::Device(profile, state.map(Box::new))];
            let values = values_of(row.db, row.heads, device)?.into_iter();
            moved.extend(values.map(|known| Moved::KnownValue(device, Box::new(known))));
            Ok(moved)
        },
        Table::Record => |row| {
            let device = device_in(row.rest)?;
            // The state of a device is read with its profile.
            if row.db.row(&key::device::device(device))?.is_some() {
                return Ok(Vec::new());
            }
            let record = Box::new(device::read_device(row.value)?);
            put(Change::PutRecord { device, record })
        },
        Table::Action => |row| {
            let action = Box::new(record::action::read_action(row.value)?);
            put(Change::PutAction { was: None, action })
        },
        Table::Idempotency => |row| {
            let record = idempotency_record(row.key, row.value)?;
            put(Change::PutIdempotencyRecord(record))
        },
        Table::Entry => entry,
        Table::FormerSim => former_sim,
        Table::EventBlock => events,
        Table::RemovedHistory => |row| {
            let last = number::read_sequence(row.value)?;
            one(Moved::RemovedHistory(device_in(row.rest)?, last))
        },
        Table::RemovedEvents => |row| {
            let customer = customer_in(row.rest)?;
            let log = row.db.row(&key::log::removed_of(&customer))?;
            let log = log.map(|row| number::read_last_entry(&row)).transpose()?;
            Ok(removed(customer, log, number::read_sequence(row.value)?))
        },
        Table::RemovedLog => |row| {
            let customer = customer_in(row.rest)?;
            let events = key::event::removed_of_customer(&customer);
            // It is read with the events.
            if row.db.row(&events)?.is_some() {
                return Ok(Vec::new());
            }
            let log = number::read_last_entry(row.value)?;
            Ok(removed(customer, Some(log), Sequence::default()))
        },
        Table::Definition => |row| {
            let id = key::definition::id_of(row.key);
            let id = id.ok_or(Unreadable::Damaged("the key of a definition"))?;
            let defined = record::definition::read_defined(row.value)?;
            let xml = text(row.db, defined.text)?;
            let xml = xml.ok_or(Unreadable::Damaged("a definition without its text"))?;
            let at = defined.at;
            put(Change::PutDefinition(Box::new(Definition { id, xml, at })))
        },
        Table::RemovedText => |row| {
            let id = exactly(row.rest)?;
            let text = text(row.db, id)?.map(|xml| Moved::RemovedDefinition(id, xml));
            Ok(text.into_iter().collect())
        },
        Table::Destination => |row| {
            let destination = Box::new(record::destination::read_destination(row.value)?);
            let tally = row.db.row(&key::outbox::tally(destination.id))?;
            let tally = tally.ok_or(Unreadable::Damaged("a destination without its counts"))?;
            let since = outbox::read_tally(&tally)?.since;
            one(Moved::Destination(destination, since))
        },
        Table::RemovedDestination => |row| {
            let id = DestinationId::from_bytes(exactly(row.rest)?);
            one(Moved::RemovedDestination(id))
        },
        Table::Cursor => |row| {
            let (id, partition) = destination_in(row.rest)?;
            let [partition] = exactly(partition)?;
            let reached = number::read_sequence(row.value)?;
            one(Moved::Cursor(id, Partition(partition), reached))
        },
        Table::Retry => |row| {
            let (id, sequence) = destination_in(row.rest)?;
            let sequence = Sequence(u64::from_be_bytes(exactly(sequence)?));
            let retry = outbox::read_retry(sequence, row.value)?;
            one(Moved::Retry(id, Box::new(retry)))
        },
        Table::Dead => |row| {
            let (id, sequence) = destination_in(row.rest)?;
            let sequence = Sequence(u64::from_be_bytes(exactly(sequence)?));
            let letter = outbox::read_dead(sequence, row.value)?;
            one(Moved::Dead(id, Box::new(letter)))
        },
        Table::Job => |row| put(Change::PutJob(Box::new(job::read_job(row.value)?))),
        Table::JobRequest => |row| {
            let job = JobId::from_bytes(exactly(row.rest)?);
            let request = Box::new(job::read_job_request(row.value)?);
            put(Change::PutJobRequest { job, request })
        },
        Table::JobPart => |row| {
            let (job, part) = split(row.rest)?;
            put(Change::PutJobPart {
                job: JobId::from_bytes(job),
                part: u32::from_be_bytes(exactly(part)?),
                devices: job::read_job_part(row.value)?.into(),
            })
        },
        Table::RemovedJob => |row| one(Moved::RemovedJob(JobId::from_bytes(exactly(row.rest)?))),
        Table::Schedule => |row| {
            let schedule = schedule::read_schedule(row.value)?;
            put(Change::PutSchedule(Box::new(schedule)))
        },
        Table::ScheduleContents => |row| {
            let contents = schedule::read_schedule_contents(row.value)?;
            put(Change::PutScheduleContents {
                schedule: ScheduleId::from_bytes(exactly(row.rest)?),
                contents: Box::new(contents),
            })
        },
        Table::Sms => |row| {
            let sms = Box::new(record::sms::read_sms(row.value)?);
            // The SMS of a removed device are removed, although their rows are not swept yet.
            if row.db.row(&key::sms::removed(sms.device_number))?.is_some() {
                return Ok(Vec::new());
            }
            put(Change::PutSms { was: None, sms })
        },
        Table::SmsOfParts => sms_of_parts,
        Table::BootstrapConfigOfCustomer => |row| {
            let scope = BootstrapScope::Customer(customer_in(row.rest)?);
            let config = Box::new(bootstrap::read_config(row.value)?);
            put(Change::PutBootstrapConfig { scope, config })
        },
        Table::BootstrapConfigOfDevice => |row| {
            let scope = BootstrapScope::Device(device_in(row.rest)?);
            let config = Box::new(bootstrap::read_config(row.value)?);
            put(Change::PutBootstrapConfig { scope, config })
        },
        Table::Bootstrap => |row| {
            let bootstrap = Box::new(bootstrap::read_bootstrap(row.value)?);
            let device = device_in(row.rest)?;
            put(Change::PutBootstrap { device, bootstrap })
        },
        Table::FirmwareImage => |row| {
            let image = firmware::read_image(row.value)?;
            put(Change::PutImage(Box::new(image)))
        },
        Table::Campaign => |row| {
            let campaign = firmware::read_campaign(row.value)?;
            put(Change::PutCampaign(Box::new(campaign)))
        },
        Table::CampaignDevice => |row| {
            let (campaign, place) = split(row.rest)?;
            put(Change::PutCampaignDevice {
                campaign: CampaignId::from_bytes(campaign),
                place: u32::from_be_bytes(exactly(place)?),
                row: Box::new(firmware::read_campaign_device(row.value)?),
            })
        },
        Table::Format
        | Table::Counter
        | Table::ClientOfOwner
        | Table::TokenOfClient
        | Table::TokenByExpiry
        | Table::Name
        | Table::DeviceOfCustomer
        | Table::Pending
        | Table::ActionOfCustomer
        | Table::ActionOfDevice
        | Table::FinalByAge
        | Table::Piece
        | Table::EntryPayload
        | Table::ActionOfCustomerByUpdate
        | Table::IdempotencyByAge
        | Table::ValuePage
        | Table::EntryCount
        | Table::DeviceInLog
        | Table::DevicesCounted
        | Table::DefinitionText
        | Table::DestinationOfCustomer
        | Table::NewestNumber
        | Table::Tally
        | Table::DeadByAge
        | Table::Address
        | Table::HeadPage
        | Table::HeadCheckpoint
        | Table::LastGroup
        | Table::DeviceOfTag
        | Table::DevicesOfTagCounted
        | Table::EntriesByAge
        | Table::WakeUpSms
        | Table::SmsOfMessage
        | Table::JobOfCustomer
        | Table::JobsCounted
        | Table::RunningJob
        | Table::SmsOfId
        | Table::SmsForNetwork
        | Table::SmsDue
        | Table::SmsOpen
        | Table::SmsCounted
        | Table::RemovedSms
        | Table::OpenCampaign
        | Table::CampaignDevicesCounted
        | Table::ServerKey
        | Table::Migration => return None,
    };
    Some(reader)
}

fn one(moved: Moved) -> Result<Vec<Moved>, Fault> {
    Ok(vec![moved])
}

fn put(change: Change) -> Result<Vec<Moved>, Fault> {
    one(Moved::Put(change))
}

/// The payload of an entry has a row of its own.
fn entry(row: &RecordRow<'_>) -> Result<Vec<Moved>, Fault> {
    let mut entry = Box::new(read_entry(row.key, row.value)?);
    if entry.payload.is_some()
        && let payload = key::log::payload(&entry.customer, entry.id)
        && let Some(payload) = kv::load(&**row.db, &payload)?
    {
        let bytes = record::entry::read_payload(&payload)?;
        entry.payload = Some(EntryPayload::Whole(bytes));
    }
    put(Change::AppendEntry(entry))
}

/// A note that is of no use any more is not moved.
fn removed(customer: CustomerId, log: Option<EntryId>, events: Sequence) -> Vec<Moved> {
    match (log, events) {
        (None, Sequence(0)) => Vec::new(),
        (log, events) => vec![Moved::RemovedCustomer(customer, log, events)],
    }
}

fn former_sim(row: &RecordRow<'_>) -> Result<Vec<Moved>, Fault> {
    const DAMAGED: Unreadable = Unreadable::Damaged("the key of a former SIM");
    let (names, device) = row.rest.split_last_chunk().ok_or(DAMAGED)?;
    let names = std::str::from_utf8(names).map_err(|_| DAMAGED)?;
    let (customer, iccid) = names.split_once('\0').ok_or(DAMAGED)?;
    let iccid = iccid.strip_suffix('\0').ok_or(DAMAGED)?;
    one(Moved::FormerSim(
        CustomerId::parse(customer).map_err(|_| DAMAGED)?,
        Iccid::parse(iccid).map_err(|_| DAMAGED)?,
        DeviceKey::from_bytes(*device),
        number::read_last_entry(row.value)?,
    ))
}

fn events(row: &RecordRow<'_>) -> Result<Vec<Moved>, Fault> {
    let place = key::event::place_of_block(row.key);
    let (customer, _, _) = place.ok_or(Unreadable::Damaged("the key of a block"))?;
    let block = Block::read(row.value)?;
    let moved = block.entries().map(|entry| {
        let entry = entry?;
        let event = entry.event(&customer)?;
        Ok(Moved::Event(entry.queued.sequence, Box::new(event)))
    });
    moved.collect()
}

/// A row whose SMS was swept, or is of a removed device, lists nothing.
fn sms_of_parts(row: &RecordRow<'_>) -> Result<Vec<Moved>, Fault> {
    const DAMAGED: Unreadable = Unreadable::Damaged("the key of parts of an SMS");
    let [device_number @ .., total, high, low] = row.rest else {
        return Err(DAMAGED.into());
    };
    let parts = PartsKey {
        device_number: u64::from_be_bytes(exactly(device_number)?),
        total: *total,
        identifier: u16::from_be_bytes([*high, *low]),
    };
    let (device, sms) = record::sms::read_place(row.value)?;
    let is_there = row.db.row(&key::sms::sms(device, sms))?.is_some();
    let is_removed = row.db.row(&key::sms::removed(device))?.is_some();
    let moved = (is_there && !is_removed).then_some(Moved::SmsOfParts(parts, sms));
    Ok(moved.into_iter().collect())
}

fn text(db: &Db, id: record::definition::TextId) -> Result<Option<Box<str>>, Fault> {
    let key: Key = key::definition::text(id);
    let value = kv::load(&**db, &key)?;
    Ok(value
        .map(|value| record::definition::read_text(&value))
        .transpose()?)
}

fn device_in(rest: &[u8]) -> Result<DeviceKey, Unreadable> {
    Ok(DeviceKey::from_bytes(exactly(rest)?))
}

fn customer_in(rest: &[u8]) -> Result<CustomerId, Unreadable> {
    const DAMAGED: Unreadable = Unreadable::Damaged("the id of a customer in a key");
    let text = std::str::from_utf8(rest).map_err(|_| DAMAGED)?;
    CustomerId::parse(text).map_err(|_| DAMAGED)
}

fn destination_in(rest: &[u8]) -> Result<(DestinationId, &[u8]), Unreadable> {
    let (id, rest) = split(rest)?;
    Ok((DestinationId::from_bytes(id), rest))
}

fn split(rest: &[u8]) -> Result<([u8; 16], &[u8]), Unreadable> {
    let split = rest.split_first_chunk();
    let (id, rest) = split.ok_or(Unreadable::Damaged("a key that is too short"))?;
    Ok((*id, rest))
}

fn exactly<const N: usize>(rest: &[u8]) -> Result<[u8; N], Unreadable> {
    let exact = rest.try_into();
    exact.map_err(|_| Unreadable::Damaged("a key of another size"))
}
