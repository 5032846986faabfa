//! The messages between the handle of jobs and their runner.

use actix::Message;
use engine::idempotency::IdempotencyRecord;
use engine::ids::{CustomerId, JobId, ScheduleId};
use engine::job::Job;
use engine::job::runner::JobRefusal;
use engine::schedule::{Schedule, ScheduleChange, ScheduleContents};
use tokio::sync::oneshot;

/// Where the answer to a command goes.
pub(super) type JobReply<T> = oneshot::Sender<Result<T, JobRefusal>>;

/// A command for jobs, which the supervisor hands to the runner.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) enum JobCommand {
    /// Create a job.
    Create {
        job: Box<Job>,
        record: Option<IdempotencyRecord>,
        reply: JobReply<Job>,
    },
    /// Cancel a job.
    Cancel { id: JobId, reply: JobReply<Job> },
    /// Create a schedule.
    CreateSchedule {
        created: Box<(Schedule, ScheduleContents)>,
        record: Option<IdempotencyRecord>,
        reply: JobReply<Schedule>,
    },
    /// Change a schedule.
    ChangeSchedule {
        id: ScheduleId,
        change: ScheduleChange,
        reply: JobReply<Schedule>,
    },
    /// Say whether a customer may have one more running job.
    CheckRoom {
        customer: CustomerId,
        reply: JobReply<()>,
    },
    /// Stop the jobs and the schedules of a customer that is being removed.
    Forget {
        customer: CustomerId,
        reply: JobReply<()>,
    },
    /// Begin nothing new, because the service stops.
    Quiesce { reply: JobReply<()> },
}

/// What a runner continues.
pub(super) struct StoredJobs {
    /// The running jobs.
    pub(super) running: Vec<Job>,
    /// Every schedule.
    pub(super) schedules: Vec<Schedule>,
}
