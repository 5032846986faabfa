//! The shells of the simulation: they perform what machines decide, in the order save, answer,
//! send.
//!
//! A process has several arbiters, each with its own socket, router and devices. A datagram for a
//! device of another arbiter is forwarded through a mailbox. The kernel chooses the socket by the
//! peer.

mod actor;
mod acts;
mod arbiter;
mod associations;
pub(crate) mod campaigns;
pub(crate) mod deliveries;

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use engine::arbiter::input::{Conditions, DeviceInput, DeviceReply};
use engine::device::Device;
use engine::dispatch::Classified;
use engine::dispatch::shard_map::{ArbiterId, ShardMap};
use engine::effect::{SendOutcome, SendRefusal};
use engine::ids::{DeviceKey, Endpoint};
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

/// The service: empty while it is down, otherwise its arbiters.
pub(crate) struct Service {
    policy: Arc<CustomerPolicy>,
    directory: Arc<Directory>,
    shard_map: ShardMap,
    arbiters: Vec<Arbiter>,
    /// Their DTLS.
    pub(crate) associations: ServiceAssociations,
    /// Batches on their way from one arbiter to another, in the order they were sent.
    mailboxes: BTreeMap<(ArbiterId, ArbiterId), VecDeque<ForwardBatch>>,
    /// The deliveries of events.
    pub(crate) deliveries: Deliveries,
    /// The firmware campaigns.
    pub(crate) campaigns: Campaigns,
    /// Seeds the kernel's choice of sockets since they were opened.
    deal: u64,
    run: u64,
}

impl Service {
    pub(crate) fn new(
        rules: Rules,
        profiles: &[Profile],
        known: Arc<KnownDevices>,
        arbiters: usize,
    ) -> Self {
        Self {
            policy: Arc::new(CustomerPolicy::of_rules(Arc::new(rules))),
            directory: Arc::new(Directory::of(profiles, known)),
            shard_map: ShardMap::among(arbiters),
            arbiters: Vec::new(),
            associations: ServiceAssociations::new(),
            mailboxes: BTreeMap::new(),
            deliveries: Deliveries::default(),
            campaigns: Campaigns::default(),
            deal: 0,
            run: 0,
        }
    }

    /// Opens the sockets; each arbiter still has to restore its devices.
    pub(crate) fn start(&mut self, deal: u64) {
        self.run += 1;
        self.deal = deal;
        let arbiter = |here| {
            let (policy, directory) = (Arc::clone(&self.policy), Arc::clone(&self.directory));
            Arbiter::new(here, self.shard_map, policy, directory, self.run)
        };
        self.arbiters = self.shard_map.arbiters().map(arbiter).collect();
        self.associations.start(self.shard_map);
    }

    /// Ends the service at any point: everything that is not on the disk is lost.
    pub(crate) fn crash(&mut self) {
        self.arbiters.clear();
        self.associations.crash();
        self.mailboxes.clear();
        self.deliveries = Deliveries::default();
        self.campaigns = Campaigns::default();
    }

    /// Applies a policy to all devices, from their next inputs on.
    pub(crate) fn apply_policy(&mut self, policy: Arc<CustomerPolicy>) {
        for arbiter in &mut self.arbiters {
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
        !self.arbiters.is_empty()
    }

    /// Whether it is up and the same process as in that run.
    pub(crate) fn is_up_since(&self, run: u64) -> bool {
        self.is_up() && self.run == run
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

    /// The arbiter whose socket receives datagrams from a peer.
    pub(crate) fn dealt_to(&self, peer: Peer) -> ArbiterId {
        let mut hasher = DefaultHasher::new();
        (self.deal, peer).hash(&mut hasher);
        let place = hasher.finish() % u64::from(self.shard_map.count());
        let place = usize::try_from(place).expect("fewer than the arbiters");
        let arbiter = self.shard_map.arbiters().nth(place);
        arbiter.expect("fewer than the arbiters")
    }

    pub(crate) fn arbiter_mut(&mut self, at: ArbiterId) -> &mut Arbiter {
        &mut self.arbiters[at.index()]
    }

    pub(crate) fn arbiters(&self) -> impl Iterator<Item = &Arbiter> {
        self.arbiters.iter()
    }

    /// Puts a batch in the mailbox of an arbiter.
    pub(crate) fn put_in_mailbox(&mut self, from: ArbiterId, to: ArbiterId, post: ForwardBatch) {
        self.mailboxes
            .entry((from, to))
            .or_default()
            .push_back(post);
    }

    /// Takes the oldest batch that one arbiter sent another.
    pub(crate) fn take_from_mailbox(&mut self, from: ArbiterId, to: ArbiterId) -> ForwardBatch {
        let mailbox = self.mailboxes.get_mut(&(from, to));
        let post = mailbox.and_then(VecDeque::pop_front);
        post.expect("what was sent is there until it is taken")
    }

    /// How many batches wait for an arbiter.
    pub(crate) fn waiting_for(&self, at: ArbiterId) -> usize {
        let own = self.mailboxes.iter().filter(|((_, to), _)| *to == at);
        own.map(|(_, posts)| posts.len()).sum()
    }

    /// How many datagrams are in the process.
    pub(crate) fn datagrams_held(&self) -> usize {
        let posts = self.mailboxes.values().flatten();
        let on_the_way: usize = posts.map(ForwardBatch::datagrams).sum();
        on_the_way
            + self
                .arbiters
                .iter()
                .map(Arbiter::datagrams_held)
                .sum::<usize>()
    }

    /// Lets the actor of a device panic at its next opportunity, and at this many after it.
    pub(crate) fn inject_panic(&mut self, who: usize, injected_panic: InjectedPanic, again: u32) {
        let home = self.arbiter_of(who).index();
        if let Some(arbiter) = self.arbiters.get_mut(home) {
            arbiter.injected_panic = Some((who, injected_panic, again));
        }
    }

    /// Ends all injected panics.
    pub(crate) fn clear_panic(&mut self) {
        for arbiter in &mut self.arbiters {
            arbiter.injected_panic = None;
        }
    }

    /// The machine of a loaded device.
    pub(crate) fn machine(&self, who: usize) -> Option<&Device> {
        self.arbiters
            .get(self.arbiter_of(who).index())?
            .machine(who)
    }

    /// Whether a device has nothing in progress.
    pub(crate) fn is_at_rest(&self, who: usize) -> bool {
        let home = self.arbiters.get(self.arbiter_of(who).index());
        home.is_some_and(|arbiter| arbiter.is_at_rest(who))
    }
}

/// The numbers of the datagrams in an input.
fn numbers_of(input: &DeviceInput<u64>) -> Vec<u64> {
    match input {
        DeviceInput::Datagram(arrival) => arrival.numbers().collect(),
        DeviceInput::Timeout | DeviceInput::DropUnfinished | DeviceInput::Command(_) => Vec::new(),
    }
}
