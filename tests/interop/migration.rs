//! Does a service find everything again after its store was moved to PostgreSQL and back, and the
//! command was killed in between?

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use serde_json::{Value, json};

use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::endpoint::{Endpoint, ReceivedPost};
use crate::vocabulary::lwm2m::{read, when_active};
use crate::vocabulary::poll::until;
use crate::vocabulary::postgres::PostgresServer;
use crate::vocabulary::program::Program;
use crate::vocabulary::service::{Service, signalbox};
use crate::vocabulary::wire::{DeviceSocket, request};

const ID: &str = "meter-1";
const SLEEPER: &str = "meter-2";

/// More devices than a page has.
const DEVICES: u32 = 4_000;

/// An event is tried again soon, and more often than the endpoint is closed for.
const SETTINGS: [(&str, &str); 2] = [
    ("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true"),
    (
        "SIGNALBOX_DELIVERY_RETRY_MS",
        "3000,3000,3000,3000,3000,3000,3000,3000,3000,3000",
    ),
];

#[test]
fn everything_reads_the_same_after_a_move_there_and_back_that_was_killed() {
    let server = PostgresServer::start_without_fsync();
    let database = server.create_database();
    let mut service = Service::start_on_files(&SETTINGS);
    let mut caller = Caller::of_new_customer(&service, "Acme");
    let mut endpoint = Endpoint::new();
    let (wire, action) = fill(&service, &caller, &endpoint);
    assert_eq!(values_until(&mut endpoint, 1), [1]);
    // The next event waits for its endpoint, wherever its store is by then.
    endpoint.close();
    assert_eq!(wire.ask(&send(2)).code, Code::CHANGED);
    let before = everything_stored(&mut service, &mut caller);

    let data = service.data_dir().to_owned();
    let directory = data.to_str().unwrap();
    let refused = killed_until_done(directory, &database, &data, || {
        let mut serve = signalbox();
        serve.args(["serve", "--http", "127.0.0.1:0", "--data-dir", directory]);
        serve.env("SIGNALBOX_STORE", &database);
        ends_with(&mut serve, "run `signalbox migrate` again");
    });
    assert!(refused, "a run was killed before its end");
    ends_with(
        &mut migrate(directory, &database, &data),
        "the target is not empty",
    );
    service.start_again_on(Some(&database));
    caller.follow(&service);
    assert_eq!(everything(&caller), before);
    assert_eq!(caller.action(&action)["status"], "SCHEDULED");

    // It goes on there, and what happened there comes back.
    endpoint.open();
    assert_eq!(values_until(&mut endpoint, 2), [1, 2]);
    assert_eq!(wire.ask(&send(3)).code, Code::CHANGED);
    assert_eq!(values_until(&mut endpoint, 3), [1, 2, 3]);
    let before = everything_stored(&mut service, &mut caller);
    fs::rename(data.join("store"), data.join("former-store")).unwrap();
    let refused = killed_until_done(&database, directory, &data, || {
        let mut serve = signalbox();
        serve.args(["serve", "--http", "127.0.0.1:0", "--data-dir", directory]);
        ends_with(&mut serve, "run `signalbox migrate` again");
        let mut check = signalbox();
        check.args(["check", "--data-dir", directory]);
        ends_with(&mut check, "run `signalbox migrate` again");
    });
    assert!(refused, "a run was killed before its end");
    service.start_again_on(None);
    caller.follow(&service);
    assert_eq!(everything(&caller), before);
    assert_eq!(wire.ask(&send(4)).code, Code::CHANGED);
    assert_eq!(values_until(&mut endpoint, 4), [1, 2, 3, 4]);
    assert!(service.stop().success());

    let mut with_other_key = migrate(directory, &server.create_database(), &data);
    with_other_key.env("SIGNALBOX_MASTER_KEY", "ab".repeat(32));
    ends_with(&mut with_other_key, "encrypted with another master key");
    ends_with(
        &mut migrate(directory, directory, &data),
        "have to be a data directory and a URL",
    );
    ends_with(
        &mut migrate("/nowhere", &server.create_database(), &data),
        "there is no store in /nowhere",
    );
}

/// Runs the command until it ends well. Each run is killed once it has moved something, and then
/// the target is tried; returns whether any was.
fn killed_until_done(from: &str, to: &str, data: &Path, is_refused: impl Fn()) -> bool {
    let mut was_killed = false;
    loop {
        let mut run = Program::start(&mut migrate(from, to, data));
        let first = run.wait_for("its progress", |line| {
            let is_moving = line.contains("records moved");
            (is_moving || line.contains("comparing")).then_some(is_moving)
        });
        if !first {
            let printed = run.finish().join("\n");
            assert!(
                printed.contains("digest, the same at both ends"),
                "{printed}"
            );
            assert!(!was_killed || printed.contains("continued"), "{printed}");
            return was_killed;
        }
        run.kill();
        is_refused();
        was_killed = true;
    }
}

fn migrate(from: &str, to: &str, data: &Path) -> Command {
    let mut command = signalbox();
    command.args(["migrate", "--from", from, "--to", to]);
    command.arg("--data-dir").arg(data);
    command
}

/// Runs a command that fails with a message.
fn ends_with(command: &mut Command, message: &str) {
    let output = command.output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    assert!(!output.status.success(), "{printed}");
    assert!(printed.contains(message), "{message}: {printed}");
}

/// Things of many kinds; returns a device and a request that waits for another one.
fn fill(service: &Service, caller: &Caller, endpoint: &Endpoint) -> (DeviceSocket, String) {
    let post = |path: &str, body: &Value, status: u16| {
        let path = format!("{API}{path}");
        caller.post(&path, body).expect(status)
    };
    let types = json!([{ "type": "TELEMETRY_DATA" }]);
    let webhook = json!({ "name": "Values", "url": endpoint.url("/in"), "eventTypes": types });
    post("/integrate/clouds/webhooks", &webhook, 201);
    caller.create_device(ID, DEVICE_IP);
    caller.create_device(SLEEPER, "127.78.1.2");
    let line =
        |number| json!({ "deviceId": format!("imported-{number}"), "tags": { "site": "a" } });
    let lines: String = (0..DEVICES)
        .map(|number| format!("{}\n", line(number)))
        .collect();
    let import = caller.authorized("POST", &format!("{API}/devices/import"));
    let import = import.text("application/x-ndjson", &lines);
    let imported = import.send(caller.address()).expect(200);
    assert_eq!(imported["created"], DEVICES);
    post(&format!("/devices/{ID}/psk/generate"), &json!({}), 201);
    let wire = DeviceSocket::to(service);
    wire.register(ID, 1);
    let sleeper = DeviceSocket::from("127.78.1.2", service);
    sleeper.register(SLEEPER, 1);
    let action = caller.create_action(SLEEPER, &when_active(read("/3/0/0")));
    let path = "/integrate/devices/actions/LWM2M";
    let mut request = when_active(read("/3/0/1"));
    request["filter"] = json!({ "q": SLEEPER });
    post(path, &request, 202);
    let mut request = read("/3/0/0");
    request["deviceIds"] = json!([SLEEPER]);
    request["protocol"] = json!("LWM2M");
    let later = json!({ "every": 3_600, "start": "2099-01-01T00:00:00Z", "request": request });
    post("/schedules", &later, 201);
    let presence = format!("{API}/presence");
    let chosen = json!({ "offlineAfter": 864_000 });
    let chosen = caller.try_send("PATCH", &presence, &chosen);
    chosen.unwrap().expect(200);
    assert_eq!(wire.ask(&send(1)).code, Code::CHANGED);
    (wire, action)
}

/// A Send of a value.
fn send(value: u16) -> protocol::coap::message::Message {
    let send = request(Code::POST, value + 10).with_uri_path(["dp"]);
    let send = send.with_content_format(ContentFormat::SENML_JSON);
    send.with_payload(format!(r#"[{{"n":"/3/0/9","v":{value}}}]"#))
}

/// The values that were delivered, each once, when the last one was. A delivery is repeated if the
/// endpoint closes, or the service stops, before its answer was stored.
fn values_until(endpoint: &mut Endpoint, last: u64) -> Vec<u64> {
    let is_there = |posted: &[ReceivedPost]| values_of(posted).contains(&last);
    let mut values = values_of(&endpoint.once_so("the last value", is_there));
    let mut known = BTreeSet::new();
    values.retain(|value| known.insert(*value));
    values
}

/// The values of the events of some posts.
fn values_of(posted: &[ReceivedPost]) -> Vec<u64> {
    let values = posted
        .iter()
        .map(|post| post.json()["payload"]["value"]["/3/0/9"].clone());
    values.map(|value| value.as_u64().unwrap()).collect()
}

/// What the API says of everything after a start, and then stops the service: what is in memory
/// alone, such as when a device was heard last, is not moved.
fn everything_stored(service: &mut Service, caller: &mut Caller) -> BTreeMap<String, Value> {
    assert!(service.stop().success());
    service.start_again();
    caller.follow(service);
    let everything = everything(caller);
    assert!(service.stop().success());
    everything
}

/// What the API says of everything, once nothing is on its way.
fn everything(caller: &Caller) -> BTreeMap<String, Value> {
    let lists = [
        "/administrationLogs",
        "/devices?pageSize=100",
        "/devices?pageSize=100&page=40",
        "/devices?registered=true",
        "/integrate/clouds/webhooks",
        "/integrate/devices/actions/requests",
        "/jobs",
        "/presence",
        "/schedules",
    ];
    let devices = [ID, SLEEPER]
        .into_iter()
        .flat_map(|id| [format!("/devices/{id}"), format!("/devices/{id}/messages")]);
    let lists = lists.into_iter().map(str::to_owned);
    let paths: Vec<String> = lists.chain(devices).collect();
    let all = || -> BTreeMap<String, Value> {
        let answers = paths.iter().map(|path| {
            let answer = caller.request("GET", &format!("{API}{path}"));
            (path.clone(), without_expiry(answer.expect(200)))
        });
        answers.collect()
    };
    let mut last = all();
    until("that nothing changes", || {
        let now = all();
        let is_still = now == last;
        last = now;
        is_still.then_some(())
    });
    for path in ["/jobs", "/schedules", &format!("/devices/{ID}/messages")] {
        let items = last[path]["items"].as_array();
        assert!(items.is_some_and(|items| !items.is_empty()), "{path}");
    }
    last
}

/// A registration has its lifetime again from each start on.
fn without_expiry(mut answer: Value) -> Value {
    if let Some(registration) = answer.get_mut("registration") {
        registration["expires"] = Value::Null;
    }
    answer
}
