//! How many entries are in a window, and where does a page begin? Answered by counts, so that
//! neither costs more because there are more entries.

use engine::moment::Timestamp;

use super::Log;
use super::time_span::{SpanPart, TimeSpan, shorter};
use crate::sled::fault::Fault;
use crate::sled::key::log::count::BucketSize;

/// The counts of a window, part by part.
pub(super) struct WindowCounts<'a> {
    log: &'a Log<'a>,
    window: TimeSpan,
    /// Each part with its number of entries, newest first.
    parts: Vec<(SpanPart, u64)>,
}

impl<'a> WindowCounts<'a> {
    /// The counts of a window.
    pub(super) fn of(log: &'a Log<'a>, window: TimeSpan) -> Result<Self, Fault> {
        // Most windows end now: if there are no entries after the window, its last day can be taken
        // whole.
        let window = if log.is_empty(window.behind())? {
            window.to_the_end_of_the_day()
        } else {
            window
        };
        let mut parts = Vec::new();
        for part in window.parts() {
            parts.push((part, number_in(log, part)?));
        }
        Ok(Self { log, window, parts })
    }

    /// How many entries there are.
    pub(super) fn total(&self) -> u64 {
        self.parts.iter().map(|(_, number)| number).sum()
    }

    /// The part of the window from about the `skip`th newest entry backwards, and how many of its
    /// entries are still to be skipped: at most as many as five seconds have.
    pub(super) fn behind(&self, mut skip: u64) -> Result<(TimeSpan, u64), Fault> {
        for (part, number) in &self.parts {
            if skip < *number {
                let (end, skip) = self.within(*part, skip)?;
                return Ok((TimeSpan { end, ..self.window }, skip));
            }
            skip -= number;
        }
        let end = self.window.from;
        Ok((TimeSpan { end, ..self.window }, skip))
    }

    /// Where in a part the entries after the first `skip` begin, and how many are still to be
    /// skipped from there.
    fn within(&self, part: SpanPart, mut skip: u64) -> Result<(Timestamp, u64), Fault> {
        let Some(span) = part.by else {
            return Ok((part.stretch.end, skip));
        };
        for (bucket, number) in buckets(self.log, span, part.stretch)? {
            if skip < number {
                let stretch = TimeSpan::of_bucket(span, bucket);
                let by = shorter(Some(span));
                return self.within(SpanPart { stretch, by }, skip);
            }
            skip -= number;
        }
        // Entries were removed since the part was counted.
        Ok((part.stretch.from, skip))
    }
}

fn number_in(log: &Log<'_>, part: SpanPart) -> Result<u64, Fault> {
    match part.by {
        Some(span) => {
            let buckets = buckets(log, span, part.stretch)?;
            Ok(buckets.iter().map(|(_, number)| number).sum())
        }
        None => log.number_in(part.stretch),
    }
}

/// The counts of the buckets in a time span, newest first, without empty ones.
fn buckets(log: &Log<'_>, span: BucketSize, stretch: TimeSpan) -> Result<Vec<(u32, u64)>, Fault> {
    let mut buckets = Vec::new();
    log.each_count(span, stretch, |bucket, number| {
        if number > 0 {
            buckets.push((bucket, number));
        }
    })?;
    buckets.reverse();
    Ok(buckets)
}
