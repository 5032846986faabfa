//! Do the devices of a load make sessions with a DTLS server, and speak over them?

use protocol::coap::exchange::Transmission;

use super::super::behaviour::{LinkSecurity, Recording, SendValues, SessionUse};
use super::*;

const MS: u64 = 1_000_000;

const KEY: &[u8] = b"a key of 16 byte";

/// A DTLS server that answers every datagram with the same content.
struct EchoServer {
    endpoint: Endpoint,
    key: &'static [u8],
    identities: Vec<String>,
}

/// What the devices noticed: the device, and what it received, or that its handshake failed.
type Noticed = Vec<(u32, Option<Vec<u8>>)>;

#[test]
fn each_device_makes_one_session_and_speaks_over_it() {
    let (mut sessions, mut server) = (sessions(3, 0), EchoServer::with(KEY));
    let mut noticed = Noticed::new();
    for text in [b"one", b"two"] {
        let mut out = Outbox::default();
        for member in 0..3 {
            sessions.send(member, text, 0, &mut out);
        }
        server.converse(&mut sessions, 0, &mut out, &mut noticed);
    }
    let of = |text: &[u8]| (0..3).map(|member| (member, Some(text.to_vec()))).collect();
    let expected: [Noticed; 2] = [of(b"one"), of(b"two")];
    assert_eq!(noticed, expected.concat());
    assert_eq!(server.identities, ["meter-100", "meter-101", "meter-102"]);
    let counts = SessionCounts {
        handshakes: 3,
        dropped: 0,
    };
    assert_eq!(sessions.take_counts(), counts);
    assert_eq!(sessions.take_counts(), SessionCounts::default());
}

#[test]
fn a_device_that_forgot_its_session_makes_another_handshake() {
    let (mut sessions, mut server) = (sessions(1, 0), EchoServer::with(KEY));
    let mut noticed = Noticed::new();
    for _ in 0..2 {
        let mut out = Outbox::default();
        sessions.send(0, b"hello", 0, &mut out);
        server.converse(&mut sessions, 0, &mut out, &mut noticed);
        sessions.forget(0);
    }
    assert_eq!(
        noticed,
        [(0, Some(b"hello".to_vec())), (0, Some(b"hello".to_vec()))]
    );
    assert_eq!(sessions.take_counts().handshakes, 2);
}

#[test]
fn a_wrong_key_ends_the_handshake_and_loses_the_datagram() {
    let (mut sessions, mut server) = (sessions(1, 0), EchoServer::with(b"another key 16 b"));
    let (mut out, mut noticed) = (Outbox::default(), Noticed::new());
    sessions.send(0, b"hello", 0, &mut out);
    server.converse(&mut sessions, 0, &mut out, &mut noticed);
    assert_eq!(noticed, [(0, None)]);
    assert_eq!(sessions.take_counts(), SessionCounts::default());
    assert!(sessions.waiting_by_member.is_empty());
}

#[test]
fn a_lost_flight_of_a_handshake_is_repeated() {
    let (mut sessions, mut server) = (sessions(20, 10), EchoServer::with(KEY));
    let (mut out, mut noticed) = (Outbox::default(), Noticed::new());
    let mut now_ns = 0;
    for member in 0..20 {
        sessions.send(member, b"hello", now_ns, &mut out);
    }
    while sessions.counts.handshakes < 20 {
        server.converse(&mut sessions, now_ns, &mut out, &mut noticed);
        if let Some(at_ns) = sessions
            .next_at()
            .filter(|_| sessions.counts.handshakes < 20)
        {
            now_ns = now_ns.max(at_ns);
            sessions.handle_timeout(now_ns, &mut out, &mut |member, event| {
                panic!("{member}: {event:?}");
            });
        }
        assert!(now_ns < 60_000 * MS, "{:?}", sessions.counts);
    }
    let dropped = sessions.counts.dropped;
    assert!(dropped > 5, "{dropped} of the datagrams of 20 handshakes");
}

fn sessions(count: u32, loss_percent: u8) -> DtlsSessions {
    let key = PreSharedKey(KEY.to_vec());
    let behaviour = DeviceBehaviour {
        pattern: "meter-{:03}".parse().unwrap(),
        lifetime_s: 300,
        transmission: Transmission::STANDARD,
        loss_percent,
        sleep: None,
        sends: SendValues {
            label: 7,
            recording: Recording::Off,
        },
        security: LinkSecurity::Psk(key.clone()),
        sessions: SessionUse::UntilTimeout,
    };
    DtlsSessions::new(&behaviour, key, DeviceRange { first: 100, count }, 7)
}

impl EchoServer {
    fn with(key: &'static [u8]) -> Self {
        Self {
            endpoint: Endpoint::new(Arc::new(Config::new([1; 32]))),
            key,
            identities: Vec::new(),
        }
    }

    /// Exchanges datagrams until both sides are silent.
    fn converse(
        &mut self,
        sessions: &mut DtlsSessions,
        now_ns: u64,
        out: &mut Outbox,
        noticed: &mut Noticed,
    ) {
        while !out.is_empty() {
            let sent = std::mem::take(out);
            for (member, datagram) in sent.datagrams() {
                for answer in self.take(member, datagram, now_ns) {
                    let mut take = |member, event: LinkEvent<'_>| match event {
                        LinkEvent::Received(content) => {
                            noticed.push((member, Some(content.to_vec())));
                        }
                        LinkEvent::HandshakeFailed => noticed.push((member, None)),
                    };
                    sessions.handle_datagram(member, &answer, now_ns, out, &mut take);
                }
            }
        }
    }

    fn take(&mut self, member: u32, datagram: &[u8], now_ns: u64) -> Vec<Vec<u8>> {
        let mut rng = Rng::from_seed(u64::from(member) + now_ns);
        let mut entropy = |bytes: &mut [u8]| fill(&mut rng, bytes);
        let mut moment = moment(now_ns, &mut entropy);
        let mut out = Effects::new();
        self.endpoint
            .handle_datagram(&mut moment, peer_of(member), datagram, &mut out);
        let (mut asked, mut received) = (Vec::new(), Vec::new());
        for effect in out.iter() {
            if let Effect::LookUpPsk {
                association,
                identity,
            } = effect
            {
                asked.push((association, String::from_utf8(identity.to_vec()).unwrap()));
            } else if let Effect::Received {
                association,
                content,
            } = effect
            {
                received.push((association, content.to_vec()));
            }
        }
        for (association, identity) in asked {
            self.identities.push(identity);
            self.endpoint
                .provide_psk(&mut moment, association, &[self.key], &mut out);
        }
        for (association, content) in received {
            self.endpoint.send(association, &content, &mut out).unwrap();
        }
        let mut answers = Vec::new();
        for effect in out.iter() {
            if let Effect::Send { datagram, .. } = effect {
                answers.push(datagram.to_vec());
            }
        }
        answers
    }
}
