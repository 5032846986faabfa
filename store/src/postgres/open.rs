//! How is a store on PostgreSQL opened, and what prevents that?

use std::time::Duration;

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Pool, PoolError, RecyclingMethod, Runtime,
};
use engine::limits::LAST_VALUES_MAX;
use engine::moment::Timestamp;
use rustls::ClientConfig;
use tokio_postgres::Config;
use tokio_postgres_rustls::MakeRustlsConnect;

/// The migrations of the schema, in `migrations/`.
mod migrations {
    refinery::embed_migrations!("src/postgres/migrations");
}

/// The table in which the migrations that were run are listed.
const HISTORY: &str = "schema_history";

/// The batches that may be queued for the committer, as in the embedded engine.
const QUEUE_MAX: usize = 8_192;

/// How long a connection may take to be there, and a query may wait for one.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// How long a statement may take: a list of a customer with millions of rows needs a second or two.
/// A statement beyond it is cancelled, so that a lost plan does not hold its connection for ever.
/// Statements are neither compiled nor run in parallel: both are planned for a list as if it was
/// read whole.
const STATEMENT_MAX: &str = "SET jit = off; SET max_parallel_workers_per_gather = 0; SET statement_timeout = '30s'; SET idle_in_transaction_session_timeout = '60s'; SET lock_timeout = '10s'; SET client_min_messages = warning";

/// Where the store is and how much it may take.
#[derive(Clone)]
pub struct PostgresOptions {
    /// The address of the server, as libpq has it: `postgres://user:password@host/database`. Several
    /// hosts are tried in turn.
    pub url: String,
    /// The trust that TLS connections need; the address says whether TLS is used (`sslmode`).
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
    /// The default options, for a store at this address.
    pub fn at(url: impl Into<String>, tls: ClientConfig) -> Self {
        Self {
            url: url.into(),
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
    /// The address is not one of a server.
    #[error("the address of the PostgreSQL server cannot be read: {0}")]
    Address(#[source] tokio_postgres::Error),
    /// The server cannot be reached, or refuses the connection.
    #[error("there is no connection to PostgreSQL: {0}")]
    Connect(String),
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
    pub(super) fn of(options: &PostgresOptions) -> Result<Self, PostgresOpenError> {
        let mut config: Config = options.url.parse().map_err(PostgresOpenError::Address)?;
        if config.get_application_name().is_none() {
            config.application_name("signalbox");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_MAX);
        }
        Ok(Self {
            config,
            tls: MakeRustlsConnect::new(options.tls.clone()),
        })
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

/// Brings the schema to the version of this program, unless it is newer.
pub(super) async fn migrate(pool: &Pool) -> Result<(), PostgresOpenError> {
    let mut connection = pool.get().await.map_err(no_connection)?;
    let failed = |error: tokio_postgres::Error| PostgresOpenError::Connect(error.to_string());
    let history = connection.query_one("SELECT to_regclass($1) IS NOT NULL", &[&HISTORY]);
    let has_history: bool = history.await.map_err(failed)?.get(0);
    let mut runner = migrations::migrations::runner();
    runner.set_migration_table_name(HISTORY);
    if has_history {
        let last = runner
            .get_last_applied_migration_async(&mut **connection)
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
    }
    let run = runner.run_async(&mut **connection).await;
    run.map(drop).map_err(PostgresOpenError::Migration)
}

/// Why there is no connection.
pub(super) fn no_connection(error: PoolError) -> PostgresOpenError {
    PostgresOpenError::Connect(error.to_string())
}
