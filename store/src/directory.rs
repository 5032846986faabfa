//! What do callers of the API ask? Who they are, what they have, and what became of it.

use engine::action::Action;
use engine::admin_log::daily::{Statistics, StatisticsWanted};
use engine::admin_log::entry::Entry;
use engine::change::Name;
use engine::customer::{AccessToken, Client, Customer, SecretDigest};
use engine::definition::{Definition, DefinitionId};
use engine::delivery::destination::Destination;
use engine::directory::import::Known;
use engine::ids::{ActionId, ClientId, CustomerId, DeviceKey, EntryId, EventId};
use engine::profile::Profile;
use engine::promise::{OnceKey, Promise};
use engine::query::devices::{DeviceFilter, TooBroad};
use engine::query::listed::{ListedAction, Stretch};
use engine::query::{ActionFilter, KnownValue, LogFilter, Page, PageWanted};
use engine::setting::Setting;

use crate::Answer;

/// What only callers of the API ask.
pub trait DirectoryReads: Send + Sync {
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

    /// Those of the names that devices bear, with the devices whose ids are among them.
    fn known(&self, names: Vec<Name>) -> Answer<Known>;

    /// The devices of a customer that pass a filter, by device id.
    fn devices_of(&self, filter: DeviceFilter, page: PageWanted) -> Answer<Page<Profile>>;

    /// Those of them whose device id, ICCID, IMSI, MSISDN or endpoint name begins so.
    fn devices_named(
        &self,
        beginning: Box<str>,
        filter: DeviceFilter,
        page: PageWanted,
    ) -> Answer<Result<Page<Profile>, TooBroad>>;

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

    /// A definition of a customer.
    fn definition(&self, id: DefinitionId) -> Answer<Option<Definition>>;

    /// The destinations of a customer, by id.
    fn destinations_of(&self, customer: CustomerId) -> Answer<Vec<Destination>>;
}
