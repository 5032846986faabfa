//! How is the job of a due time prepared? Its devices are read, and its contents are stored; the
//! job itself is not.

use engine::directory::schedule::run_of;
use engine::job::runner::PartUnreadable;
use engine::job::runner::schedules::PreparedRun;
use engine::moment::Moment;
use engine::schedule::{OpenRequest, Schedule, ScheduleTarget, SkipReason};
use tracing::warn;

use super::JobParts;
use super::selection::SelectionFailure;

/// Prepares the job of the due time of a schedule.
pub(super) async fn prepared(
    parts: &JobParts,
    schedule: &Schedule,
) -> Result<PreparedRun, PartUnreadable> {
    let store = &parts.selection.store;
    let contents = store.schedule_contents(schedule.id).await;
    let Some(contents) = contents.map_err(|_| PartUnreadable)? else {
        return Ok(PreparedRun::Removed);
    };
    let devices = match &contents.target {
        ScheduleTarget::Named(devices) => devices.to_vec(),
        ScheduleTarget::Selected(filter) => {
            match parts.selection.matching((**filter).clone()).await {
                Ok(devices) => devices,
                Err(SelectionFailure::TooMany { .. }) => {
                    return Ok(PreparedRun::Skipped(SkipReason::TooManyDevices));
                }
                Err(SelectionFailure::TooBroad(_)) => {
                    return Ok(PreparedRun::Skipped(SkipReason::FilterTooBroad));
                }
                Err(SelectionFailure::Unavailable(_)) => return Err(PartUnreadable),
            }
        }
    };
    let open = open_requests(parts, schedule).await?;
    let mut moment: Moment = parts.clock.moment();
    let (job, batches) = match run_of(&mut moment, schedule, contents, devices, open) {
        Ok(run) => run,
        Err(reason) => return Ok(PreparedRun::Skipped(reason)),
    };
    for batch in batches {
        if let Err(error) = parts.commits.commit(batch).await {
            warn!(schedule = %schedule.id, %error, "the devices of a job were not stored");
            return Err(PartUnreadable);
        }
    }
    Ok(PreparedRun::Job(job))
}

/// The requests of the last job of a schedule, and of those before, that are not final.
async fn open_requests(
    parts: &JobParts,
    schedule: &Schedule,
) -> Result<Vec<OpenRequest>, PartUnreadable> {
    let mut open = Vec::new();
    let Some(job) = schedule.last_job else {
        return Ok(open);
    };
    for part in 0.. {
        let requests = parts.selection.store.open_requests(job, part).await;
        match requests.map_err(|_| PartUnreadable)? {
            Some(requests) => open.extend(requests),
            None => break,
        }
    }
    Ok(open)
}
