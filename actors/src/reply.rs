//! How does whoever asked a device hear of it? Once the step is durable, or is known not to be.

use engine::arbiter::input::{Answer, Unserved};
use tokio::sync::oneshot;
use tracing::Span;

/// Where the answer to a question goes, and the span of the call that asks it.
#[derive(Debug)]
pub(crate) struct ReplyTo {
    pub(crate) sender: oneshot::Sender<Result<Answer, Unserved>>,
    pub(crate) span: Span,
}

impl ReplyTo {
    /// Answers.
    pub(crate) fn give(self, answer: Result<Answer, Unserved>) {
        // A caller who went away reads back what became of it.
        let _ = self.sender.send(answer).is_ok();
    }
}

/// Where the answer to a question of a certain kind goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Unserved>>;

/// Answers once it is known whether the step was saved.
pub(crate) type Afterwards = Box<dyn FnOnce(Result<(), Unserved>)>;

/// Keeps an answer until then.
pub(crate) fn reply_with<T: 'static>(answer: T, reply: Reply<T>) -> Afterwards {
    Box::new(move |saved| {
        // A caller who went away reads back what became of it.
        let _ = reply.send(saved.map(|()| answer)).is_ok();
    })
}
