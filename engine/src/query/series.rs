//! How is the history of a numeric resource reduced to buckets of time?
//!
//! The events of the device are read newest first, a page at a time, and each sample is added to
//! the bucket of its time. Nothing but the buckets is kept.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;

use crate::delivery::backlog::Sequence;
use crate::event::{Event, EventContent};
use crate::ids::{CustomerId, DeviceKey};
use crate::limits::{SERIES_EVENTS_AT_ONCE, SERIES_EVENTS_MAX};
use crate::moment::Timestamp;

/// Which samples of a device are read, newest first.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SampleFilter {
    /// The customer of the device.
    pub customer: CustomerId,
    /// The device.
    pub device: DeviceKey,
    /// The path of the values: exactly this one.
    pub path: Path,
    /// Reading ends at an event that was received before this.
    pub from: Timestamp,
    /// The number of the event to begin with; its newest one if there is none.
    pub at: Option<Sequence>,
}

impl SampleFilter {
    /// The samples that an event has.
    pub fn samples_of<'a>(&'a self, event: &'a Event) -> impl Iterator<Item = Sample> + 'a {
        let telemetry = match &event.content {
            EventContent::Telemetry(telemetry) => Some(telemetry),
            EventContent::Data(_)
            | EventContent::Lifecycle(_)
            | EventContent::Error(_)
            | EventContent::ActionResult(_)
            | EventContent::SmsReceived(_)
            | EventContent::SmsReport(_) => None,
        };
        telemetry.into_iter().flat_map(|telemetry| {
            let at = telemetry.known_at(event.at);
            let values = telemetry.values.iter();
            let values = values.filter(|(path, _)| *path == self.path);
            values.filter_map(move |(_, value)| Some(Sample::new(at, SampleNumber::of(value)?)))
        })
    }
}

/// A page of samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SamplePage {
    /// The samples.
    pub samples: Vec<Sample>,
    /// How many events were read for them.
    pub examined: u32,
    /// The number of the event that the next page begins with; none if nothing older is left.
    pub next: Option<Sequence>,
}

/// A number that a device reported, and its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When it was measured, but not later than it was received; when it was received if the device
    /// did not send a time.
    pub at: Timestamp,
    /// The number.
    pub number: SampleNumber,
}

impl Sample {
    /// A number at a time.
    pub fn new(at: Timestamp, number: SampleNumber) -> Self {
        Self { at, number }
    }
}

/// A number in full precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SampleNumber {
    /// An integer of 64 bits, with or without a sign.
    Integer(i128),
    /// A finite number.
    Float(f64),
}

impl SampleNumber {
    /// The number that a value is: false is 0, true is 1. None for what is no number, not-a-number
    /// and infinities.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Boolean(value) => Some(Self::Integer((*value).into())),
            Value::Integer(value) => Some(Self::Integer((*value).into())),
            Value::UnsignedInteger(value) => Some(Self::Integer((*value).into())),
            Value::Float(value) => value.is_finite().then_some(Self::Float(*value)),
            Value::CoreLink(_)
            | Value::ObjectLink(_)
            | Value::Opaque(_)
            | Value::String(_)
            | Value::Time(_) => None,
        }
    }

    fn as_f64(self) -> f64 {
        match self {
            // The nearest float: the mean is one anyway.
            Self::Integer(number) => number as f64,
            Self::Float(number) => number,
        }
    }

    /// The exact order: no integer is rounded to a float.
    fn order(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => one.cmp(&other),
            (Self::Float(one), Self::Float(other)) => one.total_cmp(&other),
            (Self::Integer(one), Self::Float(other)) => order_of(one, other),
            (Self::Float(one), Self::Integer(other)) => order_of(other, one).reverse(),
        }
    }
}

/// The order of an integer of 64 bits and a finite float.
fn order_of(integer: i128, float: f64) -> Ordering {
    // A float beyond 128 bits becomes the last integer of these, which is beyond 64 bits.
    let whole = float.trunc() as i128;
    integer
        .cmp(&whole)
        .then_with(|| 0.0_f64.total_cmp(&(float.fract() + 0.0)))
}

/// Which part of the history of a path is reduced, and to how many buckets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SeriesQuery {
    /// Which samples are read.
    pub filter: SampleFilter,
    /// The end of the last bucket, which has samples of this time, too. Later than `filter.from`,
    /// the beginning of the first one.
    pub to: Timestamp,
    /// The number of buckets, at least one.
    pub points: u32,
}

impl SeriesQuery {
    /// The bucket of a time.
    fn bucket_of(&self, at: Timestamp) -> Option<u32> {
        if at < self.filter.from || at > self.to {
            return None;
        }
        let bucket = self.ms_after_from(at) * i128::from(self.points) / self.length_ms();
        let bucket = u32::try_from(bucket).unwrap_or(u32::MAX);
        Some(bucket.min(self.points.saturating_sub(1)))
    }

    /// The first millisecond of a bucket.
    fn beginning_of(&self, bucket: u32) -> Timestamp {
        let points = i128::from(self.points.max(1));
        let before = i128::from(bucket) * self.length_ms();
        let ms = (before + points - 1) / points;
        self.filter
            .from
            .plus_ms(i64::try_from(ms).unwrap_or(i64::MAX))
    }

    fn length_ms(&self) -> i128 {
        self.ms_after_from(self.to).max(1)
    }

    fn ms_after_from(&self, at: Timestamp) -> i128 {
        i128::from(at.as_ms()) - i128::from(self.filter.from.as_ms())
    }
}

/// What the samples of a bucket have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesBucket {
    /// How many they are.
    pub count: u64,
    /// The least.
    pub min: SampleNumber,
    /// The greatest.
    pub max: SampleNumber,
    /// Their mean, as a float.
    pub mean: f64,
    /// The last one by time; of several with this time, the one received last.
    pub last: Sample,
}

impl SeriesBucket {
    fn of(sample: Sample) -> Self {
        Self {
            count: 1,
            min: sample.number,
            max: sample.number,
            mean: sample.number.as_f64(),
            last: sample,
        }
    }

    /// Adds a sample that was received before those that the bucket has.
    fn add(&mut self, sample: Sample) {
        let Sample { at, number } = sample;
        self.count += 1;
        if number.order(self.min).is_lt() {
            self.min = number;
        }
        if number.order(self.max).is_gt() {
            self.max = number;
        }
        if at > self.last.at {
            self.last = sample;
        }
        let mean = mean_with(self.mean, number.as_f64(), self.count);
        // Rounding does not take the mean out of the range of the samples.
        self.mean = mean.clamp(self.min.as_f64(), self.max.as_f64());
    }
}

/// The mean of `count` numbers, of which the last one and the mean of the others are given. A sum
/// of large numbers would overflow.
fn mean_with(mean: f64, number: f64, count: u64) -> f64 {
    let count = count as f64;
    let difference = number - mean;
    match difference.is_finite() {
        true => mean + difference / count,
        false => mean - mean / count + number / count,
    }
}

/// The reduced history of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The buckets that have samples, each with its beginning, the oldest first.
    pub buckets: Vec<(Timestamp, SeriesBucket)>,
    /// The number of the event that was to be read next, if the bound was reached before the
    /// beginning.
    pub next: Option<Sequence>,
}

/// A series that is being made.
#[derive(Clone, Debug)]
pub struct SeriesWalk {
    query: SeriesQuery,
    buckets: BTreeMap<u32, SeriesBucket>,
    examined: u32,
    progress: WalkProgress,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum WalkProgress {
    /// The next page begins at `filter.at`.
    Reading,
    /// Nothing older is left.
    Complete,
}

impl SeriesWalk {
    /// Begins.
    pub fn of(query: SeriesQuery) -> Self {
        Self {
            query,
            buckets: BTreeMap::new(),
            examined: 0,
            progress: WalkProgress::Reading,
        }
    }

    /// The page that is to be read next, and how many events are read for it at most; none at the
    /// end, or at the bound.
    pub fn next_page(&self) -> Option<(SampleFilter, u32)> {
        let room = SERIES_EVENTS_MAX.saturating_sub(self.examined);
        let is_over = self.progress == WalkProgress::Complete || room == 0;
        (!is_over).then(|| (self.query.filter.clone(), room.min(SERIES_EVENTS_AT_ONCE)))
    }

    /// Adds the samples of a page.
    pub fn handle_page(&mut self, page: &SamplePage) {
        for sample in &page.samples {
            let Some(bucket) = self.query.bucket_of(sample.at) else {
                continue;
            };
            self.buckets
                .entry(bucket)
                .and_modify(|bucket| bucket.add(*sample))
                .or_insert_with(|| SeriesBucket::of(*sample));
        }
        self.examined = self.examined.saturating_add(page.examined);
        self.query.filter.at = page.next;
        if page.next.is_none() || page.examined == 0 {
            self.progress = WalkProgress::Complete;
        }
    }

    /// The series, as far as it was read.
    pub fn finish(self) -> Series {
        let query = &self.query;
        let buckets = self.buckets.into_iter();
        Series {
            buckets: buckets
                .map(|(number, bucket)| (query.beginning_of(number), bucket))
                .collect(),
            next: match self.progress {
                WalkProgress::Reading => self.query.filter.at,
                WalkProgress::Complete => None,
            },
        }
    }
}

#[cfg(test)]
mod tests;
