//! How datagrams reach the service from the network, and how they are forwarded between arbiters.

use engine::arbiter::effect::StoreLookup;
use engine::arbiter::input::{Received, StoreUnavailable};
use engine::dispatch::DropReason;
use engine::dispatch::router::ForwardedDatagram;
use engine::dispatch::shard_map::ArbiterId;
use engine::peer::{Peer, Transport};

use super::World;
use crate::event::Event;
use crate::laws::ownership;
use crate::service::{ArbiterRun, DatagramEnd, DatagramOwner, ForwardBatch};
use crate::trace::TraceEvent;

/// How many batches may wait for an arbiter before further ones are lost.
const MAILBOX_MAX: usize = 12;

impl World {
    pub(super) fn reach_service(&mut self, from: Peer, datagram: &[u8]) {
        if !self.service.is_up() {
            return;
        }
        if from.transport == Transport::Coaps {
            return self.record_reaches_service(from, datagram);
        }
        let Some((from, at)) = self.service.dealt_to(from) else {
            self.census.lost_at_nodes += 1;
            return;
        };
        self.laws.heard_through.note(from, datagram);
        let number = self.next_number();
        self.note(TraceEvent::ServiceHears {
            port: Self::port_of(from),
            at: at.id,
            number,
            datagram: datagram.into(),
        });
        let received = Received::decode(number, from, datagram);
        self.receive(at, (number, from), received);
    }

    /// An arbiter handles what it has received.
    pub(super) fn receive(
        &mut self,
        at: ArbiterRun,
        (number, from): (u64, Peer),
        received: Received,
    ) {
        let durable = &self.disk.durable;
        self.laws.routing.received((number, from), at.id, durable);
        self.serve(at, |arbiter, turn| {
            arbiter.handle_received((number, from), received, turn);
        });
        // Now and then a turn has more datagrams, and those for other arbiters are sent at its end.
        if self.rng.below(8) == 0 {
            let at_ms = self.now_ms + i64::from(self.rng.below(50));
            self.queue.push(at_ms, Event::TurnEnds { at });
        } else {
            self.serve(at, |arbiter, turn| arbiter.end_turn(turn));
        }
    }

    pub(super) fn turn_ends(&mut self, at: ArbiterRun) {
        self.serve(at, |arbiter, turn| arbiter.end_turn(turn));
    }

    pub(super) fn sorted(&mut self, number: u64, whose: DatagramOwner) {
        let is_addressed = self.laws.routing.sorted(number, whose, &self.disk.durable);
        self.census.addressed += u64::from(is_addressed);
    }

    pub(super) fn forwarded(&mut self, at: ArbiterRun, number: u64, to: ArbiterId) {
        self.census.forwarded += 1;
        self.note(TraceEvent::Forwarded {
            number,
            from: at.id,
            to,
        });
        let verdict = self.laws.routing.forwarded(number);
        self.check(verdict);
    }

    pub(super) fn ended(&mut self, number: u64, end: DatagramEnd) {
        self.census.count_end(end);
        self.note(TraceEvent::Ended { number, end });
        if let DatagramEnd::Turned(DropReason::UnknownPeer) = end
            && let Some(sender) = self.laws.routing.sender_of(number)
        {
            let (service, durable) = (&self.service, &self.disk.durable);
            let verdict =
                ownership::a_device_that_is_not_restored_is_no_stranger(service, durable, sender);
            self.check(verdict);
        }
        match self.laws.routing.ended(number, end, &self.disk.durable) {
            Ok(steps) => self.census.searched += u64::from(steps > 1),
            Err(breach) => self.fail(&breach),
        }
    }

    /// Sends a batch from one arbiter to another, unless too many wait already or it is lost.
    pub(super) fn post(&mut self, from: ArbiterRun, to: ArbiterId, post: ForwardBatch) {
        self.census.route_hints += post.route_hints.len() as u64;
        let numbers = post.parcels.iter().flat_map(ForwardedDatagram::numbers);
        let numbers: Vec<u64> = numbers.collect();
        let waiting = self
            .service
            .run_of(to)
            .map(|to| self.service.waiting_for(to));
        let is_full = self.rng.hits(self.faults.crowded_percent)
            || waiting.is_some_and(|waiting| waiting >= MAILBOX_MAX);
        let arrival = match is_full {
            true => None,
            false => self.arrival_of(from.id, to),
        };
        let Some((to, at_ms)) = arrival else {
            for number in numbers {
                self.ended(number, DatagramEnd::Turned(DropReason::ArbiterBusy));
            }
            return;
        };
        for number in numbers {
            self.laws.routing.posted(number, to.id);
        }
        self.service.put_in_mailbox(from.id, to, post);
        let from = from.id;
        self.queue.push(at_ms, Event::Posted { from, to });
    }

    pub(super) fn posted(&mut self, from: ArbiterId, to: ArbiterRun) {
        if let Some(post) = self.service.take_from_mailbox(from, to) {
            self.serve(to, |arbiter, turn| arbiter.take_in(post, turn));
        }
    }

    /// Looks something up on the disk for an arbiter.
    pub(super) fn look_up(&mut self, at: ArbiterRun, look_up: StoreLookup) {
        if let StoreLookup::Page(keys, _) = look_up {
            return self.ask_page(at, keys);
        }
        let at_ms = self.now_ms + self.read_ms();
        self.queue.push(at_ms, Event::LookedUp { at, look_up });
    }

    /// The disk answers.
    pub(super) fn looked_up(&mut self, at: ArbiterRun, look_up: StoreLookup) {
        let read = self.read();
        let durable = &self.disk.durable;
        let existing = || (0..durable.devices()).filter(|who| durable.exists(*who));
        match look_up {
            StoreLookup::Endpoint(id, endpoint) => {
                let who = existing().find(|who| durable.profile(*who).endpoint == endpoint);
                let found = read.map(|()| who.map(|who| durable.key(who)));
                self.serve(at, |arbiter, turn| arbiter.found(id, found, turn));
            }
            StoreLookup::Location(id, prefix) => {
                let mut keys = existing().map(|who| durable.key(who));
                let found = read.map(|()| keys.find(|key| key.prefix() == prefix));
                drop(keys);
                self.serve(at, |arbiter, turn| arbiter.found(id, found, turn));
            }
            StoreLookup::Address(address) => {
                let behind = read.map(|()| durable.behind(address));
                self.serve(at, |arbiter, turn| {
                    arbiter.found_by_address(address, behind, turn);
                });
            }
            StoreLookup::Device(key) => {
                let who = self.service.who(key);
                let found = read.map(|()| durable.restored(who));
                self.serve(at, |arbiter, turn| arbiter.restored(who, found, turn));
            }
            // The simulation has no log of the arbiter's own entries.
            StoreLookup::Parked(_) | StoreLookup::Page(..) => {}
        }
    }

    /// Whether a read of the disk succeeds.
    pub(super) fn read(&mut self) -> Result<(), StoreUnavailable> {
        if self.rng.hits(self.faults.unread_percent) {
            self.census.unread += 1;
            return Err(StoreUnavailable);
        }
        Ok(())
    }

    /// How long a read of the disk takes.
    pub(super) fn read_ms(&mut self) -> i64 {
        i64::from(match self.rng.hits(self.faults.slow_read_percent) {
            true => self.rng.below(8_000),
            false => self.rng.below(20),
        })
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }
}
