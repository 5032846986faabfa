//! What can happen next, and when: the closed list of everything that can happen in the world.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::RangeInclusive;

use engine::arbiter::effect::StoreLookup;
use engine::arbiter::input::ActorExit;
use engine::associations::{ClaimId, ClaimedIdentity};
use engine::delivery::backlog::QueuedEvent;
use engine::delivery::forwarding::{DeliveryOutcome, ForwarderTask};
use engine::dispatch::shard_map::ArbiterId;
use engine::effect::SendOutcome;
use engine::firmware::ImageRange;
use engine::firmware::runner::WantedRows;
use engine::ids::{ActionId, CampaignId, DestinationId, DeviceKey};
use engine::peer::Peer;
use engine::supervision::{Generation, Unserved};

use crate::disk::{PreparedStep, RestorePage};
use crate::service::ArbiterRun;

/// A step of a device that waits for something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceStep {
    pub(crate) at: ArbiterRun,
    pub(crate) who: usize,
    pub(crate) step: u64,
}

/// One thing that happens. An event with the number of a run has no effect in another run, and one
/// of an arbiter has none once that arbiter has ended.
#[derive(Debug)]
pub(crate) enum Event {
    /// A datagram, or a record of a secured device, arrives at the service.
    ReachesService { from: Peer, datagram: Vec<u8> },
    /// An arbiter has handled a batch of datagrams, and sends off those for other arbiters.
    TurnEnds { at: ArbiterRun },
    /// A batch that one arbiter forwarded to another arrives.
    Posted { from: ArbiterId, to: ArbiterRun },
    /// The disk answers a look-up of an arbiter.
    LookedUp {
        at: ArbiterRun,
        look_up: StoreLookup,
    },
    /// A datagram arrives at an address where there may be a device.
    ReachesDevice { to: Peer, datagram: Vec<u8> },
    /// A simulated device is due.
    DeviceDue { who: usize },
    /// The DTLS of a simulated device is due.
    ClientDue { who: usize },
    /// A record reaches the arbiter that has its session.
    RecordForwarded {
        at: ArbiterRun,
        from: Peer,
        record: Vec<u8>,
    },
    /// A message to a device reaches the arbiter that has its session.
    MessageForwarded {
        at: ArbiterRun,
        who: usize,
        message: Vec<u8>,
    },
    /// The disk was read for a handshake.
    CredentialsRead {
        at: ArbiterRun,
        look_up: (ClaimId, ClaimedIdentity),
    },
    /// A timeout of the associations of an arbiter is due.
    AssociationsDue { at: ArbiterRun },
    /// A device does something by itself.
    DeviceAction,
    /// A caller makes a call.
    Call,
    /// A device or a caller that waited for the service acts once.
    Rush { run: u64 },
    /// A removed device is added again.
    Added { who: usize },
    /// Old data is removed.
    Sweep,
    /// A timeout of an arbiter is due.
    ArbiterDue { at: ArbiterRun },
    /// An actor reports to its arbiter that it is idle.
    Idle {
        at: ArbiterRun,
        who: usize,
        report: (Generation, ActorExit),
    },
    /// A device learns whether its bare datagram was sent.
    Departed {
        at: ArbiterRun,
        who: usize,
        departed: (ActionId, SendOutcome),
    },
    /// The disk returns the profile of a device.
    NamesRead {
        at: ArbiterRun,
        who: usize,
        step: u64,
    },
    /// A device is asked again to read its changed profile.
    ProfileUnread { who: usize, run: u64 },
    /// The disk reads a page of live devices.
    PageRead {
        at: ArbiterRun,
        keys: RangeInclusive<DeviceKey>,
    },
    /// The page reaches the arbiter that requested it.
    Paged {
        at: ArbiterRun,
        first: DeviceKey,
        page: RestorePage,
    },
    /// The disk has applied its oldest batch.
    Committed { run: u64 },
    /// The customer changes something.
    CustomerAction,
    /// A forwarder is to be restored after a pause.
    ForwarderRestored { id: DestinationId, run: u64 },
    /// The disk was read for a forwarder to be restored.
    ForwarderRead { id: DestinationId, run: u64 },
    /// A timeout of a forwarder is due.
    ForwarderDue { id: DestinationId, generation: u64 },
    /// A forwarder takes its notified partitions.
    PartitionsNotified { id: DestinationId, generation: u64 },
    /// The disk was read for a running forwarder.
    ReadForForwarder {
        id: DestinationId,
        generation: u64,
        task: ForwarderTask,
    },
    /// Events reach an endpoint.
    Delivers { parcel: EventsInTransit },
    /// The result of a delivery reaches the service.
    Delivered {
        parcel: EventsInTransit,
        delivered: DeliveryOutcome,
    },
    /// The connection of a link to its broker is established, or fails.
    LinkConnects { at: BrokerConnection },
    /// A packet reaches a broker.
    BrokerReads {
        at: BrokerConnection,
        packet: Vec<u8>,
    },
    /// Bytes of a broker reach a link; none if the broker ends the connection.
    LinkReads {
        at: BrokerConnection,
        bytes: Vec<u8>,
    },
    /// A timeout of a link is due.
    LinkDue { id: DestinationId, number: u64 },
    /// The disk was read for the bootstrap of a device.
    BootstrapRead { of: PreparedStep },
    /// A part of an image was read for a device.
    ImageRead { of: DeviceStep, range: ImageRange },
    /// The disk was read for the runner of campaigns.
    CampaignsRead { run: u64 },
    /// A timeout of the runner of campaigns is due.
    CampaignsDue { run: u64 },
    /// The disk was read for a campaign.
    CampaignLooked {
        campaign: CampaignId,
        wanted: WantedRows,
        run: u64,
    },
    /// The answer of a device of a campaign reaches the runner.
    CampaignAnswered {
        at: (CampaignId, u32),
        answer: Result<(), Unserved>,
        run: u64,
    },
    /// A fault happens.
    Fault,
    /// A node gives a partition up once everything that its devices did is durable.
    PartitionGiven { at: ArbiterRun },
    /// A node takes a partition that no other has.
    PartitionTaken { id: ArbiterId, run: u64 },
    /// A node renews its leases, if it still has them.
    LeaseRenewed { node: usize, run: u64 },
    /// The service starts.
    Start,
}

/// Events on their way to an endpoint in one request, and their sender.
#[derive(Clone, Debug)]
pub(crate) struct EventsInTransit {
    pub(crate) id: DestinationId,
    pub(crate) generation: u64,
    pub(crate) waiting: Vec<QueuedEvent>,
}

/// A connection of the link of a forwarder, by the numbers of both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BrokerConnection {
    pub(crate) id: DestinationId,
    pub(crate) number: u64,
    pub(crate) connection: u64,
}

/// The events to come, in order of time; those of one instant in order of their creation.
#[derive(Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Reverse<(i64, u64, usize)>>,
    /// The events, stored apart from the heap so that the heap moves numbers only.
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
