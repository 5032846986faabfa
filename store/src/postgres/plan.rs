//! Which rows does a batch change? Decided on the caller's thread, so that the committer only
//! checks and writes.

use std::net::IpAddr;

use engine::action::Action;
use engine::admin_log::entry::Entry;
use engine::admin_log::payload::EntryPayload;
use engine::bootstrap::BootstrapScope;
use engine::change::{Batch, Change, Counter, CounterDelta, Expect, Owner, UniqueName};
use engine::customer::{ApiClient, ClientOwner};
use engine::definition::DefinitionId;
use engine::delivery::backlog::{ProgressUpdate, QueuedEvent, Sequence};
use engine::device::record::DeviceRecord;
use engine::event::{Event, EventContent, Telemetry};
use engine::idempotency::{IdempotencyKey, IdempotencyRecord, IdentifiedDevice};
use engine::ids::{CustomerId, DeviceKey, Endpoint};
use engine::job::JobState;
use engine::profile::Profile;
use engine::sms::{Sms, SmsPurpose, SmsState};

use super::cell::Cell;
use super::partitions::Day;
use super::removal::Removal;
use super::table::SqlTable;
use crate::record::device_flags::{DeviceFlags, read_is_live};
use crate::record::{
    action, bootstrap, code, customer, definition, destination, device, entry, event, firmware,
    idempotency, job, outbox, profile, schedule, sms, value,
};

/// A batch as rows.
pub(super) struct RowPlan {
    /// The owner of the batch.
    pub(super) owner: Owner,
    /// What must hold.
    pub(super) checks: Vec<Condition>,
    /// What is done, in this order.
    pub(super) steps: Vec<Step>,
    /// The marks of its devices.
    pub(super) devices: Vec<(Endpoint, DeviceKey, Option<IpAddr>)>,
    /// The days of its events and entries.
    pub(super) days: Vec<Day>,
    bytes: usize,
}

/// What numbers and bounds the rows of a store have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    /// The slot of the counts that this process adds to.
    pub(super) slot: u8,
    /// The last known values that a device may have.
    pub(super) values_max: u32,
}

/// An expectation.
pub(super) enum Condition {
    /// A row is as it should be.
    Row(Place, Wanted),
    /// The devices with an address are of a customer.
    OnlyOf(IpAddr, CustomerId),
}

/// A row: its table and its key.
pub(super) type Place = (SqlTable, Vec<Cell>);

/// What is expected of a row.
pub(super) enum Wanted {
    /// It is not there.
    Absent,
    /// It is there.
    Present,
    /// What is compared of it is this.
    Bytes(Vec<u8>),
}

/// A step of a batch, on rows.
pub(super) enum Step {
    /// Puts a row.
    Put(SqlTable, Vec<Cell>),
    /// Puts a row, unless one with a greater last column is put.
    Raise(SqlTable, Vec<Cell>),
    /// Removes the row of a key.
    Remove(SqlTable, Vec<Cell>),
    /// Adds the last column to that of the row of the key.
    Add(SqlTable, Vec<Cell>),
    /// Appends an event: its cells without the number.
    AppendEvent(CustomerId, Vec<Cell>),
    /// Puts a destination: its cells without the number that it begins behind.
    PutDestination(Vec<Cell>),
    /// A device of a customer no longer has the first address, and has the second.
    MoveAddress(CustomerId, Option<IpAddr>, Option<IpAddr>),
    /// Removes rows that only the server knows.
    RemoveMany(Removal),
}

impl RowPlan {
    /// The rows of a batch.
    pub(super) fn of(batch: &Batch, numbers: Numbers) -> Self {
        let mut steps = Steps {
            numbers,
            steps: Vec::with_capacity(4 * batch.changes.len() + batch.adds.len()),
            devices: Vec::new(),
            days: Vec::new(),
        };
        for change in &batch.changes {
            steps.change(change);
        }
        for add in &batch.adds {
            steps.add(add);
        }
        Self {
            owner: batch.owner,
            checks: batch.expects.iter().map(Condition::of).collect(),
            bytes: steps.steps.iter().map(Step::bytes).sum(),
            steps: steps.steps,
            devices: steps.devices,
            days: steps.days,
        }
    }

    /// The memory of everything that is queued with it, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a step needs the newest number of an event.
    pub(super) fn needs_numbers(&self) -> bool {
        self.steps.iter().any(|step| match step {
            Step::AppendEvent(..) | Step::PutDestination(_) => true,
            Step::RemoveMany(removal) => matches!(removal, Removal::Customer(_)),
            Step::Put(..)
            | Step::Raise(..)
            | Step::Remove(..)
            | Step::Add(..)
            | Step::MoveAddress(..) => false,
        })
    }
}

impl Step {
    fn bytes(&self) -> usize {
        /// The weight of a removal, so that the rows of a few dozen of them fill a group.
        const MANY_ROWS: usize = 64 * 1_024;
        let cells = |cells: &Vec<Cell>| cells.iter().map(Cell::bytes).sum();
        match self {
            Self::Put(_, row)
            | Self::Raise(_, row)
            | Self::Remove(_, row)
            | Self::Add(_, row)
            | Self::AppendEvent(_, row)
            | Self::PutDestination(row) => cells(row),
            Self::MoveAddress(..) => size_of::<Self>(),
            Self::RemoveMany(_) => MANY_ROWS,
        }
    }
}

impl Condition {
    fn of(expect: &Expect) -> Self {
        let bytes = |bytes| Wanted::Bytes(bytes);
        let (table, key, wanted) = match expect {
            Expect::Free(UniqueName::Address { ip, customer }) => {
                return Self::OnlyOf(ip.to_canonical(), customer.clone());
            }
            Expect::Free(name) => {
                let (table, key) = row_of_name(name);
                (table, key, Wanted::Absent)
            }
            Expect::Taken(name) => {
                let (table, key) = row_of_name(name);
                (table, key, Wanted::Present)
            }
            Expect::Profile(profile) => (
                SqlTable::Device,
                vec![profile.key().as_bytes().into()],
                bytes(profile::write_profile(profile)),
            ),
            Expect::Customer(it) => (
                SqlTable::Customer,
                vec![it.id.as_str().into()],
                bytes(customer::write_customer(it)),
            ),
            Expect::Client(it) => (
                SqlTable::ApiClient,
                vec![it.id.as_str().into()],
                bytes(customer::write_client(it)),
            ),
            Expect::Status { action, is } => (
                SqlTable::Action,
                vec![action.as_bytes().into()],
                bytes(Cell::from(code::of_status(*is)).compared()),
            ),
            Expect::JobRunning(job) => (
                SqlTable::Job,
                vec![job.as_bytes().into()],
                bytes(Cell::Bool(true).compared()),
            ),
            Expect::Schedule(it) => (
                SqlTable::Schedule,
                vec![it.customer.as_str().into(), it.id.as_bytes().into()],
                bytes(schedule::write_schedule(it)),
            ),
            Expect::CampaignDevice {
                campaign,
                place,
                row,
            } => (
                SqlTable::CampaignDevice,
                vec![campaign.as_bytes().into(), (*place).into()],
                bytes(firmware::write_campaign_device(row)),
            ),
            Expect::SmsIdFree(id) => (SqlTable::SmsId, vec![id.number().into()], Wanted::Absent),
            Expect::Sms(it) => (
                SqlTable::Sms,
                vec![it.id.number().into()],
                bytes(sms::write_sms(it)),
            ),
            Expect::SmsOfParts { parts, is } => (
                SqlTable::SmsParts,
                vec![
                    parts.device_number.into(),
                    parts.total.into(),
                    parts.identifier.into(),
                ],
                match is {
                    Some(id) => bytes(Cell::from(id.number()).compared()),
                    None => Wanted::Absent,
                },
            ),
            Expect::IdempotencyKeyUnused { key, device } => (
                SqlTable::Idempotency,
                idempotency_key(*key, *device),
                Wanted::Absent,
            ),
        };
        Self::Row((table, key), wanted)
    }
}

/// The steps of a batch under construction.
struct Steps {
    numbers: Numbers,
    steps: Vec<Step>,
    devices: Vec<(Endpoint, DeviceKey, Option<IpAddr>)>,
    days: Vec<Day>,
}

impl Steps {
    fn put(&mut self, table: SqlTable, row: impl Into<Vec<Cell>>) {
        self.steps.push(Step::Put(table, row.into()));
    }

    fn remove(&mut self, table: SqlTable, key: impl Into<Vec<Cell>>) {
        self.steps.push(Step::Remove(table, key.into()));
    }

    fn remove_many(&mut self, removal: Removal) {
        self.steps.push(Step::RemoveMany(removal));
    }

    fn change(&mut self, change: &Change) {
        match change {
            Change::PutCustomer(it) => {
                let record = customer::write_customer(it);
                self.put(SqlTable::Customer, [it.id.as_str().into(), record.into()]);
            }
            Change::RemoveCustomer(id) => self.remove_many(Removal::Customer(id.clone())),
            Change::RemoveActions(customer) => {
                self.remove_many(Removal::Actions(customer.clone()));
            }
            Change::PutClient(client) => self.put_client(client),
            Change::RemoveClient(id) => self.remove_many(Removal::Client(id.clone())),
            Change::PutToken(it) => self.put(
                SqlTable::AccessToken,
                [
                    Cell::Bytes(it.digest.as_bytes().to_vec()),
                    it.client.as_str().into(),
                    it.expires_at.into(),
                    customer::write_token(it).into(),
                ],
            ),
            Change::PutSetting(it) => self.put(
                SqlTable::Setting,
                [
                    it.customer.as_str().into(),
                    code::of_setting(it.name).into(),
                    customer::write_setting(it).into(),
                ],
            ),
            Change::PutBootstrapConfig { scope, config } => {
                let (table, key) = row_of_scope(scope);
                self.put(table, [key, bootstrap::write_config(config).into()]);
            }
            Change::RemoveBootstrapConfig(scope) => {
                let (table, key) = row_of_scope(scope);
                self.remove(table, [key]);
            }
            Change::PutBootstrap {
                device,
                bootstrap: it,
            } => {
                let record = bootstrap::write_bootstrap(it);
                self.put(
                    SqlTable::Bootstrap,
                    [device.as_bytes().into(), record.into()],
                );
            }
            Change::PutDevice { was, profile } => self.put_device(was.as_deref(), profile),
            Change::RemoveDevice(device) => self.remove_many(Removal::Device(*device)),
            Change::PutRecord { device, record } => self.put_record(*device, record),
            Change::PutAction { was: _, action } => self.put_action(action),
            Change::PutIdempotencyRecord(record) => self.put_idempotency_record(record),
            Change::AppendEntry(entry) => self.append_entry(entry),
            Change::AppendEvent(event) => self.append_event(event),
            Change::PutDestination(it) => self.steps.push(Step::PutDestination(vec![
                it.id.as_bytes().into(),
                it.customer.as_str().into(),
                destination::write_destination(it).into(),
            ])),
            Change::RemoveDestination {
                customer,
                destination,
            } => self.remove_many(Removal::Destination(customer.clone(), *destination)),
            Change::PutProgress(progress) => self.put_progress(progress),
            Change::PutDefinition(it) => {
                let mut row = definition_key(&it.id);
                row.push(it.at.into());
                row.push(definition::write_text(&it.xml).into());
                self.put(SqlTable::Definition, row);
            }
            Change::RemoveDefinition(id) => self.remove(SqlTable::Definition, definition_key(id)),
            Change::PutJob(it) => self.put(
                SqlTable::Job,
                [
                    it.id.as_bytes().into(),
                    it.customer.as_str().into(),
                    (it.state == JobState::Running).into(),
                    job::write_job(it).into(),
                ],
            ),
            Change::PutJobRequest { job, request } => self.put(
                SqlTable::JobRequest,
                [
                    job.as_bytes().into(),
                    job::write_job_request(request).into(),
                ],
            ),
            Change::PutJobPart { job, part, devices } => self.put(
                SqlTable::JobPart,
                [
                    job.as_bytes().into(),
                    (*part).into(),
                    job::write_job_part(devices).into(),
                ],
            ),
            Change::RemoveJob(job) => {
                self.remove(SqlTable::Job, [job.as_bytes().into()]);
                self.remove(SqlTable::JobRequest, [job.as_bytes().into()]);
                self.remove_many(Removal::JobParts(*job));
            }
            Change::PutSchedule(it) => self.put(
                SqlTable::Schedule,
                [
                    it.customer.as_str().into(),
                    it.id.as_bytes().into(),
                    schedule::write_schedule(it).into(),
                ],
            ),
            Change::PutScheduleContents { schedule, contents } => self.put(
                SqlTable::ScheduleContents,
                [
                    schedule.as_bytes().into(),
                    schedule::write_schedule_contents(contents).into(),
                ],
            ),
            Change::RemoveSchedule { customer, schedule } => {
                let key = [customer.as_str().into(), schedule.as_bytes().into()];
                self.remove(SqlTable::Schedule, key);
                self.remove(SqlTable::ScheduleContents, [schedule.as_bytes().into()]);
            }
            Change::PutSms { was, sms } => self.put_sms(*was, sms),
            Change::PutImage(it) => self.put(
                SqlTable::FirmwareImage,
                [
                    it.customer.as_str().into(),
                    it.id.as_bytes().into(),
                    firmware::write_image(it).into(),
                ],
            ),
            Change::RemoveImage { customer, image } => self.remove(
                SqlTable::FirmwareImage,
                [customer.as_str().into(), image.as_bytes().into()],
            ),
            Change::PutCampaign(it) => self.put(
                SqlTable::Campaign,
                [
                    it.id.as_bytes().into(),
                    it.customer.as_str().into(),
                    it.is_open().into(),
                    firmware::write_campaign(it).into(),
                ],
            ),
            Change::PutCampaignDevice {
                campaign,
                place,
                row,
            } => self.put(
                SqlTable::CampaignDevice,
                [
                    campaign.as_bytes().into(),
                    (*place).into(),
                    firmware::write_campaign_device(row).into(),
                ],
            ),
            Change::RemoveCampaignDevices(campaign) => {
                self.remove_many(Removal::CampaignDevices(*campaign));
            }
            Change::RemoveCampaign {
                customer: _,
                campaign,
            } => {
                self.remove(SqlTable::Campaign, [campaign.as_bytes().into()]);
                self.remove_many(Removal::CampaignCounts(*campaign));
            }
        }
    }

    fn put_client(&mut self, client: &ApiClient) {
        let owner = match &client.owner {
            ClientOwner::Customer(id) => id.as_str().into(),
            ClientOwner::Network => Cell::Null,
        };
        let record = customer::write_client(client);
        self.put(
            SqlTable::ApiClient,
            [client.id.as_str().into(), owner, record.into()],
        );
    }

    fn put_device(&mut self, was: Option<&Profile>, profile: &Profile) {
        let key = profile.key();
        self.put(
            SqlTable::Device,
            [
                key.as_bytes().into(),
                profile.customer.as_str().into(),
                profile.device.as_str().into(),
                profile.number.into(),
                profile.ip.into(),
                profile::write_profile(profile).into(),
            ],
        );
        if let Some(was) = was {
            for (_, name) in shared_names(was) {
                self.remove(SqlTable::DeviceName, name);
            }
            if was.iccid != profile.iccid {
                self.remove_many(Removal::Sim {
                    device: key,
                    iccid: was.iccid.clone(),
                });
            }
        }
        for (table, mut name) in shared_names(profile) {
            name.push(key.as_bytes().into());
            self.put(table, name);
        }
        self.move_tags(was, profile);
        let was_at = was.and_then(|was| was.ip);
        if was_at != profile.ip {
            let (was, is) = (was_at, profile.ip);
            let moved = Step::MoveAddress(profile.customer.clone(), was, is);
            self.steps.push(moved);
        }
        self.devices
            .push((profile.endpoint.clone(), key, profile.ip));
    }

    /// Lists a device under the tags it gains, and no more under those it loses.
    fn move_tags(&mut self, was: Option<&Profile>, profile: &Profile) {
        let key = |tag: &engine::tags::Tag| -> Vec<Cell> {
            vec![
                profile.customer.as_str().into(),
                tag.key.as_str().into(),
                tag.value.as_str().into(),
                profile.device.as_str().into(),
            ]
        };
        let had = was.map_or(&[][..], |was| was.tags.as_slice());
        for tag in had.iter().filter(|tag| !profile.tags.has(tag)) {
            self.remove(SqlTable::DeviceTag, key(tag));
        }
        for tag in profile.tags.as_slice() {
            let mut row = key(tag);
            row.push(profile.key().as_bytes().into());
            self.put(SqlTable::DeviceTag, row);
        }
    }

    fn put_record(&mut self, device: DeviceKey, record: &DeviceRecord) {
        let row = device::row_of(record);
        let live = read_is_live(&row).expect("a record that was just written can be read");
        let flags = DeviceFlags::of(record).code();
        self.put(
            SqlTable::DeviceState,
            [device.as_bytes().into(), live.into(), row.into()],
        );
        self.put(
            SqlTable::DeviceFlags,
            [device.as_bytes().into(), flags.into()],
        );
    }

    fn put_action(&mut self, action: &Action) {
        self.put(
            SqlTable::Action,
            [
                action.id.as_bytes().into(),
                action.customer.as_str().into(),
                action.device.as_bytes().into(),
                code::of_protocol(action.protocol()).into(),
                code::of_status(action.status).into(),
                action.state().updated_at.into(),
                action::write_action(action).into(),
            ],
        );
    }

    fn put_idempotency_record(&mut self, kept: &IdempotencyRecord) {
        let mut row = idempotency_key(kept.call.key, kept.device());
        row.push(kept.at.into());
        row.push(idempotency::write_idempotency_record(kept).into());
        self.put(SqlTable::Idempotency, row);
    }

    fn append_entry(&mut self, entry: &Entry) {
        let payload = match &entry.payload {
            Some(EntryPayload::Whole(bytes)) => entry::write_payload(bytes).into(),
            Some(EntryPayload::Kept { .. }) | None => Cell::Null,
        };
        let about = entry.about.as_ref();
        self.put(
            SqlTable::LogEntry,
            [
                entry.customer.as_str().into(),
                entry.id.as_bytes().into(),
                code::of_category(entry.category).into(),
                code::of_subject(entry.subject).into(),
                about.map(|about| about.key.as_bytes()).into(),
                entry::write_entry(entry).into(),
                payload,
            ],
        );
        if let Some(about) = about {
            let row = vec![
                entry.customer.as_str().into(),
                about.iccid.as_str().into(),
                about.key.as_bytes().into(),
                entry.id.as_bytes().into(),
            ];
            self.steps.push(Step::Raise(SqlTable::SimOfEntry, row));
        }
        self.days.push(Day::of_entry(entry.id));
    }

    fn append_event(&mut self, event: &Event) {
        let queued = QueuedEvent::of(Sequence::default(), event);
        let row = vec![
            event.id.as_bytes().into(),
            event.customer.as_str().into(),
            queued.partition().0.into(),
            event.device.as_bytes().into(),
            code::of_event_type(queued.event_type).into(),
            queued.lifecycle.map(code::of_lifecycle).into(),
            event::write_event(event).into(),
        ];
        self.steps
            .push(Step::AppendEvent(event.customer.clone(), row));
        self.days.push(Day::of_event(event.id));
        match &event.content {
            EventContent::Telemetry(telemetry) => self.put_values(event, telemetry),
            EventContent::Data(_)
            | EventContent::Lifecycle(_)
            | EventContent::Error(_)
            | EventContent::ActionResult(_)
            | EventContent::SmsReceived(_)
            | EventContent::SmsReport(_) => {}
        }
    }

    fn put_values(&mut self, event: &Event, telemetry: &Telemetry) {
        let at = telemetry.known_at(event.at);
        for (path, value) in &telemetry.values {
            let key = [
                event.device.as_bytes().into(),
                Cell::Bytes(path.to_bytes().to_vec()),
                at.into(),
            ];
            if value::is_short(value) {
                let mut row = key.to_vec();
                row.push(value::write_known(at, value).into());
                row.push(self.numbers.values_max.into());
                self.put(SqlTable::KnownValue, row);
            } else {
                self.put(SqlTable::UnknownValue, key);
            }
        }
    }

    /// Rows of a destination. Whatever order they are put in, a number is in one of its lists.
    fn put_progress(&mut self, progress: &ProgressUpdate) {
        let id = || Cell::from(progress.destination.as_bytes());
        for (partition, sequence) in &progress.reached {
            let row = vec![id(), partition.0.into(), sequence.0.into()];
            self.steps
                .push(Step::Raise(SqlTable::DestinationCursor, row));
        }
        for sequence in &progress.released {
            self.remove(SqlTable::PendingRetry, [id(), sequence.0.into()]);
        }
        for held in &progress.retrying {
            let record = outbox::write_retry(held);
            let row = [id(), held.queued.sequence.0.into(), record.into()];
            self.put(SqlTable::PendingRetry, row);
        }
        for sequence in &progress.requeued {
            self.remove(SqlTable::DeadLetter, [id(), sequence.0.into()]);
        }
        for letter in &progress.dead_lettered {
            self.put(
                SqlTable::DeadLetter,
                [
                    id(),
                    letter.queued.sequence.0.into(),
                    letter.at.into(),
                    outbox::write_dead(letter).into(),
                ],
            );
        }
    }

    fn put_sms(&mut self, was: Option<SmsState>, sms: &Sms) {
        let (id, state) = (sms.id.number(), sms.state());
        let is_wake_up = sms.submitted().map(|it| it.purpose) == Some(SmsPurpose::WakeUp);
        self.put(
            SqlTable::Sms,
            [
                id.into(),
                sms.device_number.into(),
                state.due_at.into(),
                state.task.is_some().into(),
                is_wake_up.into(),
                sms::write_sms(sms).into(),
            ],
        );
        for found_by in sms.ids() {
            self.put(SqlTable::SmsId, [found_by.number().into(), id.into()]);
        }
        if let Some(parts) = sms.parts_key().filter(|_| was.is_none()) {
            self.put(
                SqlTable::SmsParts,
                [
                    parts.device_number.into(),
                    parts.total.into(),
                    parts.identifier.into(),
                    id.into(),
                ],
            );
        }
        let was_open = was.is_some_and(|was| was.due_at.is_some());
        for message in sms.message_id_keys() {
            let row = [message.as_str().into(), id.into()];
            match (state.due_at.is_some(), was_open) {
                (true, _) => self.put(SqlTable::SmsMessage, row),
                (false, true) => self.remove(SqlTable::SmsMessage, row),
                (false, false) => {}
            }
        }
    }

    fn add(&mut self, add: &CounterDelta) {
        let slot = self.numbers.slot;
        let (table, mut row): (_, Vec<Cell>) = match &add.counter {
            Counter::CustomerActions {
                customer,
                protocol,
                status,
            } => (
                SqlTable::ActionCount,
                vec![
                    customer.as_str().into(),
                    code::of_protocol(*protocol).into(),
                    code::of_status(*status).into(),
                ],
            ),
            Counter::Devices(customer) => (SqlTable::DeviceCount, vec![customer.as_str().into()]),
            Counter::CampaignDevices { campaign, state } => (
                SqlTable::CampaignDeviceCount,
                vec![
                    campaign.as_bytes().into(),
                    code::of_update_state(*state).into(),
                ],
            ),
        };
        row.push(slot.into());
        row.push(add.delta.into());
        self.steps.push(Step::Add(table, row));
    }
}

/// The row that exists while a name is taken. There is none for an address: several devices of a
/// customer may have it.
fn row_of_name(name: &UniqueName) -> Place {
    let device_name = |kind: u8, name: &[u8]| {
        let key = vec![kind.into(), Cell::Bytes(name.to_vec())];
        (SqlTable::DeviceName, key)
    };
    match name {
        UniqueName::Customer(id) => (SqlTable::Customer, vec![id.as_str().into()]),
        UniqueName::Client(id) => (SqlTable::ApiClient, vec![id.as_str().into()]),
        UniqueName::Device(key) => (SqlTable::Device, vec![key.as_bytes().into()]),
        UniqueName::Iccid(iccid) => device_name(1, iccid.as_str().as_bytes()),
        UniqueName::Imsi(imsi) => device_name(2, imsi.as_str().as_bytes()),
        UniqueName::Msisdn(msisdn) => device_name(3, msisdn.as_str().as_bytes()),
        UniqueName::Endpoint(endpoint) => device_name(4, endpoint.as_str().as_bytes()),
        UniqueName::PskIdentity(identity) => device_name(5, identity.as_bytes()),
        UniqueName::PublicKey(key) => device_name(6, key.point()),
        UniqueName::Address { .. } => device_name(0, &[]),
    }
}

/// The rows of the names of a device that are not its own row.
fn shared_names(profile: &Profile) -> impl Iterator<Item = Place> {
    let names = UniqueName::all_of(profile).into_iter();
    let shared = names.filter(|name| !matches!(name, UniqueName::Device(_)));
    shared.map(|name| row_of_name(&name))
}

fn row_of_scope(scope: &BootstrapScope) -> (SqlTable, Cell) {
    match scope {
        BootstrapScope::Customer(id) => (SqlTable::CustomerBootstrapConfig, id.as_str().into()),
        BootstrapScope::Device(key) => (SqlTable::DeviceBootstrapConfig, key.as_bytes().into()),
    }
}

fn definition_key(id: &DefinitionId) -> Vec<Cell> {
    vec![
        id.customer.as_str().into(),
        id.object.into(),
        id.version.major.into(),
        id.version.minor.into(),
    ]
}

/// The key of an idempotency record; that of a whole call has the nil device.
fn idempotency_key(key: IdempotencyKey, device: Option<IdentifiedDevice>) -> Vec<Cell> {
    let (device, number) = match device {
        Some(device) => (*device.key.as_bytes(), device.number),
        None => ([0; 16], 0),
    };
    vec![key.as_bytes().into(), (&device).into(), number.into()]
}
