//! What delivers events in the service: the machine that supervises forwarders, and a machine for
//! each destination, which takes one input after the other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use engine::delivery::forwarder::{Forwarder, ForwarderInput};
use engine::delivery::forwarders::Forwarders;
use engine::delivery::forwarding::Forwarding;
use engine::ids::{DestinationId, Shard};
use engine::moment::Timestamp;
use engine::supervision::Generation;

/// The supervisor, and the forwarders that run.
#[derive(Default)]
pub(crate) struct Deliveries {
    pub(crate) forwarders: Forwarders<u64>,
    running: BTreeMap<DestinationId, RunningForwarder>,
}

/// A forwarder that runs.
pub(crate) struct RunningForwarder {
    pub(crate) machine: Forwarder<()>,
    /// Which it is of all that ever ran in this world, and of those that its supervisor spawned.
    pub(crate) number: u64,
    pub(crate) generation: Generation,
    armed_at: Option<Timestamp>,
    /// Where something began to wait since the board was last read.
    board: BTreeSet<Shard>,
    /// What waits for the receipt of the step before it.
    inputs: VecDeque<ForwarderInput<()>>,
    /// The step whose receipt is to come.
    pub(crate) saving: Option<u64>,
}

impl Deliveries {
    pub(crate) fn start(
        &mut self,
        (id, generation): (DestinationId, Generation),
        number: u64,
        forwarding: Forwarding,
    ) {
        let running = RunningForwarder {
            machine: Forwarder::new(forwarding),
            number,
            generation,
            armed_at: None,
            board: BTreeSet::new(),
            inputs: VecDeque::new(),
            saving: None,
        };
        self.running.insert(id, running);
        self.forwarders.handle_spawned(id, generation, number);
    }

    pub(crate) fn stop(&mut self, id: DestinationId) -> RunningForwarder {
        let running = self.running.remove(&id);
        running.expect("what ends runs")
    }

    /// The destinations whose forwarders run.
    pub(crate) fn ids(&self) -> Vec<DestinationId> {
        self.running.keys().copied().collect()
    }

    pub(crate) fn running(&self, id: DestinationId) -> Option<&RunningForwarder> {
        self.running.get(&id)
    }

    pub(crate) fn running_mut(&mut self, id: DestinationId) -> Option<&mut RunningForwarder> {
        self.running.get_mut(&id)
    }

    /// The forwarder of a destination, if it is still this one.
    pub(crate) fn same(&mut self, id: DestinationId, number: u64) -> Option<&mut RunningForwarder> {
        let running = self.running.get_mut(&id)?;
        (running.number == number).then_some(running)
    }
}

impl RunningForwarder {
    /// Notes on the board that something waits; says whether the board was empty.
    pub(crate) fn note(&mut self, shard: Shard) -> bool {
        let was_empty = self.board.is_empty();
        self.board.insert(shard);
        was_empty
    }

    /// Takes all off the board.
    pub(crate) fn read_board(&mut self) -> Vec<Shard> {
        std::mem::take(&mut self.board).into_iter().collect()
    }

    /// Puts an input behind the others.
    pub(crate) fn wait(&mut self, input: ForwarderInput<()>) {
        self.inputs.push_back(input);
    }

    /// The next input, unless a receipt is to come first.
    pub(crate) fn next_input(&mut self) -> Option<ForwarderInput<()>> {
        match self.saving {
            Some(_) => None,
            None => self.inputs.pop_front(),
        }
    }

    /// Whether nothing is open and nothing is under way.
    pub(crate) fn is_at_rest(&self) -> bool {
        let forwarding = self.machine.forwarding();
        self.saving.is_none()
            && self.inputs.is_empty()
            && self.board.is_empty()
            && forwarding.in_flight() == 0
            && forwarding.open() == 0
    }

    /// When the machine is to be woken, if nobody was asked for that yet.
    pub(crate) fn arm(&mut self) -> Option<Timestamp> {
        let at = self.machine.next_timeout()?;
        if self.armed_at.is_some_and(|armed_at| armed_at <= at) {
            return None;
        }
        self.armed_at = Some(at);
        Some(at)
    }

    pub(crate) fn ring(&mut self, now: Timestamp) {
        self.armed_at.take_if(|armed_at| *armed_at <= now);
    }
}
