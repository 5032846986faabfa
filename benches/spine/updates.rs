//! How many registration updates without changes does one core handle, and how many datagrams does
//! a bare echo return in that time?
//!
//! Rounds alternate between the service and the echo, with the same datagrams from the same
//! devices. The server has a core of its own, and the sender has the other.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use harness::load::figures::Figures;

use crate::device_group::DeviceGroup;
use crate::echo::Echo;
use crate::line::ApiLessService;
use crate::load::aside;
use crate::shelf::TempStore;
use crate::thread::Thread;

/// The default numbers of registered devices.
pub(crate) const FLEETS: [u32; 3] = [10_000, 100_000, 1_000_000];

/// Measured rounds, an odd number.
const ROUNDS: usize = 5;

/// The duration of a round.
const ROUND: Duration = Duration::from_secs(3);

/// The shortest warm-up of both.
const WARM_UP: Duration = Duration::from_secs(5);

/// Datagrams per device before the measurement, so that its memory of recent messages is as full as
/// it gets.
const WARM_UPS: u64 = 3;

const SERVER_CORE: u32 = 0;
const CLIENT_CORE: u32 = 1;

/// The second byte of the service's expected answer: 2.04.
const CHANGED: u8 = 0x44;

/// The second byte of the echo's datagrams: POST.
const POST: u8 = 0x02;

/// The results of the service and the echo.
pub(crate) struct Compared {
    /// The service.
    pub(crate) service: Rounds,
    echo: Rounds,
}

/// The results of the rounds.
pub(crate) struct Rounds(Vec<Round>);

/// The result of one round.
struct Round {
    answered: u64,
    took: Duration,
    processor: Duration,
}

/// Measures and prints.
pub(crate) async fn run(fleets: &[u32]) {
    println!("## Registration updates that change nothing, one core\n");
    println!("| devices | server | datagrams/s | processor time each, µs | core busy |");
    println!("|---|---|---|---|---|");
    for &devices in fleets {
        let compared = measure(devices).await;
        let Compared { service, echo } = &compared;
        service.show(devices, "signalbox");
        echo.show(devices, "bare echo");
        let rate = compared.ratio().shown(2);
        let cost = echo.costs().over(&service.costs()).shown(2);
        println!("| {devices} | ratio | {rate} | {cost} | |");
    }
    println!();
}

impl Compared {
    /// Datagrams per second, of those of the echo.
    pub(crate) fn ratio(&self) -> Figures {
        self.service.rates().over(&self.echo.rates())
    }
}

impl Rounds {
    /// Datagrams per second.
    fn rates(&self) -> Figures {
        let rate = |round: &Round| round.answered as f64 / round.took.as_secs_f64();
        self.0.iter().map(rate).collect()
    }

    /// The processor time per datagram, in microseconds.
    pub(crate) fn costs(&self) -> Figures {
        let cost = |round: &Round| round.processor.as_secs_f64() * 1e6 / round.answered as f64;
        self.0.iter().map(cost).collect()
    }

    fn show(&self, devices: u32, server: &str) {
        let busy = |round: &Round| round.processor.as_secs_f64() / round.took.as_secs_f64() * 1e2;
        let busy: Figures = self.0.iter().map(busy).collect();
        let (rate, cost) = (self.rates().shown(0), self.costs().shown(2));
        let busy = busy.median().expect("there are rounds");
        println!("| {devices} | {server} | {rate} | {cost} | {busy:.0} % |");
    }
}

/// A server, and the thread it runs on.
#[derive(Clone, Copy)]
struct Server {
    address: SocketAddr,
    thread: Thread,
    code: u8,
}

/// Measures with this many devices.
pub(crate) async fn measure(devices: u32) -> Compared {
    let shelf = TempStore::with_devices(devices).await;
    let line = ApiLessService::start(&shelf, shelf.store.clone()).await;
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
    let (service, echo) = aside(move || alternate(devices, service, echo)).await;
    line.stop().await;
    Compared { service, echo }
}

fn alternate(devices: u32, service: Server, echo: Server) -> (Rounds, Rounds) {
    let mut group = DeviceGroup::gather(devices);
    group.register(service.address);
    service.thread.keep_to(SERVER_CORE);
    echo.thread.keep_to(SERVER_CORE);
    Thread::current().keep_to(CLIENT_CORE);
    let mut answered = 0;
    while answered < WARM_UPS * u64::from(devices) {
        answered += group.update(service.address, service.code, WARM_UP);
    }
    group.update(echo.address, echo.code, WARM_UP);
    let pairs = (0..ROUNDS).map(|_| (round(&mut group, service), round(&mut group, echo)));
    let (service, echo) = pairs.unzip();
    (Rounds(service), Rounds(echo))
}

fn round(group: &mut DeviceGroup, server: Server) -> Round {
    let processor = server.thread.processor_time();
    let begun_at = Instant::now();
    let answered = group.update(server.address, server.code, ROUND);
    Round {
        answered,
        took: begun_at.elapsed(),
        processor: server.thread.processor_time() - processor,
    }
}
