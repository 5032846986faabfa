//! When does an actor give its machine a timeout? A timer that is armed for the machine's deadline.

use actix::{Actor, AsyncContext as _, Context, SpawnHandle};
use engine::moment::Timestamp;

use crate::clock::Clock;

/// The longest sleep of whoever must notice a clock that is set forward.
pub(crate) const SLEEP_MS_MAX: i64 = 60_000;

/// The timer of an actor.
#[derive(Default)]
pub(crate) struct DeadlineTimer(Option<(Timestamp, SpawnHandle)>);

impl DeadlineTimer {
    /// Arms the timer for a deadline; an earlier one suffices. What is done then has to begin with
    /// [`Self::note_fired`].
    pub(crate) fn arm<A: Actor<Context = Context<A>>>(
        &mut self,
        ctx: &mut Context<A>,
        clock: &Clock,
        at: Timestamp,
        fire: impl FnOnce(&mut A, &mut Context<A>) + 'static,
    ) {
        if self.0.is_some_and(|(armed_at, _)| armed_at <= at) {
            return;
        }
        if let Some((_, handle)) = self.0.take() {
            ctx.cancel_future(handle);
        }
        let handle = ctx.run_later(clock.until(at), fire);
        self.0 = Some((at, handle));
    }

    /// Notes that the timer fired.
    pub(crate) fn note_fired(&mut self) {
        self.0 = None;
    }
}
