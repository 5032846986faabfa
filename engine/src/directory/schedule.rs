//! Decisions about schedules that the runner of jobs leaves to be made where the devices are read:
//! what a run consists of, and how schedules are removed.

use std::collections::BTreeMap;

use crate::change::{Batch, Change};
use crate::ids::{DeviceId, TraceId};
use crate::job::{Job, JobDevice, JobOutcome};
use crate::moment::Moment;
use crate::schedule::{OpenRequest, Schedule, ScheduleContents, SkipReason};

use super::job::contents_of;

/// The job of a due time, and the batches that store its contents before it. A device whose
/// request of an earlier run is open is not asked, so that requests do not pile up at devices that
/// sleep; if that is all of them, there is no job.
pub fn run_of(
    m: &mut Moment,
    schedule: &Schedule,
    contents: ScheduleContents,
    devices: Vec<DeviceId>,
    open: Vec<OpenRequest>,
) -> Result<(Job, impl Iterator<Item = Batch>), SkipReason> {
    if devices.is_empty() {
        return Err(SkipReason::NoDevice);
    }
    let open: BTreeMap<_, _> = open.into_iter().collect();
    let device = |device| JobDevice {
        outcome: open.get(&device).copied().map(JobOutcome::RequestOpen),
        device,
    };
    let devices: Vec<JobDevice> = devices.into_iter().map(device).collect();
    let count = |number| u32::try_from(number).map_err(|_| SkipReason::TooManyDevices);
    let matched = count(devices.len())?;
    let rejected = devices.iter().filter(|device| device.outcome.is_some());
    let rejected = count(rejected.count())?;
    if rejected == matched {
        return Err(SkipReason::RequestsOpen);
    }
    let job = Job {
        schedule: Some(schedule.id),
        rejected,
        ..Job::new(m, schedule.customer.clone(), matched)
    };
    let mut request = contents.request;
    request.trace = TraceId::new(m.uuid());
    let batches = contents_of(job.id, request, devices);
    Ok((job, batches))
}

/// The batch that removes schedules.
pub fn removal_of(schedules: &[Schedule]) -> Batch {
    let removal = |schedule: &Schedule| Change::RemoveSchedule {
        customer: schedule.customer.clone(),
        schedule: schedule.id,
    };
    Batch {
        changes: schedules.iter().map(removal).collect(),
        ..Batch::default()
    }
}
