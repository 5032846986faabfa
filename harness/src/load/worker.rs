//! Who gives the devices their turn? A thread with a socket, a clock, and a crowd of them.

use std::io;
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};

use super::crowd::{Conduct, Crowd, Task};
use super::exchange::Act;
use super::identity::Network;
use super::line::{Batches, Line};
use super::outbox::Outbox;
use super::pace::{ArrivalSchedule, Pace, Share};
use super::tally::Tally;
use crate::clock::Stopwatch;

/// How long a thread looks again and again before it rests: whoever wakes it pays for that, and
/// that is the server.
const RESTLESS_NS: u64 = 30_000;

/// A rest ends this much before the clock makes something to do, for a rest ends late.
const EARLY_NS: u64 = 100_000;

/// The longest rest: somebody may want the thread to stop.
const REST_NS_MAX: u64 = 50_000_000;

/// The longest rest of a thread that is told which devices to wake.
const REST_NS_MAX_WITH_ORDERS: u64 = 1_000_000;

/// Who loads whom.
#[derive(Clone, Debug)]
pub struct Field {
    /// Where the server hears devices.
    pub server: SocketAddrV4,
    /// Where the devices send from.
    pub network: Network,
    /// How many there are; no more than the network has addresses.
    pub devices: u32,
    /// How they behave.
    pub conduct: Conduct,
    /// Settles what is left to chance.
    pub seed: u64,
}

/// Some of the devices of a load.
pub(super) struct Worker {
    crowd: Crowd,
    line: Line,
    share: Share,
    first: u32,
    clock: Stopwatch,
}

/// What the devices of a worker are to do.
pub enum Job<'a> {
    /// Each registers once.
    Register(Pace),
    /// One after the other they update their registrations, for so long.
    Update {
        /// How fast.
        pace: Pace,
        /// How long.
        for_ns: u64,
    },
    /// One after the other they send a measured value, for so long.
    Send {
        /// How fast.
        pace: Pace,
        /// How long.
        for_ns: u64,
    },
    /// They answer what the server asks, until they are told to stop.
    Listen {
        /// The numbers of devices that are to update their registration at once.
        wakes: Receiver<u32>,
        /// Is told the number of a device that has answered, and when.
        answered: &'a (dyn Fn(u32, u64) + Sync),
    },
}

/// What can be seen of running workers, and how they are stopped.
#[derive(Debug, Default)]
pub struct Watch {
    begun: AtomicU64,
    answered: AtomicU64,
    failed: AtomicU64,
    stopped: AtomicBool,
}

/// How far running workers are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Progress {
    /// Requests that left.
    pub begun: u64,
    /// Requests answered as they should be.
    pub answered: u64,
    /// Requests that came to nothing.
    pub failed: u64,
}

impl Progress {
    /// Tells how far somebody is who counts so.
    pub fn of(tally: &Tally) -> Self {
        Self {
            begun: tally.begun,
            answered: tally.answered,
            failed: tally.failed(),
        }
    }
}

impl Watch {
    /// Tells how far they are.
    pub fn progress(&self) -> Progress {
        Progress {
            begun: self.begun.load(Ordering::Relaxed),
            answered: self.answered.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }

    /// Has them stop; what is under way stays unanswered.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn note(&self, last: Progress, now: Progress) {
        self.begun
            .fetch_add(now.begun - last.begun, Ordering::Relaxed);
        self.answered
            .fetch_add(now.answered - last.answered, Ordering::Relaxed);
        self.failed
            .fetch_add(now.failed - last.failed, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// The devices a worker has: so many from a number on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Devices {
    /// The number of the first.
    pub first: u32,
    /// How many.
    pub count: u32,
}

impl Devices {
    /// The devices of one of several workers, of all there are.
    pub fn of_share(count: u32, share: Share) -> Self {
        let begin = |index: u32| {
            let at = u64::from(count) * u64::from(index) / u64::from(share.of.max(1));
            u32::try_from(at).unwrap_or(count)
        };
        let first = begin(share.index);
        Self {
            first,
            count: begin(share.index + 1) - first,
        }
    }
}

impl Worker {
    /// Gathers its share of the devices of a load.
    pub(super) fn new(field: &Field, share: Share, clock: Stopwatch) -> io::Result<Self> {
        let Devices { first, count } = Devices::of_share(field.devices, share);
        let seed = field.seed.wrapping_add(u64::from(share.index));
        Ok(Self {
            crowd: Crowd::gather(field.conduct.clone(), first, count, seed),
            line: Line::open(field.server, field.network, first)?,
            share,
            first,
            clock,
        })
    }

    /// How many of its devices are registered.
    pub(super) fn registered(&self) -> u32 {
        self.crowd.registered()
    }

    /// Does a job on the calling thread, to its end or until it is stopped.
    pub(super) fn perform(&mut self, job: Job<'_>, watch: &Watch) -> io::Result<Tally> {
        let now_ns = self.clock.now_ns();
        let (task, until_ns, orders) = match job {
            Job::Register(pace) => {
                let schedule = ArrivalSchedule::begin(pace, self.share, now_ns, u64::MAX);
                (Task::Register(schedule), u64::MAX, None)
            }
            Job::Update { pace, for_ns } => self.repeat(Act::Update, (pace, now_ns, for_ns)),
            Job::Send { pace, for_ns } => self.repeat(Act::Send, (pace, now_ns, for_ns)),
            Job::Listen { wakes, answered } => {
                (Task::Listen, u64::MAX, Some(Orders { wakes, answered }))
            }
        };
        self.crowd.begin(task, until_ns);
        self.work(orders.as_ref(), watch)?;
        Ok(self.crowd.take_tally())
    }

    fn repeat(&self, act: Act, (pace, now_ns, for_ns): (Pace, u64, u64)) -> Planned<'static> {
        let until_ns = now_ns.saturating_add(for_ns);
        let schedule = ArrivalSchedule::begin(pace, self.share, now_ns, until_ns);
        (Task::Repeat(act, schedule), until_ns, None)
    }

    fn work(&mut self, orders: Option<&Orders<'_>>, watch: &Watch) -> io::Result<()> {
        let mut batches = Batches::new();
        let mut out = Outbox::default();
        let mut noted = Progress::default();
        let mut busy_at_ns = self.clock.now_ns();
        loop {
            let now_ns = self.clock.now_ns();
            if let Some(orders) = orders {
                orders.take(self.first, &mut self.crowd, now_ns, &mut out);
            }
            self.crowd.turn(now_ns, &mut out);
            let spoke = !out.is_empty();
            self.say(&mut batches, &mut out, orders)?;
            let heard = self.listen(&mut batches, &mut out)?;
            self.say(&mut batches, &mut out, orders)?;
            let progress = Progress::of(self.crowd.tally());
            watch.note(noted, progress);
            noted = progress;
            let is_done = orders.is_none() && self.crowd.is_done(now_ns);
            if is_done || watch.is_stopped() {
                return Ok(());
            }
            if spoke || heard > 0 {
                busy_at_ns = now_ns;
            } else if now_ns.saturating_sub(busy_at_ns) > RESTLESS_NS {
                self.rest(orders.is_some(), now_ns)?;
            }
        }
    }

    fn say(
        &self,
        batches: &mut Batches,
        out: &mut Outbox,
        orders: Option<&Orders<'_>>,
    ) -> io::Result<()> {
        self.line.send(batches, out)?;
        if let Some(orders) = orders
            && !out.asked().is_empty()
        {
            let now_ns = self.clock.now_ns();
            for member in out.asked() {
                (orders.answered)(self.first + member, now_ns);
            }
        }
        out.clear();
        Ok(())
    }

    fn listen(&mut self, batches: &mut Batches, out: &mut Outbox) -> io::Result<usize> {
        let Self {
            crowd, line, clock, ..
        } = self;
        let mut now_ns = None;
        line.hear(batches, |member, bytes| {
            // What comes together has come together.
            let now_ns = *now_ns.get_or_insert_with(|| clock.now_ns());
            crowd.hear(member, bytes, now_ns, out);
        })
    }

    fn rest(&self, has_orders: bool, now_ns: u64) -> io::Result<()> {
        let longest_ns = match has_orders {
            true => REST_NS_MAX_WITH_ORDERS,
            false => REST_NS_MAX,
        };
        let next_at_ns = self.crowd.next_at().unwrap_or(u64::MAX);
        let rest_ns = next_at_ns.saturating_sub(now_ns).min(longest_ns);
        match rest_ns.checked_sub(EARLY_NS) {
            Some(rest_ns) if rest_ns > 0 => self.line.wait(rest_ns),
            Some(_) | None => Ok(()),
        }
    }
}

/// What is to be done, until when answers are in time, and who gives orders meanwhile.
type Planned<'a> = (Task, u64, Option<Orders<'a>>);

/// What a listening worker is told from outside, and whom it tells.
struct Orders<'a> {
    wakes: Receiver<u32>,
    answered: &'a (dyn Fn(u32, u64) + Sync),
}

impl Orders<'_> {
    fn take(&self, first: u32, crowd: &mut Crowd, now_ns: u64, out: &mut Outbox) {
        loop {
            match self.wakes.try_recv() {
                Ok(number) => {
                    if let Some(member) = number.checked_sub(first) {
                        crowd.wake(member, now_ns, out);
                    }
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_device_has_one_worker() {
        for (count, of) in [(10, 3), (1, 2), (1_000_000, 7), (5, 5)] {
            let parts = (0..of).map(|index| Devices::of_share(count, Share { index, of }));
            let mut next = 0;
            for Devices { first, count } in parts {
                assert_eq!(first, next);
                next += count;
            }
            assert_eq!(next, count);
        }
    }
}
