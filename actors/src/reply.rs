//! When does whoever asked an actor hear of it? Once the step is durable, or is known not to be.

use tokio::sync::oneshot;

use crate::devices::Unserved;

/// Where an answer goes; a question whose answer nobody awaits any more is done all the same.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Unserved>>;

/// What is left to do once a step is durable, or is known not to be.
pub(crate) type Afterwards = Box<dyn FnOnce(Result<(), Unserved>)>;

/// Gives an answer once the step behind it is durable.
pub(crate) fn reply_with<T: 'static>(answer: T, reply: Reply<T>) -> Afterwards {
    Box::new(move |saved| {
        // A caller who went away reads back what became of it.
        let _ = reply.send(saved.map(|()| answer)).is_ok();
    })
}
