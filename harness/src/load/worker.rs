//! Who runs the devices of a load? A thread with a socket, a clock, and a group of devices.

use std::io;
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};

use super::addressing::Network;
use super::arrivals::{ArrivalPattern, ArrivalSchedule, ArrivalShare};
use super::device_group::{DeviceBehaviour, DeviceGroup, LoadTask};
use super::exchange::LoadRequest;
use super::load_socket::{LoadSocket, SocketBatches};
use super::outbox::Outbox;
use super::tally::TaskTally;
use crate::clock::Stopwatch;

/// How long a thread polls before it sleeps: the server would pay for waking it.
const POLLING_NS: u64 = 30_000;

/// A sleep ends this much before the next due time, because sleeps end late.
const EARLY_NS: u64 = 100_000;

/// The longest sleep, so that a stop is noticed.
const SLEEP_NS_MAX: u64 = 50_000_000;

/// The longest sleep of a thread that receives orders to wake devices.
const SLEEP_NS_MAX_WITH_ORDERS: u64 = 1_000_000;

/// The devices of a load and their server.
#[derive(Clone, Debug)]
pub struct LoadTarget {
    /// The CoAP address of the server.
    pub server: SocketAddrV4,
    /// The network of the devices' addresses.
    pub network: Network,
    /// The number of devices; at most the number of addresses in the network.
    pub devices: u32,
    /// Their behaviour.
    pub behaviour: DeviceBehaviour,
    /// The seed of everything random.
    pub seed: u64,
}

/// Some of the devices of a load.
pub(super) struct LoadWorker {
    group: DeviceGroup,
    socket: LoadSocket,
    share: ArrivalShare,
    first: u32,
    clock: Stopwatch,
}

/// What the devices of a worker do.
pub enum LoadJob<'a> {
    /// Each registers once.
    Register(ArrivalPattern),
    /// One after the other updates its registration, for this long.
    Update {
        /// How the requests follow each other.
        arrivals: ArrivalPattern,
        /// The duration.
        for_ns: u64,
    },
    /// One after the other sends a measured value, for this long.
    Send {
        /// How the requests follow each other.
        arrivals: ArrivalPattern,
        /// The duration.
        for_ns: u64,
    },
    /// They answer requests of the server, until they are stopped.
    Listen {
        /// The numbers of devices that must update their registration immediately.
        wakes: Receiver<u32>,
        /// Receives the number of each device that has answered, and when.
        answered: &'a (dyn Fn(u32, u64) + Sync),
    },
}

/// The progress of running workers, and the switch that stops them.
#[derive(Debug, Default)]
pub struct LoadProgress {
    begun: AtomicU64,
    answered: AtomicU64,
    failed: AtomicU64,
    stopped: AtomicBool,
}

/// The progress of running workers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ProgressCounts {
    /// Requests that left.
    pub begun: u64,
    /// Requests with the expected response.
    pub answered: u64,
    /// Failed requests.
    pub failed: u64,
}

impl ProgressCounts {
    /// The progress in these counts.
    pub fn of(tally: &TaskTally) -> Self {
        Self {
            begun: tally.begun,
            answered: tally.answered,
            failed: tally.failed(),
        }
    }
}

impl LoadProgress {
    /// The progress of all workers.
    pub fn progress(&self) -> ProgressCounts {
        ProgressCounts {
            begun: self.begun.load(Ordering::Relaxed),
            answered: self.answered.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }

    /// Stops the workers; requests in progress stay unanswered.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn note(&self, last: ProgressCounts, now: ProgressCounts) {
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

/// The devices of a worker: this many from a number on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DeviceRange {
    /// The number of the first.
    pub first: u32,
    /// Their number.
    pub count: u32,
}

impl DeviceRange {
    /// The devices of one worker's share of all devices.
    pub fn of_share(count: u32, share: ArrivalShare) -> Self {
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

impl LoadWorker {
    /// A worker with its share of the devices of a load.
    pub(super) fn new(
        field: &LoadTarget,
        share: ArrivalShare,
        clock: Stopwatch,
    ) -> io::Result<Self> {
        let DeviceRange { first, count } = DeviceRange::of_share(field.devices, share);
        let seed = field.seed.wrapping_add(u64::from(share.index));
        Ok(Self {
            group: DeviceGroup::gather(field.behaviour.clone(), first, count, seed),
            socket: LoadSocket::open(field.server, field.network, first)?,
            share,
            first,
            clock,
        })
    }

    /// The number of its registered devices.
    pub(super) fn registered(&self) -> u32 {
        self.group.registered()
    }

    /// Runs a job on the calling thread, until it ends or is stopped.
    pub(super) fn perform(
        &mut self,
        job: LoadJob<'_>,
        watch: &LoadProgress,
    ) -> io::Result<TaskTally> {
        let now_ns = self.clock.now_ns();
        let (task, until_ns, orders) = match job {
            LoadJob::Register(arrivals) => {
                let schedule = ArrivalSchedule::begin(arrivals, self.share, now_ns, u64::MAX);
                (LoadTask::Register(schedule), u64::MAX, None)
            }
            LoadJob::Update { arrivals, for_ns } => {
                self.repeat(LoadRequest::Update, (arrivals, now_ns, for_ns))
            }
            LoadJob::Send { arrivals, for_ns } => {
                self.repeat(LoadRequest::Send, (arrivals, now_ns, for_ns))
            }
            LoadJob::Listen { wakes, answered } => (
                LoadTask::Listen,
                u64::MAX,
                Some(ListenOrders { wakes, answered }),
            ),
        };
        self.group.begin(task, until_ns);
        self.work(orders.as_ref(), watch)?;
        Ok(self.group.take_tally())
    }

    fn repeat(
        &self,
        act: LoadRequest,
        (arrivals, now_ns, for_ns): (ArrivalPattern, u64, u64),
    ) -> PlannedJob<'static> {
        let until_ns = now_ns.saturating_add(for_ns);
        let schedule = ArrivalSchedule::begin(arrivals, self.share, now_ns, until_ns);
        (LoadTask::Repeat(act, schedule), until_ns, None)
    }

    fn work(&mut self, orders: Option<&ListenOrders<'_>>, watch: &LoadProgress) -> io::Result<()> {
        let mut batches = SocketBatches::new();
        let mut out = Outbox::default();
        let mut noted = ProgressCounts::default();
        let mut busy_at_ns = self.clock.now_ns();
        loop {
            let now_ns = self.clock.now_ns();
            if let Some(orders) = orders {
                orders.take(self.first, &mut self.group, now_ns, &mut out);
            }
            self.group.turn(now_ns, &mut out);
            let spoke = !out.is_empty();
            self.send_all(&mut batches, &mut out, orders)?;
            let received = self.listen(&mut batches, &mut out)?;
            self.send_all(&mut batches, &mut out, orders)?;
            let progress = ProgressCounts::of(self.group.tally());
            watch.note(noted, progress);
            noted = progress;
            let is_done = orders.is_none() && self.group.is_done(now_ns);
            if is_done || watch.is_stopped() {
                return Ok(());
            }
            if spoke || received > 0 {
                busy_at_ns = now_ns;
            } else if now_ns.saturating_sub(busy_at_ns) > POLLING_NS {
                self.sleep(orders.is_some(), now_ns)?;
            }
        }
    }

    fn send_all(
        &self,
        batches: &mut SocketBatches,
        out: &mut Outbox,
        orders: Option<&ListenOrders<'_>>,
    ) -> io::Result<()> {
        self.socket.send(batches, out)?;
        if let Some(orders) = orders
            && !out.answering().is_empty()
        {
            let now_ns = self.clock.now_ns();
            for member in out.answering() {
                (orders.answered)(self.first + member, now_ns);
            }
        }
        out.clear();
        Ok(())
    }

    fn listen(&mut self, batches: &mut SocketBatches, out: &mut Outbox) -> io::Result<usize> {
        let Self {
            group,
            socket,
            clock,
            ..
        } = self;
        let mut now_ns = None;
        socket.receive(batches, |member, bytes| {
            // Datagrams of one batch have the same arrival time.
            let now_ns = *now_ns.get_or_insert_with(|| clock.now_ns());
            group.handle_datagram(member, bytes, now_ns, out);
        })
    }

    fn sleep(&self, has_orders: bool, now_ns: u64) -> io::Result<()> {
        let longest_ns = match has_orders {
            true => SLEEP_NS_MAX_WITH_ORDERS,
            false => SLEEP_NS_MAX,
        };
        let next_at_ns = self.group.next_at().unwrap_or(u64::MAX);
        let sleep_ns = next_at_ns.saturating_sub(now_ns).min(longest_ns);
        match sleep_ns.checked_sub(EARLY_NS) {
            Some(sleep_ns) if sleep_ns > 0 => self.socket.wait(sleep_ns),
            Some(_) | None => Ok(()),
        }
    }
}

/// The task, until when responses are in time, and the channels of a listening worker.
type PlannedJob<'a> = (LoadTask, u64, Option<ListenOrders<'a>>);

/// The channels of a listening worker: devices to wake, and devices that answered.
struct ListenOrders<'a> {
    wakes: Receiver<u32>,
    answered: &'a (dyn Fn(u32, u64) + Sync),
}

impl ListenOrders<'_> {
    fn take(&self, first: u32, group: &mut DeviceGroup, now_ns: u64, out: &mut Outbox) {
        loop {
            match self.wakes.try_recv() {
                Ok(number) => {
                    if let Some(member) = number.checked_sub(first) {
                        group.wake(member, now_ns, out);
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
            let parts =
                (0..of).map(|index| DeviceRange::of_share(count, ArrivalShare { index, of }));
            let mut next = 0;
            for DeviceRange { first, count } in parts {
                assert_eq!(first, next);
                next += count;
            }
            assert_eq!(next, count);
        }
    }
}
