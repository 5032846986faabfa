//! What time is it, and where does entropy come from? The only reader of both.
//!
//! Time never runs backwards: it follows the monotonic clock, and the wall clock where that was set
//! forward. If the wall clock is set back, the new time counts from the next start on.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use engine::moment::{Moment, STEPS_PER_MS, Timestamp};
use engine::node::lease::SteadyTime;
use nix::time::{ClockId, clock_gettime};

/// A wall clock this far ahead was set forward; less is drift and jitter of the two readings.
const STEP_MS: i64 = 1_000;

/// The clock that counts while the machine is suspended, where there is one.
#[cfg(target_os = "linux")]
const STEADY: ClockId = ClockId::CLOCK_BOOTTIME;
#[cfg(not(target_os = "linux"))]
const STEADY: ClockId = ClockId::CLOCK_MONOTONIC;

/// Nanoseconds of a millisecond.
const NS_PER_MS: u64 = 1_000_000;

/// Entropy fetched from the system at a time: one call serves 256 moments.
const POOL_BYTES: usize = 4_096;

/// Bytes of entropy in a moment.
const DRAW_BYTES: usize = 16;

/// The clock of the service; clones show the same time.
#[derive(Clone, Debug)]
pub struct Clock {
    started: Instant,
    started_at: Timestamp,
    ahead_ms: Arc<AtomicI64>,
}

impl Clock {
    /// A clock set by the system's clock.
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
            started_at: wall_clock(),
            ahead_ms: Arc::new(AtomicI64::new(0)),
        }
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.at(self.started.elapsed())
    }

    /// The time left until then.
    pub(crate) fn until(&self, at: Timestamp) -> Duration {
        let wait_ms = at.since_ms(self.now()).max(0);
        Duration::from_millis(u64::try_from(wait_ms).unwrap_or_default())
    }

    /// The system's wall clock, which may run backwards: what others compare with their own clocks
    /// has to be right, not monotonic.
    pub fn wall(&self) -> Timestamp {
        wall_clock()
    }

    /// The current time, with entropy of its own.
    pub fn moment(&self) -> Moment {
        let elapsed = self.started.elapsed();
        let step = u64::from(elapsed.subsec_nanos()) % NS_PER_MS * u64::from(STEPS_PER_MS);
        let step = u16::try_from(step / NS_PER_MS).expect("less than a millisecond's steps");
        Moment::new(self.at(elapsed), draw()).at_step(step)
    }

    fn at(&self, elapsed: Duration) -> Timestamp {
        let elapsed_ms = i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX);
        let steady = self.started_at.plus_ms(elapsed_ms);
        let ahead_ms = wall_clock().since_ms(steady);
        let known_ms = self.ahead_ms.load(Ordering::Relaxed);
        if ahead_ms > known_ms.saturating_add(STEP_MS) {
            self.ahead_ms.fetch_max(ahead_ms, Ordering::Relaxed);
            return steady.plus_ms(ahead_ms);
        }
        steady.plus_ms(known_ms)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// The time of the system's clock, which may jump.
pub fn wall_clock() -> Timestamp {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_ms(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}

/// The time of a clock that only ever grows, also while the process is stopped or the machine
/// suspended.
pub fn steady_time() -> SteadyTime {
    let since_boot = clock_gettime(STEADY).expect("the system has this clock");
    let since_boot = Duration::from(since_boot);
    SteadyTime(u64::try_from(since_boot.as_millis()).unwrap_or(u64::MAX))
}

struct EntropyPool {
    bytes: Box<[u8; POOL_BYTES]>,
    used: usize,
}

thread_local! {
    static POOL: RefCell<EntropyPool> =
        RefCell::new(EntropyPool { bytes: Box::new([0; POOL_BYTES]), used: POOL_BYTES });
}

/// Sixteen bytes of the system's entropy.
fn draw() -> u128 {
    let mut drawn = [0; DRAW_BYTES];
    fill(&mut drawn);
    u128::from_be_bytes(drawn)
}

/// Fills a buffer with the system's entropy. What was drawn from the pool is overwritten there: it
/// may become a key.
pub(crate) fn fill(buffer: &mut [u8]) {
    POOL.with_borrow_mut(|pool| {
        for part in buffer.chunks_mut(POOL_BYTES) {
            if pool.used + part.len() > POOL_BYTES {
                getrandom::fill(pool.bytes.as_mut_slice()).expect("the system has entropy to give");
                pool.used = 0;
            }
            let drawn = &mut pool.bytes[pool.used..pool.used + part.len()];
            part.copy_from_slice(drawn);
            drawn.fill(0);
            pool.used += part.len();
        }
    });
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
    fn the_wall_time_follows_a_clock_that_is_set_back() {
        const AHEAD_MS: i64 = 600_000;
        let clock = Clock::new();
        clock.ahead_ms.store(AHEAD_MS, Ordering::Relaxed);
        assert!(clock.now().since_ms(clock.wall()) > AHEAD_MS / 2);
        assert!(clock.wall() >= clock.started_at);
    }

    #[test]
    fn ids_sort_by_the_time_they_were_made() {
        let clock = Clock::new();
        let mut last = clock.moment().uuid();
        for _ in 0..1_000 {
            let before = clock.started.elapsed();
            // Two readings within one step of the clock have no order.
            while clock.started.elapsed() - before < Duration::from_micros(1) {}
            let id = clock.moment().uuid();
            assert!(id > last);
            last = id;
        }
    }

    #[test]
    fn moments_have_entropy_of_their_own() {
        let clock = Clock::new();
        let mut drawn: Vec<u64> = (0..1_000).map(|_| clock.moment().next_u64()).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 1_000);
    }
}
