//! Messages in every order, sent by somebody who sees what the server answers. The table of the
//! README says what becomes of each.

use std::net::SocketAddr;
use std::sync::Arc;

use dtls::{
    AlertDescription, ClientConfig, Config, Effect, Effects, Endpoint, HandshakeFailure, Moment,
    SigningKey, Timestamp,
};
use rcgen::KeyPair;

use crate::network::{Host, Network, psk_client, server_config};

/// How many messages follow the ones before the cookie.
const MESSAGES: usize = 4;

const HANDSHAKE: u8 = 22;
const ALERT: u8 = 21;
const CHANGE_CIPHER_SPEC: u8 = 20;
const RECORD_HEADER: usize = 13;
const MESSAGE_HEADER: usize = 12;

/// What somebody sends: a message by its type (RFC 5246 section 7.4), or a ChangeCipherSpec.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sent {
    HelloRequest = 0,
    ClientHello = 1,
    ServerHello = 2,
    HelloVerifyRequest = 3,
    NewSessionTicket = 4,
    Certificate = 11,
    ServerKeyExchange = 12,
    CertificateRequest = 13,
    ServerHelloDone = 14,
    CertificateVerify = 15,
    ClientKeyExchange = 16,
    /// Not protected.
    Finished = 20,
    ChangeCipherSpec = 255,
}

pub(crate) const ALL: [Sent; 13] = [
    Sent::HelloRequest,
    Sent::ClientHello,
    Sent::ServerHello,
    Sent::HelloVerifyRequest,
    Sent::NewSessionTicket,
    Sent::Certificate,
    Sent::ServerKeyExchange,
    Sent::CertificateRequest,
    Sent::ServerHelloDone,
    Sent::CertificateVerify,
    Sent::ClientKeyExchange,
    Sent::Finished,
    Sent::ChangeCipherSpec,
];

/// What the server awaits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// There is no handshake.
    Nothing,
    Certificate,
    ClientKeyExchange,
    CertificateVerify,
    /// Which is protected.
    Finished,
}

/// What the server does at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Reaction {
    Nothing,
    Flight,
    LooksUpPsk,
    Ends(AlertDescription),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Keys {
    PreShared,
    Certified,
}

/// The table.
fn next(keys: Keys, state: State, sent: Sent) -> (State, Reaction) {
    match (state, sent) {
        (_, Sent::Finished | Sent::ChangeCipherSpec) => (state, Reaction::Nothing),
        (State::Nothing, Sent::ClientHello) => match keys {
            Keys::PreShared => (State::ClientKeyExchange, Reaction::Flight),
            Keys::Certified => (State::Certificate, Reaction::Flight),
        },
        (State::Nothing, _) => (state, Reaction::Nothing),
        (State::Certificate, Sent::Certificate) => (State::ClientKeyExchange, Reaction::Nothing),
        (State::ClientKeyExchange, Sent::ClientKeyExchange) => match keys {
            Keys::PreShared => (State::Finished, Reaction::LooksUpPsk),
            Keys::Certified => (State::CertificateVerify, Reaction::Nothing),
        },
        // It proves the key in another handshake.
        (State::CertificateVerify, Sent::CertificateVerify) => (
            State::Nothing,
            Reaction::Ends(AlertDescription::DECRYPT_ERROR),
        ),
        (_, _) => (
            State::Nothing,
            Reaction::Ends(AlertDescription::UNEXPECTED_MESSAGE),
        ),
    }
}

#[test]
fn every_order_of_messages_before_a_pre_shared_key_ends_as_the_table_says() {
    check(Keys::PreShared, server_config(), psk_client());
}

#[test]
fn every_order_of_messages_around_certificates_ends_as_the_table_says() {
    let key = || {
        let key = KeyPair::generate().unwrap().serialize_der();
        Arc::new(SigningKey::from_der(&key, Vec::new()).unwrap())
    };
    let server_key = key();
    let server = Config {
        server_key: Some(Arc::clone(&server_key)),
        ..server_config()
    };
    let client = ClientConfig::with_signing_key(key(), server_key.public_key());
    check(Keys::Certified, server, client);
}

fn check(keys: Keys, server: Config, client: ClientConfig) {
    let known = Recording::of(server, client);
    let mut orders: Vec<Vec<Sent>> = vec![Vec::new()];
    for _ in 0..MESSAGES {
        let longer = orders.iter().flat_map(|order| {
            ALL.into_iter()
                .map(|sent| [order.as_slice(), &[sent]].concat())
        });
        orders = longer.collect();
    }
    assert_eq!(orders.len(), ALL.len().pow(MESSAGES as u32));
    for order in orders {
        let mut conversation = Conversation::new(&known);
        let mut state = State::Nothing;
        for (place, sent) in order.iter().enumerate() {
            let (then, expected) = next(keys, state, *sent);
            let reaction = conversation.send(*sent, state != State::Nothing);
            assert_eq!(reaction, expected, "{place} of {order:?} in {state:?}");
            state = then;
            let count = usize::from(state != State::Nothing);
            assert_eq!(conversation.server.association_count(), count, "{order:?}");
        }
    }
}

/// What a client and a server said in a handshake that succeeded.
struct Recording {
    config: Arc<Config>,
    client: SocketAddr,
    now: Timestamp,
    /// The bodies of messages, the latest of each type.
    bodies: [Vec<u8>; 21],
}

impl Recording {
    fn of(server: Config, client: ClientConfig) -> Self {
        let config = Arc::new(server.clone());
        let mut network = Network::with(server, 1);
        let now = network.now;
        if let Some(key) = &client.signing_key {
            network.public_keys.insert(key.public_key().to_vec());
        }
        network.session(client);
        network.security(Host::Server);
        let mut bodies: [Vec<u8>; 21] = Default::default();
        for (_, datagram) in &network.sent {
            let mut rest = &datagram[..];
            // In epoch 0 a message is not protected.
            while let [HANDSHAKE, _, _, 0, 0, ..] = rest {
                let length = usize::from(u16::from_be_bytes([rest[11], rest[12]]));
                let (fragment, after) = rest[RECORD_HEADER..].split_at(length);
                rest = after;
                let body = fragment[MESSAGE_HEADER..].to_vec();
                assert_eq!(fragment[1..4], fragment[9..12], "a whole message");
                bodies[usize::from(fragment[0])] = body;
            }
        }
        Self {
            config,
            client: network.client_address,
            now,
            bodies,
        }
    }
}

/// One order, sent to a server of its own.
struct Conversation<'r> {
    known: &'r Recording,
    server: Endpoint,
    records: u8,
    /// The number of the message that the server awaits.
    awaited: u8,
}

impl<'r> Conversation<'r> {
    fn new(known: &'r Recording) -> Self {
        Self {
            known,
            server: Endpoint::new(Arc::clone(&known.config)),
            records: 0,
            awaited: 1,
        }
    }

    fn send(&mut self, sent: Sent, is_under_way: bool) -> Reaction {
        let (content_type, content) = match sent == Sent::ChangeCipherSpec {
            true => (CHANGE_CIPHER_SPEC, vec![1]),
            false => (HANDSHAKE, self.message(sent)),
        };
        self.records += 1;
        let mut datagram = vec![content_type, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, self.records];
        datagram.extend_from_slice(&(content.len() as u16).to_be_bytes());
        datagram.extend_from_slice(&content);
        let is_taken = is_under_way || sent == Sent::ClientHello;
        self.awaited += u8::from(is_taken && !is_outside_order(sent));
        let out = self.call(|server, moment, out| {
            server.handle_datagram(moment, self.known.client, &datagram, out);
        });
        self.react(&out)
    }

    fn message(&self, sent: Sent) -> Vec<u8> {
        let body = &self.known.bodies[sent as usize];
        let length = (body.len() as u32).to_be_bytes();
        let header = [
            &[sent as u8],
            &length[1..],
            &[0, self.awaited],
            &[0, 0, 0],
            &length[1..],
        ];
        [&header.concat()[..], body].concat()
    }

    fn call(&mut self, call: impl FnOnce(&mut Endpoint, &mut Moment<'_>, &mut Effects)) -> Effects {
        let mut out = Effects::new();
        let mut entropy = |bytes: &mut [u8]| bytes.fill(5);
        let mut moment = Moment {
            now: self.known.now,
            entropy: &mut entropy,
        };
        call(&mut self.server, &mut moment, &mut out);
        out
    }

    /// What the effects are together. A pre-shared key is provided at once.
    fn react(&mut self, out: &Effects) -> Reaction {
        let mut reaction = Reaction::Nothing;
        let mut alerts = Vec::new();
        let mut asked = None;
        for effect in out.iter() {
            match effect {
                Effect::Send { datagram, .. } if datagram[0] == ALERT => {
                    alerts.push(datagram[RECORD_HEADER + 1]);
                }
                Effect::Send { .. } => reaction = Reaction::Flight,
                Effect::LookUpPsk { association, .. } => {
                    reaction = Reaction::LooksUpPsk;
                    asked = Some(association);
                }
                Effect::Failed {
                    reason: HandshakeFailure::Refused(description),
                    ..
                } => reaction = Reaction::Ends(description),
                Effect::AdmitPublicKey { .. }
                | Effect::AdmitCertificate { .. }
                | Effect::Established { .. }
                | Effect::Received { .. }
                | Effect::Moved { .. }
                | Effect::Closed { .. }
                | Effect::Failed { .. } => panic!("{effect:?}"),
            }
        }
        match reaction {
            Reaction::Ends(description) => assert_eq!(alerts, [description.0]),
            Reaction::Nothing | Reaction::Flight | Reaction::LooksUpPsk => {
                assert!(alerts.is_empty(), "{alerts:?}");
            }
        }
        if let Some(association) = asked {
            let then = self.call(|server, moment, out| {
                server.provide_psk(moment, association, &[crate::network::KEY], out);
            });
            assert!(then.is_empty());
        }
        reaction
    }
}

/// Whether the server never counts it: it is not numbered, or not protected where it must be.
fn is_outside_order(sent: Sent) -> bool {
    matches!(sent, Sent::Finished | Sent::ChangeCipherSpec)
}
