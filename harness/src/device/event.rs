//! What leaves a simulated device? Datagrams for the server, and news for a person.

use std::fmt;

use protocol::coap::code::Code;
use protocol::lwm2m::path::Path;

/// One thing that leaves the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceOutput {
    /// A datagram for the server.
    Send(Vec<u8>),
    /// Bytes of no protocol for the server's port for such.
    SendUdp(Vec<u8>),
    /// Something a person may like to know.
    Report(DeviceEvent),
}

/// Something that happened at the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceEvent {
    /// It answered a request of the server.
    Answered {
        /// What the request was for.
        path: Path,
        /// What was asked.
        operation: Operation,
        /// What it answered.
        code: Code,
    },
    /// It answered a request of the server for several paths at once.
    AnsweredSeveral {
        /// What it answered.
        code: Code,
    },
    /// It answered a plain request.
    AnsweredPlain {
        /// What the request was about.
        path: String,
        /// What it answered.
        code: Code,
    },
    /// It sleeps.
    Asleep {
        /// When it wakes by itself; nothing if it has no reason to.
        wakes_in_ms: Option<i64>,
    },
    /// It listens again.
    Awake,
    /// The server has let it go.
    Deregistered,
    /// Nobody took note of what it said, however often it said it.
    GaveUp(Uplink),
    /// It got bytes of no protocol.
    HeardBare {
        /// What came.
        bytes: Vec<u8>,
    },
    /// It got a request and gives no answer.
    LeftUnanswered {
        /// What the request was for.
        path: Path,
        /// What was asked.
        operation: Operation,
    },
    /// It told the server that something observed has changed.
    Notified {
        /// What is observed.
        path: Path,
    },
    /// It tells of something no more: the server did not want it, or did not react, or it is gone.
    ObservationEnded {
        /// What was observed.
        path: Path,
    },
    /// It begins anew, without memory of anything it had not stored.
    Rebooted,
    /// The server turned it away.
    Refused {
        /// What the device had said.
        uplink: Uplink,
        /// What the server answered.
        code: Code,
    },
    /// The server knows it.
    Registered {
        /// Under which path.
        location: RegistrationLocation,
    },
    /// The server does not know it any more.
    RegistrationLost,
    /// The server took the data it sent.
    Sent,
    /// The server took note of its update.
    Updated,
}

/// What the server asks a device to do with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// GET
    Read,
    /// PUT
    Write,
    /// POST
    Execute,
    /// GET that asks to be told of every change
    Observe,
    /// GET that asks to be told no more
    CancelObservation,
}

/// What a device says by itself, or has to say again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Uplink {
    /// An answer in a message of its own.
    Answer,
    /// Data over plain CoAP.
    Data,
    /// A deregistration.
    Deregister,
    /// Word that something observed has changed.
    Notification,
    /// A registration.
    Register,
    /// Data that nobody asked for.
    Send,
    /// A registration update.
    Update,
}

/// The path a server keeps a registration under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegistrationLocation {
    segments: Box<[Box<str>]>,
}

impl RegistrationLocation {
    /// Takes the segments of a Location-Path, of which there has to be one.
    pub(super) fn new<'a>(segments: impl Iterator<Item = &'a str>) -> Option<Self> {
        let segments: Box<[Box<str>]> = segments.map(Box::from).collect();
        (!segments.is_empty()).then_some(Self { segments })
    }

    /// Goes through the path's segments.
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
        })
    }
}

impl fmt::Display for Uplink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answer => "answer",
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
