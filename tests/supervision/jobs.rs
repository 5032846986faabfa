//! What happens to jobs and schedules when their runner panics?

use engine::action::{Lwm2mRequest, Mode, NewAction, Request};
use engine::change::{Batch, Change};
use engine::directory::job::contents_of;
use engine::ids::{DeviceId, TraceId};
use engine::job::runner::JobRefusal;
use engine::job::{Job, JobDevice, JobState};
use engine::query::PageRequest;
use engine::schedule::{
    NewSchedule, Recurrence, Rhythm, RunOutcome, Schedule, ScheduleContents, ScheduleTarget,
};
use engine::supervision::Unserved;
use protocol::lwm2m::path::Path;
use store::{Commit as _, DirectoryReads as _};

use crate::faulty::FaultMode;
use crate::test_service::{TestService, customer, wait_for};

#[test]
fn a_panicked_runner_of_jobs_is_restored_and_continues_the_jobs_that_are_stored() {
    let setup = TestService::new(["meter"]);
    let stored = Job::new(&mut setup.clock.moment(), customer(), 1);
    for batch in contents_of(stored.id, read(), vec![JobDevice::new(meter())]) {
        wait_for(setup.commits.commit(batch)).unwrap();
    }
    let put = Batch {
        changes: vec![Change::PutJob(Box::new(stored.clone()))],
        ..Batch::default()
    };
    wait_for(setup.commits.commit(put)).unwrap();
    setup.commits.set(FaultMode::PanicOnce);
    let another = Job::new(&mut setup.clock.moment(), customer(), 0);
    let created = wait_for(setup.jobs.create(another, None));
    assert_eq!(created, Err(JobRefusal::Unserved(Unserved::Failed)));
    assert_eq!(setup.commits.mode(), FaultMode::Well);
    let job = || wait_for(setup.store.job(stored.id)).unwrap().unwrap();
    setup.until(|| job().state == JobState::Done);
    assert_eq!(job().accepted, 1);
    let another = Job::new(&mut setup.clock.moment(), customer(), 0);
    assert!(wait_for(setup.jobs.create(another, None)).is_ok());
}

#[test]
fn a_due_time_whose_run_panics_is_run_once_when_the_runner_is_restored() {
    let setup = TestService::new(["meter"]);
    let due = setup.clock.now().plus_s(1);
    let once = NewSchedule {
        name: None,
        recurrence: Recurrence {
            rhythm: Rhythm::Every { period_s: 60 },
            start: due,
            end: Some(due),
        },
    };
    let schedule = Schedule::new(&mut setup.clock.moment(), customer(), once).unwrap();
    let id = schedule.id;
    let contents = ScheduleContents {
        request: read(),
        target: ScheduleTarget::Named([meter()].into()),
    };
    let created = setup.jobs.create_schedule(schedule, contents, None);
    wait_for(created).unwrap();
    setup.commits.set(FaultMode::PanicOnce);
    let run = || {
        wait_for(setup.store.schedule(customer(), id))
            .unwrap()
            .unwrap()
            .last
    };
    setup.until(|| run().is_some());
    assert_eq!(setup.commits.mode(), FaultMode::Well, "the run panicked");
    let all = PageRequest { number: 1, size: 9 };
    let jobs = || {
        wait_for(setup.store.jobs_of(customer(), all))
            .unwrap()
            .items
    };
    let created = jobs()
        .iter()
        .map(|job| RunOutcome::Created(job.id))
        .collect::<Vec<_>>();
    assert_eq!(
        created,
        [run().unwrap().outcome],
        "one job for one due time"
    );
    setup.until(|| jobs()[0].state == JobState::Done);
    assert_eq!(jobs()[0].accepted, 1);
}

fn read() -> NewAction {
    NewAction {
        request: Request::Lwm2m(Lwm2mRequest::Read(Path::resource(3, 0, 0))),
        mode: Mode::SendWhenActive,
        attempts_permitted: 1,
        expires_in_s: None,
        not_before: None,
        wake_up: None,
        trace: TraceId::from_bytes([9; 16]),
        idempotent_call: None,
    }
}

fn meter() -> DeviceId {
    DeviceId::parse("meter").unwrap()
}
