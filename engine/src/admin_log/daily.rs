//! How much does the log say, day by day? (seed 2.3, 4.9)
//!
//! Which instants a local day begins and ends at is known outside; here the days are a list that
//! things are told to by the instant they happened at.

use std::fmt;

use crate::ids::CustomerId;
use crate::moment::Timestamp;

use super::entry::Category;

/// The days statistics are told of, today included.
pub const DAYS_TOLD: usize = 7;

/// A date of a calendar.
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

/// A day somewhere: 23 to 25 hours in most places, and not always from midnight to midnight.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Day {
    /// What it is called there.
    pub date: Date,
    /// Its first instant.
    pub from: Timestamp,
    /// The first instant behind it.
    pub end: Timestamp,
}

/// Days that follow each other.
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

    /// The first instant behind the last day.
    pub fn end(&self) -> Timestamp {
        self.0.last().map(|day| day.end).unwrap_or_default()
    }

    /// The days, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Day> {
        self.0.iter().copied()
    }

    /// An account of nothing yet.
    pub fn account(&self) -> DailyCounts<'_> {
        DailyCounts {
            days: &self.0,
            amounts: vec![0; self.0.len()],
        }
    }
}

/// How much happened on each day, while it is added up.
#[derive(Debug)]
pub struct DailyCounts<'a> {
    days: &'a [Day],
    amounts: Vec<u64>,
}

impl DailyCounts<'_> {
    /// Adds what happened at an instant; what lies outside of the days does not count.
    pub fn add(&mut self, at: Timestamp, amount: u64) {
        let place = self.days.partition_point(|day| day.end <= at);
        let began = self.days.get(place).is_some_and(|day| day.from <= at);
        if let Some(sum) = self.amounts.get_mut(place).filter(|_| began) {
            *sum = sum.saturating_add(amount);
        }
    }

    /// The days on which anything happened, oldest first.
    pub fn close(self) -> Vec<DayAmount> {
        let days = self.days.iter().map(|day| day.date);
        let amounts = days.zip(self.amounts);
        let amounts = amounts.filter(|(_, amount)| *amount > 0);
        amounts
            .map(|(date, amount)| DayAmount { date, amount })
            .collect()
    }
}

/// Which statistics of the log are wanted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StatisticsQuery {
    /// Of whose log.
    pub customer: CustomerId,
    /// Of which days. The last of them is today.
    pub days: Days,
    /// Only of entries of one category.
    pub category: Option<Category>,
}

/// What a log has of some days.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Statistics {
    /// How many devices entries since the first day are about.
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
    fn what_happened_is_told_of_the_day_it_happened_on() {
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
        let told: Vec<_> = amounts
            .iter()
            .map(|day| (day.date.to_string(), day.amount))
            .collect();
        let expected = [
            ("0987-03-08", 110),
            ("0987-03-09", 1_000),
            ("0987-03-10", 110_000),
        ];
        assert_eq!(told, expected.map(|(date, sum)| (date.to_owned(), sum)));
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
