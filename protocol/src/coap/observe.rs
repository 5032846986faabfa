//! Which of two notifications is newer? RFC 7641 section 3.4.
//!
//! The network may reorder them. Each carries the low 24 bits of a number that rises and wraps
//! around; two numbers half the range apart cannot be compared, so after some time any notification
//! counts as newer.

/// The bits of a sequence number.
const SEQUENCE_BITS: u32 = 24;

/// How far ahead a number may be and still count as newer: half the range.
const AHEAD_MAX: u32 = 1 << (SEQUENCE_BITS - 1);

/// Longer than a message can travel (MAX_LATENCY is 100 s): a notification received that much later
/// was sent later.
const COMPARABLE_FOR_MS: i64 = 128_000;

/// The newest notification of an observation so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewestNotification {
    sequence: u32,
    received_at_ms: i64,
}

impl NewestNotification {
    /// Makes the state for a notification with this Observe value; its low 24 bits count.
    pub fn new(sequence: u32, received_at_ms: i64) -> Self {
        Self {
            sequence: sequence & (u32::MAX >> (u32::BITS - SEQUENCE_BITS)),
            received_at_ms,
        }
    }

    /// Returns whether another notification, received later than this one, is also newer; if not,
    /// it was overtaken or duplicated, and its content is stale.
    pub fn is_outdated_by(&self, later: &Self) -> bool {
        let passed_ms = later.received_at_ms.saturating_sub(self.received_at_ms);
        self.is_before(later) || passed_ms > COMPARABLE_FOR_MS
    }

    fn is_before(&self, later: &Self) -> bool {
        let (first, second) = (self.sequence, later.sequence);
        (first < second && second - first < AHEAD_MAX)
            || (first > second && first - second > AHEAD_MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

    use super::NewestNotification;

    const LAST: u32 = 0xFF_FFFF;
    const HALF: u32 = 0x80_0000;

    #[test]
    fn a_higher_number_is_newer_up_to_half_the_range() {
        let cases = [
            (0, 0, false),
            (0, 1, true),
            (1, 0, false),
            (0, HALF - 1, true),
            (0, HALF, false),
            (HALF, 0, false),
            (HALF + 1, 0, true),
            (0, HALF + 1, false),
            (LAST, 0, true),
            (0, LAST, false),
            (LAST - 2, 5, true),
        ];
        for (first, second, newer) in cases {
            let at_once = NewestNotification::new(first, 0)
                .is_outdated_by(&NewestNotification::new(second, 0));
            assert_eq!(at_once, newer, "{second} after {first}");
        }
    }

    #[test]
    fn after_128_seconds_any_number_is_newer() {
        let outdated_after = |passed_ms: i64| {
            let first = NewestNotification::new(7, 1_000);
            first.is_outdated_by(&NewestNotification::new(7, 1_000 + passed_ms))
        };
        assert!(!outdated_after(128_000));
        assert!(outdated_after(128_001));
    }

    #[test]
    fn a_clock_set_back_makes_nothing_newer() {
        let first = NewestNotification::new(7, i64::MAX);
        assert!(!first.is_outdated_by(&NewestNotification::new(7, i64::MIN)));
        assert!(first.is_outdated_by(&NewestNotification::new(8, i64::MIN)));
    }

    #[test]
    fn only_24_bits_count() {
        assert_eq!(
            NewestNotification::new(0x0100_0003, 5),
            NewestNotification::new(3, 5)
        );
        assert_eq!(
            NewestNotification::new(u32::MAX, 5),
            NewestNotification::new(LAST, 5)
        );
    }

    proptest! {
        #[test]
        fn of_two_numbers_one_at_most_is_newer(one in any::<u32>(), other in any::<u32>()) {
            let (one, other) = (NewestNotification::new(one, 0), NewestNotification::new(other, 0));
            prop_assert!(!(one.is_outdated_by(&other) && other.is_outdated_by(&one)));
        }

        #[test]
        fn near_numbers_have_one_order(start in any::<u32>(), step in near()) {
            let first = NewestNotification::new(start, 0);
            let second = NewestNotification::new(start.wrapping_add(step), 0);
            prop_assert!(first.is_outdated_by(&second));
            prop_assert!(!second.is_outdated_by(&first));
        }

        #[test]
        fn the_order_is_the_same_from_any_start(start: u32, step: u32, turn: u32) {
            let newer = |start: u32| {
                let later = NewestNotification::new(start.wrapping_add(step), 0);
                NewestNotification::new(start, 0).is_outdated_by(&later)
            };
            // Exactly half the range apart, neither number is newer from any start.
            prop_assert_eq!(newer(start), newer(start.wrapping_add(turn)));
        }
    }

    /// Steps ahead of less than half the range.
    fn near() -> impl Strategy<Value = u32> {
        1..HALF
    }
}
