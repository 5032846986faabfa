//! A device amid whatever comes, and the laws that hold after each step.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::change::Change;
use engine::datagram::{Inbound, UdpDatagram};
use engine::device::Device;
use engine::device::activity::InFlight;
use engine::device::record::{DeviceRecord, RestoredDevice};
use engine::dispatch::peer_table::{PeerBinding, PeerTable};
use engine::dispatch::{self, Classified};
use engine::effect::{Effect, Effects, Outbound};
use engine::event::{Cause, Event, EventContent};
use engine::ids::{ActionId, CustomerId, DeviceId, Endpoint, Iccid};
use engine::limits::{Limits, OBSERVATIONS_MAX};
use engine::moment::{Moment, Timestamp};
use engine::peer::{Peer, Transport};
use engine::policy::CustomerPolicy;
use engine::profile::Profile;
use engine::rules::{EndpointTrust, Rules};
use engine::setting::SettingState;
use engine::step_event::{StepEvent, StepEventKind};
use protocol::coap::block::BlockSize;
use protocol::coap::code::Code;
use protocol::coap::exchange::Transmission;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use protocol::lwm2m::path::Path;

use super::inputs::{AddressSetting, Input, RequestShape, Sender};
use super::messages::request;

/// What the device offers: of it, 6, 7, and what nobody knows are data of the customer.
pub(super) const OBJECTS: &str =
    "</>;rt=\"oma.lwm2m\";ct=\"110 11542\",</1/0>,</3/0>,</6/0>,</7/0>,</32769/0>";

const HOME: &str = "10.0.0.1:5683";

/// Whether a step said something already.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum SendState {
    Nothing,
    Something,
}

/// A device, and what its peer last heard of it.
pub(crate) struct NoiseFixture {
    pub(super) device: Device,
    pub(super) now: Timestamp,
    pub(super) messages: u16,
    pub(super) location: Vec<String>,
    pub(super) asked: Message,
    /// Where the device was asked last.
    asked_at: Peer,
    departing: Option<ActionId>,
    /// Who is let through to the device.
    peers: PeerTable,
    said: PeerBinding,
    /// All that were ever let through.
    met: BTreeSet<Peer>,
    /// Exchanges that began and did not end.
    exchanges: u32,
    /// Requests that were created and are not final.
    requests: u32,
    /// What was told of it so far.
    told: u32,
}

impl NoiseFixture {
    pub(crate) fn new(home: AddressSetting) -> Self {
        let rules = Rules {
            limits: Limits {
                // Small, so that what comes reaches them.
                block: BlockSize::MIN,
                data_bytes_max: 96,
                answer_bytes_max: 64,
                ..Limits::default()
            },
            transmission: Transmission::STANDARD,
            names: EndpointTrust::NameSuffices,
            own: Box::default(),
        };
        let policy = Arc::new(CustomerPolicy::of_rules(Arc::new(rules)));
        let restored = RestoredDevice {
            profile: profile(home),
            record: DeviceRecord::default(),
            pending: Vec::new(),
        };
        let now = Timestamp::from_ms(1_700_000_000_000);
        Self {
            device: Device::restore(&mut Moment::new(now, 1), policy, restored),
            now,
            messages: 0,
            location: vec!["rd".to_owned()],
            asked: Message::request(
                MessageKind::Confirmable,
                Code::GET,
                MessageId(0),
                Token::EMPTY,
            ),
            asked_at: peer(HOME),
            departing: None,
            peers: PeerTable::default(),
            said: PeerBinding::default(),
            met: BTreeSet::new(),
            exchanges: 0,
            requests: 0,
            told: 0,
        }
    }

    /// With a device that is read whenever it registers or updates its registration.
    pub(crate) fn reporting() -> Self {
        let mut fixture = Self::new(AddressSetting::Unknown);
        let policy = (**fixture.device.policy()).clone();
        fixture.device.take_policy(Arc::new(CustomerPolicy {
            passive_reporting: SettingState::Enabled,
            ..policy
        }));
        fixture
    }

    pub(crate) fn play(&mut self, input: Input) {
        self.messages += 1;
        self.now = self.now.plus_ms(10);
        match input {
            Input::Noise(bytes, from) => self.hear(&bytes, from),
            Input::Clear(sense, from) => self.hear(&self.say(sense).encode(), from),
            Input::Garbled(sense, at, byte) => {
                let mut bytes = self.say(sense).encode();
                let at = at.index(bytes.len());
                bytes[at] = byte;
                self.hear(&bytes, Sender::Home);
            }
            Input::Told(telling) => {
                let from = telling.from;
                self.hear(&self.tell(telling).encode(), from);
            }
            Input::Said(saying) => {
                let from = saying.from;
                self.hear(&self.said(saying).encode(), from);
            }
            Input::SaidInBlocks(saying) => self.hear_in_blocks(saying),
            Input::Bare(burst, from) => self.hear_bare(burst, from),
            Input::Departed(outcome) => {
                let Some(action) = self.departing else {
                    return;
                };
                self.step(|device, m, out| device.handle_send_outcome(m, (action, outcome), out));
            }
            Input::Submit(asking, mode) => {
                // What a full queue refuses is refused well, too.
                let new = request(asking, mode);
                self.step(|device, m, out| {
                    let submitted = device.submit(m, new, out);
                    assert_eq!(submitted.is_err(), out.as_slice().is_empty());
                });
            }
            Input::CancelAll => self.step(|device, m, out| {
                device.cancel_all(m, out);
            }),
            Input::Amend(home) => self.device.adopt(&profile(home)),
            Input::Due => self.due(),
        }
    }

    /// The last thing that was said comes once more.
    pub(crate) fn repeat(&mut self, saying: RequestShape) {
        let peer = self.peer_of(saying.from);
        self.repeat_at(saying, peer);
    }

    /// All of it comes block by block, each of them twice.
    fn hear_in_blocks(&mut self, saying: RequestShape) {
        let peer = self.peer_of(saying.from);
        for part in saying.in_blocks() {
            self.messages += 1;
            self.hear_at(&self.said(part.clone()).encode(), part.from, peer);
            self.repeat_at(part, peer);
        }
    }

    fn repeat_at(&mut self, saying: RequestShape, peer: Peer) {
        let before = self.told;
        let from = saying.from;
        self.hear_at(&self.said(saying).encode(), from, peer);
        assert_eq!(self.told, before, "it is told once");
    }

    fn due(&mut self) {
        let Some(at) = self.device.next_timeout() else {
            return;
        };
        self.now = self.now.max(at);
        self.step(Device::handle_timeout);
        let next = self.device.next_timeout();
        assert!(next.is_none_or(|next| next > self.now), "time goes on");
    }

    fn hear(&mut self, bytes: &[u8], from: Sender) {
        let peer = self.peer_of(from);
        self.hear_at(bytes, from, peer);
    }

    fn hear_at(&mut self, bytes: &[u8], from: Sender, peer: Peer) {
        let datagram = match dispatch::classify(0, peer, bytes) {
            Classified::ToEndpoint(_, datagram)
            | Classified::ToLocation(_, datagram)
            | Classified::ToPeer(datagram)
            | Classified::ToIdentity(Inbound::Message(datagram)) => datagram,
            Classified::ToIdentity(
                Inbound::Ambiguous(_) | Inbound::Udp(_) | Inbound::UdpBurst(..),
            ) => {
                panic!("one message alone does not say so")
            }
            Classified::Answered { datagram, .. } => return self.take_note(&datagram),
            Classified::Ignored(_) => return,
        };
        self.step(|device, m, out| {
            match from {
                Sender::Shared => device.handle_ambiguous(m, &datagram, out),
                Sender::Home | Sender::Port | Sender::Elsewhere | Sender::Asked => {
                    device.handle_datagram(m, &datagram, out)
                }
            };
        });
    }

    fn hear_bare(&mut self, burst: Vec<Vec<u8>>, from: Sender) {
        let peer = Peer::bare(self.peer_of(from).address);
        let burst: Vec<_> = burst
            .into_iter()
            .map(|bytes| UdpDatagram {
                number: 0,
                peer,
                bytes,
            })
            .collect();
        self.step(|device, m, out| {
            device.handle_udp_burst(m, &burst, out);
            let outbound = out
                .as_slice()
                .iter()
                .filter(|effect| is_answer_to(effect, peer));
            assert_eq!(outbound.count(), 0, "bare bytes are not answered");
        });
    }

    fn peer_of(&self, from: Sender) -> Peer {
        match from {
            Sender::Home | Sender::Shared => peer(HOME),
            Sender::Port => peer("10.0.0.1:7777"),
            Sender::Elsewhere => peer("10.0.0.2:5683"),
            Sender::Asked => self.asked_at,
        }
    }

    fn step(&mut self, input: impl FnOnce(&mut Device, &mut Moment, &mut Effects)) {
        let entropy = u128::from(self.messages).wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64);
        let mut m = Moment::new(self.now, entropy);
        let mut out = Effects::new();
        input(&mut self.device, &mut m, &mut out);
        let mut spoken = SendState::Nothing;
        for effect in out.as_slice() {
            match effect {
                Effect::Send(Outbound::Send { to, datagram }) => {
                    assert_eq!(to.transport, Transport::Coap);
                    spoken = SendState::Something;
                    self.take_note_to(*to, datagram);
                }
                Effect::Send(Outbound::SendUdp { to, action, .. }) => {
                    self.departing = Some(*action);
                    assert_eq!(to.transport, Transport::Udp);
                    spoken = SendState::Something;
                }
                Effect::Send(Outbound::Rebind { from, to }) => {
                    self.met.extend(*to);
                    let key = self.device.key();
                    self.peers.rebind(key, *from, *to, &mut self.said);
                }
                Effect::Save(Change::AppendEvent(event)) => self.take_note_of(event, spoken),
                Effect::Save(_) | Effect::Expect(_) | Effect::Count(_) | Effect::Log(_) => {}
            }
        }
        self.assert_observes_well();
        self.assert_counts_well(&out.take_events());
        self.assert_is_found();
    }

    fn take_note_of(&mut self, event: &Event, spoken: SendState) {
        match event.content {
            EventContent::Telemetry(_) | EventContent::Data(_) | EventContent::Lifecycle(_) => {
                let what = "what is heard is told before the answer";
                assert_eq!(spoken, SendState::Nothing, "{what}");
                self.told += 1;
            }
            // A request may fail behind the answer, when its turn comes.
            EventContent::Error(_) | EventContent::ActionResult(_) => {}
        }
        assert_lies_below(event);
    }

    /// What begins ends once, and what has not ended is there.
    fn assert_counts_well(&mut self, events: &[StepEvent]) {
        for step_event in events {
            match step_event.kind {
                StepEventKind::Begun(_) => self.exchanges += 1,
                StepEventKind::Ended(_) => self.exchanges -= 1,
                StepEventKind::Created(_) => self.requests += 1,
                StepEventKind::Concluded(..) | StepEventKind::Removed(_) => self.requests -= 1,
                StepEventKind::Repeated
                | StepEventKind::Acknowledged
                | StepEventKind::Notified(_)
                | StepEventKind::Sent(_)
                | StepEventKind::DataSent(..)
                | StepEventKind::ObservationLost => {}
            }
        }
        let standing = self.device.activity();
        let in_flight = u32::from(standing.exchange == InFlight::Yes);
        assert_eq!(self.exchanges, in_flight);
        assert_eq!(self.requests, standing.scheduled + standing.in_progress);
    }

    /// The device is found where it is registered; elsewhere only while it is asked there.
    fn assert_is_found(&self) {
        let is_found = |peer: &Peer| self.peers.device_answering_from(*peer).is_some();
        let bound = self.device.bound_peer();
        assert!(bound.is_none_or(|bound| is_found(&bound)), "{bound:?}");
        // An operation goes to where the device is registered by then.
        let is_request = self.asked.uri_query().eq(["b"]);
        if self.exchanges > 0 && is_request {
            assert!(is_found(&self.asked_at), "{} may answer", self.asked_at);
        }
        if self.exchanges == 0 {
            let others = self.met.iter().filter(|peer| Some(**peer) != bound);
            let found: Vec<_> = others.filter(|peer| is_found(peer)).collect();
            assert!(found.is_empty(), "{found:?} are let through for nothing");
        }
    }

    fn assert_observes_well(&self) {
        let observations = self.device.snapshot(self.now).observations;
        assert!(observations.len() <= OBSERVATIONS_MAX);
        let paths: BTreeSet<_> = observations.iter().map(|observed| observed.path).collect();
        let tokens: BTreeSet<_> = observations.iter().map(|observed| observed.token).collect();
        let different = (paths.len(), tokens.len());
        assert_eq!(different, (observations.len(), observations.len()));
    }

    fn take_note_to(&mut self, to: Peer, datagram: &[u8]) {
        let is_request = Message::decode(datagram).is_ok_and(|it| it.code.is_request());
        if is_request {
            self.asked_at = to;
            assert!(
                self.peers.device_answering_from(to).is_some(),
                "it may answer"
            );
        }
        self.take_note(datagram);
    }

    fn take_note(&mut self, datagram: &[u8]) {
        let message = Message::decode(datagram).expect("what is sent is well-formed");
        if message.code.is_request() {
            self.asked = message;
        } else if message.location_path().next().is_some() {
            self.location = message.location_path().map(str::to_owned).collect();
        }
    }
}

fn is_answer_to(effect: &Effect, peer: Peer) -> bool {
    match effect {
        Effect::Send(Outbound::Send { to, .. } | Outbound::SendUdp { to, .. }) => *to == peer,
        Effect::Send(Outbound::Rebind { .. })
        | Effect::Save(_)
        | Effect::Expect(_)
        | Effect::Count(_)
        | Effect::Log(_) => false,
    }
}

/// What a device is taken to say of a path is of that path.
fn assert_lies_below(event: &Event) {
    let EventContent::Telemetry(told) = &event.content else {
        return;
    };
    assert!(!told.values.is_empty(), "who says nothing is not told");
    if let Cause::Observation(observed) = told.cause {
        let lies_below = |(path, _): &(Path, _)| observed.contains(*path);
        assert!(told.values.iter().all(lies_below), "{told:?}");
    }
    if told.cause == Cause::PassiveReport {
        let is_reported = |(path, _): &(Path, _)| [6, 7, 32_769].contains(&path.object_id());
        assert!(told.values.iter().all(is_reported), "{told:?}");
    }
}

fn peer(address: &str) -> Peer {
    Peer::plain(address.parse().unwrap())
}

fn profile(home: AddressSetting) -> Profile {
    Profile {
        customer: CustomerId::parse("acme").unwrap(),
        device: DeviceId::parse("8931").unwrap(),
        number: 1,
        iccid: Iccid::parse("8931").unwrap(),
        imsi: None,
        msisdn: None,
        ip: match home {
            AddressSetting::Known => Some("10.0.0.1".parse().unwrap()),
            AddressSetting::Unknown => None,
            AddressSetting::Elsewhere => Some("10.0.0.2".parse().unwrap()),
        },
        endpoint: Endpoint::parse("meter").unwrap(),
        name: None,
        psk: None,
        created_at: Timestamp::default(),
    }
}
