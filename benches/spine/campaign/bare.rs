//! What do transfers cost without a store? A peer that writes the image to each device that
//! registers, block by block, and one that serves it over HTTP, both from memory.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use super::running::{RunningDevices, download};

/// The size of a block, as the service writes.
const BLOCK: BlockSize = BlockSize::MAX;

/// A block without an answer is sent again after this time (ACK_TIMEOUT of RFC 7252).
const REPEAT: Duration = Duration::from_secs(2);

/// The requested size of the kernel's buffers.
const BUFFER_BYTES: usize = 16 << 20;

/// Writes the image to devices, so many at a time; returns the bytes per second.
pub(crate) fn write_blocks(devices: u32, window: u32, image: &Arc<[u8]>) -> f64 {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let raw = socket2::SockRef::from(&socket);
    let grown = raw.set_recv_buffer_size(BUFFER_BYTES);
    grown.expect("the kernel grants what it may");
    let nap = Some(Duration::from_millis(100));
    socket
        .set_read_timeout(nap)
        .expect("a socket has a timeout");
    let server = socket.local_addr().expect("a bound socket has an address");
    let running = RunningDevices::start(server, devices, image);
    let mut peer = BlockPeer {
        socket,
        image,
        transfers: BTreeMap::new(),
        waiting: BTreeSet::new(),
        next_id: 0,
        ended: 0,
    };
    while peer.waiting.len() < devices as usize {
        peer.step();
    }
    let begun_at = Instant::now();
    let mut looked_at = begun_at;
    while peer.ended < devices {
        while peer.transfers.len() < window as usize
            && let Some(device) = peer.waiting.pop_first()
        {
            peer.begin(device);
        }
        peer.step();
        if looked_at.elapsed() > REPEAT {
            looked_at = Instant::now();
            peer.repeat();
        }
    }
    let took_s = begun_at.elapsed().as_secs_f64();
    running.stop();
    f64::from(devices) * image.len() as f64 / took_s
}

/// Serves the image to devices, so many at a time; returns the bytes per second.
pub(crate) fn serve_http(devices: u32, window: u32, image: &Arc<[u8]>) -> f64 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let address = listener
        .local_addr()
        .expect("a bound socket has an address");
    let nonblocking = listener.set_nonblocking(true);
    nonblocking.expect("a socket need not block");
    let served = Arc::clone(image);
    // It ends with the process.
    thread::spawn(move || serve(listener, &served));
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be had");
    let begun_at = Instant::now();
    runtime.block_on(async {
        let mut downloads = JoinSet::new();
        for number in 0..devices {
            if downloads.len() >= window as usize {
                checked(downloads.join_next().await);
            }
            let image = Arc::clone(image);
            downloads.spawn(async move {
                download(number, &format!("http://{address}/image"), &image).await
            });
        }
        while !downloads.is_empty() {
            checked(downloads.join_next().await);
        }
    });
    f64::from(devices) * image.len() as f64 / begun_at.elapsed().as_secs_f64()
}

fn checked(ended: Option<Result<std::io::Result<bool>, tokio::task::JoinError>>) {
    let ended = ended.expect("one is under way").expect("it does not fail");
    assert!(
        ended.expect("the peer serves"),
        "the image is the right one"
    );
}

fn serve(listener: TcpListener, image: &Arc<[u8]>) {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be had").block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener);
        let listener = listener.expect("the runtime takes an open socket");
        let mut open = JoinSet::new();
        loop {
            let (mut stream, _) = listener.accept().await.expect("a connection arrives");
            while open.try_join_next().is_some() {}
            let image = Arc::clone(image);
            open.spawn(async move {
                let mut request = [0; 1_024];
                // A request of these devices is one segment.
                let read = stream.read(&mut request).await;
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    image.len()
                );
                let sent = match read {
                    Ok(_) => stream.write_all(head.as_bytes()).await,
                    Err(error) => Err(error),
                };
                if sent.is_ok() {
                    drop(stream.write_all(&image).await);
                }
            });
        }
    });
}

/// A peer that sends blocks and knows nothing else.
struct BlockPeer<'a> {
    socket: UdpSocket,
    image: &'a [u8],
    transfers: BTreeMap<SocketAddr, BlockTransfer>,
    waiting: BTreeSet<SocketAddr>,
    next_id: u16,
    ended: u32,
}

struct BlockTransfer {
    number: u32,
    message_id: MessageId,
    sent_at: Instant,
}

impl BlockPeer<'_> {
    /// Takes a datagram, if one arrives soon.
    fn step(&mut self) {
        let mut buffer = [0; 2_048];
        let (length, from) = match self.socket.recv_from(&mut buffer) {
            Ok(received) => received,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return;
            }
            Err(error) => unreachable!("the socket receives: {error}"),
        };
        let message = Message::decode(&buffer[..length]).expect("devices send messages");
        if message.code.is_request() {
            self.answer(from, &message);
            return;
        }
        let Some(transfer) = self.transfers.get_mut(&from) else {
            return;
        };
        if transfer.message_id != message.message_id {
            return;
        }
        match message.code {
            Code::CONTINUE => {
                transfer.number += 1;
                self.send(from);
            }
            code => {
                assert_eq!(code, Code::CHANGED, "the device has the image");
                self.transfers.remove(&from);
                self.ended += 1;
            }
        }
    }

    /// Answers a registration or an update.
    fn answer(&mut self, from: SocketAddr, request: &Message) {
        let respond = |code| Message::response_to(request, code, request.message_id);
        let answer = match request.uri_path().count() {
            1 => {
                self.waiting.insert(from);
                respond(Code::CREATED).with_location_path(["rd", "1"])
            }
            _ => respond(Code::CHANGED),
        };
        self.put(from, &answer);
    }

    fn begin(&mut self, device: SocketAddr) {
        let transfer = BlockTransfer {
            number: 0,
            message_id: MessageId(0),
            sent_at: Instant::now(),
        };
        self.transfers.insert(device, transfer);
        self.send(device);
    }

    /// Sends the block of a transfer that is due, in a new message.
    fn send(&mut self, device: SocketAddr) {
        self.next_id = self.next_id.wrapping_add(1);
        let id = MessageId(self.next_id);
        let Some(transfer) = self.transfers.get_mut(&device) else {
            return;
        };
        (transfer.message_id, transfer.sent_at) = (id, Instant::now());
        let begin = transfer.number as usize * BLOCK.bytes();
        let end = (begin + BLOCK.bytes()).min(self.image.len());
        let more = match end < self.image.len() {
            true => More::Yes,
            false => More::No,
        };
        let token = Token::from_u64(id.0.into());
        let block = Message::request(MessageKind::Confirmable, Code::PUT, id, token)
            .with_uri_path(["5", "0", "0"])
            .with_block1(Block::new(transfer.number, more, BLOCK))
            .with_payload(&self.image[begin..end]);
        self.put(device, &block);
    }

    fn repeat(&mut self) {
        let silent = self.transfers.iter();
        let silent = silent.filter(|(_, transfer)| transfer.sent_at.elapsed() > REPEAT);
        let silent: Vec<SocketAddr> = silent.map(|(device, _)| *device).collect();
        silent.into_iter().for_each(|device| self.send(device));
    }

    fn put(&self, to: SocketAddr, message: &Message) {
        let sent = self.socket.send_to(&message.encode(), to);
        sent.expect("a datagram leaves");
    }
}
