//! Decisions to disk: what survives a crash, and how it is asked for.
//!
//! [`Store`] is the whole door: `commit` makes a batch durable, all of it or nothing, and named
//! queries read. Keys and bytes exist only inside an engine's folder. An engine decides nothing
//! about the domain; every engine passes the suite in [`conformance`].

pub mod board;
pub mod conformance;
pub mod layer;
pub mod sealed;
mod shards;
mod sled;

pub use crate::board::Board;
pub use crate::sled::{OpenError, Options, SledStore};

use std::future::Future;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::pin::Pin;
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
use engine::moment::Timestamp;
use engine::profile::Profile;
use engine::promise::{OnceKey, Promise};
use engine::query::devices::{DeviceFilter, TooBroad};
use engine::query::listed::{ListedAction, Stretch};
use engine::query::{ActionFilter, KnownValue, LogFilter, Page, PageWanted};
use engine::registry::Behind;
use engine::setting::Setting;
use engine::terms::Chosen;

/// What comes of a commit: Ok means durable, power loss included.
pub type Receipt = Pin<Box<dyn Future<Output = Result<(), CommitError>> + Send>>;

/// What comes of a question.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, Unavailable>> + Send>>;

/// Why a batch was not applied; nothing of it was.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CommitError {
    /// Something it expects does not hold: read again and decide anew.
    #[error("what the batch expects does not hold")]
    Conflict,
    /// Its owner was superseded: stop.
    #[error("the owner of the batch was superseded")]
    Fenced,
    /// The queue or the disk is full: try later.
    #[error("the store is full")]
    Full,
    /// The store cannot be written: nothing can be promised.
    #[error("the store is unavailable")]
    Unavailable,
}

/// The store cannot answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the store is unavailable")]
pub struct Unavailable;

/// Whether new work is welcome.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pressure {
    /// It is.
    Open,
    /// The queue or the disk is nearly full: refuse new work before deciding anything.
    Full,
}

/// How much a sweep removed and whether it stopped at its bound.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Swept {
    /// Requests, entries, events, tokens, promises, what waited and dead letters removed.
    pub removed: u64,
    /// Whether there is more to remove.
    pub more: bool,
}

/// Live devices in the order of their keys, each with everything needed to bring it back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RestoredPage {
    /// The devices; one whose rows cannot be read is missing.
    pub devices: Vec<(DeviceKey, Restored)>,
    /// The live device the next page begins with; nothing if this is the last page. A page may
    /// be empty and not the last.
    pub next: Option<DeviceKey>,
}

/// What is removed for its age.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Retention {
    /// Final action requests created before this go.
    pub actions_before: Timestamp,
    /// Administration log entries written before this go.
    pub entries_before: Timestamp,
    /// What devices said before this goes.
    pub events_before: Timestamp,
    /// Access tokens that expired before this go.
    pub tokens_before: Timestamp,
    /// What calls were promised before this goes.
    pub promises_before: Timestamp,
    /// Dead letters set aside before this go.
    pub letters_before: Timestamp,
}

impl Retention {
    /// Nothing is too old.
    pub const NOTHING: Self = Self {
        actions_before: BEGINNING,
        entries_before: BEGINNING,
        events_before: BEGINNING,
        tokens_before: BEGINNING,
        promises_before: BEGINNING,
        letters_before: BEGINNING,
    };
}

/// Before everything.
const BEGINNING: Timestamp = Timestamp::from_ms(i64::MIN);

/// What survives. One value serves every thread.
///
/// A question may be answered with what was committed but is not acknowledged yet, save those
/// whose answers are shown to callers (one request, what is known of names, and every list): they
/// tell only what is durable, for what was once shown must not turn out never to have been. A list
/// is not a snapshot: what changes while it is read may be missing from it, but is never shown
/// twice.
pub trait Store: Send + Sync {
    /// Makes a batch durable, all of it or nothing.
    fn commit(&self, batch: Batch) -> Receipt;

    /// Begins a new epoch for the shards of this process and returns it, durable. From then on a
    /// batch of an owner of an earlier epoch is fenced off.
    fn take_over(&self) -> Answer<u64>;

    /// Whether new work is welcome; costs nothing to ask.
    fn pressure(&self) -> Pressure;

    /// A customer.
    fn customer(&self, id: CustomerId) -> Answer<Option<Customer>>;

    /// Customers by id.
    fn customers(&self, page: PageWanted) -> Answer<Page<Customer>>;

    /// An API client.
    fn client(&self, id: ClientId) -> Answer<Option<Client>>;

    /// The API clients of a customer, by id.
    fn clients_of(&self, customer: CustomerId) -> Answer<Vec<Client>>;

    /// An access token and the client it was given to, while both exist.
    fn token(&self, digest: SecretDigest) -> Answer<Option<(AccessToken, Client)>>;

    /// The settings a customer has ever changed.
    fn settings_of(&self, customer: CustomerId) -> Answer<Vec<Setting>>;

    /// A device.
    fn profile(&self, device: DeviceKey) -> Answer<Option<Profile>>;

    /// The device that bears a name, if the name is one of a device.
    fn bearer(&self, name: Name) -> Answer<Option<DeviceKey>>;

    /// Those of the names that devices bear, with the devices whose ids are among them.
    fn known(&self, names: Vec<Name>) -> Answer<Known>;

    /// The device a registration's location names by the first half of its key.
    fn device_at(&self, prefix: [u8; 8]) -> Answer<Option<DeviceKey>>;

    /// Which devices have an address, whoever's they are; of several, the first by key.
    fn at_address(&self, ip: IpAddr) -> Answer<Behind>;

    /// The devices of a customer that pass a filter, by device id.
    fn devices_of(&self, filter: DeviceFilter, page: PageWanted) -> Answer<Page<Profile>>;

    /// Those of them whose device id, ICCID, IMSI, MSISDN or endpoint name begins so.
    fn devices_named(
        &self,
        beginning: Box<str>,
        filter: DeviceFilter,
        page: PageWanted,
    ) -> Answer<Result<Page<Profile>, TooBroad>>;

    /// What a device's actor saved of it last; nothing for a device never heard.
    fn record(&self, device: DeviceKey) -> Answer<Option<DeviceRecord>>;

    /// Everything needed to bring a device back.
    fn restored(&self, device: DeviceKey) -> Answer<Option<Restored>>;

    /// The live devices of a stretch of keys, those with a registration or a pending request: at
    /// most `max` of them, and at most as many as an engine can hold in memory without worry.
    ///
    /// This is what a start asks in the background: it never keeps another question waiting. Rows
    /// are read while commits go on, so what is said of a device is true only if nothing of it
    /// was committed since the page was asked for. Whoever restores from a page passes over the
    /// devices that have or had an actor meanwhile.
    fn restored_page(&self, keys: RangeInclusive<DeviceKey>, max: u32) -> Answer<RestoredPage>;

    /// An action request.
    fn action(&self, id: ActionId) -> Answer<Option<Action>>;

    /// Action requests, in the order the filter names.
    fn actions(&self, filter: ActionFilter, page: PageWanted) -> Answer<Page<ListedAction>>;

    /// All that was promised under a key: as much as one call asked for.
    fn promises_under(&self, key: OnceKey) -> Answer<Vec<Promise>>;

    /// Administration log entries, newest first.
    fn entries(&self, filter: LogFilter, page: PageWanted) -> Answer<Page<Entry>>;

    /// What the log of a customer has of some days, in numbers.
    fn log_statistics(&self, wanted: StatisticsWanted) -> Answer<Statistics>;

    /// The bytes an entry of a customer's log is about, if it is about any.
    fn entry_payload(&self, customer: CustomerId, entry: EntryId) -> Answer<Option<Box<[u8]>>>;

    /// What a device said, newest first, at most `max` events; only what is older than `before`,
    /// where that is given.
    ///
    /// It ends early where it would be too long to hold.
    fn events_of(&self, device: DeviceKey, before: Option<EventId>, max: u32) -> Answer<Stretch>;

    /// The last known values of a device, by path.
    fn values_of(&self, device: DeviceKey) -> Answer<Vec<KnownValue>>;

    /// An event, also one of a removed device while it is still there. It may be removed for its
    /// age while it waits to be delivered: then there is nothing left to deliver. Whoever knows of
    /// it has been told what waits or is set aside, so it is durable, and this waits for nothing.
    fn event(&self, device: DeviceKey, event: EventId) -> Answer<Option<Event>>;

    /// What each customer chose that chose anything: what a start asks.
    fn all_chosen(&self) -> Answer<Vec<Chosen>>;

    /// What a customer chose.
    fn chosen_by(&self, customer: CustomerId) -> Answer<Chosen>;

    /// A definition of a customer.
    fn definition(&self, id: DefinitionId) -> Answer<Option<Definition>>;

    /// The destinations of a customer, by id.
    fn destinations_of(&self, customer: CustomerId) -> Answer<Vec<Destination>>;

    /// A destination.
    fn destination(&self, id: DestinationId) -> Answer<Option<Destination>>;

    /// How far a destination has come; nothing for one that is not there.
    fn standing_of(&self, destination: DestinationId) -> Answer<Standing>;

    /// The shards in which something waits for a destination, exceptions apart.
    fn shards_waiting(&self, destination: DestinationId) -> Answer<Vec<Shard>>;

    /// What waits in a shard for the destinations of a customer behind a number, in order, at most
    /// so much.
    fn waiting(
        &self,
        customer: CustomerId,
        shard: Shard,
        after: Sequence,
        max: u32,
    ) -> Answer<Vec<Waiting>>;

    /// How much waits for a destination, and how many dead letters it has.
    fn backlog(&self, destination: DestinationId) -> Answer<Backlog>;

    /// The dead letters of a destination behind a number, in order, at most so many.
    fn dead_letters(
        &self,
        destination: DestinationId,
        after: Option<Sequence>,
        max: u32,
    ) -> Answer<Vec<DeadLetter>>;

    /// Has the board told of every shard in which something begins to wait for the destinations of
    /// a customer, once that is durable, as long as the board is held. What waited before is not
    /// told: whoever attends asks for that afterwards.
    fn attend(&self, customer: CustomerId) -> Arc<Board>;

    /// Removes what is too old, and what is left of removed customers and devices: at most `max`
    /// things, and at most as many as an engine can remove without holding up commits.
    fn sweep(&self, retention: Retention, max: u32) -> Answer<Swept>;
}
