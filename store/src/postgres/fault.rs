//! Why did the server not do what was asked?

use std::error::Error as _;

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::record::Unreadable;

/// Why a statement has no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum PostgresFault {
    /// The server refused it, or the connection to it was lost.
    #[error("PostgreSQL: {}", detail(.0))]
    Database(#[from] tokio_postgres::Error),
    /// No connection was to be had.
    #[error("no connection to PostgreSQL: {}", pool_detail(.0))]
    Pool(#[from] PoolError),
    /// A record cannot be decoded.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

impl PostgresFault {
    /// The code of the refusal; none if the server did not answer.
    pub(super) fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Database(error) => error.code(),
            Self::Pool(_) | Self::Unreadable(_) => None,
        }
    }
}

/// Why a pool has no connection.
fn pool_detail(error: &PoolError) -> String {
    match error {
        PoolError::Backend(error) => detail(error),
        PoolError::Timeout(_)
        | PoolError::Closed
        | PoolError::NoRuntimeSpecified
        | PoolError::PostCreateHook(_) => error.to_string(),
    }
}

/// What the server or the system said; the display of the error does not have that.
pub(super) fn detail(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(refusal), _) => refusal.to_string(),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}
