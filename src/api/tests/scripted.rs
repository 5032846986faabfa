//! A store whose next commits are refused as a test says; else they are the real one's.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use engine::change::Batch;
use store::{Commit, CommitError, Pressure, Receipt, SledStore};

/// A store with a script.
pub(super) struct ScriptedStore {
    inner: Arc<SledStore>,
    verdicts: Mutex<VecDeque<Option<CommitError>>>,
}

impl ScriptedStore {
    /// A store that does as the real one until it is told otherwise.
    pub(super) fn new(inner: Arc<SledStore>) -> Self {
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

impl Commit for ScriptedStore {
    fn commit(&self, batch: Batch) -> Receipt {
        match self.verdicts.lock().unwrap().pop_front().flatten() {
            None => self.inner.commit(batch),
            Some(refused) => Box::pin(std::future::ready(Err(refused))),
        }
    }

    fn pressure(&self) -> Pressure {
        self.inner.pressure()
    }
}
