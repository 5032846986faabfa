//! What is stored of schedules?

use engine::EnablerVersion;
use engine::action::{Protocol, Status};
use engine::change::{Batch, Change, Expect};
use engine::directory::schedule::removal_of;
use engine::ids::{CustomerId, DeviceId, JobId};
use engine::job::{Job, JobDevice, JobOutcome};
use engine::moment::Timestamp;
use engine::query::PageRequest;
use engine::query::devices::DeviceFilter;
use engine::schedule::{
    NewSchedule, Recurrence, Rhythm, RunOutcome, Schedule, ScheduleContents, ScheduleTarget,
    SkipReason,
};
use engine::tags::Tag;
use engine::zone::{TimeOfDay, Zone};

use super::samples::{acme, action, at, batch, customer, device, moment, new_action};
use super::{TestBed, commit, put, wait};
use crate::{CommitError, Store};

pub(super) fn come_back(ground: &TestBed<'_>) {
    let mut store = ground.open();
    let daily = Rhythm::Daily {
        at: TimeOfDay::parse("06:30").expect("a time"),
        zone: Zone::read("Europe/Berlin").expect("a zone"),
    };
    let every = || Rhythm::Every { period_s: 90 };
    let made = [
        made(&*store, &acme(), 10, every()),
        made(&*store, &acme(), 20, daily),
        made(&*store, &acme(), 30, every()),
    ];
    let other = self::made(&*store, &customer("globex").id, 25, every());
    let next = |schedule: &Schedule| schedule.next.expect("it is due");
    let skipped = [
        SkipReason::NoDevice,
        SkipReason::TooManyDevices,
        SkipReason::FilterTooBroad,
        SkipReason::RequestsOpen,
    ];
    let skipped = skipped.map(RunOutcome::Skipped);
    let created = RunOutcome::Created(JobId::from_bytes([9; 16]));
    let mut last = made[1].clone();
    for outcome in [created].into_iter().chain(skipped) {
        let after = last.after_run(next(&last), at(1_000), outcome);
        assert_eq!(commit(&*store, following(&last, &after)), Ok(()));
        let found = wait(store.schedule(acme(), after.id));
        assert_eq!(found, Ok(Some(after.clone())));
        let again = commit(&*store, following(&last, &after));
        assert_eq!(again, Err(CommitError::Conflict), "it is not as it was");
        last = after;
    }
    let paused = made[2].paused();
    assert_eq!(commit(&*store, following(&made[2], &paused)), Ok(()));
    let stored = [paused, last, made[0].clone()];
    for _ in 0..2 {
        assert_eq!(page(&*store, (1, 2)), (stored[..2].to_vec(), 3));
        assert_eq!(page(&*store, (2, 2)), (stored[2..].to_vec(), 3));
        let all = wait(store.schedules()).expect("an answer");
        assert_eq!(all.len(), 4);
        assert!(all.contains(&other) && stored.iter().all(|it| all.contains(it)));
        assert_eq!(wait(store.schedule(acme(), other.id)), Ok(None));
        drop(store);
        store = ground.open();
    }
}

pub(super) fn have_their_requests(ground: &TestBed<'_>) {
    let store = ground.open();
    let whole = DeviceFilter {
        name_prefix: Some("urn:".into()),
        registered: Some(false),
        protocols_seen: Some(Protocol::Coap),
        tags: [Tag::parse("site:berlin").expect("a tag")].into(),
        version: Some(EnablerVersion::V1_1),
        object: Some(3_303),
        last_seen_before: Some(at(20)),
        last_seen_after: Some(at(10)),
        firmware: Some("1.4.2".into()),
        online: Some(false),
        ..DeviceFilter::all_of(acme())
    };
    let named = ["a", "b"].map(|id| DeviceId::parse(id).expect("an id"));
    let targets = [
        ScheduleTarget::Named(named.into()),
        ScheduleTarget::Selected(Box::new(whole)),
        ScheduleTarget::Selected(Box::new(DeviceFilter::all_of(acme()))),
    ];
    for (target, second) in targets.into_iter().zip(10..) {
        let contents = ScheduleContents {
            request: new_action(),
            target,
        };
        let schedule = schedule(&acme(), second, Rhythm::Every { period_s: 90 });
        put(&*store, changes_of(&schedule, contents.clone()));
        let found = wait(store.schedule_contents(schedule.id));
        assert_eq!(found, Ok(Some(contents)));
    }
}

pub(super) fn are_removed_with_their_requests(ground: &TestBed<'_>) {
    let store = ground.open();
    let [gone, kept] =
        [10, 20].map(|second| made(&*store, &acme(), second, Rhythm::Every { period_s: 90 }));
    assert_eq!(
        commit(&*store, removal_of(std::slice::from_ref(&gone))),
        Ok(())
    );
    assert_eq!(wait(store.schedule(acme(), gone.id)), Ok(None));
    assert_eq!(wait(store.schedule_contents(gone.id)), Ok(None));
    assert_eq!(page(&*store, (1, 9)), (vec![kept.clone()], 1));
    let late = commit(&*store, following(&gone, &gone.paused()));
    assert_eq!(late, Err(CommitError::Conflict));
    let contents = wait(store.schedule_contents(kept.id)).expect("an answer");
    assert!(contents.is_some());
}

pub(super) fn know_the_open_requests_of_a_job(ground: &TestBed<'_>) {
    let store = ground.open();
    let meters = [1, 2, 3, 4].map(|number| device(&acme(), number));
    let schedule = made(&*store, &acme(), 10, Rhythm::Every { period_s: 90 });
    let job = Job {
        schedule: Some(schedule.id),
        ..Job::new(&mut moment(20, 7), acme(), 4)
    };
    let open = action(&meters[0], 30, 1);
    let mut done = action(&meters[1], 30, 2);
    done.status = Status::Succeeded;
    let earlier = action(&meters[2], 5, 3);
    let outcomes = [
        Some(JobOutcome::Accepted(open.id)),
        Some(JobOutcome::Accepted(done.id)),
        Some(JobOutcome::RequestOpen(earlier.id)),
        None,
    ];
    let devices = meters
        .iter()
        .zip(outcomes)
        .map(|(meter, outcome)| JobDevice {
            device: meter.device.clone(),
            outcome,
        });
    let part = Change::PutJobPart {
        job: job.id,
        part: 0,
        devices: devices.collect(),
    };
    let actions = [&open, &done, &earlier].map(|action| Change::PutAction {
        was: None,
        action: Box::new(action.clone()),
    });
    let put_job = Change::PutJob(Box::new(job.clone()));
    put(
        &*store,
        [part, put_job].into_iter().chain(actions).collect(),
    );
    assert_eq!(wait(store.job(job.id)), Ok(Some(job.clone())));
    let expected = vec![
        (meters[0].device.clone(), open.id),
        (meters[2].device.clone(), earlier.id),
    ];
    assert_eq!(wait(store.open_requests(job.id, 0)), Ok(Some(expected)));
    assert_eq!(wait(store.open_requests(job.id, 1)), Ok(None));
}

/// A schedule that was created at a second.
pub(crate) fn made(
    store: &dyn Store,
    customer: &CustomerId,
    second: i64,
    rhythm: Rhythm,
) -> Schedule {
    let schedule = schedule(customer, second, rhythm);
    let contents = ScheduleContents {
        request: new_action(),
        target: ScheduleTarget::Selected(Box::new(DeviceFilter::all_of(customer.clone()))),
    };
    put(store, changes_of(&schedule, contents));
    schedule
}

fn schedule(customer: &CustomerId, second: i64, rhythm: Rhythm) -> Schedule {
    let new = NewSchedule {
        name: (second == 10).then(|| "Night".into()),
        recurrence: Recurrence {
            rhythm,
            start: at(second),
            end: (second == 20).then(|| Timestamp::from_ms(i64::MAX)),
        },
    };
    let schedule = Schedule::new(&mut moment(second, 7), customer.clone(), new);
    schedule.expect("it is due")
}

fn changes_of(schedule: &Schedule, contents: ScheduleContents) -> Vec<Change> {
    vec![
        Change::PutSchedule(Box::new(schedule.clone())),
        Change::PutScheduleContents {
            schedule: schedule.id,
            contents: Box::new(contents),
        },
    ]
}

/// The batch that replaces a schedule.
fn following(before: &Schedule, after: &Schedule) -> Batch {
    Batch {
        expects: vec![Expect::Schedule(Box::new(before.clone()))],
        ..batch(vec![Change::PutSchedule(Box::new(after.clone()))])
    }
}

fn page(store: &dyn Store, (number, size): (u32, u32)) -> (Vec<Schedule>, u64) {
    let page = wait(store.schedules_of(acme(), PageRequest { number, size }));
    let page = page.expect("an answer");
    (page.items, page.total)
}
