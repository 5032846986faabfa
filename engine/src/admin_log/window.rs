//! The time window of a query of the log (seed 4.8).

use crate::limits::LOG_WINDOW_MS;
use crate::moment::Timestamp;

/// A time window, both ends included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TimeWindow {
    /// The first instant in it.
    pub from: Timestamp,
    /// The last instant in it.
    pub until: Timestamp,
}

/// The start lies after the end.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum WindowReversed {
    /// The end that was given.
    #[error("must not be later than the end")]
    AfterEnd,
    /// The end is now, because none was given.
    #[error("must not be in the future, because the end is now")]
    InFuture,
}

impl TimeWindow {
    /// The window with these bounds. The default end is now; the default start is seven days before
    /// the end.
    pub fn of(
        now: Timestamp,
        start: Option<Timestamp>,
        end: Option<Timestamp>,
    ) -> Result<Self, WindowReversed> {
        let until = end.unwrap_or(now);
        let from = start.unwrap_or(until.plus_ms(-LOG_WINDOW_MS));
        if from > until {
            Err(end.map_or(WindowReversed::InFuture, |_| WindowReversed::AfterEnd))
        } else {
            Ok(Self { from, until })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(100 * 86_400_000);

    fn day(number: i64) -> Timestamp {
        Timestamp::from_ms(number * 86_400_000)
    }

    #[test]
    fn a_window_without_bounds_is_the_last_seven_days() {
        assert_eq!(
            TimeWindow::of(NOW, None, None),
            Ok(TimeWindow {
                from: day(93),
                until: NOW
            })
        );
    }

    #[test]
    fn a_window_with_one_bound_has_the_default_of_the_other() {
        let only_start = TimeWindow::of(NOW, Some(day(40)), None);
        assert_eq!(
            only_start,
            Ok(TimeWindow {
                from: day(40),
                until: NOW
            })
        );
        let only_end = TimeWindow::of(NOW, None, Some(day(50)));
        assert_eq!(
            only_end,
            Ok(TimeWindow {
                from: day(43),
                until: day(50)
            })
        );
    }

    #[test]
    fn a_start_after_the_end_is_refused() {
        let refusals = [
            (Some(day(50)), WindowReversed::AfterEnd),
            (None, WindowReversed::InFuture),
        ];
        for (end, refusal) in refusals {
            assert_eq!(TimeWindow::of(NOW, Some(day(101)), end), Err(refusal));
        }
    }
}
