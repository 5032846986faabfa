//! Which devices sleep, and when does the next one wake or fall asleep? Queue mode (LwM2M Core 1.1
//! section 6.5).
//!
//! ```text
//!   awake ---- no datagram for the awake time ----> asleep
//!     ^                                               |
//!     +------- about the sleep time is over ----------+
//! ```
//! Every datagram that a device sends or receives keeps it awake. Devices that were switched on
//! together would keep waking together, so each sleep lasts between half and one and a half of
//! the sleep time.

use super::deadlines::Deadlines;
use crate::rng::Rng;

/// How long devices sleep, and stay awake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SleepTimes {
    /// How long a device sleeps, on average.
    pub asleep_ns: u64,
    /// How long a device stays awake after its last datagram.
    pub awake_ns: u64,
}

/// The devices that sleep and wake.
#[derive(Clone, Debug)]
pub(super) struct SleepCycle {
    times: SleepTimes,
    alarms: Deadlines,
    // Until when each device is awake.
    awake_until_ns: Vec<u64>,
}

/// The device sleeps.
const ASLEEP: u64 = 0;

/// The device has not sent anything yet, and does not sleep before.
const NEW: u64 = u64::MAX;

/// What a device is due for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SleepDue {
    /// It has slept for long enough.
    Wake,
    /// It has been awake for long enough.
    Sleep,
}

impl SleepCycle {
    /// This many devices, none of which has sent anything.
    pub(super) fn of(times: SleepTimes, count: u32) -> Self {
        Self {
            times,
            alarms: Deadlines::default(),
            awake_until_ns: vec![NEW; count as usize],
        }
    }

    /// Whether a device sleeps.
    pub(super) fn is_asleep(&self, member: u32) -> bool {
        self.awake_until_ns.get(member as usize) == Some(&ASLEEP)
    }

    /// A device sent or received a datagram: it stays awake.
    pub(super) fn stay_awake(&mut self, member: u32, now_ns: u64) {
        let until_ns = now_ns.saturating_add(self.times.awake_ns);
        self.set(member, until_ns, until_ns);
    }

    /// A device falls asleep.
    pub(super) fn fall_asleep(&mut self, member: u32, now_ns: u64, rng: &mut Rng) {
        let span_ns = u128::from(self.times.asleep_ns) * u128::from(rng.number_u32());
        let part_ns = u64::try_from(span_ns >> 32).unwrap_or(u64::MAX);
        let sleep_ns = (self.times.asleep_ns / 2).saturating_add(part_ns);
        self.set(member, ASLEEP, now_ns.saturating_add(sleep_ns));
    }

    /// The next device that is due, and for what.
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<(u32, SleepDue)> {
        while let Some(member) = self.alarms.take_due(now_ns) {
            match self.awake_until_ns.get(member as usize).copied()? {
                ASLEEP => return Some((member, SleepDue::Wake)),
                until_ns if until_ns <= now_ns => return Some((member, SleepDue::Sleep)),
                until_ns => self.alarms.set(member, until_ns),
            }
        }
        None
    }

    /// When the next device may be due.
    pub(super) fn next_at(&self) -> Option<u64> {
        self.alarms.next_at()
    }

    fn set(&mut self, member: u32, until_ns: u64, alarm_at_ns: u64) {
        if let Some(awake_until_ns) = self.awake_until_ns.get_mut(member as usize) {
            *awake_until_ns = until_ns;
            self.alarms.set(member, alarm_at_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: SleepTimes = SleepTimes {
        asleep_ns: 1_000,
        awake_ns: 100,
    };

    #[test]
    fn a_device_sleeps_once_it_is_quiet_and_wakes_later() {
        let mut cycle = SleepCycle::of(TIMES, 2);
        let mut rng = Rng::from_seed(1);
        assert_eq!(cycle.next_at(), None, "a new device does not sleep");
        cycle.stay_awake(1, 0);
        cycle.stay_awake(1, 50);
        assert_eq!(cycle.take_due(149), None);
        assert_eq!(cycle.take_due(150), Some((1, SleepDue::Sleep)));
        cycle.fall_asleep(1, 150, &mut rng);
        assert!(cycle.is_asleep(1) && !cycle.is_asleep(0));
        let wakes_at_ns = cycle.next_at().unwrap();
        assert!((650..=1_650).contains(&wakes_at_ns), "{wakes_at_ns}");
        assert_eq!(cycle.take_due(wakes_at_ns - 1), None);
        assert_eq!(cycle.take_due(wakes_at_ns), Some((1, SleepDue::Wake)));
        assert_eq!(cycle.take_due(u64::MAX), None);
    }

    #[test]
    fn a_device_that_wakes_early_does_not_wake_again_for_its_alarm() {
        let mut cycle = SleepCycle::of(TIMES, 1);
        cycle.fall_asleep(0, 0, &mut Rng::from_seed(1));
        let wakes_at_ns = cycle.next_at().unwrap();
        cycle.stay_awake(0, wakes_at_ns - 50);
        assert!(!cycle.is_asleep(0));
        assert_eq!(cycle.take_due(wakes_at_ns), None);
        let sleeps_at_ns = wakes_at_ns + 50;
        assert_eq!(cycle.take_due(sleeps_at_ns), Some((0, SleepDue::Sleep)));
    }

    #[test]
    fn devices_that_fall_asleep_together_wake_apart() {
        let mut cycle = SleepCycle::of(TIMES, 1_000);
        let mut rng = Rng::from_seed(1);
        for member in 0..1_000 {
            cycle.fall_asleep(member, 0, &mut rng);
        }
        let mut woken = |until_ns| {
            std::iter::from_fn(|| cycle.take_due(until_ns))
                .filter(|(_, due)| *due == SleepDue::Wake)
                .count()
        };
        assert_eq!(woken(499), 0);
        let first_half = woken(1_000);
        assert!((400..600).contains(&first_half), "{first_half}");
        assert_eq!(first_half + woken(1_500), 1_000);
    }
}
