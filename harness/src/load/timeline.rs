//! How did a task go over time? Answers, failures and latencies of each interval, in bounded
//! memory.
//!
//! Intervals are short at first. When there are too many, two become one.

use hdrhistogram::Histogram;

/// The first length of an interval.
const INTERVAL_NS: u64 = 100_000_000;

/// More than a chart has room for; two intervals of a longer task become one.
const INTERVALS_MAX: usize = 240;

/// Latencies below are not told apart.
const LATENCY_NS_MIN: u64 = 10_000;

/// The maximum recorded latency.
const LATENCY_NS_MAX: u64 = 1_000 * 1_000_000_000;

/// What happened over time.
#[derive(Clone, Debug)]
pub struct Timeline {
    begun_at_ns: u64,
    interval_ns: u64,
    intervals: Vec<TimelineInterval>,
}

/// What happened in an interval.
#[derive(Clone, Debug, Default)]
pub struct TimelineInterval {
    /// Requests with the expected response.
    pub answered: u64,
    /// Failed requests.
    pub failed: u64,
    // One digit; none without an answer.
    latencies: Option<Histogram<u32>>,
}

impl Timeline {
    /// A timeline that begins now.
    pub fn begin(now_ns: u64) -> Self {
        Self {
            begun_at_ns: now_ns,
            interval_ns: INTERVAL_NS,
            intervals: Vec::new(),
        }
    }

    /// Records an answer.
    pub(super) fn answer(&mut self, now_ns: u64, latency_ns: u64) {
        let interval = self.interval_at(now_ns);
        interval.answered += 1;
        let latencies = interval.latencies.get_or_insert_with(histogram);
        latencies.saturating_record(latency_ns);
    }

    /// Records a failure.
    pub(super) fn fail(&mut self, now_ns: u64) {
        self.interval_at(now_ns).failed += 1;
    }

    /// Adds what happened to other devices at the same time.
    pub(super) fn add(&mut self, other: &Self) {
        if self.intervals.is_empty() {
            self.clone_from(other);
            return;
        }
        while self.interval_ns < other.interval_ns {
            self.join_pairs();
        }
        let times = self.interval_ns / other.interval_ns;
        for (index, interval) in other.intervals.iter().enumerate() {
            let offset_ns = (index as u64 / times).saturating_mul(self.interval_ns);
            self.interval_at(self.begun_at_ns.saturating_add(offset_ns))
                .add(interval);
        }
    }

    /// The length of an interval.
    pub fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// The intervals from the beginning to the last one in which anything happened.
    pub fn intervals(&self) -> &[TimelineInterval] {
        &self.intervals
    }

    fn interval_at(&mut self, at_ns: u64) -> &mut TimelineInterval {
        let since_ns = at_ns.saturating_sub(self.begun_at_ns);
        while since_ns / self.interval_ns >= INTERVALS_MAX as u64 {
            self.join_pairs();
        }
        let index = (since_ns / self.interval_ns) as usize;
        if index >= self.intervals.len() {
            self.intervals
                .resize_with(index + 1, TimelineInterval::default);
        }
        self.intervals
            .get_mut(index)
            .expect("there are as many intervals as needed")
    }

    fn join_pairs(&mut self) {
        self.interval_ns = self.interval_ns.saturating_mul(2);
        let mut singles = std::mem::take(&mut self.intervals).into_iter();
        while let Some(mut first) = singles.next() {
            if let Some(second) = singles.next() {
                first.add(&second);
            }
            self.intervals.push(first);
        }
    }
}

impl Default for Timeline {
    fn default() -> Self {
        Self::begin(0)
    }
}

impl TimelineInterval {
    /// The latency at a percentile, to one digit; None without an answer.
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        let latencies = self.latencies.as_ref()?;
        Some(latencies.value_at_percentile(percent))
    }

    fn add(&mut self, other: &Self) {
        self.answered += other.answered;
        self.failed += other.failed;
        match (&mut self.latencies, &other.latencies) {
            (_, None) => {}
            (None, Some(latencies)) => self.latencies = Some(latencies.clone()),
            (Some(ours), Some(theirs)) => ours.add(theirs).expect("all have the same bounds"),
        }
    }
}

fn histogram() -> Histogram<u32> {
    Histogram::new_with_bounds(LATENCY_NS_MIN, LATENCY_NS_MAX, 1)
        .expect("the bounds are those of a histogram")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn counts(timeline: &Timeline) -> Vec<(u64, u64)> {
        let intervals = timeline.intervals().iter();
        intervals.map(|it| (it.answered, it.failed)).collect()
    }

    #[test]
    fn events_are_counted_in_their_interval() {
        let mut timeline = Timeline::begin(5 * MS);
        timeline.answer(5 * MS, 2 * MS);
        timeline.answer(104 * MS, 40 * MS);
        timeline.fail(305 * MS);
        assert_eq!(counts(&timeline), [(2, 0), (0, 0), (0, 0), (0, 1)]);
        let first = &timeline.intervals()[0];
        let near = |percent, ms: u64| {
            let found_ns = first.percentile_ns(percent).unwrap();
            found_ns.abs_diff(ms * MS) <= ms * MS / 10
        };
        assert!(near(50.0, 2) && near(99.0, 40));
        assert_eq!(timeline.intervals()[1].percentile_ns(50.0), None);
    }

    #[test]
    fn a_long_task_has_longer_intervals() {
        let mut timeline = Timeline::begin(0);
        for second in 0..3_600 {
            timeline.answer(second * 1_000 * MS, MS);
        }
        assert!(timeline.intervals().len() <= INTERVALS_MAX);
        assert_eq!(timeline.interval_ns(), 25_600 * MS);
        let answered: u64 = counts(&timeline).iter().map(|(answered, _)| answered).sum();
        assert_eq!(answered, 3_600);
    }

    #[test]
    fn timelines_of_different_intervals_add_up() {
        let mut long = Timeline::begin(0);
        long.answer(40_000 * MS, MS);
        let mut short = Timeline::begin(7);
        short.fail(150 * MS);
        short.answer(250 * MS, MS);
        let mut sum = short.clone();
        sum.add(&long);
        assert_eq!(sum.interval_ns(), 200 * MS);
        assert_eq!(counts(&sum)[..2], [(0, 1), (1, 0)]);
        assert_eq!(counts(&sum)[200], (1, 0));
        long.add(&short);
        assert_eq!(counts(&long), counts(&sum));
    }
}
