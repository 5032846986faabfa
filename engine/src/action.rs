//! What an action request is: a caller's request to a device, its status and its result (seed 2.1,
//! 3).
//!
//! ```text
//!  SEND_NOW, sent at once -------> IN_PROGRESS --2.xx, sent (UDP)-----> SUCCEEDED
//!                                   ^   |  ^ |
//!  SEND_NOW, it waits -+            |   |  '-' no answer, 4.08, 4.29, 5.03; attempts left
//!                      v            |   '--other 4.xx/5.xx, none left, 48 h-> FAILED
//!  SEND_WHEN_ACTIVE -> SCHEDULED ---'
//!                       |     |
//!                       |     '-48 h; SEND_NOW over LwM2M: registration ends-> FAILED
//!                       '-DELETE, of the request or of its device-----------> CANCELLED
//! ```
//!
//! One in progress when its device is deleted fails.

pub mod parse;
pub mod timeline;

use std::net::IpAddr;
use std::num::NonZeroU16;

use protocol::base64_text::{self, NotBase64};
use protocol::coap::uri::PathAndQuery;
use protocol::lwm2m::attributes::Attributes;
use protocol::lwm2m::links::discovery::DiscoveredLink;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::formats::WriteMethod;
use protocol::lwm2m::value::Value;

use crate::action::timeline::Timeline;
use crate::idempotency::IdempotentCall;
use crate::ids::{ActionId, CustomerId, DeviceId, DeviceKey, Iccid, Imsi, SmsId, TraceId};
use crate::moment::Timestamp;

/// An action request, as it is stored and shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Its id; ids sort by creation time.
    pub id: ActionId,
    /// The customer that owns it.
    pub customer: CustomerId,
    /// The device it addresses.
    pub device: DeviceKey,
    /// What it requests.
    pub request: Request,
    /// When it may be sent.
    pub mode: Mode,
    /// Its status.
    pub status: Status,
    /// How many attempts it may make.
    pub attempts_permitted: u8,
    /// How many attempts were recorded; each is recorded before its datagram is sent.
    pub attempts_made: u8,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its record last changed.
    pub updated_at: Timestamp,
    /// When it fails unless it is final.
    pub expires_at: Timestamp,
    /// The expiry that the caller set, in seconds.
    pub expires_in_s: Option<u32>,
    /// The time before which the caller does not want it to be sent.
    pub not_before: Option<Timestamp>,
    /// How its device is woken, if it sleeps.
    pub wake_up: Option<WakeUp>,
    /// The SMS that wakes the device: until then the request waits.
    pub woken_by: Option<SmsId>,
    /// The identity of the device at creation.
    pub addressee: Addressee,
    /// Ties the request to the API call that created it.
    pub trace: TraceId,
    /// The answer of the device, or the error.
    pub outcome: Option<Outcome>,
    /// Its attempts, datagrams and answers so far.
    pub timeline: Timeline,
}

impl Action {
    /// How many attempts remain.
    pub fn attempts_left(&self) -> u8 {
        self.attempts_permitted.saturating_sub(self.attempts_made)
    }

    /// Whether the time before which it must not be sent is still to come.
    pub fn is_deferred(&self, now: Timestamp) -> bool {
        self.not_before.is_some_and(|at| now < at)
    }

    /// The fields by which lists sort and filter it.
    pub fn state(&self) -> ActionState {
        ActionState {
            status: self.status,
            updated_at: self.updated_at,
        }
    }

    /// The protocol that carries it.
    pub fn protocol(&self) -> Protocol {
        self.request.protocol()
    }
}

/// The fields that lists use and that can change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ActionState {
    /// Its status.
    pub status: Status,
    /// When its record last changed.
    pub updated_at: Timestamp,
}

/// The device of an action request, as it was known when the request was created.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Addressee {
    /// What the customer calls the device.
    pub device: DeviceId,
    /// The SIM in it.
    pub iccid: Iccid,
    /// The subscriber identity of the SIM, where known.
    pub imsi: Option<Imsi>,
    /// Its address, where known.
    pub ip: Option<IpAddr>,
}

/// The protocols an action request may use.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Protocol {
    /// A bare datagram.
    Udp,
    /// A CoAP request (RFC 7252).
    Coap,
    /// A device management operation (LwM2M Core 1.2 section 6.3).
    Lwm2m,
}

impl Protocol {
    /// Every protocol.
    pub const ALL: [Self; 3] = [Self::Udp, Self::Coap, Self::Lwm2m];
}

/// When a request may be sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// At once.
    SendNow,
    /// At the next uplink of the device.
    SendWhenActive,
}

/// How a device that sleeps is woken for a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WakeUp {
    /// By an SMS.
    Sms,
}

/// The status of a request.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Status {
    /// No attempt at it has begun; only in this status can it be cancelled.
    Scheduled,
    /// An attempt at it has begun; it may wait for the next one.
    InProgress,
    /// The device performed it.
    Succeeded,
    /// It failed; this is final.
    Failed,
    /// The caller cancelled it before it was sent.
    Cancelled,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 5] = [
        Self::Scheduled,
        Self::InProgress,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Whether the request is unchanged since its creation: its first change is a change of status.
    pub fn is_untouched(self) -> bool {
        match self {
            Self::Scheduled => true,
            Self::InProgress | Self::Succeeded | Self::Failed | Self::Cancelled => false,
        }
    }

    /// Whether the request can still change.
    pub fn is_pending(self) -> bool {
        match self {
            Self::Scheduled | Self::InProgress => true,
            Self::Succeeded | Self::Failed | Self::Cancelled => false,
        }
    }
}

/// A request to a device.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Request {
    /// A bare datagram; its meaning is up to the device.
    Udp(UdpRequest),
    /// A CoAP request.
    Coap(CoapRequest),
    /// A device management operation.
    Lwm2m(Lwm2mRequest),
}

impl Request {
    /// The protocol that carries it.
    pub fn protocol(&self) -> Protocol {
        match self {
            Self::Udp(_) => Protocol::Udp,
            Self::Coap(_) => Protocol::Coap,
            Self::Lwm2m(_) => Protocol::Lwm2m,
        }
    }

    /// The length of its data in the encoding of the caller.
    pub fn data_bytes(&self) -> usize {
        match self {
            Self::Udp(request) => request.content.text().len(),
            Self::Coap(request) => request.content.as_ref().map_or(0, |it| it.text().len()),
            Self::Lwm2m(request) => request.data_bytes(),
        }
    }

    /// The kind of the request.
    pub fn task(&self) -> RequestKind {
        match self {
            Self::Udp(_) => RequestKind::Datagram,
            Self::Coap(request) => RequestKind::Request(request.method),
            Self::Lwm2m(request) => RequestKind::Operation(request.operation()),
        }
    }
}

/// What a request does, without its target and data.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum RequestKind {
    /// A datagram is sent.
    Datagram,
    /// A CoAP request is made.
    Request(Method),
    /// A device management operation is performed.
    Operation(Operation),
}

/// A bare datagram to a port of the device.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UdpRequest {
    /// The payload.
    pub content: Content,
    /// The port of the device.
    pub port: NonZeroU16,
}

/// A request to a resource of the device (RFC 7252 section 5).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CoapRequest {
    /// The method.
    pub method: Method,
    /// The port of the device.
    pub port: NonZeroU16,
    /// The path and query of the resource.
    pub target: PathAndQuery,
    /// The payload, if any.
    pub content: Option<Content>,
}

/// The CoAP methods a request may use (RFC 7252 section 5.8, RFC 8132).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Method {
    /// GET.
    Get,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// DELETE.
    Delete,
    /// PATCH.
    Patch,
}

impl Method {
    /// Every method.
    pub const ALL: [Self; 5] = [Self::Get, Self::Post, Self::Put, Self::Delete, Self::Patch];
}

/// Bytes for a device, in the encoding of the caller.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Content {
    form: ContentEncoding,
    text: Box<str>,
}

/// The encoding of a payload in a request (seed 4.2, `payloadType`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ContentEncoding {
    /// As text, which is sent in UTF-8.
    String,
    /// In base64 (RFC 4648 section 4).
    Base64,
}

impl Content {
    /// Parses a payload in an encoding.
    pub fn parse(form: ContentEncoding, text: &str) -> Result<Self, NotBase64> {
        let content = Self {
            form,
            text: text.into(),
        };
        content.decode().map(|_| content)
    }

    /// The encoding.
    pub fn form(&self) -> ContentEncoding {
        self.form
    }

    /// The encoded text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The bytes for the device.
    pub fn bytes(&self) -> Vec<u8> {
        self.decode().expect("it was decoded when it was parsed")
    }

    fn decode(&self) -> Result<Vec<u8>, NotBase64> {
        match self.form {
            ContentEncoding::String => Ok(self.text.as_bytes().to_vec()),
            ContentEncoding::Base64 => base64_text::decode(&self.text),
        }
    }
}

/// One LwM2M operation with what it addresses. Values are as the caller wrote them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Lwm2mRequest {
    /// Reads the value of a path.
    Read(Path),
    /// Replaces the value of a resource or of a resource instance.
    Write(Path, Box<str>),
    /// Executes a resource, with arguments.
    Execute(Path, Option<Box<str>>),
    /// Observes a path, under conditions.
    ObserveStart(Path, Attributes),
    /// Ends the observation of a path.
    ObserveEnd(Path),
    /// Lists what a path has.
    Discover(Path),
    /// Creates an instance of an object.
    Create(NewInstance),
    /// Deletes an object instance or a resource instance.
    Delete(Path),
    /// Writes attributes of a path.
    WriteAttributes(Path, Attributes),
    /// Writes several resources of an object instance.
    WriteInstance(InstanceWrite),
    /// Reads the values of several paths; of everything, if there is none.
    ReadComposite(Box<[Path]>),
    /// Writes the values of several paths.
    WriteComposite(PathData),
    /// Observes several paths at once, under conditions.
    ObserveCompositeStart(Box<[Path]>, Attributes),
    /// Ends the observation of several paths.
    ObserveCompositeEnd(Box<[Path]>),
}

/// The values of resources and resource instances, as the caller wrote them.
pub type PathData = Box<[(Path, Box<str>)]>;

/// An object instance to create.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewInstance {
    /// The object.
    pub object: u16,
    /// The instance; if none, the device chooses one.
    pub instance: Option<u16>,
    /// The values of its resources, below [`NewInstance::path`].
    pub values: PathData,
}

impl NewInstance {
    /// What the caller addresses.
    pub fn address(&self) -> Path {
        match self.instance {
            Some(instance) => Path::instance(self.object, instance),
            None => Path::object(self.object),
        }
    }

    /// The instance that the paths of its values are in: number 0 if the device chooses.
    pub fn path(&self) -> Path {
        Path::instance(self.object, self.instance.unwrap_or(0))
    }
}

/// Values for the resources of an object instance.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct InstanceWrite {
    /// The instance.
    pub path: Path,
    /// Whether the values replace the instance, or its other resources stay.
    pub method: WriteMethod,
    /// The values.
    pub values: PathData,
}

impl Lwm2mRequest {
    /// The operation.
    pub fn operation(&self) -> Operation {
        match self {
            Self::Read(_) => Operation::Read,
            Self::Write(..) => Operation::Write,
            Self::Execute(..) => Operation::Execute,
            Self::ObserveStart(..) => Operation::ObserveStart,
            Self::ObserveEnd(_) => Operation::ObserveEnd,
            Self::Discover(_) => Operation::Discover,
            Self::Create(_) => Operation::Create,
            Self::Delete(_) => Operation::Delete,
            Self::WriteAttributes(..) => Operation::WriteAttributes,
            Self::WriteInstance(_) => Operation::WriteInstance,
            Self::ReadComposite(_) => Operation::ReadComposite,
            Self::WriteComposite(_) => Operation::WriteComposite,
            Self::ObserveCompositeStart(..) => Operation::ObserveCompositeStart,
            Self::ObserveCompositeEnd(_) => Operation::ObserveCompositeEnd,
        }
    }

    /// The path that the caller addresses; none of a composite operation.
    pub fn address(&self) -> Option<Path> {
        match self {
            Self::Read(path)
            | Self::Write(path, _)
            | Self::Execute(path, _)
            | Self::ObserveStart(path, _)
            | Self::ObserveEnd(path)
            | Self::Discover(path)
            | Self::Delete(path)
            | Self::WriteAttributes(path, _) => Some(*path),
            Self::Create(new) => Some(new.address()),
            Self::WriteInstance(write) => Some(write.path),
            Self::ReadComposite(_)
            | Self::WriteComposite(_)
            | Self::ObserveCompositeStart(..)
            | Self::ObserveCompositeEnd(_) => None,
        }
    }

    /// The value to write, or the arguments to execute with.
    pub fn data(&self) -> Option<&str> {
        match self {
            Self::Write(_, data) => Some(data),
            Self::Execute(_, data) => data.as_deref(),
            Self::Read(_)
            | Self::ObserveStart(..)
            | Self::ObserveCompositeStart(..)
            | Self::ObserveCompositeEnd(_)
            | Self::ObserveEnd(_)
            | Self::Discover(_)
            | Self::Create(_)
            | Self::Delete(_)
            | Self::WriteAttributes(..)
            | Self::WriteInstance(_)
            | Self::ReadComposite(_)
            | Self::WriteComposite(_) => None,
        }
    }

    /// The paths of a composite operation without values; none if it is another operation.
    pub fn paths(&self) -> Option<&[Path]> {
        match self {
            Self::ReadComposite(paths)
            | Self::ObserveCompositeStart(paths, _)
            | Self::ObserveCompositeEnd(paths) => Some(paths),
            Self::Read(_)
            | Self::Write(..)
            | Self::Execute(..)
            | Self::ObserveStart(..)
            | Self::ObserveEnd(_)
            | Self::Discover(_)
            | Self::Create(_)
            | Self::Delete(_)
            | Self::WriteAttributes(..)
            | Self::WriteInstance(_)
            | Self::WriteComposite(_) => None,
        }
    }

    /// The values to write, if there can be several.
    pub fn values(&self) -> Option<&[(Path, Box<str>)]> {
        match self {
            Self::Create(new) => Some(&new.values),
            Self::WriteInstance(write) => Some(&write.values),
            Self::WriteComposite(values) => Some(values),
            Self::Read(_)
            | Self::Write(..)
            | Self::Execute(..)
            | Self::ObserveStart(..)
            | Self::ObserveCompositeStart(..)
            | Self::ObserveCompositeEnd(_)
            | Self::ObserveEnd(_)
            | Self::Discover(_)
            | Self::Delete(_)
            | Self::WriteAttributes(..)
            | Self::ReadComposite(_) => None,
        }
    }

    /// The attributes to write.
    pub fn attributes(&self) -> Option<&Attributes> {
        match self {
            Self::WriteAttributes(_, attributes) => Some(attributes),
            Self::ObserveStart(_, attributes) | Self::ObserveCompositeStart(_, attributes) => {
                Some(attributes).filter(|attributes| !attributes.is_empty())
            }
            Self::Read(_)
            | Self::Write(..)
            | Self::Execute(..)
            | Self::ObserveCompositeEnd(_)
            | Self::ObserveEnd(_)
            | Self::Discover(_)
            | Self::Create(_)
            | Self::Delete(_)
            | Self::WriteInstance(_)
            | Self::ReadComposite(_)
            | Self::WriteComposite(_) => None,
        }
    }

    /// Whether the values replace those of an instance; none if it is another operation.
    pub fn replaces(&self) -> Option<bool> {
        match self {
            Self::WriteInstance(write) => Some(write.method == WriteMethod::Replace),
            Self::Read(_)
            | Self::Write(..)
            | Self::Execute(..)
            | Self::ObserveStart(..)
            | Self::ObserveEnd(_)
            | Self::Discover(_)
            | Self::Create(_)
            | Self::Delete(_)
            | Self::WriteAttributes(..)
            | Self::ReadComposite(_)
            | Self::WriteComposite(_)
            | Self::ObserveCompositeStart(..)
            | Self::ObserveCompositeEnd(_) => None,
        }
    }

    /// Leaves out the values and the arguments.
    pub fn clear_data(&mut self) {
        match self {
            Self::Write(_, data) => *data = Box::default(),
            Self::Execute(_, data) => *data = None,
            Self::Create(NewInstance { values, .. })
            | Self::WriteInstance(InstanceWrite { values, .. })
            | Self::WriteComposite(values) => *values = Box::default(),
            Self::Read(_)
            | Self::ObserveStart(..)
            | Self::ObserveCompositeStart(..)
            | Self::ObserveCompositeEnd(_)
            | Self::ObserveEnd(_)
            | Self::Discover(_)
            | Self::Delete(_)
            | Self::WriteAttributes(..)
            | Self::ReadComposite(_) => {}
        }
    }

    fn data_bytes(&self) -> usize {
        let values = self.values().unwrap_or_default().iter();
        let values: usize = values.map(|(_, text)| text.len()).sum();
        self.data().map_or(0, str::len) + values
    }
}

/// The device management operations of requests (LwM2M Core 1.2 section 6.3).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Operation {
    /// Reads the value of a resource.
    Read,
    /// Replaces the value of a resource.
    Write,
    /// Executes a resource.
    Execute,
    /// Observes a path: the current value and every later one (LwM2M Core 1.2 section 6.4.1).
    ObserveStart,
    /// Cancels an observation (LwM2M Core 1.2 section 6.4.3).
    ObserveEnd,
    /// Lists instances, resources and attributes.
    Discover,
    /// Creates an object instance.
    Create,
    /// Deletes an object instance or a resource instance.
    Delete,
    /// Writes the conditions of notifications.
    WriteAttributes,
    /// Writes several resources of an object instance.
    WriteInstance,
    /// Reads several paths at once.
    ReadComposite,
    /// Writes several paths at once.
    WriteComposite,
    /// Observes several paths at once.
    ObserveCompositeStart,
    /// Cancels an observation of several paths.
    ObserveCompositeEnd,
}

/// The answer of the device, or the error (seed 2.1, `resultData`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The digits of the response code, `205` for 2.05.
    pub code: Option<Box<str>>,
    /// The payload of the answer.
    pub payload: Option<ResultPayload>,
    /// The encoding of the payload, where the protocol does not define it.
    pub payload_type: Option<PayloadType>,
    /// The error.
    pub error: Option<Box<str>>,
}

/// The payload of an outcome.
#[derive(Clone, Debug, PartialEq)]
pub enum ResultPayload {
    /// The value of one resource as callers write it, or data that the service does not interpret.
    Text(Box<str>),
    /// The values of an object or an instance of one, or of several paths, by path.
    Values(Box<[(Path, Value)]>),
    /// What the device lists at and below a path.
    Links(Box<[DiscoveredLink]>),
}

impl ResultPayload {
    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Values(_) | Self::Links(_) => None,
        }
    }
}

impl<T: Into<Box<str>>> From<T> for ResultPayload {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

/// The encoding of the payload of a CoAP answer (seed 2.1, `payloadType`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PayloadType {
    /// As received.
    Text,
    /// In base64 (RFC 4648 section 4).
    Base64,
}

/// A parsed request of a caller, not yet accepted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewAction {
    /// What it requests.
    pub request: Request,
    /// When it may be sent.
    pub mode: Mode,
    /// How many attempts it may make, 1 to 5.
    pub attempts_permitted: u8,
    /// An expiry in seconds that replaces the default of the service.
    pub expires_in_s: Option<u32>,
    /// It waits until then, whatever the device does; before the expiry. A past time is no wait.
    pub not_before: Option<Timestamp>,
    /// How the device is woken, if it sleeps.
    pub wake_up: Option<WakeUp>,
    /// Ties the request to the API call that created it.
    pub trace: TraceId,
    /// The idempotency key of the call, if the caller sent one.
    pub idempotent_call: Option<IdempotentCall>,
}
