//! What is the time for a device on a real socket? The only file of this crate that reads a clock.

use std::future;
use std::time::{self as std_time, Duration, SystemTime, UNIX_EPOCH};

use tokio::time::{self, Instant};

/// Milliseconds since 1970 that never go backwards: the wall clock is read once, at the start.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started_at: Instant,
    started_at_ms: i64,
}

impl Clock {
    /// Starts at the current wall clock time.
    pub fn start() -> Self {
        let since_1970 = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            started_at: Instant::now(),
            started_at_ms: whole_ms(since_1970),
        }
    }

    /// The current time.
    pub fn now_ms(&self) -> i64 {
        self.started_at_ms
            .saturating_add(whole_ms(self.started_at.elapsed()))
    }

    /// Waits until a point in time, or forever if there is none.
    pub async fn sleep_until(&self, at_ms: Option<i64>) {
        let Some(at_ms) = at_ms else {
            return future::pending().await;
        };
        let wait_ms = u64::try_from(at_ms.saturating_sub(self.now_ms())).unwrap_or_default();
        time::sleep(Duration::from_millis(wait_ms)).await;
    }
}

/// Nanoseconds since the start, for threads that read the time constantly.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(std_time::Instant);

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self {
        Self(std_time::Instant::now())
    }

    /// Nanoseconds since the start.
    pub fn now_ns(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

fn whole_ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
