//! Do requests over UDP and CoAP keep what every request promises: once, in time, and in the list?

use protocol::coap::code::Code;
use serde_json::{Value, json};

use super::{ID, IP, Scene};
use crate::scene::{IMPATIENT, page, with};
use crate::vocabulary::caller::{API, text};
use crate::vocabulary::endpoint::{Endpoint, Posted};
use crate::vocabulary::lwm2m::when_active;
use crate::vocabulary::plain::{Told, carrying, coap, data, datagram};
use crate::vocabulary::wire::Wire;

const REQUESTS: &str = "/integrate/devices/actions/requests";

const PRIVATE: (&str, &str) = ("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true");

#[test]
fn a_call_made_again_under_its_key_happens_once() {
    let mut scene = Scene::new();
    let port = scene.udp.port();
    let bodies = [
        ("UDP", datagram("once", port)),
        ("COAP", coap("GET", "/once", scene.coap.port())),
    ];
    for (protocol, body) in &bodies {
        let path = format!("{API}/integrate/devices/{ID}/actions/{protocol}");
        let body = when_active(body.clone());
        let ask = |scene: &Scene| {
            let call = scene.caller.authorized("POST", &path);
            let call = call.header("idempotency-key", protocol).json(&body);
            call.send(scene.service.http).expect(202)
        };
        let first = ask(&scene);
        assert_eq!(ask(&scene), first);
        scene.crash();
        assert_eq!(ask(&scene), first);
    }
    assert_eq!(page(&scene.caller, REQUESTS).0.len(), 2);
    scene.post("awake");
    assert_eq!(scene.udp.hear(), b"once");
    scene.answer_next(Code::CONTENT, "1");
    scene.post("awake");
    assert_eq!(scene.udp.heard(), Vec::<Vec<u8>>::new());
    assert_eq!(scene.coap.heard(), []);
}

#[test]
fn a_list_leaves_out_what_is_long_and_the_request_by_itself_has_it() {
    let scene = Scene::new();
    let long = "x".repeat(5_000);
    let body = carrying(coap("PUT", "/long", scene.coap.port()), &long);
    let id = scene.ask(&when_active(body));
    let list = scene.caller.request("GET", &format!("{API}{REQUESTS}"));
    let listed = &list.expect(200)["items"][0];
    assert_eq!(listed["omitted"], json!(["requestData.payload"]));
    assert_eq!(listed["requestData"].get("payload"), None);
    let alone = scene.caller.action(&id);
    assert_eq!(alone.get("omitted"), None);
    assert_eq!(alone["requestData"]["payload"], json!(long));
}

#[test]
fn a_request_that_nobody_fetched_in_time_fails_and_is_never_sent() {
    let mut scene = Scene::new();
    let bodies = [
        scene.tell(&in_a_second(datagram("late", scene.udp.port()))),
        scene.ask(&in_a_second(coap("GET", "/late", scene.coap.port()))),
    ];
    for id in &bodies {
        let action = scene.caller.final_action(id);
        assert_eq!(action["status"], "FAILED", "{action}");
        let why = text(&action["resultData"]["errorMessage"]);
        assert!(why.contains("expired"), "{why}");
    }
    let expired = "DeviceController[ActionRequestExpired]";
    assert_eq!(scene.logged(ID, expired), 2);
    scene.post("awake");
    assert_eq!(scene.udp.heard(), Vec::<Vec<u8>>::new());
    assert_eq!(scene.coap.heard(), []);
}

#[test]
fn a_datagram_that_cannot_leave_fails_and_the_next_one_leaves() {
    let scene = Scene::with(&IMPATIENT);
    // From a loopback address nothing goes beyond this machine.
    scene.caller.create_device("far", "203.0.113.7");
    let bodies = [
        ("UDP", datagram("lost", 4_445)),
        ("COAP", coap("GET", "/lost", 5_683)),
    ];
    for (protocol, body) in bodies {
        let id = scene.caller.create_over(protocol, "far", &body);
        let action = scene.caller.final_action(&id);
        assert_eq!(action["status"], "FAILED", "{action}");
        assert_eq!(action["sendAttemptsLeft"], 0, "{action}");
        let why = &action["resultData"]["errorMessage"];
        assert!(why.is_string(), "{action}");
    }
    let failed = "DeviceController[ActionRequestFailed]";
    assert_eq!(scene.logged("far", failed), 2);
    let id = scene.tell(&datagram("well", scene.udp.port()));
    assert_eq!(scene.udp.hear(), b"well");
    assert_eq!(scene.caller.final_action(&id)["status"], "SUCCEEDED");
}

#[test]
fn requests_are_listed_by_their_protocol() {
    let scene = Scene::new();
    let bodies = [
        ("UDP", datagram("x", 4_445)),
        ("COAP", coap("GET", "/x", 5_683)),
        (
            "LWM2M",
            json!({ "action": "read", "resourceAddress": "/3/0/0" }),
        ),
    ];
    let ids = bodies.map(|(protocol, body)| {
        let id = scene.caller.create_over(protocol, ID, &when_active(body));
        (protocol, id)
    });
    for (protocol, id) in &ids {
        let (listed, _) = page(&scene.caller, &format!("{REQUESTS}?protocol={protocol}"));
        assert_eq!(listed, std::slice::from_ref(id), "{protocol}");
        let action = scene.caller.action(id);
        assert_eq!(action["protocol"], *protocol, "{action}");
        assert_eq!(action["ip"], IP, "{action}");
        assert_eq!(action["requestData"]["deviceIpAddress"], IP, "{action}");
    }
    let seen = scene.caller.inspect(ID);
    let pending = seen["pendingActions"].as_array().unwrap();
    let told: Vec<&Value> = pending.iter().map(|it| &it["id"]).collect();
    assert_eq!(told, ids.each_ref().map(|(_, id)| id.as_str()), "{seen}");
}

#[test]
fn what_a_device_was_thanked_for_is_delivered_whatever_falls_over() {
    let mut scene = Scene::with(&[PRIVATE]);
    let endpoint = Endpoint::new();
    let webhook = json!({
        "name": "Data", "url": endpoint.url("/"), "jsonPayloadEnabled": true,
        "eventTypes": [{ "type": "TELEMETRY_DATA" }],
    });
    let webhooks = format!("{API}/integrate/clouds/webhooks");
    scene.caller.post(&webhooks, &webhook).expect(201);
    for round in 0..5 {
        for number in 0..4 {
            scene.post(&(round * 4 + number).to_string());
        }
        scene.crash();
    }
    let posted = endpoint.once_so("each of them", |posted| numbers(posted).len() == 20);
    assert_eq!(numbers(&posted), (0..20).collect::<Vec<u64>>());
}

#[test]
fn a_device_that_is_gone_is_asked_nothing_more() {
    let mut scene = Scene::new();
    scene.tell(&when_active(datagram("never", scene.udp.port())));
    scene.ask(&when_active(coap("GET", "/never", scene.coap.port())));
    let device = format!("{API}/devices/{ID}");
    assert_eq!(scene.caller.request("DELETE", &device).status, 204);
    scene.caller.create_device("heir", IP);
    let wire = Wire::from(IP, &scene.service);
    assert_eq!(wire.ask(&data("t", "here", 1)).code, Code::CHANGED);
    scene.udp.say(b"here");
    let told = [Told::over_coap("t", "here"), Told::over_udp("here")];
    assert_eq!(scene.caller.once_told("heir", 2), told);
    let said = data("t", "here", scene.id());
    assert_eq!(scene.coap.ask(&said).code, Code::CHANGED);
    assert_eq!(scene.udp.heard(), Vec::<Vec<u8>>::new());
    assert_eq!(scene.coap.heard(), []);
}

/// The numbers that were told, in the order in which each was told first.
fn numbers(posted: &[Posted]) -> Vec<u64> {
    let mut seen = Vec::new();
    let mut numbers = Vec::new();
    for posted in posted {
        if !seen.contains(&posted.id()) {
            seen.push(posted.id());
            numbers.push(posted.json()["payload"]["value"].as_u64().unwrap());
        }
    }
    numbers
}

/// The same when the device is next heard, but only within a second.
fn in_a_second(body: Value) -> Value {
    with(when_active(body), "expiresIn", 1)
}
