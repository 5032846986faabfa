//! Which devices does a load have, and who runs them? Workers, each on a thread of its own while
//! its devices are busy.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use super::arrivals::{ArrivalPattern, ArrivalShare};
use super::tally::TaskTally;
use super::worker::{LoadJob, LoadProgress, LoadTarget, LoadWork, LoadWorker};
use crate::clock::Stopwatch;

/// The simulated devices of a load.
pub struct DevicePool {
    workers: Vec<LoadWorker>,
    clock: Stopwatch,
}

impl DevicePool {
    /// Opens a socket for each worker and distributes the devices among them.
    pub fn open(field: &LoadTarget, workers: u32) -> io::Result<Self> {
        let (clock, of) = (Stopwatch::start(), workers);
        let worker = |index| LoadWorker::new(field, ArrivalShare { index, of }, clock);
        Ok(Self {
            workers: (0..of).map(worker).collect::<io::Result<_>>()?,
            clock,
        })
    }

    /// Registers every device; also returns the seconds until the last one was answered.
    pub fn register(
        &mut self,
        arrivals: ArrivalPattern,
        beside: impl FnOnce(&LoadProgress, &dyn Fn(Duration) -> bool),
    ) -> io::Result<(TaskTally, f64)> {
        self.until_answered(LoadWork::Register(arrivals), beside)
    }

    /// Gives every device a new port, and registers all of them until each is back; also returns
    /// the seconds until the last one was answered.
    pub fn return_after_outage(
        &mut self,
        arrivals: ArrivalPattern,
        beside: impl FnOnce(&LoadProgress, &dyn Fn(Duration) -> bool),
    ) -> io::Result<(TaskTally, f64)> {
        for worker in &mut self.workers {
            worker.change_port()?;
        }
        self.until_answered(LoadWork::Return(arrivals), beside)
    }

    fn until_answered(
        &mut self,
        work: LoadWork,
        beside: impl FnOnce(&LoadProgress, &dyn Fn(Duration) -> bool),
    ) -> io::Result<(TaskTally, f64)> {
        let begun_at_ns = self.clock.now_ns();
        let job = |_| LoadJob {
            work,
            for_ns: u64::MAX,
            callers: None,
        };
        let tally = self.perform(job, beside)?;
        let took_ns = tally.last_answer_at_ns.saturating_sub(begun_at_ns);
        Ok((tally, Duration::from_nanos(took_ns).as_secs_f64()))
    }

    /// Runs a job on every worker while `beside` runs, which can watch the workers, stop them, and
    /// wait a while for all of them to end.
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

    /// The number of registered devices.
    pub fn registered(&self) -> u32 {
        self.workers.iter().map(LoadWorker::registered).sum()
    }

    /// The clock of all workers.
    pub fn clock(&self) -> Stopwatch {
        self.clock
    }
}
