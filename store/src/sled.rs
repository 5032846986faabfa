//! What makes decisions durable on one machine: an embedded sled tree behind one committer.
//!
//! ```text
//!  commit(batch) -> plan: rows and checks made on the caller's thread
//!        -> bounded queue -> committer thread: check, apply a group as one sled batch, flush,
//!                            fsync -> every receipt of the group
//!  a question    -> bounded queue -> reader threads -> answer
//! ```
//!
//! All that is written goes through the committer and is fsynced before it is acknowledged. sled's
//! own flush does not survive a power cut (it ends in `sync_file_range`), so its file is fsynced
//! through a handle of ours; its background flusher is off and `flush_async` is never called. A
//! question may see a batch between its being applied and its being durable, never half of a row;
//! an answer that is shown to somebody waits until what it saw is durable. A list is not a
//! snapshot.

mod apply;
mod ask;
mod boards;
mod committer;
mod counting;
mod definitions;
mod destinations;
mod disk;
mod epochs;
mod fault;
mod gauge;
mod having;
mod headcount;
mod key;
mod kv;
mod listing;
mod meters;
mod open;
mod outbox;
mod overlay;
mod plan;
mod readers;
mod record;
mod stale;
mod sweep;
#[cfg(test)]
mod tests;

pub use self::open::{OpenError, Options};

use std::fs::File;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use engine::action::Action;
use engine::admin_log::daily::{Statistics, StatisticsWanted};
use engine::admin_log::entry::Entry;
use engine::change::{Batch, Name};
use engine::customer::{AccessToken, Client, Customer, SecretDigest};
use engine::definition::{Definition, DefinitionId};
use engine::delivery::destination::Destination;
use engine::delivery::letter::{Backlog, DeadLetter, Sequence, Standing, Waiting as Letter};
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
use tokio::sync::oneshot;

use self::ask::{
    actions, bearing, customers, devices, entries, events, fleet, letters, promises, restoring,
    statistics, terms,
};
use self::committer::{Caller, Committer, Job, Reply, Waiting};
use self::disk::{Disk, FreeBytes};
use self::gauge::Gauge;
use self::headcount::Headcount;
use self::meters::Contents;
use self::open::Opened;
use self::plan::Plan;
use self::readers::Readers;
use self::sweep::SweepWanted;
use crate::{
    Answer, Board, CommitError, Pressure, Receipt, RestoredPage, Retention, Store, Swept,
    Unavailable,
};

/// The embedded store.
///
/// Dropping it commits what has queued, waits for its threads and closes its files.
pub struct SledStore {
    queue: Option<SyncSender<Job>>,
    committer: Option<JoinHandle<()>>,
    readers: Readers,
    gauge: Arc<Gauge>,
    /// Held until everything else is closed.
    _lock: File,
}

impl SledStore {
    /// Opens the store in a directory, making it if it is not there.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let opened = open::open(&options)?;
        Self::start(opened, &options, disk::free_bytes())
    }

    fn start(opened: Opened, options: &Options, free: FreeBytes) -> Result<Self, OpenError> {
        let refused = |source| OpenError::Io {
            path: options.path.clone(),
            source,
        };
        let Opened {
            db,
            file,
            lock,
            epochs,
            outbox,
        } = opened;
        let gauge = Arc::new(Gauge::new(options.queue_max));
        match Headcount::load(&db) {
            Ok(known) => gauge.meters.known(known),
            Err(fault) => tracing::error!(%fault, "how many devices are known cannot be read"),
        }
        let disk = Disk::new(&options.path, options.disk_reserve_bytes, free);
        let (queue, jobs) = sync_channel(options.queue_max.max(1));
        let known = (epochs, outbox);
        let committer = Committer::new(db.clone(), file, disk, Arc::clone(&gauge), jobs, known);
        let committer = Builder::new()
            .name("store-committer".to_owned())
            .spawn(move || committer.run())
            .map_err(refused)?;
        let readers = Readers::start(&db, &gauge).map_err(refused)?;
        Ok(Self {
            queue: Some(queue),
            committer: Some(committer),
            readers,
            gauge,
            _lock: lock,
        })
    }

    /// Hands a batch to the committer, or says at once why not.
    fn enqueue(&self, batch: &Batch, reply: Reply) -> Result<(), CommitError> {
        if self.gauge.failed() {
            return Err(CommitError::Unavailable);
        }
        let plan = Plan::of(batch);
        let bytes = plan.bytes();
        if !self.gauge.enter(bytes) {
            return Err(CommitError::Full);
        }
        let caller = Caller {
            bytes,
            contents: Contents::of(batch),
            handed_over_at: Instant::now(),
            reply,
        };
        let waiting = Waiting { plan, caller };
        self.send(Job::Commit(Box::new(waiting)))
            .inspect_err(|_| self.gauge.leave(bytes))
    }

    /// Hands a job to the committer and waits for its answer.
    fn answer_of<T: Send + 'static>(
        &self,
        job: Job,
        answer: oneshot::Receiver<Result<T, Unavailable>>,
    ) -> Answer<T> {
        if self.gauge.failed() || self.send(job).is_err() {
            return Box::pin(std::future::ready(Err(Unavailable)));
        }
        Box::pin(async move { answer.await.unwrap_or(Err(Unavailable)) })
    }

    fn send(&self, job: Job) -> Result<(), CommitError> {
        let queue = self.queue.as_ref().ok_or(CommitError::Unavailable)?;
        queue.try_send(job).map_err(|refused| match refused {
            TrySendError::Full(_) => CommitError::Full,
            TrySendError::Disconnected(_) => CommitError::Unavailable,
        })
    }
}

impl Drop for SledStore {
    fn drop(&mut self) {
        self.readers.stop();
        self.queue = None;
        if let Some(committer) = self.committer.take() {
            // A committer that panicked has said so and refused everything since.
            let _ = committer.join();
        }
    }
}

impl Store for SledStore {
    fn commit(&self, batch: Batch) -> Receipt {
        let (reply, verdict) = oneshot::channel();
        if let Err(refused) = self.enqueue(&batch, reply) {
            self.gauge.meters.refused(refused);
            return Box::pin(std::future::ready(Err(refused)));
        }
        Box::pin(async move { verdict.await.unwrap_or(Err(CommitError::Unavailable)) })
    }

    fn take_over(&self) -> Answer<u64> {
        let (reply, begun) = oneshot::channel();
        self.answer_of(Job::TakeOver(reply), begun)
    }

    fn pressure(&self) -> Pressure {
        self.gauge.pressure()
    }

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

    fn profile(&self, device: DeviceKey) -> Answer<Option<Profile>> {
        self.readers.ask(move |db| devices::profile(db, device))
    }

    fn bearer(&self, name: Name) -> Answer<Option<DeviceKey>> {
        self.readers.ask(move |db| devices::bearer(db, &name))
    }

    fn known(&self, names: Vec<Name>) -> Answer<Known> {
        self.readers.show(move |db| bearing::known(db, names))
    }

    fn device_at(&self, prefix: [u8; 8]) -> Answer<Option<DeviceKey>> {
        self.readers.ask(move |db| devices::device_at(db, prefix))
    }

    fn at_address(&self, ip: IpAddr) -> Answer<Behind> {
        self.readers.ask(move |db| devices::at_address(db, ip))
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

    fn record(&self, device: DeviceKey) -> Answer<Option<DeviceRecord>> {
        self.readers.ask(move |db| devices::record(db, device))
    }

    fn restored(&self, device: DeviceKey) -> Answer<Option<Restored>> {
        self.readers.ask(move |db| devices::restored(db, device))
    }

    fn restored_page(&self, keys: RangeInclusive<DeviceKey>, max: u32) -> Answer<RestoredPage> {
        self.readers
            .prepare(move |db| restoring::restored_page(db, &keys, max))
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
            .show(move |db| promises::promises_under(db, key))
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

    fn event(&self, device: DeviceKey, event: EventId) -> Answer<Option<Event>> {
        self.readers
            .fetch(move |db| events::event(db, device, event))
    }

    fn all_chosen(&self) -> Answer<Vec<Chosen>> {
        self.readers.prepare(terms::all_chosen)
    }

    fn chosen_by(&self, customer: CustomerId) -> Answer<Chosen> {
        self.readers.show(move |db| terms::chosen_by(db, &customer))
    }

    fn definition(&self, id: DefinitionId) -> Answer<Option<Definition>> {
        self.readers.show(move |db| terms::definition(db, id))
    }

    fn destinations_of(&self, customer: CustomerId) -> Answer<Vec<Destination>> {
        self.readers
            .show(move |db| terms::destinations_of(db, &customer))
    }

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
    ) -> Answer<Vec<Letter>> {
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

    fn attend(&self, customer: CustomerId) -> Arc<Board> {
        self.gauge.boards.attend(customer)
    }

    fn sweep(&self, retention: Retention, max: u32) -> Answer<Swept> {
        let (reply, swept) = oneshot::channel();
        self.answer_of(
            Job::Sweep(SweepWanted {
                retention,
                max,
                reply,
            }),
            swept,
        )
    }
}
