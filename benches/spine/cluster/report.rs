//! How is a run of the cluster printed? A table of costs, one of faults, and the books.

use std::time::Duration;

use harness::load::figures::number;
use harness::load::timeline::Timeline;
use serde_json::Value;
use signalbox::load::report::LoadReport;

use super::callers::{Called, RequestBooks};
use crate::scale::place::MachineInfo;

/// What a request of a device costs.
pub(crate) struct Cost {
    pub(crate) what: String,
    /// Requests per second.
    pub(crate) rate: f64,
    /// Processor time of the active node for a request.
    pub(crate) active_us: f64,
    /// That of a node that stands by.
    pub(crate) standby_us: f64,
    /// That of the PostgreSQL primary.
    pub(crate) primary_us: f64,
    /// That of both standbys.
    pub(crate) standbys_us: f64,
}

/// What devices and callers noticed of a fault.
pub(crate) struct FaultReport {
    /// What happened.
    what: String,
    /// The longest time in which no device was answered.
    devices_gap_s: f64,
    /// The longest time from the first datagram of a request to its answer.
    longest_wait_s: f64,
    /// Requests of devices that came to nothing.
    failed: u64,
    /// The longest time between two writes to the database, if it was to miss some.
    database_gap: Option<Duration>,
    pub(crate) called: Called,
    pub(crate) sends: Sends,
}

/// The Sends of all faults so far, in the history and at the webhook.
#[derive(Debug, Default)]
pub(crate) struct Sends(Value);

impl FaultReport {
    /// Reads the report of the load.
    pub(crate) fn new(
        what: String,
        measured: &LoadReport,
        called: Called,
        database_gap: Option<Duration>,
    ) -> Self {
        let tally = &measured.measurement.tally;
        Self {
            what,
            devices_gap_s: longest_gap_s(&tally.timeline),
            longest_wait_s: tally.latencies.max_ns() as f64 / 1e9,
            failed: tally.failed(),
            database_gap,
            called,
            sends: Sends(measured.json()["books"].clone()),
        }
    }

    /// Its row of the table.
    pub(crate) fn row(&self) -> String {
        let failed = self.called.failed.iter();
        let failed: Vec<String> = failed
            .map(|(kind, times)| format!("{kind}: {times}"))
            .collect();
        let failed = match failed.as_slice() {
            [] => "0".to_owned(),
            some => some.join(", "),
        };
        let database_gap = match self.database_gap {
            Some(gap) => number(gap.as_secs_f64(), 1),
            None => "–".to_owned(),
        };
        format!(
            "| {} | {} | {} | {} | {} | {failed} | {database_gap} |",
            self.what,
            number(self.devices_gap_s, 1),
            number(self.longest_wait_s, 1),
            self.failed,
            number(self.called.longest.as_secs_f64(), 1),
        )
    }
}

impl Sends {
    /// Whether each acknowledged Send is where it should be, in order, and once in the history.
    pub(crate) fn are_complete(&self) -> bool {
        let books = &self.0;
        let is_none = |pointer: &str| books.pointer(pointer) == Some(&Value::from(0));
        [
            "/history/missing",
            "/history/doubled",
            "/webhook/missing",
            "/outOfOrder",
        ]
        .into_iter()
        .all(is_none)
    }
}

impl RequestBooks {
    /// Whether each accepted request is there, once, had no more attempts than it permits, and
    /// never seemed to go back.
    pub(crate) fn are_complete(&self) -> bool {
        [self.missing, self.doubled, self.exceeded, self.back] == [0; 4]
    }
}

/// Prints where and how it was measured.
pub(crate) fn print_head(place: &MachineInfo, words: &[&str]) {
    let command = [&["cargo xtask bench cluster"], words].concat().join(" ");
    println!("{}: {}\n`{command}`\n", place.date, place.words);
}

/// Prints the table of costs.
pub(crate) fn print_costs(costs: &[Cost]) {
    println!(
        "| without faults | per second | active node, µs each | node that stands by, µs each | \
         PostgreSQL primary, µs each | both standbys, µs each |\n|---|---|---|---|---|---|"
    );
    for cost in costs {
        println!(
            "| {} | {} | {} | {} | {} | {} |",
            cost.what,
            number(cost.rate, 0),
            number(cost.active_us, 1),
            number(cost.standby_us, 1),
            number(cost.primary_us, 1),
            number(cost.standbys_us, 1)
        );
    }
}

/// Prints the head of the table of faults.
pub(crate) fn print_fault_head() {
    println!(
        "\n| fault | no device answered for, s | longest wait of a device, s | failed requests of \
         devices | longest call, s | failed tries of calls | no write to PostgreSQL for, s |\n\
         |---|---|---|---|---|---|---|"
    );
}

/// Prints what was found of everything that was acknowledged.
pub(crate) fn print_books(sends: &Sends, requests: &RequestBooks) {
    println!("\nSends: {}", sends.0);
    println!(
        "Requests accepted, by status: {:?}; missing {}, doubled {}, with too many attempts {}; \
         reads of them {}, of which {} showed less than one before",
        requests.statuses,
        requests.missing,
        requests.doubled,
        requests.exceeded,
        requests.reads,
        requests.back
    );
}

/// The longest time without an answer, as exact as the intervals of the timeline.
fn longest_gap_s(timeline: &Timeline) -> f64 {
    let (mut now, mut longest) = (0_u32, 0);
    for interval in timeline.intervals() {
        now = if interval.answered == 0 { now + 1 } else { 0 };
        longest = longest.max(now);
    }
    f64::from(longest) * timeline.interval_ns() as f64 / 1e9
}
