//! How busy was each customer within the last hour?
//!
//! Counted in memory once a group is durable, for each block of events and each batch with new
//! requests: an event costs no write and no look-up of its own. The counts begin with the process.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::change::{Batch, Change};
use engine::ids::CustomerId;
use engine::limits::ACTIVITY_MINUTES;
use engine::moment::Timestamp;
use engine::query::activity::ActivityMinute;

/// From so many customers on, those without anything in the last hour are forgotten.
const CUSTOMERS_MAX: usize = 10_000;

const MINUTE_MS: i64 = 60_000;

/// The counts of all customers.
pub(crate) struct Activity {
    now: fn() -> Timestamp,
    begun_at: Timestamp,
    hour_by_customer: Mutex<HashMap<CustomerId, LastHour>>,
}

/// The minutes in which something was counted, oldest first.
#[derive(Default)]
struct LastHour(VecDeque<ActivityMinute>);

impl Activity {
    /// Nothing, at a time of this clock.
    pub(crate) fn new(now: fn() -> Timestamp) -> Self {
        Self {
            now,
            begun_at: minute_of(now()),
            hour_by_customer: Mutex::default(),
        }
    }

    /// The time of its clock.
    pub(crate) fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// Counts durable events, each number with its customer.
    pub(crate) fn count_events<'a>(&self, events: impl Iterator<Item = (&'a CustomerId, u64)>) {
        let mut events = events.peekable();
        if events.peek().is_none() {
            return;
        }
        let (now, mut hours) = ((self.now)(), self.lock());
        for (customer, count) in events {
            of_customer(&mut hours, customer, now).minute(now).events += count;
        }
    }

    /// Counts requests of a customer that are durable.
    pub(crate) fn count_requests(&self, customer: &CustomerId, count: u64) {
        let (now, mut hours) = ((self.now)(), self.lock());
        of_customer(&mut hours, customer, now).minute(now).requests += count;
    }

    /// The minutes of the last hour, also those without anything, oldest first; those before the
    /// process began are not known.
    pub(crate) fn of(&self, customer: &CustomerId) -> Vec<ActivityMinute> {
        let (now, hours) = ((self.now)(), self.lock());
        let nothing = LastHour::default();
        hours
            .get(customer)
            .unwrap_or(&nothing)
            .minutes(self.begun_at, now)
    }

    /// The lock may be poisoned: counts are always consistent.
    fn lock(&self) -> MutexGuard<'_, HashMap<CustomerId, LastHour>> {
        let locked = self.hour_by_customer.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }
}

impl LastHour {
    /// The minute of a time. After a step back of the clock it is the last one.
    fn minute(&mut self, now: Timestamp) -> &mut ActivityMinute {
        let begun_at = minute_of(now);
        self.forget(now);
        if self.0.back().is_none_or(|last| last.begun_at < begun_at) {
            self.0.push_back(nothing_in(begun_at));
        }
        self.0.back_mut().expect("a minute is there")
    }

    /// The minutes up to a time, but none before the first one known.
    fn minutes(&self, first: Timestamp, now: Timestamp) -> Vec<ActivityMinute> {
        let last = minute_of(now);
        let ages = (0..i64::from(ACTIVITY_MINUTES)).rev();
        let all = ages.map(|age| last.plus_ms(-age * MINUTE_MS));
        let minute = |begun_at| {
            let counted = self.0.iter().find(|it| it.begun_at == begun_at);
            counted.copied().unwrap_or_else(|| nothing_in(begun_at))
        };
        all.filter(|begun_at| *begun_at >= first)
            .map(minute)
            .collect()
    }

    /// Forgets what is older than an hour.
    fn forget(&mut self, now: Timestamp) {
        let oldest = minute_of(now).plus_ms(-(i64::from(ACTIVITY_MINUTES) - 1) * MINUTE_MS);
        while self.0.front().is_some_and(|first| first.begun_at < oldest) {
            self.0.pop_front();
        }
    }
}

/// The requests that a batch creates, which are of one customer.
pub(crate) fn created_requests(batch: &Batch) -> Option<(CustomerId, u64)> {
    let created = batch.changes.iter().filter_map(|change| {
        let Change::PutAction { was: None, action } = change else {
            return None;
        };
        Some(&action.customer)
    });
    let mut created = created.peekable();
    let customer = (*created.peek()?).clone();
    Some((customer, created.count() as u64))
}

fn of_customer<'a>(
    hours: &'a mut HashMap<CustomerId, LastHour>,
    customer: &CustomerId,
    now: Timestamp,
) -> &'a mut LastHour {
    if hours.len() >= CUSTOMERS_MAX && !hours.contains_key(customer) {
        hours.retain(|_, hour| {
            hour.forget(now);
            !hour.0.is_empty()
        });
    }
    hours.entry(customer.clone()).or_default()
}

fn minute_of(time: Timestamp) -> Timestamp {
    Timestamp::from_ms(time.as_ms().div_euclid(MINUTE_MS) * MINUTE_MS)
}

const fn nothing_in(begun_at: Timestamp) -> ActivityMinute {
    ActivityMinute {
        begun_at,
        events: 0,
        requests: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_has_each_minute_since_the_process_began() {
        let mut hour = LastHour::default();
        hour.minute(at(0)).events += 2;
        hour.minute(at(59)).events += 1;
        hour.minute(at(120)).requests += 1;
        // The clock steps back.
        hour.minute(at(60)).requests += 1;
        assert_eq!(counts(&hour, 0, 130), [(3, 0), (0, 0), (0, 2)]);
        assert_eq!(counts(&hour, 120, 130), [(0, 2)]);
        let last = counts(&hour, 0, 3_600);
        assert_eq!((last.len(), last[0], last[1]), (60, (0, 0), (0, 2)));
    }

    #[test]
    fn older_minutes_and_silent_customers_are_forgotten() {
        let mut hours = HashMap::new();
        for number in 0..CUSTOMERS_MAX {
            let customer = CustomerId::parse(&format!("customer-{number}")).unwrap();
            of_customer(&mut hours, &customer, at(0))
                .minute(at(0))
                .events += 1;
        }
        let acme = CustomerId::parse("acme").unwrap();
        of_customer(&mut hours, &acme, at(3_599))
            .minute(at(3_599))
            .events += 1;
        assert_eq!(hours.len(), CUSTOMERS_MAX + 1);
        let other = CustomerId::parse("umbrella").unwrap();
        let hour = of_customer(&mut hours, &other, at(3_600));
        hour.minute(at(3_600)).events += 1;
        hour.minute(at(7_200)).events += 1;
        assert_eq!(hour.0.len(), 1);
        assert_eq!(hours.len(), 2);
    }

    fn counts(hour: &LastHour, first: i64, now: i64) -> Vec<(u64, u64)> {
        let minutes = hour.minutes(at(first), at(now));
        let counts = minutes.iter().map(|it| (it.events, it.requests));
        counts.collect()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_ms(second * 1_000)
    }
}
