//! When do the days of a time zone begin and end? The only file that imports jiff.
//!
//! The zones of the IANA time zone database are compiled in, so that every machine gives the same
//! answer; a change of a zone's rules comes with an update of the service.

use engine::admin_log::daily::{Date, Day, Days};
use engine::moment::Timestamp;
use jiff::civil;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// A time zone.
#[derive(Clone, Debug)]
pub(super) struct Zone(TimeZone);

/// The error for an unknown time zone.
const UNKNOWN: &str = "must be an IANA time zone name, such as Europe/Zurich";

impl Zone {
    /// The zone with this name.
    pub(super) fn read(name: &str) -> Result<Self, &'static str> {
        let found = TimeZoneDatabase::bundled().get(name).map_err(|_| UNKNOWN)?;
        // The database has a zone named `Etc/Unknown`.
        if found.is_unknown() {
            return Err(UNKNOWN);
        }
        Ok(Self(found))
    }

    /// The last days in the zone, including the day of `now`.
    pub(super) fn last_days(&self, now: Timestamp, number: usize) -> Days {
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

    /// The first instant of a day; later than midnight if the zone skips midnight.
    fn beginning(&self, date: civil::Date) -> Timestamp {
        let midnight = date.to_zoned(self.0.clone()).expect(YEARS);
        Timestamp::from_ms(midnight.timestamp().as_millisecond())
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
