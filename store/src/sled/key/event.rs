//! What are the keys of events and last known values?
//!
//! Blocks of events are ordered by customer, partition and number.

use engine::delivery::backlog::Sequence;
use engine::ids::{CustomerId, DeviceKey, Partition};

use super::{Builder, Key, Table, append, rest_of};

/// A block of events, by the number of its first event.
pub(crate) fn block(customer: &CustomerId, partition: Partition, first: Sequence) -> Key {
    append(blocks_in(customer, partition), &first.0.to_be_bytes())
}

/// The prefix of the keys of the blocks of a partition; their order is that of numbers.
pub(crate) fn blocks_in(customer: &CustomerId, partition: Partition) -> Key {
    append(blocks_of(customer), &[partition.0])
}

/// The prefix of the keys of a customer's blocks.
pub(crate) fn blocks_of(customer: &CustomerId) -> Key {
    Builder::of(Table::EventBlock).text(customer.as_str()).end()
}

/// The prefix of the keys of all blocks.
pub(crate) fn blocks() -> Key {
    Builder::of(Table::EventBlock).end()
}

/// The customer, the partition and the first number of a block, from its key.
pub(crate) fn place_of_block(block: &[u8]) -> Option<(CustomerId, Partition, Sequence)> {
    let (rest, first) = rest_of(block, &blocks()).split_last_chunk()?;
    let (partition, customer) = rest.split_last()?;
    let customer = std::str::from_utf8(customer.strip_suffix(&[0])?).ok()?;
    Some((
        CustomerId::parse(customer).ok()?,
        Partition(*partition),
        Sequence(u64::from_be_bytes(*first)),
    ))
}

/// The newest number of an event.
pub(crate) fn newest_number() -> Key {
    Builder::of(Table::NewestNumber).end()
}

/// A page of the newest events of devices.
pub(crate) fn head_page(page: u16) -> Key {
    append(head_pages(), &page.to_be_bytes())
}

/// The prefix of the keys of these pages.
pub(crate) fn head_pages() -> Key {
    Builder::of(Table::HeadPage).end()
}

/// The number of a page, from its key.
pub(crate) fn page_of_key(key: &[u8]) -> Option<u16> {
    let page = rest_of(key, &head_pages()).try_into().ok()?;
    Some(u16::from_be_bytes(page))
}

/// How far these pages were written.
pub(crate) fn checkpoint() -> Key {
    Builder::of(Table::HeadCheckpoint).end()
}

/// The row with the newest number of a removed customer's events.
pub(crate) fn removed_of_customer(customer: &CustomerId) -> Key {
    append(removed_customers(), customer.as_str().as_bytes())
}

/// The prefix of the keys that mark the events of customers removed.
pub(crate) fn removed_customers() -> Key {
    Builder::of(Table::RemovedEvents).end()
}

/// The removed customer, from the key that marks its events removed.
pub(crate) fn customer_of_removed(mark: &[u8]) -> Option<CustomerId> {
    let customer = std::str::from_utf8(rest_of(mark, &removed_customers())).ok()?;
    CustomerId::parse(customer).ok()
}

/// The row with the number of the last event of the history of a removed device.
pub(crate) fn removed_of(device: DeviceKey) -> Key {
    append(removed(), device.as_bytes())
}

/// The prefix of the keys of the histories of removed devices.
pub(crate) fn removed() -> Key {
    Builder::of(Table::RemovedHistory).end()
}

/// A page of the last known values of devices: the same devices as in that of their newest events.
pub(crate) fn value_page(page: u16) -> Key {
    append(value_pages(), &page.to_be_bytes())
}

/// The prefix of the keys of these pages.
pub(crate) fn value_pages() -> Key {
    Builder::of(Table::ValuePage).end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_were_built() {
        let acme = CustomerId::parse("acme").unwrap();
        let place = (acme.clone(), Partition(15), Sequence(u64::MAX));
        let key = block(&acme, Partition(15), Sequence(u64::MAX));
        assert_eq!(place_of_block(&key), Some(place));
        assert_eq!(place_of_block(&key[..12]), None);
        assert_eq!(customer_of_removed(&removed_of_customer(&acme)), Some(acme));
        assert_eq!(page_of_key(&head_page(8_191)), Some(8_191));
    }
}
