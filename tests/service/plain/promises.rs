//! Do requests over UDP and CoAP keep the promises of every request: once, in time, and in the
//! list?

use protocol::coap::code::Code;
use serde_json::{Value, json};

use super::{ID, IP, PlainService};
use crate::test_service::{IMPATIENT, page, with};
use crate::vocabulary::caller::{API, text};
use crate::vocabulary::endpoint::{Endpoint, ReceivedPost};
use crate::vocabulary::lwm2m::when_active;
use crate::vocabulary::plain::{ReportedData, carrying, coap, data, datagram};
use crate::vocabulary::wire::DeviceSocket;

const REQUESTS: &str = "/integrate/devices/actions/requests";

#[test]
fn a_call_repeated_with_its_key_happens_once() {
    let mut setup = PlainService::new();
    let port = setup.udp.port();
    let bodies = [
        ("UDP", datagram("once", port)),
        ("COAP", coap("GET", "/once", setup.coap.port())),
    ];
    for (protocol, body) in &bodies {
        let path = format!("{API}/integrate/devices/{ID}/actions/{protocol}");
        let body = when_active(body.clone());
        let ask = |setup: &PlainService| {
            let call = setup.caller.authorized("POST", &path);
            let call = call.header("idempotency-key", protocol).json(&body);
            call.send(setup.service.http).expect(202)
        };
        let first = ask(&setup);
        assert_eq!(ask(&setup), first);
        setup.crash();
        assert_eq!(ask(&setup), first);
    }
    assert_eq!(page(&setup.caller, REQUESTS).0.len(), 2);
    setup.post("awake");
    assert_eq!(setup.udp.receive(), b"once");
    setup.answer_next(Code::CONTENT, "1");
    setup.post("awake");
    assert_eq!(setup.udp.received(), Vec::<Vec<u8>>::new());
    assert_eq!(setup.coap.received(), []);
}

#[test]
fn a_list_omits_long_payloads_and_a_single_request_has_them() {
    let setup = PlainService::new();
    let long = "x".repeat(5_000);
    let body = carrying(coap("PUT", "/long", setup.coap.port()), &long);
    let id = setup.create_coap(&when_active(body));
    let list = setup.caller.request("GET", &format!("{API}{REQUESTS}"));
    let listed = &list.expect(200)["items"][0];
    assert_eq!(listed["omitted"], json!(["requestData.payload"]));
    assert_eq!(listed["requestData"].get("payload"), None);
    let alone = setup.caller.action(&id);
    assert_eq!(alone.get("omitted"), None);
    assert_eq!(alone["requestData"]["payload"], json!(long));
}

#[test]
fn a_request_without_an_uplink_in_time_fails_and_is_never_sent() {
    let mut setup = PlainService::new();
    let bodies = [
        setup.create_udp(&in_a_second(datagram("late", setup.udp.port()))),
        setup.create_coap(&in_a_second(coap("GET", "/late", setup.coap.port()))),
    ];
    for id in &bodies {
        let action = setup.caller.final_action(id);
        assert_eq!(action["status"], "FAILED", "{action}");
        let why = text(&action["resultData"]["errorMessage"]);
        assert!(why.contains("expired"), "{why}");
    }
    let expired = "DeviceController[ActionRequestExpired]";
    assert_eq!(setup.logged(ID, expired), 2);
    setup.post("awake");
    assert_eq!(setup.udp.received(), Vec::<Vec<u8>>::new());
    assert_eq!(setup.coap.received(), []);
}

#[test]
fn a_datagram_that_cannot_be_sent_fails_and_the_next_one_is_sent() {
    let setup = PlainService::with(&IMPATIENT);
    // Nothing can be sent from a loopback address to another machine.
    setup.caller.create_device("far", "203.0.113.7");
    let bodies = [
        ("UDP", datagram("lost", 4_445)),
        ("COAP", coap("GET", "/lost", 5_683)),
    ];
    for (protocol, body) in bodies {
        let id = setup.caller.create_over(protocol, "far", &body);
        let action = setup.caller.final_action(&id);
        assert_eq!(action["status"], "FAILED", "{action}");
        assert_eq!(action["sendAttemptsLeft"], 0, "{action}");
        let why = &action["resultData"]["errorMessage"];
        assert!(why.is_string(), "{action}");
    }
    let failed = "DeviceController[ActionRequestFailed]";
    assert_eq!(setup.logged("far", failed), 2);
    let id = setup.create_udp(&datagram("well", setup.udp.port()));
    assert_eq!(setup.udp.receive(), b"well");
    assert_eq!(setup.caller.final_action(&id)["status"], "SUCCEEDED");
}

#[test]
fn requests_are_listed_by_their_protocol() {
    let setup = PlainService::new();
    let bodies = [
        ("UDP", datagram("x", 4_445)),
        ("COAP", coap("GET", "/x", 5_683)),
        (
            "LWM2M",
            json!({ "action": "read", "resourceAddress": "/3/0/0" }),
        ),
    ];
    let ids = bodies.map(|(protocol, body)| {
        let id = setup.caller.create_over(protocol, ID, &when_active(body));
        (protocol, id)
    });
    for (protocol, id) in &ids {
        let (listed, _) = page(&setup.caller, &format!("{REQUESTS}?protocol={protocol}"));
        assert_eq!(listed, std::slice::from_ref(id), "{protocol}");
        let action = setup.caller.action(id);
        assert_eq!(action["protocol"], *protocol, "{action}");
        assert_eq!(action["ip"], IP, "{action}");
        assert_eq!(action["requestData"]["deviceIpAddress"], IP, "{action}");
    }
    let device = setup.caller.inspect(ID);
    let pending = device["pendingActions"].as_array().unwrap();
    let listed: Vec<&Value> = pending.iter().map(|it| &it["id"]).collect();
    assert_eq!(
        listed,
        ids.each_ref().map(|(_, id)| id.as_str()),
        "{device}"
    );
}

#[test]
fn acknowledged_data_is_delivered_across_crashes() {
    let mut setup = PlainService::new();
    let endpoint = Endpoint::new();
    let webhook = json!({
        "name": "Data", "url": endpoint.url("/"), "jsonPayloadEnabled": true,
        "eventTypes": [{ "type": "TELEMETRY_DATA" }],
    });
    let webhooks = format!("{API}/integrate/clouds/webhooks");
    setup.caller.post(&webhooks, &webhook).expect(201);
    for round in 0..5 {
        for number in 0..4 {
            setup.post(&(round * 4 + number).to_string());
        }
        setup.crash();
    }
    let posted = endpoint.once_so("each of them", |posted| numbers(posted).len() == 20);
    assert_eq!(numbers(&posted), (0..20).collect::<Vec<u64>>());
}

#[test]
fn no_request_is_sent_to_a_deleted_device() {
    let mut setup = PlainService::new();
    setup.create_udp(&when_active(datagram("never", setup.udp.port())));
    setup.create_coap(&when_active(coap("GET", "/never", setup.coap.port())));
    let device = format!("{API}/devices/{ID}");
    assert_eq!(setup.caller.request("DELETE", &device).status, 204);
    setup.caller.create_device("heir", IP);
    let wire = DeviceSocket::from(IP, &setup.service);
    assert_eq!(wire.ask(&data("t", "here", 1)).code, Code::CHANGED);
    setup.udp.send(b"here");
    let expected = [
        ReportedData::over_coap("t", "here"),
        ReportedData::over_udp("here"),
    ];
    assert_eq!(setup.caller.once_reported("heir", 2), expected);
    let message = data("t", "here", setup.id());
    assert_eq!(setup.coap.ask(&message).code, Code::CHANGED);
    assert_eq!(setup.udp.received(), Vec::<Vec<u8>>::new());
    assert_eq!(setup.coap.received(), []);
}

/// The delivered numbers, in the order of their first deliveries.
fn numbers(posted: &[ReceivedPost]) -> Vec<u64> {
    let mut ids = Vec::new();
    let mut numbers = Vec::new();
    for posted in posted {
        if !ids.contains(&posted.id()) {
            ids.push(posted.id());
            numbers.push(posted.json()["payload"]["value"].as_u64().unwrap());
        }
    }
    numbers
}

/// The same body with SEND_WHEN_ACTIVE, expiring after a second.
fn in_a_second(body: Value) -> Value {
    with(when_active(body), "expiresIn", 1)
}
