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

use crate::postgres::PostgresStore;
use crate::{DirectoryReads, ReadAnswer};

impl DirectoryReads for PostgresStore {
    fn customer(&self, _id: CustomerId) -> ReadAnswer<Option<Customer>> {
        unimplemented!()
    }

    fn customers(&self, _page: PageRequest) -> ReadAnswer<Page<Customer>> {
        unimplemented!()
    }

    fn client(&self, _id: ClientId) -> ReadAnswer<Option<ApiClient>> {
        unimplemented!()
    }

    fn clients_of(&self, _owner: ClientOwner) -> ReadAnswer<Vec<ApiClient>> {
        unimplemented!()
    }

    fn token(&self, _digest: SecretDigest) -> ReadAnswer<Option<(AccessToken, ApiClient)>> {
        unimplemented!()
    }

    fn settings_of(&self, _customer: CustomerId) -> ReadAnswer<Vec<Setting>> {
        unimplemented!()
    }

    fn existing_devices(&self, _names: Vec<UniqueName>) -> ReadAnswer<ExistingDevices> {
        unimplemented!()
    }

    fn devices_of(
        &self,
        _filter: DeviceFilter,
        _wanted: DevicePageRequest,
    ) -> ReadAnswer<Result<DevicePage, SearchTooBroad>> {
        unimplemented!()
    }

    fn action(&self, _id: ActionId) -> ReadAnswer<Option<Action>> {
        unimplemented!()
    }

    fn actions(&self, _filter: ActionFilter, _page: PageRequest) -> ReadAnswer<Page<ListedAction>> {
        unimplemented!()
    }

    fn idempotency_records(&self, _key: IdempotencyKey) -> ReadAnswer<Vec<IdempotencyRecord>> {
        unimplemented!()
    }

    fn job(&self, _id: JobId) -> ReadAnswer<Option<Job>> {
        unimplemented!()
    }

    fn jobs_of(&self, _customer: CustomerId, _page: PageRequest) -> ReadAnswer<Page<Job>> {
        unimplemented!()
    }

    fn job_devices(&self, _job: JobId, _page: PageRequest) -> ReadAnswer<Vec<JobDevice>> {
        unimplemented!()
    }

    fn schedule(&self, _customer: CustomerId, _id: ScheduleId) -> ReadAnswer<Option<Schedule>> {
        unimplemented!()
    }

    fn schedules_of(
        &self,
        _customer: CustomerId,
        _page: PageRequest,
    ) -> ReadAnswer<Page<Schedule>> {
        unimplemented!()
    }

    fn entries(&self, _filter: LogFilter, _page: PageRequest) -> ReadAnswer<Page<Entry>> {
        unimplemented!()
    }

    fn entries_of_kind(
        &self,
        _filter: LogFilter,
        _kind: EntryKind,
        _page: PageRequest,
    ) -> ReadAnswer<Result<Page<Entry>, LogSearchTooBroad>> {
        unimplemented!()
    }

    fn entry(&self, _customer: CustomerId, _id: EntryId) -> ReadAnswer<Option<Entry>> {
        unimplemented!()
    }

    fn activity_of(&self, customer: &CustomerId) -> Vec<ActivityMinute> {
        self.state.activity.of(customer)
    }

    fn log_statistics(&self, _wanted: StatisticsQuery) -> ReadAnswer<Statistics> {
        unimplemented!()
    }

    fn entry_payload(
        &self,
        _customer: CustomerId,
        _entry: EntryId,
    ) -> ReadAnswer<Option<Box<[u8]>>> {
        unimplemented!()
    }

    fn events_of(&self, _filter: HistoryFilter, _max: u32) -> ReadAnswer<HistoryPage> {
        unimplemented!()
    }

    fn samples_of(&self, _filter: SampleFilter, _max: u32) -> ReadAnswer<SamplePage> {
        unimplemented!()
    }

    fn values_of(&self, _device: DeviceKey) -> ReadAnswer<Vec<KnownValue>> {
        unimplemented!()
    }

    fn bootstrap_of(&self, _device: DeviceKey) -> ReadAnswer<Option<BootstrapRecord>> {
        unimplemented!()
    }

    fn definition(&self, _id: DefinitionId) -> ReadAnswer<Option<Definition>> {
        unimplemented!()
    }

    fn destinations_of(&self, _customer: CustomerId) -> ReadAnswer<Vec<Destination>> {
        unimplemented!()
    }
}
