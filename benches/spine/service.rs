//! How is the program measured that an operator runs? Started in a process of its own on a
//! directory, watched, and stopped.

use std::cell::Cell;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use signalbox::rest_client::{ClientCredentials, RestClient};
use tokio::time::interval;

use crate::kernel;
use crate::program::Program;

/// The program of this tree.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_signalbox");

/// The operator's token of every service started here; they listen on loopback only.
pub(crate) const OPERATOR: &str = "bench-operator-token-of-this-bench";

/// The master key of every service started here.
pub(crate) const MASTER_KEY: &str =
    "6b6579206f66207468652062656e6368206b6579206f66207468652062656e63";

/// The default size of the store's cache.
pub(crate) const CACHE_MIB: u32 = 256;

/// The smallest size of the store's cache.
pub(crate) const CACHE_MIB_MIN: u32 = 16;

/// The bytes of a MiB.
pub(crate) const MIB: f64 = 1_048_576.0;

/// The longest time for a start and the restoration of a fleet of any size.
const PATIENCE: Duration = Duration::from_secs(600);

/// The interval at which the API is polled.
const PAUSE: Duration = Duration::from_millis(2);

/// A running service, which is killed on drop.
pub(crate) struct Service {
    program: Program,
    started_at: Instant,
    restored: u64,
    coap: Option<SocketAddr>,
    coaps: SocketAddr,
    /// The address of its API.
    pub(crate) http: SocketAddr,
}

impl Service {
    /// Starts a program on a directory with this cache and these settings.
    pub(crate) fn start(
        program: &Path,
        data: &Path,
        cache_mib: u32,
        settings: &[(&str, &str)],
    ) -> Self {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self::start_at(program, data, cache_mib, settings, (free_port(), any))
    }

    /// Starts a program with these addresses for its API and for CoAP devices.
    pub(crate) fn start_at(
        program: &Path,
        data: &Path,
        cache_mib: u32,
        settings: &[(&str, &str)],
        (http, coap): (SocketAddr, SocketAddr),
    ) -> Self {
        let mut command = serve(program);
        command.arg("--data-dir").arg(data);
        command.args(["--http", &http.to_string()]);
        let coaps = free_udp_port();
        command.args(["--coap", &coap.to_string(), "--coaps", &coaps.to_string()]);
        command.args(["--udp", "127.0.0.1:0", "--log-format", "json"]);
        command.args(["--store-cache-mib", &cache_mib.to_string()]);
        command.env("SIGNALBOX_OPERATOR_TOKEN", OPERATOR);
        command.env("SIGNALBOX_RATE_LIMIT", "0");
        // A store that a bench filled has no file with its key.
        command.env("SIGNALBOX_MASTER_KEY", MASTER_KEY);
        command.envs(settings.iter().copied());
        let started_at = Instant::now();
        Self {
            program: Program::start(&mut command),
            started_at,
            restored: 0,
            coap: None,
            coaps,
            http,
        }
    }

    /// Starts a node, with its settings alone.
    pub(crate) fn start_node(program: &Path, settings: &[(String, String)]) -> Self {
        let address = |wanted: &str| {
            let named = settings.iter().find(|(name, _)| name == wanted);
            let address = named.and_then(|(_, address)| address.parse().ok());
            address.expect("the settings of a node have its addresses")
        };
        let mut command = serve(program);
        command.envs(settings.iter().map(|(name, value)| (name, value)));
        Self {
            program: Program::start(&mut command),
            started_at: Instant::now(),
            restored: 0,
            coap: Some(address("SIGNALBOX_COAP")),
            coaps: address("SIGNALBOX_COAPS"),
            http: address("SIGNALBOX_HTTP"),
        }
    }

    /// A client of its API.
    pub(crate) fn api(&self, credentials: ClientCredentials) -> RestClient {
        let base = format!("http://{}", self.http);
        RestClient::new(&base, credentials).expect("HTTP can be set up")
    }

    /// A token of a new customer.
    pub(crate) async fn token_of(&self, customer: &str) -> String {
        let mut api = self.api(ClientCredentials::Bearer(OPERATOR.to_owned()));
        let made = api.ensure_customer(customer, customer).await;
        made.expect("the operator may make a customer");
        let key = api.create_key(customer, "bench").await;
        let key = key.expect("the operator may make an API client");
        let token = api.authorize(&key).await;
        token.expect("the key is valid").token
    }

    /// Waits until its API is ready; returns the seconds since its start.
    pub(crate) async fn ready(&self) -> f64 {
        let api = self.api(ClientCredentials::None);
        let mut looks = interval(PAUSE);
        while api.read("/readyz").await.is_err() {
            assert!(self.started_at.elapsed() < PATIENCE, "it is never ready");
            looks.tick().await;
        }
        self.started_at.elapsed().as_secs_f64()
    }

    /// The address for CoAP devices; waits until it is printed.
    pub(crate) fn coap(&mut self) -> SocketAddr {
        if let Some(coap) = self.coap {
            return coap;
        }
        let restored = Cell::new(self.restored);
        let listening = |line: &str| -> Option<SocketAddr> {
            restored.set(restored.get() + restored_by_one(line));
            line.strip_prefix("listening coap=")?.trim().parse().ok()
        };
        let awaited = "where devices reach it";
        let coap = self.program.wait_for_within(PATIENCE, awaited, listening);
        self.restored = restored.get();
        *self.coap.insert(coap)
    }

    /// The address for CoAP devices over DTLS.
    pub(crate) fn coaps(&self) -> SocketAddr {
        self.coaps
    }

    /// Waits until it has restored this many devices; returns the seconds since its start.
    pub(crate) fn restored(&mut self, devices: u32) -> f64 {
        let devices = u64::from(devices);
        while self.restored < devices {
            let more = |line: &str| Some(restored_by_one(line)).filter(|more| *more > 0);
            let awaited = "all devices are restored";
            self.restored += self.program.wait_for_within(PATIENCE, awaited, more);
        }
        assert_eq!(self.restored, devices, "each is restored once");
        self.started_at.elapsed().as_secs_f64()
    }

    /// Its resident memory.
    pub(crate) fn resident_mib(&self) -> f64 {
        kernel::resident_bytes(self.program.pid()) as f64 / MIB
    }

    /// The processor time of its threads, in seconds.
    pub(crate) fn processor_s(&self) -> f64 {
        kernel::processor_s(self.program.pid())
    }

    /// Its process, to be stopped, paused or killed.
    pub(crate) fn program(&mut self) -> &mut Program {
        &mut self.program
    }

    /// Stops it and waits until it has ended; returns the seconds that took.
    pub(crate) fn stop(self) -> f64 {
        let asked_at = Instant::now();
        self.program.terminate();
        self.program.finish();
        asked_at.elapsed().as_secs_f64()
    }
}

/// The service without settings from the environment of the bench.
fn serve(program: &Path) -> Command {
    let mut command = Command::new(program);
    let names = std::env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| name.to_string_lossy().starts_with("SIGNALBOX_")) {
        command.env_remove(name);
    }
    command.arg("serve");
    command
}

/// An address for an API. A start is timed by responses of the API, so its port must be known
/// before.
pub(crate) fn free_port() -> SocketAddr {
    let http = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    http.expect("a port is free")
}

/// An address for devices.
pub(crate) fn free_udp_port() -> SocketAddr {
    let free = UdpSocket::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    free.expect("a port is free")
}

/// The bytes of the files of a directory and of those in it. A file that the service removes
/// meanwhile does not count.
pub(crate) fn bytes_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(about) if about.is_dir() => bytes_of(&entry.path()),
        Ok(about) => about.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

/// The number of restored devices that an arbiter logs when it has restored all of its own.
fn restored_by_one(line: &str) -> u64 {
    let event: Option<Value> = serde_json::from_str(line).ok();
    let whole = event.filter(|event| event["message"] == "all devices are restored");
    whole.map_or(0, |event| event["restored"].as_u64().unwrap_or_default())
}
