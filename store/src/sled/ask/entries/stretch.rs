//! Which counts and which keys make up a stretch of time?
//!
//! ```text
//!  from                                                                            end
//!   |keys|five seconds|minutes|quarters|  days  |quarters|minutes|five seconds|keys|
//! ```

use engine::admin_log::window::Window;
use engine::moment::Timestamp;

use crate::sled::key::log::count::Span;

/// Where time ends: spans of five seconds are numbered in 32 bits, which last until 2650.
const END: Timestamp = Timestamp::from_ms(5_000 * u32::MAX as i64);

/// A stretch of time: its first instant, and the first one behind it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::sled) struct Stretch {
    /// The first instant in it.
    pub(in crate::sled) from: Timestamp,
    /// The first instant behind it.
    pub(in crate::sled) end: Timestamp,
}

/// A part of a stretch, and what says how many entries it has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Part {
    /// The part.
    pub(super) stretch: Stretch,
    /// The counts of its spans, of which it has whole ones; without a span, its keys.
    pub(super) by: Option<Span>,
}

impl Stretch {
    /// What a window has, whose ends are both in it. Ids begin at the epoch.
    pub(super) fn of(window: &Window) -> Self {
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

    /// It and what follows of its last day.
    pub(super) fn to_the_end_of_the_day(self) -> Self {
        let end = ceil(self.end, Span::Day);
        Self { end, ..self }
    }

    /// One of the spans time is divided in.
    pub(super) fn of_bucket(span: Span, bucket: u32) -> Self {
        let from = span.start(bucket);
        let end = from.plus_ms(span.ms());
        Self { from, end }
    }

    /// Its parts, newest first: whole days, and shorter spans where a longer one is not whole.
    pub(super) fn parts(self) -> Vec<Part> {
        let mut parts = Vec::new();
        self.divide(Some(Span::Day), &mut parts);
        parts
    }

    fn divide(self, by: Option<Span>, parts: &mut Vec<Part>) {
        if self.from >= self.end {
            return;
        }
        let Some(span) = by else {
            parts.push(Part { stretch: self, by });
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
        parts.push(Part { stretch: whole, by });
        Self {
            from: self.from,
            end: first,
        }
        .divide(shorter, parts);
    }
}

/// What divides a span.
pub(super) fn shorter(span: Option<Span>) -> Option<Span> {
    match span {
        Some(Span::Day) => Some(Span::Quarter),
        Some(Span::Quarter) => Some(Span::Minute),
        Some(Span::Minute) => Some(Span::FiveSeconds),
        Some(Span::FiveSeconds) | None => None,
    }
}

fn floor(at: Timestamp, span: Span) -> Timestamp {
    at.plus_ms(-at.as_ms().rem_euclid(span.ms()))
}

fn ceil(at: Timestamp, span: Span) -> Timestamp {
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
    use crate::conformance::chance::Chance;

    const DAY: i64 = 86_400_000;

    fn stretch(from: i64, end: i64) -> Stretch {
        let [from, end] = [from, end].map(Timestamp::from_ms);
        Stretch { from, end }
    }

    #[test]
    fn whole_days_are_taken_whole() {
        let parts = stretch(DAY, 8 * DAY).parts();
        let whole = Part {
            stretch: stretch(DAY, 8 * DAY),
            by: Some(Span::Day),
        };
        assert_eq!(parts, [whole]);
        assert_eq!(stretch(5, 5).parts(), []);
    }

    #[test]
    fn the_edges_are_taken_in_ever_shorter_spans() {
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
            (0, DAY, Some(Span::Day)),
            (-15 * minute, 0, Some(Span::Quarter)),
            (-16 * minute, -15 * minute, Some(Span::Minute)),
            (-16 * minute - 5_000, -16 * minute, Some(Span::FiveSeconds)),
            (-16 * minute - 5_001, -16 * minute - 5_000, None),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_parts_are_the_stretch_without_gap_or_overlap() {
        let mut chance = Chance::from_seed_asked_for();
        for _ in 0..2_000 {
            let mut instant = || {
                let unit = chance.one_of(&[1, 5_000, 60_000, 900_000, DAY]);
                i64::try_from(chance.below(40)).unwrap() * unit
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
