//! How much load can a server handle? `signalbox load`: simulated devices and callers, the measured
//! results, and whether they are within the bounds.
//!
//! A [`Load`] is the one runner of its scenarios: the command and the benches measure with it.

mod actions;
mod api;
mod books;
mod display;
mod html;
mod interrupts;
pub mod options;
pub mod report;
mod webhook;

use std::error::Error;
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use harness::clock::Clock;
use harness::load::Transmission;
use harness::load::arrivals::ArrivalPattern;
use harness::load::behaviour::{DeviceBehaviour, LABELS, Recording, SendValues, SessionUse};
use harness::load::pool::DevicePool;
use harness::load::request_mix::RequestMix;
use harness::load::tally::{NumberedSend, TaskTally};
use harness::load::worker::{LoadJob, LoadProgress, LoadTarget, LoadWork};
use serde_json::Value;

use self::actions::CallMeasurement;
use self::api::LoadApi;
use self::books::Books;
use self::display::Display;
use self::interrupts::Interrupts;
use self::options::{LoadOptions, Scenario};
use self::report::books::BooksReport;
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
    let interrupts = Interrupts::watch()?;
    let mut load = Load::with(options, interrupts)?;
    let rounds = load.measure_rounds();
    load.close();
    let reports = rounds?;
    if let Some(path) = &options.report {
        write_report(path, &reports)?;
    }
    let missed: Vec<_> = reports.iter().flat_map(LoadReport::faults).collect();
    for missed in &missed {
        eprintln!("signalbox: {missed}");
    }
    match missed.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

/// Writes the JSON report to this file, or the HTML report with the JSON report beside it.
fn write_report(path: &Path, reports: &[LoadReport]) -> Result<(), String> {
    let write = |path: &Path, text: String| {
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    let text = format!("{:#}\n", json(reports));
    if path
        .extension()
        .is_some_and(|extension| extension == "html")
    {
        write(path, html::page(reports))?;
        return write(&path.with_extension("json"), text);
    }
    write(path, text)
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
    books: Option<Books>,
    interrupts: Interrupts,
    prepared: LoadReport,
}

impl Load {
    /// Imports the devices, if requested, and registers them.
    pub fn begin(options: &LoadOptions) -> Result<Self, Box<dyn Error>> {
        Self::with(options, Interrupts::default())
    }

    fn with(options: &LoadOptions, interrupts: Interrupts) -> Result<Self, Box<dyn Error>> {
        let mut options = options.clone();
        let seed = match options.seed {
            Some(seed) => seed,
            None => getrandom::u64()?,
        };
        options.seed = Some(seed);
        let started_at_ms = Clock::start().now_ms();
        let sends = send_values(&options, started_at_ms);
        let mut pool = DevicePool::open(&field(&options, seed, sends), options.workers)?;
        let api = options.api.as_ref().zip(options.token.as_ref());
        let api = api.map(|(base, token)| LoadApi::at(base, token, options.mode()));
        let api = api.transpose()?;
        let imported = match &api {
            Some(api) if options.import => Some(api.import_devices(&options)?),
            Some(_) | None => None,
        };
        // At the requested rate if registering is the scenario, otherwise with a window.
        let arrivals = match options.scenario {
            Scenario::Register => options.arrivals(),
            Scenario::Update | Scenario::Send | Scenario::Storm | Scenario::Handshake => {
                ArrivalPattern::Window(options.requests())
            }
            Scenario::Actions | Scenario::Mixed => {
                ArrivalPattern::Window(options.requests().max(REGISTERING))
            }
        };
        let (tally, seconds) =
            pool.register(arrivals, shown("registering", &options, &interrupts))?;
        let registration = PhaseReport { seconds, tally };
        let registered = pool.registered();
        if registered == 0 {
            let reasons = registration.reasons();
            return Err(format!("the server registered none of the devices: {reasons}").into());
        }
        let books = match &api {
            Some(api) if options.has_books() => {
                Some(Books::open(api, &options, sends, started_at_ms)?)
            }
            Some(_) | None => None,
        };
        let prepared = LoadReport {
            options: options.clone(),
            started_at_ms,
            imported,
            registered,
            preparation: (options.scenario != Scenario::Register).then(|| registration.clone()),
            measurement: registration,
            actions: None,
            books: None,
            is_interrupted: interrupts.is_finishing(),
        };
        Ok(Self {
            options,
            pool,
            api,
            books,
            interrupts,
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
        let begun_at = Instant::now();
        let arrivals = self.options.arrivals();
        (report.measurement.tally, report.actions) = match self.options.scenario {
            Scenario::Register => return Ok(report),
            Scenario::Storm => {
                let shown = shown("returning", &self.options, &self.interrupts);
                let (tally, seconds) = self.pool.return_after_outage(arrivals, shown)?;
                report.measurement = PhaseReport { seconds, tally };
                report.is_interrupted = self.interrupts.is_finishing();
                return Ok(report);
            }
            // Devices that sleep update when they wake.
            Scenario::Update if self.options.sleep.is_some() => {
                (self.perform("updating", LoadWork::Listen)?, None)
            }
            Scenario::Update => {
                let work = LoadWork::Repeat(RequestMix::UPDATES, arrivals);
                (self.perform("updating", work)?, None)
            }
            Scenario::Handshake => {
                let work = LoadWork::Repeat(RequestMix::UPDATES, arrivals);
                (self.perform("handshaking", work)?, None)
            }
            Scenario::Send => {
                let work = LoadWork::Repeat(RequestMix::SENDS, arrivals);
                (self.perform("sending", work)?, None)
            }
            Scenario::Actions => {
                let (tally, outcomes) = self.call(LoadWork::Listen)?.of_calls();
                (tally, Some(outcomes))
            }
            Scenario::Mixed => {
                let shares = self.options.shares();
                let work = LoadWork::Repeat(shares.devices, arrivals);
                match shares.actions {
                    0 => (self.perform("mixing", work)?, None),
                    _ => {
                        let (tally, outcomes) = self.call(work)?.of_all();
                        (tally, Some(outcomes))
                    }
                }
            }
        };
        report.measurement.seconds = self.seconds_since(begun_at);
        report.is_interrupted = self.interrupts.is_finishing();
        let acknowledged = std::mem::take(&mut report.measurement.tally.acknowledged);
        report.books = self.check(acknowledged);
        Ok(report)
    }

    /// Runs and prints every round, until an interrupt.
    fn measure_rounds(&mut self) -> Result<Vec<LoadReport>, Box<dyn Error>> {
        let mut reports = Vec::new();
        for _ in 0..self.options.rounds {
            let report = self.measure()?;
            print!("{report}");
            reports.push(report);
            if self.interrupts.is_finishing() {
                break;
            }
        }
        Ok(reports)
    }

    /// Deletes what the load created for itself.
    fn close(&self) {
        if let Some((books, api)) = self.books.as_ref().zip(self.api.as_ref()) {
            books.close(api);
        }
    }

    /// Lets the devices do this work for the time of a measurement.
    fn perform(&mut self, name: &'static str, work: LoadWork) -> io::Result<TaskTally> {
        let for_ns = nanoseconds(self.options.time());
        let job = |_| LoadJob {
            work,
            for_ns,
            callers: None,
        };
        let shown = shown(name, &self.options, &self.interrupts);
        self.pool.perform(job, shown)
    }

    /// Lets callers call the API while the devices do this work.
    fn call(&mut self, work: LoadWork) -> Result<CallMeasurement, Box<dyn Error>> {
        let api = self.api.as_ref().ok_or("actions need --api")?;
        actions::measure(&mut self.pool, api, &self.options, &self.interrupts, work)
    }

    /// How long was measured: the requested time, unless an interrupt came before.
    fn seconds_since(&self, begun_at: Instant) -> f64 {
        let until_interrupt = self.interrupts.first_at();
        let until_interrupt = until_interrupt.map(|at| at.saturating_duration_since(begun_at));
        let time = self.options.time();
        until_interrupt
            .map_or(time, |it| it.min(time))
            .as_secs_f64()
    }

    /// Checks the books with these Sends, if there are any.
    fn check(&mut self, acknowledged: Vec<NumberedSend>) -> Option<Result<BooksReport, String>> {
        let (books, api) = self.books.as_mut().zip(self.api.as_ref())?;
        let checked = books.check(acknowledged, api, &self.options, &self.interrupts);
        Some(checked.map_err(|error| error.to_string()))
    }
}

/// Shows the progress of the workers until they finish, and passes interrupts on to them.
fn shown(
    name: &'static str,
    options: &LoadOptions,
    interrupts: &Interrupts,
) -> impl FnOnce(&LoadProgress, &dyn Fn(Duration) -> bool) + use<> {
    let interrupts = interrupts.clone();
    let mut display = Display::open(name, options);
    move |watch, done| {
        while !done(LOOK) {
            display.show(watch.progress());
            interrupts.pass_on(watch);
        }
        display.close();
    }
}

/// A duration in the workers' unit.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The values of the load's Sends; a label of each start tells them from those of other loads.
fn send_values(options: &LoadOptions, started_at_ms: i64) -> SendValues {
    SendValues {
        label: (started_at_ms.unsigned_abs() % u64::from(LABELS)) as u32,
        recording: match options.has_books() {
            true => Recording::On,
            false => Recording::Off,
        },
    }
}

fn field(options: &LoadOptions, seed: u64, sends: SendValues) -> LoadTarget {
    let transmission = Transmission {
        ack_timeout_ms: options.ack_timeout_ms,
        max_retransmit: options.max_retransmit,
        ..Transmission::STANDARD
    };
    LoadTarget {
        server: options.target.address,
        network: options.bind,
        devices: options.devices,
        behaviour: DeviceBehaviour {
            pattern: options.endpoint_pattern.clone(),
            lifetime_s: options.lifetime,
            transmission,
            loss_percent: options.loss,
            sleep: options.sleep_times(),
            sends,
            security: options.security(),
            sessions: match options.scenario {
                Scenario::Handshake => SessionUse::OneRequest,
                Scenario::Register
                | Scenario::Update
                | Scenario::Send
                | Scenario::Actions
                | Scenario::Mixed
                | Scenario::Storm => SessionUse::UntilTimeout,
            },
        },
        seed,
    }
}
