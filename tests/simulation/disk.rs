//! What survives: a store that applies one batch after the other, completely or not at all, and
//! that loses at a crash what was not durable.

pub(crate) mod campaigns;
mod history;
mod outbox;
mod reading;
mod removing;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use engine::action::{Action, ActionState, Lwm2mRequest, Protocol, Request, Status};
use engine::admin_log::entry::Entry;
use engine::bootstrap::{BootstrapPlan, BootstrapState};
use engine::change::{Batch, Change, Counter, Expect, Owner, UniqueName};
use engine::delivery::backlog;
use engine::device::record::{DeviceRecord, Observation};
use engine::dispatch::shard_map::{ArbiterId, ShardMap};
use engine::event::{EventContent, Lifecycle};
use engine::firmware::campaign::Campaign;
use engine::ids::{ActionId, CampaignId, DestinationId, DeviceKey};
use engine::known_devices::{DeviceMark, KnownDevices};
use engine::profile::Profile;
use engine::setting::SettingState;
use protocol::lwm2m::path::Path;

use crate::endpoints::EndpointBehaviour;
use crate::service::{ArbiterRun, deliverer_in};
use campaigns::Campaigns;
pub(crate) use campaigns::RowMove;
use history::History;
pub(crate) use history::{payload_of, plain};
pub(crate) use outbox::DestinationRecord;
use outbox::Outbox;
pub(crate) use reading::RestorePage;
pub(crate) use removing::SweptAction;

/// The disk, with the batches it has not applied yet.
pub(crate) struct Disk {
    pub(crate) durable: Durable,
    waiting: VecDeque<PendingBatch>,
    /// When it will have applied all waiting batches.
    pub(crate) busy_until_ms: i64,
    /// Until when it is full.
    pub(crate) full_until_ms: i64,
}

/// A batch that is not durable yet.
pub(crate) struct PendingBatch {
    pub(crate) author: Author,
    pub(crate) batch: Batch,
    pub(crate) fate: BatchFate,
}

/// What becomes of a batch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BatchFate {
    /// The disk has room for it.
    Fits,
    /// The disk had no room for it.
    HasNoRoom,
    /// It never left the node that made it, which was killed.
    Lost,
}

/// Where a batch comes from.
#[derive(Debug)]
pub(crate) enum Author {
    /// A step of a device at its own arbiter.
    Device {
        at: ArbiterRun,
        who: usize,
        step: u64,
    },
    /// A step of a destination.
    Forwarder {
        id: DestinationId,
        generation: u64,
        step: u64,
    },
    /// The key of a bootstrap, with what the device is then written.
    Bootstrap(PreparedStep, Box<BootstrapPlan>),
    /// A step of a campaign.
    Campaign(CampaignId),
    /// A device uses a key for the first time.
    KeyUse,
    /// A change by the customer.
    Customer(CustomerChange),
}

/// The step of a device that asks for its bootstrap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreparedStep {
    pub(crate) at: ArbiterRun,
    pub(crate) who: usize,
    pub(crate) step: u64,
    /// How often the bootstrap may be prepared anew.
    pub(crate) tries_left: u32,
}

/// A change by the customer.
#[derive(Debug)]
pub(crate) enum CustomerChange {
    /// Puts the devices of a campaign, which then begins.
    AddCampaign(Box<Campaign>),
    /// Creates a destination whose endpoint behaves like this.
    Create(DestinationId, EndpointBehaviour),
    /// Switches passive reporting on or off.
    Switch,
}

impl Author {
    /// The number of the step, if the batch belongs to one.
    pub(crate) fn step(&self) -> Option<u64> {
        match self {
            Self::Device { step, .. } | Self::Forwarder { step, .. } => Some(*step),
            Self::Bootstrap(..) | Self::Campaign(_) | Self::KeyUse | Self::Customer(_) => None,
        }
    }
}

/// The durable data.
pub(crate) struct Durable {
    profiles: Vec<Profile>,
    keys: Vec<DeviceKey>,
    who_by_key: BTreeMap<DeviceKey, usize>,
    /// How often each device was added or removed: it exists if the number is odd.
    turns: Vec<u32>,
    records: Vec<DeviceRecord>,
    /// How many records were put, and how many when each device was bound to its peer.
    records_put: u64,
    bound: Vec<u64>,
    actions: Vec<BTreeMap<ActionId, Action>>,
    /// The requests that are not final, oldest first.
    pending: Vec<BTreeSet<ActionId>>,
    counters: HashMap<Counter, i64>,
    first_contacts: Vec<u32>,
    failures_logged: Vec<u32>,
    histories: Vec<History>,
    outbox: Outbox,
    campaigns: Campaigns,
    /// The keys that bootstraps ever issued, by device.
    issued: Vec<BTreeSet<Box<[u8]>>>,
    /// Whether passive reporting is on.
    reporting: SettingState,
    shard_map: ShardMap,
    /// The epoch of the last owner of each partition.
    epochs: BTreeMap<ArbiterId, u64>,
    known: Arc<KnownDevices>,
}

/// What a batch did to one action request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActionMove {
    pub(crate) who: usize,
    pub(crate) action: ActionId,
    /// The status and the attempts left before the batch, if the request existed.
    pub(crate) from: Option<(Status, u8)>,
}

/// What a batch did, as far as laws need it.
#[derive(Debug, Default)]
pub(crate) struct BatchSummary {
    pub(crate) moved: Vec<ActionMove>,
    pub(crate) removed: Option<usize>,
    /// The observations before the batch, if it put the record.
    pub(crate) observed_before: Option<Box<[Observation]>>,
    /// The paths of observations that a request ended or failed to begin.
    pub(crate) ended: Vec<Path>,
    /// The paths of observations that ended with an entry in the log.
    pub(crate) lost: Vec<Path>,
    /// Whether the device registered or deregistered.
    pub(crate) came_or_went: bool,
    /// The published data of plain devices.
    pub(crate) data: Vec<(Protocol, Box<[u8]>)>,
    /// The events queued for delivery.
    pub(crate) numbered: Vec<backlog::QueuedEvent>,
    /// The devices of campaigns whose rows changed.
    pub(crate) rows: Vec<RowMove>,
    /// The state of the bootstrap that the batch puts.
    pub(crate) bootstrap: Option<BootstrapState>,
    /// Whether the batch publishes that the device was bootstrapped.
    pub(crate) is_bootstrapped: bool,
}

/// A condition of the batch did not hold.
#[derive(Debug)]
pub(crate) struct BatchRefused(pub(crate) &'static str);

impl Disk {
    pub(crate) fn new(profiles: Vec<Profile>, shard_map: ShardMap) -> Self {
        Self {
            durable: Durable::new(profiles, shard_map),
            waiting: VecDeque::new(),
            busy_until_ms: 0,
            full_until_ms: 0,
        }
    }

    pub(crate) fn take_in(&mut self, waiting: PendingBatch) {
        self.waiting.push_back(waiting);
    }

    /// The batch to be applied next.
    pub(crate) fn next_batch(&mut self) -> Option<PendingBatch> {
        self.waiting.pop_front()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many batches of these authors wait.
    pub(crate) fn waiting_of(&self, is_one: impl Fn(&Author) -> bool) -> usize {
        self.waiting.iter().filter(|it| is_one(&it.author)).count()
    }

    /// Loses the batches of these authors, except the first ones, which have left their node.
    pub(crate) fn lose(&mut self, is_one: impl Fn(&Author) -> bool, left: usize) {
        let theirs = self.waiting.iter_mut().filter(|it| is_one(&it.author));
        theirs.skip(left).for_each(|it| it.fate = BatchFate::Lost);
    }
}

impl Durable {
    fn new(profiles: Vec<Profile>, shard_map: ShardMap) -> Self {
        let count = profiles.len();
        let keys: Vec<DeviceKey> = profiles.iter().map(Profile::key).collect();
        let known = KnownDevices::default();
        for profile in &profiles {
            let address = profile.ip.map(DeviceMark::Address);
            let names = [
                DeviceMark::Endpoint(profile.endpoint.as_str()),
                DeviceMark::Key(profile.key().prefix()),
            ];
            names
                .into_iter()
                .chain(address)
                .for_each(|it| known.add(it));
        }
        known.complete();
        Self {
            who_by_key: keys.iter().copied().zip(0..).collect(),
            keys,
            turns: vec![1; count],
            records: vec![DeviceRecord::default(); count],
            records_put: 0,
            bound: vec![0; count],
            actions: vec![BTreeMap::new(); count],
            pending: vec![BTreeSet::new(); count],
            counters: HashMap::new(),
            first_contacts: vec![0; count],
            failures_logged: vec![0; count],
            histories: (0..count).map(|_| History::default()).collect(),
            outbox: Outbox::default(),
            campaigns: Campaigns::default(),
            issued: vec![BTreeSet::new(); count],
            reporting: SettingState::default(),
            shard_map,
            epochs: BTreeMap::new(),
            known: Arc::new(known),
            profiles,
        }
    }

    /// Applies a batch if all its conditions hold, and returns what it did.
    pub(crate) fn apply(&mut self, batch: Batch) -> Result<BatchSummary, BatchRefused> {
        if !batch.expects.iter().all(|expect| self.holds(expect)) {
            return Err(BatchRefused("what the batch expects does not hold"));
        }
        let mut done = BatchSummary::default();
        for change in batch.changes {
            self.change(change, &mut done)?;
        }
        for add in batch.adds {
            self.count_by(add.counter, add.delta);
        }
        Ok(done)
    }

    /// A partition has another owner: what the one before writes is refused from now on.
    pub(crate) fn take_over(&mut self, at: ArbiterRun) {
        self.epochs.insert(at.id, at.epoch);
    }

    /// Whether another owner came after this one.
    pub(crate) fn is_superseded(&self, owner: Owner) -> bool {
        let (id, epoch) = match owner {
            Owner::Nobody => return false,
            Owner::Shard { shard, epoch } => (self.shard_map.arbiter_of(shard), epoch),
            Owner::Deliveries { partition, epoch } => {
                (deliverer_in(self.shard_map, partition), epoch)
            }
        };
        self.epochs.get(&id).is_some_and(|last| epoch < *last)
    }

    fn count_by(&mut self, counter: Counter, delta: i64) {
        *self.counters.entry(counter).or_default() += delta;
    }

    fn holds(&self, expect: &Expect) -> bool {
        match expect {
            Expect::Status { action, is } => {
                let found = self.actions.iter().find_map(|of| of.get(action));
                found.is_some_and(|action| action.status == *is)
            }
            Expect::JobRunning(_) | Expect::Schedule(_) => panic!("no job runs here"),
            Expect::CampaignDevice {
                campaign,
                place,
                row,
            } => self.campaigns.has_row(*campaign, *place, row),
            Expect::SmsIdFree(_) | Expect::Sms(_) | Expect::SmsOfParts { .. } => {
                panic!("no device sends an SMS here")
            }
            Expect::IdempotencyKeyUnused { .. } => panic!("no caller here names its calls"),
            Expect::Taken(UniqueName::Device(device)) => self.existing(*device).is_ok(),
            Expect::Taken(UniqueName::Customer(_)) => true,
            Expect::Profile(profile) => {
                let who = self.who_by_key[&profile.key()];
                self.exists(who) && self.profiles[who] == **profile
            }
            Expect::Free(_) | Expect::Taken(_) | Expect::Customer(_) | Expect::Client(_) => {
                panic!("no device expects names")
            }
        }
    }

    fn change(&mut self, change: Change, done: &mut BatchSummary) -> Result<(), BatchRefused> {
        match change {
            Change::PutRecord { device, record } => {
                let who = self.existing(device)?;
                let before = self.put_record(who, *record);
                done.observed_before.get_or_insert(before);
            }
            Change::PutAction { was, action } => {
                let who = self.existing(action.device)?;
                done.ended.extend(ended_by(&action));
                let moved = self.put_action(who, was, *action);
                // For a request that a batch changes several times, laws see the first state and
                // the last.
                if done
                    .moved
                    .iter()
                    .all(|earlier| earlier.action != moved.action)
                {
                    done.moved.push(moved);
                }
            }
            Change::AppendEntry(entry) => {
                // An entry that is not about a device is about a destination.
                if let Some(about) = &entry.about {
                    let who = self.existing(about.key)?;
                    self.append(who, &entry);
                    done.lost.extend(lost_as_logged(&entry));
                }
            }
            Change::AppendEvent(event) => {
                let who = self.existing(event.device)?;
                done.came_or_went |= matches!(
                    event.content,
                    EventContent::Lifecycle(
                        Lifecycle::Registered | Lifecycle::Deregistered | Lifecycle::Expired
                    )
                );
                done.is_bootstrapped |= matches!(
                    event.content,
                    EventContent::Lifecycle(Lifecycle::Bootstrapped)
                );
                done.data.extend(data_of(&event.content));
                let path_of = |id| path_of_request(self.actions[who].get(&id)?);
                self.histories[who].append(&event, path_of);
                done.numbered.extend(self.outbox.append(who, &event));
            }
            Change::RemoveDevice(device) => {
                let who = self.existing(device)?;
                self.remove(who);
                done.removed = Some(who);
            }
            Change::PutIdempotencyRecord(_) => panic!("no caller here names its calls"),
            Change::PutSetting(setting) => self.reporting = setting.state,
            Change::PutDestination(destination) => self.outbox.put(*destination),
            Change::RemoveDestination { destination, .. } => self.outbox.remove(destination),
            Change::PutProgress(progress) => self.outbox.advance(*progress),
            Change::PutDevice { profile, .. } => self.put_profile(*profile)?,
            Change::PutBootstrap { device, bootstrap } => {
                self.existing(device)?;
                done.bootstrap = Some(bootstrap.state);
            }
            Change::PutCampaign(campaign) => self.campaigns.put(*campaign),
            Change::PutCampaignDevice {
                campaign,
                place,
                row,
            } => self.campaigns.put_row((campaign, place), *row, done),
            Change::PutCustomer(_)
            | Change::RemoveCustomer(_)
            | Change::RemoveActions(_)
            | Change::PutClient(_)
            | Change::RemoveClient(_)
            | Change::PutToken(_)
            | Change::PutDefinition(_)
            | Change::RemoveDefinition(_)
            | Change::PutJob(_)
            | Change::PutJobRequest { .. }
            | Change::PutJobPart { .. }
            | Change::RemoveJob(_)
            | Change::PutSchedule(_)
            | Change::PutScheduleContents { .. }
            | Change::RemoveSchedule { .. }
            | Change::PutSms { .. }
            | Change::PutBootstrapConfig { .. }
            | Change::RemoveBootstrapConfig(_)
            | Change::PutImage(_)
            | Change::RemoveImage { .. }
            | Change::RemoveCampaignDevices(_)
            | Change::RemoveCampaign { .. } => panic!("no device changes this"),
        }
        Ok(())
    }

    /// The device with this key, while it exists: a machine must not write after its device was
    /// removed.
    fn existing(&self, key: DeviceKey) -> Result<usize, BatchRefused> {
        let who = self.who_by_key[&key];
        let exists = self.exists(who);
        exists
            .then_some(who)
            .ok_or(BatchRefused("the device was removed"))
    }

    /// Puts the profile of a device with the key that a bootstrap issued.
    fn put_profile(&mut self, profile: Profile) -> Result<(), BatchRefused> {
        let who = self.existing(profile.key())?;
        let issued = profile.credentials.issued.as_ref();
        self.issued[who].extend(issued.map(|issued| issued.key.key.as_bytes().into()));
        self.profiles[who] = profile;
        Ok(())
    }

    /// Puts a record, and returns the observations before. The sequence numbers of notifications
    /// are not stored.
    fn put_record(&mut self, who: usize, mut record: DeviceRecord) -> Box<[Observation]> {
        for observation in &mut record.observations {
            observation.newest = None;
        }
        let peer_of = |record: &DeviceRecord| record.registration.as_ref().and(record.peer);
        self.records_put += 1;
        if peer_of(&record) != peer_of(&self.records[who]) {
            self.bound[who] = self.records_put;
        }
        std::mem::replace(&mut self.records[who], record).observations
    }

    fn put_action(&mut self, who: usize, was: Option<ActionState>, action: Action) -> ActionMove {
        let id = action.id;
        if action.status.is_pending() {
            self.pending[who].insert(id);
        } else {
            self.pending[who].remove(&id);
        }
        let changed = action.updated_at != action.created_at;
        let untouched = action.status.is_untouched();
        assert!(
            !(untouched && changed),
            "an untouched request never changed"
        );
        let before = self.actions[who].insert(id, action);
        let stood = before.as_ref().map(Action::state);
        assert_eq!(stood, was, "a change says what was");
        let from = before.map(|before| (before.status, before.attempts_made));
        ActionMove {
            who,
            action: id,
            from,
        }
    }

    fn append(&mut self, who: usize, entry: &Entry) {
        if &*entry.message == "Lifecycle[DeviceFirstTimeRegistered]" {
            self.first_contacts[who] += 1;
        } else if entry.message.starts_with("DeviceController[") {
            self.failures_logged[who] += 1;
        }
    }
}

/// The data, if the event publishes data of a plain device.
fn data_of(happening: &EventContent) -> Option<(Protocol, Box<[u8]>)> {
    match happening {
        EventContent::Data(data) => Some((data.source, data.bytes.clone())),
        EventContent::Lifecycle(_)
        | EventContent::Telemetry(_)
        | EventContent::Error(_)
        | EventContent::ActionResult(_)
        | EventContent::SmsReceived(_)
        | EventContent::SmsReport(_) => None,
    }
}

/// The path that a request reads, writes or observes.
fn path_of_request(action: &Action) -> Option<Path> {
    match &action.request {
        Request::Udp(_) | Request::Coap(_) => None,
        Request::Lwm2m(request) => request.address(),
    }
}

/// The path of the observation that a final request may have ended.
fn ended_by(action: &Action) -> Option<Path> {
    let Request::Lwm2m(request) = &action.request else {
        return None;
    };
    let observed = match request {
        Lwm2mRequest::ObserveStart(path, _) | Lwm2mRequest::ObserveEnd(path) => Some(*path),
        Lwm2mRequest::Read(_)
        | Lwm2mRequest::Write(..)
        | Lwm2mRequest::Execute(..)
        | Lwm2mRequest::Discover(_)
        | Lwm2mRequest::Create(_)
        | Lwm2mRequest::Delete(_)
        | Lwm2mRequest::WriteAttributes(..)
        | Lwm2mRequest::WriteInstance(_)
        | Lwm2mRequest::ReadComposite(_)
        | Lwm2mRequest::WriteComposite(_)
        | Lwm2mRequest::ObserveCompositeStart(..)
        | Lwm2mRequest::ObserveCompositeEnd(_) => None,
    };
    observed.filter(|_| !action.status.is_pending())
}

/// The path of an observation that ended according to a log entry.
fn lost_as_logged(entry: &Entry) -> Option<Path> {
    let is_about_it = &*entry.message == "LwM2M[ObservationLost]";
    let description = entry.description.strip_prefix("The observation of ");
    let (path, _) = description.filter(|_| is_about_it)?.split_once(' ')?;
    path.parse().ok()
}
