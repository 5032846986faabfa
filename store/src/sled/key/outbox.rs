//! What are the keys of queued events and of destinations?
//!
//! Queued events are ordered by customer, shard and sequence number. The rows of a destination come
//! under its id.

use engine::delivery::backlog::Sequence;
use engine::ids::{CustomerId, DestinationId, Shard};
use engine::moment::Timestamp;

use super::{Builder, Key, Table, append, first_id, rest_of};

/// The newest sequence number of a queued event.
pub(crate) fn newest_number() -> Key {
    Builder::of(Table::NewestNumber).end()
}

/// A queued event.
pub(crate) fn waiting(customer: &CustomerId, shard: Shard, sequence: Sequence) -> Key {
    append(waiting_in(customer, shard), &sequence.0.to_be_bytes())
}

/// The prefix of the keys of the queued events of a shard; their order is that of numbers.
pub(crate) fn waiting_in(customer: &CustomerId, shard: Shard) -> Key {
    append(waiting_of(customer), &shard.0.to_be_bytes())
}

/// The prefix of the keys of a customer's queued events.
pub(crate) fn waiting_of(customer: &CustomerId) -> Key {
    Builder::of(Table::QueuedEvent)
        .text(customer.as_str())
        .end()
}

/// The prefix of the keys of all queued events.
pub(crate) fn all_waiting() -> Key {
    Builder::of(Table::QueuedEvent).end()
}

/// The customer, shard and sequence number of a queued event, from its key.
pub(crate) fn position_of(waiting: &[u8]) -> Option<(CustomerId, Shard, Sequence)> {
    let (rest, sequence) = rest_of(waiting, &all_waiting()).split_last_chunk()?;
    let (customer, shard) = rest.split_last_chunk()?;
    let customer = std::str::from_utf8(customer.strip_suffix(&[0])?).ok()?;
    Some((
        CustomerId::parse(customer).ok()?,
        Shard(u16::from_be_bytes(*shard)),
        Sequence(u64::from_be_bytes(*sequence)),
    ))
}

/// The part of the key of a queued event that is the same for its shard.
pub(crate) fn shard_part(waiting: &[u8]) -> &[u8] {
    let part = waiting.split_last_chunk::<8>();
    part.map_or(waiting, |(part, _)| part)
}

/// The sequence number at the end of a key.
pub(crate) fn last_number(key: &[u8]) -> Option<Sequence> {
    let sequence = key.last_chunk()?;
    Some(Sequence(u64::from_be_bytes(*sequence)))
}

/// How many events of a customer ever got a sequence number.
pub(crate) fn numbered(customer: &CustomerId) -> Key {
    Builder::of(Table::Counter)
        .byte(6)
        .text(customer.as_str())
        .end()
}

/// A destination.
pub(crate) fn destination(id: DestinationId) -> Key {
    Builder::of(Table::Destination).bytes(id.as_bytes()).end()
}

/// Index: a destination of a customer.
pub(crate) fn destination_of(customer: &CustomerId, id: DestinationId) -> Key {
    append(destinations_of(customer), id.as_bytes())
}

/// The prefix of the keys of a customer's destinations.
pub(crate) fn destinations_of(customer: &CustomerId) -> Key {
    Builder::of(Table::DestinationOfCustomer)
        .text(customer.as_str())
        .end()
}

/// The prefix of the keys of the destinations of all customers.
pub(crate) fn all_destinations() -> Key {
    Builder::of(Table::DestinationOfCustomer).end()
}

/// The counts of a destination.
pub(crate) fn tally(id: DestinationId) -> Key {
    Builder::of(Table::Tally).bytes(id.as_bytes()).end()
}

/// The cursor of a destination in a shard.
pub(crate) fn cursor(id: DestinationId, shard: Shard) -> Key {
    append(all_cursors(id), &shard.0.to_be_bytes())
}

/// The prefix of the keys of a destination's cursors.
pub(crate) fn all_cursors(id: DestinationId) -> Key {
    Builder::of(Table::Cursor).bytes(id.as_bytes()).end()
}

/// The shard of a cursor, from its key.
pub(crate) fn shard_reached(reached: &[u8]) -> Option<Shard> {
    let shard = reached.last_chunk()?;
    Some(Shard(u16::from_be_bytes(*shard)))
}

/// A pending retry of a destination.
pub(crate) fn retry(id: DestinationId, sequence: Sequence) -> Key {
    append(all_retries(id), &sequence.0.to_be_bytes())
}

/// The prefix of the keys of the pending retries of a destination.
pub(crate) fn all_retries(id: DestinationId) -> Key {
    Builder::of(Table::Retry).bytes(id.as_bytes()).end()
}

/// A dead letter of a destination.
pub(crate) fn dead(id: DestinationId, sequence: Sequence) -> Key {
    append(all_dead(id), &sequence.0.to_be_bytes())
}

/// The prefix of the keys of the dead letters of a destination.
pub(crate) fn all_dead(id: DestinationId) -> Key {
    Builder::of(Table::Dead).bytes(id.as_bytes()).end()
}

/// Index: a dead letter by its instant.
pub(crate) fn dead_by_age(at: Timestamp, id: DestinationId, sequence: Sequence) -> Key {
    Builder(dead_from(at))
        .bytes(id.as_bytes())
        .bytes(&sequence.0.to_be_bytes())
        .end()
}

/// Where the dead letters of an instant or later begin.
pub(crate) fn dead_from(at: Timestamp) -> Key {
    Builder::of(Table::DeadByAge).instant(at).end()
}

/// Where the dead letters of all destinations begin, ordered by their age.
pub(crate) fn by_age() -> Key {
    Builder::of(Table::DeadByAge).end()
}

/// The destination and the sequence number of a dead letter, from the key that orders it by age.
pub(crate) fn dead_from_age(age: &[u8]) -> Option<(DestinationId, Sequence)> {
    let rest = rest_of(age, &dead_from(Timestamp::default()));
    let (id, sequence) = rest.split_first_chunk()?;
    let sequence = u64::from_be_bytes(sequence.try_into().ok()?);
    Some((DestinationId::from_bytes(*id), Sequence(sequence)))
}

/// Marks a removed destination while rows of it are left.
pub(crate) fn removed_of(id: DestinationId) -> Key {
    append(removed(), id.as_bytes())
}

/// The prefix of the keys that mark removed destinations.
pub(crate) fn removed() -> Key {
    Builder::of(Table::RemovedDestination).end()
}

/// The removed destination, from the key that marks it.
pub(crate) fn destination_of_removed(mark: &[u8]) -> Option<DestinationId> {
    first_id(rest_of(mark, &removed())).map(DestinationId::from_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_key_are_read_from_it() {
        let customer = CustomerId::parse("acme").unwrap();
        let id = DestinationId::from_bytes([7; 16]);
        let (shard, sequence) = (Shard(1_023), Sequence(u64::MAX - 1));
        let waits = waiting(&customer, shard, sequence);
        let place = Some((customer.clone(), shard, sequence));
        assert_eq!(position_of(&waits), place);
        assert_eq!(last_number(&waits), Some(sequence));
        assert_eq!(position_of(&waiting_of(&customer)), None);
        assert_eq!(shard_reached(&cursor(id, shard)), Some(shard));
        let age = dead_by_age(Timestamp::from_ms(-5), id, sequence);
        assert_eq!(dead_from_age(&age), Some((id, sequence)));
        assert_eq!(dead_from_age(&by_age()), None);
        assert_eq!(destination_of_removed(&removed_of(id)), Some(id));
        assert_eq!(destination_of_removed(&removed()), None);
    }

    #[test]
    fn queued_events_are_in_the_order_of_their_numbers() {
        let [short, long] = ["acme", "acme-2"].map(|id| CustomerId::parse(id).unwrap());
        let keys = [
            waiting(&short, Shard(0), Sequence(256)),
            waiting(&short, Shard(1), Sequence(1)),
            waiting(&short, Shard(1), Sequence(2)),
            waiting(&short, Shard(256), Sequence(0)),
            waiting(&long, Shard(0), Sequence(0)),
        ];
        assert!(keys.is_sorted());
        assert!(!keys[4].starts_with(&waiting_of(&short)));
    }
}
