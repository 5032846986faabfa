//! What can go wrong below a commit or a query?

use std::io;

use crate::record::Unreadable;

/// Why rows could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// sled cannot be trusted any longer.
    #[error("sled: {0}")]
    Sled(#[from] sled::Error),
    /// The file could not be made durable; what is on the disk is unknown.
    #[error("fsync: {0}")]
    Sync(io::Error),
    /// A row does not hold what was written.
    #[error("a row is unreadable: {0}")]
    Unreadable(#[from] Unreadable),
}

impl Fault {
    /// Whether no commit can succeed any more, as opposed to one row being lost.
    pub(super) fn is_fatal(&self) -> bool {
        match self {
            Self::Sled(_) | Self::Sync(_) => true,
            Self::Unreadable(_) => false,
        }
    }
}
