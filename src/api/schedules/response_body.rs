//! What is the JSON of a schedule?

use serde::Serialize;

use engine::ids::DeviceId;
use engine::schedule::{
    Rhythm, RunOutcome, Schedule, ScheduleContents, ScheduleTarget, ScheduledRun,
};

use crate::api::action::NewActionBody;
use crate::api::devices::filter::DeviceFilterBody;
use crate::api::words::Word;

/// A schedule.
#[derive(Serialize)]
pub(in crate::api) struct ScheduleBody {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    every: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    daily: Option<DailyBody>,
    start: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<String>,
    created: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<ScheduledRunBody>,
}

/// A schedule with what its jobs request.
#[derive(Serialize)]
pub(in crate::api) struct ScheduleWithRequestBody {
    #[serde(flatten)]
    schedule: ScheduleBody,
    request: ScheduledRequestBody,
}

/// A time of day.
#[derive(Serialize)]
struct DailyBody {
    at: String,
    zone: String,
}

/// What became of a due time.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ScheduledRunBody {
    due: String,
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

/// The request of a schedule, and its devices.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ScheduledRequestBody {
    protocol: &'static str,
    #[serde(flatten)]
    request: NewActionBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_ids: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<DeviceFilterBody>,
}

impl ScheduleBody {
    /// The schedule.
    pub(in crate::api) fn of(schedule: &Schedule) -> Self {
        let (every, daily) = match &schedule.recurrence.rhythm {
            Rhythm::Every { period_s } => (Some(*period_s), None),
            Rhythm::Daily { at, zone } => {
                let (at, zone) = (at.to_string(), zone.name().to_owned());
                (None, Some(DailyBody { at, zone }))
            }
        };
        Self {
            id: schedule.id.to_string(),
            name: schedule.name.as_deref().map(str::to_owned),
            state: schedule.state().word(),
            every,
            daily,
            start: schedule.recurrence.start.iso().to_string(),
            end: schedule.recurrence.end.map(|end| end.iso().to_string()),
            created: schedule.created_at.iso().to_string(),
            next: schedule.next.map(|next| next.iso().to_string()),
            last: schedule.last.map(ScheduledRunBody::of),
        }
    }
}

impl ScheduleWithRequestBody {
    /// The schedule with its contents.
    pub(in crate::api) fn of(schedule: &Schedule, contents: &ScheduleContents) -> Self {
        let (device_ids, filter) = match &contents.target {
            ScheduleTarget::Named(devices) => {
                let devices = devices.iter().map(DeviceId::to_string);
                (Some(devices.collect()), None)
            }
            ScheduleTarget::Selected(filter) => (None, Some(DeviceFilterBody::of(filter))),
        };
        Self {
            schedule: ScheduleBody::of(schedule),
            request: ScheduledRequestBody {
                protocol: contents.request.request.protocol().word(),
                request: NewActionBody::of(&contents.request),
                device_ids,
                filter,
            },
        }
    }
}

impl ScheduledRunBody {
    fn of(run: ScheduledRun) -> Self {
        let (job_id, reason) = match run.outcome {
            RunOutcome::Created(job) => (Some(job.to_string()), None),
            RunOutcome::Skipped(reason) => (None, Some(reason.word())),
        };
        Self {
            due: run.due.iso().to_string(),
            time: run.at.iso().to_string(),
            job_id,
            reason,
        }
    }
}
