//! Commits that can be made to fail: those of the real store behind a switch.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use engine::change::{Batch, Change};
use engine::ids::{DestinationId, DeviceKey};
use store::{Commit, CommitError, Pressure, Receipt, SledStore};
use tokio::sync::oneshot;

/// How commits behave.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FaultMode {
    /// They succeed.
    Well,
    /// The next commit of a device panics.
    PanicOnce,
    /// Every commit of this device panics.
    PanicAlwaysFor(DeviceKey),
    /// The next commit of this destination panics.
    PanicOnceTo(DestinationId),
    /// Every commit of this destination panics.
    PanicAlwaysTo(DestinationId),
    /// The next commit is accepted, and those after it fail.
    UnavailableSoon,
    /// Commits fail.
    Unavailable,
    /// The store accepts nothing new.
    Full,
    /// The disk is slow: commits are durable when the mode ends, and this many may wait.
    SlowUpTo(usize),
}

/// The commits of a store, with a switch.
pub(crate) struct FaultyStore {
    inner: Arc<SledStore>,
    mode: Mutex<FaultMode>,
    refused: AtomicU64,
    times_full: AtomicU64,
    /// Commits that wait for a slow disk.
    waiting: Mutex<Vec<oneshot::Sender<()>>>,
}

impl FaultyStore {
    pub(crate) fn new(inner: Arc<SledStore>) -> Self {
        Self {
            inner,
            mode: Mutex::new(FaultMode::Well),
            refused: AtomicU64::new(0),
            times_full: AtomicU64::new(0),
            waiting: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn set(&self, mode: FaultMode) {
        *self.mode.lock().unwrap() = mode;
        // Whoever waits goes on when its sender is gone.
        self.waiting.lock().unwrap().clear();
    }

    /// How many commits wait for a slow disk.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.lock().unwrap().len()
    }

    fn delay(&self, batch: Batch) -> Receipt {
        let (sender, released) = oneshot::channel();
        self.waiting.lock().unwrap().push(sender);
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let _ = released.await;
            inner.commit(batch).await
        })
    }

    pub(crate) fn mode(&self) -> FaultMode {
        *self.mode.lock().unwrap()
    }

    /// How many commits were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::SeqCst)
    }

    /// How often the store reported that it is full.
    pub(crate) fn times_full(&self) -> u64 {
        self.times_full.load(Ordering::SeqCst)
    }

    fn report_full(&self) -> Pressure {
        self.times_full.fetch_add(1, Ordering::SeqCst);
        Pressure::Full
    }

    fn refuse(&self, error: CommitError) -> Receipt {
        self.refused.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { Err(error) })
    }
}

fn concerns(batch: &Batch, device: DeviceKey) -> bool {
    let is_of =
        |change: &Change| matches!(change, Change::PutRecord { device: d, .. } if *d == device);
    batch.changes.iter().any(is_of)
}

fn is_of_destination(batch: &Batch, id: DestinationId) -> bool {
    let is_of = |change: &Change| {
        matches!(change, Change::PutProgress(progress) if progress.destination == id)
            || matches!(change, Change::PutDestination(destination) if destination.id == id)
    };
    batch.changes.iter().any(is_of)
}

impl Commit for FaultyStore {
    fn commit(&self, batch: Batch) -> Receipt {
        match self.mode() {
            FaultMode::Well => self.inner.commit(batch),
            FaultMode::PanicOnce => {
                self.set(FaultMode::Well);
                panic!("set to panic once");
            }
            FaultMode::PanicAlwaysFor(device) if concerns(&batch, device) => {
                panic!("set to panic always");
            }
            FaultMode::PanicOnceTo(destination) if is_of_destination(&batch, destination) => {
                self.set(FaultMode::Well);
                panic!("set to panic once");
            }
            FaultMode::PanicAlwaysTo(destination) if is_of_destination(&batch, destination) => {
                panic!("set to panic always");
            }
            FaultMode::PanicAlwaysFor(_)
            | FaultMode::PanicOnceTo(_)
            | FaultMode::PanicAlwaysTo(_) => self.inner.commit(batch),
            FaultMode::UnavailableSoon => {
                self.set(FaultMode::Unavailable);
                self.inner.commit(batch)
            }
            FaultMode::Unavailable => self.refuse(CommitError::Unavailable),
            FaultMode::Full => self.refuse(CommitError::Full),
            FaultMode::SlowUpTo(_) => self.delay(batch),
        }
    }

    fn pressure(&self) -> Pressure {
        match self.mode() {
            FaultMode::Full => self.report_full(),
            FaultMode::SlowUpTo(most) if self.waiting() >= most => self.report_full(),
            // The real store answers so, too, once a write has failed.
            FaultMode::Unavailable if self.refused() > 0 => self.report_full(),
            FaultMode::Well
            | FaultMode::PanicOnce
            | FaultMode::PanicAlwaysFor(_)
            | FaultMode::PanicOnceTo(_)
            | FaultMode::PanicAlwaysTo(_)
            | FaultMode::UnavailableSoon
            | FaultMode::SlowUpTo(_)
            | FaultMode::Unavailable => self.inner.pressure(),
        }
    }
}
