//! Who plays? The workers of a load, each on a thread of its own while there is something to do.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use harness::clock::Stopwatch;
use harness::load::pace::{Pace, Share};
use harness::load::tally::Tally;
use harness::load::worker::{Field, Job, Watch, Worker};
use harness::load::{Conduct, Transmission};

use super::display::Display;
use super::options::{Options, Scenario};

/// How often the display is looked after.
const LOOK: Duration = Duration::from_millis(100);

/// The workers with their devices.
pub(super) struct Stage {
    workers: Vec<Worker>,
    clock: Stopwatch,
}

/// What the workers counted, and how long it took.
pub(super) struct Outcome {
    pub(super) tally: Tally,
    /// The time that is measured, in seconds.
    pub(super) took_s: f64,
}

impl Stage {
    /// Opens the sockets.
    pub(super) fn open(options: &Options) -> io::Result<Self> {
        let clock = Stopwatch::start();
        let field = field(options);
        let of = options.workers;
        let worker = |index| Worker::new(&field, Share { index, of }, clock);
        Ok(Self {
            workers: (0..of).map(worker).collect::<io::Result<_>>()?,
            clock,
        })
    }

    /// Registers every device. As fast as asked if that is what is measured, else with a window.
    pub(super) fn register(&mut self, options: &Options) -> io::Result<Outcome> {
        let pace = match options.scenario {
            Scenario::Register => pace(options),
            Scenario::Update | Scenario::Send => Pace::Window(options.requests()),
            Scenario::Actions => Pace::Window(options.requests().max(REGISTERING)),
        };
        let begun_at_ns = self.clock.now_ns();
        let mut outcome = self.perform("registering", |_| Job::Register(pace))?;
        let ended_at_ns = outcome.tally.last_answer_at_ns.max(begun_at_ns);
        outcome.took_s = Duration::from_nanos(ended_at_ns - begun_at_ns).as_secs_f64();
        Ok(outcome)
    }

    /// Has every worker do its job, and shows how far they are.
    pub(super) fn perform<'a>(
        &mut self,
        name: &'static str,
        job: impl FnMut(usize) -> Job<'a>,
    ) -> io::Result<Outcome> {
        self.perform_beside(job, |watch, done| {
            let mut display = Display::open(name);
            while !done(LOOK) {
                display.show(watch.progress());
            }
            display.close();
        })
    }

    /// Has every worker do its job while something else goes on; that is given what it takes to
    /// watch the workers, to stop them, and to wait a while and tell whether all have ended.
    pub(super) fn perform_beside<'a>(
        &mut self,
        mut job: impl FnMut(usize) -> Job<'a>,
        beside: impl FnOnce(&Watch, &dyn Fn(Duration) -> bool),
    ) -> io::Result<Outcome> {
        let watch = Watch::default();
        let begun_at_ns = self.clock.now_ns();
        let tallies = thread::scope(|scope| {
            let (alive, ended) = channel::<()>();
            let workers: Vec<_> = self.workers.iter_mut().enumerate().collect();
            let threads: Vec<_> = workers
                .into_iter()
                .map(|(index, worker)| {
                    let (job, alive, watch) = (job(index), alive.clone(), &watch);
                    scope.spawn(move || {
                        let outcome = worker.perform(job, watch);
                        if outcome.is_err() {
                            watch.stop();
                        }
                        drop(alive);
                        outcome
                    })
                })
                .collect();
            drop(alive);
            beside(&watch, &|at_most| {
                ended.recv_timeout(at_most) != Err(RecvTimeoutError::Timeout)
            });
            let outcomes = threads.into_iter().map(|thread| {
                let outcome = thread.join();
                outcome.unwrap_or_else(|_| Err(io::Error::other("a worker panicked")))
            });
            outcomes.collect::<io::Result<Vec<Tally>>>()
        })?;
        let mut tally = Tally::default();
        tallies.iter().for_each(|part| tally.add(part));
        let took = Duration::from_nanos(self.clock.now_ns().saturating_sub(begun_at_ns));
        let took_s = took.as_secs_f64();
        Ok(Outcome { tally, took_s })
    }

    /// How many devices are registered.
    pub(super) fn registered(&self) -> u32 {
        self.workers.iter().map(Worker::registered).sum()
    }

    /// The clock all workers go by.
    pub(super) fn clock(&self) -> Stopwatch {
        self.clock
    }
}

/// Registrations under way where they are not measured.
const REGISTERING: u32 = 256;

/// How requests of devices follow each other.
pub(super) fn pace(options: &Options) -> Pace {
    match options.rate {
        Some(rate) => Pace::Rate(rate),
        None => Pace::Window(options.requests()),
    }
}

/// A duration as workers count it.
pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn field(options: &Options) -> Field {
    let transmission = Transmission {
        ack_timeout_ms: options.ack_timeout_ms,
        max_retransmit: options.max_retransmit,
        ..Transmission::STANDARD
    };
    Field {
        server: options.target,
        network: options.bind,
        devices: options.devices,
        conduct: Conduct {
            pattern: options.endpoint_pattern.clone(),
            lifetime_s: options.lifetime,
            transmission,
            loss_percent: options.loss,
        },
        seed: options.seed.unwrap_or_default(),
    }
}
