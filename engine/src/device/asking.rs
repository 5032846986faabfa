//! What a request of a caller is on the wire, and what an answer to it means (LwM2M Core 1.2
//! sections 6.3 and 6.4).

use protocol::coap::message::Message;
use protocol::coap::token::Token;
use protocol::lwm2m::model::{self, Instances, Object, Resource};
use protocol::lwm2m::operation::{self, Label};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{self, Model, Reading, Sample, Scope, Undecodable};
use protocol::lwm2m::value::{DataType, Value};
use protocol::lwm2m::version::{EnablerVersion, Version};

use crate::action::{Action, Lwm2mRequest, Operation, Outcome, Payload, Request};
use crate::device::Device;
use crate::device::formats::FormatSet;
use crate::device::plain::outcome_of;
use crate::device::queue::{Failure, Unfit};
use crate::device::samples::{self, Measurement};
use crate::effect::Effects;
use crate::event::Cause;
use crate::moment::Moment;

/// What leaves when a request is made.
pub(super) enum Leaving {
    /// A message that the device answers.
    Message(Message),
    /// Bytes of no protocol.
    Bytes(Vec<u8>),
}

impl Device {
    /// The value the request carries, in the type its resource has; an error if the request cannot
    /// be sent as it is.
    pub(super) fn value_of(&self, action: &Action) -> Result<Option<Value>, Unfit> {
        let request = match &action.request {
            Request::Udp(_) | Request::Coap(_) => return Ok(None),
            Request::Lwm2m(request) => request,
        };
        match (request.operation, &request.data) {
            (Operation::Write, Some(data)) => {
                let data_type = self.type_of(request.path).unwrap_or(DataType::String);
                let value = Value::parse(data_type, data);
                value.map(Some).map_err(|e| Unfit {
                    failure: Failure::Unfit,
                    why: format!("the value for {} is {e}", request.path),
                })
            }
            (Operation::ObserveStart, _) => self.may_observe(request.path).map(|()| None),
            (Operation::ObserveEnd, _) => self.may_forget(request.path).map(|()| None),
            (Operation::Read | Operation::Write | Operation::Execute, _) => Ok(None),
        }
    }

    /// What leaves when a request is made, in none of the formats the device refused in this
    /// attempt; an error if there is no other to write it in.
    pub(super) fn leaving_of(
        &mut self,
        m: &mut Moment,
        action: &Action,
        refused: FormatSet,
    ) -> Result<Leaving, Unfit> {
        if let Some(to) = self.peer_for(&action.request)
            && self.terms.rules.is_own(to.address)
        {
            return Err(Unfit {
                failure: Failure::Refused,
                why: format!("{to} is the service itself"),
            });
        }
        match &action.request {
            Request::Udp(request) => Ok(Leaving::Bytes(request.content.bytes())),
            Request::Coap(request) => Ok(Leaving::Message(self.request_over_coap(m, request))),
            Request::Lwm2m(request) => {
                let value = self.value_of(action)?;
                let message = self.operation_on(m, request, value, refused)?;
                Ok(Leaving::Message(message))
            }
        }
    }

    fn operation_on(
        &mut self,
        m: &mut Moment,
        request: &Lwm2mRequest,
        value: Option<Value>,
        refused: FormatSet,
    ) -> Result<Message, Unfit> {
        let label = Label {
            message_id: self.take_message_id(),
            token: self.token_of(m, request),
        };
        let root = self.root();
        let path = request.path;
        let data = request.data.as_deref().unwrap_or_default();
        let accept = || self.format_to_read(path, refused);
        Ok(match request.operation {
            Operation::Read => operation::read(label, root, path, accept()),
            Operation::Write => {
                let value = value.unwrap_or(Value::String(data.into()));
                let planned = self.planned_write(path, &value, refused)?;
                operation::write(label, root, planned.target, planned.format, planned.payload)
            }
            Operation::Execute => operation::execute(label, root, path, data),
            Operation::ObserveStart => operation::observe(label, root, path, accept()),
            Operation::ObserveEnd => operation::cancel_observation(label, root, path, accept()),
        })
    }

    /// Takes what a successful answer to a request says: its outcome, the values in it, and what
    /// is observed from now on. The token is that of the request.
    pub(super) fn take_result(
        &mut self,
        m: &mut Moment,
        action: &Action,
        token: Token,
        answer: &Message,
        out: &mut Effects,
    ) -> Result<Outcome, String> {
        let request = match &action.request {
            // Nobody answers a bare datagram.
            Request::Udp(_) => return Ok(Outcome::default()),
            Request::Coap(_) => return Ok(outcome_of(answer)),
            Request::Lwm2m(request) => request,
        };
        let payload = match request.operation {
            Operation::Write | Operation::Execute => None,
            Operation::Read => Some(self.take_payload(m, action, request.path, answer, out)?),
            Operation::ObserveStart => {
                let payload = self.take_payload(m, action, request.path, answer, out);
                let Some(sequence) = answer.observe() else {
                    self.observation_ended(m, request.path, out);
                    return Err("the device told the value but does not observe it".to_owned());
                };
                // A request that fails begins nothing: the device hears so when it notifies.
                let payload = payload?;
                self.observation_begun(m, (request.path, action.id), token, sequence, out);
                Some(payload)
            }
            Operation::ObserveEnd => {
                self.observation_ended(m, request.path, out);
                self.take_payload(m, action, request.path, answer, out).ok()
            }
        };
        Ok(Outcome {
            code: Some(answer.code.digits().into()),
            payload,
            ..Outcome::default()
        })
    }

    /// The values a device told of what it was asked for, oldest first.
    pub(super) fn values_in(
        &self,
        m: &Moment,
        asked: Scope,
        answer: &Message,
    ) -> Result<Vec<Measurement>, String> {
        let samples = self.samples_in(asked, answer);
        let samples = samples.map_err(|why| why.to_string())?;
        Ok(samples::by_time(m.now(), samples))
    }

    /// What a message says of what it may speak of.
    pub(super) fn samples_in(
        &self,
        scope: Scope,
        message: &Message,
    ) -> Result<Vec<Sample>, Undecodable> {
        let format = message.content_format();
        payload::decode_samples(format, scope, &message.payload, self)
    }

    /// Under which path the device has its objects.
    pub(super) fn root(&self) -> &str {
        let registration = self.record.registration.as_ref();
        registration.map_or("", |r| r.links.root())
    }

    fn take_payload(
        &self,
        m: &mut Moment,
        action: &Action,
        path: Path,
        answer: &Message,
        out: &mut Effects,
    ) -> Result<Payload, String> {
        let told = self.values_in(m, Scope::Within(path), answer);
        let told = told.map_err(|why| format!("the answer cannot be read: {why}"))?;
        let payload = payload_of(path, samples::newest(&told));
        self.tell_measurements(m, Cause::Action(action.id), told, out);
        Ok(payload)
    }

    fn token_of(&self, m: &mut Moment, request: &Lwm2mRequest) -> Token {
        let observed = match request.operation {
            Operation::ObserveStart => self.token_held(request.path),
            Operation::ObserveEnd => self.token_observing(request.path),
            Operation::Read | Operation::Write | Operation::Execute => None,
        };
        observed.unwrap_or_else(|| self.draw_token(m))
    }

    pub(super) fn enabler(&self) -> EnablerVersion {
        let registration = self.record.registration.as_ref();
        registration.map_or(EnablerVersion::V1_1, |r| r.version)
    }

    /// An object in the version the device offers; none for one the model does not know.
    pub(super) fn object_at(&self, object: u16) -> Option<Object<'_>> {
        self.terms.catalog.object(object, self.version_of(object))
    }

    /// The resource a path is or lies in, in the version the device offers; none for one the model
    /// does not know.
    pub(super) fn resource_at(&self, path: Path) -> Option<&Resource> {
        self.object_at(path.object_id())?
            .resource(path.resource_id()?)
    }

    fn version_of(&self, object: u16) -> Version {
        let registration = self.record.registration.as_ref();
        registration
            .and_then(|r| r.links.version_of(object))
            .unwrap_or_else(|| model::default_version(object, self.enabler()))
    }
}

/// What lies at the device's paths, in the versions it offers and as its customer defines it.
impl Model for Device {
    fn type_of(&self, path: Path) -> Option<DataType> {
        self.resource_at(path)?.data_type()
    }

    fn instances_of(&self, object: u16) -> Option<Instances> {
        self.object_at(object).map(|object| object.instances())
    }
}

/// How what was read is shown: the value of a resource alone as text, everything else by path.
fn payload_of(path: Path, reading: Reading) -> Payload {
    match reading.get(&path) {
        Some(value) => Payload::Text(value.to_text().into()),
        None => Payload::Values(reading.into_iter().collect()),
    }
}
