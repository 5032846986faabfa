//! Which queries answer the questions of callers of the API?

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

use super::{actions, customers, devices, entries, events, fleet, jobs, settings};
use crate::postgres::PostgresStore;
use crate::{DirectoryReads, ReadAnswer};

impl DirectoryReads for PostgresStore {
    fn customer(&self, id: CustomerId) -> ReadAnswer<Option<Customer>> {
        self.readers
            .ask(move |reader| async move { customers::customer(&reader, &id).await })
    }

    fn customers(&self, page: PageRequest) -> ReadAnswer<Page<Customer>> {
        self.readers
            .list(move |reader| async move { customers::customers(&reader, page).await })
    }

    fn client(&self, id: ClientId) -> ReadAnswer<Option<ApiClient>> {
        self.readers
            .ask(move |reader| async move { customers::client(&reader, &id).await })
    }

    fn clients_of(&self, owner: ClientOwner) -> ReadAnswer<Vec<ApiClient>> {
        self.readers
            .ask(move |reader| async move { customers::clients_of(&reader, &owner).await })
    }

    fn token(&self, digest: SecretDigest) -> ReadAnswer<Option<(AccessToken, ApiClient)>> {
        self.readers
            .ask(move |reader| async move { customers::token(&reader, &digest).await })
    }

    fn settings_of(&self, customer: CustomerId) -> ReadAnswer<Vec<Setting>> {
        self.readers
            .ask(move |reader| async move { settings::settings_of(&reader, &customer).await })
    }

    fn existing_devices(&self, names: Vec<UniqueName>) -> ReadAnswer<ExistingDevices> {
        self.readers
            .list(move |reader| async move { devices::existing_devices(&reader, names).await })
    }

    fn devices_of(
        &self,
        filter: DeviceFilter,
        wanted: DevicePageRequest,
    ) -> ReadAnswer<Result<DevicePage, SearchTooBroad>> {
        self.readers
            .list(move |reader| async move { fleet::devices_of(&reader, &filter, &wanted).await })
    }

    fn action(&self, id: ActionId) -> ReadAnswer<Option<Action>> {
        self.readers
            .ask(move |reader| async move { actions::action(&reader, id).await })
    }

    fn actions(&self, filter: ActionFilter, page: PageRequest) -> ReadAnswer<Page<ListedAction>> {
        self.readers
            .list(move |reader| async move { actions::actions(&reader, &filter, page).await })
    }

    fn idempotency_records(&self, key: IdempotencyKey) -> ReadAnswer<Vec<IdempotencyRecord>> {
        self.readers
            .ask(move |reader| async move { actions::idempotency_records(&reader, key).await })
    }

    fn job(&self, id: JobId) -> ReadAnswer<Option<Job>> {
        self.readers
            .ask(move |reader| async move { jobs::job(&reader, id).await })
    }

    fn jobs_of(&self, customer: CustomerId, page: PageRequest) -> ReadAnswer<Page<Job>> {
        self.readers
            .list(move |reader| async move { jobs::jobs_of(&reader, &customer, page).await })
    }

    fn job_devices(&self, job: JobId, page: PageRequest) -> ReadAnswer<Vec<JobDevice>> {
        self.readers
            .list(move |reader| async move { jobs::job_devices(&reader, job, page).await })
    }

    fn schedule(&self, customer: CustomerId, id: ScheduleId) -> ReadAnswer<Option<Schedule>> {
        self.readers
            .ask(move |reader| async move { jobs::schedule(&reader, &customer, id).await })
    }

    fn schedules_of(&self, customer: CustomerId, page: PageRequest) -> ReadAnswer<Page<Schedule>> {
        self.readers
            .list(move |reader| async move { jobs::schedules_of(&reader, &customer, page).await })
    }

    fn entries(&self, filter: LogFilter, page: PageRequest) -> ReadAnswer<Page<Entry>> {
        self.readers
            .list(move |reader| async move { entries::entries(&reader, &filter, page).await })
    }

    fn entries_of_kind(
        &self,
        filter: LogFilter,
        kind: EntryKind,
        page: PageRequest,
    ) -> ReadAnswer<Result<Page<Entry>, LogSearchTooBroad>> {
        self.readers.list(move |reader| async move {
            entries::entries_of_kind(&reader, &filter, &kind, page).await
        })
    }

    fn entry(&self, customer: CustomerId, id: EntryId) -> ReadAnswer<Option<Entry>> {
        self.readers
            .ask(move |reader| async move { entries::entry(&reader, &customer, id).await })
    }

    fn activity_of(&self, customer: &CustomerId) -> Vec<ActivityMinute> {
        self.state.activity.of(customer)
    }

    fn log_statistics(&self, wanted: StatisticsQuery) -> ReadAnswer<Statistics> {
        self.readers
            .list(move |reader| async move { entries::statistics(&reader, &wanted).await })
    }

    fn entry_payload(&self, customer: CustomerId, entry: EntryId) -> ReadAnswer<Option<Box<[u8]>>> {
        self.readers
            .ask(move |reader| async move { entries::payload(&reader, &customer, entry).await })
    }

    fn events_of(&self, filter: HistoryFilter, max: u32) -> ReadAnswer<HistoryPage> {
        self.readers
            .list(move |reader| async move { events::events_of(&reader, &filter, max).await })
    }

    fn samples_of(&self, filter: SampleFilter, max: u32) -> ReadAnswer<SamplePage> {
        self.readers
            .list(move |reader| async move { events::samples_of(&reader, &filter, max).await })
    }

    fn values_of(&self, device: DeviceKey) -> ReadAnswer<Vec<KnownValue>> {
        self.readers
            .ask(move |reader| async move { events::values_of(&reader, device).await })
    }

    fn bootstrap_of(&self, device: DeviceKey) -> ReadAnswer<Option<BootstrapRecord>> {
        self.readers
            .ask(move |reader| async move { events::bootstrap_of(&reader, device).await })
    }

    fn definition(&self, id: DefinitionId) -> ReadAnswer<Option<Definition>> {
        self.readers
            .ask(move |reader| async move { settings::definition(&reader, &id).await })
    }

    fn destinations_of(&self, customer: CustomerId) -> ReadAnswer<Vec<Destination>> {
        self.readers
            .ask(move |reader| async move { settings::destinations_of(&reader, &customer).await })
    }
}
