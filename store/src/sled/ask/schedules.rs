//! Which schedules are there, and which requests of their last jobs are open?

use engine::action::Status;
use engine::ids::{CustomerId, JobId, ScheduleId};
use engine::job::JobOutcome;
use engine::query::{Page, PageRequest};
use engine::schedule::{OpenRequest, Schedule, ScheduleContents};
use sled::Db;

use super::jobs::job;
use super::{load, newest_page, rows_of};
use crate::record::action::read_status;
use crate::record::job::read_job_part;
use crate::record::schedule::{read_schedule, read_schedule_contents};
use crate::sled::fault::Fault;
use crate::sled::{key, kv};

/// A schedule of a customer.
pub(in crate::sled) fn schedule(
    db: &Db,
    customer: &CustomerId,
    id: ScheduleId,
) -> Result<Option<Schedule>, Fault> {
    load(db, &key::schedule::schedule(customer, id), read_schedule)
}

/// A page of the schedules of a customer, newest first. A customer has a bounded number of them.
pub(in crate::sled) fn schedules_of(
    db: &Db,
    customer: &CustomerId,
    page: PageRequest,
) -> Result<Page<Schedule>, Fault> {
    let schedules = key::schedule::all_of(customer);
    newest_page(db, &schedules, page, read_schedule)
}

/// Every schedule.
pub(in crate::sled) fn all(db: &Db) -> Result<Vec<Schedule>, Fault> {
    let mut schedules = Vec::new();
    for key in rows_of(db, &key::schedule::all()).keys() {
        schedules.extend(load(db, &key?, read_schedule)?);
    }
    Ok(schedules)
}

/// The contents of a schedule.
pub(in crate::sled) fn contents(
    db: &Db,
    id: ScheduleId,
) -> Result<Option<ScheduleContents>, Fault> {
    load(db, &key::schedule::contents(id), read_schedule_contents)
}

/// The requests for the devices of a part that are not final; nothing if there is no such part.
pub(in crate::sled) fn open_requests(
    db: &Db,
    id: JobId,
    number: u32,
) -> Result<Option<Vec<OpenRequest>>, Fault> {
    let part = load(db, &key::job::part(id, number), read_job_part)?;
    let Some((_, devices)) = job(db, id)?.zip(part) else {
        return Ok(None);
    };
    let mut open = Vec::new();
    for device in devices {
        let action = match device.outcome {
            Some(JobOutcome::Accepted(action) | JobOutcome::RequestOpen(action)) => action,
            Some(JobOutcome::Refused(_) | JobOutcome::Unserved(_)) | None => continue,
        };
        let status = db.get(key::action::action(action))?;
        let status = status.map(|head| read_status(kv::beginning(&head)));
        if status.transpose()?.is_some_and(Status::is_pending) {
            open.push((device.device, action));
        }
    }
    Ok(Some(open))
}
