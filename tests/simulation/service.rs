//! The shell as the actors are: it performs what machines decide and obeys the law of order.
//!
//! A process has several arbiters, each with its own socket, router and devices; what one hears
//! and another is home to goes through a mailbox. The kernel deals datagrams out by their peer.

mod actor;
mod acts;
mod arbiter;
pub(crate) mod deliveries;

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use engine::arbiter::input::{Conditions, DeviceInput, DeviceReply};
use engine::device::Device;
use engine::dispatch::shard_map::{ArbiterId, ShardMap};
use engine::dispatch::{Classified, Restoration};
use engine::effect::SendOutcome;
use engine::ids::{DeviceKey, Endpoint};
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
use deliveries::Deliveries;

/// What a caller is told.
pub(crate) type Reply = Result<DeviceReply, Unserved>;

/// Where an actor falls over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum InjectedPanic {
    /// While its machine decides: the buffer of effects dies with it.
    Deciding,
    /// Between the receipt and what is said after it.
    Speaking,
}

/// One turn of the service: when it is, what chance says, and what comes of it.
pub(crate) struct ServiceTurn<'a> {
    pub(crate) now: Timestamp,
    pub(crate) rng: &'a mut Rng,
    pub(crate) is_store_full: bool,
    /// How many of a hundred bare datagrams the socket does not take.
    pub(crate) refused_percent: u8,
    /// Whether all devices are back since the start, wherever they are at home.
    pub(crate) of_devices: Restoration,
    /// The last number that was given to anything.
    pub(crate) numbers: &'a mut u64,
    pub(crate) acts: &'a mut Vec<ArbiterAct>,
}

impl ServiceTurn<'_> {
    fn number(&mut self) -> u64 {
        *self.numbers += 1;
        *self.numbers
    }

    /// Whether the socket takes a bare datagram.
    fn outcome(&mut self) -> SendOutcome {
        match self.rng.hits(self.refused_percent) {
            true => SendOutcome::Refused,
            false => SendOutcome::Sent,
        }
    }

    /// Whoever asked an actor that is gone is told that it failed.
    fn hang_up(&mut self, call: Option<u64>) {
        let failed = |call| ArbiterAct::Reply {
            call,
            step: None,
            reply: Err(Unserved::Failed),
        };
        self.acts.extend(call.map(failed));
    }

    /// Whoever asks a device that was removed is told so.
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
            restoration: self.of_devices,
        }
    }

    fn moment(&mut self) -> Moment {
        let entropy = u128::from(self.rng.number()) << 64 | u128::from(self.rng.number());
        Moment::new(self.now, entropy)
    }
}

/// What came of a commit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CommitResult {
    Durable,
    Unsaved,
}

/// Who there is; a name or a key stands for the same device for ever.
pub(crate) struct Directory {
    keys: Vec<DeviceKey>,
    who_by_key: HashMap<DeviceKey, usize>,
    who_by_prefix: HashMap<[u8; 8], usize>,
    who_by_endpoint: HashMap<Endpoint, usize>,
}

impl Directory {
    fn of(profiles: &[Profile]) -> Self {
        let keys: Vec<DeviceKey> = profiles.iter().map(Profile::key).collect();
        let prefixes = keys.iter().map(DeviceKey::prefix);
        let endpoints = profiles.iter().map(|profile| profile.endpoint.clone());
        Self {
            who_by_key: keys.iter().copied().zip(0..).collect(),
            who_by_prefix: prefixes.zip(0..).collect(),
            who_by_endpoint: endpoints.zip(0..).collect(),
            keys,
        }
    }

    fn who(&self, key: DeviceKey) -> usize {
        self.who_by_key[&key]
    }

    /// Whose a datagram is as far as it says so itself.
    fn whose(&self, from: Peer, sorted: &Classified) -> DatagramOwner {
        match sorted {
            Classified::ToEndpoint(endpoint, _) => {
                DatagramOwner::Named(self.who_by_endpoint.get(endpoint).copied())
            }
            Classified::ToLocation(location, _) => {
                DatagramOwner::Named(self.who_by_prefix.get(&location.device).copied())
            }
            Classified::ToIdentity(_) => DatagramOwner::Addressed(from),
            // A device may be asked to send later.
            Classified::ToPeer(sent) if sent.message.code.is_request() => DatagramOwner::Nobodys,
            Classified::ToPeer(_) => DatagramOwner::Behind(from),
            Classified::Answered { .. } | Classified::Ignored(_) => DatagramOwner::Nobodys,
        }
    }
}

/// The service: nothing while it is down, and otherwise its arbiters.
pub(crate) struct Service {
    policy: Arc<CustomerPolicy>,
    directory: Arc<Directory>,
    shard_map: ShardMap,
    arbiters: Vec<Arbiter>,
    /// What is on its way from one arbiter to another, in the order it left.
    mailboxes: BTreeMap<(ArbiterId, ArbiterId), VecDeque<ForwardBatch>>,
    /// Where events are delivered.
    pub(crate) deliveries: Deliveries,
    /// By what the kernel deals datagrams out since the sockets were opened.
    deal: u64,
    run: u64,
}

impl Service {
    pub(crate) fn new(rules: Rules, profiles: &[Profile], arbiters: usize) -> Self {
        Self {
            policy: Arc::new(CustomerPolicy::of_rules(Arc::new(rules))),
            directory: Arc::new(Directory::of(profiles)),
            shard_map: ShardMap::among(arbiters),
            arbiters: Vec::new(),
            mailboxes: BTreeMap::new(),
            deliveries: Deliveries::default(),
            deal: 0,
            run: 0,
        }
    }

    /// Opens the sockets; each arbiter is still to bring its devices back.
    pub(crate) fn start(&mut self, deal: u64) {
        self.run += 1;
        self.deal = deal;
        let arbiter = |here| {
            let (policy, directory) = (Arc::clone(&self.policy), Arc::clone(&self.directory));
            Arbiter::new(here, self.shard_map, policy, directory, self.run)
        };
        self.arbiters = self.shard_map.arbiters().map(arbiter).collect();
    }

    /// Ends the service in the middle of everything: all that is not on the disk is gone.
    pub(crate) fn crash(&mut self) {
        self.arbiters.clear();
        self.mailboxes.clear();
        self.deliveries = Deliveries::default();
    }

    /// Has the devices go by these terms, each from its next input on.
    pub(crate) fn take_terms(&mut self, policy: Arc<CustomerPolicy>) {
        for arbiter in &mut self.arbiters {
            arbiter.take_terms(Arc::clone(&policy));
        }
        self.policy = policy;
    }

    /// The terms of the customer, as the service knows them.
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

    /// Which device has a key.
    pub(crate) fn who(&self, key: DeviceKey) -> usize {
        self.directory.who(key)
    }

    /// Whether every device that was restored since the start said where it is.
    pub(crate) fn restoration(&self) -> Restoration {
        match self.arbiters.iter().all(Arbiter::is_settled) {
            true => Restoration::Complete,
            false => Restoration::UnderWay,
        }
    }

    /// Where a device is at home.
    pub(crate) fn arbiter_of(&self, who: usize) -> ArbiterId {
        self.shard_map.arbiter_of(self.directory.keys[who].shard())
    }

    /// At whose socket the kernel puts down what comes from a peer.
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

    /// Puts something in the mailbox of an arbiter.
    pub(crate) fn put_in_mailbox(&mut self, from: ArbiterId, to: ArbiterId, post: ForwardBatch) {
        self.mailboxes
            .entry((from, to))
            .or_default()
            .push_back(post);
    }

    /// Takes what one arbiter sent another first.
    pub(crate) fn take_from_mailbox(&mut self, from: ArbiterId, to: ArbiterId) -> ForwardBatch {
        let mailbox = self.mailboxes.get_mut(&(from, to));
        let post = mailbox.and_then(VecDeque::pop_front);
        post.expect("what was sent is there until it is taken")
    }

    /// How much waits for an arbiter.
    pub(crate) fn waiting_for(&self, at: ArbiterId) -> usize {
        let own = self.mailboxes.iter().filter(|((_, to), _)| *to == at);
        own.map(|(_, posts)| posts.len()).sum()
    }

    /// How many datagrams are somewhere in the process.
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

    /// Has the actor of a device fall over at its next opportunity, and at so many after it.
    pub(crate) fn inject_panic(&mut self, who: usize, injected_panic: InjectedPanic, again: u32) {
        let home = self.arbiter_of(who).index();
        if let Some(arbiter) = self.arbiters.get_mut(home) {
            arbiter.injected_panic = Some((who, injected_panic, again));
        }
    }

    /// No actor falls over any more.
    pub(crate) fn clear_panic(&mut self) {
        for arbiter in &mut self.arbiters {
            arbiter.injected_panic = None;
        }
    }

    /// The machine of a device that is there.
    pub(crate) fn machine(&self, who: usize) -> Option<&Device> {
        self.arbiters
            .get(self.arbiter_of(who).index())?
            .machine(who)
    }

    /// Whether nothing is under way for a device.
    pub(crate) fn is_at_rest(&self, who: usize) -> bool {
        let home = self.arbiters.get(self.arbiter_of(who).index());
        home.is_some_and(|arbiter| arbiter.is_at_rest(who))
    }
}

/// The numbers of the datagrams that an input came in.
fn numbers_of(input: &DeviceInput<u64>) -> Vec<u64> {
    match input {
        DeviceInput::Datagram(arrival) => arrival.numbers().collect(),
        DeviceInput::Timeout | DeviceInput::Command(_) => Vec::new(),
    }
}
