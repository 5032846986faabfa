//! The fixture of the device tests: a manual clock, and a server whose messages each test gives.

use harness::device::SimulatedDevice;
use harness::device::configuration::Configuration;
use harness::device::event::{DeviceEvent, DeviceOutput, Operation};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use protocol::lwm2m::path::Path;

/// The time at which every test starts.
pub(crate) const START_MS: i64 = 1_000_000;

/// A device with its server and its clock.
pub(crate) struct Fixture {
    pub(crate) device: SimulatedDevice,
    pub(crate) now_ms: i64,
    out: Vec<DeviceOutput>,
    next_message_id: u16,
}

impl Fixture {
    /// Switches a device on, which then has something to send.
    pub(crate) fn start(configuration: Configuration) -> Self {
        let device = SimulatedDevice::new(configuration, 7);
        let mut fixture = Self {
            device,
            now_ms: START_MS,
            out: Vec::new(),
            next_message_id: 500,
        };
        fixture
            .device
            .handle_start(fixture.now_ms, &mut fixture.out);
        fixture
    }

    /// Switches a device on and registers it at `/rd/7`.
    pub(crate) fn registered(configuration: Configuration) -> Self {
        let mut fixture = Self::start(configuration);
        let register = fixture.message();
        fixture.deliver(&created(&register));
        assert!(matches!(
            fixture.take()[..],
            [DeviceOutput::Report(DeviceEvent::Registered { .. })]
        ));
        fixture
    }

    /// Delivers a message of the server to the device.
    pub(crate) fn deliver(&mut self, message: &Message) {
        self.deliver_bytes(&message.encode());
    }

    /// Delivers a datagram to the device.
    pub(crate) fn deliver_bytes(&mut self, datagram: &[u8]) {
        self.device
            .handle_datagram(self.now_ms, datagram, &mut self.out);
    }

    /// Gives the device an order.
    pub(crate) fn order(
        &mut self,
        order: impl FnOnce(&mut SimulatedDevice, i64, &mut Vec<DeviceOutput>),
    ) {
        order(&mut self.device, self.now_ms, &mut self.out);
    }

    /// Advances the clock until the device has something to do, and returns how long that took.
    pub(crate) fn pass_to_timeout(&mut self) -> i64 {
        let next_ms = self.device.next_timeout().expect("nothing will happen");
        let next_ms = next_ms.max(self.now_ms);
        let waited_ms = next_ms - self.now_ms;
        self.now_ms = next_ms;
        self.device.handle_timeout(self.now_ms, &mut self.out);
        waited_ms
    }

    /// Advances the clock by this much, and performs everything that becomes due.
    pub(crate) fn pass(&mut self, for_ms: i64) {
        let until_ms = self.now_ms + for_ms;
        while self
            .device
            .next_timeout()
            .is_some_and(|next_ms| next_ms <= until_ms)
        {
            self.pass_to_timeout();
        }
        self.now_ms = until_ms;
    }

    /// Takes the outputs of the device.
    pub(crate) fn take(&mut self) -> Vec<DeviceOutput> {
        std::mem::take(&mut self.out)
    }

    /// Takes the only output of the device, which is a message.
    pub(crate) fn message(&mut self) -> Message {
        match &self.take()[..] {
            [DeviceOutput::Send(datagram)] => Message::decode(datagram).unwrap(),
            other => panic!("not one message: {other:?}"),
        }
    }

    /// Takes the messages that the device sent.
    pub(crate) fn messages(&mut self) -> Vec<Message> {
        let message = |output| match output {
            DeviceOutput::Send(datagram) => Some(Message::decode(&datagram).unwrap()),
            DeviceOutput::SendUdp(_) | DeviceOutput::Report(_) => None,
        };
        self.take().into_iter().filter_map(message).collect()
    }

    /// Takes the events that the device reported.
    pub(crate) fn events(&mut self) -> Vec<DeviceEvent> {
        let event = |output| match output {
            DeviceOutput::Send(_) | DeviceOutput::SendUdp(_) => None,
            DeviceOutput::Report(event) => Some(event),
        };
        self.take().into_iter().filter_map(event).collect()
    }

    /// A message id that the server has not used before.
    pub(crate) fn fresh_id(&mut self) -> u16 {
        self.next_message_id += 1;
        self.next_message_id
    }

    /// Makes a request that the server has not sent before.
    pub(crate) fn request(
        &mut self,
        kind: MessageKind,
        operation: Operation,
        path: &str,
    ) -> Message {
        self.next_message_id += 1;
        let (code, observe) = match operation {
            Operation::Read => (Code::GET, None),
            Operation::Observe => (Code::GET, Some(0)),
            Operation::CancelObservation => (Code::GET, Some(1)),
            Operation::Write => (Code::PUT, None),
            Operation::Execute | Operation::Create => (Code::POST, None),
            Operation::Discover => (Code::GET, None),
            Operation::Delete => (Code::DELETE, None),
            Operation::WriteAttributes => (Code::PUT, None),
        };
        let id = MessageId(self.next_message_id);
        let token = Token::new(&self.next_message_id.to_be_bytes()).unwrap();
        let request = Message::request(kind, code, id, token);
        let request = request.with_uri_path(path.split('/').skip(1));
        observe.into_iter().fold(request, Message::with_observe)
    }

    pub(crate) fn read(&mut self, path: &str) -> Message {
        self.request(MessageKind::Confirmable, Operation::Read, path)
    }

    pub(crate) fn observe(&mut self, path: &str) -> Message {
        self.request(MessageKind::Confirmable, Operation::Observe, path)
    }

    /// A request that ends the observation of another one.
    pub(crate) fn cancel(&mut self, begun: &Message) -> Message {
        self.next_message_id += 1;
        let mut request = begun.clone();
        request.message_id = MessageId(self.next_message_id);
        request.with_observe(1)
    }

    pub(crate) fn write(&mut self, path: &str, text: &str) -> Message {
        self.request(MessageKind::Confirmable, Operation::Write, path)
            .with_content_format(ContentFormat::TEXT)
            .with_payload(text)
    }

    pub(crate) fn execute(&mut self, path: &str) -> Message {
        self.request(MessageKind::Confirmable, Operation::Execute, path)
    }
}

pub(crate) fn sent(message: &Message) -> DeviceOutput {
    DeviceOutput::Send(message.encode())
}

pub(crate) fn reported(event: DeviceEvent) -> DeviceOutput {
    DeviceOutput::Report(event)
}

pub(crate) fn answered(operation: Operation, path: &str, code: Code) -> DeviceOutput {
    reported(DeviceEvent::Answered {
        path: at(path),
        operation,
        code,
    })
}

pub(crate) fn left_unanswered(operation: Operation, path: &str) -> DeviceOutput {
    reported(DeviceEvent::LeftUnanswered {
        path: at(path),
        operation,
    })
}

/// The server's piggybacked response.
pub(crate) fn answer(request: &Message, code: Code) -> Message {
    Message::response_to(request, code, MessageId(0))
}

/// The server's response to a registration, with the location `/rd/7`.
pub(crate) fn created(register: &Message) -> Message {
    answer(register, Code::CREATED).with_location_path(["rd", "7"])
}

pub(crate) fn at(path: &str) -> Path {
    path.parse().unwrap()
}

pub(crate) fn queries(message: &Message) -> Vec<&str> {
    message.uri_query().collect()
}
