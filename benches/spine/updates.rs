//! How many registration updates that change nothing does one core take, and how many datagrams
//! does a bare echo return meanwhile?
//!
//! Rounds alternate between the service and the echo, with the same datagrams from the same
//! devices. Whoever serves has a core of its own, and whoever sends has the other.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::crowd::Crowd;
use crate::echo::Echo;
use crate::figures::Figures;
use crate::line::Line;
use crate::shelf::Shelf;
use crate::thread::Thread;

/// Registered devices, where nothing else is asked for.
pub(crate) const FLEETS: [u32; 3] = [10_000, 100_000, 1_000_000];

/// Rounds that count, an odd number.
const ROUNDS: usize = 5;

/// How long a round takes.
const ROUND: Duration = Duration::from_secs(3);

/// How long both are warmed up at least.
const WARM_UP: Duration = Duration::from_secs(5);

/// How often each device is heard before anything counts, so that its memory of recent messages is
/// as full as it gets.
const WARM_UPS: u64 = 3;

const SERVER_CORE: u32 = 0;
const CLIENT_CORE: u32 = 1;

/// The second byte of a right answer of the service: 2.04.
const CHANGED: u8 = 0x44;

/// The second byte of what the echo returns: POST.
const POST: u8 = 0x02;

/// Measures and prints.
pub(crate) async fn run(fleets: &[u32]) {
    println!("## Registration updates that change nothing, one core\n");
    println!("| devices | server | datagrams/s | processor time each, µs | core busy |");
    println!("|---|---|---|---|---|");
    for &devices in fleets {
        let (service, echo) = measure(devices).await;
        show(devices, "signalbox", &service);
        show(devices, "bare echo", &echo);
        let rate = rates(&service).over(&rates(&echo));
        let cost = costs(&echo).over(&costs(&service));
        println!(
            "| {devices} | ratio | {} | {} | |",
            rate.shown(2),
            cost.shown(2)
        );
    }
    println!();
}

/// What one round came to.
struct Round {
    answered: u64,
    took: Duration,
    processor: Duration,
}

/// One that answers, and the thread that does.
#[derive(Clone, Copy)]
struct Server {
    address: SocketAddr,
    thread: Thread,
    code: u8,
}

async fn measure(devices: u32) -> (Vec<Round>, Vec<Round>) {
    let shelf = Shelf::with_devices(devices).await;
    let line = Line::start(&shelf, shelf.store.clone());
    let echo = Echo::start();
    let service = Server {
        address: line.coap,
        thread: line.thread,
        code: CHANGED,
    };
    let echo = Server {
        address: echo.address,
        thread: echo.thread,
        code: POST,
    };
    let (told, measured) = oneshot::channel();
    std::thread::spawn(move || {
        let rounds = alternate(devices, service, echo);
        assert!(told.send(rounds).is_ok(), "who asked waits");
    });
    let rounds = measured.await.expect("no datagram was lost");
    line.stop().await;
    rounds
}

fn alternate(devices: u32, service: Server, echo: Server) -> (Vec<Round>, Vec<Round>) {
    let mut crowd = Crowd::gather(devices);
    crowd.register(service.address);
    service.thread.keep_to(SERVER_CORE);
    echo.thread.keep_to(SERVER_CORE);
    Thread::current().keep_to(CLIENT_CORE);
    let mut heard = 0;
    while heard < WARM_UPS * u64::from(devices) {
        heard += crowd.update(service.address, service.code, WARM_UP);
    }
    crowd.update(echo.address, echo.code, WARM_UP);
    let pairs = (0..ROUNDS).map(|_| (round(&mut crowd, service), round(&mut crowd, echo)));
    pairs.unzip()
}

fn round(crowd: &mut Crowd, server: Server) -> Round {
    let processor = server.thread.processor_time();
    let begun_at = Instant::now();
    let answered = crowd.update(server.address, server.code, ROUND);
    Round {
        answered,
        took: begun_at.elapsed(),
        processor: server.thread.processor_time() - processor,
    }
}

fn rates(rounds: &[Round]) -> Figures {
    let rate = |round: &Round| round.answered as f64 / round.took.as_secs_f64();
    rounds.iter().map(rate).collect()
}

fn costs(rounds: &[Round]) -> Figures {
    let cost = |round: &Round| round.processor.as_secs_f64() * 1e6 / round.answered as f64;
    rounds.iter().map(cost).collect()
}

fn show(devices: u32, server: &str, rounds: &[Round]) {
    let busy = |round: &Round| round.processor.as_secs_f64() / round.took.as_secs_f64() * 100.0;
    let busy: Figures = rounds.iter().map(busy).collect();
    println!(
        "| {devices} | {server} | {} | {} | {:.0} % |",
        rates(rounds).shown(0),
        costs(rounds).shown(2),
        busy.median(),
    );
}
