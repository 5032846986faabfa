//! Who calls the API? Callers that each keep one connection and one request open, all on one
//! thread, with just enough HTTP/1.1 to leave the cores to the service.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use crate::fleet;

/// How many call at the same time.
pub(crate) const CALLERS: usize = 64;

const BODY: &str =
    r#"{"action":"read","resourceAddress":"/3303/0/5700","requestMode":"SEND_WHEN_ACTIVE"}"#;

/// The longest page of a list: a hundred requests of about a kilobyte.
const LIST_BYTES_MAX: usize = 256 * 1_024;

/// What a round of calls came to.
pub(crate) struct Called {
    /// From the first call to the last answer.
    pub(crate) took: Duration,
    /// How long each call waited for its answer.
    pub(crate) waits: Vec<Duration>,
}

/// Where the calls go, and in whose name.
#[derive(Clone)]
pub(crate) struct Api {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// The access token.
    pub(crate) token: &'static str,
}

/// Asks for a list so many times, one time after the other; to be called on a thread of its own.
pub(crate) fn list(api: &Api, path: &str, times: usize) -> Called {
    let runtime = Builder::new_current_thread().enable_io().build();
    let runtime = runtime.expect("a runtime can be had");
    let mut waits = Vec::with_capacity(times);
    let begun_at = Instant::now();
    runtime.block_on(async {
        let mut stream = connect(api).await;
        let mut buffer = vec![0; LIST_BYTES_MAX];
        let text = format!(
            "GET {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {}\r\n\r\n",
            api.token
        );
        for _ in 0..times {
            waits.push(ask(&mut stream, &mut buffer, &text, "HTTP/1.1 200 ").await);
        }
    });
    let took = begun_at.elapsed();
    Called { took, waits }
}

/// Creates so many action requests, for one device after the other; to be called on a thread of
/// its own.
pub(crate) fn create(api: &Api, requests: usize, devices: u32) -> Called {
    let runtime = Builder::new_current_thread().enable_io().build();
    let runtime = runtime.expect("a runtime can be had");
    let round = Rc::new(Round {
        requests,
        devices,
        begun: Cell::new(0),
        waits: RefCell::new(Vec::with_capacity(requests)),
    });
    let begun_at = Instant::now();
    runtime.block_on(LocalSet::new().run_until(async {
        let call = |_| tokio::task::spawn_local(call(api.clone(), Rc::clone(&round)));
        let callers: Vec<_> = (0..CALLERS).map(call).collect();
        for caller in callers {
            caller.await.expect("every call is answered 202");
        }
    }));
    let took = begun_at.elapsed();
    Called {
        took,
        waits: round.waits.take(),
    }
}

struct Round {
    requests: usize,
    devices: u32,
    begun: Cell<usize>,
    waits: RefCell<Vec<Duration>>,
}

impl Round {
    /// The device the next request is for.
    fn next(&self) -> Option<u32> {
        let number = self.begun.get();
        self.begun.set(number + 1);
        let device = || u32::try_from(number).expect("a round is small") % self.devices;
        (number < self.requests).then(device)
    }
}

async fn call(api: Api, round: Rc<Round>) {
    let mut stream = connect(&api).await;
    let mut buffer = vec![0; 4_096];
    while let Some(device) = round.next() {
        let text = request(&api, device);
        let wait = ask(&mut stream, &mut buffer, &text, "HTTP/1.1 202 ").await;
        round.waits.borrow_mut().push(wait);
    }
}

async fn connect(api: &Api) -> TcpStream {
    let stream = TcpStream::connect(api.address)
        .await
        .expect("the API takes a connection");
    stream
        .set_nodelay(true)
        .expect("a connection need not wait for more");
    stream
}

/// Makes a call and says how long its answer took, which must be the one expected.
async fn ask(stream: &mut TcpStream, buffer: &mut [u8], text: &str, expected: &str) -> Duration {
    let begun_at = Instant::now();
    stream
        .write_all(text.as_bytes())
        .await
        .expect("the API reads");
    take_answer(stream, buffer, expected).await;
    begun_at.elapsed()
}

fn request(api: &Api, device: u32) -> String {
    let (token, length) = (api.token, BODY.len());
    let device = fleet::profile(device).device;
    format!(
        "POST /management-api/v1/integrate/devices/{device}/actions/LWM2M HTTP/1.1\r\n\
         host: bench\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{BODY}"
    )
}

async fn take_answer(stream: &mut TcpStream, buffer: &mut [u8], expected: &str) {
    let mut filled = 0;
    loop {
        let more = stream
            .read(&mut buffer[filled..])
            .await
            .expect("the API answers");
        assert!(more > 0, "the API keeps the connection");
        filled += more;
        let text = std::str::from_utf8(&buffer[..filled]).expect("the answer is text");
        if is_whole(text) {
            assert!(text.starts_with(expected), "{text}");
            return;
        }
    }
}

/// Whether the body is there as long as the header says.
fn is_whole(answer: &str) -> bool {
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        return false;
    };
    let mut headers = head.lines().filter_map(|line| line.split_once(": "));
    let length = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let (_, length) = length.expect("a body has its length");
    body.len() == length.parse::<usize>().expect("a length is a number")
}
