//! What are the keys of a customer's definitions of objects?
//!
//! A text has a row of its own under an id of its own, so that the texts of a removed customer can
//! be swept in small steps and belong to nobody until then.

use engine::Version;
use engine::definition::DefinitionId;
use engine::ids::CustomerId;

use super::{Builder, Key, Table, append, first_id, rest_of};
use crate::record::definition::TextId;

/// A definition.
pub(crate) fn definition(id: &DefinitionId) -> Key {
    let Version { major, minor } = id.version;
    let of_object = append(of_customer(&id.customer), &id.object.to_be_bytes());
    append(of_object, &[major, minor])
}

/// The prefix of the keys of a customer's definitions; their order is that of objects.
pub(crate) fn of_customer(customer: &CustomerId) -> Key {
    Builder::of(Table::Definition).text(customer.as_str()).end()
}

/// The prefix of the keys of all definitions.
pub(crate) fn definitions() -> Key {
    Builder::of(Table::Definition).end()
}

/// The id of a definition, from its key.
pub(crate) fn id_of(definition: &[u8]) -> Option<DefinitionId> {
    let (rest, version) = rest_of(definition, &definitions()).split_last_chunk()?;
    let (customer, object) = rest.split_last_chunk()?;
    let customer = std::str::from_utf8(customer.strip_suffix(&[0])?).ok()?;
    let [major, minor] = *version;
    Some(DefinitionId {
        customer: CustomerId::parse(customer).ok()?,
        object: u16::from_be_bytes(*object),
        version: Version { major, minor },
    })
}

/// The text of a definition.
pub(crate) fn text(id: TextId) -> Key {
    Builder::of(Table::DefinitionText).bytes(&id).end()
}

/// Marks a text that is left of a removed customer.
pub(crate) fn removed_text(id: TextId) -> Key {
    append(removed(), &id)
}

/// The prefix of the keys that mark texts of removed customers.
pub(crate) fn removed() -> Key {
    Builder::of(Table::RemovedText).end()
}

/// The id of a text, from the key that marks it.
pub(crate) fn text_of_removed(mark: &[u8]) -> Option<TextId> {
    first_id(rest_of(mark, &removed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_id_is_read_from_its_key() {
        let id = |customer, object, version| DefinitionId {
            customer: CustomerId::parse(customer).unwrap(),
            object,
            version: Version::parse(version).unwrap(),
        };
        let ids = [
            id("acme", 3, "1.0"),
            id("acme", 3, "1.1"),
            id("acme", 3, "2.0"),
            id("acme", 33_000, "1.0"),
            id("acme-2", 0, "0.0"),
        ];
        let keys: Vec<Key> = ids.iter().map(definition).collect();
        assert!(keys.is_sorted());
        for (id, key) in ids.iter().zip(&keys) {
            assert_eq!(id_of(key).as_ref(), Some(id));
        }
        assert_eq!(id_of(&definitions()), None);
        assert!(!keys[4].starts_with(&of_customer(&ids[0].customer)));
        let mark = removed_text([9; 16]);
        assert_eq!(text_of_removed(&mark), Some([9; 16]));
        assert_eq!(text_of_removed(&removed()), None);
    }
}
