//! Is every file shaped as a reader expects: its header, its size, its name, its lines?

use std::path::Path;

use super::tree::{self, Source};
use super::{hold, scanner};

/// Beyond this a file answers more than one question.
const FILE_LINES_MAX: usize = 500;
/// Beyond this a function no longer fits a screen.
const FUNCTION_LINES_MAX: usize = 70;
/// Two files side by side.
const COLUMNS_MAX: usize = 100;
/// Names that say nothing; `mod` because a module's file bears its module's name.
const BANNED_NAMES: [&str; 9] = [
    "util", "utils", "helper", "helpers", "common", "manager", "managers", "misc", "mod",
];

/// The one glob allowed: tests that see the file they stand in.
const OWN_TESTS: &str = "use super::*;";

fn breaches(of: impl Fn(&Source) -> Vec<String>) -> Vec<String> {
    tree::sources().iter().flat_map(of).collect()
}

#[test]
fn every_file_opens_with_the_question_it_answers() {
    let found = breaches(|source| {
        let first = source.text.lines().next().unwrap_or_default();
        let says = first
            .strip_prefix("//! ")
            .is_some_and(|rest| rest.trim().len() > 3);
        if says {
            vec![]
        } else {
            vec![format!("{}:1", source.path)]
        }
    });
    hold("a file opens with `//!` and a sentence", &found);
}

#[test]
fn no_file_is_longer_than_its_question() {
    let found = breaches(|source| {
        let lines = source.text.lines().count();
        let line = FILE_LINES_MAX + 1;
        let path = &source.path;
        if lines < line {
            vec![]
        } else {
            vec![format!("{path}:{line}: {lines} lines")]
        }
    });
    hold("a file has at most 500 lines", &found);
}

#[test]
fn no_function_is_longer_than_a_screen() {
    let found = breaches(|source| {
        let functions = source.functions().into_iter();
        let long = functions.filter(|function| function.lines > FUNCTION_LINES_MAX);
        long.map(|function| {
            let scanner::Function { name, line, lines } = function;
            format!("{}:{line}: {name} has {lines} lines", source.path)
        })
        .collect()
    });
    hold("a function has at most 70 lines", &found);
}

#[test]
fn no_line_is_wider_than_half_a_screen() {
    let found = breaches(|source| {
        let lines = (1..).zip(source.text.lines());
        let wide = lines.filter(|(_, text)| text.chars().count() > COLUMNS_MAX);
        wide.map(|(line, _)| format!("{}:{line}", source.path))
            .collect()
    });
    hold("a line has at most 100 columns", &found);
}

#[test]
fn names_of_files_say_what_is_in_them() {
    let found = breaches(|source| {
        let parts = Path::new(source.path.as_str()).iter();
        let mut stems = parts.map(|part| part.to_string_lossy().replace(".rs", ""));
        let says_nothing = stems.any(|stem| BANNED_NAMES.contains(&stem.as_str()));
        if says_nothing {
            vec![source.path.clone()]
        } else {
            vec![]
        }
    });
    hold("a file's or folder's name says what is in it", &found);
}

#[test]
fn no_function_is_named_get() {
    let found = breaches(|source| {
        let functions = source.functions().into_iter();
        // In a test `get_…` may be a request by that method.
        let got = functions
            .filter(|function| function.name.starts_with("get_") && !source.is_test(function.line));
        got.map(|function| format!("{}:{}: {}", source.path, function.line, function.name))
            .collect()
    });
    hold("a getter bears the name of what it gets", &found);
}

#[test]
fn every_import_says_what_it_imports() {
    let found = breaches(|source| {
        let globs = source.lines().filter(|(line, code)| {
            is_glob(code) && !(source.is_test(*line) && code.trim() == OWN_TESTS)
        });
        globs
            .map(|(line, _)| format!("{}:{line}", source.path))
            .collect()
    });
    hold("no `use x::*`", &found);
}

fn is_glob(code: &str) -> bool {
    let code: String = code.split_whitespace().collect();
    code.match_indices("::*")
        .any(|(at, _)| code[at + 3..].starts_with([';', ',', '}']))
        || code
            .match_indices("{*")
            .any(|(at, _)| code[at + 2..].starts_with([',', '}']))
}

#[test]
fn globs_are_told_from_multiplication() {
    for (code, expected) in [
        ("use super::*;", true),
        ("use a::{b::*, c};", true),
        ("use a::{b, c::*};", true),
        ("use a::{*};", true),
        ("let area = Self::SIDE * Self::SIDE;", false),
        ("let x = f::<*const u8>();", false),
        ("set(&mut { *x });", false),
    ] {
        assert_eq!(is_glob(code), expected, "{code}");
    }
}
