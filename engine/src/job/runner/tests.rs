//! Which effects does each input leave?

use super::*;
use crate::action::{Lwm2mRequest, Mode, Operation, Request};
use crate::ids::{DeviceId, TraceId};
use crate::limits::JOB_PART_DEVICES;
use crate::moment::Moment;

const NOW: Timestamp = Timestamp::from_ms(1_700_000_000_000);

/// Who replies go to.
type Caller = &'static str;

#[test]
fn a_job_is_saved_then_answered_then_run_and_saved_again() {
    let mut fixture = Fixture::new(10);
    let job = fixture.job(2);
    let create = fixture.step(|it, out| it.create(job.clone(), None, "caller", out));
    assert_eq!(create, ["commit job RUNNING 0+0 of 2"]);
    let saved = fixture.saved(&job, Ok(()));
    assert_eq!(saved, ["answer caller: RUNNING 0+0 of 2", "read part 0"]);
    let asked = fixture.read(&job, &["a", "b"], &[]);
    assert_eq!(asked, ["submit 0 to a", "submit 1 to b"]);
    assert_eq!(fixture.answer(&job, 0, accepted(7)), Vec::<String>::new());
    let drained = fixture.answer(&job, 1, Ok(Err(SubmitRefusal::NotRegistered)));
    assert_eq!(
        drained,
        ["commit part 0: a accepted, b refused; job DONE 1+1 of 2"]
    );
    assert_eq!(fixture.saved(&job, Ok(())), ["count 1+1"]);
    assert_eq!(fixture.runner.running(), 0);
}

#[test]
fn a_job_without_devices_is_done_when_it_is_saved() {
    let mut fixture = Fixture::new(10);
    let job = fixture.job(0);
    fixture.step(|it, out| it.create(job.clone(), None, "caller", out));
    let saved = fixture.saved(&job, Ok(()));
    assert_eq!(saved, ["answer caller: DONE 0+0 of 0"]);
    assert_eq!(fixture.runner.running(), 0);
}

#[test]
fn a_job_that_is_not_saved_does_not_run() {
    let mut fixture = Fixture::new(10);
    let job = fixture.job(2);
    fixture.step(|it, out| it.create(job.clone(), None, "caller", out));
    let saved = fixture.saved(&job, Err(Unserved::Busy));
    assert_eq!(saved, ["answer caller: the service is overloaded"]);
    assert_eq!(fixture.runner.running(), 0);
}

#[test]
fn a_customer_has_a_bounded_number_of_running_jobs() {
    let mut fixture = Fixture::new(1);
    let (job, second) = (fixture.job(2), fixture.job(2));
    fixture.step(|it, out| it.create(job.clone(), None, "caller", out));
    let refused = fixture.step(|it, out| it.create(second.clone(), None, "other", out));
    assert_eq!(
        refused,
        [
            "answer other: a customer can have at most 1 running jobs; wait until one ends, or \
          cancel one"
        ]
    );
    assert!(fixture.runner.check_room(&customer("other")).is_ok());
}

#[test]
fn a_restored_job_asks_only_devices_without_a_request() {
    let mut fixture = Fixture::new(10);
    let job = fixture.job(3);
    let restored = fixture.step(|it, out| it.restore(vec![job.clone()], Vec::new(), out));
    assert_eq!(restored, ["read part 0"]);
    let asked = fixture.read(&job, &["a", "b", "c"], &["b"]);
    assert_eq!(asked, ["submit 0 to a", "submit 2 to c"]);
    fixture.answer(&job, 0, accepted(7));
    assert_eq!(
        fixture.answer(&job, 2, accepted(8)),
        ["commit part 0: a accepted, b accepted, c accepted; job DONE 3+0 of 3"]
    );
}

#[test]
fn a_device_that_did_not_answer_is_asked_again_after_its_records_are_read() {
    for unserved in [Unserved::Busy, Unserved::Failed] {
        let mut fixture = Fixture::running(2);
        let job = fixture.first.clone();
        fixture.read(&job, &["a", "b"], &[]);
        fixture.answer(&job, 0, Err(unserved));
        let paused = fixture.answer(&job, 1, accepted(7));
        assert_eq!(paused, Vec::<String>::new());
        assert_eq!(
            fixture.runner.next_timeout(),
            Some(NOW.plus_ms(STORE_RETRY_MS))
        );
        let full = fixture.timeout(StoreRoom::Full);
        assert_eq!(full, Vec::<String>::new());
        assert_eq!(fixture.timeout(StoreRoom::Open), ["read part 0"]);
        let asked = fixture.read(&job, &["a", "b"], &["b"]);
        assert_eq!(asked, ["submit 0 to a"]);
        assert_eq!(
            fixture.answer(&job, 0, accepted(8)),
            ["commit part 0: a accepted, b accepted; job DONE 2+0 of 2"]
        );
    }
}

#[test]
fn a_device_that_never_answers_is_rejected_in_the_end() {
    let mut fixture = Fixture::running(1);
    let job = fixture.first.clone();
    for _ in 0..=JOB_ROUNDS_MAX {
        assert_eq!(fixture.read(&job, &["a"], &[]), ["submit 0 to a"]);
        fixture.answer(&job, 0, Err(Unserved::Busy));
        assert_eq!(fixture.timeout(StoreRoom::Open), ["read part 0"]);
    }
    assert_eq!(
        fixture.read(&job, &["a"], &[]),
        ["commit part 0: a unserved; job DONE 0+1 of 1"]
    );
}

#[test]
fn a_device_that_does_not_exist_is_rejected_at_once() {
    let mut fixture = Fixture::running(1);
    let job = fixture.first.clone();
    fixture.read(&job, &["a"], &[]);
    assert_eq!(
        fixture.answer(&job, 0, Err(Unserved::Unknown)),
        ["commit part 0: a unserved; job DONE 0+1 of 1"]
    );
}

#[test]
fn a_device_with_an_open_request_is_not_asked() {
    let mut fixture = Fixture::running(2);
    let job = fixture.first.clone();
    let mut devices = ["a", "b"].map(|id| JobDevice::new(device(id)));
    devices[0].outcome = Some(JobOutcome::RequestOpen(action(1)));
    let part = RestoredPart {
        devices: devices.into(),
        request: request(),
        created: Vec::new(),
    };
    let asked = fixture.step(|it, out| it.handle_part(NOW, job.id, Ok(Some(part)), out));
    assert_eq!(asked, ["submit 1 to b"]);
    assert_eq!(
        fixture.answer(&job, 1, accepted(7)),
        ["commit part 0: a request open, b accepted; job DONE 1+0 of 2"]
    );
}

#[test]
fn outcomes_that_are_not_saved_are_saved_again() {
    let mut fixture = Fixture::running(1);
    let job = fixture.first.clone();
    fixture.read(&job, &["a"], &[]);
    let commit = fixture.answer(&job, 0, accepted(7));
    assert_eq!(
        fixture.saved(&job, Err(Unserved::Busy)),
        Vec::<String>::new()
    );
    assert_eq!(fixture.timeout(StoreRoom::Full), commit);
    assert_eq!(fixture.saved(&job, Ok(())), ["count 1+0"]);
}

#[test]
fn a_cancelled_job_waits_for_the_devices_that_are_being_asked() {
    let mut fixture = Fixture::running(40);
    let job = fixture.first.clone();
    let devices = names(40);
    assert_eq!(fixture.read(&job, &devices, &[]).len(), JOB_COMMANDS_MAX);
    assert_eq!(fixture.cancel(&job, "caller"), Vec::<String>::new());
    for place in 1..JOB_COMMANDS_MAX {
        assert_eq!(
            fixture.answer(&job, place, accepted(7)),
            Vec::<String>::new()
        );
    }
    let drained = fixture.answer(&job, 0, accepted(7));
    assert_eq!(drained.len(), 1);
    let ended = format!("job CANCELLED {JOB_COMMANDS_MAX}+0 of 40");
    assert!(drained[0].ends_with(&ended), "{drained:?}");
    let open = format!("d{JOB_COMMANDS_MAX} open");
    assert!(drained[0].contains(&open), "{drained:?}");
    assert_eq!(
        fixture.saved(&job, Ok(())),
        [
            format!("count {JOB_COMMANDS_MAX}+0"),
            format!("answer caller: CANCELLED {JOB_COMMANDS_MAX}+0 of 40"),
        ]
    );
    assert_eq!(
        fixture.cancel(&job, "late"),
        ["answer late: only a running job can be cancelled; this one has ended"]
    );
}

#[test]
fn a_cancelled_job_first_learns_which_requests_exist() {
    let mut fixture = Fixture::running(2);
    let job = fixture.first.clone();
    fixture.read(&job, &["a", "b"], &[]);
    fixture.answer(&job, 0, Err(Unserved::Failed));
    fixture.answer(&job, 1, Err(Unserved::Failed));
    assert_eq!(fixture.cancel(&job, "caller"), ["read part 0"]);
    assert_eq!(
        fixture.read(&job, &["a", "b"], &["b"]),
        ["commit part 0: a open, b accepted; job CANCELLED 1+0 of 2"]
    );
}

#[test]
fn a_job_that_ends_while_it_is_being_cancelled_is_not_cancelled() {
    let mut fixture = Fixture::running(1);
    let job = fixture.first.clone();
    fixture.read(&job, &["a"], &[]);
    fixture.answer(&job, 0, accepted(7));
    assert_eq!(fixture.cancel(&job, "caller"), Vec::<String>::new());
    assert_eq!(
        fixture.saved(&job, Ok(())),
        [
            "count 1+0",
            "answer caller: only a running job can be cancelled; this one has ended"
        ]
    );
}

#[test]
fn a_removed_job_ends_without_another_save() {
    let mut fixture = Fixture::running(1);
    let job = fixture.first.clone();
    let gone = fixture.step(|it, out| it.handle_part(NOW, job.id, Ok(None), out));
    assert_eq!(gone, Vec::<String>::new());
    assert_eq!(fixture.runner.running(), 0);
    let mut fixture = Fixture::running(1);
    let job = fixture.first.clone();
    fixture.read(&job, &["a"], &[]);
    fixture.answer(&job, 0, accepted(7));
    assert_eq!(
        fixture.saved(&job, Err(Unserved::Unknown)),
        Vec::<String>::new()
    );
    assert_eq!(fixture.runner.running(), 0);
    let mut fixture = Fixture::running(1);
    fixture.read(&fixture.first.clone(), &["a"], &[]);
    let forgotten = fixture.step(|it, out| it.forget(&customer("acme"), out));
    assert_eq!(forgotten, Vec::<String>::new());
    let late = fixture.answer(&fixture.first.clone(), 0, accepted(7));
    assert_eq!(late, Vec::<String>::new());
}

#[test]
fn jobs_take_turns_device_by_device_and_the_commands_in_flight_have_a_bound() {
    let mut fixture = Fixture::new(10);
    let jobs = [fixture.job(40), fixture.job(40)];
    fixture.step(|it, out| it.restore(jobs.to_vec(), Vec::new(), out));
    let devices = names(40);
    assert_eq!(
        fixture.read(&jobs[0], &devices, &[]).len(),
        JOB_COMMANDS_MAX
    );
    assert_eq!(fixture.read(&jobs[1], &devices, &[]), Vec::<String>::new());
    let turns: Vec<_> = (0..4)
        .flat_map(|place| fixture.answer(&jobs[0], place, accepted(7)))
        .collect();
    let (next, after) = (JOB_COMMANDS_MAX, JOB_COMMANDS_MAX + 1);
    let expected = [next, 0, after, 1].map(|place| format!("submit {place} to d{place}"));
    assert_eq!(turns, expected);
}

#[test]
fn the_jobs_with_a_part_in_memory_have_a_bound() {
    let mut fixture = Fixture::new(100);
    let jobs: Vec<Job> = (0..=JOBS_LOADED_MAX).map(|_| fixture.job(200)).collect();
    let reads = fixture.step(|it, out| it.restore(jobs.clone(), Vec::new(), out));
    assert_eq!(reads, vec!["read part 0"; JOBS_LOADED_MAX]);
    let part = names(JOB_PART_DEVICES);
    let created: Vec<&str> = part.clone();
    let through = fixture.read(&jobs[0], &part, &created);
    assert!(
        through[0].ends_with("job RUNNING 128+0 of 200"),
        "{through:?}"
    );
    // The job that waits has its turn before the next part of this one.
    assert_eq!(
        fixture.saved(&jobs[0], Ok(())),
        ["count 128+0", "read part 0"]
    );
}

#[test]
fn a_runner_that_is_quiescent_begins_nothing() {
    let mut fixture = Fixture::running(40);
    let job = fixture.first.clone();
    fixture.read(&job, &names(40), &[]);
    fixture.runner.quiesce();
    assert_eq!(fixture.answer(&job, 0, accepted(7)), Vec::<String>::new());
    assert_eq!(fixture.runner.next_timeout(), None);
}

struct Fixture {
    runner: JobRunner<Caller>,
    m: Moment,
    first: Job,
}

impl Fixture {
    fn new(running_max: u32) -> Self {
        let mut m = Moment::new(NOW, 7);
        Self {
            runner: JobRunner::new(JobLimits {
                running_max,
                schedules_max: 2,
            }),
            first: Job::new(&mut m, customer("acme"), 0),
            m,
        }
    }

    /// With a job of so many devices whose first part is being read.
    fn running(devices: u32) -> Self {
        let mut fixture = Self::new(10);
        let job = fixture.job(devices);
        fixture.first = job.clone();
        fixture.step(|it, out| it.restore(vec![job], Vec::new(), out));
        fixture
    }

    fn job(&mut self, devices: u32) -> Job {
        Job::new(&mut self.m, customer("acme"), devices)
    }

    fn step(
        &mut self,
        input: impl FnOnce(&mut JobRunner<Caller>, &mut Vec<JobEffect<Caller>>),
    ) -> Vec<String> {
        let mut out = Vec::new();
        input(&mut self.runner, &mut out);
        out.iter().map(effect).collect()
    }

    fn saved(&mut self, job: &Job, receipt: Result<(), Unserved>) -> Vec<String> {
        self.step(|it, out| it.handle_receipt(NOW, job.id, receipt, out))
    }

    /// The part was read, and these devices of it have a request.
    fn read(&mut self, job: &Job, devices: &[&str], created: &[&str]) -> Vec<String> {
        let key = |id: &&str| DeviceKey::of(&job.customer, &device(id));
        let created = created.iter().map(|id| (key(id), action(1)));
        let part = RestoredPart {
            devices: devices
                .iter()
                .map(|id| JobDevice::new(device(id)))
                .collect(),
            request: request(),
            created: created.collect(),
        };
        self.step(|it, out| it.handle_part(NOW, job.id, Ok(Some(part)), out))
    }

    fn answer(
        &mut self,
        job: &Job,
        place: usize,
        answer: Result<Result<ActionId, SubmitRefusal>, Unserved>,
    ) -> Vec<String> {
        self.step(|it, out| it.handle_answer(NOW, (job.id, place), answer, out))
    }

    fn cancel(&mut self, job: &Job, caller: Caller) -> Vec<String> {
        self.step(|it, out| it.cancel(NOW, job.id, caller, out))
    }

    /// The deadline comes.
    fn timeout(&mut self, room: StoreRoom) -> Vec<String> {
        let at = self.runner.next_timeout().unwrap();
        self.step(|it, out| it.handle_timeout(at, room, out))
    }
}

fn effect(effect: &JobEffect<Caller>) -> String {
    match effect {
        JobEffect::Read { part, .. } => format!("read part {part}"),
        JobEffect::Submit {
            place,
            device,
            request,
            job,
        } => {
            assert_eq!(request.idempotent_call.unwrap().key, key_of(*job));
            format!("submit {place} to {}", name_of(*device))
        }
        JobEffect::Commit(_, batch) => {
            let changes: Vec<String> = batch.changes.iter().map(change).collect();
            format!("commit {}", changes.join("; "))
        }
        JobEffect::Answer(caller, Ok(job)) => format!("answer {caller}: {}", shown(job)),
        JobEffect::Answer(caller, Err(refusal)) => format!("answer {caller}: {refusal}"),
        JobEffect::Count { accepted, rejected } => format!("count {accepted}+{rejected}"),
        JobEffect::Schedule(effect) => panic!("no schedule is here: {effect:?}"),
    }
}

fn change(change: &Change) -> String {
    if let Change::PutJob(job) = change {
        return format!("job {}", shown(job));
    }
    let Change::PutJobPart { part, devices, .. } = change else {
        panic!("no change of a job: {change:?}");
    };
    let devices: Vec<String> = devices.iter().map(outcome).collect();
    format!("part {part}: {}", devices.join(", "))
}

fn outcome(device: &JobDevice) -> String {
    let outcome = match device.outcome {
        Some(JobOutcome::Accepted(_)) => "accepted",
        Some(JobOutcome::Refused(_)) => "refused",
        Some(JobOutcome::Unserved(_)) => "unserved",
        Some(JobOutcome::RequestOpen(_)) => "request open",
        None => "open",
    };
    format!("{} {outcome}", device.device)
}

fn shown(job: &Job) -> String {
    let state = match job.state {
        JobState::Running => "RUNNING",
        JobState::Done => "DONE",
        JobState::Cancelled => "CANCELLED",
    };
    let Job {
        accepted,
        rejected,
        matched,
        ..
    } = job;
    format!("{state} {accepted}+{rejected} of {matched}")
}

/// The key of the first part of a job.
fn key_of(job: JobId) -> crate::idempotency::IdempotencyKey {
    crate::idempotency::IdempotencyKey::of_job(job, 0)
}

fn name_of(key: DeviceKey) -> String {
    let of = |name: &&str| DeviceKey::of(&customer("acme"), &device(name)) == key;
    let names = names(64);
    let all = ["a", "b", "c"].into_iter().chain(names);
    all.into_iter().find(|name| of(name)).unwrap().to_owned()
}

fn names(count: u32) -> Vec<&'static str> {
    (0..count)
        .map(|number| &*format!("d{number}").leak())
        .collect()
}

fn customer(id: &str) -> CustomerId {
    CustomerId::parse(id).unwrap()
}

fn device(id: &str) -> DeviceId {
    DeviceId::parse(id).unwrap()
}

fn action(number: u8) -> ActionId {
    ActionId::from_bytes([number; 16])
}

fn accepted(number: u8) -> Result<Result<ActionId, SubmitRefusal>, Unserved> {
    Ok(Ok(action(number)))
}

fn request() -> NewAction {
    let read = Lwm2mRequest::parse(Operation::Read, "/3/0/9", None).unwrap();
    NewAction {
        request: Request::Lwm2m(read),
        mode: Mode::SendWhenActive,
        attempts_permitted: 1,
        expires_in_s: None,
        not_before: None,
        wake_up: None,
        trace: TraceId::from_bytes([9; 16]),
        idempotent_call: None,
    }
}
