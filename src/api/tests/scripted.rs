//! A store whose next commits are rejected as a test scripts; all else goes to the real store.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use engine::change::Batch;
use store::{Commit, CommitError, Pressure, Receipt, SledStore};

/// A store with scripted commits.
pub(super) struct ScriptedStore {
    inner: Arc<SledStore>,
    verdicts: Mutex<VecDeque<Option<CommitError>>>,
}

impl ScriptedStore {
    /// A store that behaves as the real one until `expect` is called.
    pub(super) fn new(inner: Arc<SledStore>) -> Self {
        Self {
            inner,
            verdicts: Mutex::default(),
        }
    }

    /// The results of the next commits; None passes the commit on.
    pub(super) fn expect(&self, verdicts: &[Option<CommitError>]) {
        self.verdicts.lock().unwrap().extend(verdicts);
    }

    /// How many scripted results are left.
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
