//! Which laws hold for an endpoint of DTLS, whatever reaches it? (RFC 6347, RFC 9146)

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use dtls::{
    AssociationId, CertificateChain, CipherSuite, ClientConfig, Config, ConnectionIdOffer, Effect,
    Effects, Endpoint, Moment, Resumption, SigningKey, TicketKey, Timestamp,
};

use crate::FuzzOutcome;
use crate::script::Script;

const KEY: &[u8] = &[7; 16];
/// Of the client, and the key that it certifies.
const CERTIFICATE: &[u8] = include_bytes!("../fixtures/certificate.der");
const PRIVATE_KEY: &[u8] = include_bytes!("../fixtures/private_key.der");
const DATAGRAM_MAX: usize = 1_500;
/// Longer than a handshake may take.
const END_MS: u64 = 100_000;

/// Datagrams that nobody sent reach a server with a session and a handshake under way: each ends
/// where it came from, or is dropped; the session hears nothing, and stays.
pub(crate) fn server(bytes: &[u8]) -> FuzzOutcome {
    let mut pair = Pair::new(ConnectionIdOffer::Empty, Proof::PreSharedKey);
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
    let choice = script.byte();
    let offer = match choice % 3 {
        0 => ConnectionIdOffer::None,
        1 => ConnectionIdOffer::Empty,
        _ => ConnectionIdOffer::Own,
    };
    // Ephemeral keys cost more than all the rest: one conversation in four has them.
    let proof = match choice / 3 % 12 {
        7 => Proof::PreSharedKeyEncryptThenMac,
        8 => Proof::PreSharedKeyMacThenEncrypt,
        9 => Proof::PreSharedKeyBesideEphemeral,
        10 => Proof::PublicKey,
        11 => Proof::Certificate,
        _ => Proof::PreSharedKey,
    };
    let mut pair = Pair::new(offer, proof);
    pair.connect(None);
    if script.byte() & 1 == 1 {
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

/// How the client proves itself, and with CBC in which order records are protected.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Proof {
    PreSharedKey,
    /// RFC 7366.
    PreSharedKeyEncryptThenMac,
    /// RFC 5246 section 6.2.3.2.
    PreSharedKeyMacThenEncrypt,
    PreSharedKeyBesideEphemeral,
    PublicKey,
    Certificate,
}

struct Pair {
    server: Endpoint,
    client: Endpoint,
    client_config: ClientConfig,
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
    fn new(offer: ConnectionIdOffer, proof: Proof) -> Self {
        let server_key = signing_key(&[2; 32]);
        let certified = |key| ClientConfig::with_signing_key(key, server_key.public_key());
        let with_psk = |suite| ClientConfig {
            cipher_suites: vec![suite],
            ..ClientConfig::with_psk(b"meter-1", KEY)
        };
        let client_config = match proof {
            Proof::PreSharedKey => with_psk(CipherSuite::PskAes128Ccm8),
            Proof::PreSharedKeyEncryptThenMac => with_psk(CipherSuite::PskAes128Cbc),
            Proof::PreSharedKeyMacThenEncrypt => ClientConfig {
                offers_encrypt_then_mac: false,
                ..with_psk(CipherSuite::PskAes128Cbc)
            },
            Proof::PreSharedKeyBesideEphemeral => with_psk(CipherSuite::EcdhePskAes128Ccm8),
            Proof::PublicKey => certified(signing_key(&[3; 32])),
            Proof::Certificate => {
                let key = SigningKey::from_der(PRIVATE_KEY, vec![CERTIFICATE.into()]);
                certified(Arc::new(key.expect("the key of the certificate")))
            }
        };
        let config = Config {
            server_key: Some(Arc::clone(&server_key)),
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
            client_config: ClientConfig {
                connection_id: offer,
                ..client_config
            },
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
            resumption,
            ..self.client_config.clone()
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
        let (mut look_ups, mut proved) = (Vec::new(), Vec::new());
        for effect in out.iter() {
            match effect {
                Effect::Send { datagram, .. } => self.to_client.push(datagram.to_vec()),
                Effect::LookUpPsk { association, .. } => look_ups.push(association),
                Effect::AdmitPublicKey {
                    association,
                    public_key,
                } => {
                    let known = self.client_config.signing_key.as_ref();
                    let known = known.map(|key| key.public_key());
                    assert_eq!(known, Some(public_key), "the key of nobody is proved");
                    proved.push(association);
                }
                Effect::AdmitCertificate { association, chain } => {
                    let known = CertificateChain::of(&[CERTIFICATE]);
                    assert_eq!(known.as_ref(), Some(chain), "the key of nobody is proved");
                    proved.push(association);
                }
                Effect::Established { association, .. } => self.server_session = Some(association),
                Effect::Received { content, .. } => self.receive(true, content),
                Effect::Moved { .. } | Effect::Closed { .. } | Effect::Failed { .. } => (),
            }
        }
        for id in look_ups {
            let mut out = Effects::new();
            self.at_server(|server, moment| server.provide_psk(moment, id, &[KEY], &mut out));
            self.follow_server(&out);
        }
        for id in proved {
            let mut out = Effects::new();
            self.at_server(|server, moment| {
                // One of both is what it awaits.
                server.admit(moment, id, &mut out);
                server.admit_as(moment, id, b"meter-1", &mut out);
            });
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
                    panic!("a client admits nobody")
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

fn signing_key(scalar: &[u8; 32]) -> Arc<SigningKey> {
    Arc::new(SigningKey::from_scalar(scalar).expect("a private key"))
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
