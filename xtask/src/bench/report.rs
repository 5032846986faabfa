//! Which figures are there, and how do they stand in BENCHMARKS.md and in a file for programs?

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::bench::echo::Comparison;
use crate::bench::figures::{Figures, number};
use crate::bench::place::Place;

/// What is measured of a fleet, in the order of the table.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Figure {
    ImportS,
    RegisterS,
    RegistrationsPerS,
    RegisteredMib,
    UpdatesPerS,
    UpdateProcessorUs,
    UpdateP50Ms,
    UpdateP99Ms,
    ActionsPerS,
    ActionP50Ms,
    ActionP99Ms,
    ActionP999Ms,
    IdlePercent,
    StopS,
    ReadyS,
    RestoredS,
    RestoredMib,
    DeviceBytes,
    DeviceDiskBytes,
    Errors,
}

/// How a figure is shown.
struct Row {
    figure: Figure,
    key: &'static str,
    label: &'static str,
    decimals: usize,
    goal: &'static str,
}

const fn row(
    figure: Figure,
    (key, label): (&'static str, &'static str),
    decimals: usize,
    goal: &'static str,
) -> Row {
    Row {
        figure,
        key,
        label,
        decimals,
        goal,
    }
}

use Figure as F;

const ROWS: [Row; 20] = [
    row(F::ImportS, ("importS", "import of all, s"), 1, ""),
    row(F::RegisterS, ("registerS", "registration of all, s"), 1, ""),
    row(
        F::RegistrationsPerS,
        ("registrationsPerS", "registrations/s"),
        0,
        "",
    ),
    row(
        F::RegisteredMib,
        ("registeredMib", "memory after registration, MiB"),
        0,
        "",
    ),
    row(F::UpdatesPerS, ("updatesPerS", "updates/s"), 0, ""),
    row(
        F::UpdateProcessorUs,
        (
            "updateProcessorUs",
            "processor time of the service per update, µs",
        ),
        2,
        "",
    ),
    row(F::UpdateP50Ms, ("updateP50Ms", "update p50, ms"), 2, ""),
    row(F::UpdateP99Ms, ("updateP99Ms", "update p99, ms"), 2, ""),
    row(
        F::ActionsPerS,
        ("actionsPerS", "actions end to end/s"),
        0,
        "",
    ),
    row(F::ActionP50Ms, ("actionP50Ms", "action p50, ms"), 1, ""),
    row(F::ActionP99Ms, ("actionP99Ms", "action p99, ms"), 1, ""),
    row(F::ActionP999Ms, ("actionP999Ms", "action p99.9, ms"), 1, ""),
    row(
        F::IdlePercent,
        ("idlePercent", "idle, % of a core"),
        2,
        "< 2",
    ),
    row(F::StopS, ("stopS", "stop, s"), 2, ""),
    row(F::ReadyS, ("readyS", "start to ready, s"), 2, ""),
    row(
        F::RestoredS,
        ("restoredS", "start to all restored, s"),
        1,
        "≤ 15",
    ),
    row(
        F::RestoredMib,
        ("restoredMib", "memory after a restart, MiB"),
        0,
        "",
    ),
    row(
        F::DeviceBytes,
        ("deviceBytes", "memory per device, bytes"),
        0,
        "≤ 2,048",
    ),
    row(
        F::DeviceDiskBytes,
        ("deviceDiskBytes", "disk per device, bytes"),
        0,
        "",
    ),
    row(
        F::Errors,
        ("errors", "requests that came to nothing"),
        0,
        "0",
    ),
];

/// What was measured of one fleet.
#[derive(Clone, Debug)]
pub(crate) struct Fleet {
    /// How many devices it has.
    pub(crate) devices: u32,
    figures: BTreeMap<Figure, Figures>,
}

/// Everything that was measured.
pub(crate) struct Report {
    /// The machine, the day and the commit.
    pub(crate) place: Place,
    /// The command as it was typed.
    pub(crate) command: String,
    /// The fleets.
    pub(crate) fleets: Vec<Fleet>,
    /// Updates against the bare echo, if that was asked for.
    pub(crate) comparison: Option<Comparison>,
}

impl Fleet {
    /// A fleet of which nothing was measured.
    pub(crate) fn of(devices: u32) -> Self {
        Self {
            devices,
            figures: BTreeMap::new(),
        }
    }

    /// Takes a figure of one more round.
    pub(crate) fn note(&mut self, figure: Figure, value: f64) {
        self.figures.entry(figure).or_default().push(value);
    }

    /// How many requests came to nothing in all rounds.
    pub(crate) fn errors(&self) -> f64 {
        self.figures.get(&F::Errors).map_or(0.0, Figures::sum)
    }

    fn shown(&self, row: &Row) -> String {
        let figures = self.figures.get(&row.figure).cloned().unwrap_or_default();
        // A median would hide them.
        if row.figure == F::Errors {
            return number(figures.sum(), 0);
        }
        figures.shown(row.decimals).to_string()
    }

    fn json(&self) -> Value {
        let figures = ROWS.iter().filter_map(|row| {
            let figures = self.figures.get(&row.figure)?;
            Some((row.key.to_owned(), figures.json()))
        });
        let figures: Map<String, Value> = figures.collect();
        json!({ "devices": self.devices, "figures": figures })
    }
}

impl Report {
    /// The section of BENCHMARKS.md.
    pub(crate) fn markdown(&self) -> String {
        let Place { date, words } = &self.place;
        let mut text = format!("## Scale, {date}\n\n{words}.\n\n`{}`\n\n", self.command);
        text.push_str(&self.table());
        if let Some(comparison) = &self.comparison {
            text.push_str("\n### Updates against a bare echo, one core\n\n");
            text.push_str(&comparison.markdown());
        }
        text
    }

    /// The report for programs.
    pub(crate) fn json(&self) -> Value {
        let fleets: Vec<Value> = self.fleets.iter().map(Fleet::json).collect();
        json!({
            "date": self.place.date,
            "place": self.place.words,
            "command": self.command,
            "fleets": fleets,
            "echo": self.comparison.as_ref().map(Comparison::json),
        })
    }

    fn table(&self) -> String {
        let mut text = String::from("| devices |");
        for fleet in &self.fleets {
            text.push_str(&format!(" {} |", number(fleet.devices.into(), 0)));
        }
        text.push_str(" goal |\n|---|");
        text.push_str(&"---|".repeat(self.fleets.len() + 1));
        for row in &ROWS {
            text.push_str(&format!("\n| {} |", row.label));
            for fleet in &self.fleets {
                text.push_str(&format!(" {} |", fleet.shown(row)));
            }
            text.push_str(&format!(" {} |", row.goal));
        }
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{F, Fleet, ROWS, Report};
    use crate::bench::place::Place;

    #[test]
    fn every_figure_has_a_row_in_its_order() {
        let figures: Vec<F> = ROWS.iter().map(|row| row.figure).collect();
        let mut sorted = figures.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(figures, sorted);
        assert_eq!(ROWS.len(), F::Errors as usize + 1);
    }

    #[test]
    fn a_report_is_a_table_with_a_column_for_each_fleet() {
        let mut small = Fleet::of(10_000);
        let mut large = Fleet::of(1_000_000);
        for value in [0.5, 0.7, 0.6] {
            small.note(F::ReadyS, value);
        }
        small.note(F::Errors, 2.0);
        small.note(F::Errors, 1.0);
        large.note(F::DeviceBytes, 1_500.0);
        assert_eq!(small.errors(), 3.0);
        let place = Place {
            date: "2026-11-21".to_owned(),
            words: "a machine, commit abc".to_owned(),
        };
        let report = Report {
            place,
            command: "cargo xtask bench scale".to_owned(),
            fleets: vec![small, large],
            comparison: None,
        };
        let text = report.markdown();
        for line in [
            "## Scale, 2026-11-21",
            "a machine, commit abc.",
            "`cargo xtask bench scale`",
            "| devices | 10,000 | 1,000,000 | goal |",
            "|---|---|---|---|",
            "| start to ready, s | 0.60 (0.50–0.70) | – |  |",
            "| memory per device, bytes | – | 1,500 | ≤ 2,048 |",
            "| requests that came to nothing | 3 | 0 | 0 |",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        let json = report.json();
        let ready = &json["fleets"][0]["figures"]["readyS"];
        assert_eq!(
            (&ready["median"], &ready["most"]),
            (&0.6.into(), &0.7.into())
        );
        assert!(json["echo"].is_null());
    }
}
