//! Do both ends of a migration have the same rows? Compared by the number of rows of each table and
//! a digest of them.
//!
//! The ends are read in different orders, so the digest of a table is the sum of those of its rows.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::migration::TableTotals;

/// The rows of each table, and the sum of their digests.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Totals(BTreeMap<&'static str, (u64, u128)>);

impl Totals {
    /// Adds a row, in an encoding that tells any two rows apart.
    pub(crate) fn add(&mut self, table: &'static str, row: &[u8]) {
        let digest: [u8; 32] = Sha256::digest(row).into();
        let (first, _) = digest.split_first_chunk().expect("a digest has 32 bytes");
        let (rows, sum) = self.0.entry(table).or_default();
        *rows += 1;
        *sum = sum.wrapping_add(u128::from_be_bytes(*first));
    }

    /// Which tables differ, and how.
    pub(crate) fn differences(&self, target: &Self) -> Vec<String> {
        let tables = self.0.keys().chain(target.0.keys());
        let mut tables: Vec<_> = tables.collect();
        tables.sort();
        tables.dedup();
        let different = tables.into_iter().filter_map(|table| {
            let of = |totals: &Self| totals.0.get(table).copied().unwrap_or_default();
            let ((rows, sum), (target_rows, target_sum)) = (of(self), of(target));
            match (rows == target_rows, sum == target_sum) {
                (true, true) => None,
                (true, false) => Some(format!("other contents of {table}")),
                (false, _) => Some(format!("{target_rows} instead of {rows} rows of {table}")),
            }
        });
        different.collect()
    }

    /// The tables that have rows.
    pub(crate) fn into_tables(self) -> Vec<TableTotals> {
        let tables = self.0.into_iter();
        let totals = tables.map(|(table, (rows, digest))| TableTotals {
            table,
            rows,
            digest,
        });
        totals.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(rows: &[(&'static str, &str)]) -> Totals {
        let mut totals = Totals::default();
        for (table, row) in rows {
            totals.add(table, row.as_bytes());
        }
        totals
    }

    #[test]
    fn the_order_of_rows_is_not_compared_and_everything_else_is() {
        let source = totals(&[("device", "a"), ("device", "b"), ("sms", "c")]);
        let same = totals(&[("sms", "c"), ("device", "b"), ("device", "a")]);
        assert!(source.differences(&same).is_empty());
        let fewer = totals(&[("device", "a"), ("sms", "c")]);
        assert_eq!(
            source.differences(&fewer),
            ["1 instead of 2 rows of device"]
        );
        let other = totals(&[("device", "a"), ("device", "d"), ("sms", "c")]);
        assert_eq!(source.differences(&other), ["other contents of device"]);
        let more = totals(&[("device", "a"), ("device", "b"), ("sms", "c"), ("job", "")]);
        assert_eq!(source.differences(&more), ["1 instead of 0 rows of job"]);
        assert_eq!(source.into_tables()[1].rows, 1);
    }
}
