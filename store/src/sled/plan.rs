//! Which rows does a batch mean? Made on the caller's thread, so that the committer only checks
//! and writes.

mod actions;

use engine::action::Status;
use engine::admin_log::entry::Entry;
use engine::admin_log::payload::Payload;
use engine::change::{Batch, Change, Expect, Name, Owner};
use engine::customer::{AccessToken, Client, Customer};
use engine::definition::DefinitionId;
use engine::device::record::DeviceRecord;
use engine::event::{Event, Happening, Telemetry};
use engine::ids::{ClientId, CustomerId, DestinationId, DeviceKey};
use engine::moment::Timestamp;
use engine::profile::Profile;
use engine::promise::Promise;
use engine::setting::Setting;
use sled::IVec;
use tracing::Span;

use super::counting::Counted;
use super::key::{self, Key};
use super::kv::Value;
use super::listing::Recorded;
use super::outbox::Awaiting;
use super::record;
use super::record::traits::Traits;
use super::{definitions, destinations};

/// A batch as rows.
pub(super) struct Plan {
    /// Who changes them.
    pub(super) owner: Owner,
    /// What must hold.
    pub(super) checks: Vec<Check>,
    /// What is done, in this order.
    pub(super) steps: Vec<Step>,
    /// What goes wrong with it is told in the span of whoever handed it over.
    pub(super) span: Span,
    bytes: usize,
}

/// What must hold of a row.
pub(super) enum Check {
    /// It is not there.
    Absent(Key),
    /// It is there.
    Present(Key),
    /// It is this value.
    Value(Key, Vec<u8>),
    /// It is an action request in this status.
    Status(Key, Status),
}

/// What is done to rows.
pub(super) enum Step {
    /// Puts a row, whatever was there.
    Put(IVec, IVec),
    /// Puts a row without value, unless it is there.
    Mark(IVec),
    /// Puts a value over what was there.
    Replace(IVec, Value),
    /// Puts what is known of a device, and lists the device by it.
    PutRecord(Box<Recorded>),
    /// Removes a row.
    Remove(IVec),
    /// Puts a last known value over one that is no newer; a new one only if the device has room
    /// for it.
    PutKnown {
        /// As of when it is known.
        at: Timestamp,
        /// Where the values of the device are counted.
        counted: IVec,
        /// Where it is put.
        key: IVec,
        /// What is put.
        value: Value,
    },
    /// Removes a last known value, if there is one that is no newer.
    RemoveKnown {
        /// As of when none is known.
        at: Timestamp,
        /// Where the values of the device are counted.
        counted: IVec,
        /// Where it lies.
        key: IVec,
    },
    /// Counts.
    Add(IVec, i64),
    /// Counts an entry of the log, and the device it is about.
    CountEntry(Box<Counted>),
    /// Counts a row that is not there yet.
    CountNew(IVec),
    /// Removes a device with its names, address, record, values and action requests, and marks
    /// what it said removed.
    RemoveDevice(DeviceKey),
    /// Removes an API client with its tokens.
    RemoveClient(ClientId),
    /// Removes a customer with its API clients, tokens, settings, definitions and destinations, and
    /// marks its log removed.
    RemoveCustomer(CustomerId),
    /// Has an event wait for the destinations of its customer.
    Await(Box<Awaiting>),
    /// Puts a destination.
    PutDestination(Box<destinations::Put>),
    /// Removes a destination of a customer.
    RemoveDestination(CustomerId, DestinationId),
    /// Says how far a destination has come.
    PutProgress(Box<destinations::Step>),
    /// Puts a definition of an object.
    PutDefinition(Box<definitions::Put>),
    /// Removes a definition of an object.
    RemoveDefinition(Box<DefinitionId>),
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
            steps
                .0
                .push(Step::Add(IVec::from(key::counter(&add.counter)), add.delta));
        }
        let bytes = steps.0.iter().map(Step::bytes).sum();
        let checks = batch.expects.iter().map(Check::of).collect();
        Self {
            owner: batch.owner,
            checks,
            steps: steps.0,
            span: Span::current(),
            bytes,
        }
    }

    /// The size of all that waits with it, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Check {
    fn of(expect: &Expect) -> Self {
        match expect {
            Expect::Free(name) => Self::Absent(key::name(name)),
            Expect::Taken(name) => Self::Present(key::name(name)),
            Expect::Profile(profile) => Self::Value(
                key::device::device(profile.key()),
                record::profile::write_profile(profile),
            ),
            Expect::Status { action, is } => Self::Status(key::action::action(*action), *is),
            Expect::Unpromised {
                key,
                device,
                number,
            } => Self::Absent(key::promise::promise(*key, *device, *number)),
        }
    }
}

impl Step {
    fn bytes(&self) -> usize {
        /// What a step costs besides its rows.
        const STEP: usize = 64;
        /// What the removal of a device counts as, so that the rows of a few dozen of them, values
        /// and requests, make a group.
        const DEVICE: usize = 64 * 1_024;
        STEP + match self {
            Self::Put(key, row) => key.len() + row.len(),
            Self::Replace(key, value) => key.len() + value.bytes(),
            Self::PutRecord(recorded) => recorded.bytes(),
            Self::PutKnown {
                counted,
                key,
                value,
                at: _,
            } => counted.len() + key.len() + value.bytes(),
            Self::RemoveKnown {
                counted,
                key,
                at: _,
            } => counted.len() + key.len(),
            Self::Mark(key) | Self::Remove(key) | Self::Add(key, _) | Self::CountNew(key) => {
                key.len()
            }
            Self::CountEntry(counted) => counted.bytes(),
            Self::RemoveDevice(_) => DEVICE,
            Self::Await(awaiting) => awaiting.bytes(),
            Self::PutDestination(put) => put.bytes(),
            Self::PutProgress(step) => step.bytes(),
            Self::PutDefinition(put) => put.bytes(),
            Self::RemoveClient(_)
            | Self::RemoveCustomer(_)
            | Self::RemoveDestination(..)
            | Self::RemoveDefinition(_) => 0,
        }
    }
}

/// The steps of a batch under construction.
struct Steps(Vec<Step>);

impl Steps {
    fn change(&mut self, change: &Change) {
        match change {
            Change::PutCustomer(customer) => self.put_customer(customer),
            Change::RemoveCustomer(id) => self.0.push(Step::RemoveCustomer(id.clone())),
            Change::PutClient(client) => self.put_client(client),
            Change::RemoveClient(id) => self.0.push(Step::RemoveClient(id.clone())),
            Change::PutToken(token) => self.put_token(token),
            Change::PutSetting(setting) => self.put_setting(setting),
            Change::PutDevice { was, profile } => self.put_device(was.as_deref(), profile),
            Change::RemoveDevice(device) => self.0.push(Step::RemoveDevice(*device)),
            Change::PutRecord { device, record } => self.put_record(*device, record),
            Change::PutAction { was, action } => self.put_action(*was, action),
            Change::KeepPromise(promise) => self.keep_promise(promise),
            Change::AppendEntry(entry) => self.append_entry(entry),
            Change::AppendEvent(event) => self.append_event(event),
            Change::PutDestination(destination) => {
                let put = Box::new(destinations::Put::of(destination));
                self.0.push(Step::PutDestination(put));
            }
            Change::RemoveDestination {
                customer,
                destination,
            } => {
                let removal = Step::RemoveDestination(customer.clone(), *destination);
                self.0.push(removal);
            }
            Change::PutProgress(progress) => {
                let step = Box::new(destinations::Step::of(progress));
                self.0.push(Step::PutProgress(step));
            }
            Change::PutDefinition(definition) => {
                let put = Box::new(definitions::Put::of(definition));
                self.0.push(Step::PutDefinition(put));
            }
            Change::RemoveDefinition(id) => {
                self.0.push(Step::RemoveDefinition(Box::new(id.clone())));
            }
        }
    }

    fn put_customer(&mut self, customer: &Customer) {
        let key = key::customer(&customer.id);
        self.0.push(Step::CountNew(IVec::from(key.as_slice())));
        self.replace(key, &record::customer::write_customer(customer));
    }

    fn put_client(&mut self, client: &Client) {
        self.replace(
            key::client(&client.id),
            &record::customer::write_client(client),
        );
        self.mark(key::client_of(&client.customer, &client.id));
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

    /// A device's key is made of its customer and its id, which never change: once it is listed, it
    /// is listed anew only for what becomes known of it.
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
                self.replace(key, &value);
            }
        }
        self.move_address(was.and_then(address_of), address_of(profile));
        let bearer = record::number::write_bearer(profile.key());
        for name in shared_names(profile) {
            self.put(key::name(&name), &bearer);
        }
    }

    /// Lists a device of which nothing is known yet.
    fn list_device(&mut self, profile: &Profile) {
        let (customer, bearer) = (&profile.customer, profile.key());
        self.put(
            key::device::device_of(customer, Traits::NONE, &profile.device),
            &record::number::write_bearer(bearer),
        );
        let counted = key::device::counted(customer, Traits::NONE);
        self.0.push(Step::Add(counted.into(), 1));
    }

    fn free_names(&mut self, profile: &Profile) {
        for name in shared_names(profile) {
            self.0.push(Step::Remove(key::name(&name).into()));
        }
    }

    /// Moves a device from one address to another.
    fn move_address(&mut self, was: Option<Key>, is: Option<Key>) {
        if was == is {
            return;
        }
        if let Some(was) = was {
            self.0.push(Step::Remove(was.into()));
        }
        if let Some(is) = is {
            self.put(is, &[]);
        }
    }

    fn put_record(&mut self, device: DeviceKey, record: &DeviceRecord) {
        let recorded = Box::new(Recorded::of(device, record));
        self.0.push(Step::PutRecord(recorded));
    }

    fn keep_promise(&mut self, promise: &Promise) {
        let Promise {
            once,
            device,
            number,
            at,
            ..
        } = *promise;
        self.put(
            key::promise::promise(once.key, device, number),
            &record::promise::write_promise(promise),
        );
        let by_age = key::promise::promise_by_age(at, once.key, device, number);
        self.put(by_age, &[]);
    }

    fn append_entry(&mut self, entry: &Entry) {
        self.insert(key::log::entry(entry), &record::entry::write_entry(entry));
        if let Some(about) = &entry.about {
            self.put(key::log::entry_of_iccid(entry, &about.iccid), &[]);
        }
        self.put(key::log::entry_by_age(entry), &[]);
        self.0.push(Step::CountEntry(Box::new(Counted::of(entry))));
        if let Some(Payload::Whole(bytes)) = &entry.payload {
            let key = key::log::payload(&entry.customer, entry.id);
            self.insert(key, &record::entry::write_payload(bytes));
        }
    }

    fn append_event(&mut self, event: &Event) {
        let key = key::event::event(event.device, event.id);
        self.insert(key, &record::event::write_event(event));
        self.put(key::event::by_age_of(event.device, event.id), &[]);
        self.0.push(Step::Await(Box::new(Awaiting::of(event))));
        match &event.happening {
            Happening::Telemetry(told) => self.put_values(event, told),
            Happening::Data(_)
            | Happening::Lifecycle(_)
            | Happening::Failure(_)
            | Happening::Concluded(_) => {}
        }
    }

    fn put_values(&mut self, event: &Event, told: &Telemetry) {
        let at = told.known_at(event.at);
        for (path, value) in &told.values {
            let key = key::event::value(event.device, *path);
            let counted = key::event::values_counted(event.device).into();
            self.0.push(if record::value::is_short(value) {
                let value = Value::cut(&key, &record::value::write_known(at, value));
                let key = key.into();
                Step::PutKnown {
                    at,
                    counted,
                    key,
                    value,
                }
            } else {
                let key = key.into();
                Step::RemoveKnown { at, counted, key }
            });
        }
    }

    /// Puts a value where there was none.
    fn insert(&mut self, key: Key, value: &[u8]) {
        let value = Value::cut(&key, value);
        self.0.extend(
            value
                .pieces
                .into_iter()
                .map(|(key, piece)| Step::Put(key, piece)),
        );
        self.0.push(Step::Put(key.into(), value.head));
    }

    fn replace(&mut self, key: Key, value: &[u8]) {
        let value = Value::cut(&key, value);
        self.0.push(Step::Replace(key.into(), value));
    }

    fn put(&mut self, key: Key, row: &[u8]) {
        self.0.push(Step::Put(key.into(), IVec::from(row)));
    }

    fn mark(&mut self, key: Key) {
        self.0.push(Step::Mark(key.into()));
    }
}

/// The row that says which address a device has, if it has one.
pub(super) fn address_of(profile: &Profile) -> Option<Key> {
    let at = |ip| key::device::at_address(ip, profile.key());
    profile.ip.map(at)
}

/// The names of a device that have rows of their own.
pub(super) fn shared_names(profile: &Profile) -> impl Iterator<Item = Name> {
    Name::all_of(profile)
        .into_iter()
        .filter(|name| !matches!(name, Name::Device(_)))
}
