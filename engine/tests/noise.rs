//! Can anything a peer sends make a machine fall over? Whatever comes, the answer is well-formed
//! and time goes on.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use engine::action::{Lwm2mRequest, Mode, NewAction, Operation, Request};
use engine::datagram::Datagram;
use engine::device::record::{DeviceRecord, Restored};
use engine::device::{Device, NameTrust, Rules};
use engine::effect::{Effect, Effects, Speech};
use engine::ids::{CustomerId, DeviceId, Endpoint, Iccid, TraceId};
use engine::limits::Limits;
use engine::moment::{Moment, Timestamp};
use engine::peer::Peer;
use engine::profile::Profile;
use engine::registry::{self, Sorted};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::Index;
use protocol::coap::code::Code;
use protocol::coap::exchange::Transmission;
use protocol::coap::message::{Kind, Message, MessageId};
use protocol::coap::token::Token;

/// One thing that happens to the machine.
#[derive(Clone, Debug)]
enum Input {
    /// Bytes without any sense.
    Noise(Vec<u8>),
    /// A message that makes sense, but for one byte.
    Garbled(Sense, Index, u8),
    /// A message that makes sense.
    Clear(Sense),
    /// Somebody wants the device to do something.
    Submit(Operation),
    /// The next deadline comes.
    Due,
}

/// What a device may mean to say.
#[derive(Clone, Copy, Debug)]
enum Sense {
    Register,
    Update,
    Deregister,
    Answer,
    Acknowledgement,
    Reset,
}

proptest! {
    #[test]
    fn whatever_comes_is_answered_well_or_not_at_all(inputs in vec(input(), 0..40)) {
        let mut scene = Scene::new();
        for input in inputs {
            scene.play(input);
        }
    }
}

fn input() -> impl Strategy<Value = Input> {
    let operations = [Operation::Read, Operation::Write, Operation::Execute];
    prop_oneof![
        vec(any::<u8>(), 0..60).prop_map(Input::Noise),
        (sense(), any::<Index>(), any::<u8>())
            .prop_map(|(sense, at, byte)| Input::Garbled(sense, at, byte)),
        sense().prop_map(Input::Clear),
        proptest::sample::select(operations.to_vec()).prop_map(Input::Submit),
        Just(Input::Due),
    ]
}

fn sense() -> impl Strategy<Value = Sense> {
    prop_oneof![
        Just(Sense::Register),
        Just(Sense::Update),
        Just(Sense::Deregister),
        Just(Sense::Answer),
        Just(Sense::Acknowledgement),
        Just(Sense::Reset),
    ]
}

/// A device, and what its peer last heard of it.
struct Scene {
    device: Device,
    now: Timestamp,
    messages: u16,
    location: Vec<String>,
    asked: Message,
}

impl Scene {
    fn new() -> Self {
        let rules = Rules {
            limits: Limits::default(),
            transmission: Transmission::STANDARD,
            names: NameTrust::NameSuffices,
        };
        let restored = Restored {
            profile: profile(),
            record: DeviceRecord::default(),
            pending: Vec::new(),
        };
        let now = Timestamp::from_ms(1_700_000_000_000);
        Self {
            device: Device::restore(&mut Moment::new(now, 1), Arc::new(rules), restored),
            now,
            messages: 0,
            location: vec!["rd".to_owned()],
            asked: Message::request(Kind::Confirmable, Code::GET, MessageId(0), Token::EMPTY),
        }
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
            Input::Submit(operation) => {
                // What a full queue refuses is refused well, too.
                let new = request(operation);
                self.step(|device, m, out| {
                    let submitted = device.submit(m, new, out);
                    assert_eq!(submitted.is_err(), out.as_slice().is_empty());
                });
            }
            Input::Due => self.due(),
        }
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
            | Sorted::ToPeer(datagram) => self.hand(&datagram),
            Sorted::Answered { datagram, .. } => self.take_note(&datagram),
            Sorted::Ignored(_) => {}
        }
    }

    fn hand(&mut self, datagram: &Datagram) {
        self.step(|device, m, out| device.handle_datagram(m, datagram, out));
    }

    fn step(&mut self, input: impl FnOnce(&mut Device, &mut Moment, &mut Effects)) {
        let entropy = u128::from(self.messages).wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64);
        let mut m = Moment::new(self.now, entropy);
        let mut out = Effects::new();
        input(&mut self.device, &mut m, &mut out);
        for effect in out.as_slice() {
            if let Effect::Say(Speech::Send { datagram, .. }) = effect {
                self.take_note(datagram);
            }
        }
    }

    fn take_note(&mut self, datagram: &[u8]) {
        let message = Message::decode(datagram).expect("what is sent is well-formed");
        if message.code.is_request() {
            self.asked = message;
        } else if message.location_path().next().is_some() {
            self.location = message.location_path().map(str::to_owned).collect();
        }
    }

    fn say(&self, sense: Sense) -> Message {
        let id = MessageId(self.messages);
        let request = |code| Message::request(Kind::Confirmable, code, id, Token::EMPTY);
        match sense {
            Sense::Register => request(Code::POST)
                .with_uri_path(["rd"])
                .with_uri_query(["lwm2m=1.1", "ep=meter", "lt=60", "b=U", "Q"])
                .with_payload("</1/0>,</3/0>"),
            Sense::Update => request(Code::POST)
                .with_uri_path(&self.location)
                .with_uri_query(["lt=61"]),
            Sense::Deregister => request(Code::DELETE).with_uri_path(&self.location),
            Sense::Answer => {
                Message::response_to(&self.asked, Code::CONTENT, id).with_payload("87")
            }
            Sense::Acknowledgement => Message::acknowledgement(self.asked.message_id),
            Sense::Reset => Message::reset(self.asked.message_id),
        }
    }
}

fn request(operation: Operation) -> NewAction {
    let data = (operation == Operation::Write).then(|| "300".into());
    NewAction {
        request: Request::Lwm2m(Lwm2mRequest {
            operation,
            path: "/1/0/1".parse().unwrap(),
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
