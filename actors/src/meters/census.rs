//! How many devices of an arbiter are registered, awake or busy? Counted when a step changes it,
//! never by looking at all of them.
//!
//! A device that falls asleep takes no step. It is counted by the second until which it listens:
//! once that second is over, it counts as asleep, without a search for such devices.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use engine::device::activity::{DeviceActivity, InFlight, ListenWindow};
use engine::moment::Timestamp;

/// The devices of an arbiter that are in memory, by presence and activity.
#[derive(Default)]
pub(crate) struct Census {
    totals: Cell<DeviceTotals>,
    /// Devices that listen until the end of a second, by that second. There are at most as many
    /// seconds as the longest awake window has.
    listening: RefCell<BTreeMap<u32, u64>>,
    /// The first second listed; a device that listened until an earlier one is asleep.
    listed_from_s: Cell<u32>,
}

/// How many there are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct DeviceTotals {
    /// Devices without a registration.
    pub(crate) unregistered: u64,
    /// Devices that listen.
    pub(crate) awake: u64,
    /// Devices that sleep.
    pub(crate) asleep: u64,
    /// Requests that wait for their device to be seen.
    pub(crate) scheduled: u64,
    /// Requests that are being sent, or wait for their next attempt.
    pub(crate) in_progress: u64,
    /// Exchanges in flight.
    pub(crate) exchanges: u64,
}

/// What a device is counted as; each device keeps its own, so that it can be counted out again. A
/// million devices have one, so it is packed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct CountedAs {
    /// [`NOWHERE`], [`UNREGISTERED`], [`AWAKE`], or the second until whose end it listens.
    presence: u32,
    scheduled: u16,
    /// Twice its requests in progress, plus one while an exchange is in flight.
    busy: u16,
}

const _: () = assert!(size_of::<CountedAs>() == 8);

/// It is not counted yet.
const NOWHERE: u32 = 0;

/// It has no registration.
const UNREGISTERED: u32 = 1;

/// It listens as long as it is registered.
const AWAKE: u32 = 2;

impl Census {
    /// Counts a device by its present activity instead of its former one.
    pub(crate) fn recount(&self, was: CountedAs, activity: &DeviceActivity) -> CountedAs {
        let is = CountedAs::of(activity);
        if is != was {
            self.leave(was);
            self.enter(is);
        }
        is
    }

    /// Counts a device out.
    pub(crate) fn leave(&self, counted: CountedAs) {
        let mut totals = self.totals.get();
        match counted.presence {
            NOWHERE => {}
            UNREGISTERED => totals.unregistered -= 1,
            AWAKE => totals.awake -= 1,
            second if second < self.listed_from_s.get() => totals.asleep -= 1,
            second => self.unlist(second),
        }
        totals.scheduled -= u64::from(counted.scheduled);
        totals.in_progress -= counted.in_progress();
        totals.exchanges -= counted.exchanges();
        self.totals.set(totals);
    }

    /// The totals at a time, exact to the second.
    pub(crate) fn totals(&self, now: Timestamp) -> DeviceTotals {
        self.put_to_sleep(second_of(now));
        let listening = self.listening.borrow().values().sum::<u64>();
        let totals = self.totals.get();
        DeviceTotals {
            awake: totals.awake + listening,
            ..totals
        }
    }

    fn enter(&self, counted: CountedAs) {
        let mut totals = self.totals.get();
        match counted.presence {
            NOWHERE => {}
            UNREGISTERED => totals.unregistered += 1,
            AWAKE => totals.awake += 1,
            second if second < self.listed_from_s.get() => totals.asleep += 1,
            second => *self.listening.borrow_mut().entry(second).or_default() += 1,
        }
        totals.scheduled += u64::from(counted.scheduled);
        totals.in_progress += counted.in_progress();
        totals.exchanges += counted.exchanges();
        self.totals.set(totals);
    }

    fn unlist(&self, second: u32) {
        let mut listening = self.listening.borrow_mut();
        if let Some(count) = listening.get_mut(&second) {
            *count -= 1;
            if *count == 0 {
                listening.remove(&second);
            }
        }
    }

    /// Counts devices as asleep that listened until an earlier second. A clock that is set back
    /// wakes no device.
    fn put_to_sleep(&self, now_s: u32) {
        if now_s <= self.listed_from_s.get() {
            return;
        }
        self.listed_from_s.set(now_s);
        let mut listening = self.listening.borrow_mut();
        let awake = listening.split_off(&now_s);
        let fell_asleep = std::mem::replace(&mut *listening, awake);
        let mut totals = self.totals.get();
        totals.asleep += fell_asleep.into_values().sum::<u64>();
        self.totals.set(totals);
    }
}

impl CountedAs {
    /// What a device with this activity is counted as. A device with more than some thirty thousand
    /// requests counts as having that many.
    fn of(activity: &DeviceActivity) -> Self {
        let most = u32::from(u16::MAX / 2);
        let few = |count: u32| u16::try_from(count.min(most)).unwrap_or_default();
        Self {
            presence: match activity.listens {
                ListenWindow::Unregistered => UNREGISTERED,
                ListenWindow::Always => AWAKE,
                ListenWindow::Until(at) => second_of(at).max(AWAKE + 1),
            },
            scheduled: few(activity.scheduled),
            busy: 2 * few(activity.in_progress)
                + match activity.exchange {
                    InFlight::No => 0,
                    InFlight::Yes => 1,
                },
        }
    }

    fn in_progress(self) -> u64 {
        u64::from(self.busy / 2)
    }

    fn exchanges(self) -> u64 {
        u64::from(self.busy % 2)
    }
}

/// The second that contains a time; 32 bits last until the year 2106.
fn second_of(at: Timestamp) -> u32 {
    u32::try_from(at.as_ms().div_euclid(1_000)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNREGISTERED: DeviceActivity = DeviceActivity {
        listens: ListenWindow::Unregistered,
        scheduled: 0,
        in_progress: 0,
        exchange: InFlight::No,
    };

    #[test]
    fn a_device_is_counted_once_as_it_stands() {
        let census = Census::default();
        let counted = census.recount(CountedAs::default(), &UNREGISTERED);
        assert_eq!(census.totals(at(0)), totals(1, 0, 0));
        let counted = census.recount(counted, &listening(ListenWindow::Always));
        assert_eq!(census.totals(at(0)), totals(0, 1, 0));
        assert_eq!(
            census.recount(counted, &listening(ListenWindow::Always)),
            counted
        );
        census.leave(counted);
        assert_eq!(census.totals(at(0)), DeviceTotals::default());
    }

    #[test]
    fn a_device_falls_asleep_without_a_step_and_wakes_with_one() {
        let census = Census::default();
        let sleepy = census.recount(CountedAs::default(), &until(93_000));
        let other = census.recount(CountedAs::default(), &until(93_999));
        assert_eq!(census.totals(at(93_999)), totals(0, 2, 0));
        assert_eq!(census.totals(at(94_000)), totals(0, 0, 2));
        let woken = census.recount(sleepy, &until(200_000));
        assert_eq!(census.totals(at(107_000)), totals(0, 1, 1));
        census.leave(other);
        census.leave(woken);
        assert_eq!(census.totals(at(107_000)), DeviceTotals::default());
    }

    #[test]
    fn a_device_that_is_restored_asleep_is_asleep_at_once() {
        let census = Census::default();
        census.totals(at(500_000));
        let counted = census.recount(CountedAs::default(), &until(93_000));
        assert_eq!(census.totals(at(500_000)), totals(0, 0, 1));
        census.leave(counted);
        assert_eq!(census.totals(at(500_000)), DeviceTotals::default());
    }

    #[test]
    fn requests_and_exchanges_are_counted_with_their_device() {
        let census = Census::default();
        let busy = DeviceActivity {
            scheduled: 2,
            in_progress: 1,
            exchange: InFlight::Yes,
            ..listening(ListenWindow::Always)
        };
        let one = census.recount(CountedAs::default(), &busy);
        let other = census.recount(CountedAs::default(), &busy);
        let both = census.totals(at(0));
        assert_eq!(
            (both.scheduled, both.in_progress, both.exchanges),
            (4, 2, 2)
        );
        census.recount(one, &listening(ListenWindow::Always));
        census.leave(other);
        assert_eq!(census.totals(at(0)), totals(0, 1, 0));
    }

    fn totals(unregistered: u64, awake: u64, asleep: u64) -> DeviceTotals {
        DeviceTotals {
            unregistered,
            awake,
            asleep,
            ..DeviceTotals::default()
        }
    }

    fn listening(listens: ListenWindow) -> DeviceActivity {
        DeviceActivity {
            listens,
            ..UNREGISTERED
        }
    }

    fn until(ms: i64) -> DeviceActivity {
        listening(ListenWindow::Until(at(ms)))
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(ms)
    }
}
