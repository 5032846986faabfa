//! How is a store on PostgreSQL opened, and what prevents that?

use std::error::Error as _;
use std::io;
use std::time::Duration;

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
};
use engine::limits::LAST_VALUES_MAX;
use engine::moment::Timestamp;
use rustls::ClientConfig;
use tokio_postgres::Config;
use tokio_postgres::error::SqlState;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::fault::detail;
use super::url::PostgresUrl;

/// The migrations of the schema, in `migrations/`.
mod migrations {
    refinery::embed_migrations!("src/postgres/migrations");
}

/// The table in which the migrations that were run are listed.
const HISTORY: &str = "schema_history";

/// How often the migrations are run if another process runs them, too: each waits for that.
const MIGRATION_TRIES_MAX: u32 = 4;

/// The batches that may be queued for the committer, as in the embedded engine.
const QUEUE_MAX: usize = 8_192;

/// How long a connection may take to be there, and a query may wait for one.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// How long a statement may take: a list of a customer with millions of rows needs a second or two.
/// A statement beyond it is cancelled, so that a lost plan does not hold its connection forever.
/// A process that is stopped in a transaction holds its locks, for which a take-over waits, for
/// five seconds at most: between two statements of one are milliseconds.
/// Statements are neither compiled nor run in parallel: both are planned for a list as if it was
/// read whole.
const STATEMENT_MAX: &str = "SET jit = off; \
    SET max_parallel_workers_per_gather = 0; SET statement_timeout = '30s'; \
    SET idle_in_transaction_session_timeout = '5s'; SET lock_timeout = '10s'; \
    SET client_min_messages = warning";

/// Where the store is and how much it may take.
#[derive(Clone)]
pub struct PostgresOptions {
    /// Where the database is.
    pub url: PostgresUrl,
    /// The trust that TLS connections need; the URL says whether TLS is used (`sslmode`).
    pub tls: ClientConfig,
    /// How many connections each of the two pools of readers has; the committer has one of its own.
    pub readers: usize,
    /// How many batches may be queued.
    pub queue_max: usize,
    /// The resources of a device whose last value is stored.
    pub last_values_max: u32,
    /// The time.
    pub now: fn() -> Timestamp,
}

impl PostgresOptions {
    /// The default options, for a store in this database.
    pub fn at(url: PostgresUrl, tls: ClientConfig) -> Self {
        Self {
            url,
            tls,
            readers: 4,
            queue_max: QUEUE_MAX,
            last_values_max: LAST_VALUES_MAX,
            now: Timestamp::default,
        }
    }
}

/// Why a store on PostgreSQL cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum PostgresOpenError {
    /// The server cannot be reached, or is starting or stopping: it may be there soon.
    #[error("PostgreSQL cannot be reached: {0}")]
    Unreachable(String),
    /// The server refuses the connection, or is refused.
    #[error("there is no connection to PostgreSQL: {0}")]
    Refused(String),
    /// A newer version of signalbox wrote the schema.
    #[error(
        "the schema was written by a newer version of signalbox: its last migration is {found}, \
         and this version knows those up to {known}"
    )]
    Newer {
        /// The number and name of the last migration that was run.
        found: String,
        /// The number of the newest migration known.
        known: String,
    },
    /// A migration failed.
    #[error("the schema cannot be migrated: {0}")]
    Migration(#[source] refinery::Error),
    /// What is stored cannot be read.
    #[error("the store on PostgreSQL cannot be read: {0}")]
    Unreadable(String),
    /// A store is being moved into the database.
    #[error(
        "the database has a part of a store whose migration has not ended: run `signalbox migrate` \
         again, or empty the database"
    )]
    Unfinished,
    /// The runtime of the connections cannot be started.
    #[error("the threads of the store cannot be started: {0}")]
    Threads(#[source] std::io::Error),
}

/// The server of a store.
pub(super) struct Server {
    config: Config,
    tls: MakeRustlsConnect,
}

impl Server {
    /// The server that the options name.
    pub(super) fn of(options: &PostgresOptions) -> Self {
        Self::within(options, CONNECT_MAX)
    }

    /// The server that the options name, for who waits so long for a connection: of several hosts
    /// each has its share of that, so that one that is silent does not keep from the next.
    pub(super) fn within(options: &PostgresOptions, connect_max: Duration) -> Self {
        let mut config = options.url.config().clone();
        if config.get_application_name().is_none() {
            config.application_name("signalbox");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(match u32::try_from(config.get_hosts().len()) {
                Ok(hosts @ 2..) => connect_max / hosts,
                Ok(0 | 1) | Err(_) => CONNECT_MAX,
            });
        }
        Self {
            config,
            tls: MakeRustlsConnect::new(options.tls.clone()),
        }
    }

    /// A pool of connections. None of them is made yet.
    pub(super) fn pool(&self, connections: usize) -> Pool {
        let recycling = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let manager = Manager::from_config(self.config.clone(), self.tls.clone(), recycling);
        // Set by a statement: a pooler refuses most parameters of a start-up packet.
        let limits = Hook::async_fn(|client, _| {
            Box::pin(async move {
                let set = client.batch_execute(STATEMENT_MAX).await;
                set.map_err(HookError::Backend)
            })
        });
        let pool = Pool::builder(manager)
            .max_size(connections.max(1))
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(CONNECT_MAX))
            .create_timeout(Some(CONNECT_MAX))
            .post_create(limits);
        pool.build().expect("a pool with a runtime can be built")
    }
}

/// Whether the schema of a store is in the database.
pub(super) async fn is_there(connection: &Object) -> Result<bool, PostgresOpenError> {
    let history = connection.query_one("SELECT to_regclass($1) IS NOT NULL", &[&HISTORY]);
    Ok(history.await.map_err(|why| lost(&why))?.get(0))
}

/// Whether a migration into the database has not ended.
pub(super) async fn is_unfinished(connection: &Object) -> Result<bool, PostgresOpenError> {
    let begun = "SELECT to_regclass('unfinished_migration') IS NOT NULL";
    let begun = connection.query_one(begun, &[]);
    Ok(begun.await.map_err(|why| lost(&why))?.get(0))
}

/// Refuses a database into which a migration has not ended.
pub(super) async fn refuse_unfinished(connection: &Object) -> Result<(), PostgresOpenError> {
    match is_unfinished(connection).await? {
        true => Err(PostgresOpenError::Unfinished),
        false => Ok(()),
    }
}

/// Brings the schema to the version of this program, unless it is newer.
pub(super) async fn migrate(pool: &Pool) -> Result<(), PostgresOpenError> {
    let mut connection = pool.get().await.map_err(no_connection)?;
    refuse_newer(&mut connection).await?;
    let runner = runner();
    let mut tries = 0;
    loop {
        tries += 1;
        match runner.run_async(&mut **connection).await {
            Ok(_) => return Ok(()),
            // Another process creates the same tables at the same time.
            Err(error) if tries < MIGRATION_TRIES_MAX && is_twofold(&error) => {}
            Err(error) => return Err(PostgresOpenError::Migration(error)),
        }
    }
}

/// Refuses a schema that a newer version of this program wrote.
pub(super) async fn refuse_newer(connection: &mut Object) -> Result<(), PostgresOpenError> {
    if !is_there(connection).await? {
        return Ok(());
    }
    let runner = runner();
    let last = runner
        .get_last_applied_migration_async(&mut ***connection)
        .await;
    let last = last.map_err(PostgresOpenError::Migration)?;
    let known = runner.get_migrations().iter().max();
    if last.as_ref().map(|it| it.version()) > known.map(|it| it.version()) {
        let name =
            |it: Option<&refinery::Migration>| it.map_or_else(String::new, |it| it.to_string());
        return Err(PostgresOpenError::Newer {
            found: name(last.as_ref()),
            known: name(known),
        });
    }
    Ok(())
}

/// The version of the schema that this program writes.
pub(super) fn latest_version() -> u32 {
    let known = runner();
    let versions = known.get_migrations().iter();
    let versions = versions.filter_map(|it| u32::try_from(it.version()).ok());
    versions.max().unwrap_or_default()
}

fn runner() -> refinery::Runner {
    let mut runner = migrations::migrations::runner();
    runner.set_migration_table_name(HISTORY);
    runner
}

/// Whether what was to be created is there.
fn is_twofold(error: &refinery::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let code = error.downcast_ref::<tokio_postgres::Error>();
        if let Some(code) = code.and_then(tokio_postgres::Error::code) {
            return [
                SqlState::DUPLICATE_TABLE,
                SqlState::DUPLICATE_OBJECT,
                SqlState::UNIQUE_VIOLATION,
            ]
            .contains(code);
        }
        cause = error.source();
    }
    false
}

/// Why there is no connection.
pub(super) fn no_connection(error: PoolError) -> PostgresOpenError {
    match error {
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
            lost(&error)
        }
        PoolError::Timeout(_) => PostgresOpenError::Unreachable(error.to_string()),
        PoolError::Closed
        | PoolError::NoRuntimeSpecified
        | PoolError::PostCreateHook(HookError::Message(_)) => {
            PostgresOpenError::Refused(error.to_string())
        }
    }
}

/// Why a connection was not made, or ended.
pub(super) fn lost(error: &tokio_postgres::Error) -> PostgresOpenError {
    match is_transient(error) {
        true => PostgresOpenError::Unreachable(detail(error)),
        false => PostgresOpenError::Refused(detail(error)),
    }
}

/// Whether the same may succeed soon: the server, or the way to it, is not there now.
fn is_transient(error: &tokio_postgres::Error) -> bool {
    match (error.code(), error.source()) {
        (Some(code), _) => [
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::TOO_MANY_CONNECTIONS,
        ]
        .contains(code),
        // A failure of TLS is an error of input and output with one of rustls in it.
        (None, Some(cause)) => cause.downcast_ref::<io::Error>().is_some_and(|cause| {
            cause
                .get_ref()
                .is_none_or(|inner| !inner.is::<rustls::Error>())
        }),
        // It was closed, or took too long.
        (None, None) => true,
    }
}
