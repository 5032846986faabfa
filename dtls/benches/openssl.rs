//! What do a handshake and a record cost a server, beside OpenSSL's `s_server`?
//!
//! Both servers are processes. The same client talks to them in turns, one session after the other,
//! with a pre-shared key, CCM_8 and a stateless cookie; both print what they receive. A figure is
//! the processor time of the server, system calls included. It needs Linux and `openssl`.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, thread};

use dtls::{
    AssociationId, CipherSuite, ClientConfig, Config, Effect, Effects, Endpoint, Entropy, Moment,
    Timestamp,
};

const KEY: [u8; 16] = [7; 16];
const KEY_HEX: &str = "07070707070707070707070707070707";

/// A registration update of a device, without DTLS; no server prints such a byte on its own.
const CONTENT: [u8; 62] = [0xfe; 62];

/// Measured rounds, an odd number; one more warms up.
const ROUNDS: usize = 3;
const HANDSHAKES: u32 = 40;
const BURSTS: u64 = 500;
/// Records between two looks at what was received: few enough for any buffer.
const BURST: u64 = 32;

/// How long a burst may take. What is lost is not counted.
const PATIENCE: Duration = Duration::from_millis(500);

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    if let [serve, address] = &words[..]
        && serve == "serve"
    {
        Server::bind(address).run();
    }
    // Cargo passes `--bench` to measure, and nothing to test the build.
    if !words.iter().any(|word| word == "--bench") {
        return;
    }
    let mut servers = [MeasuredServer::ours(), MeasuredServer::openssl()];
    for round in 0..=ROUNDS {
        for server in &mut servers {
            server.measure();
            if round == 0 {
                server.handshake_us.clear();
                server.record_us.clear();
            }
        }
    }
    println!("| server | processor time of a handshake, µs | of a received record, µs |");
    println!("|---|---|---|");
    for server in &mut servers {
        let (handshake, record) = (
            median(&mut server.handshake_us),
            median(&mut server.record_us),
        );
        println!("| {} | {handshake:.1} | {record:.2} |", server.name);
    }
}

/// A process that is measured, which ends with this value.
struct MeasuredServer {
    name: &'static str,
    process: Child,
    address: SocketAddr,
    /// The bytes of contents that it has printed.
    printed: Arc<AtomicU64>,
    handshake_us: Vec<f64>,
    record_us: Vec<f64>,
}

impl MeasuredServer {
    fn ours() -> Self {
        let address = free_address();
        let program = env::current_exe().expect("the bench is a file");
        let mut command = Command::new(program);
        command.args(["serve", &address.to_string()]);
        Self::start("this crate", command, address)
    }

    fn openssl() -> Self {
        let address = free_address();
        let mut command = Command::new("openssl");
        command
            .args(["s_server", "-dtls1_2", "-listen", "-nocert", "-quiet"])
            .args(["-accept", &address.to_string()])
            .args(["-psk", KEY_HEX])
            .args(["-cipher", "PSK-AES128-CCM8:@SECLEVEL=0"]);
        Self::start("OpenSSL", command, address)
    }

    fn start(name: &'static str, mut command: Command, address: SocketAddr) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.stderr(Stdio::null()).spawn().expect(name);
        let mut output = process.stdout.take().expect("a pipe");
        let printed = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&printed);
        thread::spawn(move || {
            let mut buffer = [0; 65_536];
            while let Ok(length @ 1..) = output.read(&mut buffer) {
                let contents = buffer[..length].iter().filter(|byte| **byte == CONTENT[0]);
                counted.fetch_add(contents.count() as u64, Ordering::Relaxed);
            }
        });
        Self {
            name,
            process,
            address,
            printed,
            handshake_us: Vec::new(),
            record_us: Vec::new(),
        }
    }

    fn measure(&mut self) {
        let begun_us = self.processor_us();
        for _ in 0..HANDSHAKES {
            Client::connect(self.address).close();
        }
        let spent_us = self.processor_us() - begun_us;
        self.handshake_us.push(spent_us / f64::from(HANDSHAKES));
        let mut client = Client::connect(self.address);
        let (before, begun_us) = (self.received(), self.processor_us());
        for _ in 0..BURSTS {
            let awaited = self.received() + BURST;
            (0..BURST).for_each(|_| client.send());
            let sent_at = Instant::now();
            while self.received() < awaited && sent_at.elapsed() < PATIENCE {
                thread::yield_now();
            }
        }
        let received = self.received() - before;
        assert!(
            received * 10 > BURSTS * BURST * 9,
            "{}: {received}",
            self.name
        );
        let spent_us = self.processor_us() - begun_us;
        self.record_us.push(spent_us / received as f64);
        client.close();
    }

    fn received(&self) -> u64 {
        self.printed.load(Ordering::Relaxed) / CONTENT.len() as u64
    }

    fn processor_us(&self) -> f64 {
        let path = format!("/proc/{}/schedstat", self.process.id());
        let text = fs::read_to_string(path).expect("the process runs, and Linux counts");
        let ns: f64 = text
            .split(' ')
            .next()
            .and_then(|ns| ns.parse().ok())
            .expect("the first number is the time on a core");
        ns / 1_000.0
    }
}

impl Drop for MeasuredServer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A client with one session.
struct Client {
    socket: UdpSocket,
    server: SocketAddr,
    endpoint: Endpoint,
    effects: Effects,
    random: File,
    id: Option<AssociationId>,
}

impl Client {
    fn connect(server: SocketAddr) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let wait = Some(Duration::from_millis(20));
        socket.set_read_timeout(wait).expect("a timeout");
        let mut client = Self {
            socket,
            server,
            endpoint: Endpoint::new(Arc::new(Config::new([2; 32]))),
            effects: Effects::new(),
            random: random(),
            id: None,
        };
        let config = ClientConfig {
            cipher_suites: vec![CipherSuite::PskAes128Ccm8],
            ..ClientConfig::with_psk(b"meter-1", &KEY)
        };
        client.act(|endpoint, moment, out| {
            endpoint.connect(moment, server, config, out).expect("room");
        });
        let mut buffer = [0; 2_048];
        while client.id.is_none() {
            match client.socket.recv(&mut buffer) {
                Ok(length) => client.act(|endpoint, moment, out| {
                    endpoint.handle_datagram(moment, server, &buffer[..length], out);
                }),
                Err(_) => client.act(Endpoint::handle_timeout),
            }
        }
        client
    }

    fn send(&mut self) {
        let id = self.id.expect("a session");
        self.act(|endpoint, _, out| endpoint.send(id, &CONTENT, out).expect("a session"));
    }

    fn close(mut self) {
        let id = self.id.expect("a session");
        self.act(|endpoint, _, out| endpoint.close(id, out));
    }

    fn act(&mut self, act: impl FnOnce(&mut Endpoint, &mut Moment<'_>, &mut Effects)) {
        let mut entropy = |bytes: &mut [u8]| fill(&mut self.random, bytes);
        act(
            &mut self.endpoint,
            &mut moment(&mut entropy),
            &mut self.effects,
        );
        for effect in self.effects.iter() {
            if let Effect::Send { datagram, .. } = effect {
                let sent = self.socket.send_to(datagram, self.server);
                sent.expect("loopback takes a datagram");
            } else if let Effect::Established { association, .. } = effect {
                self.id = Some(association);
            }
        }
        self.effects.clear();
    }
}

/// The server of this crate: it prints what it receives.
struct Server {
    socket: UdpSocket,
    endpoint: Endpoint,
    random: File,
}

impl Server {
    fn bind(address: &str) -> Self {
        Self {
            socket: UdpSocket::bind(address).expect("a free port"),
            endpoint: Endpoint::new(Arc::new(Config::new([1; 32]))),
            random: random(),
        }
    }

    fn run(mut self) -> ! {
        let mut buffer = [0; 2_048];
        let mut effects = Effects::new();
        loop {
            let (length, peer) = self.socket.recv_from(&mut buffer).expect("a datagram");
            let mut entropy = |bytes: &mut [u8]| fill(&mut self.random, bytes);
            let mut moment = moment(&mut entropy);
            let endpoint = &mut self.endpoint;
            endpoint.handle_datagram(&mut moment, peer, &buffer[..length], &mut effects);
            let mut asking = None;
            for effect in effects.iter() {
                if let Effect::LookUpPsk { association, .. } = effect {
                    asking = Some(association);
                }
            }
            if let Some(id) = asking {
                endpoint.provide_psk(&mut moment, id, &[&KEY], &mut effects);
            }
            for effect in effects.iter() {
                if let Effect::Send { peer, datagram } = effect {
                    let sent = self.socket.send_to(datagram, peer);
                    sent.expect("loopback takes a datagram");
                } else if let Effect::Received { content, .. } = effect {
                    let mut out = std::io::stdout().lock();
                    let printed = out.write_all(content).and_then(|()| out.flush());
                    printed.expect("who measures reads");
                }
            }
            effects.clear();
        }
    }
}

fn moment<'e>(entropy: &'e mut dyn Entropy) -> Moment<'e> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let since_epoch = since_epoch.expect("a clock after 1970");
    Moment {
        now: Timestamp::from_ms(u64::try_from(since_epoch.as_millis()).expect("a time")),
        entropy,
    }
}

fn random() -> File {
    File::open("/dev/urandom").expect("Linux has entropy")
}

fn fill(random: &mut File, bytes: &mut [u8]) {
    random.read_exact(bytes).expect("Linux has entropy");
}

fn free_address() -> SocketAddr {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    socket.local_addr().expect("a bound socket has an address")
}

fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
