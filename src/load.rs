//! How much load can a server handle? `signalbox load`: simulated devices and callers, the measured
//! results, and whether they are within the bounds.
//!
//! A [`Load`] is the one runner of its scenarios: the command and the benches measure with it.

mod actions;
mod api;
mod display;
pub mod options;
pub mod report;

use std::error::Error;
use std::fs;
use std::process::ExitCode;
use std::time::Duration;

use harness::clock::Clock;
use harness::load::Transmission;
use harness::load::arrivals::ArrivalPattern;
use harness::load::behaviour::{DeviceBehaviour, LABELS, Recording, SendValues};
use harness::load::pool::DevicePool;
use harness::load::request_mix::RequestMix;
use harness::load::worker::{LoadJob, LoadProgress, LoadTarget, LoadWork};
use serde_json::Value;

use self::api::LoadApi;
use self::display::Display;
use self::options::{LoadOptions, Scenario};
use self::report::{LoadReport, PhaseReport};

pub use self::api::import_lines;

/// The interval at which the display is refreshed.
const LOOK: Duration = Duration::from_millis(100);

/// The minimum window of registrations in a scenario that measures API calls.
const REGISTERING: u32 = 256;

/// Runs the load test, prints and writes the report; fails if a bound is exceeded.
pub fn run(options: &LoadOptions) -> Result<ExitCode, Box<dyn Error>> {
    if let Some(note) = options.note() {
        eprintln!("signalbox: {note}");
    }
    let mut load = Load::begin(options)?;
    let mut reports = Vec::new();
    for _ in 0..options.rounds {
        let report = load.measure()?;
        print!("{report}");
        reports.push(report);
    }
    if let Some(path) = &options.report {
        let text = format!("{:#}\n", json(&reports));
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let missed: Vec<_> = reports.iter().flat_map(LoadReport::missed).collect();
    for missed in &missed {
        eprintln!("signalbox: {missed}");
    }
    match missed.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

/// The report of the only round, or the list of the reports of all rounds.
fn json(reports: &[LoadReport]) -> Value {
    match reports {
        [report] => report.json(),
        reports => reports.iter().map(LoadReport::json).collect(),
    }
}

/// Registered devices, and the API of their server.
pub struct Load {
    options: LoadOptions,
    pool: DevicePool,
    api: Option<LoadApi>,
    prepared: LoadReport,
}

impl Load {
    /// Imports the devices, if requested, and registers them.
    pub fn begin(options: &LoadOptions) -> Result<Self, Box<dyn Error>> {
        let mut options = options.clone();
        let seed = match options.seed {
            Some(seed) => seed,
            None => getrandom::u64()?,
        };
        options.seed = Some(seed);
        let started_at_ms = Clock::start().now_ms();
        let mut pool = DevicePool::open(&field(&options, seed), options.workers)?;
        let api = options.api.as_ref().zip(options.token.as_ref());
        let api = api.map(|(base, token)| LoadApi::at(base, token, options.request_mode));
        let api = api.transpose()?;
        let imported = match &api {
            Some(api) if options.import => Some(api.import_devices(&options)?),
            Some(_) | None => None,
        };
        // At the requested rate if registering is the scenario, otherwise with a window.
        let arrivals = match options.scenario {
            Scenario::Register => arrivals(&options),
            Scenario::Update | Scenario::Send => ArrivalPattern::Window(options.requests()),
            Scenario::Actions => ArrivalPattern::Window(options.requests().max(REGISTERING)),
        };
        let (tally, seconds) = pool.register(arrivals, shown("registering"))?;
        let registration = PhaseReport { seconds, tally };
        let registered = pool.registered();
        if registered == 0 {
            let reasons = registration.reasons();
            return Err(format!("the server registered none of the devices: {reasons}").into());
        }
        let prepared = LoadReport {
            options: options.clone(),
            started_at_ms,
            imported,
            registered,
            preparation: (options.scenario != Scenario::Register).then(|| registration.clone()),
            measurement: registration,
            actions: None,
        };
        Ok(Self {
            options,
            pool,
            api,
            prepared,
        })
    }

    /// The number of registered devices.
    pub fn registered(&self) -> u32 {
        self.prepared.registered
    }

    /// Runs one measurement with the registered devices. For the register scenario it has run
    /// already.
    pub fn measure(&mut self) -> Result<LoadReport, Box<dyn Error>> {
        let mut report = self.prepared.clone();
        let (arrivals, for_ns) = (arrivals(&self.options), nanoseconds(self.options.time()));
        let repeat = |mix| LoadJob {
            work: LoadWork::Repeat(mix, arrivals),
            for_ns,
            callers: None,
        };
        let (tally, actions) = match (self.options.scenario, &self.api) {
            (Scenario::Register, _) => return Ok(report),
            (Scenario::Update, _) => {
                let job = |_| repeat(RequestMix::UPDATES);
                (self.pool.perform(job, shown("updating"))?, None)
            }
            (Scenario::Send, _) => {
                let job = |_| repeat(RequestMix::SENDS);
                (self.pool.perform(job, shown("sending"))?, None)
            }
            (Scenario::Actions, Some(api)) => {
                let (tally, ends) = actions::measure(&mut self.pool, api, &self.options)?;
                (tally, Some(ends))
            }
            (Scenario::Actions, None) => return Err("the actions scenario needs --api".into()),
        };
        let seconds = self.options.time().as_secs_f64();
        report.measurement = PhaseReport { seconds, tally };
        report.actions = actions;
        Ok(report)
    }
}

/// Shows the progress of the workers until they finish.
fn shown(name: &'static str) -> impl FnOnce(&LoadProgress, &dyn Fn(Duration) -> bool) {
    move |watch, done| {
        let mut display = Display::open(name);
        while !done(LOOK) {
            display.show(watch.progress());
        }
        display.close();
    }
}

/// The arrival pattern of the devices' requests.
fn arrivals(options: &LoadOptions) -> ArrivalPattern {
    match options.rate {
        Some(rate) => ArrivalPattern::Rate(rate),
        None => ArrivalPattern::Window(options.requests()),
    }
}

/// A duration in the workers' unit.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn field(options: &LoadOptions, seed: u64) -> LoadTarget {
    let transmission = Transmission {
        ack_timeout_ms: options.ack_timeout_ms,
        max_retransmit: options.max_retransmit,
        ..Transmission::STANDARD
    };
    LoadTarget {
        server: options.target,
        network: options.bind,
        devices: options.devices,
        behaviour: DeviceBehaviour {
            pattern: options.endpoint_pattern.clone(),
            lifetime_s: options.lifetime,
            transmission,
            loss_percent: options.loss,
            sleep: None,
            sends: SendValues {
                label: (seed % u64::from(LABELS)) as u32,
                recording: Recording::Off,
            },
        },
        seed,
    }
}
