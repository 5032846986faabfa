//! How fast would the endpoint be if nothing were stored? Commits that are "durable" at once.

use engine::change::Batch;
use store::{Commit, Pressure, Receipt};

/// Stores nothing.
pub(crate) struct NullStore;

impl Commit for NullStore {
    fn commit(&self, _: Batch) -> Receipt {
        Box::pin(std::future::ready(Ok(())))
    }

    fn pressure(&self) -> Pressure {
        Pressure::Open
    }
}
