//! Which events are queued for delivery, and under which sequence numbers?
//!
//! Which customers have destinations is known without a read, because every event needs it. This
//! state follows the batches as they are applied, and is rolled back with a batch.

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

/// The committer's view of the outbox.
pub(super) struct Outbox {
    /// The newest sequence number given.
    newest: Sequence,
    /// The newest sequence number in a row.
    written: Sequence,
    /// The customers that have destinations.
    with_destinations: HashSet<CustomerId>,
    /// What the batch that is being applied may have changed.
    batch: TouchedCustomers,
    /// Where rows may be that no destination needs any more.
    pub(super) stale: StaleShards,
}

/// What a batch may have changed.
#[derive(Default)]
struct TouchedCustomers {
    /// The newest sequence number before it.
    newest: Sequence,
    /// The customers whose destinations were added or removed.
    customers: Vec<CustomerId>,
}

/// An event that is queued if its customer has destinations when it is applied.
pub(super) struct OutboxEntry {
    customer: CustomerId,
    /// Its sequence number is given when it is applied.
    waiting: QueuedEvent,
}

impl OutboxEntry {
    /// The queue entry of an event.
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

    /// The memory it takes while it is in the committer's queue, roughly.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.customer.as_str().len()
    }
}

impl Outbox {
    /// Reads the state from a tree.
    pub(super) fn load(tree: &Tree) -> Result<Self, Fault> {
        let newest = match tree.get(key::outbox::newest_number())? {
            Some(row) => read_sequence(&row)?,
            None => Sequence::default(),
        };
        let with_destinations = customers_having(tree, &key::outbox::all_destinations())?;
        Ok(Self {
            newest,
            written: newest,
            with_destinations: with_destinations.into_iter().collect(),
            batch: TouchedCustomers::default(),
            stale: StaleShards::load(tree)?,
        })
    }

    /// Begins a batch.
    pub(super) fn begin(&mut self) {
        self.batch.newest = self.newest;
        self.batch.customers.clear();
    }

    /// Rolls back the changes of the batch, after its rows were rolled back.
    pub(super) fn roll_back(&mut self, rows: &Overlay<'_>) -> Result<(), Fault> {
        self.newest = self.batch.newest;
        for customer in std::mem::take(&mut self.batch.customers) {
            self.look(&customer, rows)?;
        }
        Ok(())
    }

    /// Ends a group: numbers given in it must not be given again after a restart.
    pub(super) fn end_group(&mut self, rows: &mut Overlay<'_>) {
        if self.newest == self.written {
            return;
        }
        self.written = self.newest;
        let row = IVec::from(&write_sequence(self.newest));
        rows.put(key::outbox::newest_number().into(), row);
    }

    /// The newest sequence number given.
    pub(super) fn newest(&self) -> Sequence {
        self.newest
    }

    /// Gives an event the next sequence number, if its customer has destinations.
    pub(super) fn append(
        &mut self,
        awaiting: &OutboxEntry,
        rows: &mut Overlay<'_>,
    ) -> Result<(), Fault> {
        let OutboxEntry { customer, waiting } = awaiting;
        if !self.with_destinations.contains(customer) {
            return Ok(());
        }
        self.newest = Sequence(self.newest.0.saturating_add(1));
        let key = key::outbox::waiting(customer, waiting.shard(), self.newest);
        rows.put(key.into(), IVec::from(write_waiting(waiting).as_slice()));
        rows.add(key::outbox::numbered(customer).into(), 1)
    }

    /// Records that a destination of a customer was added or removed, after its row was. Returns
    /// whether the customer has any.
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
        let has_destinations = !rows.keys(&destinations, 1)?.is_empty();
        if has_destinations {
            self.with_destinations.insert(customer.clone());
        } else {
            self.with_destinations.remove(customer);
        }
        Ok(has_destinations)
    }
}

/// How many events of a customer ever got a sequence number.
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
    fn an_event_has_one_more_row_only_if_its_customer_has_destinations() {
        let db = sled::Config::new().temporary(true).open().unwrap();
        let mut outbox = Outbox::load(&db).unwrap();
        let mut rows = Overlay::new(&db);
        let entry = |second| OutboxEntry::of(&event(&device(&acme(), 1), second, 1));
        outbox.append(&entry(1), &mut rows).unwrap();
        outbox.end_group(&mut rows);
        assert!(rows.is_empty());

        let erp = DestinationPut::of(&destination(&acme(), 1));
        erp.apply(&mut outbox, &mut rows).unwrap();
        let before = rows.len();
        for second in 0..10 {
            outbox.append(&entry(second), &mut rows).unwrap();
        }
        outbox.end_group(&mut rows);
        // The count of the customer and the newest number are one row each for the whole group.
        assert_eq!(rows.len(), before + 10 + 2);
        db.apply_batch(rows.into_batch()).unwrap();

        let known = Outbox::load(&db).unwrap();
        assert_eq!(known.newest, Sequence(10));
        assert!(known.with_destinations.contains(&acme()));
        assert_eq!(known.stale.customers(), 1);
    }

    #[test]
    fn rolled_back_numbers_are_given_again() {
        let db = sled::Config::new().temporary(true).open().unwrap();
        let mut outbox = Outbox::load(&db).unwrap();
        let mut rows = Overlay::new(&db);
        let entry = OutboxEntry::of(&event(&device(&acme(), 1), 1, 1));
        for is_kept in [false, true] {
            rows.begin();
            outbox.begin();
            let erp = DestinationPut::of(&destination(&acme(), 1));
            erp.apply(&mut outbox, &mut rows).unwrap();
            outbox.append(&entry, &mut rows).unwrap();
            assert_eq!(outbox.newest(), Sequence(1));
            if !is_kept {
                rows.roll_back();
                outbox.roll_back(&rows).unwrap();
                assert!(rows.is_empty() && outbox.with_destinations.is_empty());
            }
        }
    }
}
