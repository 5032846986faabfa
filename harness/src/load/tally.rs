//! What came of the requests? Counts, failures by kind, and how long the answers took.

use std::collections::BTreeMap;
use std::fmt;

use hdrhistogram::Histogram;
use protocol::coap::code::Code;

/// The longest latency that is told apart; far beyond what RFC 7252 lets a request take.
const LATENCY_NS_MAX: u64 = 1_000 * 1_000_000_000;

/// Three digits of a latency are kept.
const DIGITS: u8 = 3;

/// A datagram that left this much after its time left late.
pub(super) const LATE_NS: u64 = 1_000_000;

/// Why a request came to nothing.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum LoadFailure {
    /// The server refused it.
    Refused(Code),
    /// A datagram that is no CoAP message came back.
    Malformed,
    /// The server reset it.
    Reset,
    /// No answer came, in spite of all repetitions.
    Timeout,
    /// The answer is none to such a request.
    Unexpected,
    /// It was due, but every device still had a request under way.
    Unsent,
    /// The API answered a call with this status.
    Status(u16),
    /// The API could not be reached, or closed the connection.
    Connection,
    /// The API did not answer a call in time.
    CallTimeout,
    /// The API's answer lacks what was expected in it.
    BadAnswer,
    /// The API accepted a request and never showed its end.
    NeverFinal,
    /// The API accepted a request that did not succeed.
    NotSucceeded,
}

/// How long things took, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

/// What came of the requests of one task.
#[derive(Clone, Debug, Default)]
pub struct TaskTally {
    /// Requests that left, repetitions not counted.
    pub begun: u64,
    /// Requests answered as they should be.
    pub answered: u64,
    /// Those of them that were answered before the time was over.
    pub in_time: u64,
    /// When the last of the answers came.
    pub last_answer_at_ns: u64,
    /// Datagrams that were sent again.
    pub retransmissions: u64,
    /// Datagrams that were dropped on purpose.
    pub dropped: u64,
    /// Answers to nothing that is under way: those that come twice, or too late.
    pub stray: u64,
    /// Requests that left late.
    pub late: u64,
    /// How late the latest left.
    pub latest_ns: u64,
    /// Requests of the server that were answered, repeated ones each time.
    pub asked: u64,
    /// Requests that came to nothing, by reason.
    pub failures: BTreeMap<LoadFailure, u64>,
    /// From when a request should have left to its right answer.
    pub latencies: Latencies,
}

impl TaskTally {
    /// Adds what another worker counted.
    pub fn add(&mut self, other: &Self) {
        self.begun += other.begun;
        self.answered += other.answered;
        self.in_time += other.in_time;
        self.last_answer_at_ns = self.last_answer_at_ns.max(other.last_answer_at_ns);
        self.retransmissions += other.retransmissions;
        self.dropped += other.dropped;
        self.stray += other.stray;
        self.late += other.late;
        self.latest_ns = self.latest_ns.max(other.latest_ns);
        self.asked += other.asked;
        for (failure, count) in &other.failures {
            self.fail_times(*failure, *count);
        }
        self.latencies.add(&other.latencies);
    }

    /// Tells how many requests came to nothing.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Counts a request that leaves; so long after it was due it is late.
    pub fn begin(&mut self, due_at_ns: u64, now_ns: u64, late_after_ns: u64) {
        self.begun += 1;
        let late_ns = now_ns.saturating_sub(due_at_ns);
        self.late += u64::from(late_ns > late_after_ns);
        self.latest_ns = self.latest_ns.max(late_ns);
    }

    /// Counts a right answer.
    pub fn answer(&mut self, due_at_ns: u64, now_ns: u64, until_ns: u64) {
        self.answered += 1;
        self.in_time += u64::from(now_ns <= until_ns);
        self.last_answer_at_ns = now_ns;
        self.latencies.record(now_ns.saturating_sub(due_at_ns));
    }

    /// Counts a request that came to nothing.
    pub fn fail(&mut self, failure: LoadFailure) {
        self.fail_times(failure, 1);
    }

    /// Counts several requests that came to nothing for the same reason.
    pub fn fail_times(&mut self, failure: LoadFailure, times: u64) {
        if times > 0 {
            *self.failures.entry(failure).or_default() += times;
        }
    }
}

impl Latencies {
    /// Takes one more.
    pub fn record(&mut self, latency_ns: u64) {
        self.0.saturating_record(latency_ns);
    }

    /// Takes those of another.
    pub fn add(&mut self, other: &Self) {
        self.0
            .add(&other.0)
            .expect("all of them have the same bounds");
    }

    /// Tells how many there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Tells what so many of a hundred did not exceed.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        self.0.value_at_percentile(percent)
    }

    /// Tells the longest.
    pub fn max_ns(&self) -> u64 {
        self.0.max()
    }

    /// Tells the mean.
    pub fn mean_ns(&self) -> f64 {
        self.0.mean()
    }
}

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_max(LATENCY_NS_MAX, DIGITS);
        Self(histogram.expect("the bounds are those of a histogram"))
    }
}

impl fmt::Display for LoadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(code) => code.fmt(f),
            Self::Malformed => f.write_str("malformed"),
            Self::Reset => f.write_str("reset"),
            Self::Timeout => f.write_str("timeout"),
            Self::Unexpected => f.write_str("unexpected"),
            Self::Unsent => f.write_str("unsent"),
            Self::Status(status) => write!(f, "http {status}"),
            Self::Connection => f.write_str("http connection"),
            Self::CallTimeout => f.write_str("http timeout"),
            Self::BadAnswer => f.write_str("http unexpected"),
            Self::NeverFinal => f.write_str("never final"),
            Self::NotSucceeded => f.write_str("not SUCCEEDED"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_latency_counts_from_when_the_request_was_due() {
        let mut tally = TaskTally::default();
        tally.begin(10 * MS, 10 * MS, LATE_NS);
        tally.begin(10 * MS, 40 * MS, LATE_NS);
        tally.answer(10 * MS, 60 * MS, 50 * MS);
        tally.answer(10 * MS, 20 * MS, 50 * MS);
        assert_eq!((tally.begun, tally.answered, tally.in_time), (2, 2, 1));
        assert_eq!((tally.late, tally.latest_ns), (1, 30 * MS));
        let longest = tally.latencies.max_ns().abs_diff(50 * MS);
        assert!(longest < MS / 10, "three digits are kept");
    }

    #[test]
    fn tallies_of_workers_add_up() {
        let mut one = TaskTally::default();
        one.begin(0, 5 * MS, LATE_NS);
        one.answer(0, MS, MS);
        one.fail(LoadFailure::Timeout);
        let mut other = one.clone();
        other.fail(LoadFailure::Refused(Code::NOT_FOUND));
        other.answer(0, 9 * MS, 10 * MS);
        one.add(&other);
        assert_eq!((one.begun, one.answered, one.late), (2, 3, 2));
        assert_eq!((one.last_answer_at_ns, one.latencies.count()), (9 * MS, 3));
        assert_eq!(one.failed(), 3);
        let said: Vec<String> = one
            .failures
            .iter()
            .map(|(failure, count)| format!("{failure} {count}"))
            .collect();
        assert_eq!(said, ["4.04 1", "timeout 2"]);
    }
}
