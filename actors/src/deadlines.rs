//! When is the next device due? One lazy queue of deadlines for all devices of an arbiter.
//!
//! A device has one deadline here: the one it is armed for. A deadline that moves later is left to
//! fire early, and the device then says anew when it is due, so a registration update costs
//! nothing here; one that moves earlier takes the place of the one before.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use engine::ids::DeviceKey;
use engine::moment::Timestamp;
use futures_core::Stream;
use tokio::time::{Sleep, sleep};

use crate::clock::Clock;

/// The longest sleep: a clock set forward is noticed at least this soon.
const SLEEP_MS_MAX: i64 = 60_000;

/// The deadlines of the devices of an arbiter.
#[derive(Clone, Default)]
pub(crate) struct Deadlines(Rc<RefCell<Queue>>);

#[derive(Default)]
struct Queue {
    due: BTreeSet<(Timestamp, DeviceKey)>,
    waker: Option<Waker>,
}

impl Deadlines {
    /// Notes that a device is due at a time.
    pub(crate) fn arm(&self, at: Timestamp, device: DeviceKey) {
        let mut queue = self.0.borrow_mut();
        queue.due.insert((at, device));
        if queue.due.first() == Some(&(at, device))
            && let Some(waker) = queue.waker.take()
        {
            waker.wake();
        }
    }

    /// Forgets that a device is due at a time.
    pub(crate) fn disarm(&self, at: Timestamp, device: DeviceKey) {
        self.0.borrow_mut().due.remove(&(at, device));
    }

    /// Takes a device that is due.
    pub(crate) fn take_due(&self, now: Timestamp) -> Option<DeviceKey> {
        let mut queue = self.0.borrow_mut();
        let (at, _) = queue.due.first()?;
        if *at > now {
            return None;
        }
        queue.due.pop_first().map(|(_, device)| device)
    }

    fn next(&self) -> Option<Timestamp> {
        self.0.borrow().due.first().map(|(at, _)| *at)
    }

    fn wake_by(&self, waker: &Waker) {
        self.0.borrow_mut().waker = Some(waker.clone());
    }
}

/// Some device is due.
pub(crate) struct Rang;

/// Rings whenever a device is due.
pub(crate) struct Alarm {
    deadlines: Deadlines,
    clock: Clock,
    sleeping: Option<(Timestamp, Pin<Box<Sleep>>)>,
}

impl Alarm {
    /// An alarm for these deadlines.
    pub(crate) fn new(deadlines: Deadlines, clock: Clock) -> Self {
        Self {
            deadlines,
            clock,
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
    type Item = Rang;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Rang>> {
        self.deadlines.wake_by(cx.waker());
        loop {
            let Some(at) = self.deadlines.next() else {
                return Poll::Pending;
            };
            let now = self.clock.now();
            if at <= now {
                self.sleeping = None;
                return Poll::Ready(Some(Rang));
            }
            if self.sleep_until(now, at).as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.sleeping = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::ids::{CustomerId, DeviceId};

    use super::*;

    #[test]
    fn devices_are_taken_in_the_order_they_are_due_and_not_before() {
        let deadlines = Deadlines::default();
        let (early, late) = (device("early"), device("late"));
        deadlines.arm(Timestamp::from_ms(20), late);
        deadlines.arm(Timestamp::from_ms(10), early);
        assert_eq!(deadlines.take_due(Timestamp::from_ms(9)), None);
        assert_eq!(deadlines.take_due(Timestamp::from_ms(30)), Some(early));
        assert_eq!(deadlines.take_due(Timestamp::from_ms(30)), Some(late));
        assert_eq!(deadlines.take_due(Timestamp::from_ms(30)), None);
    }

    #[test]
    fn a_device_that_was_disarmed_is_not_due() {
        let deadlines = Deadlines::default();
        let meter = device("meter");
        deadlines.arm(Timestamp::from_ms(10), meter);
        deadlines.disarm(Timestamp::from_ms(10), meter);
        deadlines.arm(Timestamp::from_ms(5), meter);
        assert_eq!(deadlines.take_due(Timestamp::from_ms(30)), Some(meter));
        assert_eq!(deadlines.take_due(Timestamp::from_ms(30)), None);
    }

    fn device(name: &str) -> DeviceKey {
        let customer = CustomerId::parse("acme").unwrap();
        DeviceKey::of(&customer, &DeviceId::parse(name).unwrap())
    }
}
