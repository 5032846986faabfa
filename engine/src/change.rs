//! The durable changes of a step: changes, their preconditions, counters, and the batch that has
//! them all.
//!
//! A batch is atomic: it is committed whole or not at all. `expects` are compare-and-set; `adds`
//! commute, so that two owners never overwrite a count.

use std::net::IpAddr;

use crate::action::{Action, ActionState, NewAction, Protocol, Status};
use crate::admin_log::entry::Entry;
use crate::bootstrap::{BootstrapConfig, BootstrapRecord, BootstrapScope};
use crate::credentials::RawPublicKey;
use crate::customer::{AccessToken, ApiClient, Customer};
use crate::definition::{Definition, DefinitionId};
use crate::delivery::backlog::ProgressUpdate;
use crate::delivery::destination::Destination;
use crate::device::record::DeviceRecord;
use crate::event::Event;
use crate::firmware::FirmwareImage;
use crate::firmware::campaign::{Campaign, CampaignDevice};
use crate::firmware::update::UpdateState;
use crate::idempotency::{IdempotencyKey, IdempotencyRecord, IdentifiedDevice};
use crate::ids::{
    ActionId, CampaignId, ClientId, CustomerId, DestinationId, DeviceKey, Endpoint, Iccid, ImageId,
    Imsi, JobId, Msisdn, Partition, ScheduleId, Shard, SmsId,
};
use crate::job::{Job, JobDevice};
use crate::limits::SHARDS;
use crate::profile::Profile;
use crate::schedule::{Schedule, ScheduleContents};
use crate::setting::Setting;
use crate::sms::{PartsKey, Sms, SmsState};

/// All changes of one step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// The owner of what changes.
    pub owner: Owner,
    /// The preconditions of the batch.
    pub expects: Vec<Expect>,
    /// The changes, applied in this order.
    pub changes: Vec<Change>,
    /// The changes of counters.
    pub adds: Vec<CounterDelta>,
}

impl Batch {
    /// Whether committing it would do nothing.
    pub fn is_empty(&self) -> bool {
        self.expects.is_empty() && self.changes.is_empty() && self.adds.is_empty()
    }

    /// Puts an action request. One that the batch puts already is put once, as it is now: a request
    /// that is sent at once is saved when it is created and when its attempt begins.
    pub fn put_action(&mut self, was: Option<ActionState>, action: Box<Action>) {
        for change in &mut self.changes {
            if let Change::PutAction {
                action: earlier, ..
            } = change
                && earlier.id == action.id
            {
                *earlier = action;
                return;
            }
        }
        self.changes.push(Change::PutAction { was, action });
    }
}

/// The owner of what a batch changes; a stale owner is fenced off.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Owner {
    /// None: the record has no actor and is guarded by what the batch expects.
    #[default]
    Nobody,
    /// The holder of a virtual shard in one of its epochs.
    Shard {
        /// The shard.
        shard: Shard,
        /// The epoch in which the holder took it; a later one fences it off.
        epoch: u64,
    },
    /// Whoever delivers to the destinations of a partition, in one of its epochs.
    Deliveries {
        /// The partition.
        partition: Partition,
        /// The epoch in which its deliveries were taken.
        epoch: u64,
    },
}

impl Owner {
    /// What tells whether it is fenced off, and the epoch of the owner.
    pub fn fence(self) -> Option<(Fence, u64)> {
        match self {
            Self::Nobody => None,
            Self::Shard { shard, epoch } => Some((Fence(shard.0), epoch)),
            Self::Deliveries { partition, epoch } => Some((Fence::of_deliveries(partition), epoch)),
        }
    }
}

/// The number under which the newest epoch of an owner is stored: that of a shard or, beyond them,
/// of a partition of deliveries.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Fence(pub u16);

impl Fence {
    /// That of the deliveries of a partition.
    pub fn of_deliveries(partition: Partition) -> Self {
        Self(SHARDS + u16::from(partition.0))
    }

    /// Whether it is that of a shard.
    pub fn is_of_shard(self) -> bool {
        self.0 < SHARDS
    }
}

/// A precondition of a batch.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Expect {
    /// The name is free.
    Free(UniqueName),
    /// The name is taken.
    Taken(UniqueName),
    /// The device has exactly this profile.
    Profile(Box<Profile>),
    /// The customer is exactly this.
    Customer(Box<Customer>),
    /// The API client is exactly this.
    Client(Box<ApiClient>),
    /// The action request has the status.
    Status {
        /// The request.
        action: ActionId,
        /// The status it must have.
        is: Status,
    },
    /// The job is running.
    JobRunning(JobId),
    /// The schedule is exactly this.
    Schedule(Box<Schedule>),
    /// The device at a place of a campaign is exactly this.
    CampaignDevice {
        /// The campaign.
        campaign: CampaignId,
        /// The place.
        place: u32,
        /// The device.
        row: Box<CampaignDevice>,
    },
    /// No SMS and no part of one has the id.
    SmsIdFree(SmsId),
    /// The SMS is exactly this.
    Sms(Box<Sms>),
    /// This SMS is the last one with these parts.
    SmsOfParts {
        /// What the parts have in common.
        parts: PartsKey,
        /// The SMS, if there was one.
        is: Option<SmsId>,
    },
    /// There is no idempotency record under the key, for a device or for the whole call.
    IdempotencyKeyUnused {
        /// The key of the call.
        key: IdempotencyKey,
        /// The device.
        device: Option<IdentifiedDevice>,
    },
}

impl Batch {
    /// Adds the idempotency record of the call that the batch is for. There must be none yet.
    pub fn add_record(&mut self, record: IdempotencyRecord) {
        self.expects.push(Expect::no_record_like(&record));
        self.changes.push(Change::PutIdempotencyRecord(record));
    }
}

impl Expect {
    /// There is no idempotency record in the place of this one.
    pub fn no_record_like(record: &IdempotencyRecord) -> Self {
        Self::IdempotencyKeyUnused {
            key: record.call.key,
            device: record.device(),
        }
    }
}

/// A name that must be unique.
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
    /// A device's raw public key.
    PublicKey(RawPublicKey),
    /// The address of devices of one customer: taken if a device of another customer has it,
    /// however many of this customer's have it.
    Address {
        /// The address.
        ip: IpAddr,
        /// Whose devices may have it.
        customer: CustomerId,
    },
}

impl UniqueName {
    /// Every unique name of a device.
    pub fn all_of(profile: &Profile) -> Vec<Self> {
        let mut names = vec![
            Self::Device(profile.key()),
            Self::Iccid(profile.iccid.clone()),
            Self::Endpoint(profile.endpoint.clone()),
        ];
        names.extend(Self::of_keys(profile));
        names.extend(profile.imsi.clone().map(Self::Imsi));
        names.extend(profile.msisdn.clone().map(Self::Msisdn));
        names
    }

    /// The unique names that the keys of a device take, each once: a previous key may have the PSK
    /// identity of the current one.
    fn of_keys(profile: &Profile) -> Vec<Self> {
        let credentials = &profile.credentials;
        let mut names = vec![Self::PskIdentity(profile.psk_identity().into())];
        for psk in credentials.psks() {
            let name = Self::PskIdentity(psk.identity.clone());
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.extend(credentials.public_keys().copied().map(Self::PublicKey));
        names
    }

    /// The address of a device, if it has one of its own.
    pub fn address_of(profile: &Profile) -> Option<Self> {
        profile.ip.map(|ip| Self::Address {
            ip,
            customer: profile.customer.clone(),
        })
    }
}

/// One thing put or removed. The store updates names, indexes and pending lists with it.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Puts a customer and its name.
    PutCustomer(Customer),
    /// Removes a customer with its clients, tokens, settings, events and log. Its devices and
    /// action requests must be gone.
    RemoveCustomer(CustomerId),
    /// Removes action requests of a customer whose devices are gone: as many of them as a batch may
    /// remove, so that it does not delay others. There may be more.
    RemoveActions(CustomerId),
    /// Puts an API client and its name.
    PutClient(ApiClient),
    /// Removes an API client with its tokens.
    RemoveClient(ClientId),
    /// Puts an access token.
    PutToken(AccessToken),
    /// Puts a setting.
    PutSetting(Setting),
    /// Puts what devices are given when they are bootstrapped.
    PutBootstrapConfig {
        /// Whose devices.
        scope: BootstrapScope,
        /// What they are given.
        config: Box<BootstrapConfig>,
    },
    /// Removes a bootstrap configuration.
    RemoveBootstrapConfig(BootstrapScope),
    /// Puts the last bootstrap of a device.
    PutBootstrap {
        /// The device.
        device: DeviceKey,
        /// Its bootstrap.
        bootstrap: Box<BootstrapRecord>,
    },
    /// Puts a device; `was` is the profile it replaces, whose names it frees.
    PutDevice {
        /// The profile before, if there was one.
        was: Option<Box<Profile>>,
        /// The profile from now on.
        profile: Box<Profile>,
    },
    /// Removes a device with the names it has at that time, its record, its last known values and
    /// its SMS, and hides its history. Its log entries stay, and so do its final action requests;
    /// one that is not final is removed, because no machine will end it.
    RemoveDevice(DeviceKey),
    /// Puts the record of a device's actor.
    PutRecord {
        /// The device.
        device: DeviceKey,
        /// The record.
        record: Box<DeviceRecord>,
    },
    /// Puts an action request; `was` is its previous state, if it existed.
    PutAction {
        /// Its previous state.
        was: Option<ActionState>,
        /// The request from now on.
        action: Box<Action>,
    },
    /// Puts an idempotency record of a call.
    PutIdempotencyRecord(IdempotencyRecord),
    /// Adds an entry to the administration log.
    AppendEntry(Box<Entry>),
    /// Adds an event to the history of its device, under the next number of its partition. Its
    /// values become the last known ones.
    AppendEvent(Box<Event>),
    /// Puts a destination. A new one begins after every existing event.
    PutDestination(Box<Destination>),
    /// Removes a destination with all that is queued for it alone.
    RemoveDestination {
        /// Its customer.
        customer: CustomerId,
        /// The destination.
        destination: DestinationId,
    },
    /// Puts the progress of a destination.
    PutProgress(Box<ProgressUpdate>),
    /// Puts a customer's object definition, as the OMA XML that was uploaded.
    PutDefinition(Box<Definition>),
    /// Removes a customer's definition of a version of an object.
    RemoveDefinition(DefinitionId),
    /// Puts a job.
    PutJob(Box<Job>),
    /// Puts the request that a job creates.
    PutJobRequest {
        /// The job.
        job: JobId,
        /// The request.
        request: Box<NewAction>,
    },
    /// Puts a part of the devices of a job.
    PutJobPart {
        /// The job.
        job: JobId,
        /// The number of the part, from 0.
        part: u32,
        /// Its devices.
        devices: Box<[JobDevice]>,
    },
    /// Puts an SMS; `was` is its previous state, if it existed.
    PutSms {
        /// Its previous state.
        was: Option<SmsState>,
        /// The SMS from now on.
        sms: Box<Sms>,
    },
    /// Removes a job with its request and its devices. The requests it created stay.
    RemoveJob(JobId),
    /// Puts a schedule.
    PutSchedule(Box<Schedule>),
    /// Puts what the jobs of a schedule request of which devices.
    PutScheduleContents {
        /// The schedule.
        schedule: ScheduleId,
        /// The contents.
        contents: Box<ScheduleContents>,
    },
    /// Removes a schedule with its contents. Its jobs stay.
    RemoveSchedule {
        /// Its customer.
        customer: CustomerId,
        /// The schedule.
        schedule: ScheduleId,
    },
    /// Puts an image, whose bytes are in a file.
    PutImage(Box<FirmwareImage>),
    /// Removes an image.
    RemoveImage {
        /// Its customer.
        customer: CustomerId,
        /// The image.
        image: ImageId,
    },
    /// Puts a campaign.
    PutCampaign(Box<Campaign>),
    /// Puts the device at a place of a campaign.
    PutCampaignDevice {
        /// The campaign.
        campaign: CampaignId,
        /// The place.
        place: u32,
        /// The device.
        row: Box<CampaignDevice>,
    },
    /// Removes devices of a campaign, as many as a batch may remove. There may be more.
    RemoveCampaignDevices(CampaignId),
    /// Removes a campaign with its counts. Its devices must be gone.
    RemoveCampaign {
        /// Its customer.
        customer: CustomerId,
        /// The campaign.
        campaign: CampaignId,
    },
}

/// A change of a counter.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CounterDelta {
    /// The counter.
    pub counter: Counter,
    /// The change.
    pub delta: i64,
}

/// A counter, so that no total needs a scan.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Counter {
    /// Action requests of a customer.
    CustomerActions {
        /// The owner.
        customer: CustomerId,
        /// The protocol.
        protocol: Protocol,
        /// The status.
        status: Status,
    },
    /// Devices of a customer.
    Devices(CustomerId),
    /// Devices of a campaign.
    CampaignDevices {
        /// The campaign.
        campaign: CampaignId,
        /// Their state.
        state: UpdateState,
    },
}

impl Counter {
    /// The count of the requests like this one in a status.
    pub fn of_action(action: &Action, status: Status) -> Self {
        Self::CustomerActions {
            customer: action.customer.clone(),
            protocol: action.protocol(),
            status,
        }
    }
}
