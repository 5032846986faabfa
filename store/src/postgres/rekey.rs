//! How are all secrets sealed with another master key? In one transaction: nothing remains of a run
//! that was interrupted.

use deadpool_postgres::Pool;
use engine::idempotency::IdempotencyKey;
use engine::ids::DeviceKey;

use super::PostgresStore;
use super::fault::PostgresFault;
use super::sql_types::SqlId;
use crate::record::Unreadable;
use crate::rekey::{RekeyError, RekeyReport, Resealer};
use crate::sealed::MasterKey;

/// The rows that are read and written at once.
const ROWS_AT_ONCE: i32 = 256;

/// Owners of earlier epochs are refused from now on, the active node and those that only have
/// partitions: none of them knows the new key.
const FENCES: [&str; 2] = [
    "UPDATE store_state SET epoch = epoch + 1",
    "UPDATE shard_epoch SET epoch = epoch + 1",
];

/// A table with secrets.
struct SealedTable {
    /// The keys and records of its rows.
    rows: &'static str,
    /// Puts records by their keys.
    put: &'static str,
    /// Seals the secrets of the row with a key anew.
    reseal: Reseal,
}

type Reseal = fn(&mut Resealer<'_>, [u8; 16], &[u8]) -> Result<Vec<u8>, Unreadable>;

/// The tables with secrets. Of idempotency records those of whole calls have some.
const TABLES: [SealedTable; 5] = [
    SealedTable {
        rows: "SELECT key, record FROM device",
        put: "UPDATE device SET record = new.record \
              FROM unnest($1::uuid[], $2::bytea[]) AS new (key, record) WHERE device.key = new.key",
        reseal: |to, _, record| to.profile(record),
    },
    SealedTable {
        rows: "SELECT id, record FROM destination",
        put: "UPDATE destination SET record = new.record \
              FROM unnest($1::uuid[], $2::bytea[]) AS new (id, record) \
              WHERE destination.id = new.id",
        reseal: |to, _, record| to.destination(record),
    },
    SealedTable {
        rows: "SELECT key, record FROM idempotency WHERE device_number = 0 \
               AND device = '00000000-0000-0000-0000-000000000000'",
        put: "UPDATE idempotency SET record = new.record \
              FROM unnest($1::uuid[], $2::bytea[]) AS new (key, record) \
              WHERE idempotency.key = new.key AND device_number = 0 \
              AND device = '00000000-0000-0000-0000-000000000000'",
        reseal: |to, key, record| {
            to.idempotency_record(IdempotencyKey::from_bytes(key), None, record)
        },
    },
    SealedTable {
        rows: "SELECT device, record FROM device_bootstrap_config",
        put: "UPDATE device_bootstrap_config SET record = new.record \
              FROM unnest($1::uuid[], $2::bytea[]) AS new (device, record) \
              WHERE device_bootstrap_config.device = new.device",
        reseal: |to, device, record| to.bootstrap_config(DeviceKey::from_bytes(device), record),
    },
    SealedTable {
        rows: "SELECT '00000000-0000-0000-0000-000000000000'::uuid, server_key FROM store_state \
               WHERE server_key IS NOT NULL",
        put: "UPDATE store_state SET server_key = new.record \
              FROM unnest($1::uuid[], $2::bytea[]) AS new (id, record)",
        reseal: |to, _, record| to.server_key(record),
    },
];

impl PostgresStore {
    /// Seals every secret with another key; they are durable when this returns. A service on the
    /// database writes nothing from then on. Not to be called on a runtime.
    pub fn rekey(&self, from: &MasterKey, to: &MasterKey) -> Result<RekeyReport, RekeyError> {
        let mut resealer = Resealer::new(from, to);
        let resealing = reseal_all(&self.readers.lists, &mut resealer);
        let resealed = self.readers.runtime.block_on(resealing);
        resealed.map_err(|fault| RekeyError(fault.to_string()))?;
        Ok(resealer.report)
    }
}

async fn reseal_all(pool: &Pool, resealer: &mut Resealer<'_>) -> Result<(), PostgresFault> {
    let mut connection = pool.get().await?;
    let transaction = connection.transaction().await?;
    for fence in FENCES {
        transaction.execute(fence, &[]).await?;
    }
    for table in &TABLES {
        let rows = transaction.prepare(table.rows).await?;
        let rows = transaction.bind(&rows, &[]).await?;
        loop {
            let page = transaction.query_portal(&rows, ROWS_AT_ONCE).await?;
            if page.is_empty() {
                break;
            }
            let (mut keys, mut records) = (Vec::new(), Vec::new());
            for row in page {
                let key: SqlId = row.try_get(0)?;
                let before = resealer.report.resealed;
                let record = (table.reseal)(resealer, key.0, row.try_get(1)?)?;
                if resealer.report.resealed > before {
                    keys.push(key);
                    records.push(record);
                }
            }
            transaction.execute(table.put, &[&keys, &records]).await?;
        }
    }
    Ok(transaction.commit().await?)
}
