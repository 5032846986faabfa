//! A store on top of another: what it does not do itself, the one below does.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use engine::action::Action;
use engine::admin_log::daily::{Statistics, StatisticsWanted};
use engine::admin_log::entry::Entry;
use engine::change::{Batch, Name};
use engine::customer::{AccessToken, Client, Customer, SecretDigest};
use engine::definition::{Definition, DefinitionId};
use engine::delivery::destination::Destination;
use engine::delivery::letter::{Backlog, DeadLetter, Sequence, Standing, Waiting};
use engine::device::record::{DeviceRecord, Restored};
use engine::directory::import::Known;
use engine::event::Event;
use engine::ids::{
    ActionId, ClientId, CustomerId, DestinationId, DeviceKey, EntryId, EventId, Shard,
};
use engine::profile::Profile;
use engine::promise::{OnceKey, Promise};
use engine::query::devices::{DeviceFilter, TooBroad};
use engine::query::listed::{ListedAction, Stretch};
use engine::query::{ActionFilter, KnownValue, LogFilter, Page, PageWanted};
use engine::registry::Behind;
use engine::setting::Setting;
use engine::terms::Chosen;

use crate::{Answer, Board, Pressure, Receipt, RestoredPage, Retention, Store, Swept};

/// A store that changes how another commits and answers all else as that one does: every layer is
/// a [`Store`].
pub trait Layer: Send + Sync {
    /// The store below.
    fn below(&self) -> &dyn Store;

    /// Makes a batch durable, as [`Store::commit`] does.
    fn commit(&self, batch: Batch) -> Receipt;

    /// Whether new work is welcome, as [`Store::pressure`] says.
    fn pressure(&self) -> Pressure {
        self.below().pressure()
    }
}

impl<L: Layer> Store for L {
    fn commit(&self, batch: Batch) -> Receipt {
        Layer::commit(self, batch)
    }

    fn take_over(&self) -> Answer<u64> {
        self.below().take_over()
    }

    fn pressure(&self) -> Pressure {
        Layer::pressure(self)
    }

    fn customer(&self, id: CustomerId) -> Answer<Option<Customer>> {
        self.below().customer(id)
    }

    fn customers(&self, page: PageWanted) -> Answer<Page<Customer>> {
        self.below().customers(page)
    }

    fn client(&self, id: ClientId) -> Answer<Option<Client>> {
        self.below().client(id)
    }

    fn clients_of(&self, customer: CustomerId) -> Answer<Vec<Client>> {
        self.below().clients_of(customer)
    }

    fn token(&self, digest: SecretDigest) -> Answer<Option<(AccessToken, Client)>> {
        self.below().token(digest)
    }

    fn settings_of(&self, customer: CustomerId) -> Answer<Vec<Setting>> {
        self.below().settings_of(customer)
    }

    fn profile(&self, device: DeviceKey) -> Answer<Option<Profile>> {
        self.below().profile(device)
    }

    fn bearer(&self, name: Name) -> Answer<Option<DeviceKey>> {
        self.below().bearer(name)
    }

    fn known(&self, names: Vec<Name>) -> Answer<Known> {
        self.below().known(names)
    }

    fn device_at(&self, prefix: [u8; 8]) -> Answer<Option<DeviceKey>> {
        self.below().device_at(prefix)
    }

    fn at_address(&self, ip: IpAddr) -> Answer<Behind> {
        self.below().at_address(ip)
    }

    fn devices_of(&self, filter: DeviceFilter, page: PageWanted) -> Answer<Page<Profile>> {
        self.below().devices_of(filter, page)
    }

    fn devices_named(
        &self,
        beginning: Box<str>,
        filter: DeviceFilter,
        page: PageWanted,
    ) -> Answer<Result<Page<Profile>, TooBroad>> {
        self.below().devices_named(beginning, filter, page)
    }

    fn record(&self, device: DeviceKey) -> Answer<Option<DeviceRecord>> {
        self.below().record(device)
    }

    fn restored(&self, device: DeviceKey) -> Answer<Option<Restored>> {
        self.below().restored(device)
    }

    fn restored_page(&self, keys: RangeInclusive<DeviceKey>, max: u32) -> Answer<RestoredPage> {
        self.below().restored_page(keys, max)
    }

    fn action(&self, id: ActionId) -> Answer<Option<Action>> {
        self.below().action(id)
    }

    fn actions(&self, filter: ActionFilter, page: PageWanted) -> Answer<Page<ListedAction>> {
        self.below().actions(filter, page)
    }

    fn promises_under(&self, key: OnceKey) -> Answer<Vec<Promise>> {
        self.below().promises_under(key)
    }

    fn entries(&self, filter: LogFilter, page: PageWanted) -> Answer<Page<Entry>> {
        self.below().entries(filter, page)
    }

    fn log_statistics(&self, wanted: StatisticsWanted) -> Answer<Statistics> {
        self.below().log_statistics(wanted)
    }

    fn entry_payload(&self, customer: CustomerId, entry: EntryId) -> Answer<Option<Box<[u8]>>> {
        self.below().entry_payload(customer, entry)
    }

    fn events_of(&self, device: DeviceKey, before: Option<EventId>, max: u32) -> Answer<Stretch> {
        self.below().events_of(device, before, max)
    }

    fn values_of(&self, device: DeviceKey) -> Answer<Vec<KnownValue>> {
        self.below().values_of(device)
    }

    fn event(&self, device: DeviceKey, event: EventId) -> Answer<Option<Event>> {
        self.below().event(device, event)
    }

    fn all_chosen(&self) -> Answer<Vec<Chosen>> {
        self.below().all_chosen()
    }

    fn chosen_by(&self, customer: CustomerId) -> Answer<Chosen> {
        self.below().chosen_by(customer)
    }

    fn definition(&self, id: DefinitionId) -> Answer<Option<Definition>> {
        self.below().definition(id)
    }

    fn destinations_of(&self, customer: CustomerId) -> Answer<Vec<Destination>> {
        self.below().destinations_of(customer)
    }

    fn destination(&self, id: DestinationId) -> Answer<Option<Destination>> {
        self.below().destination(id)
    }

    fn standing_of(&self, destination: DestinationId) -> Answer<Standing> {
        self.below().standing_of(destination)
    }

    fn shards_waiting(&self, destination: DestinationId) -> Answer<Vec<Shard>> {
        self.below().shards_waiting(destination)
    }

    fn waiting(
        &self,
        customer: CustomerId,
        shard: Shard,
        after: Sequence,
        max: u32,
    ) -> Answer<Vec<Waiting>> {
        self.below().waiting(customer, shard, after, max)
    }

    fn backlog(&self, destination: DestinationId) -> Answer<Backlog> {
        self.below().backlog(destination)
    }

    fn dead_letters(
        &self,
        destination: DestinationId,
        after: Option<Sequence>,
        max: u32,
    ) -> Answer<Vec<DeadLetter>> {
        self.below().dead_letters(destination, after, max)
    }

    fn attend(&self, customer: CustomerId) -> Arc<Board> {
        self.below().attend(customer)
    }

    fn sweep(&self, retention: Retention, max: u32) -> Answer<Swept> {
        self.below().sweep(retention, max)
    }
}
