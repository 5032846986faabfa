//! What does the runner of jobs read?

use engine::ids::{JobId, ScheduleId};
use engine::job::{Job, RestoredPart};
use engine::schedule::{OpenRequest, Schedule, ScheduleContents};

use crate::ReadAnswer;

/// The queries of running jobs.
pub trait JobReads: Send + Sync {
    /// The jobs that are running, the oldest first; read at the start.
    fn running_jobs(&self) -> ReadAnswer<Vec<Job>>;

    /// A part of a job, with its request and the requests that were created for it; nothing if the
    /// job was removed.
    fn restored_part(&self, job: JobId, part: u32) -> ReadAnswer<Option<RestoredPart>>;

    /// Every schedule; read at the start.
    fn schedules(&self) -> ReadAnswer<Vec<Schedule>>;

    /// What the jobs of a schedule request of which devices; nothing if it was removed.
    fn schedule_contents(&self, schedule: ScheduleId) -> ReadAnswer<Option<ScheduleContents>>;

    /// The requests for the devices of a part that are not final; nothing if there is no such part.
    fn open_requests(&self, job: JobId, part: u32) -> ReadAnswer<Option<Vec<OpenRequest>>>;
}
