//! Do applications learn from events when a device comes, goes, falls silent, sleeps and wakes,
//! each once, also if the service is killed?

use protocol::coap::code::Code;
use serde_json::{Value, json};

use crate::test_service::{ID, NEVER_AWAKE, crash, start};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::endpoint::{Endpoint, ReceivedPost};
use crate::vocabulary::plain::data;
use crate::vocabulary::poll::until;
use crate::vocabulary::wire::{DeviceSocket, deregister, location_of, register_with, update};

/// Allows deliveries to the endpoints of tests.
const PRIVATE: (&str, &str) = ("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true");

#[test]
fn each_change_of_presence_is_one_event_also_over_kills() {
    let (mut service, mut caller) = start(&[PRIVATE]);
    let endpoint = Endpoint::new();
    webhook(&caller, &endpoint, &json!([{ "type": "LIFECYCLE" }]));
    caller.create_device(ID, DEVICE_IP);
    let wire = DeviceSocket::to(&service);
    let location = registered(&wire, &["b=U"], 1);
    told(&endpoint, &["FIRST_CONTACT", "REGISTERED"]);
    crash(&mut service, &mut caller);

    assert_eq!(
        wire.ask_until_answered(&update(&location, 2)).code,
        Code::CHANGED
    );
    let short = update(&location, 3).with_uri_query(["lt=1"]);
    assert_eq!(wire.ask_until_answered(&short).code, Code::CHANGED);
    // The registration expires while the service is down, or shortly after its start.
    crash(&mut service, &mut caller);
    let gone = [
        "FIRST_CONTACT",
        "REGISTERED",
        "UPDATED",
        "EXPIRED",
        "OFFLINE",
    ];
    told(&endpoint, &gone);
    assert_eq!(presence(&caller)["connectivity"], "OFFLINE");
    let found = |word: &str| {
        let path = format!("{API}/devices?connectivity={word}");
        let listed = caller.request("GET", &path).expect(200);
        let devices = listed["items"].as_array().unwrap().iter();
        devices.map(|it| text(&it["deviceId"])).collect::<Vec<_>>()
    };
    assert_eq!(found("OFFLINE"), [ID]);
    assert_eq!(found("ONLINE"), [""; 0]);
    crash(&mut service, &mut caller);
    assert_eq!(presence(&caller)["connectivity"], "OFFLINE");

    let location = registered(&wire, &["b=U"], 4);
    assert_eq!(presence(&caller)["connectivity"], "ONLINE");
    crash(&mut service, &mut caller);
    assert_eq!(
        wire.ask_until_answered(&deregister(&location, 5)).code,
        Code::DELETED
    );
    assert_eq!(presence(&caller).get("connectivity"), None);
    told(
        &endpoint,
        &[&gone[..], &["BACK", "REGISTERED", "DEREGISTERED"]].concat(),
    );
    let log = caller.log_messages();
    assert_eq!(
        log,
        ["Lifecycle[DeviceFirstTimeRegistered]"],
        "the log says no more"
    );
}

#[test]
fn an_integration_receives_the_kinds_it_names_and_sleep_only_by_name() {
    let (service, caller) = start(&[PRIVATE, NEVER_AWAKE]);
    let (usual, sleep) = (Endpoint::new(), Endpoint::new());
    webhook(&caller, &usual, &json!([{ "type": "LIFECYCLE" }]));
    caller.create_device(ID, DEVICE_IP);
    let wire = DeviceSocket::to(&service);
    let location = registered(&wire, &["b=U", "Q"], 1);
    let kinds = |caller: &Caller| -> Vec<String> {
        let messages = caller.messages(ID).into_iter().rev();
        messages.map(|it| text(&it["lifecycle"]["type"])).collect()
    };
    assert_eq!(
        kinds(&caller),
        ["FIRST_CONTACT", "REGISTERED"],
        "nobody wants more"
    );

    let named = json!([{ "type": "LIFECYCLE", "kinds": ["AWAKE", "ASLEEP", "DEREGISTERED"] }]);
    let made = webhook(&caller, &sleep, &named);
    assert_eq!(
        made["eventTypes"][0]["kinds"],
        json!(["DEREGISTERED", "AWAKE", "ASLEEP"])
    );
    assert_eq!(
        wire.ask_until_answered(&update(&location, 2)).code,
        Code::CHANGED
    );
    told(&sleep, &["AWAKE", "ASLEEP"]);
    assert_eq!(
        wire.ask_until_answered(&update(&location, 3)).code,
        Code::CHANGED
    );
    told(&sleep, &["AWAKE", "ASLEEP", "AWAKE", "ASLEEP"]);
    assert_eq!(
        wire.ask_until_answered(&deregister(&location, 4)).code,
        Code::DELETED
    );
    let last = [
        "AWAKE",
        "ASLEEP",
        "AWAKE",
        "ASLEEP",
        "AWAKE",
        "DEREGISTERED",
    ];
    told(&sleep, &last);
    told(&usual, &["FIRST_CONTACT", "REGISTERED", "DEREGISTERED"]);
}

#[test]
fn a_device_without_registration_is_offline_after_the_silence_that_is_allowed() {
    let (mut service, mut caller) = start(&[PRIVATE]);
    let endpoint = Endpoint::new();
    webhook(&caller, &endpoint, &json!([{ "type": "LIFECYCLE" }]));
    let text = format!("deviceId,ip,offlineAfter\n{ID},{DEVICE_IP},86400\n");
    let import = caller.authorized("POST", &format!("{API}/devices/import"));
    let imported = import.text("text/csv", &text).send(caller.address());
    assert_eq!(imported.expect(200)["created"], 1);
    let wire = DeviceSocket::to(&service);
    assert_eq!(
        wire.ask_until_answered(&data("t", "1", 1)).code,
        Code::CHANGED
    );
    assert_eq!(caller.inspect(ID)["offlineAfter"], 86_400);
    assert_eq!(presence(&caller)["connectivity"], "ONLINE");

    // The customer allows every device a second, and this one has no time of its own any more.
    let set = json!({ "offlineAfter": 1 });
    let set = caller.try_send("PATCH", &format!("{API}/presence"), &set);
    set.unwrap().expect(200);
    let unset = json!({ "offlineAfter": null });
    caller.amend_device(ID, &unset);
    assert_eq!(caller.inspect(ID).get("offlineAfter"), None);
    crash(&mut service, &mut caller);
    told(&endpoint, &["FIRST_CONTACT", "OFFLINE"]);
    crash(&mut service, &mut caller);
    let set = json!({ "offlineAfter": 3_600 });
    caller.amend_device(ID, &set);
    assert_eq!(
        presence(&caller)["connectivity"],
        "OFFLINE",
        "until it is heard"
    );
    assert_eq!(
        wire.ask_until_answered(&data("t", "2", 2)).code,
        Code::CHANGED
    );
    told(&endpoint, &["FIRST_CONTACT", "OFFLINE", "BACK"]);
    assert_eq!(presence(&caller)["connectivity"], "ONLINE");
}

fn registered(wire: &DeviceSocket, binding: &[&str], id: u16) -> Vec<String> {
    let endpoint = format!("ep={ID}");
    let queries = [&[endpoint.as_str(), "lt=86400", "lwm2m=1.1"], binding].concat();
    let answer = wire.ask_until_answered(&register_with(&queries, "</1/0>,</3/0>", id));
    assert_eq!(answer.code, Code::CREATED, "{answer:?}");
    location_of(&answer)
}

fn webhook(caller: &Caller, endpoint: &Endpoint, types: &Value) -> Value {
    let body = json!({ "name": "Presence", "url": endpoint.url("/"), "eventTypes": types });
    let path = format!("{API}/integrate/clouds/webhooks");
    caller.post(&path, &body).expect(201)
}

fn presence(caller: &Caller) -> Value {
    caller.inspect(ID)["presence"].take()
}

/// Waits until an endpoint was told this, each event once and in order.
fn told(endpoint: &Endpoint, expected: &[&str]) {
    until("the events", || {
        let kinds = kinds_of(&endpoint.posted());
        (kinds.len() >= expected.len()).then_some(())
    });
    assert_eq!(kinds_of(&endpoint.posted()), expected);
}

/// The kinds of the delivered events. An event may be delivered again after a kill.
fn kinds_of(posted: &[ReceivedPost]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    let mut kinds = Vec::new();
    for post in posted {
        if !ids.iter().any(|id| id == post.id()) {
            ids.push(post.id().to_owned());
            kinds.push(text(&post.json()["lifecycle"]["type"]));
        }
    }
    kinds
}
