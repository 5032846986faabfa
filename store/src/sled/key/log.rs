//! What are the keys of the administration log?
//!
//! The entries of a customer are stored kind by kind, each kind in the order of its ids, so that a
//! list of some kinds reads nothing of the others.

pub(crate) mod count;

use engine::admin_log::entry::{Category, Entry, Subject};
use engine::ids::{CustomerId, DeviceKey, EntryId, Iccid};

use super::{Builder, Key, Table, append, rest_of};
use crate::sled::record::code;

/// The kind of an entry: its category and its subject.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Kind([u8; 2]);

impl Kind {
    /// The kind of the entries of this category and subject.
    pub(crate) fn new(category: Category, subject: Subject) -> Self {
        Self([code::of_category(category), code::of_subject(subject)])
    }

    /// Its place among the counts of a time span; the places of later subjects come last.
    pub(crate) fn place(self) -> usize {
        let [category, subject] = self.0.map(usize::from);
        2 * subject.saturating_sub(1) + category.saturating_sub(1)
    }

    /// Every kind that passes a filter.
    pub(crate) fn all(category: Option<Category>, subject: Option<Subject>) -> Vec<Self> {
        let categories = Category::ALL.into_iter();
        let categories = categories.filter(|one| category.is_none_or(|wanted| wanted == *one));
        let kinds = categories.flat_map(|category| {
            let subjects = Subject::ALL.into_iter();
            let subjects = subjects.filter(|one| subject.is_none_or(|wanted| wanted == *one));
            subjects.map(move |subject| Self::new(category, subject))
        });
        kinds.collect()
    }
}

/// Where an entry is in the log of its customer. Places are in the order of ids.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct EntryPlace {
    /// The id of the entry.
    pub(crate) id: EntryId,
    /// Its kind.
    pub(crate) kind: Kind,
}

impl EntryPlace {
    /// The place of an entry.
    pub(crate) fn of(entry: &Entry) -> Self {
        Self {
            id: entry.id,
            kind: Kind::new(entry.category, entry.subject),
        }
    }

    /// How many bytes it has.
    pub(crate) const BYTES: usize = 18;

    /// As bytes.
    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(self.id.as_bytes());
        bytes[16..].copy_from_slice(&self.kind.0);
        bytes
    }

    /// From its bytes, and the bytes after them.
    pub(crate) fn split_from(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (id, rest) = bytes.split_first_chunk()?;
        let (kind, rest) = rest.split_first_chunk()?;
        let place = Self {
            id: EntryId::from_bytes(*id),
            kind: Kind(*kind),
        };
        Some((place, rest))
    }
}

/// An entry of a customer.
pub(crate) fn entry(customer: &CustomerId, place: EntryPlace) -> Key {
    append(
        of_kind(of_customer(customer), place.kind),
        place.id.as_bytes(),
    )
}

/// The customer, the codes of category and subject, and the id of an entry, from its key.
pub(crate) fn place_of(key: &[u8]) -> Option<(&str, [u8; 2], EntryId)> {
    let rest = key.strip_prefix(&*Table::Entry.prefix())?;
    let (rest, id) = rest.split_last_chunk()?;
    let (customer, kind) = rest.split_last_chunk()?;
    let customer = std::str::from_utf8(customer.strip_suffix(&[0])?).ok()?;
    Some((customer, *kind, EntryId::from_bytes(*id)))
}

/// The prefix of the keys of a customer's entries.
pub(crate) fn of_customer(customer: &CustomerId) -> Key {
    Builder::of(Table::Entry).text(customer.as_str()).end()
}

/// The prefix of the keys of the entries of a kind, under the prefix of a customer.
pub(crate) fn of_kind(of_customer: Key, kind: Kind) -> Key {
    append(of_customer, &kind.0)
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
    use super::*;

    #[test]
    fn every_kind_has_a_place_of_its_own_and_a_filter_takes_those_it_names() {
        let kinds = Kind::all(None, None);
        let mut places: Vec<_> = kinds.iter().map(|kind| kind.place()).collect();
        places.sort_unstable();
        assert_eq!(places, (0..kinds.len()).collect::<Vec<_>>());
        let errors = Kind::all(Some(Category::Error), None);
        assert_eq!(errors.len(), Subject::ALL.len());
        let one = Kind::all(Some(Category::Info), Some(Subject::Lifecycle));
        assert_eq!(one, [Kind::new(Category::Info, Subject::Lifecycle)]);
    }

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
        let key = entry(&customer, EntryPlace { id, kind });
        assert_eq!(place_of(&key), Some(("acme", kind.0, id)));
        assert_eq!(place_of(&key[..key.len() - 1]), None);
        assert_eq!(place_of(&payload(&customer, id)), None);
    }

    #[test]
    fn a_place_is_read_from_its_bytes() {
        let place = EntryPlace {
            id: EntryId::from_bytes([7; 16]),
            kind: Kind::new(Category::Error, Subject::Lifecycle),
        };
        let bytes = [&place.to_bytes()[..], b"rest"].concat();
        assert_eq!(EntryPlace::split_from(&bytes), Some((place, &b"rest"[..])));
        assert_eq!(EntryPlace::split_from(&bytes[..17]), None);
    }
}
