//! Can anything a peer sends make a machine fall over? Whatever comes, the answer is well-formed
//! and time goes on.

#![allow(clippy::unwrap_used)]

mod inputs;

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::action::{Lwm2mRequest, Mode, NewAction, Operation, Request};
use engine::change::Change;
use engine::datagram::{Arrival, Datagram};
use engine::device::record::{DeviceRecord, Restored};
use engine::device::standing::InFlight;
use engine::device::{Device, NameTrust, Rules};
use engine::effect::{Effect, Effects, Speech};
use engine::event::{Cause, Event, Happening};
use engine::ids::{CustomerId, DeviceId, Endpoint, Iccid, TraceId};
use engine::limits::{Limits, OBSERVATIONS_MAX};
use engine::moment::{Moment, Timestamp};
use engine::occurrence::{Occurrence, What};
use engine::peer::Peer;
use engine::profile::Profile;
use engine::registry::{self, Sorted};
use engine::setting::SettingState;
use engine::terms::Terms;
use proptest::collection::vec;
use proptest::prelude::proptest;
use protocol::coap::block::Block;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::exchange::Transmission;
use protocol::coap::message::{Kind, Message, MessageId};
use protocol::coap::token::Token;
use protocol::lwm2m::path::Path;

use inputs::{Input, PATHS, Sending, Sense, Telling, To, input, sending, telling};

proptest! {
    #[test]
    fn whatever_comes_is_answered_well_or_not_at_all(inputs in vec(input(), 0..40)) {
        let mut scene = Scene::new();
        for input in inputs {
            scene.play(input);
        }
    }

    #[test]
    fn whatever_is_told_of_what_is_observed_is_taken_well(tellings in vec(telling(), 0..60)) {
        let mut scene = Scene::new();
        scene.play(Input::Clear(Sense::Register));
        for telling in tellings {
            // Whatever it lost, it is asked for again.
            for path in PATHS {
                scene.play(Input::Submit(Operation::ObserveStart, path));
                scene.play(Input::Clear(Sense::Agreement));
            }
            scene.play(Input::Told(telling));
        }
    }

    #[test]
    fn whatever_is_told_of_what_is_reported_is_taken_well(tellings in vec(telling(), 0..60)) {
        let mut scene = Scene::reporting();
        for (turn, telling) in tellings.into_iter().enumerate() {
            // What a device refused counts until it registers anew.
            let sense = if turn % 5 == 0 { Sense::Register } else { Sense::Update };
            scene.play(Input::Clear(sense));
            scene.play(Input::Told(Telling { to: To::Asked, ..telling }));
            scene.play(Input::Due);
        }
    }
}

proptest! {
    #[test]
    fn whatever_is_sent_is_told_before_it_is_thanked(sendings in vec(sending(), 0..60)) {
        let mut scene = Scene::new();
        scene.play(Input::Clear(Sense::Register));
        for sending in sendings {
            scene.play(Input::Sent(sending.clone()));
            // Nothing was heard in between, so that it is taken for the same.
            scene.repeat(sending);
        }
    }
}

/// What the device offers: of it, 6, 7, and what nobody knows are data of the customer.
const OBJECTS: &str =
    "</>;rt=\"oma.lwm2m\";ct=\"110 11542\",</1/0>,</3/0>,</6/0>,</7/0>,</32769/0>";

/// Whether a step said something already.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Spoken {
    Nothing,
    Something,
}

/// A device, and what its peer last heard of it.
struct Scene {
    device: Device,
    now: Timestamp,
    messages: u16,
    location: Vec<String>,
    asked: Message,
    /// Exchanges that began and did not end.
    exchanges: u32,
    /// Requests that were created and are not final.
    requests: u32,
    /// What was told of it so far.
    told: u32,
}

impl Scene {
    fn new() -> Self {
        let rules = Rules {
            limits: Limits::default(),
            transmission: Transmission::STANDARD,
            names: NameTrust::NameSuffices,
            own: Box::default(),
        };
        let terms = Arc::new(Terms::of_rules(Arc::new(rules)));
        let restored = Restored {
            profile: profile(),
            record: DeviceRecord::default(),
            pending: Vec::new(),
        };
        let now = Timestamp::from_ms(1_700_000_000_000);
        Self {
            device: Device::restore(&mut Moment::new(now, 1), terms, restored),
            now,
            messages: 0,
            location: vec!["rd".to_owned()],
            asked: Message::request(Kind::Confirmable, Code::GET, MessageId(0), Token::EMPTY),
            exchanges: 0,
            requests: 0,
            told: 0,
        }
    }

    /// With a device that is read whenever it registers or updates its registration.
    fn reporting() -> Self {
        let mut scene = Self::new();
        let terms = (**scene.device.terms()).clone();
        scene.device.take_terms(Arc::new(Terms {
            passive_reporting: SettingState::Enabled,
            ..terms
        }));
        scene
    }

    fn play(&mut self, input: Input) {
        self.messages += 1;
        self.now = self.now.plus_ms(10);
        match input {
            Input::Noise(bytes) => self.hear(&bytes),
            Input::Clear(sense) => self.hear(&self.say(sense).encode()),
            Input::Garbled(sense, at, byte) => {
                let mut bytes = self.say(sense).encode();
                let at = at.index(bytes.len());
                bytes[at] = byte;
                self.hear(&bytes);
            }
            Input::Told(telling) => self.hear(&self.tell(telling).encode()),
            Input::Sent(sending) => self.hear(&self.send(sending).encode()),
            Input::Submit(operation, path) => {
                // What a full queue refuses is refused well, too.
                let new = request(operation, path);
                self.step(|device, m, out| {
                    let submitted = device.submit(m, new, out);
                    assert_eq!(submitted.is_err(), out.as_slice().is_empty());
                });
            }
            Input::Due => self.due(),
        }
    }

    /// The last thing that was sent comes once more.
    fn repeat(&mut self, sending: Sending) {
        let before = self.told;
        self.hear(&self.send(sending).encode());
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

    fn hear(&mut self, bytes: &[u8]) {
        let peer = Peer::plain("10.0.0.1:5683".parse().unwrap());
        match registry::sort(peer, bytes) {
            Sorted::ToEndpoint(_, datagram)
            | Sorted::ToLocation(_, datagram)
            | Sorted::ToPeer(datagram)
            | Sorted::ToAddress(Arrival::Message(datagram)) => self.hand(&datagram),
            Sorted::ToAddress(Arrival::Ambiguous(_) | Arrival::Bare(_)) => {}
            Sorted::Answered { datagram, .. } => self.take_note(&datagram),
            Sorted::Ignored(_) => {}
        }
    }

    fn hand(&mut self, datagram: &Datagram) {
        self.step(|device, m, out| {
            device.handle_datagram(m, datagram, out);
        });
    }

    fn step(&mut self, input: impl FnOnce(&mut Device, &mut Moment, &mut Effects)) {
        let entropy = u128::from(self.messages).wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64);
        let mut m = Moment::new(self.now, entropy);
        let mut out = Effects::new();
        input(&mut self.device, &mut m, &mut out);
        let mut spoken = Spoken::Nothing;
        for effect in out.as_slice() {
            match effect {
                Effect::Say(Speech::Send { datagram, .. }) => {
                    spoken = Spoken::Something;
                    self.take_note(datagram);
                }
                Effect::Save(Change::AppendEvent(event)) => {
                    self.take_note_of(event, spoken);
                }
                Effect::Save(_)
                | Effect::Expect(_)
                | Effect::Count(_)
                | Effect::Log(_)
                | Effect::Say(Speech::Rebind { .. } | Speech::SendBare { .. }) => {}
            }
        }
        self.assert_observes_well();
        self.assert_counts_well(&out.take_occurred());
    }

    fn take_note_of(&mut self, event: &Event, spoken: Spoken) {
        match event.happening {
            Happening::Telemetry(_) | Happening::Data(_) | Happening::Lifecycle(_) => {
                let what = "what is heard is told before the answer";
                assert_eq!(spoken, Spoken::Nothing, "{what}");
                self.told += 1;
            }
            // A request may fail behind the answer, when its turn comes.
            Happening::Failure(_) | Happening::Concluded(_) => {}
        }
        assert_lies_below(event);
    }

    /// What begins ends once, and what has not ended is there.
    fn assert_counts_well(&mut self, occurred: &[Occurrence]) {
        for occurrence in occurred {
            match occurrence.what {
                What::Begun(_) => self.exchanges += 1,
                What::Ended(_) => self.exchanges -= 1,
                What::Created(_) => self.requests += 1,
                What::Concluded(..) | What::Removed(_) => self.requests -= 1,
                What::Repeated
                | What::Acknowledged
                | What::Notified(_)
                | What::Sent(_)
                | What::DataSent(..)
                | What::ObservationLost => {}
            }
        }
        let standing = self.device.standing();
        let in_flight = u32::from(standing.exchange == InFlight::Yes);
        assert_eq!(self.exchanges, in_flight);
        assert_eq!(self.requests, standing.scheduled + standing.in_progress);
    }

    fn assert_observes_well(&self) {
        let observations = self.device.snapshot(self.now).observations;
        assert!(observations.len() <= OBSERVATIONS_MAX);
        let paths: BTreeSet<_> = observations.iter().map(|observed| observed.path).collect();
        let tokens: BTreeSet<_> = observations.iter().map(|observed| observed.token).collect();
        let different = (paths.len(), tokens.len());
        assert_eq!(different, (observations.len(), observations.len()));
    }

    fn take_note(&mut self, datagram: &[u8]) {
        let message = Message::decode(datagram).expect("what is sent is well-formed");
        if message.code.is_request() {
            self.asked = message;
        } else if message.location_path().next().is_some() {
            self.location = message.location_path().map(str::to_owned).collect();
        }
    }

    fn tell(&self, telling: Telling) -> Message {
        let observations = self.device.snapshot(self.now).observations;
        let token = match telling.to {
            To::Observed(at) if !observations.is_empty() => {
                Token::new(&at.get(&observations).token).unwrap()
            }
            To::Observed(_) | To::Asked => self.asked.token,
        };
        let id = match telling.kind {
            Kind::Acknowledgement => self.asked.message_id,
            Kind::Confirmable | Kind::NonConfirmable | Kind::Reset => MessageId(self.messages),
        };
        let mut message = Message::separate(telling.kind, telling.code, id, token);
        if let Some(sequence) = telling.observe {
            message = message.with_observe(sequence);
        }
        if let Some(format) = telling.format {
            message = message.with_content_format(ContentFormat(format));
        }
        if let Some(block) = telling.block {
            message = message.with_block2(Block::from_value(block));
        }
        if let Some(number) = telling.option {
            message = message.with_option(number, &[1]);
        }
        message.with_payload(telling.payload)
    }

    fn send(&self, sending: Sending) -> Message {
        let id = MessageId(self.messages);
        let message = Message::request(sending.kind, Code::POST, id, Token::EMPTY)
            .with_uri_path(["dp"])
            .with_payload(sending.payload);
        match sending.format {
            Some(format) => message.with_content_format(ContentFormat(format)),
            None => message,
        }
    }

    fn say(&self, sense: Sense) -> Message {
        let id = MessageId(self.messages);
        let request = |code| Message::request(Kind::Confirmable, code, id, Token::EMPTY);
        match sense {
            Sense::Register => request(Code::POST)
                .with_uri_path(["rd"])
                .with_uri_query(["lwm2m=1.1", "ep=meter", "lt=60", "b=U", "Q"])
                .with_payload(OBJECTS),
            Sense::Update => request(Code::POST)
                .with_uri_path(&self.location)
                .with_uri_query(["lt=61"]),
            Sense::Deregister => request(Code::DELETE).with_uri_path(&self.location),
            Sense::Answer => {
                Message::response_to(&self.asked, Code::CONTENT, id).with_payload("87")
            }
            Sense::Agreement => Message::response_to(&self.asked, Code::CONTENT, id)
                .with_observe(self.messages.into())
                .with_payload("87"),
            Sense::Acknowledgement => Message::acknowledgement(self.asked.message_id),
            Sense::Reset => Message::reset(self.asked.message_id),
        }
    }
}

/// What a device is taken to say of a path is of that path.
fn assert_lies_below(event: &Event) {
    let Happening::Telemetry(told) = &event.happening else {
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

fn request(operation: Operation, path: &str) -> NewAction {
    let data = (operation == Operation::Write).then(|| "300".into());
    NewAction {
        request: Request::Lwm2m(Lwm2mRequest {
            operation,
            path: path.parse().unwrap(),
            data,
        }),
        mode: Mode::SendNow,
        attempts_permitted: 2,
        expires_in_s: Some(300),
        trace: TraceId::from_bytes([1; 16]),
        once: None,
    }
}

fn profile() -> Profile {
    Profile {
        customer: CustomerId::parse("acme").unwrap(),
        device: DeviceId::parse("8931").unwrap(),
        number: 1,
        iccid: Iccid::parse("8931").unwrap(),
        imsi: None,
        msisdn: None,
        ip: None,
        endpoint: Endpoint::parse("meter").unwrap(),
        name: None,
        psk: None,
        created_at: Timestamp::default(),
    }
}
