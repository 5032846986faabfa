//! Does `signalbox load` generate load, count and judge? The real load against the real service.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/vocabulary.rs"]
mod vocabulary;

use std::fs;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use vocabulary::caller::Caller;
use vocabulary::service::{Service, signalbox};

/// The devices of a load: enough to fill every batch.
const DEVICES: u64 = 2_000;

/// A service that accepts a known name from any address.
const SETTINGS: [(&str, &str); 1] = [("SIGNALBOX_TRUST_ENDPOINT_NAMES", "true")];

/// A tenth of all datagrams is lost, and devices repeat them quickly and often, so that every
/// request gets through.
const LOSSY: [&str; 6] = [
    "--loss",
    "10",
    "--ack-timeout-ms",
    "50",
    "--max-retransmit",
    "9",
];

#[test]
fn a_load_imports_registers_updates_sends_and_requests() {
    let setup = TestService::open();
    let registered = setup.load(&["--scenario", "register", "--import"]).passed();
    assert_eq!(registered["import"]["known"], DEVICES);
    assert_eq!(registered["registered"], DEVICES);
    assert_eq!(registered["registration"], Value::Null);
    check(&registered, DEVICES);

    let window = ["--scenario", "update", "--window", "64", "--duration", "1s"];
    let updated = setup.load(&window).passed();
    assert_eq!(updated["registered"], DEVICES);
    assert_eq!(updated["registration"]["answered"], DEVICES);
    let sent = updated["measurement"]["sent"].as_u64().unwrap();
    assert!(sent >= 64, "a window of 64 is filled at once: {sent}");
    check(&updated, sent);

    let rounds = ["--duration", "200ms", "--rounds", "2"];
    let rounds = setup.load(&[&["--scenario", "update"], &rounds[..]].concat());
    let rounds = rounds.passed();
    assert_eq!(rounds.as_array().map(Vec::len), Some(2));
    for round in rounds.as_array().unwrap() {
        check(round, round["measurement"]["sent"].as_u64().unwrap());
    }

    let rate = ["--scenario", "update", "--rate", "400", "--duration", "1s"];
    let rate = [&rate[..], &["--workers", "2"], &LOSSY].concat();
    let updated = setup.load(&rate).passed();
    check(&updated, 400);
    for count in ["retransmissions", "dropped"] {
        let found = updated["measurement"][count].as_u64().unwrap();
        assert!(found > 40, "{count}: {found} of 400 requests at 10 %");
    }

    let rate = ["--scenario", "send", "--rate", "400", "--duration", "1s"];
    let sent = setup.load(&rate).passed();
    check(&sent, 400);

    for mode in ["now", "when-active"] {
        let rate = ["--rate", "100", "--duration", "1s", "--request-mode", mode];
        let actions = setup.load(&[&["--scenario", "actions"], &rate[..]].concat());
        let actions = actions.passed();
        check(&actions, 100);
        assert_eq!(actions["actions"]["accepted"], 100);
        assert_eq!(actions["actions"]["succeeded"], 100);
        assert!(actions["actions"]["seenFinalMs"]["count"].as_u64().unwrap() > 0);
        let received = actions["measurement"]["requestsOfServer"].as_u64().unwrap();
        assert!(
            received >= 100,
            "a server may repeat itself, no more: {received}"
        );
    }
}

#[test]
fn a_missed_bound_is_reported_and_ends_with_status_1() {
    let setup = TestService::open();
    // The second half of the devices was not created.
    let half = setup.load(&["--scenario", "register", "--import", "--devices", "1000"]);
    assert_eq!(half.passed()["registered"], 1_000);
    let bounds = [
        "--max-errors",
        "999",
        "--min-rate",
        "1e9",
        "--max-p99-ms",
        "0",
    ];
    let scenario = ["--scenario", "register", "--window", "500"];
    let missed = setup.load(&[&scenario[..], &bounds].concat());
    assert_eq!(missed.output.status.code(), Some(1));
    let report = missed.report();
    assert_eq!(report["registered"], 1_000);
    assert_eq!(report["measurement"]["errors"]["4.03"], 1_000);
    assert_eq!(report["errorCount"], 1_000);
    let error = String::from_utf8(missed.output.stderr.clone()).unwrap();
    for (place, bound) in [
        "--max-p99-ms 0",
        "--min-rate 1000000000",
        "--max-errors 999",
    ]
    .into_iter()
    .enumerate()
    {
        let words = format!("{bound} is missed");
        assert!(error.contains(&words), "{error}");
        let listed = report["missedBounds"][place].as_str().unwrap();
        assert!(listed.starts_with(&words), "{report}");
    }
    let met = ["--max-errors", "1000", "--min-rate", "1"];
    setup.load(&[&scenario[..], &met].concat()).passed();
}

#[test]
fn a_load_without_any_answer_ends_with_status_1() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = format!("coap://{}", silent.local_addr().unwrap());
    let words = ["load", "--target", &target, "--devices", "3"];
    let impatient = ["--ack-timeout-ms", "10", "--max-retransmit", "1"];
    let mut load = signalbox();
    load.args(words)
        .args(["--scenario", "update"])
        .args(impatient);
    let output = load.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("registered none of the devices: timeout 3"),
        "{error}"
    );
}

#[test]
fn a_command_line_that_makes_no_sense_ends_with_status_2() {
    for words in [
        &["load"][..],
        &[
            "load",
            "--target",
            "coap://127.0.0.1:1",
            "--devices",
            "1",
            "--scenario",
            "mixed",
        ],
        &[
            "load",
            "--target",
            "127.0.0.1:1",
            "--devices",
            "1",
            "--scenario",
            "update",
        ],
    ] {
        let output = signalbox().args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(!output.stderr.is_empty(), "{words:?}");
    }
    let help = signalbox().args(["load", "--help"]).output().unwrap();
    assert_eq!(help.status.code(), Some(0));
    assert!(
        !String::from_utf8(help.stdout)
            .unwrap()
            .contains("--data-dir")
    );
}

/// A service, and a caller of its API.
struct TestService {
    service: Service,
    caller: Caller,
    reports: TempDir,
}

/// A load that has ended.
struct Load {
    output: Output,
    report: std::path::PathBuf,
}

impl TestService {
    fn open() -> Self {
        let service = Service::start_with(&SETTINGS);
        let caller = Caller::of_new_customer(&service, "Acme");
        let reports = TempDir::new().unwrap();
        Self {
            service,
            caller,
            reports,
        }
    }

    /// Loads the service; later options take precedence.
    fn load(&self, options: &[&str]) -> Load {
        let report = self.reports.path().join("report.json");
        let devices = match options.contains(&"--devices") {
            true => vec![],
            false => vec!["--devices".to_owned(), DEVICES.to_string()],
        };
        let mut load = signalbox();
        load.arg("load")
            .args(["--target", &format!("coap://{}", self.service.coap)])
            .args(["--api", &format!("http://{}", self.service.http)])
            .args(["--token", self.caller.token()])
            .args(devices)
            .args(options)
            .arg("--report")
            .arg(&report);
        let output = load.output().unwrap();
        Load { output, report }
    }
}

impl Load {
    fn report(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(&self.report).unwrap()).unwrap()
    }

    /// The report of a load that missed no bound.
    fn passed(&self) -> Value {
        let error = String::from_utf8_lossy(&self.output.stderr);
        assert_eq!(self.output.status.code(), Some(0), "{error}");
        self.report()
    }
}

/// Checks that each of this many requests was answered.
fn check(report: &Value, requests: u64) {
    let measured = &report["measurement"];
    assert_eq!(report["errorCount"], 0, "{report:#}");
    assert_eq!(measured["sent"], requests, "{report:#}");
    assert_eq!(measured["answered"], requests, "{report:#}");
    assert_eq!(measured["latencyMs"]["count"], requests, "{report:#}");
}
