//! What a step changes for good: typed changes, what they expect, counters, and the batch that
//! carries them as one.
//!
//! A batch is atomic: all of it is durable or nothing of it is. `expects` are compare-and-set;
//! `adds` commute, so that two owners never overwrite a count.

use crate::action::{Action, ActionState, Protocol, Status};
use crate::admin_log::entry::Entry;
use crate::customer::{AccessToken, ApiClient, Customer};
use crate::definition::{Definition, DefinitionId};
use crate::delivery::backlog::ProgressUpdate;
use crate::delivery::destination::Destination;
use crate::device::record::DeviceRecord;
use crate::event::Event;
use crate::idempotency::{IdempotencyKey, IdempotencyRecord};
use crate::ids::{
    ActionId, ClientId, CustomerId, DestinationId, DeviceKey, Endpoint, Iccid, Imsi, Msisdn, Shard,
};
use crate::profile::Profile;
use crate::setting::Setting;

/// All that one step changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Who changes it.
    pub owner: Owner,
    /// What must hold for any of it to happen.
    pub expects: Vec<Expect>,
    /// What is put and removed, in this order.
    pub changes: Vec<Change>,
    /// What is counted.
    pub adds: Vec<CounterDelta>,
}

impl Batch {
    /// Whether committing it would do nothing.
    pub fn is_empty(&self) -> bool {
        self.expects.is_empty() && self.changes.is_empty() && self.adds.is_empty()
    }
}

/// Who owns what a batch changes; a stale owner is fenced off.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Owner {
    /// Nobody: a record without an actor, guarded by what the batch expects.
    #[default]
    Nobody,
    /// The holder of a virtual shard in one of its epochs.
    Shard {
        /// The shard.
        shard: Shard,
        /// The epoch in which the holder took it; a later one fences it off.
        epoch: u64,
    },
}

/// What must hold when a batch is applied.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Expect {
    /// Nobody bears the name.
    Free(UniqueName),
    /// Somebody bears the name.
    Taken(UniqueName),
    /// The device is just as this profile says.
    Profile(Box<Profile>),
    /// The action request has the status.
    Status {
        /// The request.
        action: ActionId,
        /// The status it must have.
        is: Status,
    },
    /// Nothing was promised for the device under the key.
    IdempotencyKeyUnused {
        /// What a call is named by.
        key: IdempotencyKey,
        /// The device.
        device: DeviceKey,
        /// The number of the device.
        number: u64,
    },
}

/// A name that only one thing may bear.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum UniqueName {
    /// A customer's id.
    Customer(CustomerId),
    /// An API client's id.
    Client(ClientId),
    /// A device's key: its customer and device id.
    Device(DeviceKey),
    /// A device's SIM.
    Iccid(Iccid),
    /// A device's subscriber identity.
    Imsi(Imsi),
    /// A device's telephone number.
    Msisdn(Msisdn),
    /// A device's endpoint client name.
    Endpoint(Endpoint),
    /// A device's PSK identity.
    PskIdentity(Box<str>),
}

impl UniqueName {
    /// Every name a device bears.
    pub fn all_of(profile: &Profile) -> Vec<Self> {
        let identity = match &profile.psk {
            Some(psk) => psk.identity.clone(),
            None => profile.endpoint.as_str().into(),
        };
        let mut names = vec![
            Self::Device(profile.key()),
            Self::Iccid(profile.iccid.clone()),
            Self::Endpoint(profile.endpoint.clone()),
            Self::PskIdentity(identity),
        ];
        names.extend(profile.imsi.clone().map(Self::Imsi));
        names.extend(profile.msisdn.clone().map(Self::Msisdn));
        names
    }
}

/// One thing put or removed. The store keeps names, indexes and pending lists in step with it.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Puts a customer and its name.
    PutCustomer(Customer),
    /// Removes a customer with its clients, tokens, settings and log. Its devices must be gone.
    RemoveCustomer(CustomerId),
    /// Puts an API client and its name.
    PutClient(ApiClient),
    /// Removes an API client with its tokens.
    RemoveClient(ClientId),
    /// Puts an access token.
    PutToken(AccessToken),
    /// Puts a setting.
    PutSetting(Setting),
    /// Puts a device; `was` is the profile it replaces, whose names it frees.
    PutDevice {
        /// The profile before, if there was one.
        was: Option<Box<Profile>>,
        /// The profile from now on.
        profile: Box<Profile>,
    },
    /// Removes a device with the names it bears by then, its record, its action requests, its last
    /// known values and its history. Its log entries stay.
    RemoveDevice(DeviceKey),
    /// Puts what a device's actor knows of it.
    PutRecord {
        /// The device.
        device: DeviceKey,
        /// What is known.
        record: Box<DeviceRecord>,
    },
    /// Puts an action request; `was` is where it stood in lists, if it was there.
    PutAction {
        /// Where it stood before.
        was: Option<ActionState>,
        /// The request from now on.
        action: Box<Action>,
    },
    /// Keeps what a call was promised for a device.
    PutIdempotencyRecord(IdempotencyRecord),
    /// Adds an entry to the administration log.
    AppendEntry(Box<Entry>),
    /// Adds an event to the history of its device. Values it tells become the last known ones.
    ///
    /// While its customer has destinations it also gets the next number of its shard, and waits
    /// under it for all of them.
    AppendEvent(Box<Event>),
    /// Puts a destination. A new one begins behind every event there is.
    PutDestination(Box<Destination>),
    /// Removes a destination with all that waits for it alone.
    RemoveDestination {
        /// Whose it is.
        customer: CustomerId,
        /// Which.
        destination: DestinationId,
    },
    /// Puts how far a destination has come.
    PutProgress(Box<ProgressUpdate>),
    /// Puts the customer's definitions of objects, as the OMA XML they came in.
    PutDefinition(Box<Definition>),
    /// Removes a customer's definition of a version of an object.
    RemoveDefinition(DefinitionId),
}

/// A count that changes by so much.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CounterDelta {
    /// Which count.
    pub counter: Counter,
    /// By how much.
    pub delta: i64,
}

/// What is counted, so that no total needs a scan.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Counter {
    /// Action requests of a customer.
    CustomerActions {
        /// Whose.
        customer: CustomerId,
        /// Of which protocol.
        protocol: Protocol,
        /// In which status.
        status: Status,
    },
    /// Action requests of a device.
    DeviceActions {
        /// Whose.
        device: DeviceKey,
        /// Of which protocol.
        protocol: Protocol,
        /// In which status.
        status: Status,
    },
    /// Devices of a customer.
    Devices(CustomerId),
}
