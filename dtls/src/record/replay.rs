//! Was this record received before? The sliding window of RFC 6347 section 4.1.2.6.

/// How many numbers behind the newest are remembered.
const WINDOW: u64 = u64::BITS as u64;

/// Which of the newest record numbers of an epoch were received.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ReplayWindow {
    /// One more than the newest number; 0 before the first record.
    end: u64,
    /// Bit n: the number `end - 1 - n` was received.
    received: u64,
}

impl ReplayWindow {
    /// Whether a record may be new. One that is older than the window counts as received.
    pub(crate) fn is_fresh(&self, sequence: u64) -> bool {
        let Some(age) = self.end.checked_sub(sequence.saturating_add(1)) else {
            return true;
        };
        age < WINDOW && self.received & (1 << age) == 0
    }

    /// Whether a record is newer than all that were received.
    pub(crate) fn is_newest(&self, sequence: u64) -> bool {
        sequence >= self.end
    }

    /// Notes a record. Only after it was authenticated: a forged number would shut out true ones.
    pub(crate) fn mark(&mut self, sequence: u64) {
        match sequence.checked_sub(self.end) {
            Some(ahead) => {
                let shift = u32::try_from(ahead + 1).unwrap_or(u32::MAX);
                self.received = self.received.checked_shl(shift).unwrap_or(0) | 1;
                self.end = sequence + 1;
            }
            None => {
                let age = self.end - 1 - sequence;
                self.received |= 1u64.checked_shl(age as u32).unwrap_or(0);
            }
        }
    }

    pub(crate) fn to_numbers(self) -> [u64; 2] {
        [self.end, self.received]
    }

    pub(crate) fn from_numbers([end, received]: [u64; 2]) -> Self {
        Self { end, received }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn no_number_is_fresh_twice_and_none_within_the_window_is_refused(
            steps in proptest::collection::vec(0u64..200, 1..300),
        ) {
            let mut window = ReplayWindow::default();
            let mut seen = BTreeSet::new();
            for sequence in steps {
                let newest = seen.last().copied();
                let is_old = newest.is_some_and(|newest: u64| sequence + WINDOW <= newest);
                let expected = !is_old && !seen.contains(&sequence);
                prop_assert_eq!(window.is_fresh(sequence), expected);
                prop_assert_eq!(window.is_newest(sequence), newest.is_none_or(|it| sequence > it));
                if expected {
                    window.mark(sequence);
                    seen.insert(sequence);
                }
            }
        }
    }
}
