//! How do the devices of the fleet reach a server whose exchanges are no load? Over the link of a
//! load, with the names and addresses of the fleet.

use std::net::SocketAddr;

use harness::clock::Stopwatch;
use harness::load::Transmission;
use harness::load::addressing::{DeviceRange, EndpointPattern, Network};
use harness::load::behaviour::{
    DeviceBehaviour, LinkSecurity, PreSharedKey, Recording, SendValues, SessionUse,
};
use harness::load::dtls_sessions::LinkEvent;
use harness::load::link::LoadLink;
use harness::load::load_socket::SocketBatches;
use harness::load::outbox::Outbox;
use signalbox::load::import_lines;

/// The longest sleep of a thread with devices, so that it notices what other threads tell it.
const SLEEP_NS_MAX: u64 = 1_000_000;

/// The devices of the fleet, on the calling thread.
pub(crate) struct DeviceLink {
    link: LoadLink,
    batches: SocketBatches,
    /// The clock of the thread.
    pub(crate) clock: Stopwatch,
    /// What leaves next.
    pub(crate) out: Outbox,
}

impl DeviceLink {
    /// Opens the link of the first devices to a server.
    pub(crate) fn open(server: SocketAddr, devices: u32, security: LinkSecurity) -> Self {
        let SocketAddr::V4(server) = server else {
            unreachable!("every server of a bench has an IPv4 address");
        };
        let behaviour = DeviceBehaviour {
            pattern: pattern(),
            lifetime_s: 86_400,
            transmission: Transmission::STANDARD,
            loss_percent: 0,
            sleep: None,
            sends: SendValues {
                label: 0,
                recording: Recording::Off,
            },
            security,
            sessions: SessionUse::UntilTimeout,
        };
        let all = DeviceRange {
            first: 0,
            count: devices,
        };
        let link = LoadLink::open(server, network(), all, &behaviour, 1);
        Self {
            link: link.expect("a port is free"),
            batches: SocketBatches::new(),
            clock: Stopwatch::start(),
            out: Outbox::default(),
        }
    }

    /// Sends what waits, and passes on what devices received. Sleeps for a moment if there was
    /// nothing.
    pub(crate) fn turn(&mut self, mut take: impl FnMut(&mut Outbox, u32, &[u8])) {
        let now_ns = self.clock.now_ns();
        let was_idle = self.out.is_empty();
        let sent = self.link.send(&mut self.batches, now_ns, &self.out);
        sent.expect("datagrams leave");
        self.out.clear();
        let out = &mut self.out;
        let received =
            self.link.receive(
                &mut self.batches,
                &self.clock,
                |member, event, _| match event {
                    LinkEvent::Received(bytes) => take(out, member, bytes),
                    LinkEvent::HandshakeFailed => unreachable!("the service knows every key"),
                },
            );
        if received.expect("datagrams arrive") == 0 && was_idle {
            self.link
                .wait(SLEEP_NS_MAX)
                .expect("a socket can be watched");
        }
    }
}

/// The lines that create the first devices.
pub(crate) fn lines(devices: u32, key: Option<&PreSharedKey>) -> String {
    import_lines(&pattern(), network(), key, 0..devices)
}

fn pattern() -> EndpointPattern {
    "urn:dev:{:09}".parse().expect("a pattern")
}

fn network() -> Network {
    "127.64.0.0/10".parse().expect("a network")
}
