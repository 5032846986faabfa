//! How does a report look in a browser? One HTML file with charts that needs nothing else.

use std::fmt::Write as _;

use engine::moment::Timestamp;
use harness::load::figures::number;
use harness::load::tally::Latencies;
use harness::load::timeline::TimelineInterval;
use serde_json::Value;

use super::options::Scenario;
use super::report::books::BooksFound;
use super::report::{LoadReport, PhaseReport, ms, word};
use chart::{Axis, Chart, Series};

mod chart;

const STYLE: &str = include_str!("html/style.css");

/// The percentiles of the distribution: `1 - 10^-x` for x from 0 on.
const PERCENTILE_STEPS: u32 = 80;

/// The page of all rounds.
pub(super) fn page(reports: &[LoadReport]) -> String {
    let scenario = reports.first().map(|report| word(report.options.scenario));
    let scenario = scenario.unwrap_or_default();
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>signalbox load: {scenario}</title>\n<style>\n{STYLE}</style>\n<main>\n"
    );
    for (index, report) in reports.iter().enumerate() {
        let round = match reports.len() {
            1 => String::new(),
            _ => format!(", round {}", index + 1),
        };
        section(&mut page, report, &format!("{scenario}{round}"));
    }
    page.push_str("</main>\n</html>\n");
    page
}

fn section(page: &mut String, report: &LoadReport, title: &str) {
    let options = &report.options;
    let at = Timestamp::from_ms(report.started_at_ms).iso();
    let (devices, target) = (number(options.devices.into(), 0), options.target);
    push(
        page,
        format_args!(
            "<h1>Load test: {title}</h1>\n\
             <p class=\"soft\">{devices} devices, {target}, \
             <span>{at}</span></p>\n"
        ),
    );
    verdict(page, report);
    figures(page, report);
    let phase = &report.measurement;
    page.push_str("<div class=\"charts\">\n");
    let registers = matches!(options.scenario, Scenario::Register | Scenario::Storm);
    if registers {
        page.push_str(&answered_so_far(phase).svg());
    }
    page.push_str(&rates(phase).svg());
    // In a storm a latency is the time since the outage, whenever it is.
    if options.scenario != Scenario::Storm {
        page.push_str(&latency_over_time(phase).svg());
    }
    page.push_str(&distribution(report).svg());
    page.push_str("</div>\n");
    latency_table(page, report);
    books_table(page, report);
    let errors = phase.errors().into_iter();
    let errors = errors.map(|(kind, count)| (kind, number(count as f64, 0)));
    table(page, "Errors", errors.collect());
    table(page, "Datagrams", datagrams(phase));
    table(page, "Options", option_rows(&report.options_json()));
}

/// Whether the load is as it should be, and if not, why.
fn verdict(page: &mut String, report: &LoadReport) {
    let faults = report.faults();
    if report.is_interrupted {
        page.push_str("<p class=\"note\">The load was ended early.</p>\n");
    }
    for fault in &faults {
        push(
            page,
            format_args!("<p class=\"fault\">{}</p>\n", text(fault)),
        );
    }
    if let Some(Ok(books)) = &report.books
        && books.faults().is_empty()
    {
        let count = number(books.acknowledged as f64, 0);
        let place = match books.webhook {
            Some(_) => "in the history and at the webhook",
            None => "in the history",
        };
        push(
            page,
            format_args!("<p class=\"good\">All {count} acknowledged Sends are {place}.</p>\n"),
        );
    }
}

fn figures(page: &mut String, report: &LoadReport) {
    let phase = &report.measurement;
    let tally = &phase.tally;
    let latency = |percent| {
        let ms = ms(tally.latencies.percentile_ns(percent));
        format!("{} ms", number(ms, 1))
    };
    let storm = report.storm();
    let (median, p99) = match storm {
        Some(_) => ("half were back after", "99 % were back after"),
        None => ("median latency", "99th percentile"),
    };
    let mut all = vec![
        ("per second", number(phase.rate(), 0)),
        ("answered", number(tally.answered as f64, 0)),
        ("failed", number(tally.failed() as f64, 0)),
        (median, latency(50.0)),
        (p99, latency(99.0)),
    ];
    match storm {
        Some((_, Some(seconds))) => {
            all.insert(
                0,
                ("all were back after", format!("{} s", number(seconds, 1))),
            );
        }
        Some((back, None)) => all.insert(0, ("devices are back", number(back as f64, 0))),
        None => {}
    }
    page.push_str("<dl class=\"figures\">\n");
    for (name, figure) in all {
        push(
            page,
            format_args!("<div><dt>{name}</dt><dd>{figure}</dd></div>\n"),
        );
    }
    page.push_str("</dl>\n");
}

fn rates(phase: &PhaseReport) -> Chart {
    let per_second = 1e9 / phase.tally.timeline.interval_ns() as f64;
    let rate = |count: u64| Some(count as f64 * per_second);
    let answered = over_time(phase, |it| rate(it.answered));
    let failed = over_time(phase, |it| rate(it.failed));
    let y = Axis::linear(&[&answered, &failed]);
    let mut series = vec![Series::new("answered", "one", answered)];
    if phase.tally.failed() > 0 {
        series.push(Series::new("failed", "three", failed));
    }
    Chart {
        title: "Requests per second",
        x: Axis::seconds(length_s(phase)),
        y,
        series,
    }
}

fn answered_so_far(phase: &PhaseReport) -> Chart {
    let mut sum = 0;
    let interval_s = phase.tally.timeline.interval_ns() as f64 / 1e9;
    let mut points = vec![(0.0, Some(0.0))];
    for (index, interval) in phase.tally.timeline.intervals().iter().enumerate() {
        sum += interval.answered;
        points.push(((index + 1) as f64 * interval_s, Some(sum as f64)));
    }
    Chart {
        title: "Registered devices",
        x: Axis::seconds(length_s(phase)),
        y: Axis::linear(&[&points]),
        series: vec![Series::new("registered", "one", points)],
    }
}

fn latency_over_time(phase: &PhaseReport) -> Chart {
    let p50 = over_time(phase, |it| it.percentile_ns(50.0).map(ms));
    let p99 = over_time(phase, |it| it.percentile_ns(99.0).map(ms));
    Chart {
        title: "Latency over time, ms",
        x: Axis::seconds(length_s(phase)),
        y: Axis::logarithmic(&[&p50, &p99]),
        series: vec![
            Series::new("median", "one", p50),
            Series::new("99th percentile", "two", p99),
        ],
    }
}

fn distribution(report: &LoadReport) -> Chart {
    let phase = &report.measurement;
    let mut several: Vec<(String, Points)> = phase
        .by_request()
        .map(|(request, latencies)| (request, percentiles(latencies)))
        .collect();
    let is_mixed = report.options.scenario == Scenario::Mixed;
    if let Some(actions) = report.actions.as_ref().filter(|_| is_mixed) {
        several.push(("actions".to_owned(), percentiles(&actions.latencies)));
    }
    if several.is_empty() {
        let all = percentiles(&phase.tally.latencies);
        several.push((word(report.options.scenario), all));
    }
    let points: Vec<&Points> = several.iter().map(|(_, points)| points).collect();
    let y = Axis::logarithmic(&points);
    let classes = ["one", "two", "three", "four"].into_iter();
    let series = several.into_iter().zip(classes);
    Chart {
        title: "Latency by percentile, ms",
        x: Axis::percentiles(),
        y,
        series: series
            .map(|((name, points), class)| Series::new(&name, class, points))
            .collect(),
    }
}

/// The points of a line; one without a value is a gap.
type Points = Vec<(f64, Option<f64>)>;

fn percentiles(latencies: &Latencies) -> Points {
    let count = latencies.count() as f64;
    let at = |step: u32| {
        let x = f64::from(step) * Axis::PERCENTILES_MAX / f64::from(PERCENTILE_STEPS);
        let share = 1.0 - 10_f64.powf(-x);
        // Beyond the last latency there is nothing to show.
        let is_known = count * (1.0 - share) >= 1.0;
        let value = ms(latencies.percentile_ns(share * 100.0));
        (x, is_known.then_some(value))
    };
    (0..=PERCENTILE_STEPS).map(at).collect()
}

fn over_time(phase: &PhaseReport, value: impl Fn(&TimelineInterval) -> Option<f64>) -> Points {
    let timeline = &phase.tally.timeline;
    let interval_s = timeline.interval_ns() as f64 / 1e9;
    let intervals = timeline.intervals().iter().enumerate();
    intervals
        .map(|(index, interval)| ((index as f64 + 0.5) * interval_s, value(interval)))
        .collect()
}

fn length_s(phase: &PhaseReport) -> f64 {
    let timeline = &phase.tally.timeline;
    let shown_s = timeline.intervals().len() as f64 * timeline.interval_ns() as f64 / 1e9;
    shown_s.max(0.1)
}

fn latency_table(page: &mut String, report: &LoadReport) {
    let all = &report.measurement.tally.latencies;
    let mut rows = vec![("all".to_owned(), all)];
    rows.extend(report.measurement.by_request());
    if let Some(actions) = &report.actions {
        rows.push(("actions".to_owned(), &actions.latencies));
        rows.push(("actions, seen final".to_owned(), &actions.until_final));
    }
    page.push_str(
        "<h2>Latencies, ms</h2>\n<table class=\"numbers\">\n<tr><th></th><th>count</th>\
         <th>p50</th><th>p90</th><th>p99</th><th>p99.9</th><th>max</th></tr>\n",
    );
    for (name, latencies) in rows {
        let count = number(latencies.count() as f64, 0);
        push(page, format_args!("<tr><th>{name}</th><td>{count}</td>"));
        let percentiles = [50.0, 90.0, 99.0, 99.9].map(|at| latencies.percentile_ns(at));
        for ns in percentiles.into_iter().chain([latencies.max_ns()]) {
            let decimals = if ms(ns) < 100.0 { 1 } else { 0 };
            push(page, format_args!("<td>{}</td>", number(ms(ns), decimals)));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table>\n");
}

fn books_table(page: &mut String, report: &LoadReport) {
    let Some(Ok(books)) = &report.books else {
        return;
    };
    let count = |count: u64| number(count as f64, 0);
    let found = |found: &BooksFound| {
        format!(
            "{} found, {} missing, {} doubled, {} not acknowledged",
            count(found.found),
            count(found.missing),
            count(found.doubled),
            count(found.unacknowledged)
        )
    };
    let mut rows = vec![
        ("acknowledged".to_owned(), count(books.acknowledged)),
        ("history".to_owned(), found(&books.history)),
    ];
    if let Some(webhook) = &books.webhook {
        let (repeated, disordered) = (count(books.repeated), count(books.disordered));
        let webhook = format!(
            "{}, {repeated} events repeated, {disordered} out of order",
            found(webhook)
        );
        rows.push(("webhook".to_owned(), webhook));
    }
    table(page, "Books", rows);
}

fn datagrams(phase: &PhaseReport) -> Vec<(String, String)> {
    let tally = &phase.tally;
    let rows = [
        ("retransmitted", tally.retransmissions),
        ("dropped by --loss", tally.dropped),
        ("stray", tally.stray),
        ("sent late", tally.late),
        ("requests of the server", tally.asked),
        ("not heard by a sleeping device", tally.unheard),
        ("DTLS handshakes", tally.handshakes),
    ];
    let shown = rows.iter().filter(|(_, count)| *count > 0);
    shown
        .map(|(name, count)| ((*name).to_owned(), number(*count as f64, 0)))
        .collect()
}

fn option_rows(options: &Value) -> Vec<(String, String)> {
    let options = options.as_object().into_iter().flatten();
    let given = options.filter(|(_, value)| !value.is_null());
    given
        .map(|(name, value)| {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            (name.clone(), value)
        })
        .collect()
}

fn table(page: &mut String, title: &str, rows: Vec<(String, String)>) {
    if rows.is_empty() {
        return;
    }
    push(page, format_args!("<h2>{title}</h2>\n<table>\n"));
    for (name, value) in rows {
        let (name, value) = (text(&name), text(&value));
        push(
            page,
            format_args!("<tr><th>{name}</th><td>{value}</td></tr>\n"),
        );
    }
    page.push_str("</table>\n");
}

fn push(page: &mut String, text: std::fmt::Arguments<'_>) {
    page.write_fmt(text).expect("a string takes any text");
}

/// Text as HTML.
fn text(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
