//! Time and entropy of a step: the only way that both reach a machine.
//!
//! Also the text formats of times; no other file of the crate uses chrono.

use std::fmt;

use chrono::{DateTime, NaiveDateTime, Timelike, Utc};
use uuid::{Builder, Uuid};

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The instant so many milliseconds after the epoch.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the epoch.
    pub const fn as_ms(self) -> i64 {
        self.0
    }

    /// Whole seconds since the epoch, in four bytes, because a million devices each have some. They
    /// range from 1970 to 2106.
    pub(crate) fn as_short_s(self) -> u32 {
        u32::try_from((self.0 / 1_000).max(0)).unwrap_or(u32::MAX)
    }

    /// The instant so many milliseconds later; it saturates.
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// The instant so many seconds later.
    pub const fn plus_s(self, s: i64) -> Self {
        self.plus_ms(s.saturating_mul(1_000))
    }

    /// Milliseconds from `earlier` until this instant; negative if this instant is earlier.
    pub const fn since_ms(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Reads `YYYY-MM-DDTHH:MM:SS.mmm`, UTC; a trailing `Z` and a missing fraction are fine.
    pub fn parse_iso(text: &str) -> Option<Self> {
        let bare = text.strip_suffix('Z').unwrap_or(text);
        // chrono also takes signs, blanks, single digits and the sixty-first second of a minute.
        if !ISO_FORMS.iter().any(|form| has_form(bare, form)) {
            return None;
        }
        NaiveDateTime::parse_from_str(bare, "%Y-%m-%dT%H:%M:%S%.f")
            .ok()
            .filter(|at| at.nanosecond() < 1_000_000_000)
            .map(|at| Self(at.and_utc().timestamp_millis()))
    }

    /// `2026-11-21T12:43:51.000Z`: the administration log's form (seed 2.2).
    pub fn iso(self) -> impl fmt::Display {
        self.utc().format("%Y-%m-%dT%H:%M:%S%.3fZ")
    }

    /// `2026-11-21 12:43:51.000`: the action request's form (seed 2.1); `.f` is three digits.
    pub fn spaced(self) -> impl fmt::Display {
        self.utc().format("%Y-%m-%d %H:%M:%S%.3f")
    }

    /// `2026-11-21 12:43:51`: the form of SMS (seed 6).
    pub fn spaced_s(self) -> impl fmt::Display {
        self.utc().format("%Y-%m-%d %H:%M:%S")
    }

    /// `261121124351000+`: an absolute time of SMPP (SMPP 3.4 section 7.1.1).
    pub fn smpp(self) -> impl fmt::Display {
        self.utc().format("%y%m%d%H%M%S000+")
    }

    fn utc(self) -> DateTime<Utc> {
        // chrono covers 262,000 years; no stored time lies outside.
        DateTime::from_timestamp_millis(self.0).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }
}

/// The forms of a time that is read, with a 9 for each digit.
const ISO_FORMS: [&str; 2] = ["9999-99-99T99:99:99.999", "9999-99-99T99:99:99"];

fn has_form(text: &str, form: &str) -> bool {
    let fits = |(byte, form): (u8, u8)| match form {
        b'9' => byte.is_ascii_digit(),
        form => byte == form,
    };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(fits)
}

/// One instant, with entropy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Moment {
    now: Timestamp,
    /// The position within its millisecond, in steps of 1/4,096.
    step: u16,
    /// Ids generated so far.
    ids: u16,
    state: [u64; 2],
}

/// Steps of a millisecond, as many as RFC 9562 section 6.2 (method 3) has room for.
pub const STEPS_PER_MS: u16 = 4_096;

/// Ids of one moment that differ by their number, which has 14 bits: more than a step generates.
/// Further ids differ by their random bits.
const IDS_MAX: u16 = 0x3fff;

/// The bytes at the end of an id that do not decide its order.
pub(crate) const UUID_END_BYTES: usize = 6;

impl Moment {
    /// A moment at `now`, whose random numbers are seeded with 128 bits of entropy.
    pub fn new(now: Timestamp, entropy: u128) -> Self {
        let high = u64::try_from(entropy >> 64).expect("the upper half has 64 bits");
        let low = u64::try_from(entropy & u128::from(u64::MAX)).expect("masked to 64 bits");
        // xoroshiro128+ needs one bit set.
        Self {
            now,
            step: 0,
            ids: 0,
            state: [high, low | 1],
        }
    }

    /// The moment so many steps into its millisecond.
    pub fn at_step(mut self, step: u16) -> Self {
        self.step = step.min(STEPS_PER_MS - 1);
        self
    }

    /// The instant.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The position within its millisecond, in steps of 1/4,096.
    pub fn step(&self) -> u16 {
        self.step
    }

    /// The next 64 random bits (xoroshiro128+).
    pub fn next_u64(&mut self) -> u64 {
        let [s0, mut s1] = self.state;
        let drawn = s0.wrapping_add(s1);
        s1 ^= s0;
        self.state = [s0.rotate_left(24) ^ s1 ^ (s1 << 16), s1.rotate_left(37)];
        drawn
    }

    /// The upper half of the next 64 random bits.
    pub fn next_u32(&mut self) -> u32 {
        u32::try_from(self.next_u64() >> 32).expect("shifted to 32 bits")
    }

    /// A UUID version 7 (RFC 9562 section 5.7): ids sort by creation time, also within one
    /// millisecond, and those of one moment by their number.
    pub fn uuid(&mut self) -> Uuid {
        let [a, b, c, d, e, f, ..] = self.next_u64().to_be_bytes();
        self.uuid_ending([a, b, c, d, e, f])
    }

    /// A UUID version 7 with these bytes instead of the random ones at its end. The caller chooses
    /// bytes that nobody else gives an id of the same moment.
    pub fn uuid_ending(&mut self, end: [u8; UUID_END_BYTES]) -> Uuid {
        let mut random = [0; 10];
        random[..2].copy_from_slice(&self.step.to_be_bytes());
        // The variant overwrites the upper two bits.
        random[2..4].copy_from_slice(&self.ids.to_be_bytes());
        random[4..].copy_from_slice(&end);
        self.ids = self.ids.saturating_add(1).min(IDS_MAX);
        let ms = u64::try_from(self.now.as_ms()).unwrap_or(0);
        Builder::from_unix_timestamp_millis(ms, &random).into_uuid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_the_forms_of_the_api() {
        let at = Timestamp::from_ms(1_700_000_000_005);
        assert_eq!(at.iso().to_string(), "2023-11-14T22:13:20.005Z");
        assert_eq!(at.spaced().to_string(), "2023-11-14 22:13:20.005");
        assert_eq!(at.spaced_s().to_string(), "2023-11-14 22:13:20");
    }

    #[test]
    fn a_window_bound_is_read_with_and_without_fraction_and_zone() {
        let at = Some(Timestamp::from_ms(1_700_000_000_000));
        assert_eq!(Timestamp::parse_iso("2023-11-14T22:13:20.000"), at);
        assert_eq!(Timestamp::parse_iso("2023-11-14T22:13:20"), at);
        assert_eq!(Timestamp::parse_iso("2023-11-14T22:13:20.000Z"), at);
        let others = [
            "",
            "Z",
            "2023-11-14",
            "2023-11-14T25:13:20",
            "2023-11-14T22:13",
            "2023-11-14T22:13:60",
            "2023-11-31T22:13:20",
            "2023-11-14T22:13:20.00",
            "2023-11-14T22:13:20.0000",
            "2023-11-14T22:13:20.",
            "2023-11-14 22:13:20.000",
            "2023-11-14T22:13:20.000ZZ",
            "2023-11-14T22:13:20.000+00:00",
            "+2023-11-14T22:13:20.000",
            "2023-1-14T22:13:20.000",
            "2023-11-14T22:13: 0.000",
            "2023-11-14T22:13:2\u{0663}",
        ];
        for text in others {
            assert_eq!(Timestamp::parse_iso(text), None, "{text}");
        }
    }

    #[test]
    fn ids_of_one_moment_differ_and_sort_before_those_of_the_next() {
        let mut first = Moment::new(Timestamp::from_ms(1_000), 7);
        let mut second = Moment::new(Timestamp::from_ms(1_001), 7);
        let (a, b, later) = (first.uuid(), first.uuid(), second.uuid());
        assert!(a < b && b < later);
    }

    #[test]
    fn ids_of_one_moment_sort_by_their_number() {
        let mut moment = Moment::new(Timestamp::from_ms(1_000), 7);
        let ids: Vec<Uuid> = (0..=IDS_MAX).map(|_| moment.uuid()).collect();
        assert!(ids.is_sorted());
        let later = Moment::new(Timestamp::from_ms(1_000), 7).at_step(1).uuid();
        assert!(ids.last() < Some(&later));
        assert_ne!(moment.uuid(), moment.uuid(), "those that follow differ");
    }

    #[test]
    fn ids_of_one_millisecond_sort_by_their_step() {
        let step = |step, entropy| {
            let moment = Moment::new(Timestamp::from_ms(1_000), entropy);
            moment.at_step(step).uuid()
        };
        for entropy in [0, 7, u128::MAX] {
            assert!(step(17, entropy) < step(18, u128::MAX - entropy));
        }
        assert!(step(STEPS_PER_MS, 7) < Moment::new(Timestamp::from_ms(1_001), 7).uuid());
    }
}
