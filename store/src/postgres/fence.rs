//! How does a transaction that is no group fail once another process has taken the store over? And
//! how is every process fenced off?
//!
//! Such a transaction locks the epoch for sharing, as every group does, so that a take-over waits
//! for its end.

use deadpool_postgres::ClientWrapper;

use super::fault::PostgresFault;

/// Refuse from now on what any process writes that has served from the store: as the active node,
/// or for partitions. They wait for the commits in progress.
pub(super) const FENCES: [&str; 2] = [
    "UPDATE store_state SET epoch = epoch + 1",
    "UPDATE shard_epoch SET epoch = epoch + 1",
];

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
