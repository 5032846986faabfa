//! What is the device asked, and how does it answer? (LwM2M Core 1.1 section 6.3, RFC 7252 section
//! 5.2)

use protocol::coap::code::Code;
use protocol::coap::message::{Kind, Message};
use protocol::coap::option;
use protocol::lwm2m::path::Path;

use super::answers::Waiting;
use super::event::{Event, Operation, Output};
use super::performed::Performed;
use super::resource::{Answer, Consequence};
use super::resources::Outcome;
use super::{CONSEQUENCE_AFTER_MS, SimulatedDevice};

/// The critical options this device understands; it knows no block-wise transfer.
const KNOWN_OPTIONS: [u16; 5] = [
    option::URI_HOST,
    option::URI_PORT,
    option::URI_PATH,
    option::URI_QUERY,
    option::ACCEPT,
];

/// One request of the server for a path of the device.
struct Asked<'a> {
    request: &'a Message,
    path: Path,
    operation: Operation,
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
                let reply = self.obey(now_ms, request, out).map(|reply| reply.encode());
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

    /// Does what is asked, and returns the message that meets the request at once.
    fn obey(&mut self, now_ms: i64, request: &Message, out: &mut Vec<Output>) -> Option<Message> {
        if request.unknown_critical_option(&KNOWN_OPTIONS).is_some() {
            return Some(match request.kind {
                Kind::Confirmable => self.respond(request, Outcome::of(Code::BAD_OPTION)),
                Kind::NonConfirmable | Kind::Acknowledgement | Kind::Reset => {
                    Message::reset(request.message_id)
                }
            });
        }
        if request.code == Code::FETCH {
            return self.compose(request, out);
        }
        let Some(path) = path_of(request) else {
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
        self.answer(
            now_ms,
            &Asked {
                request,
                path,
                operation,
            },
            out,
        )
    }

    fn answer(&mut self, now_ms: i64, asked: &Asked<'_>, out: &mut Vec<Output>) -> Option<Message> {
        let resource = self.resources.find(asked.path);
        match resource.map_or(Answer::Piggybacked, |resource| resource.answer) {
            Answer::Piggybacked => {
                let outcome = self.perform(now_ms, 0, asked);
                out.push(asked.answered(outcome.code));
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
                out.push(asked.answered(outcome.code));
                Some(self.respond_apart(asked.request, Kind::NonConfirmable, outcome))
            }
            Answer::AcknowledgeOnly => {
                self.perform(now_ms, 0, asked);
                out.push(asked.left_unanswered());
                acknowledgement_of(asked.request)
            }
            Answer::Silent => {
                out.push(asked.left_unanswered());
                None
            }
            Answer::Reset => {
                out.push(asked.left_unanswered());
                Some(Message::reset(asked.request.message_id))
            }
            Answer::Code(code) => {
                out.push(asked.answered(code));
                Some(self.respond(asked.request, Outcome::of(code)))
            }
        }
    }

    fn answer_later(
        &mut self,
        now_ms: i64,
        after_ms: u32,
        kind: Kind,
        asked: &Asked<'_>,
    ) -> Option<Message> {
        let outcome = self.perform(now_ms, after_ms, asked);
        let response = self.respond_apart(asked.request, kind, outcome);
        let due_at_ms = now_ms.saturating_add(after_ms.into());
        let (path, operation) = (asked.path, asked.operation);
        self.session.answers.owe(Waiting {
            due_at_ms,
            response,
            path,
            operation,
        });
        acknowledgement_of(asked.request)
    }

    /// Carries the operation out, and takes note of it if that succeeds.
    fn perform(&mut self, now_ms: i64, answered_after_ms: u32, asked: &Asked<'_>) -> Outcome {
        let Asked {
            request,
            path,
            operation,
        } = *asked;
        let mut outcome = self.resources.perform(path, operation, request);
        if outcome.code.is_success() {
            self.set_off(now_ms, answered_after_ms, asked);
            outcome.observe = self.observe(asked, &outcome);
            let (format, payload) = match operation {
                Operation::Read | Operation::Observe | Operation::CancelObservation => {
                    (outcome.format, &outcome.payload)
                }
                Operation::Write | Operation::Execute => {
                    (request.content_format(), &request.payload)
                }
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
        }
        outcome
    }

    /// Begins or ends an observation if that was asked for, or looks what a change means to those
    /// there are. Returns the number of an answer that begins one.
    fn observe(&mut self, asked: &Asked<'_>, told: &Outcome) -> Option<u32> {
        let observations = &mut self.session.observations;
        match asked.operation {
            Operation::Read => None,
            Operation::Write | Operation::Execute => {
                observations.look(&self.resources);
                None
            }
            Operation::Observe => observations.begin(asked.request, asked.path, told),
            Operation::CancelObservation => {
                observations.end(asked.request.token, asked.path);
                None
            }
        }
    }

    fn set_off(&mut self, now_ms: i64, answered_after_ms: u32, asked: &Asked<'_>) {
        let is_change = matches!(asked.operation, Operation::Write | Operation::Execute);
        let resource = self.resources.find(asked.path).filter(|_| is_change);
        let consequence = resource.map_or(Consequence::Nothing, |resource| resource.consequence);
        let answered_at_ms = now_ms.saturating_add(answered_after_ms.into());
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
        outcome.fill(response)
    }

    fn respond_apart(&mut self, request: &Message, kind: Kind, outcome: Outcome) -> Message {
        let message_id = self.session.message_ids.take();
        let response = Message::separate(kind, outcome.code, message_id, request.token);
        outcome.fill(response)
    }
}

impl Asked<'_> {
    fn answered(&self, code: Code) -> Output {
        let (path, operation) = (self.path, self.operation);
        Output::Told(Event::Answered {
            path,
            operation,
            code,
        })
    }

    fn left_unanswered(&self) -> Output {
        let (path, operation) = (self.path, self.operation);
        Output::Told(Event::LeftUnanswered { path, operation })
    }
}

pub(super) fn acknowledgement_of(request: &Message) -> Option<Message> {
    let is_confirmable = request.kind == Kind::Confirmable;
    is_confirmable.then(|| Message::acknowledgement(request.message_id))
}

fn path_of(request: &Message) -> Option<Path> {
    let mut text = String::with_capacity(16);
    for segment in request.uri_path() {
        text.push('/');
        text.push_str(segment);
    }
    Path::parse(&text).ok()
}
