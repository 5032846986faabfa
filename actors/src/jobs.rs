//! How does the rest of the service reach running jobs and schedules? By their ids.

mod messages;
mod meters;
mod preparation;
mod runner;
pub mod selection;

use std::sync::Arc;

use engine::idempotency::IdempotencyRecord;
use engine::ids::{CustomerId, JobId, ScheduleId};
use engine::job::Job;
use engine::job::runner::{JobLimits, JobRefusal};
use engine::schedule::{Schedule, ScheduleChange, ScheduleContents};
use store::Commit;
use tracing::warn;

use crate::clock::Clock;
use crate::devices::Devices;
use crate::runner::{RunnerHandle, RunnerParts};

use messages::{JobCommand, StoredJobs};
use runner::RunnerActor;
use selection::DeviceSelection;

/// What jobs need.
#[derive(Clone)]
pub struct JobParts {
    /// The clock.
    pub clock: Clock,
    /// Commits the progress of jobs.
    pub commits: Arc<dyn Commit>,
    /// Reads running jobs and schedules, and the devices of jobs.
    pub selection: DeviceSelection,
    /// Submits requests.
    pub devices: Devices,
    /// The most of a customer that there may be.
    pub limits: JobLimits,
}

impl RunnerParts for JobParts {
    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn commits(&self) -> &dyn Commit {
        &*self.commits
    }
}

/// The handle to all running jobs and schedules.
#[derive(Clone)]
pub struct Jobs {
    /// Reads the devices of jobs.
    pub selection: DeviceSelection,
    runner: RunnerHandle<RunnerActor>,
}

impl Jobs {
    /// Starts the supervisor, which continues these jobs and schedules.
    pub fn start(parts: JobParts, running: Vec<Job>, schedules: Vec<Schedule>) -> Self {
        let stored = StoredJobs { running, schedules };
        Self {
            selection: parts.selection.clone(),
            runner: RunnerHandle::start(parts, stored),
        }
    }

    /// Creates a job whose contents are stored, and the idempotency record of its call with it;
    /// when this answers Ok it is durable and runs.
    pub async fn create(
        &self,
        job: Job,
        record: Option<IdempotencyRecord>,
    ) -> Result<Job, JobRefusal> {
        let job = Box::new(job);
        self.runner
            .ask(|reply| JobCommand::Create { job, record, reply })
            .await
    }

    /// Cancels a job; when this answers Ok, that is durable and no device is asked any more.
    pub async fn cancel(&self, id: JobId) -> Result<Job, JobRefusal> {
        self.runner
            .ask(|reply| JobCommand::Cancel { id, reply })
            .await
    }

    /// Creates a schedule with its contents, and the idempotency record of its call with it; when
    /// this answers Ok it is durable.
    pub async fn create_schedule(
        &self,
        schedule: Schedule,
        contents: ScheduleContents,
        record: Option<IdempotencyRecord>,
    ) -> Result<Schedule, JobRefusal> {
        let created = Box::new((schedule, contents));
        self.runner
            .ask(|reply| JobCommand::CreateSchedule {
                created,
                record,
                reply,
            })
            .await
    }

    /// Changes a schedule; when this answers Ok, that is durable.
    pub async fn change_schedule(
        &self,
        id: ScheduleId,
        change: ScheduleChange,
    ) -> Result<Schedule, JobRefusal> {
        self.runner
            .ask(|reply| JobCommand::ChangeSchedule { id, change, reply })
            .await
    }

    /// Whether a customer may have one more running job.
    pub async fn check_room(&self, customer: CustomerId) -> Result<(), JobRefusal> {
        self.runner
            .ask(|reply| JobCommand::CheckRoom { customer, reply })
            .await
    }

    /// Stops the jobs and the schedules of a customer that is being removed.
    pub async fn forget(&self, customer: CustomerId) {
        let forgotten = self
            .runner
            .ask(|reply| JobCommand::Forget { customer, reply });
        if let Err(error) = forgotten.await {
            warn!(%error, "jobs of a removed customer stop when they are saved");
        }
    }

    /// Begins nothing new from then on; the next start continues every running job.
    pub async fn quiesce(&self) -> Result<(), JobRefusal> {
        self.runner.ask(|reply| JobCommand::Quiesce { reply }).await
    }
}
