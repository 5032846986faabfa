//! What is stored of jobs, and for how long?

use std::slice::from_ref;

use engine::action::Mode;
use engine::change::{Batch, Change, Expect};
use engine::device::refusal::{ForbiddenAddress, SubmitRefusal};
use engine::directory::job::{contents_of, removal_of};
use engine::directory::sms::waking::WakeUpRefusal;
use engine::ids::{CustomerId, DeviceId};
use engine::job::{Job, JobDevice, JobOutcome, JobState};
use engine::limits::JOB_PART_DEVICES;
use engine::query::PageRequest;
use engine::supervision::Unserved;

use super::idempotency::record_of;
use super::samples::{acme, action, at, batch, customer, device, moment, new_action};
use super::{TestBed, commit, put, wait};
use crate::{CommitError, Retention, Store, SweepReport};

pub(super) fn come_back(ground: &TestBed<'_>) {
    let mut store = ground.open();
    let jobs = [10, 20, 30].map(|second| made(&*store, &acme(), second, 3));
    let other = made(&*store, &customer("globex").id, 25, 3);
    for _ in 0..2 {
        assert_eq!(wait(store.job(jobs[1].id)), Ok(Some(jobs[1].clone())));
        assert_eq!(
            ids(&*store, &acme(), (1, 2)),
            ([&jobs[2], &jobs[1]].map(id).into(), 3)
        );
        assert_eq!(
            ids(&*store, &acme(), (2, 2)),
            ([&jobs[0]].map(id).into(), 3)
        );
        let running = wait(store.running_jobs()).expect("an answer");
        let order = [&jobs[0], &jobs[1], &other, &jobs[2]];
        assert_eq!(running, order.map(Clone::clone));
        drop(store);
        store = ground.open();
    }
    let done = Job {
        state: JobState::Done,
        accepted: 2,
        rejected: 1,
        parts_done: 1,
        ..jobs[1].clone()
    };
    let save = Batch {
        expects: vec![Expect::JobRunning(done.id)],
        ..batch(vec![Change::PutJob(Box::new(done.clone()))])
    };
    assert_eq!(commit(&*store, save.clone()), Ok(()));
    assert_eq!(commit(&*store, save), Err(CommitError::Conflict));
    assert_eq!(wait(store.job(done.id)), Ok(Some(done)));
    assert_eq!(wait(store.running_jobs()).expect("an answer").len(), 3);
    assert_eq!(ids(&*store, &acme(), (1, 9)).1, 3);
}

pub(super) fn have_their_devices_in_order(ground: &TestBed<'_>) {
    let store = ground.open();
    let count = JOB_PART_DEVICES * 2 + 1;
    let job = made(&*store, &acme(), 10, count);
    let number_of = |device: JobDevice| device.device.as_str()[1..].parse::<u32>();
    for (page, size) in [(1, 10), (13, 10), (2, 100), (26, 10), (3, 128), (4, 128)] {
        let devices = wait(store.job_devices(job.id, wanted((page, size))));
        let numbers: Result<Vec<u32>, _> = devices
            .expect("an answer")
            .into_iter()
            .map(number_of)
            .collect();
        let expected = ((page - 1) * size..page * size).filter(|number| *number < count);
        assert_eq!(numbers, Ok(expected.collect()), "page {page} of {size}");
    }
}

pub(super) fn have_outcomes_of_every_kind(ground: &TestBed<'_>) {
    let store = ground.open();
    let meter = device(&acme(), 1);
    let job = made(&*store, &acme(), 10, 16);
    let part = wait(store.restored_part(job.id, 0)).expect("an answer");
    let part = part.expect("the part is there");
    assert_eq!((part.request, part.created), (new_action(), vec![]));
    let accepted = action(&meter, 20, 1).id;
    let unserved = [Unserved::Unknown, Unserved::Busy, Unserved::Failed];
    let outcomes = [JobOutcome::Accepted(accepted)].into_iter();
    let outcomes = outcomes.chain(refusals().map(JobOutcome::Refused));
    let outcomes = outcomes.chain(unserved.map(JobOutcome::Unserved));
    let outcomes = outcomes.chain([JobOutcome::RequestOpen(accepted)]);
    let devices: Box<[JobDevice]> = part
        .devices
        .into_iter()
        .zip(outcomes)
        .map(|(device, outcome)| JobDevice {
            outcome: Some(outcome),
            ..device
        })
        .collect();
    let saved = Change::PutJobPart {
        job: job.id,
        part: 0,
        devices: devices.clone(),
    };
    let record = record_of(job.call(0), &meter, 20);
    put(&*store, vec![saved, Change::PutIdempotencyRecord(record)]);
    let part = wait(store.restored_part(job.id, 0)).expect("an answer");
    let part = part.expect("the part is there");
    assert_eq!(part.devices, devices.to_vec());
    assert_eq!(
        part.created,
        [(meter.key(), action(&meter, 20, meter.number).id)]
    );
    assert_eq!(wait(store.restored_part(job.id, 1)), Ok(None));
}

pub(super) fn go_when_they_are_old(ground: &TestBed<'_>) {
    let store = ground.open();
    let count = JOB_PART_DEVICES * 2 + 1;
    let [old, recent] = [99, 100].map(|second| made(&*store, &acme(), second, count));
    let never_created = Job::new(&mut moment(50, 7), acme(), count);
    for contents in contents(&never_created) {
        assert_eq!(commit(&*store, contents), Ok(()));
    }
    let due = Retention {
        jobs_before: at(100),
        ..Retention::NOTHING
    };
    // Two jobs with three parts each, one of which was never created.
    assert_eq!(swept(&*store, due), 1 + 3 + 1 + 3);
    assert_eq!(wait(store.job(old.id)), Ok(None));
    assert_eq!(wait(store.job_devices(old.id, wanted((1, 9)))), Ok(vec![]));
    assert_eq!(ids(&*store, &acme(), (1, 9)), ([&recent].map(id).into(), 1));
    assert_eq!(wait(store.running_jobs()), Ok(vec![recent.clone()]));
    let whole = wait(store.job_devices(recent.id, wanted((1, 1_000))));
    assert_eq!(whole.expect("an answer").len(), count as usize);
}

pub(super) fn are_removed_with_their_devices(ground: &TestBed<'_>) {
    let store = ground.open();
    let [gone, kept] = [10, 20].map(|second| made(&*store, &acme(), second, 300));
    assert_eq!(commit(&*store, removal_of(from_ref(&gone))), Ok(()));
    assert_eq!(wait(store.job(gone.id)), Ok(None));
    assert_eq!(ids(&*store, &acme(), (1, 9)), ([&kept].map(id).into(), 1));
    assert_eq!(wait(store.running_jobs()), Ok(vec![kept.clone()]));
    let late = Batch {
        expects: vec![Expect::JobRunning(gone.id)],
        ..batch(vec![Change::PutJob(Box::new(gone.clone()))])
    };
    assert_eq!(commit(&*store, late), Err(CommitError::Conflict));
    assert_eq!(swept(&*store, Retention::NOTHING), 3);
    assert_eq!(wait(store.job_devices(gone.id, wanted((1, 9)))), Ok(vec![]));
    let whole = wait(store.job_devices(kept.id, wanted((1, 1_000))));
    assert_eq!(whole.expect("an answer").len(), 300);
}

/// A refusal of every kind.
pub(crate) fn refusals() -> [SubmitRefusal; 11] {
    [
        SubmitRefusal::NotRegistered,
        SubmitRefusal::NoAddress,
        WakeUpRefusal::NoNumber.into(),
        WakeUpRefusal::NoMessage.into(),
        WakeUpRefusal::TooOften { max: 4 }.into(),
        WakeUpRefusal::TooManyOpen { max: 100 }.into(),
        SubmitRefusal::AddressForbidden(ForbiddenAddress::Own(([10, 0, 0, 1], 5_683).into())),
        SubmitRefusal::AddressForbidden(ForbiddenAddress::Unheard([127, 0, 0, 1].into())),
        SubmitRefusal::AddressForbidden(ForbiddenAddress::WithoutDtls),
        SubmitRefusal::QueueFull {
            mode: Mode::SendNow,
            waiting: 11,
            max: 10,
        },
        SubmitRefusal::DataFull {
            more: 1,
            total: 3,
            max: 2,
        },
    ]
}

/// A job that was created at a second, for devices `d0`, `d1` and so on.
pub(crate) fn made(store: &dyn Store, customer: &CustomerId, second: i64, devices: u32) -> Job {
    let job = Job::new(&mut moment(second, 7), customer.clone(), devices);
    for contents in contents(&job) {
        assert_eq!(commit(store, contents), Ok(()));
    }
    put(store, vec![Change::PutJob(Box::new(job.clone()))]);
    job
}

fn contents(job: &Job) -> impl Iterator<Item = Batch> {
    let id = |number| JobDevice::new(DeviceId::parse(&format!("d{number}")).expect("an id"));
    contents_of(job.id, new_action(), (0..job.matched).map(id).collect())
}

/// Sweeps until nothing is left to be removed, and returns how much was removed.
fn swept(store: &dyn Store, due: Retention) -> u64 {
    let mut all = 0;
    loop {
        let SweepReport { removed, more } = wait(store.sweep(due, 2)).expect("a sweep");
        all += removed;
        if !more {
            return all;
        }
    }
}

/// The ids of jobs on a page, and the total.
fn ids(store: &dyn Store, customer: &CustomerId, page: (u32, u32)) -> (Vec<String>, u64) {
    let page = wait(store.jobs_of(customer.clone(), wanted(page))).expect("an answer");
    (page.items.iter().map(id).collect(), page.total)
}

fn id(job: &Job) -> String {
    job.id.to_string()
}

fn wanted((number, size): (u32, u32)) -> PageRequest {
    PageRequest { number, size }
}
