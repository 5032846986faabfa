//! What the actors of one arbiter share: its clock, sockets, store and machines.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use actix::Addr;
use engine::arbiter::ArbiterLimits;
use engine::arbiter::cell::CellEffect;
use engine::associations::export::SessionRecord;
use engine::associations::{
    AssociationEffect, AssociationLimits, AssociationSecrets, Associations, SecureMoment,
};
use engine::device::objects::ObjectLists;
use engine::dispatch::shard_map::ArbiterId;
use engine::ids::DeviceKey;
use engine::moment::Timestamp;
use engine::peer::Peer;
use store::sealed::MasterKey;
use store::{Commit, DeviceReads};
use tracing::Span;

use crate::arbiters::places::ArbiterPlaces;
use crate::clock::{self, Clock};
use crate::image_files::ImageFiles;
use crate::kept_sessions::KeptSessions;
use crate::meters::ArbiterMeters;
use crate::policy::{PolicyCache, PolicyHandles};
use crate::registry::peer_arbiters::PeerArbiters;
use crate::registry::{Machine, Registry};
use crate::relay::links::NodeLinks;
use crate::reply::ReplyTo;
use crate::socket::Sockets;

type Moment<'m, 'e> = &'m mut SecureMoment<'e>;

type Out<'o> = &'o mut Vec<AssociationEffect>;

/// The shared parts of an arbiter; they never leave its thread.
pub(crate) struct ArbiterContext {
    pub(crate) clock: Clock,
    pub(crate) commits: Arc<dyn Commit>,
    pub(crate) store: Arc<dyn DeviceReads>,
    /// The policies of the customers of its devices.
    pub(crate) policies: PolicyHandles,
    /// Those of its thread.
    pub(crate) sockets: Rc<Sockets>,
    /// The machine of this arbiter. Its registry gives it inputs; its devices report their
    /// deadlines and their peers.
    pub(crate) arbiter: RefCell<Machine>,
    /// Its sessions with devices over DTLS.
    pub(crate) associations: RefCell<Associations>,
    /// Where they are kept for the next process.
    pub(crate) kept_sessions: Option<KeptSessions>,
    /// The other arbiters.
    pub(crate) peer_arbiters: RefCell<PeerArbiters>,
    /// Opens the keys of devices.
    pub(crate) master_key: Arc<MasterKey>,
    /// The images that devices are sent.
    pub(crate) images: ImageFiles,
    /// Notified of deadlines sooner than those known.
    pub(crate) alarm_waker: AlarmWaker,
    /// The effects of a device's step; kept for their memory.
    pub(crate) effects_buffer: RefCell<Vec<CellEffect<ReplyTo>>>,
    pub(crate) actor: Addr<Registry>,
    /// In which epoch this process owns its shards.
    pub(crate) epoch: u64,
    /// Which arbiter this is.
    pub(crate) arbiter_id: ArbiterId,
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
        (sockets, links): (Rc<Sockets>, Rc<NodeLinks>),
        registry: Addr<Registry>,
    ) -> Rc<Self> {
        let ArbiterPlacement {
            arbiter_id: here,
            places,
            sessions,
            cached_sessions,
        } = place;
        let shard_map = places.shard_map();
        let known_devices = parts.store.known_devices();
        let (limits, secrets) = (parts.association_limits, &parts.secrets);
        let mut associations = Associations::new(here, shard_map, limits, secrets, &sessions);
        cached_sessions.iter().for_each(|it| associations.cache(it));
        Rc::new(Self {
            clock: parts.clock,
            commits: parts.commits,
            store: parts.store,
            policies: PolicyHandles::new(parts.policies),
            epoch: parts.epoch,
            sockets,
            actor: registry,
            associations: RefCell::new(associations),
            kept_sessions: parts.kept_sessions,
            peer_arbiters: RefCell::new(PeerArbiters::new(places, links)),
            master_key: parts.master_key,
            images: parts.images,
            arbiter: RefCell::new(Machine::new(here, shard_map, parts.limits, known_devices)),
            alarm_waker: AlarmWaker::default(),
            effects_buffer: RefCell::default(),
            arbiter_id: here,
            object_lists: RefCell::default(),
            meters: Rc::new(ArbiterMeters::of(here)),
            deciding: Cell::new(None),
        })
    }

    /// Queues a message of a device for the socket of its peer, or for its session.
    pub(crate) fn send_to(&self, device: DeviceKey, peer: Peer, message: Vec<u8>) {
        match peer.association {
            Some(_) => self.send_secured(device, message),
            None => self.send(peer, message),
        }
    }

    /// Queues a datagram for the socket of its peer.
    pub(crate) fn send(&self, to: Peer, datagram: Vec<u8>) {
        self.sockets.of(to.transport).send(to, datagram);
    }

    /// Keeps with what a session is resumed by its id, also at the other arbiters.
    pub(crate) fn cache_session(&self, record: SessionRecord) {
        if let Some(kept) = &self.kept_sessions {
            kept.cache(&record);
        }
        let mut others = self.peer_arbiters.borrow_mut();
        others.share_session(self.arbiter_id, record);
    }

    /// Sends a message over the session of a device, which this arbiter may have or another one.
    fn send_secured(&self, device: DeviceKey, message: Vec<u8>) {
        let home = self.arbiter.borrow().association_home(device);
        match home {
            Some(home) if home != self.arbiter_id => {
                let mut others = self.peer_arbiters.borrow_mut();
                others.send_secured(home, device, message);
                self.alarm_waker.wake();
            }
            Some(_) => self.seal(device, &message),
            None => self.meters.unsent.one(),
        }
    }

    /// Sends a message over the session that this arbiter has with a device.
    pub(crate) fn seal(&self, device: DeviceKey, message: &[u8]) {
        self.send_sealed(|associations, m, out| associations.send(m, device, message, out));
    }

    /// Sends an answer over the session of this arbiter that a message of a device came over.
    pub(crate) fn seal_answer(&self, to: (DeviceKey, SocketAddr), message: &[u8]) {
        self.send_sealed(|associations, m, out| associations.answer(m, to, message, out));
    }

    fn send_sealed(&self, send: impl FnOnce(&mut Associations, Moment<'_, '_>, Out<'_>) -> bool) {
        let mut effects = Vec::new();
        let is_sent = {
            let mut associations = self.associations.borrow_mut();
            self.at_secure_moment(|m| send(&mut associations, m, &mut effects))
        };
        if !is_sent {
            self.meters.unsent.one();
        }
        for effect in effects {
            if let AssociationEffect::Send(to, record) = effect {
                self.send(to, record);
            }
        }
    }

    /// Calls something with the time and the entropy of the system.
    pub(crate) fn at_secure_moment<T>(&self, call: impl FnOnce(&mut SecureMoment<'_>) -> T) -> T {
        call(&mut SecureMoment {
            now: self.clock.now(),
            entropy: &mut clock::fill,
        })
    }

    /// When something is due.
    pub(crate) fn next_timeout(&self) -> Option<Timestamp> {
        let arbiter = self.arbiter.borrow().next_timeout();
        let associations = self.associations.borrow().next_timeout();
        [arbiter, associations].into_iter().flatten().min()
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

    /// Wakes the alarm, whatever it waits for.
    pub(crate) fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Notes a deadline.
    pub(crate) fn note(&self, at: Timestamp) {
        if self.set_for.get().is_none_or(|set_for| at < set_for) {
            self.wake();
        }
    }
}

/// The place of an arbiter among the others.
pub(crate) struct ArbiterPlacement {
    /// Which it is.
    pub(crate) arbiter_id: ArbiterId,
    /// Where the others are.
    pub(crate) places: ArbiterPlaces,
    /// The sessions that it goes on with.
    pub(crate) sessions: Vec<SessionRecord>,
    /// With what sessions are resumed by their ids, at every arbiter.
    pub(crate) cached_sessions: Arc<[SessionRecord]>,
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
    /// In which epoch the arbiter owns its shards.
    pub epoch: u64,
    /// How much may wait in all arbiters.
    pub limits: ArbiterLimits,
    /// How many sessions over DTLS all arbiters have.
    pub association_limits: AssociationLimits,
    /// The secrets of DTLS that all arbiters share.
    pub secrets: AssociationSecrets,
    /// Where sessions over DTLS are from the process before, and are kept for the next one; none if
    /// they end with the process.
    pub kept_sessions: Option<KeptSessions>,
    /// Opens the keys of devices.
    pub master_key: Arc<MasterKey>,
    /// The images that devices are sent.
    pub images: ImageFiles,
}
