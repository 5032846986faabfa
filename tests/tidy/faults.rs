//! Does each fault of a delivery have the test that docs/delivery.md names for it?

use std::fs;

use super::coverage::{faults, is_a_test, rows};
use super::tree;

const DOCUMENT: &str = "docs/delivery.md";

/// The heading of the table of faults.
const HEADING: &str = "## What goes wrong";

#[test]
fn each_fault_of_a_delivery_has_the_tests_named_for_it() {
    let text = fs::read_to_string(tree::root().join(DOCUMENT)).unwrap();
    let (before, table) = text.split_once(HEADING).expect("it has a table of faults");
    let lines_before = before.lines().count();
    let rows = rows(table);
    assert!(rows.len() > 15, "only {} rows", rows.len());
    let missing = rows.iter().flat_map(|row| {
        let missing = faults(row, &is_a_test).into_iter();
        missing.map(|fault| format!("{DOCUMENT}:{}: {fault}", lines_before + row.line))
    });
    let missing: Vec<_> = missing.collect();
    super::hold("each fault has the tests named for it", &missing);
}
