//! Who calls the API? Callers that each keep one connection and one request open, all on one
//! thread, with just enough HTTP/1.1 to leave the cores to the service: the client of load and demo
//! costs a good part of what the fastest of these calls costs the service.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use harness::load::figures::Figures;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use crate::fleet;
use crate::load::aside;

/// The number of concurrent callers.
pub(crate) const CALLERS: usize = 64;

const BODY: &str =
    r#"{"action":"read","resourceAddress":"/3303/0/5700","requestMode":"SEND_WHEN_ACTIVE"}"#;

/// The longest response, a page of a hundred requests of about a kilobyte.
const ANSWER_BYTES_MAX: usize = 256 * 1_024;

/// The result of a round of calls.
pub(crate) struct Called {
    /// From the first call to the last response.
    pub(crate) took: Duration,
    /// The latency of each call.
    pub(crate) waits: Vec<Duration>,
}

/// The API and its credentials.
#[derive(Clone)]
pub(crate) struct Api {
    /// Its address.
    pub(crate) address: SocketAddr,
    /// The access token.
    pub(crate) token: &'static str,
}

/// Calls of one kind.
struct Calls {
    api: Api,
    /// Their number.
    count: usize,
    /// The text of a call, by its number.
    text: Box<dyn Fn(usize) -> String>,
    /// The beginning of each response.
    expected: &'static str,
    begun: Cell<usize>,
    waits: RefCell<Vec<Duration>>,
}

/// Rates and latencies over several rounds.
pub(crate) struct Shown {
    /// Calls per second.
    pub(crate) rate: Figures,
    /// The median latency in milliseconds.
    pub(crate) p50_ms: Figures,
    /// The 99th percentile of the latency.
    pub(crate) p99_ms: Figures,
}

impl Shown {
    /// The figures of some rounds.
    pub(crate) fn of(rounds: &[Called]) -> Self {
        let wait_ms = |percent| move |round: &Called| percentile_ms(&round.waits, percent);
        let rate = |round: &Called| round.waits.len() as f64 / round.took.as_secs_f64();
        Self {
            rate: rounds.iter().map(rate).collect(),
            p50_ms: rounds.iter().map(wait_ms(50)).collect(),
            p99_ms: rounds.iter().map(wait_ms(99)).collect(),
        }
    }

    /// A row of a table.
    pub(crate) fn print(&self, name: &str) {
        let (rate, p50_ms) = (self.rate.shown(0), self.p50_ms.shown(2));
        println!("| {name} | {rate} | {p50_ms} | {} |", self.p99_ms.shown(2));
    }
}

/// The latency at a percentile, in milliseconds.
pub(crate) fn percentile_ms(waits: &[Duration], percent: usize) -> f64 {
    let mut sorted = waits.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() * percent / 100].as_secs_f64() * 1e3
}

/// Requests a list this many times, one after the other.
pub(crate) async fn list(api: &Api, path: &str, times: usize) -> Called {
    let text = format!(
        "GET {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {}\r\n\r\n",
        api.token
    );
    let api = api.clone();
    aside(move || make(api, 1, times, "HTTP/1.1 200 ", move |_| text.clone())).await
}

/// Creates this many action requests, for one device after the other.
pub(crate) async fn create(api: &Api, requests: usize, devices: u32) -> Called {
    let (api, token) = (api.clone(), api.token);
    let text = move |number| {
        let number = u32::try_from(number).expect("a round is small") % devices;
        let (device, length) = (fleet::profile(number).device, BODY.len());
        format!(
            "POST /management-api/v1/integrate/devices/{device}/actions/LWM2M HTTP/1.1\r\n\
             host: bench\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{BODY}"
        )
    };
    aside(move || make(api, CALLERS, requests, "HTTP/1.1 202 ", text)).await
}

fn make(
    api: Api,
    callers: usize,
    count: usize,
    expected: &'static str,
    text: impl Fn(usize) -> String + 'static,
) -> Called {
    let runtime = Builder::new_current_thread().enable_io().build();
    let runtime = runtime.expect("a runtime can be had");
    let calls = Rc::new(Calls {
        api,
        count,
        text: Box::new(text),
        expected,
        begun: Cell::new(0),
        waits: RefCell::new(Vec::with_capacity(count)),
    });
    let begun_at = Instant::now();
    runtime.block_on(LocalSet::new().run_until(async {
        let call = |_| tokio::task::spawn_local(call(Rc::clone(&calls)));
        let callers: Vec<_> = (0..callers).map(call).collect();
        for caller in callers {
            caller.await.expect("every call is answered as expected");
        }
    }));
    Called {
        took: begun_at.elapsed(),
        waits: calls.waits.take(),
    }
}

async fn call(calls: Rc<Calls>) {
    let stream = TcpStream::connect(calls.api.address).await;
    let mut stream = stream.expect("the API takes a connection");
    let nodelay = stream.set_nodelay(true);
    nodelay.expect("a connection need not wait for more");
    let mut buffer = vec![0; ANSWER_BYTES_MAX];
    loop {
        let number = calls.begun.replace(calls.begun.get() + 1);
        if number >= calls.count {
            return;
        }
        let text = (calls.text)(number);
        let begun_at = Instant::now();
        let sent = stream.write_all(text.as_bytes()).await;
        sent.expect("the API reads");
        take_answer(&mut stream, &mut buffer, calls.expected).await;
        calls.waits.borrow_mut().push(begun_at.elapsed());
    }
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

/// Whether the body is as long as the header says.
fn is_whole(answer: &str) -> bool {
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        return false;
    };
    let mut headers = head.lines().filter_map(|line| line.split_once(": "));
    let length = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let (_, length) = length.expect("a body has its length");
    body.len() == length.parse::<usize>().expect("a length is a number")
}
