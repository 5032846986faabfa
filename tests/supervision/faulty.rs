//! A store that can be told to fail: the real one behind a switch.

use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::action::Action;
use engine::admin_log::entry::Entry;
use engine::change::{Batch, Change, Name};
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

/// How the store behaves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mood {
    /// As it should.
    Well,
    /// The next commit of a device panics.
    PanicOnce,
    /// Every commit of this device panics.
    PanicAlwaysFor(DeviceKey),
    /// Commits fail.
    Unavailable,
    /// It takes in nothing new.
    Full,
}

/// A store with a switch.
pub(crate) struct FaultyStore {
    inner: SledStore,
    mood: Mutex<Mood>,
    refused: AtomicU64,
}

impl FaultyStore {
    pub(crate) fn new(inner: SledStore) -> Self {
        Self {
            inner,
            mood: Mutex::new(Mood::Well),
            refused: AtomicU64::new(0),
        }
    }

    pub(crate) fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    pub(crate) fn mood(&self) -> Mood {
        *self.mood.lock().unwrap()
    }

    /// How many commits were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::SeqCst)
    }

    fn refuse(&self, error: CommitError) -> Receipt {
        self.refused.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { Err(error) })
    }
}

fn concerns(batch: &Batch, device: DeviceKey) -> bool {
    let is_of =
        |change: &Change| matches!(change, Change::PutRecord { device: d, .. } if *d == device);
    batch.changes.iter().any(is_of)
}

impl Store for FaultyStore {
    fn commit(&self, batch: Batch) -> Receipt {
        match self.mood() {
            Mood::Well => self.inner.commit(batch),
            Mood::PanicOnce => {
                self.set(Mood::Well);
                panic!("told to panic once");
            }
            Mood::PanicAlwaysFor(device) if concerns(&batch, device) => {
                panic!("told to panic always");
            }
            Mood::PanicAlwaysFor(_) => self.inner.commit(batch),
            Mood::Unavailable => self.refuse(CommitError::Unavailable),
            Mood::Full => self.refuse(CommitError::Full),
        }
    }

    fn pressure(&self) -> Pressure {
        match self.mood() {
            Mood::Full => Pressure::Full,
            Mood::Well | Mood::PanicOnce | Mood::PanicAlwaysFor(_) | Mood::Unavailable => {
                self.inner.pressure()
            }
        }
    }

    fn take_over(&self) -> Answer<u64> {
        self.inner.take_over()
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
