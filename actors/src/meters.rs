//! What is told of an arbiter to whoever measures the service?
//!
//! An arbiter counts in plain numbers of its own and publishes them once a second, so that a
//! datagram costs an addition and no two threads share a cache line for it.

use std::cell::Cell;
use std::time::Duration;

use engine::registry::Fate;
use engine::registry::homes::ArbiterId;
use metrics::{Counter, Gauge, counter, describe_counter, describe_gauge, gauge};

use crate::tally::Tally;

/// How often an arbiter publishes: well within the interval anybody scrapes at.
pub(crate) const PUBLISH_EVERY: Duration = Duration::from_secs(1);

const RECEIVED: &str = "signalbox_datagrams_received_total";
const SENT: &str = "signalbox_datagrams_sent_total";
const UNSENT: &str = "signalbox_datagrams_unsent_total";
const FORWARDED: &str = "signalbox_datagrams_forwarded_total";
const TURNED_AWAY: &str = "signalbox_datagrams_turned_away_total";
const RESIDENT: &str = "signalbox_devices_resident";
const RESTORED: &str = "signalbox_devices_restored_total";
const RESTORE_PROGRESS: &str = "signalbox_restore_progress_ratio";

/// What an arbiter knows of itself.
pub(crate) struct Reading<'a> {
    /// Datagrams the kernel took and those it did not, since the process began.
    pub(crate) sent: Sent,
    /// Datagrams that reached no device.
    pub(crate) turned_away: &'a Tally,
    /// Devices that live here now.
    pub(crate) residents: usize,
}

/// What became of the datagrams that were to leave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    /// Those the kernel took.
    pub(crate) taken: u64,
    /// Those it did not.
    pub(crate) lost: u64,
}

/// A plain count.
#[derive(Default)]
pub(crate) struct Count(Cell<u64>);

impl Count {
    /// Counts so many more.
    pub(crate) fn add(&self, more: usize) {
        self.0.set(self.0.get() + more as u64);
    }
}

/// The meters of an arbiter.
pub(crate) struct Meters {
    /// Datagrams taken from the socket.
    pub(crate) received: Count,
    /// Datagrams handed to another arbiter.
    pub(crate) forwarded: Count,
    published: Published,
}

/// The meters as others see them.
struct Published {
    received: Counter,
    sent: Counter,
    unsent: Counter,
    forwarded: Counter,
    turned_away: [(&'static str, Counter); WORDS.len()],
    residents: Gauge,
    restored: Counter,
    restore_progress: Gauge,
}

impl Meters {
    /// The meters of an arbiter, all at nothing.
    pub(crate) fn of(arbiter: ArbiterId) -> Self {
        describe();
        let arbiter = arbiter.index().to_string();
        let count = |name| counter!(name, "arbiter" => arbiter.clone());
        let turned_away =
            |fate| counter!(TURNED_AWAY, "arbiter" => arbiter.clone(), "fate" => fate);
        let level = |name| gauge!(name, "arbiter" => arbiter.clone());
        let published = Published {
            received: count(RECEIVED),
            sent: count(SENT),
            unsent: count(UNSENT),
            forwarded: count(FORWARDED),
            turned_away: WORDS.map(|fate| (fate, turned_away(fate))),
            residents: level(RESIDENT),
            restored: count(RESTORED),
            restore_progress: level(RESTORE_PROGRESS),
        };
        Self {
            received: Count::default(),
            forwarded: Count::default(),
            published,
        }
    }

    /// Publishes what the arbiter counted and what else it knows.
    pub(crate) fn publish(&self, reading: &Reading<'_>) {
        let published = &self.published;
        published.received.absolute(self.received.0.get());
        published.forwarded.absolute(self.forwarded.0.get());
        published.sent.absolute(reading.sent.taken);
        published.unsent.absolute(reading.sent.lost);
        for (fate, counter) in &published.turned_away {
            let counts = reading.turned_away.counts();
            let of_fate = counts.filter(|(counted, _)| word(*counted) == *fate);
            counter.absolute(of_fate.map(|(_, count)| count).sum());
        }
        // A gauge is a floating-point number, which counts devices exactly up to 2^53.
        published.residents.set(reading.residents as f64);
    }

    /// Publishes how far the start has come: how many devices it brought back, and which part of
    /// the arbiter's keys it has behind it, from 0 to 1.
    pub(crate) fn publish_progress(&self, restored: u64, part: f64) {
        self.published.restored.absolute(restored);
        self.published.restore_progress.set(part);
    }
}

fn describe() {
    describe_counter!(RECEIVED, "Datagrams taken from the socket of the arbiter.");
    describe_counter!(SENT, "Datagrams the kernel took to send.");
    describe_counter!(
        UNSENT,
        "Datagrams the kernel did not take and that were lost."
    );
    describe_counter!(
        FORWARDED,
        "Datagrams handed to the arbiter their device is at home at."
    );
    describe_counter!(
        TURNED_AWAY,
        "Datagrams that reached no device, by what became of them."
    );
    describe_gauge!(RESIDENT, "Devices that have an actor in memory.");
    describe_counter!(RESTORED, "Devices the start found to bring back.");
    describe_gauge!(
        RESTORE_PROGRESS,
        "Part of the keys of the arbiter whose devices are back since the start; 1 when all are."
    );
}

/// What the fates of datagrams are called.
const WORDS: [&str; 7] = [
    "malformed",
    "unknown_option",
    "unknown_endpoint",
    "unknown_location",
    "unknown_peer",
    "overloaded",
    "crowded",
];

fn word(fate: Fate) -> &'static str {
    match fate {
        Fate::Malformed(_) => "malformed",
        Fate::UnknownOption => "unknown_option",
        Fate::UnknownEndpoint => "unknown_endpoint",
        Fate::UnknownLocation => "unknown_location",
        Fate::UnknownPeer => "unknown_peer",
        Fate::Overloaded => "overloaded",
        Fate::Crowded => "crowded",
    }
}
