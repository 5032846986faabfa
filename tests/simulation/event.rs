//! What can happen next, and when: the closed list of everything that can befall the world.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::RangeInclusive;

use engine::arbiter::effect::StoreLookup;
use engine::arbiter::input::ActorExit;
use engine::delivery::backlog::QueuedEvent;
use engine::delivery::forwarding::{DeliveryOutcome, ForwarderTask};
use engine::dispatch::shard_map::ArbiterId;
use engine::effect::SendOutcome;
use engine::ids::{ActionId, DestinationId, DeviceKey};
use engine::peer::Peer;
use engine::supervision::Generation;

use crate::disk::RestorePage;

/// One thing that happens; what belongs to a run of the service is void in another.
#[derive(Debug)]
pub(crate) enum Event {
    /// A datagram arrives at the service.
    ReachesService { from: Peer, datagram: Vec<u8> },
    /// An arbiter has heard what there was, and lets go what is for others.
    TurnEnds { at: ArbiterId, run: u64 },
    /// What one arbiter sent another arrives.
    Posted {
        from: ArbiterId,
        to: ArbiterId,
        run: u64,
    },
    /// The disk answers an arbiter.
    LookedUp {
        at: ArbiterId,
        look_up: StoreLookup,
        run: u64,
    },
    /// A datagram arrives at an address, where a device may be or not.
    ReachesDevice { to: Peer, datagram: Vec<u8> },
    /// A simulated device is due.
    DeviceDue { who: usize },
    /// A device does something that nobody asked of it.
    DeviceAction,
    /// A caller asks something.
    Call,
    /// Somebody who could not wait for the service does what he likes, once.
    Rush { run: u64 },
    /// A device that was removed is added again.
    Added { who: usize },
    /// What is too old is removed.
    Sweep,
    /// Something of an arbiter is due.
    ArbiterDue { at: ArbiterId, run: u64 },
    /// An arbiter hears that an actor has nothing to do.
    Idle {
        at: ArbiterId,
        who: usize,
        report: (Generation, ActorExit),
        run: u64,
    },
    /// A device hears what became of its bare datagram.
    Departed {
        at: ArbiterId,
        who: usize,
        departed: (ActionId, SendOutcome),
        run: u64,
    },
    /// The disk says who a device is.
    NamesRead {
        at: ArbiterId,
        who: usize,
        step: u64,
        run: u64,
    },
    /// A device is told again to go by what its customer said.
    NamesUntold { who: usize, run: u64 },
    /// The disk reads a page of live devices.
    PageRead {
        at: ArbiterId,
        keys: RangeInclusive<DeviceKey>,
        run: u64,
    },
    /// The page reaches the arbiter that asked for it.
    Paged {
        at: ArbiterId,
        first: DeviceKey,
        page: RestorePage,
        run: u64,
    },
    /// The disk is done with its oldest batch.
    Committed { run: u64 },
    /// The customer chooses something.
    CustomerAction,
    /// A forwarder is to be restored after a pause.
    ForwarderRestored { id: DestinationId, run: u64 },
    /// The disk was read for a forwarder that is restored.
    ForwarderRead { id: DestinationId, run: u64 },
    /// A forwarder is due.
    ForwarderDue { id: DestinationId, generation: u64 },
    /// A destination's board is read.
    BoardRead { id: DestinationId, generation: u64 },
    /// The disk was read for a forwarder that runs.
    ReadForForwarder {
        id: DestinationId,
        generation: u64,
        task: ForwarderTask,
    },
    /// An event reaches an endpoint.
    Delivers { parcel: EventInTransit },
    /// What came of that reaches the service.
    Delivered {
        parcel: EventInTransit,
        delivered: DeliveryOutcome,
    },
    /// Something goes wrong.
    Fault,
    /// The service starts.
    Start,
}

/// An event on its way to an endpoint, and who sent it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventInTransit {
    pub(crate) id: DestinationId,
    pub(crate) generation: u64,
    pub(crate) waiting: QueuedEvent,
}

/// What is to come, in the order of time; of one instant, in the order of its making.
#[derive(Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Reverse<(i64, u64, usize)>>,
    /// The events themselves, apart from the heap so that it moves numbers alone.
    events: Vec<Option<Event>>,
    free: Vec<usize>,
    count: u64,
}

impl Queue {
    pub(crate) fn push(&mut self, at_ms: i64, event: Event) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.events[slot] = Some(event);
                slot
            }
            None => {
                self.events.push(Some(event));
                self.events.len() - 1
            }
        };
        self.count += 1;
        self.heap.push(Reverse((at_ms, self.count, slot)));
    }

    /// When the next event happens.
    pub(crate) fn next_at_ms(&self) -> Option<i64> {
        self.heap.peek().map(|Reverse((at_ms, _, _))| *at_ms)
    }

    pub(crate) fn pop(&mut self) -> Option<(i64, Event)> {
        let Reverse((at_ms, _, slot)) = self.heap.pop()?;
        self.free.push(slot);
        let event = self.events[slot]
            .take()
            .expect("a slot in the heap is filled");
        Some((at_ms, event))
    }
}
