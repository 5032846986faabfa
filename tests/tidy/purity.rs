//! Does code use only what its layer may use: the clock, randomness, panics, sleep?

use super::syntax::Syntax;
use super::tree::{self, Source};
use super::{hold, mentions_of};

/// Layers that decide or translate: the same input always gives the same output.
const PURE: [&str; 3] = ["dtls/src", "engine/src", "protocol/src"];
/// A signature's nonce is of the library's own entropy: one that repeats gives the key away.
const SIGNATURES: [&str; 1] = ["dtls/src/signature.rs"];
/// What would make a decision depend on more than its input.
const IMPURE: [&str; 26] = [
    "SystemTime",
    "Instant",
    "Utc::now",
    "Local::now",
    "now_v7",
    "new_v4",
    "rand",
    "getrandom",
    "fastrand",
    "RandomState",
    "async",
    "await",
    "tokio",
    "actix",
    "tracing",
    "std::env",
    "std::fs",
    "std::thread",
    "Mutex",
    "RwLock",
    "mpsc",
    "UdpSocket",
    "TcpStream",
    "println",
    "eprintln",
    "thread_local",
];
/// What one file reads for everyone, and the exceptions, which are programs of their own.
const READERS: [(&str, &[&str]); 2] = [
    (
        "SystemTime",
        &["actors/src/clock.rs", "dtls/examples", "harness", "xtask"],
    ),
    (
        "env::var",
        &[
            "src/config.rs",
            "build.rs",
            "protocol/build.rs",
            "store/src/conformance",
            "harness",
            "xtask",
        ],
    ),
];
/// Files that may contain `unsafe`; each entry states its reason.
const UNSAFE: [&str; 1] = [
    // An allocator that counts is an unsafe trait.
    "dtls/tests/allocations.rs",
];
/// The only place where a test may pause: between two polls.
const POLL: [&str; 1] = ["tests/support/poll.rs"];

#[test]
fn no_clock_and_no_randomness_where_decisions_are_made() {
    let names = IMPURE.into_iter();
    let found: Vec<String> = names
        .flat_map(|name| {
            let is_excepted = |source: &Source| name == "rand" && source.is_in(&SIGNATURES);
            mentions_of(name, |source, _| {
                source.is_in(&PURE) && !is_excepted(source)
            })
        })
        .collect();
    hold(
        "dtls, engine and protocol know no clock, chance, IO or thread",
        &found,
    );
}

#[test]
fn each_outside_source_has_one_reader() {
    let readers = READERS.into_iter();
    let found: Vec<String> = readers
        .flat_map(|(name, places)| {
            mentions_of(name, |source, line| {
                !source.is_in(places) && !source.is_test(line)
            })
        })
        .collect();
    hold("the clock and the environment have one reader each", &found);
}

#[test]
fn nothing_outside_tests_unwraps() {
    let outside = |source: &Source, line| !source.is_test(line);
    let mut found = mentions_of("unwrap", outside);
    found.extend(mentions_of("unwrap_err", outside));
    found.extend(mentions_of("unwrap_unchecked", outside));
    hold(
        "outside tests an invariant is stated: `expect(\"why it cannot happen\")`",
        &found,
    );
}

#[test]
fn no_work_is_left_for_later() {
    let found = ["todo", "unimplemented", "dbg"].map(|name| sequences(&[name, "!"]));
    hold("no `todo!`, `unimplemented!`, `dbg!`", &found.concat());
}

#[test]
fn every_test_runs_and_none_expects_a_panic() {
    let mut found = mentions_of("should_panic", |_, _| true);
    found.extend(sequences(&["#", "[", "ignore"]));
    hold("no `#[ignore]`, no `#[should_panic]`", &found);
}

/// Every place of a sequence of tokens.
fn sequences(sequence: &[&str]) -> Vec<String> {
    let sources = tree::sources().iter();
    let found = sources.flat_map(|source| {
        let places = source.syntax.places(sequence).into_iter();
        places.map(|place| format!("{}:{}", source.path, source.syntax.tokens[place].line))
    });
    found.collect()
}

#[test]
fn no_test_sleeps() {
    let mut found = Vec::new();
    for source in tree::sources().iter().filter(|source| !source.is_in(&POLL)) {
        let sleeps = sleeps(&source.syntax).into_iter();
        let sleeps = sleeps.filter(|line| source.is_test(*line));
        found.extend(sleeps.map(|line| format!("{}:{line}", source.path)));
    }
    hold(
        "a test waits for what it wants, with a deadline; it does not sleep",
        &found,
    );
}

/// The lines with a call or import of a function with this name; a device's own `.sleep()` is none.
fn sleeps(syntax: &Syntax) -> Vec<usize> {
    let names = ["sleep", "sleep_until", "sleep_ms"].into_iter();
    let lines = names.flat_map(|name| {
        let imports = ["time", "thread"].map(|of| syntax.lines_with(&format!("{of}::{name}")));
        let calls = syntax.places(&[name, "("]).into_iter().filter(|place| {
            let before = syntax.text(place.checked_sub(1));
            !matches!(before, "." | "fn")
        });
        let calls = calls.map(|place| syntax.tokens[place].line).collect();
        [imports.concat(), calls].concat()
    });
    lines.collect()
}

#[test]
fn sleep_is_distinguished_from_a_device_that_sleeps() {
    for (code, expected) in [
        ("std::thread::sleep(pause);", true),
        ("tokio::time::sleep(pause).await;", true),
        ("use tokio::time::sleep;", true),
        ("sleep(pause).await;", true),
        ("device.sleep();", false),
        ("fn sleep(&mut self) {}", false),
        ("falls_asleep();", false),
        ("let sleeping = oversleep(3);", false),
    ] {
        assert_eq!(!sleeps(&Syntax::of(code)).is_empty(), expected, "{code}");
    }
}

#[test]
fn unsafe_code_is_in_the_list() {
    let found = mentions_of("unsafe", |source, _| !source.is_in(&UNSAFE));
    hold(
        "`unsafe` only in files of the list in tests/tidy/purity.rs",
        &found,
    );
}
