//! Do the counts of the administration log agree with its entries, and is each entry found from the
//! newest one of its device?

use std::collections::{BTreeMap, BTreeSet};

use engine::ids::{CustomerId, DeviceKey};
use sled::{IVec, Tree};

use super::findings::{Findings, Problem, noun, readable};
use crate::record::entry::unlink;
use crate::record::last_entries::read_last_entries;
use crate::sled::counting::CountedEntry;
use crate::sled::customers_having::customers_having;
use crate::sled::device_log;
use crate::sled::fault::Fault;
use crate::sled::key::{self, Table};
use crate::sled::kv;
use crate::sled::log_entries::read_entry;
use crate::sled::overlay::Overlay;

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
    let mut entries_of: BTreeMap<DeviceKey, usize> = BTreeMap::new();
    for key in tree.scan_prefix(key::log::of_customer(customer)).keys() {
        let key = key?;
        // An entry that cannot be decoded is a finding of its own.
        if let Ok(Some(value)) = kv::load(tree, &key)
            && let Ok(entry) = read_entry(&key, &value)
        {
            rows.begin();
            CountedEntry::of(&entry).enter(&mut rows)?;
            if let Some(about) = entry.about {
                *entries_of.entry(about.key).or_default() += 1;
            }
        }
    }
    let mut counted: BTreeMap<IVec, IVec> = rows.into_rows().into_iter().collect();
    // The log of a removed customer goes kind by kind, so its newest entries go before older ones.
    let is_removed = tree.contains_key(key::log::removed_of(customer))?;
    if !is_removed {
        for (device, entries) in entries_of {
            check_device(customer, (device, entries), (tree, &counted), findings)?;
        }
    }
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
        let Some(table) = Table::of(&key).filter(|table| is_exact(*table)) else {
            continue;
        };
        // The last entries about a device that has a record are part of that.
        let is_elsewhere = table == Table::DeviceInLog;
        if !is_elsewhere && !tree.contains_key(&key)? {
            findings.add(noun(table), Problem::Missing, 1, &readable(&key));
        }
    }
    Ok(())
}

/// Compares the last entries about a device, and follows them back to its oldest one.
fn check_device(
    customer: &CustomerId,
    (device, entries): (DeviceKey, usize),
    (tree, counted): (&Tree, &BTreeMap<IVec, IVec>),
    findings: &mut Findings,
) -> Result<(), Fault> {
    let own_row = key::log::count::device(customer, device);
    let expected = counted.get(own_row.as_slice());
    let expected = expected.map(|row| read_last_entries(row)).transpose()?;
    // A record that cannot be decoded is a finding of its own.
    let Ok(last) = device_log::last_of(customer, device, tree) else {
        return Ok(());
    };
    let mut linked = 0;
    let mut next = last.newest();
    while let Some(place) = next.filter(|_| linked <= entries) {
        let Ok(Some(value)) = kv::load(tree, &key::log::entry(customer, place)) else {
            break;
        };
        linked += 1;
        next = unlink(&value).map_or(None, |(previous, _)| previous);
    }
    if expected != Some(last) || linked != entries {
        let noun = noun(Table::DeviceInLog);
        findings.add(noun, Problem::Different, 1, &readable(&own_row));
    }
    Ok(())
}
