//! How does the rest of the service reach running jobs? By the id of a job.

mod messages;
mod meters;
mod runner;
mod supervisor;

use std::sync::Arc;

use actix::{Actor as _, Addr};
use engine::idempotency::IdempotencyRecord;
use engine::ids::{CustomerId, JobId};
use engine::job::Job;
use engine::job::runner::JobRefusal;
use engine::supervision::Unserved;
use store::{Commit, JobReads};
use tokio::sync::oneshot;
use tracing::warn;

use crate::clock::Clock;
use crate::devices::Devices;

use messages::{JobCommand, JobReply};
use supervisor::JobSupervisor;

/// What jobs need.
#[derive(Clone)]
pub struct JobParts {
    /// The clock.
    pub clock: Clock,
    /// Commits the progress of jobs.
    pub commits: Arc<dyn Commit>,
    /// Reads running jobs.
    pub store: Arc<dyn JobReads>,
    /// Submits requests.
    pub devices: Devices,
    /// The most running jobs of a customer.
    pub running_max: u32,
}

/// The handle to all running jobs.
#[derive(Clone)]
pub struct Jobs {
    supervisor: Addr<JobSupervisor>,
}

impl Jobs {
    /// Starts the supervisor, which continues these jobs.
    pub fn start(parts: JobParts, running: Vec<Job>) -> Self {
        let supervisor = JobSupervisor::new(parts, running).start();
        Self { supervisor }
    }

    /// Creates a job whose contents are stored, and the idempotency record of its call with it;
    /// when this answers Ok it is durable and runs.
    pub async fn create(
        &self,
        job: Job,
        record: Option<IdempotencyRecord>,
    ) -> Result<Job, JobRefusal> {
        let job = Box::new(job);
        self.ask(|reply| JobCommand::Create { job, record, reply })
            .await
    }

    /// Cancels a job; when this answers Ok, that is durable and no device is asked any more.
    pub async fn cancel(&self, id: JobId) -> Result<Job, JobRefusal> {
        self.ask(|reply| JobCommand::Cancel { id, reply }).await
    }

    /// Whether a customer may have one more running job.
    pub async fn check_room(&self, customer: CustomerId) -> Result<(), JobRefusal> {
        self.ask(|reply| JobCommand::CheckRoom { customer, reply })
            .await
    }

    /// Stops the jobs of a customer that is being removed.
    pub async fn forget(&self, customer: CustomerId) {
        let forgotten = self.ask(|reply| JobCommand::Forget { customer, reply });
        if let Err(error) = forgotten.await {
            warn!(%error, "jobs of a removed customer stop when they are saved");
        }
    }

    /// Begins nothing new from then on; the next start continues every running job.
    pub async fn quiesce(&self) -> Result<(), JobRefusal> {
        self.ask(|reply| JobCommand::Quiesce { reply }).await
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(JobReply<T>) -> JobCommand,
    ) -> Result<T, JobRefusal> {
        let (reply, answer) = oneshot::channel();
        let sent = self.supervisor.try_send(command(reply));
        sent.map_err(|_| JobRefusal::Unserved(Unserved::Busy))?;
        let failed = Err(JobRefusal::Unserved(Unserved::Failed));
        answer.await.unwrap_or(failed)
    }
}
