//! What is a schedule? A request for many devices, and the times at which a job is to create it.
//!
//! ```text
//!            PATCH                      its last due time was run
//!  PAUSED <---------> ACTIVE ---------------------------------------> ENDED
//! ```
//!
//! Its due times are a grid that never moves: every so many seconds from its start on, or a time of
//! day of a zone. A due time creates one job or, for a reason, none. However many due times passed
//! meanwhile, the first of them is run once, and the next one is the first after that.

use std::fmt;

use crate::action::NewAction;
use crate::ids::{ActionId, CustomerId, DeviceId, JobId, ScheduleId};
use crate::moment::{Moment, Timestamp};
use crate::query::devices::DeviceFilter;
use crate::zone::{TimeOfDay, Zone};

/// A schedule, without what its jobs request of which devices.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Schedule {
    /// Its id; ids sort by creation time.
    pub id: ScheduleId,
    /// The customer that owns it.
    pub customer: CustomerId,
    /// Its display name.
    pub name: Option<Box<str>>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Its due times.
    pub recurrence: Recurrence,
    /// Whether it is paused: then no time is due.
    pub is_paused: bool,
    /// The due time that is run next, or as soon as possible if it has passed.
    pub next: Option<Timestamp>,
    /// What became of the due time before.
    pub last: Option<ScheduledRun>,
    /// The last job that it created; its requests may still be open.
    pub last_job: Option<JobId>,
}

/// What the jobs of a schedule request of which devices.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleContents {
    /// What is requested.
    pub request: NewAction,
    /// Of which devices.
    pub target: ScheduleTarget,
}

/// The devices of a schedule.
#[derive(Clone, Debug, PartialEq)]
pub enum ScheduleTarget {
    /// These.
    Named(Box<[DeviceId]>),
    /// Those that pass a filter at the time.
    Selected(Box<DeviceFilter>),
}

/// The due times of a schedule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Recurrence {
    /// How often.
    pub rhythm: Rhythm,
    /// No due time is before.
    pub start: Timestamp,
    /// No due time is after.
    pub end: Option<Timestamp>,
}

/// How often a schedule is due.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Rhythm {
    /// At the start, and every so many seconds after it.
    Every {
        /// The seconds between two due times.
        period_s: u32,
    },
    /// Once a day.
    Daily {
        /// The time of day.
        at: TimeOfDay,
        /// The zone whose time it is.
        zone: Zone,
    },
}

/// What became of a due time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ScheduledRun {
    /// The due time; of several that passed, the first.
    pub due: Timestamp,
    /// When it was run.
    pub at: Timestamp,
    /// What came of it.
    pub outcome: RunOutcome,
}

/// What came of a due time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RunOutcome {
    /// A job.
    Created(JobId),
    /// No job, for a reason.
    Skipped(SkipReason),
}

/// Why a due time created no job.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum SkipReason {
    /// No device passes the filter.
    NoDevice,
    /// More devices pass the filter than a job can have.
    TooManyDevices,
    /// More identifiers have the prefix in the filter than a search reads.
    FilterTooBroad,
    /// Each device has a request of an earlier run that is not final.
    RequestsOpen,
}

/// The state of a schedule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ScheduleState {
    /// It has a next due time.
    Active,
    /// Its customer paused it.
    Paused,
    /// It has no due time left.
    Ended,
}

/// What a caller changes of a schedule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ScheduleChange {
    /// No time is due until it is resumed.
    Pause,
    /// Its due times after now count again.
    Resume,
    /// It is removed. Its jobs stay.
    Remove,
}

/// A request of an earlier run that is not final.
pub type OpenRequest = (DeviceId, ActionId);

impl Schedule {
    /// A new schedule; nothing if it has no due time from now on.
    pub fn new(m: &mut Moment, customer: CustomerId, new: NewSchedule) -> Option<Self> {
        let next = new.recurrence.next_after(m.now())?;
        Some(Self {
            id: ScheduleId::new(m.uuid()),
            customer,
            name: new.name,
            created_at: m.now(),
            recurrence: new.recurrence,
            is_paused: false,
            next: Some(next),
            last: None,
            last_job: None,
        })
    }

    /// Its state.
    pub fn state(&self) -> ScheduleState {
        match (self.is_paused, self.next) {
            (true, _) => ScheduleState::Paused,
            (false, Some(_)) => ScheduleState::Active,
            (false, None) => ScheduleState::Ended,
        }
    }

    /// The schedule after its due time was run at `now`. Due times that passed meanwhile are over
    /// with it.
    pub fn after_run(&self, due: Timestamp, now: Timestamp, outcome: RunOutcome) -> Self {
        let last_job = match outcome {
            RunOutcome::Created(job) => Some(job),
            RunOutcome::Skipped(_) => self.last_job,
        };
        Self {
            next: self.recurrence.next_after(now.max(due)),
            last: Some(ScheduledRun {
                due,
                at: now,
                outcome,
            }),
            last_job,
            ..self.clone()
        }
    }

    /// The schedule once it is paused.
    pub fn paused(&self) -> Self {
        Self {
            is_paused: true,
            next: None,
            ..self.clone()
        }
    }

    /// The schedule once it is no longer paused. Due times of the pause are not run.
    pub fn resumed(&self, now: Timestamp) -> Self {
        let next = match self.is_paused {
            true => self.recurrence.next_after(now),
            false => self.next,
        };
        Self {
            is_paused: false,
            next,
            ..self.clone()
        }
    }
}

/// What a caller says of a new schedule.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    /// Its display name.
    pub name: Option<Box<str>>,
    /// Its due times.
    pub recurrence: Recurrence,
}

impl Recurrence {
    /// The first due time after this instant.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let after = after.max(self.start.plus_ms(-1));
        let next = match &self.rhythm {
            Rhythm::Every { period_s } => {
                let period_ms = i64::from(*period_s) * 1_000;
                let passed = after.since_ms(self.start).div_euclid(period_ms);
                self.start.plus_ms((passed + 1) * period_ms)
            }
            Rhythm::Daily { at, zone } => zone.next_at(*at, after)?,
        };
        let is_over = self.end.is_some_and(|end| next > end);
        (!is_over).then_some(next)
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoDevice => "no device matches the filter",
            Self::TooManyDevices => "the filter matches more devices than a job can have",
            Self::FilterTooBroad => "the prefix in the filter matches too many identifiers",
            Self::RequestsOpen => "every device has a request of an earlier run that is not final",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_of_a_period_is_anchored_at_its_start() {
        let every = |start, end: Option<&str>| Recurrence {
            rhythm: Rhythm::Every { period_s: 90 },
            start: instant(start),
            end: end.map(instant),
        };
        let noon = "2026-11-24T12:00:00";
        let cases = [
            // Before the start, at it, and on the grid.
            (noon, None, "2026-11-24T11:00:00", Some(noon)),
            (noon, None, "2026-11-24T11:59:59.999", Some(noon)),
            (noon, None, noon, Some("2026-11-24T12:01:30")),
            (
                noon,
                None,
                "2026-11-24T12:01:29.999",
                Some("2026-11-24T12:01:30"),
            ),
            (
                noon,
                None,
                "2026-11-24T12:01:30",
                Some("2026-11-24T12:03:00"),
            ),
            // However many passed, the next one is on the grid.
            (
                noon,
                None,
                "2026-11-25T12:00:01",
                Some("2026-11-25T12:01:30"),
            ),
            (
                "1970-01-01T00:00:01",
                None,
                "1970-01-01T00:00:00",
                Some("1970-01-01T00:00:01"),
            ),
            (
                "1960-01-01T00:00:00",
                None,
                "1970-01-01T00:00:01",
                Some("1970-01-01T00:01:30"),
            ),
            // The end counts.
            (
                noon,
                Some("2026-11-24T12:01:30"),
                noon,
                Some("2026-11-24T12:01:30"),
            ),
            (noon, Some("2026-11-24T12:01:29"), noon, None),
            (noon, Some(noon), "2026-11-24T11:00:00", Some(noon)),
        ];
        for (start, end, after, next) in cases {
            let found = every(start, end).next_after(instant(after));
            assert_eq!(found, next.map(instant), "{start} {end:?} {after}");
        }
    }

    #[test]
    fn a_time_of_day_counts_from_the_start_to_the_end() {
        let daily = |start, end: Option<&str>| Recurrence {
            rhythm: Rhythm::Daily {
                at: TimeOfDay::parse("06:30").unwrap(),
                zone: Zone::read("Europe/Berlin").unwrap(),
            },
            start: instant(start),
            end: end.map(instant),
        };
        let long_ago = "2000-01-01T00:00:00";
        let cases = [
            (
                long_ago,
                None,
                "2026-11-24T12:00:00",
                Some("2026-11-25T05:30:00"),
            ),
            (
                "2026-12-01T05:30:00",
                None,
                "2026-11-24T12:00:00",
                Some("2026-12-01T05:30:00"),
            ),
            (
                "2026-12-01T05:30:01",
                None,
                "2026-11-24T12:00:00",
                Some("2026-12-02T05:30:00"),
            ),
            (
                long_ago,
                Some("2026-11-25T05:30:00"),
                "2026-11-24T12:00:00",
                Some("2026-11-25T05:30:00"),
            ),
            (
                long_ago,
                Some("2026-11-25T05:29:59"),
                "2026-11-24T12:00:00",
                None,
            ),
            ("9999-12-31T23:59:59", None, "2026-11-24T12:00:00", None),
        ];
        for (start, end, after, next) in cases {
            let found = daily(start, end).next_after(instant(after));
            assert_eq!(found, next.map(instant), "{start} {end:?} {after}");
        }
    }

    #[test]
    fn due_times_that_passed_are_over_with_one_run() {
        let schedule = schedule();
        let due = schedule.next.unwrap();
        assert_eq!(due, instant("2026-11-24T12:01:30"));
        let late = due.plus_s(1_000);
        let skipped = RunOutcome::Skipped(SkipReason::NoDevice);
        let after = schedule.after_run(due, late, skipped);
        assert_eq!(after.next, Some(instant("2026-11-24T12:19:30")));
        let run = ScheduledRun {
            due,
            at: late,
            outcome: skipped,
        };
        assert_eq!((after.last, after.last_job), (Some(run), None));
        let job = JobId::from_bytes([7; 16]);
        let created = after.after_run(due, due, RunOutcome::Created(job));
        assert_eq!(created.last_job, Some(job));
        let skipped = created.after_run(due, due, skipped);
        assert_eq!(skipped.last_job, Some(job), "its requests may be open");
    }

    #[test]
    fn a_due_time_is_not_run_again_when_the_clock_was_set_back() {
        let schedule = schedule();
        let due = schedule.next.unwrap();
        let created = RunOutcome::Created(JobId::from_bytes([7; 16]));
        let after = schedule.after_run(due, due.plus_s(-3_600), created);
        assert_eq!(after.next, Some(due.plus_s(90)));
    }

    #[test]
    fn due_times_of_a_pause_are_not_run() {
        let schedule = schedule();
        assert_eq!(schedule.state(), ScheduleState::Active);
        let paused = schedule.paused();
        assert_eq!((paused.state(), paused.next), (ScheduleState::Paused, None));
        let resumed = paused.resumed(instant("2026-11-24T12:10:00"));
        assert_eq!(resumed.next, Some(instant("2026-11-24T12:10:30")));
        let again = resumed.resumed(instant("2026-11-24T12:20:00"));
        assert_eq!(again, resumed, "it was not paused");
        let mut ending = paused;
        ending.recurrence.end = Some(instant("2026-11-24T12:05:00"));
        let ended = ending.resumed(instant("2026-11-24T12:10:00"));
        assert_eq!((ended.state(), ended.next), (ScheduleState::Ended, None));
    }

    #[test]
    fn a_schedule_without_a_due_time_is_none() {
        let over = NewSchedule {
            name: None,
            recurrence: Recurrence {
                rhythm: Rhythm::Every { period_s: 90 },
                start: instant("2026-11-24T12:00:00"),
                end: Some(instant("2026-11-24T12:00:00")),
            },
        };
        assert_eq!(Schedule::new(&mut noon(), acme(), over), None);
    }

    fn schedule() -> Schedule {
        let new = NewSchedule {
            name: None,
            recurrence: Recurrence {
                rhythm: Rhythm::Every { period_s: 90 },
                start: noon().now(),
                end: None,
            },
        };
        Schedule::new(&mut noon(), acme(), new).unwrap()
    }

    fn noon() -> Moment {
        Moment::new(instant("2026-11-24T12:00:00"), 7)
    }

    fn acme() -> CustomerId {
        CustomerId::parse("acme").unwrap()
    }

    fn instant(text: &str) -> Timestamp {
        Timestamp::parse_iso(text).unwrap()
    }
}
