//! How often may a customer call? A bucket of tokens per customer.
//!
//! A second's worth may come at once. Buckets that are full again are forgotten, so there are only
//! as many as customers called in the last second. Ours, because `governor` brings a clock and a
//! concurrent map of its own for what are forty lines on the time that a call has anyway.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use engine::ids::CustomerId;
use engine::moment::Timestamp;

/// Buckets kept before the full ones are looked for and forgotten.
const BUCKETS_MAX: usize = 10_000;

/// A call costs this much, so that a bucket fills by whole numbers each millisecond.
const CALL: i64 = 1_000;

/// How often each customer may call.
pub(super) struct RateLimit {
    calls_per_s: u32,
    bucket_by_customer: Mutex<HashMap<CustomerId, Bucket>>,
}

/// The customer is to wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct RetryAfter {
    /// For so many seconds.
    pub(super) s: u32,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    level: i64,
    at: Timestamp,
}

impl RateLimit {
    /// So many calls per second and customer; 0 is no limit.
    pub(super) fn new(calls_per_s: u32) -> Self {
        Self {
            calls_per_s,
            bucket_by_customer: Mutex::new(HashMap::new()),
        }
    }

    /// Takes one call of a customer, if it may call now.
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
            // A second fills any bucket.
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
    fn a_second_s_worth_may_come_at_once_and_then_at_the_rate() {
        let rate = RateLimit::new(2);
        assert_eq!(take(&rate, "acme", 0), Ok(()));
        assert_eq!(take(&rate, "acme", 0), Ok(()));
        assert_eq!(take(&rate, "acme", 0), Err(RetryAfter { s: 1 }));
        assert_eq!(take(&rate, "acme", 499), Err(RetryAfter { s: 1 }));
        assert_eq!(take(&rate, "acme", 500), Ok(()));
        assert_eq!(take(&rate, "acme", 500), Err(RetryAfter { s: 1 }));
    }

    #[test]
    fn one_customer_does_not_use_up_another_s_calls() {
        let rate = RateLimit::new(1);
        assert_eq!(take(&rate, "acme", 0), Ok(()));
        assert_eq!(take(&rate, "umbrella", 0), Ok(()));
        assert_eq!(take(&rate, "acme", 0), Err(RetryAfter { s: 1 }));
    }

    #[test]
    fn without_a_limit_every_call_is_taken() {
        let rate = RateLimit::new(0);
        assert!((0..10_000).all(|_| take(&rate, "acme", 0).is_ok()));
    }

    #[test]
    fn buckets_that_are_full_again_are_forgotten() {
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
