//! Which exchange is due next, and when?
//!
//! An exchange has one alarm at a time. Most exchanges are answered long before it, so an alarm is
//! not cancelled: when it expires, the caller checks the exchange that then has the slot, and sets
//! the next alarm. So there are about as many alarms as requests in progress, and setting one is
//! rare.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When each slot is due.
#[derive(Clone, Debug, Default)]
pub(super) struct Deadlines {
    alarms: BinaryHeap<Reverse<(u64, u32)>>,
    // The alarm of each slot; an earlier alarm makes a later one obsolete.
    awaited_ns: Vec<u64>,
}

/// No alarm is set.
const NONE: u64 = u64::MAX;

impl Deadlines {
    /// Makes a slot due no later than this time.
    pub(super) fn set(&mut self, place: u32, at_ns: u64) {
        let index = place as usize;
        if index >= self.awaited_ns.len() {
            self.awaited_ns.resize(index + 1, NONE);
        }
        let Some(awaited_ns) = self.awaited_ns.get_mut(index) else {
            return;
        };
        if at_ns < *awaited_ns {
            *awaited_ns = at_ns;
            self.alarms.push(Reverse((at_ns, place)));
        }
    }

    /// Takes a due slot; its next alarm must be set again.
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<u32> {
        while self.next_at().is_some_and(|at_ns| at_ns <= now_ns) {
            let Reverse((at_ns, place)) = self.alarms.pop()?;
            let awaited_ns = self.awaited_ns.get_mut(place as usize)?;
            if *awaited_ns == at_ns {
                *awaited_ns = NONE;
                return Some(place);
            }
        }
        None
    }

    /// When the next slot is due.
    pub(super) fn next_at(&self) -> Option<u64> {
        self.alarms.peek().map(|Reverse((at_ns, _))| *at_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_become_due_in_the_order_of_their_times() {
        let mut deadlines = Deadlines::default();
        for (place, at_ns) in [(4, 30), (0, 10), (2, 20)] {
            deadlines.set(place, at_ns);
        }
        assert_eq!(deadlines.next_at(), Some(10));
        assert_eq!(deadlines.take_due(9), None);
        assert_eq!(deadlines.take_due(25), Some(0));
        assert_eq!(deadlines.take_due(25), Some(2));
        assert_eq!(deadlines.take_due(25), None);
        assert_eq!(deadlines.take_due(30), Some(4));
        assert_eq!(deadlines.next_at(), None);
    }

    #[test]
    fn a_later_time_keeps_the_earlier_alarm() {
        let mut deadlines = Deadlines::default();
        deadlines.set(0, 10);
        for at_ns in 11..1_000 {
            deadlines.set(0, at_ns);
        }
        assert_eq!(deadlines.alarms.len(), 1);
        assert_eq!(deadlines.take_due(2_000), Some(0));
        assert_eq!(deadlines.take_due(2_000), None);
        deadlines.set(0, 3_000);
        assert_eq!(deadlines.take_due(3_000), Some(0));
    }

    #[test]
    fn an_earlier_time_replaces_the_later_alarm() {
        let mut deadlines = Deadlines::default();
        deadlines.set(0, 100);
        deadlines.set(0, 10);
        assert_eq!(deadlines.take_due(10), Some(0));
        deadlines.set(0, 200);
        assert_eq!(deadlines.take_due(100), None);
        assert_eq!(deadlines.take_due(200), Some(0));
    }
}
