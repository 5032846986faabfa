//! How much of what a device says is kept in a while? What it can have written has a bound, because
//! the disk is everybody's.

use crate::limits::{PACE_MAX, PACE_S};
use crate::moment::Timestamp;

/// What was taken of a device in the stretch of time under way, in values; it is compact, because
/// every device has one.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::device) struct Pace {
    /// When the stretch began, in seconds since 1970.
    began_s: [u8; 4],
    taken: u16,
}

impl Pace {
    /// Takes so much more, if anything more is taken by now.
    pub(in crate::device) fn take(&mut self, now: Timestamp, values: u16) -> bool {
        let (now_s, began_s) = (now.as_short_s(), u32::from_be_bytes(self.began_s));
        let is_under_way = now_s >= began_s && now_s - began_s < PACE_S;
        if !is_under_way {
            *self = Self {
                began_s: now_s.to_be_bytes(),
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
