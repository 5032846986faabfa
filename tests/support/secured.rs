//! How does a device of a test speak CoAP over DTLS, and change its address?

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dtls::{
    AssociationId, ClientConfig, Config, Effect, Effects, Endpoint, HandshakeFailure, Moment,
    Resumption, Security, SigningKey, Timestamp,
};
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageKind};
use serde_json::{Value, json};

use super::caller::{API, Caller};
use super::poll::PATIENCE;
use super::service::Service;
use super::wire::{REPEATED_AFTER, location_of};

/// How long a device waits for a datagram before it looks at its timers.
const LOOK_AFTER: Duration = Duration::from_millis(50);

/// How long a handshake of a test may take before it is given up.
const GIVE_UP_MS: u64 = 20_000;

/// A device that speaks CoAP over DTLS.
pub(crate) struct SecuredDevice {
    ip: String,
    socket: UdpSocket,
    endpoint: Endpoint,
    association: Option<AssociationId>,
    resumption: Option<Resumption>,
    /// Whether its sessions are resumed by tickets; otherwise they are by their ids.
    pub(crate) accepts_tickets: bool,
    received: Vec<Message>,
}

impl SecuredDevice {
    /// A device at an address, without a session.
    pub(crate) fn at(ip: &str, service: &Service) -> Self {
        let mut config = Config::new([0; 32]);
        config.accepts_clients = false;
        config.retransmission.give_up_ms = GIVE_UP_MS;
        Self {
            ip: ip.to_owned(),
            socket: socket_to(ip, service),
            endpoint: Endpoint::new(Arc::new(config)),
            association: None,
            resumption: None,
            accepts_tickets: true,
            received: Vec::new(),
        }
    }

    /// A device with a session that its pre-shared key has begun.
    pub(crate) fn connected(ip: &str, service: &Service, identity: &str, key: &str) -> Self {
        let mut device = Self::at(ip, service);
        device.connect(identity, key).unwrap();
        device
    }

    /// Makes a full handshake.
    pub(crate) fn connect(
        &mut self,
        identity: &str,
        key: impl AsRef<[u8]>,
    ) -> Result<Security, HandshakeFailure> {
        self.begin(ClientConfig::with_psk(identity.as_bytes(), key.as_ref()))
    }

    /// Makes a full handshake with a key that signs it, shown raw or by a certificate.
    pub(crate) fn prove(
        &mut self,
        key: &Arc<SigningKey>,
        server_public_key: &[u8],
    ) -> Result<Security, HandshakeFailure> {
        let client = ClientConfig::with_signing_key(Arc::clone(key), server_public_key);
        self.begin(client)
    }

    /// Resumes the last session, with a handshake that needs no key if the service agrees.
    pub(crate) fn resume(
        &mut self,
        identity: &str,
        key: &str,
    ) -> Result<Security, HandshakeFailure> {
        let mut client = ClientConfig::with_psk(identity.as_bytes(), key.as_bytes());
        client.resumption = self.resumption.take();
        assert!(client.resumption.is_some(), "there was no session");
        self.begin(client)
    }

    /// The keys of its session, which ends with it.
    pub(crate) fn into_session_keys(self) -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        self.endpoint.export(|record| {
            // The format, the id, a time, the IPv4 address and the suite precede the keys. Each has
            // 16 bytes, and four more are the beginning of its nonces.
            let rest = &record[25..];
            keys.extend([&rest[..16], &rest[20..36]].map(<[u8]>::to_vec));
        });
        assert_eq!(keys.len(), 2);
        keys
    }

    /// Makes the handshake that this configuration leads to.
    pub(crate) fn begin(&mut self, client: ClientConfig) -> Result<Security, HandshakeFailure> {
        let client = ClientConfig {
            accepts_tickets: self.accepts_tickets,
            ..client
        };
        if let Some(earlier) = self.association.take() {
            self.endpoint.forget(earlier);
        }
        let server = self.socket.peer_addr().unwrap();
        let mut out = Effects::new();
        let mut entropy = |bytes: &mut [u8]| getrandom::fill(bytes).unwrap();
        let begun = self
            .endpoint
            .connect(&mut moment(&mut entropy), server, client, &mut out);
        self.association = Some(begun.unwrap());
        let mut ended = self.perform(&out);
        let deadline = Instant::now() + PATIENCE;
        while ended.is_none() {
            assert!(Instant::now() < deadline, "the handshake did not end");
            ended = self.step();
        }
        ended.expect("the loop ends with it")
    }

    /// Goes on at another port, as behind a NAT; what is sent to the former one is lost.
    pub(crate) fn move_to_another_port(&mut self, service: &Service) {
        self.socket = socket_to(&self.ip, service);
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, message: &Message) {
        let association = self.association.expect("there is a session");
        let mut out = Effects::new();
        let sent = self.endpoint.send(association, &message.encode(), &mut out);
        sent.unwrap();
        self.perform(&out);
    }

    /// Sends a request, repeats it as a device does, and receives the acknowledgement that answers
    /// it; other messages are kept.
    pub(crate) fn ask(&mut self, request: &Message) -> Message {
        let is_answer = |message: &Message| {
            message.kind == MessageKind::Acknowledgement && message.message_id == request.message_id
        };
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.send(request);
            let repeat_at = Instant::now() + REPEATED_AFTER;
            if let Some(answer) = self.receive_until(repeat_at, is_answer) {
                return answer;
            }
            assert!(Instant::now() < deadline, "nothing was received");
        }
    }

    /// The next request received.
    pub(crate) fn receive_request(&mut self) -> Message {
        self.receive(|message| message.code.is_request())
    }

    /// Registers and returns the location.
    pub(crate) fn register(&mut self, registration: &Message) -> Vec<String> {
        let answer = self.ask(registration);
        assert_eq!(answer.code, Code::CREATED, "{answer:?}");
        location_of(&answer)
    }

    fn receive(&mut self, is_it: impl Fn(&Message) -> bool) -> Message {
        let received = self.receive_until(Instant::now() + PATIENCE, is_it);
        received.expect("nothing was received")
    }

    fn receive_until(
        &mut self,
        deadline: Instant,
        is_it: impl Fn(&Message) -> bool,
    ) -> Option<Message> {
        loop {
            if let Some(place) = self.received.iter().position(&is_it) {
                return Some(self.received.remove(place));
            }
            if Instant::now() > deadline {
                return None;
            }
            self.step();
        }
    }

    /// Receives a datagram, or does what is due if there is none.
    fn step(&mut self) -> Option<Result<Security, HandshakeFailure>> {
        let mut entropy = |bytes: &mut [u8]| getrandom::fill(bytes).unwrap();
        let mut buffer = [0; 2_048];
        let mut out = Effects::new();
        match self.socket.recv(&mut buffer) {
            Ok(length) => {
                let server = self.socket.peer_addr().unwrap();
                let datagram = &buffer[..length];
                self.endpoint.handle_datagram(
                    &mut moment(&mut entropy),
                    server,
                    datagram,
                    &mut out,
                );
            }
            Err(_) => self
                .endpoint
                .handle_timeout(&mut moment(&mut entropy), &mut out),
        }
        self.perform(&out)
    }

    fn perform(&mut self, effects: &Effects) -> Option<Result<Security, HandshakeFailure>> {
        let mut ended = None;
        for effect in effects.iter() {
            match effect {
                // A killed service is reported by the send after the next.
                Effect::Send { datagram, .. } => drop(self.socket.send(datagram)),
                Effect::Established {
                    security,
                    resumption,
                    ..
                } => {
                    self.resumption = resumption.cloned();
                    ended = Some(Ok(security));
                }
                Effect::Failed { reason, .. } => ended = Some(Err(reason)),
                Effect::Received { content, .. } => {
                    self.received.push(Message::decode(content).unwrap());
                }
                Effect::LookUpPsk { .. }
                | Effect::AdmitPublicKey { .. }
                | Effect::AdmitCertificate { .. }
                | Effect::Moved { .. }
                | Effect::Closed { .. } => {}
            }
        }
        ended
    }
}

impl Caller {
    /// Creates a device that is known by its pre-shared key; the identity is its id.
    pub(crate) fn create_secured_device(&self, id: &str, key: &str) {
        let body = json!({ "deviceId": id });
        self.post(&format!("{API}/devices"), &body).expect(201);
        self.give_psk(id, key);
    }

    /// Sets the pre-shared key of a device.
    pub(crate) fn give_psk(&self, id: &str, key: &str) {
        let body = json!({ "secretKey": key, "format": "STRING" });
        let path = format!("{API}/devices/{id}/psk");
        let given = self.post(&path, &body);
        assert_eq!(given.status, 204, "{}", given.text());
    }

    /// Changes a device.
    pub(crate) fn amend_device(&self, id: &str, body: &Value) {
        let path = format!("{API}/devices/{id}");
        let answer = self.try_send("PATCH", &path, body).unwrap();
        answer.expect(200);
    }
}

/// A moment of the system's clock and entropy.
fn moment<'e>(entropy: &'e mut dyn dtls::Entropy) -> Moment<'e> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Moment {
        now: Timestamp::from_ms(u64::try_from(now.as_millis()).unwrap()),
        entropy,
    }
}

fn socket_to(ip: &str, service: &Service) -> UdpSocket {
    let socket = UdpSocket::bind((ip, 0)).unwrap();
    socket.connect(service.coaps).unwrap();
    socket.set_read_timeout(Some(LOOK_AFTER)).unwrap();
    socket
}
