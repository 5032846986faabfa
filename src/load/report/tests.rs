//! Is an exceeded bound reported, and no other?

use std::ffi::OsString;

use harness::load::tally::LoadFailure;
use protocol::coap::code::Code;

use super::*;

const MS: u64 = 1_000_000;

fn report(bounds: &[&str]) -> LoadReport {
    let least = ["load", "--target", "coap://127.0.0.1", "--devices", "9"];
    let words = least.iter().chain(&["--scenario", "update"]).chain(bounds);
    let mut tally = TaskTally {
        begun: 105,
        answered: 103,
        in_time: 100,
        ..TaskTally::default()
    };
    for latency_ms in 1..=100 {
        tally.latencies.record(latency_ms * MS);
    }
    tally.fail_times(LoadFailure::Refused(Code::NOT_FOUND), 2);
    let measurement = PhaseReport {
        seconds: 2.0,
        tally,
    };
    let mut preparation = PhaseReport::default();
    preparation.tally.fail(LoadFailure::Timeout, MS);
    LoadReport {
        options: LoadOptions::parse(words.map(OsString::from)).unwrap(),
        started_at_ms: 0,
        imported: None,
        registered: 8,
        preparation: Some(preparation),
        measurement,
        actions: None,
        books: None,
        is_interrupted: false,
    }
}

fn missed(bounds: &[&str]) -> Vec<String> {
    let missed = report(bounds).missed();
    missed.iter().map(MissedBound::to_string).collect()
}

#[test]
fn a_report_without_bounds_misses_none() {
    assert_eq!(missed(&[]), [""; 0]);
}

#[test]
fn a_value_equal_to_the_bound_is_within_it() {
    let exact_bounds = [
        "--min-rate",
        "50",
        "--max-errors",
        "3",
        "--max-p99-ms",
        "99.1",
    ];
    assert_eq!(missed(&exact_bounds), [""; 0]);
}

#[test]
fn every_exceeded_bound_is_reported_with_the_actual_value() {
    let messages = missed(&[
        "--min-rate",
        "50.1",
        "--max-errors",
        "2",
        "--max-p99-ms",
        "98",
    ]);
    assert_eq!(messages.len(), 3);
    assert!(
        messages[0].starts_with("--max-p99-ms 98 is missed: 99."),
        "{}",
        messages[0]
    );
    assert_eq!(messages[1], "--min-rate 50.1 is missed: 50.000");
    assert_eq!(messages[2], "--max-errors 2 is missed: 3.000");
}

#[test]
fn no_answer_exceeds_the_latency_bound() {
    let mut report = report(&["--max-p99-ms", "1000"]);
    report.measurement.tally.latencies = Latencies::default();
    assert_eq!(report.missed().len(), 1);
}

#[test]
fn the_json_report_has_every_count() {
    let json = report(&["--min-rate", "60"]).json();
    for (pointer, expected) in [
        ("/registered", json!(8)),
        ("/startedAt", json!("1970-01-01T00:00:00.000Z")),
        ("/options/scenario", json!("update")),
        ("/options/window", json!(256)),
        ("/options/rate", Value::Null),
        ("/options/addressOfFirst", json!("127.64.0.0")),
        ("/registration/errors/timeout", json!(1)),
        ("/measurement/sent", json!(105)),
        ("/measurement/ratePerSecond", json!(50.0)),
        ("/measurement/errors", json!({ "4.04": 2 })),
        ("/measurement/latencyMs/count", json!(100)),
        ("/errorCount", json!(3)),
        ("/missedBounds/0", json!("--min-rate 60 is missed: 50.000")),
    ] {
        assert_eq!(json.pointer(pointer), Some(&expected), "{pointer}");
    }
    let p50 = json
        .pointer("/measurement/latencyMs/p50")
        .and_then(Value::as_f64);
    assert!((49.9..50.2).contains(&p50.unwrap()));
}

#[test]
fn the_text_report_has_the_main_figures() {
    let text = report(&[]).to_string();
    for words in [
        "update: 9 devices, 8 registered, coap://127.0.0.1:5683",
        "rate          50/s for 2.0 s",
        "requests      105 sent, 103 answered",
        "errors        2: 4.04 2",
        "errors        1: timeout 1",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
}
