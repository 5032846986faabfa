//! Which customers have rows of a kind? Seeks from one customer to the next, however many rows each
//! has.

use engine::ids::CustomerId;
use sled::Tree;

use super::fault::Fault;
use super::key;
use crate::record::Unreadable;

/// The customers that have rows whose keys are this prefix followed by a customer.
pub(super) fn customers_having(tree: &Tree, table: &[u8]) -> Result<Vec<CustomerId>, Fault> {
    let end = key::behind(table.to_vec());
    let mut first = table.to_vec();
    let mut customers = Vec::new();
    while let Some(row) = tree.range::<&[u8], _>(first.as_slice()..&end).next() {
        let (key, _) = row?;
        let found = key::customer_in(&key, table);
        let (part, customer) = found.ok_or(Unreadable::Damaged("a key without customer"))?;
        first = key::behind(part.to_vec());
        customers.push(customer);
    }
    Ok(customers)
}

#[cfg(test)]
mod tests {
    use engine::delivery::backlog::Sequence;
    use engine::ids::Partition;

    use super::*;
    use crate::sled::key::event::{block, blocks};

    #[test]
    fn each_customer_that_has_rows_is_found_once() {
        let db = sled::Config::new().temporary(true).open().unwrap();
        let ids = ["a", "a-1", "a.b", "b"].map(|id| CustomerId::parse(id).unwrap());
        for customer in &ids {
            for partition in Partition::all() {
                let key = block(customer, partition, Sequence(u64::MAX));
                db.insert(key, "").unwrap();
            }
        }
        db.insert(key::customer(&ids[0]), "").unwrap();
        assert_eq!(customers_having(&db, &blocks()).unwrap(), ids);
        assert_eq!(customers_having(&db, &key::settings()).unwrap(), []);
        db.insert(blocks(), "").unwrap();
        assert!(customers_having(&db, &blocks()).is_err());
    }
}
