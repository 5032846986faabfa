//! Which queued events is every destination of their customer past? A pending retry has a row of
//! its own at its destination, so nothing is lost with what is removed here.

use engine::delivery::backlog::Sequence;
use engine::ids::{CustomerId, DestinationId, Shard};

use super::SweepTargets;
use super::budget::{RemovedRows, SweepBudget};
use crate::sled::fault::Fault;
use crate::sled::key;
use crate::sled::kv::Rows;
use crate::sled::overlay::Overlay;
use crate::sled::record::Unreadable;
use crate::sled::record::number::read_sequence;
use crate::sled::record::outbox::read_tally;

/// How many events of a customer may be removed in one turn, however many customers wait for
/// theirs.
const TURN: usize = 128;

/// Removes queued events that every destination is past, customer by customer.
pub(super) fn passed(
    due: &mut SweepTargets<'_>,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    let mut removed = RemovedRows::default();
    while let Some(customer) = due.stale.next_customer().filter(|_| due.looks > 0) {
        let left = room.behind(removed);
        let keys = left.keys(rows);
        if keys == 0 {
            removed.full = true;
            break;
        }
        let share = SweepBudget {
            things: left.things.min(TURN.max(keys / due.stale.customers())),
            ..left
        };
        removed.things += turn(&customer, due, share, rows)?;
    }
    Ok(removed)
}

/// Removes the stale events of a customer, and returns how many.
fn turn(
    customer: &CustomerId,
    due: &mut SweepTargets<'_>,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<usize, Fault> {
    let destinations = Destinations::of(customer, rows)?;
    let mut removed = RemovedRows::default();
    while let Some(shard) = due.stale.first_of(customer) {
        if due.looks == 0 || removed.full {
            break;
        }
        due.looks -= 1;
        let Some(there) = first_waiting(customer, shard, rows)? else {
            due.stale.clear_all(customer);
            break;
        };
        if there != shard {
            due.stale.clear_before(customer, there);
            continue;
        }
        let first = key::outbox::waiting_in(customer, shard);
        let last = key::outbox::waiting(customer, shard, destinations.past(shard, rows)?);
        let left = room.behind(removed);
        let of_shard = left.clear(&first, &key::behind(last), rows, |waiting, rows| {
            rows.remove(waiting);
            Ok(())
        })?;
        removed.add(of_shard);
        if !of_shard.full {
            due.stale.clear(customer, shard);
        }
    }
    Ok(removed.things)
}

/// The first shard from a given one on in which events wait.
fn first_waiting(
    customer: &CustomerId,
    from: Shard,
    rows: &Overlay<'_>,
) -> Result<Option<Shard>, Fault> {
    let first = key::outbox::waiting_in(customer, from);
    let end = key::behind(key::outbox::waiting_of(customer));
    let Some(key) = rows.keys_between(&first, &end, 1)?.pop() else {
        return Ok(None);
    };
    let place = key::outbox::position_of(&key);
    let (_, shard, _) = place.ok_or(Unreadable::Damaged("the key of what waits"))?;
    Ok(Some(shard))
}

/// The destinations of a customer, each with the sequence number that it begins behind.
struct Destinations(Vec<(DestinationId, Sequence)>);

impl Destinations {
    fn of(customer: &CustomerId, rows: &Overlay<'_>) -> Result<Self, Fault> {
        let mut destinations = Vec::new();
        for key in rows.keys(&key::outbox::destinations_of(customer), usize::MAX)? {
            let id = key::last_id(&key).ok_or(Unreadable::Damaged("an index of destinations"))?;
            let id = DestinationId::from_bytes(id);
            if let Some(row) = rows.row(&key::outbox::tally(id))? {
                let since = read_tally(&row).map(|tally| tally.since);
                destinations.push((id, or_nothing(since)));
            }
        }
        Ok(Self(destinations))
    }

    /// The sequence number up to which all of them are past a shard. Without destinations, no event
    /// is needed.
    fn past(&self, shard: Shard, rows: &Overlay<'_>) -> Result<Sequence, Fault> {
        let mut past = Sequence(u64::MAX);
        for (id, since) in &self.0 {
            let reached = match rows.row(&key::outbox::cursor(*id, shard))? {
                Some(row) => or_nothing(read_sequence(&row)).max(*since),
                None => *since,
            };
            past = past.min(reached);
        }
        Ok(past)
    }
}

/// A destination whose progress is unreadable counts as past nothing, and other customers are not
/// affected.
fn or_nothing(read: Result<Sequence, Unreadable>) -> Sequence {
    read.unwrap_or_else(|why| {
        tracing::error!(%why, "the progress of a destination cannot be read");
        Sequence::default()
    })
}

#[cfg(test)]
mod tests {
    use engine::delivery::backlog::{ProgressUpdate, QueuedEvent};
    use engine::event::EventType;
    use engine::ids::{DeviceKey, EventId};
    use sled::Db;

    use super::*;
    use crate::Retention;
    use crate::conformance::samples::{customer, destination};
    use crate::sled::destinations::{DestinationPut, ProgressRows};
    use crate::sled::outbox::Outbox;
    use crate::sled::record::outbox::write_waiting;
    use crate::sled::sweep::LOOKS;

    const CUSTOMERS: u8 = 8;
    const SHARDS: u16 = 20;

    /// Customers with a destination each, for which two events wait in each of some shards.
    fn waiting() -> (Db, Outbox) {
        let db = sled::Config::new().temporary(true).open().unwrap();
        let mut outbox = Outbox::load(&db).unwrap();
        let mut rows = Overlay::new(&db);
        for number in 0..CUSTOMERS {
            let customer = name(number);
            let erp = DestinationPut::of(&destination(&customer, number));
            erp.apply(&mut outbox, &mut rows).unwrap();
            for shard in (0..SHARDS).map(Shard) {
                for sequence in [1, 2].map(Sequence) {
                    let waiting = QueuedEvent {
                        sequence,
                        device: DeviceKey::from_bytes(*shard.first_key().as_bytes()),
                        event: EventId::from_bytes([1; 16]),
                        event_type: EventType::Error,
                    };
                    let key = key::outbox::waiting(&customer, shard, sequence);
                    rows.put(key.into(), write_waiting(&waiting).as_slice().into());
                }
            }
        }
        db.apply_batch(rows.into_batch()).unwrap();
        (db, outbox)
    }

    fn name(number: u8) -> CustomerId {
        customer(&format!("customer-{number}")).id
    }

    /// How much a sweep removed, and how many looks it took.
    fn sweep(db: &Db, outbox: &mut Outbox, looks: usize) -> (u64, usize, bool) {
        let mut rows = Overlay::new(db);
        let mut due = SweepTargets {
            retention: Retention::NOTHING,
            stale: &mut outbox.stale,
            looks,
        };
        let swept = super::super::sweep(&mut due, u32::MAX, 0, &mut rows).unwrap();
        let looks = looks - due.looks;
        db.apply_batch(rows.into_batch()).unwrap();
        (swept.removed, looks, swept.more)
    }

    fn reach(db: &Db, outbox: &mut Outbox, number: u8, shards: &[u16]) {
        let mut rows = Overlay::new(db);
        let customer = name(number);
        let id = destination(&customer, number).id;
        let reached = shards.iter().map(|shard| (Shard(*shard), Sequence(1)));
        let step = ProgressUpdate {
            reached: reached.collect(),
            ..ProgressUpdate::none(customer, id)
        };
        ProgressRows::of(&step).apply(outbox, &mut rows).unwrap();
        db.apply_batch(rows.into_batch()).unwrap();
    }

    #[test]
    fn a_sweep_looks_only_where_something_changed() {
        let (db, mut outbox) = waiting();
        assert_eq!(sweep(&db, &mut outbox, LOOKS), (0, 0, false));
        reach(&db, &mut outbox, 3, &[0, 7, 19]);
        reach(&db, &mut outbox, 5, &[7]);
        assert_eq!(sweep(&db, &mut outbox, LOOKS), (4, 4, false));
        assert_eq!(sweep(&db, &mut outbox, LOOKS), (0, 0, false));
        // An update without progress changes nothing.
        reach(&db, &mut outbox, 3, &[0, 7, 19]);
        assert_eq!(sweep(&db, &mut outbox, LOOKS), (0, 0, false));
    }

    #[test]
    fn a_sweep_after_a_start_checks_queued_events_in_parts() {
        let (db, _) = waiting();
        let mut outbox = Outbox::load(&db).unwrap();
        // Each shard is looked at once, and after the last of a customer once more.
        let all = usize::from(CUSTOMERS) * (usize::from(SHARDS) + 1);
        assert_eq!(sweep(&db, &mut outbox, 50), (0, 50, true));
        assert_eq!(sweep(&db, &mut outbox, all), (0, all - 50, false));
        assert_eq!(sweep(&db, &mut outbox, LOOKS), (0, 0, false));
    }

    #[test]
    fn a_damaged_cursor_keeps_its_events_and_other_customers_are_swept() {
        let (db, mut outbox) = waiting();
        reach(&db, &mut outbox, 1, &[4]);
        reach(&db, &mut outbox, 2, &[4]);
        let damaged = key::outbox::cursor(destination(&name(1), 1).id, Shard(4));
        db.insert(damaged, "damaged").unwrap();
        assert_eq!(sweep(&db, &mut outbox, LOOKS), (1, 2, false));
    }
}
