//! What is restored of devices: one of them, or the live ones in a range of keys?
//!
//! A message that a device sent shortly before it is restored may be repeated; the ids of the
//! events that such messages reported are read with it.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use engine::action::Action;
use engine::device::record::RestoredDevice;
use engine::event::EventType;
use engine::ids::{DeviceKey, EventId};
use engine::limits::RESTORED_EVENTS_MS;
use engine::moment::Timestamp;
use tokio_postgres::Row;

use super::{id_in, record};
use crate::RestoredPage;
use crate::postgres::fault::PostgresFault;
use crate::postgres::readers::Reader;
use crate::postgres::sql_types::SqlId;
use crate::record::action::read_action;
use crate::record::code;
use crate::record::device::{ObjectListCache, read_one_of_many};
use crate::record::profile::read_profile;

/// The devices of a page, however many are asked for.
const PAGE_DEVICES_MAX: u32 = 4_096;

/// The bytes of the records of a page: a page takes a few times that in memory. A page ends with
/// the device that reaches it.
const PAGE_BYTES_MAX: i64 = 512 * 1_024;

/// The last reports of a device that are recognised when they are repeated: far more than a device
/// sends within the lifetime of an exchange. Earlier ones are published again.
const RECENT_EVENTS_MAX: i64 = 1_024;

/// Everything needed to restore a device.
pub(super) async fn restored(
    reader: &Reader,
    device: DeviceKey,
    now: Timestamp,
) -> Result<Option<RestoredDevice>, PostgresFault> {
    let restored = DeviceRows::of(reader, &[device], now).await?.restored()?;
    match restored.into_iter().next() {
        Some((_, restored)) => restored.map(Some),
        None => Ok(None),
    }
}

/// The live devices of a range of keys with all their rows.
pub(super) async fn restored_page(
    reader: &Reader,
    keys: &RangeInclusive<DeviceKey>,
    max: u32,
    now: Timestamp,
) -> Result<RestoredPage, PostgresFault> {
    let max = max.min(PAGE_DEVICES_MAX);
    let mut live = live_devices(reader, keys, max.saturating_add(1)).await?;
    let mut bytes = 0;
    let within = live.iter().take(max as usize).take_while(|(_, of_one)| {
        let has_room = bytes < PAGE_BYTES_MAX;
        bytes += of_one;
        has_room
    });
    let rest = live.split_off(within.count());
    let wanted: Vec<DeviceKey> = live.into_iter().map(|(device, _)| device).collect();
    let mut page = RestoredPage {
        devices: Vec::with_capacity(wanted.len()),
        next: rest.first().map(|(device, _)| *device),
    };
    for (device, restored) in DeviceRows::of(reader, &wanted, now).await?.restored()? {
        match restored {
            Ok(restored) => page.devices.push((device, restored)),
            // One damaged row does not prevent other devices from being restored.
            Err(PostgresFault::Unreadable(why)) => {
                tracing::error!(%device, %why, "a device cannot be restored");
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(page)
}

/// The live devices of a range of keys in their order, each with the bytes of its records.
async fn live_devices(
    reader: &Reader,
    keys: &RangeInclusive<DeviceKey>,
    max: u32,
) -> Result<Vec<(DeviceKey, i64)>, PostgresFault> {
    const SQL: &str = "SELECT live.device, \
        coalesce((SELECT octet_length(record) FROM device WHERE key = live.device), 0)::bigint \
        + coalesce((SELECT octet_length(record) FROM device_state \
            WHERE device = live.device), 0) \
        + coalesce((SELECT sum(octet_length(record)) FROM action \
            WHERE device = live.device AND status <= 2), 0)::bigint \
        FROM (SELECT device FROM ( \
            (SELECT device FROM device_state \
                WHERE live AND device >= $1 AND device <= $2 ORDER BY device LIMIT $3) \
            UNION \
            (SELECT DISTINCT device FROM action \
                WHERE status <= 2 AND device >= $1 AND device <= $2 ORDER BY device LIMIT $3) \
            ) AS either ORDER BY device LIMIT $3) AS live \
        ORDER BY live.device";
    let [first, last] = [keys.start(), keys.end()].map(|key| SqlId(*key.as_bytes()));
    let rows = reader.rows(SQL, &[&first, &last, &i64::from(max)]).await?;
    let live = |row: &Row| {
        let device = DeviceKey::from_bytes(id_in(row, 0)?);
        Ok((device, row.try_get(1)?))
    };
    rows.iter().map(live).collect()
}

/// The rows of some devices.
struct DeviceRows {
    /// The profile and the record of each, by key.
    devices: Vec<Row>,
    requests: HashMap<DeviceKey, Vec<Row>>,
    recent_by_device: HashMap<DeviceKey, Vec<EventId>>,
}

/// A device, unless its row cannot be read.
type RestoredRow = (DeviceKey, Result<RestoredDevice, PostgresFault>);

impl DeviceRows {
    async fn of(
        reader: &Reader,
        devices: &[DeviceKey],
        now: Timestamp,
    ) -> Result<Self, PostgresFault> {
        const DEVICES: &str = "SELECT device.key, device.record, device_state.record \
            FROM device LEFT JOIN device_state ON device_state.device = device.key \
            WHERE device.key = ANY($1) ORDER BY device.key";
        const REQUESTS: &str = "SELECT device, record FROM action \
            WHERE device = ANY($1) AND status <= 2 ORDER BY device, id";
        let keys: Vec<SqlId> = devices.iter().map(|it| SqlId(*it.as_bytes())).collect();
        let devices = reader.rows(DEVICES, &[&keys]).await?;
        let mut heard = Vec::with_capacity(devices.len());
        for row in &devices {
            if row.try_get::<_, Option<&[u8]>>(2)?.is_some() {
                heard.push(SqlId(id_in(row, 0)?));
            }
        }
        let mut rows = Self {
            devices,
            requests: HashMap::new(),
            recent_by_device: recent_events(reader, &heard, now).await?,
        };
        for row in reader.rows(REQUESTS, &[&keys]).await? {
            let device = DeviceKey::from_bytes(id_in(&row, 0)?);
            rows.requests.entry(device).or_default().push(row);
        }
        Ok(rows)
    }

    /// The devices, in the order of their keys.
    fn restored(mut self) -> Result<Vec<RestoredRow>, PostgresFault> {
        let mut others = ObjectListCache::default();
        let mut restored = Vec::with_capacity(self.devices.len());
        for row in std::mem::take(&mut self.devices) {
            let device = DeviceKey::from_bytes(id_in(&row, 0)?);
            restored.push((device, self.restored_from(device, &row, &mut others)));
        }
        Ok(restored)
    }

    fn restored_from(
        &mut self,
        device: DeviceKey,
        row: &Row,
        others: &mut ObjectListCache,
    ) -> Result<RestoredDevice, PostgresFault> {
        let requests = self.requests.remove(&device).unwrap_or_default();
        let pending = requests.iter().map(|row| record(row, 1, read_action));
        let kept: Option<&[u8]> = row.try_get(2)?;
        let kept = kept
            .map(|kept| read_one_of_many(kept, others))
            .transpose()?;
        let recent = self.recent_by_device.remove(&device);
        Ok(RestoredDevice {
            profile: record(row, 1, read_profile)?,
            record: kept.unwrap_or_default(),
            pending: pending.collect::<Result<Vec<Action>, PostgresFault>>()?,
            recent_events: recent.unwrap_or_default().into(),
        })
    }
}

/// The reports of devices that they may still repeat, oldest first, without those of former devices
/// with the same keys. A device without a state was never heard: the statement, which is planned
/// anew each time because it reads the partitions of two days, is not worth its cost for one.
async fn recent_events(
    reader: &Reader,
    devices: &[SqlId],
    now: Timestamp,
) -> Result<HashMap<DeviceKey, Vec<EventId>>, PostgresFault> {
    const SQL: &str = "SELECT wanted.device, recent.id \
        FROM unnest($1::uuid[]) AS wanted (device) CROSS JOIN LATERAL ( \
            SELECT id, sequence FROM event \
            WHERE event.device = wanted.device AND id >= $2 AND event_type = $3 \
            AND sequence > coalesce((SELECT last_event FROM removed_history \
                WHERE removed_history.device = wanted.device), -1) \
            ORDER BY sequence DESC LIMIT $4) AS recent \
        ORDER BY wanted.device, recent.sequence";
    if devices.is_empty() {
        return Ok(HashMap::new());
    }
    let from = SqlId::made_from(now.plus_ms(-RESTORED_EVENTS_MS));
    let report = i16::from(code::of_event_type(EventType::TelemetryData));
    let rows = reader
        .rows(SQL, &[&devices, &from, &report, &RECENT_EVENTS_MAX])
        .await?;
    let mut recent: HashMap<DeviceKey, Vec<EventId>> = HashMap::new();
    for row in rows {
        let device = DeviceKey::from_bytes(id_in(&row, 0)?);
        let event = EventId::from_bytes(id_in(&row, 1)?);
        recent.entry(device).or_default().push(event);
    }
    Ok(recent)
}
