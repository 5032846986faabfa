//! How are events stored, and under which numbers?
//!
//! The events of a customer are divided among partitions. Events that are committed together are
//! packed into one block for each partition, under the number of the first: deliveries and
//! retention read and drop them in order. Each event names the one of its device before it, and
//! [`Heads`] the newest, so that the history of a device is read backwards from there.
//!
//! ```text
//!  block(acme, partition 3, number 17)    block(acme, partition 3, number 26)
//!    17 of meter 1   previous -             26 of meter 1   previous 17
//!    19 of meter 2   previous -             27 of meter 2   previous 19 <- newest of meter 2
//!                                           29 of meter 1   previous 26 <- newest of meter 1
//! ```
//!
//! The last known values of a device follow from its events (values.rs).
//!
//! This state follows the batches as they are applied, and is rolled back with a batch.

mod heads;
mod recent;
mod values;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use engine::delivery::backlog::{QueuedEvent, Sequence};
use engine::event::{Event, EventType};
use engine::ids::{CustomerId, DeviceKey, EventId, Partition};
use engine::moment::Timestamp;
use sled::{IVec, Tree};

use super::block_cache::BlockCache;
use super::fault::Fault;
use super::key;
use super::kv::{self, Rows, Value};
use super::overlay::Overlay;
use crate::record::Unreadable;
use crate::record::block::{Block, BlockEntry, BlockHead, BlockWriter, read_head};
use crate::record::event::write_event;
use crate::record::number::{read_sequence, write_sequence};
use heads::Checkpoint;
use heads::EVENT_BYTES;
pub(super) use heads::Heads;
use recent::RecentEvents;
use values::{Report, remove_values, report_bytes};
pub(super) use values::{put_values, values_of};

/// From which size on a block takes no further event: large enough to compress well, small enough
/// that one event is found in microseconds.
const BLOCK_BYTES: usize = 6 * 1_024;

/// The pages that devices are divided among, by the first bits of their keys: a page has devices
/// with neighbouring keys. A million devices fill a page of newest events with 3 KB, one row.
const PAGES: u16 = 1 << PAGE_BITS;
const PAGE_BITS: u32 = 13;

/// The newest events of devices, for the committer and the readers.
pub(super) type SharedHeads = Arc<RwLock<Heads>>;

/// A partition of a customer's events.
pub(super) type PartitionKey = (CustomerId, Partition);

/// The committer's view of the stored events.
pub(super) struct Ledger {
    /// The newest number given.
    newest: Sequence,
    /// The newest number that is durable.
    durable: Sequence,
    /// The newest number given before the batch that is being applied.
    before_batch: Sequence,
    /// The events of the group that is being applied.
    group: Vec<NumberedEvent>,
    /// The newest event of each device that has events in the group.
    group_heads: HashMap<DeviceKey, Sequence>,
    /// The events of the group that have values.
    group_reports: Vec<(DeviceKey, Sequence, Vec<u8>)>,
    /// The devices that the group removes, and the newest event of each.
    removed_devices: Vec<(DeviceKey, Sequence)>,
    /// How many of them there were before the batch that is being applied.
    removed_before_batch: usize,
    /// The blocks of the group that is being written.
    blocks: Vec<(PartitionKey, Sequence, BlockHead)>,
    /// The keys of the blocks that are being removed.
    removed: Vec<IVec>,
    /// The blocks in memory, of which removed ones are dropped.
    cache: Arc<BlockCache>,
    partitions: BTreeMap<PartitionKey, PartitionState>,
    /// The oldest block of each partition, by the time of its newest event.
    by_age: BTreeSet<(Timestamp, PartitionKey)>,
    heads: SharedHeads,
    checkpoint: Checkpoint,
}

/// What is known of a partition.
struct PartitionState {
    /// How many events were stored in it, with those that were removed since it was last empty.
    events: u64,
    /// The first number of its oldest block, and what that has.
    oldest: (Sequence, BlockHead),
}

/// An event to be stored.
pub(super) struct EventEntry {
    customer: CustomerId,
    /// Its number is given when it is applied.
    queued: QueuedEvent,
    at: Timestamp,
    event: Vec<u8>,
}

struct NumberedEvent {
    entry: Box<EventEntry>,
    previous: Sequence,
}

impl EventEntry {
    /// The entry of an event.
    pub(super) fn of(event: &Event) -> Self {
        Self {
            customer: event.customer.clone(),
            queued: QueuedEvent::of(Sequence::default(), event),
            at: event.at,
            event: write_event(event),
        }
    }

    /// The memory it takes while it is in the committer's queue, roughly.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.customer.as_str().len() + self.event.len()
    }
}

impl Ledger {
    /// Reads the state from a tree, at a time. A device has at most `values_max` last known values;
    /// without this number they do not follow from the events.
    pub(super) fn load(
        tree: &Tree,
        now: Timestamp,
        values_max: Option<u32>,
    ) -> Result<Self, Fault> {
        let newest = match tree.get(key::event::newest_number())? {
            Some(row) => read_sequence(&row)?,
            None => Sequence::default(),
        };
        let mut heads = Heads::load(tree, values_max)?;
        let mut recent = RecentEvents::behind(newest, now);
        let checkpoint = Checkpoint::load(tree)?;
        let partitions = load_partitions(tree)?;
        for (customer, partition) in partitions.keys() {
            let complete_to = checkpoint.complete_to();
            let after = before_recent(tree, (customer, *partition), complete_to, &recent)?;
            for block in blocks_after(tree, customer, *partition, after) {
                let (_, value) = block?;
                let recorded = record_all(&value, &checkpoint, &mut heads, &mut recent);
                if let Err(damage) = recorded {
                    tracing::error!(%damage, %customer, "a block of events cannot be read");
                }
            }
        }
        recent.sort();
        heads.recent = recent;
        for row in tree.scan_prefix(key::event::removed()) {
            let (key, last) = row?;
            if let Some(device) = key::last_id(&key) {
                heads.forget_reports(DeviceKey::from_bytes(device), read_sequence(&last)?);
            }
        }
        let by_age = partitions.iter();
        let by_age = by_age.map(|(key, state)| (state.oldest.1.newest_at, key.clone()));
        Ok(Self {
            newest,
            durable: newest,
            before_batch: newest,
            group: Vec::new(),
            group_heads: HashMap::new(),
            group_reports: Vec::new(),
            removed_devices: Vec::new(),
            removed_before_batch: 0,
            blocks: Vec::new(),
            removed: Vec::new(),
            cache: Arc::default(),
            by_age: by_age.collect(),
            partitions,
            heads: Arc::new(RwLock::new(heads)),
            checkpoint,
        })
    }

    /// The newest events of devices, as far as they are durable.
    pub(super) fn heads(&self) -> SharedHeads {
        Arc::clone(&self.heads)
    }

    /// The blocks in memory.
    pub(super) fn cache(&self) -> Arc<BlockCache> {
        Arc::clone(&self.cache)
    }

    /// Begins a batch.
    pub(super) fn begin(&mut self) {
        self.before_batch = self.newest;
        self.removed_before_batch = self.removed_devices.len();
    }

    /// Rolls back the events of the batch.
    pub(super) fn roll_back(&mut self) {
        self.newest = self.before_batch;
        self.removed_devices.truncate(self.removed_before_batch);
        while let Some(undone) = self.group.pop_if(|last| last.number() > self.newest) {
            let device = undone.entry.queued.device;
            match undone.previous > self.durable {
                true => self.group_heads.insert(device, undone.previous),
                false => self.group_heads.remove(&device),
            };
        }
    }

    /// The newest number given.
    pub(super) fn newest(&self) -> Sequence {
        self.newest
    }

    /// The newest event of a device.
    pub(super) fn newest_of(&self, device: DeviceKey) -> Option<Sequence> {
        let in_group = self.group_heads.get(&device).copied();
        in_group.or_else(|| read(&self.heads).newest(device))
    }

    /// Gives an event the next number.
    pub(super) fn append(&mut self, entry: Box<EventEntry>) {
        self.newest = Sequence(self.newest.0.saturating_add(1));
        self.append_numbered(entry, self.newest);
    }

    /// Appends an event that has its number: a greater one than each before it in its partition.
    pub(super) fn append_numbered(&mut self, mut entry: Box<EventEntry>, number: Sequence) {
        let device = entry.queued.device;
        let previous = self.newest_of(device).unwrap_or_default();
        entry.queued.sequence = number;
        self.group_heads.insert(device, number);
        self.group.push(NumberedEvent { entry, previous });
    }

    /// Removes what devices know of a removed one: its last values, and where its history ends. A
    /// later device with the same key begins behind it.
    pub(super) fn remove_device(
        &mut self,
        device: DeviceKey,
        rows: &mut Overlay<'_>,
    ) -> Result<(), Fault> {
        remove_values(device, rows)?;
        if let Some(newest) = self.newest_of(device) {
            let row = IVec::from(&write_sequence(newest));
            rows.put(key::event::removed_of(device).into(), row);
            self.removed_devices.push((device, newest));
        }
        Ok(())
    }

    /// Ends a group: packs its events into blocks. Numbers given in it must not be given again
    /// after a restart.
    pub(super) fn end_group(&mut self, rows: &mut Overlay<'_>) -> Result<(), Fault> {
        self.forget_removed();
        if self.group.is_empty() {
            return Ok(());
        }
        let bytes = self.pack_group(rows)?;
        let row = IVec::from(&write_sequence(self.newest));
        rows.put(key::event::newest_number().into(), row);
        let stretch = (self.oldest(), self.durable);
        let mut heads = self.heads.write().unwrap_or_else(PoisonError::into_inner);
        self.checkpoint.advance(bytes, &mut heads, stretch, rows)
    }

    /// Drops what devices reported that the group removes.
    fn forget_removed(&mut self) {
        if self.removed_devices.is_empty() {
            return;
        }
        let mut heads = self.heads.write().unwrap_or_else(PoisonError::into_inner);
        for (device, last) in &self.removed_devices {
            heads.forget_reports(*device, *last);
        }
    }

    /// Packs the events of a group into blocks, and returns the bytes for which they count.
    pub(super) fn pack_group(&mut self, rows: &mut Overlay<'_>) -> Result<usize, Fault> {
        let mut bytes = 0;
        let mut group = std::mem::take(&mut self.group);
        group.sort_by(|one, other| one.partition().cmp(&other.partition()));
        for events in group.chunk_by(|one, other| one.partition() == other.partition()) {
            self.pack(events, rows)?;
        }
        for event in group {
            bytes += EVENT_BYTES;
            let EventEntry { queued, event, .. } = *event.entry;
            if queued.event_type == EventType::TelemetryData {
                bytes += report_bytes(&event);
                let report = (queued.device, queued.sequence, event);
                self.group_reports.push(report);
            }
        }
        Ok(bytes)
    }

    /// Writes pages of the newest events from the first one on, until so many rows are written;
    /// returns whether the last page is. They are to be read from then on.
    pub(super) fn write_heads(
        &mut self,
        rows_max: usize,
        rows: &mut Overlay<'_>,
    ) -> Result<bool, Fault> {
        let stretch = (self.oldest(), self.durable);
        let mut heads = self.heads.write().unwrap_or_else(PoisonError::into_inner);
        self.checkpoint
            .write_pages(&mut heads, stretch, rows_max, rows)
    }

    /// The number of events in each block of the group that is being written, with its customer.
    pub(super) fn events_written(&self) -> impl Iterator<Item = (&CustomerId, u64)> {
        let blocks = self.blocks.iter();
        blocks.map(|((customer, _), _, head)| (customer, head.count))
    }

    /// Records that the group is durable. Returns the partitions that have new events.
    pub(super) fn settle(&mut self) -> Vec<PartitionKey> {
        self.durable = self.newest;
        if !self.removed.is_empty() {
            self.cache.forget(self.removed.drain(..));
        }
        self.settle_heads();
        let mut begun: Vec<PartitionKey> = Vec::new();
        for (partition, first, head) in self.blocks.drain(..) {
            match self.partitions.get_mut(&partition) {
                Some(state) => state.events = head.ordinal + head.count,
                None => {
                    self.by_age.insert((head.newest_at, partition.clone()));
                    let state = PartitionState {
                        events: head.count,
                        oldest: (first, head),
                    };
                    self.partitions.insert(partition.clone(), state);
                }
            }
            if begun.last() != Some(&partition) {
                begun.push(partition);
            }
        }
        begun
    }

    fn settle_heads(&mut self) {
        let mut heads = self.heads.write().unwrap_or_else(PoisonError::into_inner);
        heads.settle();
        for (device, newest) in self.group_heads.drain() {
            heads.record(device, newest);
        }
        for (device, number, event) in self.group_reports.drain(..) {
            heads.report(&Report {
                device,
                number,
                event: &event,
            });
        }
        for (device, last) in self.removed_devices.drain(..) {
            heads.forget_reports(device, last);
        }
        let newest_at = self.blocks.iter().map(|(_, _, head)| head.newest_at);
        heads.recent.expire(newest_at.max());
    }

    /// The number before which no event is stored.
    pub(super) fn oldest(&self) -> Sequence {
        let oldest = self.partitions.values().map(|state| state.oldest.0);
        oldest.min().unwrap_or(Sequence(u64::MAX))
    }

    /// A partition whose oldest block has only events from before an instant.
    pub(super) fn expired(&self, before: Timestamp) -> Option<PartitionKey> {
        let (newest_at, partition) = self.by_age.first()?;
        (*newest_at < before).then(|| partition.clone())
    }

    /// The first partition of a customer whose oldest block has no event after this number.
    pub(super) fn removed(&self, customer: &CustomerId, last: Sequence) -> Option<PartitionKey> {
        let mut partitions = Partition::all().map(|partition| (customer.clone(), partition));
        partitions.find(|partition| {
            let state = self.partitions.get(partition);
            state.is_some_and(|state| state.oldest.1.last <= last)
        })
    }

    /// Removes the oldest block of a partition.
    pub(super) fn remove_oldest(
        &mut self,
        partition: PartitionKey,
        rows: &mut Overlay<'_>,
    ) -> Result<(), Fault> {
        let Some(state) = self.partitions.get(&partition) else {
            return Ok(());
        };
        let (first, head) = state.oldest;
        self.write_values_before(partition.1, head.last, rows)?;
        let Some(state) = self.partitions.get_mut(&partition) else {
            return Ok(());
        };
        let block = key::event::block(&partition.0, partition.1, first);
        let end = key::behind(key::event::blocks_in(&partition.0, partition.1));
        let next = rows.keys_between(&key::behind(block.clone()), &end, 1)?;
        self.removed.push(IVec::from(block.as_slice()));
        rows.erase(block)?;
        self.by_age.remove(&(head.newest_at, partition.clone()));
        let Some(key) = next.first() else {
            self.partitions.remove(&partition);
            return Ok(());
        };
        let row = rows.row(key)?.unwrap_or_default();
        state.oldest = oldest_block(key, &row);
        self.by_age.insert((state.oldest.1.newest_at, partition));
        Ok(())
    }

    /// Writes the last known values of a partition that are in no page yet, and of which an event
    /// up to a number may have some.
    fn write_values_before(
        &mut self,
        partition: Partition,
        last: Sequence,
        rows: &mut Overlay<'_>,
    ) -> Result<(), Fault> {
        if last <= self.checkpoint.complete_to() {
            return Ok(());
        }
        let mut heads = self.heads.write().unwrap_or_else(PoisonError::into_inner);
        heads.write_values_before(partition, (last, self.durable), rows)
    }

    /// Writes the events of a partition.
    fn pack(&mut self, events: &[NumberedEvent], rows: &mut Overlay<'_>) -> Result<(), Fault> {
        let mut rest = events.iter().peekable();
        let Some(first) = rest.peek() else {
            return Ok(());
        };
        let (customer, partition) = first.partition();
        let place = (customer.clone(), partition);
        let mut ordinal = self.partitions.get(&place).map_or(0, |state| state.events);
        while let Some(first) = rest.peek().map(|event| event.number()) {
            let mut block = BlockWriter::behind(ordinal);
            while let Some(event) = rest.next_if(|_| block.bytes() < BLOCK_BYTES) {
                let entry = BlockEntry {
                    queued: event.entry.queued,
                    previous: event.previous,
                    event: Cow::Borrowed(&event.entry.event),
                };
                block.push(event.entry.at, &entry);
            }
            let head = block.head();
            ordinal = head.ordinal + head.count;
            let key = key::event::block(customer, partition, first);
            let value = Value::cut(&key, &block.finish());
            rows.replace(key.into(), value)?;
            self.blocks.push((place.clone(), first, head));
        }
        Ok(())
    }
}

impl NumberedEvent {
    fn number(&self) -> Sequence {
        self.entry.queued.sequence
    }

    fn partition(&self) -> (&CustomerId, Partition) {
        (&self.entry.customer, self.entry.queued.partition())
    }
}

/// The page of a device: the first bits of its key.
pub(super) fn page_of(device: DeviceKey) -> u16 {
    let [high, low, ..] = *device.as_bytes();
    u16::from_be_bytes([high, low]) >> (u16::BITS - PAGE_BITS)
}

/// The newest event of a device that is durable.
pub(super) fn newest_of(heads: &SharedHeads, device: DeviceKey) -> Option<Sequence> {
    read(heads).newest(device)
}

/// The events of a device from shortly before the store was opened, oldest first.
pub(super) fn recent_of(heads: &SharedHeads, device: DeviceKey) -> Vec<(Sequence, EventId)> {
    read(heads).recent.of(device)
}

/// The key of the block of a partition that may have the event with a number.
pub(super) fn key_of_block_with(
    tree: &Tree,
    customer: &CustomerId,
    partition: Partition,
    number: Sequence,
) -> Result<Option<IVec>, Fault> {
    let first = key::event::blocks_in(customer, partition);
    let end = key::behind(key::event::block(customer, partition, number));
    let mut before = tree.range::<&[u8], _>(first.as_slice()..&end).keys();
    Ok(before.next_back().transpose()?)
}

/// The blocks of a partition that may have events after a number, each with its key.
pub(super) fn blocks_after(
    tree: &Tree,
    customer: &CustomerId,
    partition: Partition,
    after: Sequence,
) -> impl Iterator<Item = Result<(IVec, IVec), Fault>> {
    keys_of_blocks_after(tree, customer, partition, after).filter_map(move |key| {
        let read = |key: IVec| Ok(kv::load(tree, &key)?.map(|value| (key, value)));
        key.and_then(read).transpose()
    })
}

/// The keys of the blocks of a partition that may have events after a number.
pub(super) fn keys_of_blocks_after(
    tree: &Tree,
    customer: &CustomerId,
    partition: Partition,
    after: Sequence,
) -> impl Iterator<Item = Result<IVec, Fault>> {
    let prefix = key::event::blocks_in(customer, partition);
    let end = key::behind(prefix.clone());
    let behind = key::behind(key::event::block(customer, partition, after));
    let mut before = tree.range::<&[u8], _>(prefix.as_slice()..&behind).keys();
    let from = match before.next_back() {
        Some(Ok(key)) => key,
        Some(Err(_)) | None => IVec::from(prefix),
    };
    let keys = tree.range::<&[u8], _>(&*from..&end).keys();
    keys.map(|key| key.map_err(Fault::from))
}

/// What the newest block of a partition has.
pub(super) fn newest_block(
    tree: &Tree,
    customer: &CustomerId,
    partition: Partition,
) -> Result<Option<BlockHead>, Fault> {
    let prefix = key::event::blocks_in(customer, partition);
    let end = key::behind(prefix.clone());
    let mut blocks = tree.range::<&[u8], _>(prefix.as_slice()..&end);
    match blocks.next_back() {
        Some(row) => Ok(Some(read_head(kv::beginning(&row?.1))?)),
        None => Ok(None),
    }
}

/// The number up to which a partition has no recent events, or up to which all events are in pages
/// if that is less: goes back from there, block by block, to the first that is too old.
fn before_recent(
    tree: &Tree,
    (customer, partition): (&CustomerId, Partition),
    complete_to: Sequence,
    recent: &RecentEvents,
) -> Result<Sequence, Fault> {
    let first = key::event::blocks_in(customer, partition);
    let end = key::behind(key::event::block(customer, partition, complete_to));
    let mut before = complete_to;
    for block in tree.range::<&[u8], _>(first.as_slice()..&end).rev() {
        let (key, row) = block?;
        // One that cannot be read is reported when the blocks are recorded.
        if read_head(kv::beginning(&row)).is_ok_and(|head| !recent.may_be_in(&head)) {
            break;
        }
        let first = key::outbox::last_number(&key).unwrap_or_default();
        before = Sequence(first.0.saturating_sub(1));
    }
    Ok(before)
}

/// The partitions that have events: seeks from one to the next.
fn load_partitions(tree: &Tree) -> Result<BTreeMap<PartitionKey, PartitionState>, Fault> {
    let mut partitions = BTreeMap::new();
    let mut from = key::event::blocks();
    let end = key::behind(from.clone());
    while let Some(row) = tree.range::<&[u8], _>(from.as_slice()..&end).next() {
        let (key, row) = row?;
        let oldest = oldest_block(&key, &row);
        let place = key::event::place_of_block(&key);
        let (customer, partition, _) = place.ok_or(Unreadable::Damaged("the key of a block"))?;
        let newest = newest_block(tree, &customer, partition)?.unwrap_or(oldest.1);
        from = key::behind(key::event::blocks_in(&customer, partition));
        let state = PartitionState {
            events: newest.ordinal + newest.count,
            oldest,
        };
        partitions.insert((customer, partition), state);
    }
    Ok(partitions)
}

/// The first number of a block, and what it has. One that cannot be read counts as expired.
fn oldest_block(key: &[u8], row: &[u8]) -> (Sequence, BlockHead) {
    let first = key::outbox::last_number(key).unwrap_or_default();
    let head = read_head(kv::beginning(row)).unwrap_or_else(|damage| {
        tracing::error!(%damage, "a block of events cannot be read");
        BlockHead {
            ordinal: 0,
            count: 0,
            last: first,
            newest_at: Timestamp::from_ms(i64::MIN),
        }
    });
    (first, head)
}

/// Records the events of a block, and what they report that no page has.
fn record_all(
    value: &[u8],
    checkpoint: &Checkpoint,
    heads: &mut Heads,
    recent: &mut RecentEvents,
) -> Result<(), Unreadable> {
    for entry in Block::read(value)?.entries() {
        let entry = entry?;
        let (queued, device) = (entry.queued, entry.queued.device);
        heads.record(device, queued.sequence);
        recent.record(&queued);
        let has_values = queued.event_type == EventType::TelemetryData;
        if has_values && queued.sequence > checkpoint.complete_to_of(device) {
            heads.report(&Report {
                device,
                number: queued.sequence,
                event: &entry.event,
            });
        }
    }
    Ok(())
}

fn read(heads: &SharedHeads) -> std::sync::RwLockReadGuard<'_, Heads> {
    heads.read().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use sled::Db;

    use super::*;
    use crate::conformance::rng::Rng;
    use crate::conformance::samples::{acme, device, event};

    fn commit(ledger: &mut Ledger, db: &Db, events: &[Event]) {
        let mut rows = Overlay::new(db);
        ledger.begin();
        for event in events {
            ledger.append(Box::new(EventEntry::of(event)));
        }
        ledger.end_group(&mut rows).unwrap();
        db.apply_batch(rows.into_batch()).unwrap();
        ledger.settle();
    }

    #[test]
    fn the_newest_events_are_known_after_a_restart_at_any_point_of_a_checkpoint() {
        let mut rng = Rng::from_seed_asked_for();
        let db = sled::Config::new().temporary(true).open().unwrap();
        let meters: Vec<_> = (0..300).map(|number| device(&acme(), number)).collect();
        let mut newest = HashMap::new();
        let mut ledger = Ledger::load(&db, Timestamp::default(), None).unwrap();
        for round in 0..120 {
            for _ in 0..rng.below(10) {
                let events: Vec<_> = (0..rng.below(150))
                    .map(|number| {
                        let place = usize::try_from(rng.below(300)).unwrap();
                        event(&meters[place], round, number)
                    })
                    .collect();
                let first = ledger.newest().0 + 1;
                for (event, number) in events.iter().zip(first..) {
                    newest.insert(event.device, Sequence(number));
                }
                commit(&mut ledger, &db, &events);
            }
            ledger = Ledger::load(&db, Timestamp::default(), None).unwrap();
            for (device, number) in &newest {
                assert_eq!(ledger.newest_of(*device), Some(*number), "in round {round}");
            }
        }
        // A page has one device and is written for 64 events, the last section again; a restart
        // forgets the events that no page was written for.
        let read_again = ledger.newest().0 - ledger.checkpoint.complete_to().0;
        assert!(read_again < 24_000, "{read_again} of {}", ledger.newest().0);
    }

    #[test]
    fn rolled_back_numbers_are_given_again() {
        let db = sled::Config::new().temporary(true).open().unwrap();
        let mut ledger = Ledger::load(&db, Timestamp::default(), None).unwrap();
        let meter = device(&acme(), 1);
        let append = |ledger: &mut Ledger, second| {
            ledger.append(Box::new(EventEntry::of(&event(&meter, second, 1))));
        };
        ledger.begin();
        append(&mut ledger, 1);
        for second in 2..5 {
            ledger.begin();
            append(&mut ledger, second);
            append(&mut ledger, second);
            assert_eq!(ledger.newest_of(meter.key()), Some(Sequence(3)));
            ledger.roll_back();
            assert_eq!(ledger.newest_of(meter.key()), Some(Sequence(1)));
        }
        let mut rows = Overlay::new(&db);
        ledger.end_group(&mut rows).unwrap();
        db.apply_batch(rows.into_batch()).unwrap();
        assert_eq!(ledger.settle(), [(acme(), meter.key().partition())]);
        let ledger = Ledger::load(&db, Timestamp::default(), None).unwrap();
        assert_eq!(ledger.newest(), Sequence(1));
        assert_eq!(ledger.newest_of(meter.key()), Some(Sequence(1)));
    }

    #[test]
    fn a_block_is_bounded_and_a_group_may_have_several() {
        let db = sled::Config::new().temporary(true).open().unwrap();
        let mut ledger = Ledger::load(&db, Timestamp::default(), None).unwrap();
        let meter = device(&acme(), 1);
        let events: Vec<_> = (0..500).map(|number| event(&meter, 1, number)).collect();
        commit(&mut ledger, &db, &events);
        let blocks: Vec<_> = blocks_after(&db, &acme(), meter.key().partition(), Sequence(0))
            .map(|block| read_head(&block.unwrap().1).unwrap())
            .collect();
        assert!(blocks.len() > 2);
        let mut ordinal = 0;
        for block in blocks {
            assert_eq!(block.ordinal, ordinal);
            ordinal += block.count;
        }
        assert_eq!(ordinal, 500);
    }
}
