//! Is every refused line reported, within bounded memory?

use serde_json::{Value, json};

use super::{FAULTS_MAX, LineCounts, REFUSAL_BYTES_MAX, REFUSALS_MAX, ReportMode, ReportStream};
use crate::api::error::ErrorDetail;
use crate::api::import::batches::{LineEffect, SettledLine};

#[actix_web::test]
async fn the_report_at_the_end_has_counts_and_refused_lines() {
    let settled = vec![created(1), refused(2, 1), unchanged(4)];
    assert_eq!(
        report_at_the_end(settled).await,
        json!({
            "lines": 3, "created": 1, "unchanged": 1, "refused": 1, "through": 9,
            "refusals": [{
                "line": 2,
                "errors": [{ "code": "X", "message": "is wrong", "field": "name" }],
            }],
            "refusalsOmitted": 0,
        })
    );
}

#[actix_web::test]
async fn the_report_line_by_line_has_each_batch_and_then_the_summary() {
    let (mut report, mut stream) = ReportMode::as_it_goes();
    let settled = vec![created(1), refused(2, 1)];
    let tally = counted(&settled);
    report.add(settled, tally).await.unwrap();
    report.end(tally, None).await.unwrap();
    drop(report);
    let counts = json!({ "lines": 2, "created": 1, "unchanged": 0, "refused": 1, "through": 9 });
    let errors = json!([{ "code": "X", "message": "is wrong", "field": "name" }]);
    let expected = [
        json!({ "refusal": { "line": 2, "errors": errors } }),
        json!({ "progress": counts }),
        json!({ "summary": counts }),
    ];
    assert_eq!(lines_of(&mut stream).await, expected);
}

#[actix_web::test]
async fn refused_lines_beyond_the_bound_are_counted() {
    let many = (1..=REFUSALS_MAX as u64 + 7).map(|line| refused(line, 1));
    let report = report_at_the_end(many.collect()).await;
    assert_eq!(report["refusals"].as_array().unwrap().len(), REFUSALS_MAX);
    assert_eq!(report["refusalsOmitted"], 7);
    assert_eq!(report["refused"], REFUSALS_MAX + 7);
}

#[actix_web::test]
async fn long_refusals_are_bounded_by_their_bytes() {
    let long = |line| {
        let fault = ErrorDetail::of("X", &"x".repeat(100_000), "is wrong");
        SettledLine {
            line,
            outcome: Err(vec![fault]),
        }
    };
    let mut lines: Vec<SettledLine> = (1..=200).map(long).collect();
    lines.push(refused(201, 1));
    let report = report_at_the_end(lines).await;
    let listed = report["refusals"].as_array().unwrap().len();
    assert!(
        (1..=REFUSAL_BYTES_MAX / 100_000).contains(&listed),
        "{listed}"
    );
    // The listed refusals are the first ones: after an omitted one, none is listed.
    assert_eq!(report["refusalsOmitted"], 201 - listed);
}

#[actix_web::test]
async fn the_faults_of_a_line_are_bounded() {
    let report = report_at_the_end(vec![refused(1, 100)]).await;
    let errors = report["refusals"][0]["errors"].as_array().unwrap();
    assert_eq!(errors.len(), FAULTS_MAX);
}

#[actix_web::test]
async fn a_disconnected_caller_is_detected() {
    let (mut report, stream) = ReportMode::as_it_goes();
    drop(stream);
    let tally = LineCounts::default();
    assert!(report.add(vec![created(1)], tally).await.is_err());
    assert!(report.end(tally, None).await.is_err());
}

async fn report_at_the_end(settled: Vec<SettledLine>) -> Value {
    let tally = counted(&settled);
    let mut report = ReportMode::at_the_end();
    report.add(settled, tally).await.unwrap();
    serde_json::to_value(report.into_summary(tally)).unwrap()
}

async fn lines_of(stream: &mut ReportStream) -> Vec<Value> {
    let mut lines = Vec::new();
    while let Some(part) = stream.0.recv().await {
        let text = std::str::from_utf8(&part).unwrap();
        lines.extend(
            text.lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap()),
        );
    }
    lines
}

fn counted(settled: &[SettledLine]) -> LineCounts {
    let mut tally = LineCounts {
        through: 9,
        ..LineCounts::default()
    };
    tally.count(settled);
    tally
}

fn created(line: u64) -> SettledLine {
    let outcome = Ok(LineEffect::Created);
    SettledLine { line, outcome }
}

fn unchanged(line: u64) -> SettledLine {
    let outcome = Ok(LineEffect::Unchanged);
    SettledLine { line, outcome }
}

fn refused(line: u64, faults: usize) -> SettledLine {
    let fault = ErrorDetail::of("X", "name", "is wrong");
    let outcome = Err(vec![fault; faults]);
    SettledLine { line, outcome }
}
