//! Which figures are there, and how are they written to BENCHMARKS.md and to JSON?

use std::collections::BTreeMap;

use harness::load::figures::{Figures, number};
use serde_json::{Map, Value, json};

/// How a figure is printed.
struct Row {
    key: &'static str,
    label: &'static str,
    decimals: usize,
    /// The most or the least that it may be.
    aim: &'static str,
}

const fn row(key: &'static str, label: &'static str, decimals: usize, aim: &'static str) -> Row {
    Row {
        key,
        label,
        decimals,
        aim,
    }
}

/// Failed requests, of all rounds together: a median would hide them.
pub(crate) const ERRORS: &str = "errors";

/// The figures of a fleet, in the order of the table.
const ROWS: [Row; 39] = [
    row("importS", "import of all, s", 1, "≤ 40 for a million"),
    row(
        "importProcessorUs",
        "processor time per imported device, µs",
        1,
        "",
    ),
    row(
        "registerS",
        "registration of all, s",
        1,
        "≤ 60 for a million",
    ),
    row("registrationsPerS", "registrations/s", 0, ""),
    row(
        "registrationProcessorUs",
        "processor time per first registration, µs",
        1,
        "≤ 60, growth ≤ 1.3",
    ),
    row(
        "registeredDiskBytes",
        "disk per registered device, bytes",
        0,
        "≤ 1,500",
    ),
    row("registeredMib", "memory after registration, MiB", 0, ""),
    row("updatesPerS", "updates/s", 0, ""),
    row(
        "updateProcessorUs",
        "processor time of the service per update, µs",
        2,
        "growth ≤ 1.2",
    ),
    row("updateP50Ms", "update p50, ms", 2, ""),
    row("updateP99Ms", "update p99, ms", 2, ""),
    row(
        "updateCoreUs",
        "processor time per update, one core, µs",
        2,
        "growth ≤ 1.2",
    ),
    row(
        "updateEchoRatio",
        "updates/s of one core, of a bare echo",
        2,
        "≥ 0.80",
    ),
    row("sendsPerS", "durable Sends/s", 0, "≥ 30,000"),
    row(
        "sendProcessorUs",
        "processor time per Send, µs",
        1,
        "≤ 35, growth ≤ 1.3",
    ),
    row("sendP99Ms", "Send p99, ms", 2, ""),
    row(
        "sendDiskBytes",
        "disk per Send without retention, bytes",
        0,
        "",
    ),
    row(
        "keptSendBytes",
        "disk per Send that is kept, retention running, bytes",
        0,
        "≤ 200",
    ),
    row("actionsPerS", "actions end to end/s", 0, "≥ 6,000"),
    row(
        "actionProcessorUs",
        "processor time per action, µs",
        0,
        "≤ 200",
    ),
    row("actionP50Ms", "action p50, ms", 1, ""),
    row("actionP99Ms", "action p99, ms", 1, ""),
    row("actionP999Ms", "action p99.9, ms", 1, ""),
    row(
        "createdPerS",
        "actions created (202)/s, 20,000 devices",
        0,
        "",
    ),
    row(
        "createdHttpRatio",
        "actions created, of the same without commits",
        2,
        "≥ 0.50",
    ),
    row(
        "createdStoreRatio",
        "actions created, of the commits alone",
        2,
        "≥ 0.50",
    ),
    row(
        "deliveredPerS",
        "events/s, first Send to last 200 of a webhook",
        0,
        "",
    ),
    row(
        "deliveredRatio",
        "events, of the posts of the bare client",
        2,
        "≥ 0.60",
    ),
    row("idlePercent", "idle, % of a core", 2, "< 2"),
    row(
        "killedReadyS",
        "kill -9 during load, start to ready, s",
        2,
        "≤ 2",
    ),
    row(
        "killedRestoredS",
        "kill -9 during load, all restored, s",
        1,
        "≤ 10",
    ),
    row("stopS", "stop, s", 2, ""),
    row("readyS", "start to ready, s", 2, ""),
    row("restoredS", "start to all restored, s", 1, "≤ 15"),
    row("restoredMib", "memory after a restart, MiB", 0, ""),
    row(
        "deviceBytes",
        "memory per device after a restart, bytes",
        0,
        "≤ 2,048",
    ),
    row("mixedMib", "memory after a mixed load, MiB", 0, ""),
    row(
        "mixedDeviceBytes",
        "memory per device after it, less the cache, bytes",
        0,
        "≤ 2,048",
    ),
    row(ERRORS, "requests that came to nothing", 0, "0"),
];

/// The figures of one fleet.
#[derive(Clone, Debug)]
pub(crate) struct Fleet {
    /// The number of devices.
    pub(crate) devices: u32,
    figures: BTreeMap<&'static str, Figures>,
}

/// The complete report.
pub(crate) struct Report {
    /// The date.
    pub(crate) date: String,
    /// The machine and the commit.
    pub(crate) place: String,
    /// The command as it was typed.
    pub(crate) command: String,
    /// The fleets.
    pub(crate) fleets: Vec<Fleet>,
}

impl Fleet {
    /// A fleet without figures.
    pub(crate) fn of(devices: u32) -> Self {
        Self {
            devices,
            figures: BTreeMap::new(),
        }
    }

    /// Adds a figure of a round.
    pub(crate) fn note(&mut self, key: &'static str, value: f64) {
        assert!(ROWS.iter().any(|row| row.key == key), "{key} has no row");
        self.figures.entry(key).or_default().push(value);
    }

    /// The number of failed requests in all rounds.
    pub(crate) fn errors(&self) -> f64 {
        let errors = self.figures.get(ERRORS).into_iter();
        errors
            .flat_map(Figures::rounds)
            .fold(0.0, |sum, more| sum + more)
    }

    fn shown(&self, row: &Row) -> String {
        match self.figures.get(row.key) {
            _ if row.key == ERRORS => number(self.errors(), 0),
            Some(figures) => figures.shown(row.decimals).to_string(),
            None => Figures::default().shown(row.decimals).to_string(),
        }
    }

    fn json(&self) -> Value {
        let figures = self.figures.iter().map(|(key, figures)| {
            let value = json!({
                "median": figures.median(),
                "least": figures.least(),
                "most": figures.most(),
                "rounds": figures.rounds(),
            });
            ((*key).to_owned(), value)
        });
        let figures: Map<String, Value> = figures.collect();
        json!({ "devices": self.devices, "figures": figures })
    }
}

impl Report {
    /// The section of BENCHMARKS.md.
    pub(crate) fn markdown(&self) -> String {
        let Self {
            date,
            place,
            command,
            fleets,
        } = self;
        let mut text = format!("## Scale, {date}\n\n{place}.\n\n`{command}`\n\n| devices |");
        for fleet in fleets {
            text.push_str(&format!(" {} |", number(fleet.devices.into(), 0)));
        }
        text.push_str(" growth | aim |\n|---|");
        text.push_str(&"---|".repeat(fleets.len() + 2));
        for row in &ROWS {
            text.push_str(&format!("\n| {} |", row.label));
            for fleet in fleets {
                text.push_str(&format!(" {} |", fleet.shown(row)));
            }
            let growth = self.growth(row).map(|growth| number(growth, 2));
            let growth = growth.unwrap_or_default();
            text.push_str(&format!(" {growth} | {} |", row.aim));
        }
        text.push('\n');
        text
    }

    /// The ratio of a figure's median with the last fleet to that with the one before it.
    fn growth(&self, row: &Row) -> Option<f64> {
        let [.., before, last] = self.fleets.as_slice() else {
            return None;
        };
        let median = |fleet: &Fleet| fleet.figures.get(row.key)?.median();
        let growth = median(last)? / median(before)?;
        growth.is_finite().then_some(growth)
    }

    /// The JSON report.
    pub(crate) fn json(&self) -> Value {
        let fleets: Vec<Value> = self.fleets.iter().map(Fleet::json).collect();
        json!({
            "date": self.date,
            "place": self.place,
            "command": self.command,
            "fleets": fleets,
        })
    }
}
