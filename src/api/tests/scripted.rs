//! A store whose next commits are refused as a test says; else it is the real one.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Mutex;

use engine::action::Action;
use engine::admin_log::entry::Entry;
use engine::change::{Batch, Name};
use engine::customer::{AccessToken, Client, Customer, SecretDigest};
use engine::device::record::{DeviceRecord, Restored};
use engine::directory::import::Known;
use engine::ids::{ActionId, ClientId, CustomerId, DeviceKey};
use engine::profile::Profile;
use engine::query::{ActionFilter, LogFilter, Page, PageWanted};
use engine::setting::Setting;
use store::{
    Answer, CommitError, Pressure, Receipt, RestoredPage, Retention, SledStore, Store, Swept,
};

/// A store with a script.
pub(super) struct Scripted {
    inner: SledStore,
    verdicts: Mutex<VecDeque<Option<CommitError>>>,
}

impl Scripted {
    /// A store that does as the real one until it is told otherwise.
    pub(super) fn new(inner: SledStore) -> Self {
        Self {
            inner,
            verdicts: Mutex::default(),
        }
    }

    /// What the next commits are refused with; None lets one pass.
    pub(super) fn expect(&self, verdicts: &[Option<CommitError>]) {
        self.verdicts.lock().unwrap().extend(verdicts);
    }

    /// How many verdicts are left.
    pub(super) fn left(&self) -> usize {
        self.verdicts.lock().unwrap().len()
    }
}

impl Store for Scripted {
    fn commit(&self, batch: Batch) -> Receipt {
        match self.verdicts.lock().unwrap().pop_front().flatten() {
            None => self.inner.commit(batch),
            Some(refused) => Box::pin(std::future::ready(Err(refused))),
        }
    }

    fn take_over(&self) -> Answer<u64> {
        self.inner.take_over()
    }

    fn pressure(&self) -> Pressure {
        self.inner.pressure()
    }

    fn customer(&self, id: CustomerId) -> Answer<Option<Customer>> {
        self.inner.customer(id)
    }

    fn customers(&self, page: PageWanted) -> Answer<Page<Customer>> {
        self.inner.customers(page)
    }

    fn client(&self, id: ClientId) -> Answer<Option<Client>> {
        self.inner.client(id)
    }

    fn clients_of(&self, customer: CustomerId) -> Answer<Vec<Client>> {
        self.inner.clients_of(customer)
    }

    fn token(&self, digest: SecretDigest) -> Answer<Option<(AccessToken, Client)>> {
        self.inner.token(digest)
    }

    fn settings_of(&self, customer: CustomerId) -> Answer<Vec<Setting>> {
        self.inner.settings_of(customer)
    }

    fn profile(&self, device: DeviceKey) -> Answer<Option<Profile>> {
        self.inner.profile(device)
    }

    fn bearer(&self, name: Name) -> Answer<Option<DeviceKey>> {
        self.inner.bearer(name)
    }

    fn known(&self, names: Vec<Name>) -> Answer<Known> {
        self.inner.known(names)
    }

    fn device_at(&self, prefix: [u8; 8]) -> Answer<Option<DeviceKey>> {
        self.inner.device_at(prefix)
    }

    fn devices_of(&self, customer: CustomerId, page: PageWanted) -> Answer<Page<Profile>> {
        self.inner.devices_of(customer, page)
    }

    fn record(&self, device: DeviceKey) -> Answer<Option<DeviceRecord>> {
        self.inner.record(device)
    }

    fn restored(&self, device: DeviceKey) -> Answer<Option<Restored>> {
        self.inner.restored(device)
    }

    fn restored_page(&self, keys: RangeInclusive<DeviceKey>, max: u32) -> Answer<RestoredPage> {
        self.inner.restored_page(keys, max)
    }

    fn action(&self, id: ActionId) -> Answer<Option<Action>> {
        self.inner.action(id)
    }

    fn actions(&self, filter: ActionFilter, page: PageWanted) -> Answer<Page<Action>> {
        self.inner.actions(filter, page)
    }

    fn entries(&self, filter: LogFilter, page: PageWanted) -> Answer<Page<Entry>> {
        self.inner.entries(filter, page)
    }

    fn sweep(&self, retention: Retention, max: u32) -> Answer<Swept> {
        self.inner.sweep(retention, max)
    }
}
