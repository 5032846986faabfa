//! What does the runner of jobs read?

use engine::ids::JobId;
use engine::job::{Job, RestoredPart};

use crate::ReadAnswer;

/// The queries of running jobs.
pub trait JobReads: Send + Sync {
    /// The jobs that are running, the oldest first; read at the start.
    fn running_jobs(&self) -> ReadAnswer<Vec<Job>>;

    /// A part of a job, with its request and the requests that were created for it; nothing if the
    /// job was removed.
    fn restored_part(&self, job: JobId, part: u32) -> ReadAnswer<Option<RestoredPart>>;
}
