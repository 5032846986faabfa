//! What a request of a caller is on the wire, and what an answer to it means: LwM2M operations
//! (LwM2M Core 1.2 sections 6.3 and 6.4), plain CoAP (RFC 7252 section 5) and bare UDP.

use protocol::base64_text;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageKind};
use protocol::coap::token::Token;
use protocol::lwm2m::operation::{self, ExchangeLabel};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{Model as _, Reading, Scope};
use protocol::lwm2m::value::{DataType, Value};

use crate::action::{
    Action, CoapRequest, Content, Lwm2mRequest, Method, Operation, Outcome, PayloadType, Request,
    ResultPayload,
};
use crate::device::context::Context;
use crate::device::formats::Refused;
use crate::device::ingest::Ingest;
use crate::device::observations::Observations;
use crate::device::queue::{ActionFailure, ActionQueue, Unsendable};
use crate::device::samples;
use crate::diagnostic;
use crate::event::Cause;

/// What is sent for a request.
pub(super) enum OutgoingRequest {
    /// A CoAP message.
    Message(Message),
    /// A bare datagram.
    Bytes(Vec<u8>),
}

/// What is needed to check a request and to build its message.
pub(super) struct RequestContext<'a, 's> {
    pub(super) cx: &'a mut Context<'s>,
    pub(super) observations: &'a Observations<'s>,
    pub(super) queue: &'a ActionQueue,
}

/// A request and its answer.
#[derive(Clone, Copy)]
pub(super) struct AnsweredAction<'a> {
    pub(super) action: &'a Action,
    /// The token of the request.
    pub(super) token: Token,
    pub(super) answer: &'a Message,
}

impl RequestContext<'_, '_> {
    /// The value that the request carries, in the type of its resource; an error if the request
    /// cannot be sent.
    pub(super) fn value_of(&self, action: &Action) -> Result<Option<Value>, Unsendable> {
        let request = match &action.request {
            Request::Udp(_) | Request::Coap(_) => return Ok(None),
            Request::Lwm2m(request) => request,
        };
        match (request.operation, &request.data) {
            (Operation::Write, Some(data)) => {
                let data_type = self.cx.codec().type_of(request.path);
                let value = Value::parse(data_type.unwrap_or(DataType::String), data);
                value.map(Some).map_err(|e| Unsendable {
                    failure: ActionFailure::Unsendable,
                    why: format!("the value for {} is {e}", request.path),
                })
            }
            (Operation::ObserveStart, _) => {
                let may_observe = self.observations.may_observe(request.path);
                may_observe.map(|()| None).map_err(unsendable)
            }
            (Operation::ObserveEnd, _) => self.may_forget(request.path).map(|()| None),
            (Operation::Read | Operation::Write | Operation::Execute, _) => Ok(None),
        }
    }

    /// What is sent for a request, without what the device refused in this attempt; an error if no
    /// format to write it in is left.
    pub(super) fn outgoing_request_of(
        &mut self,
        action: &Action,
        refused: Refused,
    ) -> Result<OutgoingRequest, Unsendable> {
        // Checked here, too: the address may have changed since the request was accepted.
        if let Some(forbidden) = self.cx.reachability().forbidden(&action.request) {
            return Err(unsendable(forbidden.to_string()));
        }
        match &action.request {
            Request::Udp(request) => Ok(OutgoingRequest::Bytes(request.content.bytes())),
            Request::Coap(request) => Ok(OutgoingRequest::Message(self.request_over_coap(request))),
            Request::Lwm2m(request) => {
                let value = self.value_of(action)?;
                let message = self.operation_on(request, value, refused)?;
                Ok(OutgoingRequest::Message(message))
            }
        }
    }

    fn request_over_coap(&mut self, request: &CoapRequest) -> Message {
        let ExchangeLabel { message_id, token } = self.observations.label(self.cx);
        let code = code_of(request.method);
        let message = Message::request(MessageKind::Confirmable, code, message_id, token);
        let content = request.content.as_ref().map(Content::bytes);
        request
            .target
            .address(message)
            .with_payload(content.unwrap_or_default())
    }

    fn operation_on(
        &mut self,
        request: &Lwm2mRequest,
        value: Option<Value>,
        refused: Refused,
    ) -> Result<Message, Unsendable> {
        let label = ExchangeLabel {
            message_id: self.cx.message_id(),
            token: self.token_of(request),
        };
        let codec = self.cx.codec();
        let (root, path) = (codec.root(), request.path);
        let data = request.data.as_deref().unwrap_or_default();
        let accept = || codec.format_to_read(path, refused.formats);
        Ok(match request.operation {
            Operation::Read => operation::read(label, root, path, accept()),
            Operation::Write => {
                let value = value.unwrap_or(Value::String(data.into()));
                let planned = codec.planned_write(path, &value, refused);
                let planned = planned.ok_or_else(|| {
                    unsendable(format!("the device accepts no format for writing {path}"))
                })?;
                operation::write(label, root, planned)
            }
            Operation::Execute => operation::execute(label, root, path, data),
            Operation::ObserveStart => operation::observe(label, root, path, accept()),
            Operation::ObserveEnd => operation::cancel_observation(label, root, path, accept()),
        })
    }

    /// Whether the path is observed, or will be when the turn of the request comes.
    fn may_forget(&self, path: Path) -> Result<(), Unsendable> {
        if self.queue.begins_observing(path) || self.observations.is_observed(path) {
            return Ok(());
        }
        Err(unsendable(format!("{path} is not observed")))
    }

    fn token_of(&mut self, request: &Lwm2mRequest) -> Token {
        let observed = match request.operation {
            Operation::ObserveStart => self.observations.token_held(request.path),
            Operation::ObserveEnd => self.observations.token_observing(request.path),
            Operation::Read | Operation::Write | Operation::Execute => None,
        };
        observed.unwrap_or_else(|| self.observations.draw_token(self.cx.m))
    }
}

/// Handles a successful answer to a request: publishes its values, begins or ends an observation,
/// and returns the outcome.
pub(super) fn take_result(
    cx: &mut Context<'_>,
    ingest: &mut Ingest<'_>,
    observations: &mut Observations<'_>,
    answered: AnsweredAction<'_>,
) -> Result<Outcome, String> {
    let AnsweredAction { action, answer, .. } = answered;
    let request = match &action.request {
        // A bare datagram has no answer.
        Request::Udp(_) => return Ok(Outcome::default()),
        Request::Coap(_) => return Ok(outcome_of(answer)),
        Request::Lwm2m(request) => request,
    };
    let path = request.path;
    let payload = match request.operation {
        Operation::Write | Operation::Execute => None,
        Operation::Read => Some(take_payload(cx, ingest, path, answered)?),
        Operation::ObserveStart => {
            let payload = take_payload(cx, ingest, path, answered);
            let Some(sequence) = answer.observe() else {
                observations.ended(cx, path);
                let why = "the device returned the value but did not start an observation";
                return Err(why.to_owned());
            };
            // A failed request begins no observation: the device learns that when its notification
            // is rejected.
            let payload = payload?;
            observations.begun(cx, (path, action.id), (answered.token, sequence));
            Some(payload)
        }
        Operation::ObserveEnd => {
            observations.ended(cx, path);
            take_payload(cx, ingest, path, answered).ok()
        }
    };
    Ok(Outcome {
        code: Some(answer.code.digits().into()),
        payload,
        ..Outcome::default()
    })
}

/// The outcome of a request that the device refused, with the diagnostic text of the device. Over
/// CoAP the payload is shown, too.
pub(super) fn refusal_in(answer: &Message, action: Option<&Action>) -> Outcome {
    let why = match diagnostic::text_of(answer) {
        Some(text) => format!("the device answered {}: \"{text}\"", answer.code),
        None => format!("the device answered {}", answer.code),
    };
    let refused = refusal(answer.code, &why);
    match action.map(|action| &action.request) {
        Some(Request::Coap(_)) => Outcome {
            error: refused.error,
            ..outcome_of(answer)
        },
        Some(Request::Udp(_) | Request::Lwm2m(_)) | None => refused,
    }
}

/// The outcome of a request whose answer is an error or cannot be used.
pub(super) fn refusal(code: Code, why: &str) -> Outcome {
    Outcome {
        code: Some(code.digits().into()),
        ..Outcome::failure(why)
    }
}

/// Publishes the values of an answer that can be read, and returns them. What cannot be decoded is
/// logged for the customer, too.
fn take_payload(
    cx: &mut Context<'_>,
    ingest: &mut Ingest<'_>,
    path: Path,
    AnsweredAction { action, answer, .. }: AnsweredAction<'_>,
) -> Result<ResultPayload, String> {
    match cx.codec().values_in(cx.now(), Scope::Within(path), answer) {
        Ok(read) => {
            let payload = payload_of(path, samples::newest(&read.measurements));
            cx.publish_measurements(Cause::Action(action.id), read.measurements);
            let what = format!("the response about {path}");
            ingest.name_unreadable(cx, (&what, &answer.payload), &read.unreadable);
            Ok(payload)
        }
        Err(why) => {
            if !answer.payload.is_empty() {
                let what = format!("the response about {path} cannot be decoded: {why}");
                ingest.keep_unreadable(cx, &what, &answer.payload);
            }
            Err(format!("the response cannot be decoded: {why}"))
        }
    }
}

/// How values are shown: the value of a single resource as text, everything else by path.
fn payload_of(path: Path, reading: Reading) -> ResultPayload {
    match reading.get(&path) {
        Some(value) => ResultPayload::Text(value.to_text().into()),
        None => ResultPayload::Values(reading.into_iter().collect()),
    }
}

/// The outcome of a caller's CoAP request.
fn outcome_of(answer: &Message) -> Outcome {
    let format = answer.content_format();
    let has_payload = !answer.payload.is_empty();
    let (text, payload_type) = has_payload
        .then(|| written(format, &answer.payload))
        .unzip();
    Outcome {
        code: Some(answer.code.digits().into()),
        payload: text.map(ResultPayload::Text),
        payload_type,
        error: None,
    }
}

/// The payload of an answer: as text if its format is textual and it is valid UTF-8, else in
/// base64.
fn written(format: Option<ContentFormat>, bytes: &[u8]) -> (Box<str>, PayloadType) {
    let is_printable = format.is_some_and(ContentFormat::is_printable);
    match std::str::from_utf8(bytes) {
        Ok(text) if is_printable => (text.into(), PayloadType::Text),
        Ok(_) | Err(_) => (base64_text::encode(bytes).into(), PayloadType::Base64),
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

fn unsendable(why: String) -> Unsendable {
    Unsendable {
        failure: ActionFailure::Refused,
        why,
    }
}
