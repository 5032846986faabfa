//! A store whose next commits are refused as a test says; else it is the real one.

use std::collections::VecDeque;
use std::sync::Mutex;

use engine::change::Batch;
use store::layer::Layer;
use store::{CommitError, Receipt, SledStore, Store};

/// A store with a script.
pub(super) struct Scripted {
    inner: SledStore,
    verdicts: Mutex<VecDeque<Option<CommitError>>>,
}

impl Scripted {
    /// A store that does as the real one until it is told otherwise.
    pub(super) fn new(inner: SledStore) -> Self {
        Self {
            inner,
            verdicts: Mutex::default(),
        }
    }

    /// What the next commits are refused with; None lets one pass.
    pub(super) fn expect(&self, verdicts: &[Option<CommitError>]) {
        self.verdicts.lock().unwrap().extend(verdicts);
    }

    /// How many verdicts are left.
    pub(super) fn left(&self) -> usize {
        self.verdicts.lock().unwrap().len()
    }
}

impl Layer for Scripted {
    fn below(&self) -> &dyn Store {
        &self.inner
    }

    fn commit(&self, batch: Batch) -> Receipt {
        match self.verdicts.lock().unwrap().pop_front().flatten() {
            None => Store::commit(&self.inner, batch),
            Some(refused) => Box::pin(std::future::ready(Err(refused))),
        }
    }
}
