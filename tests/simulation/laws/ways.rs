//! Laws about the ways of datagrams between arbiters: each ends once, soon, and where it should.

use std::collections::{BTreeMap, BTreeSet};

use engine::peer::Peer;
use engine::registry::Fate;

use super::{Verdict, hold};
use crate::disk::Durable;
use crate::service::{End, Whose};

/// Every datagram in the process, and who can be meant by it.
pub(crate) struct Ways {
    arbiters: u16,
    underway: BTreeMap<u64, Underway>,
    /// Where each device said last that it is.
    behind: Vec<Option<Behind>>,
    /// Where devices were whose actors fell over before it was saved that they were there: what
    /// comes from there may still be taken for theirs, and often is.
    fell: BTreeSet<(Peer, usize)>,
    claims: u64,
}

/// A datagram that was heard and has not ended.
#[derive(Default)]
struct Underway {
    steps: u16,
    is_named: bool,
    /// Whom it has to reach as long as nothing changes.
    meant: Option<Meant>,
}

/// Whom a datagram has to reach.
#[derive(Clone, Copy, Debug)]
enum Meant {
    /// The device of this name, while it is neither removed nor added.
    Named { who: usize, turns: u32 },
    /// The one device behind the peer, while it alone says so.
    Behind { who: usize, claim: u64 },
}

/// What a device said about where it is.
struct Behind {
    peer: Peer,
    /// Tells what it says now from what it said at another time or place.
    claim: u64,
    /// Another device was there too since it said so: without DTLS they may be confused.
    is_shared: bool,
}

impl Ways {
    pub(super) fn new(arbiters: usize, devices: usize) -> Self {
        Self {
            arbiters: u16::try_from(arbiters).expect("a world has few arbiters"),
            underway: BTreeMap::new(),
            behind: (0..devices).map(|_| None).collect(),
            fell: BTreeSet::new(),
            claims: 0,
        }
    }

    /// A socket gives a datagram to its arbiter.
    pub(crate) fn heard(&mut self, number: u64) {
        self.underway.insert(number, Underway::default());
    }

    /// It is known whose a datagram is, and whether one device alone can be meant.
    pub(crate) fn sorted(&mut self, number: u64, whose: Whose, durable: &Durable) -> bool {
        let meant = match whose {
            Whose::Named(who) => who.filter(|who| durable.exists(*who)).map(|who| {
                let turns = durable.turns(who);
                Meant::Named { who, turns }
            }),
            Whose::Behind(peer) => self.only_one_behind(peer),
            Whose::Nobodys => None,
        };
        if let Some(underway) = self.underway.get_mut(&number) {
            underway.is_named = matches!(whose, Whose::Named(_));
            underway.meant = meant;
        }
        matches!(meant, Some(Meant::Behind { .. }))
    }

    fn only_one_behind(&self, peer: Peer) -> Option<Meant> {
        let mut there = (0..).zip(&self.behind).filter_map(|(who, behind)| {
            let behind = behind.as_ref().filter(|behind| behind.peer == peer)?;
            let claim = behind.claim;
            Some((behind.is_shared, Meant::Behind { who, claim }))
        });
        let (is_shared, meant) = there.next()?;
        (!is_shared).then_some(meant)
    }

    /// A datagram takes a step from one arbiter to another.
    pub(crate) fn forwarded(&mut self, number: u64) -> Verdict {
        let underway = self.underway.get_mut(&number);
        hold("a_datagram_ends_once", underway.is_some(), || {
            format!("datagram {number} goes on after its end")
        })?;
        let Some(underway) = underway else {
            return Ok(());
        };
        underway.steps += 1;
        let steps = underway.steps;
        hold(
            "no_datagram_goes_in_circles",
            steps <= self.arbiters,
            || {
                format!(
                    "datagram {number} took {steps} steps among {}",
                    self.arbiters
                )
            },
        )?;
        let is_direct = steps <= 1 || !underway.is_named;
        hold(
            "what_names_its_device_goes_there_at_once",
            is_direct,
            || format!("datagram {number} names its device and took {steps} steps"),
        )
    }

    /// Nothing more becomes of a datagram; returns how many steps it took.
    pub(crate) fn ended(
        &mut self,
        number: u64,
        end: End,
        durable: &Durable,
    ) -> Result<u16, super::Breach> {
        let underway = self.underway.remove(&number);
        hold("a_datagram_ends_once", underway.is_some(), || {
            format!("datagram {number} ends again: {end:?}")
        })?;
        let underway = underway.unwrap_or_default();
        match underway.meant {
            Some(meant @ Meant::Named { who, turns }) if durable.turns(who) == turns => {
                reaches("what_names_its_device_reaches_it", meant, who, end)?;
            }
            Some(meant @ Meant::Behind { who, claim }) if self.still_claims(who, claim) => {
                reaches("an_answer_reaches_its_device", meant, who, end)?;
            }
            Some(Meant::Named { .. } | Meant::Behind { .. }) | None => {}
        }
        Ok(underway.steps)
    }

    fn still_claims(&self, who: usize, claim: u64) -> bool {
        let behind = self.behind[who].as_ref();
        behind.is_some_and(|behind| behind.claim == claim && !behind.is_shared)
    }

    /// A device is brought back, and is where it was when that was saved last.
    pub(super) fn restored(&mut self, who: usize, to: Option<Peer>) {
        let before = self.behind[who].as_ref().map(|behind| behind.peer);
        if before != to {
            self.fell.extend(before.map(|peer| (peer, who)));
        }
        self.rebound(who, to);
    }

    /// A device says where it is.
    pub(crate) fn rebound(&mut self, who: usize, to: Option<Peer>) {
        let before = self.behind[who].take();
        let Some(peer) = to else {
            return;
        };
        self.fell.remove(&(peer, who));
        let first = (peer, usize::MIN);
        let mut is_shared = self.fell.range(first..=(peer, usize::MAX)).next().is_some();
        for other in self.behind.iter_mut().flatten() {
            if other.peer == peer {
                (other.is_shared, is_shared) = (true, true);
            }
        }
        let claim = match before {
            Some(before) if before.peer == peer && !before.is_shared => before.claim,
            Some(_) | None => {
                self.claims += 1;
                self.claims
            }
        };
        self.behind[who] = Some(Behind {
            peer,
            claim,
            is_shared,
        });
    }

    /// What was in the process is gone.
    pub(super) fn crashed(&mut self) {
        self.underway.clear();
        self.fell.clear();
        self.behind.iter_mut().for_each(|behind| *behind = None);
    }

    /// What was heard and has not ended is somewhere, once.
    pub(crate) fn every_datagram_is_somewhere(&self, held: usize) -> Verdict {
        let underway = self.underway.len();
        hold("a_datagram_ends_once", underway == held, || {
            format!("{underway} datagrams have not ended, and {held} are in the process")
        })
    }
}

/// Whom a datagram is for, that machine took it, or could not for a reason that has a name.
fn reaches(law: &'static str, meant: Meant, who: usize, end: End) -> Verdict {
    let is_right = match end {
        End::Handled { who: by } => by == who,
        End::Lost { who: by, .. } => by == who,
        End::Turned(Fate::Crowded | Fate::NoPlace) => true,
        End::Turned(Fate::Overloaded) => matches!(meant, Meant::Named { .. }),
        End::Turned(
            Fate::Malformed(_)
            | Fate::UnknownOption
            | Fate::UnknownEndpoint
            | Fate::UnknownLocation
            | Fate::UnknownPeer,
        ) => false,
    };
    hold(law, is_right, || {
        format!("for {meant:?} it ended so: {end:?}")
    })
}
