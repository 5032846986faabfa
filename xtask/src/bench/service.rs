//! How is the service started on a fleet, watched until it is ready and whole, and stopped?

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bench::http::Client;
use crate::bench::process::{Line, Process};
use crate::steps::{Stop, root};

/// The operator's token of every service started here; it listens on loopback alone.
pub(crate) const OPERATOR: &str = "scale-operator-token-of-this-bench";

/// How long a start may take until the API answers, however large the fleet.
const START_PATIENCE: Duration = Duration::from_secs(120);

/// How long it may take to bring a fleet back.
const RESTORE_PATIENCE: Duration = Duration::from_secs(600);

/// How long a stop may take.
const STOP_PATIENCE: Duration = Duration::from_secs(120);

/// Between two looks at whether the API answers.
const PAUSE: Duration = Duration::from_millis(2);

/// The store's cache, in MiB.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cache {
    /// What an operator has who sets nothing.
    Default,
    /// The least there is.
    Least,
}

/// A running service.
pub(crate) struct Service {
    process: Process,
    started_at: Instant,
    restored: Restored,
    /// Where its API listens.
    pub(crate) http: SocketAddr,
    /// Where devices reach it.
    pub(crate) coap: SocketAddr,
}

/// What the arbiters said they have brought back, each once it has all of its own.
#[derive(Clone, Copy, Debug)]
struct Restored {
    devices: u64,
    at: Instant,
}

/// How a start went, in seconds from the start of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started {
    /// Until the service took requests.
    pub(crate) ready_s: f64,
    /// Until the last device was back.
    pub(crate) restored_s: f64,
}

impl Service {
    /// Starts it on a directory and waits until it is ready; returns after how many seconds.
    pub(crate) fn start(data: &Path, cache: Cache) -> Result<(Self, f64), Stop> {
        let http = free_port()?;
        let started_at = Instant::now();
        let mut process = Process::start(&command(data, cache, http))?;
        let ready_s = match ready_after(http, started_at) {
            Some(ready) => ready.as_secs_f64(),
            None => return Err(process.disappointed("was not ready in time")),
        };
        let deadline = started_at + START_PATIENCE;
        let mut restored = Restored::none(started_at);
        let coap = process.hear("where devices reach it", deadline, |line| {
            restored.count(line);
            coap_address(line)
        })?;
        let service = Self {
            process,
            started_at,
            restored,
            http,
            coap,
        };
        Ok((service, ready_s))
    }

    /// Starts it on the directory of a fleet and waits until every device is back.
    pub(crate) fn start_again(
        data: &Path,
        cache: Cache,
        devices: u32,
    ) -> Result<(Self, Started), Stop> {
        let (mut service, ready_s) = Self::start(data, cache)?;
        let deadline = service.started_at + RESTORE_PATIENCE;
        let mut restored = service.restored;
        let is_whole = |restored: &Restored| restored.devices >= u64::from(devices);
        if !is_whole(&restored) {
            service.process.hear("all are restored", deadline, |line| {
                restored.count(line);
                is_whole(&restored).then_some(())
            })?;
        }
        if restored.devices > u64::from(devices) {
            let how = format!("brought back {} of {devices} devices", restored.devices);
            return Err(service.process.disappointed(&how));
        }
        let restored_s = (restored.at - service.started_at).as_secs_f64();
        let started = Started {
            ready_s,
            restored_s,
        };
        Ok((service, started))
    }

    /// Asks it to end and waits until it has; returns after how many seconds.
    pub(crate) fn stop(mut self) -> Result<f64, Stop> {
        let asked_at = Instant::now();
        self.process.terminate()?;
        self.process.finish(asked_at + STOP_PATIENCE)?;
        Ok(asked_at.elapsed().as_secs_f64())
    }

    /// Whoever asks its API with a token, and how patient.
    pub(crate) fn client(&self, token: &str, patience: Duration) -> Client {
        Client {
            address: self.http,
            token: token.to_owned(),
            patience,
        }
    }

    /// The memory it holds.
    pub(crate) fn resident_bytes(&self) -> Result<f64, Stop> {
        self.process.resident_bytes()
    }

    /// How long its threads have run, in seconds.
    pub(crate) fn processor_s(&self) -> Result<f64, Stop> {
        self.process.processor_s()
    }
}

impl Restored {
    fn none(at: Instant) -> Self {
        Self { devices: 0, at }
    }

    fn count(&mut self, line: &Line) {
        if let Some(devices) = restored_by_one(&line.text) {
            self.devices += devices;
            self.at = line.at;
        }
    }
}

/// The program as it was built for release.
pub(crate) fn program() -> PathBuf {
    root().join("target/release/signalbox")
}

/// The program, free of whatever settings this environment has.
pub(crate) fn signalbox() -> Command {
    let mut command = Command::new(program());
    let names = std::env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| name.to_string_lossy().starts_with("SIGNALBOX_")) {
        command.env_remove(name);
    }
    command
}

fn command(data: &Path, cache: Cache, http: SocketAddr) -> Command {
    let mut command = signalbox();
    command.arg("serve").arg("--data-dir").arg(data);
    command.args(["--http", &http.to_string()]);
    command.args(["--coap", "127.0.0.1:0", "--coaps", "127.0.0.1:0"]);
    command.args(["--udp", "127.0.0.1:0", "--log-format", "json"]);
    command.env("SIGNALBOX_OPERATOR_TOKEN", OPERATOR);
    match cache {
        Cache::Default => {}
        Cache::Least => drop(command.args(["--store-cache-mib", "16"])),
    }
    command
}

/// A port that nobody has now: the start is timed by its answers, so it must be known before.
fn free_port() -> Result<SocketAddr, Stop> {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    address.map_err(|error| Stop::Failed(format!("no port is free: {error}")))
}

fn ready_after(http: SocketAddr, started_at: Instant) -> Option<Duration> {
    let client = Client {
        address: http,
        token: String::new(),
        patience: Duration::from_secs(1),
    };
    while started_at.elapsed() < START_PATIENCE {
        if client
            .look("/readyz")
            .is_ok_and(|answer| answer.status == 200)
        {
            return Some(started_at.elapsed());
        }
        thread::sleep(PAUSE);
    }
    None
}

/// `listening coap=127.0.0.1:5683`
fn coap_address(line: &Line) -> Option<SocketAddr> {
    let address = line.text.strip_prefix("listening coap=")?;
    address.trim().parse().ok()
}

/// How many devices an arbiter says it has brought back, once it has all of its own.
fn restored_by_one(line: &str) -> Option<u64> {
    let event: Value = serde_json::from_str(line).ok()?;
    let is_whole = event["message"] == "all devices are restored";
    is_whole.then(|| event["restored"].as_u64()).flatten()
}

#[cfg(test)]
mod tests {
    use super::{coap_address, restored_by_one};
    use crate::bench::process::Line;
    use std::time::Instant;

    #[test]
    fn what_the_service_says_of_itself_is_read() {
        let event = r#"{"level":"INFO","message":"all devices are restored","restored":7}"#;
        assert_eq!(restored_by_one(event), Some(7));
        let event = r#"{"level":"INFO","message":"devices are brought back","restored":7}"#;
        assert_eq!(restored_by_one(event), None);
        assert_eq!(restored_by_one("listening http=127.0.0.1:1"), None);
        let line = |text: &str| Line {
            at: Instant::now(),
            text: text.to_owned(),
        };
        let address = coap_address(&line("listening coap=127.0.0.1:5683"));
        assert_eq!(address, "127.0.0.1:5683".parse().ok());
        assert_eq!(coap_address(&line("listening http=127.0.0.1:1")), None);
    }
}
