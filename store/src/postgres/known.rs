//! Which names, addresses and keys are those of devices, and how many devices are there? Names are
//! read page by page when the store is opened; from then on each group adds its own before it is
//! written.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Pool;
use engine::known_devices::{DeviceMark, KnownDevices};

use super::fault::PostgresFault;
use super::sql_types::SqlId;
use crate::commit_state::CommitState;

/// How many devices are read at once.
const PAGE: i64 = 10_000;

/// How often devices are counted: a million take a tenth of a second.
const COUNT_EVERY: Duration = Duration::from_secs(60);

/// Keeps the metrics of known devices up to date, whichever process adds them.
pub(super) async fn count(pool: Pool, state: Arc<CommitState>) {
    let mut counted = (0, 0);
    loop {
        match count_once(&pool).await {
            Ok((registered, others)) => {
                let (registered_before, others_before) = counted;
                let meters = &state.meters;
                meters.known(registered - registered_before, others - others_before);
                counted = (registered, others);
            }
            Err(fault) => tracing::warn!(%fault, "devices cannot be counted"),
        }
        tokio::time::sleep(COUNT_EVERY).await;
    }
}

async fn count_once(pool: &Pool) -> Result<(i64, i64), PostgresFault> {
    let client = pool.get().await?;
    let counted = client.query_one(
        "SELECT count(*) FILTER (WHERE flags & 1 = 1), count(*) FILTER (WHERE flags & 1 = 0) \
         FROM device",
        &[],
    );
    let counted = counted.await?;
    Ok((counted.get(0), counted.get(1)))
}

/// Adds the devices that are stored.
pub(super) async fn load(pool: &Pool, known: &KnownDevices) -> Result<(), PostgresFault> {
    let client = pool.get().await?;
    let names = client
        .prepare_cached(
            "SELECT name, device FROM device_name WHERE kind = 4 AND name > $1 \
             ORDER BY name LIMIT $2",
        )
        .await?;
    let mut last: Vec<u8> = Vec::new();
    loop {
        let page = client.query(&names, &[&last, &PAGE]).await?;
        for row in &page {
            let (name, device): (Vec<u8>, SqlId) = (row.get(0), row.get(1));
            if let Ok(name) = str::from_utf8(&name) {
                known.add(DeviceMark::Endpoint(name));
            }
            if let Some(half) = device.0.first_chunk() {
                known.add(DeviceMark::Key(*half));
            }
            last = name;
        }
        if page.is_empty() {
            break;
        }
    }
    let addresses = client
        .prepare_cached("SELECT DISTINCT address FROM device WHERE address IS NOT NULL")
        .await?;
    for row in client.query(&addresses, &[]).await? {
        known.add(DeviceMark::Address(row.get::<_, IpAddr>(0)));
    }
    known.complete();
    Ok(())
}
