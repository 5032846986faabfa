//! Which endpoint receives the events? One on a thread of its own that reads each POST to its end,
//! remembers its id, and answers 200.

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::task::{LocalSet, spawn_local};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// What each event has once.
const VERSION: &[u8] = b"\"version\":";

/// An endpoint, which ends with the process.
pub(crate) struct Endpoint {
    /// Its address.
    pub(crate) address: SocketAddr,
    received: Arc<ReceivedPosts>,
}

#[derive(Default)]
struct ReceivedPosts {
    is_away: AtomicBool,
    posts: AtomicU64,
    events: AtomicU64,
    connections: AtomicU64,
    log: Mutex<PostLog>,
}

#[derive(Default)]
struct PostLog {
    ids: HashSet<Box<[u8]>>,
    last: Vec<u8>,
}

impl Endpoint {
    /// Starts the endpoint.
    pub(crate) fn start() -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.expect("a port is free");
        listener
            .set_nonblocking(true)
            .expect("a socket need not block");
        let address = listener.local_addr().expect("a listener has an address");
        let received: Arc<ReceivedPosts> = Arc::default();
        let hearing = Arc::clone(&received);
        std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_io().build();
            let runtime = runtime.expect("a runtime can be had");
            LocalSet::new().block_on(&runtime, listen(listener, hearing));
        });
        Self { address, received }
    }

    /// The number of posts received.
    pub(crate) fn posts(&self) -> u64 {
        self.received.posts.load(Ordering::Relaxed)
    }

    /// The number of events in all posts.
    pub(crate) fn events_posted(&self) -> u64 {
        self.received.events.load(Ordering::Relaxed)
    }

    /// The number of connections opened.
    pub(crate) fn connections(&self) -> u64 {
        self.received.connections.load(Ordering::Relaxed)
    }

    /// The number of events received, without duplicates.
    pub(crate) fn events(&self) -> u64 {
        self.log().ids.len() as u64
    }

    /// The body of the last post.
    pub(crate) fn last_body(&self) -> Vec<u8> {
        self.log().last.clone()
    }

    /// Makes the endpoint unavailable: connections are closed without an answer.
    pub(crate) fn go_away(&self) {
        self.received.is_away.store(true, Ordering::Relaxed);
    }

    /// Makes the endpoint available again.
    pub(crate) fn come_back(&self) {
        self.received.is_away.store(false, Ordering::Relaxed);
    }

    fn log(&self) -> std::sync::MutexGuard<'_, PostLog> {
        self.received.log.lock().expect("nobody panics with it")
    }
}

impl ReceivedPosts {
    fn take(&self, head: &[u8], body: &[u8]) {
        let mut log = self.log.lock().expect("nobody panics with it");
        if let Some(id) = header(head, b"webhook-id") {
            log.ids.insert(id.into());
        }
        log.last.clear();
        log.last.extend_from_slice(body);
        self.posts.fetch_add(1, Ordering::Relaxed);
        let events = occurrences(body, VERSION).max(1);
        self.events.fetch_add(events, Ordering::Relaxed);
    }
}

/// How often a body has some bytes.
fn occurrences(body: &[u8], bytes: &[u8]) -> u64 {
    body.windows(bytes.len()).filter(|it| *it == bytes).count() as u64
}

async fn listen(listener: std::net::TcpListener, received: Arc<ReceivedPosts>) {
    let listener = TcpListener::from_std(listener).expect("the runtime takes a listener");
    loop {
        let (stream, _) = listener.accept().await.expect("the endpoint listens");
        received.connections.fetch_add(1, Ordering::Relaxed);
        spawn_local(serve(stream, Arc::clone(&received)));
    }
}

async fn serve(mut stream: TcpStream, received: Arc<ReceivedPosts>) {
    // It fails if the client has closed the connection; the read below then ends, too.
    let _ = stream.set_nodelay(true);
    let mut bytes = Vec::with_capacity(4_096);
    loop {
        while let Some((head, end)) = whole(&bytes) {
            if received.is_away.load(Ordering::Relaxed) {
                return;
            }
            received.take(&bytes[..head], &bytes[head..end]);
            bytes.drain(..end);
            if stream.write_all(OK).await.is_err() {
                return;
            }
        }
        match stream.read_buf(&mut bytes).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
    }
}

/// Where the head of a post ends, and where its body ends, once it is complete.
fn whole(bytes: &[u8]) -> Option<(usize, usize)> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let length = header(&bytes[..head], b"content-length");
    let length = length.and_then(|length| std::str::from_utf8(length).ok()?.parse().ok());
    let end = head + length.unwrap_or(0_usize);
    (bytes.len() >= end).then_some((head, end))
}

fn header<'a>(head: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let value = |line: &'a [u8]| line.strip_prefix(name)?.strip_prefix(b": ");
    let found = head.split(|byte| *byte == b'\n').find_map(value);
    found.map(<[u8]>::trim_ascii_end)
}
