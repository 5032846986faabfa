//! Which store does the fleet live in? One that makes registered devices up as they are asked for.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
use engine::moment::Timestamp;
use engine::profile::Profile;
use engine::promise::{OnceKey, Promise};
use engine::query::devices::{DeviceFilter, TooBroad};
use engine::query::listed::{ListedAction, Stretch};
use engine::query::{ActionFilter, KnownValue, LogFilter, Page, PageWanted};
use engine::registry::Behind;
use engine::setting::Setting;
use engine::terms::Chosen;
use store::{Answer, Board, Pressure, Receipt, RestoredPage, Retention, Store, Swept, Unavailable};

use crate::{fleet, kept};

/// A store that knows the fleet, writes nothing and knows nothing else, so that no cache of it is
/// measured along.
pub(crate) struct Made {
    /// The devices by key.
    numbers: Vec<(DeviceKey, u32)>,
    now: Timestamp,
    /// The last page was asked for.
    is_told: AtomicBool,
}

impl Made {
    /// A fleet of so many.
    pub(crate) fn new(devices: u32, now: Timestamp) -> Self {
        let key = |number| (fleet::profile(number).key(), number);
        let mut numbers: Vec<_> = (0..devices).map(key).collect();
        numbers.sort_unstable();
        Self {
            numbers,
            now,
            is_told: AtomicBool::new(false),
        }
    }

    /// Whether all devices were asked for.
    pub(crate) fn is_told(&self) -> bool {
        self.is_told.load(Ordering::Relaxed)
    }

    fn find(&self, key: DeviceKey) -> Option<u32> {
        let place = self.numbers.binary_search_by_key(&key, |(key, _)| *key);
        place.ok().map(|place| self.numbers[place].1)
    }
}

impl Store for Made {
    fn commit(&self, _: Batch) -> Receipt {
        Box::pin(std::future::ready(Ok(())))
    }

    fn pressure(&self) -> Pressure {
        Pressure::Open
    }

    fn restored(&self, device: DeviceKey) -> Answer<Option<Restored>> {
        tell(
            self.find(device)
                .map(|number| kept::restored(number, self.now)),
        )
    }

    fn restored_page(&self, keys: RangeInclusive<DeviceKey>, max: u32) -> Answer<RestoredPage> {
        let first = self.numbers.partition_point(|(key, _)| key < keys.start());
        let mut rest = self.numbers[first..]
            .iter()
            .filter(|(key, _)| key <= keys.end());
        let taken = rest.by_ref().take(max as usize);
        let devices = taken
            .map(|(key, number)| (*key, kept::restored(*number, self.now)))
            .collect();
        let next = rest.next().map(|(key, _)| *key);
        self.is_told.fetch_or(next.is_none(), Ordering::Relaxed);
        tell(RestoredPage { devices, next })
    }

    fn take_over(&self) -> Answer<u64> {
        tell(1)
    }

    fn sweep(&self, _: Retention, _: u32) -> Answer<Swept> {
        tell(Swept::default())
    }

    fn customer(&self, _: CustomerId) -> Answer<Option<Customer>> {
        unknown()
    }

    fn customers(&self, _: PageWanted) -> Answer<Page<Customer>> {
        unknown()
    }

    fn client(&self, _: ClientId) -> Answer<Option<Client>> {
        unknown()
    }

    fn clients_of(&self, _: CustomerId) -> Answer<Vec<Client>> {
        unknown()
    }

    fn token(&self, _: SecretDigest) -> Answer<Option<(AccessToken, Client)>> {
        unknown()
    }

    fn settings_of(&self, _: CustomerId) -> Answer<Vec<Setting>> {
        unknown()
    }

    fn profile(&self, _: DeviceKey) -> Answer<Option<Profile>> {
        unknown()
    }

    fn known(&self, _: Vec<Name>) -> Answer<Known> {
        unknown()
    }

    fn bearer(&self, _: Name) -> Answer<Option<DeviceKey>> {
        unknown()
    }

    fn device_at(&self, _: [u8; 8]) -> Answer<Option<DeviceKey>> {
        unknown()
    }

    fn at_address(&self, _: IpAddr) -> Answer<Behind> {
        unknown()
    }

    fn devices_of(&self, _: DeviceFilter, _: PageWanted) -> Answer<Page<Profile>> {
        unknown()
    }

    fn devices_named(
        &self,
        _: Box<str>,
        _: DeviceFilter,
        _: PageWanted,
    ) -> Answer<Result<Page<Profile>, TooBroad>> {
        unknown()
    }

    fn record(&self, _: DeviceKey) -> Answer<Option<DeviceRecord>> {
        unknown()
    }

    fn action(&self, _: ActionId) -> Answer<Option<Action>> {
        unknown()
    }

    fn actions(&self, _: ActionFilter, _: PageWanted) -> Answer<Page<ListedAction>> {
        unknown()
    }

    fn events_of(&self, _: DeviceKey, _: Option<EventId>, _: u32) -> Answer<Stretch> {
        unknown()
    }

    fn values_of(&self, _: DeviceKey) -> Answer<Vec<KnownValue>> {
        unknown()
    }

    fn promises_under(&self, _: OnceKey) -> Answer<Vec<Promise>> {
        unknown()
    }

    fn entries(&self, _: LogFilter, _: PageWanted) -> Answer<Page<Entry>> {
        unknown()
    }

    fn log_statistics(&self, _: StatisticsWanted) -> Answer<Statistics> {
        unknown()
    }

    fn entry_payload(&self, _: CustomerId, _: EntryId) -> Answer<Option<Box<[u8]>>> {
        unknown()
    }

    fn event(&self, _: DeviceKey, _: EventId) -> Answer<Option<Event>> {
        unknown()
    }

    fn all_chosen(&self) -> Answer<Vec<Chosen>> {
        unknown()
    }

    fn chosen_by(&self, _: CustomerId) -> Answer<Chosen> {
        unknown()
    }

    fn definition(&self, _: DefinitionId) -> Answer<Option<Definition>> {
        unknown()
    }

    fn destinations_of(&self, _: CustomerId) -> Answer<Vec<Destination>> {
        unknown()
    }

    fn destination(&self, _: DestinationId) -> Answer<Option<Destination>> {
        unknown()
    }

    fn standing_of(&self, _: DestinationId) -> Answer<Standing> {
        unknown()
    }

    fn shards_waiting(&self, _: DestinationId) -> Answer<Vec<Shard>> {
        unknown()
    }

    fn waiting(&self, _: CustomerId, _: Shard, _: Sequence, _: u32) -> Answer<Vec<Waiting>> {
        unknown()
    }

    fn backlog(&self, _: DestinationId) -> Answer<Backlog> {
        unknown()
    }

    fn dead_letters(
        &self,
        _: DestinationId,
        _: Option<Sequence>,
        _: u32,
    ) -> Answer<Vec<DeadLetter>> {
        unknown()
    }

    fn attend(&self, _: CustomerId) -> Arc<Board> {
        Arc::default()
    }
}

/// Answers when others had their turn, as a store does that has to read.
fn tell<T: Send + 'static>(answer: T) -> Answer<T> {
    Box::pin(async {
        tokio::task::yield_now().await;
        Ok(answer)
    })
}

fn unknown<T: Send + 'static>() -> Answer<T> {
    Box::pin(std::future::ready(Err(Unavailable)))
}
