//! When do the days of a time zone begin and end, and when is it a time of day there? The only file
//! that imports jiff.
//!
//! The zones of the IANA time zone database are compiled in, so that every machine gives the same
//! answer; a change of a zone's rules comes with an update of the service.

use std::fmt;

use jiff::civil;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};

use crate::admin_log::daily::{Date, Day, Days};
use crate::moment::Timestamp;

/// A time zone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Zone(TimeZone);

/// A time of day, to the minute.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TimeOfDay {
    hour: i8,
    minute: i8,
}

/// The error for an unknown time zone.
const UNKNOWN: &str = "must be an IANA time zone name, such as Europe/Zurich";

impl Zone {
    /// The zone with this name.
    pub fn read(name: &str) -> Result<Self, &'static str> {
        let found = TimeZoneDatabase::bundled().get(name).map_err(|_| UNKNOWN)?;
        // The database has a zone named `Etc/Unknown`.
        if found.is_unknown() {
            return Err(UNKNOWN);
        }
        Ok(Self(found))
    }

    /// Its name in the database.
    pub fn name(&self) -> &str {
        self.0.iana_name().expect("it was found by its name")
    }

    /// The first instant after `after` at which it is this time of day. On a day without the time,
    /// that is the end of the gap; on a day that has it twice, the first of both. Nothing if the
    /// calendar ends before.
    pub fn next_at(&self, time: TimeOfDay, after: Timestamp) -> Option<Timestamp> {
        let now = jiff::Timestamp::from_millisecond(after.as_ms()).ok()?;
        // The gap of a day may end the day after, so that the day before counts, too.
        let mut date = self.0.to_datetime(now).date().yesterday().ok()?;
        loop {
            let at = self.instant(date, time)?;
            if at > after {
                return Some(at);
            }
            date = date.tomorrow().ok()?;
        }
    }

    /// The last days in the zone, including the day of `now`.
    pub fn last_days(&self, now: Timestamp, number: usize) -> Days {
        let now = jiff::Timestamp::from_millisecond(now.as_ms()).expect("the clock says a year");
        let mut date = self.0.to_datetime(now).date();
        let mut end = self.beginning(date.tomorrow().expect(YEARS));
        let mut days = Vec::with_capacity(number);
        while days.len() < number {
            let from = self.beginning(date);
            // A zone that moves across the date line may skip a whole day.
            if from < end {
                let date = date_of(date);
                days.push(Day { date, from, end });
                end = from;
            }
            date = date.yesterday().expect(YEARS);
        }
        days.reverse();
        Days::new(days).expect("each day ends where the next begins")
    }

    fn instant(&self, date: civil::Date, time: TimeOfDay) -> Option<Timestamp> {
        let local = date.at(time.hour, time.minute, 0, 0);
        let at = match self.0.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(local).ok()?,
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(local).ok()?,
            AmbiguousOffset::Gap { before, .. } => {
                // The clock that was not moved shows the time at or after the move.
                let after = local.checked_add(jiff::Span::new().seconds(1)).ok()?;
                let after = before.to_timestamp(after).ok()?;
                self.0.preceding(after).next()?.timestamp()
            }
        };
        Some(Timestamp::from_ms(at.as_millisecond()))
    }

    /// The first instant of a day; later than midnight if the zone skips midnight.
    fn beginning(&self, date: civil::Date) -> Timestamp {
        let midnight = date.to_zoned(self.0.clone()).expect(YEARS);
        Timestamp::from_ms(midnight.timestamp().as_millisecond())
    }
}

impl TimeOfDay {
    /// Parses `HH:MM`.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const INVALID: &str = "must be a time of day from 00:00 to 23:59";
        let &[h1, h2, b':', m1, m2] = text.as_bytes() else {
            return Err(INVALID);
        };
        let number = |tens: u8, ones: u8| {
            let digits = tens.is_ascii_digit() && ones.is_ascii_digit();
            let value = || ((tens - b'0') * 10 + ones - b'0').cast_signed();
            digits.then(value).ok_or(INVALID)
        };
        let (hour, minute) = (number(h1, h2)?, number(m1, m2)?);
        match (hour, minute) {
            (..24, ..60) => Ok(Self { hour, minute }),
            _ => Err(INVALID),
        }
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.hour, self.minute)
    }
}

/// The calendar reaches from -9999 to 9999.
const YEARS: &str = "the calendar goes on";

fn date_of(date: civil::Date) -> Date {
    Date {
        year: date.year(),
        month: date.month().unsigned_abs(),
        day: date.day().unsigned_abs(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUARTER_MS: i64 = 15 * 60_000;

    #[test]
    fn days_have_their_local_length_and_date() {
        // Clocks go forward at midnight in Havana, so that the day begins at one.
        check("UTC", "2026-11-21T19:00:00", "2026-11-15", &[96; 7]);
        let new_york = "America/New_York";
        let spring = [96, 96, 96, 96, 92, 96, 96];
        check(new_york, "2026-03-11T03:59:00", "2026-03-04", &spring);
        let autumn = [96, 96, 100, 96, 96, 96, 96];
        check(new_york, "2026-11-05T05:00:00", "2026-10-30", &autumn);
        let havana = [96, 96, 96, 96, 96, 96, 92];
        check(
            "America/Havana",
            "2026-03-08T05:00:00",
            "2026-03-02",
            &havana,
        );
        let half = [96, 96, 96, 96, 96, 98, 96];
        check(
            "Australia/Lord_Howe",
            "2026-04-05T23:00:00",
            "2026-03-31",
            &half,
        );
        check(
            "Asia/Kathmandu",
            "2026-11-21T18:14:59",
            "2026-11-15",
            &[96; 7],
        );
        check(
            "Asia/Kathmandu",
            "2026-11-21T18:15:00",
            "2026-11-16",
            &[96; 7],
        );
        check(
            "Pacific/Kiritimati",
            "2026-11-21T10:00:00",
            "2026-11-16",
            &[96; 7],
        );
    }

    #[test]
    fn a_skipped_day_is_left_out() {
        let days = days("Pacific/Apia", "2012-01-02T00:00:00");
        let dates: Vec<_> = days.iter().map(|day| day.date.to_string()).collect();
        let expected = [
            "2011-12-26",
            "2011-12-27",
            "2011-12-28",
            "2011-12-29",
            "2011-12-31",
            "2012-01-01",
            "2012-01-02",
        ];
        assert_eq!(dates, expected);
    }

    #[test]
    fn the_days_of_every_zone_are_whole_quarters_of_an_hour() {
        let database = TimeZoneDatabase::bundled();
        let mut zones = 0;
        for name in database.available() {
            let Ok(zone) = Zone::read(name.as_str()) else {
                continue;
            };
            zones += 1;
            for month in 0..13 {
                let now = instant("2026-11-21T12:34:56").plus_s(month * 28 * 86_400);
                let days = zone.last_days(now, 7);
                assert!(days.from() < now && now < days.end(), "{name}");
                for at in [days.from(), days.end()] {
                    assert_eq!(at.as_ms() % QUARTER_MS, 0, "{name}");
                }
            }
        }
        assert!(zones > 400, "{zones}");
    }

    #[test]
    fn a_time_of_day_comes_once_a_day_whatever_clocks_do() {
        let berlin = "Europe/Berlin";
        let cases = [
            (
                berlin,
                "02:30",
                "2026-01-01T00:00:00",
                "2026-01-01T01:30:00",
            ),
            (
                berlin,
                "02:30",
                "2026-01-01T01:30:00",
                "2026-01-02T01:30:00",
            ),
            // Clocks go from 02:00 to 03:00 at 01:00 UTC.
            (
                berlin,
                "01:59",
                "2026-03-28T12:00:00",
                "2026-03-29T00:59:00",
            ),
            (
                berlin,
                "02:00",
                "2026-03-28T12:00:00",
                "2026-03-29T01:00:00",
            ),
            (
                berlin,
                "02:30",
                "2026-03-28T12:00:00",
                "2026-03-29T01:00:00",
            ),
            (
                berlin,
                "02:59",
                "2026-03-28T12:00:00",
                "2026-03-29T01:00:00",
            ),
            (
                berlin,
                "03:00",
                "2026-03-28T12:00:00",
                "2026-03-29T01:00:00",
            ),
            (
                berlin,
                "02:30",
                "2026-03-29T01:00:00",
                "2026-03-30T00:30:00",
            ),
            // From 03:00 back to 02:00 at 01:00 UTC: 02:30 comes twice, and counts once.
            (
                berlin,
                "02:30",
                "2026-10-24T12:00:00",
                "2026-10-25T00:30:00",
            ),
            (
                berlin,
                "02:30",
                "2026-10-25T00:30:00",
                "2026-10-26T01:30:00",
            ),
            (
                berlin,
                "02:30",
                "2026-10-25T01:30:00",
                "2026-10-26T01:30:00",
            ),
            // Midnight does not exist in Havana that day.
            (
                "America/Havana",
                "00:00",
                "2026-03-07T12:00:00",
                "2026-03-08T05:00:00",
            ),
            // Clocks move by half an hour.
            (
                "Australia/Lord_Howe",
                "02:15",
                "2026-10-03T12:00:00",
                "2026-10-03T15:30:00",
            ),
            // A day that does not exist ends at its end, when the time of the next one comes.
            (
                "Pacific/Apia",
                "10:00",
                "2011-12-29T21:00:00",
                "2011-12-30T10:00:00",
            ),
            (
                "Pacific/Apia",
                "10:00",
                "2011-12-30T10:00:00",
                "2011-12-30T20:00:00",
            ),
            (
                "Pacific/Apia",
                "00:00",
                "2011-12-30T10:00:00",
                "2011-12-31T10:00:00",
            ),
            // Rules beyond those that are listed year by year.
            (
                berlin,
                "02:30",
                "2150-03-28T12:00:00",
                "2150-03-29T01:00:00",
            ),
            ("UTC", "00:00", "2026-12-31T23:59:59", "2027-01-01T00:00:00"),
        ];
        for (zone, time, after, next) in cases {
            let found = Zone::read(zone).unwrap();
            let found = found.next_at(TimeOfDay::parse(time).unwrap(), instant(after));
            assert_eq!(found, Some(instant(next)), "{zone} {time} {after}");
        }
    }

    #[test]
    fn a_time_of_day_never_goes_back_in_any_zone() {
        let time = TimeOfDay::parse("02:30").unwrap();
        for name in TimeZoneDatabase::bundled().available() {
            let Ok(zone) = Zone::read(name.as_str()) else {
                continue;
            };
            let mut last = instant("2026-01-01T00:00:00");
            let end = last.plus_s(366 * 86_400);
            while last < end {
                let next = zone.next_at(time, last).unwrap();
                let h = next.since_ms(last) / 3_600_000;
                assert!((0..=26).contains(&h) && next > last, "{name} {last:?}");
                last = next;
            }
        }
    }

    #[test]
    fn the_calendar_ends() {
        let time = TimeOfDay::parse("02:30").unwrap();
        let zone = Zone::read("Europe/Berlin").unwrap();
        for ms in [i64::MAX, i64::MIN, instant("9999-12-31T23:00:00").as_ms()] {
            assert_eq!(zone.next_at(time, Timestamp::from_ms(ms)), None);
        }
    }

    #[test]
    fn a_time_of_day_has_hours_and_minutes() {
        for text in ["00:00", "09:05", "23:59"] {
            assert_eq!(TimeOfDay::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "", "24:00", "00:60", "9:05", "09:5", "09:05:00", "0a:00", "-1:00", "09.05",
        ] {
            assert!(TimeOfDay::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_unknown_zone_is_refused() {
        for name in [
            "",
            "Mars/Olympus",
            "+01:00",
            "Etc/Unknown",
            "../etc/passwd",
            "Europe",
        ] {
            assert_eq!(Zone::read(name).err(), Some(UNKNOWN), "{name}");
        }
    }

    /// The days of a zone: the date of the first, and the length of each in quarters of an hour.
    fn check(zone: &str, now: &str, first: &str, quarters: &[i64]) {
        let days = days(zone, now);
        assert_eq!(days[0].date.to_string(), first, "{zone} {now}");
        let found: Vec<_> = days
            .iter()
            .map(|day| day.end.since_ms(day.from) / QUARTER_MS)
            .collect();
        assert_eq!(found, quarters, "{zone} {now}");
        let now = instant(now);
        assert!(days[6].from <= now && now < days[6].end, "{zone} {now:?}");
    }

    fn days(zone: &str, now: &str) -> Vec<Day> {
        let zone = Zone::read(zone).unwrap();
        zone.last_days(instant(now), 7).iter().collect()
    }

    fn instant(text: &str) -> Timestamp {
        Timestamp::parse_iso(text).unwrap()
    }
}
