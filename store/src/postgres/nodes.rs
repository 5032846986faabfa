//! Who has the lease of the shards? What a node asks the database about it, over a connection of
//! its own, so that no commit delays it.
//!
//! All times are of the server's clock. A take-over raises the epoch in the same transaction; it
//! waits for the commits in progress, which lock the epoch for sharing.

use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use engine::ids::NodeId;
use engine::node::KnownNode;
use engine::node::lease::{LeaseAnswer, LeaseRequest, LeaseRules, LeaseSight};
use engine::sealed::Sealed;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::fault::PostgresFault;
use super::open::{
    PostgresOpenError, PostgresOptions, Server, migrate, no_connection, refuse_newer,
    refuse_unfinished,
};
use super::readers::ReaderPools;
use super::sql_types::{SqlId, SqlTime};
use crate::ReadAnswer;
use crate::nodes::{DrainOutcome, Nodes};
use crate::record::server_key::read_server_key;

/// Whether the tables are there that nodes need before they have the lease.
const IS_PREPARED: &str = "SELECT to_regclass('shard_lease') IS NOT NULL";

/// What was stored before this node.
const STATE: &str = "SELECT epoch, server_key FROM store_state";

/// The processes that ran here before have ended, and so has a node of the same name that was not
/// heard for a lease.
const FORGET: &str = "DELETE FROM node WHERE place = $1 \
     OR heartbeat_at < clock_timestamp() - interval '1 day' \
     OR name = $2 AND heartbeat_at < clock_timestamp() - lease_ms * interval '1 millisecond'";

/// Records that the node is there, and returns whether it is to drain.
const BEAT: &str = "INSERT INTO node (id, name, place, version, addresses, lease_ms, draining) \
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO UPDATE SET \
     heartbeat_at = clock_timestamp(), draining = node.draining OR excluded.draining \
     RETURNING draining";

/// Whether a lease may be taken from a place, $1.
const IS_FREE: &str = "(node IS NULL OR ends_at <= clock_timestamp() OR place = $1)";

const SEE: &str = "SELECT max(epoch), bool_and(IS_FREE), \
     bool_and(node IS NULL AND place = $1 \
         AND ends_at > clock_timestamp() - $3::integer * interval '1 millisecond'), \
     EXISTS (SELECT FROM node WHERE id <> $2 AND NOT draining \
         AND heartbeat_at > clock_timestamp() - lease_ms * interval '1 millisecond') \
     FROM shard_lease";

/// The epoch, and the lock that waits for the commits in progress.
const LOCK: &str = "SELECT epoch FROM store_state FOR UPDATE";

const TAKE: &str = "UPDATE shard_lease SET node = $2, place = $1, epoch = $3, \
     ends_at = clock_timestamp() + $4::integer * interval '1 millisecond' \
     WHERE epoch <= $5 AND IS_FREE";

const RAISE: &str = "UPDATE store_state SET epoch = 1 + \
     greatest(epoch, coalesce((SELECT max(epoch) FROM shard_epoch), 0)) RETURNING epoch";

const RENEW: &str = "UPDATE shard_lease \
     SET ends_at = clock_timestamp() + $3::integer * interval '1 millisecond' \
     WHERE node = $1 AND epoch = $2 AND epoch = (SELECT epoch FROM store_state)";

const RELEASE: &str = "UPDATE shard_lease SET node = NULL, ends_at = clock_timestamp() \
     WHERE node = $1";

const STOPS: &str = "UPDATE node SET draining = true WHERE id = $1";

const LEAVE: &str = "DELETE FROM node WHERE id = $1";

const LIST: &str = "SELECT id, name, version, addresses, started_at, heartbeat_at, \
     heartbeat_at > clock_timestamp() - lease_ms * interval '1 millisecond', draining, \
     coalesce(lease.shards, 0), lease.ends_at \
     FROM node LEFT JOIN (SELECT node AS holder, \
         sum(last_shard - first_shard + 1)::bigint AS shards, \
         min(shard_lease.ends_at) AS ends_at FROM shard_lease \
         WHERE shard_lease.ends_at > clock_timestamp() GROUP BY node) AS lease \
     ON lease.holder = node.id ORDER BY started_at, id";

const DRAIN: &str = "UPDATE node SET draining = true WHERE id = $1 RETURNING id";

/// A node as it presents itself.
#[derive(Clone, Debug)]
pub struct NewNode {
    /// Its id.
    pub id: NodeId,
    /// Its name.
    pub name: String,
    /// Where it runs: of two processes with the same place the earlier one has ended.
    pub place: String,
    /// The version of the program.
    pub version: String,
    /// Where it listens once it is active.
    pub addresses: Vec<String>,
    /// How long its leases are.
    pub rules: LeaseRules,
}

/// What was in a database before a node joined.
pub struct FoundStore {
    /// Whether no process has served from it: then nothing in it is sealed.
    pub is_new: bool,
    /// The sealed private key of the service, if there is one.
    pub server_key: Option<Sealed>,
}

/// The database as a node uses it for its lease. To be used on one runtime, which has the
/// connection.
pub struct NodeDatabase {
    pool: Pool,
    node: NewNode,
}

impl NodeDatabase {
    /// The database that the options name.
    pub fn of(options: &PostgresOptions, node: NewNode) -> Self {
        Self {
            pool: Server::of(options).pool(1),
            node,
        }
    }

    /// Joins the nodes of this database. A new database gets its tables first; those of an older
    /// version stay until a node has the lease, unless that version had no nodes.
    pub async fn join(&self) -> Result<FoundStore, PostgresOpenError> {
        let is_prepared: bool = {
            let mut connection = self.pool.get().await.map_err(no_connection)?;
            refuse_newer(&mut connection).await?;
            refuse_unfinished(&connection).await?;
            let row = connection.query_one(IS_PREPARED, &[]).await;
            row.map_err(|error| refused(&error))?.get(0)
        };
        if !is_prepared {
            migrate(&self.pool).await?;
        }
        let connection = self.pool.get().await.map_err(no_connection)?;
        let joined = async {
            connection
                .execute(FORGET, &[&self.node.place, &self.node.name])
                .await?;
            connection.query_one(STATE, &[]).await
        };
        let state = joined.await.map_err(|error| refused(&error))?;
        let key: Option<Vec<u8>> = state.get(1);
        let key = key.map(|key| read_server_key(&key)).transpose();
        Ok(FoundStore {
            is_new: state.get::<_, i64>(0) == 0,
            server_key: key.map_err(|damage| PostgresOpenError::Unreadable(damage.to_string()))?,
        })
    }

    /// Asks; there is no answer if the server cannot be reached or takes longer than this.
    pub async fn ask(&self, request: LeaseRequest, within: Duration) -> LeaseAnswer {
        let asked = async {
            let connecting = timeout(within, self.pool.get()).await;
            let Ok(connection) = connecting else {
                return Ok(LeaseAnswer::None);
            };
            let mut connection = connection?;
            let answered = timeout(within, self.answer(request, &mut connection)).await;
            if !matches!(answered, Ok(Ok(_))) {
                // What was asked may still wait for a lock.
                drop(Object::take(connection));
            }
            answered.unwrap_or(Ok(LeaseAnswer::None))
        };
        match asked.await {
            Ok(LeaseAnswer::None) => {
                tracing::warn!(?request, "the database does not answer for the lease");
                LeaseAnswer::None
            }
            Ok(answer) => answer,
            Err(fault) => {
                let fault: PostgresFault = fault;
                tracing::warn!(%fault, ?request, "the database does not answer for the lease");
                LeaseAnswer::None
            }
        }
    }

    /// Leaves the list of the nodes; nothing is done if the server does not answer within this
    /// time.
    pub async fn leave(&self, within: Duration) {
        let left = async {
            let connection = self.pool.get().await?;
            let id = SqlId(*self.node.id.as_bytes());
            connection.execute(LEAVE, &[&id]).await?;
            Ok::<_, PostgresFault>(())
        };
        if !matches!(timeout(within, left).await, Ok(Ok(()))) {
            tracing::warn!("this node stays in the list of nodes until it starts again");
        }
    }

    async fn answer(
        &self,
        request: LeaseRequest,
        connection: &mut Object,
    ) -> Result<LeaseAnswer, PostgresFault> {
        let id = SqlId(*self.node.id.as_bytes());
        Ok(match request {
            LeaseRequest::Look => LeaseAnswer::Seen(self.look(connection).await?),
            LeaseRequest::Acquire { seen } => self.acquire(seen, connection).await?,
            LeaseRequest::Renew { epoch, is_draining } => {
                self.renew(epoch, is_draining, connection).await?
            }
            LeaseRequest::Release => {
                let transaction = connection.transaction().await?;
                transaction.execute(RELEASE, &[&id]).await?;
                transaction.execute(STOPS, &[&id]).await?;
                transaction.commit().await?;
                LeaseAnswer::Released
            }
        })
    }

    async fn look(&self, connection: &Object) -> Result<LeaseSight, PostgresFault> {
        let is_draining = self.beat(false, connection).await?;
        let see = connection.prepare_cached(&with_freedom(SEE)).await?;
        let id = SqlId(*self.node.id.as_bytes());
        let (place, lease_ms) = (&self.node.place, self.lease_ms());
        let seen = connection.query_one(&see, &[place, &id, &lease_ms]).await?;
        Ok(LeaseSight {
            epoch: seen.get::<_, i64>(0).cast_unsigned(),
            is_free: seen.get(1),
            was_given_up_here: seen.get(2),
            has_others: seen.get(3),
            is_draining,
        })
    }

    async fn acquire(
        &self,
        seen: u64,
        connection: &mut Object,
    ) -> Result<LeaseAnswer, PostgresFault> {
        let transaction = connection.transaction().await?;
        transaction.query_one(LOCK, &[]).await?;
        let epoch: i64 = transaction.query_one(RAISE, &[]).await?.get(0);
        let id = SqlId(*self.node.id.as_bytes());
        let take = with_freedom(TAKE);
        let (place, lease_ms, seen) = (&self.node.place, self.lease_ms(), seen.cast_signed());
        let taken = transaction
            .execute(&take, &[place, &id, &epoch, &lease_ms, &seen])
            .await?;
        // Of several ranges all or none.
        let ranges = "SELECT count(*) FROM shard_lease";
        let ranges: i64 = transaction.query_one(ranges, &[]).await?.get(0);
        if u64::try_from(ranges) != Ok(taken) {
            transaction.rollback().await?;
            return Ok(LeaseAnswer::Taken);
        }
        transaction.commit().await?;
        Ok(LeaseAnswer::Granted(epoch.cast_unsigned()))
    }

    async fn renew(
        &self,
        epoch: u64,
        is_draining: bool,
        connection: &Object,
    ) -> Result<LeaseAnswer, PostgresFault> {
        let renew = connection.prepare_cached(RENEW).await?;
        let id = SqlId(*self.node.id.as_bytes());
        let (epoch, lease_ms) = (epoch.cast_signed(), self.lease_ms());
        let renewed = connection
            .execute(&renew, &[&id, &epoch, &lease_ms])
            .await?;
        if renewed == 0 {
            return Ok(LeaseAnswer::Superseded);
        }
        let is_draining = self.beat(is_draining, connection).await?;
        Ok(LeaseAnswer::Renewed { is_draining })
    }

    async fn beat(&self, is_draining: bool, connection: &Object) -> Result<bool, PostgresFault> {
        let beat = connection.prepare_cached(BEAT).await?;
        let node = &self.node;
        let (id, lease_ms) = (SqlId(*node.id.as_bytes()), self.lease_ms());
        let parameters: [&(dyn ToSql + Sync); 7] = [
            &id,
            &node.name,
            &node.place,
            &node.version,
            &node.addresses,
            &lease_ms,
            &is_draining,
        ];
        Ok(connection.query_one(&beat, &parameters).await?.get(0))
    }

    fn lease_ms(&self) -> i32 {
        i32::try_from(self.node.rules.lease_ms).unwrap_or(i32::MAX)
    }
}

/// The nodes on a database, for a node that may have no lease and no store.
pub struct PostgresNodes(ReaderPools);

impl PostgresNodes {
    /// The nodes on the database that the options name, asked on this runtime.
    pub fn of(options: &PostgresOptions) -> Self {
        let pool = Server::of(options).pool(1);
        Self(ReaderPools {
            runtime: Handle::current(),
            single: pool.clone(),
            lists: pool,
        })
    }
}

impl Nodes for PostgresNodes {
    fn nodes(&self) -> ReadAnswer<Vec<KnownNode>> {
        self.0.ask(|reader| async move {
            let rows = reader.rows(LIST, &[]).await?;
            Ok(rows.iter().map(known_node).collect())
        })
    }

    fn drain(&self, node: NodeId) -> ReadAnswer<DrainOutcome> {
        let id = SqlId(*node.as_bytes());
        self.0.ask(move |reader| async move {
            match reader.row(DRAIN, &[&id]).await? {
                Some(_) => Ok(DrainOutcome::Begun),
                None => Ok(DrainOutcome::Unknown),
            }
        })
    }
}

fn known_node(row: &Row) -> KnownNode {
    let shards: i64 = row.get(8);
    KnownNode {
        id: NodeId::from_bytes(row.get::<_, SqlId>(0).0),
        name: row.get(1),
        version: row.get(2),
        addresses: row.get(3),
        started_at: row.get::<_, SqlTime>(4).0,
        heartbeat_at: row.get::<_, SqlTime>(5).0,
        is_heard: row.get(6),
        is_draining: row.get(7),
        shards: u32::try_from(shards).unwrap_or_default(),
        lease_ends_at: row.get::<_, Option<SqlTime>>(9).map(|at| at.0),
    }
}

fn with_freedom(sql: &str) -> String {
    sql.replace("IS_FREE", IS_FREE)
}

fn refused(error: &tokio_postgres::Error) -> PostgresOpenError {
    PostgresOpenError::Unreadable(super::fault::detail(error))
}
