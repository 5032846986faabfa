//! What do devices and callers notice of a fault, and is anything lost? Three nodes behind a
//! balancer, on three PostgreSQL servers under Patroni, all configured by the files of
//! `docs/cluster`.
//!
//! Devices Send at a fixed rate and repeat until they are answered; callers create requests and
//! repeat a call until it is accepted. After each fault the books of the load are compared with the
//! history and the webhook, and at the end those of the callers with the requests. Or faults are
//! drawn by a seed and follow one another under one load.

mod balancer;
mod callers;
mod database;
mod fault;
mod links;
mod machine;
mod nodes;
mod report;
mod seen;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum as _, value_parser};
use harness::rng::Rng;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use signalbox::load::Load;
use signalbox::load::report::LoadReport;
use signalbox::rest_client::ClientCredentials;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{interval, interval_at};

use self::balancer::Attempts;
use self::callers::{Called, Callers};
use self::database::DatabaseCluster;
use self::fault::Fault;
use self::links::Links;
use self::nodes::Nodes;
use self::report::{Cost, FaultReport, Sends};
use crate::load;
use crate::scale::place::MachineInfo;
use crate::service::PROGRAM;

/// How long everything is well before a fault.
const LEAD: Duration = Duration::from_secs(5);

/// The interval at which something is awaited.
const LOOK: Duration = Duration::from_millis(100);

/// The interval between two writes that show whether the database takes any.
const PROBE: Duration = Duration::from_millis(200);

/// How long no fault begins before the load ends, so that what the last one delayed is over.
const END: Duration = Duration::from_secs(60);

/// Deliveries and other work that follows a Send end within this time.
const AFTERMATH: Duration = Duration::from_secs(3);

/// Has faults happen to a cluster of nodes, and compares the books
#[derive(Parser)]
#[command(name = "cargo xtask bench cluster")]
struct Options {
    /// Devices; one that waits for an answer sends nothing else
    #[arg(long, default_value_t = 4_000, value_parser = value_parser!(u32).range(1..))]
    devices: u32,
    /// Sends of all of them per second
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
    rate: u32,
    /// Duration of the load around each fault, in seconds
    #[arg(long, default_value_t = 40, value_parser = value_parser!(u64).range(10..))]
    seconds: u64,
    /// Duration of the measurement of a Send's and an update's processor time, in seconds
    #[arg(long, default_value_t = 20, value_parser = value_parser!(u64).range(1..))]
    cost_seconds: u64,
    /// Faults, in this order [default: all]
    #[arg(long, value_delimiter = ',', value_enum)]
    faults: Vec<Fault>,
    /// Draws one fault after the other from those, for so many seconds under one load
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(120..))]
    draw: Option<u64>,
    /// Seed of the faults that are drawn
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Program to measure instead of the one of this tree
    #[arg(long, default_value = PROGRAM)]
    program: PathBuf,
    /// Program with which the nodes begin until they are upgraded, instead of the same
    #[arg(long, value_name = "PROGRAM")]
    before: Option<PathBuf>,
}

/// Makes every fault, prints the tables, and fails if anything is lost.
pub(crate) fn run(words: &[&str]) {
    let options = Options::parse_from([&["cargo xtask bench cluster"], words].concat());
    report::print_head(&MachineInfo::here(), words);
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be had");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cluster");
    // That of the last run, whose logs it has.
    fs::remove_dir_all(&folder).ok();
    raise_file_limit();
    let mut cluster = Cluster::start(&options, &folder, runtime);
    let costs = [
        ("send", Route::Direct),
        ("update", Route::Direct),
        ("update", Route::Relayed),
    ];
    let costs = costs.map(|(scenario, route)| cluster.cost(&options, scenario, route));
    report::print_costs(&costs);
    let mut load = cluster.begin_load(&options);
    let callers = Callers::of(&cluster.token, options.devices);
    let all = match options.faults.as_slice() {
        [] => Fault::value_variants(),
        some => some,
    };
    report::print_fault_head();
    let (mut sends, mut accepted) = (Sends::default(), Vec::new());
    let mut note = |found: FaultReport| {
        println!("{}", found.row());
        accepted.extend(found.called.accepted);
        sends = found.sends;
    };
    match options.draw {
        Some(seconds) => {
            let time = Duration::from_secs(seconds);
            let mut rng = Rng::from_seed(options.seed);
            note(cluster.suffer_many(all, time, &mut rng, &mut load, &callers));
        }
        None => {
            for fault in all {
                note(cluster.suffer(*fault, &mut load, &callers));
            }
        }
    }
    let requests = callers.check(&accepted, &cluster.attempts, &cluster.runtime);
    report::print_books(&sends, &requests);
    cluster.nodes.write_logs();
    assert!(sends.are_complete(), "Sends are lost or out of order");
    assert!(requests.are_complete(), "requests are lost");
}

/// How devices reach the active node.
#[derive(Clone, Copy)]
enum Route {
    /// They send to it.
    Direct,
    /// They send to one that stands by.
    Relayed,
}

/// Everything that runs.
struct Cluster {
    runtime: Runtime,
    token: String,
    attempts: Attempts,
    links: Links,
    // Nodes end before their database.
    nodes: Nodes,
    database: DatabaseCluster,
}

impl Cluster {
    fn start(options: &Options, folder: &Path, runtime: Runtime) -> Self {
        let database = DatabaseCluster::start(folder, &runtime);
        let links = Links::start();
        let first = options.before.as_ref().unwrap_or(&options.program);
        let mut nodes = Nodes::start((first, &options.program), folder, &runtime);
        let attempts = balancer::start(nodes.addresses());
        let active = &nodes.all()[nodes.active(&runtime)];
        let token = runtime.block_on(async {
            let token = active.token_of("cluster").await;
            let api = active.api(ClientCredentials::Bearer(token.clone()));
            let lines = load::lines(options.devices);
            let imported = api.import(lines, load::IMPORT_TIMEOUT).await;
            imported.expect("the devices are imported");
            token
        });
        Self {
            runtime,
            token,
            attempts,
            links,
            nodes,
            database,
        }
    }

    /// Measures what a request of a device costs on a route, without faults and with as many as can
    /// be answered.
    fn cost(&mut self, options: &Options, scenario: &str, route: Route) -> Cost {
        let time = format!("{}s", options.cost_seconds);
        let window = load::WINDOW.to_string();
        let words = ["--duration", &time, "--window", &window];
        let active = self.nodes.active(&self.runtime);
        let standby = usize::from(active == 0);
        let entry = match route {
            Route::Direct => active,
            Route::Relayed => standby,
        };
        let entry = self.nodes.addresses()[entry].coap;
        let mut load = load::begin(entry, options.devices, scenario, &words);
        let nodes = self.nodes.all();
        let processors = || {
            let (primary_s, standbys_s) = self.database.processor_s(&self.runtime);
            let [active_s, standby_s] = [active, standby].map(|node| nodes[node].processor_s());
            [active_s, standby_s, primary_s, standbys_s]
        };
        let before_s = processors();
        let measured = load.measure().expect("the socket works");
        self.runtime.block_on(pause(AFTERMATH));
        let after_s = processors();
        let answered = measured.measurement.tally.answered;
        let each_us = |at: usize| (after_s[at] - before_s[at]) * 1e6 / answered as f64;
        Cost {
            what: match route {
                Route::Direct => scenario.to_owned(),
                Route::Relayed => format!("{scenario}, relayed"),
            },
            rate: measured.measurement.rate(),
            active_us: each_us(0),
            standby_us: each_us(1),
            primary_us: each_us(2),
            standbys_us: each_us(3),
        }
    }

    /// Registers the devices, whose Sends are in the books of a load.
    fn begin_load(&self, options: &Options) -> Load {
        let time = format!("{}s", options.draw.unwrap_or(options.seconds));
        let rate = options.rate.to_string();
        let api = format!("http://{}", balancer::HTTP);
        let words = [
            &["--duration", &time, "--rate", &rate][..],
            &["--api", &api, "--token", &self.token, "--webhook"][..],
        ];
        load::begin(balancer::COAP, options.devices, "send", &words.concat())
    }

    /// Makes a fault while devices and callers are busy, and mends it.
    fn suffer(&mut self, fault: Fault, load: &mut Load, callers: &Callers) -> FaultReport {
        let (noticed, server) = self.while_busy(load, callers, |it| it.make(fault));
        self.mend(server);
        noticed.report(fault.to_string(), fault.concerns_database())
    }

    /// Makes faults as they are drawn, each once the one before is mended, under one load, which
    /// lasts so long.
    fn suffer_many(
        &mut self,
        faults: &[Fault],
        time: Duration,
        rng: &mut Rng,
        load: &mut Load,
        callers: &Callers,
    ) -> FaultReport {
        let begun_at = Instant::now();
        let (noticed, made) = self.while_busy(load, callers, |it| {
            let mut made = 0_u32;
            while begun_at.elapsed() + END < time {
                let drawn = rng.below(u32::try_from(faults.len()).expect("they are few"));
                let fault = faults[drawn as usize];
                let server = it.make(fault);
                it.mend(server);
                made += 1;
                eprintln!("{:.0} s: {fault}", begun_at.elapsed().as_secs_f64());
            }
            made
        });
        noticed.report(format!("{made} faults as they were drawn"), true)
    }

    /// Makes a fault after everything was well for a while; returns what it has left of the
    /// database.
    fn make(&mut self, fault: Fault) -> Option<usize> {
        self.runtime.block_on(pause(LEAD));
        fault.make(
            &mut self.nodes,
            &self.links,
            &mut self.database,
            &self.runtime,
        )
    }

    /// Starts again what has ended, as supervisors do.
    fn mend(&mut self, server: Option<usize>) {
        if let Some(server) = server {
            self.database.start_again(server);
        }
        self.nodes.start_again();
        self.database.wait_until_whole(&self.runtime);
        self.nodes.wait_until_whole(&self.runtime);
    }

    /// Has something happen while devices and callers are busy, and waits for the end of the load.
    fn while_busy<T>(
        &mut self,
        load: &mut Load,
        callers: &Callers,
        happen: impl FnOnce(&mut Self) -> T,
    ) -> (Noticed, T) {
        let mut probe = self.database.psql("postgres", "postgres");
        probe.args(["-c", "CREATE TABLE IF NOT EXISTS probe (at timestamptz)"]);
        probe.args(["-c", "INSERT INTO probe VALUES (clock_timestamp())"]);
        let (end, is_over) = channel();
        thread::scope(|scope| {
            let end = CallEnd(callers, end);
            let devices = scope.spawn(|| load.measure().expect("the socket works"));
            let calls = scope.spawn(|| callers.call());
            let writes = scope.spawn(|| longest_without_write(&mut probe, is_over));
            let happened = happen(self);
            let measured = devices.join().expect("the load does not panic");
            drop(end);
            let noticed = Noticed {
                measured,
                called: calls.join().expect("the callers do not panic"),
                database_gap: writes.join().expect("the probe does not panic"),
            };
            (noticed, happened)
        })
    }
}

/// What devices, callers and the probe of the database noticed.
struct Noticed {
    measured: LoadReport,
    called: Called,
    database_gap: Duration,
}

impl Noticed {
    fn report(self, what: String, concerns_database: bool) -> FaultReport {
        let gap = concerns_database.then_some(self.database_gap);
        FaultReport::new(what, &self.measured, self.called, gap)
    }
}

/// Lets the balancer have a socket for each device.
fn raise_file_limit() {
    let limits = getrlimit(Resource::RLIMIT_NOFILE);
    let raised = limits.and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    raised.expect("a process may use what it is granted");
}

/// Ends what goes on until it is told to end, also if the fault cannot be made: the callers, and
/// whoever has the other end of the channel.
struct CallEnd<'a>(
    &'a Callers,
    #[expect(dead_code, reason = "its end is the message")] Sender<()>,
);

impl Drop for CallEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Writes to the database until it is over; returns the longest time between two writes.
fn longest_without_write(write: &mut Command, is_over: Receiver<()>) -> Duration {
    let (mut written_at, mut longest) = (Instant::now(), Duration::ZERO);
    while is_over.recv_timeout(PROBE) == Err(RecvTimeoutError::Timeout) {
        let written = write.output().expect("psql is installed");
        if written.status.success() {
            longest = longest.max(written_at.elapsed());
            written_at = Instant::now();
        }
    }
    longest
}

/// Polls until something is there, and fails with what was awaited.
fn wait<T>(
    runtime: &Runtime,
    patience: Duration,
    awaited: &str,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + patience;
    runtime.block_on(async {
        let mut looks = interval(LOOK);
        loop {
            looks.tick().await;
            if let Some(found) = look().await {
                return found;
            }
            assert!(
                Instant::now() < deadline,
                "not within {patience:?}: {awaited}"
            );
        }
    })
}

/// Ends after a time.
async fn pause(time: Duration) {
    let end = tokio::time::Instant::now() + time;
    interval_at(end, time).tick().await;
}
