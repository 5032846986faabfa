//! What time is it, and what does chance say? The only reader of both.
//!
//! Time never runs backwards: it follows the monotonic clock, and the wall clock where that was
//! set forward. A wall clock set back is followed at the next start.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use engine::moment::{Moment, Timestamp};

/// A wall clock this far ahead was set forward; less is drift and jitter of the two readings.
const STEP_MS: i64 = 1_000;

/// Entropy fetched from the system at a time: one call serves 256 moments.
const POOL_BYTES: usize = 4_096;

/// Bytes of entropy in a moment.
const DRAW_BYTES: usize = 16;

/// The clock of the service; clones tell the same time.
#[derive(Clone, Debug)]
pub struct Clock {
    started: Instant,
    started_at: Timestamp,
    ahead_ms: Arc<AtomicI64>,
}

impl Clock {
    /// A clock set by the system's.
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
            started_at: wall_clock(),
            ahead_ms: Arc::new(AtomicI64::new(0)),
        }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        let elapsed_ms = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX);
        let steady = self.started_at.plus_ms(elapsed_ms);
        let ahead_ms = wall_clock().since_ms(steady);
        let known_ms = self.ahead_ms.load(Ordering::Relaxed);
        if ahead_ms > known_ms.saturating_add(STEP_MS) {
            self.ahead_ms.fetch_max(ahead_ms, Ordering::Relaxed);
            return steady.plus_ms(ahead_ms);
        }
        steady.plus_ms(known_ms)
    }

    /// The time with chance of its own.
    pub fn moment(&self) -> Moment {
        Moment::new(self.now(), draw())
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

fn wall_clock() -> Timestamp {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_ms(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}

struct Pool {
    bytes: Box<[u8; POOL_BYTES]>,
    used: usize,
}

thread_local! {
    static POOL: RefCell<Pool> =
        RefCell::new(Pool { bytes: Box::new([0; POOL_BYTES]), used: POOL_BYTES });
}

/// Sixteen bytes of the system's entropy, each handed out once.
fn draw() -> u128 {
    POOL.with_borrow_mut(|pool| {
        if pool.used >= POOL_BYTES {
            getrandom::fill(pool.bytes.as_mut_slice()).expect("the system has entropy to give");
            pool.used = 0;
        }
        let mut drawn = [0; DRAW_BYTES];
        drawn.copy_from_slice(&pool.bytes[pool.used..pool.used + DRAW_BYTES]);
        pool.used += DRAW_BYTES;
        u128::from_be_bytes(drawn)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_runs_backwards() {
        let clock = Clock::new();
        let mut last = clock.now();
        for _ in 0..10_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn moments_have_chance_of_their_own() {
        let clock = Clock::new();
        let mut drawn: Vec<u64> = (0..1_000).map(|_| clock.moment().next_u64()).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 1_000);
    }
}
