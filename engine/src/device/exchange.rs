//! The device as a CoAP endpoint: which message means what, and who answers it.

use protocol::coap::code::Code;
use protocol::coap::exchange::Reception;
use protocol::coap::message::{Kind, Message};
use protocol::coap::recent::Remembered;

use crate::datagram::Datagram;
use crate::device::Device;
use crate::device::attempt::Attempt;
use crate::effect::Effects;
use crate::location::Location;
use crate::moment::Moment;
use crate::occurrence::{Ending, Heard};

/// What a message of a device is about.
enum Meaning {
    Register,
    Update(Location),
    Deregister(Location),
    /// Values nobody asked for.
    Send,
    /// Data of a device that need not speak LwM2M.
    Data,
    /// A response or an acknowledgement, or a reset.
    Answer,
    /// An Empty confirmable message: a ping (RFC 7252 section 4.3).
    Ping,
    Unsupported(Code),
}

impl Device {
    /// Answers a message that was answered already, without doing it again; says whether it was
    /// one (RFC 7252 section 4.5).
    pub(super) fn repeat_answer(
        &mut self,
        m: &mut Moment,
        datagram: &Datagram,
        out: &mut Effects,
    ) -> bool {
        let message = &datagram.message;
        let recent = self.recent_of(datagram.peer);
        let Some(remembered) = recent.and_then(|it| it.find(m.now().as_ms(), message)) else {
            return false;
        };
        if message.kind != Kind::Confirmable {
            return true;
        }
        let answer = match remembered {
            // The location it was answered with is gone, and no other message stands for it.
            Remembered::Answered(Code::CREATED) if self.record.registration.is_none() => {
                return true;
            }
            Remembered::Answered(code) => self.respond(message, code),
            Remembered::Acknowledged => Message::acknowledgement(message.message_id),
            Remembered::Rejected => Message::reset(message.message_id),
        };
        Self::send(datagram.peer, &answer, out);
        true
    }

    /// Takes in a message that is new.
    pub(super) fn hear(&mut self, m: &mut Moment, datagram: &Datagram, out: &mut Effects) -> Heard {
        match Meaning::of(&datagram.message) {
            Meaning::Register => {
                self.register(m, datagram, out);
                Heard::Register
            }
            Meaning::Update(location) => {
                self.update(m, datagram, location, out);
                Heard::Update
            }
            Meaning::Deregister(location) => {
                self.deregister(m, datagram, location, out);
                Heard::Deregister
            }
            Meaning::Send => {
                self.take_send(m, datagram, out);
                Heard::Send
            }
            Meaning::Data => {
                self.take_data(m, datagram, out);
                Heard::CoapData
            }
            Meaning::Answer => self.take_answer(m, datagram, out),
            Meaning::Ping => {
                self.reject(m, datagram, out);
                Heard::Ping
            }
            Meaning::Unsupported(code) => {
                self.answer(m, datagram, code, out);
                Heard::Unsupported
            }
        }
    }

    /// Answers a request and remembers that it was answered.
    pub(super) fn answer(
        &mut self,
        m: &mut Moment,
        datagram: &Datagram,
        code: Code,
        out: &mut Effects,
    ) {
        self.remember(m, datagram, Remembered::Answered(code));
        let response = self.respond(&datagram.message, code);
        Self::send(datagram.peer, &response, out);
    }

    pub(super) fn respond(&mut self, request: &Message, code: Code) -> Message {
        let id = self.take_message_id();
        let response = Message::response_to(request, code, id);
        match &self.record.registration {
            Some(registration) if code == Code::CREATED => {
                let location = self.location(registration).to_string();
                response.with_location_path(["rd", &location])
            }
            Some(_) | None => response,
        }
    }

    /// Acknowledges a message that was taken in, if its sender waits for that.
    pub(super) fn acknowledge(&mut self, m: &Moment, datagram: &Datagram, out: &mut Effects) {
        self.remember(m, datagram, Remembered::Acknowledged);
        if datagram.message.kind == Kind::Confirmable {
            let acknowledgement = Message::acknowledgement(datagram.message.message_id);
            Self::send(datagram.peer, &acknowledgement, out);
        }
    }

    /// Rejects a message nobody here can process: a confirmable one must be, and any other may
    /// be, so that a device stops sending notifications nobody asked for (RFC 7641 section 3.6).
    pub(super) fn reject(&mut self, m: &mut Moment, datagram: &Datagram, out: &mut Effects) {
        self.remember(m, datagram, Remembered::Rejected);
        let reset = Message::reset(datagram.message.message_id);
        Self::send(datagram.peer, &reset, out);
    }

    /// Message ids belong to an address: what another than the device's own says is not
    /// remembered.
    fn remember(&mut self, m: &Moment, datagram: &Datagram, what: Remembered) {
        if let Some(recent) = self.recent_of(datagram.peer) {
            recent.remember(m.now().as_ms(), &datagram.message, what);
        }
    }

    fn take_answer(&mut self, m: &mut Moment, datagram: &Datagram, out: &mut Effects) -> Heard {
        let message = &datagram.message;
        let now_ms = m.now().as_ms();
        let is_from_there = self.awaited_from() == Some(datagram.peer);
        let exchange = self.attempt_mut().and_then(Attempt::exchange_mut);
        let reception = match exchange.filter(|_| is_from_there) {
            Some(exchange) => exchange.handle(now_ms, message),
            None => Reception::NotMine,
        };
        match reception {
            Reception::NotMine
                if message.code.is_response() && message.kind != Kind::Acknowledgement =>
            {
                return self.take_notification(m, datagram, out);
            }
            Reception::NotMine => return Heard::Unasked,
            Reception::Acknowledged => {
                self.note_awake(m.now());
                self.attempt_acknowledged(m.now(), out);
            }
            Reception::Reset => {
                self.note_awake(m.now());
                self.note_ending(Ending::Reset, out);
                self.attempt_rejected(m, out);
            }
            Reception::Unusable { option, reset } => {
                let why = format!("the answer has the critical option {option}, not supported");
                self.note_ending(Ending::Unusable, out);
                self.attempt_refused(m, message.code, &why, out);
                if reset.is_some() {
                    self.reject(m, datagram, out);
                }
            }
            Reception::Answered { acknowledge } => {
                self.note_awake(m.now());
                self.note_ending(Ending::with(message.code), out);
                self.attempt_answered(m, message, out);
                self.remember(m, datagram, Remembered::Acknowledged);
                if let Some(id) = acknowledge {
                    Self::send(datagram.peer, &Message::acknowledgement(id), out);
                }
            }
        }
        Heard::Answer
    }
}

impl Meaning {
    fn of(message: &Message) -> Self {
        match message.kind {
            Kind::Acknowledgement | Kind::Reset => return Self::Answer,
            Kind::Confirmable if message.code == Code::EMPTY => return Self::Ping,
            Kind::Confirmable | Kind::NonConfirmable => {}
        }
        if !message.code.is_request() {
            return Self::Answer;
        }
        let mut path = message.uri_path();
        match (message.code, [path.next(), path.next(), path.next()]) {
            (Code::POST, [Some("rd"), None, None]) => Self::Register,
            (Code::POST, [Some("rd"), Some(at), None]) => Self::at(at, Self::Update),
            (Code::DELETE, [Some("rd"), Some(at), None]) => Self::at(at, Self::Deregister),
            (Code::POST, [Some("dp"), None, None]) => Self::Send,
            (Code::POST, [None, ..]) => Self::Data,
            (_, [None, ..]) => Self::Unsupported(Code::METHOD_NOT_ALLOWED),
            (_, [Some("dp"), None, None]) => Self::Unsupported(Code::METHOD_NOT_ALLOWED),
            (_, [Some("rd"), _, None]) => Self::Unsupported(Code::METHOD_NOT_ALLOWED),
            _ => Self::Unsupported(Code::NOT_FOUND),
        }
    }

    fn at(segment: &str, meaning: fn(Location) -> Self) -> Self {
        Location::parse(segment).map_or(Self::Unsupported(Code::NOT_FOUND), meaning)
    }
}
