//! Does a job ask each device at most once and end, and does each due time of a schedule create one
//! job at most and run, whatever fails and crashes meanwhile?
//!
//! A seeded world performs the effects of the runner in any order: a store that may not save, and
//! devices that may not answer although they have created the request. The service crashes, and the
//! runner alone crashes while its commands are still under way. It is restored after a pause in
//! which they end; where the pause is too short, a device is still asked at most once, but its
//! outcome may be wrong.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};

use engine::action::{Lwm2mRequest, Mode, NewAction, Operation, Request};
use engine::change::{Batch, Change, Expect};
use engine::device::refusal::SubmitRefusal;
use engine::directory::job::contents_of;
use engine::directory::schedule::run_of;
use engine::idempotency::IdempotencyKey;
use engine::ids::{ActionId, CustomerId, DeviceId, DeviceKey, JobId, ScheduleId, TraceId};
use engine::job::runner::schedules::{PreparedRun, ScheduleEffect};
use engine::job::runner::{JobEffect, JobLimits, JobRunner, PartUnreadable, StoreRoom};
use engine::job::{Job, JobDevice, JobOutcome, JobState, RestoredPart};
use engine::limits::{JOB_COMMANDS_MAX, JOBS_LOADED_MAX};
use engine::moment::{Moment, Timestamp};
use engine::schedule::{
    NewSchedule, Recurrence, Rhythm, RunOutcome, Schedule, ScheduleChange, ScheduleContents,
    ScheduleState, ScheduleTarget, ScheduledRun, SkipReason,
};
use engine::supervision::Unserved;

const SEEDS: u128 = 300;

const LIMITS: JobLimits = JobLimits {
    running_max: 4,
    schedules_max: 3,
};

/// Steps of a world with faults; afterwards nothing fails any more.
const STEPS: u32 = 3_000;

#[test]
fn a_job_asks_each_device_at_most_once_and_ends() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.take_step();
        }
        world.come_to_rest();
        world.assert_ended();
    }
}

#[test]
fn a_due_time_creates_at_most_one_job_and_a_missed_one_runs_once() {
    let mut runs = BTreeMap::new();
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.take_step();
        }
        world.come_to_rest();
        world.assert_each_due_time_ran_once();
        for run in &world.durable.runs {
            let kind = match run.1.outcome {
                RunOutcome::Created(_) => "job",
                RunOutcome::Skipped(_) => "none",
            };
            *runs.entry(kind).or_insert(0) += 1;
        }
    }
    assert!(runs["job"] > 1_000 && runs["none"] > 100, "{runs:?}");
}

/// A caller by number.
type Caller = u32;

/// Something under way.
enum UnderWay {
    Effect(JobEffect<Caller>),
    /// A submission whose runner has crashed.
    Orphan(JobEffect<Caller>),
}

#[derive(Default)]
struct Durable {
    jobs: BTreeMap<JobId, Job>,
    requests: BTreeMap<JobId, NewAction>,
    parts: BTreeMap<(JobId, u32), Vec<JobDevice>>,
    /// The requests created under a key, each with its job.
    created: Vec<(IdempotencyKey, DeviceKey, ActionId, JobId)>,
    schedules: BTreeMap<ScheduleId, Schedule>,
    /// Every run that was saved, in this order.
    runs: Vec<(Schedule, ScheduledRun)>,
}

struct World {
    seed: u128,
    m: Moment,
    now: Timestamp,
    runner: JobRunner<Caller>,
    under_way: Vec<UnderWay>,
    durable: Durable,
    /// Jobs whose caller was told that they are cancelled, with what they had created then.
    cancelled: BTreeMap<JobId, usize>,
    /// The job each cancelling caller means.
    cancels: BTreeMap<Caller, JobId>,
    calls: Caller,
    is_faulty: bool,
}

impl World {
    fn new(seed: u128) -> Self {
        let now = Timestamp::from_ms(1_700_000_000_000);
        Self {
            seed,
            m: Moment::new(now, seed + 1),
            now,
            runner: JobRunner::new(LIMITS),
            under_way: Vec::new(),
            durable: Durable::default(),
            cancelled: BTreeMap::new(),
            cancels: BTreeMap::new(),
            calls: 0,
            is_faulty: true,
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.m.next_u32()).unwrap() % bound
    }

    fn take_step(&mut self) {
        match self.below(1_000) {
            0..10 => self.create(),
            10..13 => self.cancel(),
            13..15 => self.crash(),
            15..17 => self.crash_runner(),
            17..19 => self.create_schedule(),
            19..21 => self.change_schedule(),
            21..60 => self.pass_time(),
            _ => self.perform_any(),
        }
        self.assert_bounds();
    }

    fn create(&mut self) {
        let customer = CustomerId::parse(["acme", "umbrella"][self.below(2)]).unwrap();
        let count = [0, 1, 100, 128, 129, 300][self.below(6)];
        let job = Job::new(&mut self.m, customer, count);
        let id = |number| DeviceId::parse(&format!("d{number}")).unwrap();
        let devices = (0..count).map(|number| JobDevice::new(id(number)));
        for batch in contents_of(job.id, request(), devices.collect()) {
            assert!(self.commit(batch));
        }
        self.calls += 1;
        let caller = self.calls;
        self.input(|runner, _, out| runner.create(job, None, caller, out));
    }

    fn cancel(&mut self) {
        let running = self.durable.jobs.values();
        let running: Vec<JobId> = running
            .filter(|job| job.state == JobState::Running)
            .map(|job| job.id)
            .collect();
        if running.is_empty() {
            return;
        }
        let id = running[self.below(running.len())];
        self.calls += 1;
        let caller = self.calls;
        self.cancels.insert(caller, id);
        self.input(|runner, now, out| runner.cancel(now, id, caller, out));
    }

    fn create_schedule(&mut self) {
        let customer = CustomerId::parse(["acme", "umbrella"][self.below(2)]).unwrap();
        let period_s = [1, 60, 600][self.below(3)];
        let start = self.now.plus_s(self.below(900) as i64 - 300);
        let new = NewSchedule {
            name: None,
            recurrence: Recurrence {
                rhythm: Rhythm::Every { period_s },
                start,
                // It ends, so that the world comes to rest.
                end: Some(self.now.plus_s(i64::from(period_s) * 20)),
            },
        };
        let mut m = Moment::new(self.now, self.m.next_u64().into());
        let Some(schedule) = Schedule::new(&mut m, customer, new) else {
            return;
        };
        self.calls += 1;
        let caller = self.calls;
        self.input(|runner, _, out| {
            runner.create_schedule(schedule, contents(), None, caller, out);
        });
    }

    fn change_schedule(&mut self) {
        let schedules: Vec<ScheduleId> = self.durable.schedules.keys().copied().collect();
        if schedules.is_empty() {
            return;
        }
        let id = schedules[self.below(schedules.len())];
        let change = match self.below(5) {
            0 => ScheduleChange::Remove,
            1..3 => ScheduleChange::Pause,
            _ => ScheduleChange::Resume,
        };
        self.calls += 1;
        let caller = self.calls;
        self.input(|runner, now, out| runner.change_schedule(now, id, change, caller, out));
    }

    /// The service dies: of what is under way, anything may have taken effect.
    fn crash(&mut self) {
        for under_way in std::mem::take(&mut self.under_way) {
            if self.below(2) == 0 {
                let (UnderWay::Effect(effect) | UnderWay::Orphan(effect)) = under_way;
                self.take_effect(&effect);
            }
        }
        self.restore();
    }

    /// The runner dies: the devices that it asked are asked all the same, in some worlds even after
    /// it is restored.
    fn crash_runner(&mut self) {
        for under_way in std::mem::take(&mut self.under_way) {
            match under_way {
                UnderWay::Effect(effect @ JobEffect::Submit { .. }) | UnderWay::Orphan(effect) => {
                    match self.is_pause_too_short() {
                        true => self.under_way.push(UnderWay::Orphan(effect)),
                        false => drop(self.submit(&effect)),
                    }
                }
                UnderWay::Effect(effect) => {
                    if self.below(2) == 0 {
                        self.take_effect(&effect);
                    }
                }
            }
        }
        self.restore();
    }

    fn is_pause_too_short(&self) -> bool {
        self.seed % 4 == 3
    }

    fn restore(&mut self) {
        self.runner = JobRunner::new(LIMITS);
        let running = self.durable.jobs.values().cloned();
        let running = running
            .filter(|job| job.state == JobState::Running)
            .collect();
        let schedules = self.durable.schedules.values().cloned().collect();
        self.input(|runner, _, out| runner.restore(running, schedules, out));
    }

    fn pass_time(&mut self) {
        let Some(at) = self.runner.next_timeout() else {
            return;
        };
        self.now = self.now.max(at);
        let room = match self.is_faulty && self.below(3) == 0 {
            true => StoreRoom::Full,
            false => StoreRoom::Open,
        };
        self.input(|runner, now, out| runner.handle_timeout(now, room, out));
    }

    fn perform_any(&mut self) {
        if self.under_way.is_empty() {
            return;
        }
        let place = self.below(self.under_way.len());
        match self.under_way.swap_remove(place) {
            UnderWay::Effect(effect) => self.perform(effect),
            UnderWay::Orphan(effect) => drop(self.submit(&effect)),
        }
    }

    fn perform(&mut self, effect: JobEffect<Caller>) {
        match effect {
            JobEffect::Read { job, part } => {
                let read = match self.fails() {
                    true => Err(PartUnreadable),
                    false => Ok(self.durable.part(job, part)),
                };
                self.input(|runner, now, out| runner.handle_part(now, job, read, out));
            }
            JobEffect::Submit { job, place, .. } => {
                let answer = self.submit(&effect);
                self.input(|runner, now, out| {
                    runner.handle_answer(now, (job, place), answer, out);
                });
            }
            JobEffect::Commit(job, batch) => {
                let receipt = match self.fails() {
                    true => Err(Unserved::Busy),
                    false if self.commit(batch) => Ok(()),
                    false => Err(Unserved::Unknown),
                };
                self.input(|runner, now, out| runner.handle_receipt(now, job, receipt, out));
            }
            JobEffect::Answer(caller, answer) => {
                if let (Some(id), Ok(job)) = (self.cancels.remove(&caller), answer) {
                    assert_eq!(job.state, JobState::Cancelled);
                    assert_eq!(self.durable.jobs[&id], job, "saved before it is answered");
                    self.cancelled.insert(id, self.durable.created_by(id));
                }
            }
            JobEffect::Count { .. } => {}
            JobEffect::Schedule(effect) => self.perform_for_schedule(effect),
        }
    }

    fn perform_for_schedule(&mut self, effect: ScheduleEffect<Caller>) {
        match effect {
            ScheduleEffect::Prepare(schedule) => {
                let prepared = match self.fails() {
                    true => Err(PartUnreadable),
                    false => Ok(self.prepare(&schedule)),
                };
                let mut m = Moment::new(self.now, self.m.next_u64().into());
                self.input(|runner, _, out| {
                    runner.handle_prepared(&mut m, schedule.id, prepared, out);
                });
            }
            ScheduleEffect::Commit(id, batch) => {
                let receipt = match self.fails() {
                    true => Err([Unserved::Busy, Unserved::Failed][self.below(2)]),
                    false if self.commit(batch) => Ok(()),
                    false => Err(Unserved::Unknown),
                };
                self.input(|runner, now, out| {
                    runner.handle_schedule_receipt(now, id, receipt, out);
                });
            }
            ScheduleEffect::Answer(..) => {}
        }
    }

    fn prepare(&mut self, schedule: &Schedule) -> PreparedRun {
        if !self.durable.schedules.contains_key(&schedule.id) {
            return PreparedRun::Removed;
        }
        let count = [0, 1, 100, 129, 300][self.below(5)];
        let id = |number| DeviceId::parse(&format!("d{number}")).unwrap();
        let devices: Vec<DeviceId> = (0..count).map(id).collect();
        let open = devices.iter().filter(|_| self.below(3) == 0);
        let open = open.cloned().collect::<Vec<_>>().into_iter();
        let open = open.map(|device| (device, ActionId::from_bytes([7; 16])));
        let mut m = Moment::new(self.now, self.m.next_u64().into());
        match run_of(&mut m, schedule, contents(), devices, open.collect()) {
            Ok((job, batches)) => {
                for batch in batches {
                    assert!(self.commit(batch));
                }
                PreparedRun::Job(job)
            }
            Err(reason) => PreparedRun::Skipped(reason),
        }
    }

    /// Asks a device: it may not answer, whether or not it created the request.
    fn submit(
        &mut self,
        effect: &JobEffect<Caller>,
    ) -> Result<Result<ActionId, SubmitRefusal>, Unserved> {
        let JobEffect::Submit { device, .. } = effect else {
            panic!("only a submission is answered by a device");
        };
        if self.fails() {
            match self.below(3) {
                0 => return Err(Unserved::Busy),
                1 => return Err(Unserved::Failed),
                _ => {
                    self.take_effect(effect);
                    return Err(Unserved::Failed);
                }
            }
        }
        // Some devices always refuse, and some do not exist.
        match device.as_bytes()[15] % 8 {
            0 => return Ok(Err(SubmitRefusal::NotRegistered)),
            1 => return Err(Unserved::Unknown),
            _ => {}
        }
        self.take_effect(effect).map(Ok).ok_or(Unserved::Failed)
    }

    /// What an effect does to what is durable, if it does anything.
    fn take_effect(&mut self, effect: &JobEffect<Caller>) -> Option<ActionId> {
        match effect {
            JobEffect::Submit {
                job,
                device,
                request,
                ..
            } => {
                let key = request.idempotent_call.unwrap().key;
                let mut created = self.durable.created.iter();
                let is_there = created.any(|it| (it.0, it.1) == (key, *device));
                // The device expects that there is no record.
                (!is_there).then(|| {
                    let action = ActionId::new(self.m.uuid());
                    self.durable.created.push((key, *device, action, *job));
                    action
                })
            }
            JobEffect::Commit(_, batch) => {
                self.commit(batch.clone());
                None
            }
            JobEffect::Schedule(ScheduleEffect::Commit(_, batch)) => {
                self.commit(batch.clone());
                None
            }
            JobEffect::Read { .. }
            | JobEffect::Answer(..)
            | JobEffect::Count { .. }
            | JobEffect::Schedule(_) => None,
        }
    }

    fn commit(&mut self, batch: Batch) -> bool {
        for expect in &batch.expects {
            if let Expect::JobRunning(job) = expect {
                let job = self.durable.jobs.get(job);
                if job.is_none_or(|job| job.state != JobState::Running) {
                    return false;
                }
            }
            if let Expect::Schedule(schedule) = expect
                && self.durable.schedules.get(&schedule.id) != Some(&**schedule)
            {
                return false;
            }
        }
        for change in batch.changes {
            if let Change::PutJob(job) = change {
                self.durable.jobs.insert(job.id, *job);
            } else if let Change::PutJobRequest { job, request } = change {
                self.durable.requests.insert(job, *request);
            } else if let Change::PutJobPart { job, part, devices } = change {
                self.durable.parts.insert((job, part), devices.into());
            } else if let Change::PutSchedule(schedule) = change {
                self.durable.put_schedule(*schedule, self.seed);
            } else if let Change::RemoveSchedule { schedule, .. } = change {
                self.durable.schedules.remove(&schedule);
            } else if let Change::PutScheduleContents { .. } | Change::AppendEntry(_) = change {
                // They are the same for every schedule, or nobody reads them.
            } else {
                panic!("no change of a job: {change:?}");
            }
        }
        true
    }

    fn fails(&mut self) -> bool {
        self.is_faulty && self.below(10) == 0
    }

    fn input(
        &mut self,
        input: impl FnOnce(&mut JobRunner<Caller>, Timestamp, &mut Vec<JobEffect<Caller>>),
    ) {
        let mut out = Vec::new();
        input(&mut self.runner, self.now, &mut out);
        self.under_way.extend(out.into_iter().map(UnderWay::Effect));
    }

    fn come_to_rest(&mut self) {
        self.is_faulty = false;
        while !self.under_way.is_empty() || self.runner.next_timeout().is_some() {
            self.perform_any();
            if self.under_way.is_empty() {
                self.pass_time();
            }
        }
    }

    fn assert_bounds(&self) {
        let in_flight = self
            .under_way
            .iter()
            .filter(|it| matches!(it, UnderWay::Effect(JobEffect::Submit { .. })));
        assert!(in_flight.count() <= JOB_COMMANDS_MAX, "seed {}", self.seed);
        let reads = self
            .under_way
            .iter()
            .filter(|it| matches!(it, UnderWay::Effect(JobEffect::Read { .. })));
        assert!(reads.count() <= JOBS_LOADED_MAX, "seed {}", self.seed);
    }

    fn assert_ended(&self) {
        let seed = self.seed;
        assert_eq!(self.runner.running(), 0, "seed {seed}");
        let mut seen = BTreeSet::new();
        for (_, device, _, job) in &self.durable.created {
            assert!(
                seen.insert((*device, *job)),
                "seed {seed}: a device was asked twice"
            );
        }
        for job in self.durable.jobs.values() {
            assert_ne!(job.state, JobState::Running, "seed {seed}");
            if !self.is_pause_too_short() {
                self.assert_outcomes(job);
            }
        }
        if self.is_pause_too_short() {
            return;
        }
        for (job, created) in &self.cancelled {
            let now = self.durable.created_by(*job);
            assert_eq!(now, *created, "seed {seed}: a cancelled job went on");
        }
    }

    fn assert_each_due_time_ran_once(&self) {
        let seed = self.seed;
        let mut seen = BTreeSet::new();
        let mut jobs = BTreeSet::new();
        for (schedule, run) in &self.durable.runs {
            let is_new = seen.insert((schedule.id, run.due));
            assert!(is_new, "seed {seed}: a due time ran twice");
            if let RunOutcome::Created(job) = run.outcome {
                assert_eq!(self.durable.jobs[&job].schedule, Some(schedule.id));
                jobs.insert(job);
            }
        }
        for job in self.durable.jobs.values() {
            let is_known = job.schedule.is_none() || jobs.contains(&job.id);
            assert!(is_known, "seed {seed}: a job without a due time");
        }
        for schedule in self.durable.schedules.values() {
            let state = schedule.state();
            assert_ne!(
                state,
                ScheduleState::Active,
                "seed {seed}: a due time was not run"
            );
        }
    }

    /// The stored outcomes are what became of the devices, and the counts are right.
    fn assert_outcomes(&self, job: &Job) {
        let seed = self.seed;
        let (mut accepted, mut rejected, mut open) = (0, 0, 0);
        for part in 0..job.parts() {
            for device in &self.durable.parts[&(job.id, part)] {
                let key = DeviceKey::of(&job.customer, &device.device);
                let created = self.durable.created.iter();
                let mut created = created.filter(|it| it.1 == key && it.3 == job.id);
                let created = created.next().map(|it| it.2);
                match device.outcome {
                    Some(JobOutcome::Accepted(action)) => {
                        accepted += 1;
                        assert_eq!(created, Some(action), "seed {seed}");
                    }
                    Some(
                        JobOutcome::Refused(_)
                        | JobOutcome::Unserved(_)
                        | JobOutcome::RequestOpen(_),
                    ) => {
                        rejected += 1;
                        assert_eq!(created, None, "seed {seed}");
                    }
                    None => {
                        open += 1;
                        assert_eq!(created, None, "seed {seed}");
                    }
                }
            }
        }
        assert_eq!(
            (job.accepted, job.rejected),
            (accepted, rejected),
            "seed {seed}"
        );
        assert_eq!(accepted + rejected + open, job.matched, "seed {seed}");
        assert!(open == 0 || job.state == JobState::Cancelled, "seed {seed}");
    }
}

impl Durable {
    fn part(&self, id: JobId, number: u32) -> Option<RestoredPart> {
        let key = self.jobs.get(&id)?.call(number).key;
        let created = self.created.iter().filter(|it| it.0 == key);
        Some(RestoredPart {
            devices: self.parts.get(&(id, number))?.clone(),
            request: self.requests.get(&id)?.clone(),
            created: created.map(|it| (it.1, it.2)).collect(),
        })
    }

    /// A run is that of the due time that was next, and no due time before the next one is left.
    fn put_schedule(&mut self, schedule: Schedule, seed: u128) {
        let before = self.schedules.insert(schedule.id, schedule.clone());
        let Some(before) = before.filter(|before| before.last != schedule.last) else {
            return;
        };
        let run = schedule.last.expect("it has run");
        assert_eq!(before.next, Some(run.due), "seed {seed}");
        assert!(run.at >= run.due, "seed {seed}: it ran too early");
        assert_eq!(
            schedule.next,
            schedule.recurrence.next_after(run.at),
            "seed {seed}"
        );
        if let RunOutcome::Created(_) = run.outcome {
            let last = before.last_job.and_then(|job| self.jobs.get(&job));
            let has_ended = last.is_none_or(|job| job.state != JobState::Running);
            assert!(has_ended, "seed {seed}: two jobs of a schedule run");
        } else {
            assert_ne!(run.outcome, RunOutcome::Skipped(SkipReason::FilterTooBroad));
        }
        self.runs.push((schedule, run));
    }

    fn created_by(&self, job: JobId) -> usize {
        self.created.iter().filter(|it| it.3 == job).count()
    }
}

fn contents() -> ScheduleContents {
    ScheduleContents {
        request: request(),
        target: ScheduleTarget::Named([].into()),
    }
}

fn request() -> NewAction {
    let read = Lwm2mRequest::parse(Operation::Read, "/3/0/9", None).unwrap();
    NewAction {
        request: Request::Lwm2m(read),
        mode: Mode::SendWhenActive,
        attempts_permitted: 1,
        expires_in_s: None,
        not_before: None,
        wake_up: None,
        trace: TraceId::from_bytes([9; 16]),
        idempotent_call: None,
    }
}
