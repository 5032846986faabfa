//! What an action request is: what was asked of a device, and what became of it (seed 2.1, 3).
//!
//! ```text
//!  SEND_NOW ---------------------> IN_PROGRESS --2.xx, it left (UDP)--> SUCCEEDED
//!                                   ^   |  ^ |
//!  SEND_WHEN_ACTIVE -> SCHEDULED ---'   |  '-' no answer, 4.08, 4.29, 5.03; attempts left
//!                       |     |         '--other 4.xx/5.xx, none left, 48 h-> FAILED
//!                       |     '-48 h----------------------------------------> FAILED
//!                       '-DELETE--------------------------------------------> CANCELLED
//! ```

pub mod parse;
pub mod timeline;

use std::net::IpAddr;
use std::num::NonZeroU16;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use protocol::coap::uri::PathAndQuery;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;

use crate::action::timeline::Timeline;
use crate::idempotency::IdempotentCall;
use crate::ids::{ActionId, CustomerId, DeviceId, DeviceKey, Iccid, Imsi, TraceId};
use crate::moment::Timestamp;

/// An action request as it is kept and shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Its id; ids sort by creation.
    pub id: ActionId,
    /// Whose request it is.
    pub customer: CustomerId,
    /// The device it addresses.
    pub device: DeviceKey,
    /// What is asked.
    pub request: Request,
    /// When it may go out.
    pub mode: Mode,
    /// What became of it.
    pub status: Status,
    /// How many attempts it may make.
    pub attempts_permitted: u8,
    /// How many attempts were recorded; each was recorded before its datagram left.
    pub attempts_made: u8,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its record last changed.
    pub updated_at: Timestamp,
    /// When it fails if it is not final by then.
    pub expires_at: Timestamp,
    /// The expiry of its own that the caller asked for, in seconds.
    pub expires_in_s: Option<u32>,
    /// The device as it was known at creation, for the record.
    pub addressee: Addressee,
    /// Ties the request to the call that made it.
    pub trace: TraceId,
    /// What the device answered or what went wrong.
    pub outcome: Option<Outcome>,
    /// What happened on the way.
    pub timeline: Timeline,
}

impl Action {
    /// How many attempts remain.
    pub fn attempts_left(&self) -> u8 {
        self.attempts_permitted.saturating_sub(self.attempts_made)
    }

    /// Where it stands in lists.
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

/// Where an action request stands in lists, apart from what never changes of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ActionState {
    /// What became of it.
    pub status: Status,
    /// When its record last changed.
    pub updated_at: Timestamp,
}

/// The device an action request was created for, as it was known then.
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

/// When a request may go out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// At once.
    SendNow,
    /// When the device is next heard.
    SendWhenActive,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Status {
    /// It waits for the device to be heard; only here can it be cancelled.
    Scheduled,
    /// It is being sent, or waits for its next attempt.
    InProgress,
    /// The device did it.
    Succeeded,
    /// It failed for ever.
    Failed,
    /// It was taken back and never sent.
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

    /// Whether the request is as it was made: its first change is one of its status.
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

/// What is asked of a device.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Request {
    /// A datagram that it takes as it likes.
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

    /// How long the data is that it carries, as it is written.
    pub fn data_bytes(&self) -> usize {
        match self {
            Self::Udp(request) => request.content.text().len(),
            Self::Coap(request) => request.content.as_ref().map_or(0, |it| it.text().len()),
            Self::Lwm2m(request) => request.data.as_ref().map_or(0, |data| data.len()),
        }
    }

    /// What is to be done, by itself.
    pub fn task(&self) -> RequestKind {
        match self {
            Self::Udp(_) => RequestKind::Datagram,
            Self::Coap(request) => RequestKind::Request(request.method),
            Self::Lwm2m(request) => RequestKind::Operation(request.operation),
        }
    }
}

/// What a request has done, apart from where and with what.
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
    /// What is sent.
    pub content: Content,
    /// To where.
    pub port: NonZeroU16,
}

/// A request to a resource of the device (RFC 7252 section 5).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CoapRequest {
    /// What to do there.
    pub method: Method,
    /// To where.
    pub port: NonZeroU16,
    /// The resource, with arguments.
    pub target: PathAndQuery,
    /// What is sent along.
    pub content: Option<Content>,
}

/// The methods of CoAP a request may use (RFC 7252 section 5.8, RFC 8132).
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

/// Bytes for a device, as a caller wrote them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Content {
    form: ContentEncoding,
    text: Box<str>,
}

/// How bytes are written in a request (seed 4.2, `payloadType`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ContentEncoding {
    /// As text, which is sent in UTF-8.
    String,
    /// In base64 (RFC 4648 section 4).
    Base64,
}

/// A text that is said to be base64 and is not.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("is not valid base64")]
pub struct NotBase64;

impl Content {
    /// What a caller wrote in a form.
    pub fn parse(form: ContentEncoding, text: &str) -> Result<Self, NotBase64> {
        let content = Self {
            form,
            text: text.into(),
        };
        content.decode().map(|_| content)
    }

    /// The form it is written in.
    pub fn form(&self) -> ContentEncoding {
        self.form
    }

    /// As it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The bytes for the device.
    pub fn bytes(&self) -> Vec<u8> {
        self.decode().expect("it was read when it was made")
    }

    fn decode(&self) -> Result<Vec<u8>, NotBase64> {
        match self.form {
            ContentEncoding::String => Ok(self.text.as_bytes().to_vec()),
            ContentEncoding::Base64 => STANDARD.decode(&*self.text).map_err(|_| NotBase64),
        }
    }
}

/// One operation on one LwM2M resource.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Lwm2mRequest {
    /// What to do there.
    pub operation: Operation,
    /// Where to do it.
    pub path: Path,
    /// The value to write or the arguments to execute with, as the caller gave it.
    pub data: Option<Box<str>>,
}

/// The device management operations a request may ask for (LwM2M Core 1.2 section 6.3).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Operation {
    /// Reads the value of a resource.
    Read,
    /// Replaces the value of a resource.
    Write,
    /// Sets off what an executable resource does.
    Execute,
    /// Asks for a value and for every later one (LwM2M Core 1.2 section 6.4.1).
    ObserveStart,
    /// Wants no later values any more (LwM2M Core 1.2 section 6.4.3).
    ObserveEnd,
}

/// What the device answered, or what went wrong (seed 2.1, `resultData`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The digits of the response code, `205` for 2.05.
    pub code: Option<Box<str>>,
    /// The data of the device.
    pub payload: Option<ResultPayload>,
    /// How the payload is written, where the protocol leaves it open.
    pub payload_type: Option<PayloadType>,
    /// What went wrong.
    pub error: Option<Box<str>>,
}

/// The data of a device in an outcome.
#[derive(Clone, Debug, PartialEq)]
pub enum ResultPayload {
    /// The value of one resource as callers write it, or data whose form is not the service's.
    Text(Box<str>),
    /// The values of an object or an instance of one, by path.
    Values(Box<[(Path, Value)]>),
}

impl ResultPayload {
    /// The text, where it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Values(_) => None,
        }
    }
}

impl<T: Into<Box<str>>> From<T> for ResultPayload {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

/// How the payload of a CoAP answer is written (seed 2.1, `payloadType`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PayloadType {
    /// As it came.
    Text,
    /// In base64 (RFC 4648 section 4).
    Base64,
}

/// A request to be made: what a caller asks, parsed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewAction {
    /// What is asked.
    pub request: Request,
    /// When it may go out.
    pub mode: Mode,
    /// How many attempts it may make, 1 to 5.
    pub attempts_permitted: u8,
    /// An expiry of its own, in seconds, instead of the service's.
    pub expires_in_s: Option<u32>,
    /// Ties the request to the call that made it.
    pub trace: TraceId,
    /// Names the call, where its caller wants it to happen only once.
    pub idempotent_call: Option<IdempotentCall>,
}
