//! How many devices does the service bootstrap per second, and what does each cost? Over plain
//! CoAP, and over DTLS with a handshake for each.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use harness::load::behaviour::{LinkSecurity, PreSharedKey};
use harness::load::figures::Figures;
use harness::load::outbox::Outbox;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use signalbox::rest_client::ClientCredentials;
use tokio::runtime::Builder;

use crate::device_link::{self, DeviceLink};
use crate::fleet;
use crate::service::{CACHE_MIB, PROGRAM, Service};

/// The default numbers of devices.
pub(crate) const FLEETS: [u32; 1] = [10_000];

/// Measured rounds, an odd number; one more warms up.
const ROUNDS: u16 = 3;

/// Devices that are bootstrapped at a time.
const WINDOW: usize = 256;

/// A request without an answer is sent again after this time.
const REPEAT_NS: u64 = 2_000_000_000;

/// A round of any number of devices is over by then.
const PATIENCE: Duration = Duration::from_secs(600);

/// The timeout of an import.
const IMPORT_TIMEOUT: Duration = Duration::from_secs(300);

/// What a device has before its bootstrap: the account of its bootstrap server.
const ACCOUNTS: &str = "</0>,</0/0>";

/// Measures and prints.
pub(crate) fn run(fleets: &[u32]) {
    println!("## Bootstraps, {WINDOW} under way; medians of {ROUNDS} rounds\n");
    println!("| devices | over | per second | processor time each, µs |");
    println!("|---|---|---|---|");
    for &devices in fleets {
        let plain = measure(devices, &LinkSecurity::None);
        let key = PreSharedKey(vec![7; 16]);
        let secured = measure(devices, &LinkSecurity::Psk(key));
        plain.show(devices, "CoAP");
        secured.show(devices, "CoAPs, with a handshake");
        let rate = secured.rate.over(&plain.rate).shown(2);
        let cost = secured.processor_us.over(&plain.processor_us).shown(2);
        println!("| {devices} | ratio | {rate} | {cost} |");
    }
    println!();
}

/// The figures of the rounds.
#[derive(Default)]
struct BootstrapFigures {
    rate: Figures,
    processor_us: Figures,
}

impl BootstrapFigures {
    fn show(&self, devices: u32, over: &str) {
        let (rate, cost) = (self.rate.shown(0), self.processor_us.shown(0));
        println!("| {devices} | {over} | {rate} | {cost} |");
    }
}

fn measure(devices: u32, security: &LinkSecurity) -> BootstrapFigures {
    let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"));
    let data = data.expect("the build's directory takes another");
    let settings = [("SIGNALBOX_BOOTSTRAP_NOSEC", "true")];
    let mut service = Service::start(PROGRAM.as_ref(), data.path(), CACHE_MIB, &settings);
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be had");
    let (key, server) = match security {
        LinkSecurity::None => (None, service.coap()),
        LinkSecurity::Psk(key) => (Some(key), service.coaps()),
    };
    let lines = device_link::lines(devices, key);
    runtime.block_on(async {
        service.ready().await;
        let token = service.token_of("bootstraps").await;
        let api = service.api(ClientCredentials::Bearer(token));
        let imported = api.import(lines, IMPORT_TIMEOUT).await;
        let created = imported.and_then(|answer| answer.number("/created"));
        assert_eq!(created.expect("all are imported"), u64::from(devices));
    });
    let mut figures = BootstrapFigures::default();
    for round in 0..=ROUNDS {
        let before_s = service.processor_s();
        let took_s = bootstrap_all(server, devices, security.clone(), MessageId(round));
        let spent_s = service.processor_s() - before_s;
        if round > 0 {
            figures.rate.push(f64::from(devices) / took_s);
            figures
                .processor_us
                .push(spent_s * 1e6 / f64::from(devices));
        }
    }
    service.stop();
    figures
}

/// Bootstraps every device once, with a session of its own if it speaks DTLS; returns the seconds.
/// The id of the requests is that of no earlier round: it would be a repetition, from any port.
fn bootstrap_all(
    server: SocketAddr,
    devices: u32,
    security: LinkSecurity,
    message_id: MessageId,
) -> f64 {
    let mut link = DeviceLink::open(server, devices, security);
    let mut script = BootstrapScript::of(message_id);
    let (begun_at, mut begun) = (Instant::now(), 0);
    while script.finished < devices {
        assert!(
            begun_at.elapsed() < PATIENCE,
            "{} finished",
            script.finished
        );
        let now_ns = link.clock.now_ns();
        while begun < devices && script.open.len() < WINDOW {
            script.request(begun, now_ns, &mut link.out);
            begun += 1;
        }
        script.repeat(now_ns, &mut link.out);
        link.turn(|out, number, bytes| script.handle(number, bytes, out));
    }
    let took_s = begun_at.elapsed().as_secs_f64();
    // The last answers leave, too.
    link.turn(|out, number, bytes| script.handle(number, bytes, out));
    took_s
}

/// What devices say in a bootstrap (LwM2M Core 1.1 section 6.1.7).
struct BootstrapScript {
    message_id: MessageId,
    // Devices whose bootstrap is not finished, and when their request is repeated; None if it was
    // answered.
    open: BTreeMap<u32, Option<u64>>,
    finished: u32,
}

impl BootstrapScript {
    fn of(message_id: MessageId) -> Self {
        Self {
            message_id,
            open: BTreeMap::new(),
            finished: 0,
        }
    }

    fn request(&mut self, number: u32, now_ns: u64, out: &mut Outbox) {
        self.open.insert(number, Some(now_ns + REPEAT_NS));
        let endpoint = format!("ep={}", fleet::profile(number).endpoint);
        let token = Token::from_u64(number.into());
        let request =
            Message::request(MessageKind::Confirmable, Code::POST, self.message_id, token)
                .with_uri_path(["bs"])
                .with_uri_query([endpoint.as_str(), "pct=112"]);
        put(out, number, &request);
    }

    fn repeat(&mut self, now_ns: u64, out: &mut Outbox) {
        let due = self.open.iter();
        let due = due.filter(|(_, at_ns)| at_ns.is_some_and(|at_ns| at_ns <= now_ns));
        let due: Vec<u32> = due.map(|(number, _)| *number).collect();
        due.into_iter()
            .for_each(|number| self.request(number, now_ns, out));
    }

    fn handle(&mut self, number: u32, bytes: &[u8], out: &mut Outbox) {
        let message = Message::decode(bytes).expect("the service sends messages");
        let respond = |code| Message::response_to(&message, code, message.message_id);
        let answer = match message.code {
            Code::DELETE => respond(Code::DELETED),
            Code::GET => respond(Code::CONTENT)
                .with_content_format(ContentFormat::LINK_FORMAT)
                .with_payload(ACCOUNTS),
            Code::PUT => respond(Code::CHANGED),
            Code::POST => {
                self.finished += u32::from(self.open.remove(&number).is_some());
                respond(Code::CHANGED)
            }
            code => {
                assert_eq!(code, Code::CHANGED, "the service bootstraps every device");
                if let Some(repeat_at) = self.open.get_mut(&number) {
                    *repeat_at = None;
                }
                return;
            }
        };
        put(out, number, &answer);
    }
}

fn put(out: &mut Outbox, number: u32, message: &Message) {
    let bytes = message.encode();
    out.put(number, |datagram| datagram.extend_from_slice(&bytes));
}
