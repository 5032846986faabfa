//! How do updates stand against a bare echo, and how does their cost grow with the fleet?
//!
//! `cargo bench --bench spine -- updates` measures both in turns and prints a table; this reads
//! it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bench::figures::number;
use crate::bench::process::Process;
use crate::steps::{Stop, cargo, shown};

/// How long one fleet may take, set-up and all.
const PATIENCE: Duration = Duration::from_secs(1_200);

/// A row of the bench's table.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Row {
    devices: u32,
    server: String,
    rate: String,
    cost: String,
}

/// What it printed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comparison {
    rows: Vec<Row>,
}

/// Builds the bench and tells where its program is: whoever runs it through cargo cannot end it.
pub(crate) fn build() -> Result<PathBuf, Stop> {
    let mut bench = cargo();
    bench.args(["bench", "--locked", "--bench", "spine", "--no-run"]);
    bench.arg("--message-format=json-render-diagnostics");
    let output = bench
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Stop::Failed(format!("cannot start cargo: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().find_map(executable) {
        Some(path) if output.status.success() => Ok(path),
        _ => Err(Stop::Failed(format!("{} made no program", shown(&bench)))),
    }
}

impl Comparison {
    /// Runs the bench's program for these fleets.
    pub(crate) fn run(program: &Path, fleets: &[u32]) -> Result<Self, Stop> {
        let fleets: Vec<String> = fleets.iter().map(u32::to_string).collect();
        let patience = PATIENCE * u32::try_from(fleets.len()).unwrap_or(u32::MAX);
        let mut bench = Command::new(program);
        bench.args(["--bench", "updates", &fleets.join(",")]);
        let mut process = Process::start(&bench)?;
        let lines = process.finish(Instant::now() + patience)?;
        let rows: Vec<Row> = lines.iter().filter_map(|line| row(line)).collect();
        if rows.len() == 3 * fleets.len() {
            return Ok(Self { rows });
        }
        Err(process.disappointed("did not print three rows for each fleet"))
    }

    /// The table and what it says of growth.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::from(
            "| devices | server | datagrams/s | processor time each, µs |\n|---|---|---|---|\n",
        );
        for row in &self.rows {
            let devices = number(row.devices.into(), 0);
            let (server, rate, cost) = (&row.server, &row.rate, &row.cost);
            text.push_str(&format!("| {devices} | {server} | {rate} | {cost} |\n"));
        }
        let growth = |server| self.growth(server).unwrap_or(f64::NAN);
        text.push_str(&format!(
            "\nProcessor time, largest fleet over smallest: {:.2} of an update, {:.2} of an echo\n",
            growth("signalbox"),
            growth("bare echo"),
        ));
        text
    }

    /// For a program that reads the report.
    pub(crate) fn json(&self) -> Value {
        let row = |row: &Row| {
            json!({
                "devices": row.devices,
                "server": row.server,
                "datagramsPerS": median(&row.rate),
                "processorUs": median(&row.cost),
            })
        };
        let rows: Vec<Value> = self.rows.iter().map(row).collect();
        json!({ "rows": rows, "growth": self.growth("signalbox") })
    }

    fn growth(&self, server: &str) -> Option<f64> {
        let mut rows = self.rows.iter().filter(|row| row.server == server);
        let first = rows.next()?;
        let last = rows.next_back().unwrap_or(first);
        Some(median(&last.cost)? / median(&first.cost)?)
    }
}

/// The program of the bench, if that is the artifact cargo tells of.
fn executable(line: &str) -> Option<PathBuf> {
    let told: Value = serde_json::from_str(line).ok()?;
    let is_bench = told["reason"] == "compiler-artifact" && told["target"]["name"] == "spine";
    is_bench.then(|| Some(told["executable"].as_str()?.into()))?
}

/// `| 1000 | bare echo | 224295 (220821–237506) | 4.41 (4.18–4.49) | 98 % |`
fn row(line: &str) -> Option<Row> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    let devices = cells.next()?.parse().ok()?;
    let mut next = || cells.next().map(str::to_owned);
    Some(Row {
        devices,
        server: next()?,
        rate: next()?,
        cost: next()?,
    })
}

fn median(cell: &str) -> Option<f64> {
    cell.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Comparison, executable, row};
    use serde_json::json;

    #[test]
    fn cargo_tells_where_the_program_is() {
        let artifact = |name: &str| {
            let target = json!({ "name": name });
            let reason = "compiler-artifact";
            json!({ "reason": reason, "target": target, "executable": "/a/b" }).to_string()
        };
        assert_eq!(executable(&artifact("spine")), Some("/a/b".into()));
        assert_eq!(executable(&artifact("store")), None);
        assert_eq!(executable("not json"), None);
    }

    #[test]
    fn a_table_is_read_and_its_growth_told() {
        let table = "\
| devices | server | datagrams/s | processor time each, µs | core busy |
|---|---|---|---|---|
| 10000 | signalbox | 150000 (1–2) | 6.00 (5.00–7.00) | 98 % |
| 10000 | bare echo | 200000 (1–2) | 4.00 (3.00–5.00) | 98 % |
| 10000 | ratio | 0.75 (0.70–0.80) | 0.67 (0.60–0.70) | |
| 1000000 | signalbox | 120000 (1–2) | 7.50 (6.00–8.00) | 98 % |";
        let rows: Vec<_> = table.lines().filter_map(row).collect();
        assert_eq!(rows.len(), 4);
        let comparison = Comparison { rows };
        assert_eq!(comparison.growth("signalbox"), Some(1.25));
        assert_eq!(comparison.growth("bare echo"), Some(1.0));
        assert_eq!(comparison.json()["rows"][2]["datagramsPerS"], 0.75);
        let shown = comparison.markdown();
        assert!(
            shown.contains("| 1,000,000 | signalbox | 120000 (1–2) | 7.50"),
            "{shown}"
        );
        assert!(
            shown.contains("largest fleet over smallest: 1.25 of an update"),
            "{shown}"
        );
    }
}
