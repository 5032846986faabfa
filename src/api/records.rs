//! How are records changed that no actor owns? Read, decide, and commit with expectations.

use engine::directory::Decision;
use store::Commit;
use tracing::Instrument as _;

use super::error::ApiError;

/// Decides and commits, and repeats both after a conflict; after some the caller gets 503.
pub(super) async fn settle<T>(
    commits: &dyn Commit,
    decide: impl AsyncFn() -> Result<Decision<T>, ApiError>,
) -> Result<T, ApiError> {
    actors::settle::settle(commits, decide).await
}

/// Completes a change even if the caller disconnects: devices must get every stored change.
pub(super) async fn to_its_end<T: 'static>(
    change: impl Future<Output = Result<T, ApiError>> + 'static,
) -> Result<T, ApiError> {
    let ended = actix_web::rt::spawn(change.in_current_span()).await;
    ended.map_err(ApiError::internal)?
}
