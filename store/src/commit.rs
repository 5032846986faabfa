//! How is something made durable?
//!
//! Commits are apart from reads so that a test can have them fail: it replaces this trait alone,
//! and everything is read from the same store as ever.

use std::future::Future;
use std::pin::Pin;

use engine::change::Batch;

/// What comes of a commit: Ok means durable, power loss included.
pub type Receipt = Pin<Box<dyn Future<Output = Result<(), CommitError>> + Send>>;

/// Makes batches durable.
pub trait Commit: Send + Sync {
    /// Makes a batch durable, all of it or nothing.
    fn commit(&self, batch: Batch) -> Receipt;

    /// Whether new work is welcome; costs nothing to ask.
    fn pressure(&self) -> Pressure;
}

/// Why a batch was not applied; nothing of it was.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CommitError {
    /// Something it expects does not hold: read again and decide anew.
    #[error("what the batch expects does not hold")]
    Conflict,
    /// Its owner was superseded: stop.
    #[error("the owner of the batch was superseded")]
    Fenced,
    /// The queue or the disk is full: try later.
    #[error("the store is full")]
    Full,
    /// The store cannot be written: nothing can be promised.
    #[error("the store is unavailable")]
    Unavailable,
}

/// Whether new work is welcome.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pressure {
    /// It is.
    Open,
    /// The queue or the disk is nearly full: refuse new work before deciding anything.
    Full,
}
