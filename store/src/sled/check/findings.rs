//! What was found in a store, in how many places, and where first?

use std::collections::BTreeMap;
use std::fmt;

use crate::record::Unreadable;
use crate::sled::key::Table;

/// Something that does not hold in a store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// Of what: the plural of a kind of rows, or of what is in them.
    pub of: &'static str,
    /// What is wrong with them.
    pub problem: Problem,
    /// How many there are.
    pub count: u64,
    /// The first one: its key, with what is not text in hexadecimal digits.
    pub first: String,
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Problem {
    /// Bytes are not what was written.
    Unreadable,
    /// Something that others say is there is not.
    Missing,
    /// A row differs from what follows from the records.
    Different,
    /// Nothing else says that it is there.
    Surplus,
    /// An event is named that is not stored.
    Dangling,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = match self.problem {
            Problem::Unreadable => "cannot be decoded",
            Problem::Missing => "missing",
            Problem::Different => "not as the records say",
            Problem::Surplus => "without a record",
            Problem::Dangling => "naming an event that is not stored",
        };
        let Self {
            of, count, first, ..
        } = self;
        write!(f, "{of}: {count} {problem}, first {first}")
    }
}

/// The findings so far: one for each kind of rows and problem, however many places there are.
#[derive(Default)]
pub(super) struct Findings(BTreeMap<(&'static str, Problem), (u64, String)>);

impl Findings {
    /// Adds some places of a kind.
    pub(super) fn add(&mut self, of: &'static str, problem: Problem, count: u64, first: &str) {
        let found = self.0.entry((of, problem));
        found.or_insert_with(|| (0, first.to_owned())).0 += count;
    }

    /// Adds a row that cannot be decoded.
    pub(super) fn unreadable(&mut self, table: Table, key: &[u8], why: &Unreadable) {
        let first = format!("{} ({why})", readable(key));
        self.add(noun(table), Problem::Unreadable, 1, &first);
    }

    /// All of them.
    pub(super) fn into_vec(self) -> Vec<Finding> {
        let findings = self.0.into_iter();
        let findings = findings.map(|((of, problem), (count, first))| Finding {
            of,
            problem,
            count,
            first,
        });
        findings.collect()
    }
}

/// A key without its table: texts as they are, everything else in hexadecimal digits.
pub(super) fn readable(key: &[u8]) -> String {
    let parts = key.get(1..).unwrap_or_default();
    // Some tables have rows of several kinds, whose number comes first.
    let behind_kind = parts.split_first().filter(|(kind, _)| **kind < b' ');
    let behind_kind = behind_kind.and_then(|(_, rest)| with_text(rest));
    with_text(parts)
        .or(behind_kind)
        .unwrap_or_else(|| hex(parts))
}

/// What begins with a text, which ends with a zero byte if more follows.
fn with_text(parts: &[u8]) -> Option<String> {
    let end = parts.iter().position(|byte| *byte == 0);
    let (text, rest) = parts.split_at(end.unwrap_or(parts.len()));
    let text = graphic(text)?;
    // The flags of a device stand before its id.
    let rest = match rest {
        [] | [0] => return Some(text.to_owned()),
        [_, _, device @ ..] if graphic(device).is_some() => graphic(device)?.to_owned(),
        [_, rest @ ..] => hex(rest),
    };
    Some(format!("{text} {rest}"))
}

fn graphic(text: &[u8]) -> Option<&str> {
    let is_text = !text.is_empty() && text.iter().all(u8::is_ascii_graphic);
    std::str::from_utf8(text).ok().filter(|_| is_text)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The rows of a table.
pub(in crate::sled) fn noun(table: Table) -> &'static str {
    match table {
        Table::Format => "formats of the store",
        Table::Epoch => "epochs",
        Table::Counter => "counts of customers, devices and requests",
        Table::Customer => "customers",
        Table::Client => "API clients",
        Table::ClientOfOwner => "rows of API clients by owner",
        Table::Token => "access tokens",
        Table::TokenOfClient => "rows of access tokens by client",
        Table::TokenByExpiry => "rows of access tokens by expiry",
        Table::Setting => "settings",
        Table::Name => "unique names of devices",
        Table::Device => "devices",
        Table::DeviceOfCustomer => "rows of the list of devices",
        Table::Record => "states of devices",
        Table::Pending => "rows of requests that are not final",
        Table::Action => "requests",
        Table::ActionOfCustomer => "rows of requests by customer",
        Table::ActionOfDevice => "rows of requests by device",
        Table::FinalByAge => "rows of final requests by age",
        Table::EntriesByAge => "rows of log entries by age",
        Table::FormerSim => "former SIMs of devices",
        Table::RemovedLog => "marks of removed logs",
        Table::Piece => "pieces of large values",
        Table::EntryPayload => "payloads of log entries",
        Table::ActionOfCustomerByUpdate => "rows of requests by customer and change",
        Table::Idempotency => "idempotency records",
        Table::IdempotencyByAge => "rows of idempotency records by age",
        Table::Entry => "log entries",
        Table::EntryCount => "counts of log entries",
        Table::DeviceInLog => "last log entries of devices",
        Table::DevicesCounted => "counts of devices in the log",
        Table::RemovedHistory => "marks of removed histories",
        Table::Definition => "object definitions",
        Table::DefinitionText => "texts of object definitions",
        Table::RemovedText => "marks of removed texts",
        Table::Destination => "destinations",
        Table::DestinationOfCustomer => "rows of destinations by customer",
        Table::NewestNumber => "newest numbers of events",
        Table::Tally => "counts of destinations",
        Table::Cursor => "cursors of destinations",
        Table::Retry => "retries",
        Table::Dead => "dead letters",
        Table::DeadByAge => "rows of dead letters by age",
        Table::RemovedDestination => "marks of removed destinations",
        Table::Address => "rows of devices by address",
        Table::EventBlock => "blocks of events",
        Table::HeadPage => "pages of newest events",
        Table::ValuePage => "pages of last values",
        Table::HeadCheckpoint => "checkpoints of newest events",
        Table::RemovedEvents => "marks of removed events",
        Table::LastGroup => "numbers of the last group",
        Table::ServerKey => "private keys of the service",
        Table::Migration => "places of a migration",
        Table::DeviceOfTag => "rows of devices by tag",
        Table::DevicesOfTagCounted => "counts of devices by tag",
        Table::Job => "jobs",
        Table::JobRequest => "requests of jobs",
        Table::JobPart => "parts of jobs",
        Table::JobOfCustomer => "rows of jobs by customer",
        Table::JobsCounted => "counts of jobs",
        Table::RunningJob => "rows of running jobs",
        Table::RemovedJob => "marks of removed jobs",
        Table::Schedule => "schedules",
        Table::ScheduleContents => "requests of schedules",
        Table::BootstrapConfigOfCustomer => "bootstrap configurations of customers",
        Table::BootstrapConfigOfDevice => "bootstrap configurations of devices",
        Table::Bootstrap => "bootstraps",
        Table::Sms => "SMS",
        Table::SmsOfId => "rows of SMS by id",
        Table::SmsForNetwork => "rows of SMS for the network",
        Table::SmsDue => "rows of SMS by validity",
        Table::SmsOpen => "rows of SMS that are not final",
        Table::SmsOfMessage => "rows of SMS by message id",
        Table::WakeUpSms => "rows of SMS that wake devices",
        Table::SmsOfParts => "rows of SMS by their parts",
        Table::SmsCounted => "counts of SMS",
        Table::RemovedSms => "marks of removed SMS",
        Table::FirmwareImage => "firmware images",
        Table::Campaign => "firmware campaigns",
        Table::OpenCampaign => "rows of firmware campaigns that have not ended",
        Table::CampaignDevice => "devices of firmware campaigns",
        Table::CampaignDevicesCounted => "counts of devices of firmware campaigns",
    }
}

#[cfg(test)]
mod tests {
    use engine::ids::{ActionId, CustomerId, DeviceId};

    use super::*;
    use crate::record::device_flags::DeviceFlags;
    use crate::sled::key::{self, device};

    #[test]
    fn a_key_is_shown_with_its_texts() {
        let acme = CustomerId::parse("acme").unwrap();
        let meter = DeviceId::parse("meter-1").unwrap();
        let listed = device::device_of(&acme, DeviceFlags::NONE, &meter);
        assert_eq!(readable(&listed), "acme meter-1");
        assert_eq!(readable(&key::customer(&acme)), "acme");
        let action = key::action::action(ActionId::from_bytes([0xab; 16]));
        assert_eq!(readable(&action), "ab".repeat(16));
        let counted = device::counted(&acme, DeviceFlags::NONE);
        assert_eq!(readable(&counted), "acme 00");
        assert_eq!(readable(&[]), "");
    }

    #[test]
    fn places_of_one_kind_are_one_finding() {
        let mut findings = Findings::default();
        for first in ["a", "b"] {
            findings.add("requests", Problem::Missing, 1, first);
        }
        let [finding] = findings.into_vec().try_into().unwrap();
        assert_eq!(finding.to_string(), "requests: 2 missing, first a");
    }
}
