//! Which broker receives the events? Eclipse Mosquitto, with a subscriber that counts, and the
//! yardstick: a publisher on the same codec that has nothing else to do.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use protocol::mqtt::{MqttConnection, MqttEvent, MqttLogin, MqttMessage, MqttVersion, Unsendable};

use crate::program::Program;

/// The prefix of the topics.
pub(crate) const PREFIX: &str = "bench";

/// Messages that the broker accepts before it has acknowledged the first, from each client.
const WINDOW: u16 = 64;

/// A broker, which is killed on drop.
pub(crate) struct Broker {
    /// Its address.
    pub(crate) address: SocketAddr,
    received: Arc<ReceivedMessages>,
    _program: Program,
    _folder: tempfile::TempDir,
}

#[derive(Default)]
struct ReceivedMessages {
    count: AtomicU64,
    last: Mutex<MqttMessage>,
}

/// A publisher of one message.
pub(crate) struct BarePublisher {
    address: SocketAddr,
    message: MqttMessage,
}

/// A client on a blocking connection.
struct Client {
    stream: TcpStream,
    connection: MqttConnection,
    begun_at: Instant,
}

impl Broker {
    /// Starts a broker and its subscriber.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("there is a directory for it");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let address = free.expect("a port is free");
        let path = folder.path().join("mosquitto.conf");
        let lines = format!(
            "listener {} 127.0.0.1\nallow_anonymous true\npersistence false\nlog_dest stderr\n\
             max_inflight_messages {WINDOW}\nmax_queued_messages 0\n",
            address.port()
        );
        std::fs::write(&path, lines).expect("the directory takes a file");
        let mut command = Command::new("mosquitto");
        let programs = std::env::var("PATH").unwrap_or_default();
        // Debian installs it where only root looks.
        command.env("PATH", format!("{programs}:/usr/sbin"));
        command.arg("-c").arg(path);
        let mut program = Program::start(&mut command);
        program.wait_for("that it runs", |line| {
            line.ends_with(" running").then_some(())
        });
        let received: Arc<ReceivedMessages> = Arc::default();
        let counting = Arc::clone(&received);
        let subscriber = Client::connect(address, "counter", Some(format!("{PREFIX}/#")));
        std::thread::spawn(move || subscriber.count(&counting));
        Self {
            address,
            received,
            _program: program,
            _folder: folder,
        }
    }

    /// The number of messages received.
    pub(crate) fn messages(&self) -> u64 {
        self.received.count.load(Ordering::Relaxed)
    }

    /// A publisher of the last message that has nothing else to do.
    pub(crate) fn bare_publisher(&self) -> BarePublisher {
        let last = self.received.last.lock().expect("nobody panics with it");
        let message = MqttMessage {
            correlation: None,
            ..last.clone()
        };
        BarePublisher {
            address: self.address,
            message,
        }
    }
}

impl BarePublisher {
    /// Publishes the message again and again for this long; returns how many were acknowledged per
    /// second.
    pub(crate) fn publish(&self, time: Duration) -> f64 {
        Client::connect(self.address, "publisher", None).publish(&self.message, time)
    }
}

impl Client {
    /// Connects, and waits until the broker is ready.
    fn connect(to: SocketAddr, client_id: &str, subscription: Option<String>) -> Self {
        let stream = TcpStream::connect(to).expect("the broker listens");
        stream.set_nodelay(true).expect("a socket need not wait");
        let login = MqttLogin {
            version: MqttVersion::V5,
            client_id: client_id.to_owned(),
            username: None,
            password: None,
            keep_alive_s: 600,
            subscription,
        };
        let mut events = Vec::new();
        let connection = MqttConnection::open(&login, 0, &mut events);
        let mut client = Self {
            stream,
            connection,
            begun_at: Instant::now(),
        };
        client.write(events);
        while !client.read().contains(&MqttEvent::Ready) {}
        client
    }

    fn now_ms(&self) -> i64 {
        i64::try_from(self.begun_at.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// Writes what is to be written; returns the other events.
    fn write(&mut self, events: Vec<MqttEvent>) -> Vec<MqttEvent> {
        let (mut bytes, mut others) = (Vec::new(), Vec::new());
        for event in events {
            match event {
                MqttEvent::Write(more) => bytes.extend(more),
                other @ (MqttEvent::Ready
                | MqttEvent::Acknowledged(..)
                | MqttEvent::Received(_)
                | MqttEvent::Ended(_)) => others.push(other),
            }
        }
        let has_ended = |event: &MqttEvent| matches!(event, MqttEvent::Ended(_));
        assert!(
            !others.iter().any(has_ended),
            "the broker ends it: {others:?}"
        );
        self.stream.write_all(&bytes).expect("the broker reads");
        others
    }

    /// Reads, and answers what the protocol answers.
    fn read(&mut self) -> Vec<MqttEvent> {
        // Few messages at once: each is acknowledged before the next ones are read.
        let mut bytes = [0; 2_048];
        let count = self.stream.read(&mut bytes).expect("the broker writes");
        assert!(count > 0, "the broker keeps the connection");
        let (now_ms, mut events) = (self.now_ms(), Vec::new());
        self.connection
            .handle_bytes(&bytes[..count], now_ms, &mut events);
        self.write(events)
    }

    /// Counts messages until the broker is gone.
    fn count(mut self, received: &ReceivedMessages) {
        loop {
            let mut answers = Vec::new();
            for event in self.read() {
                let MqttEvent::Received(message) = event else {
                    continue;
                };
                let now_ms = self.now_ms();
                if let Some(id) = message.packet_id {
                    self.connection.acknowledge(id, now_ms, &mut answers);
                }
                *received.last.lock().expect("nobody panics with it") = message.message;
                received.count.fetch_add(1, Ordering::Relaxed);
            }
            self.write(answers);
        }
    }

    fn publish(mut self, message: &MqttMessage, time: Duration) -> f64 {
        let (begun_at, mut acknowledged, mut open) = (Instant::now(), 0_u64, 0_u64);
        loop {
            let is_over = begun_at.elapsed() >= time;
            if is_over && open == 0 {
                return acknowledged as f64 / begun_at.elapsed().as_secs_f64();
            }
            let (now_ms, mut events) = (self.now_ms(), Vec::new());
            let mut sent = Ok(0);
            while !is_over && sent.is_ok() {
                sent = self.connection.publish(message, now_ms, &mut events);
                open += u64::from(sent.is_ok());
            }
            let is_full = sent == Err(Unsendable::Window);
            assert!(is_over || is_full, "it cannot be published: {sent:?}");
            self.write(events);
            for event in self.read() {
                if let MqttEvent::Acknowledged(_, outcome) = event {
                    outcome.expect("the broker accepts it");
                    (acknowledged, open) = (acknowledged + 1, open - 1);
                }
            }
        }
    }
}
