//! What is the state of a request in progress? Its device, its due time, and its next
//! retransmission: RFC 7252 section 4.2, in few bytes, for many.

use protocol::coap::exchange::Transmission;

use super::request_mix::LoadRequest;
use crate::rng::Rng;

const NS_PER_MS: u64 = 1_000_000;

/// How long a device waits before it tries again to register, doubled each time: the default
/// Communication Retry Timer (LwM2M Core 1.1 section 6.2.1.1).
const RETRY_AFTER_NS: u64 = 60_000_000_000;

/// How often a device tries again: the default Communication Retry Count.
const RETRIES: u8 = 5;

/// A request in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadExchange {
    pub(super) member: u32,
    pub(super) message_id: u16,
    pub(super) act: LoadRequest,
    /// The number of a Send, which is its value.
    pub(super) send_number: u32,
    /// When the request should have left.
    pub(super) due_at_ns: u64,
    /// When it is due next.
    pub(super) next_at_ns: u64,
    wait_ns: u64,
    retries: u8,
    state: State,
}

/// What is due for a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ExchangeDue {
    /// Nothing yet.
    NotYet,
    /// Its retransmission.
    Repeat,
    /// A new request in its place.
    Retry,
    /// Its end.
    GiveUp,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Transmitting { repetitions_left: u8 },
    Awaiting,
    Resting,
}

impl LoadExchange {
    /// Starts with a request that leaves now.
    pub(super) fn begin(
        (member, message_id, act): (u32, u16, LoadRequest),
        due_at_ns: u64,
        now_ns: u64,
        transmission: &Transmission,
        rng: &mut Rng,
    ) -> Self {
        let wait_ns = first_wait_ns(transmission, rng);
        Self {
            member,
            message_id,
            act,
            send_number: 0,
            due_at_ns,
            next_at_ns: now_ns.saturating_add(wait_ns),
            wait_ns,
            retries: 0,
            state: State::Transmitting {
                repetitions_left: transmission.max_retransmit,
            },
        }
    }

    /// The request failed, and is tried again later; returns whether there is a retry left.
    pub(super) fn rest(&mut self, now_ns: u64) -> bool {
        let has_retry = self.retries < RETRIES;
        if has_retry {
            let wait_ns = RETRY_AFTER_NS << self.retries;
            self.next_at_ns = now_ns.saturating_add(wait_ns);
            self.retries += 1;
            self.state = State::Resting;
        }
        has_retry
    }

    /// The new request in place of one that failed.
    pub(super) fn retry(
        &self,
        message_id: u16,
        now_ns: u64,
        transmission: &Transmission,
        rng: &mut Rng,
    ) -> Self {
        let what = (self.member, message_id, self.act);
        Self {
            retries: self.retries,
            ..Self::begin(what, self.due_at_ns, now_ns, transmission, rng)
        }
    }

    /// Whether the request failed and is tried again later.
    pub(super) fn is_resting(&self) -> bool {
        self.state == State::Resting
    }

    /// The server acknowledged the request; a separate response follows.
    pub(super) fn acknowledge(&mut self, now_ns: u64, transmission: &Transmission) {
        if self.state != State::Awaiting {
            self.state = State::Awaiting;
            let wait_ns = u64::from(transmission.response_timeout_ms) * NS_PER_MS;
            self.next_at_ns = now_ns.saturating_add(wait_ns);
        }
    }

    /// Handles an alarm, which may be early.
    pub(super) fn look(&mut self, now_ns: u64) -> ExchangeDue {
        if now_ns < self.next_at_ns {
            return ExchangeDue::NotYet;
        }
        let repetitions_left = match &mut self.state {
            State::Transmitting { repetitions_left } => repetitions_left,
            State::Awaiting => return ExchangeDue::GiveUp,
            State::Resting => return ExchangeDue::Retry,
        };
        let Some(left) = repetitions_left.checked_sub(1) else {
            return ExchangeDue::GiveUp;
        };
        *repetitions_left = left;
        self.wait_ns = self.wait_ns.saturating_mul(2);
        self.next_at_ns = now_ns.saturating_add(self.wait_ns);
        ExchangeDue::Repeat
    }
}

fn first_wait_ns(transmission: &Transmission, rng: &mut Rng) -> u64 {
    let shortest_ns = u64::from(transmission.ack_timeout_ms) * NS_PER_MS;
    let excess_percent = transmission.ack_random_factor_percent.saturating_sub(100);
    let span_ns = shortest_ns / 100 * u64::from(excess_percent);
    let part = u128::from(span_ns) * u128::from(rng.number_u32());
    shortest_ns + u64::try_from(part >> 32).unwrap_or(span_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn begun(seed: u64) -> LoadExchange {
        let mut rng = Rng::from_seed(seed);
        let who = (7, 1, LoadRequest::Update);
        LoadExchange::begin(who, 0, 0, &Transmission::STANDARD, &mut rng)
    }

    #[test]
    fn a_request_is_retransmitted_four_times_at_doubling_intervals() {
        let mut exchange = begun(1);
        let first_ns = exchange.next_at_ns;
        let mut at_ns = 0;
        for times in [1, 2, 4, 8] {
            at_ns += first_ns * times;
            assert_eq!(exchange.next_at_ns, at_ns);
            assert_eq!(exchange.look(at_ns - 1), ExchangeDue::NotYet);
            assert_eq!(exchange.look(at_ns), ExchangeDue::Repeat);
        }
        at_ns += first_ns * 16;
        assert_eq!(exchange.next_at_ns, at_ns);
        assert_eq!(exchange.look(at_ns), ExchangeDue::GiveUp);
    }

    #[test]
    fn first_timeouts_are_spread_over_their_range() {
        let waits: Vec<u64> = (0..1_000).map(|seed| begun(seed).next_at_ns).collect();
        assert!(
            waits
                .iter()
                .all(|wait_ns| (2 * S..=3 * S).contains(wait_ns))
        );
        let later = waits.iter().filter(|wait_ns| **wait_ns > 5 * S / 2).count();
        assert!((400..600).contains(&later), "{later}");
    }

    #[test]
    fn an_acknowledged_request_is_not_retransmitted() {
        let mut exchange = begun(1);
        exchange.acknowledge(S, &Transmission::STANDARD);
        exchange.acknowledge(2 * S, &Transmission::STANDARD);
        assert_eq!(exchange.look(94 * S - 1), ExchangeDue::NotYet);
        assert_eq!(exchange.look(94 * S), ExchangeDue::GiveUp);
    }

    #[test]
    fn a_failed_registration_is_tried_five_more_times_at_doubling_intervals() {
        let mut rng = Rng::from_seed(1);
        let (mut exchange, mut at_ns) = (begun(1), 0);
        for minutes in [1, 2, 4, 8, 16] {
            assert!(exchange.rest(at_ns));
            at_ns += minutes * 60 * S;
            assert_eq!(exchange.look(at_ns - 1), ExchangeDue::NotYet);
            assert_eq!(exchange.look(at_ns), ExchangeDue::Retry);
            exchange = exchange.retry(2, at_ns, &Transmission::STANDARD, &mut rng);
            assert_eq!((exchange.due_at_ns, exchange.message_id), (0, 2));
        }
        assert!(!exchange.rest(at_ns));
    }
}
