//! How does the caller of a command learn its result? Once the step is durable, or known to have
//! failed.

use engine::arbiter::input::DeviceReply;
use engine::supervision::Unserved;
use store::CommitError;
use tokio::sync::oneshot;
use tracing::Span;

/// Where the answer to a command goes, and the span of the call behind it.
#[derive(Debug)]
pub(crate) struct ReplyTo {
    pub(crate) sender: oneshot::Sender<Result<DeviceReply, Unserved>>,
    pub(crate) span: Span,
}

impl ReplyTo {
    /// Sends the answer.
    pub(crate) fn give(self, answered: Result<DeviceReply, Unserved>) {
        answer(self.sender, answered);
    }
}

/// Sends the answer to a command.
pub(crate) fn answer<T>(reply: oneshot::Sender<T>, answered: T) {
    // A caller that went away can read the result later.
    let _ = reply.send(answered).is_ok();
}

/// The caller's error for a step that was not saved.
pub(crate) fn refusal(error: CommitError) -> Unserved {
    match error {
        CommitError::Full => Unserved::Busy,
        CommitError::Conflict => Unserved::Unknown,
        CommitError::Fenced | CommitError::Unavailable => Unserved::Failed,
    }
}
