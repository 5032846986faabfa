//! What does a link leave for its shell to perform, and what does it report?

use protocol::smpp::pdu::Pdu;
use protocol::smpp::receipt::Receipt;

use crate::directory::sms::NewReceivedSms;
use crate::ids::{Msisdn, SmsId};

/// The number in the address of a message or a receipt; that of a message always is one.
pub type Sender = Option<Msisdn>;

/// The number of a connection; what is reported of an earlier one is ignored.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct ConnectionId(pub u64);

/// What the shell of a link performs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LinkEffect {
    /// Connect to the SMS centre at this place of the configured ones.
    Connect(ConnectionId, usize),
    /// Send a PDU over the connection.
    Send(Pdu),
    /// Close the connection, once what was sent before has left.
    Close,
    /// Read or change the store.
    Store(SmsTask),
    /// Count and log.
    Report(LinkEvent),
}

/// What the shell does with the store. Each has one completion.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SmsTask {
    /// Take up to so many SMS: [`super::link::SmppLink::taken`].
    Take(u32),
    /// Store a message of a device: [`super::link::SmppLink::handed_in`].
    Receive(Sender, Box<NewReceivedSms>),
    /// Apply a receipt about an SMS: [`super::link::SmppLink::handed_in`].
    Apply(Sender, Box<Receipt>),
    /// Store that a part was accepted under an id: [`super::link::SmppLink::part_stored`].
    AcceptPart(SmsId, u8, Box<str>),
    /// Fail an SMS for a reason; no completion.
    Refuse(SmsId, Box<str>),
    /// Let an SMS wait for the network again; no completion.
    Release(SmsId),
}

/// What became of a message or a receipt that was handed in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HandedIn {
    /// It is stored.
    Stored,
    /// No device has the number, or no SMS is the one of the receipt.
    Unknown,
    /// The store does not accept it now.
    Refused,
}

impl HandedIn {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Stored, Self::Unknown, Self::Refused];
}

/// What happened, for metrics and the log of the operator.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkEvent {
    /// The session began, at the SMS centre at this place.
    Bound(usize),
    /// No session began: the SMS centre cannot be reached, or refused with this status.
    NotBound(usize, Option<u32>),
    /// The session ended without being asked to.
    Lost(LossReason),
    /// What became of a part that was submitted.
    Submitted(SubmitOutcome),
    /// A message of a device, or a receipt, was answered.
    Answered(InboundKind, HandedIn),
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LossReason {
    /// The connection was closed.
    Closed,
    /// A request was not answered in time.
    Silent,
    /// The SMS centre unbound.
    Unbound,
}

/// What became of a part that was submitted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SubmitOutcome {
    /// It was accepted.
    Accepted,
    /// It was refused for now, and will be submitted again.
    Throttled,
    /// It was refused.
    Refused,
    /// The session ended before the response.
    Unknown,
}

impl SubmitOutcome {
    /// Every one.
    pub const ALL: [Self; 4] = [
        Self::Accepted,
        Self::Throttled,
        Self::Refused,
        Self::Unknown,
    ];
}

/// What an SMS centre delivers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InboundKind {
    /// A message of a device.
    Message,
    /// A receipt.
    Receipt,
}

impl InboundKind {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::Message, Self::Receipt];
}
