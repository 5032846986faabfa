//! How many log entries does each day have? (seed 2.3, 4.9)
//!
//! The caller knows when a local day begins and ends. Here the days are a list, and an entry counts
//! for the day that its time lies in.

use std::fmt;

use crate::ids::CustomerId;
use crate::moment::Timestamp;

use super::entry::Category;

/// The number of days in the statistics, today included.
pub const DAYS_TOLD: usize = 7;

/// A calendar date.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Date {
    /// The year.
    pub year: i16,
    /// The month, from 1.
    pub month: u8,
    /// The day of the month, from 1.
    pub day: u8,
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day } = self;
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

/// A local day: 23 to 25 hours in most time zones, and not always from midnight to midnight.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Day {
    /// Its local date.
    pub date: Date,
    /// Its first instant.
    pub from: Timestamp,
    /// The first instant after it.
    pub end: Timestamp,
}

/// Consecutive days.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Days(Vec<Day>);

/// The days overlap or leave a gap, or there are none.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the days do not follow each other")]
pub struct NotConsecutive;

impl Days {
    /// The days, oldest first.
    pub fn new(days: Vec<Day>) -> Result<Self, NotConsecutive> {
        let lasts = days.iter().all(|day| day.from < day.end);
        let follows = days
            .windows(2)
            .all(|pair| matches!(pair, [one, next] if one.end == next.from));
        if days.is_empty() || !lasts || !follows {
            return Err(NotConsecutive);
        }
        Ok(Self(days))
    }

    /// The first instant of the first day.
    pub fn from(&self) -> Timestamp {
        self.0.first().map(|day| day.from).unwrap_or_default()
    }

    /// The first instant after the last day.
    pub fn end(&self) -> Timestamp {
        self.0.last().map(|day| day.end).unwrap_or_default()
    }

    /// The days, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Day> {
        self.0.iter().copied()
    }

    /// Counts of zero for each day.
    pub fn account(&self) -> DailyCounts<'_> {
        DailyCounts {
            days: &self.0,
            amounts: vec![0; self.0.len()],
        }
    }
}

/// The count of each day, while entries are added.
#[derive(Debug)]
pub struct DailyCounts<'a> {
    days: &'a [Day],
    amounts: Vec<u64>,
}

impl DailyCounts<'_> {
    /// Adds an amount at an instant; an instant outside the days does not count.
    pub fn add(&mut self, at: Timestamp, amount: u64) {
        let place = self.days.partition_point(|day| day.end <= at);
        let began = self.days.get(place).is_some_and(|day| day.from <= at);
        if let Some(sum) = self.amounts.get_mut(place).filter(|_| began) {
            *sum = sum.saturating_add(amount);
        }
    }

    /// The days with a count above zero, oldest first.
    pub fn close(self) -> Vec<DayAmount> {
        let days = self.days.iter().map(|day| day.date);
        let amounts = days.zip(self.amounts);
        let amounts = amounts.filter(|(_, amount)| *amount > 0);
        amounts
            .map(|(date, amount)| DayAmount { date, amount })
            .collect()
    }
}

/// A query for statistics of the log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StatisticsQuery {
    /// The customer whose log it is.
    pub customer: CustomerId,
    /// The days; the last of them is today.
    pub days: Days,
    /// Only of entries of one category.
    pub category: Option<Category>,
}

/// The statistics of a log over some days.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Statistics {
    /// How many devices have an entry since the first day.
    pub devices: u64,
    /// How many entries each day has, oldest first, without the days that have none.
    pub amounts: Vec<DayAmount>,
}

/// How many entries a day has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DayAmount {
    /// The day.
    pub date: Date,
    /// How many.
    pub amount: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn day(day: u8, hours: [i64; 2]) -> Day {
        let [from, end] = hours.map(|hour| Timestamp::from_ms(hour * HOUR));
        let date = Date {
            year: 987,
            month: 3,
            day,
        };
        Day { date, from, end }
    }

    /// A day of 23 hours between two usual ones.
    fn days() -> Days {
        Days::new(vec![day(8, [0, 24]), day(9, [24, 47]), day(10, [47, 71])]).unwrap()
    }

    #[test]
    fn an_entry_counts_for_the_day_of_its_time() {
        let days = days();
        let mut account = days.account();
        let times = [
            -1,
            0,
            23 * HOUR,
            47 * HOUR - 1,
            47 * HOUR,
            71 * HOUR - 1,
            71 * HOUR,
        ];
        for (at, amount) in times
            .into_iter()
            .zip([1, 10, 100, 1_000, 10_000, 100_000, 1_000_000])
        {
            account.add(Timestamp::from_ms(at), amount);
        }
        let amounts = account.close();
        let counts: Vec<_> = amounts
            .iter()
            .map(|day| (day.date.to_string(), day.amount))
            .collect();
        let expected = [
            ("0987-03-08", 110),
            ("0987-03-09", 1_000),
            ("0987-03-10", 110_000),
        ];
        assert_eq!(counts, expected.map(|(date, sum)| (date.to_owned(), sum)));
        assert_eq!(days.from(), Timestamp::from_ms(0));
        assert_eq!(days.end(), Timestamp::from_ms(71 * HOUR));
    }

    #[test]
    fn days_on_which_nothing_happened_are_left_out() {
        let days = days();
        assert_eq!(days.account().close(), []);
        let mut account = days.account();
        account.add(Timestamp::from_ms(30 * HOUR), 7);
        let only = DayAmount {
            date: day(9, [0, 0]).date,
            amount: 7,
        };
        assert_eq!(account.close(), [only]);
    }

    #[test]
    fn days_follow_each_other() {
        let gap = vec![day(8, [0, 24]), day(9, [25, 48])];
        let overlap = vec![day(8, [0, 24]), day(9, [23, 48])];
        let nothing = vec![day(8, [24, 24])];
        for days in [gap, overlap, nothing, vec![]] {
            assert_eq!(Days::new(days), Err(NotConsecutive));
        }
    }
}
