//! What a request of a caller is on the wire, and what an answer to it means: LwM2M operations
//! (LwM2M Core 1.2 sections 6.3 and 6.4), plain CoAP (RFC 7252 section 5) and bare UDP.

use protocol::base64_text;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageKind};
use protocol::coap::token::Token;
use protocol::lwm2m::attributes::{AttributeName, Attributes};
use protocol::lwm2m::links::discovery;
use protocol::lwm2m::operation::{self, ExchangeLabel};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{Model as _, Reading, Scope};
use protocol::lwm2m::value::{DataType, Value};
use protocol::lwm2m::version::EnablerVersion;

use crate::action::{
    Action, CoapRequest, Content, InstanceWrite, Lwm2mRequest, Method, NewInstance, Outcome,
    PayloadType, Request, ResultPayload,
};
use crate::device::codec::Observed;
use crate::device::context::Context;
use crate::device::formats::{AttemptState, FormatSet};
use crate::device::ingest::Ingest;
use crate::device::observations::{Observations, token_of};
use crate::device::queue::{
    ActionFailure, ActionQueue, ObservationChange, Unsendable, observation_in,
};
use crate::device::record::ObservationTarget;
use crate::device::samples::{self, ReadValues};
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
    /// Whether the request can be sent: its values fit their resources, and the device has the
    /// operation in its release.
    pub(super) fn check(&self, action: &Action) -> Result<(), Unsendable> {
        let request = match &action.request {
            Request::Udp(_) | Request::Coap(_) => return Ok(()),
            Request::Lwm2m(request) => request,
        };
        match request {
            Lwm2mRequest::Write(path, data) => self.value_of(*path, data).map(drop),
            Lwm2mRequest::ObserveStart(path, attributes) => {
                self.may_observe(&ObservationTarget::Path(*path))?;
                self.check_attributes(&[*path], attributes)
            }
            Lwm2mRequest::ObserveEnd(path) => self.may_forget(&ObservationTarget::Path(*path)),
            Lwm2mRequest::ObserveCompositeStart(paths, attributes) => {
                self.check_composite()?;
                self.may_observe(&ObservationTarget::Paths(paths.clone()))?;
                self.check_attributes_in_query(attributes)?;
                self.check_attributes(paths, attributes)
            }
            Lwm2mRequest::ObserveCompositeEnd(paths) => {
                self.may_forget(&ObservationTarget::Paths(paths.clone()))
            }
            Lwm2mRequest::Create(NewInstance { values, .. })
            | Lwm2mRequest::WriteInstance(InstanceWrite { values, .. }) => {
                self.values_of(values).map(drop)
            }
            Lwm2mRequest::WriteAttributes(path, attributes) => {
                self.check_attributes(&[*path], attributes)
            }
            Lwm2mRequest::ReadComposite(_) => self.check_composite(),
            Lwm2mRequest::WriteComposite(values) => {
                self.check_composite()?;
                self.values_of(values).map(drop)
            }
            Lwm2mRequest::Read(_)
            | Lwm2mRequest::Execute(..)
            | Lwm2mRequest::Discover(_)
            | Lwm2mRequest::Delete(_) => Ok(()),
        }
    }

    /// What is sent next for a request in an attempt; an error if no format to write it in is left.
    pub(super) fn outgoing_request_of(
        &mut self,
        action: &Action,
        attempt: AttemptState,
    ) -> Result<OutgoingRequest, Unsendable> {
        // Checked here, too: the address may have changed since the request was accepted.
        if let Some(forbidden) = self.cx.reachability().forbidden(&action.request) {
            return Err(unsendable(forbidden.to_string()));
        }
        match &action.request {
            Request::Udp(request) => Ok(OutgoingRequest::Bytes(request.content.bytes())),
            Request::Coap(request) => Ok(OutgoingRequest::Message(self.request_over_coap(request))),
            Request::Lwm2m(request) => {
                self.check(action)?;
                let message = self.operation_on(request, attempt)?;
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
        attempt: AttemptState,
    ) -> Result<Message, Unsendable> {
        let label = ExchangeLabel {
            message_id: self.cx.message_id(),
            token: self.token_of(request, attempt),
        };
        let refused = attempt.refused;
        let codec = self.cx.codec();
        let root = codec.root();
        let accept = |path: &Path| codec.format_to_read(*path, refused.formats);
        Ok(match request {
            Lwm2mRequest::Read(path) => operation::read(label, root, *path, accept(path)),
            Lwm2mRequest::Write(path, data) => {
                let value = self.value_of(*path, data)?;
                let planned = codec.planned_write(*path, &value, refused);
                operation::write(label, root, planned.ok_or_else(|| no_format(request))?)
            }
            Lwm2mRequest::Execute(path, arguments) => {
                operation::execute(label, root, *path, arguments.as_deref().unwrap_or_default())
            }
            Lwm2mRequest::ObserveStart(path, attributes) => {
                let target = &ObservationTarget::Path(*path);
                let observe = codec.observe(label, Observed { target, attributes }, attempt);
                observe.ok_or_else(|| no_format(request))?
            }
            Lwm2mRequest::ObserveCompositeStart(paths, attributes) => {
                let target = &ObservationTarget::Paths(paths.clone());
                let what = Observed { target, attributes };
                let observe = codec.observe(label, what, attempt);
                observe.ok_or_else(|| no_format(request))?
            }
            Lwm2mRequest::ObserveEnd(path) => {
                let target = ObservationTarget::Path(*path);
                self.cancel(label, &target, refused.formats)
                    .ok_or_else(|| no_format(request))?
            }
            Lwm2mRequest::ObserveCompositeEnd(paths) => {
                let target = ObservationTarget::Paths(paths.clone());
                self.cancel(label, &target, refused.formats)
                    .ok_or_else(|| no_format(request))?
            }
            Lwm2mRequest::Discover(path) => operation::discover(label, root, *path),
            Lwm2mRequest::Create(new) if new.values.is_empty() => {
                operation::create(label, root, new.object, None)
            }
            Lwm2mRequest::Create(new) => {
                let values = self.values_of(&new.values)?;
                let planned = codec.planned_creation(new, &values, refused.formats);
                let planned = planned.ok_or_else(|| no_format(request))?;
                operation::create(label, root, new.object, Some(planned))
            }
            Lwm2mRequest::Delete(path) => operation::delete(label, root, *path),
            Lwm2mRequest::WriteAttributes(path, attributes) => {
                operation::write_attributes(label, root, *path, attributes)
            }
            Lwm2mRequest::WriteInstance(write) => {
                let values = self.values_of(&write.values)?;
                let target = (write.path, write.method);
                let planned = codec.planned_writes(target, &values, refused.formats);
                operation::write(label, root, planned.ok_or_else(|| no_format(request))?)
            }
            Lwm2mRequest::ReadComposite(paths) => {
                let format = codec.format_of_composite(refused.formats);
                let format = format.ok_or_else(|| no_format(request))?;
                operation::read_composite(label, root, paths, format, format)
                    .map_err(|why| unsendable(why.to_string()))?
            }
            Lwm2mRequest::WriteComposite(values) => {
                let format = codec.format_of_composite(refused.formats);
                let format = format.ok_or_else(|| no_format(request))?;
                let values = self.values_of(values)?;
                let values = operation::values_in(format, &values, |path| codec.resource_at(path));
                operation::write_composite(label, root, &values, format)
                    .map_err(|why| unsendable(why.to_string()))?
            }
        })
    }

    /// The message that ends an observation.
    fn cancel(
        &self,
        label: ExchangeLabel,
        target: &ObservationTarget,
        refused: FormatSet,
    ) -> Option<Message> {
        let none = Attributes::default();
        // In the order of the request that began it: the device compares the whole request.
        let observation = self.observations.find(target);
        let what = Observed {
            target: observation.map_or(target, |it| &it.target),
            attributes: observation.map_or(&none, |it| &it.attributes),
        };
        self.cx.codec().cancel_observation(label, what, refused)
    }

    /// A value of a caller in the type of its resource.
    fn value_of(&self, path: Path, data: &str) -> Result<Value, Unsendable> {
        let data_type = self.cx.codec().type_of(path);
        let value = Value::parse(data_type.unwrap_or(DataType::String), data);
        value.map_err(|why| unfit(format!("the value for {path} is {why}")))
    }

    /// Values of a caller in the types of their resources, at the paths they are written to. The
    /// error names each that does not fit.
    fn values_of(&self, values: &[(Path, Box<str>)]) -> Result<Reading, Unsendable> {
        let codec = self.cx.codec();
        let mut typed = Reading::new();
        let mut faults = Vec::new();
        for (path, data) in values {
            match self.value_of(*path, data) {
                Ok(value) => {
                    let target = operation::write_target(*path, codec.resource_at(*path));
                    typed.insert(target, value);
                }
                Err(unfit) => faults.push(unfit.why),
            }
        }
        match faults.is_empty() {
            true => Ok(typed),
            false => Err(unfit(faults.join("; "))),
        }
    }

    /// Whether the device takes the attributes of several paths, which it does in a query alone.
    fn check_attributes_in_query(&self, attributes: &Attributes) -> Result<(), Unsendable> {
        let codec = self.cx.codec();
        match codec.takes_in_query(attributes) {
            true => Ok(()),
            false => Err(unsendable(format!(
                "the device speaks LwM2M {}, which has no attributes for several paths; \
                 write-attributes sets them for each path",
                codec.enabler()
            ))),
        }
    }

    /// Whether the device has the attributes in its release, and the resource values that they can
    /// be conditions on. The error names each that does not fit.
    fn check_attributes(&self, paths: &[Path], attributes: &Attributes) -> Result<(), Unsendable> {
        let codec = self.cx.codec();
        let enabler = codec.enabler();
        let listed = |is_wrong: &dyn Fn(AttributeName) -> bool| {
            let names = attributes.iter().map(|attribute| attribute.name);
            let wrong = names.filter(|name| is_wrong(*name));
            let wrong: Vec<&str> = wrong.map(AttributeName::as_str).collect();
            (!wrong.is_empty()).then(|| wrong.join(", "))
        };
        let unknown = listed(&|name| name.since() > enabler).map(|unknown| {
            format!("the device speaks LwM2M {enabler}, which does not have {unknown}")
        });
        let misplaced = paths.iter().filter_map(|path| {
            let data_type = codec.type_of(*path)?;
            let wrong = listed(&|name| !is_condition_on(name, data_type))?;
            let of = data_type.as_str();
            Some(format!(
                "{path} is of type {of}, on which {wrong} can be no condition"
            ))
        });
        let misplaced: Vec<String> = misplaced.collect();
        let failure = match misplaced.is_empty() {
            false => ActionFailure::Unsendable,
            true => ActionFailure::Refused,
        };
        let faults: Vec<String> = unknown.into_iter().chain(misplaced).collect();
        match faults.is_empty() {
            true => Ok(()),
            false => Err(Unsendable {
                failure,
                why: faults.join("; "),
            }),
        }
    }

    /// Whether the device has operations on several paths in its release.
    fn check_composite(&self) -> Result<(), Unsendable> {
        match self.cx.codec().enabler() {
            EnablerVersion::V1_0 => {
                let why = "the device speaks LwM2M 1.0, which has no composite operations";
                Err(unsendable(why.to_owned()))
            }
            EnablerVersion::V1_1 | EnablerVersion::V1_2 => Ok(()),
        }
    }

    fn may_observe(&self, target: &ObservationTarget) -> Result<(), Unsendable> {
        self.observations.may_observe(target).map_err(unsendable)
    }

    /// Whether this is observed, or will be when the turn of the request comes.
    fn may_forget(&self, target: &ObservationTarget) -> Result<(), Unsendable> {
        if self.queue.begins_observing(target) || self.observations.find(target).is_some() {
            return Ok(());
        }
        Err(unsendable(match target {
            ObservationTarget::Path(path) => format!("{path} is not observed"),
            ObservationTarget::Paths(_) => format!("there is no observation of just {target}"),
        }))
    }

    fn token_of(&mut self, request: &Lwm2mRequest, attempt: AttemptState) -> Token {
        let writes_first = |attributes| self.cx.codec().writes_before(attributes, attempt);
        let observed = match observation_in(request) {
            Some((ObservationChange::Begins, _))
                if request.attributes().is_some_and(writes_first) =>
            {
                None
            }
            Some((ObservationChange::Begins, target)) => self.observations.token_held(&target),
            Some((ObservationChange::Ends, target)) => {
                self.observations.find(&target).map(token_of)
            }
            None => None,
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
    let payload = match request {
        Lwm2mRequest::Write(..)
        | Lwm2mRequest::Execute(..)
        | Lwm2mRequest::Delete(_)
        | Lwm2mRequest::WriteAttributes(..)
        | Lwm2mRequest::WriteInstance(_)
        | Lwm2mRequest::WriteComposite(_) => None,
        Lwm2mRequest::Read(path) => Some(take_payload(cx, ingest, *path, answered)?),
        Lwm2mRequest::Discover(path) => Some(take_links(cx, ingest, *path, answered)?),
        Lwm2mRequest::Create(new) => created(cx, new, answer).map(|path| path.to_string().into()),
        Lwm2mRequest::ReadComposite(paths) => Some(take_values(cx, ingest, paths, answered)?),
        Lwm2mRequest::ObserveStart(path, attributes) => {
            let payload = take_payload(cx, ingest, *path, answered);
            let target = &ObservationTarget::Path(*path);
            let what = Observed { target, attributes };
            Some(begin(cx, observations, (what, answered), payload)?)
        }
        Lwm2mRequest::ObserveEnd(path) => {
            observations.ended(cx, &ObservationTarget::Path(*path));
            take_payload(cx, ingest, *path, answered).ok()
        }
        Lwm2mRequest::ObserveCompositeStart(paths, attributes) => {
            let payload = take_values(cx, ingest, paths, answered);
            let target = &ObservationTarget::Paths(paths.clone());
            let what = Observed { target, attributes };
            Some(begin(cx, observations, (what, answered), payload)?)
        }
        Lwm2mRequest::ObserveCompositeEnd(paths) => {
            observations.ended(cx, &ObservationTarget::Paths(paths.clone()));
            take_values(cx, ingest, paths, answered).ok()
        }
    };
    Ok(Outcome {
        code: Some(answer.code.digits().into()),
        payload,
        ..Outcome::default()
    })
}

/// Begins an observation with the answer to its request, and returns the first value.
fn begin(
    cx: &mut Context<'_>,
    observations: &mut Observations<'_>,
    (what, answered): (Observed<'_>, AnsweredAction<'_>),
    payload: Result<ResultPayload, String>,
) -> Result<ResultPayload, String> {
    let Some(sequence) = answered.answer.observe() else {
        observations.ended(cx, what.target);
        let why = "the device returned the value but did not start an observation";
        return Err(why.to_owned());
    };
    // A failed request begins no observation: the device learns that when its notification is
    // rejected.
    let payload = payload?;
    let began = (what, answered.action.id);
    observations.begun(cx, began, (answered.token, sequence));
    Ok(payload)
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
    answered: AnsweredAction<'_>,
) -> Result<ResultPayload, String> {
    let read = cx
        .codec()
        .values_in(cx.now(), Scope::Within(path), answered.answer);
    let what = format!("the response about {path}");
    let reading = publish(cx, ingest, (&what, answered), read)?;
    Ok(payload_of(path, reading))
}

/// Publishes the values of an answer about several paths, and returns them. Values of other paths
/// are left out.
fn take_values(
    cx: &mut Context<'_>,
    ingest: &mut Ingest<'_>,
    paths: &[Path],
    answered: AnsweredAction<'_>,
) -> Result<ResultPayload, String> {
    let read = cx.codec().values_at(cx.now(), paths, answered.answer);
    let what = "the response about several paths";
    let reading = publish(cx, ingest, (what, answered), read)?;
    Ok(ResultPayload::Values(reading.into_iter().collect()))
}

fn publish(
    cx: &mut Context<'_>,
    ingest: &mut Ingest<'_>,
    (what, AnsweredAction { action, answer, .. }): (&str, AnsweredAction<'_>),
    read: Result<ReadValues, String>,
) -> Result<Reading, String> {
    match read {
        Ok(read) => {
            let newest = samples::newest(&read.measurements);
            cx.publish_measurements(Cause::Action(action.id), read.measurements);
            ingest.name_unreadable(cx, (what, &answer.payload), &read.unreadable);
            Ok(newest)
        }
        Err(why) => Err(undecodable(cx, ingest, (what, answer), &why)),
    }
}

/// What the device lists at and below a path.
fn take_links(
    cx: &mut Context<'_>,
    ingest: &mut Ingest<'_>,
    path: Path,
    AnsweredAction { answer, .. }: AnsweredAction<'_>,
) -> Result<ResultPayload, String> {
    let links = match answer.content_format() {
        // Devices of the 1.0 era leave out the format.
        Some(ContentFormat::LINK_FORMAT) | None => {
            let links = discovery::decode(cx.codec().root(), path, &answer.payload);
            links.map_err(|why| why.to_string())
        }
        Some(other) => Err(format!("Content-Format {other} is no list of links")),
    };
    let what = format!("the list of {path}");
    match links {
        Ok(links) => Ok(ResultPayload::Links(links.into())),
        Err(why) => Err(undecodable(cx, ingest, (&what, answer), &why)),
    }
}

/// The instance that the device created, as far as is known: a device that chose it says so in the
/// location (LwM2M Core 1.1 section 6.3.6).
fn created(cx: &Context<'_>, new: &NewInstance, answer: &Message) -> Option<Path> {
    let location: String = answer
        .location_path()
        .map(|part| format!("/{part}"))
        .collect();
    let below = location
        .strip_prefix(cx.codec().root())
        .unwrap_or(&location);
    let at = Path::parse(below).ok();
    let at = at.filter(|at| at.is_instance() && at.object_id() == new.object);
    at.or(new.instance.map(|_| new.address()))
}

/// Logs an answer that cannot be decoded, and returns why.
fn undecodable(
    cx: &mut Context<'_>,
    ingest: &mut Ingest<'_>,
    (what, answer): (&str, &Message),
    why: &str,
) -> String {
    if !answer.payload.is_empty() {
        let what = format!("{what} cannot be decoded: {why}");
        ingest.keep_unreadable(cx, &what, &answer.payload);
    }
    format!("the response cannot be decoded: {why}")
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

/// A request with a value that does not fit its resource.
fn unfit(why: String) -> Unsendable {
    Unsendable {
        failure: ActionFailure::Unsendable,
        why,
    }
}

fn no_format(request: &Lwm2mRequest) -> Unsendable {
    unsendable(match request.address() {
        Some(path) => format!("the device accepts no format for writing {path}"),
        None => "the device accepts no format for several paths".to_owned(),
    })
}

/// Whether an attribute can be a condition on a value of the type (LwM2M Core 1.2 section 7.3.2).
fn is_condition_on(name: AttributeName, data_type: DataType) -> bool {
    match name {
        AttributeName::GreaterThan | AttributeName::LessThan | AttributeName::Step => [
            DataType::Float,
            DataType::Integer,
            DataType::Time,
            DataType::UnsignedInteger,
        ]
        .contains(&data_type),
        AttributeName::Edge => data_type == DataType::Boolean,
        AttributeName::MinimumPeriod
        | AttributeName::MaximumPeriod
        | AttributeName::MinimumEvaluationPeriod
        | AttributeName::MaximumEvaluationPeriod
        | AttributeName::Confirmable
        | AttributeName::MaximumHistoricalQueue => true,
    }
}
