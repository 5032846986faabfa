//! What is the device asked, and how does it answer? (LwM2M Core 1.1 section 6.3, RFC 7252 section
//! 5.2)

use protocol::coap::code::Code;
use protocol::coap::message::{Kind, Message};
use protocol::coap::option;
use protocol::lwm2m::path::Path;

use super::answers::Waiting;
use super::configuration::Lwm2m;
use super::event::{Event, Operation, Output};
use super::outcome::Outcome;
use super::performed::{Obeyed, Performed};
use super::resource::{Answer, Consequence};
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

/// One request of the server.
struct Asked<'a> {
    request: &'a Message,
    about: About,
}

/// What a request is about.
enum About {
    /// A path of the device's objects.
    Object(Path, Operation),
    /// A plain path.
    Plain(String),
}

impl SimulatedDevice {
    /// Takes a request; one that came before is met as it was met then.
    pub(super) fn handle_request(
        &mut self,
        now_ms: i64,
        bytes: &[u8],
        request: &Message,
        out: &mut Vec<Output>,
    ) {
        let reply = match self.session.heard.find(now_ms, request, bytes) {
            Some(reply) => reply.to_vec(),
            None => {
                let reply = self.meet(now_ms, request, out).map(|reply| reply.encode());
                let reply = reply.unwrap_or_default();
                // A Non-confirmable request is answered once (section 4.3).
                let again = match request.kind {
                    Kind::Confirmable => reply.as_slice(),
                    Kind::NonConfirmable | Kind::Acknowledgement | Kind::Reset => &[],
                };
                self.session.heard.remember(now_ms, request, bytes, again);
                reply
            }
        };
        if !reply.is_empty() {
            out.push(Output::Send(reply));
        }
    }

    /// Does what is asked once it is asked wholly, and returns the message that meets the request
    /// at once.
    fn meet(&mut self, now_ms: i64, request: &Message, out: &mut Vec<Output>) -> Option<Message> {
        if request.unknown_critical_option(&KNOWN_OPTIONS).is_some() {
            return Some(match request.kind {
                Kind::Confirmable => self.respond(request, Outcome::of(Code::BAD_OPTION)),
                Kind::NonConfirmable | Kind::Acknowledgement | Kind::Reset => {
                    Message::reset(request.message_id)
                }
            });
        }
        match self.gather(now_ms, request) {
            Ok(whole) => self.obey(now_ms, &whole, out),
            Err(reply) => Some(reply),
        }
    }

    fn obey(&mut self, now_ms: i64, request: &Message, out: &mut Vec<Output>) -> Option<Message> {
        let text = path_of(request);
        let makes_plain = request.code == Code::PUT && self.paths.is_open();
        let object = Path::parse(&text).ok();
        let object = object.filter(|_| self.configuration.lwm2m == Lwm2m::Spoken);
        if self.paths.find(&text).is_some() || (object.is_none() && makes_plain) {
            let about = About::Plain(text);
            return self.answer(now_ms, &Asked { request, about }, out);
        }
        if request.code == Code::FETCH {
            return self.compose(request, out);
        }
        let Some(path) = object else {
            return Some(self.respond(request, Outcome::of(Code::NOT_FOUND)));
        };
        let operation = match request.code {
            Code::GET => match request.observe() {
                Some(0) => Operation::Observe,
                Some(1) => Operation::CancelObservation,
                Some(_) | None => Operation::Read,
            },
            Code::PUT => Operation::Write,
            Code::POST => Operation::Execute,
            _ => return Some(self.respond(request, Outcome::of(Code::METHOD_NOT_ALLOWED))),
        };
        let about = About::Object(path, operation);
        self.answer(now_ms, &Asked { request, about }, out)
    }

    fn answer(&mut self, now_ms: i64, asked: &Asked<'_>, out: &mut Vec<Output>) -> Option<Message> {
        match self.manner_of(&asked.about) {
            Answer::Piggybacked => {
                let outcome = self.perform(now_ms, 0, asked);
                out.push(Output::Told(asked.answered(outcome.code)));
                Some(self.respond(asked.request, outcome))
            }
            Answer::SeparateConfirmable { after_ms } => {
                self.answer_later(now_ms, after_ms, Kind::Confirmable, asked)
            }
            Answer::SeparateNonConfirmable { after_ms } => {
                self.answer_later(now_ms, after_ms, Kind::NonConfirmable, asked)
            }
            Answer::NonConfirmable => {
                let outcome = self.perform(now_ms, 0, asked);
                out.push(Output::Told(asked.answered(outcome.code)));
                Some(self.respond_apart(asked.request, Kind::NonConfirmable, outcome))
            }
            Answer::AcknowledgeOnly => {
                self.perform(now_ms, 0, asked);
                out.extend(asked.left_unanswered());
                acknowledgement_of(asked.request)
            }
            Answer::Silent => {
                out.extend(asked.left_unanswered());
                None
            }
            Answer::Reset => {
                out.extend(asked.left_unanswered());
                Some(Message::reset(asked.request.message_id))
            }
            Answer::Code(code) => {
                out.push(Output::Told(asked.answered(code)));
                Some(self.respond(asked.request, Outcome::of(code)))
            }
        }
    }

    /// How the device answers for a path; one that it does not have, at once.
    fn manner_of(&self, about: &About) -> Answer {
        let chosen = match about {
            About::Object(path, _) => self.resources.find(*path).map(|it| it.answer),
            About::Plain(path) => self.paths.find(path).map(|it| it.answer),
        };
        chosen.unwrap_or(Answer::Piggybacked)
    }

    fn answer_later(
        &mut self,
        now_ms: i64,
        after_ms: u32,
        kind: Kind,
        asked: &Asked<'_>,
    ) -> Option<Message> {
        let outcome = self.perform(now_ms, after_ms, asked);
        let news = asked.answered(outcome.code);
        let response = self.respond_apart(asked.request, kind, outcome);
        let due_at_ms = now_ms.saturating_add(after_ms.into());
        self.session.answers.owe(Waiting {
            due_at_ms,
            response,
            news,
        });
        acknowledgement_of(asked.request)
    }

    fn perform(&mut self, now_ms: i64, answered_after_ms: u32, asked: &Asked<'_>) -> Outcome {
        match &asked.about {
            About::Object(path, operation) => {
                let answered_at_ms = now_ms.saturating_add(answered_after_ms.into());
                self.operate(answered_at_ms, asked.request, *path, *operation)
            }
            About::Plain(path) => self.perform_plain(asked.request, path),
        }
    }

    /// Carries the operation out, and takes note of it if that succeeds.
    fn operate(
        &mut self,
        answered_at_ms: i64,
        request: &Message,
        path: Path,
        operation: Operation,
    ) -> Outcome {
        let mut outcome = self.resources.perform(path, operation, request);
        if !outcome.code.is_success() || blocks::goes_on(request) {
            return outcome;
        }
        self.set_off(answered_at_ms, path, operation);
        outcome.observe = self.observe(request, (path, operation), &outcome);
        let (format, payload) = match operation {
            Operation::Read | Operation::Observe | Operation::CancelObservation => {
                (outcome.format, &outcome.payload)
            }
            Operation::Write | Operation::Execute => (request.content_format(), &request.payload),
        };
        self.performed.add(Performed {
            number: self.performed.count(),
            path,
            operation,
            message_id: request.message_id,
            token: request.token,
            format,
            payload: payload.clone(),
        });
        outcome
    }

    /// Does what a plain request asks, and takes note of it if that succeeds.
    fn perform_plain(&mut self, request: &Message, path: &str) -> Outcome {
        if blocks::goes_on(request) {
            return self.paths.read(path);
        }
        let outcome = self.paths.perform(path, request);
        if outcome.code.is_success() {
            self.obeyed.add(Obeyed {
                number: self.obeyed.count(),
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

    /// Begins or ends an observation if that was asked for, or looks what a change means to those
    /// there are. Returns the number of an answer that begins one.
    fn observe(
        &mut self,
        request: &Message,
        (path, operation): (Path, Operation),
        told: &Outcome,
    ) -> Option<u32> {
        let observations = &mut self.session.observations;
        match operation {
            Operation::Read => None,
            Operation::Write | Operation::Execute => {
                observations.look(&self.resources);
                None
            }
            Operation::Observe => observations.begin(request, path, told),
            Operation::CancelObservation => {
                observations.end(request.token, path);
                None
            }
        }
    }

    fn set_off(&mut self, answered_at_ms: i64, path: Path, operation: Operation) {
        let is_change = matches!(operation, Operation::Write | Operation::Execute);
        let resource = self.resources.find(path).filter(|_| is_change);
        let consequence = resource.map_or(Consequence::Nothing, |resource| resource.consequence);
        let due_at_ms = match consequence {
            Consequence::Nothing => return,
            Consequence::Update => answered_at_ms,
            Consequence::Reboot | Consequence::Disable => {
                answered_at_ms.saturating_add(CONSEQUENCE_AFTER_MS)
            }
        };
        self.session.consequence = Some((due_at_ms, consequence));
    }

    pub(super) fn respond(&mut self, request: &Message, outcome: Outcome) -> Message {
        let message_id = match request.kind {
            Kind::Confirmable => request.message_id,
            Kind::NonConfirmable | Kind::Acknowledgement | Kind::Reset => {
                self.session.message_ids.take()
            }
        };
        let response = Message::response_to(request, outcome.code, message_id);
        self.in_blocks(outcome.fill(response), request)
    }

    fn respond_apart(&mut self, request: &Message, kind: Kind, outcome: Outcome) -> Message {
        let message_id = self.session.message_ids.take();
        let response = Message::separate(kind, outcome.code, message_id, request.token);
        self.in_blocks(outcome.fill(response), request)
    }
}

impl Asked<'_> {
    fn answered(&self, code: Code) -> Event {
        match &self.about {
            About::Object(path, operation) => Event::Answered {
                path: *path,
                operation: *operation,
                code,
            },
            About::Plain(path) => Event::AnsweredPlain {
                path: path.clone(),
                code,
            },
        }
    }

    fn left_unanswered(&self) -> Option<Output> {
        match self.about {
            About::Object(path, operation) => {
                Some(Output::Told(Event::LeftUnanswered { path, operation }))
            }
            About::Plain(_) => None,
        }
    }
}

pub(super) fn acknowledgement_of(request: &Message) -> Option<Message> {
    let is_confirmable = request.kind == Kind::Confirmable;
    is_confirmable.then(|| Message::acknowledgement(request.message_id))
}

fn path_of(request: &Message) -> String {
    let mut text = String::with_capacity(16);
    for segment in request.uri_path() {
        text.push('/');
        text.push_str(segment);
    }
    text
}
