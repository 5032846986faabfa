//! How often may a customer call? A token bucket per customer.
//!
//! The calls of one second may come at once. Full buckets are dropped, so that only customers that
//! called in the last second have one. Ours, because `governor` brings a clock and a concurrent map
//! of its own for what takes forty lines with the time that each call has anyway.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use engine::ids::CustomerId;
use engine::moment::Timestamp;

/// Beyond this number of buckets, full ones are dropped.
const BUCKETS_MAX: usize = 10_000;

/// The cost of a call, chosen so that a bucket fills by an integer each millisecond.
const CALL: i64 = 1_000;

/// The rate limit of each customer.
pub(super) struct RateLimit {
    calls_per_s: u32,
    bucket_by_customer: Mutex<HashMap<CustomerId, Bucket>>,
}

/// The customer exceeds its rate limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct RetryAfter {
    /// Seconds until the next call is accepted.
    pub(super) s: u32,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    level: i64,
    at: Timestamp,
}

impl RateLimit {
    /// A limit of calls per second and customer; 0 means no limit.
    pub(super) fn new(calls_per_s: u32) -> Self {
        Self {
            calls_per_s,
            bucket_by_customer: Mutex::new(HashMap::new()),
        }
    }

    /// Takes a token of the customer's bucket, if there is one.
    pub(super) fn take(&self, customer: &CustomerId, now: Timestamp) -> Result<(), RetryAfter> {
        if self.calls_per_s == 0 {
            return Ok(());
        }
        let locked = self.bucket_by_customer.lock();
        let mut buckets = locked.unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= BUCKETS_MAX && !buckets.contains_key(customer) {
            buckets.retain(|_, bucket| self.level(bucket, now) < self.brim());
        }
        let full = Bucket {
            level: self.brim(),
            at: now,
        };
        let bucket = buckets.entry(customer.clone()).or_insert(full);
        let level = self.level(bucket, now);
        if level < CALL {
            // Any bucket fills within a second.
            return Err(RetryAfter { s: 1 });
        }
        *bucket = Bucket {
            level: level - CALL,
            at: now,
        };
        Ok(())
    }

    fn brim(&self) -> i64 {
        i64::from(self.calls_per_s) * CALL
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
    use super::*;

    #[test]
    fn the_calls_of_a_second_may_come_at_once_and_then_at_the_rate() {
        let rate = RateLimit::new(2);
        assert_eq!(take(&rate, "acme", 0), Ok(()));
        assert_eq!(take(&rate, "acme", 0), Ok(()));
        assert_eq!(take(&rate, "acme", 0), Err(RetryAfter { s: 1 }));
        assert_eq!(take(&rate, "acme", 499), Err(RetryAfter { s: 1 }));
        assert_eq!(take(&rate, "acme", 500), Ok(()));
        assert_eq!(take(&rate, "acme", 500), Err(RetryAfter { s: 1 }));
    }

    #[test]
    fn the_limit_of_one_customer_does_not_affect_another() {
        let rate = RateLimit::new(1);
        assert_eq!(take(&rate, "acme", 0), Ok(()));
        assert_eq!(take(&rate, "umbrella", 0), Ok(()));
        assert_eq!(take(&rate, "acme", 0), Err(RetryAfter { s: 1 }));
    }

    #[test]
    fn without_a_limit_every_call_is_accepted() {
        let rate = RateLimit::new(0);
        assert!((0..10_000).all(|_| take(&rate, "acme", 0).is_ok()));
    }

    #[test]
    fn full_buckets_are_dropped() {
        let rate = RateLimit::new(1);
        for number in 0..BUCKETS_MAX {
            take(&rate, &format!("customer-{number}"), 0).unwrap();
        }
        take(&rate, "acme", 1_000).unwrap();
        assert_eq!(rate.bucket_by_customer.lock().unwrap().len(), 1);
    }

    fn take(rate: &RateLimit, customer: &str, at_ms: i64) -> Result<(), RetryAfter> {
        rate.take(
            &CustomerId::parse(customer).unwrap(),
            Timestamp::from_ms(at_ms),
        )
    }
}
