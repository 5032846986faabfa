//! Who has which lease? What a node asks the database about it, over a connection of its own, so
//! that no commit delays it.
//!
//! All times are of the server's clock. A take-over begins an epoch in the same transaction; it
//! waits for the commits in progress, which lock the epoch of the store for sharing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::{Object, Pool, Transaction};
use engine::change::Fence;
use engine::ids::{NodeId, Partition, Shard};
use engine::node::KnownNode;
use engine::node::lease::{
    LeaseAnswer, LeaseHolder, LeaseId, LeaseRequest, LeaseRules, LeaseSight, SeenLease,
};
use engine::sealed::Sealed;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio::try_join;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::fault::PostgresFault;
use super::open::{
    PostgresOpenError, PostgresOptions, Server, latest_version, migrate, no_connection,
    refuse_newer, refuse_unfinished,
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

/// Records that the node is there.
const BEAT: &str = "INSERT INTO node (id, name, place, version, addresses, lease_ms, draining) \
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO UPDATE SET \
     heartbeat_at = clock_timestamp(), draining = node.draining OR excluded.draining \
     RETURNING draining, (to_jsonb(node) ->> 'shares')::boolean";

const SHARES: &str = "UPDATE node SET shares = $2 WHERE id = $1";

/// Renews the leases of a node, $1 in a place, $2, for a time, $3, and shows all of them. A lease
/// is its own if it was renewed.
const SEE: &str = "WITH renewed AS ( \
         UPDATE {table} SET ends_at = clock_timestamp() + {time} WHERE node = $1 {newest} \
         RETURNING {key}, epoch) \
     SELECT {key}, coalesce(renewed.epoch, {table}.epoch), renewed.epoch IS NOT NULL, {is free}, \
         node IS NULL AND place = $2 AND ends_at > clock_timestamp() - {time}, \
         ends_at <= clock_timestamp() - {time} \
     FROM {table} LEFT JOIN renewed USING ({key}) ORDER BY {key}";

/// Takes the lease of the active node, unless it is of a later epoch than was seen, $4. Its epoch
/// is that after the last one of an active node.
const TAKE: &str = "UPDATE {table} SET node = $1, place = $2, \
     ends_at = clock_timestamp() + {time}, epoch = (SELECT 1 + greatest(store_state.epoch, \
         (SELECT max(epoch) FROM shard_epoch WHERE shard < 1024)) FROM store_state) \
     WHERE {key} = 0 AND epoch <= $4 AND {is free} RETURNING epoch";

/// Locks the leases of partitions, $1, in the order in which every node does.
const LOCK_PARTITIONS: &str =
    "SELECT FROM partition_lease WHERE partition = ANY ($1) ORDER BY partition FOR UPDATE";

/// Takes the leases of partitions, $4, unless they are of later epochs than were seen, $5. Their
/// epochs are those after the last ones of the partitions, whose owners ($6: of which partition)
/// have fences, $7: what its owner has kept is sealed for it.
const TAKE_PARTITIONS: &str = "WITH fenced AS (SELECT partition, max(epoch) AS epoch \
         FROM unnest($6::integer[], $7::integer[]) AS fence (partition, shard) \
         JOIN shard_epoch USING (shard) GROUP BY partition), \
     next AS (SELECT partition, seen, 1 + greatest({table}.epoch, fenced.epoch) AS epoch \
         FROM unnest($4::integer[], $5::bigint[]) AS wanted (partition, seen) \
         JOIN {table} USING (partition) LEFT JOIN fenced USING (partition)) \
     UPDATE {table} SET node = $1, place = $2, epoch = next.epoch, \
         ends_at = clock_timestamp() + {time} FROM next \
     WHERE {table}.{key} = next.partition AND {table}.epoch <= next.seen AND {is free} \
     RETURNING {table}.{key}, {table}.epoch";

/// The nodes that could take a lease, and whether they share the partitions.
const STAYING: &str = "SELECT id, {shares} FROM node WHERE NOT draining \
     AND heartbeat_at > clock_timestamp() - lease_ms * interval '1 millisecond' ORDER BY id";

/// The version of the schema.
const VERSION: &str = "SELECT max(version) FROM schema_history";

/// The version with which there are leases of partitions.
const PARTITION_LEASES: u32 = 4;

/// The epoch, and the lock that waits for the commits in progress of the former active node.
const LOCK: &str = "SELECT epoch FROM store_state FOR UPDATE";

/// Refuses what processes of earlier epochs write.
const RAISE: &str = "UPDATE store_state SET epoch = $1";

/// Refuses what owners, $1, of earlier epochs than these, $2, write.
const FENCE: &str = "INSERT INTO shard_epoch SELECT * \
     FROM unnest($1::integer[], $2::bigint[]) AS fence (shard, epoch) ORDER BY shard \
     ON CONFLICT (shard) DO UPDATE SET epoch = excluded.epoch";

const GIVE_UP: &str = "UPDATE {table} SET node = NULL, ends_at = clock_timestamp() \
     WHERE node = $1 AND {key} = $2 AND epoch = $3";

const RELEASE: &str = "UPDATE {table} SET node = NULL, ends_at = clock_timestamp() WHERE node = $1";

const STOPS: &str = "UPDATE node SET draining = true WHERE id = $1";

const LEAVE: &str = "DELETE FROM node WHERE id = $1";

const LIST: &str = "SELECT id, name, version, addresses, started_at, heartbeat_at, \
     heartbeat_at > clock_timestamp() - lease_ms * interval '1 millisecond', draining, \
     active.ends_at, {partitions} \
     FROM node LEFT JOIN (SELECT node AS holder, shard_lease.ends_at FROM shard_lease \
         WHERE shard_lease.ends_at > clock_timestamp()) AS active \
     ON active.holder = node.id ORDER BY started_at, id";

/// The partitions that a node has, in a list.
const PARTITIONS: &str = "ARRAY(SELECT partition FROM partition_lease \
     WHERE partition_lease.node = node.id AND partition_lease.ends_at > clock_timestamp() \
     ORDER BY partition)";

/// Whether there are such leases.
const HAS_PARTITIONS: &str = "SELECT to_regclass('partition_lease') IS NOT NULL";

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
    /// Whether it takes a part of the partitions beside other nodes. It may begin to while it runs:
    /// once they reach each other.
    pub shares: Arc<AtomicBool>,
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
    /// The version of the schema with which it shares.
    latest_version: u32,
}

impl NodeDatabase {
    /// The database that the options name.
    pub fn of(options: &PostgresOptions, node: NewNode) -> Self {
        let heartbeat = Duration::from_millis(node.rules.heartbeat_ms.into());
        Self {
            pool: Server::within(options, heartbeat).pool(1),
            node,
            latest_version: latest_version(),
        }
    }

    /// Which node it is, and how long its leases are.
    pub fn node(&self) -> (NodeId, LeaseRules) {
        (self.node.id, self.node.rules)
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
    pub async fn ask(&self, request: &LeaseRequest, within: Duration) -> LeaseAnswer {
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
        request: &LeaseRequest,
        connection: &mut Object,
    ) -> Result<LeaseAnswer, PostgresFault> {
        let id = SqlId(*self.node.id.as_bytes());
        Ok(match request {
            LeaseRequest::Beat { is_draining } => {
                LeaseAnswer::Seen(self.beat(*is_draining, connection).await?)
            }
            LeaseRequest::Acquire { leases, is_whole } => {
                let transaction = connection.transaction().await?;
                let taken = self.take(leases, &transaction).await?;
                if taken.is_empty() || (*is_whole && taken.len() < leases.len()) {
                    transaction.rollback().await?;
                    return Ok(LeaseAnswer::Acquired(vec![]));
                }
                transaction.commit().await?;
                LeaseAnswer::Acquired(taken)
            }
            LeaseRequest::GiveUp(lease, epoch) => {
                let (give_up, number) = (LeaseTable::of(*lease).sql(GIVE_UP), number_of(*lease));
                let epoch = epoch.cast_signed();
                connection
                    .execute(&give_up, &[&id, &number, &epoch])
                    .await?;
                LeaseAnswer::GivenUp
            }
            LeaseRequest::Release => {
                let tables = LeaseTable::of_version(version(connection).await?);
                let transaction = connection.transaction().await?;
                for table in tables {
                    transaction.execute(&table.sql(RELEASE), &[&id]).await?;
                }
                transaction.execute(STOPS, &[&id]).await?;
                transaction.commit().await?;
                LeaseAnswer::Released
            }
        })
    }

    /// Records that the node is there, renews its leases, and shows all of them.
    async fn beat(
        &self,
        is_draining: bool,
        connection: &Object,
    ) -> Result<LeaseSight, PostgresFault> {
        let (node, lease_ms) = (&self.node, self.lease_ms());
        let id = SqlId(*node.id.as_bytes());
        let parameters: [&(dyn ToSql + Sync); 7] = [
            &id,
            &node.name,
            &node.place,
            &node.version,
            &node.addresses,
            &lease_ms,
            &is_draining,
        ];
        let beat = async {
            let beat = connection.prepare_cached(BEAT).await?;
            Ok::<_, PostgresFault>(connection.query_one(&beat, &parameters).await?)
        };
        // Each of them is several round trips, which may be long.
        let (beaten, version) = try_join!(beat, version(connection))?;
        let has_partitions = version >= PARTITION_LEASES;
        if has_partitions {
            // Before its schema is there it takes everything or nothing, and brings that along.
            let shares = node.shares.load(Ordering::Relaxed) && version == self.latest_version;
            if beaten.get::<_, Option<bool>>(1) != Some(shares) {
                connection.execute(SHARES, &[&id, &shares]).await?;
            }
        }
        let see = async |table: LeaseTable| {
            let see = connection.prepare_cached(&table.sql(SEE)).await?;
            let parameters: [&(dyn ToSql + Sync); 3] = [&id, &node.place, &lease_ms];
            let rows = connection.query(&see, &parameters).await?;
            let seen = rows.iter().map(|row| table.seen(row));
            Ok::<Vec<SeenLease>, PostgresFault>(seen.collect())
        };
        let partitions = async {
            match has_partitions {
                true => see(LeaseTable::Partitions).await,
                false => Ok(Vec::new()),
            }
        };
        let staying = async {
            let shares = if has_partitions { "shares" } else { "false" };
            let staying = STAYING.replace("{shares}", shares);
            let staying = connection.prepare_cached(&staying).await?;
            Ok(connection.query(&staying, &[]).await?)
        };
        let (mut leases, partitions, staying) =
            try_join!(see(LeaseTable::Shards), partitions, staying)?;
        leases.extend(partitions);
        let staying = staying.iter().map(|row| {
            let id: SqlId = row.get(0);
            (NodeId::from_bytes(id.0), row.get(1))
        });
        let staying: Vec<(NodeId, bool)> = staying.collect();
        let sharing = staying.iter().filter(|(_, shares)| *shares);
        Ok(LeaseSight {
            leases,
            has_others: staying.iter().any(|(id, _)| *id != node.id),
            sharing: sharing.map(|(id, _)| *id).collect(),
            is_draining: beaten.get(0),
        })
    }

    /// Takes those of these leases that are free, in a transaction that is not committed yet. All
    /// partitions are taken at once: a round trip for each would be too long on a slow network.
    async fn take(
        &self,
        leases: &[(LeaseId, u64)],
        transaction: &Transaction<'_>,
    ) -> Result<Vec<(LeaseId, u64)>, PostgresFault> {
        let mut taken = Vec::new();
        let mut partitions = Vec::new();
        for (lease, seen) in leases {
            match lease {
                LeaseId::Active => taken.extend(self.take_active(*seen, transaction).await?),
                LeaseId::Partition(partition) => partitions.push((*partition, *seen)),
            }
        }
        if !partitions.is_empty() {
            partitions.sort_unstable();
            taken.extend(self.take_partitions(&partitions, transaction).await?);
        }
        Ok(taken)
    }

    async fn take_active(
        &self,
        seen: u64,
        transaction: &Transaction<'_>,
    ) -> Result<Option<(LeaseId, u64)>, PostgresFault> {
        let (id, lease_ms) = (SqlId(*self.node.id.as_bytes()), self.lease_ms());
        let take = LeaseTable::Shards.sql(TAKE);
        let (lock, take, raise) = try_join!(
            transaction.prepare_cached(LOCK),
            transaction.prepare_cached(&take),
            transaction.prepare_cached(RAISE),
        )?;
        let seen = seen.cast_signed();
        let parameters: [&(dyn ToSql + Sync); 4] = [&id, &self.node.place, &lease_ms, &seen];
        let (_, taken) = try_join!(
            biased;
            transaction.query_one(&lock, &[]),
            transaction.query_opt(&take, &parameters),
        )?;
        let Some(taken) = taken else {
            return Ok(None);
        };
        let epoch: i64 = taken.get(0);
        transaction.execute(&raise, &[&epoch]).await?;
        Ok(Some((LeaseId::Active, epoch.cast_unsigned())))
    }

    /// Each waits at its fences for the commits in progress of the former owner.
    async fn take_partitions(
        &self,
        partitions: &[(Partition, u64)],
        transaction: &Transaction<'_>,
    ) -> Result<Vec<(LeaseId, u64)>, PostgresFault> {
        let (id, lease_ms) = (SqlId(*self.node.id.as_bytes()), self.lease_ms());
        let (numbers, seen): (Vec<i32>, Vec<i64>) = partitions
            .iter()
            .map(|(partition, seen)| (i32::from(partition.0), seen.cast_signed()))
            .unzip();
        let fences = partitions.iter().flat_map(|(partition, _)| {
            fences_of(*partition).map(|fence| (i32::from(partition.0), fence))
        });
        let (owners, fences): (Vec<i32>, Vec<i32>) = fences.unzip();
        let take = LeaseTable::Partitions.sql(TAKE_PARTITIONS);
        let (lock, take, fence) = try_join!(
            transaction.prepare_cached(LOCK_PARTITIONS),
            transaction.prepare_cached(&take),
            transaction.prepare_cached(FENCE),
        )?;
        let parameters: [&(dyn ToSql + Sync); 7] = [
            &id,
            &self.node.place,
            &lease_ms,
            &numbers,
            &seen,
            &owners,
            &fences,
        ];
        let locked: [&(dyn ToSql + Sync); 1] = [&numbers];
        let (_, taken) = try_join!(
            biased;
            transaction.execute(&lock, &locked),
            transaction.query(&take, &parameters),
        )?;
        let taken = taken.iter().map(|row| (partition_of(row), row.get(1)));
        let mut taken: Vec<(Partition, i64)> = taken.collect();
        taken.sort_unstable();
        let fences = taken
            .iter()
            .flat_map(|(partition, epoch)| fences_of(*partition).map(|fence| (fence, *epoch)));
        let (fences, epochs): (Vec<i32>, Vec<i64>) = fences.unzip();
        transaction.execute(&fence, &[&fences, &epochs]).await?;
        let taken = taken.into_iter();
        let taken = taken.map(|(it, epoch)| (LeaseId::Partition(it), epoch.cast_unsigned()));
        Ok(taken.collect())
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
            let has_partitions = reader.row(HAS_PARTITIONS, &[]).await?;
            let partitions = match has_partitions.is_some_and(|row| row.get(0)) {
                true => PARTITIONS,
                false => "'{}'::integer[]",
            };
            let list = LIST.replace("{partitions}", partitions);
            let rows = reader.rows(&list, &[]).await?;
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
    let lease_ends_at: Option<SqlTime> = row.get(8);
    KnownNode {
        id: NodeId::from_bytes(row.get::<_, SqlId>(0).0),
        name: row.get(1),
        version: row.get(2),
        addresses: row.get(3),
        started_at: row.get::<_, SqlTime>(4).0,
        heartbeat_at: row.get::<_, SqlTime>(5).0,
        is_heard: row.get(6),
        is_draining: row.get(7),
        is_active: lease_ends_at.is_some(),
        lease_ends_at: lease_ends_at.map(|at| at.0),
        partitions: row
            .get::<_, Vec<i32>>(9)
            .into_iter()
            .filter_map(|partition| u8::try_from(partition).ok().map(Partition))
            .collect(),
    }
}

/// The numbers of the owners of a partition: of its shards, and of its deliveries.
fn fences_of(partition: Partition) -> impl Iterator<Item = i32> {
    let shards = partition.shards().map(|Shard(shard)| shard);
    let fences = shards.chain([Fence::of_deliveries(partition).0]);
    fences.map(i32::from)
}

/// The partition whose number a row begins with.
fn partition_of(row: &Row) -> Partition {
    Partition(u8::try_from(row.get::<_, i32>(0)).unwrap_or_default())
}

async fn version(connection: &Object) -> Result<u32, PostgresFault> {
    let version = connection.prepare_cached(VERSION).await?;
    let version: i32 = connection.query_one(&version, &[]).await?.get(0);
    Ok(version.cast_unsigned())
}

/// The key of the row of a lease.
fn number_of(lease: LeaseId) -> i32 {
    match lease {
        LeaseId::Active => 0,
        LeaseId::Partition(partition) => partition.0.into(),
    }
}

/// A table of leases.
#[derive(Clone, Copy)]
enum LeaseTable {
    /// That of the active node: one row.
    Shards,
    /// Those of partitions.
    Partitions,
}

impl LeaseTable {
    fn of(lease: LeaseId) -> Self {
        match lease {
            LeaseId::Active => Self::Shards,
            LeaseId::Partition(_) => Self::Partitions,
        }
    }

    /// The tables of a version of the schema.
    fn of_version(version: u32) -> impl Iterator<Item = Self> {
        let partitions = (version >= PARTITION_LEASES).then_some(Self::Partitions);
        [Self::Shards].into_iter().chain(partitions)
    }

    /// A statement for this table. A lease may be taken if nobody has it, or the process that ran
    /// in this place. That of the active node is renewed only while no process without leases has
    /// taken the store over.
    fn sql(self, sql: &str) -> String {
        let (table, key, newest) = match self {
            Self::Shards => {
                let newest = "AND epoch = (SELECT epoch FROM store_state)";
                ("shard_lease", "first_shard", newest)
            }
            Self::Partitions => ("partition_lease", "partition", ""),
        };
        let is_free = "(node IS NULL OR ends_at <= clock_timestamp() OR place = $2 AND node <> $1)";
        sql.replace("{table}", table)
            .replace("{key}", key)
            .replace("{newest}", newest)
            .replace("{is free}", is_free)
            .replace("{time}", "$3::integer * interval '1 millisecond'")
    }

    /// What a row says of its lease.
    fn seen(self, row: &Row) -> SeenLease {
        let epoch: i64 = row.get(1);
        let id = match self {
            Self::Shards => LeaseId::Active,
            Self::Partitions => LeaseId::Partition(partition_of(row)),
        };
        let holder = match (row.get(2), row.get(3)) {
            (true, _) => LeaseHolder::Own,
            (false, true) => LeaseHolder::Nobody {
                was_given_up_here: row.get(4),
                is_overdue: row.get(5),
            },
            (false, false) => LeaseHolder::Other,
        };
        SeenLease {
            id,
            epoch: epoch.cast_unsigned(),
            holder,
        }
    }
}

fn refused(error: &tokio_postgres::Error) -> PostgresOpenError {
    PostgresOpenError::Unreadable(super::fault::detail(error))
}
