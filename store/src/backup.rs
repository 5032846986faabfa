//! How does an operator get a copy of everything in a store while it is written?

use tokio::sync::mpsc::Receiver;

use crate::Unavailable;

/// Copies everything in a store, as it is after one group of commits.
pub trait Backup: Send + Sync {
    /// Begins a backup. Commits go on meanwhile; the backup contains those that were durable before
    /// it ends its last part. Dropping the stream ends it.
    fn backup(&self) -> Result<BackupStream, BackupRefused>;
}

/// The bytes of a backup, in pieces; an error if it cannot be completed.
pub type BackupStream = Receiver<Result<Vec<u8>, Unavailable>>;

/// Why a backup does not begin.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BackupRefused {
    /// Another one is in progress.
    #[error("a backup is in progress")]
    UnderWay,
    /// The store cannot be read, or the disk has no room for what is written meanwhile.
    #[error("the store is unavailable")]
    Unavailable,
    /// The store is a database, whose own tools make better ones.
    #[error("the store is on PostgreSQL: make backups with pg_dump or pg_basebackup")]
    OfDatabase,
}
