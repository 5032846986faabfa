//! Whose events wait to be delivered, and under which numbers?
//!
//! Whether anybody is told is known without a read, for it is asked of every event. What is known
//! follows the batches as they are applied, and goes back with one that is taken back.

use std::collections::HashSet;

use engine::delivery::backlog::{QueuedEvent, Sequence};
use engine::event::Event;
use engine::ids::CustomerId;
use sled::{IVec, Tree};

use super::customers_having::customers_having;
use super::fault::Fault;
use super::key;
use super::kv::Rows;
use super::overlay::Overlay;
use super::record::number::{read_count, read_sequence, write_sequence};
use super::record::outbox::write_waiting;
use super::stale_shards::StaleShards;

/// What the committer knows of what waits.
pub(super) struct Outbox {
    /// The newest number given.
    newest: Sequence,
    /// The newest number a row tells of.
    written: Sequence,
    /// The customers that have destinations.
    told: HashSet<CustomerId>,
    /// What the batch that is being applied may have changed.
    batch: TouchedCustomers,
    /// Where rows may be that nobody waits for any more.
    pub(super) stale: StaleShards,
}

/// What a batch may have changed.
#[derive(Default)]
struct TouchedCustomers {
    /// The newest number before it.
    newest: Sequence,
    /// The customers whose destinations came or went.
    customers: Vec<CustomerId>,
}

/// An event that waits if its customer has destinations when it is applied.
pub(super) struct OutboxEntry {
    customer: CustomerId,
    /// Its number is given when it is applied.
    waiting: QueuedEvent,
}

impl OutboxEntry {
    /// How an event would wait.
    pub(super) fn of(event: &Event) -> Self {
        Self {
            customer: event.customer.clone(),
            waiting: QueuedEvent {
                sequence: Sequence::default(),
                device: event.device,
                event: event.id,
                event_type: event.content.event_type(),
            },
        }
    }

    /// What it takes while it is queued, roughly.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.customer.as_str().len()
    }
}

impl Outbox {
    /// What a tree knows.
    pub(super) fn load(tree: &Tree) -> Result<Self, Fault> {
        let newest = match tree.get(key::outbox::newest_number())? {
            Some(row) => read_sequence(&row)?,
            None => Sequence::default(),
        };
        let told = customers_having(tree, &key::outbox::all_destinations())?;
        Ok(Self {
            newest,
            written: newest,
            told: told.into_iter().collect(),
            batch: TouchedCustomers::default(),
            stale: StaleShards::load(tree)?,
        })
    }

    /// Begins a batch.
    pub(super) fn begin(&mut self) {
        self.batch.newest = self.newest;
        self.batch.customers.clear();
    }

    /// Takes back what the batch changed, after its rows were taken back.
    pub(super) fn take_back(&mut self, rows: &Overlay<'_>) -> Result<(), Fault> {
        self.newest = self.batch.newest;
        for customer in std::mem::take(&mut self.batch.customers) {
            self.look(&customer, rows)?;
        }
        Ok(())
    }

    /// Ends a group: what was given must not be given again after a restart.
    pub(super) fn end_group(&mut self, rows: &mut Overlay<'_>) {
        if self.newest == self.written {
            return;
        }
        self.written = self.newest;
        let row = IVec::from(&write_sequence(self.newest));
        rows.put(key::outbox::newest_number().into(), row);
    }

    /// The newest number given.
    pub(super) fn newest(&self) -> Sequence {
        self.newest
    }

    /// Gives an event the next number, if anybody is told of it.
    pub(super) fn append(
        &mut self,
        awaiting: &OutboxEntry,
        rows: &mut Overlay<'_>,
    ) -> Result<(), Fault> {
        let OutboxEntry { customer, waiting } = awaiting;
        if !self.told.contains(customer) {
            return Ok(());
        }
        self.newest = Sequence(self.newest.0.saturating_add(1));
        let key = key::outbox::waiting(customer, waiting.shard(), self.newest);
        rows.put(key.into(), IVec::from(write_waiting(waiting).as_slice()));
        rows.add(key::outbox::numbered(customer).into(), 1)
    }

    /// Says that a destination of a customer came or went, after its row did. Says whether the
    /// customer has any.
    pub(super) fn turn(
        &mut self,
        customer: &CustomerId,
        rows: &Overlay<'_>,
    ) -> Result<bool, Fault> {
        self.batch.customers.push(customer.clone());
        self.look(customer, rows)
    }

    fn look(&mut self, customer: &CustomerId, rows: &Overlay<'_>) -> Result<bool, Fault> {
        let destinations = key::outbox::destinations_of(customer);
        let is_told = !rows.keys(&destinations, 1)?.is_empty();
        if is_told {
            self.told.insert(customer.clone());
        } else {
            self.told.remove(customer);
        }
        Ok(is_told)
    }
}

/// How many events of a customer were ever given a number.
pub(super) fn numbered(customer: &CustomerId, rows: &impl Rows) -> Result<u64, Fault> {
    let count = match rows.row(&key::outbox::numbered(customer))? {
        Some(row) => read_count(&row)?,
        None => 0,
    };
    Ok(u64::try_from(count).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::samples::{acme, destination, device, event};
    use crate::sled::destinations::DestinationPut;

    #[test]
    fn an_event_costs_one_row_more_if_somebody_is_told_and_none_if_not() {
        let db = sled::Config::new().temporary(true).open().unwrap();
        let mut outbox = Outbox::load(&db).unwrap();
        let mut rows = Overlay::new(&db);
        let said = |second| OutboxEntry::of(&event(&device(&acme(), 1), second, 1));
        outbox.append(&said(1), &mut rows).unwrap();
        outbox.end_group(&mut rows);
        assert!(rows.is_empty());

        let erp = DestinationPut::of(&destination(&acme(), 1));
        erp.apply(&mut outbox, &mut rows).unwrap();
        let before = rows.len();
        for second in 0..10 {
            outbox.append(&said(second), &mut rows).unwrap();
        }
        outbox.end_group(&mut rows);
        // The count of the customer and the newest number are one row each for the whole group.
        assert_eq!(rows.len(), before + 10 + 2);
        db.apply_batch(rows.into_batch()).unwrap();

        let known = Outbox::load(&db).unwrap();
        assert_eq!(known.newest, Sequence(10));
        assert!(known.told.contains(&acme()));
        assert_eq!(known.stale.customers(), 1);
    }

    #[test]
    fn numbers_that_were_taken_back_are_given_again() {
        let db = sled::Config::new().temporary(true).open().unwrap();
        let mut outbox = Outbox::load(&db).unwrap();
        let mut rows = Overlay::new(&db);
        let said = OutboxEntry::of(&event(&device(&acme(), 1), 1, 1));
        for is_kept in [false, true] {
            rows.begin();
            outbox.begin();
            let erp = DestinationPut::of(&destination(&acme(), 1));
            erp.apply(&mut outbox, &mut rows).unwrap();
            outbox.append(&said, &mut rows).unwrap();
            assert_eq!(outbox.newest(), Sequence(1));
            if !is_kept {
                rows.take_back();
                outbox.take_back(&rows).unwrap();
                assert!(rows.is_empty() && outbox.told.is_empty());
            }
        }
    }
}
