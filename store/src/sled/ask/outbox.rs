//! Which events wait for a destination, and how far has it come?

use std::collections::HashMap;

use engine::delivery::backlog::{
    Backlog, DeadLetter, DestinationProgress, PendingRetry, QueuedEvent, Sequence,
};
use engine::ids::{CustomerId, DestinationId, Partition};
use sled::Db;

use super::settings::destination;
use super::{load, rows_of};
use crate::commit_state::CommitState;
use crate::record::Unreadable;
use crate::record::block::Block;
use crate::record::number::read_sequence;
use crate::record::outbox::{DestinationCounts, read_dead, read_retry, read_tally};
use crate::sled::block_cache::BlockCache;
use crate::sled::fault::Fault;
use crate::sled::key;
use crate::sled::ledger::{blocks_after, keys_of_blocks_after, newest_block};

/// The progress of a destination: its cursor in each partition, and its pending retries.
pub(in crate::sled) fn progress_of(
    db: &Db,
    id: DestinationId,
) -> Result<DestinationProgress, Fault> {
    let Some(DestinationCounts { since, .. }) = tally(db, id)? else {
        return Ok(DestinationProgress::default());
    };
    let mut progress = DestinationProgress {
        since,
        reached: reached(db, id)?,
        ..DestinationProgress::default()
    };
    for row in rows_of(db, &key::outbox::all_retries(id)) {
        let (key, value) = row?;
        let held: PendingRetry = read_retry(number_of(&key)?, &value)?;
        progress.retrying.push(held);
    }
    Ok(progress)
}

/// The partitions in which events wait for a destination.
pub(in crate::sled) fn partitions_waiting(
    db: &Db,
    id: DestinationId,
) -> Result<Vec<Partition>, Fault> {
    let Some(destination) = destination(db, id)? else {
        return Ok(Vec::new());
    };
    let past = Cursors::of(&progress_of(db, id)?);
    let mut partitions = Vec::new();
    for partition in Partition::all() {
        let newest = newest_block(db, &destination.customer, partition)?;
        if newest.is_some_and(|newest| newest.last > past.of_partition(partition)) {
            partitions.push(partition);
        }
    }
    Ok(partitions)
}

/// The events of a partition after a number that are durable: the others are skipped, because the
/// notifier reports them once they are, and the reader need not wait for a group. A block that
/// cannot be read is left out, so that it does not block those behind it.
pub(in crate::sled) fn waiting(
    (db, blocks): (&Db, &BlockCache),
    customer: &CustomerId,
    partition: Partition,
    (after, reached): (Sequence, Sequence),
    max: u32,
) -> Result<Vec<QueuedEvent>, Fault> {
    let mut waiting = Vec::new();
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    if reached <= after {
        return Ok(waiting);
    }
    for key in keys_of_blocks_after(db, customer, partition, after) {
        let key = key?;
        if waiting.len() >= max || key::outbox::last_number(&key).is_some_and(|it| it > reached) {
            break;
        }
        let read = blocks.read(db, &key).and_then(|block| match block {
            Some(block) => Ok(add_queued(&block, (after, reached), &mut waiting)?),
            None => Ok(()),
        });
        match read {
            Err(fault) if fault.is_fatal() => return Err(fault),
            Err(fault) => tracing::error!(%fault, %customer, "a block of events cannot be read"),
            Ok(()) => {}
        }
    }
    waiting.truncate(max);
    Ok(waiting)
}

/// Adds the events of a block after a number, up to another.
fn add_queued(
    block: &Block<'_>,
    (after, reached): (Sequence, Sequence),
    waiting: &mut Vec<QueuedEvent>,
) -> Result<(), Unreadable> {
    for entry in block.entries() {
        let queued = entry?.queued;
        if queued.sequence > after && queued.sequence <= reached {
            waiting.push(queued);
        }
    }
    Ok(())
}

/// How many events wait for a destination, and how many dead letters it has: of one instant.
pub(in crate::sled) fn backlog(
    db: &Db,
    state: &CommitState,
    id: DestinationId,
) -> Result<Backlog, Fault> {
    state.between_groups(|| {
        let (Some(destination), Some(tally)) = (destination(db, id)?, tally(db, id)?) else {
            return Ok(Backlog::default());
        };
        let progress = progress_of(db, id)?;
        let past = Cursors::of(&progress);
        let retries = progress.retrying.iter();
        let retries = retries
            .filter(|retry| retry.queued.sequence <= past.of_partition(retry.queued.partition()));
        let mut waiting = u64::try_from(retries.count()).expect("a bounded count");
        for partition in Partition::all() {
            let past = past.of_partition(partition);
            waiting += waiting_after(db, &destination.customer, partition, past)?;
        }
        Ok(Backlog {
            waiting,
            dead: tally.dead,
        })
    })
}

/// How many events of a partition are stored after a number.
fn waiting_after(
    db: &Db,
    customer: &CustomerId,
    partition: Partition,
    past: Sequence,
) -> Result<u64, Fault> {
    let Some(newest) = newest_block(db, customer, partition)? else {
        return Ok(0);
    };
    if newest.last <= past {
        return Ok(0);
    }
    let Some(first) = blocks_after(db, customer, partition, past).next() else {
        return Ok(0);
    };
    let (_, value) = first?;
    let block = Block::read(&value)?;
    let mut passed = block.head.ordinal;
    for entry in block.entries() {
        passed += u64::from(entry?.queued.sequence <= past);
    }
    Ok((newest.ordinal + newest.count).saturating_sub(passed))
}

/// Up to where a destination is done.
struct Cursors {
    since: Sequence,
    reached: HashMap<Partition, Sequence>,
}

impl Cursors {
    fn of(progress: &DestinationProgress) -> Self {
        Self {
            since: progress.since,
            reached: progress.reached.iter().copied().collect(),
        }
    }

    fn of_partition(&self, partition: Partition) -> Sequence {
        self.reached.get(&partition).copied().unwrap_or(self.since)
    }
}

/// The dead letters of a destination after a sequence number.
pub(in crate::sled) fn dead_letters(
    db: &Db,
    id: DestinationId,
    after: Option<Sequence>,
    max: u32,
) -> Result<Vec<DeadLetter>, Fault> {
    if tally(db, id)?.is_none() {
        return Ok(Vec::new());
    }
    let first = match after {
        Some(after) => key::behind(key::outbox::dead(id, after)),
        None => key::outbox::all_dead(id),
    };
    let end = key::behind(key::outbox::all_dead(id));
    let mut dead_letters = Vec::new();
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    for row in rows_between(db, &first, &end).take(max) {
        let (key, _) = row?;
        let number = number_of(&key)?;
        dead_letters.extend(load(db, &key, |value| read_dead(number, value))?);
    }
    Ok(dead_letters)
}

fn tally(db: &Db, id: DestinationId) -> Result<Option<DestinationCounts>, Fault> {
    load(db, &key::outbox::tally(id), read_tally)
}

/// The cursors of a destination: one for each partition in which it has begun.
fn reached(db: &Db, id: DestinationId) -> Result<Vec<(Partition, Sequence)>, Fault> {
    let mut reached = Vec::new();
    for row in rows_of(db, &key::outbox::all_cursors(id)) {
        let (key, value) = row?;
        let partition = key::outbox::partition_reached(&key);
        let partition = partition.ok_or(Unreadable::Damaged("the key of a cursor"))?;
        reached.push((partition, read_sequence(&value)?));
    }
    Ok(reached)
}

fn rows_between(db: &Db, first: &[u8], end: &[u8]) -> sled::Iter {
    db.range::<&[u8], _>(first..end.max(first))
}

fn number_of(key: &[u8]) -> Result<Sequence, Unreadable> {
    key::outbox::last_number(key).ok_or(Unreadable::Damaged("a key without number"))
}
