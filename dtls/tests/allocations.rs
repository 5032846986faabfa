//! What memory does an endpoint take? Every allocation of a thread is counted.

// An allocator cannot be had without; the crate has none.
#![allow(clippy::unwrap_used, unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;

use dtls::{
    AssociationId, CipherSuite, ClientConfig, Config, ConnectionIdOffer, Effect, Effects, Endpoint,
    Moment, SigningKey, Timestamp,
};
use rcgen::{CertificateParams, KeyPair};

const KEY: &[u8] = &[7; 16];
/// What the README says of a handshake under way.
const HANDSHAKE_BYTES_MAX: i64 = 45_000;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: the allocator of the system does it all.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        BYTES.set(BYTES.get() + layout.size() as i64);
        // SAFETY: as the caller has promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.set(BYTES.get() - layout.size() as i64);
        // SAFETY: as the caller has promised.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[test]
fn a_record_that_is_sent_and_received_allocates_nothing() {
    for suite in CipherSuite::ALL.into_iter().filter(CipherSuite::has_psk) {
        for connection_id in [ConnectionIdOffer::None, ConnectionIdOffer::Own] {
            let mut pair = Pair::new(Config::new([1; 32]));
            pair.connect(ClientConfig {
                cipher_suites: vec![suite],
                connection_id,
                ..ClientConfig::with_psk(b"meter-1", KEY)
            });
            // The first records end the handshake, and the buffers get their memory.
            assert_eq!(pair.exchange_records(10), 20);
            let before = ALLOCATIONS.get();
            assert!(before > 0, "allocations are counted");
            assert_eq!(pair.exchange_records(100), 200);
            let allocations = ALLOCATIONS.get() - before;
            assert_eq!(allocations, 0, "{suite:?}, {connection_id:?}");
        }
    }
}

#[test]
fn a_handshake_under_way_keeps_what_is_stated_at_most() {
    let server_key = Arc::new(SigningKey::from_scalar(&[2; 32]).unwrap());
    let mut pair = Pair::new(Config {
        server_key: Some(Arc::clone(&server_key)),
        ..Config::new([1; 32])
    });
    // The table of associations has its memory then.
    pair.connect(ClientConfig::with_psk(b"meter-1", KEY));
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::default().self_signed(&key).unwrap();
    let own: Box<[u8]> = own.der().to_vec().into();
    let certified = SigningKey::from_der(&key.serialize_der(), vec![own.clone()]).unwrap();
    let client = ClientConfig::with_signing_key(Arc::new(certified), server_key.public_key());
    pair.begin(client);
    pair.serve();
    pair.follow();
    let before = BYTES.get();
    // The hello with a cookie, and the longest certificates.
    pair.serve();
    pair.from_server = Effects::new();
    let length = 16_384 - 3 - 4 * 3 - own.len();
    let others = [length / 3, length / 3, length - 2 * (length / 3)].map(|it| vec![0x30; it]);
    let mut chain = Vec::new();
    for certificate in [&own[..]]
        .into_iter()
        .chain(others.iter().map(|it| &it[..]))
    {
        put24(&mut chain, certificate.len());
        chain.extend_from_slice(certificate);
    }
    let mut certificate = Vec::new();
    put24(&mut certificate, chain.len());
    certificate.extend_from_slice(&chain);
    assert_eq!(certificate.len(), 16_384);
    // A record has no room for all of it.
    for (place, half) in certificate.chunks(8_192).enumerate() {
        pair.inject(0, &fragment(11, 2, 16_384, place * 8_192, half));
    }
    // Messages that wait, with as many gaps as they may have.
    for sequence in 3..11 {
        let mut fragments = Vec::new();
        for offset in (0..200).step_by(2) {
            fragments.extend_from_slice(&fragment(16, sequence, 2_560, offset, &[1]));
        }
        pair.inject(0, &fragments);
    }
    for _ in 0..5 {
        pair.inject(1, &[0; 480]);
    }
    assert_eq!(pair.server.handshake_count(), 1);
    assert!(pair.from_server.is_empty(), "nothing is answered");
    pair.from_server = Effects::new();
    drop((chain, certificate, others));
    let kept = BYTES.get() - before;
    assert!(kept <= HANDSHAKE_BYTES_MAX, "{kept} bytes");
    // All of it is there.
    assert!(kept > HANDSHAKE_BYTES_MAX - 5_000, "{kept} bytes");
}

/// A server and a client, each with a buffer of effects.
struct Pair {
    server: Endpoint,
    client: Endpoint,
    from_server: Effects,
    from_client: Effects,
    sessions: Option<(AssociationId, AssociationId)>,
    state: u8,
}

impl Pair {
    fn new(config: Config) -> Self {
        Self {
            server: Endpoint::new(Arc::new(config)),
            client: Endpoint::new(Arc::new(Config::new([2; 32]))),
            from_server: Effects::new(),
            from_client: Effects::new(),
            sessions: None,
            state: 0,
        }
    }

    fn begin(&mut self, config: ClientConfig) -> AssociationId {
        let state = &mut self.state;
        let mut entropy = |bytes: &mut [u8]| fill(state, bytes);
        let (moment, out) = (&mut moment(&mut entropy), &mut self.from_client);
        self.client.connect(moment, server(), config, out).unwrap()
    }

    fn connect(&mut self, config: ClientConfig) {
        let of_client = self.begin(config);
        let mut of_server = None;
        for _ in 0..3 {
            self.serve();
            let mut asked = None;
            for effect in self.from_server.iter() {
                if let Effect::LookUpPsk { association, .. } = effect {
                    asked = Some(association);
                }
            }
            if let Some(id) = asked {
                let state = &mut self.state;
                let mut entropy = |bytes: &mut [u8]| fill(state, bytes);
                let (moment, out) = (&mut moment(&mut entropy), &mut self.from_server);
                self.server.provide_psk(moment, id, &[KEY], out);
                of_server = Some(id);
            }
            self.follow();
        }
        self.sessions = of_server.map(|of_server| (of_client, of_server));
    }

    /// The server receives what the client has sent.
    fn serve(&mut self) -> usize {
        let state = &mut self.state;
        let mut entropy = |bytes: &mut [u8]| fill(state, bytes);
        let moment = &mut moment(&mut entropy);
        self.from_server.clear();
        for effect in self.from_client.iter() {
            if let Effect::Send { datagram, .. } = effect {
                let out = &mut self.from_server;
                self.server.handle_datagram(moment, client(), datagram, out);
            }
        }
        received(&self.from_server)
    }

    /// The client receives what the server has sent.
    fn follow(&mut self) -> usize {
        let state = &mut self.state;
        let mut entropy = |bytes: &mut [u8]| fill(state, bytes);
        let moment = &mut moment(&mut entropy);
        self.from_client.clear();
        for effect in self.from_server.iter() {
            if let Effect::Send { datagram, .. } = effect {
                let out = &mut self.from_client;
                self.client.handle_datagram(moment, server(), datagram, out);
            }
        }
        received(&self.from_client)
    }

    /// Both sides send so many records; how many are received.
    fn exchange_records(&mut self, count: usize) -> usize {
        let (of_client, of_server) = self.sessions.unwrap();
        let mut all = 0;
        for _ in 0..count {
            self.from_client.clear();
            let sent = self
                .client
                .send(of_client, &[1; 100], &mut self.from_client);
            assert!(sent.is_ok());
            all += self.serve();
            self.from_server.clear();
            let sent = self
                .server
                .send(of_server, &[2; 100], &mut self.from_server);
            assert!(sent.is_ok());
            all += self.follow();
        }
        all
    }

    /// The server receives a record that the client has not sent.
    fn inject(&mut self, epoch: u8, content: &[u8]) {
        let state = &mut self.state;
        let mut entropy = |bytes: &mut [u8]| fill(state, bytes);
        let moment = &mut moment(&mut entropy);
        let mut record = vec![22, 0xfe, 0xfd, 0, epoch, 0, 0, 0, 0, 0, 9];
        record.extend_from_slice(&(content.len() as u16).to_be_bytes());
        record.extend_from_slice(content);
        let out = &mut self.from_server;
        self.server.handle_datagram(moment, client(), &record, out);
    }
}

fn received(out: &Effects) -> usize {
    let is_received = |it: &Effect<'_>| matches!(it, Effect::Received { .. });
    out.iter().filter(is_received).count()
}

/// A part of a handshake message (RFC 6347 section 4.2.2).
fn fragment(
    message_type: u8,
    sequence: u16,
    length: usize,
    offset: usize,
    bytes: &[u8],
) -> Vec<u8> {
    let mut fragment = vec![message_type];
    put24(&mut fragment, length);
    fragment.extend_from_slice(&sequence.to_be_bytes());
    put24(&mut fragment, offset);
    put24(&mut fragment, bytes.len());
    fragment.extend_from_slice(bytes);
    fragment
}

fn put24(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&(number as u32).to_be_bytes()[1..]);
}

fn moment<'e>(entropy: &'e mut dyn dtls::Entropy) -> Moment<'e> {
    Moment {
        now: Timestamp::from_ms(1_800_000_000_000),
        entropy,
    }
}

fn fill(state: &mut u8, bytes: &mut [u8]) {
    bytes.fill_with(|| {
        *state = state.wrapping_mul(31).wrapping_add(7);
        *state
    });
}

fn server() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 5_684))
}

fn client() -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 7], 40_000))
}
