//! When is an arbiter's next deadline? A stream that fires once it has come, and when a device has
//! something for another arbiter.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use engine::moment::Timestamp;
use futures_core::Stream;
use tokio::time::{Sleep, sleep};

use crate::deadline_timer::SLEEP_MS_MAX;
use crate::registry::context::ArbiterContext;

/// A deadline of the arbiter has come, or something waits for other arbiters.
pub(crate) struct AlarmFired;

/// Fires whenever a deadline of an arbiter has come.
pub(crate) struct Alarm {
    context: Rc<ArbiterContext>,
    sleeping: Option<(Timestamp, Pin<Box<Sleep>>)>,
}

impl Alarm {
    /// The alarm of an arbiter.
    pub(crate) fn new(context: Rc<ArbiterContext>) -> Self {
        Self {
            context,
            sleeping: None,
        }
    }

    fn sleep_until(&mut self, now: Timestamp, at: Timestamp) -> &mut Pin<Box<Sleep>> {
        let wake_at = at.min(now.plus_ms(SLEEP_MS_MAX));
        let wait_ms = u64::try_from(wake_at.since_ms(now)).unwrap_or(0);
        let fresh = || (wake_at, Box::pin(sleep(Duration::from_millis(wait_ms))));
        if self
            .sleeping
            .as_ref()
            .is_none_or(|(set_for, _)| *set_for != wake_at)
        {
            self.sleeping = Some(fresh());
        }
        &mut self.sleeping.get_or_insert_with(fresh).1
    }
}

impl Stream for Alarm {
    type Item = AlarmFired;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AlarmFired>> {
        self.context.alarm_waker.wake_by(cx.waker());
        loop {
            if self.context.peer_arbiters.borrow().has_outgoing() {
                return Poll::Ready(Some(AlarmFired));
            }
            let next = self.context.next_timeout();
            self.context.alarm_waker.set_for(next);
            let Some(at) = next else {
                return Poll::Pending;
            };
            let now = self.context.clock.now();
            if at <= now {
                self.sleeping = None;
                return Poll::Ready(Some(AlarmFired));
            }
            if self.sleep_until(now, at).as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.sleeping = None;
        }
    }
}
