//! What devices send and receive without LwM2M: data over CoAP, bare datagrams, plain requests.

use engine::action::{Mode, Protocol};
use engine::arbiter::input::DeviceCommand;
use engine::device::snapshot::Presence;
use engine::effect::SendOutcome as Thrown;
use engine::ids::ActionId;
use engine::limits::DEPARTURE_MS;
use engine::moment::Timestamp;
use engine::peer::Peer;
use harness::device::operation_log::PerformedRequest;
use harness::device::resource::AnswerMode;
use harness::rng::Rng;
use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::option;
use protocol::coap::token::Token;

use super::{Activity, World};
use crate::event::Event;
use crate::fleet::{DeviceProtocols, PLAIN_PATHS, SHARING};
use crate::laws::SentDatagram;
use crate::service::{ArbiterRun, StepInput};
use crate::settings::{Shared, pick};
use crate::trace::TraceEvent;
use crate::wire::{Head, SentRequest};

/// The port that devices send bare datagrams from.
const BARE_PORT: u16 = 4_000;

impl World {
    /// A device sends data that was never sent before, over CoAP or UDP.
    pub(super) fn say_plainly(&mut self, member: usize) {
        let length = pick(&mut self.rng, [0, 0, 30, 200]);
        let bytes = self.new_bytes(length);
        match self.rng.below(12) {
            0 => self.throws(member, b""),
            1..4 => self.throws(member, &bytes),
            4 => self.posts(member, MessageKind::Confirmable, ("no/+/topic", &bytes)),
            5 => self.posts(member, MessageKind::Confirmable, ("empty", b"")),
            6..8 => self.posts(member, MessageKind::NonConfirmable, ("flow", &bytes)),
            _ => self.posts(member, MessageKind::Confirmable, ("flow", &bytes)),
        }
    }

    /// Bytes that were never sent before, padded with this many bytes.
    pub(crate) fn new_bytes(&mut self, filling: usize) -> Vec<u8> {
        let number = self.next_number();
        format!("news {number} {}", "x".repeat(filling)).into_bytes()
    }

    /// A device posts data with a topic, unless it is off or busy.
    pub(crate) fn posts(
        &mut self,
        member: usize,
        kind: MessageKind,
        (topic, bytes): (&str, &[u8]),
    ) {
        self.note(TraceEvent::Device {
            who: member,
            does: "posts",
        });
        let by = (
            self.fleet.member(member).of,
            self.fleet.member(member).address,
        );
        self.laws.sent_data.will_send(by, bytes, &self.disk.durable);
        let before = self.fleet.member(member).posts.clone();
        if kind == MessageKind::Confirmable {
            let is_published = !bytes.is_empty() && !topic.contains('+');
            self.fleet.member_mut(member).posts = is_published.then(|| bytes.to_vec());
        }
        let mut is_sent = false;
        self.drive(member, |device, now_ms, out| {
            is_sent = device.tell(now_ms, kind, (topic, bytes), out).is_ok();
        });
        if !is_sent {
            self.fleet.member_mut(member).posts = before;
        }
    }

    /// A device sends a bare datagram, unless it is off.
    pub(crate) fn throws(&mut self, member: usize, bytes: &[u8]) {
        self.note(TraceEvent::Device {
            who: member,
            does: "throws",
        });
        let by = (
            self.fleet.member(member).of,
            self.fleet.member(member).address,
        );
        self.laws.sent_data.will_send(by, bytes, &self.disk.durable);
        self.drive(member, |device, now_ms, out| {
            // A device that is off sends nothing.
            let _ = device.throw(now_ms, bytes, out);
        });
    }

    /// A bare datagram of a device travels to the service.
    pub(super) fn device_throws(&mut self, member: usize, bytes: &[u8]) {
        self.note(TraceEvent::DeviceSays {
            who: member,
            datagram: bytes.into(),
        });
        let mut from = self.fleet.member(member).address;
        from.address.set_port(BARE_PORT);
        let from = Peer::bare(from.address);
        self.travel(|| Event::ReachesService {
            from,
            datagram: bytes.to_vec(),
        });
    }

    /// The service sends a bare datagram, which its socket accepts or refuses.
    pub(super) fn throw(
        &mut self,
        (at, step): (ArbiterRun, u64),
        (who, to): (usize, Peer),
        bytes: &[u8],
        how: Thrown,
    ) {
        self.note(TraceEvent::ServiceSays {
            port: Self::port_of(to),
            datagram: bytes.into(),
        });
        let outcome = SentDatagram {
            to,
            at_ms: self.now_ms,
            step: Some(step),
            who: Some(who),
            is_asked: self.unread_profiles[who] == 0,
            datagram: bytes,
        };
        let verdict = self.laws.threw(&outcome, how, &self.disk.durable);
        self.check(verdict);
        match how {
            Thrown::Sent => self.leave_node(at, || Event::ReachesDevice {
                to,
                datagram: bytes.to_vec(),
            }),
            Thrown::Refused(_) => self.census.departures_refused += 1,
        }
    }

    /// A device learns the outcome of its bare datagram: mostly at once, sometimes after other
    /// inputs, and sometimes so late that it gave up.
    pub(super) fn say_later(&mut self, at: ArbiterRun, who: usize, departed: (ActionId, Thrown)) {
        let after_ms = match self.rng.hits(self.faults.late_outcome_percent) {
            true => {
                let at_most_ms = pick(&mut self.rng, [20, 200, 2 * DEPARTURE_MS as u32]);
                i64::from(self.rng.below(at_most_ms))
            }
            false => 0,
        };
        let event = Event::Departed { at, who, departed };
        self.queue.push(self.now_ms + after_ms, event);
    }

    pub(super) fn departed(&mut self, at: ArbiterRun, who: usize, departed: (ActionId, Thrown)) {
        self.serve(at, |arbiter, turn| arbiter.departed(who, departed, turn));
    }

    /// A bare datagram arrives at an address where there may be a device.
    pub(super) fn reach_bare(&mut self, to: Peer, bytes: &[u8]) {
        let Some(member) = self.fleet.who_has(to.ip()) else {
            let port = Self::port_of(to);
            return self.note(TraceEvent::NobodyHears { port });
        };
        self.note(TraceEvent::DeviceHears {
            who: member,
            datagram: bytes.into(),
        });
        self.drive(member, |device, now_ms, out| {
            device.handle_bare(now_ms, bytes, out);
        });
    }

    /// At a closed port, a request is rejected, or nothing happens.
    pub(super) fn reject_at(&mut self, to: Peer, datagram: &[u8]) {
        let is_of_a_device = self.fleet.who_has(to.ip()).is_some();
        let is_answered = self.activity == Activity::Healing || self.rng.below(2) == 0;
        let Ok(message) = Message::decode(datagram) else {
            return;
        };
        if is_of_a_device && is_answered && message.kind == MessageKind::Confirmable {
            let reset = Message::reset(message.message_id).encode();
            self.travel(|| Event::ReachesService {
                from: to,
                datagram: reset.clone(),
            });
        }
    }

    /// In a healing world, a device with waiting requests is heard now and then.
    pub(super) fn be_heard_again(&mut self) {
        let who = self.anybody();
        if self.disk.durable.pending(who).next().is_none() {
            return;
        }
        match self.fleet.plain_socket_of(who) {
            Some(socket) => {
                let bytes = self.new_bytes(0);
                self.posts(socket, MessageKind::Confirmable, ("flow", &bytes));
            }
            None => self.does(who, "updates", harness::device::SimulatedDevice::update),
        }
    }

    /// One of the sockets of a device.
    pub(super) fn some_socket_of(&mut self, who: usize) -> usize {
        match self.fleet.plain_socket_of(who) {
            Some(socket) if self.rng.below(2) == 0 => socket,
            Some(_) | None => who,
        }
    }

    /// From now on a device answers plain requests in another way.
    pub(super) fn answer_plainly(&mut self, member: usize, answer: AnswerMode) {
        let machine = &mut self.fleet.member_mut(member).machine;
        for path in PLAIN_PATHS {
            machine.answer_plain_with(path, answer);
        }
    }

    /// One of two devices with the same address gets another before the world heals: data from a
    /// shared address is published for none.
    pub(super) fn part_who_shares(&mut self) {
        let (_, other) = SHARING;
        if self.shares()
            && let Some(ip) = self.fleet.readdress(other, &mut self.rng)
        {
            self.disk.durable.amend(other, ip);
        }
    }

    /// The two devices share an address again.
    pub(super) fn join_who_shares(&mut self) {
        let (one, other) = SHARING;
        if self.shares()
            && let Some(ip) = self.disk.durable.profile(one).ip
        {
            self.fleet.move_to(other, ip);
            self.disk.durable.amend(other, ip);
        }
    }

    /// Whether two devices share an address while the world is not healed.
    pub(super) fn shares(&self) -> bool {
        self.settings.shared == Shared::Yes && self.settings.devices > SHARING.1
    }

    /// Whether a device shares its address.
    pub(super) fn is_sharing(&self, who: usize) -> bool {
        self.shares() && [SHARING.0, SHARING.1].contains(&who)
    }

    pub(super) fn see_plain_performed(&mut self, member: usize) {
        let there = self.fleet.member(member);
        let (boot, first, count) = (
            there.boot,
            there.plain_seen,
            there.machine.plain_performed_count(),
        );
        if first == count {
            return;
        }
        let fresh = there.machine.plain_performed().rev();
        let fresh: Vec<&PerformedRequest> = fresh.take_while(|it| it.number >= first).collect();
        for obeyed in fresh {
            if let Err(breach) = self.laws.obeyed(member, boot, obeyed) {
                self.fail(&breach);
            }
        }
        self.fleet.member_mut(member).plain_seen = count;
    }

    /// Whether a datagram is a request to a device that has read its current profile.
    pub(super) fn is_asked(&self, who: Option<usize>, datagram: &[u8]) -> bool {
        let is_request = Head::of(datagram).is_some_and(|head| head.is_request());
        is_request && who.is_some_and(|who| self.unread_profiles[who] == 0)
    }

    /// Counts the results of a step.
    pub(super) fn count_step(
        &mut self,
        took: &StepInput,
        sends: &[SentRequest],
        throws: Option<ActionId>,
    ) {
        self.census.ambiguous += u64::from(took.is_ambiguous);
        let heard_over = match (took.bare.is_empty(), took.meaning) {
            (false, _) => Some(Protocol::Udp),
            (true, Some(engine::step_event::UplinkKind::CoapData)) => Some(Protocol::Coap),
            (true, Some(engine::step_event::UplinkKind::Update)) => Some(Protocol::Lwm2m),
            (true, _) => None,
        };
        let begun = sends.iter().filter_map(|sent| match sent.purpose {
            crate::wire::RequestPurpose::Action(_, protocol) => Some(protocol),
            crate::wire::RequestPurpose::Unsaved(_)
            | crate::wire::RequestPurpose::Report(_)
            | crate::wire::RequestPurpose::Rest(_)
            | crate::wire::RequestPurpose::Bootstrap
            | crate::wire::RequestPurpose::Update => None,
        });
        let is_across = |over: &Protocol| heard_over.is_some_and(|heard_over| heard_over != *over);
        let thrown = throws.map(|_| Protocol::Udp);
        let across = begun.chain(thrown).filter(is_across).count();
        self.census.released_across += across as u64;
    }

    /// Counts a request to be sent now to a device that counts as asleep although it was heard
    /// lately.
    pub(super) fn count_silent_sleeper(&mut self, who: usize, question: &DeviceCommand) {
        let DeviceCommand::Submit(new) = question else {
            return;
        };
        let Some(machine) = self.service.machine(who) else {
            return;
        };
        let is_asleep = machine.presence(Timestamp::from_ms(self.now_ms)) == Presence::Asleep;
        let silent_ms = self.now_ms - self.laws.heard_at_ms(who);
        let is_early = silent_ms < self.settings.rules.limits.awake_window_ms;
        let is_it = new.mode == Mode::SendNow && is_asleep && is_early;
        self.census.silent_sleepers += u64::from(is_it);
    }

    /// The protocols of a device.
    pub(super) fn speaks(&self, who: usize) -> DeviceProtocols {
        self.fleet.member(who).speaks
    }
}

/// Whether a datagram acknowledges a block.
pub(super) fn is_continue(datagram: &[u8]) -> bool {
    matches!(datagram, [_, code, ..] if *code == (2 << 5 | 31))
}

/// A random CoAP message without LwM2M meaning.
pub(super) fn odd(id: MessageId, token: Token, rng: &mut Rng) -> Vec<u8> {
    let request = |code| Message::request(MessageKind::Confirmable, code, id, token);
    let odd = match rng.below(4) {
        0 => request(Code::GET),
        1 => request(Code::POST).with_option(option::PROXY_URI, b"coap://example.com"),
        2 => request(Code::POST)
            .with_uri_query(["t=flow"])
            .with_block1(Block::new(3, More::Yes, BlockSize::MIN))
            .with_payload(b"sixteen bytes it".as_slice()),
        _ => request(Code::POST).with_payload(b"about nothing".as_slice()),
    };
    odd.encode()
}
