//! Do the counts agree with the rows they count?

use sled::{IVec, Tree};

use super::findings::{Findings, Problem, noun, readable};
use crate::record::number::read_count;
use crate::record::outbox::read_tally;
use crate::sled::fault::Fault;
use crate::sled::key::counted::{self, CountedRows};
use crate::sled::key::{self, Table};

/// Checks the counts of customers, devices, requests, last values, jobs and dead letters.
pub(super) fn check(tree: &Tree, findings: &mut Findings) -> Result<(), Fault> {
    for counted in counted::all() {
        check_groups(tree, &counted, findings)?;
        check_empty(tree, &counted, findings)?;
    }
    let customers = count(tree, &key::customers())?;
    compare(tree, &key::customers_counted(), customers, findings)?;
    for row in tree.scan_prefix(Table::Tally.prefix()) {
        let (key, tally) = row?;
        let rest = key::rest_of(&key, &Table::Tally.prefix());
        let dead = count(tree, &key::append(Table::Dead.prefix(), rest))?;
        if read_tally(&tally).is_ok_and(|tally| i64::try_from(tally.dead) != Ok(dead)) {
            findings.add(noun(Table::Tally), Problem::Different, 1, &readable(&key));
        }
    }
    Ok(())
}

/// Checks the count of each group of rows.
fn check_groups(tree: &Tree, counted: &CountedRows, findings: &mut Findings) -> Result<(), Fault> {
    let mut group: Vec<u8> = Vec::new();
    let mut rows = 0;
    for key in tree.scan_prefix(&counted.rows).keys() {
        let key = key?;
        let rest = key::rest_of(&key, &counted.rows);
        // A key of another form is derived from nothing, which is a finding of its own.
        let Some(next) = (counted.group)(rest) else {
            continue;
        };
        if *next != *group {
            if rows > 0 {
                compare(
                    tree,
                    &key::append(counted.counts.clone(), &group),
                    rows,
                    findings,
                )?;
            }
            group = next.to_vec();
            rows = 0;
        }
        rows += 1;
    }
    if rows > 0 {
        compare(
            tree,
            &key::append(counted.counts.clone(), &group),
            rows,
            findings,
        )?;
    }
    Ok(())
}

/// Checks that there is no count of a group that has no rows.
fn check_empty(tree: &Tree, counted: &CountedRows, findings: &mut Findings) -> Result<(), Fault> {
    for key in tree.scan_prefix(&counted.counts).keys() {
        let key = key?;
        let group = key::append(counted.rows.clone(), key::rest_of(&key, &counted.counts));
        if tree.scan_prefix(group).next().is_none() {
            compare(tree, &key, 0, findings)?;
        }
    }
    Ok(())
}

fn compare(tree: &Tree, key: &[u8], rows: i64, findings: &mut Findings) -> Result<(), Fault> {
    let row: Option<IVec> = tree.get(key)?;
    // One that cannot be decoded is a finding of its own.
    let Ok(count) = row.map_or(Ok(0), |row| read_count(&row)) else {
        return Ok(());
    };
    if count != rows {
        let table = Table::of(key).unwrap_or(Table::Counter);
        let first = format!("{} ({count} instead of {rows})", readable(key));
        findings.add(noun(table), Problem::Different, 1, &first);
    }
    Ok(())
}

fn count(tree: &Tree, prefix: &[u8]) -> Result<i64, Fault> {
    let mut count = 0;
    for key in tree.scan_prefix(prefix).keys() {
        key?;
        count += 1;
    }
    Ok(count)
}
