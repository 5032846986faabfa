//! Are devices created, shown, listed and deleted as their customer requested?

use harness::device::configuration::{Configuration, Reachability};
use protocol::coap::code::Code;
use serde_json::{Value, json};

use crate::test_service::{ID, TestService, error_codes, page, silent_device, start};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::http::Response;
use crate::vocabulary::lwm2m::{read, when_active};
use crate::vocabulary::wire::{DeviceSocket, deregister, register, update};

#[test]
fn missing_names_default_to_each_other() {
    let (_service, caller) = start(&[]);
    let by_id = create(&caller, &json!({ "deviceId": "meter-1" })).expect(201);
    assert_names(&by_id, ["meter-1", "meter-1", "meter-1"]);
    let by_iccid = create(&caller, &json!({ "iccid": "8988280666000000001" })).expect(201);
    assert_names(&by_iccid, ["8988280666000000001"; 3]);
    let body = json!({
        "deviceId": "meter-2", "iccid": "8988280666000000002", "imsi": "901288000000002",
        "msisdn": "491710000002", "ip": "10.0.0.2", "endpoint": "urn:imei:2", "name": "Cellar",
    });
    let whole = create(&caller, &body).expect(201);
    for (name, value) in body.as_object().unwrap() {
        assert_eq!(whole[name], *value, "{name}");
    }
    let numbers: Vec<&Value> = [&by_id, &by_iccid, &whole]
        .map(|device| &device["number"])
        .to_vec();
    assert!(numbers.iter().all(|number| number.is_u64()), "{numbers:?}");
    assert!(
        numbers[0] != numbers[1] && numbers[1] != numbers[2],
        "{numbers:?}"
    );
}

#[test]
fn names_are_unique_in_the_whole_service() {
    let (service, caller) = start(&[]);
    let stranger = Caller::of_new_customer(&service, "Umbrella");
    let body = json!({
        "deviceId": "a", "iccid": "8901", "imsi": "9011", "msisdn": "4911", "endpoint": "ep-a",
        "ip": "10.0.0.1",
    });
    create(&caller, &body).expect(201);
    let conflicts = [
        ("iccid", json!({ "deviceId": "b", "iccid": "8901" })),
        ("imsi", json!({ "deviceId": "b", "imsi": "9011" })),
        ("msisdn", json!({ "deviceId": "b", "msisdn": "4911" })),
        ("endpoint", json!({ "deviceId": "b", "endpoint": "ep-a" })),
        ("endpoint", json!({ "deviceId": "ep-a", "iccid": "8902" })),
    ];
    for (field, body) in conflicts {
        for who in [&caller, &stranger] {
            let refused = create(who, &body).expect(409);
            assert_eq!(error_codes(&refused), ["DEVICE_EXISTS"], "{refused}");
            assert_eq!(refused["errors"][0]["field"], field, "{refused}");
        }
    }
    let all = create(&caller, &body).expect(409);
    assert!(
        error_codes(&all)
            .iter()
            .all(|code| *code == "DEVICE_EXISTS"),
        "{all}"
    );
    assert!(
        error_codes(&all).len() >= 5,
        "every name is reported: {all}"
    );
    create(&caller, &json!({ "deviceId": "b", "ip": "10.0.0.1" })).expect(201);
    let same_id = json!({ "deviceId": "a", "iccid": "8903", "endpoint": "ep-c" });
    create(&stranger, &same_id).expect(201);
}

#[test]
fn a_name_that_two_callers_request_at_once_goes_to_one() {
    let (_service, caller) = start(&[]);
    let callers = (0..8).map(|number| {
        let caller = caller.clone();
        let body = json!({ "deviceId": format!("d{number}"), "imsi": "901288000000001" });
        std::thread::spawn(move || create(&caller, &body).status)
    });
    let callers: Vec<_> = callers.collect();
    let mut statuses: Vec<u16> = callers.into_iter().map(|it| it.join().unwrap()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409, 409, 409]);
}

#[test]
fn the_inspector_shows_what_a_device_is_doing() {
    let configuration = Configuration {
        lifetime_s: 100_000,
        reachability: Reachability::Queue {
            awake_window_ms: 60_000,
        },
        ..Configuration::new(ID)
    };
    let mut setup = TestService::with(&[], configuration);
    let id = setup.caller.create_action(ID, &when_active(read("/3/0/0")));
    let shown = inspect(&setup.caller, ID).expect(200);
    assert_names(&shown, [ID; 3]);
    assert_eq!(shown["presence"]["state"], "AWAKE");
    assert_eq!(shown["presence"]["protocol"], "LWM2M");
    let address = text(&shown["presence"]["address"]);
    assert!(address.starts_with(DEVICE_IP), "{shown}");
    assert!(
        text(&shown["presence"]["lastSeen"]).ends_with('Z'),
        "{shown}"
    );
    let registration = &shown["registration"];
    assert_eq!(registration["lifetime"], 86_400, "never above a day");
    assert_eq!(registration["lifetimeAsked"], 100_000);
    assert_eq!(registration["version"], "1.1");
    assert_eq!(registration["queueMode"], true);
    assert!(
        registration["expires"].as_str() > registration["registered"].as_str(),
        "{shown}"
    );
    let objects = registration["objects"].as_array().unwrap();
    let offered: Vec<u64> = objects
        .iter()
        .filter_map(|object| object["id"].as_u64())
        .collect();
    assert_eq!(offered, [1, 3, 6, 3303]);
    assert_eq!(shown["pendingActions"][0]["id"], id);
    setup.device.deregister();
    let shown = inspect(&setup.caller, ID).expect(200);
    assert_eq!(shown["presence"]["state"], "UNREGISTERED");
    assert!(shown["registration"].is_null(), "{shown}");
}

#[test]
fn a_device_without_contact_is_shown_as_such() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let shown = inspect(&caller, ID).expect(200);
    assert_eq!(shown["presence"], json!({ "state": "UNREGISTERED" }));
    assert!(shown["registration"].is_null(), "{shown}");
    assert_eq!(shown["pendingActions"], json!([]));
}

#[test]
fn devices_are_listed_page_by_page_for_their_customer_only() {
    let (service, caller) = start(&[]);
    let stranger = Caller::of_new_customer(&service, "Umbrella");
    silent_device(&stranger, "theirs");
    let ids: Vec<String> = (0..12)
        .map(|number| format!("device-{number:02}"))
        .collect();
    ids.iter().for_each(|id| silent_device(&caller, id));
    let names = |path: &str| {
        let page = caller.request("GET", &format!("{API}{path}")).expect(200);
        let items = page["items"].as_array().unwrap().clone();
        let names: Vec<String> = items.iter().map(|item| text(&item["deviceId"])).collect();
        (names, page["page"].clone(), page["pageAmount"].clone())
    };
    assert_eq!(names("/devices"), (ids[..10].to_vec(), json!(1), json!(2)));
    assert_eq!(
        names("/devices?page=2"),
        (ids[10..].to_vec(), json!(2), json!(2))
    );
    assert_eq!(names("/devices?page=3"), (vec![], json!(3), json!(2)));
    assert_eq!(
        names("/devices?pageSize=100"),
        (ids.clone(), json!(1), json!(1))
    );
    assert_eq!(
        caller
            .request("DELETE", &format!("{API}/devices/device-03"))
            .status,
        204
    );
    assert_eq!(names("/devices?pageSize=100").0.len(), 11);
}

#[test]
fn of_a_deleted_device_only_its_final_requests_are_found() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let wire = DeviceSocket::to(&service);
    let location = wire.register(ID, 1);
    let request = caller.create_action(ID, &when_active(read("/3/0/0")));
    let path = format!("{API}/devices/{ID}");
    assert_eq!(caller.request("DELETE", &path).status, 204);
    let key = json!({ "secretKey": "0123456789", "format": "STRING" });
    let requests = format!("{API}/integrate/devices/{ID}/actions/requests");
    let answers = [
        caller.request("GET", &path),
        caller.request("DELETE", &path),
        caller.try_action(ID, &when_active(read("/3/0/0"))),
        caller.request("DELETE", &requests),
        caller.post(&format!("{path}/psk"), &key),
    ];
    for answer in answers {
        assert_eq!(error_codes(&answer.expect(404)), ["NOT_FOUND"]);
    }
    assert_eq!(
        page(&caller, "/integrate/devices/actions/requests/active").0,
        Vec::<String>::new()
    );
    assert_eq!(caller.action(&request)["status"], "CANCELLED");
    assert_eq!(wire.ask(&update(&location, 2)).code, Code::NOT_FOUND);
    assert_eq!(wire.ask(&deregister(&location, 3)).code, Code::NOT_FOUND);
    assert_eq!(wire.ask(&register(ID, 4)).code, Code::FORBIDDEN);
    caller.create_device(ID, DEVICE_IP);
    assert_eq!(wire.ask(&update(&location, 5)).code, Code::NOT_FOUND);
    assert_ne!(wire.register(ID, 6), location);
}

#[test]
fn calls_about_a_device_during_its_deletion_succeed_or_find_nothing() {
    let (_service, caller) = start(&[("SIGNALBOX_SCHEDULED_MAX", "10000")]);
    for _ in 0..15 {
        silent_device(&caller, ID);
        let path = format!("{API}/devices/{ID}");
        let callers = (0..4).map(|number| {
            let (caller, path) = (caller.clone(), path.clone());
            std::thread::spawn(move || {
                let ask = || match number {
                    0 => caller.request("DELETE", &path).status,
                    1 => caller.request("GET", &path).status,
                    _ => caller.try_action(ID, &when_active(read("/3/0/0"))).status,
                };
                (0..6).map(|_| ask()).collect::<Vec<_>>()
            })
        });
        let callers: Vec<_> = callers.collect();
        assert!([204, 404].contains(&caller.request("DELETE", &path).status));
        assert_eq!(caller.request("GET", &path).status, 404);
        for statuses in callers.into_iter().map(|it| it.join().unwrap()) {
            let is_known = |status: &u16| [200, 202, 204, 404].contains(status);
            assert!(statuses.iter().all(is_known), "{statuses:?}");
        }
    }
}

#[test]
fn a_device_of_one_customer_does_not_exist_for_another() {
    let setup = TestService::new();
    let stranger = Caller::of_new_customer(&setup.service, "Umbrella");
    let key = json!({ "secretKey": "0123456789", "format": "STRING" });
    let path = format!("{API}/devices/{ID}");
    let answers = [
        stranger.request("GET", &path),
        stranger.request("DELETE", &path),
        stranger.try_action(ID, &read("/3/0/0")),
        stranger.post(&format!("{path}/psk"), &key),
    ];
    for answer in answers {
        assert_eq!(error_codes(&answer.expect(404)), ["NOT_FOUND"]);
    }
    assert_eq!(stranger.log_messages(), Vec::<String>::new());
    assert_eq!(
        inspect(&setup.caller, ID).expect(200)["psk"]["configured"],
        false
    );
}

#[test]
fn a_key_is_stored_and_never_shown() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    silent_device(&caller, "other");
    let keys = [
        json!({ "secretKey": "correct horse", "format": "STRING" }),
        json!({ "secretKey": "00112233445566778899aabbccddeeff", "format": "HEX" }),
        json!({ "secretKey": "correct horse", "format": "STRING", "identity": "key-of-meter" }),
    ];
    for key in &keys {
        let answer = caller.post(&format!("{API}/devices/{ID}/psk"), key);
        assert_eq!((answer.status, answer.text()), (204, ""));
        let shown = inspect(&caller, ID);
        assert!(
            !shown.text().contains(&text(&key["secretKey"])),
            "{}",
            shown.text()
        );
        assert_eq!(shown.expect(200)["psk"]["configured"], true);
    }
    assert_eq!(
        inspect(&caller, ID).expect(200)["psk"]["identity"],
        "key-of-meter"
    );
    let taken = caller
        .post(&format!("{API}/devices/other/psk"), &keys[2])
        .expect(409);
    assert_eq!(error_codes(&taken), ["DEVICE_EXISTS"]);
    assert_eq!(taken["errors"][0]["field"], "identity");
}

fn create(caller: &Caller, body: &Value) -> Response {
    caller.post(&format!("{API}/devices"), body)
}

fn inspect(caller: &Caller, id: &str) -> Response {
    caller.request("GET", &format!("{API}/devices/{id}"))
}

/// Checks device id, ICCID and endpoint.
fn assert_names(device: &Value, expected: [&str; 3]) {
    let names = ["deviceId", "iccid", "endpoint"].map(|name| device[name].clone());
    assert_eq!(names, expected.map(Value::from), "{device}");
}
