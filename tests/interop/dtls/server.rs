//! How does the server for DTLS clients receive and answer? One socket, one thread, one endpoint of
//! the crate `dtls`: CoAP requests get a greeting, everything else comes back as it was.

use std::fs::File;
use std::io::Read;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dtls::{
    AssociationId, Config, Effect, Effects, Endpoint, HandshakeFailure, Identity, Moment, Security,
    Timestamp,
};

use crate::vocabulary::poll::until;

pub(crate) const IDENTITY: &str = "meter-1";
pub(crate) const KEY: &[u8; 16] = b"0123456789abcdef";

/// How often the server checks whether it is to stop, and whether a timer is due.
const LOOK: Duration = Duration::from_millis(20);

/// A finished handshake.
#[derive(Clone, Debug)]
pub(crate) struct Handshake {
    pub(crate) identity: Identity,
    pub(crate) security: Security,
}

/// The keys without a pre-shared one that a server knows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum KnownKeys {
    /// Every raw public key.
    All,
    None,
    /// Those in certificates of the authority with this certificate.
    CertifiedBy(Box<[u8]>),
}

/// What the server has noted.
#[derive(Debug, Default)]
struct Notes {
    handshakes: Vec<Handshake>,
    moves: u32,
    failures: Vec<HandshakeFailure>,
}

/// A running server. It stops when this value is dropped.
pub(crate) struct DtlsServer {
    pub(crate) address: SocketAddr,
    notes: Arc<Mutex<Notes>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl DtlsServer {
    /// Starts a server on a free port of an address.
    pub(crate) fn start(ip: &str, config: Config) -> Self {
        Self::start_with(ip, config, KnownKeys::All)
    }

    /// Starts a server that knows these raw public keys.
    pub(crate) fn start_with(ip: &str, config: Config, known_keys: KnownKeys) -> Self {
        let socket = UdpSocket::bind((ip, 0)).unwrap();
        socket.set_read_timeout(Some(LOOK)).unwrap();
        let address = socket.local_addr().unwrap();
        let (is_over, notes) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Notes>>::default());
        let (is_asked_to_end, noted) = (Arc::clone(&is_over), Arc::clone(&notes));
        let thread = std::thread::spawn(move || {
            let mut serving = Serving::new(socket, config, known_keys, noted);
            while !is_asked_to_end.load(Ordering::Relaxed) {
                serving.turn();
            }
        });
        Self {
            address,
            notes,
            is_over,
            thread: Some(thread),
        }
    }

    /// The handshakes so far.
    pub(crate) fn handshakes(&self) -> Vec<Handshake> {
        self.notes.lock().unwrap().handshakes.clone()
    }

    /// The latest handshake, once there is one.
    pub(crate) fn handshake(&self) -> Handshake {
        until("a session", || self.handshakes().pop())
    }

    /// How often peers were found at another address.
    pub(crate) fn moves(&self) -> u32 {
        self.notes.lock().unwrap().moves
    }

    /// Why handshakes have failed.
    pub(crate) fn failures(&self) -> Vec<HandshakeFailure> {
        self.notes.lock().unwrap().failures.clone()
    }
}

impl Drop for DtlsServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let outcome = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            assert!(matches!(outcome, Some(Ok(()))), "the server panicked");
        }
    }
}

struct Serving {
    socket: UdpSocket,
    endpoint: Endpoint,
    known_keys: KnownKeys,
    entropy: File,
    notes: Arc<Mutex<Notes>>,
}

impl Serving {
    fn new(
        socket: UdpSocket,
        config: Config,
        known_keys: KnownKeys,
        notes: Arc<Mutex<Notes>>,
    ) -> Self {
        Self {
            socket,
            endpoint: Endpoint::new(Arc::new(config)),
            known_keys,
            entropy: File::open("/dev/urandom").unwrap(),
            notes,
        }
    }

    /// Receives a datagram, if one comes, and does what is due.
    fn turn(&mut self) {
        let mut buffer = [0; 2_048];
        let mut out = Effects::new();
        if let Ok((length, peer)) = self.socket.recv_from(&mut buffer) {
            self.call(|endpoint, moment| {
                endpoint.handle_datagram(moment, peer, &buffer[..length], &mut out);
            });
        }
        self.call(|endpoint, moment| endpoint.handle_timeout(moment, &mut out));
        self.perform(&out);
    }

    fn call(&mut self, call: impl FnOnce(&mut Endpoint, &mut Moment<'_>)) {
        let file = &mut self.entropy;
        let mut entropy = |bytes: &mut [u8]| file.read_exact(bytes).unwrap();
        let mut moment = Moment {
            now: now(),
            entropy: &mut entropy,
        };
        call(&mut self.endpoint, &mut moment);
    }

    fn perform(&mut self, effects: &Effects) {
        for effect in effects.iter() {
            match effect {
                Effect::Send { peer, datagram } => {
                    self.socket.send_to(datagram, peer).unwrap();
                }
                Effect::LookUpPsk {
                    association,
                    identity,
                } => self.provide(association, identity),
                Effect::AdmitPublicKey { association, .. } => {
                    let mut out = Effects::new();
                    let knows_all = self.known_keys == KnownKeys::All;
                    self.call(|endpoint, moment| match knows_all {
                        true => endpoint.admit(moment, association, &mut out),
                        false => endpoint.refuse(association, &mut out),
                    });
                    self.perform(&out);
                }
                Effect::AdmitCertificate { association, chain } => {
                    let authority = match &self.known_keys {
                        KnownKeys::CertifiedBy(authority) => &authority[..],
                        KnownKeys::All | KnownKeys::None => &[],
                    };
                    let is_certified = chain.verify(&[authority], now()).is_ok();
                    let names = chain.names();
                    let name = names.first().filter(|_| is_certified);
                    let mut out = Effects::new();
                    self.call(|endpoint, moment| match name {
                        Some(name) => {
                            endpoint.admit_as(moment, association, name.as_bytes(), &mut out);
                        }
                        None => endpoint.refuse(association, &mut out),
                    });
                    self.perform(&out);
                }
                Effect::Established {
                    identity, security, ..
                } => {
                    let identity = identity.clone();
                    let mut notes = self.notes.lock().unwrap();
                    notes.handshakes.push(Handshake { identity, security });
                }
                Effect::Received {
                    association,
                    content,
                } => {
                    let mut out = Effects::new();
                    let sent = self.endpoint.send(association, &answer(content), &mut out);
                    sent.unwrap();
                    self.perform(&out);
                }
                Effect::Moved { .. } => self.notes.lock().unwrap().moves += 1,
                Effect::Failed { reason, .. } => self.notes.lock().unwrap().failures.push(reason),
                Effect::Closed { .. } => (),
            }
        }
    }

    fn provide(&mut self, association: AssociationId, identity: &[u8]) {
        let keys: &[&[u8]] = match identity == IDENTITY.as_bytes() {
            true => &[KEY],
            false => &[],
        };
        let mut out = Effects::new();
        self.call(|endpoint, moment| endpoint.provide_psk(moment, association, keys, &mut out));
        self.perform(&out);
    }
}

fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_ms(u64::try_from(now.as_millis()).unwrap())
}

/// A CoAP request, confirmable, is answered 2.05 with a greeting (RFC 7252 section 5.2.1).
fn answer(content: &[u8]) -> Vec<u8> {
    match content {
        [first @ 0x40..=0x48, 1, id @ ..] => {
            let token = usize::from(first & 0x0f);
            let mut answer = vec![0x60 | first & 0x0f, 0x45];
            answer.extend_from_slice(&id[..2 + token]);
            answer.push(0xff);
            answer.extend_from_slice(b"hello from dtls");
            answer
        }
        _ => content.to_vec(),
    }
}
