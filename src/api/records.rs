//! How are records changed that no actor owns? Read, decide, commit what the decision rests on.

use engine::directory::Decided;
use store::{CommitError, Store};

use super::error::Failure;

/// A decision is made anew this often when what it rests on changed meanwhile; callers that
/// compete longer than that are told to come again.
const RETRIES: u32 = 3;

/// Decides and commits until what was decided on still holds.
pub(super) async fn settle<T>(
    store: &dyn Store,
    decide: impl AsyncFn() -> Result<Decided<T>, Failure>,
) -> Result<T, Failure> {
    let mut retries_left = RETRIES;
    loop {
        let decided = decide().await?;
        match store.commit(decided.batch).await {
            Ok(()) => return Ok(decided.answer),
            Err(CommitError::Conflict) if retries_left > 0 => retries_left -= 1,
            Err(error) => return Err(Failure::from(error)),
        }
    }
}
