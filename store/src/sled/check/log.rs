//! Do the counts of the administration log agree with its entries?

use std::collections::{BTreeMap, BTreeSet};

use engine::ids::CustomerId;
use sled::{IVec, Tree};

use super::findings::{Findings, Problem, noun, readable};
use crate::sled::counting::CountedEntry;
use crate::sled::customers_having::customers_having;
use crate::sled::fault::Fault;
use crate::sled::key::{self, Table};
use crate::sled::kv;
use crate::sled::overlay::Overlay;
use crate::sled::record::entry::read_entry;

/// The tables of counts of the log.
const COUNTS: [Table; 3] = [Table::EntryCount, Table::DeviceInLog, Table::DevicesCounted];

/// Counts the entries of each customer anew, on an empty tree, and compares.
pub(super) fn check(tree: &Tree, empty: &Tree, findings: &mut Findings) -> Result<(), Fault> {
    let mut customers = BTreeSet::new();
    for table in [&[Table::Entry][..], &COUNTS].concat() {
        match customers_having(tree, &table.prefix()) {
            Ok(having) => customers.extend(having),
            Err(Fault::Unreadable(why)) => findings.unreadable(table, &table.prefix(), &why),
            Err(fault) => return Err(fault),
        }
    }
    for customer in customers {
        check_customer(&customer, tree, empty, findings)?;
    }
    Ok(())
}

fn check_customer(
    customer: &CustomerId,
    tree: &Tree,
    empty: &Tree,
    findings: &mut Findings,
) -> Result<(), Fault> {
    let mut rows = Overlay::new(empty);
    for key in tree.scan_prefix(key::log::of_customer(customer)).keys() {
        let key = key?;
        // An entry that cannot be decoded is a finding of its own.
        if let Ok(Some(value)) = kv::load(tree, &key)
            && let Ok(entry) = read_entry(&value)
        {
            rows.begin();
            CountedEntry::of(&entry).enter(&mut rows)?;
        }
    }
    let mut counted: BTreeMap<IVec, IVec> = rows.into_rows().into_iter().collect();
    // The log of a removed customer goes kind by kind, so its newest entries go before older ones.
    let is_removed = tree.contains_key(key::log::removed_of(customer))?;
    let is_exact = |table| table == Table::EntryCount || !is_removed;
    for table in COUNTS {
        for row in tree.scan_prefix(key::of_customer(table, customer)) {
            let (key, stored) = row?;
            let expected = counted.remove(&key);
            if expected != Some(stored) && is_exact(table) {
                findings.add(noun(table), Problem::Different, 1, &readable(&key));
            }
        }
    }
    for key in counted.into_keys() {
        if let Some(table) = Table::of(&key).filter(|table| is_exact(*table)) {
            findings.add(noun(table), Problem::Missing, 1, &readable(&key));
        }
    }
    Ok(())
}
