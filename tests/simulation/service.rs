//! The shells of the simulation: they perform what machines decide, in the order save, answer,
//! send.
//!
//! The service has several arbiters, each with its own router and devices. A datagram for a device
//! of another arbiter is forwarded through a mailbox, or to another node. The kernel, or what is in
//! front of several nodes, chooses who receives a datagram by the peer.

mod actor;
mod acts;
mod arbiter;
mod associations;
pub(crate) mod campaigns;
pub(crate) mod deliveries;
mod nodes;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use engine::arbiter::input::{Conditions, DeviceInput, DeviceReply};
use engine::device::Device;
use engine::dispatch::Classified;
use engine::dispatch::shard_map::{ArbiterId, ShardMap};
use engine::effect::{SendOutcome, SendRefusal};
use engine::ids::{DestinationId, DeviceKey, Endpoint, Partition};
use engine::known_devices::KnownDevices;
use engine::moment::{Moment, Timestamp};
use engine::peer::Peer;
use engine::policy::CustomerPolicy;
use engine::profile::Profile;
use engine::rules::Rules;
use engine::supervision::Unserved;
use harness::rng::Rng;

pub(crate) use acts::{
    ArbiterAct, DatagramEnd, DatagramOwner, LossReason, Saves, StepInput, StepTrigger,
};
pub(crate) use arbiter::{Arbiter, ForwardBatch};
use associations::ServiceAssociations;
use campaigns::Campaigns;
use deliveries::Deliveries;
use nodes::Nodes;
pub(crate) use nodes::Way;

/// The reply to a caller.
pub(crate) type Reply = Result<DeviceReply, Unserved>;

/// Where an actor panics.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum InjectedPanic {
    /// While its machine decides: the buffer of effects is lost.
    Deciding,
    /// Between the receipt and what is sent after it.
    Speaking,
}

/// One turn of the service: its time, its randomness, and its results.
pub(crate) struct ServiceTurn<'a> {
    pub(crate) now: Timestamp,
    pub(crate) rng: &'a mut Rng,
    pub(crate) is_store_full: bool,
    /// The percentage of bare datagrams that the socket refuses.
    pub(crate) refused_percent: u8,
    /// The last number that was assigned.
    pub(crate) numbers: &'a mut u64,
    pub(crate) acts: &'a mut Vec<ArbiterAct>,
}

impl ServiceTurn<'_> {
    fn number(&mut self) -> u64 {
        *self.numbers += 1;
        *self.numbers
    }

    /// Whether the socket accepts a bare datagram.
    fn outcome(&mut self) -> SendOutcome {
        match self.rng.hits(self.refused_percent) {
            true => SendOutcome::Refused(SendRefusal::BufferFull),
            false => SendOutcome::Sent,
        }
    }

    /// Replies that a command failed because its actor is gone.
    fn hang_up(&mut self, call: Option<u64>) {
        let failed = |call| ArbiterAct::Reply {
            call,
            step: None,
            reply: Err(Unserved::Failed),
        };
        self.acts.extend(call.map(failed));
    }

    /// Replies that the device was removed.
    fn refuse(&mut self, call: u64) {
        self.acts.push(ArbiterAct::Reply {
            call,
            step: None,
            reply: Err(Unserved::Unknown),
        });
    }

    fn conditions(&self) -> Conditions {
        Conditions {
            now: self.now,
            is_store_full: self.is_store_full,
        }
    }

    fn moment(&mut self) -> Moment {
        let entropy = u128::from(self.rng.number()) << 64 | u128::from(self.rng.number());
        Moment::new(self.now, entropy)
    }
}

/// The result of a commit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CommitResult {
    Durable,
    Unsaved,
    /// What the batch expects does not hold.
    Conflict,
}

/// All devices; a name or a key always means the same device.
pub(crate) struct Directory {
    keys: Vec<DeviceKey>,
    who_by_key: HashMap<DeviceKey, usize>,
    who_by_prefix: HashMap<[u8; 8], usize>,
    who_by_endpoint: HashMap<Endpoint, usize>,
    known: Arc<KnownDevices>,
}

impl Directory {
    fn of(profiles: &[Profile], known: Arc<KnownDevices>) -> Self {
        let keys: Vec<DeviceKey> = profiles.iter().map(Profile::key).collect();
        let prefixes = keys.iter().map(DeviceKey::prefix);
        let endpoints = profiles.iter().map(|profile| profile.endpoint.clone());
        Self {
            who_by_key: keys.iter().copied().zip(0..).collect(),
            who_by_prefix: prefixes.zip(0..).collect(),
            who_by_endpoint: endpoints.zip(0..).collect(),
            keys,
            known,
        }
    }

    fn who(&self, key: DeviceKey) -> usize {
        self.who_by_key[&key]
    }

    /// The device a datagram is for, as far as the datagram names it.
    fn whose(&self, from: Peer, sorted: &Classified) -> DatagramOwner {
        match sorted {
            Classified::ToEndpoint(endpoint, _) => {
                DatagramOwner::Named(self.who_by_endpoint.get(endpoint).copied())
            }
            Classified::ToLocation(location, _) => {
                DatagramOwner::Named(self.who_by_prefix.get(&location.device).copied())
            }
            Classified::ToAddress(_) => DatagramOwner::Addressed(from),
            Classified::ToImage(_) => DatagramOwner::Nobodys,
            // A device may be asked to repeat a request later.
            Classified::ToPeer(sent) if sent.message.code.is_request() => DatagramOwner::Nobodys,
            Classified::ToPeer(_) => DatagramOwner::Behind(from),
            Classified::ToDevice(device, _) => DatagramOwner::Named(Some(self.who(*device))),
            Classified::Answered { .. } | Classified::Ignored(_) => DatagramOwner::Nobodys,
        }
    }
}

/// A run of an arbiter, which ends with the service, or when its partition moves: another run of it
/// begins then, in a later epoch.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct ArbiterRun {
    pub(crate) id: ArbiterId,
    pub(crate) epoch: u64,
}

/// The service while it is up: its nodes, and the arbiter of each partition that one of them has.
pub(crate) struct Service {
    policy: Arc<CustomerPolicy>,
    directory: Arc<Directory>,
    shard_map: ShardMap,
    arbiters: BTreeMap<ArbiterId, Arbiter>,
    /// Their DTLS.
    pub(crate) associations: ServiceAssociations,
    /// Batches on their way from one arbiter to another, in the order they were sent.
    mailboxes: BTreeMap<(ArbiterId, ArbiterRun), VecDeque<ForwardBatch>>,
    /// The deliveries of events.
    pub(crate) deliveries: Deliveries,
    /// The firmware campaigns.
    pub(crate) campaigns: Campaigns,
    pub(crate) nodes: Nodes,
    /// The last epoch that began.
    epoch: u64,
    /// The epoch in which the service was started.
    run: u64,
    is_up: bool,
}

impl Service {
    pub(crate) fn new(
        rules: Rules,
        profiles: &[Profile],
        known: Arc<KnownDevices>,
        (arbiters, nodes): (usize, usize),
    ) -> Self {
        Self {
            policy: Arc::new(CustomerPolicy::of_rules(Arc::new(rules))),
            directory: Arc::new(Directory::of(profiles, known)),
            shard_map: ShardMap::among(arbiters),
            arbiters: BTreeMap::new(),
            associations: ServiceAssociations::new(),
            mailboxes: BTreeMap::new(),
            deliveries: Deliveries::default(),
            campaigns: Campaigns::default(),
            nodes: Nodes::new(nodes),
            epoch: 0,
            run: 0,
            is_up: false,
        }
    }

    /// Opens the sockets; each arbiter still has to begin.
    pub(crate) fn start(&mut self, deal: u64) {
        self.is_up = true;
        self.run = self.epoch + 1;
        self.nodes.start(deal);
    }

    /// A node takes a partition: its arbiter begins, and still has to restore its devices.
    pub(crate) fn begin(&mut self, id: ArbiterId, node: usize) -> ArbiterRun {
        self.epoch += 1;
        let (policy, directory) = (Arc::clone(&self.policy), Arc::clone(&self.directory));
        let run = ArbiterRun {
            id,
            epoch: self.epoch,
        };
        let arbiter = Arbiter::new(run, self.shard_map, policy, directory);
        self.arbiters.insert(id, arbiter);
        self.associations.begin(id, self.shard_map);
        self.nodes.take(id, node);
        run
    }

    /// Ends an arbiter: what it has in memory is lost, and what is on its way to it.
    pub(crate) fn end(&mut self, at: ArbiterRun) {
        self.mailboxes.retain(|(_, to), _| *to != at);
        self.associations.end(at.id);
        self.nodes.give(at.id);
        self.arbiters.remove(&at.id);
    }

    /// Ends the service at any point: everything that is not on the disk is lost.
    pub(crate) fn crash(&mut self) {
        self.is_up = false;
        self.arbiters.clear();
        self.associations.crash();
        self.mailboxes.clear();
        self.deliveries = Deliveries::default();
        self.campaigns = Campaigns::default();
        self.nodes.crash();
    }

    /// Applies a policy to all devices, from their next inputs on.
    pub(crate) fn apply_policy(&mut self, policy: Arc<CustomerPolicy>) {
        for arbiter in self.arbiters.values_mut() {
            arbiter.apply_policy(Arc::clone(&policy));
        }
        self.policy = policy;
    }

    /// The policy of the customer, as the service knows it.
    pub(crate) fn policy(&self) -> &CustomerPolicy {
        &self.policy
    }

    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    pub(crate) fn is_up(&self) -> bool {
        self.is_up
    }

    /// Whether it is up and the same as in that run.
    pub(crate) fn is_up_since(&self, run: u64) -> bool {
        self.is_up && self.run == run
    }

    pub(crate) fn shard_map(&self) -> ShardMap {
        self.shard_map
    }

    /// The device with a key.
    pub(crate) fn who(&self, key: DeviceKey) -> usize {
        self.directory.who(key)
    }

    /// The arbiter that owns a device.
    pub(crate) fn arbiter_of(&self, who: usize) -> ArbiterId {
        self.shard_map.arbiter_of(self.directory.keys[who].shard())
    }

    /// The arbiter of the node that delivers to a destination.
    pub(crate) fn deliverer_of(&self, id: DestinationId) -> ArbiterId {
        deliverer_in(self.shard_map, id.partition())
    }

    /// The present run of an arbiter; none while its partition moves.
    pub(crate) fn run_of(&self, id: ArbiterId) -> Option<ArbiterRun> {
        self.arbiters.get(&id).map(Arbiter::run)
    }

    /// The run of an arbiter that takes inputs from outside.
    pub(crate) fn open_run_of(&self, id: ArbiterId) -> Option<ArbiterRun> {
        let arbiter = self.arbiters.get(&id)?;
        (!arbiter.is_leaving()).then(|| arbiter.run())
    }

    /// Who receives datagrams from a peer, unless they are lost.
    pub(crate) fn dealt_to(&self, peer: Peer) -> Option<(Peer, ArbiterRun)> {
        let open: Vec<ArbiterRun> = self
            .shard_map
            .arbiters()
            .filter_map(|id| self.open_run_of(id))
            .collect();
        self.nodes.dealt_to(peer, &open)
    }

    /// Whether an arbiter still runs.
    pub(crate) fn has(&self, at: ArbiterRun) -> bool {
        self.run_of(at.id) == Some(at)
    }

    /// An arbiter, if it still runs.
    pub(crate) fn arbiter_mut(&mut self, at: ArbiterRun) -> Option<&mut Arbiter> {
        let arbiter = self.arbiters.get_mut(&at.id)?;
        (arbiter.run() == at).then_some(arbiter)
    }

    pub(crate) fn arbiters(&self) -> impl Iterator<Item = &Arbiter> {
        self.arbiters.values()
    }

    /// Whether every partition has a node that serves it.
    pub(crate) fn is_whole(&self) -> bool {
        self.arbiters.len() == usize::from(self.shard_map.count())
            && self.arbiters().all(|arbiter| !arbiter.is_leaving())
    }

    /// Puts a batch in the mailbox of an arbiter.
    pub(crate) fn put_in_mailbox(&mut self, from: ArbiterId, to: ArbiterRun, post: ForwardBatch) {
        self.mailboxes
            .entry((from, to))
            .or_default()
            .push_back(post);
    }

    /// Takes the oldest batch that one arbiter sent another, unless it has ended.
    pub(crate) fn take_from_mailbox(
        &mut self,
        from: ArbiterId,
        to: ArbiterRun,
    ) -> Option<ForwardBatch> {
        self.mailboxes.get_mut(&(from, to))?.pop_front()
    }

    /// How many batches wait for an arbiter.
    pub(crate) fn waiting_for(&self, at: ArbiterRun) -> usize {
        let own = self.mailboxes.iter().filter(|((_, to), _)| *to == at);
        own.map(|(_, posts)| posts.len()).sum()
    }

    /// How many datagrams are in the process.
    pub(crate) fn datagrams_held(&self) -> usize {
        let posts = self.mailboxes.values().flatten();
        let on_the_way: usize = posts.map(ForwardBatch::datagrams).sum();
        let held = self.arbiters().map(Arbiter::datagrams_held);
        on_the_way + held.sum::<usize>()
    }

    /// Lets the actor of a device panic at its next opportunity, and at this many after it.
    pub(crate) fn inject_panic(&mut self, who: usize, injected_panic: InjectedPanic, again: u32) {
        let home = self.arbiter_of(who);
        if let Some(arbiter) = self.arbiters.get_mut(&home) {
            arbiter.injected_panic = Some((who, injected_panic, again));
        }
    }

    /// Ends all injected panics.
    pub(crate) fn clear_panic(&mut self) {
        for arbiter in self.arbiters.values_mut() {
            arbiter.injected_panic = None;
        }
    }

    /// The machine of a loaded device.
    pub(crate) fn machine(&self, who: usize) -> Option<&Device> {
        self.arbiters.get(&self.arbiter_of(who))?.machine(who)
    }

    /// Whether a device has panicked too often to be restored.
    pub(crate) fn is_parked(&self, who: usize) -> bool {
        let home = self.arbiters.get(&self.arbiter_of(who));
        home.is_some_and(|arbiter| arbiter.is_parked(who))
    }

    /// Whether a device has nothing in progress.
    pub(crate) fn is_at_rest(&self, who: usize) -> bool {
        let home = self.arbiters.get(&self.arbiter_of(who));
        home.is_some_and(|arbiter| arbiter.is_at_rest(who))
    }
}

/// The arbiter of the node that delivers to the destinations of a partition.
pub(crate) fn deliverer_in(shard_map: ShardMap, partition: Partition) -> ArbiterId {
    let number = u16::from(partition.0) % shard_map.count();
    let deliverer = shard_map.numbered(number);
    deliverer.expect("fewer than the arbiters")
}

/// The numbers of the datagrams in an input.
fn numbers_of(input: &DeviceInput<u64>) -> Vec<u64> {
    match input {
        DeviceInput::Datagram(arrival) => arrival.numbers().collect(),
        DeviceInput::Timeout | DeviceInput::DropUnfinished | DeviceInput::Command(_) => Vec::new(),
    }
}
