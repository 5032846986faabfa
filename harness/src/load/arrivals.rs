//! When may the next request leave?
//!
//! With a closed window, when one of those in progress is answered. With a rate, when the clock
//! says so, independent of the others: a request that leaves late counts its latency from its due
//! time. Otherwise a server that stalls would receive fewer requests while it stalls, and look fast
//! (coordinated omission).

/// How requests follow each other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ArrivalPattern {
    /// This many are in progress at any time.
    Window(u32),
    /// This many leave each second.
    Rate(u32),
    /// All are due at the start.
    AtOnce,
}

/// One of several shares of a pattern.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ArrivalShare {
    /// Its index, from 0.
    pub index: u32,
    /// The number of shares, at least 1.
    pub of: u32,
}

const NS_PER_S: u128 = 1_000_000_000;

/// When the requests of one share leave.
#[derive(Clone, Debug)]
pub struct ArrivalSchedule {
    arrivals: ArrivalPattern,
    share: ArrivalShare,
    begun_at_ns: u64,
    until_ns: u64,
    begun: u64,
}

impl ArrivalSchedule {
    /// A schedule from now until a time after which none is due.
    pub fn begin(
        arrivals: ArrivalPattern,
        share: ArrivalShare,
        now_ns: u64,
        until_ns: u64,
    ) -> Self {
        Self {
            arrivals,
            share,
            begun_at_ns: now_ns,
            until_ns,
            begun: 0,
        }
    }

    /// The due time of the next request, if it may leave now.
    pub fn due(&self, now_ns: u64, open: u32) -> Option<u64> {
        match self.arrivals {
            ArrivalPattern::Window(_) if now_ns >= self.until_ns => None,
            ArrivalPattern::Window(size) => (open < self.own_part(size)).then_some(now_ns),
            ArrivalPattern::Rate(_) | ArrivalPattern::AtOnce => {
                self.next_at().filter(|at_ns| *at_ns <= now_ns)
            }
        }
    }

    /// Marks the due request as sent.
    pub fn advance(&mut self) {
        self.begun += 1;
    }

    /// When the next request becomes due, if the clock decides.
    pub fn next_at(&self) -> Option<u64> {
        match self.arrivals {
            ArrivalPattern::Window(_) => None,
            ArrivalPattern::Rate(rate) => {
                let number = u128::from(self.begun) * u128::from(self.share.of)
                    + u128::from(self.share.index);
                let after_ns = number * NS_PER_S / u128::from(rate.max(1));
                let at_ns = u64::try_from(after_ns)
                    .ok()?
                    .checked_add(self.begun_at_ns)?;
                (at_ns < self.until_ns).then_some(at_ns)
            }
            ArrivalPattern::AtOnce => {
                (self.begun_at_ns < self.until_ns).then_some(self.begun_at_ns)
            }
        }
    }

    /// Whether no further request becomes due.
    pub fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.until_ns && self.next_at().is_none()
    }

    /// Ends early: none becomes due from now on.
    pub fn end(&mut self, now_ns: u64) {
        self.until_ns = self.until_ns.min(now_ns);
    }

    /// Abandons the due requests; returns their number.
    pub fn abandon(&mut self) -> u64 {
        let begun = self.begun;
        while self.next_at().is_some() {
            self.begun += 1;
        }
        self.begun - begun
    }

    // The parts of all shares add up to the whole, and each share has at least one: without a
    // window it would never start.
    fn own_part(&self, size: u32) -> u32 {
        let ArrivalShare { index, of } = self.share;
        let rest = u32::from(index < size % of.max(1));
        (size / of.max(1) + rest).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: ArrivalShare = ArrivalShare { index: 0, of: 1 };
    const MS: u64 = 1_000_000;

    #[test]
    fn a_window_permits_as_many_requests_as_it_has_free() {
        let schedule = ArrivalSchedule::begin(ArrivalPattern::Window(2), WHOLE, 5, 100);
        assert_eq!(schedule.due(7, 0), Some(7));
        assert_eq!(schedule.due(7, 1), Some(7));
        assert_eq!(schedule.due(7, 2), None);
        assert_eq!(schedule.next_at(), None);
        assert_eq!(schedule.due(100, 0), None);
        assert!(schedule.is_over(100) && !schedule.is_over(99));
    }

    #[test]
    fn a_rate_depends_on_the_clock_alone() {
        let mut schedule =
            ArrivalSchedule::begin(ArrivalPattern::Rate(1_000), WHOLE, 10 * MS, u64::MAX);
        assert_eq!(schedule.due(10 * MS, 1_000_000), Some(10 * MS));
        schedule.advance();
        assert_eq!(schedule.due(11 * MS - 1, 0), None);
        assert_eq!(schedule.next_at(), Some(11 * MS));
        assert_eq!(schedule.due(11 * MS, 0), Some(11 * MS));
    }

    #[test]
    fn requests_at_once_are_due_since_the_start() {
        let mut schedule = ArrivalSchedule::begin(ArrivalPattern::AtOnce, WHOLE, 5, u64::MAX);
        for open in 0..1_000 {
            assert_eq!(schedule.due(5 + u64::from(open), open), Some(5));
            schedule.advance();
        }
        schedule.end(5);
        assert_eq!(schedule.due(2_000, 0), None);
        assert!(schedule.is_over(2_000));
    }

    #[test]
    fn a_schedule_that_ends_early_has_no_further_request() {
        for arrivals in [ArrivalPattern::Window(2), ArrivalPattern::Rate(1_000)] {
            let mut schedule = ArrivalSchedule::begin(arrivals, WHOLE, 0, u64::MAX);
            schedule.advance();
            schedule.end(MS);
            assert_eq!(schedule.due(9 * MS, 0), None, "{arrivals:?}");
            assert!(schedule.is_over(9 * MS), "{arrivals:?}");
        }
    }

    #[test]
    fn a_late_request_keeps_its_due_time() {
        let mut schedule = ArrivalSchedule::begin(ArrivalPattern::Rate(1_000), WHOLE, 0, u64::MAX);
        let mut left = Vec::new();
        // Nothing could leave for half a second.
        while let Some(due_at_ns) = schedule.due(500 * MS, 0) {
            left.push(due_at_ns);
            schedule.advance();
        }
        let expected: Vec<u64> = (0..=500).map(|ms| ms * MS).collect();
        assert_eq!(left, expected);
    }

    #[test]
    fn a_rate_does_not_drift() {
        let mut schedule = ArrivalSchedule::begin(ArrivalPattern::Rate(3), WHOLE, 0, u64::MAX);
        for _ in 0..3_000_000 {
            schedule.advance();
        }
        assert_eq!(schedule.next_at(), Some(1_000_000 * 1_000 * MS));
    }

    #[test]
    fn shares_of_a_rate_take_turns() {
        let share = |index| ArrivalShare { index, of: 3 };
        let times = |index| {
            let mut schedule =
                ArrivalSchedule::begin(ArrivalPattern::Rate(1_000), share(index), 0, 9 * MS);
            let mut times = Vec::new();
            while let Some(at_ns) = schedule.next_at() {
                times.push(at_ns / MS);
                schedule.advance();
            }
            times
        };
        assert_eq!(times(0), [0, 3, 6]);
        assert_eq!(times(1), [1, 4, 7]);
        assert_eq!(times(2), [2, 5, 8]);
    }

    #[test]
    fn shares_of_a_window_add_up() {
        let part = |size, index, of| {
            let schedule = ArrivalSchedule::begin(
                ArrivalPattern::Window(size),
                ArrivalShare { index, of },
                0,
                1,
            );
            (0..).find(|open| schedule.due(0, *open).is_none()).unwrap()
        };
        assert_eq!([part(8, 0, 3), part(8, 1, 3), part(8, 2, 3)], [3, 3, 2]);
        assert_eq!([part(1, 0, 2), part(1, 1, 2)], [1, 1]);
    }

    #[test]
    fn abandoned_requests_are_counted() {
        let mut schedule = ArrivalSchedule::begin(ArrivalPattern::Rate(1_000), WHOLE, 0, 10 * MS);
        schedule.advance();
        schedule.advance();
        assert!(!schedule.is_over(20 * MS));
        assert_eq!(schedule.abandon(), 8);
        assert!(schedule.is_over(20 * MS));
    }
}
