//! Faults of nodes: partitions move from one node to another, in order or not, nodes fall silent,
//! and what is between nodes is lost.

use engine::dispatch::shard_map::ArbiterId;
use engine::supervision::Unserved;

use super::World;
use crate::disk::Author;
use crate::event::Event;
use crate::service::{ArbiterRun, Service, Way};
use crate::trace::TraceEvent;

/// How long the lease of a node lasts after its last renewal, and how soon others see a free one.
const LEASE_MS: u32 = 10_000;
const LOOK_MS: u32 = 500;

impl World {
    /// Something happens to a node, if there are several.
    pub(super) fn inject_node_fault(&mut self) -> bool {
        let nodes = self.service.nodes.count();
        if nodes == 1 || !self.service.is_up() {
            return false;
        }
        let one = self.rng.below(nodes as u32) as usize;
        let other = self.rng.below(nodes as u32) as usize;
        match self.rng.below(8) {
            0 => self.kill_node(one),
            1 | 2 => {
                let for_ms = i64::from(self.rng.below(2 * LEASE_MS));
                self.silence_node(one, for_ms);
            }
            3 => {
                let until_ms = self.now_ms + i64::from(self.rng.below(2 * LEASE_MS));
                self.service.nodes.cut((one, other), until_ms);
            }
            _ => {
                let arbiters = u32::from(self.service.shard_map().count());
                let place = self.rng.below(arbiters) as usize;
                let id = self.service.shard_map().arbiters().nth(place);
                id.into_iter().for_each(|id| self.give_partition(id));
            }
        }
        true
    }

    /// Some node has a partition from now on. Its arbiter is still to start.
    pub(super) fn take_over(&mut self, id: ArbiterId) -> ArbiterRun {
        let node = match self.service.nodes.count() {
            1 => 0,
            count => self.rng.below(count as u32) as usize,
        };
        let at = self.service.begin(id, node);
        self.disk.durable.take_over(at);
        at
    }

    /// A node gives a partition up: it completes what is in progress.
    pub(crate) fn give_partition(&mut self, id: ArbiterId) {
        let Some(at) = self.service.open_run_of(id) else {
            return;
        };
        self.note(TraceEvent::World("a node gives a partition up"));
        self.end_forwarders_of(id);
        self.serve(at, |arbiter, _| arbiter.leave());
        self.deal_again();
        self.queue.push(self.now_ms, Event::PartitionGiven { at });
    }

    pub(super) fn partition_given(&mut self, at: ArbiterRun) {
        let Some(arbiter) = self.service.arbiter_mut(at) else {
            return;
        };
        let is_unloaded = arbiter.is_unloaded();
        let service = &self.service;
        if self.disk.waiting_of(|it| is_author(service, it, at)) > 0 {
            let at_ms = self.disk.busy_until_ms.max(self.now_ms + 1);
            return self.queue.push(at_ms, Event::PartitionGiven { at });
        }
        if !is_unloaded {
            self.serve(at, |arbiter, turn| arbiter.unload(turn));
            self.devices_ended(at.id);
            // What is on its way to it still arrives.
            let at_ms = self.now_ms + i64::from(self.rng.below(100));
            return self.queue.push(at_ms, Event::PartitionGiven { at });
        }
        self.census.partitions_given += 1;
        self.census.sessions_kept += self.service.associations.keep(at.id);
        self.end_arbiter(at);
        self.await_taker(at.id, LOOK_MS);
    }

    /// A node is killed: what it had not sent to the database is lost.
    pub(crate) fn kill_node(&mut self, node: usize) {
        self.note(TraceEvent::World("a node is killed"));
        self.census.nodes_killed += 1;
        self.end_arbiters_of(node, LEASE_MS);
    }

    /// A node cannot renew its leases: it says nothing until it can, or ends if it was too late.
    pub(crate) fn silence_node(&mut self, node: usize, for_ms: i64) {
        self.note(TraceEvent::World("a node is silent"));
        self.service.nodes.silence(node);
        let run = self.service.run();
        self.queue
            .push(self.now_ms + for_ms, Event::LeaseRenewed { node, run });
    }

    pub(super) fn lease_renewed(&mut self, node: usize, run: u64) {
        if !self.service.is_up_since(run) {
            return;
        }
        self.service.nodes.speak(node);
        if self.rng.below(2) == 0 {
            self.census.nodes_renewed += 1;
            return;
        }
        self.note(TraceEvent::World("a node is superseded"));
        self.census.nodes_superseded += 1;
        self.end_arbiters_of(node, LOOK_MS);
    }

    /// The arbiters of a node end with all that is not on its way to the database, and other nodes
    /// take its partitions.
    fn end_arbiters_of(&mut self, node: usize, taken_within_ms: u32) {
        let ids = self.service.nodes.arbiters_of(node);
        let runs: Vec<ArbiterRun> = ids
            .iter()
            .filter_map(|id| self.service.run_of(*id))
            .collect();
        let service = &self.service;
        let is_theirs = |author: &Author| runs.iter().any(|at| is_author(service, author, *at));
        let waiting = self.disk.waiting_of(is_theirs);
        let left = self.rng.below(waiting as u32 + 1) as usize;
        self.disk.lose(is_theirs, left);
        for at in runs {
            self.end_forwarders_of(at.id);
            self.end_arbiter(at);
            self.await_taker(at.id, taken_within_ms);
        }
    }

    /// An arbiter ends, with all that it has in memory.
    fn end_arbiter(&mut self, at: ArbiterRun) {
        self.count_associations(at.id);
        self.service.end(at);
        self.laws.routing.arbiter_ended(at.id);
        self.deal_again();
        self.devices_ended(at.id);
        let service = &self.service;
        let is_there = |who| service.arbiter_of(who) == at.id;
        for call in self.callers.open_for(is_there) {
            self.reply(call, None, &Err(Unserved::Failed));
        }
        let verdict = self.laws.nothing_is_forgotten(&self.disk.durable);
        self.check(verdict);
    }

    /// The machines of an arbiter's devices are gone.
    fn devices_ended(&mut self, id: ArbiterId) {
        for who in 0..self.settings.devices {
            if self.service.arbiter_of(who) == id {
                self.laws.arbiter_ended(who);
                self.disk.durable.end_for(who);
            }
        }
    }

    /// Other arbiters receive datagrams from the peers.
    fn deal_again(&mut self) {
        self.service.nodes.deal_again();
        self.laws.routing.dealt_again();
    }

    fn await_taker(&mut self, id: ArbiterId, within_ms: u32) {
        let run = self.service.run();
        let at_ms = self.now_ms + i64::from(self.rng.below(within_ms));
        self.queue.push(at_ms, Event::PartitionTaken { id, run });
    }

    pub(super) fn partition_taken(&mut self, id: ArbiterId, run: u64) {
        if !self.service.is_up_since(run) {
            return;
        }
        self.note(TraceEvent::World("a node takes a partition"));
        let at = self.take_over(id);
        self.deal_again();
        let until_ms = self.now_ms + i64::from(self.rng.below(LOOK_MS));
        self.service.nodes.overlook(id, until_ms);
        self.restore_forwarders_of(id);
        self.serve(at, |arbiter, turn| arbiter.start(turn));
    }

    /// The arbiter that gets what another one sends it, and when, unless it is lost.
    pub(super) fn arrival_of(
        &mut self,
        from: ArbiterId,
        to: ArbiterId,
    ) -> Option<(ArbiterRun, i64)> {
        let run = self.service.open_run_of(to);
        let is_lost = match self.service.nodes.way((from, to), self.now_ms) {
            Way::WithinNode => false,
            Way::BetweenNodes => self.rng.hits(self.faults.cut_percent),
            Way::Unsure => self.rng.below(2) == 0,
            Way::None => true,
        };
        if run.is_none() || is_lost {
            self.census.lost_between_nodes += 1;
            return None;
        }
        let busy_ms = match self.rng.hits(self.faults.busy_percent) {
            true => i64::from(self.rng.below(3_000)),
            false => i64::from(self.rng.below(4)),
        };
        run.map(|run| (run, self.now_ms + busy_ms))
    }

    /// Sends a datagram of an arbiter, unless its node is silent.
    pub(super) fn leave_node(&mut self, at: ArbiterRun, arrive: impl Fn() -> Event) {
        match self.service.nodes.is_silent(at.id) {
            true => self.census.lost_at_nodes += 1,
            false => self.travel(arrive),
        }
    }
}

/// Whether a batch is of the node that has an arbiter.
fn is_author(service: &Service, author: &Author, at: ArbiterRun) -> bool {
    match author {
        Author::Device { at: by, .. } => *by == at,
        Author::Forwarder { id, .. } => service.deliverer_of(*id) == at.id,
        Author::Bootstrap(of, _) => of.at == at,
        Author::Campaign(_) | Author::KeyUse | Author::Customer(_) => false,
    }
}
