//! One attempt at one request: recorded before its datagram leaves, ended by an answer, a
//! rejection or silence.

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::exchange::{Exchange, Expiry, GiveUp};
use protocol::coap::message::Message;
use protocol::coap::token::Token;
use protocol::lwm2m::model::{self, Resource};
use protocol::lwm2m::operation::{self, Label};
use protocol::lwm2m::payload;
use protocol::lwm2m::value::{DataType, Value};
use protocol::lwm2m::version::EnablerVersion;

use crate::action::{Action, Lwm2mRequest, Operation, Outcome, Request, Status};
use crate::device::Device;
use crate::device::queue::{Failure, Pending};
use crate::device::snapshot::Presence;
use crate::effect::Effects;
use crate::ids::ActionId;
use crate::moment::{Moment, Timestamp};

/// The attempt in flight.
pub(super) struct Attempt {
    pub(super) exchange: Exchange,
    action: ActionId,
    begun_at: Timestamp,
}

impl Attempt {
    pub(super) fn next_timeout(&self) -> Timestamp {
        Timestamp::from_ms(self.exchange.next_timeout())
    }

    pub(super) fn action(&self) -> ActionId {
        self.action
    }
}

impl Device {
    /// Begins the attempt of the oldest request that is ready, unless one is in flight or the
    /// device does not listen.
    pub(super) fn begin_attempt(&mut self, m: &mut Moment, out: &mut Effects) {
        while let Some(index) = self.next_to_begin(m.now())
            && let Some(pending) = self.take_pending(index)
        {
            self.begin_attempt_of(m, index, pending, out);
        }
    }

    /// Where the request stands whose turn it is.
    fn next_to_begin(&self, now: Timestamp) -> Option<usize> {
        let busy = self.busy.as_ref()?;
        let may_begin = |pending: &Pending| pending.may_begin(now);
        let index = busy.pending.iter().position(may_begin)?;
        let is_free = busy.attempt.is_none() && self.presence(now) == Presence::Awake;
        is_free.then_some(index)
    }

    fn begin_attempt_of(
        &mut self,
        m: &mut Moment,
        index: usize,
        mut pending: Pending,
        out: &mut Effects,
    ) {
        let value = match self.value_of(&pending.action) {
            Ok(value) => value,
            Err(why) => {
                let outcome = Outcome::failure(&why);
                return self.fail(m, pending.action, Failure::Unfit, outcome, out);
            }
        };
        let was = pending.action.status;
        pending.ready = false;
        pending.action.status = Status::InProgress;
        pending.action.attempts_made = pending.action.attempts_made.saturating_add(1);
        pending.action.updated_at = m.now();
        out.save_action(Some(was), &pending.action);
        let message = self.message_of(m, &pending.action, value.as_ref());
        let now_ms = m.now().as_ms();
        let exchange = Exchange::begin(now_ms, &self.rules.transmission, &message, m.next_u32());
        if let Some(to) = self.bound_peer() {
            out.send(to, exchange.datagram().to_vec());
        }
        let action = pending.action.id;
        let busy = self.busy.get_or_insert_default();
        busy.attempt = Some(Box::new(Attempt {
            exchange,
            action,
            begun_at: m.now(),
        }));
        busy.pending.insert(index, pending);
    }

    /// Repeats the datagram in flight, or gives up on it, as time asks.
    pub(super) fn drive_attempt(&mut self, m: &mut Moment, out: &mut Effects) {
        let to = self.bound_peer();
        let Some(attempt) = self.attempt_mut() else {
            return;
        };
        match attempt.exchange.handle_timeout(m.now().as_ms()) {
            Expiry::NotYet => {}
            Expiry::Retransmit => {
                // The device may have moved since: the exchange is with the device, not with
                // the address it had.
                if let Some(to) = to {
                    out.send(to, attempt.exchange.datagram().to_vec());
                }
            }
            Expiry::GaveUp(GiveUp::NotAcknowledged) => {
                self.attempt_unanswered(m, "the device did not acknowledge the message", out);
            }
            Expiry::GaveUp(GiveUp::NotAnswered) => {
                self.attempt_unanswered(m, "the device did not answer in time", out);
            }
        }
    }

    /// Ends the attempt in flight with the device's answer.
    pub(super) fn attempt_answered(&mut self, m: &mut Moment, answer: &Message, out: &mut Effects) {
        let code = answer.code;
        if code.is_success() {
            return self.attempt_succeeded(m, answer, out);
        }
        let why = format!("the device answered {code}");
        match code {
            Code::REQUEST_ENTITY_INCOMPLETE
            | Code::TOO_MANY_REQUESTS
            | Code::SERVICE_UNAVAILABLE => self.attempt_rejected(m, Some(code), &why, out),
            _ => self.attempt_refused(m, code, &why, out),
        }
    }

    /// Ends the attempt in flight, if there is one, in silence: the next is due when the device is
    /// next heard.
    pub(super) fn attempt_unanswered(&mut self, m: &mut Moment, why: &str, out: &mut Effects) {
        if let Some(attempt) = self.end_exchange() {
            self.note_silence(attempt.begun_at);
            self.end_attempt(m, &attempt, refusal(None, why), out);
        }
    }

    /// Ends the attempt in flight because the device does not take the request now: the next is
    /// due when the device is next heard, but it is there for other requests.
    pub(super) fn attempt_rejected(
        &mut self,
        m: &mut Moment,
        code: Option<Code>,
        why: &str,
        out: &mut Effects,
    ) {
        if let Some(attempt) = self.end_exchange() {
            self.end_attempt(m, &attempt, refusal(code, why), out);
        }
    }

    /// Ends the attempt in flight with an answer that no repetition would change.
    pub(super) fn attempt_refused(
        &mut self,
        m: &mut Moment,
        code: Code,
        why: &str,
        out: &mut Effects,
    ) {
        if let Some(action) = self.take_action_in_flight() {
            self.fail(m, action, Failure::Refused, refusal(Some(code), why), out);
        }
    }

    pub(super) fn attempt_mut(&mut self) -> Option<&mut Attempt> {
        self.busy.as_mut()?.attempt.as_deref_mut()
    }

    pub(super) fn action_in_flight(&self) -> Option<ActionId> {
        self.busy.as_ref()?.action_in_flight()
    }

    fn attempt_succeeded(&mut self, m: &mut Moment, answer: &Message, out: &mut Effects) {
        let Some(mut action) = self.take_action_in_flight() else {
            return;
        };
        match self.outcome_of(&action, answer) {
            Ok(outcome) => {
                action.outcome = Some(outcome);
                Self::conclude(m, action, Status::Succeeded, out);
            }
            Err(why) => {
                let outcome = refusal(Some(answer.code), &why);
                self.fail(m, action, Failure::Refused, outcome, out);
            }
        }
    }

    fn end_attempt(
        &mut self,
        m: &mut Moment,
        attempt: &Attempt,
        outcome: Outcome,
        out: &mut Effects,
    ) {
        let has_no_more = |pending: &mut Pending| {
            pending.action.id == attempt.action && pending.action.attempts_left() == 0
        };
        for pending in self.take_pending_if(has_no_more) {
            self.fail(m, pending.action, Failure::Refused, outcome.clone(), out);
        }
    }

    /// A device that was not heard since the attempt began is gone: what was to follow the
    /// attempt waits for it, too, instead of being spent on silence.
    fn note_silence(&mut self, begun_at: Timestamp) {
        if self.record.last_seen_at.is_none_or(|at| at <= begun_at) {
            self.pending_mut()
                .iter_mut()
                .for_each(|pending| pending.ready = false);
        }
    }

    fn end_exchange(&mut self) -> Option<Box<Attempt>> {
        self.busy.as_mut()?.attempt.take()
    }

    fn take_action_in_flight(&mut self) -> Option<Action> {
        let attempt = self.end_exchange()?;
        let index = self.position_of(attempt.action)?;
        self.take_pending(index).map(|pending| pending.action)
    }

    /// The value the request carries, in the type its resource has; an error if it does not fit.
    pub(super) fn value_of(&self, action: &Action) -> Result<Option<Value>, String> {
        let Request::Lwm2m(request) = &action.request;
        match (request.operation, &request.data) {
            (Operation::Write, Some(data)) => {
                let data_type = self.data_type_of(request).unwrap_or(DataType::String);
                let value = Value::parse(data_type, data);
                value
                    .map(Some)
                    .map_err(|e| format!("the value for {} is {e}", request.path))
            }
            (Operation::Read | Operation::Write | Operation::Execute, _) => Ok(None),
        }
    }

    fn message_of(&mut self, m: &mut Moment, action: &Action, value: Option<&Value>) -> Message {
        let Request::Lwm2m(request) = &action.request;
        let label = Label {
            message_id: self.take_message_id(),
            token: token_of(m),
        };
        let root = self
            .record
            .registration
            .as_ref()
            .map_or("", |r| r.links.root());
        let resource = self.resource_of(request);
        let data = request.data.as_deref().unwrap_or_default();
        match request.operation {
            Operation::Read => {
                let accept = resource
                    .and_then(Resource::data_type)
                    .map(payload::format_of);
                operation::read(label, root, request.path, accept)
            }
            Operation::Write => {
                let path = operation::write_target(request.path, resource);
                let (format, bytes) = match value {
                    Some(value) => payload::encode_resource(value),
                    None => (ContentFormat::TEXT, data.into()),
                };
                operation::write(label, root, path, format, bytes)
            }
            Operation::Execute => operation::execute(label, root, request.path, data),
        }
    }

    fn outcome_of(&self, action: &Action, answer: &Message) -> Result<Outcome, String> {
        let Request::Lwm2m(request) = &action.request;
        let payload = match request.operation {
            Operation::Read if answer.block2().is_some_and(|block| block.has_more()) => {
                return Err(
                    "the answer cannot be read: it comes in several blocks, which is not supported"
                        .to_owned(),
                );
            }
            Operation::Read => {
                let data_type = self.data_type_of(request);
                let format = answer.content_format();
                let value = payload::decode_resource(format, &answer.payload, data_type)
                    .map_err(|e| format!("the answer cannot be read: {e}"))?;
                Some(value.to_text().into())
            }
            Operation::Write | Operation::Execute => None,
        };
        let code = Some(answer.code.digits().into());
        Ok(Outcome {
            code,
            payload,
            ..Outcome::default()
        })
    }

    fn data_type_of(&self, request: &Lwm2mRequest) -> Option<DataType> {
        self.resource_of(request)?.data_type()
    }

    /// The resource a request addresses, in the version the device offers; none for one the model
    /// does not know.
    fn resource_of(&self, request: &Lwm2mRequest) -> Option<&'static Resource> {
        let object = request.path.object_id();
        let registration = self.record.registration.as_ref();
        let enabler = registration.map_or(EnablerVersion::V1_1, |r| r.version);
        let version = registration
            .and_then(|r| r.links.version_of(object))
            .unwrap_or_else(|| model::default_version(object, enabler));
        model::resource(object, version, request.path.resource_id()?)
    }
}

/// Four random bytes: enough that nobody off the path guesses one (RFC 7252 section 5.3.1), and
/// as few as a radio should carry.
fn token_of(m: &mut Moment) -> Token {
    Token::new(&m.next_u32().to_be_bytes()).expect("four bytes fit a token")
}

fn refusal(code: Option<Code>, why: &str) -> Outcome {
    Outcome {
        code: code.map(|code| code.digits().into()),
        ..Outcome::failure(why)
    }
}
