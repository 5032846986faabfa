//! How long is the pause before a link is opened again?

use crate::moment::Moment;

/// The pause after so many failures in a row: it doubles from the first to the longest, and half of
/// it is random.
pub(crate) fn back_off_ms(m: &mut Moment, first_ms: i64, max_ms: i64, failures: u32) -> i64 {
    let half = (first_ms << failures.min(16)).min(max_ms) / 2;
    half + i64::from(m.next_u32()) % (half + 1)
}
