//! What was measured, as text and as JSON, and is it within the bounds?

use std::collections::BTreeMap;
use std::fmt;

use clap::ValueEnum as _;
use engine::moment::Timestamp;
use harness::load::tally::{Latencies, TaskTally};
use serde_json::{Value, json};

use super::options::{LoadOptions, Scenario};
use books::{BooksFound, BooksReport};

pub(super) mod books;

/// The result of a load test.
#[derive(Clone)]
pub struct LoadReport {
    pub(super) options: LoadOptions,
    pub(super) started_at_ms: i64,
    pub(super) imported: Option<ImportReport>,
    /// The number of devices that were registered before the measurement, or by it.
    pub registered: u32,
    /// The registrations, if they are not the measured scenario.
    pub(super) preparation: Option<PhaseReport>,
    /// The measurement.
    pub measurement: PhaseReport,
    pub(super) actions: Option<ActionOutcomes>,
    /// Whether what was acknowledged has arrived, or why that is not known.
    pub(super) books: Option<Result<BooksReport, String>>,
    pub(super) is_interrupted: bool,
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ImportReport {
    pub(super) seconds: f64,
    /// Devices that exist now.
    pub(super) known: u64,
    /// Lines the API refused.
    pub(super) refused: u64,
}

/// The results of many requests.
#[derive(Clone, Debug, Default)]
pub struct PhaseReport {
    /// The measured time.
    pub seconds: f64,
    /// The counts.
    pub tally: TaskTally,
}

/// The results of the actions, according to the API.
#[derive(Clone, Debug, Default)]
pub(super) struct ActionOutcomes {
    /// Requests answered with 202.
    pub(super) accepted: u64,
    /// Those that are SUCCEEDED.
    pub(super) succeeded: u64,
    /// The time from the POST to the device's answer.
    pub(super) latencies: Latencies,
    /// The time from the POST to a GET that shows the final status, of some requests.
    pub(super) until_final: Latencies,
}

/// An exceeded bound.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MissedBound {
    bound: &'static str,
    limit: f64,
    found: f64,
}

impl PhaseReport {
    /// Requests answered in time, per second.
    pub fn rate(&self) -> f64 {
        match self.seconds > 0.0 {
            true => self.tally.in_time as f64 / self.seconds,
            false => 0.0,
        }
    }

    /// The reasons of the failed requests, as text.
    pub(super) fn reasons(&self) -> String {
        let errors = self.errors().into_iter();
        let reasons = errors.map(|(reason, count)| format!("{reason} {count}"));
        reasons.collect::<Vec<_>>().join(", ")
    }

    pub(super) fn errors(&self) -> BTreeMap<String, u64> {
        let failures = self.tally.failures.iter();
        let named = failures.map(|(failure, count)| (failure.to_string(), *count));
        named.collect()
    }

    fn json(&self) -> Value {
        let tally = &self.tally;
        json!({
            "seconds": self.seconds,
            "sent": tally.begun,
            "answered": tally.answered,
            "answeredInTime": tally.in_time,
            "ratePerSecond": self.rate(),
            "latencyMs": latencies(&tally.latencies),
            "errors": self.errors(),
            "errorCount": tally.failed(),
            "late": tally.late,
            "latestMs": ms(tally.latest_ns),
            "retransmissions": tally.retransmissions,
            "dropped": tally.dropped,
            "stray": tally.stray,
            "requestsOfServer": tally.asked,
            "unheard": tally.unheard,
            "handshakes": tally.handshakes,
            "byRequest": self.by_request_json(),
            "timeline": self.timeline_json(),
        })
    }

    /// The latencies of each kind of request, if there are several.
    pub(super) fn by_request(&self) -> impl Iterator<Item = (String, &Latencies)> {
        let all = &self.tally.latencies_by_request;
        let several = all.iter().filter(|_| all.len() > 1);
        several.map(|(request, latencies)| (request.to_string(), latencies))
    }

    fn by_request_json(&self) -> Value {
        let named = self.by_request();
        let named = named.map(|(request, all)| (request, latencies(all)));
        Value::Object(named.collect())
    }

    fn timeline_json(&self) -> Value {
        let timeline = &self.tally.timeline;
        let intervals = timeline.intervals();
        let percentiles = |percent| -> Vec<Option<f64>> {
            let latencies = intervals.iter();
            latencies
                .map(|interval| interval.percentile_ns(percent).map(ms))
                .collect()
        };
        json!({
            "intervalSeconds": timeline.interval_ns() as f64 / 1e9,
            "answered": intervals.iter().map(|it| it.answered).collect::<Vec<_>>(),
            "failed": intervals.iter().map(|it| it.failed).collect::<Vec<_>>(),
            "p50Ms": percentiles(50.0),
            "p99Ms": percentiles(99.0),
        })
    }
}

impl LoadReport {
    /// The exceeded bounds.
    pub(super) fn missed(&self) -> Vec<MissedBound> {
        let LoadOptions {
            max_p99_ms,
            min_rate,
            max_errors,
            ..
        } = self.options;
        let latencies = &self.measurement.tally.latencies;
        let p99_ms = ms(latencies.percentile_ns(99.0));
        let is_measured = latencies.count() > 0;
        // Without an answer there is no latency: the bound counts as exceeded.
        let p99_ms = if is_measured { p99_ms } else { f64::INFINITY };
        let rate = self.measurement.rate();
        let errors = self.errors() as f64;
        let above = |bound, limit: Option<f64>, found: f64| {
            let limit = limit.filter(|limit| found > *limit)?;
            Some(MissedBound {
                bound,
                limit,
                found,
            })
        };
        let slow = min_rate.filter(|limit| rate < *limit);
        let slow = slow.map(|limit| MissedBound {
            bound: "--min-rate",
            limit,
            found: rate,
        });
        let all = [
            above("--max-p99-ms", max_p99_ms, p99_ms),
            slow,
            above("--max-errors", max_errors.map(|max| max as f64), errors),
        ];
        all.into_iter().flatten().collect()
    }

    /// The exceeded bounds and everything that is missing, in words.
    pub(super) fn faults(&self) -> Vec<String> {
        let missed = self.missed();
        let mut faults: Vec<String> = missed.iter().map(MissedBound::to_string).collect();
        match &self.books {
            Some(Ok(books)) => faults.extend(books.faults()),
            Some(Err(reason)) => faults.push(format!("the books cannot be checked: {reason}")),
            None => {}
        }
        faults
    }

    /// The report for programs.
    pub fn json(&self) -> Value {
        let ends = self.actions.as_ref().map(|ends| {
            json!({
                "accepted": ends.accepted,
                "succeeded": ends.succeeded,
                "latencyMs": latencies(&ends.latencies),
                "seenFinalMs": latencies(&ends.until_final),
            })
        });
        let imported = self.imported.as_ref().map(|imported| {
            json!({
                "seconds": imported.seconds,
                "known": imported.known,
                "refused": imported.refused,
            })
        });
        json!({
            "signalbox": env!("CARGO_PKG_VERSION"),
            "startedAt": Timestamp::from_ms(self.started_at_ms).iso().to_string(),
            "options": self.options_json(),
            "import": imported,
            "registered": self.registered,
            "registration": self.preparation.as_ref().map(PhaseReport::json),
            "measurement": self.measurement.json(),
            "actions": ends,
            "storm": self.storm_json(),
            "books": self.books_json(),
            "interrupted": self.is_interrupted,
            "errorCount": self.errors(),
            "missedBounds": self.faults(),
        })
    }

    /// How many devices came back, and the seconds until all of them had.
    pub(super) fn storm(&self) -> Option<(u64, Option<f64>)> {
        let phase = &self.measurement;
        let is_storm = self.options.scenario == Scenario::Storm;
        is_storm.then(|| {
            let back = phase.tally.answered;
            let is_complete = back == u64::from(self.options.devices);
            (back, is_complete.then_some(phase.seconds))
        })
    }

    fn storm_json(&self) -> Value {
        let storm = self.storm().map(|(back, seconds)| {
            json!({
                "back": back,
                "secondsUntilAllBack": seconds,
            })
        });
        storm.unwrap_or_default()
    }

    fn books_json(&self) -> Value {
        let found = |found: &BooksFound| {
            let first = found.first_missing.iter();
            let first = first.map(|send| {
                let device = self.options.endpoint_pattern.name(send.device);
                json!({ "device": device, "number": send.number })
            });
            json!({
                "found": found.found,
                "missing": found.missing,
                "firstMissing": first.collect::<Vec<_>>(),
                "doubled": found.doubled,
                "unacknowledged": found.unacknowledged,
            })
        };
        match &self.books {
            None => Value::Null,
            Some(Err(reason)) => json!({ "reason": reason }),
            Some(Ok(books)) => json!({
                "acknowledged": books.acknowledged,
                "history": found(&books.history),
                "webhook": books.webhook.as_ref().map(found),
                "repeatedEvents": books.repeated,
                "outOfOrder": books.disordered,
            }),
        }
    }

    pub(super) fn options_json(&self) -> Value {
        let options = &self.options;
        json!({
            "target": options.target.to_string(),
            "devices": options.devices,
            "scenario": word(options.scenario),
            "rate": options.rate,
            "window": match (options.rate, options.scenario) {
                (Some(_), _) => None,
                (None, Scenario::Actions) => Some(options.callers()),
                (None, Scenario::Update) if options.sleep.is_some() => None,
                (None, Scenario::Storm) => None,
                (
                    None,
                    Scenario::Register
                    | Scenario::Update
                    | Scenario::Send
                    | Scenario::Mixed
                    | Scenario::Handshake,
                ) => Some(options.requests()),
            },
            "durationSeconds": match options.scenario {
                Scenario::Register | Scenario::Storm => None,
                Scenario::Update
                | Scenario::Send
                | Scenario::Actions
                | Scenario::Mixed
                | Scenario::Handshake => Some(options.time().as_secs_f64()),
            },
            "shares": (options.scenario == Scenario::Mixed).then(|| options.shares().to_string()),
            "sleepSeconds": options.sleep.map(|sleep| sleep.as_secs_f64()),
            "awakeSeconds": options.sleep.map(|_| options.awake.as_secs_f64()),
            "lossPercent": options.loss,
            "endpointOfFirst": options.endpoint_pattern.name(0),
            "addressOfFirst": options.bind.address(0).to_string(),
            "lifetimeSeconds": options.lifetime,
            "ackTimeoutMs": options.ack_timeout_ms,
            "maxRetransmit": options.max_retransmit,
            "workers": options.workers,
            "seed": options.seed,
            "api": options.api,
            "requestMode": options.mode().word(),
            "maxP99Ms": options.max_p99_ms,
            "minRate": options.min_rate,
            "maxErrors": options.max_errors,
        })
    }

    fn errors(&self) -> u64 {
        let failed = |phase: &PhaseReport| phase.tally.failed();
        self.preparation.as_ref().map_or(0, failed) + failed(&self.measurement)
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scenario = word(self.options.scenario);
        let devices = self.options.devices;
        let (registered, target) = (self.registered, self.options.target);
        writeln!(
            f,
            "{scenario}: {devices} devices, {registered} registered, {target}"
        )?;
        if let Some(ImportReport {
            seconds,
            known,
            refused,
        }) = self.imported
        {
            writeln!(
                f,
                "import        {known} known, {refused} refused, {seconds:.1} s"
            )?;
        }
        if let Some(phase) = &self.preparation {
            let (rate, seconds) = (phase.rate(), phase.seconds);
            writeln!(f, "registration  {rate:.0}/s, {seconds:.1} s")?;
            errors(f, phase)?;
        }
        measurement(f, &self.measurement)?;
        if let Some(ends) = &self.actions {
            let ActionOutcomes {
                accepted,
                succeeded,
                latencies,
                until_final,
            } = ends;
            writeln!(
                f,
                "actions       {accepted} accepted, {succeeded} SUCCEEDED"
            )?;
            if self.options.scenario == Scenario::Mixed {
                writeln!(f, "  latency     {}", spread(latencies))?;
            }
            writeln!(f, "seen final    {}", spread(until_final))?;
        }
        if let Some((back, seconds)) = self.storm() {
            match seconds {
                Some(seconds) => writeln!(f, "back          all, after {seconds:.1} s")?,
                None => writeln!(f, "back          {back} of {devices} devices")?,
            }
        }
        match &self.books {
            Some(Ok(books)) => show_books(f, books)?,
            Some(Err(reason)) => writeln!(f, "books         not checked: {reason}")?,
            None => {}
        }
        if self.is_interrupted {
            writeln!(f, "interrupted   the load was ended early")?;
        }
        Ok(())
    }
}

impl fmt::Display for MissedBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            bound,
            limit,
            found,
        } = self;
        write!(f, "{bound} {limit} is missed: {found:.3}")
    }
}

fn measurement(f: &mut fmt::Formatter<'_>, phase: &PhaseReport) -> fmt::Result {
    let (rate, seconds) = (phase.rate(), phase.seconds);
    let TaskTally {
        begun,
        answered,
        retransmissions,
        dropped,
        stray,
        late,
        unheard,
        handshakes,
        ..
    } = phase.tally;
    writeln!(f, "rate          {rate:.0}/s for {seconds:.1} s")?;
    writeln!(f, "requests      {begun} sent, {answered} answered")?;
    writeln!(f, "latency       {}", spread(&phase.tally.latencies))?;
    for (request, latencies) in phase.by_request() {
        let (count, spread) = (latencies.count(), spread(latencies));
        writeln!(f, "  {request:<10}  {count} answered, {spread}")?;
    }
    writeln!(
        f,
        "datagrams     {retransmissions} retransmitted, {dropped} dropped (--loss), {stray} stray"
    )?;
    if handshakes > 0 {
        writeln!(f, "handshakes    {handshakes} over DTLS")?;
    }
    if unheard > 0 {
        writeln!(
            f,
            "asleep        {unheard} datagrams of the server were not heard"
        )?;
    }
    if late > 0 {
        let latest_ms = ms(phase.tally.latest_ns);
        writeln!(
            f,
            "late          {late} sent late, by at most {latest_ms:.1} ms"
        )?;
    }
    errors(f, phase)
}

fn show_books(f: &mut fmt::Formatter<'_>, books: &BooksReport) -> fmt::Result {
    let acknowledged = books.acknowledged;
    writeln!(f, "books         {acknowledged} Sends acknowledged")?;
    let places = [
        ("history", Some(&books.history)),
        ("webhook", books.webhook.as_ref()),
    ];
    for (place, found) in places {
        let Some(BooksFound {
            found,
            missing,
            doubled,
            unacknowledged,
            ..
        }) = found
        else {
            continue;
        };
        writeln!(
            f,
            "  {place:<10}  {found} found, {missing} missing, {doubled} doubled, \
             {unacknowledged} not acknowledged"
        )?;
    }
    Ok(())
}

fn errors(f: &mut fmt::Formatter<'_>, phase: &PhaseReport) -> fmt::Result {
    match phase.tally.failed() {
        0 => Ok(()),
        failed => writeln!(f, "errors        {failed}: {}", phase.reasons()),
    }
}

fn spread(latencies: &Latencies) -> String {
    if latencies.count() == 0 {
        return "none".to_owned();
    }
    let at = |percent| ms(latencies.percentile_ns(percent));
    let (p50, p90, p99, p999) = (at(50.0), at(90.0), at(99.0), at(99.9));
    let max = ms(latencies.max_ns());
    format!("p50 {p50:.2}  p90 {p90:.2}  p99 {p99:.2}  p99.9 {p999:.2}  max {max:.2} ms")
}

fn latencies(latencies: &Latencies) -> Value {
    if latencies.count() == 0 {
        return Value::Null;
    }
    let at = |percent| ms(latencies.percentile_ns(percent));
    json!({
        "count": latencies.count(),
        "mean": latencies.mean_ns() / 1e6,
        "p50": at(50.0),
        "p90": at(90.0),
        "p99": at(99.0),
        "p999": at(99.9),
        "max": ms(latencies.max_ns()),
    })
}

pub(super) fn word(scenario: Scenario) -> String {
    let value = scenario.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

pub(super) fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[cfg(test)]
mod tests;
