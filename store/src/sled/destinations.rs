//! What happens to the rows of a destination when it is put, removed, or makes progress?

use engine::delivery::backlog::{DeadLetter, PendingRetry, ProgressUpdate, Sequence};
use engine::delivery::destination::Destination;
use engine::ids::{CustomerId, DestinationId, Partition};
use engine::moment::Timestamp;
use sled::IVec;

use super::fault::Fault;
use super::key::{self, Key};
use super::kv::{self, Rows, Value};
use super::ledger::Ledger;
use super::overlay::Overlay;
use crate::record::destination::{read_destination, write_destination};
use crate::record::number::{read_sequence, write_sequence};
use crate::record::outbox::{
    DestinationCounts, read_dead, read_tally, write_dead, write_retry, write_tally,
};

/// A destination to be put.
pub(super) struct DestinationPut {
    id: DestinationId,
    customer: CustomerId,
    key: Key,
    value: Value,
}

/// A progress update, as rows.
pub(super) struct ProgressRows {
    id: DestinationId,
    reached: Vec<(Partition, Sequence)>,
    released: Vec<Sequence>,
    retrying: Vec<(Sequence, Vec<u8>)>,
    requeued: Vec<Sequence>,
    dead_lettered: Vec<DeadLetterRow>,
}

struct DeadLetterRow {
    sequence: Sequence,
    at: Timestamp,
    key: Key,
    value: Value,
}

impl DestinationPut {
    /// A destination to be put.
    pub(super) fn of(destination: &Destination) -> Self {
        let key = key::outbox::destination(destination.id);
        Self {
            id: destination.id,
            customer: destination.customer.clone(),
            value: Value::cut(&key, &write_destination(destination)),
            key,
        }
    }

    /// The memory it takes while it is queued.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.key.len() + self.value.bytes()
    }

    /// Puts it. A new destination begins behind every event there is. A removed one is not created
    /// again: whoever puts it has not learned of the removal yet.
    pub(super) fn apply(self, ledger: &Ledger, rows: &mut Overlay<'_>) -> Result<(), Fault> {
        let tally = key::outbox::tally(self.id);
        if rows.row(&tally)?.is_none() {
            if rows.row(&key::outbox::removed_of(self.id))?.is_some() {
                return Ok(());
            }
            let begun = DestinationCounts {
                since: ledger.newest(),
                dead: 0,
            };
            put_tally(tally, &begun, rows);
            let listed = key::outbox::destination_of(&self.customer, self.id);
            rows.put(listed.into(), IVec::default());
        }
        rows.replace(self.key.into(), self.value)
    }
}

/// Removes a destination of a customer. Its dead letters, retries and cursors may be many rows:
/// they are marked removed and swept later.
pub(super) fn remove(
    customer: &CustomerId,
    id: DestinationId,
    rows: &mut Overlay<'_>,
) -> Result<(), Fault> {
    let Some(value) = kv::load(rows, &key::outbox::destination(id))? else {
        return Ok(());
    };
    if read_destination(&value)?.customer != *customer {
        return Ok(());
    }
    rows.erase(key::outbox::destination(id))?;
    rows.remove(key::outbox::tally(id));
    rows.remove(key::outbox::destination_of(customer, id));
    rows.put(key::outbox::removed_of(id).into(), IVec::default());
    Ok(())
}

impl ProgressRows {
    /// A progress update as rows.
    pub(super) fn of(progress: &ProgressUpdate) -> Self {
        let held = |held: &PendingRetry| (held.queued.sequence, write_retry(held));
        Self {
            id: progress.destination,
            reached: progress.reached.clone(),
            released: progress.released.clone(),
            retrying: progress.retrying.iter().map(held).collect(),
            requeued: progress.requeued.clone(),
            dead_lettered: progress
                .dead_lettered
                .iter()
                .map(|dead_letter| DeadLetterRow::of(progress.destination, dead_letter))
                .collect(),
        }
    }

    /// The memory it takes while it is queued, roughly.
    pub(super) fn bytes(&self) -> usize {
        /// The key of a row of a destination, and what the tree needs in addition.
        const ROW: usize = 64;
        let rows = self.reached.len() + self.released.len() + 2 * self.requeued.len();
        let held = self.retrying.iter().map(|(_, row)| ROW + row.len());
        let dead_lettered = self.dead_lettered.iter();
        let dead_lettered = dead_lettered
            .map(|dead_letter| 2 * ROW + dead_letter.key.len() + dead_letter.value.bytes());
        size_of::<Self>() + ROW * rows + held.sum::<usize>() + dead_lettered.sum::<usize>()
    }

    /// Applies the update. An update of a destination that was removed since leaves nothing.
    pub(super) fn apply(self, rows: &mut Overlay<'_>) -> Result<(), Fault> {
        let key = key::outbox::tally(self.id);
        let Some(row) = rows.row(&key)? else {
            return Ok(());
        };
        let mut tally = read_tally(&row)?;
        for (partition, sequence) in &self.reached {
            self.reach(*partition, *sequence, rows)?;
        }
        for sequence in self.released {
            rows.remove(key::outbox::retry(self.id, sequence));
        }
        for (sequence, row) in self.retrying {
            rows.put(key::outbox::retry(self.id, sequence).into(), row.into());
        }
        for sequence in self.requeued {
            if remove_dead(self.id, sequence, rows)? {
                tally.dead = tally.dead.saturating_sub(1);
            }
        }
        for dead_letter in self.dead_lettered {
            if dead_letter.put(self.id, rows)? {
                tally.dead = tally.dead.saturating_add(1);
            }
        }
        put_tally(key, &tally, rows);
        Ok(())
    }

    /// Moves the cursor of the destination in a partition. It never goes back.
    fn reach(
        &self,
        partition: Partition,
        sequence: Sequence,
        rows: &mut Overlay<'_>,
    ) -> Result<(), Fault> {
        let key = key::outbox::cursor(self.id, partition);
        let before = match rows.row(&key)? {
            Some(row) => read_sequence(&row)?,
            None => Sequence::default(),
        };
        if sequence > before {
            rows.put(key.into(), IVec::from(&write_sequence(sequence)));
        }
        Ok(())
    }
}

impl DeadLetterRow {
    fn of(id: DestinationId, dead_letter: &DeadLetter) -> Self {
        let sequence = dead_letter.queued.sequence;
        let key = key::outbox::dead(id, sequence);
        Self {
            sequence,
            at: dead_letter.at,
            value: Value::cut(&key, &write_dead(dead_letter)),
            key,
        }
    }

    /// Puts it and returns whether there was none under its number.
    fn put(self, id: DestinationId, rows: &mut Overlay<'_>) -> Result<bool, Fault> {
        let was_there = remove_dead(id, self.sequence, rows)?;
        let by_age = key::outbox::dead_by_age(self.at, id, self.sequence);
        rows.put(by_age.into(), IVec::default());
        rows.replace(self.key.into(), self.value)?;
        Ok(!was_there)
    }
}

/// Removes a dead letter and returns whether it existed. The caller counts it out.
pub(super) fn remove_dead(
    id: DestinationId,
    sequence: Sequence,
    rows: &mut Overlay<'_>,
) -> Result<bool, Fault> {
    let key = key::outbox::dead(id, sequence);
    let Some(value) = kv::load(rows, &key)? else {
        return Ok(false);
    };
    let dead_letter = read_dead(sequence, &value)?;
    rows.remove(key::outbox::dead_by_age(dead_letter.at, id, sequence));
    rows.erase(key)
}

/// Counts out a dead letter that was removed for its age, if its destination is still there.
pub(super) fn count_out_dead(id: DestinationId, rows: &mut Overlay<'_>) -> Result<(), Fault> {
    let key = key::outbox::tally(id);
    let Some(row) = rows.row(&key)? else {
        return Ok(());
    };
    let mut tally = read_tally(&row)?;
    tally.dead = tally.dead.saturating_sub(1);
    put_tally(key, &tally, rows);
    Ok(())
}

fn put_tally(key: Key, tally: &DestinationCounts, rows: &mut Overlay<'_>) {
    rows.put(key.into(), IVec::from(write_tally(tally).as_slice()));
}
