//! How does a transaction that is no group fail once another process has taken the store over?
//!
//! It locks the epoch for sharing, as every group does, so that a take-over waits for its end.

use deadpool_postgres::ClientWrapper;

use super::fault::PostgresFault;

/// Begins a transaction, unless another process has taken the store over since this epoch.
pub(super) async fn begin_unless_superseded(
    epoch: u64,
    client: &ClientWrapper,
) -> Result<bool, PostgresFault> {
    client.batch_execute("BEGIN").await?;
    let newest = "SELECT epoch FROM store_state FOR SHARE";
    let newest: i64 = client.query_one(newest, &[]).await?.get(0);
    let is_superseded = epoch > 0 && epoch < newest.cast_unsigned();
    if is_superseded {
        client.batch_execute("ROLLBACK").await?;
    }
    Ok(!is_superseded)
}
