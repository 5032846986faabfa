//! Who runs the devices of a load? A thread with a socket, a clock, and a group of devices.

use std::io;
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};

use super::addressing::{DeviceRange, Network};
use super::arrivals::{ArrivalPattern, ArrivalSchedule, ArrivalShare};
use super::behaviour::DeviceBehaviour;
use super::device_group::{DeviceGroup, LoadTask};
use super::dtls_sessions::{LinkEvent, SessionCounts};
use super::link::LoadLink;
use super::load_socket::SocketBatches;
use super::outbox::Outbox;
use super::request_mix::RequestMix;
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
    link: LoadLink,
    share: ArrivalShare,
    first: u32,
    clock: Stopwatch,
}

/// What the devices of a worker do, and for how long.
pub struct LoadJob<'a> {
    /// What they do.
    pub work: LoadWork,
    /// Responses within this time are in time; no further request leaves after it.
    pub for_ns: u64,
    /// Links to the callers of the API. With them, the job lasts until the callers are gone, too.
    pub callers: Option<CallerLinks<'a>>,
}

/// What the devices of a worker do. They also answer requests of the server, and wake and sleep.
#[derive(Clone, Copy, Debug)]
pub enum LoadWork {
    /// Each registers once; the time is not limited.
    Register(ArrivalPattern),
    /// Each registers, and tries again until it is registered; the time is not limited.
    Return(ArrivalPattern),
    /// One after the other sends one of these requests.
    Repeat(RequestMix, ArrivalPattern),
    /// Nothing else.
    Listen,
}

/// The links between the devices and the callers of the API.
pub struct CallerLinks<'a> {
    /// The numbers of devices that must update their registration immediately.
    pub wakes: Receiver<u32>,
    /// Receives the number of each device that has answered, and when.
    pub answered: &'a (dyn Fn(u32, u64) + Sync),
}

/// The progress of running workers, and the switch that stops them.
#[derive(Debug, Default)]
pub struct LoadProgress {
    begun: AtomicU64,
    answered: AtomicU64,
    failed: AtomicU64,
    finishing: AtomicBool,
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

    /// The sum of both.
    pub fn plus(self, other: Self) -> Self {
        Self {
            begun: self.begun + other.begun,
            answered: self.answered + other.answered,
            failed: self.failed + other.failed,
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

    /// Lets the workers finish: no further request leaves, and those in progress are waited for.
    pub fn finish(&self) {
        self.finishing.store(true, Ordering::Relaxed);
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

    fn is_finishing(&self) -> bool {
        self.finishing.load(Ordering::Relaxed)
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

impl LoadWorker {
    /// A worker with its share of the devices of a load.
    pub(super) fn new(
        field: &LoadTarget,
        share: ArrivalShare,
        clock: Stopwatch,
    ) -> io::Result<Self> {
        let devices = DeviceRange::of_share(field.devices, share);
        let first = devices.first;
        let seed = field.seed.wrapping_add(u64::from(share.index));
        let LoadTarget {
            server,
            network,
            behaviour,
            ..
        } = field;
        Ok(Self {
            link: LoadLink::open(*server, *network, devices, behaviour, seed)?,
            group: DeviceGroup::gather(behaviour.clone(), devices, share, seed),
            share,
            first,
            clock,
        })
    }

    /// Gives its devices a new port, as an outage of their network does.
    pub(super) fn change_port(&mut self) -> io::Result<()> {
        self.link.change_port()
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
        let LoadJob {
            work,
            for_ns,
            callers,
        } = job;
        let until_ns = match work {
            LoadWork::Register(_) | LoadWork::Return(_) => u64::MAX,
            LoadWork::Repeat(..) | LoadWork::Listen => now_ns.saturating_add(for_ns),
        };
        let schedule = |arrivals| ArrivalSchedule::begin(arrivals, self.share, now_ns, until_ns);
        let task = match work {
            LoadWork::Register(arrivals) => LoadTask::Register(schedule(arrivals)),
            LoadWork::Return(arrivals) => LoadTask::Return(schedule(arrivals)),
            LoadWork::Repeat(mix, arrivals) => LoadTask::Repeat(mix, schedule(arrivals)),
            LoadWork::Listen => LoadTask::Listen,
        };
        self.group.begin(task, now_ns, until_ns);
        self.work(until_ns, callers, watch)?;
        let mut tally = self.group.take_tally();
        let SessionCounts {
            handshakes,
            dropped,
        } = self.link.take_counts();
        tally.handshakes = handshakes;
        tally.dropped += dropped;
        Ok(tally)
    }

    fn work(
        &mut self,
        until_ns: u64,
        callers: Option<CallerLinks<'_>>,
        watch: &LoadProgress,
    ) -> io::Result<()> {
        let mut orders = callers.map(CallerOrders::of);
        let mut batches = SocketBatches::new();
        let mut out = Outbox::default();
        let mut noted = ProgressCounts::default();
        let mut busy_at_ns = self.clock.now_ns();
        loop {
            let now_ns = self.clock.now_ns();
            if let Some(open) = &mut orders
                && open.take(self.first, &mut self.group, now_ns, &mut out) == Callers::Gone
            {
                orders = None;
            }
            let is_over = watch.is_finishing() || (orders.is_none() && now_ns >= until_ns);
            if is_over {
                self.group.end(now_ns.min(until_ns));
            }
            self.group.turn(now_ns, &mut out);
            let spoke = !out.is_empty();
            self.send_all(&mut batches, now_ns, &mut out, orders.as_ref())?;
            let received = self.listen(&mut batches, &mut out)?;
            self.send_all(&mut batches, now_ns, &mut out, orders.as_ref())?;
            let progress = ProgressCounts::of(self.group.tally());
            watch.note(noted, progress);
            noted = progress;
            let may_end = orders.is_none() || is_over;
            if (may_end && self.group.is_done(now_ns)) || watch.is_stopped() {
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
        &mut self,
        batches: &mut SocketBatches,
        now_ns: u64,
        out: &mut Outbox,
        orders: Option<&CallerOrders<'_>>,
    ) -> io::Result<()> {
        self.link.send(batches, now_ns, out)?;
        if let Some(orders) = orders
            && !out.answering().is_empty()
        {
            let now_ns = self.clock.now_ns();
            for member in out.answering() {
                (orders.links.answered)(self.first + member, now_ns);
            }
        }
        out.clear();
        Ok(())
    }

    fn listen(&mut self, batches: &mut SocketBatches, out: &mut Outbox) -> io::Result<usize> {
        let Self {
            group, link, clock, ..
        } = self;
        link.receive(batches, clock, |member, event, now_ns| match event {
            LinkEvent::Received(bytes) => group.handle_datagram(member, bytes, now_ns, out),
            LinkEvent::HandshakeFailed => group.handle_failed_handshake(member, now_ns),
        })
    }

    fn sleep(&self, has_orders: bool, now_ns: u64) -> io::Result<()> {
        let longest_ns = match has_orders {
            true => SLEEP_NS_MAX_WITH_ORDERS,
            false => SLEEP_NS_MAX,
        };
        let times = [self.group.next_at(), self.link.next_at()];
        let next_at_ns = times.into_iter().flatten().min().unwrap_or(u64::MAX);
        let sleep_ns = next_at_ns.saturating_sub(now_ns).min(longest_ns);
        match sleep_ns.checked_sub(EARLY_NS) {
            Some(sleep_ns) if sleep_ns > 0 => self.link.wait(sleep_ns),
            Some(_) | None => Ok(()),
        }
    }
}

/// Whether callers may still give orders.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Callers {
    There,
    Gone,
}

/// The orders of the callers, and those that wait for the end of a device's request.
struct CallerOrders<'a> {
    links: CallerLinks<'a>,
    waiting: Vec<u32>,
}

impl<'a> CallerOrders<'a> {
    fn of(links: CallerLinks<'a>) -> Self {
        Self {
            links,
            waiting: Vec::new(),
        }
    }

    fn take(
        &mut self,
        first: u32,
        group: &mut DeviceGroup,
        now_ns: u64,
        out: &mut Outbox,
    ) -> Callers {
        let callers = loop {
            match self.links.wakes.try_recv() {
                Ok(number) => self.waiting.extend(number.checked_sub(first)),
                Err(TryRecvError::Empty) => break Callers::There,
                Err(TryRecvError::Disconnected) => break Callers::Gone,
            }
        };
        self.waiting
            .retain(|member| !group.wake(*member, now_ns, out));
        callers
    }
}
