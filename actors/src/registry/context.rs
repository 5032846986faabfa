//! What the actors of one arbiter share: its clock, sockets, store and machine.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use actix::Addr;
use engine::arbiter::ArbiterLimits;
use engine::arbiter::cell::CellEffect;
use engine::device::objects::ObjectLists;
use engine::dispatch::Restoration;
use engine::dispatch::shard_map::{ArbiterId, ShardMap};
use engine::ids::DeviceKey;
use engine::moment::Timestamp;
use engine::peer::Peer;
use store::{Commit, DeviceReads};
use tracing::Span;

use crate::clock::Clock;
use crate::meters::ArbiterMeters;
use crate::policy::{PolicyCache, PolicyHandles};
use crate::registry::{Machine, Registry};
use crate::reply::ReplyTo;
use crate::socket::Sockets;

/// The shared parts of an arbiter; they never leave its thread.
pub(crate) struct ArbiterContext {
    pub(crate) clock: Clock,
    pub(crate) commits: Arc<dyn Commit>,
    pub(crate) store: Arc<dyn DeviceReads>,
    /// The policies of the customers of its devices.
    pub(crate) policies: PolicyHandles,
    pub(crate) sockets: Sockets,
    /// The machine of this arbiter. Its registry gives it inputs; its devices report their
    /// deadlines and their peers.
    pub(crate) arbiter: RefCell<Machine>,
    /// Notified of deadlines sooner than those known.
    pub(crate) alarm_waker: AlarmWaker,
    /// The effects of a device's step; kept for their memory.
    pub(crate) effects_buffer: RefCell<Vec<CellEffect<ReplyTo>>>,
    pub(crate) actor: Addr<Registry>,
    /// In which epoch this process owns its shards.
    pub(crate) epoch: u64,
    /// Which arbiter this is.
    pub(crate) arbiter_id: ArbiterId,
    /// Whether all devices are restored since the start.
    pub(crate) startup_barrier: Arc<StartupBarrier>,
    /// The object lists that devices of this arbiter share.
    pub(crate) object_lists: RefCell<ObjectLists>,
    /// The metrics of this arbiter.
    pub(crate) meters: Rc<ArbiterMeters>,
    /// The span of the command that is being decided, in case its device panics over it.
    pub(crate) deciding: Cell<Option<Span>>,
}

impl ArbiterContext {
    pub(crate) fn new(
        parts: ArbiterParts,
        place: ArbiterPlacement,
        (sockets, meters): (Sockets, Rc<ArbiterMeters>),
        registry: Addr<Registry>,
    ) -> Rc<Self> {
        let ArbiterPlacement {
            arbiter_id: here,
            shard_map,
            startup_barrier,
        } = place;
        let known_devices = parts.store.known_devices();
        Rc::new(Self {
            startup_barrier,
            clock: parts.clock,
            commits: parts.commits,
            store: parts.store,
            policies: PolicyHandles::new(parts.policies),
            epoch: parts.epoch,
            sockets,
            actor: registry,
            arbiter: RefCell::new(Machine::new(here, shard_map, parts.limits, known_devices)),
            alarm_waker: AlarmWaker::default(),
            effects_buffer: RefCell::default(),
            arbiter_id: here,
            object_lists: RefCell::default(),
            meters,
            deciding: Cell::new(None),
        })
    }

    /// Queues a message for the socket of its peer.
    pub(crate) fn send(&self, to: Peer, message: Vec<u8>) {
        self.sockets.of(to.transport).send(to, message);
    }

    /// Notes how many bytes the unfinished bodies of a device occupy.
    pub(crate) fn note_unfinished(&self, device: DeviceKey, bytes: usize) {
        let now = self.clock.now();
        let mut arbiter = self.arbiter.borrow_mut();
        arbiter.note_unfinished(now, device, bytes);
        if let Some(next) = arbiter.next_timeout() {
            self.alarm_waker.note(next);
        }
    }

    /// Notes the deadline of a device.
    pub(crate) fn arm(&self, at: Timestamp, device: DeviceKey) {
        self.arbiter.borrow_mut().arm(at, device);
        self.alarm_waker.note(at);
    }
}

/// Wakes the alarm of an arbiter when a deadline comes before the one it sleeps for.
#[derive(Default)]
pub(crate) struct AlarmWaker {
    set_for: Cell<Option<Timestamp>>,
    waker: RefCell<Option<Waker>>,
}

impl AlarmWaker {
    /// Sets the time the alarm fires at, if there is one.
    pub(crate) fn set_for(&self, at: Option<Timestamp>) {
        self.set_for.set(at);
    }

    /// Registers the task to wake.
    pub(crate) fn wake_by(&self, waker: &Waker) {
        self.waker.replace(Some(waker.clone()));
    }

    /// Notes a deadline.
    pub(crate) fn note(&self, at: Timestamp) {
        if self.set_for.get().is_none_or(|set_for| at < set_for)
            && let Some(waker) = self.waker.take()
        {
            waker.wake();
        }
    }
}

/// The place of an arbiter among the others.
pub(crate) struct ArbiterPlacement {
    /// Which it is.
    pub(crate) arbiter_id: ArbiterId,
    /// Which arbiter owns which shard.
    pub(crate) shard_map: ShardMap,
    /// What all of them know of the start.
    pub(crate) startup_barrier: Arc<StartupBarrier>,
}

/// How many arbiters still restore devices since the start: one of them may have the device that
/// nobody knows.
pub(crate) struct StartupBarrier(AtomicUsize);

impl StartupBarrier {
    /// A barrier for this many arbiters.
    pub(crate) fn of(arbiters: usize) -> Self {
        Self(AtomicUsize::new(arbiters))
    }

    /// Records that the devices of one more arbiter are restored.
    pub(crate) fn note_complete(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether all devices are restored.
    pub(crate) fn of_devices(&self) -> Restoration {
        match self.0.load(Ordering::Relaxed) {
            0 => Restoration::Complete,
            1.. => Restoration::UnderWay,
        }
    }
}

/// The parts of every arbiter's context, apart from those that only its own thread can create.
#[derive(Clone)]
pub struct ArbiterParts {
    /// The clock.
    pub clock: Clock,
    /// Commits the steps of devices.
    pub commits: Arc<dyn Commit>,
    /// Reads what is stored of devices.
    pub store: Arc<dyn DeviceReads>,
    /// The policies of all customers.
    pub policies: PolicyCache,
    /// In which epoch this process owns its shards.
    pub epoch: u64,
    /// How much may wait in all arbiters.
    pub limits: ArbiterLimits,
}
