//! What is measured with one fleet, how often, and which figures result?
//!
//! ```text
//!  on a new store, each time:  import, registration
//!  on the last of these:       updates, idleness, Sends, actions, deliveries, a mixed load,
//!                              kill -9 during it, restarts with either cache
//!  on an empty store:          starts with the least cache
//! ```

use std::future::pending;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use signalbox::load::Load;
use signalbox::rest_client::{ApiKey, ClientCredentials, RestClient, WEBHOOKS};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::Options;
use super::report::{ERRORS, Fleet};
use crate::endpoint::Endpoint;
use crate::load::{self, IMPORT_TIMEOUT, Senders};
use crate::service::{
    CACHE_MIB, CACHE_MIB_MIN, MIB, OPERATOR, Service, bytes_of, free_port, free_udp_port,
};
use crate::{bare, deliveries};

/// How long a service is left alone before its memory or idle time is measured.
const SETTLED_AFTER: Duration = Duration::from_secs(3);

/// The endpoint of the deliveries is on loopback.
const SETTINGS: [(&str, &str); 1] = [("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true")];

/// The mixed load: everything that devices do, in the usual shares of `signalbox load`.
const SHARES: [&str; 2] = ["--shares", "register=5,update=45,send=45"];

/// A figure, and its place in the report of a load.
type Figure = (&'static str, &'static str);

/// The rounds of one fleet.
pub(crate) struct ScaleRounds<'a> {
    options: &'a Options,
    begun_at: Instant,
    runtime: Runtime,
    /// Where API and devices reach the service, also after a restart.
    addresses: (SocketAddr, SocketAddr),
    fleet: Fleet,
}

/// What a load did in a round.
struct LoadRound {
    report: Value,
    /// The processor time of the service meanwhile, in seconds.
    processor_s: f64,
    /// By how much its data directory grew.
    disk_bytes: f64,
}

impl LoadRound {
    fn answered(&self) -> f64 {
        let answered = self.report.pointer("/measurement/answered");
        answered.and_then(Value::as_f64).expect("a number")
    }

    fn processor_us(&self) -> f64 {
        self.processor_s * 1e6 / self.answered()
    }
}

/// A service with the whole fleet.
struct FleetService {
    // Declared before the directory, so that the service ends before it is removed.
    service: Service,
    api: RestClient,
    key: ApiKey,
    data: TempDir,
}

impl<'a> ScaleRounds<'a> {
    /// Measures everything of a fleet of this size.
    pub(crate) fn of(devices: u32, options: &'a Options, begun_at: Instant) -> Fleet {
        let runtime = Builder::new_current_thread().enable_all().build();
        let mut rounds = Self {
            options,
            begun_at,
            runtime: runtime.expect("a runtime can be had"),
            addresses: (free_port(), free_udp_port()),
            fleet: Fleet::of(devices),
        };
        let mut stand = rounds.set_up(1);
        for round in 2..=options.setup_rounds() {
            stand.service.stop();
            drop(stand.data);
            stand = rounds.set_up(round);
        }
        rounds.updates(&mut stand);
        rounds.repeat("idleness", |rounds| rounds.idleness(&stand.service));
        rounds.sends(&mut stand);
        rounds.actions(&mut stand);
        rounds.deliveries(&mut stand);
        let mut load = rounds.mixed(&mut stand);
        let FleetService { service, data, .. } = stand;
        let mut service = Some(service);
        rounds.repeat("kill", |rounds| {
            let killed = service.take().expect("each round starts another");
            service = Some(rounds.killed(killed, data.path(), &mut load));
        });
        drop(load);
        service.expect("each round starts another").stop();
        rounds.repeat("restart", |rounds| rounds.restart(data.path()));
        rounds.repeat("memory", |rounds| rounds.memory(data.path()));
        rounds.fleet
    }

    fn set_up(&mut self, round: u32) -> FleetService {
        let of = self.options.setup_rounds();
        self.log_round("import and registration", round, of);
        let data = directory();
        let (service, _) = self.start(data.path(), CACHE_MIB);
        let api = service.api(ClientCredentials::Bearer(OPERATOR.to_owned()));
        let key = self.runtime.block_on(async {
            let made = api.ensure_customer("scale", "Scale").await;
            made.expect("the operator may make a customer");
            let key = api.create_key("scale", "bench").await;
            key.expect("the operator may make an API client")
        });
        let mut stand = FleetService {
            service,
            api,
            key,
            data,
        };
        self.import(&mut stand);
        let figures = [
            ("registerS", "/measurement/seconds"),
            ("registrationsPerS", "/measurement/ratePerSecond"),
            (ERRORS, "/errorCount"),
        ];
        let server = stand.service.coap();
        let devices = f64::from(self.fleet.devices);
        let before_s = stand.service.processor_s();
        let mut load = load::begin(server, self.fleet.devices, "register", &[]);
        let report = load.measure().expect("a registration is measured");
        drop(load);
        let spent_s = stand.service.processor_s() - before_s;
        self.note("registrationProcessorUs", spent_s * 1e6 / devices);
        self.note_each(&report.json(), &figures);
        self.leave_alone(SETTLED_AFTER);
        self.note("registeredMib", stand.service.resident_mib());
        let bytes = bytes_of(stand.data.path()) as f64;
        self.note("registeredDiskBytes", bytes / devices);
        stand
    }

    /// Creates every device in one call, with the name and the address under which it will
    /// register.
    fn import(&mut self, stand: &mut FleetService) {
        let devices = self.fleet.devices;
        let lines = load::lines(devices);
        self.authorize(stand);
        let (begun_at, before_s) = (Instant::now(), stand.service.processor_s());
        let answer = self
            .runtime
            .block_on(stand.api.import(lines, IMPORT_TIMEOUT));
        let took_s = begun_at.elapsed().as_secs_f64();
        let created = answer.and_then(|answer| answer.number("/created"));
        assert_eq!(created.expect("all are imported"), u64::from(devices));
        let spent_s = stand.service.processor_s() - before_s;
        self.note("importS", took_s);
        self.note("importProcessorUs", spent_s * 1e6 / f64::from(devices));
    }

    fn updates(&mut self, stand: &mut FleetService) {
        let figures = [
            ("updatesPerS", "/measurement/ratePerSecond"),
            ("updateP50Ms", "/measurement/latencyMs/p50"),
            ("updateP99Ms", "/measurement/latencyMs/p99"),
            (ERRORS, "/errorCount"),
        ];
        let mut load = self.begin("update", stand, &[]);
        for round in self.measure("update", &mut load, stand) {
            self.note("updateProcessorUs", round.processor_us());
            self.note_each(&round.report, &figures);
        }
    }

    fn sends(&mut self, stand: &mut FleetService) {
        let figures = [
            ("sendsPerS", "/measurement/ratePerSecond"),
            ("sendP99Ms", "/measurement/latencyMs/p99"),
            (ERRORS, "/errorCount"),
        ];
        let mut load = self.begin("send", stand, &[]);
        for round in self.measure("send", &mut load, stand) {
            self.note("sendProcessorUs", round.processor_us());
            self.note("sendDiskBytes", round.disk_bytes / round.answered());
            self.note_each(&round.report, &figures);
        }
    }

    fn actions(&mut self, stand: &mut FleetService) {
        let figures = [
            ("actionsPerS", "/measurement/ratePerSecond"),
            ("actionP50Ms", "/measurement/latencyMs/p50"),
            ("actionP99Ms", "/measurement/latencyMs/p99"),
            ("actionP999Ms", "/measurement/latencyMs/p999"),
            (ERRORS, "/errorCount"),
        ];
        let token = self.authorize(stand);
        let api = format!("http://{}", stand.service.http);
        let mut load = self.begin("actions", stand, &["--api", &api, "--token", &token]);
        for round in self.measure("actions", &mut load, stand) {
            self.note("actionProcessorUs", round.processor_us());
            self.note_each(&round.report, &figures);
        }
    }

    /// Sends with a webhook, and the bare client in turns with them.
    fn deliveries(&mut self, stand: &mut FleetService) {
        let load = self.begin("send", stand, &[]);
        let mut senders = Senders::of(load, self.options.measured_for());
        let endpoint = Endpoint::start();
        self.authorize(stand);
        let webhook = json!({
            "name": "bench",
            "url": format!("http://{}/hook", endpoint.address),
            "eventTypes": [{ "type": "TELEMETRY_DATA" }],
        });
        let created = self.runtime.block_on(stand.api.post(WEBHOOKS, &webhook));
        let id = created.and_then(|created| created.text("/id"));
        let path = format!("{WEBHOOKS}/{}", id.expect("a webhook can be created"));
        self.repeat("deliveries", |rounds| {
            let delivered = deliveries::deliver(&mut senders, &endpoint);
            let delivered = rounds.runtime.block_on(delivered);
            let time = rounds.options.measured_for();
            let bare = rounds.runtime.block_on(bare::post(&endpoint, time));
            rounds.note("deliveredPerS", delivered.whole);
            rounds.note("deliveredRatio", delivered.whole / bare.rate);
        });
        self.authorize(stand);
        let deleted = self.runtime.block_on(stand.api.delete(&path));
        deleted.expect("a webhook can be deleted");
    }

    /// Applies a mixed load and looks at the memory of the service after it; returns the load.
    fn mixed(&mut self, stand: &mut FleetService) -> Load {
        let mut load = self.begin("mixed", stand, &SHARES);
        for round in self.measure("mixed", &mut load, stand) {
            self.note_each(&round.report, &[(ERRORS, "/errorCount")]);
        }
        self.leave_alone(SETTLED_AFTER);
        let mib = stand.service.resident_mib();
        let bytes = (mib - f64::from(CACHE_MIB)) * MIB;
        self.note("mixedMib", mib);
        self.note("mixedDeviceBytes", bytes / f64::from(self.fleet.devices));
        load
    }

    /// Registers the fleet for a load.
    fn begin(&self, scenario: &str, stand: &mut FleetService, words: &[&str]) -> Load {
        let of = self.options.rounds;
        self.log_round(&format!("{scenario}, the fleet registers"), 0, of);
        let time = format!("{}ms", self.options.measured_for().as_millis());
        let words = [&["--duration", &time], words].concat();
        load::begin(stand.service.coap(), self.fleet.devices, scenario, &words)
    }

    /// Applies a load for some rounds.
    fn measure(&self, scenario: &str, load: &mut Load, stand: &FleetService) -> Vec<LoadRound> {
        let of = self.options.rounds;
        let round = |round| {
            let before_s = stand.service.processor_s();
            let before_bytes = bytes_of(stand.data.path()) as f64;
            let report = load.measure().expect("the load can be applied");
            let round_of = LoadRound {
                report: report.json(),
                processor_s: stand.service.processor_s() - before_s,
                disk_bytes: bytes_of(stand.data.path()) as f64 - before_bytes,
            };
            self.log_round(&format!("{scenario}, ended"), round, of);
            round_of
        };
        (1..=of).map(round).collect()
    }

    fn idleness(&mut self, service: &Service) {
        self.leave_alone(SETTLED_AFTER);
        let (begun_at, before_s) = (Instant::now(), service.processor_s());
        self.leave_alone(self.options.idle_for());
        let spent_s = service.processor_s() - before_s;
        let percent = spent_s / begun_at.elapsed().as_secs_f64() * 100.0;
        self.note("idlePercent", percent);
    }

    /// Kills the service during a load, shortly before that ends, and starts it again. What was
    /// under way is repeated by the devices until it is answered.
    fn killed(&mut self, service: Service, data: &Path, load: &mut Load) -> Service {
        let (service, report) = thread::scope(|scope| {
            let load = scope.spawn(|| load.measure().expect("the load can be applied").json());
            self.leave_alone(self.options.measured_for() * 9 / 10);
            assert!(!load.is_finished(), "the load is under way");
            drop(service);
            let (mut service, ready_s) = self.start(data, CACHE_MIB);
            let restored_s = service.restored(self.fleet.devices);
            self.note("killedReadyS", ready_s);
            self.note("killedRestoredS", restored_s);
            (service, load.join().expect("the load does not fail"))
        });
        self.note_each(&report, &[(ERRORS, "/errorCount")]);
        service
    }

    fn restart(&mut self, data: &Path) {
        let (mut service, ready_s) = self.start(data, CACHE_MIB);
        let restored_s = service.restored(self.fleet.devices);
        self.leave_alone(SETTLED_AFTER);
        self.note("readyS", ready_s);
        self.note("restoredS", restored_s);
        self.note("restoredMib", service.resident_mib());
        self.note("stopS", service.stop());
    }

    /// The memory of a restored fleet beyond that of the same service on an empty store, both with
    /// the smallest cache.
    fn memory(&mut self, data: &Path) {
        let devices = self.fleet.devices;
        let settled_mib = |data: &Path, devices| {
            let (mut service, _) = self.start(data, CACHE_MIB_MIN);
            service.restored(devices);
            self.leave_alone(SETTLED_AFTER);
            let mib = service.resident_mib();
            service.stop();
            mib
        };
        let full_mib = settled_mib(data, devices);
        let empty_mib = settled_mib(directory().path(), 0);
        let bytes = (full_mib - empty_mib) * MIB;
        self.note("deviceBytes", bytes / f64::from(devices));
    }

    /// Starts the service and waits until it is ready; returns the seconds that took.
    fn start(&self, data: &Path, cache_mib: u32) -> (Service, f64) {
        let program = &self.options.program;
        let mut service = Service::start_at(program, data, cache_mib, &SETTINGS, self.addresses);
        let ready_s = self.runtime.block_on(service.ready());
        service.coap();
        (service, ready_s)
    }

    /// Leaves the service alone for this long.
    fn leave_alone(&self, time: Duration) {
        let nobody = async { timeout(time, pending::<()>()).await };
        self.runtime.block_on(nobody).expect_err("nobody comes");
    }

    /// Gets a new access token, valid for longer than any round.
    fn authorize(&self, stand: &mut FleetService) -> String {
        let issued = self.runtime.block_on(stand.api.authorize(&stand.key));
        issued.expect("the key is valid").token
    }

    fn repeat(&mut self, what: &str, mut act: impl FnMut(&mut Self)) {
        let of = self.options.rounds;
        for round in 1..=of {
            self.log_round(what, round, of);
            act(self);
        }
    }

    fn note_each(&mut self, report: &Value, figures: &[Figure]) {
        for (key, pointer) in figures {
            let number = report.pointer(pointer).and_then(Value::as_f64);
            self.note(key, number.expect("the report has every figure"));
        }
    }

    fn note(&mut self, key: &'static str, value: f64) {
        println!("           {key} {value:.3}");
        self.fleet.note(key, value);
    }

    fn log_round(&self, what: &str, round: u32, of: u32) {
        let devices = self.fleet.devices;
        let since_s = self.begun_at.elapsed().as_secs_f64();
        println!("{since_s:>7.1} s  {devices} devices: {what}, round {round} of {of}");
    }
}

/// A directory of the build: the system's temporary directory may be in memory, where nothing is
/// durable.
fn directory() -> TempDir {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"));
    directory.expect("the build's directory takes another")
}
