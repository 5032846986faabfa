//! What does `signalbox load` measure, and what does the service spend meanwhile?

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bench::process::{Line, Process};
use crate::bench::service::{Service, signalbox};
use crate::steps::{Stop, root};

/// How often the service's processor time is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How long a load may take beside what it measures: start, ends of actions, report.
const PATIENCE: Duration = Duration::from_secs(180);

/// The slowest registration that is waited for, in devices per second.
const REGISTRATIONS_PER_S: u32 = 1_000;

/// What devices or callers do.
#[derive(Clone, Debug)]
pub(crate) enum Scenario {
    /// Every device registers.
    Register,
    /// Registered devices update their registrations.
    Update(Rounds),
    /// A caller with this token asks registered devices.
    Actions(Rounds, String),
}

/// How often something is measured, and how long each time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    /// How often.
    pub(crate) count: u32,
    /// How long.
    pub(crate) each: Duration,
}

/// What one round of a load came to.
pub(crate) struct Outcome {
    /// Its own report.
    report: Value,
    /// The service's processor time during all rounds.
    samples: Rc<[(Instant, f64)]>,
    told_at: Instant,
}

/// Applies a load of so many devices, and waits for its end; gives the outcome of each round.
pub(crate) fn apply(
    service: &Service,
    devices: u32,
    scenario: &Scenario,
    mut tell: impl FnMut(),
) -> Result<Vec<Outcome>, Stop> {
    let path = report_path();
    fs::remove_file(&path).ok();
    let mut load = Process::start(&command(service, devices, scenario))?;
    let deadline = Instant::now() + patience(devices, scenario);
    let (mut samples, mut told) = (Vec::new(), Vec::new());
    while told.len() < scenario.rounds() as usize {
        if Instant::now() > deadline {
            return Err(load.disappointed("did not tell its outcome in time"));
        }
        samples.push((Instant::now(), service.processor_s()?));
        let heard = load.hear_until(Instant::now() + LOOK, |line| scenario.told(line))?;
        if let Some(at) = heard {
            told.push(at);
            tell();
        }
    }
    samples.push((Instant::now(), service.processor_s()?));
    load.finish(deadline)?;
    let text = fs::read_to_string(&path).map_err(|error| unread(&error.to_string()))?;
    let reports = reports(&text)?;
    if reports.len() != told.len() {
        return Err(unread("it does not have a report of each round"));
    }
    let samples: Rc<[(Instant, f64)]> = samples.into();
    let outcome = |(report, told_at)| Outcome {
        report,
        samples: Rc::clone(&samples),
        told_at,
    };
    let outcomes: Vec<Outcome> = reports.into_iter().zip(told).map(outcome).collect();
    outcomes
        .iter()
        .try_for_each(|outcome| outcome.check(devices))?;
    Ok(outcomes)
}

impl Outcome {
    /// A number of the report, by the names that lead to it.
    pub(crate) fn number(&self, names: &[&str]) -> Result<f64, Stop> {
        let found = names
            .iter()
            .try_fold(&self.report, |value, name| value.get(name));
        let number = found.and_then(Value::as_f64);
        number.ok_or_else(|| unread(&format!("it has no {}", names.join("."))))
    }

    /// The service's processor time for each answer of the measurement, in microseconds.
    pub(crate) fn processor_us(&self) -> Result<f64, Stop> {
        let seconds = self.number(&["measurement", "seconds"])?;
        let answered = self.number(&["measurement", "answered"])?;
        let from = self.told_at.checked_sub(Duration::from_secs_f64(seconds));
        let from = from.ok_or_else(|| unread("it measured longer than it ran"))?;
        let spent = at(&self.samples, self.told_at) - at(&self.samples, from);
        Ok(spent * 1e6 / answered)
    }

    fn check(&self, devices: u32) -> Result<(), Stop> {
        let registered = self.number(&["registered"])?;
        if registered == f64::from(devices) {
            return Ok(());
        }
        Err(Stop::Failed(format!(
            "{registered} of {devices} devices are registered: {}",
            self.report
        )))
    }
}

impl Scenario {
    fn word(&self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::Update(_) => "update",
            Self::Actions(..) => "actions",
        }
    }

    fn rounds(&self) -> u32 {
        match self {
            Self::Register => 1,
            Self::Update(rounds) | Self::Actions(rounds, _) => rounds.count,
        }
    }

    /// When a round began to tell its outcome: `update: 1000 devices, ..`.
    fn told(&self, line: &Line) -> Option<Instant> {
        let rest = line.text.strip_prefix(self.word())?;
        rest.starts_with(": ").then_some(line.at)
    }
}

fn command(service: &Service, devices: u32, scenario: &Scenario) -> Command {
    let mut command = signalbox();
    command.args(["load", "--target", &format!("coap://{}", service.coap)]);
    command.args(["--devices", &devices.to_string()]);
    command.args(["--scenario", scenario.word(), "--report"]);
    command.arg(report_path());
    let measure = |command: &mut Command, Rounds { count, each }: &Rounds| {
        command.args(["--duration", &format!("{}ms", each.as_millis())]);
        command.args(["--rounds", &count.to_string()]);
    };
    match scenario {
        Scenario::Register => {}
        Scenario::Update(rounds) => measure(&mut command, rounds),
        Scenario::Actions(rounds, token) => {
            measure(&mut command, rounds);
            command.args(["--api", &format!("http://{}", service.http)]);
            command.args(["--token", token]);
        }
    }
    command
}

fn report_path() -> PathBuf {
    root().join("target/scale/load.json")
}

fn patience(devices: u32, scenario: &Scenario) -> Duration {
    let registering = Duration::from_secs((devices / REGISTRATIONS_PER_S).into());
    let measured = match scenario {
        Scenario::Register => Duration::ZERO,
        Scenario::Update(rounds) | Scenario::Actions(rounds, _) => {
            (rounds.each + PATIENCE) * rounds.count
        }
    };
    PATIENCE + registering + measured
}

/// The report of the only round, or a list of those of each.
fn reports(text: &str) -> Result<Vec<Value>, Stop> {
    let mut all: Value = serde_json::from_str(text).map_err(|error| unread(&error.to_string()))?;
    Ok(match all.as_array_mut() {
        Some(reports) => std::mem::take(reports),
        None => vec![all],
    })
}

/// A time between two looks lies on the straight line between them.
fn at(samples: &[(Instant, f64)], wanted: Instant) -> f64 {
    let later = samples.iter().position(|(at, _)| *at >= wanted);
    let later = later.unwrap_or(samples.len().saturating_sub(1));
    let (Some(before), Some(after)) = (samples.get(later.saturating_sub(1)), samples.get(later))
    else {
        return 0.0;
    };
    let whole = (after.0 - before.0).as_secs_f64();
    let part = wanted.saturating_duration_since(before.0).as_secs_f64();
    if whole > 0.0 {
        before.1 + (after.1 - before.1) * (part / whole).min(1.0)
    } else {
        after.1
    }
}

fn unread(why: &str) -> Stop {
    Stop::Failed(format!("the report of the load cannot be used: {why}"))
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Rounds, Scenario, at, reports};
    use crate::bench::process::Line;
    use serde_json::json;
    use std::time::{Duration, Instant};

    #[test]
    fn processor_time_is_cut_to_what_was_measured() {
        let begun = Instant::now();
        let after = |seconds| begun + Duration::from_secs(seconds);
        let samples = vec![(after(0), 0.0), (after(10), 10.0), (after(20), 12.0)];
        assert_eq!(at(&samples, after(5)), 5.0);
        assert_eq!(at(&samples, after(15)), 11.0);
        assert_eq!(at(&samples, after(25)), 12.0);
        assert_eq!(at(&[], begun), 0.0);
        let outcome = Outcome {
            report: json!({ "measurement": { "seconds": 5.0, "answered": 1_000 } }),
            samples: samples.into(),
            told_at: after(20),
        };
        assert_eq!(outcome.processor_us().unwrap(), 1_000.0);
        let stop = outcome.number(&["measurement", "latencyMs", "p50"]);
        assert!(
            stop.unwrap_err()
                .to_string()
                .contains("measurement.latencyMs.p50")
        );
    }

    #[test]
    fn the_outcome_is_told_from_progress() {
        let line = |text: &str| Line {
            at: Instant::now(),
            text: text.to_owned(),
        };
        let each = Duration::from_secs(1);
        let update = Scenario::Update(Rounds { count: 2, each });
        assert!(
            update
                .told(&line("update: 7 devices, 7 registered"))
                .is_some()
        );
        assert!(update.told(&line("updating 5 s: 100 answered")).is_none());
        assert!(Scenario::Register.told(&line("registered")).is_none());
    }

    #[test]
    fn one_round_has_a_report_and_several_a_list() {
        assert_eq!(reports("{\"a\": 1}").unwrap(), [json!({ "a": 1 })]);
        assert_eq!(reports("[{}, {}]").unwrap().len(), 2);
        assert!(reports("[{}").is_err());
    }
}
