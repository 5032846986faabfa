//! Which devices do running jobs ask next, and when is what they answered saved? Schedules, which
//! create jobs, are a part of it.
//!
//! ```text
//!             its turn            read                drained          saved
//!  Waiting ------------> Reading -----> Asking ----------------> Saving ------> Waiting, or ended
//!                        ^    |         |   ^                    ^    |
//!              after 1 s |    | not     |   | read: the others   |    | not saved: after 1 s
//!                        |    v read    v   | are asked again    |    v
//!                        '-- Paused <---' some did not answer    '-- Paused
//! ```
//!
//! A bounded number of jobs has a part in memory, and a bounded number of device commands is in
//! flight, whatever the number of jobs: they take turns device by device and part by part. A device
//! that gave no answer may have its request all the same. So the records of its part are read again
//! before it is asked again, and before a cancelled job ends.

pub mod schedules;

use std::collections::{BTreeMap, VecDeque};

use crate::action::NewAction;
use crate::change::{Batch, Change, Expect, UniqueName};
use crate::device::refusal::SubmitRefusal;
use crate::idempotency::IdempotencyRecord;
use crate::ids::{ActionId, CustomerId, DeviceKey, JobId, ScheduleId};
use crate::job::{Job, JobDevice, JobOutcome, JobState, RestoredPart};
use crate::limits::{JOB_COMMANDS_MAX, JOB_ROUNDS_MAX, JOBS_LOADED_MAX, STORE_RETRY_MS};
use crate::moment::{Moment, Timestamp};
use crate::schedule::{Schedule, ScheduleChange, ScheduleContents};
use crate::supervision::Unserved;

use schedules::{MayRun, PreparedRun, ScheduleEffect, Schedules};

/// An effect of the runner, performed in order; `R` takes the reply to a command for a job, and `S`
/// that to a command for a schedule.
#[derive(Clone, Debug, PartialEq)]
pub enum JobEffect<R, S = R> {
    /// Read a part of a job, with what was created for it, and pass the result to
    /// [`JobRunner::handle_part`].
    Read {
        /// The job.
        job: JobId,
        /// The number of the part.
        part: u32,
    },
    /// Submit a request to a device, and pass the answer to [`JobRunner::handle_answer`].
    Submit {
        /// The job.
        job: JobId,
        /// The place of the device in its part.
        place: usize,
        /// The device.
        device: DeviceKey,
        /// The request.
        request: Box<NewAction>,
    },
    /// Commit a batch, and pass the receipt to [`JobRunner::handle_receipt`].
    Commit(JobId, Batch),
    /// Reply to a caller.
    Answer(R, Result<Job, JobRefusal>),
    /// Count the outcomes of a part that is through.
    Count {
        /// The devices with a request.
        accepted: u32,
        /// The devices without.
        rejected: u32,
    },
    /// It concerns a schedule.
    Schedule(ScheduleEffect<S>),
}

/// Why a command for a job is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum JobRefusal {
    /// The customer has the most running jobs allowed.
    #[error("a customer can have at most {max} running jobs; wait until one ends, or cancel one")]
    TooMany {
        /// The most allowed.
        max: u32,
    },
    /// The job is not running.
    #[error("only a running job can be cancelled; this one has ended")]
    NotRunning,
    /// The customer has the most schedules allowed.
    #[error("a customer can have at most {max} schedules; delete one")]
    TooManySchedules {
        /// The most allowed.
        max: u32,
    },
    /// There is no such schedule any more.
    #[error("there is no such schedule")]
    ScheduleUnknown,
    /// The job or the schedule could not be saved.
    #[error(transparent)]
    Unserved(#[from] Unserved),
}

/// The most of a customer that there may be.
#[derive(Clone, Copy, Debug)]
pub struct JobLimits {
    /// Running jobs.
    pub running_max: u32,
    /// Schedules.
    pub schedules_max: u32,
}

/// The store could not be read for a part.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PartUnreadable;

/// Whether the store accepts new requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StoreRoom {
    /// It does.
    Open,
    /// It does not: no device can answer.
    Full,
}

/// All running jobs, and the schedules that create jobs.
#[derive(Debug)]
pub struct JobRunner<R, S = R> {
    /// The most running jobs of a customer.
    running_max: u32,
    jobs: BTreeMap<JobId, RunningJob<R>>,
    schedules: Schedules<S>,
    /// Jobs whose next part has no room in memory yet.
    waiting: VecDeque<JobId>,
    /// Jobs that have devices to ask, in the order of their turns.
    asking: VecDeque<JobId>,
    /// How many jobs have a part in memory.
    loaded: usize,
    /// How many device commands are in flight.
    in_flight: usize,
    /// Whether nothing new is begun, because the service stops.
    quiescent: bool,
}

/// A running job.
#[derive(Debug)]
struct RunningJob<R> {
    job: Job,
    step: JobStep<R>,
    /// Who cancels it.
    cancelling: Vec<R>,
}

/// What a job does.
#[derive(Debug)]
enum JobStep<R> {
    /// It is being created for a caller.
    Creating(R),
    /// It waits for its turn to read its next part.
    Waiting,
    /// Its part is being read, for the first time or again.
    Reading(Option<Part>),
    /// Its devices are being asked.
    Asking(Part),
    /// Devices did not answer, or the store did not; then the part is read again.
    Paused(Timestamp, Option<Part>),
    /// The outcomes of its part are being saved.
    Saving(Saving),
    /// They could not be saved and are saved again.
    SavePaused(Timestamp, Saving),
}

/// A part in memory.
#[derive(Debug)]
struct Part {
    devices: Vec<JobDevice>,
    request: NewAction,
    /// Places of devices that are still to be asked, the last one first.
    to_ask: Vec<usize>,
    /// How many of its device commands are in flight.
    in_flight: usize,
    /// Whether devices without outcome were asked since its records were read.
    is_unsure: bool,
    /// How often devices that did not answer were asked again.
    rounds: u8,
}

/// What is saved when a part is through.
#[derive(Clone, Debug)]
struct Saving {
    /// The job from then on.
    job: Job,
    batch: Batch,
}

impl<R, S> JobRunner<R, S> {
    /// A runner without jobs and schedules.
    pub fn new(limits: JobLimits) -> Self {
        Self {
            running_max: limits.running_max,
            jobs: BTreeMap::new(),
            schedules: Schedules::new(limits.schedules_max),
            waiting: VecDeque::new(),
            asking: VecDeque::new(),
            loaded: 0,
            in_flight: 0,
            quiescent: false,
        }
    }

    /// Continues the jobs that were running when the service ended, and takes the schedules.
    pub fn restore(
        &mut self,
        jobs: Vec<Job>,
        schedules: Vec<Schedule>,
        out: &mut Vec<JobEffect<R, S>>,
    ) {
        for job in jobs {
            self.add(job, JobStep::Waiting);
        }
        self.schedules.restore(schedules);
        self.proceed(out);
    }

    /// Creates a job whose contents are stored, and the idempotency record of its call with it.
    pub fn create(
        &mut self,
        job: Job,
        record: Option<IdempotencyRecord>,
        reply: R,
        out: &mut Vec<JobEffect<R, S>>,
    ) {
        if let Err(refusal) = self.check_room(&job.customer) {
            out.push(JobEffect::Answer(reply, Err(refusal)));
            return;
        }
        let mut batch = Batch {
            expects: vec![Expect::Taken(UniqueName::Customer(job.customer.clone()))],
            changes: vec![Change::PutJob(Box::new(job.clone()))],
            ..Batch::default()
        };
        if let Some(record) = record {
            batch.add_record(record);
        }
        out.push(JobEffect::Commit(job.id, batch));
        self.add(job, JobStep::Creating(reply));
    }

    /// Cancels a job: the caller is answered when no device is being asked any more and that is
    /// durable.
    pub fn cancel(&mut self, now: Timestamp, id: JobId, reply: R, out: &mut Vec<JobEffect<R, S>>) {
        match self.jobs.get_mut(&id) {
            Some(running) if !matches!(running.step, JobStep::Creating(_)) => {
                running.cancelling.push(reply);
                self.end_early(now, id, out);
                self.proceed(out);
            }
            Some(_) | None => out.push(JobEffect::Answer(reply, Err(JobRefusal::NotRunning))),
        }
    }

    /// Creates a schedule with its contents, and the idempotency record of its call with it.
    pub fn create_schedule(
        &mut self,
        schedule: Schedule,
        contents: ScheduleContents,
        record: Option<IdempotencyRecord>,
        reply: S,
        out: &mut Vec<JobEffect<R, S>>,
    ) {
        let mut effects = Vec::new();
        self.schedules
            .create((schedule, contents), record, reply, &mut effects);
        out.extend(effects.into_iter().map(JobEffect::Schedule));
    }

    /// Changes a schedule; a run that is being saved is saved before.
    pub fn change_schedule(
        &mut self,
        now: Timestamp,
        id: ScheduleId,
        change: ScheduleChange,
        reply: S,
        out: &mut Vec<JobEffect<R, S>>,
    ) {
        let mut effects = Vec::new();
        self.schedules
            .change(now, id, (change, reply), &mut effects);
        out.extend(effects.into_iter().map(JobEffect::Schedule));
    }

    /// Forgets the jobs and the schedules of a customer that is being removed: nothing more is
    /// saved for them.
    pub fn forget(&mut self, customer: &CustomerId, out: &mut Vec<JobEffect<R, S>>) {
        let is_of = |running: &RunningJob<R>| running.job.customer == *customer;
        let jobs = self.jobs.iter().filter(|(_, running)| is_of(running));
        let jobs: Vec<JobId> = jobs.map(|(id, _)| *id).collect();
        for id in jobs {
            self.remove(id, Err(JobRefusal::NotRunning), out);
        }
        let mut effects = Vec::new();
        self.schedules.forget(customer, &mut effects);
        out.extend(effects.into_iter().map(JobEffect::Schedule));
        self.proceed(out);
    }

    /// Begins nothing new from then on. Whatever is in flight needs no end: the next start finds
    /// what it did.
    pub fn quiesce(&mut self) {
        self.quiescent = true;
    }

    /// Handles the receipt of a commit; `Unknown` means that the job, or its customer, is removed.
    pub fn handle_receipt(
        &mut self,
        now: Timestamp,
        id: JobId,
        receipt: Result<(), Unserved>,
        out: &mut Vec<JobEffect<R, S>>,
    ) {
        let Some(running) = self.jobs.get_mut(&id) else {
            return;
        };
        match (
            std::mem::replace(&mut running.step, JobStep::Waiting),
            receipt,
        ) {
            (JobStep::Creating(reply), Ok(())) => {
                out.push(JobEffect::Answer(reply, Ok(running.job.clone())));
                match running.job.state {
                    JobState::Running => self.waiting.push_back(id),
                    JobState::Done | JobState::Cancelled => {
                        self.take_out(id);
                    }
                }
            }
            (JobStep::Creating(reply), Err(unserved)) => {
                self.take_out(id);
                out.push(JobEffect::Answer(
                    reply,
                    Err(JobRefusal::Unserved(unserved)),
                ));
            }
            (JobStep::Saving(saving), Ok(())) => self.saved(now, id, saving.job, out),
            (JobStep::Saving(_), Err(Unserved::Unknown)) => {
                self.loaded -= 1;
                self.remove(id, Err(JobRefusal::NotRunning), out);
            }
            (JobStep::Saving(saving), Err(Unserved::Busy | Unserved::Failed)) => {
                running.step = JobStep::SavePaused(now.plus_ms(STORE_RETRY_MS), saving);
            }
            (step, _) => running.step = step,
        }
        self.proceed(out);
    }

    /// Handles a part that was read; nothing if the job was removed.
    pub fn handle_part(
        &mut self,
        now: Timestamp,
        id: JobId,
        read: Result<Option<RestoredPart>, PartUnreadable>,
        out: &mut Vec<JobEffect<R, S>>,
    ) {
        let Some(running) = self.jobs.get_mut(&id) else {
            return;
        };
        let JobStep::Reading(known) = &mut running.step else {
            return;
        };
        let known = known.take();
        match read {
            Err(PartUnreadable) => {
                running.step = JobStep::Paused(now.plus_ms(STORE_RETRY_MS), known);
            }
            Ok(None) => self.remove(id, Err(JobRefusal::NotRunning), out),
            Ok(Some(restored)) => {
                let mut part = known.unwrap_or_else(|| Part::new(&restored));
                part.settle(&running.job.customer, &restored.created);
                if part.rounds > JOB_ROUNDS_MAX {
                    part.give_up();
                }
                running.step = JobStep::Asking(part);
                self.asking.push_back(id);
                running.end_round(now, out);
            }
        }
        self.proceed(out);
    }

    /// Handles the answer of a device.
    pub fn handle_answer(
        &mut self,
        now: Timestamp,
        (id, place): (JobId, usize),
        answer: Result<Result<ActionId, SubmitRefusal>, Unserved>,
        out: &mut Vec<JobEffect<R, S>>,
    ) {
        self.in_flight -= 1;
        if let Some(running) = self.jobs.get_mut(&id)
            && let JobStep::Asking(part) = &mut running.step
        {
            part.in_flight -= 1;
            let outcome = match answer {
                Ok(Ok(action)) => Some(JobOutcome::Accepted(action)),
                Ok(Err(refusal)) => Some(JobOutcome::Refused(refusal)),
                Err(Unserved::Unknown) => Some(JobOutcome::Unserved(Unserved::Unknown)),
                Err(Unserved::Busy | Unserved::Failed) => None,
            };
            part.is_unsure |= outcome.is_none();
            if let Some(device) = part.devices.get_mut(place) {
                device.outcome = outcome;
            }
            running.end_round(now, out);
        }
        self.proceed(out);
    }

    /// Tries again what is due.
    pub fn handle_timeout(
        &mut self,
        now: Timestamp,
        room: StoreRoom,
        out: &mut Vec<JobEffect<R, S>>,
    ) {
        for running in self.jobs.values_mut() {
            match &mut running.step {
                JobStep::Paused(at, part) if *at <= now => match room {
                    StoreRoom::Full if running.cancelling.is_empty() => {
                        *at = now.plus_ms(STORE_RETRY_MS);
                    }
                    StoreRoom::Open | StoreRoom::Full => {
                        if let Some(part) = part {
                            part.rounds = part.rounds.saturating_add(1);
                        }
                        running.read(out);
                    }
                },
                JobStep::SavePaused(at, saving) if *at <= now => {
                    let saving = saving.clone();
                    running.save(saving, out);
                }
                JobStep::Creating(_)
                | JobStep::Waiting
                | JobStep::Reading(_)
                | JobStep::Asking(_)
                | JobStep::Paused(..)
                | JobStep::Saving(_)
                | JobStep::SavePaused(..) => {}
            }
        }
        if !self.quiescent {
            self.handle_schedules(out, |schedules, may_run, out| {
                schedules.handle_timeout(now, room, may_run, out);
            });
        }
        self.proceed(out);
    }

    /// Handles a run of a schedule that was prepared.
    pub fn handle_prepared(
        &mut self,
        m: &mut Moment,
        id: ScheduleId,
        prepared: Result<PreparedRun, PartUnreadable>,
        out: &mut Vec<JobEffect<R, S>>,
    ) {
        if self.quiescent {
            return;
        }
        self.handle_schedules(out, |schedules, may_run, out| {
            schedules.handle_prepared(m, id, prepared, may_run, out);
        });
    }

    /// Handles the receipt of a commit for a schedule, and runs the job that is durable by it;
    /// `Unknown` means that the schedule, or its customer, is removed.
    pub fn handle_schedule_receipt(
        &mut self,
        now: Timestamp,
        id: ScheduleId,
        receipt: Result<(), Unserved>,
        out: &mut Vec<JobEffect<R, S>>,
    ) {
        let mut effects = Vec::new();
        let started = self
            .schedules
            .handle_receipt(now, id, receipt, &mut effects);
        out.extend(effects.into_iter().map(JobEffect::Schedule));
        if let Some(job) = started {
            self.add(job, JobStep::Waiting);
        }
        self.proceed(out);
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        if self.quiescent {
            return None;
        }
        let due = |running: &RunningJob<R>| match running.step {
            JobStep::Paused(at, _) | JobStep::SavePaused(at, _) => Some(at),
            JobStep::Creating(_)
            | JobStep::Waiting
            | JobStep::Reading(_)
            | JobStep::Asking(_)
            | JobStep::Saving(_) => None,
        };
        let jobs = self.jobs.values().filter_map(due);
        jobs.chain(self.schedules.next_timeout()).min()
    }

    /// Whether a customer may have one more running job.
    pub fn check_room(&self, customer: &CustomerId) -> Result<(), JobRefusal> {
        let starting = self.schedules.starting(customer);
        let max = self.running_max;
        match has_room(&self.jobs, customer, starting, max) {
            true => Ok(()),
            false => Err(JobRefusal::TooMany { max }),
        }
    }

    /// How many jobs are running.
    pub fn running(&self) -> usize {
        self.jobs.len()
    }

    /// Gives the schedules an input, and says which of them may run.
    fn handle_schedules(
        &mut self,
        out: &mut Vec<JobEffect<R, S>>,
        input: impl FnOnce(&mut Schedules<S>, MayRun<'_>, &mut Vec<ScheduleEffect<S>>),
    ) {
        let (jobs, max) = (&self.jobs, self.running_max);
        let may_run = |schedule: &Schedule, starting: usize| {
            let last = schedule.last_job;
            let has_ended = last.is_none_or(|last| !jobs.contains_key(&last));
            has_ended && has_room(jobs, &schedule.customer, starting, max)
        };
        let mut effects = Vec::new();
        input(&mut self.schedules, &may_run, &mut effects);
        out.extend(effects.into_iter().map(JobEffect::Schedule));
    }

    fn add(&mut self, job: Job, step: JobStep<R>) {
        let id = job.id;
        if matches!(step, JobStep::Waiting) {
            self.waiting.push_back(id);
        }
        let running = RunningJob {
            job,
            step,
            cancelling: Vec::new(),
        };
        self.jobs.insert(id, running);
    }

    /// Takes out a job, which may be what a schedule waits for.
    fn take_out(&mut self, id: JobId) -> Option<RunningJob<R>> {
        let running = self.jobs.remove(&id)?;
        self.schedules.job_ended(&running.job.customer);
        Some(running)
    }

    /// Ends a job that nothing more is saved for.
    fn remove(
        &mut self,
        id: JobId,
        answer: Result<Job, JobRefusal>,
        out: &mut Vec<JobEffect<R, S>>,
    ) {
        let Some(running) = self.take_out(id) else {
            return;
        };
        if running.step.is_loaded() {
            self.loaded -= 1;
        }
        if let JobStep::Creating(creator) = running.step {
            out.push(JobEffect::Answer(creator, answer.clone()));
        }
        for caller in running.cancelling {
            out.push(JobEffect::Answer(caller, answer.clone()));
        }
    }

    /// Handles a part that is through and saved.
    fn saved(&mut self, now: Timestamp, id: JobId, job: Job, out: &mut Vec<JobEffect<R, S>>) {
        let Some(running) = self.jobs.get_mut(&id) else {
            return;
        };
        out.push(JobEffect::Count {
            accepted: job.accepted - running.job.accepted,
            rejected: job.rejected - running.job.rejected,
        });
        // The step is Waiting by now, which is not loaded.
        self.loaded -= 1;
        running.job = job;
        match running.job.state {
            JobState::Running => {
                self.waiting.push_back(id);
                self.end_early(now, id, out);
            }
            JobState::Done => self.remove(id, Err(JobRefusal::NotRunning), out),
            JobState::Cancelled => {
                let cancelled = running.job.clone();
                self.remove(id, Ok(cancelled), out);
            }
        }
    }

    /// Ends a job that is being cancelled, as soon as nothing is unknown about its devices.
    fn end_early(&mut self, now: Timestamp, id: JobId, out: &mut Vec<JobEffect<R, S>>) {
        let Some(running) = self.jobs.get_mut(&id) else {
            return;
        };
        if running.cancelling.is_empty() {
            return;
        }
        match &running.step {
            // A crash may have left requests of its next part, so that is read first.
            JobStep::Waiting => {
                self.waiting.retain(|waiting| *waiting != id);
                self.loaded += 1;
                running.read(out);
            }
            JobStep::Paused(..) => running.read(out),
            JobStep::Asking(_) => running.end_round(now, out),
            JobStep::Creating(_)
            | JobStep::Reading(_)
            | JobStep::Saving(_)
            | JobStep::SavePaused(..) => {}
        }
    }

    /// Begins what there is room for.
    fn proceed(&mut self, out: &mut Vec<JobEffect<R, S>>) {
        if self.quiescent {
            return;
        }
        while self.loaded < JOBS_LOADED_MAX
            && let Some(id) = self.waiting.pop_front()
        {
            if let Some(running) = self.jobs.get_mut(&id) {
                self.loaded += 1;
                running.read(out);
            }
        }
        while self.in_flight < JOB_COMMANDS_MAX
            && let Some(id) = self.asking.pop_front()
        {
            if let Some(running) = self.jobs.get_mut(&id)
                && let Some(submit) = running.ask_next()
            {
                self.in_flight += 1;
                out.push(submit);
                self.asking.push_back(id);
            }
        }
    }
}

/// Whether a customer may have one more job than those that run and those that are being saved.
fn has_room<R>(
    jobs: &BTreeMap<JobId, RunningJob<R>>,
    customer: &CustomerId,
    starting: usize,
    max: u32,
) -> bool {
    let running = jobs.values();
    let running = running.filter(|running| running.job.customer == *customer);
    u32::try_from(running.count() + starting).is_ok_and(|running| running < max)
}

impl<R> RunningJob<R> {
    /// Reads its part, or the records of it again.
    fn read<S>(&mut self, out: &mut Vec<JobEffect<R, S>>) {
        let known = match std::mem::replace(&mut self.step, JobStep::Waiting) {
            JobStep::Paused(_, known) => known,
            JobStep::Creating(_)
            | JobStep::Waiting
            | JobStep::Reading(_)
            | JobStep::Asking(_)
            | JobStep::Saving(_)
            | JobStep::SavePaused(..) => None,
        };
        self.step = JobStep::Reading(known);
        out.push(JobEffect::Read {
            job: self.job.id,
            part: self.job.parts_done,
        });
    }

    /// The submission to the next device of its part.
    fn ask_next<S>(&mut self) -> Option<JobEffect<R, S>> {
        let call = self.job.call(self.job.parts_done);
        let JobStep::Asking(part) = &mut self.step else {
            return None;
        };
        let place = part.to_ask.pop()?;
        let device = part.devices.get(place)?;
        part.in_flight += 1;
        Some(JobEffect::Submit {
            job: self.job.id,
            place,
            device: DeviceKey::of(&self.job.customer, &device.device),
            request: Box::new(NewAction {
                idempotent_call: Some(call),
                ..part.request.clone()
            }),
        })
    }

    /// Goes on after devices of its part answered, when none of them is left to be waited for.
    fn end_round<S>(&mut self, now: Timestamp, out: &mut Vec<JobEffect<R, S>>) {
        let is_cancelling = !self.cancelling.is_empty();
        let JobStep::Asking(part) = &mut self.step else {
            return;
        };
        if is_cancelling {
            part.to_ask.clear();
        }
        if part.in_flight > 0 || !part.to_ask.is_empty() {
            return;
        }
        if part.is_settled() || (is_cancelling && !part.is_unsure) {
            self.end_part(out);
            return;
        }
        if let JobStep::Asking(part) = std::mem::replace(&mut self.step, JobStep::Waiting) {
            self.step = JobStep::Paused(now.plus_ms(STORE_RETRY_MS), Some(part));
        }
        if is_cancelling {
            self.read(out);
        }
    }

    /// Saves the outcomes of its part. A cancelled job ends with it.
    fn end_part<S>(&mut self, out: &mut Vec<JobEffect<R, S>>) {
        let JobStep::Asking(part) = &self.step else {
            return;
        };
        let mut job = self.job.clone();
        job.count(&part.devices);
        if part.is_settled() {
            job.parts_done += 1;
        }
        job.state = if job.parts_done >= job.parts() {
            JobState::Done
        } else if self.cancelling.is_empty() {
            JobState::Running
        } else {
            JobState::Cancelled
        };
        let batch = Batch {
            expects: vec![Expect::JobRunning(job.id)],
            changes: vec![
                Change::PutJobPart {
                    job: job.id,
                    part: self.job.parts_done,
                    devices: part.devices.as_slice().into(),
                },
                Change::PutJob(Box::new(job.clone())),
            ],
            ..Batch::default()
        };
        self.save(Saving { job, batch }, out);
    }

    fn save<S>(&mut self, saving: Saving, out: &mut Vec<JobEffect<R, S>>) {
        out.push(JobEffect::Commit(saving.job.id, saving.batch.clone()));
        self.step = JobStep::Saving(saving);
    }
}

impl<R> JobStep<R> {
    /// Whether the job counts as having a part in memory.
    fn is_loaded(&self) -> bool {
        match self {
            Self::Creating(_) | Self::Waiting => false,
            Self::Reading(_)
            | Self::Asking(_)
            | Self::Paused(..)
            | Self::Saving(_)
            | Self::SavePaused(..) => true,
        }
    }
}

impl Part {
    fn new(restored: &RestoredPart) -> Self {
        Self {
            devices: restored.devices.clone(),
            request: restored.request.clone(),
            to_ask: Vec::new(),
            in_flight: 0,
            is_unsure: false,
            rounds: 0,
        }
    }

    /// Notes the requests that were created, and has the other devices without outcome asked.
    fn settle(&mut self, customer: &CustomerId, created: &[(DeviceKey, ActionId)]) {
        let created: BTreeMap<_, _> = created.iter().copied().collect();
        self.to_ask.clear();
        self.is_unsure = false;
        for (place, device) in self.devices.iter_mut().enumerate().rev() {
            if device.outcome.is_none() {
                let key = DeviceKey::of(customer, &device.device);
                match created.get(&key) {
                    Some(action) => device.outcome = Some(JobOutcome::Accepted(*action)),
                    None => self.to_ask.push(place),
                }
            }
        }
    }

    fn is_settled(&self) -> bool {
        self.devices.iter().all(|device| device.outcome.is_some())
    }

    /// Rejects the devices that did not answer.
    fn give_up(&mut self) {
        self.to_ask.clear();
        for device in &mut self.devices {
            device
                .outcome
                .get_or_insert(JobOutcome::Unserved(Unserved::Busy));
        }
    }
}

#[cfg(test)]
mod tests;
