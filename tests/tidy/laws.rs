//! Does each law of ARCHITECTURE.md have the test it names?

use std::fs;

use super::tree;

/// After this word a law names its tests, each between backticks.
const MARK: &str = "Test:";

#[test]
fn each_law_has_a_test_of_its_name() {
    let text = fs::read_to_string(tree::root().join("ARCHITECTURE.md")).unwrap();
    let laws = laws(&text);
    assert!(
        !laws.is_empty(),
        "ARCHITECTURE.md names a test behind each law: {MARK} `name`"
    );
    let mut tests = Vec::new();
    for source in tree::sources() {
        let functions = source.syntax.functions.iter();
        let run = functions.filter(|function| function.is_test);
        tests.extend(run.map(|function| &function.name));
    }
    let missing: Vec<String> = laws
        .into_iter()
        .filter(|(_, name)| !tests.contains(&name))
        .map(|(line, name)| format!("ARCHITECTURE.md:{line}: no test {name}"))
        .collect();
    super::hold("each law has a test of its name", &missing);
}

/// Every test a text names, with its line.
fn laws(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let Some((_, names)) = text.split_once(MARK) else {
            continue;
        };
        let names = names.split('`').skip(1).step_by(2);
        found.extend(names.map(|name| (line, name.to_owned())));
    }
    found
}

#[test]
fn laws_are_read_from_lists_and_tables() {
    let text = "# Laws\n\
                1. Saved first. Test: `saved_before_spoken`.\n\
                | never twice | Test: `sent_once`, `a_crash_counts` |\n\
                Tests live in `tests`.\n";
    let found: Vec<(usize, String)> = laws(text);
    let expected = [
        (2, "saved_before_spoken"),
        (3, "sent_once"),
        (3, "a_crash_counts"),
    ];
    assert_eq!(found, expected.map(|(line, name)| (line, name.to_owned())));
}
