//! What is moved from one engine to the other, and what can go wrong?

pub(crate) mod moved;
pub(crate) mod totals;

use engine::sealed::Sealed;

use crate::{OpenError, PostgresOpenError};

/// The size of a page, roughly: a transaction of some tens of milliseconds.
pub(crate) const PAGE_BYTES: usize = 2 * 1_024 * 1_024;

/// Why a store was not moved.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// The embedded store cannot be opened.
    #[error(transparent)]
    Embedded(#[from] OpenError),
    /// The store on PostgreSQL cannot be opened.
    #[error(transparent)]
    Postgres(#[from] PostgresOpenError),
    /// The source has nothing to move.
    #[error("there is no store in the database to move from")]
    NoSource,
    /// Something is stored at the target already.
    #[error("the target is not empty: {0}")]
    NotEmpty(&'static str),
    /// What was moved so far is of another state of the source, or of another source.
    #[error(
        "the target has a part of another store, or of this one before it was changed: empty the \
         target and begin again"
    )]
    OtherSource,
    /// The source was written meanwhile.
    #[error(
        "the source was changed during the migration: stop the service on it, empty the target \
         and begin again"
    )]
    SourceChanged,
    /// What was moved is not what is there.
    #[error("the target is not the same as the source: {0}")]
    Different(String),
    /// What was moved lacks something, as the source does.
    #[error("the target is the same as the source, and does not pass the check: {0}")]
    Broken(String),
    /// A row cannot be read or written.
    #[error("{0}")]
    Failed(String),
}

/// How far a migration is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MigrationProgress {
    /// A part of it was moved by an earlier run.
    Continued,
    /// A page was moved, which ends within this table; the rows that this run has written.
    Moved(&'static str, u64),
    /// Both ends are read again and compared.
    Comparing,
}

/// Who is told of the progress.
pub(crate) type Told<'a> = &'a mut dyn FnMut(MigrationProgress);

/// What both ends have of a table.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TableTotals {
    /// The table, as PostgreSQL has it.
    pub table: &'static str,
    /// The rows of the source.
    pub rows: u64,
    /// The digest of all of them, whatever their order.
    pub digest: u128,
}

/// What was moved.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MigrationReport {
    /// Every table; both ends have the same.
    pub tables: Vec<TableTotals>,
    /// The private key of the service, which tells the master key that sealed it.
    pub server_key: Option<Sealed>,
}

/// A page: its rows, and the place that is reached with it.
pub(crate) struct MovedPage<R> {
    /// The rows.
    pub(crate) rows: R,
    /// How many rows there are.
    pub(crate) count: u64,
    /// The table of the last one.
    pub(crate) table: &'static str,
    /// Behind which place of the source the next page begins.
    pub(crate) reached: Vec<u8>,
}
