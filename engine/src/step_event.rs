//! What happens in a step that whoever operates the service wants counted?
//!
//! An occurrence asks for nothing and is kept nowhere: it is a remark beside the effects of a step,
//! true once they are durable.

use protocol::coap::code::Code;

use crate::action::{Action, Protocol, RequestKind, Status};
use crate::ids::{ActionId, TraceId};

/// Something that happened, and what set it off.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StepEvent {
    /// What happened.
    pub kind: StepEventKind,
    /// The call behind it, where a request of a caller is.
    pub trace: Option<TraceId>,
}

/// What can happen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StepEventKind {
    /// A request of a caller was created.
    Created(ActionRef),
    /// A request of a caller has its final status.
    Concluded(ActionRef, Status),
    /// A request of a caller went with its device before it had one.
    Removed(ActionRef),
    /// An exchange with the device began.
    Begun(ExchangePurpose),
    /// Its datagram leaves once more.
    Repeated,
    /// The device has its datagram and answers later.
    Acknowledged,
    /// It is over.
    Ended(ExchangeOutcome),
    /// The device told of what is observed.
    Notified(NotificationOutcome),
    /// The device sent values unasked.
    Sent(NotificationOutcome),
    /// The device sent data over plain CoAP or bare UDP.
    DataSent(Protocol, NotificationOutcome),
    /// Something is not observed any more, though nobody ended it.
    ObservationLost,
}

/// A request of a caller.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ActionRef {
    /// Which.
    pub action: ActionId,
    /// By which protocol.
    pub protocol: Protocol,
    /// To do what.
    pub task: RequestKind,
}

impl ActionRef {
    /// What a request asks.
    pub fn by(action: &Action) -> Self {
        Self {
            action: action.id,
            protocol: action.protocol(),
            task: action.request.task(),
        }
    }
}

/// What an exchange is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExchangePurpose {
    /// An attempt at a request of a caller.
    Action,
    /// Observing again what the device forgot.
    Observation,
    /// Reading a device that registered or updated its registration.
    Report,
}

/// How an exchange ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExchangeOutcome {
    /// With an answer of class 2: the device did it.
    Success,
    /// With an answer of class 4: it was asked wrongly.
    ClientError,
    /// With an answer of class 5, or of none that is assigned: the device failed.
    ServerError,
    /// With an answer that must not be interpreted.
    Unusable,
    /// With a Reset.
    Reset,
    /// No transmission was acknowledged.
    NotAcknowledged,
    /// It was acknowledged, and nothing followed.
    NotAnswered,
    /// The registration of the device ended, or the device was removed.
    DeviceGone,
}

impl ExchangeOutcome {
    /// The ending with an answer.
    pub fn with(answer: Code) -> Self {
        match answer.class() {
            2 => Self::Success,
            4 => Self::ClientError,
            _ => Self::ServerError,
        }
    }
}

/// What a notification was worth, or what a device sent unasked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotificationOutcome {
    /// It was told on.
    Published,
    /// A newer one was told before.
    Stale,
    /// It cannot be read, or says that there will be no other.
    Unusable,
    /// It came behind more than are taken in a while.
    Excessive,
    /// It has no values: there is nothing to tell.
    Empty,
}

/// What a message of a device was taken for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UplinkKind {
    /// It registers.
    Register,
    /// It updates its registration.
    Update,
    /// It ends its registration.
    Deregister,
    /// It answers, acknowledges or rejects what was asked.
    Answer,
    /// It tells of what is observed.
    Notification,
    /// It sends values unasked.
    Send,
    /// It sends data over plain CoAP.
    CoapData,
    /// It sends data over bare UDP.
    UdpData,
    /// It says a part of something, and more of it follows.
    BlockPart,
    /// It answers what nobody asked.
    Unsolicited,
    /// It asks whether the service is there.
    Ping,
    /// It asks for what the service does not do.
    Unsupported,
    /// It was heard before and is answered the same.
    Repeated,
}
