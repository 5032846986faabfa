//! Which jobs and schedules are there, and what became of their devices?

use std::collections::HashMap;

use engine::idempotency::CreatedByCall;
use engine::ids::{ActionId, CustomerId, DeviceKey, JobId, ScheduleId};
use engine::job::{Job, JobDevice, JobOutcome, RestoredPart};
use engine::limits::JOB_PART_DEVICES;
use engine::query::{Page, PageRequest};
use engine::schedule::{OpenRequest, Schedule, ScheduleContents};

use super::actions::idempotency_records;
use super::{id_in, page_of_owner, record, record_in, records};
use crate::postgres::PostgresStore;
use crate::postgres::fault::PostgresFault;
use crate::postgres::readers::Reader;
use crate::postgres::sql_types::SqlId;
use crate::record::job::{read_job, read_job_part, read_job_request};
use crate::record::schedule::{read_schedule, read_schedule_contents};
use crate::{JobReads, ReadAnswer};

impl JobReads for PostgresStore {
    fn running_jobs(&self) -> ReadAnswer<Vec<Job>> {
        const SQL: &str = "SELECT record FROM job WHERE running ORDER BY id";
        self.readers
            .list(move |reader| async move { records(&reader.rows(SQL, &[]).await?, read_job) })
    }

    fn restored_part(&self, job: JobId, part: u32) -> ReadAnswer<Option<RestoredPart>> {
        self.readers
            .ask(move |reader| async move { restored_part(&reader, job, part).await })
    }

    fn schedules(&self) -> ReadAnswer<Vec<Schedule>> {
        const SQL: &str = "SELECT record FROM schedule ORDER BY customer, id";
        self.readers.list(move |reader| async move {
            records(&reader.rows(SQL, &[]).await?, read_schedule)
        })
    }

    fn schedule_contents(&self, schedule: ScheduleId) -> ReadAnswer<Option<ScheduleContents>> {
        self.readers
            .ask(move |reader| async move { schedule_contents(&reader, schedule).await })
    }

    fn open_requests(&self, job: JobId, part: u32) -> ReadAnswer<Option<Vec<OpenRequest>>> {
        self.readers
            .ask(move |reader| async move { open_requests(&reader, job, part).await })
    }
}

/// A job.
pub(super) async fn job(reader: &Reader, id: JobId) -> Result<Option<Job>, PostgresFault> {
    const SQL: &str = "SELECT record FROM job WHERE id = $1";
    record_in(reader.row(SQL, &[&SqlId(*id.as_bytes())]).await?, read_job)
}

/// A page of the jobs of a customer, newest first.
pub(super) async fn jobs_of(
    reader: &Reader,
    customer: &CustomerId,
    page: PageRequest,
) -> Result<Page<Job>, PostgresFault> {
    const COUNT: &str = "SELECT count(*) FROM job WHERE customer = $1";
    // What is skipped is read from the index alone.
    const PAGE: &str = "SELECT record FROM job WHERE id IN ( \
            SELECT id FROM job WHERE customer = $1 ORDER BY id DESC OFFSET $2 LIMIT $3) \
        ORDER BY id DESC";
    page_of_owner(reader, [COUNT, PAGE], &customer.as_str(), page, read_job).await
}

/// A page of the devices of a job. Every part but the last has the same number of them.
pub(super) async fn job_devices(
    reader: &Reader,
    id: JobId,
    page: PageRequest,
) -> Result<Vec<JobDevice>, PostgresFault> {
    const SQL: &str = "SELECT part, record FROM job_part \
        WHERE job = $1 AND part >= $2 AND part < $3 ORDER BY part";
    let size = u64::from(JOB_PART_DEVICES);
    let end = page.skip().saturating_add(u64::from(page.size));
    let parts = [page.skip() / size, end.div_ceil(size)];
    let [first, end] = parts.map(|part| i64::try_from(part).unwrap_or(i64::MAX));
    let rows = reader
        .rows(SQL, &[&SqlId(*id.as_bytes()), &first, &end])
        .await?;
    let mut devices = Vec::new();
    for (row, number) in rows.iter().zip(first..) {
        let part: i64 = row.try_get(0)?;
        if part != number {
            break;
        }
        devices.extend(record(row, 1, read_job_part)?);
    }
    let skip = usize::try_from(page.skip() % size).unwrap_or(usize::MAX);
    let size = usize::try_from(page.size).unwrap_or(usize::MAX);
    Ok(devices.into_iter().skip(skip).take(size).collect())
}

/// A schedule of a customer.
pub(super) async fn schedule(
    reader: &Reader,
    customer: &CustomerId,
    id: ScheduleId,
) -> Result<Option<Schedule>, PostgresFault> {
    const SQL: &str = "SELECT record FROM schedule WHERE customer = $1 AND id = $2";
    let id = SqlId(*id.as_bytes());
    let row = reader.row(SQL, &[&customer.as_str(), &id]).await?;
    record_in(row, read_schedule)
}

/// A page of the schedules of a customer, newest first. A customer has a bounded number of them.
pub(super) async fn schedules_of(
    reader: &Reader,
    customer: &CustomerId,
    page: PageRequest,
) -> Result<Page<Schedule>, PostgresFault> {
    const COUNT: &str = "SELECT count(*) FROM schedule WHERE customer = $1";
    const PAGE: &str = "SELECT record FROM schedule WHERE customer = $1 \
        ORDER BY id DESC OFFSET $2 LIMIT $3";
    page_of_owner(
        reader,
        [COUNT, PAGE],
        &customer.as_str(),
        page,
        read_schedule,
    )
    .await
}

async fn schedule_contents(
    reader: &Reader,
    id: ScheduleId,
) -> Result<Option<ScheduleContents>, PostgresFault> {
    const SQL: &str = "SELECT record FROM schedule_contents WHERE schedule = $1";
    let row = reader.row(SQL, &[&SqlId(*id.as_bytes())]).await?;
    record_in(row, read_schedule_contents)
}

/// The devices of a part of a job.
async fn part(
    reader: &Reader,
    id: JobId,
    number: u32,
) -> Result<Option<Vec<JobDevice>>, PostgresFault> {
    const SQL: &str = "SELECT record FROM job_part WHERE job = $1 AND part = $2";
    let (id, number) = (SqlId(*id.as_bytes()), i64::from(number));
    record_in(reader.row(SQL, &[&id, &number]).await?, read_job_part)
}

/// A part of a job, with its request and what was created for it.
async fn restored_part(
    reader: &Reader,
    id: JobId,
    number: u32,
) -> Result<Option<RestoredPart>, PostgresFault> {
    const REQUEST: &str = "SELECT record FROM job_request WHERE job = $1";
    let Some(job) = job(reader, id).await? else {
        return Ok(None);
    };
    let request = reader.row(REQUEST, &[&SqlId(*id.as_bytes())]).await?;
    let request = record_in(request, read_job_request)?;
    let Some((request, devices)) = request.zip(part(reader, id, number).await?) else {
        return Ok(None);
    };
    let records = idempotency_records(reader, job.call(number).key).await?;
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

/// The requests for the devices of a part that are not final; nothing if there is no such part.
async fn open_requests(
    reader: &Reader,
    id: JobId,
    number: u32,
) -> Result<Option<Vec<OpenRequest>>, PostgresFault> {
    const SQL: &str = "SELECT id, device FROM action WHERE id = ANY($1) AND status <= 2";
    let devices = part(reader, id, number).await?;
    let Some((job, devices)) = job(reader, id).await?.zip(devices) else {
        return Ok(None);
    };
    let mut requests = Vec::new();
    for device in devices {
        match device.outcome {
            Some(JobOutcome::Accepted(action) | JobOutcome::RequestOpen(action)) => {
                requests.push((device.device, action));
            }
            Some(JobOutcome::Refused(_) | JobOutcome::Unserved(_)) | None => {}
        }
    }
    let ids: Vec<SqlId> = requests
        .iter()
        .map(|(_, action)| SqlId(*action.as_bytes()))
        .collect();
    let mut device_by_open = HashMap::new();
    for row in reader.rows(SQL, &[&ids]).await? {
        let action = ActionId::from_bytes(id_in(&row, 0)?);
        device_by_open.insert(action, DeviceKey::from_bytes(id_in(&row, 1)?));
    }
    requests.retain(|(device, action)| {
        let key = DeviceKey::of(&job.customer, device);
        device_by_open.get(action) == Some(&key)
    });
    Ok(Some(requests))
}
