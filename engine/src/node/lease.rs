//! When does a node hold the lease of its shards, when is it silent, and when may it take over?
//!
//! The database grants a lease and judges by its own clock when it has ended. The node measures
//! with a clock of its own, from the moment before it asked, and relies on a lease for a tenth less
//! than it was granted ([`LeaseRules::term_ms`]). If neither clock gains or loses more than 5 % of
//! the time, a node has stopped before another one may begin, however late answers are and however
//! long a node is paused. Each take-over begins a later epoch, which every commit is compared with:
//! what a node that is late in spite of all writes is refused.
//!
//! ```text
//!            free        granted                    term over
//!  Standby -------> Acquire -------> Active ------------------------> Silent
//!     ^                |              ^  |  <--- renewed: nobody -----  |
//!     +-- held --------+      renewed +--+       was in between         |
//!                                     |                                 |
//!                                     +---- another one has it: Lost <--+
//! ```

use std::fmt;

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

/// What a node sees of the lease while it stands by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LeaseSight {
    /// The epoch of whoever had it last.
    pub epoch: u64,
    /// Whether nobody has it: it was given up, it has ended, or its holder was the process that ran
    /// in the place of this one.
    pub is_free: bool,
    /// Whether the process that ran in the place of this one gave it up less than a lease ago.
    pub was_given_up_here: bool,
    /// Whether another node stands by.
    pub has_others: bool,
    /// Whether this node is to drain.
    pub is_draining: bool,
}

/// What the database answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LeaseAnswer {
    /// To [`LeaseRequest::Look`].
    Seen(LeaseSight),
    /// To [`LeaseRequest::Acquire`]: this node has it, in this epoch.
    Granted(u64),
    /// To [`LeaseRequest::Acquire`]: another node was faster.
    Taken,
    /// To [`LeaseRequest::Renew`]: it was renewed; whether the node is to drain.
    Renewed {
        /// Whether somebody asked the node to drain.
        is_draining: bool,
    },
    /// To [`LeaseRequest::Renew`]: it is another node's, or of a later epoch.
    Superseded,
    /// To [`LeaseRequest::Release`].
    Released,
    /// None came in time, or the request failed. It may have been performed all the same.
    None,
}

/// What the database is asked. Each request is also a heartbeat of the node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LeaseRequest {
    /// Who has the lease?
    Look,
    /// Take it, unless anybody took it since this epoch or it is not free.
    Acquire {
        /// The epoch that was seen.
        seen: u64,
    },
    /// Have it begin anew, unless it is no longer held in this epoch.
    Renew {
        /// The epoch of the holder.
        epoch: u64,
        /// Whether the holder is about to give it up.
        is_draining: bool,
    },
    /// Give it up if this node has it: from then on the node stops. One that stands by may have it,
    /// too: by a request to take it whose answer did not come.
    Release,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LeaseEffect {
    /// Ask the database. The answer is awaited for as long; then it is none.
    Ask(LeaseRequest, u64),
    /// Nothing may be received, answered or sent from this time on, unless a later one is set.
    HoldUntil(SteadyTime),
    /// Start to serve, in this epoch.
    Begin(u64),
    /// Stop as at the request of an operator, then call [`NodeLease::release`].
    Drain,
    /// Another node serves: end at once.
    End,
    /// The lease was given up, or there was none.
    Left,
}

/// The lease as one node knows it.
#[derive(Debug)]
pub struct NodeLease {
    rules: LeaseRules,
    state: LeaseState,
    /// When the request was made whose answer is awaited.
    asked_at: Option<SteadyTime>,
    ask_at: SteadyTime,
    is_draining: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LeaseState {
    Standby,
    Held {
        epoch: u64,
        until: SteadyTime,
        has_begun: bool,
    },
    Leaving,
    Ended,
}

impl NodeLease {
    /// A node that stands by from now on.
    pub fn new(now: SteadyTime, rules: LeaseRules) -> Self {
        Self {
            rules,
            state: LeaseState::Standby,
            asked_at: None,
            ask_at: now,
            is_draining: false,
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: SteadyTime, out: &mut Vec<LeaseEffect>) {
        if self.asked_at.is_some() || now < self.ask_at {
            return;
        }
        let request = match self.state {
            LeaseState::Standby => LeaseRequest::Look,
            LeaseState::Held { epoch, .. } => LeaseRequest::Renew {
                epoch,
                is_draining: self.is_draining,
            },
            LeaseState::Leaving | LeaseState::Ended => return,
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
        match (answer, self.state) {
            (LeaseAnswer::Seen(sight), LeaseState::Standby) => self.see(now, sight, out),
            (LeaseAnswer::Granted(epoch), LeaseState::Standby) => {
                self.hold(epoch, asked_at, now, false, out);
            }
            (
                LeaseAnswer::Renewed { is_draining },
                LeaseState::Held {
                    epoch, has_begun, ..
                },
            ) => {
                self.hold(epoch, asked_at, now, has_begun, out);
                if is_draining {
                    self.drain(out);
                }
            }
            (LeaseAnswer::Superseded, LeaseState::Held { .. }) => {
                self.state = LeaseState::Ended;
                out.push(LeaseEffect::HoldUntil(SteadyTime::default()));
                out.push(LeaseEffect::End);
            }
            (LeaseAnswer::Released | LeaseAnswer::None, LeaseState::Leaving) => {
                self.state = LeaseState::Ended;
                out.push(LeaseEffect::Left);
            }
            (
                LeaseAnswer::Seen(_)
                | LeaseAnswer::Granted(_)
                | LeaseAnswer::Taken
                | LeaseAnswer::Renewed { .. }
                | LeaseAnswer::Superseded
                | LeaseAnswer::Released
                | LeaseAnswer::None,
                _,
            ) => {}
        }
    }

    /// Records that the node stops, which others are shown from the next renewal on.
    pub fn stopping(&mut self) {
        self.is_draining = true;
    }

    /// Gives up the lease: everything has stopped. What is under way is no longer waited for.
    pub fn release(&mut self, now: SteadyTime, out: &mut Vec<LeaseEffect>) {
        match self.state {
            LeaseState::Standby | LeaseState::Held { .. } => {}
            LeaseState::Leaving | LeaseState::Ended => return,
        }
        self.state = LeaseState::Leaving;
        // Nothing more may leave, because another node may begin as soon as this is performed.
        out.push(LeaseEffect::HoldUntil(SteadyTime::default()));
        self.ask(now, LeaseRequest::Release, out);
    }

    /// When [`Self::handle_timeout`] is due, unless an answer is awaited.
    pub fn next_timeout(&self) -> Option<SteadyTime> {
        match (self.state, self.asked_at) {
            (LeaseState::Leaving | LeaseState::Ended, _) | (_, Some(_)) => None,
            (LeaseState::Standby | LeaseState::Held { .. }, None) => Some(self.ask_at),
        }
    }

    /// What the node does at this time.
    pub fn role(&self, now: SteadyTime) -> NodeRole {
        match self.state {
            LeaseState::Standby => NodeRole::Standby,
            LeaseState::Held { until, .. } if now < until => NodeRole::Active,
            LeaseState::Held { .. } => NodeRole::Silent,
            LeaseState::Leaving | LeaseState::Ended => NodeRole::Ended,
        }
    }

    fn see(&mut self, now: SteadyTime, sight: LeaseSight, out: &mut Vec<LeaseEffect>) {
        // The others take what was given up here: whoever stopped this place wants that.
        let yields = sight.was_given_up_here && sight.has_others;
        if sight.is_draining {
            self.drain(out);
        } else if sight.is_free && !yields {
            let seen = sight.epoch;
            self.ask(now, LeaseRequest::Acquire { seen }, out);
        }
    }

    fn hold(
        &mut self,
        epoch: u64,
        asked_at: SteadyTime,
        now: SteadyTime,
        had_begun: bool,
        out: &mut Vec<LeaseEffect>,
    ) {
        let until = asked_at.plus_ms(self.rules.term_ms());
        let has_begun = had_begun || now < until;
        self.state = LeaseState::Held {
            epoch,
            until,
            has_begun,
        };
        out.push(LeaseEffect::HoldUntil(until));
        if has_begun && !had_begun {
            out.push(LeaseEffect::Begin(epoch));
        }
        if now < until {
            let next = asked_at.plus_ms(self.rules.heartbeat_ms.into());
            self.ask_at = next.max(now);
        }
    }

    fn drain(&mut self, out: &mut Vec<LeaseEffect>) {
        if !self.is_draining {
            self.is_draining = true;
            out.push(LeaseEffect::Drain);
        }
    }

    fn ask(&mut self, now: SteadyTime, request: LeaseRequest, out: &mut Vec<LeaseEffect>) {
        self.asked_at = Some(now);
        let patience_ms = match request {
            // It waits for the commits in progress of whoever it fences off.
            LeaseRequest::Acquire { .. } => self.rules.term_ms(),
            LeaseRequest::Look | LeaseRequest::Renew { .. } | LeaseRequest::Release => {
                self.rules.heartbeat_ms.into()
            }
        };
        out.push(LeaseEffect::Ask(request, patience_ms));
    }
}

/// What a node does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NodeRole {
    /// It waits for the lease.
    Standby,
    /// It holds the lease.
    Active,
    /// It could not renew the lease in time, and does not know of another holder.
    Silent,
    /// It gave the lease up or lost it.
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
