//! On which lane of the readers is each question answered?
//!
//! What is shown to callers waits until it is durable (`show`, `deliver`); what the service asks
//! for itself does not have to (`ask`, `prepare`, `fetch`).

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use engine::action::Action;
use engine::admin_log::daily::{Statistics, StatisticsWanted};
use engine::admin_log::entry::Entry;
use engine::change::Name;
use engine::customer::{AccessToken, Client, Customer, SecretDigest};
use engine::definition::{Definition, DefinitionId};
use engine::delivery::destination::Destination;
use engine::delivery::letter::{Backlog, DeadLetter, Sequence, Standing, Waiting};
use engine::device::record::Restored;
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

use super::SledStore;
use super::ask::{
    actions, customers, devices, entries, events, fleet, letters, restoring, statistics, terms,
};
use crate::{Answer, Board, DeliveryReads, DeviceReads, DirectoryReads, RestoredPage};

impl DeviceReads for SledStore {
    fn profile(&self, device: DeviceKey) -> Answer<Option<Profile>> {
        self.readers.ask(move |db| devices::profile(db, device))
    }

    fn bearer(&self, name: Name) -> Answer<Option<DeviceKey>> {
        self.readers.ask(move |db| devices::bearer(db, &name))
    }

    fn device_at(&self, prefix: [u8; 8]) -> Answer<Option<DeviceKey>> {
        self.readers.ask(move |db| devices::device_at(db, prefix))
    }

    fn at_address(&self, ip: IpAddr) -> Answer<Behind> {
        self.readers.ask(move |db| devices::at_address(db, ip))
    }

    fn restored(&self, device: DeviceKey) -> Answer<Option<Restored>> {
        self.readers.ask(move |db| devices::restored(db, device))
    }

    fn restored_page(&self, keys: RangeInclusive<DeviceKey>, max: u32) -> Answer<RestoredPage> {
        self.readers
            .prepare(move |db| restoring::restored_page(db, &keys, max))
    }

    fn all_chosen(&self) -> Answer<Vec<Chosen>> {
        self.readers.prepare(terms::all_chosen)
    }

    fn chosen_by(&self, customer: CustomerId) -> Answer<Chosen> {
        self.readers.show(move |db| terms::chosen_by(db, &customer))
    }
}

impl DirectoryReads for SledStore {
    fn customer(&self, id: CustomerId) -> Answer<Option<Customer>> {
        self.readers.ask(move |db| customers::customer(db, &id))
    }

    fn customers(&self, page: PageWanted) -> Answer<Page<Customer>> {
        self.readers.show(move |db| customers::customers(db, page))
    }

    fn client(&self, id: ClientId) -> Answer<Option<Client>> {
        self.readers.ask(move |db| customers::client(db, &id))
    }

    fn clients_of(&self, customer: CustomerId) -> Answer<Vec<Client>> {
        self.readers
            .show(move |db| customers::clients_of(db, &customer))
    }

    fn token(&self, digest: SecretDigest) -> Answer<Option<(AccessToken, Client)>> {
        self.readers.ask(move |db| customers::token(db, &digest))
    }

    fn settings_of(&self, customer: CustomerId) -> Answer<Vec<Setting>> {
        self.readers
            .show(move |db| customers::settings_of(db, &customer))
    }

    fn known(&self, names: Vec<Name>) -> Answer<Known> {
        self.readers.show(move |db| devices::known(db, names))
    }

    fn devices_of(&self, filter: DeviceFilter, page: PageWanted) -> Answer<Page<Profile>> {
        self.readers
            .show(move |db| fleet::devices_of(db, &filter, page))
    }

    fn devices_named(
        &self,
        beginning: Box<str>,
        filter: DeviceFilter,
        page: PageWanted,
    ) -> Answer<Result<Page<Profile>, TooBroad>> {
        self.readers
            .show(move |db| fleet::devices_named(db, &beginning, &filter, page))
    }

    fn action(&self, id: ActionId) -> Answer<Option<Action>> {
        self.readers.show(move |db| actions::action(db, id))
    }

    fn actions(&self, filter: ActionFilter, page: PageWanted) -> Answer<Page<ListedAction>> {
        self.readers
            .show(move |db| actions::actions(db, &filter, page))
    }

    fn promises_under(&self, key: OnceKey) -> Answer<Vec<Promise>> {
        self.readers
            .show(move |db| actions::promises_under(db, key))
    }

    fn entries(&self, filter: LogFilter, page: PageWanted) -> Answer<Page<Entry>> {
        self.readers
            .show(move |db| entries::entries(db, &filter, page))
    }

    fn log_statistics(&self, wanted: StatisticsWanted) -> Answer<Statistics> {
        let gauge = Arc::clone(&self.gauge);
        self.readers
            .show(move |db| statistics::statistics(db, &gauge, &wanted))
    }

    fn entry_payload(&self, customer: CustomerId, entry: EntryId) -> Answer<Option<Box<[u8]>>> {
        self.readers
            .show(move |db| entries::payload(db, &customer, entry))
    }

    fn events_of(&self, device: DeviceKey, before: Option<EventId>, max: u32) -> Answer<Stretch> {
        self.readers
            .show(move |db| events::events_of(db, device, before, max))
    }

    fn values_of(&self, device: DeviceKey) -> Answer<Vec<KnownValue>> {
        self.readers.show(move |db| events::values_of(db, device))
    }

    fn definition(&self, id: DefinitionId) -> Answer<Option<Definition>> {
        self.readers.show(move |db| terms::definition(db, id))
    }

    fn destinations_of(&self, customer: CustomerId) -> Answer<Vec<Destination>> {
        self.readers
            .show(move |db| terms::destinations_of(db, &customer))
    }
}

impl DeliveryReads for SledStore {
    fn destination(&self, id: DestinationId) -> Answer<Option<Destination>> {
        self.readers.show(move |db| terms::destination(db, id))
    }

    fn standing_of(&self, destination: DestinationId) -> Answer<Standing> {
        self.readers
            .deliver(move |db| letters::standing_of(db, destination))
    }

    fn shards_waiting(&self, destination: DestinationId) -> Answer<Vec<Shard>> {
        self.readers
            .deliver(move |db| letters::shards_waiting(db, destination))
    }

    fn waiting(
        &self,
        customer: CustomerId,
        shard: Shard,
        after: Sequence,
        max: u32,
    ) -> Answer<Vec<Waiting>> {
        let gauge = Arc::clone(&self.gauge);
        self.readers.fetch(move |db| {
            let stretch = (after, gauge.reached());
            letters::waiting(db, &customer, shard, stretch, max)
        })
    }

    fn backlog(&self, destination: DestinationId) -> Answer<Backlog> {
        let gauge = Arc::clone(&self.gauge);
        self.readers
            .show(move |db| letters::backlog(db, &gauge, destination))
    }

    fn dead_letters(
        &self,
        destination: DestinationId,
        after: Option<Sequence>,
        max: u32,
    ) -> Answer<Vec<DeadLetter>> {
        self.readers
            .show(move |db| letters::dead_letters(db, destination, after, max))
    }

    fn event(&self, device: DeviceKey, event: EventId) -> Answer<Option<Event>> {
        self.readers
            .fetch(move |db| events::event(db, device, event))
    }

    fn attend(&self, customer: CustomerId) -> Arc<Board> {
        self.gauge.boards.attend(customer)
    }
}
