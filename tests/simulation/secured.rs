//! How does a simulated device speak DTLS? A client of the crate `dtls`, its session, and what
//! waits for a handshake.
//!
//! A device changes its key when it is given another one, and then makes a session with that. What
//! it had before may be in other hands.
//!
//! A client that is not heard for a while after it has spoken resumes its session: so it notices
//! that the service has lost it, or that a NAT has given it another address.

use std::net::SocketAddr;
use std::sync::Arc;

use dtls::{
    AssociationId, CipherSuite, ClientConfig, CloseReason, Config, ConnectionIdOffer, Effect,
    Effects, Endpoint, Moment, Resumption, Timestamp,
};

/// Where the service is.
const SERVICE: ([u8; 4], u16) = ([192, 0, 2, 1], 5_684);

/// How long a device waits for an answer until it makes a handshake.
const UNHEARD_MS: i64 = 30_000;

/// How many messages wait for a handshake; further ones are lost.
const WAITING_MAX: usize = 4;

/// The DTLS of a device.
pub(crate) struct SecuredClient {
    endpoint: Endpoint,
    credentials: ClientConfig,
    state: State,
    waiting: Vec<Vec<u8>>,
    resumption: Option<Resumption>,
    /// When the device first spoke without being heard since.
    unheard_since_ms: Option<i64>,
    /// When it is woken next.
    pub(crate) armed_at_ms: Option<i64>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Nothing,
    Handshake(AssociationId),
    Session(AssociationId),
}

/// Whose client it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ClientRole {
    /// That of the device.
    Device,
    /// That over which the device downloads, at a port of its own.
    Downloads,
    /// That of somebody else, who has a key of the device that has ended.
    Impostor,
}

/// What a client does.
pub(crate) enum ClientOutput {
    Send(Vec<u8>),
    /// A message of the service has arrived.
    Hear(Vec<u8>),
    /// A handshake has failed.
    Fail,
}

/// A key of a device, and the ticket of a session with it.
#[derive(Clone)]
pub(crate) struct FormerKey {
    pub(crate) key: Box<[u8]>,
    pub(crate) resumption: Option<Resumption>,
}

impl SecuredClient {
    /// A client with this key. One without Connection ID is known by its address.
    pub(crate) fn new(identity: &str, key: &[u8], connection_id: ConnectionIdOffer) -> Self {
        Self::of(ClientConfig {
            // Ephemeral keys would not follow from the seed.
            cipher_suites: vec![CipherSuite::PskAes128Ccm8],
            connection_id,
            // As the clients that are known to have neither.
            accepts_tickets: connection_id != ConnectionIdOffer::None,
            ..ClientConfig::with_psk(identity.as_bytes(), key)
        })
    }

    fn of(credentials: ClientConfig) -> Self {
        Self {
            endpoint: endpoint(),
            credentials,
            state: State::Nothing,
            waiting: Vec::new(),
            resumption: None,
            unheard_since_ms: None,
            armed_at_ms: None,
        }
    }

    /// Another client of the same identity, with this key.
    pub(crate) fn with(&self, key: FormerKey) -> Self {
        let Self { credentials, .. } = self;
        Self {
            resumption: key.resumption,
            ..Self::of(ClientConfig {
                psk: key.key,
                ..credentials.clone()
            })
        }
    }

    /// Uses a key from now on. Returns the one before, if it is another.
    pub(crate) fn use_key(&mut self, key: &[u8]) -> Option<FormerKey> {
        if *self.credentials.psk == *key {
            return None;
        }
        self.power_off();
        Some(FormerKey {
            key: std::mem::replace(&mut self.credentials.psk, key.into()),
            resumption: self.resumption.take(),
        })
    }

    /// The key that is used.
    pub(crate) fn key(&self) -> &[u8] {
        &self.credentials.psk
    }

    /// The device loses its session; it keeps its ticket.
    pub(crate) fn power_off(&mut self) {
        self.endpoint = endpoint();
        self.state = State::Nothing;
        self.waiting.clear();
        self.unheard_since_ms = None;
    }

    /// Sends a message over the session, or begins a handshake for it.
    pub(crate) fn say(
        &mut self,
        m: &mut Moment<'_>,
        message: Vec<u8>,
        out: &mut Vec<ClientOutput>,
    ) {
        let now_ms = m.now.as_ms() as i64;
        let since_ms = *self.unheard_since_ms.get_or_insert(now_ms);
        let is_lost = now_ms - since_ms > UNHEARD_MS;
        match self.state {
            State::Session(id) if !is_lost => {
                let mut effects = Effects::new();
                let sent = self.endpoint.send(id, &message, &mut effects);
                sent.expect("a message of a device fits into a record");
                return self.perform(m, &effects, out);
            }
            State::Session(id) => {
                self.endpoint.forget(id);
                self.state = State::Nothing;
            }
            State::Handshake(_) | State::Nothing => {}
        }
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push(message);
        }
        if self.state == State::Nothing {
            self.unheard_since_ms = None;
            self.connect(m, out);
        }
    }

    pub(crate) fn handle_record(
        &mut self,
        m: &mut Moment<'_>,
        record: &[u8],
        out: &mut Vec<ClientOutput>,
    ) {
        let mut effects = Effects::new();
        let service = SocketAddr::from(SERVICE);
        self.endpoint
            .handle_datagram(m, service, record, &mut effects);
        self.perform(m, &effects, out);
    }

    pub(crate) fn handle_timeout(&mut self, m: &mut Moment<'_>, out: &mut Vec<ClientOutput>) {
        let mut effects = Effects::new();
        self.endpoint.handle_timeout(m, &mut effects);
        self.perform(m, &effects, out);
    }

    pub(crate) fn next_timeout_ms(&self) -> Option<i64> {
        self.endpoint
            .next_timeout()
            .map(|at: Timestamp| at.as_ms() as i64)
    }

    fn connect(&mut self, m: &mut Moment<'_>, out: &mut Vec<ClientOutput>) {
        let mut effects = Effects::new();
        let credentials = ClientConfig {
            resumption: self.resumption.clone(),
            ..self.credentials.clone()
        };
        let id = self
            .endpoint
            .connect(m, SERVICE.into(), credentials, &mut effects)
            .expect("one handshake at a time");
        self.state = State::Handshake(id);
        self.perform(m, &effects, out);
    }

    fn perform(&mut self, m: &mut Moment<'_>, effects: &Effects, out: &mut Vec<ClientOutput>) {
        for effect in effects.iter() {
            match effect {
                Effect::Send { datagram, .. } => out.push(ClientOutput::Send(datagram.to_vec())),
                Effect::Established {
                    association,
                    resumption,
                    ..
                } => {
                    self.state = State::Session(association);
                    self.resumption = resumption.cloned();
                    for message in std::mem::take(&mut self.waiting) {
                        self.say(m, message, out);
                    }
                }
                Effect::Received { content, .. } => {
                    self.unheard_since_ms = None;
                    out.push(ClientOutput::Hear(content.to_vec()));
                }
                Effect::Closed {
                    association,
                    reason,
                } if self.state == State::Session(association) => {
                    self.state = State::Nothing;
                    // RFC 5246 section 7.2.2: a session is not resumed after a fatal alert.
                    self.resumption
                        .take_if(|_| matches!(reason, CloseReason::Alert(_)));
                }
                Effect::Failed { association, .. }
                    if self.state == State::Handshake(association) =>
                {
                    // The next message begins another handshake, in full.
                    self.state = State::Nothing;
                    self.resumption = None;
                    self.waiting.clear();
                    out.push(ClientOutput::Fail);
                }
                Effect::Closed { .. } | Effect::Failed { .. } | Effect::Moved { .. } => {}
                Effect::LookUpPsk { .. }
                | Effect::AdmitPublicKey { .. }
                | Effect::AdmitCertificate { .. } => panic!("a client asks for no keys"),
            }
        }
    }
}

fn endpoint() -> Endpoint {
    Endpoint::new(Arc::new(Config {
        accepts_clients: false,
        ..Config::new([0; 32])
    }))
}
