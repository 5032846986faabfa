//! Which requests does the device receive, and how does it answer them? (LwM2M Core 1.1 section
//! 6.3, RFC 7252 section 5.2)

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageKind};
use protocol::coap::option;
use protocol::lwm2m::path::Path;

use super::answers::PendingAnswer;
use super::configuration::Lwm2m;
use super::event::{DeviceEvent, DeviceOutput, Operation};
use super::operation_log::PerformedRequest;
use super::outcome::ResponseContent;
use super::resource::{AnswerMode, Consequence};
use super::{CONSEQUENCE_AFTER_MS, SimulatedDevice, blocks};

/// The critical options this device understands.
const KNOWN_OPTIONS: [u16; 7] = [
    option::URI_HOST,
    option::URI_PORT,
    option::URI_PATH,
    option::URI_QUERY,
    option::ACCEPT,
    option::BLOCK1,
    option::BLOCK2,
];

/// A request of the server.
struct IncomingRequest<'a> {
    request: &'a Message,
    about: RequestTarget,
}

/// The target of a request.
enum RequestTarget {
    /// A path of the device's objects.
    Object(Path, Operation),
    /// A path over plain CoAP.
    Plain(String),
}

impl SimulatedDevice {
    /// Handles a request; a duplicate gets the answer of the first copy.
    pub(super) fn handle_request(
        &mut self,
        now_ms: i64,
        bytes: &[u8],
        request: &Message,
        out: &mut Vec<DeviceOutput>,
    ) {
        let reply = match self.session.dedup.find(now_ms, request, bytes) {
            Some(reply) => reply.to_vec(),
            None => {
                let reply = self
                    .answer_request(now_ms, request, out)
                    .map(|reply| reply.encode());
                let reply = reply.unwrap_or_default();
                // A Non-confirmable request is answered once (section 4.3).
                let again = match request.kind {
                    MessageKind::Confirmable => reply.as_slice(),
                    MessageKind::NonConfirmable
                    | MessageKind::Acknowledgement
                    | MessageKind::Reset => &[],
                };
                self.session.dedup.remember(now_ms, request, bytes, again);
                reply
            }
        };
        if !reply.is_empty() {
            out.push(DeviceOutput::Send(reply));
        }
    }

    /// Performs a request once it is complete, and returns its immediate answer.
    fn answer_request(
        &mut self,
        now_ms: i64,
        request: &Message,
        out: &mut Vec<DeviceOutput>,
    ) -> Option<Message> {
        if request.unknown_critical_option(&KNOWN_OPTIONS).is_some() {
            return Some(match request.kind {
                MessageKind::Confirmable => {
                    self.respond(request, ResponseContent::of(Code::BAD_OPTION))
                }
                MessageKind::NonConfirmable | MessageKind::Acknowledgement | MessageKind::Reset => {
                    Message::reset(request.message_id)
                }
            });
        }
        match self.gather(now_ms, request) {
            Ok(whole) => self.obey(now_ms, &whole, out),
            Err(reply) => Some(reply),
        }
    }

    fn obey(
        &mut self,
        now_ms: i64,
        request: &Message,
        out: &mut Vec<DeviceOutput>,
    ) -> Option<Message> {
        if let Some(reply) = self.obey_bootstrap(now_ms, request, out) {
            return Some(reply);
        }
        let text = path_of(request);
        let makes_plain = request.code == Code::PUT && self.paths.is_open();
        let object = Path::parse(&text).ok();
        let object = object.filter(|_| self.configuration.lwm2m == Lwm2m::Spoken);
        if self.paths.find(&text).is_some() || (object.is_none() && makes_plain) {
            let about = RequestTarget::Plain(text);
            return self.answer(now_ms, &IncomingRequest { request, about }, out);
        }
        if request.code == Code::FETCH {
            return self.compose(now_ms, request, out);
        }
        if request.code == Code::IPATCH {
            return self.write_composite(request, out);
        }
        let Some(path) = object else {
            return Some(self.respond(request, ResponseContent::of(Code::NOT_FOUND)));
        };
        let operation = match request.code {
            Code::GET => match request.observe() {
                Some(0) => Operation::Observe,
                Some(1) => Operation::CancelObservation,
                Some(_) | None if is_discover(request) => Operation::Discover,
                Some(_) | None => Operation::Read,
            },
            Code::PUT if request.uri_query().next().is_some() => Operation::WriteAttributes,
            Code::PUT => Operation::Write,
            Code::POST if path.is_instance() => Operation::Write,
            Code::POST if path.is_object() => Operation::Create,
            Code::POST => Operation::Execute,
            Code::DELETE => Operation::Delete,
            _ => return Some(self.respond(request, ResponseContent::of(Code::METHOD_NOT_ALLOWED))),
        };
        let about = RequestTarget::Object(path, operation);
        self.answer(now_ms, &IncomingRequest { request, about }, out)
    }

    fn answer(
        &mut self,
        now_ms: i64,
        incoming: &IncomingRequest<'_>,
        out: &mut Vec<DeviceOutput>,
    ) -> Option<Message> {
        match self.answer_mode_of(&incoming.about) {
            AnswerMode::Piggybacked => {
                let outcome = self.perform(now_ms, 0, incoming);
                out.push(DeviceOutput::Report(incoming.answered(outcome.code)));
                Some(self.respond(incoming.request, outcome))
            }
            AnswerMode::SeparateConfirmable { after_ms } => {
                self.answer_later(now_ms, after_ms, MessageKind::Confirmable, incoming)
            }
            AnswerMode::SeparateNonConfirmable { after_ms } => {
                self.answer_later(now_ms, after_ms, MessageKind::NonConfirmable, incoming)
            }
            AnswerMode::NonConfirmable => {
                let outcome = self.perform(now_ms, 0, incoming);
                out.push(DeviceOutput::Report(incoming.answered(outcome.code)));
                Some(self.respond_apart(incoming.request, MessageKind::NonConfirmable, outcome))
            }
            AnswerMode::AcknowledgeOnly => {
                self.perform(now_ms, 0, incoming);
                out.extend(incoming.left_unanswered());
                acknowledgement_of(incoming.request)
            }
            AnswerMode::Silent => {
                out.extend(incoming.left_unanswered());
                None
            }
            AnswerMode::Reset => {
                out.extend(incoming.left_unanswered());
                Some(Message::reset(incoming.request.message_id))
            }
            AnswerMode::Code(code) => {
                out.push(DeviceOutput::Report(incoming.answered(code)));
                Some(self.respond(incoming.request, ResponseContent::of(code)))
            }
        }
    }

    /// How the device answers requests for a target; for unknown ones it answers in the
    /// acknowledgement.
    fn answer_mode_of(&self, about: &RequestTarget) -> AnswerMode {
        let chosen = match about {
            RequestTarget::Object(path, _) => self.resources.find(*path).map(|it| it.answer),
            RequestTarget::Plain(path) => self.paths.find(path).map(|it| it.answer),
        };
        chosen.unwrap_or(AnswerMode::Piggybacked)
    }

    fn answer_later(
        &mut self,
        now_ms: i64,
        after_ms: u32,
        kind: MessageKind,
        incoming: &IncomingRequest<'_>,
    ) -> Option<Message> {
        let outcome = self.perform(now_ms, after_ms, incoming);
        let event = incoming.answered(outcome.code);
        let response = self.respond_apart(incoming.request, kind, outcome);
        let due_at_ms = now_ms.saturating_add(after_ms.into());
        self.session.answers.owe(PendingAnswer {
            due_at_ms,
            response,
            event,
        });
        acknowledgement_of(incoming.request)
    }

    fn perform(
        &mut self,
        now_ms: i64,
        answered_after_ms: u32,
        incoming: &IncomingRequest<'_>,
    ) -> ResponseContent {
        match &incoming.about {
            RequestTarget::Object(path, operation) => {
                let answered_at_ms = now_ms.saturating_add(answered_after_ms.into());
                self.operate(answered_at_ms, incoming.request, *path, *operation)
            }
            RequestTarget::Plain(path) => self.perform_plain(incoming.request, path),
        }
    }

    /// Performs an operation, and logs it if it succeeds.
    fn operate(
        &mut self,
        answered_at_ms: i64,
        request: &Message,
        path: Path,
        operation: Operation,
    ) -> ResponseContent {
        if let Some(code) = self.refusal_by_update(path, operation) {
            return ResponseContent::of(code);
        }
        let mut outcome = self.resources.perform(path, operation, request);
        if !outcome.code.is_success() || blocks::continues(request) {
            return outcome;
        }
        self.set_off(answered_at_ms, path, operation);
        outcome.observe = self.observe(answered_at_ms, request, (path, operation), &outcome);
        let content: (_, &[u8]) = match operation {
            Operation::Read
            | Operation::Observe
            | Operation::CancelObservation
            | Operation::Discover => (outcome.format, &outcome.payload),
            Operation::Write
            | Operation::Execute
            | Operation::Create
            | Operation::Delete
            | Operation::WriteAttributes => (request.content_format(), &request.payload),
        };
        self.performed
            .add_operation(request, (path, operation), content);
        outcome
    }

    /// Performs a plain CoAP request, and logs it if it succeeds.
    fn perform_plain(&mut self, request: &Message, path: &str) -> ResponseContent {
        if blocks::continues(request) {
            return self.paths.read(path);
        }
        let outcome = self.paths.perform(path, request);
        if outcome.code.is_success() {
            self.plain_performed.add(PerformedRequest {
                number: self.plain_performed.count(),
                path: path.to_owned(),
                method: request.code,
                message_id: request.message_id,
                token: request.token,
                given: request.payload.clone(),
                answered: outcome.payload.clone(),
            });
        }
        outcome
    }

    /// Starts or ends an observation if the request says so, or looks for changes of observed
    /// values. Returns the sequence number of a response that starts an observation.
    fn observe(
        &mut self,
        now_ms: i64,
        request: &Message,
        (path, operation): (Path, Operation),
        content: &ResponseContent,
    ) -> Option<u32> {
        let observations = &mut self.session.observations;
        match operation {
            Operation::Read | Operation::Discover | Operation::WriteAttributes => None,
            Operation::Write | Operation::Execute | Operation::Create | Operation::Delete => {
                observations.look(&self.resources);
                None
            }
            Operation::Observe => {
                let observed = (&[path][..], &self.resources);
                observations.begin(now_ms, request, observed, content)
            }
            Operation::CancelObservation => {
                observations.end(request.token, &[path]);
                None
            }
        }
    }

    fn set_off(&mut self, answered_at_ms: i64, path: Path, operation: Operation) {
        let is_change = matches!(operation, Operation::Write | Operation::Execute);
        let resource = self.resources.find(path).filter(|_| is_change);
        let consequence = match operation {
            // The server learns of it in an update (LwM2M Core 1.1 section 6.2.2).
            Operation::Create | Operation::Delete => Consequence::Update,
            Operation::Read
            | Operation::Write
            | Operation::Execute
            | Operation::Observe
            | Operation::CancelObservation
            | Operation::Discover
            | Operation::WriteAttributes => {
                resource.map_or(Consequence::Nothing, |resource| resource.consequence)
            }
        };
        let due_at_ms = match consequence {
            Consequence::Nothing => return,
            Consequence::Update => answered_at_ms,
            Consequence::Download { .. }
            | Consequence::Receive { .. }
            | Consequence::Install { .. } => {
                return self.begin_update_step(answered_at_ms, consequence);
            }
            Consequence::Reboot | Consequence::Disable => {
                answered_at_ms.saturating_add(CONSEQUENCE_AFTER_MS)
            }
        };
        self.session.consequence = Some((due_at_ms, consequence));
    }

    pub(super) fn respond(&mut self, request: &Message, outcome: ResponseContent) -> Message {
        let message_id = match request.kind {
            MessageKind::Confirmable => request.message_id,
            MessageKind::NonConfirmable | MessageKind::Acknowledgement | MessageKind::Reset => {
                self.session.message_ids.take()
            }
        };
        let response = Message::response_to(request, outcome.code, message_id);
        self.in_blocks(outcome.fill(response), request)
    }

    fn respond_apart(
        &mut self,
        request: &Message,
        kind: MessageKind,
        outcome: ResponseContent,
    ) -> Message {
        let message_id = self.session.message_ids.take();
        let response = Message::separate(kind, outcome.code, message_id, request.token);
        self.in_blocks(outcome.fill(response), request)
    }
}

impl IncomingRequest<'_> {
    fn answered(&self, code: Code) -> DeviceEvent {
        match &self.about {
            RequestTarget::Object(path, operation) => DeviceEvent::Answered {
                path: *path,
                operation: *operation,
                code,
            },
            RequestTarget::Plain(path) => DeviceEvent::AnsweredPlain {
                path: path.clone(),
                code,
            },
        }
    }

    fn left_unanswered(&self) -> Option<DeviceOutput> {
        match self.about {
            RequestTarget::Object(path, operation) => {
                Some(DeviceOutput::Report(DeviceEvent::LeftUnanswered {
                    path,
                    operation,
                }))
            }
            RequestTarget::Plain(_) => None,
        }
    }
}

pub(super) fn acknowledgement_of(request: &Message) -> Option<Message> {
    let is_confirmable = request.kind == MessageKind::Confirmable;
    is_confirmable.then(|| Message::acknowledgement(request.message_id))
}

fn is_discover(request: &Message) -> bool {
    request.accept() == Some(ContentFormat::LINK_FORMAT)
}

pub(super) fn path_of(request: &Message) -> String {
    let mut text = String::with_capacity(16);
    for segment in request.uri_path() {
        text.push('/');
        text.push_str(segment);
    }
    text
}
