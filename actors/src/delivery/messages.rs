//! What the door to the destinations, the supervisor of forwarders and a forwarder tell each other.

use actix::Message;
use engine::delivery::command::{DestinationCommand, DestinationReply};
use engine::delivery::destination::Destination;
use engine::delivery::forwarders::ForwarderExit;
use engine::ids::{CustomerId, DestinationId};
use engine::supervision::Generation;
use engine::supervision::Unserved;
use store::CommitError;
use tokio::sync::oneshot;
use tracing::Span;

/// Where the answer to a question goes.
pub(super) type Reply<T> = oneshot::Sender<Result<T, Unserved>>;

/// Gives an answer.
pub(super) fn answer<T>(reply: Reply<T>, answer: Result<T, Unserved>) {
    // A caller who went away reads back what became of it.
    let _ = reply.send(answer).is_ok();
}

/// What a caller is told of a step that was not saved.
pub(super) fn refusal(error: CommitError) -> Unserved {
    match error {
        CommitError::Full => Unserved::Busy,
        CommitError::Conflict => Unserved::Unknown,
        CommitError::Fenced | CommitError::Unavailable => Unserved::Failed,
    }
}

/// To the supervisor: a destination is to be made.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct CreateDestination {
    pub(super) destination: Box<Destination>,
    pub(super) reply: Reply<()>,
}

/// To the supervisor: something is asked of a destination.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct AskDestination {
    pub(super) id: DestinationId,
    pub(super) asked: ForwarderCommand,
}

/// To the supervisor: a customer is being removed. Nothing is delivered for it any more, and
/// nothing said of what was.
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

/// To a forwarder: a question, and the span of the call that asks it.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct ForwarderCommand {
    pub(super) command: DestinationCommand,
    pub(super) reply: Reply<DestinationReply>,
    pub(super) span: Span,
}

/// To a forwarder: its customer goes, with all that is kept of it.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct ForgetDestination;
