//! What do handshakes, records and sessions cost a server, beside OpenSSL?
//!
//! Both servers are processes with one thread and one socket, which find a session, open a record
//! and seal its content as the answer. That of OpenSSL is `openssl/server.c`, compiled here:
//! OpenSSL has no program that holds more than one session. The same clients, those of this crate,
//! talk to them in turns, with a pre-shared key, CCM_8 and a stateless cookie; the server of this
//! crate gives them Connection IDs, which OpenSSL does not know. Processor time is that of the
//! server, system calls included. It needs Linux, a C compiler and the headers of OpenSSL.
//! `SESSIONS` takes another number of sessions.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, fs, thread};

use dtls::{
    AssociationId, CipherSuite, ClientConfig, Config, Effect, Effects, Endpoint, Entropy, Moment,
    Timestamp,
};

const KEY: [u8; 16] = [7; 16];

/// A registration update of a device, without DTLS.
const CONTENT: [u8; 62] = [0x42; 62];

/// Measured rounds, an odd number; each has a server of its own.
const ROUNDS: usize = 3;

/// Clients at a time.
const CLIENTS: u32 = 16;

/// Handshakes before the first measurement.
const WARM_UP: u32 = 1_000;

/// Handshakes that are measured, and sessions that are weighed.
const SESSIONS: u32 = 10_000;

/// Records that each client sends, one after the other.
const RECORDS: u32 = 5_000;

/// How long a client waits before it looks after its timers.
const WAIT: Duration = Duration::from_millis(100);

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    if let [serve, port] = &words[..]
        && serve == "serve"
    {
        Server::bind(port).run();
    }
    // Cargo passes `--bench` to measure, and nothing to test the build.
    if !words.iter().any(|word| word == "--bench") {
        return;
    }
    let sessions = env::var("SESSIONS").map_or(SESSIONS, |it| it.parse().expect("a number"));
    let own = env::current_exe().expect("the bench is a file");
    let foreign = compile_server();
    let mut measured = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        measured[0].push(Costs::of(sessions, &own, "serve", &[]));
        measured[1].push(Costs::of(sessions, &foreign, "", &[&hex(&KEY)]));
    }
    println!(
        "{sessions} handshakes, then {} records each way, {CLIENTS} clients at a time, the median \
         of {ROUNDS} rounds (least–most):\n",
        RECORDS * CLIENTS
    );
    println!("| | this crate | OpenSSL | ratio |\n|---|---|---|---|");
    for (what, digits, of) in Costs::FIGURES {
        let [ours, theirs] = measured.each_mut().map(|all| {
            all.sort_by(|a, b| of(a).total_cmp(&of(b)));
            all.iter().map(of).collect::<Vec<f64>>()
        });
        let middle = ROUNDS / 2;
        println!(
            "| {what} | {} | {} | {:.2} |",
            spread(&ours, digits),
            spread(&theirs, digits),
            ours[middle] / theirs[middle]
        );
    }
}

/// What a server costs.
struct Costs {
    handshakes_per_s: f64,
    handshake_us: f64,
    records_per_s: f64,
    record_us: f64,
    session_bytes: f64,
}

/// The name of a figure, its decimal places, and where it is among the costs.
type Figure = (&'static str, usize, fn(&Costs) -> f64);

impl Costs {
    const FIGURES: [Figure; 5] = [
        ("handshakes/s", 0, |it| it.handshakes_per_s),
        ("processor time of a handshake, µs", 1, |it| {
            it.handshake_us
        }),
        ("records received and answered/s", 0, |it| it.records_per_s),
        ("processor time of both, µs", 2, |it| it.record_us),
        ("resident memory of a session, bytes", 0, |it| {
            it.session_bytes
        }),
    ];

    /// Starts a server and measures it. Its first arguments are a word, if there is one, and a
    /// port.
    fn of(sessions: u32, program: &Path, word: &str, more: &[&str]) -> Self {
        let server = MeasuredServer::start(program, word, more);
        make_sessions(&server, 0..WARM_UP);
        let (bytes, begun, spent) = server.now();
        make_sessions(&server, WARM_UP..WARM_UP + sessions);
        let (bytes_then, ended, spent_then) = server.now();
        let handshakes = f64::from(sessions);
        let (handshake_s, handshake_us) = (ended - begun, spent_then - spent);
        let first = WARM_UP + sessions;
        let clients = (first..first + CLIENTS).map(|number| Client::connect(&server, number));
        let clients: Vec<Client> = clients.collect();
        let (_, begun, spent) = server.now();
        thread::scope(|scope| {
            for mut client in clients {
                scope.spawn(move || (0..RECORDS).for_each(|_| client.exchange()));
            }
        });
        let (_, ended, spent_then) = server.now();
        let records = f64::from(RECORDS * CLIENTS);
        Self {
            handshakes_per_s: handshakes / handshake_s.as_secs_f64(),
            handshake_us: handshake_us / handshakes,
            records_per_s: records / (ended - begun).as_secs_f64(),
            record_us: (spent_then - spent) / records,
            session_bytes: (bytes_then - bytes) / handshakes,
        }
    }
}

/// Makes sessions with these numbers, and leaves them to the server.
fn make_sessions(server: &MeasuredServer, numbers: std::ops::Range<u32>) {
    thread::scope(|scope| {
        for place in 0..CLIENTS {
            let own = numbers.clone().skip(place as usize);
            let own = own.step_by(CLIENTS as usize);
            scope.spawn(move || own.for_each(|number| drop(Client::connect(server, number))));
        }
    });
}

/// A process that is measured, which ends with this value.
struct MeasuredServer {
    process: Child,
    address: SocketAddr,
    begun: Instant,
}

impl MeasuredServer {
    fn start(program: &Path, word: &str, more: &[&str]) -> Self {
        let address = free_address();
        let mut command = Command::new(program);
        command.args(Some(word).filter(|word| !word.is_empty()));
        command.arg(address.port().to_string()).args(more);
        let process = command.stdin(Stdio::null()).spawn();
        Self {
            process: process.expect("the server starts"),
            address,
            begun: Instant::now(),
        }
    }

    /// Resident bytes, the time since the start, and the microseconds on a core.
    fn now(&self) -> (f64, Duration, f64) {
        let of = |name| {
            let path = format!("/proc/{}/{name}", self.process.id());
            fs::read_to_string(path).expect("the server runs, on Linux")
        };
        let number = |text: String, place| {
            let word = text.split(' ').nth(place).map(str::to_owned);
            let number = word.and_then(|word| word.trim().parse::<f64>().ok());
            number.expect("a number of the kernel")
        };
        let bytes = number(of("statm"), 1) * 4_096.0;
        let spent_us = number(of("schedstat"), 0) / 1_000.0;
        (bytes, self.begun.elapsed(), spent_us)
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
    id: Option<AssociationId>,
    received: u32,
}

impl Client {
    /// A client with this number makes a session, from an address of its own.
    fn connect(server: &MeasuredServer, number: u32) -> Self {
        let own = Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 1, 0, 0)) + number);
        let socket = UdpSocket::bind((own, 0)).expect("any address of loopback is free");
        socket.set_read_timeout(Some(WAIT)).expect("a timeout");
        let mut client = Self {
            socket,
            server: server.address,
            endpoint: Endpoint::new(Arc::new(Config::new([2; 32]))),
            effects: Effects::new(),
            id: None,
            received: 0,
        };
        let config = ClientConfig {
            cipher_suites: vec![CipherSuite::PskAes128Ccm8],
            ..ClientConfig::with_psk(b"meter-1", &KEY)
        };
        let address = client.server;
        client.act(|endpoint, moment, out| {
            endpoint
                .connect(moment, address, config, out)
                .expect("room");
        });
        while client.id.is_none() {
            client.receive();
        }
        client
    }

    /// Sends a record and waits for its answer; one that is lost is sent again.
    fn exchange(&mut self) {
        let id = self.id.expect("a session");
        let received = self.received;
        while self.received == received {
            self.act(|endpoint, _, out| endpoint.send(id, &CONTENT, out).expect("a session"));
            self.receive();
        }
    }

    fn receive(&mut self) {
        let mut buffer = [0; 2_048];
        let server = self.server;
        match self.socket.recv(&mut buffer) {
            Ok(length) => self.act(|endpoint, moment, out| {
                endpoint.handle_datagram(moment, server, &buffer[..length], out);
            }),
            Err(_) => self.act(Endpoint::handle_timeout),
        }
    }

    fn act(&mut self, act: impl FnOnce(&mut Endpoint, &mut Moment<'_>, &mut Effects)) {
        let (endpoint, effects) = (&mut self.endpoint, &mut self.effects);
        act(endpoint, &mut moment(&mut fill), effects);
        for effect in self.effects.iter() {
            if let Effect::Send { datagram, .. } = effect {
                let sent = self.socket.send_to(datagram, self.server);
                sent.expect("loopback takes a datagram");
            } else if let Effect::Established { association, .. } = effect {
                self.id = Some(association);
            } else if let Effect::Received { .. } = effect {
                self.received += 1;
            }
        }
        self.effects.clear();
    }
}

/// The server of this crate, which does what that of OpenSSL does.
struct Server {
    socket: UdpSocket,
    endpoint: Endpoint,
}

impl Server {
    fn bind(port: &str) -> Self {
        let address = (Ipv4Addr::LOCALHOST, port.parse().expect("a port"));
        let config = Config {
            cached_sessions_max: 0,
            ..Config::new([1; 32])
        };
        Self {
            socket: UdpSocket::bind(address).expect("a free port"),
            endpoint: Endpoint::new(Arc::new(config)),
        }
    }

    fn run(mut self) -> ! {
        let mut buffer = [0; 2_048];
        let (mut effects, mut answers) = (Effects::new(), Effects::new());
        loop {
            let (length, peer) = self.socket.recv_from(&mut buffer).expect("a datagram");
            let mut entropy = fill;
            let moment = &mut moment(&mut entropy);
            let endpoint = &mut self.endpoint;
            endpoint.handle_datagram(moment, peer, &buffer[..length], &mut effects);
            for effect in effects.iter() {
                if let Effect::LookUpPsk { association, .. } = effect {
                    endpoint.provide_psk(moment, association, &[&KEY], &mut answers);
                } else if let Effect::Received {
                    association,
                    content,
                } = effect
                {
                    let sent = endpoint.send(association, content, &mut answers);
                    sent.expect("a session");
                }
            }
            for effect in effects.iter().chain(answers.iter()) {
                if let Effect::Send { peer, datagram } = effect {
                    let sent = self.socket.send_to(datagram, peer);
                    sent.expect("loopback takes a datagram");
                }
            }
            effects.clear();
            answers.clear();
        }
    }
}

/// Compiles the server on OpenSSL.
fn compile_server() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/openssl/server.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("openssl-server");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-o"]).arg(&program).arg(source);
    let status = compiler.args(["-lssl", "-lcrypto"]).status();
    let is_compiled = status.expect("a C compiler as cc").success();
    assert!(is_compiled, "it needs libssl-dev");
    program
}

fn moment<'e>(entropy: &'e mut dyn Entropy) -> Moment<'e> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let since_epoch = since_epoch.expect("a clock after 1970");
    Moment {
        now: Timestamp::from_ms(u64::try_from(since_epoch.as_millis()).expect("a time")),
        entropy,
    }
}

/// As OpenSSL, from a generator in the process.
fn fill(bytes: &mut [u8]) {
    aws_lc_rs::rand::fill(bytes).expect("the system has entropy");
}

fn free_address() -> SocketAddr {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    socket.local_addr().expect("a bound socket has an address")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The median of sorted figures, with the least and the most.
fn spread(figures: &[f64], digits: usize) -> String {
    let [middle, least, most] = [figures.len() / 2, 0, figures.len() - 1].map(|at| figures[at]);
    format!("{middle:.digits$} ({least:.digits$}–{most:.digits$})")
}
