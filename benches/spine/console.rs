//! How long do the views of the console take with a fleet of a million? Chromium opens them
//! (`console.mjs`), with a small fleet and with a large one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::{Parser, value_parser};
use harness::load::figures::{Figures, number};
use serde_json::{Value, json};
use signalbox::rest_client::{ApiKey, ClientCredentials};
use tokio::runtime::Builder;

use crate::load::{self, IMPORT_TIMEOUT};
use crate::playwright;
use crate::program::Program;
use crate::scale::place::MachineInfo;
use crate::service::{CACHE_MIB, OPERATOR, PROGRAM, Service};

/// The fleet beside which the large one is measured.
const FEW: u32 = 1_000;

/// Devices that are imported and do not register: what a filter finds.
const UNREGISTERED: u32 = 100;

/// Devices that are looked at, in turn: more than rounds repeat, so that no answer is a cached one.
const LOOKED_AT: u32 = 50;

/// The timeout of all rounds in the browser.
const PATIENCE: Duration = Duration::from_secs(1_800);

/// The views that are measured with each fleet, and how they are opened.
const VIEWS: [(&str, &str, &str); 11] = [
    ("first page of the devices", "list", "console"),
    ("search", "search", "console"),
    ("filter", "filter", "console"),
    ("inspector", "inspector", "console"),
    ("resources of a device", "resources", "console"),
    ("overview, by its address", "overview", "address"),
    (
        "first page of the devices, by its address",
        "list",
        "address",
    ),
    ("search, by its address", "search", "address"),
    ("filter, by its address", "filter", "address"),
    ("inspector, by its address", "inspector", "address"),
    (
        "resources of a device, by its address",
        "resources",
        "address",
    ),
];

/// Measures the views of the console in Chromium
#[derive(Parser)]
#[command(name = "cargo xtask bench console")]
struct Options {
    /// Devices of the large fleet
    #[arg(long, default_value_t = 1_000_000, value_parser = value_parser!(u32).range(1_000..))]
    devices: u32,
    /// Rounds
    #[arg(long, default_value_t = 9, value_parser = value_parser!(u32).range(1..))]
    rounds: u32,
    /// File for the JSON report
    #[arg(long, default_value = "target/console.json")]
    out: PathBuf,
    /// Program to measure instead of the one of this tree
    #[arg(long, default_value = PROGRAM)]
    program: PathBuf,
}

/// Measures both fleets, prints the tables and writes the report.
pub(crate) fn run(words: &[&str]) {
    let name = "cargo xtask bench console";
    let options = Options::parse_from([&[name], words].concat());
    let place = MachineInfo::here();
    let fleets = [FEW, options.devices];
    let [few, many] = fleets.map(|devices| measure(devices, &options));
    let title = format!("## The console, {}", place.date);
    let command = [&[name], words].concat().join(" ");
    println!("\n{title}\n\n{}.\n\n`{command}`\n", place.words);
    show_views(fleets, &few, &many);
    show_calls(fleets, &few, &many);
    show_start(&many);
    let report = json!({
        "date": place.date,
        "place": place.words,
        "command": command,
        "fleets": [{ "devices": FEW, "ms": few }, { "devices": options.devices, "ms": many }],
    });
    fs::write(&options.out, format!("{report:#}\n")).expect("the report can be written");
    println!("the same for programs: {}", options.out.display());
}

/// What the browser measured with a fleet of this size.
fn measure(devices: u32, options: &Options) -> Value {
    let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"));
    let data = data.expect("the build's directory takes another");
    let mut service = Service::start(&options.program, data.path(), CACHE_MIB, &[]);
    println!("{} devices are imported", number(devices.into(), 0));
    let key = import(&service, devices);
    let registered = devices - UNREGISTERED;
    println!("{} of them register", number(registered.into(), 0));
    let server = service.coap();
    // Each value is an event, and the devices that are looked at have some.
    let mut load = load::begin(server, registered, "send", &["--duration", "2s"]);
    let sent = load.measure().expect("the load can be applied");
    assert_eq!(sent.measurement.tally.failed(), 0, "every Send is answered");
    drop(load);
    println!("{} rounds in the browser", options.rounds);
    let measured = browse(&service, &key, options.rounds);
    service.stop();
    measured
}

/// Creates every device, with the name and the address under which it registers.
fn import(service: &Service, devices: u32) -> ApiKey {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be had").block_on(async {
        service.ready().await;
        let mut api = service.api(ClientCredentials::Bearer(OPERATOR.to_owned()));
        let made = api.ensure_customer("console", "Console").await;
        made.expect("the operator may make a customer");
        let key = api.create_key("console", "bench").await;
        let key = key.expect("the operator may make an API client");
        api.authorize(&key).await.expect("the key is valid");
        let answer = api.import(load::lines(devices), IMPORT_TIMEOUT).await;
        let created = answer.and_then(|answer| answer.number("/created"));
        assert_eq!(created.expect("all are imported"), u64::from(devices));
        key
    })
}

fn browse(service: &Service, key: &ApiKey, rounds: u32) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ids: Vec<String> = (0..LOOKED_AT)
        .map(|number| format!("{number:019}"))
        .collect();
    let mut command = Command::new("node");
    command
        .arg(root.join("benches/spine/console.mjs"))
        .env("CONSOLE_PACKAGES", playwright::packages())
        .env("CONSOLE_ADDRESS", format!("http://{}", service.http))
        .env("CLIENT_ID", &key.id)
        .env("CLIENT_SECRET", &key.secret)
        .env("ROUNDS", rounds.to_string())
        .env("DEVICE_IDS", ids.join(","))
        .env("UNREGISTERED", UNREGISTERED.to_string());
    let mut browser = Program::start(&mut command);
    let measured = |line: &str| serde_json::from_str(line.strip_prefix("measured ")?).ok();
    browser.wait_for_within(PATIENCE, "what it measured", measured)
}

fn show_views([few, many]: [u32; 2], of_few: &Value, of_many: &Value) {
    let (few, many) = (number(few.into(), 0), number(many.into(), 0));
    println!(
        "| view, ms until its content is shown | {few} devices | {many} devices | ratio | aim |"
    );
    println!("|---|---|---|---|---|");
    for (label, view, way) in VIEWS {
        let at = |of: &Value| figures(&of["times"][view][way]);
        row(
            label,
            &at(of_few),
            &at(of_many),
            if way == "console" { "< 300" } else { "" },
        );
    }
}

fn show_calls([few, many]: [u32; 2], of_few: &Value, of_many: &Value) {
    let (few, many) = (number(few.into(), 0), number(many.into(), 0));
    println!("\n| call of a view, alone, ms | {few} devices | {many} devices | ratio | |");
    println!("|---|---|---|---|---|");
    for view in ["overview", "list", "search", "filter", "inspector"] {
        let calls = of_many["calls"][view].as_object().into_iter().flatten();
        for (call, took) in calls {
            let with_few = figures(&of_few["calls"][view][call]);
            row(
                &format!("{view}: `GET {call}`"),
                &with_few,
                &figures(took),
                "",
            );
        }
    }
}

fn row(label: &str, few: &Figures, many: &Figures, aim: &str) {
    let medians = many.median().zip(few.median());
    let ratio = medians.map_or_else(|| "–".to_owned(), |(many, few)| number(many / few, 2));
    println!(
        "| {label} | {} | {} | {ratio} | {aim} |",
        few.shown(1),
        many.shown(1)
    );
}

/// The start with nothing cached, which no fleet has a part in.
fn show_start(of: &Value) {
    let usable = "processor throttled 4-fold, ms until it can be used";
    println!("\n| start of the console, nothing cached | size, kB | aim | {usable} | aim |");
    println!("|---|---|---|---|---|");
    for (label, view) in [("sign-in page", "signIn"), ("overview", "overview")] {
        let at = |what: &str| figures(&of["times"][view][what]);
        let (size, usable) = (at("kilobytes"), at("throttled"));
        println!(
            "| {label} | {} | < 200 | {} | < 1,000 |",
            size.shown(1),
            usable.shown(0)
        );
    }
    println!();
}

fn figures(of: &Value) -> Figures {
    let rounds = of.as_array().into_iter().flatten();
    rounds.filter_map(Value::as_f64).collect()
}
