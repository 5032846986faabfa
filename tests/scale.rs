//! Can a fleet of thousands register, survive a restart completely, and fit into memory?
//!
//! The small version of `cargo xtask bench scale`: the same steps, and bounds that hold on any
//! machine. Memory is read from Linux's `/proc`, and the load needs Linux too.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../benches/spine/scale/report.rs"]
mod report;
#[path = "support/vocabulary.rs"]
mod vocabulary;

use std::fs;
use std::net::Ipv4Addr;

use serde_json::Value;
use tempfile::TempDir;

use report::{ERRORS, Fleet, Report};
use vocabulary::caller::{API, Caller};
use vocabulary::kernel::{resident_bytes, resident_kib, ticks};
use vocabulary::poll::until;
use vocabulary::program::Program;
use vocabulary::service::{Service, signalbox};

/// Enough devices that their memory stands out from the service's own.
const DEVICES: u32 = 20_000;

/// The first address `signalbox load` gives to a device.
const FIRST_ADDRESS: u32 = u32::from_be_bytes([127, 64, 0, 0]);

/// The limit for a restored device: twice the target, because the store's cache and the allocator's
/// overhead weigh more in so small a fleet.
const DEVICE_BYTES_MAX: u64 = 4_096;

/// The test reads the log.
const SETTINGS: [(&str, &str); 2] = [
    ("SIGNALBOX_LOG_FORMAT", "json"),
    ("SIGNALBOX_ARBITERS", "2"),
];

#[test]
fn a_fleet_registers_and_is_complete_and_small_after_a_restart() {
    let mut service = Service::start_with(&SETTINGS);
    let mut caller = Caller::of_new_customer(&service, "Acme");
    let empty = resident_bytes_of_an_empty_service();
    import(&caller);

    let registering = load(&service, &["--scenario", "register"]);
    assert_eq!(registering["registered"], DEVICES, "{registering}");
    assert_eq!(registering["errorCount"], 0, "{registering}");

    // Sends at a fixed rate, so that each device sends, however slow the machine is.
    let updating = ["--scenario", "update", "--rate", "5000", "--duration", "4s"];
    let updates = load(&service, &updating);
    assert_eq!(updates["measurement"]["sent"], DEVICES, "{updates}");
    assert_eq!(updates["measurement"]["answered"], DEVICES, "{updates}");
    assert_eq!(updates["errorCount"], 0, "{updates}");

    assert!(service.stop().success());
    service.start_again();
    assert_eq!(restored(&mut service), u64::from(DEVICES));
    let bytes = resident_bytes(service.pid()).saturating_sub(empty) / u64::from(DEVICES);
    println!("{bytes} bytes a device");
    assert!(bytes < DEVICE_BYTES_MAX, "{bytes} bytes a device");
    caller.follow(&service);
    for number in (0..DEVICES).step_by(1_999) {
        let path = format!("{API}/devices/{number:019}");
        let device = caller.request("GET", &path).expect(200);
        assert_eq!(device["registration"]["lifetime"], 86_400, "{device}");
    }
}

#[test]
fn a_report_is_a_table_with_a_column_for_each_fleet() {
    let mut small = Fleet::of(10_000);
    let mut large = Fleet::of(1_000_000);
    for value in [0.5, 0.7, 0.6] {
        small.note("readyS", value);
    }
    small.note(ERRORS, 2.0);
    small.note(ERRORS, 1.0);
    large.note("readyS", 1.5);
    large.note("deviceBytes", 1_500.0);
    assert_eq!(small.errors(), 3.0);
    let report = Report {
        date: "2026-11-21".to_owned(),
        place: "a machine, commit abc".to_owned(),
        command: "cargo xtask bench scale".to_owned(),
        fleets: vec![small, large],
    };
    let text = report.markdown();
    for line in [
        "## Scale, 2026-11-21",
        "a machine, commit abc.",
        "`cargo xtask bench scale`",
        "| devices | 10,000 | 1,000,000 | growth | aim |",
        "|---|---|---|---|---|",
        "| start to ready, s | 0.60 (0.50–0.70) | 1.50 | 2.50 |  |",
        "| memory per device after a restart, bytes | – | 1,500 |  | ≤ 2,048 |",
        "| requests that came to nothing | 3 | 0 |  | 0 |",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let json = report.json();
    let ready = &json["fleets"][0]["figures"]["readyS"];
    assert_eq!(
        (&ready["median"], &ready["most"]),
        (&0.6.into(), &0.7.into())
    );
}

#[test]
fn figures_of_the_kernel_are_read() {
    let status = "Name:\tx\nVmHWM:\t    9 kB\nVmRSS:\t    1234 kB\nThreads:\t3\n";
    assert_eq!(resident_kib(status), Some(1_234));
    let stat = "42 (a) b) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 3 0 1 2 3";
    assert_eq!(ticks(stat), Some(300.0));
    assert_eq!(ticks("42 (cut"), None);
}

/// Creates every device with the name and the address it will register with.
fn import(caller: &Caller) {
    let line = |number| {
        let ip = Ipv4Addr::from_bits(FIRST_ADDRESS + number);
        format!("{{\"deviceId\":\"{number:019}\",\"ip\":\"{ip}\"}}\n")
    };
    let body: String = (0..DEVICES).map(line).collect();
    let request = caller.authorized("POST", &format!("{API}/devices/import"));
    let request = request.text("application/x-ndjson", &body);
    let summary = request.send(caller.address()).expect(200);
    assert_eq!(summary["created"], DEVICES, "{summary}");
    assert_eq!(summary["refused"], 0, "{summary}");
}

/// Applies a load of the whole fleet and returns its report.
fn load(service: &Service, words: &[&str]) -> Value {
    let folder = TempDir::new().unwrap();
    let report = folder.path().join("report.json");
    let mut command = signalbox();
    command.args(["load", "--target", &format!("coap://{}", service.coap)]);
    command.args(["--devices", &DEVICES.to_string(), "--report"]);
    command.arg(&report).args(words);
    Program::start(&mut command).finish();
    serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap()
}

/// How many devices all arbiters restored, once the last arbiter is done.
fn restored(service: &mut Service) -> u64 {
    until("every arbiter has its devices", || {
        let lines = service.printed().iter();
        let ends = lines.filter_map(|line| {
            let event: Value = serde_json::from_str(line).ok()?;
            let is_end = event["message"] == "all devices are restored";
            is_end.then(|| event["restored"].as_u64().unwrap())
        });
        // Both arbiters reported this at the first start already, for no device.
        let ends: Vec<u64> = ends.collect();
        (ends.len() == 4).then(|| ends.iter().sum())
    })
}

fn resident_bytes_of_an_empty_service() -> u64 {
    resident_bytes(Service::start_with(&SETTINGS).pid())
}
