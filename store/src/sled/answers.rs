//! Which pool of readers answers each query?
//!
//! Answers for callers wait until what they show is durable (`show`, `deliver`); the service's own
//! queries need not (`ask`, `prepare`, `fetch`, `follow`).

use std::future::ready;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use engine::action::Action;
use engine::admin_log::daily::{Statistics, StatisticsQuery};
use engine::admin_log::entry::Entry;
use engine::bootstrap::{BootstrapConfig, BootstrapRecord, BootstrapScope};
use engine::certificate_authorities::CertificateAuthorities;
use engine::change::UniqueName;
use engine::customer::{AccessToken, ApiClient, ClientOwner, Customer, SecretDigest};
use engine::definition::{Definition, DefinitionId};
use engine::delivery::backlog::{Backlog, DeadLetter, DestinationProgress, QueuedEvent, Sequence};
use engine::delivery::destination::Destination;
use engine::device::record::RestoredDevice;
use engine::directory::import::ExistingDevices;
use engine::directory::sms::FoundParts;
use engine::directory::sms::waking::WakeUpFacts;
use engine::dispatch::DevicesAtAddress;
use engine::event::Event;
use engine::firmware::FirmwareImage;
use engine::firmware::campaign::{Campaign, CampaignCounts, CampaignDevice};
use engine::firmware::download::OfferedImage;
use engine::firmware::runner::{CampaignLook, WantedRows};
use engine::idempotency::{IdempotencyKey, IdempotencyRecord};
use engine::ids::{
    ActionId, CampaignId, ClientId, CustomerId, DestinationId, DeviceKey, EntryId, ImageId, JobId,
    Partition, ScheduleId, SmsId,
};
use engine::job::{Job, JobDevice, RestoredPart};
use engine::known_devices::KnownDevices;
use engine::limits::SmsRules;
use engine::moment::Timestamp;
use engine::policy::CustomerSettings;
use engine::profile::Profile;
use engine::query::activity::ActivityMinute;
use engine::query::devices::{DeviceFilter, DevicePage, DevicePageRequest, SearchTooBroad};
use engine::query::listed::{HistoryPage, ListedAction};
use engine::query::series::{SampleFilter, SamplePage};
use engine::query::{
    ActionFilter, EntryKind, HistoryFilter, KnownValue, LogFilter, LogSearchTooBroad, Page,
    PageRequest,
};
use engine::schedule::{OpenRequest, Schedule, ScheduleContents};
use engine::setting::Setting;
use engine::sms::{PartsKey, Sms};

use super::SledStore;
use super::ask::{
    actions, bootstrap, customers, devices, entries, events, firmware, fleet, jobs, outbox,
    restoring, schedules, settings, sms, statistics,
};
use super::ledger::{newest_of, values_of};
use crate::{
    DeliveryReads, DeviceReads, DirectoryReads, EventNews, FirmwareReads, JobReads,
    PartitionNotifier, ReadAnswer, RestoredPage, SmsReads,
};

impl DeviceReads for SledStore {
    fn profile(&self, device: DeviceKey) -> ReadAnswer<Option<Profile>> {
        self.readers.ask(move |db| devices::profile(db, device))
    }

    fn device_by_name(&self, name: UniqueName) -> ReadAnswer<Option<DeviceKey>> {
        self.readers
            .ask(move |db| devices::device_by_name(db, &name))
    }

    fn profile_by_name(&self, name: UniqueName) -> ReadAnswer<Option<Profile>> {
        self.readers
            .ask(move |db| devices::profile_by_name(db, &name))
    }

    fn offered_image(&self, campaign: CampaignId) -> ReadAnswer<Option<OfferedImage>> {
        self.readers
            .show(move |db| firmware::offered_image(db, campaign))
    }

    fn device_at(&self, prefix: [u8; 8]) -> ReadAnswer<Option<DeviceKey>> {
        self.readers.ask(move |db| devices::device_at(db, prefix))
    }

    fn known_devices(&self) -> Arc<KnownDevices> {
        Arc::clone(&self.state.known_devices)
    }

    fn devices_at_address(&self, ip: IpAddr) -> ReadAnswer<DevicesAtAddress> {
        self.readers.ask(move |db| devices::at_address(db, ip))
    }

    fn wake_up_facts(&self, device: DeviceKey, rules: SmsRules) -> ReadAnswer<Option<WakeUpFacts>> {
        self.readers
            .ask(move |db| sms::wake_up_facts(db, device, rules))
    }

    fn bootstrap_config(&self, scope: BootstrapScope) -> ReadAnswer<Option<BootstrapConfig>> {
        self.readers.show(move |db| bootstrap::config(db, &scope))
    }

    fn restored(&self, device: DeviceKey) -> ReadAnswer<Option<RestoredDevice>> {
        let heads = Arc::clone(&self.heads);
        self.readers
            .ask(move |db| devices::restored(db, &heads, device))
    }

    fn restored_page(&self, keys: RangeInclusive<DeviceKey>, max: u32) -> ReadAnswer<RestoredPage> {
        let heads = Arc::clone(&self.heads);
        self.readers
            .prepare(move |db| restoring::restored_page(db, &heads, &keys, max))
    }

    fn all_customer_settings(&self) -> ReadAnswer<Vec<CustomerSettings>> {
        self.readers.prepare(settings::all_customer_settings)
    }

    fn certificate_authorities(
        &self,
        customer: CustomerId,
    ) -> ReadAnswer<Option<CertificateAuthorities>> {
        self.readers.ask(move |db| {
            let customer = customers::customer(db, &customer)?;
            Ok(customer.and_then(|it| it.authorities))
        })
    }

    fn customer_settings(&self, customer: CustomerId) -> ReadAnswer<CustomerSettings> {
        self.readers
            .show(move |db| settings::customer_settings(db, &customer))
    }
}

impl DirectoryReads for SledStore {
    fn customer(&self, id: CustomerId) -> ReadAnswer<Option<Customer>> {
        self.readers.ask(move |db| customers::customer(db, &id))
    }

    fn customers(&self, page: PageRequest) -> ReadAnswer<Page<Customer>> {
        self.readers.show(move |db| customers::customers(db, page))
    }

    fn client(&self, id: ClientId) -> ReadAnswer<Option<ApiClient>> {
        self.readers.ask(move |db| customers::client(db, &id))
    }

    fn clients_of(&self, owner: ClientOwner) -> ReadAnswer<Vec<ApiClient>> {
        self.readers
            .show(move |db| customers::clients_of(db, &owner))
    }

    fn token(&self, digest: SecretDigest) -> ReadAnswer<Option<(AccessToken, ApiClient)>> {
        if let Some(found) = self.tokens.find(&digest).filter(|_| !self.state.failed()) {
            return Box::pin(ready(Ok(Some(found))));
        }
        let tokens = Arc::clone(&self.tokens);
        self.readers.ask(move |db| tokens.read(db, &digest))
    }

    fn settings_of(&self, customer: CustomerId) -> ReadAnswer<Vec<Setting>> {
        self.readers
            .show(move |db| customers::settings_of(db, &customer))
    }

    fn existing_devices(&self, names: Vec<UniqueName>) -> ReadAnswer<ExistingDevices> {
        self.readers.show(move |db| devices::known(db, names))
    }

    fn devices_of(
        &self,
        filter: DeviceFilter,
        wanted: DevicePageRequest,
    ) -> ReadAnswer<Result<DevicePage, SearchTooBroad>> {
        let heads = Arc::clone(&self.heads);
        self.readers
            .show(move |db| fleet::devices_of((db, &heads), &filter, &wanted))
    }

    fn action(&self, id: ActionId) -> ReadAnswer<Option<Action>> {
        self.readers.show(move |db| actions::action(db, id))
    }

    fn actions(&self, filter: ActionFilter, page: PageRequest) -> ReadAnswer<Page<ListedAction>> {
        self.readers
            .show(move |db| actions::actions(db, &filter, page))
    }

    fn idempotency_records(&self, key: IdempotencyKey) -> ReadAnswer<Vec<IdempotencyRecord>> {
        self.readers
            .show(move |db| actions::idempotency_records(db, key))
    }

    fn job(&self, id: JobId) -> ReadAnswer<Option<Job>> {
        self.readers.show(move |db| jobs::job(db, id))
    }

    fn jobs_of(&self, customer: CustomerId, page: PageRequest) -> ReadAnswer<Page<Job>> {
        self.readers
            .show(move |db| jobs::jobs_of(db, &customer, page))
    }

    fn job_devices(&self, job: JobId, page: PageRequest) -> ReadAnswer<Vec<JobDevice>> {
        self.readers
            .show(move |db| jobs::job_devices(db, job, page))
    }

    fn schedule(&self, customer: CustomerId, id: ScheduleId) -> ReadAnswer<Option<Schedule>> {
        self.readers
            .show(move |db| schedules::schedule(db, &customer, id))
    }

    fn schedules_of(&self, customer: CustomerId, page: PageRequest) -> ReadAnswer<Page<Schedule>> {
        self.readers
            .show(move |db| schedules::schedules_of(db, &customer, page))
    }

    fn entries(&self, filter: LogFilter, page: PageRequest) -> ReadAnswer<Page<Entry>> {
        self.readers
            .show(move |db| entries::entries(db, &filter, page))
    }

    fn entries_of_kind(
        &self,
        filter: LogFilter,
        kind: EntryKind,
        page: PageRequest,
    ) -> ReadAnswer<Result<Page<Entry>, LogSearchTooBroad>> {
        self.readers
            .show(move |db| entries::entries_of_kind(db, &filter, &kind, page))
    }

    fn entry(&self, customer: CustomerId, id: EntryId) -> ReadAnswer<Option<Entry>> {
        self.readers
            .show(move |db| entries::entry(db, &customer, id))
    }

    fn activity_of(&self, customer: &CustomerId) -> Vec<ActivityMinute> {
        self.state.activity.of(customer)
    }

    fn log_statistics(&self, wanted: StatisticsQuery) -> ReadAnswer<Statistics> {
        let state = Arc::clone(&self.state);
        self.readers
            .show(move |db| statistics::statistics(db, &state, &wanted))
    }

    fn entry_payload(&self, customer: CustomerId, entry: EntryId) -> ReadAnswer<Option<Box<[u8]>>> {
        self.readers
            .show(move |db| entries::payload(db, &customer, entry))
    }

    fn events_of(&self, filter: HistoryFilter, max: u32) -> ReadAnswer<HistoryPage> {
        let newest = newest_of(&self.heads, filter.device);
        self.readers
            .show(move |db| events::events_of(db, &filter, newest, max))
    }

    fn samples_of(&self, filter: SampleFilter, max: u32) -> ReadAnswer<SamplePage> {
        let newest = newest_of(&self.heads, filter.device);
        self.readers
            .show(move |db| events::samples_of(db, &filter, newest, max))
    }

    fn values_of(&self, device: DeviceKey) -> ReadAnswer<Vec<KnownValue>> {
        let heads = Arc::clone(&self.heads);
        self.readers.show(move |db| values_of(db, &heads, device))
    }

    fn bootstrap_of(&self, device: DeviceKey) -> ReadAnswer<Option<BootstrapRecord>> {
        self.readers.show(move |db| bootstrap::last_of(db, device))
    }

    fn definition(&self, id: DefinitionId) -> ReadAnswer<Option<Definition>> {
        self.readers.show(move |db| settings::definition(db, id))
    }

    fn destinations_of(&self, customer: CustomerId) -> ReadAnswer<Vec<Destination>> {
        self.readers
            .show(move |db| settings::destinations_of(db, &customer))
    }
}

impl SledStore {
    /// Events whose blocks are in memory are answered without a thread.
    fn events_in_memory(
        &self,
        customer: &CustomerId,
        queued: &[QueuedEvent],
    ) -> Option<Vec<Event>> {
        match self.state.failed() {
            true => None,
            false => events::events_in_memory(&self.blocks, customer, queued),
        }
    }
}

impl DeliveryReads for SledStore {
    fn destination(&self, id: DestinationId) -> ReadAnswer<Option<Destination>> {
        self.readers.show(move |db| settings::destination(db, id))
    }

    fn progress_of(&self, destination: DestinationId) -> ReadAnswer<DestinationProgress> {
        self.readers
            .deliver(move |db| outbox::progress_of(db, destination))
    }

    fn partitions_waiting(&self, destination: DestinationId) -> ReadAnswer<Vec<Partition>> {
        self.readers
            .deliver(move |db| outbox::partitions_waiting(db, destination))
    }

    fn waiting(
        &self,
        customer: CustomerId,
        partition: Partition,
        after: Sequence,
        max: u32,
    ) -> ReadAnswer<Vec<QueuedEvent>> {
        let (state, blocks) = (Arc::clone(&self.state), Arc::clone(&self.blocks));
        self.readers.fetch(move |db| {
            let stretch = (after, state.reached());
            outbox::waiting((db, &blocks), &customer, partition, stretch, max)
        })
    }

    fn backlog(&self, destination: DestinationId) -> ReadAnswer<Backlog> {
        let state = Arc::clone(&self.state);
        self.readers
            .show(move |db| outbox::backlog(db, &state, destination))
    }

    fn dead_letters(
        &self,
        destination: DestinationId,
        after: Option<Sequence>,
        max: u32,
    ) -> ReadAnswer<Vec<DeadLetter>> {
        self.readers
            .show(move |db| outbox::dead_letters(db, destination, after, max))
    }

    fn events(&self, customer: CustomerId, queued: Vec<QueuedEvent>) -> ReadAnswer<Vec<Event>> {
        if let Some(events) = self.events_in_memory(&customer, &queued) {
            return Box::pin(ready(Ok(events)));
        }
        let blocks = Arc::clone(&self.blocks);
        self.readers
            .fetch(move |db| events::events((db, &blocks), &customer, &queued))
    }

    fn streamed_rows(
        &self,
        customer: CustomerId,
        partition: Partition,
        after: Sequence,
        max: u32,
    ) -> ReadAnswer<Vec<QueuedEvent>> {
        let (state, blocks) = (Arc::clone(&self.state), Arc::clone(&self.blocks));
        self.readers.follow(move |db| {
            let stretch = (after, state.reached());
            outbox::waiting((db, &blocks), &customer, partition, stretch, max)
        })
    }

    fn streamed_events(
        &self,
        customer: CustomerId,
        queued: Vec<QueuedEvent>,
    ) -> ReadAnswer<Vec<Event>> {
        if let Some(events) = self.events_in_memory(&customer, &queued) {
            return Box::pin(ready(Ok(events)));
        }
        let blocks = Arc::clone(&self.blocks);
        self.readers
            .follow(move |db| events::events((db, &blocks), &customer, &queued))
    }

    fn newest_durable(&self) -> ReadAnswer<Sequence> {
        Box::pin(std::future::ready(Ok(self.state.reached())))
    }

    fn subscribe(&self, customer: CustomerId) -> Arc<PartitionNotifier> {
        self.state.notifiers.subscribe(customer)
    }

    fn subscribe_to_all(&self) -> Arc<EventNews> {
        self.state.notifiers.subscribe_to_all()
    }

    fn note_stored_elsewhere(&self, events: Option<Vec<(CustomerId, Partition)>>) {
        self.state.notifiers.notify_of_others(events);
    }
}

impl JobReads for SledStore {
    fn running_jobs(&self) -> ReadAnswer<Vec<Job>> {
        self.readers.prepare(jobs::running_jobs)
    }

    fn restored_part(&self, job: JobId, part: u32) -> ReadAnswer<Option<RestoredPart>> {
        self.readers
            .show(move |db| jobs::restored_part(db, job, part))
    }

    fn schedules(&self) -> ReadAnswer<Vec<Schedule>> {
        self.readers.prepare(schedules::all)
    }

    fn schedule_contents(&self, schedule: ScheduleId) -> ReadAnswer<Option<ScheduleContents>> {
        self.readers
            .show(move |db| schedules::contents(db, schedule))
    }

    fn open_requests(&self, job: JobId, part: u32) -> ReadAnswer<Option<Vec<OpenRequest>>> {
        self.readers
            .show(move |db| schedules::open_requests(db, job, part))
    }
}

impl FirmwareReads for SledStore {
    fn image(&self, customer: CustomerId, id: ImageId) -> ReadAnswer<Option<FirmwareImage>> {
        self.readers
            .show(move |db| firmware::image(db, &customer, id))
    }

    fn images_of(
        &self,
        customer: CustomerId,
        page: PageRequest,
    ) -> ReadAnswer<Page<FirmwareImage>> {
        self.readers
            .show(move |db| firmware::images_of(db, &customer, page))
    }

    fn images(&self) -> ReadAnswer<Vec<FirmwareImage>> {
        self.readers.prepare(firmware::images)
    }

    fn campaign(&self, customer: CustomerId, id: CampaignId) -> ReadAnswer<Option<Campaign>> {
        self.readers
            .show(move |db| firmware::campaign(db, &customer, id))
    }

    fn campaigns_of(&self, customer: CustomerId, page: PageRequest) -> ReadAnswer<Page<Campaign>> {
        self.readers
            .show(move |db| firmware::campaigns_of(db, &customer, page))
    }

    fn open_campaigns(&self) -> ReadAnswer<Vec<Campaign>> {
        self.readers.prepare(firmware::open_campaigns)
    }

    fn campaign_devices(
        &self,
        id: CampaignId,
        page: PageRequest,
    ) -> ReadAnswer<Vec<CampaignDevice>> {
        self.readers
            .show(move |db| firmware::campaign_devices(db, id, page))
    }

    fn campaign_counts(&self, id: CampaignId) -> ReadAnswer<CampaignCounts> {
        self.readers
            .show(move |db| firmware::campaign_counts(db, id))
    }

    fn campaign_look(&self, id: CampaignId, wanted: WantedRows) -> ReadAnswer<CampaignLook> {
        self.readers
            .show(move |db| firmware::campaign_look(db, id, wanted))
    }
}

impl SmsReads for SledStore {
    fn sms(&self, id: SmsId) -> ReadAnswer<Option<Sms>> {
        self.readers.show(move |db| sms::sms(db, id))
    }

    fn sms_of(&self, device: u64, page: PageRequest) -> ReadAnswer<Page<Sms>> {
        self.readers.show(move |db| sms::sms_of(db, device, page))
    }

    fn sms_of_parts(&self, parts: PartsKey) -> ReadAnswer<FoundParts> {
        self.readers.show(move |db| sms::sms_of_parts(db, parts))
    }

    fn open_sms(&self, device: u64, max: u32) -> ReadAnswer<u32> {
        self.readers.show(move |db| sms::open_sms(db, device, max))
    }

    fn open_sms_of(&self, device: u64, max: u32) -> ReadAnswer<Vec<Sms>> {
        self.readers
            .show(move |db| sms::open_sms_of(db, device, max))
    }

    fn open_sms_by_message(&self, keys: Vec<String>, max: u32) -> ReadAnswer<Vec<Sms>> {
        self.readers
            .show(move |db| sms::open_sms_by_message(db, &keys, max))
    }

    fn sms_for_network(&self, max: u32) -> ReadAnswer<Vec<Sms>> {
        self.readers.show(move |db| sms::sms_for_network(db, max))
    }

    fn sms_due(&self, at: Timestamp, max: u32) -> ReadAnswer<Vec<Sms>> {
        self.readers.show(move |db| sms::sms_due(db, at, max))
    }
}
