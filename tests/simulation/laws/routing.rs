//! Laws about routing between arbiters: each datagram ends once, soon, and at the right device.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use engine::dispatch::DropReason;
use engine::dispatch::shard_map::ArbiterId;
use engine::peer::Peer;

use super::{Verdict, hold};
use crate::disk::Durable;
use crate::service::{DatagramEnd, DatagramOwner};

/// Every datagram in the process, and the device it must reach.
pub(crate) struct DatagramRouting {
    arbiters: u16,
    underway: BTreeMap<u64, DatagramInTransit>,
    /// The peers of each device: that of its registration, and those its requests were sent to.
    behind: Vec<Vec<PeerClaim>>,
    /// Peers of devices whose actors panicked before the peer was durable: datagrams from there may
    /// still be routed to them, and often are.
    fell: BTreeSet<(Peer, usize)>,
    claims: u64,
    /// The peers of devices since the service started.
    ever: BTreeSet<(Peer, usize)>,
    /// The newest datagram without a name that was handled, by peer.
    newest: BTreeMap<Peer, u64>,
}

/// A datagram that was received and has not ended.
struct DatagramInTransit {
    from: Peer,
    /// How many records had been put when it was heard.
    heard_at: u64,
    /// The arbiter that has it, or that it is on its way to.
    at: ArbiterId,
    steps: u16,
    is_named: bool,
    /// The device it has to reach as long as nothing changes.
    meant: Option<IntendedDevice>,
    /// Its sender, if it is data without a name.
    address: Option<Peer>,
}

/// The device that a datagram has to reach.
#[derive(Clone, Copy, Debug)]
enum IntendedDevice {
    /// The device of this name, while it is neither removed nor added.
    Named { who: usize, turns: u32 },
    /// The only device at the peer, while no other claims it.
    Behind { who: usize, claim: u64 },
}

/// The claim of a device to a peer.
struct PeerClaim {
    peer: Peer,
    /// Distinguishes this claim from those at other times or peers.
    claim: u64,
    /// Another device was at this peer during the claim: without DTLS they may be confused.
    is_shared: bool,
}

impl DatagramRouting {
    pub(super) fn new(arbiters: usize, devices: usize) -> Self {
        Self {
            arbiters: u16::try_from(arbiters).expect("a world has few arbiters"),
            underway: BTreeMap::new(),
            behind: (0..devices).map(|_| Vec::new()).collect(),
            fell: BTreeSet::new(),
            claims: 0,
            ever: BTreeSet::new(),
            newest: BTreeMap::new(),
        }
    }

    /// A socket passes a datagram to its arbiter.
    pub(crate) fn received(
        &mut self,
        (number, from): (u64, Peer),
        at: ArbiterId,
        durable: &Durable,
    ) {
        let underway = DatagramInTransit {
            from,
            heard_at: durable.records_put(),
            at,
            steps: 0,
            is_named: false,
            meant: None,
            address: None,
        };
        self.underway.insert(number, underway);
    }

    /// A datagram is on its way to another arbiter.
    pub(crate) fn posted(&mut self, number: u64, to: ArbiterId) {
        if let Some(underway) = self.underway.get_mut(&number) {
            underway.at = to;
        }
    }

    /// An arbiter has ended: what it had and what was on its way to it are lost.
    pub(crate) fn arbiter_ended(&mut self, id: ArbiterId) {
        self.underway.retain(|_, underway| underway.at != id);
    }

    /// Other arbiters receive from the peers, whose data may overtake earlier data.
    pub(crate) fn dealt_again(&mut self) {
        let underway = self.underway.values_mut();
        underway.for_each(|underway| underway.address = None);
        self.newest.clear();
    }

    /// A device has no machine any more, and none claims a peer for it.
    pub(super) fn left(&mut self, who: usize) {
        self.behind[who].clear();
        self.fell.retain(|(_, it)| *it != who);
    }

    /// It is known which device a datagram is for, and whether only one can be meant.
    pub(crate) fn sorted(&mut self, number: u64, whose: DatagramOwner, durable: &Durable) -> bool {
        let meant = match whose {
            DatagramOwner::Named(who) => who.filter(|who| durable.exists(*who)).map(|who| {
                let turns = durable.turns(who);
                IntendedDevice::Named { who, turns }
            }),
            DatagramOwner::Behind(peer) => self.only_one_behind(peer),
            DatagramOwner::Addressed(_) | DatagramOwner::Nobodys => None,
        };
        if let Some(underway) = self.underway.get_mut(&number) {
            underway.is_named = matches!(whose, DatagramOwner::Named(_));
            underway.meant = meant;
            underway.address = match whose {
                DatagramOwner::Addressed(peer) => Some(peer),
                DatagramOwner::Named(_) | DatagramOwner::Behind(_) | DatagramOwner::Nobodys => None,
            };
        }
        matches!(meant, Some(IntendedDevice::Behind { .. }))
    }

    fn only_one_behind(&self, peer: Peer) -> Option<IntendedDevice> {
        let mut there = (0..).zip(&self.behind).filter_map(|(who, behind)| {
            let behind = behind.iter().find(|behind| behind.peer == peer)?;
            let claim = behind.claim;
            Some((behind.is_shared, IntendedDevice::Behind { who, claim }))
        });
        let (is_shared, meant) = there.next()?;
        (!is_shared).then_some(meant)
    }

    /// A datagram moves from one arbiter to another.
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
            // All arbiters are asked who is at the peer, and the disk is asked who has the address.
            steps <= self.arbiters + 1,
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

    /// The sender of a datagram, and how many records had been put when it was heard.
    pub(crate) fn sender_of(&self, number: u64) -> Option<(Peer, u64)> {
        let underway = self.underway.get(&number);
        underway.map(|underway| (underway.from, underway.heard_at))
    }

    /// A datagram has ended; returns how many steps it took.
    pub(crate) fn ended(
        &mut self,
        number: u64,
        end: DatagramEnd,
        durable: &Durable,
    ) -> Result<u16, super::Breach> {
        let underway = self.underway.remove(&number);
        hold("a_datagram_ends_once", underway.is_some(), || {
            format!("datagram {number} ends again: {end:?}")
        })?;
        let Some(underway) = underway else {
            return Ok(0);
        };
        if let (Some(peer), DatagramEnd::Handled { .. }) = (underway.address, end) {
            self.keeps_its_order(peer, number)?;
        }
        match underway.meant {
            Some(meant @ IntendedDevice::Named { who, turns }) if durable.turns(who) == turns => {
                reaches("what_names_its_device_reaches_it", meant, who, end)?;
            }
            Some(meant @ IntendedDevice::Behind { who, claim })
                if self.still_claims(who, claim) =>
            {
                reaches("an_answer_reaches_its_device", meant, who, end)?;
            }
            Some(IntendedDevice::Named { .. } | IntendedDevice::Behind { .. }) | None => {}
        }
        Ok(underway.steps)
    }

    /// Whether a device was ever at a peer since the service started.
    pub(super) fn was_behind(&self, who: usize, peer: Peer) -> bool {
        self.ever.contains(&(peer, who))
    }

    /// Whether a device claims a peer, at this address if one is given.
    pub(super) fn is_somewhere(&self, who: usize, own: Option<IpAddr>) -> bool {
        let mut behind = self.behind[who].iter();
        behind.any(|behind| own.is_none_or(|own| own == behind.peer.ip()))
    }

    /// Whether a device claims a peer.
    pub(super) fn is_behind(&self, who: usize, peer: Peer) -> bool {
        self.behind[who].iter().any(|behind| behind.peer == peer)
    }

    fn still_claims(&self, who: usize, claim: u64) -> bool {
        let mut behind = self.behind[who].iter();
        behind.any(|behind| behind.claim == claim && !behind.is_shared)
    }

    /// Datagrams from a peer that name no device are handled in the order of their arrival.
    fn keeps_its_order(&mut self, peer: Peer, number: u64) -> Verdict {
        let before = self.newest.insert(peer, number);
        hold(
            "data_of_an_address_keeps_its_order",
            before.is_none_or(|before| before < number),
            || format!("datagram {number} of {peer} comes behind {before:?}"),
        )
    }

    /// A device is restored, with the peer that was saved last.
    pub(super) fn restored(&mut self, who: usize, to: Option<Peer>) {
        let before = std::mem::take(&mut self.behind[who]);
        let left = before.iter().filter(|behind| Some(behind.peer) != to);
        self.fell.extend(left.map(|behind| (behind.peer, who)));
        self.behind[who] = before;
        self.behind[who].retain(|behind| Some(behind.peer) == to);
        self.rebound(who, None, to);
    }

    /// The machine of a device is gone, and with it its claims to peers other than that of its
    /// registration.
    pub(super) fn abandoned(&mut self, who: usize, registered: Option<Peer>) {
        let left = self.behind[who].extract_if(.., |behind| Some(behind.peer) != registered);
        self.fell.extend(left.map(|behind| (behind.peer, who)));
    }

    /// A device claims a peer and gives up another.
    pub(crate) fn rebound(&mut self, who: usize, from: Option<Peer>, to: Option<Peer>) {
        let own = &mut self.behind[who];
        let place = own.iter().position(|behind| Some(behind.peer) == to);
        let before = place.map(|place| own.remove(place));
        own.retain(|behind| Some(behind.peer) != from);
        let Some(peer) = to else {
            return;
        };
        self.fell.remove(&(peer, who));
        self.ever.insert((peer, who));
        let first = (peer, usize::MIN);
        let mut is_shared = self.fell.range(first..=(peer, usize::MAX)).next().is_some();
        for other in self.behind.iter_mut().flatten() {
            if other.peer == peer {
                (other.is_shared, is_shared) = (true, true);
            }
        }
        let claim = match before {
            Some(before) if !before.is_shared => before.claim,
            Some(_) | None => {
                self.claims += 1;
                self.claims
            }
        };
        self.behind[who].push(PeerClaim {
            peer,
            claim,
            is_shared,
        });
    }

    /// All datagrams in the process are lost.
    pub(super) fn crashed(&mut self) {
        self.underway.clear();
        self.fell.clear();
        self.behind.iter_mut().for_each(Vec::clear);
        self.newest.clear();
        self.ever.clear();
    }

    /// Every datagram that was received and has not ended is in one place.
    pub(crate) fn every_datagram_is_somewhere(&self, held: usize) -> Verdict {
        let underway = self.underway.len();
        hold("a_datagram_ends_once", underway == held, || {
            format!("{underway} datagrams have not ended, and {held} are in the process")
        })
    }
}

/// The machine of the device handled the datagram, or could not for a named reason.
fn reaches(law: &'static str, meant: IntendedDevice, who: usize, end: DatagramEnd) -> Verdict {
    let is_right = match end {
        DatagramEnd::Handled { who: by } => by == who,
        DatagramEnd::Lost { who: by, .. } => by == who,
        DatagramEnd::Turned(DropReason::ArbiterBusy | DropReason::MailboxFull) => true,
        DatagramEnd::Turned(DropReason::OverRate(_)) => false,
        DatagramEnd::Turned(DropReason::Overloaded) => {
            matches!(meant, IntendedDevice::Named { .. })
        }
        DatagramEnd::Turned(
            DropReason::Malformed(_)
            | DropReason::UnknownOption
            | DropReason::UnknownEndpoint
            | DropReason::UnknownLocation
            | DropReason::UnknownPeer
            | DropReason::NotRestored
            | DropReason::UnknownAddress
            | DropReason::Proxied
            | DropReason::Unanswerable,
        ) => false,
    };
    hold(law, is_right, || {
        format!("for {meant:?} it ended so: {end:?}")
    })
}
