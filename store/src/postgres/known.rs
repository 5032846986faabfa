//! Which names, addresses and keys are those of devices? Read page by page when the store is
//! opened; from then on each group adds its own before it is written.

use std::net::IpAddr;

use deadpool_postgres::Pool;
use engine::known_devices::{DeviceMark, KnownDevices};

use super::fault::Fault;
use super::sql_types::SqlId;

/// How many devices are read at once.
const PAGE: i64 = 10_000;

/// Adds the devices that are stored.
pub(super) async fn load(pool: &Pool, known: &KnownDevices) -> Result<(), Fault> {
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
