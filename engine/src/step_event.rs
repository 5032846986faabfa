//! Which events of a step does the operator see in metrics?
//!
//! A step event requests nothing and is not stored: it describes the effects of a step and is valid
//! once they are durable.

use protocol::coap::code::Code;

use crate::action::{Action, Protocol, RequestKind, Status};
use crate::ids::{ActionId, TraceId};

/// Something that happened, and its trace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StepEvent {
    /// What happened.
    pub kind: StepEventKind,
    /// The trace of the action request that caused it, if any.
    pub trace: Option<TraceId>,
}

/// What can happen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StepEventKind {
    /// A request of a caller was created.
    Created(ActionRef),
    /// A request of a caller has its final status.
    Concluded(ActionRef, Status),
    /// An exchange with the device began.
    Begun(ExchangePurpose),
    /// Its datagram is retransmitted.
    Repeated,
    /// The device acknowledged it and answers later.
    Acknowledged,
    /// The exchange ended.
    Ended(ExchangeOutcome),
    /// The device sent a notification.
    Notified(NotificationOutcome),
    /// The device sent values with Send.
    Sent(NotificationOutcome),
    /// The device sent data over plain CoAP or bare UDP.
    DataSent(Protocol, NotificationOutcome),
    /// An observation ended without a request to end it.
    ObservationLost,
}

/// A request of a caller.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ActionRef {
    /// Its id.
    pub action: ActionId,
    /// Its protocol.
    pub protocol: Protocol,
    /// What it does.
    pub task: RequestKind,
}

impl ActionRef {
    /// The reference of a request.
    pub fn by(action: &Action) -> Self {
        Self {
            action: action.id,
            protocol: action.protocol(),
            task: action.request.task(),
        }
    }
}

/// The purpose of an exchange.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExchangePurpose {
    /// An attempt of a caller's request.
    Action,
    /// Renewing an observation that the device lost.
    Observation,
    /// Passive reporting: reading a device that registered or updated its registration.
    Report,
    /// A request of a bootstrap.
    Bootstrap,
    /// A firmware update.
    FirmwareUpdate,
}

/// How an exchange ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExchangeOutcome {
    /// With an answer of class 2: the device performed the request.
    Success,
    /// With an answer of class 4: the request was wrong.
    ClientError,
    /// With an answer of class 5, or of an unassigned class: the device failed.
    ServerError,
    /// With an answer that must not be interpreted.
    Unusable,
    /// With a Reset.
    Reset,
    /// No transmission was acknowledged.
    NotAcknowledged,
    /// It was acknowledged, but no response followed.
    NotAnswered,
    /// The registration of the device ended, or the device was removed.
    DeviceGone,
}

impl ExchangeOutcome {
    /// The outcome for the code of an answer.
    pub fn with(answer: Code) -> Self {
        match answer.class() {
            2 => Self::Success,
            4 => Self::ClientError,
            _ => Self::ServerError,
        }
    }
}

/// The outcome of a notification, a Send or data.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotificationOutcome {
    /// It was published.
    Published,
    /// A newer one was published before.
    Stale,
    /// It cannot be decoded, or it ends the observation.
    Unusable,
    /// It exceeded the rate of the device.
    Excessive,
    /// It has no values.
    Empty,
}

/// The kind of a message of a device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UplinkKind {
    /// It registers.
    Register,
    /// It updates its registration.
    Update,
    /// It ends its registration.
    Deregister,
    /// It asks for its bootstrap.
    Bootstrap,
    /// It answers, acknowledges or rejects a request.
    Answer,
    /// It is a notification of an observation.
    Notification,
    /// It sends values (Send).
    Send,
    /// It sends data over plain CoAP.
    CoapData,
    /// It sends data over bare UDP.
    UdpData,
    /// It is a block of a body, and more follow.
    BlockPart,
    /// It is an answer without a request.
    Unsolicited,
    /// It is a CoAP ping.
    Ping,
    /// It requests something that the service does not support.
    Unsupported,
    /// It is a retransmission and gets the same answer.
    Repeated,
}
