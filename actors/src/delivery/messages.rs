//! The messages between the handle of destinations, the supervisor of forwarders and a forwarder.

use actix::Message;
use engine::change::Batch;
use engine::delivery::command::{DestinationCommand, DestinationReply};
use engine::delivery::forwarders::ForwarderExit;
use engine::delivery::mqtt::link::BrokerCommand;
use engine::ids::{CustomerId, DestinationId};
use engine::supervision::Generation;
use engine::supervision::Unserved;
use tokio::sync::oneshot;
use tracing::Span;

/// Where the answer to a command goes.
pub(super) type Reply<T> = oneshot::Sender<Result<T, Unserved>>;

/// To the API: a command of a customer that came from its broker.
#[derive(Debug)]
pub struct CommandCall {
    /// The customer.
    pub customer: CustomerId,
    /// The command.
    pub command: BrokerCommand,
    /// Takes the answer, in JSON.
    pub reply: oneshot::Sender<Vec<u8>>,
}

/// To the supervisor: create a destination.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct CreateDestination {
    pub(super) creation: Batch,
    pub(super) destination: (DestinationId, CustomerId),
    pub(super) reply: Reply<()>,
}

/// To the supervisor: a command for a destination.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct AskDestination {
    pub(super) id: DestinationId,
    pub(super) request: ForwarderCommand,
}

/// To the supervisor: a customer is being removed. Nothing is delivered for it any more, and no
/// progress of earlier deliveries is saved.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct ForgetCustomer(pub(super) CustomerId);

/// To the supervisor: a forwarder ended.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct ForwarderEnded {
    pub(super) id: DestinationId,
    pub(super) generation: Generation,
    pub(super) end: ForwarderExit,
}

/// To a forwarder: a command, and the span of the call behind it.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct ForwarderCommand {
    pub(super) command: DestinationCommand,
    pub(super) reply: Reply<DestinationReply>,
    pub(super) span: Span,
}

/// To a forwarder: its customer is removed, with all its data.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct ForgetDestination;
