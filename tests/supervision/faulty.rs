//! Commits that can be told to fail: those of the real store behind a switch.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use engine::change::{Batch, Change};
use engine::ids::{DestinationId, DeviceKey};
use store::{Commit, CommitError, Pressure, Receipt, SledStore};

/// How commits go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FaultMode {
    /// As it should.
    Well,
    /// The next commit of a device panics.
    PanicOnce,
    /// Every commit of this device panics.
    PanicAlwaysFor(DeviceKey),
    /// The next commit of this destination panics.
    PanicOnceTo(DestinationId),
    /// Every commit of this destination panics.
    PanicAlwaysTo(DestinationId),
    /// The next commit is taken, and those behind it fail.
    UnavailableSoon,
    /// Commits fail.
    Unavailable,
    /// It takes in nothing new.
    Full,
}

/// The way into a store, with a switch.
pub(crate) struct FaultyStore {
    inner: Arc<SledStore>,
    mood: Mutex<FaultMode>,
    refused: AtomicU64,
    turned_back: AtomicU64,
}

impl FaultyStore {
    pub(crate) fn new(inner: Arc<SledStore>) -> Self {
        Self {
            inner,
            mood: Mutex::new(FaultMode::Well),
            refused: AtomicU64::new(0),
            turned_back: AtomicU64::new(0),
        }
    }

    pub(crate) fn set(&self, mood: FaultMode) {
        *self.mood.lock().unwrap() = mood;
    }

    pub(crate) fn mood(&self) -> FaultMode {
        *self.mood.lock().unwrap()
    }

    /// How many commits were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::SeqCst)
    }

    /// How often somebody who asked was told that nothing is taken in.
    pub(crate) fn turned_back(&self) -> u64 {
        self.turned_back.load(Ordering::SeqCst)
    }

    fn turn_back(&self) -> Pressure {
        self.turned_back.fetch_add(1, Ordering::SeqCst);
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
        match self.mood() {
            FaultMode::Well => self.inner.commit(batch),
            FaultMode::PanicOnce => {
                self.set(FaultMode::Well);
                panic!("told to panic once");
            }
            FaultMode::PanicAlwaysFor(device) if concerns(&batch, device) => {
                panic!("told to panic always");
            }
            FaultMode::PanicOnceTo(destination) if is_of_destination(&batch, destination) => {
                self.set(FaultMode::Well);
                panic!("told to panic once");
            }
            FaultMode::PanicAlwaysTo(destination) if is_of_destination(&batch, destination) => {
                panic!("told to panic always");
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
        }
    }

    fn pressure(&self) -> Pressure {
        match self.mood() {
            FaultMode::Full => self.turn_back(),
            // As of the real one, once a write of it has failed.
            FaultMode::Unavailable if self.refused() > 0 => self.turn_back(),
            FaultMode::Well
            | FaultMode::PanicOnce
            | FaultMode::PanicAlwaysFor(_)
            | FaultMode::PanicOnceTo(_)
            | FaultMode::PanicAlwaysTo(_)
            | FaultMode::UnavailableSoon
            | FaultMode::Unavailable => self.inner.pressure(),
        }
    }
}
