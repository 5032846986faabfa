//! Do the laws hold in a world where everything goes wrong?
//!
//! A deterministic world: the real machines and routers in a service of one to five arbiters at one
//! to three nodes, devices that sleep, roam, reboot and misbehave, a network that loses, repeats,
//! delays and reorders, mailboxes that are late or full, a disk that answers late and loses what
//! was not durable, crashes and panics at any event, nodes that fall silent, end, or give
//! partitions up to others, devices that send while others are still being restored. Some devices
//! speak DTLS; their records are forged by nobody, and reach whoever has the address. Their keys
//! are exchanged, and those that have ended are in other hands. The laws are checked at every
//! event. From time to time the world heals, and must come to rest.
//!
//! `SIMULATION_SEED=7 SIMULATION_EVENTS=100000 cargo test --test simulation` runs one world again,
//! or for longer; `SIMULATION_NOTES=4000` shows more of what happened before a failure.

#![allow(clippy::unwrap_used, clippy::panic)]

mod callers;
mod census;
mod disk;
mod endpoints;
mod event;
mod fleet;
mod laws;
mod scenarios;
mod secured;
mod service;
mod settings;
mod trace;
mod wire;
mod world;

use std::sync::{LazyLock, Mutex};

use census::Census;
use world::World;

/// The number of events of a world without a seed from the environment.
const EVENTS: u64 = 26_000;

/// The number of events before a world heals.
const EVENTS_PER_ACT: u64 = 6_500;

/// The first seed. With these seeds the four tests together see everything the census counts.
const FIRST_SEED: u64 = 21;

/// The worlds of one test. There are four tests, so that they use several cores.
const WORLDS: u64 = 10;

/// How many such tests there are.
const QUARTERS: usize = 4;

/// How many of them are done, and what happened in them: the last one checks that everything did.
static SEEN: LazyLock<Mutex<(usize, Census)>> = LazyLock::new(Mutex::default);

#[test]
fn a_million_events_break_no_law_first_quarter() {
    see_worlds(0);
}

#[test]
fn a_million_events_break_no_law_second_quarter() {
    see_worlds(1);
}

#[test]
fn a_million_events_break_no_law_third_quarter() {
    see_worlds(2);
}

#[test]
fn a_million_events_break_no_law_fourth_quarter() {
    see_worlds(3);
}

#[test]
fn the_same_seed_is_the_same_world() {
    let digest = |seed| {
        let mut world = World::of(seed);
        world.run(5_000);
        world.heal();
        world.trace.digest()
    };
    assert_eq!(digest(11), digest(11));
    assert_ne!(digest(11), digest(12));
}

fn see_worlds(quarter: u64) {
    if let Some(seed) = number_from("SIMULATION_SEED") {
        if quarter == 0 {
            see(seed, number_from("SIMULATION_EVENTS").unwrap_or(EVENTS));
        }
        return;
    }
    let events = number_from("SIMULATION_EVENTS").unwrap_or(EVENTS);
    let mut census = Census::default();
    for place in 0..WORLDS {
        census.add(&see(FIRST_SEED + quarter * WORLDS + place, events));
    }
    let mut seen = SEEN.lock().unwrap();
    seen.0 += 1;
    seen.1.add(&census);
    if seen.0 == QUARTERS {
        let missing = seen.1.missing();
        assert!(
            missing.is_empty(),
            "never seen: {missing:?} in {:?}",
            seen.1
        );
    }
}

/// Runs a world through its acts, each of which ends with healing.
fn see(seed: u64, events: u64) -> Census {
    let mut world = World::of(seed);
    while world.trace.events() < events {
        world.run(EVENTS_PER_ACT);
        world.heal();
    }
    world.census
}

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}")),
    )
}
