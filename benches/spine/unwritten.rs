//! What would the endpoint do if nothing had to be kept? Commits that are "durable" at once.

use engine::change::Batch;
use store::{Commit, Pressure, Receipt};

/// Keeps nothing.
pub(crate) struct NullStore;

impl Commit for NullStore {
    fn commit(&self, _: Batch) -> Receipt {
        Box::pin(std::future::ready(Ok(())))
    }

    fn pressure(&self) -> Pressure {
        Pressure::Open
    }
}
