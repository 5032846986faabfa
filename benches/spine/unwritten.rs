//! What would the endpoint do if nothing had to be kept? A store that says "durable" at once.

use std::ops::RangeInclusive;
use std::sync::Arc;

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
use store::{Answer, Pressure, Receipt, RestoredPage, Retention, SledStore, Store, Swept};

/// A store that answers as another does, and keeps nothing.
pub(crate) struct Unwritten(pub(crate) Arc<SledStore>);

impl Store for Unwritten {
    fn commit(&self, _: Batch) -> Receipt {
        Box::pin(std::future::ready(Ok(())))
    }

    fn take_over(&self) -> Answer<u64> {
        self.0.take_over()
    }

    fn pressure(&self) -> Pressure {
        self.0.pressure()
    }

    fn customer(&self, id: CustomerId) -> Answer<Option<Customer>> {
        self.0.customer(id)
    }

    fn customers(&self, page: PageWanted) -> Answer<Page<Customer>> {
        self.0.customers(page)
    }

    fn client(&self, id: ClientId) -> Answer<Option<Client>> {
        self.0.client(id)
    }

    fn clients_of(&self, customer: CustomerId) -> Answer<Vec<Client>> {
        self.0.clients_of(customer)
    }

    fn token(&self, digest: SecretDigest) -> Answer<Option<(AccessToken, Client)>> {
        self.0.token(digest)
    }

    fn settings_of(&self, customer: CustomerId) -> Answer<Vec<Setting>> {
        self.0.settings_of(customer)
    }

    fn profile(&self, device: DeviceKey) -> Answer<Option<Profile>> {
        self.0.profile(device)
    }

    fn bearer(&self, name: Name) -> Answer<Option<DeviceKey>> {
        self.0.bearer(name)
    }

    fn known(&self, names: Vec<Name>) -> Answer<Known> {
        self.0.known(names)
    }

    fn device_at(&self, prefix: [u8; 8]) -> Answer<Option<DeviceKey>> {
        self.0.device_at(prefix)
    }

    fn devices_of(&self, customer: CustomerId, page: PageWanted) -> Answer<Page<Profile>> {
        self.0.devices_of(customer, page)
    }

    fn record(&self, device: DeviceKey) -> Answer<Option<DeviceRecord>> {
        self.0.record(device)
    }

    fn restored(&self, device: DeviceKey) -> Answer<Option<Restored>> {
        self.0.restored(device)
    }

    fn restored_page(&self, keys: RangeInclusive<DeviceKey>, max: u32) -> Answer<RestoredPage> {
        self.0.restored_page(keys, max)
    }

    fn action(&self, id: ActionId) -> Answer<Option<Action>> {
        self.0.action(id)
    }

    fn actions(&self, filter: ActionFilter, page: PageWanted) -> Answer<Page<Action>> {
        self.0.actions(filter, page)
    }

    fn entries(&self, filter: LogFilter, page: PageWanted) -> Answer<Page<Entry>> {
        self.0.entries(filter, page)
    }

    fn sweep(&self, retention: Retention, max: u32) -> Answer<Swept> {
        self.0.sweep(retention, max)
    }
}
