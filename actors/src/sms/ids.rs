//! Which ids do SMS get that devices store in their steps? Each another one in this process: a step
//! whose id is taken fails, and arbiters may draw one at the same time.

use std::sync::atomic::{AtomicU64, Ordering};

use engine::ids::SmsId;

use crate::clock::Clock;

/// Draws ids of the present time, or those that follow.
pub(crate) struct SmsIds {
    clock: Clock,
    last: AtomicU64,
}

impl SmsIds {
    /// Ids by this clock.
    pub(crate) fn by(clock: Clock) -> Self {
        Self {
            clock,
            last: AtomicU64::new(0),
        }
    }

    /// An id that was not drawn before.
    pub(crate) fn next(&self) -> SmsId {
        let present = SmsId::new(&self.clock.moment());
        let following = |last: u64| present.number().max(last.saturating_add(1));
        let (one, other) = (Ordering::Relaxed, Ordering::Relaxed);
        let drawn = self
            .last
            .fetch_update(one, other, |last| Some(following(last)));
        let number = drawn.map_or_else(following, following);
        SmsId::from_number(number).unwrap_or(present)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_is_drawn_twice() {
        let ids = SmsIds::by(Clock::new());
        let drawn: Vec<SmsId> = (0..10_000).map(|_| ids.next()).collect();
        assert!(drawn.is_sorted_by(|one, other| one < other));
    }
}
