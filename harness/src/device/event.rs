//! What are the outputs of a simulated device? Datagrams for the server, and events for a person.

use std::fmt;

use protocol::coap::code::Code;
use protocol::lwm2m::path::Path;

/// One output of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceOutput {
    /// A datagram for the server.
    Send(Vec<u8>),
    /// A bare datagram for the server's UDP port.
    SendUdp(Vec<u8>),
    /// An event for a person.
    Report(DeviceEvent),
}

/// An event of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceEvent {
    /// It answered a request of the server.
    Answered {
        /// The path of the request.
        path: Path,
        /// The operation.
        operation: Operation,
        /// The response code.
        code: Code,
    },
    /// It answered a request for several paths.
    AnsweredSeveral {
        /// The response code.
        code: Code,
    },
    /// It answered a plain CoAP request.
    AnsweredPlain {
        /// The path of the request.
        path: String,
        /// The response code.
        code: Code,
    },
    /// It sleeps.
    Asleep {
        /// When it wakes by itself; None if it has no reason to.
        wakes_in_ms: Option<i64>,
    },
    /// It is reachable again.
    Awake,
    /// It has an account.
    Bootstrapped,
    /// The server confirmed its deregistration.
    Deregistered,
    /// A message was never acknowledged, in spite of all retransmissions.
    GaveUp(Uplink),
    /// It received a bare datagram.
    HeardBare {
        /// The datagram.
        bytes: Vec<u8>,
    },
    /// It received a request and does not answer it.
    LeftUnanswered {
        /// The path of the request.
        path: Path,
        /// The operation.
        operation: Operation,
    },
    /// It sent a notification.
    Notified {
        /// The observed path.
        path: Path,
    },
    /// An observation ended: the server refused or ignored a notification, or the path no longer
    /// exists.
    ObservationEnded {
        /// The observed path.
        path: Path,
    },
    /// It restarted, and forgot everything but its resources.
    Rebooted,
    /// The server refused a message.
    Refused {
        /// The refused message.
        uplink: Uplink,
        /// The response code.
        code: Code,
    },
    /// It is registered.
    Registered {
        /// The location of the registration.
        location: RegistrationLocation,
    },
    /// The server no longer knows the registration.
    RegistrationLost,
    /// The server accepted the sent data.
    Sent,
    /// The server accepted its update.
    Updated,
}

/// An operation that the server requests on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// GET
    Read,
    /// PUT
    Write,
    /// POST
    Execute,
    /// GET with Observe 0
    Observe,
    /// GET with Observe 1
    CancelObservation,
    /// GET of a list of links
    Discover,
    /// POST to an object
    Create,
    /// DELETE
    Delete,
    /// PUT with parameters
    WriteAttributes,
}

/// A message that a device sends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Uplink {
    /// A separate response.
    Answer,
    /// A request for its bootstrap.
    Bootstrap,
    /// Data over plain CoAP.
    Data,
    /// A deregistration.
    Deregister,
    /// A notification.
    Notification,
    /// A registration.
    Register,
    /// An LwM2M Send.
    Send,
    /// A registration update.
    Update,
}

/// The location of a registration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegistrationLocation {
    segments: Box<[Box<str>]>,
}

impl RegistrationLocation {
    /// The location with these Location-Path segments; None without any.
    pub(super) fn new<'a>(segments: impl Iterator<Item = &'a str>) -> Option<Self> {
        let segments: Box<[Box<str>]> = segments.map(Box::from).collect();
        (!segments.is_empty()).then_some(Self { segments })
    }

    /// The segments of the path.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().map(Box::as_ref)
    }
}

impl fmt::Display for RegistrationLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.segments()
            .try_for_each(|segment| write!(f, "/{segment}"))
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Execute => "execute",
            Self::Observe => "observe",
            Self::CancelObservation => "cancel observation",
            Self::Discover => "discover",
            Self::Create => "create",
            Self::Delete => "delete",
            Self::WriteAttributes => "write attributes",
        })
    }
}

impl fmt::Display for Uplink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answer => "answer",
            Self::Bootstrap => "bootstrap request",
            Self::Data => "plain data",
            Self::Deregister => "deregistration",
            Self::Notification => "notification",
            Self::Register => "registration",
            Self::Send => "data",
            Self::Update => "update",
        })
    }
}

impl fmt::Display for DeviceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered {
                path,
                operation,
                code,
            } => {
                write!(f, "answered {operation} {path} with {code}")
            }
            Self::AnsweredSeveral { code } => write!(f, "answered several paths with {code}"),
            Self::AnsweredPlain { path, code } => write!(f, "answered {path} with {code}"),
            Self::Asleep {
                wakes_in_ms: Some(wakes_in_ms),
            } => {
                let (whole_s, tenths) = (wakes_in_ms / 1_000, wakes_in_ms % 1_000 / 100);
                write!(f, "fell asleep for {whole_s}.{tenths} s")
            }
            Self::Asleep { wakes_in_ms: None } => f.write_str("fell asleep"),
            Self::Awake => f.write_str("woke up"),
            Self::Bootstrapped => f.write_str("was bootstrapped"),
            Self::Deregistered => f.write_str("deregistered"),
            Self::GaveUp(uplink) => write!(f, "got no response to its {uplink}"),
            Self::HeardBare { bytes } => write!(f, "received {} bytes over UDP", bytes.len()),
            Self::LeftUnanswered { path, operation } => {
                write!(f, "left {operation} {path} unanswered")
            }
            Self::Notified { path } => write!(f, "sent a notification for {path}"),
            Self::ObservationEnded { path } => write!(f, "ended the observation of {path}"),
            Self::Rebooted => f.write_str("rebooted"),
            Self::Refused { uplink, code } => write!(f, "had its {uplink} refused with {code}"),
            Self::Registered { location } => write!(f, "registered at {location}"),
            Self::RegistrationLost => f.write_str("lost its registration"),
            Self::Sent => f.write_str("sent data"),
            Self::Updated => f.write_str("updated its registration"),
        }
    }
}
