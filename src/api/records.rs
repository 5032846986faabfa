//! How are records changed that no actor owns? Read, decide, commit what the decision rests on.

use engine::directory::Decided;
use store::{Commit, CommitError};
use tracing::Instrument as _;

use super::error::Failure;

/// A decision is made anew this often when what it rests on changed meanwhile; callers that
/// compete longer than that are told to come again.
const RETRIES: u32 = 3;

/// Decides and commits until what was decided on still holds.
pub(super) async fn settle<T>(
    commits: &dyn Commit,
    decide: impl AsyncFn() -> Result<Decided<T>, Failure>,
) -> Result<T, Failure> {
    let mut retries_left = RETRIES;
    loop {
        let decided = decide().await?;
        match commits.commit(decided.batch).await {
            Ok(()) => return Ok(decided.answer),
            Err(CommitError::Conflict) if retries_left > 0 => retries_left -= 1,
            Err(error) => return Err(Failure::from(error)),
        }
    }
}

/// What has begun comes to its end even if the caller goes away: devices are to hear of what is
/// durable.
pub(super) async fn to_its_end<T: 'static>(
    change: impl Future<Output = Result<T, Failure>> + 'static,
) -> Result<T, Failure> {
    let ended = actix_web::rt::spawn(change.in_current_span()).await;
    ended.map_err(Failure::internal)?
}
