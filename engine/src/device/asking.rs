//! What a request of a caller is on the wire, and what an answer to it means (LwM2M Core 1.2
//! sections 6.3 and 6.4).

use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;
use protocol::coap::token::Token;
use protocol::lwm2m::model::{self, Resource};
use protocol::lwm2m::operation::{self, Label};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{self, Reading};
use protocol::lwm2m::value::{DataType, Value};
use protocol::lwm2m::version::EnablerVersion;

use crate::action::{Action, Lwm2mRequest, Operation, Outcome, Payload, Request};
use crate::device::Device;
use crate::device::queue::{Failure, Unfit};
use crate::effect::Effects;
use crate::event::Cause;
use crate::moment::Moment;

impl Device {
    /// The value the request carries, in the type its resource has; an error if the request cannot
    /// be sent as it is.
    pub(super) fn value_of(&self, action: &Action) -> Result<Option<Value>, Unfit> {
        let Request::Lwm2m(request) = &action.request;
        match (request.operation, &request.data) {
            (Operation::Write, Some(data)) => {
                let data_type = self.data_type_at(request.path).unwrap_or(DataType::String);
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

    pub(super) fn message_of(
        &mut self,
        m: &mut Moment,
        action: &Action,
        value: Option<Value>,
    ) -> Message {
        let Request::Lwm2m(request) = &action.request;
        let label = Label {
            message_id: self.take_message_id(),
            token: self.token_of(m, request),
        };
        let root = self.root();
        let path = request.path;
        let data = request.data.as_deref().unwrap_or_default();
        match request.operation {
            Operation::Read => operation::read(label, root, path, self.accept_for(path)),
            Operation::Write => {
                let resource = self.resource_at(path);
                let value = value.unwrap_or(Value::String(data.into()));
                let planned = operation::plan_write(self.enabler(), path, resource, &value);
                operation::write(label, root, planned.target, planned.format, planned.payload)
            }
            Operation::Execute => operation::execute(label, root, path, data),
            Operation::ObserveStart => operation::observe(label, root, path, self.accept_for(path)),
            Operation::ObserveEnd => {
                operation::cancel_observation(label, root, path, self.accept_for(path))
            }
        }
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
        let Request::Lwm2m(request) = &action.request;
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
                self.observation_begun(m, action, token, sequence, out);
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

    /// The values a device told of a path.
    pub(super) fn values_in(&self, path: Path, answer: &Message) -> Result<Reading, String> {
        if answer.block2().is_some_and(|block| block.has_more()) {
            return Err("it comes in several blocks, which is not supported".to_owned());
        }
        let format = answer.content_format();
        let type_of = |path| self.data_type_at(path);
        payload::decode(format, path, &answer.payload, type_of).map_err(|e| e.to_string())
    }

    /// The format to ask for the values of a path in.
    pub(super) fn accept_for(&self, path: Path) -> Option<ContentFormat> {
        let registration = self.record.registration.as_ref();
        let announced = registration.map_or(&[][..], |r| r.links.content_formats());
        payload::accept_for(path, self.resource_at(path), announced)
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
        let reading = self.values_in(path, answer);
        let reading = reading.map_err(|why| format!("the answer cannot be read: {why}"))?;
        let payload = payload_of(path, &reading);
        self.tell_values(m, Cause::Action(action.id), reading, out);
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

    fn data_type_at(&self, path: Path) -> Option<DataType> {
        self.resource_at(path)?.data_type()
    }

    fn enabler(&self) -> EnablerVersion {
        let registration = self.record.registration.as_ref();
        registration.map_or(EnablerVersion::V1_1, |r| r.version)
    }

    /// The resource a path is or lies in, in the version the device offers; none for one the model
    /// does not know.
    fn resource_at(&self, path: Path) -> Option<&'static Resource> {
        let object = path.object_id();
        let registration = self.record.registration.as_ref();
        let version = registration
            .and_then(|r| r.links.version_of(object))
            .unwrap_or_else(|| model::default_version(object, self.enabler()));
        model::resource(object, version, path.resource_id()?)
    }
}

/// How what was read is shown: the value of a resource alone as text, everything else by path.
fn payload_of(path: Path, reading: &Reading) -> Payload {
    let by_path = |(path, value): (&Path, &Value)| (*path, value.clone());
    match reading.get(&path) {
        Some(value) => Payload::Text(value.to_text().into()),
        None => Payload::Values(reading.iter().map(by_path).collect()),
    }
}
