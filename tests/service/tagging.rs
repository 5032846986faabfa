//! Are devices found by the tags that their customer gave them, whatever happened since?

use harness::device::configuration::Configuration;
use harness::device::resource::Resource;
use protocol::coap::code::Code;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;
use serde_json::{Value as Json, json};

use crate::test_service::{ID, TestService, start};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::lwm2m::read;
use crate::vocabulary::wire::{DeviceSocket, register_with};

#[test]
fn devices_are_found_by_their_tags_and_by_their_registration() {
    let (mut service, mut caller) = start(&[]);
    for (id, tags) in [
        ("a", json!({"site": "berlin", "floor": "1"})),
        ("b", json!({"site": "berlin", "floor": "2"})),
        ("c", json!({"site": "paris"})),
    ] {
        let body = json!({"deviceId": id, "ip": DEVICE_IP, "tags": tags});
        let made = caller.post(&format!("{API}/devices"), &body).expect(201);
        assert_eq!(made["tags"], tags);
    }
    let lines = "deviceId,tag:site\nd,berlin\ne,\n";
    let report = import(&caller, lines);
    assert_eq!(report["created"], 2);
    assert_eq!(found(&caller, "tag=site:berlin"), ["a", "b", "d"]);
    assert_eq!(found(&caller, "tag=site:berlin&tag=floor:2"), ["b"]);
    assert_eq!(found(&caller, "tag=site:ber"), [""; 0]);
    assert_eq!(import(&caller, lines)["unchanged"], 2);

    let wire = DeviceSocket::to(&service);
    let options = ["ep=b", "lt=600", "lwm2m=1.1", "b=U"];
    assert_eq!(
        wire.ask(&register_with(&options, "</3/0>,</3303/0>", 1))
            .code,
        Code::CREATED
    );
    wire.register("c", 2);
    let combined = "tag=site:berlin&registered=true&version=1.1&object=3303";
    assert_eq!(found(&caller, combined), ["b"]);
    let listed = list(&caller, combined);
    let shown = caller
        .request("GET", &format!("{API}/devices/b"))
        .expect(200);
    assert_eq!(listed["items"][0]["presence"], shown["presence"]);
    assert_eq!(listed["items"][0]["presence"]["state"], "AWAKE");
    assert_eq!(shown["tags"], json!({"site": "berlin", "floor": "2"}));

    amend(&caller, "a", &json!({"tags": {"site": "paris"}}));
    amend(&caller, "c", &json!({"tags": null}));
    let removed = caller.request("DELETE", &format!("{API}/devices/d"));
    assert_eq!(removed.status, 204);
    service.kill();
    service.start_again();
    caller.follow(&service);
    assert_eq!(found(&caller, "tag=site:berlin"), ["b"]);
    assert_eq!(found(&caller, "tag=site:paris"), ["a"]);
    assert_eq!(found(&caller, combined), ["b"]);
}

#[test]
fn tags_are_changed_one_by_one() {
    let (_service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let steps = [
        (
            json!({"site": "berlin", "floor": "2"}),
            json!({"site": "berlin", "floor": "2"}),
        ),
        (
            json!({"site": "paris", "gone": null}),
            json!({"site": "paris", "floor": "2"}),
        ),
        (json!({"floor": null}), json!({"site": "paris"})),
        (json!({}), json!({"site": "paris"})),
        (Json::Null, json!({})),
    ];
    for (tags, expected) in steps {
        let amended = amend(&caller, ID, &json!({ "tags": tags }));
        assert_eq!(amended["tags"], expected);
        assert_eq!(list(&caller, "")["items"][0]["tags"], expected);
    }
}

#[test]
fn a_device_is_found_by_the_firmware_it_reported_and_when_it_was_seen() {
    let mut configuration = Configuration::new(ID);
    let version = Value::String("1.4.2".to_owned());
    let version = Resource::holding(Path::resource(3, 0, 3), version);
    configuration.resources.push(version);
    let setup = TestService::with(&[], configuration);
    let caller = &setup.caller;
    let path = format!("{API}/devices/{ID}");
    let seen_at = || {
        let shown = caller.request("GET", &path).expect(200);
        text(&shown["presence"]["lastSeen"])
    };
    let first = seen_at();
    assert_eq!(found(caller, &format!("lastSeenBefore={first}")), [""; 0]);
    assert_eq!(found(caller, "lastSeenAfter=2026-01-01T00:00:00.000"), [ID]);
    assert_eq!(found(caller, "firmware=1.0"), [""; 0]);
    let read = caller.perform(ID, &read("/3/0/3"));
    assert_eq!(read["resultData"]["payload"], "1.4.2");
    assert_eq!(found(caller, "firmware=1.4.2"), [ID]);
    assert_eq!(found(caller, "firmware=another"), [""; 0]);
}

fn found(caller: &Caller, query: &str) -> Vec<String> {
    let page = list(caller, query);
    let items = page["items"].as_array().unwrap();
    assert_eq!(
        (&page["total"], &page["totalIsExact"]),
        (&json!(items.len()), &json!(true))
    );
    items.iter().map(|it| text(&it["deviceId"])).collect()
}

fn list(caller: &Caller, query: &str) -> Json {
    caller
        .request("GET", &format!("{API}/devices?{query}"))
        .expect(200)
}

fn amend(caller: &Caller, device: &str, body: &Json) -> Json {
    let path = format!("{API}/devices/{device}");
    let request = caller.authorized("PATCH", &path).json(body);
    request.send(caller.address()).expect(200)
}

fn import(caller: &Caller, lines: &str) -> Json {
    let request = caller.authorized("POST", &format!("{API}/devices/import"));
    request
        .text("text/csv", lines)
        .send(caller.address())
        .expect(200)
}
