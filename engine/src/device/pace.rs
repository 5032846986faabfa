//! How much of what a device says is kept in a while? What it can have written has a bound, because
//! the disk is everybody's.

use crate::limits::{PACE_MAX, PACE_S};
use crate::moment::Timestamp;

/// What was taken of a device in the stretch of time under way, in values; it is compact, because
/// every device has one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// When the stretch began, in seconds since 1970, as far as they go.
    began_s: u32,
    taken: u16,
}

impl Pace {
    /// Takes so much more, if anything more is taken by now.
    pub(super) fn take(&mut self, now: Timestamp, values: u16) -> bool {
        let now_s = u32::try_from(now.as_ms() / 1_000).unwrap_or(u32::MAX);
        let is_under_way = now_s >= self.began_s && now_s - self.began_s < PACE_S;
        if !is_under_way {
            *self = Self {
                began_s: now_s,
                taken: 0,
            };
        }
        let is_room = self.taken < PACE_MAX;
        if is_room {
            self.taken = self.taken.saturating_add(values);
        }
        is_room
    }
}
