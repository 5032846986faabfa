//! How does the plugtest server receive and answer? One socket, one thread, and the service's own
//! CoAP layer: its messages, deduplication, exchanges and block-wise transfer.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use protocol::coap::assembly::{Assembly, AssemblyOutcome};
use protocol::coap::block::BlockSize;
use protocol::coap::code::Code;
use protocol::coap::exchange::Transmission;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::option;
use protocol::coap::serving;

use super::observers::{Observers, State};
use super::peer::{MessageOutcome, Peer};
use super::site::{
    OBSERVED, OBSERVED_LARGE, OBSERVED_NON, ResourceChange, Resources, path_of, response,
};

/// Short, so that messages lost on purpose are soon retransmitted.
const TRANSMISSION: Transmission = Transmission {
    ack_timeout_ms: 400,
    max_retransmit: 2,
    ..Transmission::STANDARD
};

/// How often observed resources change.
const TICK_MS: i64 = 500;

/// The delay of a separate response.
const SEPARATE_MS: i64 = 300;

/// The longest body the server accepts.
const BODY_BYTES_MAX: usize = 16 * 1024;

/// How long the server waits for the next block.
const BLOCK_IDLE_MS: i64 = 10_000;

/// How often the server checks whether it is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// All critical options that the resources understand; Proxy-Uri and Proxy-Scheme are not among
/// them.
const KNOWN: [u16; 9] = [
    option::IF_MATCH,
    option::URI_HOST,
    option::IF_NONE_MATCH,
    option::URI_PORT,
    option::URI_PATH,
    option::URI_QUERY,
    option::ACCEPT,
    option::BLOCK2,
    option::BLOCK1,
];

/// A running server. It stops when this value is dropped.
pub(crate) struct PlugtestServer {
    pub(crate) address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PlugtestServer {
    /// Starts a server on a free port of an address.
    pub(crate) fn start(ip: &str) -> Self {
        let socket = UdpSocket::bind((ip, 0)).unwrap();
        socket.set_read_timeout(Some(LOOK)).unwrap();
        let address = socket.local_addr().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let is_asked_to_end = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut serving = Serving::new(socket);
            while !is_asked_to_end.load(Ordering::Relaxed) {
                serving.turn();
            }
        });
        Self {
            address,
            is_over,
            thread: Some(thread),
        }
    }
}

impl Drop for PlugtestServer {
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
    begun: Instant,
    site: Resources,
    peers: BTreeMap<SocketAddr, Peer>,
    observers: Observers,
    /// Separate responses that are to be sent, with their peers.
    owed: Vec<(i64, SocketAddr, Message)>,
    next_tick_ms: i64,
    last_message_id: u16,
}

impl Serving {
    fn new(socket: UdpSocket) -> Self {
        Self {
            socket,
            begun: Instant::now(),
            site: Resources::new(),
            peers: BTreeMap::new(),
            observers: Observers::default(),
            owed: Vec::new(),
            next_tick_ms: TICK_MS,
            last_message_id: 0,
        }
    }

    fn turn(&mut self) {
        let mut buffer = [0; 2_048];
        match self.socket.recv_from(&mut buffer) {
            Ok((length, peer)) => self.receive(peer, &buffer[..length]),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionRefused
                ) => {}
            Err(error) => panic!("the server's socket: {error}"),
        }
        self.do_what_is_due();
        self.notify_observers();
    }

    fn receive(&mut self, from: SocketAddr, datagram: &[u8]) {
        match Message::decode(datagram) {
            Ok(message) if message.code.is_request() => self.receive_request(from, &message),
            Ok(message) => self.receive_other(from, &message),
            Err(malformed) => {
                if let Some(id) = malformed.reset {
                    self.send(from, &Message::reset(id).encode());
                }
            }
        }
    }

    fn receive_request(&mut self, from: SocketAddr, request: &Message) {
        let now_ms = self.now_ms();
        let peer = self.peers.entry(from).or_default();
        if let Some(before) = peer.answer_before(now_ms, request) {
            let before = before.to_vec();
            if !before.is_empty() {
                self.send(from, &before);
            }
            return;
        }
        let answer = self.answer(from, request);
        let answer = if path_of(request) == "separate" {
            self.owe(now_ms, from, answer);
            (request.kind == MessageKind::Confirmable)
                .then(|| Message::acknowledgement(request.message_id))
        } else {
            Some(self.with_id(answer))
        };
        let datagram = answer.as_ref().map(Message::encode);
        let peer = self.peers.entry(from).or_default();
        peer.remember(now_ms, request, answer.as_ref());
        if let Some(datagram) = datagram {
            self.send(from, &datagram);
        }
    }

    fn answer(&mut self, from: SocketAddr, request: &Message) -> Message {
        if request.unknown_critical_option(&KNOWN).is_some() {
            return response(request, Code::BAD_OPTION);
        }
        let now_ms = self.now_ms();
        let peer = self.peers.entry(from).or_default();
        if let Some(whole) = peer.whole_answer(request) {
            return serving::cut(whole, request, BlockSize::MAX);
        }
        let answer = match peer.assembly.take(now_ms, request, BODY_BYTES_MAX) {
            AssemblyOutcome::Whole(whole) => {
                let answer = self.site.answer(&whole);
                let answer = self.observed(from, &whole, answer);
                let peer = self.peers.entry(from).or_default();
                peer.keep_whole_answer(request, &answer);
                serving::cut(answer, request, BlockSize::MAX)
            }
            AssemblyOutcome::Continue => response(request, Code::CONTINUE),
            AssemblyOutcome::Incomplete => response(request, Code::REQUEST_ENTITY_INCOMPLETE),
            AssemblyOutcome::TooLarge { max } => {
                let max = u32::try_from(max).expect("16 KiB are no more");
                response(request, Code::REQUEST_ENTITY_TOO_LARGE).with_size1(max)
            }
            AssemblyOutcome::Malformed => response(request, Code::BAD_REQUEST),
        };
        match request.block1() {
            Some(block) => answer.with_block1(block),
            None => answer,
        }
    }

    /// Records that an observation begins or ends.
    fn observed(&mut self, from: SocketAddr, request: &Message, answer: Message) -> Message {
        let path = path_of(request);
        let resource = [OBSERVED, OBSERVED_LARGE, OBSERVED_NON]
            .into_iter()
            .find(|resource| *resource == path);
        let Some(resource) = resource else {
            return answer;
        };
        match request.observe() {
            Some(0) if request.code == Code::GET && answer.code == Code::CONTENT => {
                let sequence = self.observers.add(from, resource, request);
                answer.with_observe(sequence)
            }
            Some(1) => {
                self.observers.remove(from, request.token);
                answer
            }
            Some(_) | None => answer,
        }
    }

    fn owe(&mut self, now_ms: i64, from: SocketAddr, mut answer: Message) {
        answer.kind = match answer.kind {
            MessageKind::Acknowledgement => MessageKind::Confirmable,
            MessageKind::Confirmable | MessageKind::NonConfirmable | MessageKind::Reset => {
                answer.kind
            }
        };
        let answer = self.with_fresh_id(answer);
        self.owed.push((now_ms + SEPARATE_MS, from, answer));
    }

    /// Handles a ping, or the reply of a peer to a message of the server.
    fn receive_other(&mut self, from: SocketAddr, message: &Message) {
        let now_ms = self.now_ms();
        match message.kind {
            MessageKind::Confirmable => {
                self.send(from, &Message::reset(message.message_id).encode());
            }
            MessageKind::Acknowledgement | MessageKind::Reset => {
                let peer = self.peers.entry(from).or_default();
                if let Some(concluded) = peer.conclude(now_ms, message) {
                    self.observers.conclude(from, concluded.id, concluded.fate);
                } else if message.kind == MessageKind::Reset {
                    let id = message.message_id;
                    self.observers.conclude(from, id, MessageOutcome::Refused);
                }
            }
            MessageKind::NonConfirmable => {}
        }
    }

    fn do_what_is_due(&mut self) {
        let now_ms = self.now_ms();
        if now_ms >= self.next_tick_ms {
            self.next_tick_ms = now_ms + TICK_MS;
            self.site.tick();
        }
        let due = self.owed.extract_if(.., |(at_ms, ..)| *at_ms <= now_ms);
        for (_, to, answer) in due.collect::<Vec<_>>() {
            self.begin(to, &answer);
        }
        let mut repeated = Vec::new();
        for (address, peer) in &mut self.peers {
            if now_ms >= peer.assembly.expires_at(BLOCK_IDLE_MS) {
                peer.assembly = Assembly::default();
            }
            for datagram in peer.repetitions(now_ms) {
                repeated.push((*address, datagram));
            }
            for id in peer.given_up() {
                self.observers
                    .conclude(*address, id, MessageOutcome::Unacknowledged);
            }
        }
        for (address, datagram) in repeated {
            self.send(address, &datagram);
        }
    }

    fn notify_observers(&mut self) {
        for happening in self.site.happened() {
            match happening {
                ResourceChange::Changed(resource) => self.observers.note(resource, State::New),
                ResourceChange::Ended(resource, code) => {
                    self.observers.note(resource, State::Ended(code));
                }
                ResourceChange::Forgotten => self.observers.forget_all(),
            }
        }
        for due in self.observers.due() {
            let answer = match due.state {
                State::New => {
                    let answer = self.site.answer(&due.request);
                    serving::cut(answer, &due.request, BlockSize::MAX).with_observe(due.sequence)
                }
                State::Ended(code) => response(&due.request, code),
            };
            let mut notification = self.with_fresh_id(answer);
            notification.kind = match due.resource {
                OBSERVED_NON => MessageKind::NonConfirmable,
                _ => MessageKind::Confirmable,
            };
            let id = notification.message_id;
            self.observers
                .notified(due.peer, due.request.token, id, notification.kind);
            self.begin(due.peer, &notification);
        }
    }

    /// Sends a message of the server and, if it is confirmable, waits for the acknowledgement.
    fn begin(&mut self, to: SocketAddr, message: &Message) {
        let now_ms = self.now_ms();
        let datagram = message.encode();
        if message.kind == MessageKind::Confirmable {
            let peer = self.peers.entry(to).or_default();
            peer.begin(now_ms, &TRANSMISSION, message);
        }
        self.send(to, &datagram);
    }

    fn with_id(&mut self, answer: Message) -> Message {
        match answer.kind {
            MessageKind::NonConfirmable => self.with_fresh_id(answer),
            MessageKind::Confirmable | MessageKind::Acknowledgement | MessageKind::Reset => answer,
        }
    }

    fn with_fresh_id(&mut self, mut message: Message) -> Message {
        self.last_message_id = self.last_message_id.wrapping_add(1);
        message.message_id = MessageId(self.last_message_id);
        message
    }

    fn send(&self, to: SocketAddr, datagram: &[u8]) {
        // A peer that has ended refuses the datagram, which counts as lost.
        self.socket.send_to(datagram, to).ok();
    }

    fn now_ms(&self) -> i64 {
        i64::try_from(self.begun.elapsed().as_millis()).expect("a test is short")
    }
}
