//! Is each public type name unique in its crate, and do words that were given up stay away?

use std::collections::BTreeMap;

use super::syntax::Syntax;
use super::tree::{self, Source};
use super::{hold, mentions_of};

/// Kinds of items that have a type's name.
const KINDS: [&str; 5] = ["enum", "struct", "trait", "type", "union"];

/// A file that replaces another where that does not compile, with the same names.
const STAND_INS: [&str; 1] = ["harness/src/load/no_line.rs"];

/// Metaphors for terms of the field. ARCHITECTURE.md and the code use the terms instead.
const GIVEN_UP: [&str; 38] = [
    "BareMouth",
    "Belongings",
    "Board",
    "Boards",
    "Comings",
    "Courier",
    "Crowd",
    "Desk",
    "Door",
    "Doors",
    "Errand",
    "Errands",
    "Fate",
    "Happening",
    "Headcount",
    "Hints",
    "Homes",
    "Lanes",
    "Letter",
    "Muster",
    "Narrator",
    "Neighbours",
    "Occurrence",
    "Office",
    "Outfit",
    "Parcel",
    "PostOffice",
    "Promise",
    "Residents",
    "Scene",
    "Speaker",
    "Speech",
    "Staff",
    "Standing",
    "Stretch",
    "Terms",
    "Traits",
    "Whim",
];

#[test]
fn no_two_public_types_of_a_crate_share_a_name() {
    let mut places_by_name: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for source in tree::sources() {
        let Some(of) = crate_of(source) else {
            continue;
        };
        let types = public_types(&source.syntax);
        for (line, name) in types.filter(|(line, _)| !source.is_test(*line)) {
            let places = places_by_name.entry((of, name)).or_default();
            places.push(format!("{}:{line}: {name}", source.path));
        }
    }
    assert!(places_by_name.len() > 700, "the types were found");
    let shared = places_by_name.into_values().filter(|it| it.len() > 1);
    let shared: Vec<String> = shared.flatten().collect();
    hold(
        "a name of a public type is the only one in its crate",
        &shared,
    );
}

#[test]
fn words_that_were_given_up_do_not_return() {
    let found: Vec<String> = GIVEN_UP
        .iter()
        .flat_map(|word| mentions_of(word, |_, _| true))
        .collect();
    hold("the field's word is used (ARCHITECTURE.md)", &found);
}

/// The crate a file is compiled into; tests and benches are programs of their own.
fn crate_of(source: &Source) -> Option<&str> {
    let (of, rest) = source.path.split_once('/')?;
    let is_product = of == "src" || rest.starts_with("src/");
    (is_product && !source.is_in(&STAND_INS)).then_some(of)
}

/// The public types of a text, with their lines.
fn public_types(syntax: &Syntax) -> impl Iterator<Item = (usize, &str)> {
    let places = syntax.tokens.iter().enumerate();
    let kinds = places.filter(|(_, token)| KINDS.contains(&token.text.as_str()));
    kinds.filter_map(|(place, kind)| {
        let is_public = matches!(syntax.text(place.checked_sub(1)), "pub" | ")");
        let name = syntax.text(Some(place + 1));
        // A macro may give the name.
        let is_name = name.starts_with(char::is_alphabetic);
        (is_public && is_name).then_some((kind.line, name))
    })
}

#[test]
fn a_declaration_is_distinguished_from_other_lines() {
    for (text, name) in [
        ("pub struct Peer {}", Some("Peer")),
        ("    pub(crate) enum Route<'a> {}", Some("Route")),
        ("pub(in crate::device) type Out = Vec<u8>;", Some("Out")),
        ("pub trait Store: Commit {}", Some("Store")),
        ("pub struct $name(u64);", None),
        ("pub fn structure() {}", None),
        ("struct Private;", None),
        ("pub use peer::Peer;", None),
    ] {
        let syntax = Syntax::of(text);
        let found: Vec<&str> = public_types(&syntax).map(|(_, name)| name).collect();
        assert_eq!(found, Vec::from_iter(name), "{text}");
    }
}
