//! Does the time of a record with bare CBC tell what is wrong with it?
//!
//! In the manner of dudect (Reparaz, Balasch and Verbauwhede, "Dude, is my code constant time?",
//! 2017): records of one length, of classes that differ in what an attacker would like to learn,
//! reach a session in an order by chance. Welch's t-test says whether the mean times of two classes
//! differ; beyond ±4.5 they do. It is made of all times and of those below several quantiles, and
//! the largest value counts: long times are mostly those of interrupts.
//!
//! Every forged record takes as long as another one, whatever is wrong with it. A valid record is
//! handed on, which takes longer and is no secret. The last class is a control: a forged record
//! that is one compression of SHA-256 shorter shows what such a difference would look like.
//!
//! `RECORDS=1000000 cargo bench -p dtls --bench bare_cbc` takes another number of records for each
//! class.

#[path = "support/fixture.rs"]
mod fixture;

use std::sync::Arc;
use std::time::Instant;
use std::{env, iter};

use aes::Aes128Enc;
use cbc::Encryptor;
use cbc::cipher::array::Array;
use cbc::cipher::consts::U16;
use cbc::cipher::{BlockModeEncrypt, KeyIvInit};
use dtls::{CipherSuite, ClientConfig, Config, ConnectionIdOffer, Effect, Effects, Endpoint};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use fixture::{client_address, fill, moment, server_address};

const KEY: &[u8] = &[7; 16];
const MAC_LENGTH: usize = 32;

/// What is encrypted in a record: the longest padding, the MAC, and a little content.
const PLAINTEXT_LENGTH: usize = 320;
const HASH_BLOCK_LENGTH: usize = 64;

/// Where the keys are that a server reads with, in the record of an exported session with an IPv4
/// address.
const KEYS_START: usize = 25;

/// Records of each class.
const RECORDS: usize = 1_000_000;
/// Records that are made before they are measured.
const BATCH: usize = 1_000;
/// Records whose times give the quantiles.
const WARM_UP: usize = 20_000;
const CROPS: usize = 20;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Class {
    ValidLongPadding,
    ValidNoPadding,
    WrongMacNoPadding,
    WrongMacLongPadding,
    WrongPadding,
    Random,
    Shorter,
}

fn main() {
    // Cargo passes `--bench` to measure, and nothing to test the build.
    if !env::args().any(|word| word == "--bench") {
        return;
    }
    let records = env::var("RECORDS").map_or(RECORDS, |it| it.parse().expect("a number"));
    let mut attack = Attack::new();
    let mut warm_up = Vec::new();
    attack.measure(WARM_UP, &mut |_, ns| warm_up.push(ns));
    warm_up.sort_unstable_by(f64::total_cmp);
    let crops: Vec<f64> = crops(&warm_up).collect();
    let mut times = Class::ALL.map(|_| vec![Times::default(); crops.len()]);
    attack.measure(records * Class::ALL.len(), &mut |class, ns| {
        let cropped = crops.iter().zip(&mut times[class as usize]);
        for (_, times) in cropped.filter(|(max, _)| ns <= **max) {
            times.add(ns);
        }
    });
    println!("some {records} records of each class, ns for each; t of all, and the largest\n");
    println!("| | and | ns | ns | t | largest t | |\n|---|---|---|---|---|---|---|");
    for (place, one) in Class::ALL.into_iter().enumerate() {
        for other in Class::ALL.into_iter().skip(place + 1) {
            let pairs = times[one as usize].iter().zip(&times[other as usize]);
            let ts: Vec<f64> = pairs.map(|(one, other)| one.t(other)).collect();
            let largest = ts
                .iter()
                .copied()
                .max_by(|a, b| a.abs().total_cmp(&b.abs()));
            println!(
                "| {} | {} | {:.0} | {:.0} | {:.1} | {:.1} | {} |",
                one.name(),
                other.name(),
                times[one as usize][0].mean,
                times[other as usize][0].mean,
                ts[0],
                largest.expect("there are crops"),
                if one.is_alike(other) {
                    "alike"
                } else {
                    "differ"
                },
            );
        }
    }
}

impl Class {
    const ALL: [Self; 7] = [
        Self::ValidLongPadding,
        Self::ValidNoPadding,
        Self::WrongMacNoPadding,
        Self::WrongMacLongPadding,
        Self::WrongPadding,
        Self::Random,
        Self::Shorter,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::ValidLongPadding => "valid, padding of 255",
            Self::ValidNoPadding => "valid, padding of 0",
            Self::WrongMacNoPadding => "wrong MAC, padding of 0",
            Self::WrongMacLongPadding => "wrong MAC, padding of 255",
            Self::WrongPadding => "wrong padding of 255",
            Self::Random => "random plaintext",
            Self::Shorter => "wrong MAC, a compression less",
        }
    }

    /// Whether nobody may tell records of the two apart.
    fn is_alike(self, other: Self) -> bool {
        self.is_forged() && other.is_forged()
    }

    fn is_forged(self) -> bool {
        match self {
            Self::WrongMacNoPadding
            | Self::WrongMacLongPadding
            | Self::WrongPadding
            | Self::Random => true,
            Self::ValidLongPadding | Self::ValidNoPadding | Self::Shorter => false,
        }
    }

    fn padding(self) -> u8 {
        match self {
            Self::ValidLongPadding | Self::WrongMacLongPadding | Self::WrongPadding => 255,
            Self::ValidNoPadding | Self::WrongMacNoPadding | Self::Random | Self::Shorter => 0,
        }
    }

    fn plaintext_length(self) -> usize {
        match self {
            Self::Shorter => PLAINTEXT_LENGTH - HASH_BLOCK_LENGTH,
            Self::ValidLongPadding
            | Self::ValidNoPadding
            | Self::WrongMacNoPadding
            | Self::WrongMacLongPadding
            | Self::WrongPadding
            | Self::Random => PLAINTEXT_LENGTH,
        }
    }
}

/// The largest times of each test: all, and the quantiles of dudect.
fn crops(sorted: &[f64]) -> impl Iterator<Item = f64> {
    let quantiles =
        (1..CROPS).map(|number| 1.0 - 0.5_f64.powf(10.0 * number as f64 / CROPS as f64));
    let of = |quantile: f64| sorted[(quantile * (sorted.len() - 1) as f64) as usize];
    iter::once(f64::INFINITY).chain(quantiles.map(of))
}

/// The number, mean and squared deviations of times (Welford 1962).
#[derive(Clone, Copy, Default)]
struct Times {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Times {
    fn add(&mut self, ns: f64) {
        self.count += 1.0;
        let from_mean = ns - self.mean;
        self.mean += from_mean / self.count;
        self.squares += from_mean * (ns - self.mean);
    }

    /// Welch's t.
    fn t(&self, other: &Self) -> f64 {
        let error = |it: &Self| it.squares / (it.count - 1.0) / it.count;
        (self.mean - other.mean) / (error(self) + error(other)).sqrt()
    }
}

/// A server with a session, and somebody who can make any record of it.
struct Attack {
    server: Endpoint,
    mac_key: [u8; 32],
    key: [u8; 16],
    next_sequence: u64,
    chance: u64,
    out: Effects,
}

impl Attack {
    fn new() -> Self {
        let config = Arc::new(Config {
            accepts_bare_cbc: true,
            ..Config::new([1; 32])
        });
        let mut chance = 1;
        let mut exported = Vec::new();
        server_with_session(&config, &mut chance).export(|record| exported.push(record.to_vec()));
        let session = exported.last().expect("a session").clone();
        let (server, _) = Endpoint::import(config, [session.as_slice()]);
        let (mac_key, rest) = session[KEYS_START..].split_first_chunk().expect("keys");
        let key = rest.first_chunk().expect("a key");
        Self {
            server,
            mac_key: *mac_key,
            key: *key,
            next_sequence: 1_000,
            chance,
            out: Effects::new(),
        }
    }

    /// Measures records of classes by chance.
    fn measure(&mut self, count: usize, report: &mut dyn FnMut(Class, f64)) {
        let mut entropy = |bytes: &mut [u8]| bytes.fill(7);
        let mut moment = moment(&mut entropy);
        for _ in 0..count.div_ceil(BATCH) {
            let batch: Vec<(Class, Vec<u8>)> = (0..BATCH).map(|_| self.make()).collect();
            for (class, record) in &batch {
                let begun = Instant::now();
                self.server
                    .handle_datagram(&mut moment, client_address(), record, &mut self.out);
                let spent = begun.elapsed();
                let is_received = |it: Effect<'_>| matches!(it, Effect::Received { .. });
                let is_valid = matches!(class, Class::ValidLongPadding | Class::ValidNoPadding);
                assert_eq!(self.out.iter().any(is_received), is_valid, "{class:?}");
                self.out.clear();
                report(*class, spent.as_nanos() as f64);
            }
        }
    }

    /// A record of a class by chance.
    fn make(&mut self) -> (Class, Vec<u8>) {
        let mut chosen = [0; 8];
        fill(&mut self.chance, &mut chosen);
        let class = Class::ALL[(u64::from_be_bytes(chosen) % Class::ALL.len() as u64) as usize];
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let plaintext = self.plaintext(class, sequence);
        let mut iv = [0; 16];
        fill(&mut self.chance, &mut iv);
        let mut record = header(sequence);
        record.extend_from_slice(&((iv.len() + plaintext.len()) as u16).to_be_bytes());
        record.extend_from_slice(&iv);
        let start = record.len();
        record.extend_from_slice(&plaintext);
        let (blocks, _) = Array::<u8, U16>::slice_as_chunks_mut(&mut record[start..]);
        Encryptor::<Aes128Enc>::new((&self.key).into(), (&iv).into()).encrypt_blocks(blocks);
        (class, record)
    }

    /// Content, MAC and padding.
    fn plaintext(&mut self, class: Class, sequence: u64) -> Vec<u8> {
        let mut plaintext = vec![0; class.plaintext_length()];
        fill(&mut self.chance, &mut plaintext);
        let padding = class.padding();
        let end = plaintext.len() - usize::from(padding) - 1;
        let content_end = end - MAC_LENGTH;
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.mac_key).expect("any length is a key");
        let header = header(sequence);
        // RFC 5246 section 6.2.3.1: the number goes first.
        mac.update(&header[3..]);
        mac.update(&header[..3]);
        mac.update(&(content_end as u16).to_be_bytes());
        mac.update(&plaintext[..content_end]);
        let by_chance = usize::from(plaintext[0]);
        plaintext[content_end..end].copy_from_slice(&mac.finalize().into_bytes());
        plaintext[end..].fill(padding);
        match class {
            Class::ValidLongPadding | Class::ValidNoPadding => {}
            Class::WrongMacNoPadding | Class::WrongMacLongPadding | Class::Shorter => {
                plaintext[content_end + by_chance % MAC_LENGTH] ^= 1;
            }
            Class::WrongPadding => plaintext[end + by_chance % usize::from(padding)] ^= 1,
            Class::Random => fill(&mut self.chance, &mut plaintext),
        }
        plaintext
    }
}

/// Application data of epoch 1, up to its length.
fn header(sequence: u64) -> Vec<u8> {
    let mut header = vec![23, 0xfe, 0xfd];
    header.extend_from_slice(&(1_u64 << 48 | sequence).to_be_bytes());
    header
}

fn server_with_session(config: &Arc<Config>, chance: &mut u64) -> Endpoint {
    let mut server = Endpoint::new(Arc::clone(config));
    let mut client = Endpoint::new(Arc::new(Config::new([2; 32])));
    let mut entropy = |bytes: &mut [u8]| fill(chance, bytes);
    let mut moment = moment(&mut entropy);
    let (mut from_client, mut from_server) = (Effects::new(), Effects::new());
    let credentials = ClientConfig {
        cipher_suites: vec![CipherSuite::PskAes128Cbc],
        offers_encrypt_then_mac: false,
        connection_id: ConnectionIdOffer::None,
        ..ClientConfig::with_psk(b"meter-1", KEY)
    };
    let connected = client.connect(&mut moment, server_address(), credentials, &mut from_client);
    connected.expect("room");
    for _ in 0..3 {
        let mut look_up = None;
        for effect in from_client.iter() {
            if let Effect::Send { datagram, .. } = effect {
                server.handle_datagram(&mut moment, client_address(), datagram, &mut from_server);
            }
        }
        for effect in from_server.iter() {
            if let Effect::LookUpPsk { association, .. } = effect {
                look_up = Some(association);
            }
        }
        if let Some(id) = look_up {
            server.provide_psk(&mut moment, id, &[KEY], &mut from_server);
        }
        from_client.clear();
        for effect in from_server.iter() {
            if let Effect::Send { datagram, .. } = effect {
                client.handle_datagram(&mut moment, server_address(), datagram, &mut from_client);
            }
        }
        from_server.clear();
    }
    server
}
