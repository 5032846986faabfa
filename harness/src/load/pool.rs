//! Which devices does a load have, and how are they set to work? The workers, each on a thread of
//! its own while its devices have something to do.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use super::pace::{Pace, Share};
use super::tally::Tally;
use super::worker::{Field, Job, Watch, Worker};
use crate::clock::Stopwatch;

/// The simulated devices of a load.
pub struct DevicePool {
    workers: Vec<Worker>,
    clock: Stopwatch,
}

impl DevicePool {
    /// Opens a socket for each worker and deals the devices out to them.
    pub fn open(field: &Field, workers: u32) -> io::Result<Self> {
        let (clock, of) = (Stopwatch::start(), workers);
        let worker = |index| Worker::new(field, Share { index, of }, clock);
        Ok(Self {
            workers: (0..of).map(worker).collect::<io::Result<_>>()?,
            clock,
        })
    }

    /// Registers every device; returns after how many seconds the last was answered, too.
    pub fn register(
        &mut self,
        pace: Pace,
        beside: impl FnOnce(&Watch, &dyn Fn(Duration) -> bool),
    ) -> io::Result<(Tally, f64)> {
        let begun_at_ns = self.clock.now_ns();
        let tally = self.perform(|_| Job::Register(pace), beside)?;
        let took_ns = tally.last_answer_at_ns.saturating_sub(begun_at_ns);
        Ok((tally, Duration::from_nanos(took_ns).as_secs_f64()))
    }

    /// Has every worker do its job while something else goes on; that is given what it takes to
    /// watch the workers, to stop them, and to wait a while and tell whether all have ended.
    pub fn perform<'a>(
        &mut self,
        mut job: impl FnMut(usize) -> Job<'a>,
        beside: impl FnOnce(&Watch, &dyn Fn(Duration) -> bool),
    ) -> io::Result<Tally> {
        let watch = Watch::default();
        thread::scope(|scope| {
            let (alive, ended) = channel::<()>();
            let mut threads = Vec::new();
            for (index, worker) in self.workers.iter_mut().enumerate() {
                let (job, alive, watch) = (job(index), alive.clone(), &watch);
                threads.push(scope.spawn(move || {
                    let outcome = worker.perform(job, watch);
                    if outcome.is_err() {
                        watch.stop();
                    }
                    drop(alive);
                    outcome
                }));
            }
            drop(alive);
            beside(&watch, &|at_most| {
                ended.recv_timeout(at_most) != Err(RecvTimeoutError::Timeout)
            });
            let mut tally = Tally::default();
            for thread in threads {
                let outcome = thread.join();
                tally.add(&outcome.unwrap_or_else(|_| Err(io::Error::other("a worker panicked")))?);
            }
            Ok(tally)
        })
    }

    /// Tells how many devices are registered.
    pub fn registered(&self) -> u32 {
        self.workers.iter().map(Worker::registered).sum()
    }

    /// The clock all workers go by.
    pub fn clock(&self) -> Stopwatch {
        self.clock
    }
}
