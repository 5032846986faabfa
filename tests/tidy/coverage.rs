//! Does each line of the specification have the tests that docs/seed-coverage.md names for it, and
//! each case of conformance those that docs/lwm2m-conformance.md names?
//!
//! A row of a table there has three cells: what the specification says or the name of the case,
//! what the service does or the case asks, and the tests that cover it, each as `file::test`, or
//! that it is not built or not done.

use std::collections::BTreeSet;
use std::fs;

use super::tree;

const DOCUMENT: &str = "docs/seed-coverage.md";

const CONFORMANCE: &str = "docs/lwm2m-conformance.md";

/// What a row says in place of tests if there is nothing to test.
const UNTESTED: [&str; 2] = ["not built", "not done"];

/// The numbers of the cases of LwM2M.
const LWM2M_CASES: [u16; 61] = [
    0, 1, 2, 4, 5, 6, 7, 8, 9, 101, 102, 103, 104, 105, 107, 108, 109, 201, 203, 204, 205, 211,
    212, 215, 220, 221, 222, 223, 224, 225, 226, 227, 228, 229, 230, 231, 232, 233, 234, 235, 236,
    237, 241, 256, 257, 260, 261, 280, 281, 301, 302, 303, 304, 305, 306, 307, 308, 309, 310, 311,
    401,
];

/// The numbers of the cases of CoAP by their group.
const COAP_CASES: [(&str, &[u8]); 4] = [
    (
        "CORE",
        &[
            1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 31,
        ],
    ),
    ("BLOCK", &[1, 2, 3, 4, 5, 6]),
    ("LINK", &[1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ("OBS", &[1, 2, 4, 5, 6, 7, 8, 9, 10, 12]),
];

/// How many ways there are in which servers trip.
const TRAPS: u8 = 16;

/// The additions of LwM2M 1.2 at least.
const ADDITIONS_MIN: usize = 15;

/// The sections of the specification that the document goes through.
const SECTIONS: [&str; 24] = [
    "1", "2.1", "2.2", "2.3", "2.4", "3", "4.1", "4.2", "4.3", "4.4", "4.5", "4.6", "4.7", "4.8",
    "4.9", "4.10", "4.11", "5", "6.1", "6.2", "6.3", "6.4", "7", "8",
];

/// A row of a table.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Row {
    /// Its line, from 1.
    pub(crate) line: usize,
    cells: Vec<String>,
}

#[test]
fn each_line_of_the_specification_has_its_named_tests() {
    let rows = rows_of(DOCUMENT);
    assert!(rows.len() > 100, "only {} rows", rows.len());
    hold_tests(DOCUMENT, &rows);
}

#[test]
fn each_case_of_conformance_is_listed_with_its_named_tests() {
    let rows = rows_of(CONFORMANCE);
    hold_tests(CONFORMANCE, &rows);
    let listed = || rows.iter().filter_map(|row| row.cells.first());
    let lwm2m = LWM2M_CASES.iter().map(|number| format!("int-{number}"));
    let coap = COAP_CASES.iter().flat_map(|(group, numbers)| {
        let name = move |number: &u8| format!("TD_COAP_{group}_{number:02}");
        numbers.iter().map(name)
    });
    let traps = (1..=TRAPS).map(|number| format!("trap-{number}"));
    let is_named = |name: &String| listed().filter(|it| *it == name).count() == 1;
    let missing = lwm2m.chain(coap).chain(traps).filter(|it| !is_named(it));
    let missing: Vec<_> = missing
        .map(|name| format!("{CONFORMANCE}: {name} is not there once"))
        .collect();
    super::hold("each case is listed once", &missing);
    let additions = listed().filter(|it| it.starts_with("1.2/")).count();
    assert!(additions >= ADDITIONS_MIN, "only {additions} of LwM2M 1.2");
}

#[test]
fn the_document_goes_through_every_section_in_order() {
    let text = fs::read_to_string(tree::root().join(DOCUMENT)).unwrap();
    let titles = text.lines().filter_map(|line| line.strip_prefix("## "));
    let numbers = titles.filter_map(|title| title.split(' ').next());
    let is_one = |number: &&str| number.starts_with(|first: char| first.is_ascii_digit());
    let found: Vec<_> = numbers.filter(is_one).collect();
    assert_eq!(found, SECTIONS);
}

#[test]
fn each_kind_of_log_entry_is_in_the_guide_of_the_api() {
    const GUIDE: &str = "src/api/docs/guide.html";
    let guide = fs::read_to_string(tree::root().join(GUIDE)).unwrap();
    let is_kind = |text: &&str| {
        text.strip_suffix(']')
            .and_then(|text| text.split_once('['))
            .is_some_and(|(component, kind)| {
                let is_word = |it: &str| it.chars().all(char::is_alphanumeric) && !it.is_empty();
                is_word(component) && is_word(kind)
            })
    };
    let log = tree::sources().iter();
    let log = log.filter(|it| it.is_in(&["engine/src/admin_log"]));
    let kinds: BTreeSet<_> = log
        .flat_map(|it| it.text.split('"').filter(is_kind))
        .collect();
    assert!(kinds.len() > 10, "only {kinds:?}");
    let is_missing = |kind: &&&str| !guide.contains(&format!("<code>{kind}</code>"));
    let missing = kinds.iter().filter(is_missing);
    let missing: Vec<_> = missing.map(|kind| format!("{GUIDE}: no {kind}")).collect();
    super::hold("each kind of log entry is described", &missing);
}

fn rows_of(document: &str) -> Vec<Row> {
    rows(&fs::read_to_string(tree::root().join(document)).unwrap())
}

/// Fails if a row of a document names no test, or one that is not there.
fn hold_tests(document: &str, rows: &[Row]) {
    let missing = rows.iter().flat_map(|row| {
        let missing = faults(row, &is_a_test).into_iter();
        missing.map(|fault| format!("{document}:{}: {fault}", row.line))
    });
    let missing: Vec<_> = missing.collect();
    super::hold("each line has the tests named for it", &missing);
}

/// The faults of a row.
pub(crate) fn faults(row: &Row, is_a_test: &dyn Fn(&str, &str) -> bool) -> Vec<String> {
    let [_, _, tests] = row.cells.as_slice() else {
        return vec![format!("{} cells and not 3", row.cells.len())];
    };
    if row.cells.iter().any(String::is_empty) {
        return vec!["an empty cell".to_owned()];
    }
    let mut faults = Vec::new();
    let named: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
    let is_marked = UNTESTED.iter().any(|mark| tests.starts_with(mark));
    if named.is_empty() && !is_marked {
        faults.push(format!(
            "no test, and not marked as {}",
            UNTESTED.join(" or ")
        ));
    }
    for name in named {
        match name.split_once("::") {
            Some((file, test)) if is_a_test(file, test) => {}
            _ => faults.push(format!("there is no test {name}")),
        }
    }
    faults
}

/// Every row of every table, without their heads.
pub(crate) fn rows(text: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let Some(inside) = text.strip_prefix('|') else {
            continue;
        };
        if inside.starts_with("---") {
            rows.pop();
            continue;
        }
        let inside = inside.strip_suffix('|').unwrap_or(inside);
        let cells = inside.split(" | ").map(|cell| cell.trim().to_owned());
        let cells = cells.collect();
        rows.push(Row { line, cells });
    }
    rows
}

/// Whether a file has a test of this name.
pub(crate) fn is_a_test(file: &str, name: &str) -> bool {
    let mut sources = tree::sources().iter();
    let source = sources.find(|source| source.path == file);
    let mut functions = source.iter().flat_map(|source| &source.syntax.functions);
    functions.any(|function| function.is_test && function.name == name)
}

#[test]
fn rows_are_read_without_the_heads_of_their_tables() {
    let text = "# Title\n\
                | says | does | tests |\n\
                |---|---|---|\n\
                | id | a UUID | `a.rs::b` |\n\
                Words | and words.\n\
                | a|b | x | not built |\n";
    let cells = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
    let expected = [
        (4, cells(["id", "a UUID", "`a.rs::b`"])),
        (6, cells(["a|b", "x", "not built"])),
    ];
    let expected = expected.map(|(line, cells)| Row { line, cells });
    assert_eq!(rows(text), expected);
}

#[test]
fn a_row_without_a_test_that_is_there_is_a_fault() {
    let known = |file: &str, test: &str| (file, test) == ("a.rs", "b");
    let cases = [
        ("x | y | `a.rs::b`", 0),
        ("x | y | `a.rs::b`, `a.rs::c`", 1),
        ("x | y | `b.rs::b`, `b`", 2),
        ("x | y | not built", 0),
        ("x | y | not done: why", 0),
        ("x | y | not built: `a.rs::b`", 0),
        ("x | y | not built: `a.rs::c`", 1),
        ("x | y | later", 1),
        ("x |  | `a.rs::b`", 1),
        ("x | `a.rs::b`", 1),
    ];
    for (cells, expected) in cases {
        let row = rows(&format!("| {cells} |")).remove(0);
        assert_eq!(faults(&row, &known).len(), expected, "{cells}");
    }
}
