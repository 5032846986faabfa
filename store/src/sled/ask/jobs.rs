//! Which jobs are there, and what became of their devices?

use engine::action::NewAction;
use engine::idempotency::CreatedByCall;
use engine::ids::{CustomerId, JobId};
use engine::job::{Job, JobDevice, RestoredPart};
use engine::limits::JOB_PART_DEVICES;
use engine::query::{Page, PageRequest};
use sled::Db;

use super::actions::idempotency_records;
use super::{count, load, rows_of};
use crate::record::Unreadable;
use crate::record::job::{read_job, read_job_part, read_job_request};
use crate::sled::fault::Fault;
use crate::sled::key;

/// A job.
pub(in crate::sled) fn job(db: &Db, id: JobId) -> Result<Option<Job>, Fault> {
    load(db, &key::job::job(id), read_job)
}

/// A page of the jobs of a customer, newest first.
pub(in crate::sled) fn jobs_of(
    db: &Db,
    customer: &CustomerId,
    page: PageRequest,
) -> Result<Page<Job>, Fault> {
    let total = count(db, &key::job::counted(customer))?;
    let skip = usize::try_from(page.skip()).unwrap_or(usize::MAX);
    let size = usize::try_from(page.size).unwrap_or(usize::MAX);
    let mut items = Vec::new();
    if page.skip() < total {
        let keys = rows_of(db, &key::job::all_of(customer)).keys().rev();
        for key in keys.skip(skip).take(size) {
            items.extend(job(db, id_in(key::last_id(&key?))?)?);
        }
    }
    Ok(Page { items, total })
}

/// The running jobs, the oldest first.
pub(in crate::sled) fn running_jobs(db: &Db) -> Result<Vec<Job>, Fault> {
    let mut running = Vec::new();
    for key in rows_of(db, &key::job::all_running()).keys() {
        running.extend(job(db, id_in(key::last_id(&key?))?)?);
    }
    Ok(running)
}

/// A page of the devices of a job. Every part but the last has the same number of them.
pub(in crate::sled) fn job_devices(
    db: &Db,
    id: JobId,
    page: PageRequest,
) -> Result<Vec<JobDevice>, Fault> {
    let size = u64::from(JOB_PART_DEVICES);
    let (first, mut skip) = (page.skip() / size, page.skip() % size);
    let mut devices = Vec::new();
    let mut left = usize::try_from(page.size).unwrap_or(usize::MAX);
    for number in first.. {
        let Ok(number) = u32::try_from(number) else {
            break;
        };
        let Some(part) = load(db, &key::job::part(id, number), read_job_part)? else {
            break;
        };
        let skipped = usize::try_from(skip).unwrap_or(usize::MAX);
        devices.extend(part.into_iter().skip(skipped).take(left));
        skip = 0;
        left = usize::try_from(page.size).unwrap_or(usize::MAX) - devices.len();
        if left == 0 {
            break;
        }
    }
    Ok(devices)
}

/// A part of a job, with its request and what was created for it.
pub(in crate::sled) fn restored_part(
    db: &Db,
    id: JobId,
    number: u32,
) -> Result<Option<RestoredPart>, Fault> {
    let Some(job) = job(db, id)? else {
        return Ok(None);
    };
    let request: Option<NewAction> = load(db, &key::job::request(id), read_job_request)?;
    let devices = load(db, &key::job::part(id, number), read_job_part)?;
    let Some((request, devices)) = request.zip(devices) else {
        return Ok(None);
    };
    let records = idempotency_records(db, job.call(number).key)?;
    let created = records
        .into_iter()
        .filter_map(|record| match record.created {
            CreatedByCall::Action { device, action } => Some((device.key, action)),
            CreatedByCall::Answered(_) => None,
        });
    Ok(Some(RestoredPart {
        devices,
        request,
        created: created.collect(),
    }))
}

fn id_in(bytes: Option<[u8; 16]>) -> Result<JobId, Fault> {
    let bytes = bytes.ok_or(Unreadable::Damaged("an index of jobs"))?;
    Ok(JobId::from_bytes(bytes))
}
