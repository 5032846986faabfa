//! Is every file shaped as a reader expects: its header, its name, its lines?

use std::path::Path;

use super::hold;
use super::syntax::Syntax;
use super::tree::{self, Source};

/// Two files side by side.
const COLUMNS_MAX: usize = 100;
/// Names without meaning; `mod` because a module's file has its module's name.
const BANNED_NAMES: [&str; 9] = [
    "util", "utils", "helper", "helpers", "common", "manager", "managers", "misc", "mod",
];

/// The only allowed glob: tests that see the file they are in.
const OWN_TESTS: [&str; 4] = ["super", ":", ":", "*"];

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
        let functions = source.syntax.functions.iter();
        // In a test `get_…` may be a request with that method.
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
        let globs = globs(&source.syntax).into_iter();
        let globs = globs.filter(|(line, own)| !(*own && source.is_test(*line)));
        globs
            .map(|(line, _)| format!("{}:{line}", source.path))
            .collect()
    });
    hold("no `use x::*`", &found);
}

/// The line of each glob import, and whether it is `use super::*;`.
fn globs(syntax: &Syntax) -> Vec<(usize, bool)> {
    let stars = syntax.places(&["*"]).into_iter().filter(|&star| {
        let (before, after) = (star.checked_sub(1), Some(star + 1));
        matches!(syntax.text(before), ":" | "{") && matches!(syntax.text(after), ";" | "," | "}")
    });
    let own = syntax.places(&OWN_TESTS);
    stars
        .map(|star| (syntax.tokens[star].line, own.contains(&(star - 3))))
        .collect()
}

#[test]
fn globs_are_distinguished_from_multiplication() {
    for (code, expected) in [
        ("use super::*;", vec![(1, true)]),
        ("use a::{b::*, c};", vec![(1, false)]),
        ("use a::{b, c::*};", vec![(1, false)]),
        ("use a::{*};", vec![(1, false)]),
        ("let area = Self::SIDE * Self::SIDE;", vec![]),
        ("let sides = A { a: 2 * 3, ..b };", vec![]),
        ("let x = f::<*const u8>();", vec![]),
        ("set(&mut { *x });", vec![]),
    ] {
        assert_eq!(globs(&Syntax::of(code)), expected, "{code}");
    }
}
