//! When does a schedule run, and what is saved with its run?

use crate::action::{Lwm2mRequest, Mode, NewAction, Operation, Request};
use crate::change::{Batch, Change, Expect};
use crate::ids::{CustomerId, TraceId};
use crate::job::runner::schedules::{PreparedRun, ScheduleEffect};
use crate::job::runner::{JobEffect, JobLimits, JobRunner, PartUnreadable, StoreRoom};
use crate::job::{Job, JobState};
use crate::moment::{Moment, Timestamp};
use crate::schedule::{
    NewSchedule, Recurrence, Rhythm, Schedule, ScheduleChange, ScheduleContents, ScheduleTarget,
    SkipReason,
};
use crate::supervision::Unserved;

const NOW: Timestamp = Timestamp::from_ms(1_700_000_000_000);

const PERIOD_S: u32 = 60;

/// Who replies go to.
type Caller = &'static str;

#[test]
fn a_due_time_is_saved_with_its_job_and_the_next_one() {
    let mut fixture = Fixture::with_schedule();
    assert_eq!(fixture.runner.next_timeout(), Some(after_s(60)));
    assert_eq!(fixture.timeout(), ["prepare due 60"]);
    assert_eq!(fixture.runner.next_timeout(), None, "one at a time");
    let job = fixture.job();
    let saving = fixture.prepared(Ok(PreparedRun::Job(job.clone())));
    assert_eq!(saving, ["commit schedule as it was; next 120; job"]);
    assert_eq!(
        fixture.saved(Ok(())),
        [format!("read part 0 of {}", job.id)]
    );
    assert_eq!(fixture.runner.next_timeout(), Some(after_s(120)));
    assert_eq!(fixture.runner.running(), 1);
}

#[test]
fn due_times_that_passed_are_run_once() {
    let mut fixture = Fixture::with_schedule();
    fixture.now = after_s(3_601);
    assert_eq!(fixture.timeout(), ["prepare due 60"]);
    let job = fixture.job();
    let saving = fixture.prepared(Ok(PreparedRun::Job(job)));
    assert_eq!(saving, ["commit schedule as it was; next 3660; job"]);
}

#[test]
fn a_due_time_waits_until_the_last_job_has_ended() {
    let mut fixture = Fixture::with_schedule();
    let job = fixture.started();
    fixture.now = after_s(500);
    assert_eq!(fixture.timeout(), NOTHING);
    assert_eq!(fixture.runner.next_timeout(), None);
    let (now, id) = (fixture.now, job.id);
    fixture.step(|it, out| it.cancel(now, id, "canceller", out));
    fixture.step(|it, out| it.handle_part(now, id, Ok(None), out));
    assert_eq!(fixture.timeout(), ["prepare due 120"]);
}

#[test]
fn a_due_time_waits_while_the_customer_has_the_most_running_jobs() {
    let mut fixture = Fixture::with_schedule();
    let others = [fixture.job(), fixture.job()];
    for job in &others {
        fixture.step(|it, out| it.create(job.clone(), None, "caller", out));
        fixture.step(|it, out| it.handle_receipt(NOW, job.id, Ok(()), out));
    }
    assert_eq!(fixture.timeout(), NOTHING);
    assert_eq!(fixture.runner.next_timeout(), None);
    let now = fixture.now;
    fixture.step(|it, out| it.handle_part(now, others[0].id, Ok(None), out));
    assert_eq!(fixture.timeout(), ["prepare due 60"]);
    // Meanwhile a call has created the last job allowed.
    let another = fixture.job();
    fixture.step(|it, out| it.create(another.clone(), None, "caller", out));
    let job = fixture.job();
    assert_eq!(fixture.prepared(Ok(PreparedRun::Job(job))), NOTHING);
    fixture.step(|it, out| it.handle_receipt(now, another.id, Err(Unserved::Busy), out));
    assert_eq!(fixture.timeout(), ["prepare due 60"]);
}

#[test]
fn a_job_that_is_being_saved_for_a_schedule_counts_as_running() {
    let mut fixture = Fixture::with_schedule();
    fixture.timeout();
    let job = fixture.job();
    fixture.prepared(Ok(PreparedRun::Job(job)));
    assert!(fixture.runner.check_room(&acme()).is_ok());
    let other = fixture.job();
    fixture.step(|it, out| it.create(other, None, "caller", out));
    assert!(fixture.runner.check_room(&acme()).is_err());
}

#[test]
fn a_due_time_without_a_job_is_logged_once_for_each_reason() {
    let mut fixture = Fixture::with_schedule();
    let mut run = |reason| {
        fixture.timeout();
        let saving = fixture.prepared(Ok(PreparedRun::Skipped(reason)));
        assert_eq!(fixture.saved(Ok(())), NOTHING);
        saving.concat()
    };
    assert!(run(SkipReason::NoDevice).ends_with("; next 120; entry"));
    assert!(run(SkipReason::NoDevice).ends_with("; next 180"));
    assert!(run(SkipReason::RequestsOpen).ends_with("; next 240; entry"));
    assert!(run(SkipReason::NoDevice).ends_with("; next 300; entry"));
}

#[test]
fn what_could_not_be_read_or_saved_is_run_again() {
    let mut fixture = Fixture::with_schedule();
    fixture.timeout();
    assert_eq!(fixture.prepared(Err(PartUnreadable)), NOTHING);
    assert_eq!(fixture.runner.next_timeout(), Some(after_s(61)));
    assert_eq!(fixture.timeout(), ["prepare due 60"]);
    let job = fixture.job();
    fixture.prepared(Ok(PreparedRun::Job(job)));
    assert_eq!(fixture.saved(Err(Unserved::Busy)), NOTHING);
    assert_eq!(fixture.runner.running(), 0);
    assert_eq!(fixture.timeout(), ["prepare due 60"]);
}

#[test]
fn while_the_store_is_full_nothing_is_due() {
    let mut fixture = Fixture::with_schedule();
    fixture.now = after_s(60);
    let now = fixture.now;
    let effects = fixture.step(|it, out| it.handle_timeout(now, StoreRoom::Full, out));
    assert_eq!(effects, NOTHING);
    assert_eq!(fixture.timeout(), ["prepare due 60"]);
}

#[test]
fn a_schedule_that_was_removed_with_its_customer_is_forgotten() {
    let mut fixture = Fixture::with_schedule();
    fixture.timeout();
    let job = fixture.job();
    fixture.prepared(Ok(PreparedRun::Job(job)));
    fixture.change(ScheduleChange::Pause);
    let gone = "answer caller: there is no such schedule";
    assert_eq!(fixture.saved(Err(Unserved::Unknown)), [gone]);
    assert_eq!(fixture.runner.running(), 0);
    assert_eq!(fixture.runner.next_timeout(), None);
}

#[test]
fn a_change_waits_until_the_run_is_saved() {
    let mut fixture = Fixture::with_schedule();
    fixture.timeout();
    assert_eq!(fixture.change(ScheduleChange::Pause), NOTHING);
    let job = fixture.job();
    fixture.prepared(Ok(PreparedRun::Job(job.clone())));
    let saved = fixture.saved(Ok(()));
    let pause = "commit schedule as it was; next none".to_owned();
    assert_eq!(saved, [pause, format!("read part 0 of {}", job.id)]);
    assert_eq!(fixture.saved(Ok(())), ["answer caller: next none"]);
    assert_eq!(fixture.runner.next_timeout(), None);
    fixture.now = after_s(150);
    let resumed = fixture.change(ScheduleChange::Resume);
    assert_eq!(resumed, ["commit schedule as it was; next 180"]);
    assert_eq!(fixture.saved(Ok(())), ["answer caller: next 180"]);
    assert_eq!(fixture.runner.next_timeout(), Some(after_s(180)));
}

#[test]
fn a_removed_schedule_is_never_due() {
    let mut fixture = Fixture::with_schedule();
    let removing = fixture.change(ScheduleChange::Remove);
    assert_eq!(removing, ["commit schedule as it was; removed"]);
    assert_eq!(fixture.saved(Ok(())), ["answer caller: next 60"]);
    assert_eq!(fixture.runner.next_timeout(), None);
    let unknown = fixture.change(ScheduleChange::Pause);
    assert_eq!(unknown, ["answer caller: there is no such schedule"]);
}

#[test]
fn a_change_that_is_not_saved_leaves_the_schedule_due() {
    let mut fixture = Fixture::with_schedule();
    fixture.change(ScheduleChange::Remove);
    let refused = fixture.saved(Err(Unserved::Busy));
    assert_eq!(refused, ["answer caller: the service is overloaded"]);
    assert_eq!(fixture.runner.next_timeout(), Some(after_s(60)));
}

#[test]
fn a_customer_has_a_bounded_number_of_schedules() {
    let mut fixture = Fixture::with_schedule();
    let create = |fixture: &mut Fixture| {
        let made = schedule(&mut fixture.m);
        fixture.schedule = made.clone();
        fixture.step(|it, out| it.create_schedule(made, contents(), None, "caller", out))
    };
    assert_eq!(create(&mut fixture), ["commit next 60; contents"]);
    let refused = create(&mut fixture).concat();
    assert!(refused.contains("at most 2 schedules"), "{refused}");
}

#[test]
fn the_schedules_of_a_removed_customer_are_forgotten() {
    let mut fixture = Fixture::with_schedule();
    fixture.timeout();
    fixture.change(ScheduleChange::Pause);
    let forgotten = fixture.step(|it, out| it.forget(&acme(), out));
    assert_eq!(forgotten, ["answer caller: there is no such schedule"]);
    let job = fixture.job();
    assert_eq!(fixture.prepared(Ok(PreparedRun::Job(job))), NOTHING);
    assert_eq!(fixture.runner.next_timeout(), None);
}

#[test]
fn a_runner_that_is_quiescent_runs_nothing() {
    let mut fixture = Fixture::with_schedule();
    fixture.timeout();
    fixture.runner.quiesce();
    let job = fixture.job();
    assert_eq!(fixture.prepared(Ok(PreparedRun::Job(job))), NOTHING);
    let late = after_s(500);
    let effects = fixture.step(|it, out| it.handle_timeout(late, StoreRoom::Open, out));
    assert_eq!(effects, NOTHING);
}

const NOTHING: [&str; 0] = [];

struct Fixture {
    runner: JobRunner<Caller>,
    m: Moment,
    now: Timestamp,
    schedule: Schedule,
}

impl Fixture {
    /// With a schedule that is due every minute.
    fn with_schedule() -> Self {
        let mut m = Moment::new(NOW, 7);
        let schedule = schedule(&mut m);
        let mut runner = JobRunner::new(JobLimits {
            running_max: 2,
            schedules_max: 2,
        });
        let mut out: Vec<JobEffect<Caller>> = Vec::new();
        runner.restore(Vec::new(), vec![schedule.clone()], &mut out);
        assert_eq!(out, []);
        Self {
            runner,
            m,
            now: NOW,
            schedule,
        }
    }

    fn job(&mut self) -> Job {
        Job {
            schedule: Some(self.schedule.id),
            ..Job::new(&mut self.m, acme(), 3)
        }
    }

    /// The first run was saved, and its job is being read.
    fn started(&mut self) -> Job {
        self.timeout();
        let job = self.job();
        self.prepared(Ok(PreparedRun::Job(job.clone())));
        self.saved(Ok(()));
        job
    }

    fn step(
        &mut self,
        input: impl FnOnce(&mut JobRunner<Caller>, &mut Vec<JobEffect<Caller>>),
    ) -> Vec<String> {
        let mut out = Vec::new();
        input(&mut self.runner, &mut out);
        out.iter().map(effect).collect()
    }

    /// The deadline comes, or has passed.
    fn timeout(&mut self) -> Vec<String> {
        self.now = self.now.max(self.runner.next_timeout().unwrap());
        let now = self.now;
        self.step(|it, out| it.handle_timeout(now, StoreRoom::Open, out))
    }

    fn prepared(&mut self, prepared: Result<PreparedRun, PartUnreadable>) -> Vec<String> {
        let (id, mut m) = (self.schedule.id, Moment::new(self.now, 9));
        self.step(|it, out| it.handle_prepared(&mut m, id, prepared, out))
    }

    fn saved(&mut self, receipt: Result<(), Unserved>) -> Vec<String> {
        let (id, now) = (self.schedule.id, self.now);
        self.step(|it, out| it.handle_schedule_receipt(now, id, receipt, out))
    }

    fn change(&mut self, change: ScheduleChange) -> Vec<String> {
        let (id, now) = (self.schedule.id, self.now);
        self.step(|it, out| it.change_schedule(now, id, change, "caller", out))
    }
}

fn effect(effect: &JobEffect<Caller>) -> String {
    match effect {
        JobEffect::Schedule(effect) => of_schedule(effect),
        JobEffect::Read { job, part } => format!("read part {part} of {job}"),
        JobEffect::Submit { .. } => "submit".to_owned(),
        JobEffect::Commit(..) => "commit job".to_owned(),
        JobEffect::Answer(caller, _) => format!("answer {caller}"),
        JobEffect::Count { .. } => "count".to_owned(),
    }
}

fn of_schedule(effect: &ScheduleEffect<Caller>) -> String {
    match effect {
        ScheduleEffect::Prepare(schedule) => format!("prepare due {}", s(schedule.next)),
        ScheduleEffect::Commit(_, batch) => format!("commit {}", committed(batch)),
        ScheduleEffect::Answer(caller, Ok(schedule)) => {
            format!("answer {caller}: next {}", s(schedule.next))
        }
        ScheduleEffect::Answer(caller, Err(refusal)) => format!("answer {caller}: {refusal}"),
    }
}

fn committed(batch: &Batch) -> String {
    let of_schedule = |expect: &&Expect| matches!(expect, Expect::Schedule(_));
    let expects = batch.expects.iter().filter(of_schedule);
    let expects = expects.map(|_| "schedule as it was".to_owned());
    let changes = batch.changes.iter().map(changed);
    expects.chain(changes).collect::<Vec<_>>().join("; ")
}

fn changed(change: &Change) -> String {
    if let Change::PutSchedule(schedule) = change {
        return format!("next {}", s(schedule.next));
    }
    if let Change::PutJob(job) = change {
        assert_eq!(job.state, JobState::Running);
        return "job".to_owned();
    }
    if let Change::AppendEntry(entry) = change {
        assert_eq!(&*entry.message, "Scheduler[RunSkipped]");
        return "entry".to_owned();
    }
    if let Change::RemoveSchedule { .. } = change {
        return "removed".to_owned();
    }
    let Change::PutScheduleContents { .. } = change else {
        panic!("no change of a schedule: {change:?}");
    };
    "contents".to_owned()
}

/// The seconds since the beginning.
fn s(at: Option<Timestamp>) -> String {
    at.map_or("none".to_owned(), |at| {
        (at.since_ms(NOW) / 1_000).to_string()
    })
}

fn after_s(s: i64) -> Timestamp {
    NOW.plus_s(s)
}

fn schedule(m: &mut Moment) -> Schedule {
    let new = NewSchedule {
        name: Some("Night".into()),
        recurrence: Recurrence {
            rhythm: Rhythm::Every { period_s: PERIOD_S },
            start: NOW,
            end: None,
        },
    };
    Schedule::new(m, acme(), new).unwrap()
}

fn contents() -> ScheduleContents {
    let read = Lwm2mRequest::parse(Operation::Read, "/3/0/9", None).unwrap();
    ScheduleContents {
        request: NewAction {
            request: Request::Lwm2m(read),
            mode: Mode::SendNow,
            attempts_permitted: 1,
            expires_in_s: None,
            not_before: None,
            wake_up: None,
            trace: TraceId::from_bytes([9; 16]),
            idempotent_call: None,
        },
        target: ScheduleTarget::Named([].into()),
    }
}

fn acme() -> CustomerId {
    CustomerId::parse("acme").unwrap()
}
