//! Which rows are derived from a record?

use engine::change::{Batch, Change};
use engine::idempotency::IdempotencyRecord;
use engine::moment::Timestamp;
use sled::{IVec, Tree};

use crate::record::{self, Unreadable, number};
use crate::sled::apply::apply;
use crate::sled::epochs::Epochs;
use crate::sled::fault::Fault;
use crate::sled::key::{self, Table};
use crate::sled::kv;
use crate::sled::ledger::Ledger;
use crate::sled::log_entries::read_entry;
use crate::sled::overlay::Overlay;
use crate::sled::plan::Plan;

/// The tables whose rows are all derived from records, so that none is left without one. Counts are
/// derived from several.
pub(super) const TABLES: [Table; 30] = [
    Table::ClientOfOwner,
    Table::TokenOfClient,
    Table::TokenByExpiry,
    Table::Name,
    Table::Address,
    Table::DeviceOfCustomer,
    Table::DeviceOfTag,
    Table::Record,
    Table::Pending,
    Table::ActionOfCustomer,
    Table::ActionOfDevice,
    Table::Piece,
    Table::EntryPayload,
    Table::ActionOfCustomerByUpdate,
    Table::IdempotencyByAge,
    Table::DefinitionText,
    Table::DestinationOfCustomer,
    Table::Tally,
    Table::DeadByAge,
    Table::JobOfCustomer,
    Table::RunningJob,
    Table::ScheduleContents,
    Table::SmsOfId,
    Table::SmsForNetwork,
    Table::SmsDue,
    Table::SmsOpen,
    Table::SmsOfMessage,
    Table::WakeUpSms,
    Table::SmsOfParts,
    Table::OpenCampaign,
];

/// What is known of a derived row.
#[derive(Debug)]
pub(super) enum Expected {
    /// It is this.
    Row(IVec),
    /// It is there.
    Any,
    /// It may be there.
    Perhaps,
}

/// Rows that are derived, by their keys.
pub(super) type Derived = Vec<(IVec, Expected)>;

/// Derives rows from records.
pub(super) struct Derivation<'t> {
    tree: &'t Tree,
    empty: &'t Tree,
    epochs: Epochs,
    ledger: Ledger,
}

impl<'t> Derivation<'t> {
    /// Derives rows from the records of a tree, with the help of an empty one.
    pub(super) fn new(tree: &'t Tree, empty: &'t Tree) -> Result<Self, Fault> {
        Ok(Self {
            tree,
            empty,
            epochs: Epochs::load(empty)?,
            ledger: Ledger::load(empty, Timestamp::default(), None)?,
        })
    }

    /// Decodes a row, and returns the rows derived from it.
    pub(super) fn of_row(&mut self, table: Table, key: &IVec) -> Result<Derived, Fault> {
        if table == Table::Piece {
            return Ok(Vec::new());
        }
        let Some(value) = kv::load(self.tree, key)? else {
            return Ok(Vec::new());
        };
        let mut derived = self.of_value(table, key, &value)?;
        let head = self.tree.get(key)?.unwrap_or_default();
        for number in 0..kv::pieces_behind(&head) {
            derived.push((key::piece(key, number).into(), Expected::Perhaps));
        }
        Ok(derived)
    }

    fn of_value(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<Derived, Fault> {
        let change = match table {
            Table::Customer => Change::PutCustomer(record::customer::read_customer(value)?),
            Table::Client => Change::PutClient(record::customer::read_client(value)?),
            Table::Token => Change::PutToken(record::customer::read_token(value)?),
            Table::Setting => Change::PutSetting(record::customer::read_setting(value)?),
            Table::Device => return self.of_device(key, value),
            Table::Action => Change::PutAction {
                was: None,
                action: Box::new(record::action::read_action(value)?),
            },
            Table::Idempotency => Change::PutIdempotencyRecord(idempotency_record(key, value)?),
            Table::Entry => return self.of_entry(key, value),
            Table::Definition => {
                let text = record::definition::read_defined(value)?.text;
                return Ok(vec![(key::definition::text(text).into(), Expected::Any)]);
            }
            Table::RemovedText => {
                let text = key::definition::text_of_removed(key);
                let text = text.ok_or(Unreadable::Damaged("the mark of a text"))?;
                let text = key::definition::text(text).into();
                return Ok(vec![(text, Expected::Perhaps)]);
            }
            Table::Destination => return of_destination(value),
            Table::Job => return self.of_job(key, value),
            Table::Schedule => {
                let schedule = record::schedule::read_schedule(value)?;
                let contents = key::schedule::contents(schedule.id);
                return Ok(vec![(contents.into(), Expected::Any)]);
            }
            Table::Sms => return self.of_sms(key, value),
            Table::Dead => return of_dead(key, value),
            Table::Campaign => {
                Change::PutCampaign(Box::new(record::firmware::read_campaign(value)?))
            }
            Table::FirmwareImage => return none(record::firmware::read_image(value)),
            Table::CampaignDevice => return none(record::firmware::read_campaign_device(value)),
            Table::Format | Table::Epoch => return none(number::read_epoch(value)),
            Table::Counter
            | Table::DevicesCounted
            | Table::DevicesOfTagCounted
            | Table::JobsCounted
            | Table::SmsCounted
            | Table::CampaignDevicesCounted => {
                return none(number::read_count(value));
            }
            Table::Record => return none(record::device::read_device(value)),
            Table::RemovedLog | Table::FormerSim => return none(number::read_last_entry(value)),
            Table::EntryPayload => return none(record::entry::read_payload(value)),
            Table::EntryCount => return none(record::counts::read_counts(value)),
            Table::DeviceInLog => return none(record::last_entries::read_last_entries(value)),
            Table::RemovedHistory | Table::RemovedEvents | Table::NewestNumber | Table::Cursor => {
                return none(number::read_sequence(value));
            }
            Table::DefinitionText => return none(record::definition::read_text(value)),
            Table::Tally => return none(record::outbox::read_tally(value)),
            Table::Retry => {
                let sequence = key::outbox::last_number(key).unwrap_or_default();
                return none(record::outbox::read_retry(sequence, value));
            }
            Table::HeadPage => return none(record::heads::read_page(value)),
            Table::ValuePage => return none(record::known::check(value)),
            Table::HeadCheckpoint => return none(record::heads::read_checkpoint(value)),
            Table::LastGroup => return none(record::group::read_group(value)),
            Table::ServerKey => return none(record::server_key::read_server_key(value)),
            Table::Migration => return none(record::migration::read_place(value)),
            Table::BootstrapConfigOfCustomer | Table::BootstrapConfigOfDevice => {
                return none(record::bootstrap::read_config(value));
            }
            Table::Bootstrap => return none(record::bootstrap::read_bootstrap(value)),
            Table::JobRequest => return none(record::job::read_job_request(value)),
            Table::JobPart => return none(record::job::read_job_part(value)),
            Table::ScheduleContents => {
                return none(record::schedule::read_schedule_contents(value));
            }
            // Blocks are read with their neighbours, pieces with their value, and the others are
            // compared with what they are derived from.
            Table::EventBlock
            | Table::Piece
            | Table::ClientOfOwner
            | Table::TokenOfClient
            | Table::TokenByExpiry
            | Table::Name
            | Table::DeviceOfCustomer
            | Table::DeviceOfTag
            | Table::Pending
            | Table::ActionOfCustomer
            | Table::ActionOfDevice
            | Table::FinalByAge
            | Table::EntriesByAge
            | Table::ActionOfCustomerByUpdate
            | Table::IdempotencyByAge
            | Table::DestinationOfCustomer
            | Table::DeadByAge
            | Table::RemovedDestination
            | Table::Address
            | Table::JobOfCustomer
            | Table::RunningJob
            | Table::RemovedJob
            | Table::SmsOfId
            | Table::SmsForNetwork
            | Table::SmsDue
            | Table::SmsOpen
            | Table::SmsOfMessage
            | Table::WakeUpSms
            | Table::SmsOfParts
            | Table::OpenCampaign
            | Table::RemovedSms => return Ok(Vec::new()),
        };
        self.applied(vec![change], key)
    }

    /// The rows of a device are derived from its profile and its state.
    fn of_device(&mut self, key: &[u8], value: &[u8]) -> Result<Derived, Fault> {
        let profile = Box::new(record::profile::read_profile(value)?);
        let device = profile.key();
        let state = key::device::record(device);
        let stored = kv::load(self.tree, &state)?;
        // A state that cannot be decoded is a finding of its own.
        let read = stored.and_then(|value| record::device::read_device(&value).ok());
        let mut changes = vec![Change::PutDevice { was: None, profile }];
        changes.extend(read.map(|record| Change::PutRecord {
            device,
            record: Box::new(record),
        }));
        let mut derived = self.applied(changes, key)?;
        derived.retain(|(key, _)| **key != *state);
        derived.push((state.into(), Expected::Perhaps));
        Ok(derived)
    }

    /// A job has its request and its parts as long as it is there.
    fn of_job(&mut self, key: &[u8], value: &[u8]) -> Result<Derived, Fault> {
        let job = record::job::read_job(value)?;
        let mut contents = vec![key::job::request(job.id)];
        contents.extend((0..job.parts()).map(|part| key::job::part(job.id, part)));
        let mut derived = self.applied(vec![Change::PutJob(Box::new(job))], key)?;
        derived.extend(contents.into_iter().map(|row| (row.into(), Expected::Any)));
        Ok(derived)
    }

    /// A later SMS may have the same parts.
    fn of_sms(&mut self, key: &[u8], value: &[u8]) -> Result<Derived, Fault> {
        let sms = Box::new(record::sms::read_sms(value)?);
        let parts = sms.parts_key();
        let mut derived = self.applied(vec![Change::PutSms { was: None, sms }], key)?;
        if let Some(parts) = parts {
            let of_parts = key::sms::of_parts(parts);
            derived.retain(|(key, _)| **key != *of_parts);
            derived.push((of_parts.into(), Expected::Perhaps));
        }
        Ok(derived)
    }

    /// The payload of an entry is not part of it.
    fn of_entry(&mut self, key: &[u8], value: &[u8]) -> Result<Derived, Fault> {
        let entry = read_entry(key, value)?;
        let payload = key::log::payload(&entry.customer, entry.id);
        let has_payload = entry.payload.is_some();
        let mut derived = self.applied(vec![Change::AppendEntry(Box::new(entry))], key)?;
        if has_payload {
            derived.push((payload.into(), Expected::Any));
        }
        Ok(derived)
    }

    /// The rows that changes write to an empty tree: without the row of the record itself, and
    /// without counts, which have rows of other records in them.
    fn applied(&mut self, changes: Vec<Change>, record: &[u8]) -> Result<Derived, Fault> {
        let batch = Batch {
            changes,
            ..Batch::default()
        };
        let mut rows = Overlay::new(self.empty);
        let (epochs, ledger) = (&mut self.epochs, &mut self.ledger);
        // Nothing is expected of the empty tree, so nothing can be in conflict.
        let _ = apply(Plan::of(&batch), epochs, ledger, &mut rows)?;
        let mut derived = rows.into_rows();
        derived.retain(|(key, _)| **key != *record && !is_count_or_piece(key));
        let derived = derived.into_iter();
        Ok(derived
            .map(|(key, row)| (key, Expected::Row(row)))
            .collect())
    }
}

fn is_count_or_piece(key: &[u8]) -> bool {
    matches!(
        Table::of(key),
        Some(
            Table::Counter
                | Table::EntryCount
                | Table::DeviceInLog
                | Table::EntriesByAge
                | Table::FormerSim
                | Table::DevicesCounted
                | Table::DevicesOfTagCounted
                | Table::JobsCounted
                | Table::SmsCounted
                | Table::CampaignDevicesCounted
                | Table::Piece
        )
    )
}

/// Nothing is derived from a row that was decoded.
fn none<T>(read: Result<T, Unreadable>) -> Result<Derived, Fault> {
    read?;
    Ok(Vec::new())
}

fn of_destination(value: &[u8]) -> Result<Derived, Fault> {
    let destination = record::destination::read_destination(value)?;
    let listed = key::outbox::destination_of(&destination.customer, destination.id);
    let tally = key::outbox::tally(destination.id);
    Ok(vec![
        (listed.into(), Expected::Row(IVec::default())),
        (tally.into(), Expected::Any),
    ])
}

fn of_dead(key: &[u8], value: &[u8]) -> Result<Derived, Fault> {
    let place = key::outbox::place_of_dead(key);
    let (id, sequence) = place.ok_or(Unreadable::Damaged("the key of a dead letter"))?;
    let at = record::outbox::read_dead(sequence, value)?.at;
    let by_age = key::outbox::dead_by_age(at, id, sequence);
    Ok(vec![(by_age.into(), Expected::Row(IVec::default()))])
}

/// Reads an idempotency record from the key and the value of its row.
pub(in crate::sled) fn idempotency_record(
    key: &[u8],
    value: &[u8],
) -> Result<IdempotencyRecord, Unreadable> {
    let under = key::idempotency::key_of(key);
    let under = under.ok_or(Unreadable::Damaged("the key of an idempotency record"))?;
    let device = key::idempotency::device_of(key, under)?;
    record::idempotency::read_idempotency_record(under, device, value)
}
