//! How are records changed that no actor owns? Read, decide, and commit with expectations.

use engine::directory::Decision;
use store::{Commit, CommitError};
use tracing::Instrument as _;

use super::error::ApiError;

/// How often a decision is repeated after a conflicting commit; then the caller gets 503.
const RETRIES: u32 = 3;

/// Decides and commits, and repeats both after a conflict.
pub(super) async fn settle<T>(
    commits: &dyn Commit,
    decide: impl AsyncFn() -> Result<Decision<T>, ApiError>,
) -> Result<T, ApiError> {
    let mut retries_left = RETRIES;
    loop {
        let decided = decide().await?;
        match commits.commit(decided.batch).await {
            Ok(()) => return Ok(decided.answer),
            Err(CommitError::Conflict) if retries_left > 0 => retries_left -= 1,
            Err(error) => return Err(ApiError::from(error)),
        }
    }
}

/// Completes a change even if the caller disconnects: devices must get every stored change.
pub(super) async fn to_its_end<T: 'static>(
    change: impl Future<Output = Result<T, ApiError>> + 'static,
) -> Result<T, ApiError> {
    let ended = actix_web::rt::spawn(change.in_current_span()).await;
    ended.map_err(ApiError::internal)?
}
