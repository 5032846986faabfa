//! Does a call with an `Idempotency-Key` happen once, however often it is repeated?

use std::io::Write as _;
use std::net::TcpStream;
use std::thread;

use serde_json::{Value, json};

use crate::errors::check;
use crate::test_service::{ID, page, silent_device, start, with};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::device::{DEVICE_IP, Device};
use crate::vocabulary::http::Response;
use crate::vocabulary::lwm2m::{outcome, read, when_active, write};
use crate::vocabulary::poll::until;
use harness::device::configuration::Configuration;

const ONE: &str = "/management-api/v1/integrate/devices/meter-1/actions/LWM2M";
const MANY: &str = "/management-api/v1/integrate/devices/actions/LWM2M";
const REQUESTS: &str = "/integrate/devices/actions/requests";

#[test]
fn a_repeated_call_is_answered_as_before_and_has_no_further_effect() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let body = when_active(write("/3/0/15", "once"));
    let first = named(&caller, "a-key", ONE, &body).expect(202);
    for _ in 0..3 {
        assert_eq!(named(&caller, "a-key", ONE, &body).expect(202), first);
    }
    assert_eq!(ids(&caller), [text(&first["id"])]);
    let other = named(&caller, "another-key", ONE, &body).expect(202);
    assert_ne!(other["id"], first["id"]);
    assert_eq!(ids(&caller).len(), 2);
}

#[test]
fn the_same_call_in_another_notation_is_the_same() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let written = [
        r#"{"action":"read","resourceAddress":"/3/0/0","requestMode":"SEND_WHEN_ACTIVE"}"#,
        r#"{ "requestMode": "SEND_WHEN_ACTIVE", "resourceAddress": "/3/0/0", "action": "read" }"#,
        r#"{"action":"re\u0061d","resourceAddress":"/3/0/0","requestMode":"SEND_WHEN_ACTIVE",
            "data":null}"#,
    ];
    let answers: Vec<Value> = written
        .iter()
        .map(|body| {
            let request = caller
                .authorized("POST", ONE)
                .header("idempotency-key", "k");
            let request = request.text("application/json; charset=utf-8", body);
            request.send(caller.address()).expect(202)
        })
        .collect();
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    assert_eq!(ids(&caller).len(), 1);
}

#[test]
fn a_key_names_one_call_and_no_other() {
    let (_service, caller) = start(&[]);
    for device in [ID, "other"] {
        silent_device(&caller, device);
    }
    let body = when_active(read("/3/0/0"));
    named(&caller, "k", ONE, &body).expect(202);
    let other = ONE.replace(ID, "other");
    let many = with(body.clone(), "deviceIds", json!([ID]));
    let others = [
        (ONE, when_active(read("/3/0/1"))),
        (ONE, with(body.clone(), "sendAttempts", 2)),
        (other.as_str(), body.clone()),
        (MANY, many),
    ];
    for (path, body) in others {
        let refused = named(&caller, "k", path, &body);
        let fault = ("IDEMPOTENCY_KEY_REUSED", "Idempotency-Key");
        check(&refused, 409, &[fault]);
    }
    assert_eq!(ids(&caller).len(), 1);
    named(&caller, "K", &other, &body).expect(202);
}

#[test]
fn a_key_of_one_customer_does_not_affect_another() {
    let (service, caller) = start(&[]);
    let stranger = Caller::of_new_customer(&service, "Umbrella");
    silent_device(&caller, ID);
    silent_device(&stranger, "theirs");
    let body = when_active(read("/3/0/0"));
    let ours = named(&caller, "k", ONE, &body).expect(202);
    let path = ONE.replace(ID, "theirs");
    let theirs = named(&stranger, "k", &path, &body).expect(202);
    assert_ne!(ours["id"], theirs["id"]);
    assert_eq!((ids(&caller).len(), ids(&stranger).len()), (1, 1));
}

#[test]
fn the_keys_of_a_device_are_deleted_with_it() {
    let (_service, caller) = start(&[]);
    for device in [ID, "other"] {
        silent_device(&caller, device);
    }
    let one = when_active(read("/3/0/0"));
    let many = with(one.clone(), "deviceIds", json!([ID, "other"]));
    let ask_one = || named(&caller, "one", ONE, &one);
    let ask_many = || named(&caller, "many", MANY, &many).expect(202);
    let (first, first_of_many) = (ask_one().expect(202), ask_many());
    let forgotten = caller.request("DELETE", &format!("{API}/devices/{ID}"));
    assert_eq!(forgotten.status, 204);
    assert_eq!(ask_one().status, 404);
    silent_device(&caller, ID);
    let (again, again_of_many) = (ask_one().expect(202), ask_many());
    assert_ne!(again["id"], first["id"], "the device was made anew");
    assert_eq!(ask_one().expect(202), again);
    assert_eq!(ask_many(), again_of_many);
    let [id, repeated_id] = [&first_of_many, &again_of_many]
        .map(|answer| text(&answer["acceptedRequests"][0]["requestId"]));
    assert_ne!(id, repeated_id);
    let of_other = |answer: &Value| answer["acceptedRequests"][1].clone();
    assert_eq!(of_other(&again_of_many), of_other(&first_of_many));
    let open = ids(&caller);
    assert!(open.contains(&text(&again["id"])) && open.contains(&repeated_id));
    assert_eq!(open.len(), 3);
}

#[test]
fn a_call_repeated_after_a_crash_has_no_further_effect() {
    let (mut service, mut caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    silent_device(&caller, "other");
    let one = when_active(write("/3/0/15", "once"));
    let many = with(
        when_active(read("/3/0/0")),
        "deviceIds",
        json!([ID, "other"]),
    );
    let first = named(&caller, "one", ONE, &one).expect(202);
    let first_of_many = named(&caller, "many", MANY, &many).expect(202);
    for _ in 0..2 {
        service.kill();
        service.start_again();
        caller.follow(&service);
        assert_eq!(named(&caller, "one", ONE, &one).expect(202), first);
        assert_eq!(
            named(&caller, "many", MANY, &many).expect(202),
            first_of_many
        );
    }
    assert_eq!(ids(&caller).len(), 3);
    let device = Device::registered(&service, Configuration::new(ID));
    let done = caller.final_action(&text(&first["id"]));
    assert_eq!(outcome(&done), ("SUCCEEDED", "204"), "{done}");
    assert_eq!(named(&caller, "one", ONE, &one).expect(202), first);
    let zone = protocol::lwm2m::path::Path::resource(3, 0, 15);
    assert_eq!(device.payloads(zone), ["once"]);
}

#[test]
fn a_refused_call_leaves_its_key_free() {
    let (service, caller) = start(&[]);
    let now = read("/3/0/15");
    check(&named(&caller, "k", ONE, &now), 404, &[("NOT_FOUND", "")]);
    caller.create_device(ID, DEVICE_IP);
    let refused = named(&caller, "k", ONE, &now);
    check(&refused, 409, &[("DEVICE_NOT_REGISTERED", "")]);
    let malformed = named(&caller, "k", ONE, &json!({ "action": "read" }));
    check(&malformed, 400, &[("REQUIRED", "resourceAddress")]);
    let device = Device::registered(&service, Configuration::new(ID));
    let first = named(&caller, "k", ONE, &now).expect(202);
    caller.final_action(&text(&first["id"]));
    assert_eq!(named(&caller, "k", ONE, &now).expect(202), first);
    assert_eq!(device.performed().len(), 1);
}

#[test]
fn a_repeated_bulk_call_sends_no_request_twice() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let body = when_active(read("/3/0/0"));
    let many = with(body, "deviceIds", json!(["late", ID]));
    let first = named(&caller, "k", MANY, &many).expect(202);
    assert_eq!(first["rejectedDevices"], json!(["late"]));
    silent_device(&caller, "late");
    let second = named(&caller, "k", MANY, &many).expect(202);
    assert_eq!(second["rejectedDevices"], json!([]));
    let requests = second["acceptedRequests"].as_array().unwrap();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1], first["acceptedRequests"][0]);
    assert_eq!(named(&caller, "k", MANY, &many).expect(202), second);
    assert_eq!(ids(&caller).len(), 2);
}

#[test]
fn of_concurrent_calls_one_happens() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let body = when_active(read("/3/0/0"));
    for round in 0..10 {
        let key = format!("round-{round}");
        let calls: Vec<_> = (0..8)
            .map(|_| {
                let (caller, body, key) = (caller.clone(), body.clone(), key.clone());
                thread::spawn(move || named(&caller, &key, ONE, &body))
            })
            .collect();
        let answers = calls.into_iter().map(|call| call.join().unwrap());
        let mut accepted = Vec::new();
        for answer in answers {
            match answer.status {
                202 => accepted.push(text(&answer.expect(202)["id"])),
                _ => {
                    let fault = ("IDEMPOTENCY_KEY_IN_USE", "Idempotency-Key");
                    check(&answer, 409, &[fault]);
                    assert_eq!(answer.header("retry-after"), Some("1"));
                }
            }
        }
        let again = text(&named(&caller, &key, ONE, &body).expect(202)["id"]);
        assert!(!accepted.is_empty() && accepted.iter().all(|id| *id == again));
        assert_eq!(ids(&caller).len(), 1, "one request was made");
        caller.cancel_action(&again).expect(200);
    }
}

#[test]
fn a_call_whose_caller_disconnects_is_done_once() {
    let (mut service, caller) = start(&[("SIGNALBOX_SCHEDULED_MAX", "100")]);
    silent_device(&caller, ID);
    let body = when_active(read("/3/0/0"));
    for round in 0..20 {
        let key = format!("round-{round}");
        leave(&caller, &key, &body);
        let repeated = until("the end of the call that was left", || {
            let answer = named(&caller, &key, ONE, &body);
            (answer.status != 409).then(|| answer.expect(202))
        });
        assert_eq!(ids(&caller).len(), round + 1, "{repeated}");
    }
    let unsaved = service
        .printed()
        .iter()
        .find(|line| line.contains("not saved"));
    assert_eq!(unsaved, None, "no call ran into another");
}

#[test]
fn an_invalid_key_is_reported_with_the_other_faults() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let long = "x".repeat(256);
    for key in ["", "a key", "caf\u{e9}", long.as_str()] {
        let refused = named(&caller, key, ONE, &json!({ "action": "read" }));
        let faults = [
            ("INVALID_VALUE", "Idempotency-Key"),
            ("REQUIRED", "resourceAddress"),
        ];
        check(&refused, 400, &faults);
    }
    let twice = caller.authorized("POST", ONE);
    let twice = twice.header("idempotency-key", "one");
    let twice = twice.header("idempotency-key", "two");
    let refused = twice.json(&read("/3/0/0")).send(caller.address());
    check(&refused, 400, &[("REPEATED", "Idempotency-Key")]);
    let longest = "x".repeat(255);
    named(&caller, &longest, ONE, &when_active(read("/3/0/0"))).expect(202);
}

/// Posts a body with this key.
fn named(caller: &Caller, key: &str, path: &str, body: &Value) -> Response {
    let request = caller.authorized("POST", path);
    let request = request.header("Idempotency-Key", key).json(body);
    request.send(caller.address())
}

/// Posts a body with this key without waiting for the answer.
fn leave(caller: &Caller, key: &str, body: &Value) {
    let (token, body) = (caller.token(), body.to_string());
    let length = body.len();
    let request = format!(
        "POST {ONE} HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\nidempotency-key: {key}\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    let mut stream = TcpStream::connect(caller.address()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
}

/// The requests that are not final, newest first.
fn ids(caller: &Caller) -> Vec<String> {
    let (listed, _) = page(caller, &format!("{REQUESTS}/active?pageSize=100"));
    listed
}

#[test]
fn every_create_is_answered_as_before_and_creates_once() {
    let (mut service, caller) = start(&[]);
    let operator = Caller::operator(&service);
    let devices = "/management-api/v1/devices";
    let webhooks = "/management-api/v1/integrate/clouds/webhooks";
    let brokers = "/management-api/v1/integrate/clouds/mqtt";
    let plugins = "/management-api/v1/partners/gateway/plugins";
    let customers = "/operator-api/v1/customers";
    let clients = "/operator-api/v1/customers/umbrella/clients";
    let plugin = json!({ "serverDomain": "gateway.example.com", "webhookKey": "7b0cf" });
    let broker = json!({ "name": "Values", "url": "mqtts://broker.example.com",
        "topicPrefix": "values", "password": "7b0cf", "username": "values" });
    let webhook = json!({ "name": "Values", "url": "https://example.com/in",
        "eventTypes": [{ "type": "TELEMETRY_DATA" }] });
    let made = named(
        &operator,
        "a-key",
        customers,
        &json!({ "id": "umbrella", "name": "U" }),
    );
    let made_client = named(&operator, "client", clients, &json!({ "name": "app" }));
    let client = made_client.json();
    let secrets = format!("{clients}/{}/secrets", text(&client["clientId"]));
    let calls = [
        (&caller, "a-key", devices, json!({ "deviceId": "meter-7" })),
        (
            &caller,
            "b-key",
            devices,
            json!({ "name": "with a generated id", "iccid": "8949" }),
        ),
        (&caller, "webhook", webhooks, webhook),
        (&caller, "broker", brokers, broker),
        (&caller, "plugin", plugins, plugin),
        (&operator, "secret", secrets.as_str(), json!({})),
    ];
    let firsts: Vec<Response> = calls
        .iter()
        .map(|(caller, key, path, body)| named(caller, key, path, body))
        .collect();
    let listed = |caller: &Caller| {
        let paths =
            [devices, webhooks, plugins].map(|path| caller.request("GET", path).expect(200));
        paths.map(|page| page["items"].as_array().map(Vec::len))
    };
    let before = listed(&caller);
    service.kill();
    service.start_again();
    let followed = |caller: &Caller| {
        let mut caller = caller.clone();
        caller.follow(&service);
        caller
    };
    for ((caller, key, path, body), first) in calls.iter().zip(&firsts) {
        let caller = followed(caller);
        let again = named(&caller, key, path, body);
        assert_eq!(again.expect(201), first.expect(201), "{path}");
        assert_eq!(again.header("location"), first.header("location"), "{path}");
        let mut other = body.clone();
        other["name"] = json!("Other");
        let other = named(&caller, key, path, &other);
        let refusal = match path.ends_with("secrets") || *path == plugins {
            // They have no property of that name.
            true => 400,
            false => 409,
        };
        assert_eq!(other.status, refusal, "{path}");
    }
    let operator = followed(&operator);
    let again = named(
        &operator,
        "a-key",
        customers,
        &json!({ "name": "U", "id": "umbrella" }),
    );
    assert_eq!(again.expect(201), made.expect(201));
    let again = named(&operator, "client", clients, &json!({ "name": "app" }));
    assert_eq!(again.expect(201), client, "with its secret");
    assert_eq!(listed(&followed(&caller)), before);
    // A key of an action request is none of a device.
    let reused = named(
        &followed(&caller),
        "a-key",
        ONE,
        &when_active(read("/3/0/0")),
    );
    check(
        &reused,
        409,
        &[("IDEMPOTENCY_KEY_REUSED", "Idempotency-Key")],
    );
}
