//! Which laws hold for an endpoint of DTLS, whatever reaches it? (RFC 6347, RFC 9146)

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use dtls::{
    AssociationId, CipherSuite, ClientConfig, Config, ConnectionIdOffer, Effect, Effects, Endpoint,
    Moment, Resumption, TicketKey, Timestamp,
};

use crate::FuzzOutcome;
use crate::script::Script;

const KEY: &[u8] = &[7; 16];
const DATAGRAM_MAX: usize = 1_500;
/// Longer than a handshake may take.
const END_MS: u64 = 100_000;

/// Datagrams that nobody sent reach a server with a session and a handshake under way: each ends
/// where it came from, or is dropped; the session hears nothing, and stays.
pub(crate) fn server(bytes: &[u8]) -> FuzzOutcome {
    let mut pair = Pair::new(ConnectionIdOffer::Empty, Protection::Ccm8);
    pair.connect(None);
    while pair.pump() {}
    let session = pair
        .server_session
        .expect("a handshake without loss leads to a session");
    pair.connect(None);
    pair.pump();
    let mut script = Script::new(bytes);
    let mut is_answered = false;
    while !script.is_over() {
        let length = usize::from(script.byte()) << 3 | usize::from(script.byte() & 7);
        let datagram = script.bytes(length.min(DATAGRAM_MAX)).to_vec();
        let peer = match script.byte() & 3 {
            0 => client_address(1),
            _ => client_address(0),
        };
        let mut out = Effects::new();
        pair.at_server(|server, moment| server.handle_datagram(moment, peer, &datagram, &mut out));
        for effect in out.iter() {
            match effect {
                Effect::Send { peer: to, .. } => {
                    is_answered = true;
                    assert!(
                        to == peer || to == client_address(0),
                        "an answer to somebody else"
                    );
                }
                Effect::LookUpPsk { .. } | Effect::Failed { .. } => is_answered = true,
                Effect::Received { .. }
                | Effect::Established { .. }
                | Effect::AdmitPublicKey { .. }
                | Effect::AdmitCertificate { .. }
                | Effect::Moved { .. }
                | Effect::Closed { .. } => panic!("without the key: {effect:?}"),
            }
        }
        assert!(pair.server.association_count() <= 3);
    }
    assert_eq!(pair.server.peer(session), Some(client_address(0)));
    FuzzOutcome::read_if(is_answered)
}

/// A handshake and a few messages, of which the script changes, repeats, delays and drops
/// datagrams: a session is of the right peer or of none, and what is received was sent, once.
pub(crate) fn conversation(bytes: &[u8]) -> FuzzOutcome {
    let mut script = Script::new(bytes);
    let offer = match script.byte() % 3 {
        0 => ConnectionIdOffer::None,
        1 => ConnectionIdOffer::Empty,
        _ => ConnectionIdOffer::Own,
    };
    let choice = script.byte();
    let protection = match choice >> 1 & 3 {
        1 => Protection::EncryptThenMac,
        2 => Protection::MacThenEncrypt,
        _ => Protection::Ccm8,
    };
    let mut pair = Pair::new(offer, protection);
    pair.connect(None);
    if choice & 1 == 1 {
        while pair.pump() {}
        let resumption = pair.resumption.take();
        pair.connect(resumption);
    }
    let mut steps = 0;
    while !script.is_over() && steps < 64 {
        steps += 1;
        pair.step(&mut script);
    }
    let is_established = pair.server_session.is_some();
    pair.finish();
    FuzzOutcome::read_if(is_established)
}

/// How the records of a pair are protected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Protection {
    Ccm8,
    /// CBC (RFC 7366).
    EncryptThenMac,
    /// CBC (RFC 5246 section 6.2.3.2).
    MacThenEncrypt,
}

struct Pair {
    server: Endpoint,
    client: Endpoint,
    offer: ConnectionIdOffer,
    protection: Protection,
    now_ms: u64,
    state: u64,
    to_server: Vec<Vec<u8>>,
    to_client: Vec<Vec<u8>>,
    client_session: Option<AssociationId>,
    server_session: Option<AssociationId>,
    resumption: Option<Resumption>,
    port: u16,
    messages: u8,
    /// What each side has sent and received: true for the server.
    sent: BTreeSet<(bool, Vec<u8>)>,
    received: BTreeSet<(bool, Vec<u8>)>,
}

impl Pair {
    fn new(offer: ConnectionIdOffer, protection: Protection) -> Self {
        let config = Config {
            connection_id_prefix: (*b"s").into(),
            ticket_keys: vec![TicketKey::from_bytes([3; 32])],
            accepts_bare_cbc: true,
            ..Config::new([1; 32])
        };
        Self {
            server: Endpoint::new(Arc::new(config)),
            client: Endpoint::new(Arc::new(Config {
                accepts_clients: false,
                ..Config::new([2; 32])
            })),
            offer,
            protection,
            now_ms: 1_000_000,
            state: 1,
            to_server: Vec::new(),
            to_client: Vec::new(),
            client_session: None,
            server_session: None,
            resumption: None,
            port: 0,
            messages: 0,
            sent: BTreeSet::new(),
            received: BTreeSet::new(),
        }
    }

    fn connect(&mut self, resumption: Option<Resumption>) {
        let config = ClientConfig {
            connection_id: self.offer,
            resumption,
            // Without ephemeral keys, which cost more than all the rest.
            cipher_suites: vec![match self.protection {
                Protection::Ccm8 => CipherSuite::PskAes128Ccm8,
                Protection::EncryptThenMac | Protection::MacThenEncrypt => {
                    CipherSuite::PskAes128Cbc
                }
            }],
            offers_encrypt_then_mac: self.protection != Protection::MacThenEncrypt,
            ..ClientConfig::with_psk(b"meter-1", KEY)
        };
        let mut out = Effects::new();
        self.at_client(|client, moment| {
            client
                .connect(moment, server_address(), config, &mut out)
                .ok();
        });
        self.follow_client(&out);
    }

    /// One step of the script.
    fn step(&mut self, script: &mut Script<'_>) {
        let choice = script.byte();
        let is_to_server = choice & 1 == 0;
        let queue = match is_to_server {
            true => &mut self.to_server,
            false => &mut self.to_client,
        };
        let place = usize::from(script.byte()) % queue.len().max(1);
        match choice >> 1 & 7 {
            0 | 1 if place < queue.len() => {
                let datagram = queue.remove(place);
                self.deliver(is_to_server, &datagram);
            }
            2 if place < queue.len() => drop(queue.remove(place)),
            3 => {
                if let Some(datagram) = queue.get(place).cloned() {
                    queue.push(datagram);
                }
            }
            4 => {
                let (at, change) = (script.number() as usize, script.byte());
                if let Some(datagram) = queue.get_mut(place) {
                    let at = at % datagram.len().max(1);
                    datagram[at] ^= change;
                }
            }
            5 => {
                let byte = script.byte();
                self.now_ms += u64::from(byte) * 20;
                self.port = u16::from(byte & 1);
                self.handle_timeouts();
            }
            6 => self.send(is_to_server),
            _ => {
                let length = usize::from(script.byte());
                let datagram = script.bytes(length).to_vec();
                self.deliver(is_to_server, &datagram);
            }
        }
    }

    /// Delivers everything, and lets every timer run out: what is left is sessions.
    fn finish(&mut self) {
        let end_ms = self.now_ms + END_MS;
        while self.now_ms < end_ms {
            while self.pump() {}
            self.now_ms += 500;
            self.handle_timeouts();
        }
        assert_eq!(self.server.handshake_count(), 0);
        assert_eq!(self.client.handshake_count(), 0);
    }

    /// Delivers what is on its way; whether there was something.
    fn pump(&mut self) -> bool {
        let datagrams = std::mem::take(&mut self.to_server);
        let mut is_busy = !datagrams.is_empty();
        datagrams
            .iter()
            .for_each(|datagram| self.deliver(true, datagram));
        let datagrams = std::mem::take(&mut self.to_client);
        is_busy |= !datagrams.is_empty();
        datagrams
            .iter()
            .for_each(|datagram| self.deliver(false, datagram));
        is_busy
    }

    fn deliver(&mut self, is_to_server: bool, datagram: &[u8]) {
        let mut out = Effects::new();
        if is_to_server {
            let peer = client_address(self.port);
            self.at_server(|it, moment| it.handle_datagram(moment, peer, datagram, &mut out));
            self.follow_server(&out);
        } else {
            let peer = server_address();
            self.at_client(|it, moment| it.handle_datagram(moment, peer, datagram, &mut out));
            self.follow_client(&out);
        }
    }

    fn handle_timeouts(&mut self) {
        let mut out = Effects::new();
        self.at_server(|server, moment| server.handle_timeout(moment, &mut out));
        self.follow_server(&out);
        out.clear();
        self.at_client(|client, moment| client.handle_timeout(moment, &mut out));
        self.follow_client(&out);
    }

    /// Sends a message that was never sent before.
    fn send(&mut self, is_by_server: bool) {
        let (endpoint, session) = match is_by_server {
            true => (&mut self.server, self.server_session),
            false => (&mut self.client, self.client_session),
        };
        let Some(session) = session else {
            return;
        };
        self.messages = self.messages.wrapping_add(1);
        let content = vec![self.messages; 1 + usize::from(self.messages)];
        let mut out = Effects::new();
        if endpoint.send(session, &content, &mut out).is_err() {
            return;
        }
        self.sent.insert((is_by_server, content));
        match is_by_server {
            true => self.follow_server(&out),
            false => self.follow_client(&out),
        }
    }

    fn receive(&mut self, is_by_server: bool, content: &[u8]) {
        let content = content.to_vec();
        let was_sent = self.sent.contains(&(!is_by_server, content.clone()));
        assert!(was_sent, "nobody sent what was received");
        let is_first = self.received.insert((is_by_server, content));
        assert!(is_first, "received twice");
    }

    fn follow_server(&mut self, out: &Effects) {
        let mut look_ups = Vec::new();
        for effect in out.iter() {
            match effect {
                Effect::Send { datagram, .. } => self.to_client.push(datagram.to_vec()),
                Effect::LookUpPsk { association, .. } => look_ups.push(association),
                Effect::Established { association, .. } => self.server_session = Some(association),
                Effect::Received { content, .. } => self.receive(true, content),
                Effect::AdmitPublicKey { .. } | Effect::AdmitCertificate { .. } => {
                    panic!("only pre-shared keys")
                }
                Effect::Moved { .. } | Effect::Closed { .. } | Effect::Failed { .. } => (),
            }
        }
        for id in look_ups {
            let mut out = Effects::new();
            self.at_server(|server, moment| server.provide_psk(moment, id, &[KEY], &mut out));
            self.follow_server(&out);
        }
    }

    fn follow_client(&mut self, out: &Effects) {
        for effect in out.iter() {
            match effect {
                Effect::Send { datagram, .. } => self.to_server.push(datagram.to_vec()),
                Effect::Established {
                    association,
                    resumption,
                    ..
                } => {
                    self.client_session = Some(association);
                    self.resumption = resumption.cloned();
                }
                Effect::Received { content, .. } => self.receive(false, content),
                Effect::LookUpPsk { .. } => panic!("a client needs no key of others"),
                Effect::AdmitPublicKey { .. } | Effect::AdmitCertificate { .. } => {
                    panic!("only pre-shared keys")
                }
                Effect::Moved { .. } | Effect::Closed { .. } | Effect::Failed { .. } => (),
            }
        }
    }

    fn at_server(&mut self, call: impl FnOnce(&mut Endpoint, &mut Moment<'_>)) {
        let state = &mut self.state;
        let mut entropy = |bytes: &mut [u8]| fill(state, bytes);
        let mut moment = Moment {
            now: Timestamp::from_ms(self.now_ms),
            entropy: &mut entropy,
        };
        call(&mut self.server, &mut moment);
    }

    fn at_client(&mut self, call: impl FnOnce(&mut Endpoint, &mut Moment<'_>)) {
        let state = &mut self.state;
        let mut entropy = |bytes: &mut [u8]| fill(state, bytes);
        let mut moment = Moment {
            now: Timestamp::from_ms(self.now_ms),
            entropy: &mut entropy,
        };
        call(&mut self.client, &mut moment);
    }
}

fn server_address() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 5_684))
}

fn client_address(port: u16) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 7], 40_000 + port))
}

/// SplitMix64, so that a run is determined by its input.
fn fill(state: &mut u64, bytes: &mut [u8]) {
    for byte in bytes {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        *byte = (mixed ^ (mixed >> 31)) as u8;
    }
}
