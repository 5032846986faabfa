//! What a caller asks of a device over plain CoAP or bare UDP, as it leaves, and what an answer to
//! it means (RFC 7252 section 5; seed 2.1, 4.2).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Kind, Message};

use crate::action::timeline::Stage;
use crate::action::{Action, CoapRequest, Content, Method, Outcome, Payload, PayloadType, Status};
use crate::device::Device;
use crate::device::queue::Failure;
use crate::effect::{Departure, Effects};
use crate::moment::Moment;

impl Device {
    /// Takes note of what became of the bare datagram that was to leave.
    pub fn handle_departure(&mut self, m: &mut Moment, departure: Departure, out: &mut Effects) {
        match departure {
            Departure::Taken => self.departed(m, out),
            Departure::Refused => self.not_departed(m, "the datagram could not be sent", out),
        }
        self.begin_attempt(m, out);
        self.rest();
    }

    pub(super) fn request_over_coap(&mut self, m: &mut Moment, request: &CoapRequest) -> Message {
        let (id, token) = (self.take_message_id(), self.draw_token(m));
        let message = Message::request(Kind::Confirmable, code_of(request.method), id, token);
        let content = request.content.as_ref().map(Content::bytes);
        request
            .target
            .address(message)
            .with_payload(content.unwrap_or_default())
    }

    /// Ends the attempt in flight, a datagram that left.
    fn departed(&mut self, m: &mut Moment, out: &mut Effects) {
        if let Some(mut action) = self.take_departing(out) {
            action.timeline.note(m.now(), Stage::DatagramSent);
            self.conclude(m, action, Status::Succeeded, out);
        }
    }

    /// Ends the attempt in flight, a datagram that did not leave.
    pub(super) fn not_departed(&mut self, m: &mut Moment, why: &str, out: &mut Effects) {
        if let Some(mut action) = self.take_departing(out) {
            action.timeline.note(m.now(), Stage::GaveUp);
            self.fail(m, action, Failure::Refused, Outcome::failure(why), out);
        }
    }

    fn take_departing(&mut self, out: &mut Effects) -> Option<Action> {
        if !self.attempt_mut()?.is_departing() {
            return None;
        }
        let id = self.end_exchange(out)?.action()?;
        self.take_action(id)
    }
}

/// What the answer to a CoAP request of a caller says.
pub(super) fn outcome_of(answer: &Message) -> Outcome {
    let (payload, payload_type) = match answer.payload.as_slice() {
        [] => (None, None),
        bytes => {
            let (text, written) = written(answer.content_format(), bytes);
            (Some(Payload::Text(text)), Some(written))
        }
    };
    Outcome {
        code: Some(answer.code.digits().into()),
        payload,
        payload_type,
        error: None,
    }
}

/// The data of an answer as text where its format says that it is, and it is.
fn written(format: Option<ContentFormat>, bytes: &[u8]) -> (Box<str>, PayloadType) {
    let is_printable = format.is_some_and(ContentFormat::is_printable);
    match std::str::from_utf8(bytes) {
        Ok(text) if is_printable => (text.into(), PayloadType::Text),
        Ok(_) | Err(_) => (STANDARD.encode(bytes).into(), PayloadType::Base64),
    }
}

fn code_of(method: Method) -> Code {
    match method {
        Method::Get => Code::GET,
        Method::Post => Code::POST,
        Method::Put => Code::PUT,
        Method::Delete => Code::DELETE,
        Method::Patch => Code::PATCH,
    }
}
