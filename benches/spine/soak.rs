//! Does the service keep its promises for as long as it runs? A mixed load with loss, a webhook
//! that refuses requests half of the time, and `kill -9` at intervals; the last kills are followed
//! by a check of the store, and at the end the load compares its books with the history and the
//! webhook.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::{Parser, value_parser};
use tokio::runtime::Builder;
use tokio::time::interval;

use crate::service::{CACHE_MIB, MIB, PROGRAM, Service, bytes_of, free_port, free_udp_port};

/// How often memory and disk are looked at.
const LOOK: Duration = Duration::from_secs(5);

/// How often they are printed.
const MINUTE: Duration = Duration::from_secs(60);

/// So many tries that no event uses them up before the webhook accepts requests again.
const RETRY_MS: &str = "100,200,400,800,1600,3200,5000,5000,5000,5000,5000,5000";

/// Runs a mixed load against a service that is killed at intervals
#[derive(Parser)]
#[command(name = "cargo xtask bench soak")]
struct Options {
    /// Number of devices
    #[arg(long, default_value_t = 20_000, value_parser = value_parser!(u32).range(1..))]
    devices: u32,
    /// Requests per second
    #[arg(long, default_value_t = 2_000, value_parser = value_parser!(u32).range(1..))]
    rate: u32,
    /// Duration, in minutes
    #[arg(long, default_value_t = 20, value_parser = value_parser!(u64).range(1..))]
    minutes: u64,
    /// Seconds between two kills
    #[arg(long, default_value_t = 60, value_parser = value_parser!(u64).range(5..))]
    kill_every: u64,
    /// Percentage of datagrams to drop, in each direction
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u8).range(0..=90))]
    loss: u8,
    /// Percentage of the time in which the webhook refuses requests
    #[arg(long, default_value_t = 50, value_parser = value_parser!(u8).range(0..=90))]
    refuse: u8,
    /// Program to measure instead of the one of this tree
    #[arg(long, default_value = PROGRAM)]
    program: PathBuf,
}

/// Runs the soak and prints a line for each minute, then the report of the load.
pub(crate) fn run(words: &[&str]) {
    let options = Options::parse_from([&["cargo xtask bench soak"], words].concat());
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be had");
    let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"));
    let data = data.expect("the build's directory takes another");
    let addresses = (free_port(), free_udp_port());
    let start = || {
        let settings = [
            ("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true"),
            ("SIGNALBOX_DELIVERY_RETRY_MS", RETRY_MS),
        ];
        Service::start_at(
            &options.program,
            data.path(),
            CACHE_MIB,
            &settings,
            addresses,
        )
    };
    let mut service = start();
    let token = runtime.block_on(async {
        service.ready().await;
        service.token_of("soak").await
    });
    let mut load = begin_load(&options, addresses, &token);
    let begun_at = Instant::now();
    let end = Duration::from_secs(60 * options.minutes);
    let kill_every = Duration::from_secs(options.kill_every);
    let (mut killed_at, mut shown_at) = (begun_at, begun_at);
    let (mut most_mib, mut ready_s) = (0.0_f64, Vec::new());
    let mut is_checked = false;
    let mut looks = runtime.block_on(async { interval(LOOK) });
    println!("| minute | memory, MiB | disk, MiB | ready after a kill, s |\n|---|---|---|---|");
    let ended = loop {
        if let Some(ended) = load.try_wait().expect("the load is a child") {
            break ended;
        }
        runtime.block_on(looks.tick());
        most_mib = most_mib.max(service.resident_mib());
        if killed_at.elapsed() >= kill_every && begun_at.elapsed() <= end {
            drop(service);
            // A check takes time, so those before are not checked.
            if begun_at.elapsed() + 2 * kill_every > end {
                check(&options.program, data.path());
                is_checked = true;
            }
            service = start();
            killed_at = Instant::now();
            ready_s.push(runtime.block_on(service.ready()));
        }
        if shown_at.elapsed() >= MINUTE {
            shown_at += MINUTE;
            show(
                &begun_at,
                most_mib,
                data.path(),
                &std::mem::take(&mut ready_s),
            );
            most_mib = 0.0;
        }
    };
    show(&begun_at, service.resident_mib(), data.path(), &ready_s);
    assert!(ended.success(), "the books do not agree");
    assert!(is_checked, "the store was not checked after a kill");
}

/// Checks the store that a killed service has left.
fn check(program: &Path, data: &Path) {
    let mut check = Command::new(program);
    let checked = check.arg("check").arg("--data-dir").arg(data).status();
    let checked = checked.expect("the program runs");
    assert!(checked.success(), "the store is not whole after a kill");
}

fn begin_load(options: &Options, (http, coap): (SocketAddr, SocketAddr), token: &str) -> Child {
    let mut load = Command::new(&options.program);
    load.args(["load", "--scenario", "mixed", "--import", "--webhook"]);
    load.args(["--target", &format!("coap://{coap}")]);
    load.args(["--api", &format!("http://{http}"), "--token", token]);
    load.args(["--devices", &options.devices.to_string()]);
    load.args(["--rate", &options.rate.to_string()]);
    load.args(["--duration", &format!("{}m", options.minutes)]);
    load.args(["--loss", &options.loss.to_string()]);
    load.args(["--webhook-refuse", &options.refuse.to_string()]);
    load.stdin(Stdio::null()).spawn().expect("the load starts")
}

fn show(begun_at: &Instant, memory_mib: f64, data: &Path, ready_s: &[f64]) {
    let minute = begun_at.elapsed().as_secs_f64() / 60.0;
    let disk_mib = bytes_of(data) as f64 / MIB;
    let ready_s: Vec<String> = ready_s.iter().map(|s| format!("{s:.2}")).collect();
    let ready_s = ready_s.join(", ");
    println!("| {minute:.1} | {memory_mib:.0} | {disk_mib:.0} | {ready_s} |");
}
