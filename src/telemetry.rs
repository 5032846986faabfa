//! How is the operator informed? The operator's log, on standard error, and the metrics.

mod repeats;

use std::io;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use actors::clock::Clock;
use metrics::{describe_gauge, gauge};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing::warn;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry};

use repeats::{LeftOut, Repeats};

/// The HTTP library logs invalid HTTP from strangers as an error of the service.
const STRANGERS: &str = "actix_http::h1::dispatcher=off";

/// The histogram buckets of durations, in seconds: from a commit on a fast disk to a duration that
/// needs attention.
const SECONDS: [f64; 14] = [
    0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// The histogram buckets of batch sizes: from a single item to the maximum.
const BATCHES: [f64; 11] = [
    1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0,
];

/// The interval at which durations are sorted into their buckets. Until then each one is stored, so
/// that without it an unscraped service would store all of them.
const SORT_EVERY: Duration = Duration::from_secs(1);

/// The period in which repeated lines are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// The metrics of the process.
static METRICS: OnceLock<PrometheusHandle> = OnceLock::new();

/// Which events are logged.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogFilter(String);

impl LogFilter {
    /// Reads a filter like `info` or `info,actors=debug`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parsed: Result<EnvFilter, ParseError> = EnvFilter::builder().parse(text);
        match parsed {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(_) => Err("must be a level or a filter such as info,actors=debug".to_owned()),
        }
    }

    fn to_filter(&self) -> EnvFilter {
        // A later directive wins, so that the operator can enable this one.
        EnvFilter::builder().parse_lossy(format!("{STRANGERS},{}", self.0))
    }
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogFormat {
    /// Text, for people.
    Text,
    /// JSON, for programs.
    Json,
}

impl LogFormat {
    /// Parses the name of a format.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("must be text or json".to_owned()),
        }
    }
}

/// Why logging or metrics cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The process has a log or metrics already.
    #[error("the log or the metrics of the process are already set up")]
    AlreadyStarted,
    /// A thread cannot be started.
    #[error("cannot start the metrics thread: {0}")]
    Thread(#[from] io::Error),
}

/// Starts the operator's log and the metrics.
pub fn start(filter: &LogFilter, format: LogFormat) -> Result<(), TelemetryError> {
    start_log(filter, format)?;
    start_metrics()
}

/// The metrics in the text format of Prometheus (version 0.0.4); nothing before the start.
pub fn metrics() -> String {
    METRICS
        .get()
        .map(PrometheusHandle::render)
        .unwrap_or_default()
}

fn start_log(filter: &LogFilter, format: LogFormat) -> Result<(), TelemetryError> {
    let repeats = Repeats::default();
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let log = Registry::default().with(filter.to_filter());
    let started = match format {
        LogFormat::Text => log.with(lines.with_filter(repeats.clone())).try_init(),
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true);
            log.with(lines.with_filter(repeats.clone())).try_init()
        }
    };
    started.map_err(|_| TelemetryError::AlreadyStarted)?;
    thread::Builder::new()
        .name("log-repeats".to_owned())
        .spawn(move || {
            loop {
                thread::sleep(MINUTE);
                for LeftOut {
                    lines,
                    target,
                    line,
                } in repeats.begin_minute()
                {
                    warn!(lines, from = %format_args!("{target}:{line}"), "lines were left out");
                }
            }
        })?;
    Ok(())
}

fn start_metrics() -> Result<(), TelemetryError> {
    let durations = Matcher::Suffix("_seconds".to_owned());
    let batches = Matcher::Suffix("_batches".to_owned());
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(durations, &SECONDS)
        .and_then(|builder| builder.set_buckets_for_metric(batches, &BATCHES));
    let recorder = builder.expect("there are buckets").build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(|_| TelemetryError::AlreadyStarted)?;
    METRICS
        .set(handle.clone())
        .map_err(|_| TelemetryError::AlreadyStarted)?;
    describe_process();
    thread::Builder::new()
        .name("metrics".to_owned())
        .spawn(move || {
            loop {
                thread::sleep(SORT_EVERY);
                handle.run_upkeep();
            }
        })?;
    Ok(())
}

fn describe_process() {
    const STARTED: &str = "process_start_time_seconds";
    const BUILD: &str = "signalbox_build_info";
    describe_gauge!(
        STARTED,
        "Start time of the process since the Unix epoch, in seconds."
    );
    let now_ms = Clock::new().now().as_ms();
    // Milliseconds since the epoch stay below 2^53.
    gauge!(STARTED).set(now_ms as f64 / 1_000.0);
    describe_gauge!(BUILD, "Always 1; the version of the build is a label.");
    gauge!(BUILD, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_level_or_has_levels_by_module() {
        assert!(LogFilter::parse("info").is_ok());
        assert!(LogFilter::parse("warn,actors=debug").is_ok());
        assert!(LogFilter::parse("actors=loud").is_err());
    }
}
