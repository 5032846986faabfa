//! The deliveries of the service: the machine that supervises forwarders, and a machine for each
//! destination, which handles one input after the other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use engine::delivery::forwarder::{Forwarder, ForwarderInput};
use engine::delivery::forwarders::Forwarders;
use engine::delivery::forwarding::Forwarding;
use engine::ids::{DestinationId, Partition};
use engine::moment::Timestamp;
use engine::supervision::Generation;

/// The supervisor, and the running forwarders.
#[derive(Default)]
pub(crate) struct Deliveries {
    pub(crate) forwarders: Forwarders<u64>,
    running: BTreeMap<DestinationId, RunningForwarder>,
}

/// A running forwarder.
pub(crate) struct RunningForwarder {
    pub(crate) machine: Forwarder<()>,
    /// Its number among all forwarders of this world, and its generation at the supervisor.
    pub(crate) number: u64,
    pub(crate) generation: Generation,
    armed_at: Option<Timestamp>,
    /// The partitions in which events were queued since the last look.
    notified_partitions: BTreeSet<Partition>,
    /// The inputs that wait for the receipt of the current step.
    inputs: VecDeque<ForwarderInput<()>>,
    /// The step that waits for its receipt.
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
            notified_partitions: BTreeSet::new(),
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

    /// Removes forwarders by their numbers, and returns their destinations.
    pub(crate) fn remove(&mut self, numbers: &[u64]) -> Vec<DestinationId> {
        let removed = self
            .running
            .extract_if(.., |_, it| numbers.contains(&it.number));
        removed.map(|(id, _)| id).collect()
    }

    /// The destinations with running forwarders.
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
    /// Records a partition with a new event; returns whether it is the first one.
    pub(crate) fn note(&mut self, partition: Partition) -> bool {
        let was_empty = self.notified_partitions.is_empty();
        self.notified_partitions.insert(partition);
        was_empty
    }

    /// Takes all recorded partitions.
    pub(crate) fn take_notified_partitions(&mut self) -> Vec<Partition> {
        std::mem::take(&mut self.notified_partitions)
            .into_iter()
            .collect()
    }

    /// Puts an input behind the others.
    pub(crate) fn wait(&mut self, input: ForwarderInput<()>) {
        self.inputs.push_back(input);
    }

    /// The next input, unless a receipt is awaited first.
    pub(crate) fn next_input(&mut self) -> Option<ForwarderInput<()>> {
        match self.saving {
            Some(_) => None,
            None => self.inputs.pop_front(),
        }
    }

    /// Whether nothing is open and nothing is in flight.
    pub(crate) fn is_at_rest(&self) -> bool {
        let forwarding = self.machine.forwarding();
        self.saving.is_none()
            && self.inputs.is_empty()
            && self.notified_partitions.is_empty()
            && forwarding.in_flight() == 0
            && forwarding.open() == 0
    }

    /// When the machine is to be woken, if the alarm is not set for that time yet.
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
