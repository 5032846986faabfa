//! How is something made durable?
//!
//! Commits are apart from reads so that a test can make them fail: it replaces this trait alone and
//! reads everything from the real store.

use std::future::Future;
use std::pin::Pin;

use engine::change::Batch;

/// The result of a commit: Ok means durable, even after a power loss.
pub type Receipt = Pin<Box<dyn Future<Output = Result<(), CommitError>> + Send>>;

/// Makes batches durable.
pub trait Commit: Send + Sync {
    /// Makes a batch durable: all of it or nothing.
    fn commit(&self, batch: Batch) -> Receipt;

    /// Whether the store accepts new work; the call is cheap.
    fn pressure(&self) -> Pressure;
}

/// Why a batch was not applied; none of its changes were.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CommitError {
    /// An expectation of the batch does not hold: read again and decide anew.
    #[error("what the batch expects does not hold")]
    Conflict,
    /// The owner of the batch was superseded: stop.
    #[error("the owner of the batch was superseded")]
    Fenced,
    /// The queue or the disk is full, or the server cannot be reached: try later.
    #[error("the store is full")]
    Full,
    /// The store cannot be written: no commit can succeed.
    #[error("the store is unavailable")]
    Unavailable,
}

/// Whether the store accepts new work.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pressure {
    /// It does.
    Open,
    /// The queue is nearly full: refuse new work before deciding anything.
    Full,
    /// The disk is nearly full, or gone: likewise, until there is room.
    DiskFull,
    /// The server of the store cannot be reached: nothing can be written or read until it can.
    Unreachable,
    /// Nothing can be written any more, or perhaps read, until the store is opened again.
    Failed,
}
