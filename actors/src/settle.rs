//! How are records changed that no actor owns? Read, decide, and commit with expectations.

use engine::directory::Decision;
use store::{Commit, CommitError};

/// How often a decision is repeated after a conflicting commit.
const RETRIES: u32 = 3;

/// Decides and commits, and repeats both after a conflict.
pub async fn settle<T, E: From<CommitError>>(
    commits: &dyn Commit,
    decide: impl AsyncFn() -> Result<Decision<T>, E>,
) -> Result<T, E> {
    let mut retries_left = RETRIES;
    loop {
        let decided = decide().await?;
        match commits.commit(decided.batch).await {
            Ok(()) => return Ok(decided.answer),
            Err(CommitError::Conflict) if retries_left > 0 => retries_left -= 1,
            Err(error) => return Err(E::from(error)),
        }
    }
}
