//! Does a long body arrive fast enough? Its caller may be behind a least rate for a while.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use actix_web::web::{self, Bytes};
use futures_core::Stream;
use tokio::time::{Instant, timeout};

use super::body::incomplete;
use super::error::ApiError;

/// The least rate: some 20 lines a second, less than the slowest link of a caller carries.
const BYTES_PER_S: u32 = 1_024;

/// How far a body is behind the least rate. Only the time counts for which the service waits for
/// the caller.
#[derive(Debug)]
pub(super) struct Pace {
    left: Duration,
    behind_max: Duration,
}

impl Pace {
    /// A body that may be so far behind the least rate.
    pub(super) fn new(behind_max: Duration) -> Self {
        Self {
            left: behind_max,
            behind_max,
        }
    }

    /// The next part of a body that the caller sends; none at the end. Cancel-safe.
    pub(super) async fn next_part(
        &mut self,
        payload: &mut web::Payload,
    ) -> Result<Option<Bytes>, ApiError> {
        let part = poll_fn(|context| Pin::new(&mut *payload).poll_next(context));
        let waits_since = Instant::now();
        match timeout(self.left(), part).await {
            Err(_) => Err(ApiError::body_too_slow()),
            Ok(None) => Ok(None),
            Ok(Some(Err(_))) => Err(incomplete()),
            Ok(Some(Ok(part))) => {
                self.count(waits_since.elapsed(), part.len() as u64);
                Ok(Some(part))
            }
        }
    }

    /// Counts a part of the body that was waited for. The caller gets no more ahead than at the
    /// beginning, so that it cannot send fast first and then stop for long.
    fn count(&mut self, waited: Duration, bytes: u64) {
        let earned = Duration::from_secs(bytes) / BYTES_PER_S;
        let left = self.left.saturating_sub(waited) + earned;
        self.left = left.min(self.behind_max);
    }

    /// The longest time to wait for the next part of the body.
    fn left(&self) -> Duration {
        self.left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEHIND_MAX: Duration = Duration::from_secs(30);

    #[test]
    fn a_byte_a_second_is_too_slow_and_the_least_rate_is_not() {
        assert_eq!(seconds_until_it_ends(1), Some(31));
        assert_eq!(seconds_until_it_ends(512), Some(60));
        assert_eq!(seconds_until_it_ends(1_024), None);
    }

    #[test]
    fn a_fast_beginning_earns_no_longer_pause() {
        let mut pace = Pace::new(BEHIND_MAX);
        pace.count(Duration::ZERO, 100_000_000);
        assert_eq!(pace.left(), BEHIND_MAX);
        pace.count(Duration::from_secs(10), 1_024);
        assert_eq!(pace.left(), Duration::from_secs(21));
    }

    /// After how many seconds a body ends that arrives at this rate, if it ends within an hour.
    fn seconds_until_it_ends(bytes_per_s: u64) -> Option<u32> {
        let mut pace = Pace::new(BEHIND_MAX);
        (1..=3_600).find(|_| {
            let is_late = pace.left() < Duration::from_secs(1);
            pace.count(Duration::from_secs(1), bytes_per_s);
            is_late
        })
    }
}
