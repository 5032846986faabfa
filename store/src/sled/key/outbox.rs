//! What are the keys of destinations and their progress? All come under the id of the destination.

use engine::delivery::backlog::Sequence;
use engine::ids::{CustomerId, DestinationId, Partition};
use engine::moment::Timestamp;

use super::{Builder, Key, Table, append, first_id, rest_of};

/// The sequence number at the end of a key.
pub(crate) fn last_number(key: &[u8]) -> Option<Sequence> {
    let sequence = key.last_chunk()?;
    Some(Sequence(u64::from_be_bytes(*sequence)))
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

/// The cursor of a destination in a partition.
pub(crate) fn cursor(id: DestinationId, partition: Partition) -> Key {
    append(all_cursors(id), &[partition.0])
}

/// The prefix of the keys of a destination's cursors.
pub(crate) fn all_cursors(id: DestinationId) -> Key {
    Builder::of(Table::Cursor).bytes(id.as_bytes()).end()
}

/// The partition of a cursor, from its key.
pub(crate) fn partition_reached(reached: &[u8]) -> Option<Partition> {
    reached.last().map(|partition| Partition(*partition))
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

/// The destination and the sequence number of a dead letter, from its key.
pub(crate) fn place_of_dead(dead: &[u8]) -> Option<(DestinationId, Sequence)> {
    let id = first_id(rest_of(dead, &Table::Dead.prefix()))?;
    Some((DestinationId::from_bytes(id), last_number(dead)?))
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
        let id = DestinationId::from_bytes([7; 16]);
        let (partition, sequence) = (Partition(15), Sequence(u64::MAX - 1));
        assert_eq!(last_number(&retry(id, sequence)), Some(sequence));
        assert_eq!(partition_reached(&cursor(id, partition)), Some(partition));
        let age = dead_by_age(Timestamp::from_ms(-5), id, sequence);
        assert_eq!(dead_from_age(&age), Some((id, sequence)));
        assert_eq!(dead_from_age(&by_age()), None);
        assert_eq!(destination_of_removed(&removed_of(id)), Some(id));
        assert_eq!(destination_of_removed(&removed()), None);
    }
}
