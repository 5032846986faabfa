//! Which tasks of a destination are running? Each is a task of its own on the arbiter: the context
//! of an actor polls all its futures whenever one of them is woken, and there are many here.

use std::future::{self, Future};
use std::panic;
use std::pin::Pin;
use std::task::{self, Poll};

use actix::fut::ActorFuture;
use actix::{AsyncContext as _, Context};
use engine::delivery::forwarding::ForwarderTask;
use store::Unavailable;
use tokio::task::JoinSet;

use super::{ForwarderActor, Input};

/// The running tasks, which end with their destination's actor: the next actor may begin them
/// again.
#[derive(Default)]
pub(super) struct RunningTasks {
    tasks: JoinSet<Input>,
}

impl RunningTasks {
    /// Begins a task.
    pub(super) fn begin(
        &mut self,
        errand: ForwarderTask,
        perform: impl Future<Output = Result<Input, Unavailable>> + 'static,
    ) {
        let ended = async move { perform.await.unwrap_or(Input::ReadFailed(errand)) };
        self.tasks.spawn_local(ended);
    }

    /// The next task that ended.
    fn poll_next(&mut self, task: &mut task::Context<'_>) -> Poll<Input> {
        if self.tasks.is_empty() {
            // An empty set would not wake this task for what is begun later.
            self.tasks.spawn_local(future::pending());
        }
        match self.tasks.poll_join_next(task) {
            Poll::Ready(Some(Ok(came))) => Poll::Ready(came),
            Poll::Ready(Some(Err(error))) => match error.try_into_panic() {
                // A panic of a task is a panic of its destination.
                Ok(why) => panic::resume_unwind(why),
                // Tasks are aborted only with their actor.
                Err(_) => Poll::Pending,
            },
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

/// Gives a destination the results of its tasks, one after the other: a step that saves is
/// committed before the next one begins.
pub(super) struct Completions;

impl ActorFuture<ForwarderActor> for Completions {
    type Output = ();

    fn poll(
        self: Pin<&mut Self>,
        forwarder: &mut ForwarderActor,
        ctx: &mut Context<ForwarderActor>,
        task: &mut task::Context<'_>,
    ) -> Poll<()> {
        // The context polls this again as soon as it waits for nothing.
        while !ctx.waiting() {
            match forwarder.tasks.poll_next(task) {
                Poll::Ready(came) => forwarder.take(came, ctx),
                Poll::Pending => break,
            }
        }
        Poll::Pending
    }
}
