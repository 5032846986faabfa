//! What are the keys of the administration log?
//!
//! The entries of a customer are stored kind by kind, each kind in the order of its ids, so that a
//! list of some kinds reads nothing of the others.

pub(crate) mod count;

use engine::admin_log::entry::{Category, Entry, Subject};
use engine::ids::{CustomerId, EntryId, Iccid};

use super::{Builder, Key, Table, append, rest_of};
use crate::sled::record::code;

/// The kind of an entry: its category and its subject.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
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

/// An entry.
pub(crate) fn entry(entry: &Entry) -> Key {
    entry_of(&entry.customer, kind_of(entry), entry.id)
}

/// The key of an entry of a customer, from its kind and id.
pub(crate) fn entry_of(customer: &CustomerId, kind: Kind, id: EntryId) -> Key {
    append(of_kind(of_customer(customer), kind), id.as_bytes())
}

/// The prefix of the keys of a customer's entries.
pub(crate) fn of_customer(customer: &CustomerId) -> Key {
    Builder::of(Table::Entry).text(customer.as_str()).end()
}

/// The prefix of the keys of the entries of a kind, under the prefix of a customer.
pub(crate) fn of_kind(of_customer: Key, kind: Kind) -> Key {
    append(of_customer, &kind.0)
}

/// Index: an entry about a SIM.
pub(crate) fn entry_of_iccid(entry: &Entry, iccid: &Iccid) -> Key {
    append(of_iccid(&entry.customer, iccid), &id_and_kind(entry))
}

/// The prefix of the keys of a customer's entries about a SIM.
pub(crate) fn of_iccid(customer: &CustomerId, iccid: &Iccid) -> Key {
    Builder::of(Table::EntryOfIccid)
        .text(customer.as_str())
        .text(iccid.as_str())
        .end()
}

/// Index: an entry by its age.
pub(crate) fn entry_by_age(entry: &Entry) -> Key {
    Builder::of(Table::EntryByAge)
        .bytes(&id_and_kind(entry))
        .bytes(entry.customer.as_str().as_bytes())
        .end()
}

/// Where the entries of all customers begin, ordered by their age.
pub(crate) fn by_age() -> Key {
    Builder::of(Table::EntryByAge).end()
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

/// An entry's key, from the key that orders it by age.
pub(crate) fn entry_from_age(age: &[u8]) -> Option<Key> {
    let rest = rest_of(age, &by_age());
    let (id, rest) = rest.split_at_checked(16)?;
    let (kind, customer) = rest.split_at_checked(2)?;
    let key = Builder::of(Table::Entry)
        .bytes(customer)
        .byte(0)
        .bytes(kind)
        .bytes(id)
        .end();
    Some(key)
}

/// The id and the kind of an entry, from its key in the index by SIM.
pub(crate) fn entry_from_iccid(of_sim: &[u8]) -> Option<(EntryId, Kind)> {
    let (rest, kind) = of_sim.split_last_chunk()?;
    let id = rest.last_chunk()?;
    Some((EntryId::from_bytes(*id), Kind(*kind)))
}

/// The prefix of the keys of a removed customer's log, from the key that marks it removed.
pub(crate) fn of_removed(mark: &[u8]) -> Key {
    let customer = rest_of(mark, &removed());
    Builder::of(Table::Entry).bytes(customer).byte(0).end()
}

/// The end of an index key: an entry's id and its kind.
fn id_and_kind(entry: &Entry) -> [u8; 18] {
    let mut bytes = [0; 18];
    bytes[..16].copy_from_slice(entry.id.as_bytes());
    bytes[16..].copy_from_slice(&kind_of(entry).0);
    bytes
}

fn kind_of(entry: &Entry) -> Kind {
    Kind::new(entry.category, entry.subject)
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
    fn an_entry_is_found_by_its_age_and_by_its_sim() {
        let customer = CustomerId::parse("acme").unwrap();
        let iccid = Iccid::parse("8988").unwrap();
        let device = crate::conformance::samples::device(&customer, 1);
        let written = crate::conformance::samples::entry(&device, 10, 1);
        let key = entry(&written);
        assert_eq!(entry_from_age(&entry_by_age(&written)), Some(key.clone()));
        let (id, kind) = entry_from_iccid(&entry_of_iccid(&written, &iccid)).unwrap();
        assert_eq!(entry_of(&customer, kind, id), key);
        assert_eq!(entry_from_age(&by_age()), None);
        assert_eq!(entry_from_iccid(b"short"), None);
    }
}
