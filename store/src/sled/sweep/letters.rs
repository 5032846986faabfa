//! What waits that every destination of its customer is past? An event that a destination holds
//! back is with that destination, so nothing is lost with what goes here.

use engine::delivery::letter::Sequence;
use engine::ids::{CustomerId, DestinationId, Shard};

use super::Due;
use super::room::{Removed, Room};
use crate::key;
use crate::record::Unreadable;
use crate::record::letter::read_tally;
use crate::record::number::read_sequence;
use crate::sled::fault::Fault;
use crate::sled::kv::Rows;
use crate::sled::overlay::Overlay;

/// What a customer may have removed in one turn, however many wait for theirs.
const TURN: usize = 128;

/// Removes what waits that every destination is past, customer by customer.
pub(super) fn passed(
    due: &mut Due<'_>,
    room: Room,
    rows: &mut Overlay<'_>,
) -> Result<Removed, Fault> {
    let mut removed = Removed::default();
    while let Some(customer) = due.stale.next_customer().filter(|_| due.looks > 0) {
        let left = room.behind(removed);
        let keys = left.keys(rows);
        if keys == 0 {
            removed.full = true;
            break;
        }
        let share = Room {
            things: left.things.min(TURN.max(keys / due.stale.customers())),
            ..left
        };
        removed.things += turn(&customer, due, share, rows)?;
    }
    Ok(removed)
}

/// Removes what is stale of a customer, and says how much.
fn turn(
    customer: &CustomerId,
    due: &mut Due<'_>,
    room: Room,
    rows: &mut Overlay<'_>,
) -> Result<usize, Fault> {
    let destinations = Destinations::of(customer, rows)?;
    let mut removed = Removed::default();
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
        let first = key::letter::waiting_in(customer, shard);
        let last = key::letter::waiting(customer, shard, destinations.past(shard, rows)?);
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

/// The first shard from one on in which something waits.
fn first_waiting(
    customer: &CustomerId,
    from: Shard,
    rows: &Overlay<'_>,
) -> Result<Option<Shard>, Fault> {
    let first = key::letter::waiting_in(customer, from);
    let end = key::behind(key::letter::waiting_of(customer));
    let Some(key) = rows.keys_between(&first, &end, 1)?.pop() else {
        return Ok(None);
    };
    let place = key::letter::place_of(&key);
    let (_, shard, _) = place.ok_or(Unreadable::Damaged("the key of what waits"))?;
    Ok(Some(shard))
}

/// The destinations of a customer, each with the number that it begins behind.
struct Destinations(Vec<(DestinationId, Sequence)>);

impl Destinations {
    fn of(customer: &CustomerId, rows: &Overlay<'_>) -> Result<Self, Fault> {
        let mut destinations = Vec::new();
        for key in rows.keys(&key::letter::destinations_of(customer), usize::MAX)? {
            let id = key::last_id(&key).ok_or(Unreadable::Damaged("an index of destinations"))?;
            let id = DestinationId::from_bytes(id);
            if let Some(row) = rows.row(&key::letter::tally(id))? {
                let since = read_tally(&row).map(|tally| tally.since);
                destinations.push((id, or_nothing(since)));
            }
        }
        Ok(Self(destinations))
    }

    /// Up to which number all of them are past a shard. Nobody waits for anything where there are
    /// none.
    fn past(&self, shard: Shard, rows: &Overlay<'_>) -> Result<Sequence, Fault> {
        let mut past = Sequence(u64::MAX);
        for (id, since) in &self.0 {
            let reached = match rows.row(&key::letter::reached(*id, shard))? {
                Some(row) => or_nothing(read_sequence(&row)).max(*since),
                None => *since,
            };
            past = past.min(reached);
        }
        Ok(past)
    }
}

/// A destination of which it cannot be read how far it has come is past nothing, and other
/// customers do not suffer from it.
fn or_nothing(read: Result<Sequence, Unreadable>) -> Sequence {
    read.unwrap_or_else(|why| {
        tracing::error!(%why, "it cannot be read how far a destination has come");
        Sequence::default()
    })
}
