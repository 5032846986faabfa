//! The messages between the handle of destinations, the supervisor of forwarders and a forwarder.

use actix::Message;
use engine::change::Batch;
use engine::delivery::command::{DestinationCommand, DestinationReply};
use engine::delivery::destination::Destination;
use engine::delivery::forwarders::ForwarderExit;
use engine::delivery::mqtt::link::BrokerCommand;
use engine::ids::{CustomerId, DestinationId, Partition};
use engine::node::lease::LeaseId;
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

/// To the supervisor: create a destination. Answers whether it delivers to it.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct CreateDestination {
    pub(super) creation: Batch,
    pub(super) destination: Box<Destination>,
    pub(super) reply: Reply<bool>,
}

/// To the supervisor: deliver to a destination that another node has created. Answers whether it
/// does.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct BeginDelivery(pub(super) Box<Destination>, pub(super) Reply<bool>);

/// To the supervisor: deliver under these leases, too, to all destinations that they are of.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct TakeLeases(pub(super) Vec<(LeaseId, u64)>, pub(super) Vec<Destination>);

/// To the supervisor: deliver to the destinations of a partition no longer. Nothing is delivered or
/// saved for them any more when this is answered.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct GivePartition(pub(super) Partition);

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

/// To a forwarder: deliver nothing any more. Its customer is removed with all its data, or another
/// node delivers.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct StopForwarder;
