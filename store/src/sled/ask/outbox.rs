//! Which events are queued for a destination, and how far has it come?

use std::collections::HashMap;

use engine::delivery::backlog::{
    Backlog, DeadLetter, DestinationProgress, PendingRetry, QueuedEvent, Sequence,
};
use engine::ids::{CustomerId, DestinationId, Shard};
use engine::limits::SHARDS;
use sled::Db;

use super::settings::destination;
use super::{load, rows_of};
use crate::sled::commit_state::CommitState;
use crate::sled::fault::Fault;
use crate::sled::key;
use crate::sled::outbox::numbered;
use crate::sled::record::Unreadable;
use crate::sled::record::number::read_sequence;
use crate::sled::record::outbox::{
    DestinationCounts, read_dead, read_retry, read_tally, read_waiting,
};

/// The progress of a destination: its cursor in each shard, and its pending retries.
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

/// The shards in which events wait for a destination: two seeks for each shard in which any wait.
pub(in crate::sled) fn shards_waiting(db: &Db, id: DestinationId) -> Result<Vec<Shard>, Fault> {
    let (Some(destination), Some(tally)) = (destination(db, id)?, tally(db, id)?) else {
        return Ok(Vec::new());
    };
    let customer = destination.customer;
    let reached: HashMap<Shard, Sequence> = reached(db, id)?.into_iter().collect();
    let past = |shard| reached.get(&shard).copied().unwrap_or(tally.since);
    let end = key::behind(key::outbox::waiting_of(&customer));
    let mut shards = Vec::new();
    let mut shard = Shard(0);
    while shard.0 < SHARDS {
        let first = key::behind(key::outbox::waiting(&customer, shard, past(shard)));
        let mut waiting = db
            .range::<&[u8], _>(first.as_slice()..end.as_slice())
            .keys();
        let Some(key) = waiting.next() else {
            break;
        };
        let place = key::outbox::position_of(&key?);
        let (_, found, number) = place.ok_or(Unreadable::Damaged("the key of what waits"))?;
        if number > past(found) {
            shards.push(found);
            shard = Shard(found.0.saturating_add(1));
        } else {
            shard = found;
        }
    }
    Ok(shards)
}

/// The queued events of a shard after a sequence number that are durable: the others are skipped,
/// because the notifier reports them once they are, and the reader need not wait for a group.
pub(in crate::sled) fn waiting(
    db: &Db,
    customer: &CustomerId,
    shard: Shard,
    (after, reached): (Sequence, Sequence),
    max: u32,
) -> Result<Vec<QueuedEvent>, Fault> {
    if reached <= after {
        return Ok(Vec::new());
    }
    let first = key::behind(key::outbox::waiting(customer, shard, after));
    let end = key::behind(key::outbox::waiting(customer, shard, reached));
    let mut waiting = Vec::new();
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    for row in rows_between(db, &first, &end).take(max) {
        let (key, value) = row?;
        waiting.push(read_waiting(number_of(&key)?, &value)?);
    }
    Ok(waiting)
}

/// How many events wait for a destination, and how many dead letters it has: two counts of one
/// instant.
pub(in crate::sled) fn backlog(
    db: &Db,
    state: &CommitState,
    id: DestinationId,
) -> Result<Backlog, Fault> {
    let Some(destination) = destination(db, id)? else {
        return Ok(Backlog::default());
    };
    let counts = || Ok::<_, Fault>((tally(db, id)?, numbered(&destination.customer, &**db)?));
    let (Some(tally), numbered) = state.between_groups(counts)? else {
        return Ok(Backlog::default());
    };
    let queued = numbered.saturating_sub(tally.numbered);
    Ok(Backlog {
        waiting: queued.saturating_sub(tally.passed),
        dead: tally.dead,
    })
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

/// The cursors of a destination: one for each shard in which it has begun.
fn reached(db: &Db, id: DestinationId) -> Result<Vec<(Shard, Sequence)>, Fault> {
    let mut reached = Vec::new();
    for row in rows_of(db, &key::outbox::all_cursors(id)) {
        let (key, value) = row?;
        let shard = key::outbox::shard_reached(&key);
        let shard = shard.ok_or(Unreadable::Damaged("the key of a place"))?;
        reached.push((shard, read_sequence(&value)?));
    }
    Ok(reached)
}

fn rows_between(db: &Db, first: &[u8], end: &[u8]) -> sled::Iter {
    db.range::<&[u8], _>(first..end.max(first))
}

fn number_of(key: &[u8]) -> Result<Sequence, Unreadable> {
    key::outbox::last_number(key).ok_or(Unreadable::Damaged("a key without number"))
}
