//! What happens to the rows of a job when it is put or removed? It is listed and counted with its
//! first row, and marked while it runs.

use engine::ids::{CustomerId, JobId};
use engine::job::{Job, JobState};
use sled::IVec;

use super::fault::Fault;
use super::key::{self, Key};
use super::kv::{self, Rows, Value};
use super::overlay::Overlay;
use crate::record::job::{read_job, write_job};

/// A job to be put.
pub(super) struct JobRows {
    id: JobId,
    customer: CustomerId,
    state: JobState,
    key: Key,
    value: Value,
}

impl JobRows {
    /// A job to be put.
    pub(super) fn of(job: &Job) -> Self {
        let key = key::job::job(job.id);
        Self {
            id: job.id,
            customer: job.customer.clone(),
            state: job.state,
            value: Value::cut(&key, &write_job(job)),
            key,
        }
    }

    /// The memory it takes while it is queued.
    pub(super) fn bytes(&self) -> usize {
        self.key.len() + self.value.bytes()
    }

    /// Replaces the job.
    pub(super) fn apply(self, rows: &mut Overlay<'_>) -> Result<(), Fault> {
        if rows.row(&self.key)?.is_none() {
            let listed = key::job::of_customer(&self.customer, self.id);
            rows.put(listed.into(), IVec::default());
            rows.add(key::job::counted(&self.customer).into(), 1)?;
        }
        let running = key::job::running(self.id);
        match self.state {
            JobState::Running => rows.put(running.into(), IVec::default()),
            JobState::Done | JobState::Cancelled => rows.remove(running),
        }
        rows.replace(self.key.into(), self.value)
    }
}

/// Removes a job with its request. Its parts may be many rows: they are marked removed and swept
/// later.
pub(super) fn remove(id: JobId, rows: &mut Overlay<'_>) -> Result<(), Fault> {
    unlist(id, rows)?;
    rows.put(key::job::removed(id).into(), IVec::default());
    Ok(())
}

/// Removes a job with its request, and counts it out.
pub(super) fn unlist(id: JobId, rows: &mut Overlay<'_>) -> Result<(), Fault> {
    if let Some(value) = kv::load(rows, &key::job::job(id))? {
        let Job { customer, .. } = read_job(&value)?;
        rows.remove(key::job::of_customer(&customer, id));
        rows.add(key::job::counted(&customer).into(), -1)?;
    }
    rows.remove(key::job::running(id));
    rows.erase(key::job::job(id))?;
    rows.erase(key::job::request(id))?;
    Ok(())
}
