//! When does a datagram arrive, and how often?

use std::collections::BTreeMap;

/// How long a datagram travels, and how much longer if it is delayed: long enough for a
/// retransmission to overtake it.
const TRAVEL_MS: u64 = 20;
const DELAY_MS_MAX: u64 = 3_000;

/// How the link treats datagrams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkConditions {
    pub(crate) loss_percent: u64,
    pub(crate) repeat_percent: u64,
    pub(crate) delay_percent: u64,
    pub(crate) cut_at_ms: i64,
}

/// The recipient of a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Recipient {
    Peer,
    Us,
}

/// The datagrams in flight.
pub(crate) struct Link {
    conditions: LinkConditions,
    pub(crate) rng: Rng,
    // By arrival, and in the order of sending for the same moment.
    travelling: BTreeMap<(i64, u64), (Recipient, Vec<u8>)>,
    sent: u64,
}

impl Link {
    pub(crate) fn new(conditions: LinkConditions, seed: u64) -> Link {
        Link {
            conditions,
            rng: Rng(seed | 1),
            travelling: BTreeMap::new(),
            sent: 0,
        }
    }

    pub(crate) fn send(&mut self, now_ms: i64, to: Recipient, datagram: &[u8]) {
        self.travel(now_ms, to, datagram);
        if self.rng.is_within(self.conditions.repeat_percent) {
            self.travel(now_ms, to, datagram);
        }
    }

    fn travel(&mut self, now_ms: i64, to: Recipient, datagram: &[u8]) {
        let is_lost = self.rng.is_within(self.conditions.loss_percent);
        if is_lost || now_ms >= self.conditions.cut_at_ms {
            return;
        }
        let is_delayed = self.rng.is_within(self.conditions.delay_percent);
        let delay_ms = match is_delayed {
            true => self.rng.below(DELAY_MS_MAX),
            false => 0,
        };
        let travel_ms = i64::try_from(TRAVEL_MS + delay_ms).expect("a few seconds");
        self.sent += 1;
        let arrival = (now_ms + travel_ms, self.sent);
        self.travelling.insert(arrival, (to, datagram.to_vec()));
    }

    pub(crate) fn next_arrival(&self) -> i64 {
        let first = self.travelling.first_key_value();
        first.map_or(i64::MAX, |((at_ms, _), _)| *at_ms)
    }

    pub(crate) fn arrive(&mut self) -> Option<(Recipient, Vec<u8>)> {
        self.travelling.pop_first().map(|(_, arrived)| arrived)
    }
}

/// Numbers determined by a seed.
pub(crate) struct Rng(u64);

impl Rng {
    // Marsaglia's xorshift64*.
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn is_within(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
