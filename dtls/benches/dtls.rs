//! What does a session weigh, and what do a handshake and a record cost?
//!
//! The weight is the resident memory of a process with a million sessions, each made by a
//! handshake; `SESSIONS` takes another number. The cost of a handshake is the server's share. Ten
//! thousand handshakes that go no further are weighed, too, alone and with as many protected
//! records before their keys as an endpoint keeps.

#[path = "support/fixture.rs"]
mod fixture;

use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs, mem};

use criterion::{Criterion, criterion_group, criterion_main};
use dtls::{
    AssociationId, CipherSuite, ClientConfig, Config, Effect, Effects, Endpoint, Moment,
    Resumption, TicketKey, Timestamp,
};

use fixture::{client_address, fill, moment, server_address};

const KEY: &[u8] = &[7; 16];
const HALF_OPEN: usize = 10_000;
/// A registration update of a device, without DTLS.
const CONTENT: [u8; 62] = [0x42; 62];

criterion_group!(costs, handshakes, records, floods);
criterion_main!(half_open, weights, costs);

fn weights() {
    let sessions =
        env::var("SESSIONS").map_or(1_000_000, |number| number.parse().expect("a number"));
    let mut pair = Pair::new();
    let before = resident_bytes();
    for number in 0..sessions {
        let identity = format!("urn:imei:{number:015}");
        let client = ClientConfig {
            cipher_suites: vec![CipherSuite::PskAes128Ccm8],
            ..ClientConfig::with_psk(identity.as_bytes(), KEY)
        };
        let (id, _) = pair.connect(client);
        pair.client
            .send(id, &CONTENT, &mut pair.from_client)
            .expect("a session");
        pair.serve();
        pair.client.forget(id);
        pair.from_server.clear();
    }
    assert_eq!(pair.server.association_count(), sessions);
    let bytes = resident_bytes() - before;
    println!(
        "{sessions} idle sessions with pre-shared keys and Connection IDs: {} B each",
        bytes / sessions
    );
}

/// Handshakes that end after the first hello, as those of spoofed addresses, which never see their
/// cookie; and after the second one.
fn half_open() {
    let mut pair = Pair::new();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let mut entropy = |bytes: &mut [u8]| bytes.fill(7);
    let mut moment = moment(&mut entropy);
    let (mut from_client, mut from_server) = (Effects::new(), Effects::new());
    for number in 0..HALF_OPEN {
        let address = spoofed(number);
        let mut client = Endpoint::new(Arc::new(Config::new([2; 32])));
        let config = ClientConfig::with_psk(b"meter-1", KEY);
        let connected = client.connect(&mut moment, server_address(), config, &mut from_client);
        connected.expect("room");
        let hello = datagrams(&from_client).remove(0);
        from_client.clear();
        pair.server
            .handle_datagram(&mut moment, address, &hello, &mut from_server);
        first.push((address, hello));
        let request = datagrams(&from_server).remove(0);
        from_server.clear();
        client.handle_datagram(&mut moment, server_address(), &request, &mut from_client);
        second.push((address, datagrams(&from_client).remove(0)));
        from_client.clear();
    }
    for (what, hellos, count) in [("without", &first, 0), ("with", &second, HALF_OPEN)] {
        let (before, begun) = (resident_bytes(), Instant::now());
        for (address, hello) in hellos {
            pair.server
                .handle_datagram(&mut moment, *address, hello, &mut from_server);
            from_server.clear();
        }
        let (bytes, spent) = (resident_bytes() - before, begun.elapsed());
        assert_eq!(pair.server.handshake_count(), count);
        println!("{HALF_OPEN} hellos {what} a cookie: {spent:?}, {bytes} B");
    }
    // Application data of epoch 1: 512 bytes in each of eight records, of which four are kept.
    let mut early = vec![23, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 0, 2, 0];
    early.resize(early.len() + 512, 7);
    let (before, begun) = (resident_bytes(), Instant::now());
    for number in 0..HALF_OPEN {
        for _ in 0..8 {
            let address = spoofed(number);
            pair.server
                .handle_datagram(&mut moment, address, &early, &mut from_server);
            from_server.clear();
        }
    }
    let (bytes, spent) = (resident_bytes() - before, begun.elapsed());
    assert_eq!(pair.server.handshake_count(), HALF_OPEN);
    println!("records before their keys in {HALF_OPEN} handshakes: {spent:?}, {bytes} B more");
    // What is weighed next would be lighter by the memory of these.
    mem::forget((pair, first, second));
}

/// The server's part of a handshake.
fn handshakes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("handshake at the server");
    for suite in CipherSuite::ALL.into_iter().filter(CipherSuite::has_psk) {
        let client = ClientConfig {
            cipher_suites: vec![suite],
            ..ClientConfig::with_psk(b"meter-1", KEY)
        };
        group.bench_function(format!("{suite:?}"), |bencher| {
            bencher.iter_custom(|count| time_of_server(count, &client));
        });
    }
    let mut pair = Pair::new();
    let first = ClientConfig::with_psk(b"meter-1", KEY);
    let (_, resumption) = pair.connect(first.clone());
    let resumed = ClientConfig {
        resumption,
        ..first
    };
    group.bench_function("resumed by a ticket", |bencher| {
        bencher.iter_custom(|count| time_of_server(count, &resumed));
    });
    group.finish();
}

fn time_of_server(count: u64, client: &ClientConfig) -> Duration {
    let mut pair = Pair::new();
    for _ in 0..count {
        let (id, _) = pair.connect(client.clone());
        pair.client.forget(id);
    }
    pair.in_server
}

fn records(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("record");
    for suite in [
        CipherSuite::PskAes128Ccm8,
        CipherSuite::PskAes128Ccm,
        CipherSuite::PskAes128Gcm,
    ] {
        let mut pair = Pair::new();
        let client = ClientConfig {
            cipher_suites: vec![suite],
            ..ClientConfig::with_psk(b"meter-1", KEY)
        };
        let (id, _) = pair.connect(client);
        let server_id = pair.server_id.expect("a session");
        group.bench_function(format!("{suite:?} received"), |bencher| {
            bencher.iter_custom(|count| {
                let mut spent = Duration::ZERO;
                for _ in 0..count {
                    pair.client
                        .send(id, &CONTENT, &mut pair.from_client)
                        .expect("a session");
                    let begun = pair.in_server;
                    pair.serve();
                    spent += pair.in_server - begun;
                    pair.from_server.clear();
                }
                spent
            });
        });
        group.bench_function(format!("{suite:?} sent"), |bencher| {
            let mut out = Effects::new();
            bencher.iter(|| {
                out.clear();
                let sent = pair.server.send(server_id, black_box(&CONTENT), &mut out);
                sent.expect("a session");
            });
        });
    }
    group.finish();
}

/// A hello without a cookie, of an address that may be spoofed.
fn floods(criterion: &mut Criterion) {
    let mut pair = Pair::new();
    let mut entropy = |bytes: &mut [u8]| bytes.fill(7);
    let mut moment = Moment {
        now: Timestamp::from_ms(0),
        entropy: &mut entropy,
    };
    let client = ClientConfig::with_psk(b"meter-1", KEY);
    let connected =
        pair.client
            .connect(&mut moment, server_address(), client, &mut pair.from_client);
    connected.expect("room");
    let hello = datagrams(&pair.from_client).remove(0);
    let mut out = Effects::new();
    criterion.bench_function("hello without a cookie", |bencher| {
        bencher.iter(|| {
            out.clear();
            pair.server
                .handle_datagram(&mut moment, client_address(), &hello, &mut out);
        });
    });
    assert_eq!(pair.server.association_count(), 0);
}

/// A server and a client that hand each other their datagrams.
struct Pair {
    server: Endpoint,
    client: Endpoint,
    from_server: Effects,
    from_client: Effects,
    server_id: Option<AssociationId>,
    resumption: Option<Resumption>,
    /// The time that the server took.
    in_server: Duration,
    state: u64,
}

impl Pair {
    fn new() -> Self {
        let config = Config {
            connection_id_prefix: (*b"s").into(),
            ticket_keys: vec![TicketKey::from_bytes([3; 32])],
            handshakes_max: HALF_OPEN,
            ..Config::new([1; 32])
        };
        Self {
            server: Endpoint::new(Arc::new(config)),
            client: Endpoint::new(Arc::new(Config::new([2; 32]))),
            from_server: Effects::new(),
            from_client: Effects::new(),
            server_id: None,
            resumption: None,
            in_server: Duration::ZERO,
            state: 1,
        }
    }

    fn connect(&mut self, config: ClientConfig) -> (AssociationId, Option<Resumption>) {
        self.server_id = None;
        let state = &mut self.state;
        let mut entropy = |bytes: &mut [u8]| fill(state, bytes);
        let mut moment = moment(&mut entropy);
        let connected =
            self.client
                .connect(&mut moment, server_address(), config, &mut self.from_client);
        let id = connected.expect("room");
        while !self.from_client.is_empty() {
            self.serve();
            self.respond();
        }
        assert!(self.server_id.is_some(), "a session");
        (id, self.resumption.take())
    }

    fn serve(&mut self) {
        let state = &mut self.state;
        let mut entropy = |bytes: &mut [u8]| fill(state, bytes);
        let mut moment = moment(&mut entropy);
        let begun = Instant::now();
        for effect in self.from_client.iter() {
            if let Effect::Send { datagram, .. } = effect {
                let (from, out) = (client_address(), &mut self.from_server);
                self.server
                    .handle_datagram(&mut moment, from, datagram, out);
            }
        }
        let mut look_up = None;
        for effect in self.from_server.iter() {
            if let Effect::LookUpPsk { association, .. } = effect {
                look_up = Some(association);
            }
        }
        if let Some(id) = look_up {
            self.server
                .provide_psk(&mut moment, id, &[KEY], &mut self.from_server);
        }
        self.in_server += begun.elapsed();
        for effect in self.from_server.iter() {
            if let Effect::Established { association, .. } = effect {
                self.server_id = Some(association);
            }
        }
        self.from_client.clear();
    }

    fn respond(&mut self) {
        let state = &mut self.state;
        let mut entropy = |bytes: &mut [u8]| fill(state, bytes);
        let mut moment = moment(&mut entropy);
        for effect in self.from_server.iter() {
            if let Effect::Send { datagram, .. } = effect {
                self.client.handle_datagram(
                    &mut moment,
                    server_address(),
                    datagram,
                    &mut self.from_client,
                );
            }
        }
        for effect in self.from_client.iter() {
            if let Effect::Established { resumption, .. } = effect {
                self.resumption = resumption.cloned();
            }
        }
        self.from_server.clear();
        if datagrams(&self.from_client).is_empty() {
            self.from_client.clear();
        }
    }
}

fn datagrams(effects: &Effects) -> Vec<Vec<u8>> {
    let mut datagrams = Vec::new();
    for effect in effects.iter() {
        if let Effect::Send { datagram, .. } = effect {
            datagrams.push(datagram.to_vec());
        }
    }
    datagrams
}

fn spoofed(number: usize) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 7], number as u16 + 1_024))
}

fn resident_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = status.split(' ').nth(1).expect("resident pages");
    pages.parse::<usize>().expect("a number") * 4_096
}
