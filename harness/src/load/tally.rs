//! What were the results of the requests? Counts, failures by kind, and latencies.

use std::collections::BTreeMap;
use std::fmt;

use hdrhistogram::Histogram;
use protocol::coap::code::Code;

use super::request_mix::LoadRequest;
use super::timeline::Timeline;

/// The maximum recorded latency; far beyond what RFC 7252 allows for a request.
const LATENCY_NS_MAX: u64 = 1_000 * 1_000_000_000;

/// Significant digits of a recorded latency.
const DIGITS: u8 = 3;

/// A datagram that leaves this long after its due time counts as late.
pub(super) const LATE_NS: u64 = 1_000_000;

/// Why a request failed.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum LoadFailure {
    /// The server refused it.
    Refused(Code),
    /// The answer was not a CoAP message.
    Malformed,
    /// The server reset it.
    Reset,
    /// No response, in spite of all retransmissions.
    Timeout,
    /// The DTLS handshake before it failed.
    Handshake,
    /// The response does not fit the request.
    Unexpected,
    /// It was due, but every device had a request in progress.
    Unsent,
    /// The API answered a call with this status.
    Status(u16),
    /// The API could not be reached, or closed the connection.
    Connection,
    /// The API did not answer a call in time.
    CallTimeout,
    /// The API's response lacks an expected property.
    BadAnswer,
    /// The API accepted a request that never became final.
    NeverFinal,
    /// The API accepted a request that did not succeed.
    NotSucceeded,
}

/// Latencies in nanoseconds.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

/// A Send of a device.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct NumberedSend {
    /// The number of the device.
    pub device: u32,
    /// The number of the Send, which its value contains.
    pub number: u32,
}

/// The results of the requests of one task.
#[derive(Clone, Debug, Default)]
pub struct TaskTally {
    /// Requests that left, without retransmissions.
    pub begun: u64,
    /// Requests with the expected response.
    pub answered: u64,
    /// Those of them that were answered in time.
    pub in_time: u64,
    /// When the last response arrived.
    pub last_answer_at_ns: u64,
    /// Retransmitted datagrams.
    pub retransmissions: u64,
    /// Datagrams dropped on purpose.
    pub dropped: u64,
    /// Responses without a request in progress: duplicates, or late ones.
    pub stray: u64,
    /// Requests that left late.
    pub late: u64,
    /// The largest delay of a late request.
    pub latest_ns: u64,
    /// Answered requests of the server, including duplicates.
    pub asked: u64,
    /// Datagrams of the server that a sleeping device did not receive.
    pub unheard: u64,
    /// Failed requests, by reason.
    pub failures: BTreeMap<LoadFailure, u64>,
    /// The time from when a request should have left to its expected response.
    pub latencies: Latencies,
    /// The same of each kind of request to the server.
    pub latencies_by_request: BTreeMap<LoadRequest, Latencies>,
    /// What happened over time.
    pub timeline: Timeline,
    /// DTLS handshakes that led to a session.
    pub handshakes: u64,
    /// The acknowledged Sends, if they are recorded.
    pub acknowledged: Vec<NumberedSend>,
}

impl TaskTally {
    /// No results of a task that begins now.
    pub fn begin_task(now_ns: u64) -> Self {
        Self {
            timeline: Timeline::begin(now_ns),
            ..Self::default()
        }
    }

    /// Adds the counts of another worker.
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
        self.unheard += other.unheard;
        for (failure, count) in &other.failures {
            self.fail_times(*failure, *count);
        }
        self.latencies.add(&other.latencies);
        for (request, latencies) in &other.latencies_by_request {
            let ours = self.latencies_by_request.entry(*request).or_default();
            ours.add(latencies);
        }
        self.timeline.add(&other.timeline);
        self.handshakes += other.handshakes;
        self.acknowledged.extend(&other.acknowledged);
    }

    /// The number of failed requests.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Counts a request that leaves; beyond this delay after its due time it is late.
    pub fn begin(&mut self, due_at_ns: u64, now_ns: u64, late_after_ns: u64) {
        self.begun += 1;
        let late_ns = now_ns.saturating_sub(due_at_ns);
        self.late += u64::from(late_ns > late_after_ns);
        self.latest_ns = self.latest_ns.max(late_ns);
    }

    /// Counts an expected response.
    pub fn answer(&mut self, due_at_ns: u64, now_ns: u64, until_ns: u64) {
        self.answered += 1;
        self.in_time += u64::from(now_ns <= until_ns);
        self.last_answer_at_ns = now_ns;
        let latency_ns = now_ns.saturating_sub(due_at_ns);
        self.latencies.record(latency_ns);
        self.timeline.answer(now_ns, latency_ns);
    }

    /// Counts a failed request.
    pub fn fail(&mut self, failure: LoadFailure, now_ns: u64) {
        self.fail_times(failure, 1);
        self.timeline.fail(now_ns);
    }

    /// Counts several requests that failed for the same reason.
    pub fn fail_times(&mut self, failure: LoadFailure, times: u64) {
        if times > 0 {
            *self.failures.entry(failure).or_default() += times;
        }
    }
}

impl Latencies {
    /// Records a latency.
    pub fn record(&mut self, latency_ns: u64) {
        self.0.saturating_record(latency_ns);
    }

    /// Adds the latencies of another worker.
    pub fn add(&mut self, other: &Self) {
        self.0
            .add(&other.0)
            .expect("all of them have the same bounds");
    }

    /// The number of latencies.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency at a percentile.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        self.0.value_at_percentile(percent)
    }

    /// The maximum.
    pub fn max_ns(&self) -> u64 {
        self.0.max()
    }

    /// The mean.
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
            Self::Handshake => f.write_str("handshake"),
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
    fn a_latency_counts_from_the_due_time() {
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
        one.fail(LoadFailure::Timeout, MS);
        let mut other = one.clone();
        other.fail(LoadFailure::Refused(Code::NOT_FOUND), MS);
        other.answer(0, 9 * MS, 10 * MS);
        one.add(&other);
        assert_eq!((one.begun, one.answered, one.late), (2, 3, 2));
        assert_eq!((one.last_answer_at_ns, one.latencies.count()), (9 * MS, 3));
        assert_eq!(one.failed(), 3);
        let reasons: Vec<String> = one
            .failures
            .iter()
            .map(|(failure, count)| format!("{failure} {count}"))
            .collect();
        assert_eq!(reasons, ["4.04 1", "timeout 2"]);
    }
}
