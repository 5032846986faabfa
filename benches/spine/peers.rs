//! How does the service compare with another LwM2M server under the same load? Eclipse Leshan's
//! server and the program an operator runs take turns.
//!
//! Both get the same devices, one kind of request at a time, with as many in flight. They do not do
//! the same: the service makes every registration, every value and every read with its outcome
//! durable before it answers, while Leshan's server keeps registrations and reads in memory, and
//! values not at all. Its builder has no API; reads reach it over the HTTP server of the JDK.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::{Parser, value_parser};
use harness::load::behaviour::PreSharedKey;
use harness::load::figures::Figures;
use signalbox::load::{Load, import_lines};
use signalbox::rest_client::ClientCredentials;
use tempfile::TempDir;
use tokio::runtime::Builder;

use crate::load;
use crate::program::Program;
use crate::service::{CACHE_MIB, MIB, PROGRAM, Service};

/// Where `cargo xtask bench peers` puts Leshan's server.
const LESHAN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/interop/leshan-server");

/// The timeout of an import.
const IMPORT_TIMEOUT: Duration = Duration::from_secs(60);

/// The pre-shared key of every device: one costs as much as another.
const KEY: &str = "07070707070707070707070707070707";

/// What is measured after the first registrations: its name, and the scenario of the load.
const OPERATIONS: [(&str, &[&str]); 4] = [
    ("register again", &["mixed", "--shares", "register=1"]),
    ("update", &["update"]),
    ("Send", &["send"]),
    ("read over the REST API", &["actions"]),
];

/// What is measured over DTLS then.
const SECURED: [(&str, &[&str]); 2] = [
    ("update over DTLS", &["update", "--psk", KEY]),
    (
        "handshake and update over DTLS",
        &["handshake", "--psk", KEY],
    ),
];

/// Measures the service and Leshan's server in turns
#[derive(Parser)]
#[command(name = "cargo xtask bench peers")]
struct Options {
    /// Number of devices
    #[arg(long, default_value_t = 5_000, value_parser = value_parser!(u32).range(1..))]
    devices: u32,
    /// Requests in flight
    #[arg(long, default_value_t = 64, value_parser = value_parser!(u32).range(1..))]
    window: u32,
    /// Duration of each measurement, in seconds
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u64).range(1..))]
    seconds: u64,
    /// Measured rounds of each request; one more warms up
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u32).range(1..))]
    rounds: u32,
    /// Program to measure instead of the one of this tree
    #[arg(long, default_value = PROGRAM)]
    program: PathBuf,
}

/// Measures every kind of request and prints the table.
pub(crate) fn run(words: &[&str]) {
    let options = Options::parse_from([&["cargo xtask bench peers"], words].concat());
    let (devices, window, rounds) = (options.devices, options.window, options.rounds);
    println!("## {devices} devices, {window} requests in flight; medians of {rounds} rounds\n");
    println!(
        "| request | server | per second | p50, ms | p99, ms | processor, µs per request | \
         memory, MiB |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut peers = [Peer::signalbox(&options), Peer::leshan()];
    for peer in &mut peers {
        let mut figures = RequestFigures::default();
        let before_s = peer.processor_s();
        let mut load = load::begin_at(&peer.coap, devices, "register", &["--window", "64"]);
        figures.measure(peer, &mut load, before_s);
        figures.show("register", peer);
    }
    for (name, scenario) in OPERATIONS {
        compare(name, scenario, &peers, &options);
    }
    let session_bytes = peers.each_ref().map(|peer| session_bytes(peer, devices));
    for (name, scenario) in SECURED {
        compare(name, scenario, &peers, &options);
    }
    println!("\n| server | memory of an idle session, B |\n|---|---|");
    for (peer, bytes) in peers.iter().zip(session_bytes) {
        println!("| {} | {bytes:.0} |", peer.name);
    }
    for peer in peers {
        peer.stop();
    }
}

/// How much a server grows for each device that is registered over CoAP and registers over DTLS.
fn session_bytes(peer: &Peer, devices: u32) -> f64 {
    let before = peer.held_bytes();
    let words = ["--window", "64", "--psk", KEY];
    drop(load::begin_at(&peer.coaps, devices, "update", &words));
    (peer.held_bytes() - before) / f64::from(devices)
}

/// Measures one kind of request, the servers in turns.
fn compare(name: &str, scenario: &[&str], peers: &[Peer; 2], options: &Options) {
    let (window, time) = (options.window.to_string(), format!("{}s", options.seconds));
    let [scenario, more @ ..] = scenario else {
        return;
    };
    let mut measured = Vec::new();
    for (index, peer) in peers.iter().enumerate() {
        let api = peer.api.iter().map(String::as_str);
        let api = api.filter(|_| *scenario == "actions");
        let words = ["--window", &window, "--duration", &time].into_iter();
        let words: Vec<&str> = words.chain(more.iter().copied()).chain(api).collect();
        let target = match words.contains(&"--psk") {
            true => &peer.coaps,
            false => &peer.coap,
        };
        let load = load::begin_at(target, options.devices, scenario, &words);
        measured.push((index, load, RequestFigures::default()));
    }
    for round in 0..=options.rounds {
        for (index, load, figures) in &mut measured {
            let peer = &peers[*index];
            match round {
                0 => drop(load.measure().expect("the load can be applied")),
                _ => figures.measure(peer, load, peer.processor_s()),
            }
        }
    }
    for (index, _, figures) in &measured {
        figures.show(name, &peers[*index]);
    }
}

/// A measured server.
struct Peer {
    name: &'static str,
    coap: String,
    coaps: String,
    /// Options of the load to call its API.
    api: Vec<String>,
    process: PeerProcess,
}

enum PeerProcess {
    Signalbox(Box<Service>, TempDir),
    Leshan(Program),
}

impl Peer {
    /// The service, which knows the devices.
    fn signalbox(options: &Options) -> Self {
        let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"));
        let data = data.expect("the build's directory takes another");
        let mut service = Service::start(&options.program, data.path(), CACHE_MIB, &[]);
        let runtime = Builder::new_current_thread().enable_all().build();
        let token = runtime.expect("a runtime can be had").block_on(async {
            service.ready().await;
            let token = service.token_of("peers").await;
            let api = service.api(ClientCredentials::Bearer(token.clone()));
            let pattern = "{:019}".parse().expect("a pattern");
            let network = "127.64.0.0/10".parse().expect("a network");
            let key = PreSharedKey(vec![7; 16]);
            let lines = import_lines(&pattern, network, Some(&key), 0..options.devices);
            let answer = api.import(lines, IMPORT_TIMEOUT).await;
            answer.expect("all are imported");
            token
        });
        Self {
            name: "signalbox",
            coap: format!("coap://{}", service.coap()),
            coaps: format!("coaps://{}", service.coaps()),
            api: api_options(format!("http://{}", service.http), &token),
            process: PeerProcess::Signalbox(Box::new(service), data),
        }
    }

    /// Leshan's server, which accepts any device.
    fn leshan() -> Self {
        let mut command = Command::new("java");
        // Each datagram would be a line of its log.
        command.arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=error");
        command.args([
            "-cp",
            &format!("{LESHAN}/classes:{LESHAN}/lib/*"),
            "PeerServer",
            KEY,
        ]);
        let mut program = Program::start(&mut command);
        let mut listening = |scheme: &str| {
            let listening = |line: &str| {
                let uri = line.strip_prefix("listening ")?;
                uri.starts_with(scheme).then(|| uri.to_owned())
            };
            program.wait_for("where devices reach it", listening)
        };
        Self {
            name: "Leshan",
            coap: listening("coap://"),
            coaps: listening("coaps://"),
            api: api_options(listening("http://"), "none"),
            process: PeerProcess::Leshan(program),
        }
    }

    fn processor_s(&self) -> f64 {
        match &self.process {
            PeerProcess::Signalbox(service, _) => service.processor_s(),
            PeerProcess::Leshan(program) => crate::kernel::processor_s(program.pid()),
        }
    }

    fn resident_mib(&self) -> f64 {
        match &self.process {
            PeerProcess::Signalbox(service, _) => service.resident_mib(),
            PeerProcess::Leshan(program) => {
                crate::kernel::resident_bytes(program.pid()) as f64 / MIB
            }
        }
    }

    /// What it holds: resident memory, or of Leshan's heap what is still in use.
    fn held_bytes(&self) -> f64 {
        match &self.process {
            PeerProcess::Signalbox(service, _) => service.resident_mib() * MIB,
            PeerProcess::Leshan(program) => live_heap_bytes(program.pid()),
        }
    }

    fn stop(self) {
        match self.process {
            PeerProcess::Signalbox(service, _data) => drop(service.stop()),
            PeerProcess::Leshan(mut program) => program.kill(),
        }
    }
}

fn api_options(base: String, token: &str) -> Vec<String> {
    vec!["--api".into(), base, "--token".into(), token.into()]
}

/// The objects of a Java process that are left after a collection: the last line of its histogram
/// is `Total  OBJECTS  BYTES`.
fn live_heap_bytes(pid: u32) -> f64 {
    let mut jcmd = Command::new("jcmd");
    let output = jcmd.args([&pid.to_string(), "GC.class_histogram"]).output();
    let output = output.expect("a JDK has jcmd").stdout;
    let output = String::from_utf8_lossy(&output);
    let total = output.lines().find_map(|line| line.strip_prefix("Total"));
    let bytes = total.and_then(|total| total.split_whitespace().nth(1)?.parse().ok());
    bytes.expect("a histogram ends with its total")
}

/// The figures of one kind of request at one server.
#[derive(Default)]
struct RequestFigures {
    rate: Figures,
    p50_ms: Figures,
    p99_ms: Figures,
    processor_us: Figures,
    resident_mib: Figures,
}

impl RequestFigures {
    fn measure(&mut self, peer: &Peer, load: &mut Load, before_s: f64) {
        let report = load.measure().expect("the load can be applied");
        let spent_s = peer.processor_s() - before_s;
        let tally = &report.measurement.tally;
        assert_eq!(tally.failed(), 0, "{}: {:?}", peer.name, tally.failures);
        let latency_ms = |percent| tally.latencies.percentile_ns(percent) as f64 / 1e6;
        self.rate.push(report.measurement.rate());
        self.p50_ms.push(latency_ms(50.0));
        self.p99_ms.push(latency_ms(99.0));
        self.processor_us
            .push(spent_s * 1e6 / tally.answered as f64);
        self.resident_mib.push(peer.resident_mib());
    }

    fn show(&self, request: &str, peer: &Peer) {
        println!(
            "| {request} | {} | {} | {} | {} | {} | {} |",
            peer.name,
            self.rate.shown(0),
            self.p50_ms.shown(2),
            self.p99_ms.shown(2),
            self.processor_us.shown(0),
            self.resident_mib.shown(0),
        );
    }
}
