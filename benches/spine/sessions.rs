//! What does DTLS cost a device's messages, a handshake, and an idle session? The program an
//! operator runs, with as many devices over plain CoAP as over DTLS.

use harness::load::addressing::{EndpointPattern, Network};
use harness::load::behaviour::PreSharedKey;
use harness::load::figures::Figures;
use signalbox::load::{Load, import_lines};
use signalbox::rest_client::ClientCredentials;
use tokio::runtime::Builder;

use crate::load::{self, IMPORT_TIMEOUT};
use crate::service::{CACHE_MIB, MIB, PROGRAM, Service};

/// The default numbers of sessions.
pub(crate) const FLEETS: [u32; 2] = [10_000, 100_000];

/// Measured rounds, an odd number; one more warms up.
const ROUNDS: usize = 5;

/// The pre-shared key of every device: one costs as much as another.
const KEY: &str = "07070707070707070707070707070707";

/// The devices over plain CoAP, and those over DTLS.
const PLAIN: [&str; 4] = [
    "--bind",
    "127.128.0.0/10",
    "--endpoint-pattern",
    "plain-{:09}",
];
const SECURED: [&str; 4] = [
    "--bind",
    "127.64.0.0/10",
    "--endpoint-pattern",
    "secured-{:09}",
];

/// How a round is applied.
const ROUND: [&str; 4] = ["--duration", "3s", "--window", "64"];

/// The sessions that the service may have for each device: a new one is there before the one that
/// it replaces has ended, and an arbiter may have more than its part of all devices.
const SESSIONS_PER_DEVICE: u32 = 3;

/// Measures and prints.
pub(crate) fn run(fleets: &[u32]) {
    println!("## DTLS with pre-shared keys; medians of {ROUNDS} rounds\n");
    println!("| sessions | | per second | processor time each, µs |");
    println!("|---|---|---|---|");
    let mut weights = Vec::new();
    for &devices in fleets {
        let measured = measure(devices);
        let Measured {
            plain,
            secured,
            handshakes,
            ..
        } = &measured;
        plain.show(devices, "update over CoAP");
        secured.show(devices, "update over DTLS");
        let rate = secured.rate.over(&plain.rate).shown(2);
        let cost = secured.processor_us.over(&plain.processor_us).shown(2);
        println!("| {devices} | ratio | {rate} | {cost} |");
        handshakes.show(devices, "handshake and update over DTLS");
        let of_handshake = handshakes.processor_us.rounds().iter();
        let of_handshake = of_handshake.zip(secured.processor_us.rounds());
        let of_handshake: Figures = of_handshake.map(|(both, update)| both - update).collect();
        let cost = of_handshake.shown(1);
        println!("| {devices} | the handshake of it | | {cost} |");
        weights.push((devices, measured.session_bytes));
    }
    println!("\n| idle sessions | resident memory of each, B |\n|---|---|");
    for (devices, bytes) in weights {
        println!("| {devices} | {bytes:.0} |");
    }
    println!();
}

/// What was measured with so many sessions.
struct Measured {
    plain: RequestFigures,
    secured: RequestFigures,
    handshakes: RequestFigures,
    session_bytes: f64,
}

/// The figures of one kind of request.
#[derive(Default)]
struct RequestFigures {
    rate: Figures,
    processor_us: Figures,
}

impl RequestFigures {
    fn measure(&mut self, service: &Service, load: &mut Load) {
        let before_s = service.processor_s();
        let report = load.measure().expect("the load can be applied");
        let spent_s = service.processor_s() - before_s;
        let tally = &report.measurement.tally;
        assert_eq!(tally.failed(), 0, "{:?}", tally.failures);
        self.rate.push(report.measurement.rate());
        self.processor_us
            .push(spent_s * 1e6 / tally.answered as f64);
    }

    fn show(&self, devices: u32, what: &str) {
        let (rate, cost) = (self.rate.shown(0), self.processor_us.shown(2));
        println!("| {devices} | {what} | {rate} | {cost} |");
    }
}

fn measure(devices: u32) -> Measured {
    let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"));
    let data = data.expect("the build's directory takes another");
    let sessions_max = (devices * SESSIONS_PER_DEVICE).to_string();
    let settings = [("SIGNALBOX_DTLS_SESSIONS_MAX", sessions_max.as_str())];
    let mut service = Service::start(PROGRAM.as_ref(), data.path(), CACHE_MIB, &settings);
    import(&service, devices);
    let coap = format!("coap://{}", service.coap());
    let coaps = format!("coaps://{}", service.coaps());
    let begin_plain = |group: [&str; 4], scenario: &str| {
        load::begin_at(&coap, devices, scenario, &[group, ROUND].concat())
    };
    let begin_secured = |scenario: &str| {
        let words = [&SECURED[..], &ROUND, &["--psk", KEY]].concat();
        load::begin_at(&coaps, devices, scenario, &words)
    };
    let mut plain_load = begin_plain(PLAIN, "update");
    drop(begin_plain(SECURED, "update"));
    let registered_mib = service.resident_mib();
    drop(begin_plain(SECURED, "update"));
    let again_mib = service.resident_mib();
    let mut secured_load = begin_secured("update");
    // What the store's cache takes for another registration is not the memory of a session.
    let grown_mib = (service.resident_mib() - again_mib) - (again_mib - registered_mib);
    let session_bytes = grown_mib * MIB / f64::from(devices);
    let [mut plain, mut secured, mut handshakes] = [(); 3].map(|()| RequestFigures::default());
    for round in 0..=ROUNDS {
        if round == 1 {
            (plain, secured) = Default::default();
        }
        plain.measure(&service, &mut plain_load);
        secured.measure(&service, &mut secured_load);
    }
    drop(secured_load);
    let mut handshake_load = begin_secured("handshake");
    for round in 0..=ROUNDS {
        if round == 1 {
            handshakes = RequestFigures::default();
        }
        handshakes.measure(&service, &mut handshake_load);
    }
    service.stop();
    Measured {
        plain,
        secured,
        handshakes,
        session_bytes,
    }
}

/// Creates the devices of both groups.
fn import(service: &Service, devices: u32) {
    let lines = |[_, network, _, pattern]: [&str; 4], key: Option<&PreSharedKey>| {
        let pattern: EndpointPattern = pattern.parse().expect("a pattern");
        let network: Network = network.parse().expect("a network");
        import_lines(&pattern, network, key, 0..devices)
    };
    let key = PreSharedKey(vec![7; 16]);
    let groups = [lines(PLAIN, None), lines(SECURED, Some(&key))];
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be had").block_on(async {
        service.ready().await;
        let token = service.token_of("sessions").await;
        let api = service.api(ClientCredentials::Bearer(token));
        // An import has at most a million lines.
        for group in groups {
            let imported = api.import(group, IMPORT_TIMEOUT).await;
            let created = imported.and_then(|answer| answer.number("/created"));
            assert_eq!(created.expect("all are imported"), u64::from(devices));
        }
    });
}
