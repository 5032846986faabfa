//! Which due time of which schedule is run next, and what is saved with it?
//!
//! ```text
//!            due            contents stored            saved
//!  Idle -----------> Preparing -------------> Saving ----------> Idle
//!   ^                   |                        |
//!   '------ after 1 s --'-- not read, not saved -'
//! ```
//!
//! The job and the next due time of its schedule are one batch, which expects the schedule as it
//! was: whatever crashes, a due time has one job at most, and one without a job is still due. A
//! schedule whose last job runs, or whose customer has the most running jobs allowed, waits until a
//! job ends. One run is prepared at a time, because its devices are read for it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::admin_log::entry::Entry;
use crate::change::{Batch, Change, Expect, UniqueName};
use crate::idempotency::IdempotencyRecord;
use crate::ids::{CustomerId, ScheduleId};
use crate::job::Job;
use crate::job::runner::{JobRefusal, PartUnreadable, StoreRoom};
use crate::limits::STORE_RETRY_MS;
use crate::moment::{Moment, Timestamp};
use crate::schedule::{RunOutcome, Schedule, ScheduleChange, ScheduleContents, SkipReason};
use crate::supervision::Unserved;

/// An effect that concerns a schedule; `S` takes the reply to a command.
#[derive(Clone, Debug, PartialEq)]
pub enum ScheduleEffect<S> {
    /// Read the devices of a run, store the contents of its job, and pass the result to
    /// [`JobRunner::handle_prepared`](super::JobRunner::handle_prepared).
    Prepare(Box<Schedule>),
    /// Commit a batch, and pass the receipt to
    /// [`JobRunner::handle_schedule_receipt`](super::JobRunner::handle_schedule_receipt).
    Commit(ScheduleId, Batch),
    /// Reply to a caller.
    Answer(S, Result<Schedule, JobRefusal>),
}

/// What came of the preparation of a run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PreparedRun {
    /// A job whose contents are stored.
    Job(Job),
    /// No job, for a reason.
    Skipped(SkipReason),
    /// The schedule was removed.
    Removed,
}

/// Whether the last job of a schedule has ended, and its customer may have one more.
/// if so many of its jobs are being saved.
pub(super) type MayRun<'a> = &'a dyn Fn(&Schedule, usize) -> bool;

/// All schedules.
#[derive(Debug)]
pub(super) struct Schedules<S> {
    /// The most schedules of a customer.
    max: u32,
    known: BTreeMap<ScheduleId, KnownSchedule<S>>,
    /// When idle schedules are due, or are tried again.
    wakes: BTreeSet<(Timestamp, ScheduleId)>,
    /// Idle schedules that are due and wait until a job ends.
    waiting: BTreeSet<ScheduleId>,
    /// Whether a run is being prepared.
    is_preparing: bool,
}

/// A schedule.
#[derive(Debug)]
struct KnownSchedule<S> {
    schedule: Schedule,
    step: ScheduleStep<S>,
    /// When it is looked at next; the key of its row among those of all schedules.
    wake: Option<Timestamp>,
    /// Changes that wait until it is idle.
    changes: VecDeque<(ScheduleChange, S)>,
}

/// What a schedule does.
#[derive(Debug)]
enum ScheduleStep<S> {
    /// It is being created for a caller.
    Creating(S),
    /// It waits for its next due time.
    Idle,
    /// The contents of a job are being stored for it.
    Preparing,
    /// Its run is being saved, with its job.
    SavingRun(Box<Schedule>, Option<Job>),
    /// The change of a caller is being saved; without a schedule it is being removed.
    SavingChange(Option<Box<Schedule>>, S),
}

impl<S> Schedules<S> {
    /// None, and at most so many of a customer.
    pub(super) fn new(max: u32) -> Self {
        Self {
            max,
            known: BTreeMap::new(),
            wakes: BTreeSet::new(),
            waiting: BTreeSet::new(),
            is_preparing: false,
        }
    }

    /// Takes the schedules that are stored.
    pub(super) fn restore(&mut self, schedules: Vec<Schedule>) {
        for schedule in schedules {
            let id = schedule.id;
            self.add(schedule, ScheduleStep::Idle);
            self.wake_when_due(id);
        }
    }

    /// Creates a schedule, with its contents and the idempotency record of its call.
    pub(super) fn create(
        &mut self,
        (schedule, contents): (Schedule, ScheduleContents),
        record: Option<IdempotencyRecord>,
        reply: S,
        out: &mut Vec<ScheduleEffect<S>>,
    ) {
        let of_customer = |it: &&KnownSchedule<S>| it.schedule.customer == schedule.customer;
        let others = self.known.values().filter(of_customer).count();
        let max = self.max;
        if !u32::try_from(others).is_ok_and(|others| others < max) {
            let refusal = JobRefusal::TooManySchedules { max };
            out.push(ScheduleEffect::Answer(reply, Err(refusal)));
            return;
        }
        let mut batch = Batch {
            expects: vec![Expect::Taken(UniqueName::Customer(
                schedule.customer.clone(),
            ))],
            changes: vec![
                Change::PutSchedule(Box::new(schedule.clone())),
                Change::PutScheduleContents {
                    schedule: schedule.id,
                    contents: Box::new(contents),
                },
            ],
            ..Batch::default()
        };
        if let Some(record) = record {
            batch.add_record(record);
        }
        out.push(ScheduleEffect::Commit(schedule.id, batch));
        self.add(schedule, ScheduleStep::Creating(reply));
    }

    /// Changes a schedule, as soon as its run is saved if it has one.
    pub(super) fn change(
        &mut self,
        now: Timestamp,
        id: ScheduleId,
        (change, reply): (ScheduleChange, S),
        out: &mut Vec<ScheduleEffect<S>>,
    ) {
        match self.known.get_mut(&id) {
            Some(known) => {
                known.changes.push_back((change, reply));
                self.take_change(now, id, out);
            }
            None => {
                let refusal = Err(JobRefusal::ScheduleUnknown);
                out.push(ScheduleEffect::Answer(reply, refusal));
            }
        }
    }

    /// Forgets the schedules of a customer that is being removed.
    pub(super) fn forget(&mut self, customer: &CustomerId, out: &mut Vec<ScheduleEffect<S>>) {
        let of_customer =
            |(_, it): &(&ScheduleId, &KnownSchedule<S>)| it.schedule.customer == *customer;
        let gone = self.known.iter().filter(of_customer);
        let gone: Vec<ScheduleId> = gone.map(|(id, _)| *id).collect();
        for id in gone {
            self.remove(id, out);
        }
    }

    /// Has the schedules of a customer looked at again that wait until a job ends.
    pub(super) fn job_ended(&mut self, customer: &CustomerId) {
        let of_customer = |id: &&ScheduleId| {
            let known = self.known.get(id);
            known.is_some_and(|known| known.schedule.customer == *customer)
        };
        let waiting: Vec<ScheduleId> = self.waiting.iter().filter(of_customer).copied().collect();
        for id in waiting {
            self.wake_when_due(id);
        }
    }

    /// How many jobs of a customer are being saved.
    pub(super) fn starting(&self, customer: &CustomerId) -> usize {
        let is_starting = |known: &&KnownSchedule<S>| {
            known.schedule.customer == *customer
                && matches!(known.step, ScheduleStep::SavingRun(_, Some(_)))
        };
        self.known.values().filter(is_starting).count()
    }

    /// Begins the run that is due first.
    pub(super) fn handle_timeout(
        &mut self,
        now: Timestamp,
        room: StoreRoom,
        may_run: MayRun<'_>,
        out: &mut Vec<ScheduleEffect<S>>,
    ) {
        while let Some((at, id)) = self.wakes.first().copied()
            && at <= now
            && !self.is_preparing
        {
            if room == StoreRoom::Full {
                self.wake(id, Some(now.plus_ms(STORE_RETRY_MS)));
                continue;
            }
            self.wake(id, None);
            if !self.may_run(id, may_run) {
                self.waiting.insert(id);
            } else if let Some(known) = self.known.get_mut(&id) {
                known.step = ScheduleStep::Preparing;
                self.is_preparing = true;
                out.push(ScheduleEffect::Prepare(Box::new(known.schedule.clone())));
            }
        }
    }

    /// When [`Self::handle_timeout`] is due.
    pub(super) fn next_timeout(&self) -> Option<Timestamp> {
        let first = self.wakes.first().filter(|_| !self.is_preparing);
        first.map(|(at, _)| *at)
    }

    /// Handles a run that was prepared.
    pub(super) fn handle_prepared(
        &mut self,
        m: &mut Moment,
        id: ScheduleId,
        prepared: Result<PreparedRun, PartUnreadable>,
        may_run: MayRun<'_>,
        out: &mut Vec<ScheduleEffect<S>>,
    ) {
        self.is_preparing = false;
        let may_run = self.may_run(id, may_run);
        let Some(known) = self.known.get_mut(&id) else {
            return;
        };
        if !matches!(known.step, ScheduleStep::Preparing) {
            return;
        }
        known.step = ScheduleStep::Idle;
        match prepared {
            Ok(PreparedRun::Removed) => self.remove(id, out),
            // A call has created the last job allowed meanwhile.
            Ok(PreparedRun::Job(_)) if !may_run => {
                self.waiting.insert(id);
            }
            Ok(PreparedRun::Job(job)) => {
                known.save_run(m.now(), RunOutcome::Created(job.id), (Some(job), None), out);
            }
            Ok(PreparedRun::Skipped(reason)) => {
                let outcome = RunOutcome::Skipped(reason);
                let last = known.schedule.last;
                let is_news = last.is_none_or(|last| last.outcome != outcome);
                let entry = is_news.then(|| Entry::schedule_skipped(m, &known.schedule, reason));
                known.save_run(m.now(), outcome, (None, entry), out);
            }
            Err(PartUnreadable) => self.wake(id, Some(m.now().plus_ms(STORE_RETRY_MS))),
        }
        self.take_change(m.now(), id, out);
    }

    /// Handles the receipt of a commit, and returns a job that is durable by it.
    pub(super) fn handle_receipt(
        &mut self,
        now: Timestamp,
        id: ScheduleId,
        receipt: Result<(), Unserved>,
        out: &mut Vec<ScheduleEffect<S>>,
    ) -> Option<Job> {
        let known = self.known.get_mut(&id)?;
        let step = std::mem::replace(&mut known.step, ScheduleStep::Idle);
        let mut started = None;
        match (step, receipt) {
            (ScheduleStep::Creating(reply), Ok(())) => {
                let created = known.schedule.clone();
                out.push(ScheduleEffect::Answer(reply, Ok(created)));
            }
            (ScheduleStep::Creating(reply), Err(unserved)) => {
                let refusal = Err(JobRefusal::Unserved(unserved));
                out.push(ScheduleEffect::Answer(reply, refusal));
                self.remove(id, out);
                return None;
            }
            (ScheduleStep::SavingRun(schedule, job), Ok(())) => {
                known.schedule = *schedule;
                started = job;
            }
            (ScheduleStep::SavingChange(Some(schedule), reply), Ok(())) => {
                known.schedule = *schedule;
                let changed = known.schedule.clone();
                out.push(ScheduleEffect::Answer(reply, Ok(changed)));
            }
            (ScheduleStep::SavingChange(None, reply), Ok(())) => {
                let removed = known.schedule.clone();
                out.push(ScheduleEffect::Answer(reply, Ok(removed)));
                self.remove(id, out);
                return None;
            }
            // It was removed with its customer.
            (step @ ScheduleStep::SavingRun(..), Err(Unserved::Unknown))
            | (step @ ScheduleStep::SavingChange(..), Err(Unserved::Unknown)) => {
                known.step = step;
                self.remove(id, out);
                return None;
            }
            (ScheduleStep::SavingRun(..), Err(Unserved::Busy | Unserved::Failed)) => {
                self.wake(id, Some(now.plus_ms(STORE_RETRY_MS)));
                self.take_change(now, id, out);
                return None;
            }
            (
                ScheduleStep::SavingChange(_, reply),
                Err(unserved @ (Unserved::Busy | Unserved::Failed)),
            ) => {
                let refusal = Err(JobRefusal::Unserved(unserved));
                out.push(ScheduleEffect::Answer(reply, refusal));
            }
            (step @ (ScheduleStep::Idle | ScheduleStep::Preparing), _) => {
                known.step = step;
                return None;
            }
        }
        self.wake_when_due(id);
        self.take_change(now, id, out);
        started
    }

    fn may_run(&self, id: ScheduleId, may_run: MayRun<'_>) -> bool {
        let known = self.known.get(&id);
        known.is_some_and(|known| {
            let starting = self.starting(&known.schedule.customer);
            may_run(&known.schedule, starting)
        })
    }

    fn add(&mut self, schedule: Schedule, step: ScheduleStep<S>) {
        let known = KnownSchedule {
            step,
            wake: None,
            changes: VecDeque::new(),
            schedule,
        };
        self.known.insert(known.schedule.id, known);
    }

    /// Forgets a schedule that is removed.
    fn remove(&mut self, id: ScheduleId, out: &mut Vec<ScheduleEffect<S>>) {
        self.wake(id, None);
        let Some(known) = self.known.remove(&id) else {
            return;
        };
        let unsaved = match known.step {
            ScheduleStep::Creating(reply) | ScheduleStep::SavingChange(_, reply) => Some(reply),
            ScheduleStep::Idle | ScheduleStep::Preparing | ScheduleStep::SavingRun(..) => None,
        };
        let changes = known.changes.into_iter().map(|(_, reply)| reply);
        for reply in unsaved.into_iter().chain(changes) {
            let refusal = Err(JobRefusal::ScheduleUnknown);
            out.push(ScheduleEffect::Answer(reply, refusal));
        }
    }

    /// Begins the next change of an idle schedule.
    fn take_change(&mut self, now: Timestamp, id: ScheduleId, out: &mut Vec<ScheduleEffect<S>>) {
        let Some(known) = self.known.get_mut(&id) else {
            return;
        };
        if !matches!(known.step, ScheduleStep::Idle) {
            return;
        }
        let Some((change, reply)) = known.changes.pop_front() else {
            return;
        };
        let changed = match change {
            ScheduleChange::Pause => Some(known.schedule.paused()),
            ScheduleChange::Resume => Some(known.schedule.resumed(now)),
            ScheduleChange::Remove => None,
        };
        let changes = vec![match &changed {
            Some(changed) => Change::PutSchedule(Box::new(changed.clone())),
            None => Change::RemoveSchedule {
                customer: known.schedule.customer.clone(),
                schedule: id,
            },
        }];
        let batch = Batch {
            expects: vec![Expect::Schedule(Box::new(known.schedule.clone()))],
            changes,
            ..Batch::default()
        };
        known.step = ScheduleStep::SavingChange(changed.map(Box::new), reply);
        out.push(ScheduleEffect::Commit(id, batch));
        self.wake(id, None);
    }

    /// Has an idle schedule looked at when it is due.
    fn wake_when_due(&mut self, id: ScheduleId) {
        let known = self.known.get(&id);
        let is_idle = |known: &&KnownSchedule<S>| matches!(known.step, ScheduleStep::Idle);
        self.wake(
            id,
            known.filter(is_idle).and_then(|known| known.schedule.next),
        );
    }

    fn wake(&mut self, id: ScheduleId, at: Option<Timestamp>) {
        self.waiting.remove(&id);
        let Some(known) = self.known.get_mut(&id) else {
            return;
        };
        if let Some(before) = std::mem::replace(&mut known.wake, at) {
            self.wakes.remove(&(before, id));
        }
        if let Some(at) = at {
            self.wakes.insert((at, id));
        }
    }
}

impl<S> KnownSchedule<S> {
    /// Saves its run, with the job or with an entry about why there is none.
    fn save_run(
        &mut self,
        now: Timestamp,
        outcome: RunOutcome,
        (job, entry): (Option<Job>, Option<Entry>),
        out: &mut Vec<ScheduleEffect<S>>,
    ) {
        let Some(due) = self.schedule.next else {
            return;
        };
        let after = self.schedule.after_run(due, now, outcome);
        let mut changes = vec![Change::PutSchedule(Box::new(after.clone()))];
        changes.extend(job.clone().map(|job| Change::PutJob(Box::new(job))));
        changes.extend(entry.map(|entry| Change::AppendEntry(Box::new(entry))));
        let batch = Batch {
            expects: vec![Expect::Schedule(Box::new(self.schedule.clone()))],
            changes,
            ..Batch::default()
        };
        out.push(ScheduleEffect::Commit(after.id, batch));
        self.step = ScheduleStep::SavingRun(Box::new(after), job);
    }
}

#[cfg(test)]
mod tests;
