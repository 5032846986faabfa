//! The shell of the runner of jobs: performs what [`JobRunner`] decides.

use std::rc::Rc;

use actix::{
    Actor, ActorFutureExt as _, AsyncContext as _, Context, Handler, Recipient, SpawnHandle,
    WrapFuture as _,
};
use engine::change::Batch;
use engine::ids::JobId;
use engine::job::Job;
use engine::job::runner::{JobEffect, JobRunner, PartUnreadable, StoreRoom};
use engine::moment::Timestamp;
use engine::supervision::Generation;
use store::{Pressure, Unavailable};
use tracing::warn;

use super::JobParts;
use super::messages::{JobCommand, JobReply, RunnerPanicked, answer};
use super::meters::JobMeters;
use crate::reply::refusal;

type Machine = JobRunner<JobReply<Job>>;

type Effects = Vec<JobEffect<JobReply<Job>>>;

/// The runner of all jobs.
pub(super) struct RunnerActor {
    parts: Rc<JobParts>,
    machine: Machine,
    meters: JobMeters,
    supervisor: (Recipient<RunnerPanicked>, Generation),
    /// The jobs that it continues.
    first: Vec<Job>,
    /// The armed wake-up.
    armed: Option<(Timestamp, SpawnHandle)>,
}

impl RunnerActor {
    pub(super) fn new(
        parts: Rc<JobParts>,
        first: Vec<Job>,
        meters: JobMeters,
        supervisor: (Recipient<RunnerPanicked>, Generation),
    ) -> Self {
        Self {
            machine: JobRunner::new(parts.running_max),
            parts,
            meters,
            supervisor,
            first,
            armed: None,
        }
    }

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

    fn perform(&mut self, effect: JobEffect<JobReply<Job>>, ctx: &mut Context<Self>) {
        match effect {
            JobEffect::Read { job, part } => {
                let read = self.parts.store.restored_part(job, part).into_actor(self);
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
        }
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

    /// Arms a wake-up for the machine's deadline; an earlier wake-up suffices.
    fn arm(&mut self, ctx: &mut Context<Self>) {
        let Some(at) = self.machine.next_timeout() else {
            return;
        };
        if self.armed.is_some_and(|(armed_at, _)| armed_at <= at) {
            return;
        }
        if let Some((_, handle)) = self.armed.take() {
            ctx.cancel_future(handle);
        }
        let handle = ctx.run_later(self.parts.clock.until(at), |runner, ctx| {
            runner.armed = None;
            let room = match runner.parts.commits.pressure() {
                Pressure::Open => StoreRoom::Open,
                Pressure::Full | Pressure::DiskFull | Pressure::Failed => StoreRoom::Full,
            };
            runner.take(ctx, |machine, now, out| {
                machine.handle_timeout(now, room, out);
            });
        });
        self.armed = Some((at, handle));
    }
}

impl Actor for RunnerActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let first = std::mem::take(&mut self.first);
        self.take(ctx, |machine, _, out| machine.restore(first, out));
    }
}

impl Drop for RunnerActor {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (supervisor, generation) = &self.supervisor;
            supervisor.do_send(RunnerPanicked(*generation));
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
