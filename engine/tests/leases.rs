//! Does at most one node have a lease at any moment, and does each of them have its part once the
//! faults end?
//!
//! A seeded world of several nodes and a database, each with a clock of its own that is up to 5 %
//! wrong. Requests and answers are late, lost, performed after they were given up and in another
//! order; nodes are stopped and continue, are killed and start again, are drained, and are cut off
//! from the database, in one direction or both. Whether a node has a lease is judged by what its
//! sockets see: what it was told to begin and to give up, its clock and the last
//! [`LeaseEffect::HoldUntil`], also while it is stopped.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;

use engine::ids::{NodeId, Partition};
use engine::node::lease::{
    LeaseAnswer, LeaseEffect, LeaseHolder, LeaseId, LeaseRequest, LeaseRules, LeaseSight,
    NodeLease, SeenLease, SteadyTime,
};

const SEEDS: u64 = 400;

const RULES: LeaseRules = LeaseRules {
    lease_ms: 10_000,
    heartbeat_ms: 2_000,
};

/// How wrong a clock is at most, in thousandths.
const WRONG_MAX: u64 = 50;

/// How long there are faults, in milliseconds of real time.
const FAULTS_FOR: u64 = 200_000;

/// Within which time one node is to hold the lease once they have ended.
const REST_FOR: u64 = 45_000;

/// How many leases there are: that of the active node, and those of the deliveries of partitions.
const LEASES: usize = 17;

fn leases() -> impl Iterator<Item = LeaseId> {
    let deliveries = Partition::all().map(LeaseId::Partition);
    std::iter::once(LeaseId::Active).chain(deliveries)
}

fn place_of(lease: LeaseId) -> usize {
    match lease {
        LeaseId::Active => 0,
        LeaseId::Partition(partition) => 1 + usize::from(partition.0),
    }
}

#[test]
fn each_lease_is_had_by_one_node_at_most_and_by_one_after_the_faults() {
    let mut seen = Census::default();
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        world.run_until(FAULTS_FOR);
        world.heal();
        world.run_until(FAULTS_FOR + REST_FOR);
        let served = world.served();
        world.assert_shared(&served);
        while world.now < FAULTS_FOR + 2 * REST_FOR {
            world.take_step();
            assert_eq!(world.served(), served, "seed {seed}: a lease has moved");
        }
        seen.add(&world.census);
    }
    // The faults are of use only if each of them happens.
    assert!(seen.begun > 3_000, "{seen:?}");
    assert!(seen.given > 1_000, "{seen:?}");
    assert!(seen.fell_silent > 1_000, "{seen:?}");
    assert!(seen.went_on > 300, "{seen:?}");
    assert!(seen.superseded > 200, "{seen:?}");
    assert!(seen.drained > 1_000, "{seen:?}");
    assert!(seen.late_writes_refused > 1_000, "{seen:?}");
}

#[test]
fn what_a_node_gives_up_that_stops_is_taken_by_others_at_once() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        world.heal();
        world.run_until(REST_FOR);
        let (place, before) = (world.active(), world.served());
        let (process, stopped_at) = (world.nodes[place].process, world.now);
        world.stop(place);
        let mut unserved = 0;
        while world.nodes[place].process == process || world.served().len() < LEASES {
            let now = world.now;
            world.take_step();
            if world.served().len() < LEASES {
                unserved += world.now - now;
            }
            assert!(
                world.now < stopped_at + REST_FOR,
                "seed {seed}: not all is served"
            );
        }
        let gaps = match world.shares {
            true => before.values().filter(|by| **by == place).count() as u64,
            false => 1,
        };
        assert!(
            unserved < 1_500 * gaps,
            "seed {seed}: {unserved} ms without some of {gaps}"
        );
    }
}

#[test]
fn a_node_that_joins_or_is_drained_moves_no_more_than_it_has_to() {
    for seed in 0..SEEDS {
        let mut world = World::sharing(seed);
        world.heal();
        world.run_until(REST_FOR);
        world.assert_shared(&world.served());
        let nodes = world.nodes.len();
        let begun = world.census.begun;
        let node = world.a_process();
        world.nodes.push(node);
        while world.now < 2 * REST_FOR {
            world.take_step();
            world.assert_few_move(nodes);
        }
        world.assert_shared(&world.served());
        let moved = world.census.begun - begun;
        assert!(
            moved as usize <= LEASES / (nodes + 1),
            "seed {seed}: {moved} moved"
        );

        let (begun, active) = (world.census.begun, world.active());
        let had = world.served().values().filter(|by| **by == active).count();
        let process = world.nodes[active].process;
        world.nodes[active].is_to_drain = true;
        while world.nodes[active].process == process {
            world.take_step();
            assert!(world.now < 3 * REST_FOR, "seed {seed}: it is not drained");
            world.assert_few_move(1);
        }
        let moved = (world.census.begun - begun) as usize;
        assert!(moved <= had, "seed {seed}: {moved} of {had} moved");
    }
}

#[derive(Debug, Default)]
struct Census {
    begun: u32,
    given: u32,
    fell_silent: u32,
    went_on: u32,
    superseded: u32,
    drained: u32,
    late_writes_refused: u32,
}

impl Census {
    fn add(&mut self, other: &Self) {
        self.begun += other.begun;
        self.given += other.given;
        self.fell_silent += other.fell_silent;
        self.went_on += other.went_on;
        self.superseded += other.superseded;
        self.drained += other.drained;
        self.late_writes_refused += other.late_writes_refused;
    }
}

/// A clock that begins anywhere and is fast or slow.
#[derive(Clone, Copy)]
struct SkewedClock {
    begins_at: u64,
    per_mille: u64,
}

impl SkewedClock {
    fn at(self, now: u64) -> u64 {
        self.begins_at + now * self.per_mille / 1_000
    }
}

struct Node {
    /// The process; a process that is started again has another number.
    process: u32,
    clock: SkewedClock,
    lease: NodeLease,
    hold_until: u64,
    /// The leases that it uses while it may, with the epochs.
    serves: BTreeMap<LeaseId, u64>,
    /// What it stops to serve at this time of its clock.
    stopping: Option<(Partition, u64)>,
    /// The number of the request whose answer is awaited, and until when by its clock.
    awaited: Option<(u64, u64)>,
    stopped_until: u64,
    /// Requests, or answers, do not pass.
    cut: (bool, bool),
    was_silent: bool,
    /// Whether it ends once it has nothing in progress.
    stops: bool,
    /// Whether somebody asked for its drain.
    is_to_drain: bool,
}

#[derive(Clone, Copy)]
struct Lease {
    holder: Option<u32>,
    /// The place of the last holder.
    place: usize,
    epoch: u64,
    ends_at: u64,
}

struct Database {
    clock: SkewedClock,
    leases: [Lease; LEASES],
    epoch: u64,
    /// When each node was heard last, and whether it was about to stop.
    heard: BTreeMap<u32, (u64, bool)>,
}

enum Message {
    Request(usize, u32, u64, LeaseRequest),
    Answer(usize, u64, LeaseAnswer),
    /// A write under a lease in an epoch.
    Write(LeaseId, u64),
}

struct World {
    seed: u64,
    /// Whether nodes share the partitions.
    shares: bool,
    random: u64,
    now: u64,
    has_faults: bool,
    nodes: Vec<Node>,
    database: Database,
    under_way: Vec<(u64, Message)>,
    next: u64,
    processes: u32,
    newest_written: BTreeMap<LeaseId, u64>,
    census: Census,
}

impl World {
    /// Of two worlds, nodes share the partitions in one.
    fn new(seed: u64) -> Self {
        Self::of(seed, seed.is_multiple_of(2))
    }

    fn sharing(seed: u64) -> Self {
        Self::of(seed, true)
    }

    fn of(seed: u64, shares: bool) -> Self {
        let mut world = Self {
            seed,
            shares,
            random: seed,
            now: 0,
            has_faults: true,
            nodes: vec![],
            database: Database {
                clock: SkewedClock {
                    begins_at: 0,
                    per_mille: 0,
                },
                leases: [Lease {
                    holder: None,
                    place: usize::MAX,
                    epoch: 0,
                    ends_at: 0,
                }; LEASES],
                epoch: 0,
                heard: BTreeMap::new(),
            },
            under_way: vec![],
            next: 0,
            processes: 0,
            newest_written: BTreeMap::new(),
            census: Census::default(),
        };
        world.database.clock = world.a_clock();
        for _ in 0..2 + seed % 3 {
            let node = world.a_process();
            world.nodes.push(node);
        }
        world
    }

    fn a_clock(&mut self) -> SkewedClock {
        SkewedClock {
            begins_at: self.below(1_000_000),
            per_mille: 1_000 - WRONG_MAX + self.below(2 * WRONG_MAX + 1),
        }
    }

    fn a_process(&mut self) -> Node {
        let clock = self.a_clock();
        self.processes += 1;
        Node {
            process: self.processes,
            clock,
            lease: NodeLease::new(SteadyTime(clock.at(self.now)), id_of(self.processes), RULES),
            hold_until: 0,
            serves: BTreeMap::new(),
            stopping: None,
            awaited: None,
            stopped_until: 0,
            cut: (false, false),
            was_silent: false,
            stops: false,
            is_to_drain: false,
        }
    }

    fn heal(&mut self) {
        self.has_faults = false;
        for node in &mut self.nodes {
            node.cut = (false, false);
            node.stopped_until = 0;
        }
    }

    fn run_until(&mut self, time: u64) {
        while self.now < time {
            self.take_step();
        }
    }

    fn take_step(&mut self) {
        self.now += 1 + self.below(25);
        if self.has_faults {
            self.break_something();
        }
        let due: Vec<_> = {
            let now = self.now;
            self.under_way.extract_if(.., |it| it.0 <= now).collect()
        };
        for (_, message) in due {
            match message {
                Message::Request(node, process, number, request) => {
                    let answer = self.perform(node, process, request);
                    if !self.nodes[node].cut.1 {
                        self.post(Message::Answer(node, number, answer));
                    }
                }
                Message::Answer(node, number, answer) => self.deliver(node, number, answer),
                Message::Write(lease, epoch) => self.write(lease, epoch),
            }
            self.served();
        }
        for place in 0..self.nodes.len() {
            self.run(place);
            self.served();
        }
    }

    fn break_something(&mut self) {
        let place = self.below(self.nodes.len() as u64) as usize;
        match self.below(400) {
            0 => self.nodes[place].stopped_until = self.now + self.below(25_000),
            1 => self.nodes[place].cut = (true, true),
            2 => self.nodes[place].cut = (self.below(2) == 0, self.below(2) == 0),
            3..6 => self.nodes[place].cut = (false, false),
            // Killed, and started again at once.
            6 => self.nodes[place] = self.a_process(),
            7 if self.below(4) == 0 => self.stop(place),
            8 if self.below(4) == 0 => self.nodes[place].is_to_drain = true,
            _ => {}
        }
    }

    fn stop(&mut self, place: usize) {
        let node = &mut self.nodes[place];
        node.lease.drain(SteadyTime(node.clock.at(self.now)));
        self.census.drained += 1;
    }

    fn run(&mut self, place: usize) {
        let now = self.now;
        let node = &mut self.nodes[place];
        if now < node.stopped_until {
            return;
        }
        let at = SteadyTime(node.clock.at(now));
        let mut out = vec![];
        if let Some((_, until)) = node.awaited
            && until <= at.0
        {
            node.awaited = None;
            node.lease.handle_answer(at, LeaseAnswer::None, &mut out);
        }
        node.lease.handle_timeout(at, &mut out);
        let is_held = at.0 < node.hold_until;
        if !node.serves.is_empty() && !is_held && !node.was_silent {
            node.was_silent = true;
            self.census.fell_silent += 1;
        }
        if let Some((partition, until)) = node.stopping
            && until <= at.0
        {
            node.stopping = None;
            node.serves.remove(&LeaseId::Partition(partition));
            node.lease.given(at, partition);
            self.census.given += 1;
        }
        if std::mem::take(&mut node.stops) {
            node.lease.release(at, &mut out);
        }
        let serves: Vec<_> = node
            .serves
            .iter()
            .map(|(it, epoch)| (*it, *epoch))
            .collect();
        self.settle(place, out);
        // It writes while it holds the lease; the write may be late.
        if is_held && !serves.is_empty() && self.below(20) == 0 {
            let (lease, epoch) = serves[self.below(serves.len() as u64) as usize];
            self.post(Message::Write(lease, epoch));
        }
    }

    fn deliver(&mut self, place: usize, number: u64, answer: LeaseAnswer) {
        let node = &mut self.nodes[place];
        if self.now < node.stopped_until {
            let again = (node.stopped_until, Message::Answer(place, number, answer));
            self.under_way.push(again);
            return;
        }
        if node.awaited.is_none_or(|(awaited, _)| awaited != number) {
            return;
        }
        node.awaited = None;
        let at = SteadyTime(node.clock.at(self.now));
        let mut out = vec![];
        node.lease.handle_answer(at, answer, &mut out);
        self.settle(place, out);
    }

    fn settle(&mut self, place: usize, out: Vec<LeaseEffect>) {
        for effect in out {
            let node = &mut self.nodes[place];
            match effect {
                LeaseEffect::Ask(request, patience_ms) => {
                    self.next += 1;
                    let until = node.clock.at(self.now) + patience_ms;
                    node.awaited = Some((self.next, until));
                    let (process, is_cut) = (node.process, node.cut.0);
                    if !is_cut {
                        self.post(Message::Request(place, process, self.next, request));
                    }
                }
                LeaseEffect::HoldUntil(at) => {
                    node.hold_until = at.0;
                    if std::mem::take(&mut node.was_silent) {
                        self.census.went_on += 1;
                    }
                }
                LeaseEffect::Begin(begun) => {
                    for (lease, epoch) in &begun {
                        let written = self.newest_written.get(lease);
                        assert!(written.is_none_or(|it| it < epoch), "seed {}", self.seed);
                    }
                    self.census.begun += begun.len() as u32;
                    node.serves.extend(begun);
                }
                LeaseEffect::Give(partition) => {
                    let stops_at = node.clock.at(self.now) + self.random % 400;
                    node.stopping = Some((partition, stops_at));
                }
                LeaseEffect::Drain => node.stops = true,
                LeaseEffect::End => {
                    self.census.superseded += 1;
                    self.nodes[place] = self.a_process();
                }
                LeaseEffect::Left => self.nodes[place] = self.a_process(),
            }
        }
    }

    /// What the database does with a request, whenever it arrives.
    fn perform(&mut self, place: usize, process: u32, request: LeaseRequest) -> LeaseAnswer {
        let lease_ms = u64::from(RULES.lease_ms);
        let node = &self.nodes[place];
        let (is_there, is_to_drain) = (node.process == process, node.is_to_drain);
        let database = &mut self.database;
        let now = database.clock.at(self.now);
        let was_draining = database.heard.get(&process).is_some_and(|(_, is)| *is);
        let is_draining = was_draining || (is_there && is_to_drain);
        database.heard.insert(process, (now, is_draining));
        // Two processes in one place never run at a time; what a dead one still asks is of none.
        let is_free = |lease: &Lease| {
            lease.holder.is_none()
                || lease.ends_at <= now
                || (lease.place == place && is_there && lease.holder != Some(process))
        };
        match request {
            LeaseRequest::Beat { is_draining: says } => {
                database.heard.insert(process, (now, is_draining || says));
                let is_own = |it: &&mut Lease| it.holder == Some(process);
                for lease in database.leases.iter_mut().filter(is_own) {
                    lease.ends_at = now + lease_ms;
                }
                let is_heard = |(_, (at, _)): &(&u32, &(u64, bool))| now < at + lease_ms;
                let heard: Vec<_> = database.heard.iter().filter(is_heard).collect();
                let stays = heard.iter().filter(|(_, (_, is_draining))| !is_draining);
                let stays: Vec<u32> = stays.map(|(process, _)| **process).collect();
                let seen = leases().zip(&database.leases).map(|(id, lease)| SeenLease {
                    id,
                    epoch: lease.epoch,
                    holder: match lease.holder {
                        Some(holder) if holder == process => LeaseHolder::Own,
                        _ if is_free(lease) => LeaseHolder::Nobody {
                            was_given_up_here: lease.holder.is_none()
                                && lease.place == place
                                && now < lease.ends_at + lease_ms,
                            is_overdue: lease.ends_at + lease_ms <= now,
                        },
                        _ => LeaseHolder::Other,
                    },
                });
                LeaseAnswer::Seen(LeaseSight {
                    leases: seen.collect(),
                    has_others: stays.iter().any(|it| *it != process),
                    sharing: match self.shares {
                        true => stays.into_iter().map(id_of).collect(),
                        false => vec![],
                    },
                    is_draining,
                })
            }
            LeaseRequest::Acquire { leases, is_whole } => {
                let takes = |(id, seen): &&(LeaseId, u64)| {
                    let lease = &database.leases[place_of(*id)];
                    is_free(lease) && lease.epoch == *seen
                };
                let taken: Vec<LeaseId> = leases.iter().filter(takes).map(|(id, _)| *id).collect();
                if taken.is_empty() || (is_whole && taken.len() < leases.len()) {
                    return LeaseAnswer::Acquired(vec![]);
                }
                database.epoch += 1;
                let epoch = database.epoch;
                for id in &taken {
                    database.leases[place_of(*id)] = Lease {
                        holder: Some(process),
                        place,
                        epoch,
                        ends_at: now + lease_ms,
                    };
                }
                LeaseAnswer::Acquired(taken.into_iter().map(|id| (id, epoch)).collect())
            }
            LeaseRequest::GiveUp(id, epoch) => {
                let lease = &mut database.leases[place_of(id)];
                if lease.holder == Some(process) && lease.epoch == epoch {
                    lease.holder = None;
                    lease.ends_at = now;
                }
                LeaseAnswer::GivenUp
            }
            LeaseRequest::Release => {
                let is_own = |it: &&mut Lease| it.holder == Some(process);
                for lease in database.leases.iter_mut().filter(is_own) {
                    lease.holder = None;
                    lease.ends_at = now;
                }
                database.heard.remove(&process);
                LeaseAnswer::Released
            }
        }
    }

    /// A commit compares its epoch with the newest of the lease.
    fn write(&mut self, lease: LeaseId, epoch: u64) {
        if epoch < self.database.leases[place_of(lease)].epoch {
            self.census.late_writes_refused += 1;
            return;
        }
        let newest = self.newest_written.entry(lease).or_default();
        assert!(epoch >= *newest, "seed {}", self.seed);
        *newest = epoch;
    }

    fn post(&mut self, message: Message) {
        let late = match (self.has_faults, self.below(20)) {
            (true, 0) => return,
            (true, 1) => self.below(15_000),
            (_, 2..5) => self.below(300),
            _ => self.below(30),
        };
        self.under_way.push((self.now + late, message));
    }

    /// Which node has each lease now, by its own clock; never two.
    fn served(&self) -> BTreeMap<LeaseId, usize> {
        let mut served = BTreeMap::new();
        for (place, node) in self.nodes.iter().enumerate() {
            if node.clock.at(self.now) >= node.hold_until {
                continue;
            }
            for lease in node.serves.keys() {
                let other = served.insert(*lease, place);
                let (seed, now) = (self.seed, self.now);
                assert_eq!(other, None, "seed {seed}: two have {lease:?} at {now}");
            }
        }
        served
    }

    /// The active node.
    fn active(&self) -> usize {
        let served = self.served();
        served.get(&LeaseId::Active).copied().unwrap_or(usize::MAX)
    }

    /// Of so many nodes each has one lease on its way to another, and perhaps one that the other
    /// has but does not know of yet.
    fn assert_few_move(&self, givers: usize) {
        let (seed, served) = (self.seed, self.served());
        assert!(
            LEASES - served.len() <= 2 * givers,
            "seed {seed}: {served:?}"
        );
    }

    /// Every lease is had by a node: all by one, or those of deliveries by all in equal parts.
    fn assert_shared(&self, served: &BTreeMap<LeaseId, usize>) {
        let seed = self.seed;
        assert_eq!(served.len(), LEASES, "seed {seed}: not all are served");
        let deliveries = || served.iter().filter(|(it, _)| **it != LeaseId::Active);
        let of = |place| deliveries().filter(|(_, it)| **it == place).count();
        let parts: Vec<usize> = (0..self.nodes.len()).map(of).collect();
        let (least, most) = (parts.iter().min().unwrap(), parts.iter().max().unwrap());
        match self.shares {
            true => assert!(most - least <= 1, "seed {seed}: {parts:?}"),
            false => assert_eq!(*most, LEASES - 1, "seed {seed}: {parts:?}"),
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut drawn = self.random;
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (drawn ^ (drawn >> 31)) % bound.max(1)
    }
}

fn id_of(process: u32) -> NodeId {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&process.to_be_bytes());
    NodeId::from_bytes(id)
}
