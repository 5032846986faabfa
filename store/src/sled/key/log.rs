//! What are the keys of the administration log?
//!
//! The entries of a customer are stored kind by kind, each kind in the order of its ids, so that a
//! list of some kinds reads nothing of the others.

pub(crate) mod count;

use engine::ids::{CustomerId, DeviceKey, EntryId, Iccid};

use super::{Builder, Key, Table, append, rest_of};
use crate::record::entry_place::{EntryPlace, Kind};

/// An entry of a customer.
pub(crate) fn entry(customer: &CustomerId, place: EntryPlace) -> Key {
    append(
        of_kind(of_customer(customer), place.kind),
        place.id.as_bytes(),
    )
}

/// The customer and the place of an entry, from its key.
pub(crate) fn place_of(key: &[u8]) -> Option<(&str, EntryPlace)> {
    let rest = key.strip_prefix(&*Table::Entry.prefix())?;
    let (rest, id) = rest.split_last_chunk()?;
    let (customer, kind) = rest.split_last_chunk()?;
    let customer = std::str::from_utf8(customer.strip_suffix(&[0])?).ok()?;
    let place = EntryPlace {
        id: EntryId::from_bytes(*id),
        kind: Kind::from_bytes(*kind),
    };
    Some((customer, place))
}

/// The prefix of the keys of a customer's entries.
pub(crate) fn of_customer(customer: &CustomerId) -> Key {
    Builder::of(Table::Entry).text(customer.as_str()).end()
}

/// The prefix of the keys of the entries of a kind, under the prefix of a customer.
pub(crate) fn of_kind(of_customer: Key, kind: Kind) -> Key {
    append(of_customer, &kind.to_bytes())
}

/// The row that exists while a customer has entries of a bucket.
pub(crate) fn by_age(bucket: u32, customer: &CustomerId) -> Key {
    append(from_bucket(bucket), customer.as_str().as_bytes())
}

/// Where the rows of a bucket and of those after it begin.
pub(crate) fn from_bucket(bucket: u32) -> Key {
    Builder::of(Table::EntriesByAge)
        .bytes(&bucket.to_be_bytes())
        .end()
}

/// The bucket and the prefix of the keys of the customer's entries, from such a row's key.
pub(crate) fn of_age(by_age: &[u8]) -> Option<(u32, Key)> {
    let rest = rest_of(by_age, &Table::EntriesByAge.prefix());
    let (bucket, customer) = rest.split_first_chunk()?;
    let log = Builder::of(Table::Entry).bytes(customer).byte(0).end();
    Some((u32::from_be_bytes(*bucket), log))
}

/// A SIM that a device had: the device was removed, or has another one.
pub(crate) fn former_sim(customer: &CustomerId, iccid: &Iccid, device: DeviceKey) -> Key {
    append(former_sims(customer, iccid), device.as_bytes())
}

/// The prefix of the keys of the devices that had a SIM.
pub(crate) fn former_sims(customer: &CustomerId, iccid: &Iccid) -> Key {
    Builder::of(Table::FormerSim)
        .text(customer.as_str())
        .text(iccid.as_str())
        .end()
}

/// The payload of an entry.
pub(crate) fn payload(customer: &CustomerId, entry: EntryId) -> Key {
    Builder::of(Table::EntryPayload)
        .text(customer.as_str())
        .bytes(entry.as_bytes())
        .end()
}

/// The row with the last id of the log of a removed customer.
pub(crate) fn removed_of(customer: &CustomerId) -> Key {
    append(removed(), customer.as_str().as_bytes())
}

/// The prefix of the keys of the logs of removed customers.
pub(crate) fn removed() -> Key {
    Builder::of(Table::RemovedLog).end()
}

/// The prefix of the keys of a removed customer's log, from the key that marks it removed.
pub(crate) fn of_removed(mark: &[u8]) -> Key {
    let customer = rest_of(mark, &removed());
    Builder::of(Table::Entry).bytes(customer).byte(0).end()
}

#[cfg(test)]
mod tests {
    use engine::admin_log::entry::{Category, Subject};

    use super::*;

    #[test]
    fn the_log_and_the_bucket_are_read_from_the_row_of_a_bucket() {
        let customer = CustomerId::parse("acme").unwrap();
        let key = by_age(300, &customer);
        assert_eq!(of_age(&key), Some((300, of_customer(&customer))));
        assert!(from_bucket(300) < key && key < from_bucket(301));
        assert_eq!(of_age(&Table::EntriesByAge.prefix()), None);
    }

    #[test]
    fn customer_kind_and_id_are_read_from_the_key_of_an_entry() {
        let customer = CustomerId::parse("acme").unwrap();
        let id = EntryId::from_bytes([7; 16]);
        let kind = Kind::new(Category::Error, Subject::Lifecycle);
        let place = EntryPlace { id, kind };
        let key = entry(&customer, place);
        assert_eq!(place_of(&key), Some(("acme", place)));
        assert_eq!(place_of(&key[..key.len() - 1]), None);
        assert_eq!(place_of(&payload(&customer, id)), None);
    }
}
