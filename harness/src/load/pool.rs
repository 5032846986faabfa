//! Which devices does a load have, and how are they set to work? The workers, each on a thread of
//! its own while its devices have something to do.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use super::arrivals::{ArrivalPattern, ArrivalShare};
use super::tally::TaskTally;
use super::worker::{LoadJob, LoadProgress, LoadTarget, LoadWorker};
use crate::clock::Stopwatch;

/// The simulated devices of a load.
pub struct DevicePool {
    workers: Vec<LoadWorker>,
    clock: Stopwatch,
}

impl DevicePool {
    /// Opens a socket for each worker and deals the devices out to them.
    pub fn open(field: &LoadTarget, workers: u32) -> io::Result<Self> {
        let (clock, of) = (Stopwatch::start(), workers);
        let worker = |index| LoadWorker::new(field, ArrivalShare { index, of }, clock);
        Ok(Self {
            workers: (0..of).map(worker).collect::<io::Result<_>>()?,
            clock,
        })
    }

    /// Registers every device; returns after how many seconds the last was answered, too.
    pub fn register(
        &mut self,
        arrivals: ArrivalPattern,
        beside: impl FnOnce(&LoadProgress, &dyn Fn(Duration) -> bool),
    ) -> io::Result<(TaskTally, f64)> {
        let begun_at_ns = self.clock.now_ns();
        let tally = self.perform(|_| LoadJob::Register(arrivals), beside)?;
        let took_ns = tally.last_answer_at_ns.saturating_sub(begun_at_ns);
        Ok((tally, Duration::from_nanos(took_ns).as_secs_f64()))
    }

    /// Has every worker do its job while something else goes on; that is given what it takes to
    /// watch the workers, to stop them, and to wait a while and tell whether all have ended.
    pub fn perform<'a>(
        &mut self,
        mut job: impl FnMut(usize) -> LoadJob<'a>,
        beside: impl FnOnce(&LoadProgress, &dyn Fn(Duration) -> bool),
    ) -> io::Result<TaskTally> {
        let watch = LoadProgress::default();
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
            let mut tally = TaskTally::default();
            for thread in threads {
                let outcome = thread.join();
                tally.add(&outcome.unwrap_or_else(|_| Err(io::Error::other("a worker panicked")))?);
            }
            Ok(tally)
        })
    }

    /// Tells how many devices are registered.
    pub fn registered(&self) -> u32 {
        self.workers.iter().map(LoadWorker::registered).sum()
    }

    /// The clock all workers go by.
    pub fn clock(&self) -> Stopwatch {
        self.clock
    }
}
