//! Where do the rows of the administration log lie?

use engine::admin_log::entry::Entry;
use engine::ids::{CustomerId, Iccid};

use super::{Builder, Key, Table, append, rest_of};
use crate::record::code;

/// An entry. Its category and subject are part of the key, so that they can be filtered by
/// without reading the entry.
pub(crate) fn entry(entry: &Entry) -> Key {
    append(of_customer(&entry.customer), &id_and_kind(entry))
}

/// What the keys of a customer's entries begin with.
pub(crate) fn of_customer(customer: &CustomerId) -> Key {
    Builder::of(Table::Entry).text(customer.as_str()).end()
}

/// That an entry concerns a SIM.
pub(crate) fn entry_of_iccid(entry: &Entry, iccid: &Iccid) -> Key {
    append(of_iccid(&entry.customer, iccid), &id_and_kind(entry))
}

/// What the keys of a customer's entries about a SIM begin with.
pub(crate) fn of_iccid(customer: &CustomerId, iccid: &Iccid) -> Key {
    Builder::of(Table::EntryOfIccid)
        .text(customer.as_str())
        .text(iccid.as_str())
        .end()
}

/// That an entry is so old.
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

/// Behind which id the log of a removed customer is at an end.
pub(crate) fn removed_of(customer: &CustomerId) -> Key {
    append(removed(), customer.as_str().as_bytes())
}

/// What the keys of the logs of removed customers begin with.
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
        .bytes(id)
        .bytes(kind)
        .end();
    Some(key)
}

/// What the keys of a removed customer's log begin with, from the key that marks it removed.
pub(crate) fn of_removed(mark: &[u8]) -> Key {
    let customer = rest_of(mark, &removed());
    Builder::of(Table::Entry).bytes(customer).byte(0).end()
}

/// The end of an entry's keys: its id, its category and its subject.
fn id_and_kind(entry: &Entry) -> [u8; 18] {
    let mut bytes = [0; 18];
    bytes[..16].copy_from_slice(entry.id.as_bytes());
    bytes[16] = code::of_category(entry.category);
    bytes[17] = code::of_subject(entry.subject);
    bytes
}
