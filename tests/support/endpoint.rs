//! How does a customer's endpoint behave? An HTTP server of the test that receives posts and
//! answers, stays silent or breaks the connection as the test says.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

use super::poll::PATIENCE;

/// How often a held connection checks whether the endpoint is still open.
const PAUSE: Duration = Duration::from_millis(20);

/// An endpoint on a port of its own. It closes when this value is dropped.
pub(crate) struct Endpoint {
    /// Its address, which stays the same after it was closed.
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    door: Option<EndpointListener>,
}

/// A request the endpoint received.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedPost {
    /// The method.
    pub(crate) method: String,
    /// The path with its query.
    pub(crate) path: String,
    /// The headers, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body as received.
    pub(crate) text: String,
    /// How it was answered.
    pub(crate) reply: Reply,
}

/// How the endpoint answers a post.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Reply {
    /// Answers with a status.
    Status(u16),
    /// Answers with a status and a header.
    With(u16, &'static str, String),
    /// Answers with a status and a body of JSON.
    Json(u16, String),
    /// Sends nothing while the endpoint is open.
    Silence,
    /// Begins an answer that announces more bytes, and breaks the connection.
    BreakInBody,
    /// Breaks the connection before answering.
    Break,
}

/// Chooses the reply to each post; posts are numbered from 0.
type ReplyPlan = Box<dyn Fn(&ReceivedPost, usize) -> Reply + Send>;

struct Shared {
    /// The certificate, if the endpoint speaks HTTPS.
    tls: Option<Arc<ServerConfig>>,
    manner: Mutex<ReplyPlan>,
    posted: Mutex<Vec<ReceivedPost>>,
    arrived: Condvar,
}

/// The listening part, present while the endpoint is open.
struct EndpointListener {
    is_closed: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    thread: thread::JoinHandle<()>,
}

impl Endpoint {
    /// An endpoint that accepts everything.
    pub(crate) fn new() -> Self {
        Self::replying(|_, _| Reply::Status(204))
    }

    /// An endpoint that replies to each post as the plan says.
    pub(crate) fn replying(
        manner: impl Fn(&ReceivedPost, usize) -> Reply + Send + 'static,
    ) -> Self {
        Self::made(None, Box::new(manner))
    }

    /// An endpoint that accepts everything over HTTPS.
    pub(crate) fn secure(tls: ServerConfig) -> Self {
        Self::made(Some(Arc::new(tls)), Box::new(|_, _| Reply::Status(204)))
    }

    fn made(tls: Option<Arc<ServerConfig>>, manner: ReplyPlan) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            tls,
            manner: Mutex::new(manner),
            posted: Mutex::default(),
            arrived: Condvar::new(),
        });
        let door = Some(EndpointListener::open(listener, &shared));
        Self {
            address,
            shared,
            door,
        }
    }

    /// Its URL with a path.
    pub(crate) fn url(&self, path: &str) -> String {
        let scheme = if self.shared.tls.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{}{path}", self.address)
    }

    /// Changes the reply plan from now on.
    pub(crate) fn reply(&self, manner: impl Fn(&ReceivedPost, usize) -> Reply + Send + 'static) {
        *self.shared.manner.lock().unwrap() = Box::new(manner);
    }

    /// Closes the endpoint: connections break and none is accepted.
    pub(crate) fn close(&mut self) {
        if let Some(door) = self.door.take() {
            door.close(self.address);
        }
    }

    /// Opens the endpoint again at the same address.
    pub(crate) fn open(&mut self) {
        let listener = TcpListener::bind(self.address).unwrap();
        self.door = Some(EndpointListener::open(listener, &self.shared));
    }

    /// Everything posted so far.
    pub(crate) fn posted(&self) -> Vec<ReceivedPost> {
        self.shared.posted.lock().unwrap().clone()
    }

    /// Everything posted, once there are this many.
    pub(crate) fn once(&self, amount: usize) -> Vec<ReceivedPost> {
        self.once_so(&format!("{amount} deliveries"), |posted| {
            posted.len() >= amount
        })
    }

    /// The accepted posts, once there are this many.
    pub(crate) fn once_taken(&self, amount: usize) -> Vec<ReceivedPost> {
        let enough = |posted: &[ReceivedPost]| taken(posted).len() >= amount;
        taken(&self.once_so(&format!("{amount} taken deliveries"), enough))
    }

    /// Everything posted, once it meets a condition.
    pub(crate) fn once_so(
        &self,
        awaited: &str,
        is_so: impl Fn(&[ReceivedPost]) -> bool,
    ) -> Vec<ReceivedPost> {
        let posted = self.shared.posted.lock().unwrap();
        let waits = |posted: &mut Vec<ReceivedPost>| !is_so(posted);
        let (posted, waited) = self
            .shared
            .arrived
            .wait_timeout_while(posted, PATIENCE, waits)
            .unwrap();
        assert!(
            !waited.timed_out(),
            "not within {PATIENCE:?}: {awaited} of {}",
            posted.len()
        );
        posted.clone()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.close();
    }
}

impl ReceivedPost {
    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The id of the event.
    pub(crate) fn id(&self) -> &str {
        self.header("webhook-id").expect("each delivery has an id")
    }

    /// The body.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    /// Whether it was accepted.
    pub(crate) fn is_taken(&self) -> bool {
        matches!(
            self.reply,
            Reply::Status(200..=299) | Reply::With(200..=299, ..) | Reply::Json(200..=299, _)
        )
    }
}

/// The accepted posts.
pub(crate) fn taken(posted: &[ReceivedPost]) -> Vec<ReceivedPost> {
    let taken = posted.iter().filter(|posted| posted.is_taken());
    taken.cloned().collect()
}

impl EndpointListener {
    fn open(listener: TcpListener, shared: &Arc<Shared>) -> Self {
        let is_closed = Arc::new(AtomicBool::new(false));
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let (shared, closed, connections) = (
            Arc::clone(shared),
            Arc::clone(&is_closed),
            Arc::clone(&streams),
        );
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if closed.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                connections
                    .lock()
                    .unwrap()
                    .push(stream.try_clone().unwrap());
                let (shared, closed) = (Arc::clone(&shared), Arc::clone(&closed));
                thread::spawn(move || serve(stream, &shared, &closed));
            }
        });
        Self {
            is_closed,
            streams,
            thread,
        }
    }

    fn close(self, address: SocketAddr) {
        self.is_closed.store(true, Ordering::SeqCst);
        // A connection wakes the thread that accepts connections.
        drop(TcpStream::connect(address));
        self.thread.join().unwrap();
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn serve(stream: TcpStream, shared: &Shared, is_closed: &AtomicBool) {
    let mut raw = stream.try_clone().unwrap();
    match &shared.tls {
        None => converse(stream, &mut raw, shared, is_closed),
        Some(tls) => {
            let connection = ServerConnection::new(Arc::clone(tls)).unwrap();
            let stream = StreamOwned::new(connection, stream);
            converse(stream, &mut raw, shared, is_closed);
        }
    }
}

/// Serves one connection until either side closes it.
fn converse(
    stream: impl Read + Write,
    raw: &mut TcpStream,
    shared: &Shared,
    is_closed: &AtomicBool,
) {
    let mut stream = BufReader::new(stream);
    while let Some(posted) = read(&mut stream) {
        let (head, body) = match shared.take(posted) {
            Reply::Status(status) => (format!("HTTP/1.1 {status} So\r\n"), String::new()),
            Reply::With(status, name, value) => {
                let head = format!("HTTP/1.1 {status} So\r\n{name}: {value}\r\n");
                (head, String::new())
            }
            Reply::Json(status, body) => {
                let media = "content-type: application/json";
                (format!("HTTP/1.1 {status} So\r\n{media}\r\n"), body)
            }
            Reply::Silence => {
                while !is_closed.load(Ordering::SeqCst) && !is_gone(raw) {
                    thread::park_timeout(PAUSE);
                }
                return;
            }
            Reply::BreakInBody => {
                let text = "HTTP/1.1 200 So\r\ncontent-length: 1000\r\n\r\nbegun";
                let _ = stream.get_mut().write_all(text.as_bytes());
                let _ = raw.shutdown(Shutdown::Both);
                return;
            }
            Reply::Break => {
                let _ = raw.shutdown(Shutdown::Both);
                return;
            }
        };
        let length = body.len();
        let text = format!("{head}content-length: {length}\r\n\r\n{body}");
        if stream.get_mut().write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

/// Whether the peer closed the connection.
fn is_gone(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    match stream.read(&mut [0; 1]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

impl Shared {
    /// Records a post and returns the reply to it.
    fn take(&self, posted: ReceivedPost) -> Reply {
        let mut all = self.posted.lock().unwrap();
        let reply = (self.manner.lock().unwrap())(&posted, all.len());
        all.push(ReceivedPost {
            reply: reply.clone(),
            ..posted
        });
        self.arrived.notify_all();
        reply
    }
}

/// The next request of a connection, or None at its end.
fn read(reader: &mut BufReader<impl Read>) -> Option<ReceivedPost> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(Some(0), |(_, value)| value.parse().ok())?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(ReceivedPost {
        method,
        path,
        headers,
        text: String::from_utf8(body).ok()?,
        reply: Reply::Silence,
    })
}
