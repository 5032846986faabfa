//! Does the tree obey the rules of CONTRIBUTING.md?
//!
//! One test per rule. A failure names the file, the line and the rule; a rule that is wrong is
//! changed here and in CONTRIBUTING.md together, with the reason.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "tidy/coverage.rs"]
mod coverage;
#[path = "tidy/faults.rs"]
mod faults;
#[path = "tidy/imports.rs"]
mod imports;
#[path = "tidy/laws.rs"]
mod laws;
#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/manifest.rs"]
mod manifest;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/purity.rs"]
mod purity;
#[path = "tidy/shape.rs"]
mod shape;
#[path = "tidy/syntax.rs"]
mod syntax;
#[path = "tidy/tree.rs"]
mod tree;

/// Fails with every breach of a rule at once.
fn hold(rule: &str, breaches: &[String]) {
    assert!(
        breaches.is_empty(),
        "{rule}:\n  {}\n",
        breaches.join("\n  ")
    );
}

/// Every mention of a name in lines that a caller cares about, as `file:line: name`.
fn mentions_of(name: &str, cares: impl Fn(&tree::Source, usize) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for source in tree::sources() {
        let lines = source.syntax.lines_with(name).into_iter();
        let lines = lines.filter(|line| cares(source, *line));
        found.extend(lines.map(|line| format!("{}:{line}: {name}", source.path)));
    }
    found
}
