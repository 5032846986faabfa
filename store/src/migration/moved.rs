//! What is moved from one engine to the other? Records, whatever rows an engine stores them in.

use engine::change::{Change, Counter, CounterDelta, Fence};
use engine::delivery::backlog::{DeadLetter, PendingRetry, Sequence};
use engine::delivery::destination::Destination;
use engine::device::record::DeviceRecord;
use engine::event::Event;
use engine::ids::{CustomerId, DestinationId, DeviceKey, EntryId, Iccid, JobId, Partition, SmsId};
use engine::profile::Profile;
use engine::query::KnownValue;
use engine::sealed::Sealed;
use engine::sms::PartsKey;

use crate::record::definition::TextId;

/// A record that is moved.
#[derive(Debug)]
pub(crate) enum Moved {
    /// What a commit puts, where nothing is before.
    Put(Change),
    /// A device, with its state if the source stores it under the same key.
    Device(Box<Profile>, Option<Box<DeviceRecord>>),
    /// A last known value of a device.
    KnownValue(DeviceKey, Box<KnownValue>),
    /// A device that had a SIM, and the last entry of the log that it may be needed for.
    FormerSim(CustomerId, Iccid, DeviceKey, EntryId),
    /// An event with its number.
    Event(Sequence, Box<Event>),
    /// Up to which number the events of a device key are of a removed device.
    RemovedHistory(DeviceKey, Sequence),
    /// Up to which entry and which event the log and the events of a customer are of a removed one.
    RemovedCustomer(CustomerId, Option<EntryId>, Sequence),
    /// A definition of an object of a removed customer.
    RemovedDefinition(TextId, Box<str>),
    /// A destination, and the number behind which it begins.
    Destination(Box<Destination>, Sequence),
    /// A destination that was removed and whose progress is not swept yet.
    RemovedDestination(DestinationId),
    /// Up to which event a partition is done for a destination.
    Cursor(DestinationId, Partition, Sequence),
    /// An event that is to be tried again.
    Retry(DestinationId, Box<PendingRetry>),
    /// An event that a destination did not accept.
    Dead(DestinationId, Box<DeadLetter>),
    /// A job that was removed and whose parts are not swept yet.
    RemovedJob(JobId),
    /// The last SMS with parts of a reference.
    SmsOfParts(PartsKey, SmsId),
    /// The newest epoch of an owner.
    Epoch(Fence, u64),
}

/// What there is one of.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Singles {
    /// The newest epoch begun.
    pub(crate) epoch: u64,
    /// The newest number given to an event.
    pub(crate) newest: Sequence,
    /// The private key of the service.
    pub(crate) server_key: Option<Sealed>,
}

impl Moved {
    /// The counts in which it is.
    pub(crate) fn counters(&self) -> Vec<CounterDelta> {
        let counters = match self {
            Self::Device(profile, _) => vec![Counter::Devices(profile.customer.clone())],
            Self::Put(Change::PutAction { action, .. }) => {
                vec![Counter::of_action(action, action.status)]
            }
            Self::Put(Change::PutCampaignDevice { campaign, row, .. }) => {
                vec![Counter::CampaignDevices {
                    campaign: *campaign,
                    state: row.state,
                }]
            }
            Self::Put(_)
            | Self::KnownValue(..)
            | Self::FormerSim(..)
            | Self::Event(..)
            | Self::RemovedHistory(..)
            | Self::RemovedCustomer(..)
            | Self::RemovedDefinition(..)
            | Self::Destination(..)
            | Self::RemovedDestination(_)
            | Self::Cursor(..)
            | Self::Retry(..)
            | Self::Dead(..)
            | Self::RemovedJob(_)
            | Self::SmsOfParts(..)
            | Self::Epoch(..) => Vec::new(),
        };
        let one = |counter| CounterDelta { counter, delta: 1 };
        counters.into_iter().map(one).collect()
    }
}
