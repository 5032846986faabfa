//! How does whoever asked a device hear of it? Once the step is durable, or is known not to be.

use engine::arbiter::input::DeviceReply;
use engine::supervision::Unserved;
use tokio::sync::oneshot;
use tracing::Span;

/// Where the answer to a question goes, and the span of the call that asks it.
#[derive(Debug)]
pub(crate) struct ReplyTo {
    pub(crate) sender: oneshot::Sender<Result<DeviceReply, Unserved>>,
    pub(crate) span: Span,
}

impl ReplyTo {
    /// Answers.
    pub(crate) fn give(self, answer: Result<DeviceReply, Unserved>) {
        // A caller who went away reads back what became of it.
        let _ = self.sender.send(answer).is_ok();
    }
}
