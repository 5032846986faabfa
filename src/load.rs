//! How much does a server take? `signalbox load`: simulated devices and callers, what they
//! measured, and whether it is within the bounds.

mod actions;
mod api;
mod display;
pub mod options;
mod report;
mod stage;

use std::error::Error;
use std::fs;
use std::process::ExitCode;

use harness::clock::Clock;
use harness::load::worker::Job;
use serde_json::Value;

use self::api::Api;
use self::options::{Options, Scenario};
use self::report::{Phase, Report};
use self::stage::{Outcome, Stage};

/// Applies the load, prints and keeps the report; fails where a bound is missed.
pub fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let mut options = options.clone();
    let seed = match options.seed {
        Some(seed) => seed,
        None => getrandom::u64()?,
    };
    options.seed = Some(seed);
    let reports = measure(&options, Clock::start().now_ms())?;
    if let Some(path) = &options.report {
        let text = format!("{:#}\n", json(&reports));
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let missed: Vec<_> = reports.iter().flat_map(Report::missed).collect();
    for missed in &missed {
        eprintln!("signalbox: {missed}");
    }
    match missed.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

/// The report of the only round, or a list of those of each.
fn json(reports: &[Report]) -> Value {
    match reports {
        [report] => report.json(),
        reports => reports.iter().map(Report::json).collect(),
    }
}

/// A report of each round, printed as soon as it is there.
fn measure(options: &Options, started_at_ms: i64) -> Result<Vec<Report>, Box<dyn Error>> {
    let mut stage = Stage::open(options)?;
    let api = options.api.as_ref().zip(options.token.as_ref());
    let api = api.map(|(base, token)| Api::at(base, token)).transpose()?;
    let imported = match &api {
        Some(api) if options.import => Some(api.import_devices(options)?),
        Some(_) | None => None,
    };
    let registration = stage.register(options)?;
    let registered = stage.registered();
    if registered == 0 {
        let reasons = Phase::of(&registration).reasons();
        return Err(format!("the server registered none of the devices: {reasons}").into());
    }
    let mut prepared = Report {
        options: options.clone(),
        started_at_ms,
        imported,
        registered,
        preparation: None,
        measurement: Phase::of(&registration),
        actions: None,
    };
    if options.scenario != Scenario::Register {
        prepared.preparation = Some(Phase::of(&registration));
    }
    let mut reports = Vec::new();
    for _ in 0..options.rounds {
        let report = perform(&mut stage, api.as_ref(), options, prepared.clone())?;
        print!("{report}");
        reports.push(report);
    }
    Ok(reports)
}

/// Measures registered devices once.
fn perform(
    stage: &mut Stage,
    api: Option<&Api>,
    options: &Options,
    mut report: Report,
) -> Result<Report, Box<dyn Error>> {
    match (options.scenario, api) {
        (Scenario::Register, _) => {}
        (Scenario::Update, _) => {
            let pace = stage::pace(options);
            let for_ns = stage::nanoseconds(options.time());
            let updates = stage.perform("updating", |_| Job::Update { pace, for_ns })?;
            report.measurement = measured(updates, options);
        }
        (Scenario::Send, _) => {
            let pace = stage::pace(options);
            let for_ns = stage::nanoseconds(options.time());
            let sends = stage.perform("sending", |_| Job::Send { pace, for_ns })?;
            report.measurement = measured(sends, options);
        }
        (Scenario::Actions, Some(api)) => {
            let (calls, ends) = actions::measure(stage, api, options)?;
            report.measurement = calls;
            report.actions = Some(ends);
        }
        (Scenario::Actions, None) => return Err("the actions scenario needs --api".into()),
    }
    Ok(report)
}

/// What devices did for as long as was asked.
fn measured(mut outcome: Outcome, options: &Options) -> Phase {
    outcome.took_s = options.time().as_secs_f64();
    Phase::of(&outcome)
}
