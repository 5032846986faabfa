//! What would the endpoint do if nothing had to be kept? A store that says "durable" at once.

use std::sync::Arc;

use engine::change::Batch;
use store::layer::Layer;
use store::{Receipt, SledStore, Store};

/// A store that answers as another does, and keeps nothing.
pub(crate) struct Unwritten(pub(crate) Arc<SledStore>);

impl Layer for Unwritten {
    fn below(&self) -> &dyn Store {
        &*self.0
    }

    fn commit(&self, _: Batch) -> Receipt {
        Box::pin(std::future::ready(Ok(())))
    }
}
