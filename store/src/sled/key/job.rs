//! What are the keys of jobs?
//!
//! Jobs, their requests and their parts are ordered by the ids of jobs, and so by their age.

use engine::ids::{CustomerId, JobId};

use super::{Builder, Key, Table, append, first_id, rest_of};

/// A job.
pub(crate) fn job(id: JobId) -> Key {
    append(jobs(), id.as_bytes())
}

/// The prefix of the keys of jobs.
pub(crate) fn jobs() -> Key {
    Builder::of(Table::Job).end()
}

/// The request of a job.
pub(crate) fn request(job: JobId) -> Key {
    append(requests(), job.as_bytes())
}

/// The prefix of the keys of the requests of jobs.
pub(crate) fn requests() -> Key {
    Builder::of(Table::JobRequest).end()
}

/// A part of the devices of a job.
pub(crate) fn part(job: JobId, number: u32) -> Key {
    append(parts_of(job), &number.to_be_bytes())
}

/// The prefix of the keys of the parts of a job.
pub(crate) fn parts_of(job: JobId) -> Key {
    append(parts(), job.as_bytes())
}

/// The prefix of the keys of all parts.
pub(crate) fn parts() -> Key {
    Builder::of(Table::JobPart).end()
}

/// Index: a job of a customer.
pub(crate) fn of_customer(customer: &CustomerId, job: JobId) -> Key {
    append(all_of(customer), job.as_bytes())
}

/// The prefix of the keys of the jobs of a customer.
pub(crate) fn all_of(customer: &CustomerId) -> Key {
    Builder::of(Table::JobOfCustomer)
        .text(customer.as_str())
        .end()
}

/// How many jobs a customer has; the store maintains this count itself.
pub(crate) fn counted(customer: &CustomerId) -> Key {
    Builder::of(Table::JobsCounted)
        .text(customer.as_str())
        .end()
}

/// Marks a running job.
pub(crate) fn running(job: JobId) -> Key {
    append(all_running(), job.as_bytes())
}

/// The prefix of the keys that mark running jobs.
pub(crate) fn all_running() -> Key {
    Builder::of(Table::RunningJob).end()
}

/// Marks a job that was removed before its age.
pub(crate) fn removed(job: JobId) -> Key {
    append(all_removed(), job.as_bytes())
}

/// The prefix of the keys that mark removed jobs.
pub(crate) fn all_removed() -> Key {
    Builder::of(Table::RemovedJob).end()
}

/// The job that a removed job's mark names.
pub(crate) fn job_of_removed(mark: &[u8]) -> Option<JobId> {
    first_id(rest_of(mark, &all_removed())).map(JobId::from_bytes)
}
