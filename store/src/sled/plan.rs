//! Which rows does a batch change? Decided on the caller's thread, so that the committer only
//! checks and writes.

pub(super) mod actions;
pub(super) mod sms;

use engine::action::Status;
use engine::admin_log::entry::Entry;
use engine::admin_log::payload::EntryPayload;
use engine::change::{Batch, Change, Expect, Owner, UniqueName};
use engine::customer::{AccessToken, ApiClient, Customer};
use engine::definition::DefinitionId;
use engine::device::record::DeviceRecord;
use engine::firmware::campaign::Campaign;
use engine::firmware::update::UpdateState;
use engine::idempotency::IdempotencyRecord;
use engine::ids::{CampaignId, ClientId, CustomerId, DestinationId, DeviceKey, Iccid, JobId};
use engine::profile::Profile;
use engine::setting::Setting;
use sled::IVec;
use tracing::Span;

use super::key::{self, Key};
use super::kv::Value;
use super::ledger::EventEntry;
use super::listing::DeviceRow;
use super::log_entries::EntryRow;
use super::names::name_rows;
use super::{definitions, destinations, jobs};
use crate::record;
use crate::record::device_flags::DeviceFlags;

/// A batch as rows.
pub(super) struct Plan {
    /// The owner of the batch.
    pub(super) owner: Owner,
    /// What must hold.
    pub(super) checks: Vec<Check>,
    /// What is done, in this order.
    pub(super) steps: Vec<PlanStep>,
    /// The caller's span, in which problems with the batch are logged.
    pub(super) span: Span,
    bytes: usize,
}

/// An expectation of a row.
pub(super) enum Check {
    /// It is not there.
    Absent(Key),
    /// It is there.
    Present(Key),
    /// It is this value.
    Value(Key, Vec<u8>),
    /// The devices under this prefix are of this customer.
    OnlyOf(Key, CustomerId),
    /// It is an action request in this status.
    Status(Key, Status),
}

/// A step of a batch, on rows.
pub(super) enum PlanStep {
    /// Puts a row over any former one.
    Put(IVec, IVec),
    /// Puts a row without value, unless it exists.
    Mark(IVec),
    /// Replaces a value.
    Replace(IVec, Value),
    /// Puts a device record, and lists the device by it.
    PutRecord(Box<DeviceRow>),
    /// Removes a row.
    Remove(IVec),
    /// Removes a row with its pieces.
    Erase(IVec),
    /// Adds to a count.
    Add(IVec, i64),
    /// Counts an entry of the log, and the device it is about.
    AppendEntry(Box<EntryRow>),
    /// Notes that a device no longer has its SIM.
    LeaveSim(Box<(CustomerId, DeviceKey, Iccid)>),
    /// Counts a row that does not exist yet.
    CountNew(IVec),
    /// Removes a device with its names, address, record, values and pending action requests, and
    /// marks its history removed.
    RemoveDevice(DeviceKey),
    /// Removes some action requests of a customer.
    RemoveActions(CustomerId),
    /// Removes an API client with its tokens.
    RemoveClient(ClientId),
    /// Removes a customer with its API clients, tokens, settings, definitions and destinations, and
    /// marks its log removed.
    RemoveCustomer(CustomerId),
    /// Appends an event to those of its customer.
    Append(Box<EventEntry>),
    /// Puts a destination.
    PutDestination(Box<destinations::DestinationPut>),
    /// Removes a destination of a customer.
    RemoveDestination(CustomerId, DestinationId),
    /// Records the progress of a destination.
    PutProgress(Box<destinations::ProgressRows>),
    /// Puts a definition of an object.
    PutDefinition(Box<definitions::DefinitionPut>),
    /// Removes a definition of an object.
    RemoveDefinition(Box<DefinitionId>),
    /// Puts a job.
    PutJob(Box<jobs::JobRows>),
    /// Removes a job.
    RemoveJob(JobId),
    /// Removes some devices of a campaign.
    RemoveCampaignDevices(CampaignId),
}

impl Plan {
    /// The rows of a batch.
    pub(super) fn of(batch: &Batch) -> Self {
        let mut steps = Steps(Vec::with_capacity(
            8 * batch.changes.len() + batch.adds.len(),
        ));
        for change in &batch.changes {
            steps.change(change);
        }
        for add in &batch.adds {
            steps.0.push(PlanStep::Add(
                IVec::from(key::counter(&add.counter)),
                add.delta,
            ));
        }
        let bytes = steps.0.iter().map(PlanStep::bytes).sum();
        let mut checks: Vec<Check> = batch.expects.iter().map(Check::of).collect();
        let also_free = batch.expects.iter().filter_map(|expect| {
            let Expect::Free(name) = expect else {
                return None;
            };
            key::common_name_of(name)
        });
        checks.extend(also_free.map(Check::Absent));
        Self {
            owner: batch.owner,
            checks,
            steps: steps.0,
            span: Span::current(),
            bytes,
        }
    }

    /// The memory of everything that is queued with it, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Check {
    fn of(expect: &Expect) -> Self {
        match expect {
            Expect::Free(UniqueName::Address { ip, customer }) => {
                Self::OnlyOf(key::device::at(*ip), customer.clone())
            }
            Expect::Free(name) => Self::Absent(key::name(name)),
            Expect::Taken(name) => Self::Present(key::name(name)),
            Expect::Profile(profile) => Self::Value(
                key::device::device(profile.key()),
                record::profile::write_profile(profile),
            ),
            Expect::Customer(customer) => Self::Value(
                key::customer(&customer.id),
                record::customer::write_customer(customer),
            ),
            Expect::Client(client) => Self::Value(
                key::client(&client.id),
                record::customer::write_client(client),
            ),
            Expect::Status { action, is } => Self::Status(key::action::action(*action), *is),
            Expect::JobRunning(job) => Self::Present(key::job::running(*job)),
            Expect::Schedule(schedule) => Self::Value(
                key::schedule::schedule(&schedule.customer, schedule.id),
                record::schedule::write_schedule(schedule),
            ),
            Expect::CampaignDevice {
                campaign,
                place,
                row,
            } => Self::Value(
                key::firmware::device(*campaign, *place),
                record::firmware::write_campaign_device(row),
            ),
            Expect::SmsIdFree(id) => Self::Absent(key::sms::of_id(*id)),
            Expect::Sms(sms) => Self::Value(
                key::sms::sms(sms.device_number, sms.id),
                record::sms::write_sms(sms),
            ),
            Expect::SmsOfParts { parts, is: None } => Self::Absent(key::sms::of_parts(*parts)),
            Expect::SmsOfParts {
                parts,
                is: Some(id),
            } => Self::Value(
                key::sms::of_parts(*parts),
                record::sms::write_place(parts.device_number, *id),
            ),
            Expect::IdempotencyKeyUnused { key, device } => {
                Self::Absent(key::idempotency::idempotency(*key, *device))
            }
        }
    }
}

impl PlanStep {
    fn bytes(&self) -> usize {
        /// What a step costs besides its rows.
        const STEP: usize = 64;
        /// The weight of the removal of a device or of requests, so that the rows of a few dozen of
        /// them fill a group.
        const MANY_ROWS: usize = 64 * 1_024;
        STEP + match self {
            Self::Put(key, row) => key.len() + row.len(),
            Self::Replace(key, value) => key.len() + value.bytes(),
            Self::PutRecord(recorded) => recorded.bytes(),
            Self::Mark(key)
            | Self::Remove(key)
            | Self::Erase(key)
            | Self::Add(key, _)
            | Self::CountNew(key) => key.len(),
            Self::AppendEntry(row) => row.bytes(),
            Self::RemoveDevice(_) | Self::RemoveActions(_) | Self::RemoveCampaignDevices(_) => {
                MANY_ROWS
            }
            Self::Append(entry) => entry.bytes(),
            Self::PutDestination(put) => put.bytes(),
            Self::PutProgress(step) => step.bytes(),
            Self::PutDefinition(put) => put.bytes(),
            Self::PutJob(rows) => rows.bytes(),
            Self::LeaveSim(_)
            | Self::RemoveClient(_)
            | Self::RemoveCustomer(_)
            | Self::RemoveDestination(..)
            | Self::RemoveDefinition(_)
            | Self::RemoveJob(_) => 0,
        }
    }
}

/// The steps of a batch under construction.
struct Steps(Vec<PlanStep>);

impl Steps {
    fn change(&mut self, change: &Change) {
        match change {
            Change::PutCustomer(customer) => self.put_customer(customer),
            Change::RemoveCustomer(id) => self.0.push(PlanStep::RemoveCustomer(id.clone())),
            Change::RemoveActions(customer) => {
                self.0.push(PlanStep::RemoveActions(customer.clone()));
            }
            Change::PutClient(client) => self.put_client(client),
            Change::RemoveClient(id) => self.0.push(PlanStep::RemoveClient(id.clone())),
            Change::PutToken(token) => self.put_token(token),
            Change::PutSetting(setting) => self.put_setting(setting),
            Change::PutDevice { was, profile } => self.put_device(was.as_deref(), profile),
            Change::RemoveDevice(device) => self.0.push(PlanStep::RemoveDevice(*device)),
            Change::PutRecord { device, record } => self.put_record(*device, record),
            Change::PutAction { was, action } => self.put_action(*was, action),
            Change::PutIdempotencyRecord(record) => self.put_idempotency_record(record),
            Change::AppendEntry(entry) => self.append_entry(entry),
            Change::AppendEvent(event) => {
                let entry = Box::new(EventEntry::of(event));
                self.0.push(PlanStep::Append(entry));
            }
            Change::PutDestination(destination) => {
                let put = Box::new(destinations::DestinationPut::of(destination));
                self.0.push(PlanStep::PutDestination(put));
            }
            Change::RemoveDestination {
                customer,
                destination,
            } => {
                let removal = PlanStep::RemoveDestination(customer.clone(), *destination);
                self.0.push(removal);
            }
            Change::PutProgress(progress) => {
                let step = Box::new(destinations::ProgressRows::of(progress));
                self.0.push(PlanStep::PutProgress(step));
            }
            Change::PutDefinition(definition) => {
                let put = Box::new(definitions::DefinitionPut::of(definition));
                self.0.push(PlanStep::PutDefinition(put));
            }
            Change::RemoveDefinition(id) => {
                self.0
                    .push(PlanStep::RemoveDefinition(Box::new(id.clone())));
            }
            Change::PutJob(job) => {
                let rows = Box::new(jobs::JobRows::of(job));
                self.0.push(PlanStep::PutJob(rows));
            }
            Change::PutJobRequest { job, request } => self.insert(
                key::job::request(*job),
                &record::job::write_job_request(request),
            ),
            Change::PutJobPart { job, part, devices } => self.replace(
                key::job::part(*job, *part),
                &record::job::write_job_part(devices),
            ),
            Change::RemoveJob(job) => self.0.push(PlanStep::RemoveJob(*job)),
            Change::PutSchedule(schedule) => self.replace(
                key::schedule::schedule(&schedule.customer, schedule.id),
                &record::schedule::write_schedule(schedule),
            ),
            Change::PutScheduleContents { schedule, contents } => self.insert(
                key::schedule::contents(*schedule),
                &record::schedule::write_schedule_contents(contents),
            ),
            Change::RemoveSchedule { customer, schedule } => {
                self.erase(key::schedule::schedule(customer, *schedule));
                self.erase(key::schedule::contents(*schedule));
            }
            Change::PutSms { was, sms } => self.put_sms(*was, sms),
            Change::PutBootstrapConfig { scope, config } => self.replace(
                key::bootstrap::config(scope),
                &record::bootstrap::write_config(config),
            ),
            Change::RemoveBootstrapConfig(scope) => self.erase(key::bootstrap::config(scope)),
            Change::PutBootstrap { device, bootstrap } => self.replace(
                key::bootstrap::bootstrap(*device),
                &record::bootstrap::write_bootstrap(bootstrap),
            ),
            Change::PutImage(image) => self.replace(
                key::firmware::image(&image.customer, image.id),
                &record::firmware::write_image(image),
            ),
            Change::RemoveImage { customer, image } => {
                self.erase(key::firmware::image(customer, *image));
            }
            Change::PutCampaign(campaign) => self.put_campaign(campaign),
            Change::PutCampaignDevice {
                campaign,
                place,
                row,
            } => self.replace(
                key::firmware::device(*campaign, *place),
                &record::firmware::write_campaign_device(row),
            ),
            Change::RemoveCampaignDevices(campaign) => {
                self.0.push(PlanStep::RemoveCampaignDevices(*campaign));
            }
            Change::RemoveCampaign { customer, campaign } => {
                self.erase(key::firmware::campaign(customer, *campaign));
                self.remove(key::firmware::open(*campaign));
                for state in UpdateState::ALL {
                    self.remove(key::firmware::counted(*campaign, state));
                }
            }
        }
    }

    fn put_campaign(&mut self, campaign: &Campaign) {
        self.replace(
            key::firmware::campaign(&campaign.customer, campaign.id),
            &record::firmware::write_campaign(campaign),
        );
        let open = key::firmware::open(campaign.id);
        match campaign.is_open() {
            true => self.put(open, campaign.customer.as_str().as_bytes()),
            false => self.remove(open),
        }
    }

    fn put_customer(&mut self, customer: &Customer) {
        let key = key::customer(&customer.id);
        self.0.push(PlanStep::CountNew(IVec::from(key.as_slice())));
        self.replace(key, &record::customer::write_customer(customer));
    }

    fn put_client(&mut self, client: &ApiClient) {
        self.replace(
            key::client(&client.id),
            &record::customer::write_client(client),
        );
        self.mark(key::client_of(&client.owner, &client.id));
    }

    fn put_token(&mut self, token: &AccessToken) {
        self.insert(
            key::token::token(&token.digest),
            &record::customer::write_token(token),
        );
        self.put(key::token::token_of(&token.client, &token.digest), &[]);
        self.put(key::token::expiring(token.expires_at, &token.digest), &[]);
    }

    fn put_setting(&mut self, setting: &Setting) {
        let key = key::setting(&setting.customer, setting.name);
        self.insert(key, &record::customer::write_setting(setting));
    }

    /// A device's key consists of its customer and its id, which never change: once it is listed,
    /// only a new record lists it elsewhere.
    fn put_device(&mut self, was: Option<&Profile>, profile: &Profile) {
        let key = key::device::device(profile.key());
        let value = record::profile::write_profile(profile);
        match was {
            None => {
                self.insert(key, &value);
                self.list_device(profile);
            }
            Some(was) => {
                self.free_names(was);
                self.leave_sim(was, profile);
                self.replace(key, &value);
            }
        }
        self.move_address(was.and_then(address_of), address_of(profile));
        self.move_tags(was, profile);
        let owner = record::number::write_name_owner(profile.key());
        for name in name_rows(profile) {
            self.put(name, &owner);
        }
    }

    /// Lists a device that has no record yet.
    fn list_device(&mut self, profile: &Profile) {
        let (customer, owner) = (&profile.customer, profile.key());
        self.put(
            key::device::device_of(customer, DeviceFlags::NONE, &profile.device),
            &record::number::write_name_owner(owner),
        );
        let counted = key::device::counted(customer, DeviceFlags::NONE);
        self.0.push(PlanStep::Add(counted.into(), 1));
    }

    fn free_names(&mut self, profile: &Profile) {
        for name in name_rows(profile) {
            self.0.push(PlanStep::Remove(name.into()));
        }
    }

    fn leave_sim(&mut self, was: &Profile, profile: &Profile) {
        if was.iccid != profile.iccid {
            let sim = (was.customer.clone(), was.key(), was.iccid.clone());
            self.0.push(PlanStep::LeaveSim(Box::new(sim)));
        }
    }

    /// Moves a device from one address to another.
    fn move_address(&mut self, was: Option<Key>, is: Option<Key>) {
        if was == is {
            return;
        }
        if let Some(was) = was {
            self.0.push(PlanStep::Remove(was.into()));
        }
        if let Some(is) = is {
            self.put(is, &[]);
        }
    }

    /// Lists a device under the tags it gains, and no more under those it loses.
    fn move_tags(&mut self, was: Option<&Profile>, profile: &Profile) {
        let (customer, device) = (&profile.customer, &profile.device);
        let had = was.map_or(&[][..], |was| was.tags.as_slice());
        for tag in had.iter().filter(|tag| !profile.tags.has(tag)) {
            let listed = key::device::tagged_device(customer, tag, device);
            self.0.push(PlanStep::Remove(listed.into()));
            let counted = key::device::tagged_counted(customer, tag);
            self.0.push(PlanStep::Add(counted.into(), -1));
        }
        let owner = record::number::write_name_owner(profile.key());
        let tags = profile.tags.as_slice().iter();
        for tag in tags.filter(|tag| !had.contains(tag)) {
            self.put(key::device::tagged_device(customer, tag, device), &owner);
            let counted = key::device::tagged_counted(customer, tag);
            self.0.push(PlanStep::Add(counted.into(), 1));
        }
    }

    fn put_record(&mut self, device: DeviceKey, record: &DeviceRecord) {
        let recorded = Box::new(DeviceRow::of(device, record));
        self.0.push(PlanStep::PutRecord(recorded));
    }

    fn put_idempotency_record(&mut self, kept: &IdempotencyRecord) {
        let (key, device) = (kept.call.key, kept.device());
        self.put(
            key::idempotency::idempotency(key, device),
            &record::idempotency::write_idempotency_record(kept),
        );
        let by_age = key::idempotency::idempotency_by_age(kept.at, key, device);
        self.put(by_age, &[]);
    }

    fn append_entry(&mut self, entry: &Entry) {
        let row = Box::new(EntryRow::of(entry));
        self.0.push(PlanStep::AppendEntry(row));
        if let Some(EntryPayload::Whole(bytes)) = &entry.payload {
            let key = key::log::payload(&entry.customer, entry.id);
            self.insert(key, &record::entry::write_payload(bytes));
        }
    }

    /// Puts a value where none is stored.
    fn insert(&mut self, key: Key, value: &[u8]) {
        let value = Value::cut(&key, value);
        self.0.extend(
            value
                .pieces
                .into_iter()
                .map(|(key, piece)| PlanStep::Put(key, piece)),
        );
        self.0.push(PlanStep::Put(key.into(), value.head));
    }

    fn replace(&mut self, key: Key, value: &[u8]) {
        let value = Value::cut(&key, value);
        self.0.push(PlanStep::Replace(key.into(), value));
    }

    fn erase(&mut self, key: Key) {
        self.0.push(PlanStep::Erase(key.into()));
    }

    fn remove(&mut self, key: Key) {
        self.0.push(PlanStep::Remove(key.into()));
    }

    fn put(&mut self, key: Key, row: &[u8]) {
        self.0.push(PlanStep::Put(key.into(), IVec::from(row)));
    }

    fn mark(&mut self, key: Key) {
        self.0.push(PlanStep::Mark(key.into()));
    }
}

/// The row for the address of a device, if it has one.
pub(super) fn address_of(profile: &Profile) -> Option<Key> {
    let at = |ip| key::device::at_address(ip, profile.key());
    profile.ip.map(at)
}
