//! What did devices report, and which values are known of them?

use std::collections::HashMap;

use engine::bootstrap::BootstrapRecord;
use engine::delivery::backlog::{QueuedEvent, Sequence};
use engine::event::Event;
use engine::ids::{CustomerId, DeviceKey, EventId};
use engine::limits::STRETCH_BYTES_MAX;
use engine::moment::Timestamp;
use engine::query::listed::HistoryPage;
use engine::query::series::{SampleFilter, SamplePage};
use engine::query::{HistoryFilter, KnownValue};
use engine::{Path, event::EventType};
use tokio_postgres::Row;

use super::{id_in, record, record_in};
use crate::postgres::fault::PostgresFault;
use crate::postgres::readers::Reader;
use crate::postgres::sql_types::SqlId;
use crate::record::bootstrap::read_bootstrap;
use crate::record::event::read_event;
use crate::record::value::read_known;
use crate::record::{Unreadable, code};

/// The events that are read together: a few of them fill a page, and values of devices may make
/// each of them long.
const EVENTS_AT_ONCE: i64 = 64;

/// The events of a device that a filter wants, newest first, at most `max`. Events of a former
/// device with the same key are not shown.
pub(super) async fn events_of(
    reader: &Reader,
    filter: &HistoryFilter,
    max: u32,
) -> Result<HistoryPage, PostgresFault> {
    let mut page = HistoryPage::default();
    let from = filter.from.unwrap_or(Timestamp::from_ms(0));
    let Some(mut history) = History::of(reader, filter.device, filter.before, from).await? else {
        return Ok(page);
    };
    if let Some(to) = filter.to {
        history.end = SqlId::made_from(to.plus_ms(1));
    }
    history.event_type = filter.event_type;
    let (max, mut bytes) = (usize::try_from(max).unwrap_or(usize::MAX), 0);
    let mut last = None;
    loop {
        let rows = history.next(reader).await?;
        if rows.is_empty() {
            return Ok(page);
        }
        for row in rows {
            if page.events.len() >= max || bytes > STRETCH_BYTES_MAX {
                page.next = last;
                return Ok(page);
            }
            let read = event_in(&row, &filter.customer)?;
            bytes += read.bytes;
            last = Some(read.queued.sequence);
            let event = read.event.filter(|event| filter.wants(event));
            page.events.extend(event);
        }
    }
}

/// The samples of a device, from at most `max` events, newest first. Those of a former device with
/// the same key are not among them.
pub(super) async fn samples_of(
    reader: &Reader,
    filter: &SampleFilter,
    max: u32,
) -> Result<SamplePage, PostgresFault> {
    let mut page = SamplePage::default();
    let Some(mut history) = History::of(reader, filter.device, filter.at, filter.from).await?
    else {
        return Ok(page);
    };
    history.before = history
        .before
        .saturating_add(i64::from(filter.at.is_some()));
    loop {
        let rows = history.next(reader).await?;
        if rows.is_empty() {
            return Ok(page);
        }
        for row in rows {
            let read = event_in(&row, &filter.customer)?;
            if page.examined >= max {
                page.next = Some(read.queued.sequence);
                return Ok(page);
            }
            page.examined += 1;
            let samples = read.event.iter().flat_map(|event| filter.samples_of(event));
            page.samples.extend(samples);
        }
    }
}

/// The events of a device, which are read some at a time, newest first.
struct History {
    device: SqlId,
    /// Those before this number are not read yet.
    before: i64,
    /// Events up to this number are of a former device with the same key.
    removed: i64,
    /// Only those with an id from here on.
    from: SqlId,
    /// Only those with an id before this.
    end: SqlId,
    event_type: Option<EventType>,
}

impl History {
    /// Those of a device before one of its events, or all of them; nothing if that is none of its
    /// events.
    async fn of(
        reader: &Reader,
        device: DeviceKey,
        before: Option<Sequence>,
        from: Timestamp,
    ) -> Result<Option<Self>, PostgresFault> {
        const REMOVED: &str = "SELECT last_event FROM removed_history WHERE device = $1";
        const EXISTS: &str = "SELECT FROM event WHERE device = $1 AND sequence = $2 LIMIT 1";
        let device = SqlId(*device.as_bytes());
        let removed = match reader.row(REMOVED, &[&device]).await? {
            Some(row) => row.try_get(0)?,
            None => -1,
        };
        let history = Self {
            device,
            before: before.map_or(i64::MAX, number_of),
            removed,
            from: SqlId::made_from(from),
            end: SqlId([0xff; 16]),
            event_type: None,
        };
        if before.is_none() {
            return Ok(Some(history));
        }
        let found = reader.row(EXISTS, &[&device, &history.before]).await?;
        let is_its_own = found.is_some() && history.before > removed;
        Ok(is_its_own.then_some(history))
    }

    /// The next events.
    async fn next(&mut self, reader: &Reader) -> Result<Vec<Row>, PostgresFault> {
        const SQL: &str = "SELECT sequence, device, id, event_type, lifecycle, record FROM event \
            WHERE device = $1 AND sequence < $2 AND sequence > $3 AND id >= $4 AND id < $5 \
            AND ($6::smallint IS NULL OR event_type = $6) \
            ORDER BY sequence DESC LIMIT $7";
        let event_type = self.event_type.map(|it| i16::from(code::of_event_type(it)));
        let rows = reader
            .rows(
                SQL,
                &[
                    &self.device,
                    &self.before,
                    &self.removed,
                    &self.from,
                    &self.end,
                    &event_type,
                    &EVENTS_AT_ONCE,
                ],
            )
            .await?;
        if let Some(last) = rows.last() {
            self.before = last.try_get(0)?;
        }
        Ok(rows)
    }
}

/// These events, while they are stored: the history they are in may be removed already. One that
/// cannot be read counts as none, so that it does not block the events behind it.
pub(super) async fn events(
    reader: &Reader,
    customer: &CustomerId,
    queued: &[QueuedEvent],
) -> Result<Vec<Event>, PostgresFault> {
    const SQL: &str = "SELECT sequence, device, id, event_type, lifecycle, record FROM event \
        WHERE id = ANY($1) AND customer = $2";
    let ids: Vec<SqlId> = queued
        .iter()
        .map(|it| SqlId(*it.event.as_bytes()))
        .collect();
    let mut event_by_place = HashMap::new();
    for row in reader.rows(SQL, &[&ids, &customer.as_str()]).await? {
        let read = event_in(&row, customer)?;
        let place = (read.queued.sequence, read.queued.event);
        event_by_place.insert(place, read.event);
    }
    let events = queued
        .iter()
        .filter_map(|it| event_by_place.remove(&(it.sequence, it.event)));
    Ok(events.flatten().collect())
}

/// An event that was read.
struct ReadEvent {
    queued: QueuedEvent,
    /// How long its record is.
    bytes: usize,
    /// The event, unless its record cannot be read.
    event: Option<Event>,
}

/// Reads an event from the columns `sequence, device, id, event_type, lifecycle, record`.
fn event_in(row: &Row, customer: &CustomerId) -> Result<ReadEvent, PostgresFault> {
    let queued = queued_in(row)?;
    let value: &[u8] = row.try_get(5)?;
    let event = read_event(customer, &queued, value).inspect_err(|why| {
        tracing::error!(%why, device = %queued.device, "an event cannot be read");
    });
    Ok(ReadEvent {
        queued,
        bytes: value.len(),
        event: event.ok(),
    })
}

/// Reads a queued event from the columns `sequence, device, id, event_type, lifecycle`.
pub(super) fn queued_in(row: &Row) -> Result<QueuedEvent, PostgresFault> {
    let (sequence, event_type): (i64, i16) = (row.try_get(0)?, row.try_get(3)?);
    let lifecycle: Option<i16> = row.try_get(4)?;
    Ok(QueuedEvent {
        sequence: Sequence(sequence.cast_unsigned()),
        device: DeviceKey::from_bytes(id_in(row, 1)?),
        event: EventId::from_bytes(id_in(row, 2)?),
        event_type: code::event_type(small(event_type)?)?,
        lifecycle: match lifecycle {
            Some(lifecycle) => Some(code::lifecycle(small(lifecycle)?)?),
            None => None,
        },
    })
}

fn small(code: i16) -> Result<u8, Unreadable> {
    u8::try_from(code).map_err(|_| Unreadable::Damaged("the code of a choice"))
}

/// The number of an event, or one behind all of them.
pub(super) fn number_of(Sequence(number): Sequence) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The last known values of a device, by path.
pub(super) async fn values_of(
    reader: &Reader,
    device: DeviceKey,
) -> Result<Vec<KnownValue>, PostgresFault> {
    const SQL: &str = "SELECT path, record FROM known_value WHERE device = $1 ORDER BY path";
    let rows = reader.rows(SQL, &[&SqlId(*device.as_bytes())]).await?;
    super::shown(&rows, |row| {
        let path = Path::from_bytes(row.try_get(0)?);
        let path = path.ok_or(Unreadable::Damaged("the path of a value"))?;
        record(row, 1, |value| read_known(path, value))
    })
}

/// The last bootstrap of a device.
pub(super) async fn bootstrap_of(
    reader: &Reader,
    device: DeviceKey,
) -> Result<Option<BootstrapRecord>, PostgresFault> {
    const SQL: &str = "SELECT record FROM bootstrap WHERE device = $1";
    let row = reader.row(SQL, &[&SqlId(*device.as_bytes())]).await?;
    record_in(row, read_bootstrap)
}
