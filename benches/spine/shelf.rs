//! Where do the benches store data? In a real store on the disk of the build.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use actors::clock::Clock;
use engine::change::Batch;
use store::{Commit as _, Maintenance as _, Options, SledStore};
use tokio::task::JoinSet;

use crate::known;
use crate::service::bytes_of;

/// Batches in flight at any time: enough for a full group, and no fleet in memory.
pub(crate) const BATCHES_OPEN: usize = 64;

/// A store in a directory that is removed with it.
pub(crate) struct TempStore {
    /// The store.
    pub(crate) store: Arc<SledStore>,
    /// The epoch in which this process owns its shards.
    pub(crate) epoch: u64,
    /// The time.
    pub(crate) clock: Clock,
    directory: tempfile::TempDir,
}

impl TempStore {
    /// A new store with the first devices of the fleet.
    pub(crate) async fn with_devices(devices: u32) -> Self {
        // The system's temporary directory may be in memory, where nothing is durable.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"));
        let directory = directory.expect("the build's directory takes another");
        let store = SledStore::open(Options::at(directory.path().join("store")));
        let store = Arc::new(store.expect("a new directory takes a store"));
        let epoch = store.take_over().await.expect("a new store answers");
        let shelf = Self {
            store,
            epoch,
            clock: Clock::new(),
            directory,
        };
        shelf
            .commit_all(known::batches(devices), BATCHES_OPEN)
            .await;
        shelf
    }

    /// Closes the store, so that another process can open it; returns its directory.
    pub(crate) fn close(self) -> tempfile::TempDir {
        assert_eq!(Arc::strong_count(&self.store), 1, "nobody uses it");
        self.directory
    }

    /// Commits batches with this many writers, each of which waits for its receipt before it writes
    /// again; returns the latency of each commit.
    pub(crate) async fn commit_all(
        &self,
        batches: impl IntoIterator<Item = Batch, IntoIter: Send + 'static>,
        writers: usize,
    ) -> Vec<Duration> {
        let queue = Arc::new(Mutex::new(batches.into_iter()));
        let mut all = JoinSet::new();
        for _ in 0..writers {
            all.spawn(write(Arc::clone(&self.store), Arc::clone(&queue)));
        }
        all.join_all().await.concat()
    }

    /// How much disk it takes.
    pub(crate) fn bytes(&self) -> u64 {
        bytes_of(self.directory.path())
    }

    /// Commits a batch.
    pub(crate) async fn commit(&self, batch: Batch) {
        self.store
            .commit(batch)
            .await
            .expect("the batch is committed");
    }
}

async fn write(
    store: Arc<SledStore>,
    queue: Arc<Mutex<impl Iterator<Item = Batch>>>,
) -> Vec<Duration> {
    let next = || queue.lock().expect("no writer panics").next();
    let mut waits = Vec::new();
    while let Some(batch) = next() {
        let begun_at = Instant::now();
        let receipt = store.commit(batch);
        receipt.await.expect("the batch is committed");
        waits.push(begun_at.elapsed());
    }
    waits
}
