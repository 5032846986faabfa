//! Decisions about jobs that no runner has yet, or no longer: what a new one consists of, and how
//! jobs are removed.

use std::iter;

use crate::action::NewAction;
use crate::change::{Batch, Change};
use crate::ids::JobId;
use crate::job::{Job, JobDevice};
use crate::limits::{JOB_PART_DEVICES, JOB_PARTS_COMMITTED};

/// The batches that store the request and the devices of a new job, before the job itself.
pub fn contents_of(
    job: JobId,
    request: NewAction,
    devices: Vec<JobDevice>,
) -> impl Iterator<Item = Batch> {
    let request = Change::PutJobRequest {
        job,
        request: Box::new(request),
    };
    let size = usize::try_from(JOB_PART_DEVICES).expect("a small number");
    let mut devices = devices.into_iter().peekable();
    let mut part = 0;
    let parts = iter::from_fn(move || {
        devices.peek()?;
        let devices = devices.by_ref().take(size).collect();
        let put = Change::PutJobPart { job, part, devices };
        part += 1;
        Some(put)
    });
    let mut changes = iter::once(request).chain(parts).peekable();
    iter::from_fn(move || {
        changes.peek()?;
        Some(batch_of(
            changes.by_ref().take(JOB_PARTS_COMMITTED).collect(),
        ))
    })
}

/// The batch that removes jobs.
pub fn removal_of(jobs: &[Job]) -> Batch {
    batch_of(jobs.iter().map(|job| Change::RemoveJob(job.id)).collect())
}

fn batch_of(changes: Vec<Change>) -> Batch {
    Batch {
        changes,
        ..Batch::default()
    }
}
