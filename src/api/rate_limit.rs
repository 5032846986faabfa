//! How often may a customer call, and an address without valid credentials? A token bucket each.
//!
//! The calls of two seconds may come at once. Full buckets are dropped, so that only callers of the
//! last two seconds have one. Ours, because `governor` brings a clock and a
//! concurrent map of its own for what takes few lines with the time that each call has anyway.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use engine::moment::Timestamp;

/// Beyond this number of buckets, full ones are dropped.
const BUCKETS_MAX: usize = 10_000;

/// The seconds in which an empty bucket fills: its calls may come at once.
const BURST_S: u32 = 2;

/// The cost of a call, chosen so that a bucket fills by an integer each millisecond.
const CALL: i64 = 1_000;

/// The rate limit of each caller: a customer or an address.
pub(super) struct RateLimit<K> {
    calls_per_s: u32,
    bucket_by_caller: Mutex<HashMap<K, Bucket>>,
}

/// What a caller may do next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct CallQuota {
    /// The calls that may come at once.
    pub(super) limit: u32,
    /// The calls that may still come now.
    pub(super) remaining: u32,
    /// Seconds until one more is accepted, if none remains, or until all are.
    pub(super) reset_s: u32,
}

/// The caller exceeds its rate limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct RateExceeded(pub(super) CallQuota);

#[derive(Clone, Copy, Debug)]
struct Bucket {
    level: i64,
    at: Timestamp,
}

impl<K: Clone + Eq + Hash> RateLimit<K> {
    /// A limit of calls per second and caller; 0 means no limit.
    pub(super) fn new(calls_per_s: u32) -> Self {
        Self {
            calls_per_s,
            bucket_by_caller: Mutex::new(HashMap::new()),
        }
    }

    /// Takes a token of the caller's bucket, if there is one. Returns what is left of it; none if
    /// there is no limit.
    pub(super) fn take(
        &self,
        caller: &K,
        now: Timestamp,
    ) -> Result<Option<CallQuota>, RateExceeded> {
        if self.calls_per_s == 0 {
            return Ok(None);
        }
        let locked = self.bucket_by_caller.lock();
        let mut buckets = locked.unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= BUCKETS_MAX && !buckets.contains_key(caller) {
            buckets.retain(|_, bucket| self.level(bucket, now) < self.brim());
        }
        let full = Bucket {
            level: self.brim(),
            at: now,
        };
        let bucket = buckets.entry(caller.clone()).or_insert(full);
        let level = self.level(bucket, now);
        if level < CALL {
            return Err(RateExceeded(self.quota(level)));
        }
        *bucket = Bucket {
            level: level - CALL,
            at: now,
        };
        Ok(Some(self.quota(level - CALL)))
    }

    fn quota(&self, level: i64) -> CallQuota {
        let wanted = if level < CALL { CALL } else { self.brim() };
        let flow_per_s = i64::from(self.calls_per_s) * CALL;
        let calls = |level: i64| u32::try_from(level / CALL).unwrap_or(u32::MAX);
        CallQuota {
            limit: calls(self.brim()),
            remaining: calls(level),
            reset_s: u32::try_from((wanted - level + flow_per_s - 1) / flow_per_s).unwrap_or(1),
        }
    }

    fn brim(&self) -> i64 {
        i64::from(self.calls_per_s) * i64::from(BURST_S) * CALL
    }

    fn level(&self, bucket: &Bucket, now: Timestamp) -> i64 {
        let flown = now
            .since_ms(bucket.at)
            .max(0)
            .saturating_mul(i64::from(self.calls_per_s));
        bucket.level.saturating_add(flown).min(self.brim())
    }
}

#[cfg(test)]
mod tests {
    use engine::ids::CustomerId;

    use super::*;

    #[test]
    fn the_calls_of_two_seconds_may_come_at_once_and_then_at_the_rate() {
        let rate = RateLimit::new(2);
        let left = |remaining, reset_s| {
            Ok(Some(CallQuota {
                limit: 4,
                remaining,
                reset_s,
            }))
        };
        assert_eq!(take(&rate, "acme", 0), left(3, 1));
        assert_eq!(take(&rate, "acme", 0), left(2, 1));
        assert_eq!(take(&rate, "acme", 0), left(1, 2));
        assert_eq!(
            take(&rate, "acme", 0),
            left(0, 1),
            "one call fits in half a second"
        );
        assert!(take(&rate, "acme", 0).is_err());
        assert!(take(&rate, "acme", 499).is_err());
        assert!(take(&rate, "acme", 500).is_ok());
        assert!(take(&rate, "acme", 500).is_err());
        assert_eq!(take(&rate, "acme", 10_000), left(3, 1));
    }

    #[test]
    fn the_limit_of_one_customer_does_not_affect_another() {
        let rate = RateLimit::new(1);
        assert!(take(&rate, "acme", 0).is_ok());
        assert!(take(&rate, "acme", 0).is_ok());
        assert!(take(&rate, "umbrella", 0).is_ok());
        let none = CallQuota {
            limit: 2,
            remaining: 0,
            reset_s: 1,
        };
        assert_eq!(take(&rate, "acme", 0), Err(RateExceeded(none)));
    }

    #[test]
    fn without_a_limit_every_call_is_accepted() {
        let rate = RateLimit::new(0);
        assert!((0..10_000).all(|_| take(&rate, "acme", 0) == Ok(None)));
    }

    #[test]
    fn full_buckets_are_dropped() {
        let rate = RateLimit::new(1);
        for number in 0..BUCKETS_MAX {
            take(&rate, &format!("customer-{number}"), 0).unwrap();
        }
        take(&rate, "acme", 1_000).unwrap();
        assert_eq!(rate.bucket_by_caller.lock().unwrap().len(), 1);
    }

    fn take(
        rate: &RateLimit<CustomerId>,
        customer: &str,
        at_ms: i64,
    ) -> Result<Option<CallQuota>, RateExceeded> {
        rate.take(
            &CustomerId::parse(customer).unwrap(),
            Timestamp::from_ms(at_ms),
        )
    }
}
