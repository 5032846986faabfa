//! Is every accepted request kept when the service is killed under load, many times?

use std::collections::BTreeMap;
use std::path::Path as File;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use protocol::lwm2m::path::Path;
use serde_json::Value;
use tempfile::TempDir;

use harness::device::configuration::Configuration;

use crate::test_service::{ID, TestService, silent_device, start};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::lwm2m::{outcome, read, when_active, write};
use crate::vocabulary::poll::until;
use crate::vocabulary::service::signalbox;

const ZONE: Path = Path::resource(3, 0, 15);
const ROOMY: [(&str, &str); 2] = [
    ("SIGNALBOX_SCHEDULED_MAX", "10000"),
    ("SIGNALBOX_WAITING_MAX", "10000"),
];
const CALLERS: usize = 4;
const ROUNDS: usize = 10;

/// The answers a caller received before the service died.
#[derive(Default)]
struct Answers {
    accepted: Vec<String>,
    cancelled: Vec<String>,
}

#[test]
fn a_202_survives_a_crash() {
    let (mut service, mut caller) = start(&ROOMY);
    let names: Vec<String> = (0..CALLERS)
        .map(|number| format!("device-{number}"))
        .collect();
    names.iter().for_each(|name| silent_device(&caller, name));
    let mut expected: BTreeMap<String, &str> = BTreeMap::new();
    for round in 0..ROUNDS {
        let load = Load::begin(&caller, &names);
        load.wait_for(3 + round * 7);
        service.kill();
        for answers in load.end() {
            expected.extend(answers.accepted.into_iter().map(|id| (id, "SCHEDULED")));
            expected.extend(answers.cancelled.into_iter().map(|id| (id, "CANCELLED")));
        }
        service.start_again();
        caller.follow(&service);
        check(&caller, &expected);
    }
    assert!(
        expected.len() > ROUNDS * 30,
        "{} promises are no load",
        expected.len()
    );
}

#[test]
fn requests_to_a_live_device_are_performed_at_most_once_across_crashes() {
    let mut setup = TestService::with(&ROOMY, Configuration::new(ID));
    let mut payload_by_id = BTreeMap::new();
    for round in 0..ROUNDS {
        let caller = setup.caller.clone();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let calling = thread::spawn(move || {
            let mut answers = Vec::new();
            // Fewer in all than the device remembers.
            for number in 0..60 {
                let payload = format!("{round}/{number}");
                let Some(id) = accepted(&caller, ID, &write("/3/0/15", &payload)) else {
                    break;
                };
                answers.push((id, payload));
                counted.fetch_add(1, Ordering::Relaxed);
            }
            answers
        });
        until("some requests", || {
            (count.load(Ordering::Relaxed) > round * 3).then_some(())
        });
        setup.service.kill();
        payload_by_id.extend(calling.join().unwrap());
        setup.crash();
        setup.device.update();
    }
    let mut succeeded = 0;
    for (id, payload) in &payload_by_id {
        let action = setup.caller.final_action(id);
        let done = setup
            .device
            .payloads(ZONE)
            .iter()
            .filter(|it| *it == payload)
            .count();
        match outcome(&action).0 {
            "SUCCEEDED" => {
                assert_eq!(done, 1, "{action}");
                succeeded += 1;
            }
            "FAILED" => assert!(done <= 1, "done {done} times: {action}"),
            status => panic!("{status} is no end: {action}"),
        }
    }
    let failed = payload_by_id.len() - succeeded;
    assert!(
        failed <= ROUNDS,
        "each crash interrupts at most one attempt: {failed}"
    );
}

#[test]
fn a_service_killed_while_it_starts_starts_again() {
    let data = TempDir::new().unwrap();
    let command = |data: &File| {
        let mut command = signalbox();
        command
            .args([
                "--http",
                "127.0.0.1:0",
                "--coap",
                "127.0.0.1:0",
                "--coaps",
                "127.0.0.1:0",
                "--udp",
                "127.0.0.1:0",
                "--data-dir",
            ])
            .arg(data);
        command.env("SIGNALBOX_STORE_CACHE_MIB", "16");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    for stage in [
        "store",
        "store/lock",
        "store/rows",
        "store/rows/db",
        "operator-token",
    ] {
        for _ in 0..2 {
            let mut child = command(data.path()).spawn().unwrap();
            until(stage, || data.path().join(stage).exists().then_some(()));
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
    let mut setup = TestService::new();
    for _ in 0..4 {
        setup.service.kill();
        let mut child = command(setup.service.data_dir()).spawn().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        setup.crash();
        setup.device.update();
        assert_eq!(
            outcome(&setup.caller.perform(ID, &read("/3/0/0"))).0,
            "SUCCEEDED"
        );
    }
}

/// Callers that send requests until the service is killed.
struct Load {
    accepted: Arc<AtomicUsize>,
    ended: Arc<AtomicBool>,
    callers: Vec<JoinHandle<Answers>>,
}

impl Load {
    fn begin(caller: &Caller, devices: &[String]) -> Self {
        let accepted = Arc::new(AtomicUsize::new(0));
        let ended = Arc::new(AtomicBool::new(false));
        let callers = devices.iter().map(|device| {
            let (caller, device) = (caller.clone(), device.clone());
            let (accepted, ended) = (Arc::clone(&accepted), Arc::clone(&ended));
            thread::spawn(move || call(&caller, &device, &accepted, &ended))
        });
        Self {
            callers: callers.collect(),
            accepted: Arc::clone(&accepted),
            ended,
        }
    }

    fn wait_for(&self, accepted: usize) {
        until("some promises", || {
            (self.accepted.load(Ordering::Relaxed) >= accepted).then_some(())
        });
    }

    fn end(self) -> Vec<Answers> {
        self.ended.store(true, Ordering::Relaxed);
        self.callers
            .into_iter()
            .map(|caller| caller.join().unwrap())
            .collect()
    }
}

/// Creates requests and cancels every fourth.
fn call(caller: &Caller, device: &str, count: &AtomicUsize, ended: &AtomicBool) -> Answers {
    let mut answers = Answers::default();
    while !ended.load(Ordering::Relaxed) {
        let Some(id) = accepted(caller, device, &when_active(read("/3/0/0"))) else {
            break;
        };
        let number = count.fetch_add(1, Ordering::Relaxed);
        if number % 4 != 3 {
            answers.accepted.push(id);
            continue;
        }
        let path = format!("{API}/integrate/devices/actions/requests/{id}");
        match caller.try_send("DELETE", &path, &Value::Null) {
            Ok(answer) if answer.status == 200 => answers.cancelled.push(id),
            Ok(answer) => panic!("answered {}: {}", answer.status, answer.text()),
            // The cancellation may or may not have happened: either is correct.
            Err(_) => break,
        }
    }
    answers
}

/// The id of an accepted request; None if there was no answer.
fn accepted(caller: &Caller, device: &str, body: &Value) -> Option<String> {
    let path = format!("{API}/integrate/devices/{device}/actions/LWM2M");
    let answer = caller.try_send("POST", &path, body).ok()?;
    Some(text(&answer.expect(202)["id"]))
}

/// Checks every accepted request in the list, and some of them by their records.
fn check(caller: &Caller, expected: &BTreeMap<String, &str>) {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for number in 1.. {
        let path = format!("{API}/integrate/devices/actions/requests?pageSize=100&page={number}");
        let page = caller.request("GET", &path).expect(200);
        let items = page["items"].as_array().unwrap();
        found.extend(
            items
                .iter()
                .map(|item| (text(&item["id"]), text(&item["status"]))),
        );
        if page["pageAmount"].as_u64() <= Some(number) {
            break;
        }
    }
    for (id, status) in expected {
        assert_eq!(
            found.get(id).map(String::as_str),
            Some(*status),
            "{id} was promised"
        );
    }
    let unknown = found
        .values()
        .filter(|it| !["SCHEDULED", "CANCELLED"].contains(&it.as_str()));
    assert_eq!(unknown.count(), 0);
    for id in expected.keys().step_by(17) {
        assert_eq!(caller.action(id)["status"], expected[id]);
    }
}
