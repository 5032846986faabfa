//! What do the tests of a device say? A hand-turned clock, and a server that says what it is told.

use harness::device::SimulatedDevice;
use harness::device::configuration::Configuration;
use harness::device::event::{Event, Operation, Output};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Kind, Message, MessageId};
use protocol::coap::token::Token;
use protocol::lwm2m::path::Path;

/// The time at which every test begins.
pub(crate) const START_MS: i64 = 1_000_000;

/// One device and everything around it.
pub(crate) struct World {
    pub(crate) device: SimulatedDevice,
    pub(crate) now_ms: i64,
    out: Vec<Output>,
    next_message_id: u16,
}

impl World {
    /// Switches a device on, which then has something to say.
    pub(crate) fn start(configuration: Configuration) -> Self {
        let device = SimulatedDevice::new(configuration, 7);
        let mut world = Self {
            device,
            now_ms: START_MS,
            out: Vec::new(),
            next_message_id: 500,
        };
        world.device.handle_start(world.now_ms, &mut world.out);
        world
    }

    /// Switches a device on and lets it register at `/rd/7`.
    pub(crate) fn registered(configuration: Configuration) -> Self {
        let mut world = Self::start(configuration);
        let register = world.message();
        world.hear(&created(&register));
        assert!(matches!(
            world.take()[..],
            [Output::Told(Event::Registered { .. })]
        ));
        world
    }

    /// Lets the device hear a message of the server.
    pub(crate) fn hear(&mut self, message: &Message) {
        self.hear_bytes(&message.encode());
    }

    /// Lets the device hear a datagram.
    pub(crate) fn hear_bytes(&mut self, datagram: &[u8]) {
        self.device
            .handle_datagram(self.now_ms, datagram, &mut self.out);
    }

    /// Gives the device an order.
    pub(crate) fn order(
        &mut self,
        order: impl FnOnce(&mut SimulatedDevice, i64, &mut Vec<Output>),
    ) {
        order(&mut self.device, self.now_ms, &mut self.out);
    }

    /// Lets time pass until the device has something to do, and tells how long that took.
    pub(crate) fn pass_to_timeout(&mut self) -> i64 {
        let next_ms = self.device.next_timeout().expect("nothing will happen");
        let next_ms = next_ms.max(self.now_ms);
        let waited_ms = next_ms - self.now_ms;
        self.now_ms = next_ms;
        self.device.handle_timeout(self.now_ms, &mut self.out);
        waited_ms
    }

    /// Lets so much time pass, with everything that becomes due.
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

    /// Takes what the device has put out.
    pub(crate) fn take(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.out)
    }

    /// Takes the one thing the device has put out, which is a message.
    pub(crate) fn message(&mut self) -> Message {
        match &self.take()[..] {
            [Output::Send(datagram)] => Message::decode(datagram).unwrap(),
            other => panic!("not one message: {other:?}"),
        }
    }

    /// Takes the messages the device has put out.
    pub(crate) fn messages(&mut self) -> Vec<Message> {
        let message = |output| match output {
            Output::Send(datagram) => Some(Message::decode(&datagram).unwrap()),
            Output::SendBare(_) | Output::Told(_) => None,
        };
        self.take().into_iter().filter_map(message).collect()
    }

    /// Takes the news the device has put out.
    pub(crate) fn events(&mut self) -> Vec<Event> {
        let event = |output| match output {
            Output::Send(_) | Output::SendBare(_) => None,
            Output::Told(event) => Some(event),
        };
        self.take().into_iter().filter_map(event).collect()
    }

    /// Makes a request the server has not made before.
    pub(crate) fn request(&mut self, kind: Kind, operation: Operation, path: &str) -> Message {
        self.next_message_id += 1;
        let (code, observe) = match operation {
            Operation::Read => (Code::GET, None),
            Operation::Observe => (Code::GET, Some(0)),
            Operation::CancelObservation => (Code::GET, Some(1)),
            Operation::Write => (Code::PUT, None),
            Operation::Execute => (Code::POST, None),
        };
        let id = MessageId(self.next_message_id);
        let token = Token::new(&self.next_message_id.to_be_bytes()).unwrap();
        let request = Message::request(kind, code, id, token);
        let request = request.with_uri_path(path.split('/').skip(1));
        observe.into_iter().fold(request, Message::with_observe)
    }

    pub(crate) fn read(&mut self, path: &str) -> Message {
        self.request(Kind::Confirmable, Operation::Read, path)
    }

    pub(crate) fn observe(&mut self, path: &str) -> Message {
        self.request(Kind::Confirmable, Operation::Observe, path)
    }

    /// A request to end the observation that another one began.
    pub(crate) fn cancel(&mut self, begun: &Message) -> Message {
        self.next_message_id += 1;
        let mut request = begun.clone();
        request.message_id = MessageId(self.next_message_id);
        request.with_observe(1)
    }

    pub(crate) fn write(&mut self, path: &str, text: &str) -> Message {
        self.request(Kind::Confirmable, Operation::Write, path)
            .with_content_format(ContentFormat::TEXT)
            .with_payload(text)
    }

    pub(crate) fn execute(&mut self, path: &str) -> Message {
        self.request(Kind::Confirmable, Operation::Execute, path)
    }
}

pub(crate) fn sent(message: &Message) -> Output {
    Output::Send(message.encode())
}

pub(crate) fn told(event: Event) -> Output {
    Output::Told(event)
}

pub(crate) fn answered(operation: Operation, path: &str, code: Code) -> Output {
    told(Event::Answered {
        path: at(path),
        operation,
        code,
    })
}

pub(crate) fn left_unanswered(operation: Operation, path: &str) -> Output {
    told(Event::LeftUnanswered {
        path: at(path),
        operation,
    })
}

/// The server's answer in the acknowledgement.
pub(crate) fn answer(request: &Message, code: Code) -> Message {
    Message::response_to(request, code, MessageId(0))
}

/// The server's answer to a registration that it keeps at `/rd/7`.
pub(crate) fn created(register: &Message) -> Message {
    answer(register, Code::CREATED).with_location_path(["rd", "7"])
}

pub(crate) fn at(path: &str) -> Path {
    path.parse().unwrap()
}

pub(crate) fn queries(message: &Message) -> Vec<&str> {
    message.uri_query().collect()
}
