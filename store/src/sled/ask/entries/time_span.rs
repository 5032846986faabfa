//! Which counts and which keys make up a time span?
//!
//! ```text
//!  from                                                                            end
//!   |keys|five seconds|minutes|quarters|  days  |quarters|minutes|five seconds|keys|
//! ```

use engine::admin_log::window::TimeWindow;
use engine::moment::Timestamp;

use crate::sled::key::log::count::BucketSize;

/// The end of time: buckets of five seconds are numbered in 32 bits, which last until 2650.
const END: Timestamp = Timestamp::from_ms(5_000 * u32::MAX as i64);

/// A time span: its first instant, and the first instant after it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::sled) struct TimeSpan {
    /// The first instant in it.
    pub(in crate::sled) from: Timestamp,
    /// The first instant after it.
    pub(in crate::sled) end: Timestamp,
}

/// A part of a time span, and where its number of entries is read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct SpanPart {
    /// The part.
    pub(super) stretch: TimeSpan,
    /// The size of the buckets whose counts are summed; the part has only whole ones. Without a
    /// size, its keys are counted.
    pub(super) by: Option<BucketSize>,
}

impl TimeSpan {
    /// The span of a window, which includes both its ends. Ids begin at the epoch.
    pub(super) fn of(window: &TimeWindow) -> Self {
        let within = |at: Timestamp| at.max(Timestamp::from_ms(0)).min(END);
        let from = within(window.from);
        let end = within(window.until.plus_ms(1)).max(from);
        Self { from, end }
    }

    /// Everything from its end on.
    pub(super) fn behind(self) -> Self {
        Self {
            from: self.end,
            end: Timestamp::from_ms(i64::MAX),
        }
    }

    /// This span, extended to the end of its last day.
    pub(super) fn to_the_end_of_the_day(self) -> Self {
        let end = ceil(self.end, BucketSize::Day);
        Self { end, ..self }
    }

    /// The span of a bucket.
    pub(super) fn of_bucket(span: BucketSize, bucket: u32) -> Self {
        let from = span.start(bucket);
        let end = from.plus_ms(span.ms());
        Self { from, end }
    }

    /// The parts, newest first: whole days, and smaller buckets where a larger one is not whole.
    pub(super) fn parts(self) -> Vec<SpanPart> {
        let mut parts = Vec::new();
        self.divide(Some(BucketSize::Day), &mut parts);
        parts
    }

    fn divide(self, by: Option<BucketSize>, parts: &mut Vec<SpanPart>) {
        if self.from >= self.end {
            return;
        }
        let Some(span) = by else {
            parts.push(SpanPart { stretch: self, by });
            return;
        };
        let (first, last) = (ceil(self.from, span), floor(self.end, span));
        let shorter = shorter(Some(span));
        if first >= last {
            self.divide(shorter, parts);
            return;
        }
        let whole = Self {
            from: first,
            end: last,
        };
        Self {
            from: last,
            end: self.end,
        }
        .divide(shorter, parts);
        parts.push(SpanPart { stretch: whole, by });
        Self {
            from: self.from,
            end: first,
        }
        .divide(shorter, parts);
    }
}

/// The next smaller bucket size.
pub(super) fn shorter(span: Option<BucketSize>) -> Option<BucketSize> {
    match span {
        Some(BucketSize::Day) => Some(BucketSize::Quarter),
        Some(BucketSize::Quarter) => Some(BucketSize::Minute),
        Some(BucketSize::Minute) => Some(BucketSize::FiveSeconds),
        Some(BucketSize::FiveSeconds) | None => None,
    }
}

fn floor(at: Timestamp, span: BucketSize) -> Timestamp {
    at.plus_ms(-at.as_ms().rem_euclid(span.ms()))
}

fn ceil(at: Timestamp, span: BucketSize) -> Timestamp {
    let floor = floor(at, span);
    if floor == at {
        at
    } else {
        floor.plus_ms(span.ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::rng::Rng;

    const DAY: i64 = 86_400_000;

    fn stretch(from: i64, end: i64) -> TimeSpan {
        let [from, end] = [from, end].map(Timestamp::from_ms);
        TimeSpan { from, end }
    }

    #[test]
    fn whole_days_are_taken_whole() {
        let parts = stretch(DAY, 8 * DAY).parts();
        let whole = SpanPart {
            stretch: stretch(DAY, 8 * DAY),
            by: Some(BucketSize::Day),
        };
        assert_eq!(parts, [whole]);
        assert_eq!(stretch(5, 5).parts(), []);
    }

    #[test]
    fn the_edges_are_split_into_smaller_buckets() {
        let minute = 60_000;
        let parts = stretch(DAY - 16 * minute - 5_001, 2 * DAY + 1).parts();
        let found: Vec<_> = parts
            .iter()
            .map(|part| {
                (
                    part.stretch.from.as_ms() - DAY,
                    part.stretch.end.as_ms() - DAY,
                    part.by,
                )
            })
            .collect();
        let expected = [
            (DAY, DAY + 1, None),
            (0, DAY, Some(BucketSize::Day)),
            (-15 * minute, 0, Some(BucketSize::Quarter)),
            (-16 * minute, -15 * minute, Some(BucketSize::Minute)),
            (
                -16 * minute - 5_000,
                -16 * minute,
                Some(BucketSize::FiveSeconds),
            ),
            (-16 * minute - 5_001, -16 * minute - 5_000, None),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_parts_cover_the_span_without_gap_or_overlap() {
        let mut rng = Rng::from_seed_asked_for();
        for _ in 0..2_000 {
            let mut instant = || {
                let unit = rng.one_of(&[1, 5_000, 60_000, 900_000, DAY]);
                i64::try_from(rng.below(40)).unwrap() * unit
            };
            let (one, other) = (instant(), instant());
            let whole = stretch(one.min(other), one.max(other));
            let mut end = whole.end;
            for part in whole.parts() {
                assert_eq!(part.stretch.end, end, "{whole:?}");
                assert!(part.stretch.from < part.stretch.end);
                if let Some(span) = part.by {
                    let edges = [part.stretch.from, part.stretch.end];
                    assert!(edges.iter().all(|edge| floor(*edge, span) == *edge));
                }
                end = part.stretch.from;
            }
            assert_eq!(end, whole.from);
        }
    }
}
