//! Which second does a text denote? (ISO 8601 extended format, or seconds since 1970)
//!
//! A date-time without an offset is UTC; a fraction of a second is dropped, because LwM2M uses
//! whole seconds.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};

/// Reads an ISO 8601 date-time, or seconds since 1970.
pub(super) fn parse(text: &str) -> Option<i64> {
    if let Ok(seconds) = text.parse() {
        return Some(seconds);
    }
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let (clock, offset) = split_offset(time)?;
    let local = NaiveDateTime::new(parse_date(date)?, parse_clock(clock)?);
    local
        .checked_sub_signed(offset)
        .map(|utc| utc.and_utc().timestamp())
}

/// Writes ISO 8601 in UTC.
///
/// A second outside the years 0 to 9999, which ISO 8601 has no plain text for, is written as its
/// number.
pub(super) fn text(seconds: i64) -> String {
    match DateTime::from_timestamp(seconds, 0).filter(|time| (0..=9999).contains(&time.year())) {
        Some(time) => time.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        None => seconds.to_string(),
    }
}

fn split_offset(time: &str) -> Option<(&str, TimeDelta)> {
    if let Some(clock) = time.strip_suffix(['Z', 'z']) {
        return Some((clock, TimeDelta::zero()));
    }
    let Some(at) = time.find(['+', '-']) else {
        return Some((time, TimeDelta::zero()));
    };
    let (clock, offset) = time.split_at_checked(at)?;
    let (sign, offset) = offset.split_at_checked(1)?;
    let offset = parse_offset(offset)?;
    Some((clock, if sign == "-" { -offset } else { offset }))
}

/// Reads `02:00`, `0200` or `02`.
fn parse_offset(text: &str) -> Option<TimeDelta> {
    let (hours, minutes) = match (text.split_once(':'), text.len()) {
        (Some(parts), _) => parts,
        (None, 4) => text.split_at_checked(2)?,
        (None, _) => (text, "00"),
    };
    let hours = number(hours, 2).filter(|hours| *hours < 24)?;
    let minutes = number(minutes, 2).filter(|minutes| *minutes < 60)?;
    Some(TimeDelta::minutes(i64::from(hours * 60 + minutes)))
}

fn parse_date(text: &str) -> Option<NaiveDate> {
    let mut parts = text.split('-');
    let year = i32::try_from(number(parts.next()?, 4)?).ok()?;
    let month = number(parts.next()?, 2)?;
    let day = number(parts.next()?, 2)?;
    if parts.next().is_some() {
        return None;
    }
    NaiveDate::from_ymd_opt(year, month, day)
}

/// Reads `14:05`, `14:05:09` or `14:05:09.250`.
fn parse_clock(text: &str) -> Option<NaiveTime> {
    let (text, fraction) = text.split_once(['.', ',']).unwrap_or((text, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut parts = text.split(':');
    let hour = number(parts.next()?, 2)?;
    let minute = number(parts.next()?, 2)?;
    let second = match parts.next() {
        Some(second) => number(second, 2)?,
        None => 0,
    };
    if parts.next().is_some() {
        return None;
    }
    NaiveTime::from_hms_opt(hour, minute, second)
}

fn number(text: &str, digits: usize) -> Option<u32> {
    let plain = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{parse, text};

    const MOMENT: i64 = 1_795_265_109; // 2026-11-21T12:45:09Z

    #[test]
    fn every_usual_spelling_of_a_moment_is_read() {
        let spellings = [
            "1795265109",
            "2026-11-21T12:45:09Z",
            "2026-11-21t12:45:09z",
            "2026-11-21 12:45:09Z",
            "2026-11-21T12:45:09",
            "2026-11-21T12:45:09.000Z",
            "2026-11-21T12:45:09.999",
            "2026-11-21T12:45:09,5Z",
            "2026-11-21T14:45:09+02:00",
            "2026-11-21T14:45:09+0200",
            "2026-11-21T14:45:09+02",
            "2026-11-21T07:15:09-05:30",
            "2026-11-22T00:45:09.123+12:00",
        ];
        for spelling in spellings {
            assert_eq!(parse(spelling), Some(MOMENT), "{spelling}");
        }
        assert_eq!(text(MOMENT), "2026-11-21T12:45:09Z");
    }

    #[test]
    fn seconds_may_be_left_out_and_precede_the_epoch() {
        assert_eq!(parse("1970-01-01T00:01Z"), Some(60));
        assert_eq!(parse("-60"), Some(-60));
        assert_eq!(parse("1969-12-31T23:59:00Z"), Some(-60));
        assert_eq!(text(-60), "1969-12-31T23:59:00Z");
        assert_eq!(text(0), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn a_text_without_a_second_is_refused() {
        let texts = [
            "",
            "now",
            "1795265109.5",
            "0x10",
            "2026-11-21",
            "2026-11-21T",
            "2026-11-21T12",
            "2026-11-21T12:45:",
            "2026-11-21T12:45:09.",
            "2026-11-21T12:45:09.Z",
            "2026-11-21T12:45:60Z",
            "2026-11-21T24:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "26-11-21T12:45:09Z",
            "+2026-11-21T12:45:09Z",
            "2026-1-21T12:45:09Z",
            "2026-11-21T12:45:09ZZ",
            "2026-11-21T12:45:09+24:00",
            "2026-11-21T12:45:09+2",
            "2026-11-21T12:45:09+02:",
            "2026-11-21T12:45:09+é",
            "2026-11-21T12:45:09Z ",
            "2026-11-21T12:45:09:01",
            "2026-11-21-01T12:45:09",
            "99999999999999999999",
        ];
        for text in texts {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_moment_beyond_the_calendar_is_written_as_its_number() {
        for (seconds, written) in [
            (253_402_300_799, "9999-12-31T23:59:59Z"),
            (253_402_300_800, "253402300800"),
            (-62_167_219_200, "0000-01-01T00:00:00Z"),
            (-62_167_219_201, "-62167219201"),
            (i64::MAX, "9223372036854775807"),
            (i64::MIN, "-9223372036854775808"),
        ] {
            assert_eq!(text(seconds), written);
            assert_eq!(parse(written), Some(seconds));
        }
    }

    proptest! {
        #[test]
        fn every_second_survives_its_text(seconds in any::<i64>(), near in any::<i32>()) {
            prop_assert_eq!(parse(&text(seconds)), Some(seconds));
            let near = i64::from(near) * 60;
            prop_assert_eq!(parse(&text(near)), Some(near));
        }

        #[test]
        fn any_text_is_read_or_refused(any in "[0-9TZ:.+-]{0,30}|\\PC{0,40}") {
            if let Some(seconds) = parse(&any) {
                prop_assert_eq!(parse(&text(seconds)), Some(seconds));
            }
        }
    }
}
