//! What did a device report, and which values are known of it?

use engine::event::Event;
use engine::ids::{DeviceKey, EventId};
use engine::limits::STRETCH_BYTES_MAX;
use engine::moment::Timestamp;
use engine::query::listed::HistoryPage;
use engine::query::{HistoryFilter, KnownValue};
use sled::Db;

use super::{load, rows_of};
use crate::sled::fault::Fault;
use crate::sled::key;
use crate::sled::record::Unreadable;
use crate::sled::record::event::read_event;
use crate::sled::record::number::read_last_event;
use crate::sled::record::value::read_known;

/// The events of a device that a filter wants, newest first, at most `max`. Events of a former
/// device with the same key are not shown.
pub(in crate::sled) fn events_of(
    db: &Db,
    filter: &HistoryFilter,
    max: u32,
) -> Result<HistoryPage, Fault> {
    let device = filter.device;
    let all = key::event::of_device(device);
    let at = |at: Timestamp| key::event::event(device, EventId::first_at(at));
    let ends = [
        filter
            .before
            .map(|before| key::event::event(device, before)),
        filter.to.map(|to| at(to.plus_ms(1))),
    ];
    let end = ends.into_iter().flatten().min();
    let end = end.unwrap_or_else(|| key::behind(all.clone()));
    let first = match load(db, &key::event::removed_of(device), read_last_event)? {
        Some(last) => key::behind(key::event::event(device, last)),
        None => all,
    };
    let first = filter
        .from
        .map_or(first.clone(), |from| at(from).max(first));
    let end = end.max(first.clone());
    let mut events = Vec::new();
    let mut bytes = 0;
    let mut last = None;
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let keys = db
        .range::<&[u8], _>(first.as_slice()..end.as_slice())
        .keys();
    for key in keys.rev() {
        if events.len() >= max || bytes > STRETCH_BYTES_MAX {
            return Ok(HistoryPage { events, next: last });
        }
        let read = load(db, &key?, |value| {
            bytes += value.len();
            read_event(value)
        })?;
        last = read.as_ref().map(|event| event.id).or(last);
        events.extend(read.filter(|event| filter.wants(event)));
    }
    Ok(HistoryPage { events, next: None })
}

/// An event, while its row exists: the history it is in may be removed already. An unreadable event
/// counts as none, so that it does not block the events behind it.
pub(in crate::sled) fn event(
    db: &Db,
    device: DeviceKey,
    event: EventId,
) -> Result<Option<Event>, Fault> {
    match load(db, &key::event::event(device, event), read_event) {
        Err(fault) if !fault.is_fatal() => {
            tracing::error!(%fault, %device, %event, "an event cannot be read");
            Ok(None)
        }
        found => found,
    }
}

/// The last known values of a device, by path.
pub(in crate::sled) fn values_of(db: &Db, device: DeviceKey) -> Result<Vec<KnownValue>, Fault> {
    let mut values = Vec::new();
    for key in rows_of(db, &key::event::values_of(device)).keys() {
        let key = key?;
        let path = key::event::path_of_value(&key, device);
        let path = path.ok_or(Unreadable::Damaged("the key of a value"))?;
        values.extend(load(db, &key, |value| read_known(path, value))?);
    }
    Ok(values)
}
