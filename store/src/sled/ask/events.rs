//! What did a device report, and which values are known of it?

use engine::delivery::backlog::{QueuedEvent, Sequence};
use engine::event::{Event, EventType};
use engine::ids::{CustomerId, DeviceKey};
use engine::limits::STRETCH_BYTES_MAX;
use engine::query::HistoryFilter;
use engine::query::listed::HistoryPage;
use engine::query::series::{SampleFilter, SamplePage};
use sled::Db;

use super::load;
use crate::record::Unreadable;
use crate::record::block::{Block, BlockEntry};
use crate::record::number::read_sequence;
use crate::sled::block_cache::BlockCache;
use crate::sled::fault::Fault;
use crate::sled::key;
use crate::sled::ledger::key_of_block_with;

/// The events of a device that a filter wants, newest first, at most `max`, from its newest event
/// back. Events of a former device with the same key are not shown.
pub(in crate::sled) fn events_of(
    db: &Db,
    filter: &HistoryFilter,
    newest: Option<Sequence>,
    max: u32,
) -> Result<HistoryPage, Fault> {
    let mut history = DeviceHistory::of(db, &filter.customer, filter.device)?;
    let mut next = match filter.before {
        Some(before) => history.read(before, |entry| Ok(entry.previous))?,
        None => newest,
    };
    let mut page = HistoryPage::default();
    let mut bytes = 0;
    let mut last = None;
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    while let Some(number) = next {
        let is_full = page.events.len() >= max || bytes > STRETCH_BYTES_MAX;
        let read = history.read(number, |entry| {
            let at = key::made_at(*entry.queued.event.as_bytes());
            let is_older = filter.from.is_some_and(|from| at < from);
            let is_newer = filter.to.is_some_and(|to| at > to);
            bytes += entry.event.len();
            let event = match is_older || is_newer || is_full {
                true => None,
                false => Some(entry.event(&filter.customer)?),
            };
            Ok((!is_older).then_some((event, entry.previous)))
        })?;
        let Some((event, previous)) = read.flatten() else {
            break;
        };
        if is_full {
            page.next = last;
            break;
        }
        page.events
            .extend(event.filter(|event| filter.wants(event)));
        last = Some(number);
        next = Some(previous);
    }
    Ok(page)
}

/// The samples of a device, from at most `max` events, newest first. Those of a former device with
/// the same key are not among them.
pub(in crate::sled) fn samples_of(
    db: &Db,
    filter: &SampleFilter,
    newest: Option<Sequence>,
    max: u32,
) -> Result<SamplePage, Fault> {
    let mut history = DeviceHistory::of(db, &filter.customer, filter.device)?;
    let mut page = SamplePage::default();
    let mut next = filter.at.or(newest);
    while let Some(number) = next.filter(|_| page.examined < max) {
        let read = history.read(number, |entry| {
            if key::made_at(*entry.queued.event.as_bytes()) < filter.from {
                return Ok(None);
            }
            let has_values = entry.queued.event_type == EventType::TelemetryData;
            let event = has_values.then(|| entry.event(&filter.customer));
            Ok(Some((event.transpose()?, entry.previous)))
        })?;
        let Some((event, previous)) = read.flatten() else {
            return Ok(page);
        };
        page.examined += 1;
        page.samples
            .extend(event.iter().flat_map(|event| filter.samples_of(event)));
        next = Some(previous).filter(|previous| *previous > history.removed);
    }
    page.next = next;
    Ok(page)
}

/// The events of a device, which are read one after the other.
struct DeviceHistory<'a> {
    db: &'a Db,
    customer: &'a CustomerId,
    device: DeviceKey,
    /// Events up to this number are of a former device with the same key.
    removed: Sequence,
    /// The last block that was read, which often has the next event, too.
    block: Option<Block<'static>>,
}

impl<'a> DeviceHistory<'a> {
    fn of(db: &'a Db, customer: &'a CustomerId, device: DeviceKey) -> Result<Self, Fault> {
        let removed = load(db, &key::event::removed_of(device), read_sequence)?;
        Ok(Self {
            db,
            customer,
            device,
            removed: removed.unwrap_or_default(),
            block: None,
        })
    }

    /// Reads an event, if it is stored and of the device.
    fn read<T>(
        &mut self,
        number: Sequence,
        read: impl FnOnce(&BlockEntry<'_>) -> Result<T, Unreadable>,
    ) -> Result<Option<T>, Fault> {
        if number <= self.removed {
            return Ok(None);
        }
        let known = self.block.as_ref();
        let known = known.filter(|block| matches!(block.entry(number), Ok(Some(_))));
        if known.is_none() {
            let partition = self.device.partition();
            let key = key_of_block_with(self.db, self.customer, partition, number)?;
            let read = |value: &[u8]| Ok(Block::read(value)?.into_owned());
            let block = key.map(|key| load(self.db, &key, read)).transpose()?;
            self.block = block.flatten();
        }
        let Some(block) = &self.block else {
            return Ok(None);
        };
        let entry = block.entry(number)?;
        let entry = entry.filter(|entry| entry.queued.device == self.device);
        Ok(entry.as_ref().map(read).transpose()?)
    }
}

/// These events, while they are stored: the history they are in may be removed already. One that
/// cannot be read counts as none, so that it does not block the events behind it.
pub(in crate::sled) fn events(
    (db, blocks): (&Db, &BlockCache),
    customer: &CustomerId,
    queued: &[QueuedEvent],
) -> Result<Vec<Event>, Fault> {
    let mut events = Vec::with_capacity(queued.len());
    for queued in queued {
        match event((db, blocks), customer, queued) {
            Ok(event) => events.extend(event),
            Err(fault) if fault.is_fatal() => return Err(fault),
            Err(fault) => {
                tracing::error!(%fault, device = %queued.device, "an event cannot be read");
            }
        }
    }
    Ok(events)
}

/// These events, if the blocks of all of them are in memory.
pub(in crate::sled) fn events_in_memory(
    blocks: &BlockCache,
    customer: &CustomerId,
    queued: &[QueuedEvent],
) -> Option<Vec<Event>> {
    let in_memory = |queued: &QueuedEvent| {
        let block = blocks.find(customer, queued.partition(), queued.sequence)?;
        event_in(&block, customer, queued).ok()?
    };
    queued.iter().map(in_memory).collect()
}

fn event(
    (db, blocks): (&Db, &BlockCache),
    customer: &CustomerId,
    queued: &QueuedEvent,
) -> Result<Option<Event>, Fault> {
    let (partition, number) = (queued.partition(), queued.sequence);
    let mut block = blocks.find(customer, partition, number);
    if block.is_none() {
        let key = key_of_block_with(db, customer, partition, number)?;
        block = key.map(|key| blocks.read(db, &key)).transpose()?.flatten();
    }
    let event = block.map(|block| event_in(&block, customer, queued));
    Ok(event.transpose()?.flatten())
}

fn event_in(
    block: &Block<'_>,
    customer: &CustomerId,
    queued: &QueuedEvent,
) -> Result<Option<Event>, Unreadable> {
    let entry = block.entry(queued.sequence)?;
    let entry = entry.filter(|entry| entry.queued.event == queued.event);
    entry.map(|entry| entry.event(customer)).transpose()
}
