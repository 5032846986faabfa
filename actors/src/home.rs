//! What the actors of one arbiter share: its clock, socket, store, router and deadlines.

use std::cell::{Cell, RefCell};
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix::Addr;
use engine::change::Owner;
use engine::device::Device;
use engine::device::objects::ObjectLists;
use engine::effect::{Departure, Speech};
use engine::ids::{DeviceKey, Shard};
use engine::peer::{Peer, Via};
use engine::registry::Return;
use engine::registry::homes::{ArbiterId, Homes};
use engine::registry::peers::Said;
use engine::registry::router::Router;
use store::{Commit, DeviceReads};
use tracing::Span;

use crate::clock::Clock;
use crate::deadlines::Deadlines;
use crate::meters::Meters;
use crate::registry::Registry;
use crate::socket::{BareMouth, Outbox, Sockets};
use crate::terms::{Book, Contracts};

/// The common ground of an arbiter; it never leaves its thread.
pub(crate) struct Home {
    pub(crate) clock: Clock,
    pub(crate) commits: Arc<dyn Commit>,
    pub(crate) store: Arc<dyn DeviceReads>,
    /// The terms of the customers of its devices.
    pub(crate) contracts: Contracts,
    pub(crate) sockets: Sockets,
    pub(crate) outbox: Outbox,
    bare_mouth: BareMouth,
    pub(crate) deadlines: Deadlines,
    pub(crate) registry: Addr<Registry>,
    /// In which epoch this process owns its shards.
    pub(crate) epoch: u64,
    /// Which arbiter this is.
    pub(crate) here: ArbiterId,
    /// The keys of the devices that are at home here.
    pub(crate) keys: RangeInclusive<DeviceKey>,
    /// Whether all devices are back since the start.
    pub(crate) muster: Arc<Muster>,
    /// Which arbiter a datagram is for.
    pub(crate) router: RefCell<Router>,
    /// The lists of objects that devices of this arbiter have in common.
    pub(crate) object_lists: RefCell<ObjectLists>,
    /// What is counted here.
    pub(crate) meters: Rc<Meters>,
    /// The span of the question that is being decided, in case its device falls over it.
    pub(crate) deciding: Cell<Option<Span>>,
}

impl Home {
    pub(crate) fn new(
        parts: HomeParts,
        place: Place,
        sockets: Sockets,
        registry: Addr<Registry>,
    ) -> Rc<Self> {
        let meters = Rc::new(Meters::of(place.here));
        let Place {
            here,
            homes,
            muster,
        } = place;
        Rc::new(Self {
            muster,
            clock: parts.clock,
            commits: parts.commits,
            store: parts.store,
            contracts: Contracts::new(parts.terms),
            epoch: parts.epoch,
            outbox: Outbox::new(sockets.plain.clone(), Rc::clone(&meters)),
            bare_mouth: BareMouth::new(sockets.bare.clone(), Rc::clone(&meters)),
            sockets,
            registry,
            deadlines: Deadlines::default(),
            here,
            keys: homes.keys(here),
            router: RefCell::new(Router::new(here, homes)),
            object_lists: RefCell::default(),
            meters,
            deciding: Cell::new(None),
        })
    }

    /// Who owns what a device's step changes.
    pub(crate) fn owner(&self, shard: Shard) -> Owner {
        Owner::Shard {
            shard,
            epoch: self.epoch,
        }
    }

    /// Does in order what a step wants done once it is durable, and says what became of the bare
    /// datagram among it; a step has at most one, because it is an attempt.
    pub(crate) fn perform(
        &self,
        device: DeviceKey,
        speeches: Vec<Speech>,
        said: &mut Said,
    ) -> Option<Departure> {
        let mut departure = None;
        for speech in speeches {
            match speech {
                Speech::Rebind { from, to } => self.rebind(device, from, to, said),
                Speech::Send { to, datagram } => self.send(to, datagram),
                Speech::SendBare { to, bytes } => {
                    departure = Some(self.bare_mouth.say(to, &bytes));
                }
            }
        }
        departure
    }

    /// Lets a datagram leave through the socket its peer knows; what carries it repeats it.
    pub(crate) fn send(&self, to: Peer, datagram: Vec<u8>) {
        match to.via {
            Via::Plain => self.outbox.put(to, datagram),
            Via::Bare => {
                self.bare_mouth.say(to, &datagram);
            }
        }
    }

    /// Lets the datagrams of a peer reach a device.
    pub(crate) fn rebind(
        &self,
        device: DeviceKey,
        from: Option<Peer>,
        to: Option<Peer>,
        said: &mut Said,
    ) {
        self.router.borrow_mut().rebind(device, from, to, said);
    }

    /// Forgets the exchange of a device whose actor ends, if it ends in the middle of one.
    pub(crate) fn abandon(&self, device: &Device, said: &mut Said) {
        self.router.borrow_mut().abandon(device.key(), said);
    }
}

/// Where an arbiter stands among the others.
pub(crate) struct Place {
    /// Which it is.
    pub(crate) here: ArbiterId,
    /// Who is at home where.
    pub(crate) homes: Homes,
    /// What all of them know of the start.
    pub(crate) muster: Arc<Muster>,
}

/// How many arbiters still bring devices back since the start: one of them may have the device
/// that nobody knows.
pub(crate) struct Muster(AtomicUsize);

impl Muster {
    /// So many arbiters are about to begin.
    pub(crate) fn of(arbiters: usize) -> Self {
        Self(AtomicUsize::new(arbiters))
    }

    /// The devices of one more arbiter are back.
    pub(crate) fn note_complete(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether all devices are back.
    pub(crate) fn of_devices(&self) -> Return {
        match self.0.load(Ordering::Relaxed) {
            0 => Return::Complete,
            1.. => Return::UnderWay,
        }
    }
}

/// What every arbiter's home is made of, apart from what only its own thread can make.
#[derive(Clone)]
pub struct HomeParts {
    /// The clock.
    pub clock: Clock,
    /// Makes durable what devices do.
    pub commits: Arc<dyn Commit>,
    /// Reads what is stored of them.
    pub store: Arc<dyn DeviceReads>,
    /// The terms of all customers.
    pub terms: Book,
    /// In which epoch this process owns its shards.
    pub epoch: u64,
}
