//! Queries of stored records: filters and pages.

pub mod activity;
pub mod devices;
pub mod listed;
pub mod series;

use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;

use crate::action::{Protocol, Status};
use crate::admin_log::entry::{Category, Subject};
use crate::admin_log::window::TimeWindow;
use crate::delivery::backlog::Sequence;
use crate::event::{Event, EventContent, EventType};
use crate::ids::{CustomerId, DeviceKey, Iccid};
use crate::limits::LOG_ENTRIES_SEARCHED_MAX;
use crate::moment::Timestamp;

/// One page of a list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Page<T> {
    /// The items on the page.
    pub items: Vec<T>,
    /// How many items the whole list has.
    pub total: u64,
}

/// The number and size of a page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PageRequest {
    /// Its number, from 1.
    pub number: u32,
    /// How many items a page has.
    pub size: u32,
}

impl PageRequest {
    /// How many items precede the page.
    pub fn skip(&self) -> u64 {
        u64::from(self.number.saturating_sub(1)) * u64::from(self.size)
    }

    /// The page of a list that is in memory.
    pub fn page_of<T>(&self, items: Vec<T>) -> Page<T> {
        let total = u64::try_from(items.len()).unwrap_or(u64::MAX);
        let skip = usize::try_from(self.skip()).unwrap_or(usize::MAX);
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        let items = items.into_iter().skip(skip).take(size).collect();
        Page { items, total }
    }
}

/// A filter for action requests, and their order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ActionFilter {
    /// Only those of one customer.
    pub customer: CustomerId,
    /// Only those of one device.
    pub device: Option<DeviceKey>,
    /// Only those of one protocol.
    pub protocol: Option<Protocol>,
    /// Only those of one of these statuses.
    pub statuses: Statuses,
    /// The order.
    pub order: ActionOrder,
}

impl ActionFilter {
    /// All requests of a customer, newest first.
    pub fn all_of(customer: CustomerId) -> Self {
        Self {
            customer,
            device: None,
            protocol: None,
            statuses: Statuses::all(),
            order: ActionOrder::CreatedDescending,
        }
    }
}

/// A set of statuses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Statuses(u8);

impl Statuses {
    /// Every status.
    pub fn all() -> Self {
        Self::which(|_| true)
    }

    /// Those in which a request can still change.
    pub fn pending() -> Self {
        Self::which(Status::is_pending)
    }

    /// Those that are final.
    pub fn done() -> Self {
        Self::which(|status| !status.is_pending())
    }

    /// The set reduced to one status; empty if it does not have it.
    pub fn only(self, status: Status) -> Self {
        Self(self.0 & Self::bit(status))
    }

    /// Whether the set has the status.
    pub fn has(self, status: Status) -> bool {
        self.0 & Self::bit(status) != 0
    }

    fn which(has: impl Fn(Status) -> bool) -> Self {
        let among = Status::ALL.into_iter().filter(|status| has(*status));
        Self(among.fold(0, |bits, status| bits | Self::bit(status)))
    }

    fn bit(status: Status) -> u8 {
        1 << status as u8
    }
}

/// The orders of lists of action requests. Of two with the same time, the one with the smaller id
/// counts as older.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ActionOrder {
    /// Oldest first.
    Created,
    /// Newest first.
    CreatedDescending,
    /// Longest unchanged first.
    Updated,
    /// Last changed first.
    UpdatedDescending,
}

impl ActionOrder {
    /// Every order.
    pub const ALL: [Self; 4] = [
        Self::Created,
        Self::CreatedDescending,
        Self::Updated,
        Self::UpdatedDescending,
    ];
}

/// A filter for administration log entries, newest first.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogFilter {
    /// Only those of one customer.
    pub customer: CustomerId,
    /// Only those within a time window.
    pub window: TimeWindow,
    /// Only those about one SIM.
    pub iccid: Option<Iccid>,
    /// Only those of one category.
    pub category: Option<Category>,
    /// Only those of one subject.
    pub subject: Option<Subject>,
}

/// The kind of log entries: what is in the brackets of their message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EntryKind(Box<str>);

/// An invalid kind of log entries.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("must consist of 1 to {KIND_CHARACTERS_MAX} letters and digits")]
pub struct InvalidEntryKind;

/// There are more log entries than a search for a kind reads.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "the time range has more than {LOG_ENTRIES_SEARCHED_MAX} entries; narrow it, or add a type, a \
     category or a device"
)]
pub struct LogSearchTooBroad;

/// The longest kind of log entries, in characters.
pub const KIND_CHARACTERS_MAX: usize = 64;

impl EntryKind {
    /// Parses a kind: `ActionRequestFailed`.
    pub fn parse(text: &str) -> Result<Self, InvalidEntryKind> {
        let is_word = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        match is_word && (1..=KIND_CHARACTERS_MAX).contains(&text.len()) {
            true => Ok(Self(text.into())),
            false => Err(InvalidEntryKind),
        }
    }

    /// Whether a message is of this kind: `DeviceController[ActionRequestFailed]`.
    pub fn is_of(&self, message: &str) -> bool {
        let in_brackets = message.split_once('[');
        in_brackets.and_then(|(_, rest)| rest.strip_suffix(']')) == Some(&self.0)
    }
}

/// A filter for the events of a device, newest first.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HistoryFilter {
    /// The customer of the device.
    pub customer: CustomerId,
    /// The device.
    pub device: DeviceKey,
    /// Only those older than the event with this number.
    pub before: Option<Sequence>,
    /// Only those from this time on.
    pub from: Option<Timestamp>,
    /// Only those up to this time.
    pub to: Option<Timestamp>,
    /// Only those of one type.
    pub event_type: Option<EventType>,
    /// Only those with a value at this path or below it.
    pub path: Option<Path>,
}

impl HistoryFilter {
    /// All events of a device.
    pub fn all_of(customer: CustomerId, device: DeviceKey) -> Self {
        Self {
            customer,
            device,
            before: None,
            from: None,
            to: None,
            event_type: None,
            path: None,
        }
    }

    /// Whether an event that is within the times is wanted.
    pub fn wants(&self, event: &Event) -> bool {
        let has_path = |path: Path| match &event.content {
            EventContent::Telemetry(telemetry) => {
                telemetry.values.iter().any(|(at, _)| path.contains(*at))
            }
            EventContent::Data(_)
            | EventContent::Lifecycle(_)
            | EventContent::Error(_)
            | EventContent::ActionResult(_)
            | EventContent::SmsReceived(_)
            | EventContent::SmsReport(_) => false,
        };
        let is_of = |event_type| event.content.event_type() == event_type;
        self.event_type.is_none_or(is_of) && self.path.is_none_or(has_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_pending_or_done_and_a_set_has_what_it_was_made_of() {
        for status in Status::ALL {
            assert!(Statuses::all().has(status));
            assert_ne!(
                Statuses::pending().has(status),
                Statuses::done().has(status)
            );
            assert_eq!(Statuses::pending().has(status), status.is_pending());
            for other in Status::ALL {
                let only = Statuses::all().only(other);
                assert_eq!(only.has(status), status == other);
            }
        }
        let none = Statuses::pending().only(Status::Failed);
        assert!(Status::ALL.into_iter().all(|status| !none.has(status)));
    }
}

/// The last known value of a resource, or of one of its instances.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownValue {
    /// Its path.
    pub path: Path,
    /// The value.
    pub value: Value,
    /// When the device reported it.
    pub at: Timestamp,
}
