//! Which leases does a node hold, when is it silent, and when may it take over?
//!
//! The node with the first lease is the active one: it answers callers, and does what only one node
//! may do. Devices and deliveries have a lease for each partition, so that several nodes serve.
//!
//! The database grants a lease and judges by its own clock when it has ended. The node measures
//! with a clock of its own, from the moment before it asked, and relies on its leases, which are
//! renewed together, for a tenth less than they were granted ([`LeaseRules::term_ms`]). If neither
//! clock gains or loses more than 5 % of the time, a node has stopped before another one may begin,
//! however late answers are and however long a node is paused. Each take-over begins a later epoch,
//! which every commit is compared with: what a node that is late in spite of all writes is refused.
//!
//! ```text
//!            free        granted                    term over
//!  Standby -------> Acquire -------> Active ------------------------> Silent
//!     ^                |              ^  |  <--- renewed: nobody -----  |
//!     +-- held --------+      renewed +--+       was in between         |
//!                                     |                                 |
//!                                     +---- another one has it: End <---+
//! ```
//!
//! Nodes that reach each other share the partitions. Each knows from what all of them see how many
//! partitions it is to have; it takes free ones until it has as many, and gives up one after the
//! other while it has more. A node that others cannot reach takes all leases or none.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::ids::{NodeId, Partition};
use crate::limits::PARTITIONS;

/// A time of the clock that a node measures its lease with: milliseconds that only ever grow, also
/// while the process is stopped or the machine suspended.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct SteadyTime(pub u64);

impl SteadyTime {
    /// So many milliseconds later.
    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

/// How long a lease is, and how often it is renewed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LeaseRules {
    /// How long the database grants it for.
    pub lease_ms: u32,
    /// How often the holder renews it.
    pub heartbeat_ms: u32,
}

impl LeaseRules {
    /// How long a node relies on a lease that it was granted: a tenth less, so that two clocks may
    /// each be 5 % wrong, or that of the database may be set forward by almost a tenth.
    pub fn term_ms(self) -> u64 {
        let lease_ms = u64::from(self.lease_ms);
        lease_ms - lease_ms.div_ceil(10)
    }

    /// How often a node that stands by looks whether the lease is free, and how soon anybody asks
    /// again after no answer: a lease that is given up is taken soon.
    fn look_ms(self) -> u64 {
        u64::from(self.heartbeat_ms / 4).max(1)
    }
}

/// What a lease is of.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum LeaseId {
    /// Of everything that only one node may do.
    Active,
    /// Of the devices of a partition, and of the deliveries to its destinations.
    Partition(Partition),
}

/// What a node sees of the leases.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LeaseSight {
    /// All of them, in order.
    pub leases: Vec<SeenLease>,
    /// The nodes that share the partitions: heard within a lease and not to drain, in order.
    pub sharing: Vec<NodeId>,
    /// Whether another node could take a lease, whether it shares or not.
    pub has_others: bool,
    /// Whether this node is to drain.
    pub is_draining: bool,
}

/// Who has a lease.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SeenLease {
    /// Which it is.
    pub id: LeaseId,
    /// The epoch of whoever had it last.
    pub epoch: u64,
    /// Who has it.
    pub holder: LeaseHolder,
}

/// The holder of a lease.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LeaseHolder {
    /// This node.
    Own,
    /// Another node.
    Other,
    /// Nobody: it was given up, it has ended, or its holder was the process that ran in the place
    /// of this one.
    Nobody {
        /// Whether the process that runs or ran in this place gave it up less than a lease ago.
        was_given_up_here: bool,
        /// Whether nobody has taken it for a lease.
        is_overdue: bool,
    },
}

/// What the database answers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LeaseAnswer {
    /// To [`LeaseRequest::Beat`].
    Seen(LeaseSight),
    /// To [`LeaseRequest::Acquire`]: what this node has of it now, each in its epoch; nothing, if
    /// other nodes were faster.
    Acquired(Vec<(LeaseId, u64)>),
    /// To [`LeaseRequest::GiveUp`].
    GivenUp,
    /// To [`LeaseRequest::Release`].
    Released,
    /// None came in time, or the request failed. It may have been performed all the same.
    None,
}

/// What the database is asked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LeaseRequest {
    /// The node is there: renew all its leases, and show who has which.
    Beat {
        /// Whether the node is about to give them up.
        is_draining: bool,
    },
    /// Take those of these that nobody has, and that nobody has taken since.
    Acquire {
        /// Those to take, each with the epoch that was seen.
        leases: Vec<(LeaseId, u64)>,
        /// Whether to take none unless it can take all.
        is_whole: bool,
    },
    /// Give one up, if this node has it in this epoch.
    GiveUp(LeaseId, u64),
    /// Give up all that this node has: from then on the node stops. One that stands by may have
    /// some, too: by a request to take them whose answer did not come.
    Release,
}

/// What is to be done.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LeaseEffect {
    /// Ask the database. The answer is awaited for as long; then it is none.
    Ask(LeaseRequest, u64),
    /// Nothing may be received, answered or sent from this time on, unless a later one is set.
    HoldUntil(SteadyTime),
    /// Start to do what these leases are of, each in its epoch.
    Begin(Vec<(LeaseId, u64)>),
    /// Stop to serve a partition, then call [`NodeLease::given`].
    Give(Partition),
    /// Stop as at the request of an operator, then call [`NodeLease::release`].
    Drain,
    /// Another node does what this one did: end at once.
    End,
    /// All leases were given up, or there were none.
    Left,
}

/// The leases as one node knows them.
#[derive(Debug)]
pub struct NodeLease {
    node: NodeId,
    rules: LeaseRules,
    stage: LeaseStage,
    /// The leases that it has, with their epochs.
    held: BTreeMap<LeaseId, u64>,
    /// Those of them that it was told to begin.
    begun: BTreeSet<LeaseId>,
    /// Until when it relies on all of them.
    until: SteadyTime,
    giving: Option<Giving>,
    /// When the request was made whose answer is awaited.
    asked_at: Option<SteadyTime>,
    ask_at: SteadyTime,
    is_draining: bool,
    /// Whether the shell was told to drain.
    was_drained: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LeaseStage {
    Joined,
    Leaving,
    Ended,
}

/// A partition that is being given up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Giving {
    /// The shell is to stop serving it.
    Stopping(Partition),
    /// It has stopped, in this epoch; the database may not know that yet.
    Stopped(Partition, u64),
}

/// What a node does about what it sees.
enum Plan {
    Keep,
    /// Look again soon: there is to be something to take.
    Watch,
    /// Take these, of the epochs that were seen; all or none, if so.
    Take(Vec<(LeaseId, u64)>, bool),
    Give(Partition),
    Drain,
}

impl NodeLease {
    /// A node that has no lease yet.
    pub fn new(now: SteadyTime, node: NodeId, rules: LeaseRules) -> Self {
        Self {
            node,
            rules,
            stage: LeaseStage::Joined,
            held: BTreeMap::new(),
            begun: BTreeSet::new(),
            until: SteadyTime::default(),
            giving: None,
            asked_at: None,
            ask_at: now,
            is_draining: false,
            was_drained: false,
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: SteadyTime, out: &mut Vec<LeaseEffect>) {
        if self.asked_at.is_some() || now < self.ask_at || self.stage != LeaseStage::Joined {
            return;
        }
        let request = match self.giving {
            Some(Giving::Stopped(partition, epoch)) => {
                LeaseRequest::GiveUp(LeaseId::Partition(partition), epoch)
            }
            Some(Giving::Stopping(_)) | None => LeaseRequest::Beat {
                is_draining: self.is_draining,
            },
        };
        self.ask(now, request, out);
    }

    /// Takes the answer to the last request.
    pub fn handle_answer(
        &mut self,
        now: SteadyTime,
        answer: LeaseAnswer,
        out: &mut Vec<LeaseEffect>,
    ) {
        let Some(asked_at) = self.asked_at.take() else {
            return;
        };
        self.ask_at = now.plus_ms(self.rules.look_ms());
        match (answer, self.stage) {
            (LeaseAnswer::Seen(sight), LeaseStage::Joined) => {
                self.see((asked_at, now), &sight, out);
            }
            (LeaseAnswer::Acquired(acquired), LeaseStage::Joined) => {
                if !acquired.is_empty() {
                    let until = match self.held.is_empty() {
                        true => asked_at.plus_ms(self.rules.term_ms()),
                        false => self.until,
                    };
                    self.held.extend(acquired);
                    self.hold(until, now, out);
                }
            }
            (LeaseAnswer::GivenUp, LeaseStage::Joined) => {
                self.giving = None;
                self.ask_at = now;
            }
            (LeaseAnswer::Released | LeaseAnswer::None, LeaseStage::Leaving) => {
                self.stage = LeaseStage::Ended;
                out.push(LeaseEffect::Left);
            }
            (
                LeaseAnswer::Seen(_)
                | LeaseAnswer::Acquired(_)
                | LeaseAnswer::GivenUp
                | LeaseAnswer::Released
                | LeaseAnswer::None,
                _,
            ) => {}
        }
    }

    /// Drains the node as at the request of an operator; others are shown that from the next beat
    /// on.
    pub fn drain(&mut self, now: SteadyTime) {
        self.is_draining = true;
        self.ask_at = now;
    }

    /// Records that a partition is served no longer, after [`LeaseEffect::Give`].
    pub fn given(&mut self, now: SteadyTime, partition: Partition) {
        let lease = LeaseId::Partition(partition);
        if self.giving == Some(Giving::Stopping(partition))
            && let Some(epoch) = self.held.remove(&lease)
        {
            self.giving = Some(Giving::Stopped(partition, epoch));
            self.begun.remove(&lease);
            self.ask_at = now;
        }
    }

    /// Gives up all leases: everything has stopped. What is under way is no longer waited for.
    pub fn release(&mut self, now: SteadyTime, out: &mut Vec<LeaseEffect>) {
        if self.stage != LeaseStage::Joined {
            return;
        }
        self.stage = LeaseStage::Leaving;
        // Nothing more may leave, because another node may begin as soon as this is performed.
        out.push(LeaseEffect::HoldUntil(SteadyTime::default()));
        self.ask(now, LeaseRequest::Release, out);
    }

    /// When [`Self::handle_timeout`] is due, unless an answer is awaited.
    pub fn next_timeout(&self) -> Option<SteadyTime> {
        match (self.stage, self.asked_at) {
            (LeaseStage::Leaving | LeaseStage::Ended, _) | (_, Some(_)) => None,
            (LeaseStage::Joined, None) => Some(self.ask_at),
        }
    }

    /// What the node does at this time.
    pub fn role(&self, now: SteadyTime) -> NodeRole {
        match self.stage {
            LeaseStage::Leaving | LeaseStage::Ended => NodeRole::Ended,
            LeaseStage::Joined if !self.is_active() => NodeRole::Standby,
            LeaseStage::Joined if now >= self.until => NodeRole::Silent,
            LeaseStage::Joined => NodeRole::Active,
        }
    }

    /// How many partitions it serves at this time.
    pub fn served(&self, now: SteadyTime) -> usize {
        match now < self.until {
            true => self.partitions(),
            false => 0,
        }
    }

    fn see(
        &mut self,
        (asked_at, now): (SteadyTime, SteadyTime),
        sight: &LeaseSight,
        out: &mut Vec<LeaseEffect>,
    ) {
        let mut own: BTreeMap<LeaseId, u64> = sight.own().collect();
        let is_lost = |(lease, epoch): (&LeaseId, &u64)| own.get(lease) != Some(epoch);
        if self.held.iter().any(is_lost) {
            self.stage = LeaseStage::Ended;
            out.push(LeaseEffect::HoldUntil(SteadyTime::default()));
            out.push(LeaseEffect::End);
            return;
        }
        if let Some(Giving::Stopped(partition, _)) = self.giving
            && own.remove(&LeaseId::Partition(partition)).is_none()
        {
            self.giving = None;
        }
        // Others may be there: of a request whose answer did not come.
        self.held = own;
        if !self.held.is_empty() {
            self.hold(asked_at.plus_ms(self.rules.term_ms()), now, out);
        }
        self.is_draining |= sight.is_draining;
        if !self.held.is_empty() && now >= self.until {
            return;
        }
        match self.plan(sight) {
            // Whoever could become active looks often.
            Plan::Keep if self.is_active() => self.await_heartbeat(asked_at, now),
            Plan::Keep | Plan::Watch => {}
            Plan::Take(leases, is_whole) => {
                self.ask(now, LeaseRequest::Acquire { leases, is_whole }, out);
            }
            Plan::Give(partition) => {
                self.await_heartbeat(asked_at, now);
                self.giving = Some(Giving::Stopping(partition));
                out.push(LeaseEffect::Give(partition));
            }
            Plan::Drain => {
                self.await_heartbeat(asked_at, now);
                self.was_drained = true;
                out.push(LeaseEffect::Drain);
            }
        }
    }

    /// What follows from who has what.
    fn plan(&self, sight: &LeaseSight) -> Plan {
        match self.giving {
            Some(Giving::Stopped(..)) => return Plan::Watch,
            Some(Giving::Stopping(_)) => return Plan::Keep,
            None => {}
        }
        if self.is_draining {
            let are_others = sight.sharing.iter().any(|it| *it != self.node);
            let are_able = !sight.free().any(SeenLease::is_overdue);
            return match self.was_drained {
                true => Plan::Keep,
                false if are_others && are_able && self.held.len() > 1 => self.give_last(sight),
                false => Plan::Drain,
            };
        }
        let free: Vec<&SeenLease> = sight.free().collect();
        let (active, partitions): (Vec<&SeenLease>, Vec<&SeenLease>) =
            free.iter().partition(|it| it.id == LeaseId::Active);
        let active = active.into_iter().filter(|_| !sight.is_left_to_others());
        let take = |leases: &[&SeenLease], is_whole| {
            let leases = leases.iter().map(|it| (it.id, it.epoch));
            Plan::Take(leases.collect(), is_whole)
        };
        if !sight.sharing.contains(&self.node) {
            let is_all = free.len() == sight.leases.len() && active.count() > 0;
            return match self.is_active() {
                false if is_all => take(&free, true),
                // Those of a newer schema were not there before.
                true if !free.is_empty() => take(&free, false),
                false | true => Plan::Keep,
            };
        }
        let quota = self.quota(&sight.sharing);
        let missing = quota.saturating_sub(self.partitions());
        let partitions = partitions.into_iter().enumerate();
        // Whoever is to have one may be unable to take it.
        let partitions = partitions.filter(|(place, it)| *place < missing || it.is_overdue());
        let taken: Vec<&SeenLease> = active.chain(partitions.map(|(_, it)| it)).collect();
        match taken.is_empty() {
            false => take(&taken, false),
            true if missing > 0 => Plan::Watch,
            true if self.partitions() > quota => self.give_last(sight),
            true => Plan::Keep,
        }
    }

    /// Gives up the last partition, once nothing is free: one after the other, because whoever is
    /// to have it looks often.
    fn give_last(&self, sight: &LeaseSight) -> Plan {
        match self.held.last_key_value() {
            Some((LeaseId::Partition(_), _)) if sight.free().next().is_some() => Plan::Watch,
            Some((LeaseId::Partition(last), _)) => Plan::Give(*last),
            Some((LeaseId::Active, _)) | None => Plan::Keep,
        }
    }

    /// How many partitions this node is to have among those that share them.
    fn quota(&self, sharing: &[NodeId]) -> usize {
        let (all, nodes) = (usize::from(PARTITIONS), sharing.len().max(1));
        let earlier = sharing.iter().filter(|it| **it < self.node).count();
        all / nodes + usize::from(earlier < all % nodes)
    }

    /// How many it has.
    fn partitions(&self) -> usize {
        self.held.len() - usize::from(self.is_active())
    }

    fn is_active(&self) -> bool {
        self.held.contains_key(&LeaseId::Active)
    }

    fn await_heartbeat(&mut self, asked_at: SteadyTime, now: SteadyTime) {
        let next = asked_at.plus_ms(self.rules.heartbeat_ms.into());
        self.ask_at = next.max(now);
    }

    /// Relies on what is held until this time.
    fn hold(&mut self, until: SteadyTime, now: SteadyTime, out: &mut Vec<LeaseEffect>) {
        self.until = until;
        out.push(LeaseEffect::HoldUntil(until));
        if now >= until {
            return;
        }
        let new = self.held.iter().filter(|(it, _)| !self.begun.contains(it));
        let new: Vec<_> = new.map(|(lease, epoch)| (*lease, *epoch)).collect();
        if !new.is_empty() {
            self.begun.extend(new.iter().map(|(lease, _)| *lease));
            out.push(LeaseEffect::Begin(new));
        }
    }

    fn ask(&mut self, now: SteadyTime, request: LeaseRequest, out: &mut Vec<LeaseEffect>) {
        self.asked_at = Some(now);
        let patience_ms = match &request {
            // It waits for the commits in progress of whoever it fences off.
            LeaseRequest::Acquire { .. } if self.held.is_empty() => self.rules.term_ms(),
            LeaseRequest::Acquire { .. }
            | LeaseRequest::Beat { .. }
            | LeaseRequest::GiveUp(..)
            | LeaseRequest::Release => self.rules.heartbeat_ms.into(),
        };
        out.push(LeaseEffect::Ask(request, patience_ms));
    }
}

impl LeaseSight {
    fn own(&self) -> impl Iterator<Item = (LeaseId, u64)> {
        let own = self.leases.iter();
        let own = own.filter(|it| it.holder == LeaseHolder::Own);
        own.map(|it| (it.id, it.epoch))
    }

    fn free(&self) -> impl Iterator<Item = &SeenLease> {
        let leases = self.leases.iter();
        leases.filter(|it| matches!(it.holder, LeaseHolder::Nobody { .. }))
    }

    /// Whether others become active, because the process in this place was until it gave that up:
    /// whoever stopped it wants that.
    fn is_left_to_others(&self) -> bool {
        let was_given_up_here = |it: &SeenLease| match it.holder {
            LeaseHolder::Nobody {
                was_given_up_here, ..
            } => it.id == LeaseId::Active && was_given_up_here,
            LeaseHolder::Own | LeaseHolder::Other => false,
        };
        self.has_others && self.leases.iter().any(was_given_up_here)
    }
}

impl SeenLease {
    fn is_overdue(&self) -> bool {
        match self.holder {
            LeaseHolder::Nobody { is_overdue, .. } => is_overdue,
            LeaseHolder::Own | LeaseHolder::Other => false,
        }
    }
}

/// What a node does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NodeRole {
    /// It waits until it may become the active node; it may serve partitions.
    Standby,
    /// It is the active node.
    Active,
    /// It is, but could not renew its leases in time, and does not know of another holder.
    Silent,
    /// It gave its leases up or lost them.
    Ended,
}

impl fmt::Display for NodeRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Standby => "standby",
            Self::Active => "active",
            Self::Silent => "silent",
            Self::Ended => "ended",
        })
    }
}

#[cfg(test)]
mod tests;
