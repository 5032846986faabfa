//! Who sends? The devices of `signalbox load`, one of them after the other, each from an address of
//! its own.

use std::net::{SocketAddr, SocketAddrV4};
use std::time::Duration;

use harness::clock::Stopwatch;
use harness::load::pace::{Pace, Share};
use harness::load::tally::Tally;
use harness::load::worker::{Field, Job, Watch, Worker};
use harness::load::{Conduct, Transmission};
use tokio::sync::oneshot;

/// Datagrams under way: enough that every group of commits is full, and few enough that no buffer
/// on the way overflows.
pub(crate) const WINDOW: u32 = 256;

/// The fleet's devices, on a thread of their own while they have something to do.
pub(crate) struct Senders {
    worker: Option<Worker>,
}

impl Senders {
    /// The first so many devices of the fleet, registered.
    pub(crate) async fn register(devices: u32, server: SocketAddr) -> Self {
        let field = Field {
            server: v4(server),
            network: "127.64.0.0/10".parse().expect("a network"),
            devices,
            conduct: Conduct {
                pattern: "urn:dev:{:09}".parse().expect("a pattern"),
                lifetime_s: 86_400,
                transmission: Transmission::STANDARD,
                loss_percent: 0,
            },
            seed: 1,
        };
        let share = Share { index: 0, of: 1 };
        let worker = Worker::new(&field, share, Stopwatch::start());
        let mut senders = Self {
            worker: Some(worker.expect("the load has a socket")),
        };
        senders.perform(Job::Register(Pace::Window(WINDOW))).await;
        let registered = senders.worker.as_ref().map(Worker::registered);
        assert_eq!(registered, Some(devices), "every device is registered");
        senders
    }

    /// Sends for so long; says what came of it.
    pub(crate) async fn send(&mut self, time: Duration) -> Tally {
        let for_ns = u64::try_from(time.as_nanos()).expect("a round is short");
        let pace = Pace::Window(WINDOW);
        let tally = self.perform(Job::Send { pace, for_ns }).await;
        assert_eq!(tally.failed(), 0, "every Send is answered: {tally:?}");
        tally
    }

    async fn perform(&mut self, job: Job<'static>) -> Tally {
        let mut worker = self.worker.take().expect("one thing is done at a time");
        let (told, done) = oneshot::channel();
        std::thread::spawn(move || {
            let tally = worker.perform(job, &Watch::default());
            assert!(told.send((worker, tally)).is_ok(), "who asked waits");
        });
        let (worker, tally) = done.await.expect("the load does not panic");
        self.worker = Some(worker);
        tally.expect("the socket works")
    }
}

fn v4(server: SocketAddr) -> SocketAddrV4 {
    let v4 = match server {
        SocketAddr::V4(server) => Some(server),
        SocketAddr::V6(_) => None,
    };
    v4.expect("the service hears devices at 127.0.0.1")
}
