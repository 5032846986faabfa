//! Does code reach only for what its room may touch: the clock, chance, panics, sleep?

use super::scanner;
use super::tree::{self, Source};
use super::{hold, mentions_of};

/// Rooms that decide or translate: same input, same output, for ever.
const PURE: [&str; 2] = ["engine/src", "protocol/src"];
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
/// What one file reads for everyone, and who else may: those that are a world of their own.
const READERS: [(&str, &[&str]); 2] = [
    ("SystemTime", &["actors/src/clock.rs", "harness", "xtask"]),
    (
        "env::var",
        &[
            "src/config.rs",
            "protocol/build.rs",
            "store/src/conformance",
            "harness",
            "xtask",
        ],
    ),
];
/// Files that may say `unsafe`; each entry carries its reason.
const UNSAFE: [&str; 0] = [];
/// The one place where a test may pause: between two looks at what it waits for.
const POLL: [&str; 1] = ["tests/support/poll.rs"];

#[test]
fn no_clock_and_no_chance_where_decisions_are_made() {
    let names = IMPURE.into_iter();
    let found: Vec<String> = names
        .flat_map(|name| mentions_of(name, |source, _| source.is_in(&PURE)))
        .collect();
    hold(
        "engine and protocol know no clock, chance, IO or thread",
        &found,
    );
}

#[test]
fn the_world_has_one_reader_each() {
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
fn nothing_is_left_for_later() {
    let mut found = Vec::new();
    for name in ["todo", "unimplemented", "dbg"] {
        let everywhere = mentions_of(name, |_, _| true);
        let calls = everywhere
            .into_iter()
            .filter(|breach| is_macro(breach, name));
        found.extend(calls);
    }
    hold("no `todo!`, `unimplemented!`, `dbg!`", &found);
}

/// Whether the line a breach names calls the macro, not a function of that name.
fn is_macro(breach: &str, name: &str) -> bool {
    let mut parts = breach.split(':');
    let (Some(path), Some(line)) = (parts.next(), parts.next()) else {
        return false;
    };
    let source = tree::sources().iter().find(|source| source.path == path);
    let line: usize = line.parse().unwrap();
    source.is_some_and(|source| {
        source
            .lines()
            .any(|(at, code)| at == line && code.contains(&format!("{name}!")))
    })
}

#[test]
fn every_test_runs_and_none_expects_a_panic() {
    let mut found = mentions_of("should_panic", |_, _| true);
    found.extend(mentions_of("ignore", |source, line| {
        let code = source
            .lines()
            .find(|(at, _)| *at == line)
            .map(|(_, code)| code);
        code.is_some_and(|code| code.trim_start().starts_with("#[ignore"))
    }));
    hold("no `#[ignore]`, no `#[should_panic]`", &found);
}

#[test]
fn no_test_sleeps() {
    let mut found = Vec::new();
    for source in tree::sources() {
        for (line, code) in source.lines() {
            if source.is_test(line) && !source.is_in(&POLL) && sleeps(code) {
                found.push(format!("{}:{line}", source.path));
            }
        }
    }
    hold(
        "a test waits for what it wants, with a deadline; it does not sleep",
        &found,
    );
}

/// A call or import of a function named so; a device's own `.sleep()` is none.
fn sleeps(code: &str) -> bool {
    ["sleep", "sleep_until", "sleep_ms"]
        .into_iter()
        .any(|name| {
            let imports = scanner::mentions(code, &format!("time::{name}"))
                || scanner::mentions(code, &format!("thread::{name}"));
            let calls = code.match_indices(&format!("{name}(")).any(|(at, _)| {
                let before = code[..at].trim_end();
                let is_whole = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
                is_whole && !before.ends_with('.') && !before.ends_with("fn")
            });
            imports || calls
        })
}

#[test]
fn sleep_is_told_from_a_device_that_sleeps() {
    for (code, expected) in [
        ("std::thread::sleep(pause);", true),
        ("tokio::time::sleep(pause).await;", true),
        ("use tokio::time::sleep;", true),
        ("sleep(pause).await;", true),
        ("device.sleep();", false),
        ("fn sleep(&mut self) {", false),
        ("falls_asleep();", false),
        ("let sleeping = oversleep(3);", false),
    ] {
        assert_eq!(sleeps(code), expected, "{code}");
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
