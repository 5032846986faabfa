//! What do callers of the API read? Their credentials, their devices and requests, and the results.

use engine::action::Action;
use engine::admin_log::daily::{Statistics, StatisticsQuery};
use engine::admin_log::entry::Entry;
use engine::bootstrap::BootstrapRecord;
use engine::change::UniqueName;
use engine::customer::{AccessToken, ApiClient, ClientOwner, Customer, SecretDigest};
use engine::definition::{Definition, DefinitionId};
use engine::delivery::destination::Destination;
use engine::directory::import::ExistingDevices;
use engine::idempotency::{IdempotencyKey, IdempotencyRecord};
use engine::ids::{ActionId, ClientId, CustomerId, DeviceKey, EntryId, JobId, ScheduleId};
use engine::job::{Job, JobDevice};
use engine::query::activity::ActivityMinute;
use engine::query::devices::{DeviceFilter, DevicePage, DevicePageRequest, SearchTooBroad};
use engine::query::listed::{HistoryPage, ListedAction};
use engine::query::series::{SampleFilter, SamplePage};
use engine::query::{
    ActionFilter, EntryKind, HistoryFilter, KnownValue, LogFilter, LogSearchTooBroad, Page,
    PageRequest,
};
use engine::schedule::Schedule;
use engine::setting::Setting;

use crate::ReadAnswer;

/// The queries that only callers of the API need.
pub trait DirectoryReads: Send + Sync {
    /// A customer.
    fn customer(&self, id: CustomerId) -> ReadAnswer<Option<Customer>>;

    /// Customers by id.
    fn customers(&self, page: PageRequest) -> ReadAnswer<Page<Customer>>;

    /// An API client.
    fn client(&self, id: ClientId) -> ReadAnswer<Option<ApiClient>>;

    /// The API clients of an owner, by id.
    fn clients_of(&self, owner: ClientOwner) -> ReadAnswer<Vec<ApiClient>>;

    /// An access token and the API client it was issued to, while both exist.
    fn token(&self, digest: SecretDigest) -> ReadAnswer<Option<(AccessToken, ApiClient)>>;

    /// The settings a customer has ever changed.
    fn settings_of(&self, customer: CustomerId) -> ReadAnswer<Vec<Setting>>;

    /// Those of the names that devices have, with the devices whose ids are among them.
    fn existing_devices(&self, names: Vec<UniqueName>) -> ReadAnswer<ExistingDevices>;

    /// The devices of a customer that pass a filter, by device id.
    ///
    /// Where no count tells how many pass, at most [`DEVICES_EXAMINED_MAX`] are examined. A walk
    /// over all of them asks for pages of that size, each behind the end of the previous one.
    ///
    /// [`DEVICES_EXAMINED_MAX`]: engine::limits::DEVICES_EXAMINED_MAX
    fn devices_of(
        &self,
        filter: DeviceFilter,
        wanted: DevicePageRequest,
    ) -> ReadAnswer<Result<DevicePage, SearchTooBroad>>;

    /// An action request.
    fn action(&self, id: ActionId) -> ReadAnswer<Option<Action>>;

    /// Action requests, in the order the filter names.
    fn actions(&self, filter: ActionFilter, page: PageRequest) -> ReadAnswer<Page<ListedAction>>;

    /// All records under an idempotency key: one for each action request that its call created, or
    /// one with its response.
    fn idempotency_records(&self, key: IdempotencyKey) -> ReadAnswer<Vec<IdempotencyRecord>>;

    /// A job.
    fn job(&self, id: JobId) -> ReadAnswer<Option<Job>>;

    /// The jobs of a customer, newest first.
    fn jobs_of(&self, customer: CustomerId, page: PageRequest) -> ReadAnswer<Page<Job>>;

    /// The devices of a job, in the order in which they are asked.
    fn job_devices(&self, job: JobId, page: PageRequest) -> ReadAnswer<Vec<JobDevice>>;

    /// A schedule of a customer.
    fn schedule(&self, customer: CustomerId, id: ScheduleId) -> ReadAnswer<Option<Schedule>>;

    /// The schedules of a customer, newest first.
    fn schedules_of(&self, customer: CustomerId, page: PageRequest) -> ReadAnswer<Page<Schedule>>;

    /// Administration log entries, newest first.
    fn entries(&self, filter: LogFilter, page: PageRequest) -> ReadAnswer<Page<Entry>>;

    /// Administration log entries of a kind, newest first. Refused if more entries than are read
    /// for it pass the filter.
    fn entries_of_kind(
        &self,
        filter: LogFilter,
        kind: EntryKind,
        page: PageRequest,
    ) -> ReadAnswer<Result<Page<Entry>, LogSearchTooBroad>>;

    /// An entry of a customer's log; of a payload only its size.
    fn entry(&self, customer: CustomerId, id: EntryId) -> ReadAnswer<Option<Entry>>;

    /// How busy a customer was in each minute of the last hour that the process has seen.
    fn activity_of(&self, customer: &CustomerId) -> Vec<ActivityMinute>;

    /// The statistics of a customer's log over some days.
    fn log_statistics(&self, wanted: StatisticsQuery) -> ReadAnswer<Statistics>;

    /// The payload of an entry of a customer's log, if it has one.
    fn entry_payload(&self, customer: CustomerId, entry: EntryId) -> ReadAnswer<Option<Box<[u8]>>>;

    /// The events of a device that a filter wants, newest first, at most `max`.
    ///
    /// A page ends early where what was read for it would be too large to hold in memory: it may be
    /// empty, although older events follow.
    fn events_of(&self, filter: HistoryFilter, max: u32) -> ReadAnswer<HistoryPage>;

    /// The numbers that a device reported for a path, read from at most `max` of its events, newest
    /// first.
    fn samples_of(&self, filter: SampleFilter, max: u32) -> ReadAnswer<SamplePage>;

    /// The last known values of a device, by path.
    fn values_of(&self, device: DeviceKey) -> ReadAnswer<Vec<KnownValue>>;

    /// The last bootstrap of a device.
    fn bootstrap_of(&self, device: DeviceKey) -> ReadAnswer<Option<BootstrapRecord>>;

    /// A definition of a customer.
    fn definition(&self, id: DefinitionId) -> ReadAnswer<Option<Definition>>;

    /// The destinations of a customer, by id.
    fn destinations_of(&self, customer: CustomerId) -> ReadAnswer<Vec<Destination>>;
}
