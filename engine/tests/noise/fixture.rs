//! A device under random inputs, and the invariants that hold after each step.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::change::Change;
use engine::credentials::DeviceCredentials;
use engine::datagram::{Inbound, UdpDatagram};
use engine::delivery::address::policy::AddressPolicy;
use engine::device::Device;
use engine::device::activity::InFlight;
use engine::device::record::{DeviceRecord, RestoredDevice};
use engine::directory::bootstrap::ServiceUris;
use engine::dispatch::peer_table::{PeerBinding, PeerTable};
use engine::dispatch::{self, Classified};
use engine::effect::{Effect, Effects, Outbound};
use engine::event::{Cause, Event, EventContent};
use engine::firmware::delivery::DownloadUris;
use engine::ids::{ActionId, CustomerId, DeviceId, Endpoint, Iccid};
use engine::limits::{Limits, OBSERVATIONS_MAX};
use engine::moment::{Moment, Timestamp};
use engine::peer::{Peer, Transport};
use engine::policy::CustomerPolicy;
use engine::profile::{Profile, SecurityRequirement};
use engine::rules::{EndpointTrust, NoSecBootstrap, Rules};
use engine::setting::SettingState;
use engine::step_event::{StepEvent, StepEventKind};
use engine::tags::Tags;
use protocol::coap::block::BlockSize;
use protocol::coap::code::Code;
use protocol::coap::exchange::Transmission;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use protocol::lwm2m::path::Path;

use super::inputs::{AddressSetting, Input, RequestShape, Sender};
use super::messages::request;

/// The objects of the device; those with data of the customer are 6, 7 and the unknown one.
pub(super) const OBJECTS: &str =
    "</>;rt=\"oma.lwm2m\";ct=\"110 11542\",</1/0>,</3/0>,</6/0>,</7/0>,</32769/0>";

const HOME: &str = "10.0.0.1:5683";

/// Whether a step sent something already.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum SendState {
    Nothing,
    Something,
}

/// A device, and what its peer last received from the service.
pub(crate) struct NoiseFixture {
    pub(super) device: Device,
    pub(super) now: Timestamp,
    pub(super) messages: u16,
    pub(super) location: Vec<String>,
    pub(super) last_request: Message,
    /// Where the last request to the device went.
    last_request_to: Peer,
    departing: Option<ActionId>,
    /// The peers whose datagrams reach the device.
    peers: PeerTable,
    binding: PeerBinding,
    /// All peers whose datagrams ever reached the device.
    ever_bound: BTreeSet<Peer>,
    /// Exchanges in flight.
    exchanges: u32,
    /// Requests that were created and are not final.
    requests: u32,
    /// Events that were published so far.
    published: u32,
}

impl NoiseFixture {
    pub(crate) fn new(address: AddressSetting) -> Self {
        let rules = Rules {
            limits: Limits {
                // Small, so that inputs reach them.
                block: BlockSize::MIN,
                data_bytes_max: 96,
                answer_bytes_max: 64,
                ..Limits::default()
            },
            transmission: Transmission::STANDARD,
            bootstrap: NoSecBootstrap::Refused,
            uris: ServiceUris::default(),
            downloads: DownloadUris::default(),
            names: EndpointTrust::NameSuffices,
            own: Box::default(),
            addresses: AddressPolicy::PublicOnly,
        };
        let policy = Arc::new(CustomerPolicy::of_rules(Arc::new(rules)));
        let restored = RestoredDevice {
            profile: profile(address),
            record: DeviceRecord::default(),
            pending: Vec::new(),
            recent_events: Box::default(),
        };
        let now = Timestamp::from_ms(1_700_000_000_000);
        Self {
            device: Device::restore(&mut Moment::new(now, 1), policy, restored),
            now,
            messages: 0,
            location: vec!["rd".to_owned()],
            last_request: Message::request(
                MessageKind::Confirmable,
                Code::GET,
                MessageId(0),
                Token::EMPTY,
            ),
            last_request_to: peer(HOME),
            departing: None,
            peers: PeerTable::default(),
            binding: PeerBinding::default(),
            ever_bound: BTreeSet::new(),
            exchanges: 0,
            requests: 0,
            published: 0,
        }
    }

    /// With passive reporting enabled.
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
            Input::Noise(bytes, from) => self.receive(&bytes, from),
            Input::Clear(meaning, from) => self.receive(&self.message(meaning).encode(), from),
            Input::Garbled(meaning, at, byte) => {
                let mut bytes = self.message(meaning).encode();
                let at = at.index(bytes.len());
                bytes[at] = byte;
                self.receive(&bytes, Sender::Home);
            }
            Input::Response(shape) => {
                let from = shape.from;
                self.receive(&self.response_message(shape).encode(), from);
            }
            Input::Request(shape) => {
                let from = shape.from;
                self.receive(&self.request_message(shape).encode(), from);
            }
            Input::RequestInBlocks(shape) => self.receive_in_blocks(shape),
            Input::Bare(burst, from) => self.receive_bare(burst, from),
            Input::Departed(outcome) => {
                let Some(action) = self.departing else {
                    return;
                };
                self.step(|device, m, out| device.handle_send_outcome(m, (action, outcome), out));
            }
            Input::Submit(command, mode) => {
                // A refused request leaves no effects.
                let new = request(command, mode);
                self.step(|device, m, out| {
                    let submitted = device.submit(m, new, out);
                    assert_eq!(submitted.is_err(), out.as_slice().is_empty());
                });
            }
            Input::CancelAll => self.step(|device, m, out| {
                device.cancel_all(m, out);
            }),
            Input::Amend(address) => self.device.adopt(&profile(address)),
            Input::Due => self.due(),
        }
    }

    /// Retransmits the last request.
    pub(crate) fn repeat(&mut self, shape: RequestShape) {
        let peer = self.peer_of(shape.from);
        self.repeat_at(shape, peer);
    }

    /// Receives a request block by block, each block twice.
    fn receive_in_blocks(&mut self, shape: RequestShape) {
        let peer = self.peer_of(shape.from);
        for part in shape.in_blocks() {
            self.messages += 1;
            self.receive_at(
                &self.request_message(part.clone()).encode(),
                part.from,
                peer,
            );
            self.repeat_at(part, peer);
        }
    }

    fn repeat_at(&mut self, shape: RequestShape, peer: Peer) {
        let before = self.published;
        let from = shape.from;
        self.receive_at(&self.request_message(shape).encode(), from, peer);
        assert_eq!(self.published, before, "it is published once");
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

    fn receive(&mut self, bytes: &[u8], from: Sender) {
        let peer = self.peer_of(from);
        self.receive_at(bytes, from, peer);
    }

    fn receive_at(&mut self, bytes: &[u8], from: Sender, peer: Peer) {
        let datagram = match dispatch::classify(0, peer, bytes) {
            Classified::ToEndpoint(_, datagram)
            | Classified::ToLocation(_, datagram)
            | Classified::ToPeer(datagram)
            | Classified::ToAddress(Inbound::Message(datagram)) => datagram,
            Classified::ToAddress(
                Inbound::Ambiguous(_)
                | Inbound::BootstrapOnly(_)
                | Inbound::Udp(_)
                | Inbound::UdpBurst(..)
                | Inbound::RefusedHandshake(_),
            )
            | Classified::ToImage(_)
            | Classified::ToDevice(..) => {
                panic!("one message alone does not say so")
            }
            Classified::Answered { datagram, .. } => return self.note_sent(&datagram),
            Classified::Ignored(_) => return,
        };
        self.step(|device, m, out| {
            match from {
                Sender::Shared => device.handle_ambiguous(m, &datagram, out),
                Sender::Home | Sender::Port | Sender::Elsewhere | Sender::LastRequest => {
                    device.handle_datagram(m, &datagram, out)
                }
            };
        });
    }

    fn receive_bare(&mut self, burst: Vec<Vec<u8>>, from: Sender) {
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
            Sender::LastRequest => self.last_request_to,
        }
    }

    fn step(&mut self, input: impl FnOnce(&mut Device, &mut Moment, &mut Effects)) {
        let entropy = u128::from(self.messages).wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64);
        let mut m = Moment::new(self.now, entropy);
        let mut out = Effects::new();
        input(&mut self.device, &mut m, &mut out);
        let mut sent = SendState::Nothing;
        for effect in out.as_slice() {
            match effect {
                Effect::Send(Outbound::Send { to, datagram }) => {
                    assert_eq!(to.transport, Transport::Coap);
                    sent = SendState::Something;
                    self.note_sent_to(*to, datagram);
                }
                Effect::Send(Outbound::SendUdp { to, action, .. }) => {
                    self.departing = Some(*action);
                    assert_eq!(to.transport, Transport::Udp);
                    sent = SendState::Something;
                }
                Effect::Send(Outbound::PrepareBootstrap(_)) => panic!("it is refused here"),
                Effect::Send(Outbound::ReadImage(_) | Outbound::NoteTransferred { .. }) => {
                    panic!("nothing is updated here")
                }
                Effect::Send(Outbound::Rebind { from, to }) => {
                    self.ever_bound.extend(*to);
                    let key = self.device.key();
                    self.peers.rebind(key, *from, *to, &mut self.binding);
                }
                Effect::Save(Change::AppendEvent(event)) => self.note_event(event, sent),
                Effect::Save(_) | Effect::Expect(_) | Effect::Count(_) | Effect::Log(_) => {}
            }
        }
        self.assert_observes_well();
        self.assert_counts_well(&out.take_events());
        self.assert_is_found();
    }

    fn note_event(&mut self, event: &Event, sent: SendState) {
        match event.content {
            EventContent::Telemetry(_) | EventContent::Data(_) | EventContent::Lifecycle(_) => {
                let what = "an input is published before its answer";
                assert_eq!(sent, SendState::Nothing, "{what}");
                self.published += 1;
            }
            // A request may fail after the answer, when its turn comes.
            EventContent::Error(_)
            | EventContent::ActionResult(_)
            | EventContent::SmsReceived(_)
            | EventContent::SmsReport(_) => {}
        }
        assert_lies_below(event);
    }

    /// Every exchange and request ends once, and those that have not ended are counted by the
    /// device.
    fn assert_counts_well(&mut self, events: &[StepEvent]) {
        for step_event in events {
            match step_event.kind {
                StepEventKind::Begun(_) => self.exchanges += 1,
                StepEventKind::Ended(_) => self.exchanges -= 1,
                StepEventKind::Created(_) => self.requests += 1,
                StepEventKind::Concluded(..) => self.requests -= 1,
                StepEventKind::Repeated
                | StepEventKind::Acknowledged
                | StepEventKind::Notified(_)
                | StepEventKind::Sent(_)
                | StepEventKind::DataSent(..)
                | StepEventKind::ObservationLost => {}
            }
        }
        let activity = self.device.activity();
        let in_flight = u32::from(activity.exchange == InFlight::Yes);
        assert_eq!(self.exchanges, in_flight);
        assert_eq!(self.requests, activity.scheduled + activity.in_progress);
    }

    /// The device is found at the peer of its registration, and elsewhere only during an exchange
    /// there.
    fn assert_is_found(&self) {
        let is_found = |peer: &Peer| self.peers.device_answering_from(*peer).is_some();
        let bound = self.device.bound_peer();
        assert!(bound.is_none_or(|bound| is_found(&bound)), "{bound:?}");
        // An LwM2M operation goes to the peer of the registration at that time.
        let is_request = self.last_request.uri_query().eq(["b"]);
        if self.exchanges > 0 && is_request {
            assert!(
                is_found(&self.last_request_to),
                "{} may answer",
                self.last_request_to
            );
        }
        if self.exchanges == 0 {
            let others = self.ever_bound.iter().filter(|peer| Some(**peer) != bound);
            let found: Vec<_> = others.filter(|peer| is_found(peer)).collect();
            assert!(found.is_empty(), "{found:?} are bound without a reason");
        }
    }

    fn assert_observes_well(&self) {
        let observations = self.device.snapshot(self.now).observations;
        assert!(observations.len() <= OBSERVATIONS_MAX);
        let targets = observations.iter().map(|it| it.target.to_string());
        let targets: BTreeSet<_> = targets.collect();
        let tokens: BTreeSet<_> = observations.iter().map(|observed| observed.token).collect();
        let different = (targets.len(), tokens.len());
        assert_eq!(different, (observations.len(), observations.len()));
    }

    fn note_sent_to(&mut self, to: Peer, datagram: &[u8]) {
        let is_request = Message::decode(datagram).is_ok_and(|it| it.code.is_request());
        if is_request {
            self.last_request_to = to;
            assert!(
                self.peers.device_answering_from(to).is_some(),
                "it may answer"
            );
        }
        self.note_sent(datagram);
    }

    fn note_sent(&mut self, datagram: &[u8]) {
        let message = Message::decode(datagram).expect("what is sent is well-formed");
        if message.code.is_request() {
            self.last_request = message;
        } else if message.location_path().next().is_some() {
            self.location = message.location_path().map(str::to_owned).collect();
        }
    }
}

fn is_answer_to(effect: &Effect, peer: Peer) -> bool {
    match effect {
        Effect::Send(Outbound::Send { to, .. } | Outbound::SendUdp { to, .. }) => *to == peer,
        Effect::Send(
            Outbound::Rebind { .. }
            | Outbound::PrepareBootstrap(_)
            | Outbound::ReadImage(_)
            | Outbound::NoteTransferred { .. },
        )
        | Effect::Save(_)
        | Effect::Expect(_)
        | Effect::Count(_)
        | Effect::Log(_) => false,
    }
}

/// The values of a notification or a report are below the requested path.
fn assert_lies_below(event: &Event) {
    let EventContent::Telemetry(telemetry) = &event.content else {
        return;
    };
    assert!(!telemetry.values.is_empty(), "an event has values");
    if let Cause::Observation(observed) = telemetry.cause {
        let lies_below = |(path, _): &(Path, _)| observed.contains(*path);
        assert!(telemetry.values.iter().all(lies_below), "{telemetry:?}");
    }
    if telemetry.cause == Cause::PassiveReport {
        let is_reported = |(path, _): &(Path, _)| [6, 7, 32_769].contains(&path.object_id());
        assert!(telemetry.values.iter().all(is_reported), "{telemetry:?}");
    }
}

fn peer(address: &str) -> Peer {
    Peer::plain(address.parse().unwrap())
}

fn profile(address: AddressSetting) -> Profile {
    Profile {
        customer: CustomerId::parse("acme").unwrap(),
        device: DeviceId::parse("8931").unwrap(),
        number: 1,
        iccid: Iccid::parse("8931").unwrap(),
        imsi: None,
        msisdn: None,
        ip: match address {
            AddressSetting::Known => Some("10.0.0.1".parse().unwrap()),
            AddressSetting::Unknown => None,
            AddressSetting::Elsewhere => Some("10.0.0.2".parse().unwrap()),
        },
        endpoint: Endpoint::parse("meter").unwrap(),
        name: None,
        credentials: DeviceCredentials::default(),
        security: SecurityRequirement::Any,
        created_at: Timestamp::default(),
        tags: Tags::default(),
        wake_up: None,
        offline_after_s: None,
    }
}
