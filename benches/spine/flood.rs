//! How much longer do devices wait for the answers to their updates while the service is flooded?
//!
//! A fleet updates its registrations at a fixed rate: alone, beside a flood to another port that
//! nobody reads, and beside the same flood to the service. Both floods take the same processor time
//! from the sender's side, so the ratio of the last two is what the service does about it.

mod kinds;
mod sender;

use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use clap::{Parser, value_parser};
use harness::load::addressing::{EndpointPattern, Network};
use harness::load::figures::Figures;
use serde_json::Value;
use signalbox::load::{Load, import_lines};
use signalbox::rest_client::ClientCredentials;
use tempfile::TempDir;
use tokio::runtime::Builder;

use self::kinds::FloodKind;
use self::sender::{FloodSender, LEAD, UnreadPort};
use crate::load;
use crate::service::{CACHE_MIB, OPERATOR, PROGRAM, Service};

/// The devices whose updates are measured: names, and where they send from.
const PATTERN: &str = "meter-{:07}";
const NETWORK: &str = "127.96.0.0/11";

/// The devices of the customer that floods: those of the benches' fleet.
const FLOODING_PATTERN: &str = "urn:dev:{:09}";
const FLOODING_NETWORK: &str = "127.64.0.0/11";

/// The timeout of an import.
const IMPORT_TIMEOUT: Duration = Duration::from_secs(60);

/// Floods the service and measures the updates of others
#[derive(Parser)]
#[command(name = "cargo xtask bench flood")]
struct Options {
    /// Devices that are measured
    #[arg(long, default_value_t = 1_000, value_parser = value_parser!(u32).range(1..))]
    devices: u32,
    /// Updates of all of them per second
    #[arg(long, default_value_t = 1_000, value_parser = value_parser!(u32).range(1..))]
    rate: u32,
    /// Datagrams of a flood per second
    #[arg(long, default_value_t = 60_000, value_parser = value_parser!(u32).range(1_000..))]
    flood_rate: u32,
    /// Duration of each measurement, in seconds
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u64).range(1..))]
    seconds: u64,
    /// Rounds of each flood
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u32).range(1..))]
    rounds: u32,
    /// Floods to measure [default: all]
    #[arg(long, value_delimiter = ',', value_enum)]
    floods: Vec<FloodKind>,
    /// Program to measure instead of the one of this tree
    #[arg(long, default_value = PROGRAM)]
    program: PathBuf,
}

/// Measures every flood and prints the table.
pub(crate) fn run(words: &[&str]) {
    let options = Options::parse_from([&["cargo xtask bench flood"], words].concat());
    let (seconds, rounds) = (options.seconds, options.rounds);
    println!(
        "## {} devices, {} updates/s, beside {} datagrams/s; medians of {rounds} rounds of \
         {seconds} s\n",
        options.devices, options.rate, options.flood_rate
    );
    println!(
        "| flood | p99 alone, ms | p99 beside it at another port, ms | p99 flooded, ms | ratio | \
         unanswered | processor of the service |"
    );
    println!("|---|---|---|---|---|---|---|");
    let all = FloodKind::all();
    let floods = match options.floods.as_slice() {
        [] => &all[..],
        some => some,
    };
    for kind in floods {
        measure(&options, *kind);
    }
}

fn measure(options: &Options, kind: FloodKind) {
    let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"));
    let data = data.expect("the build's directory takes another");
    let mut service = start(options, &data);
    let mut sender = FloodSender::of(kind, service.coap());
    let unread = UnreadPort::open();
    let time = format!("{}ms", options.seconds * 1_000);
    let rate = options.rate.to_string();
    let words = [
        &["--duration", &time, "--rate", &rate][..],
        &["--bind", NETWORK, "--endpoint-pattern", PATTERN][..],
    ];
    let server = service.coap();
    let mut load = load::begin(server, options.devices, "update", &words.concat());
    let mut rounds = Rounds::default();
    for _ in 0..options.rounds {
        rounds.alone.push(update(&mut load));
        let flooded = |load: &mut Load, sender: &mut FloodSender, to| {
            let (begun, lead) = sync_channel(1);
            let (stop, stopped) = sync_channel(1);
            thread::scope(|scope| {
                scope.spawn(move || sender.send(to, options.flood_rate, &begun, &stopped));
                lead.recv().expect("the socket takes datagrams");
                let updates = update(load);
                stop.send(()).expect("the flood goes on until now");
                updates
            })
        };
        rounds
            .beside
            .push(flooded(&mut load, &mut sender, unread.address()));
        let before_s = service.processor_s();
        rounds.flooded.push(flooded(&mut load, &mut sender, server));
        let spent_s = service.processor_s() - before_s;
        rounds
            .busy
            .push(spent_s / (LEAD.as_secs_f64() + options.seconds as f64));
    }
    rounds.show(kind);
}

/// A service that knows the fleet, and the devices of another customer.
fn start(options: &Options, data: &TempDir) -> Service {
    // The limit of calls is that of the API, which imports the fleet and is not flooded.
    let service = Service::start(&options.program, data.path(), CACHE_MIB, &[]);
    let runtime = Builder::new_current_thread().enable_all().build();
    let fleets = [
        ("fleet", PATTERN, NETWORK, options.devices),
        (
            "flooding",
            FLOODING_PATTERN,
            FLOODING_NETWORK,
            kinds::DEVICES,
        ),
    ];
    runtime.expect("a runtime can be had").block_on(async {
        service.ready().await;
        for (customer, pattern, network, devices) in fleets {
            let operator = ClientCredentials::Bearer(OPERATOR.to_owned());
            let mut api = service.api(operator);
            let made = api.ensure_customer(customer, customer).await;
            made.expect("the operator may make a customer");
            let key = api.create_key(customer, "bench").await;
            let key = key.expect("the operator may make an API client");
            api.authorize(&key).await.expect("the key is valid");
            let pattern: EndpointPattern = pattern.parse().expect("a pattern");
            let network: Network = network.parse().expect("a network");
            let lines = import_lines(&pattern, network, None, 0..devices);
            let answer = api.import(lines, IMPORT_TIMEOUT).await;
            let created = answer.and_then(|answer| answer.number("/created"));
            assert_eq!(created.expect("all are imported"), u64::from(devices));
        }
    });
    service
}

/// The updates of one measurement.
struct Updates {
    p99_ms: f64,
    unanswered: f64,
}

fn update(load: &mut Load) -> Updates {
    let report = load.measure().expect("a load is measured").json();
    let number = |pointer| report.pointer(pointer).and_then(Value::as_f64);
    Updates {
        p99_ms: number("/measurement/latencyMs/p99").expect("some are answered"),
        unanswered: number("/errorCount").expect("errors are counted"),
    }
}

/// What was measured beside one flood.
#[derive(Default)]
struct Rounds {
    alone: Vec<Updates>,
    beside: Vec<Updates>,
    flooded: Vec<Updates>,
    /// The cores that the service used while it was flooded.
    busy: Vec<f64>,
}

impl Rounds {
    fn show(&self, kind: FloodKind) {
        let p99 = |updates: &[Updates]| -> Figures { updates.iter().map(|it| it.p99_ms).collect() };
        let (beside, flooded) = (p99(&self.beside), p99(&self.flooded));
        let unanswered: f64 = self.flooded.iter().map(|it| it.unanswered).sum();
        let busy: Figures = self.busy.iter().map(|cores| cores * 100.0).collect();
        println!(
            "| {kind} | {} | {} | {} | {} | {unanswered} | {} % |",
            p99(&self.alone).shown(2),
            beside.shown(2),
            flooded.shown(2),
            flooded.over(&beside).shown(2),
            busy.shown(0),
        );
    }
}
