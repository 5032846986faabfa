//! Which metrics does `docs/metrics.md` promise the operator?

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A documented metric.
#[derive(Debug)]
pub(crate) struct DocumentedFigure {
    pub(crate) kind: String,
    pub(crate) labels: BTreeSet<String>,
    /// Whether a service on PostgreSQL does not have it.
    pub(crate) is_absent_on_postgres: bool,
}

/// Every documented metric, by name.
pub(crate) fn promised() -> BTreeMap<String, DocumentedFigure> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut promised = BTreeMap::new();
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let (name, figure) = read(row);
        assert!(promised.insert(name, figure).is_none(), "{row}");
    }
    promised
}

/// Reads a row: name, type, labels, and description.
fn read(row: &str) -> (String, DocumentedFigure) {
    let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    let [name, kind, labels, what] = cells[..] else {
        panic!("a row has four cells: {row}");
    };
    assert!(!what.is_empty(), "{row}");
    let labels = labels.split(", ").filter(|label| !label.is_empty());
    let figure = DocumentedFigure {
        kind: kind.to_owned(),
        labels: labels.map(quoted).collect(),
        is_absent_on_postgres: what.contains("absent [on PostgreSQL]"),
    };
    (quoted(name), figure)
}

fn quoted(text: &str) -> String {
    let inner = text.strip_prefix('`').and_then(|it| it.strip_suffix('`'));
    inner.unwrap_or_else(|| panic!("{text}")).to_owned()
}
