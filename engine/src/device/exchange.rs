//! The device as a CoAP endpoint: which message means what, and who answers it.

use std::sync::Arc;

use protocol::coap::code::Code;
use protocol::coap::message::{Kind, Message, MessageId};
use protocol::coap::recent::Remembered;
use protocol::coap::transfer::Receipt;

use crate::datagram::Datagram;
use crate::device::Device;
use crate::device::attempt::Attempt;
use crate::effect::Effects;
use crate::location::Location;
use crate::moment::Moment;
use crate::occurrence::{Ending, Heard};
use crate::route::{Resource, Route};

/// What a message of a device is about.
pub(super) enum Meaning {
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
        let meaning = Meaning::of(&datagram.message);
        if datagram.message.block1().is_some() && self.may_say(&meaning, datagram.peer, m.now()) {
            return match self.gather(m, datagram, out) {
                Some(whole) => {
                    let heard = self.hear_whole(m, &whole, meaning, out);
                    self.remember_alike(m, datagram, &whole);
                    heard
                }
                None => Heard::Part,
            };
        }
        self.hear_whole(m, datagram, meaning, out)
    }

    fn hear_whole(
        &mut self,
        m: &mut Moment,
        datagram: &Datagram,
        meaning: Meaning,
        out: &mut Effects,
    ) -> Heard {
        if meaning.has_values() && self.too_long(datagram.message.payload.len()).is_some() {
            self.refuse_length(m, datagram, out);
            return Heard::Unsupported;
        }
        match meaning {
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
        // RFC 7959 section 2.3: the block that a success is about is named.
        let response = match request.block1() {
            Some(block) if code.is_success() => response.with_block1(block),
            Some(_) | None => response,
        };
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
    pub(super) fn remember(&mut self, m: &Moment, datagram: &Datagram, what: Remembered) {
        if let Some(recent) = self.recent_of(datagram.peer) {
            recent.remember(m.now().as_ms(), &datagram.message, what);
        }
    }

    /// Remembers the last part of a whole as the whole is: it is the part that is repeated.
    pub(super) fn remember_alike(&mut self, m: &Moment, part: &Datagram, whole: &Datagram) {
        let recent = self.recent_of(whole.peer);
        let remembered = recent.and_then(|it| it.find(m.now().as_ms(), &whole.message));
        if let Some(remembered) = remembered {
            self.remember(m, part, remembered);
        }
    }

    fn take_answer(&mut self, m: &mut Moment, datagram: &Datagram, out: &mut Effects) -> Heard {
        let message = &datagram.message;
        let terms = Arc::clone(&self.terms);
        let rules = terms.rules.transfers();
        let attempt = self.attempt_mut();
        let awaited = attempt.filter(|attempt| attempt.may_be_answered_from(datagram.peer));
        let receipt = match awaited.and_then(Attempt::transfer_mut) {
            Some(transfer) => transfer.handle(m.now().as_ms(), &rules, message),
            None => Receipt::NotMine,
        };
        match receipt {
            Receipt::NotMine
                if message.code.is_response() && message.kind != Kind::Acknowledgement =>
            {
                return self.take_notification(m, datagram, out);
            }
            Receipt::NotMine => return Heard::Unasked,
            Receipt::Acknowledged => {
                self.note_awake(m.now());
                self.attempt_acknowledged(m.now(), out);
            }
            Receipt::Reset => {
                self.note_awake(m.now());
                self.note_ending(Ending::Reset, out);
                self.attempt_rejected(m, out);
            }
            Receipt::Proceeds { acknowledge } => {
                self.note_awake(m.now());
                self.confirm(m, datagram, acknowledge, out);
                self.send_next(m, out);
                return Heard::Part;
            }
            Receipt::Unusable { option, reset } => {
                let why = format!("the answer has the critical option {option}, not supported");
                self.note_ending(Ending::Unusable, out);
                self.attempt_unusable(m, message.code, &why, out);
                if reset.is_some() {
                    self.reject(m, datagram, out);
                }
            }
            Receipt::Broken { acknowledge, fault } => {
                self.note_awake(m.now());
                self.note_ending(Ending::Unusable, out);
                let why = format!("the blocks of the answer do not fit together: {fault}");
                self.attempt_unusable(m, message.code, &why, out);
                self.confirm(m, datagram, acknowledge, out);
            }
            Receipt::Answered { acknowledge, whole } => {
                self.note_awake(m.now());
                let answer = whole.as_deref().unwrap_or(message);
                self.note_ending(Ending::with(answer.code), out);
                self.attempt_answered(m, answer, out);
                self.confirm(m, datagram, acknowledge, out);
            }
        }
        Heard::Answer
    }

    /// Takes note that an answer was taken in, and acknowledges it if its sender waits for that.
    fn confirm(
        &mut self,
        m: &Moment,
        datagram: &Datagram,
        acknowledge: Option<MessageId>,
        out: &mut Effects,
    ) {
        self.remember(m, datagram, Remembered::Acknowledged);
        if let Some(id) = acknowledge {
            Self::send(datagram.peer, &Message::acknowledgement(id), out);
        }
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
        match Route::of(message) {
            Route::Register => Self::Register,
            Route::Update(location) => Self::Update(location),
            Route::Deregister(location) => Self::Deregister(location),
            Route::Send => Self::Send,
            Route::Data => Self::Data,
            Route::NotAllowed(Resource::Bootstrap)
            | Route::Bootstrap
            | Route::UnknownLocation
            | Route::Unknown => Self::Unsupported(Code::NOT_FOUND),
            Route::NotAllowed(_) => Self::Unsupported(Code::METHOD_NOT_ALLOWED),
        }
    }

    /// Whether it carries what is read of it, and is not data.
    fn has_values(&self) -> bool {
        match self {
            Self::Register | Self::Update(_) | Self::Send => true,
            Self::Deregister(_) | Self::Data | Self::Answer | Self::Ping | Self::Unsupported(_) => {
                false
            }
        }
    }
}
