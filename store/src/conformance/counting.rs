//! Do the counts of the log equal a recount after any sequence of changes?

use std::collections::BTreeSet;
use std::thread;

use engine::admin_log::daily::{Date, Day, Days, Statistics, StatisticsQuery};
use engine::admin_log::entry::{Category, Entry, Subject};
use engine::admin_log::window::TimeWindow;
use engine::change::Change;
use engine::ids::{CustomerId, EntryId};
use engine::moment::{Moment, Timestamp};
use engine::query::{LogFilter, PageRequest};

use super::model::Model;
use super::rng::Rng;
use super::samples::{acme, at, customer, device, entry};
use super::{TestBed, put, wait};
use crate::{Retention, Store};

const STEPS: u64 = 240;
const QUESTIONS: u64 = 4;
const MINUTE: i64 = 60_000;
const QUARTER: i64 = 15 * MINUTE;
const DAY: i64 = 86_400_000;
/// Several threads write entries, so they arrive slightly out of order.
const DISORDER: u64 = 90_000;

pub(super) fn agree_with_a_recount(ground: &TestBed<'_>) {
    let mut story = Scenario {
        rng: Rng::from_seed_asked_for(),
        model: Model::default(),
        now: at(0),
    };
    let mut store = ground.open();
    for step in 0..STEPS {
        story.take_step(&*store);
        for _ in 0..QUESTIONS {
            story.compare(&*store);
        }
        if step % 80 == 79 {
            drop(store);
            store = ground.open();
        }
    }
}

pub(super) fn count_devices_once_while_they_move(ground: &TestBed<'_>) {
    const DEVICES: u64 = 600;
    let store = ground.open();
    // The log gets an entry about one device after the other, a quarter of an hour later each time.
    let round = |round: u64| (round * DEVICES..(round + 1) * DEVICES).map(nth_entry);
    put(&*store, round(0).collect());
    let day = Day {
        date: Date {
            year: 2_023,
            month: 11,
            day: 14,
        },
        from: Timestamp::from_ms(at(0).as_ms().div_euclid(DAY) * DAY),
        end: at(10_000_000),
    };
    let wanted = StatisticsQuery {
        customer: acme(),
        days: Days::new(vec![day]).expect("a day"),
        category: None,
    };
    let all: Vec<_> = (1..6).flat_map(round).collect();
    thread::scope(|scope| {
        let writing = scope.spawn(|| all.chunks(20).for_each(|few| put(&*store, few.to_vec())));
        while !writing.is_finished() {
            let statistics = wait(store.log_statistics(wanted.clone())).expect("an answer");
            assert_eq!(statistics.devices, DEVICES);
        }
    });
    let statistics = wait(store.log_statistics(wanted)).expect("an answer");
    let amount: u64 = statistics.amounts.iter().map(|day| day.amount).sum();
    assert_eq!((statistics.devices, amount), (DEVICES, 6 * DEVICES));

    fn nth_entry(number: u64) -> Change {
        let quarter = i64::try_from(number).expect("small") * QUARTER;
        let at = at(0).plus_ms(quarter);
        let mut moment = Moment::new(at, u128::from(number));
        Change::AppendEntry(Box::new(Entry {
            id: EntryId::new(moment.uuid()),
            at,
            ..entry(&device(&acme(), number % DEVICES), 0, number)
        }))
    }
}

/// What happened so far, and what comes next.
struct Scenario {
    rng: Rng,
    model: Model,
    now: Timestamp,
}

impl Scenario {
    fn take_step(&mut self, store: &dyn Store) {
        let gaps = [1, 400, MINUTE, QUARTER, 5 * QUARTER, DAY / 2];
        let gap = self.rng.one_of(&gaps);
        self.now = self.now.plus_ms(gap);
        match self.rng.below(16) {
            0 => self.sweep(store),
            1 => self.remove_customer(store),
            // Sometimes some of what removed customers left.
            2 | 3 => {
                sweep(store, Timestamp::from_ms(0), 2);
            }
            _ => self.append(store),
        }
    }

    /// Appends several entries at once, some about the same device.
    fn append(&mut self, store: &dyn Store) {
        let number = self.rng.below(12);
        let new: Vec<Entry> = (0..number).map(|_| self.entry()).collect();
        for entry in &new {
            self.model.append(entry.clone());
        }
        let append = |entry| Change::AppendEntry(Box::new(entry));
        put(store, new.into_iter().map(append).collect());
    }

    fn entry(&mut self) -> Entry {
        let rng = &mut self.rng;
        let late = i64::try_from(rng.below(DISORDER)).expect("small");
        let at = self.now.plus_ms(-late);
        let mut moment = Moment::new(at, u128::from(rng.draw()));
        let customer = one_customer(rng);
        let device = device(&customer, rng.below(9));
        let number = rng.below(1_000);
        let entry = Entry {
            id: EntryId::new(moment.uuid()),
            at,
            subject: rng.one_of(&Subject::ALL),
            category: rng.one_of(&Category::ALL),
            ..entry(&device, 0, number)
        };
        match rng.below(8) {
            0 => Entry {
                about: None,
                ..entry
            },
            _ => entry,
        }
    }

    fn sweep(&mut self, store: &dyn Store) {
        let days = i64::try_from(self.rng.below(5)).expect("small");
        let before = self.now.plus_ms(-days * DAY);
        self.model.sweep(before);
        while sweep(store, before, 1_000) {}
    }

    /// Removes a customer, whose log is swept later, and creates it again under the same id.
    fn remove_customer(&mut self, store: &dyn Store) {
        let gone = one_customer(&mut self.rng);
        self.model.remove_log(&gone);
        put(store, vec![Change::RemoveCustomer(gone)]);
        self.now = self.now.plus_ms(DISORDER as i64);
    }

    fn compare(&mut self, store: &dyn Store) {
        let (filter, page) = (self.filter(), self.page());
        let listed = wait(store.entries(filter.clone(), page));
        let expected = self.model.entries(&filter, page);
        assert_eq!(listed, Ok(expected), "{filter:?} {page:?}");

        let wanted = self.statistics_wanted();
        let statistics = wait(store.log_statistics(wanted.clone()));
        assert_eq!(statistics, Ok(self.recount(&wanted)), "{wanted:?}");
    }

    fn filter(&mut self) -> LogFilter {
        let (one, other) = (self.instant(), self.instant());
        let rng = &mut self.rng;
        let customer = one_customer(rng);
        let of_device = rng.below(4) == 0;
        let device = device(&customer, rng.below(9));
        LogFilter {
            customer,
            window: TimeWindow {
                from: one.min(other),
                until: one.max(other),
            },
            iccid: of_device.then_some(device.iccid),
            category: rng.maybe(&Category::ALL),
            subject: rng.maybe(&Subject::ALL),
        }
    }

    fn page(&mut self) -> PageRequest {
        let mut below = |bound| u32::try_from(self.rng.below(bound)).expect("small");
        PageRequest {
            number: 1 + below(12),
            size: 1 + below(25),
        }
    }

    /// An instant within the scenario or outside it, often at the edges of what is counted.
    fn instant(&mut self) -> Timestamp {
        let span = self.now.since_ms(at(0)) + 2 * DAY;
        let offset = self
            .rng
            .below(u64::try_from(span).expect("after the beginning"));
        let instant = at(0).plus_ms(i64::try_from(offset).expect("small") - DAY);
        match self.rng.below(8) {
            0 => self.now,
            1..5 => {
                let unit = self.rng.one_of(&[5_000, MINUTE, QUARTER, DAY]);
                let beside = self.rng.one_of(&[-1, 0, 1]);
                let into = instant.as_ms().rem_euclid(unit);
                instant.plus_ms(beside - into)
            }
            _ => instant,
        }
    }

    /// Days that end today and begin at any quarter of an hour.
    fn statistics_wanted(&mut self) -> StatisticsQuery {
        let rng = &mut self.rng;
        let offset = i64::try_from(rng.below(96)).expect("small") * QUARTER;
        let today = self.now.as_ms().div_euclid(DAY) * DAY + offset;
        let mut end = Timestamp::from_ms(today + DAY);
        let mut days = Vec::new();
        for day in 1..=1 + rng.below(7) {
            let quarters = 92 + i64::try_from(rng.below(9)).expect("small");
            let from = end.plus_ms(-quarters * QUARTER);
            let date = Date {
                year: 2_023,
                month: 11,
                day: 9 - u8::try_from(day).expect("small"),
            };
            days.insert(0, Day { date, from, end });
            end = from;
        }
        StatisticsQuery {
            customer: one_customer(rng),
            days: Days::new(days).expect("one after the other"),
            category: rng.maybe(&Category::ALL),
        }
    }

    fn recount(&self, wanted: &StatisticsQuery) -> Statistics {
        let filter = LogFilter {
            customer: wanted.customer.clone(),
            window: TimeWindow {
                from: wanted.days.from(),
                until: Timestamp::from_ms(i64::MAX),
            },
            iccid: None,
            category: wanted.category,
            subject: None,
        };
        let everything = PageRequest {
            number: 1,
            size: u32::MAX,
        };
        let entries = self.model.entries(&filter, everything).items;
        let mut account = wanted.days.account();
        for entry in &entries {
            account.add(entry.at, 1);
        }
        let devices = entries.iter().filter_map(|entry| entry.about.as_ref());
        let devices: BTreeSet<_> = devices.map(|about| about.key).collect();
        Statistics {
            devices: u64::try_from(devices.len()).expect("a count"),
            amounts: account.close(),
        }
    }
}

fn one_customer(rng: &mut Rng) -> CustomerId {
    rng.one_of(&[acme(), customer("acme-2").id])
}

/// Removes some of what is too old and returns whether there is more.
fn sweep(store: &dyn Store, before: Timestamp, max: u32) -> bool {
    let due = Retention {
        entries_before: before,
        ..Retention::NOTHING
    };
    wait(store.sweep(due, max)).expect("an answer").more
}
