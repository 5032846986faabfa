//! The shell of the runner of jobs: performs what [`JobRunner`] decides.

use std::rc::Rc;

use actix::{Actor, ActorFutureExt as _, AsyncContext as _, Context, Handler, WrapFuture as _};
use engine::change::Batch;
use engine::ids::{JobId, ScheduleId};
use engine::job::Job;
use engine::job::runner::schedules::ScheduleEffect;
use engine::job::runner::{JobEffect, JobRunner, PartUnreadable, StoreRoom};
use engine::moment::Timestamp;
use engine::schedule::Schedule;
use store::{Pressure, Unavailable};
use tracing::warn;

use super::JobParts;
use super::messages::{JobCommand, JobReply, StoredJobs};
use super::meters::JobMeters;
use super::preparation::prepared;
use crate::deadline_timer::{DeadlineTimer, SLEEP_MS_MAX};
use crate::reply::{answer, refusal};
use crate::runner::{PanicReport, Runner};

type Machine = JobRunner<JobReply<Job>, JobReply<Schedule>>;

type Effect = JobEffect<JobReply<Job>, JobReply<Schedule>>;

type Effects = Vec<Effect>;

/// The runner of all jobs.
pub(super) struct RunnerActor {
    parts: Rc<JobParts>,
    machine: Machine,
    meters: JobMeters,
    /// What it continues.
    first: Option<StoredJobs>,
    timer: DeadlineTimer,
    _report: PanicReport,
}

impl Runner for RunnerActor {
    const WHAT: &'static str = "jobs";

    type Command = JobCommand;
    type Parts = JobParts;
    type Stored = StoredJobs;

    fn new(parts: Rc<JobParts>, stored: StoredJobs, report: PanicReport) -> Self {
        Self {
            machine: JobRunner::new(parts.limits),
            parts,
            meters: JobMeters::new(),
            first: Some(stored),
            timer: DeadlineTimer::default(),
            _report: report,
        }
    }

    async fn read(parts: Rc<JobParts>) -> Result<StoredJobs, Unavailable> {
        let store = &parts.selection.store;
        let schedules = store.schedules().await?;
        let running = store.running_jobs().await?;
        Ok(StoredJobs { running, schedules })
    }
}

impl RunnerActor {
    /// Gives the machine an input, and performs its effects.
    fn take(
        &mut self,
        ctx: &mut Context<Self>,
        input: impl FnOnce(&mut Machine, Timestamp, &mut Effects),
    ) {
        let mut out = Vec::new();
        input(&mut self.machine, self.parts.clock.now(), &mut out);
        for effect in out {
            self.perform(effect, ctx);
        }
        self.meters.running.set(self.machine.running() as f64);
        self.arm(ctx);
    }

    fn perform(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        match effect {
            JobEffect::Read { job, part } => {
                let read = self
                    .parts
                    .selection
                    .store
                    .restored_part(job, part)
                    .into_actor(self);
                ctx.spawn(read.map(move |read, runner, ctx| {
                    let read = read.map_err(|Unavailable| PartUnreadable);
                    runner.take(ctx, |machine, now, out| {
                        machine.handle_part(now, job, read, out);
                    });
                }));
            }
            JobEffect::Submit {
                job,
                place,
                device,
                request,
            } => {
                let submitted = self.parts.devices.submit(device, *request);
                ctx.spawn(submitted.into_actor(self).map(move |answer, runner, ctx| {
                    let answer = answer.map(|submitted| submitted.map(|accepted| accepted.id));
                    runner.take(ctx, |machine, now, out| {
                        machine.handle_answer(now, (job, place), answer, out);
                    });
                }));
            }
            JobEffect::Commit(job, batch) => self.commit(job, batch, ctx),
            JobEffect::Answer(reply, answered) => answer(reply, answered),
            JobEffect::Count { accepted, rejected } => {
                self.meters.accepted.increment(accepted.into());
                self.meters.rejected.increment(rejected.into());
            }
            JobEffect::Schedule(effect) => self.perform_for_schedule(effect, ctx),
        }
    }

    fn perform_for_schedule(
        &mut self,
        effect: ScheduleEffect<JobReply<Schedule>>,
        ctx: &mut Context<Self>,
    ) {
        match effect {
            ScheduleEffect::Prepare(schedule) => {
                let (parts, id) = (Rc::clone(&self.parts), schedule.id);
                let run = async move { prepared(&parts, &schedule).await };
                ctx.spawn(run.into_actor(self).map(move |run, runner, ctx| {
                    let mut moment = runner.parts.clock.moment();
                    runner.take(ctx, |machine, _, out| {
                        machine.handle_prepared(&mut moment, id, run, out);
                    });
                }));
            }
            ScheduleEffect::Commit(schedule, batch) => {
                self.commit_for_schedule(schedule, batch, ctx);
            }
            ScheduleEffect::Answer(reply, answered) => answer(reply, answered),
        }
    }

    fn commit_for_schedule(&self, id: ScheduleId, batch: Batch, ctx: &mut Context<Self>) {
        let receipt = self.parts.commits.commit(batch).into_actor(self);
        ctx.spawn(receipt.map(move |receipt, runner, ctx| {
            if let Err(error) = &receipt {
                warn!(schedule = %id, %error, "a step of a schedule was not saved");
            }
            let receipt = receipt.map_err(refusal);
            runner.take(ctx, |machine, now, out| {
                machine.handle_schedule_receipt(now, id, receipt, out);
            });
        }));
    }

    fn commit(&self, job: JobId, batch: Batch, ctx: &mut Context<Self>) {
        let receipt = self.parts.commits.commit(batch).into_actor(self);
        ctx.spawn(receipt.map(move |receipt, runner, ctx| {
            if let Err(error) = &receipt {
                warn!(%job, %error, "a step of a job was not saved");
            }
            let receipt = receipt.map_err(refusal);
            runner.take(ctx, |machine, now, out| {
                machine.handle_receipt(now, job, receipt, out);
            });
        }));
    }

    /// Arms the timer for the machine's deadline.
    fn arm(&mut self, ctx: &mut Context<Self>) {
        let Some(at) = self.machine.next_timeout() else {
            return;
        };
        let at = at.min(self.parts.clock.now().plus_ms(SLEEP_MS_MAX));
        let (clock, timer) = (&self.parts.clock, &mut self.timer);
        timer.arm(ctx, clock, at, |runner, ctx| {
            runner.timer.note_fired();
            let room = match runner.parts.commits.pressure() {
                Pressure::Open => StoreRoom::Open,
                Pressure::Full | Pressure::DiskFull | Pressure::Unreachable | Pressure::Failed => {
                    StoreRoom::Full
                }
            };
            runner.take(ctx, |machine, now, out| {
                machine.handle_timeout(now, room, out);
            });
        });
    }
}

impl Actor for RunnerActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        if let Some(StoredJobs { running, schedules }) = self.first.take() {
            self.take(ctx, |machine, _, out| {
                machine.restore(running, schedules, out);
            });
        }
    }
}

impl Handler<JobCommand> for RunnerActor {
    type Result = ();

    fn handle(&mut self, command: JobCommand, ctx: &mut Context<Self>) {
        match command {
            JobCommand::Create { job, record, reply } => self.take(ctx, |machine, _, out| {
                machine.create(*job, record, reply, out);
            }),
            JobCommand::Cancel { id, reply } => self.take(ctx, |machine, now, out| {
                machine.cancel(now, id, reply, out);
            }),
            JobCommand::CreateSchedule {
                created,
                record,
                reply,
            } => self.take(ctx, |machine, _, out| {
                let (schedule, contents) = *created;
                machine.create_schedule(schedule, contents, record, reply, out);
            }),
            JobCommand::ChangeSchedule { id, change, reply } => {
                self.take(ctx, |machine, now, out| {
                    machine.change_schedule(now, id, change, reply, out);
                });
            }
            JobCommand::CheckRoom { customer, reply } => {
                answer(reply, self.machine.check_room(&customer));
            }
            JobCommand::Forget { customer, reply } => {
                self.take(ctx, |machine, _, out| machine.forget(&customer, out));
                answer(reply, Ok(()));
            }
            JobCommand::Quiesce { reply } => {
                self.machine.quiesce();
                answer(reply, Ok(()));
            }
        }
    }
}
