//! How are a schedule and its contents stored?

use engine::ids::{JobId, ScheduleId};
use engine::moment::Timestamp;
use engine::query::devices::DeviceFilter;
use engine::schedule::{
    Recurrence, Rhythm, RunOutcome, Schedule, ScheduleContents, ScheduleTarget, ScheduledRun,
};
use engine::zone::{TimeOfDay, Zone};
use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};

use super::customer::customer_id;
use super::job::{JobRequestV1, job_request_record, new_action_of};
use super::profile::{TagV1, device_id, read_tag, tag_record};
use super::{Unreadable, code, damaged, read, write};

const VERSION: u8 = 1;

#[derive(Decode, Encode)]
#[cbor(array)]
struct ScheduleV1<'a> {
    #[n(0)]
    id: ByteArray<16>,
    #[b(1)]
    customer: &'a str,
    #[b(2)]
    name: Option<&'a str>,
    #[n(3)]
    created_at_ms: i64,
    #[b(4)]
    rhythm: RhythmV1<'a>,
    #[n(5)]
    start_ms: i64,
    #[n(6)]
    end_ms: Option<i64>,
    #[n(7)]
    is_paused: bool,
    #[n(8)]
    next_ms: Option<i64>,
    #[n(9)]
    last: Option<RunV1>,
    #[n(10)]
    last_job: Option<ByteArray<16>>,
}

#[derive(Decode, Encode)]
enum RhythmV1<'a> {
    #[n(0)]
    #[cbor(array)]
    Every(#[n(0)] u32),
    #[n(1)]
    #[cbor(array)]
    Daily {
        #[b(0)]
        at: &'a str,
        #[b(1)]
        zone: &'a str,
    },
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct RunV1 {
    #[n(0)]
    due_ms: i64,
    #[n(1)]
    at_ms: i64,
    #[n(2)]
    outcome: RunOutcomeV1,
}

#[derive(Decode, Encode)]
enum RunOutcomeV1 {
    #[n(0)]
    #[cbor(array)]
    Created(#[n(0)] ByteArray<16>),
    #[n(1)]
    #[cbor(array)]
    Skipped(#[n(0)] u8),
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct ScheduleContentsV1<'a> {
    #[b(0)]
    request: JobRequestV1<'a>,
    #[b(1)]
    target: TargetV1<'a>,
}

#[derive(Decode, Encode)]
enum TargetV1<'a> {
    #[n(0)]
    #[cbor(array)]
    Named(#[b(0)] Vec<&'a str>),
    #[n(1)]
    #[cbor(array)]
    Selected(#[b(0)] FilterV1<'a>),
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct FilterV1<'a> {
    #[b(0)]
    customer: &'a str,
    #[b(1)]
    name_prefix: Option<&'a str>,
    #[n(2)]
    registered: Option<bool>,
    #[n(3)]
    protocols_seen: Option<u8>,
    #[b(4)]
    tags: Vec<TagV1<'a>>,
    #[n(5)]
    version: Option<u8>,
    #[n(6)]
    object: Option<u16>,
    #[n(7)]
    last_seen_before_ms: Option<i64>,
    #[n(8)]
    last_seen_after_ms: Option<i64>,
    #[b(9)]
    firmware: Option<&'a str>,
    #[n(10)]
    online: Option<bool>,
}

/// Writes a schedule.
pub(crate) fn write_schedule(schedule: &Schedule) -> Vec<u8> {
    let Recurrence { rhythm, start, end } = &schedule.recurrence;
    let time;
    let rhythm = match rhythm {
        Rhythm::Every { period_s } => RhythmV1::Every(*period_s),
        Rhythm::Daily { at, zone } => {
            time = at.to_string();
            RhythmV1::Daily {
                at: &time,
                zone: zone.name(),
            }
        }
    };
    let record = ScheduleV1 {
        id: ByteArray::from(*schedule.id.as_bytes()),
        customer: schedule.customer.as_str(),
        name: schedule.name.as_deref(),
        created_at_ms: schedule.created_at.as_ms(),
        rhythm,
        start_ms: start.as_ms(),
        end_ms: end.map(Timestamp::as_ms),
        is_paused: schedule.is_paused,
        next_ms: schedule.next.map(Timestamp::as_ms),
        last: schedule.last.map(run_record),
        last_job: schedule
            .last_job
            .map(|job| ByteArray::from(*job.as_bytes())),
    };
    write(VERSION, &record)
}

/// Reads a schedule.
pub(crate) fn read_schedule(value: &[u8]) -> Result<Schedule, Unreadable> {
    let record: ScheduleV1<'_> = read(VERSION, value)?;
    let rhythm = match record.rhythm {
        RhythmV1::Every(period_s) => Rhythm::Every { period_s },
        RhythmV1::Daily { at, zone } => Rhythm::Daily {
            at: TimeOfDay::parse(at).map_err(damaged("no time of day"))?,
            zone: Zone::read(zone).map_err(damaged("no time zone"))?,
        },
    };
    Ok(Schedule {
        id: ScheduleId::from_bytes(record.id.into()),
        customer: customer_id(record.customer)?,
        name: record.name.map(Into::into),
        created_at: Timestamp::from_ms(record.created_at_ms),
        recurrence: Recurrence {
            rhythm,
            start: Timestamp::from_ms(record.start_ms),
            end: record.end_ms.map(Timestamp::from_ms),
        },
        is_paused: record.is_paused,
        next: record.next_ms.map(Timestamp::from_ms),
        last: record.last.map(read_run).transpose()?,
        last_job: record.last_job.map(|job| JobId::from_bytes(job.into())),
    })
}

/// Writes the contents of a schedule.
pub(crate) fn write_schedule_contents(contents: &ScheduleContents) -> Vec<u8> {
    let record = ScheduleContentsV1 {
        request: job_request_record(&contents.request),
        target: match &contents.target {
            ScheduleTarget::Named(devices) => {
                TargetV1::Named(devices.iter().map(|device| device.as_str()).collect())
            }
            ScheduleTarget::Selected(filter) => TargetV1::Selected(filter_record(filter)),
        },
    };
    write(VERSION, &record)
}

/// Reads the contents of a schedule.
pub(crate) fn read_schedule_contents(value: &[u8]) -> Result<ScheduleContents, Unreadable> {
    let record: ScheduleContentsV1<'_> = read(VERSION, value)?;
    Ok(ScheduleContents {
        request: new_action_of(record.request)?,
        target: match record.target {
            TargetV1::Named(devices) => {
                let devices: Result<_, _> = devices.into_iter().map(device_id).collect();
                ScheduleTarget::Named(devices?)
            }
            TargetV1::Selected(filter) => ScheduleTarget::Selected(Box::new(read_filter(filter)?)),
        },
    })
}

fn run_record(run: ScheduledRun) -> RunV1 {
    RunV1 {
        due_ms: run.due.as_ms(),
        at_ms: run.at.as_ms(),
        outcome: match run.outcome {
            RunOutcome::Created(job) => RunOutcomeV1::Created(ByteArray::from(*job.as_bytes())),
            RunOutcome::Skipped(reason) => RunOutcomeV1::Skipped(code::of_skip_reason(reason)),
        },
    }
}

fn read_run(record: RunV1) -> Result<ScheduledRun, Unreadable> {
    Ok(ScheduledRun {
        due: Timestamp::from_ms(record.due_ms),
        at: Timestamp::from_ms(record.at_ms),
        outcome: match record.outcome {
            RunOutcomeV1::Created(job) => RunOutcome::Created(JobId::from_bytes(job.into())),
            RunOutcomeV1::Skipped(reason) => RunOutcome::Skipped(code::skip_reason(reason)?),
        },
    })
}

fn filter_record(filter: &DeviceFilter) -> FilterV1<'_> {
    FilterV1 {
        customer: filter.customer.as_str(),
        name_prefix: filter.name_prefix.as_deref(),
        registered: filter.registered,
        protocols_seen: filter.protocols_seen.map(code::of_protocol),
        tags: filter.tags.iter().map(tag_record).collect(),
        version: filter.version.map(code::of_enabler_version),
        object: filter.object,
        last_seen_before_ms: filter.last_seen_before.map(Timestamp::as_ms),
        last_seen_after_ms: filter.last_seen_after.map(Timestamp::as_ms),
        firmware: filter.firmware.as_deref(),
        online: filter.online,
    }
}

fn read_filter(record: FilterV1<'_>) -> Result<DeviceFilter, Unreadable> {
    let tags: Result<_, _> = record.tags.into_iter().map(read_tag).collect();
    Ok(DeviceFilter {
        customer: customer_id(record.customer)?,
        name_prefix: record.name_prefix.map(Into::into),
        registered: record.registered,
        protocols_seen: record.protocols_seen.map(code::protocol).transpose()?,
        tags: tags?,
        version: record.version.map(code::enabler_version).transpose()?,
        object: record.object,
        last_seen_before: record.last_seen_before_ms.map(Timestamp::from_ms),
        last_seen_after: record.last_seen_after_ms.map(Timestamp::from_ms),
        firmware: record.firmware.map(Into::into),
        online: record.online,
    })
}
