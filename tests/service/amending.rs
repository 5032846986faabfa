//! Do changes of a device by its customer apply at once and survive a crash?

use protocol::coap::code::Code;
use serde_json::{Value, json};

use crate::test_service::{ID, TestService, error_codes, start};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::http::Response;
use crate::vocabulary::lwm2m::{outcome, read, when_active};
use crate::vocabulary::wire::{DeviceSocket, location_of, register, update};

const ELSEWHERE: &str = "127.0.0.2";

#[test]
fn only_the_named_properties_change() {
    let (_service, caller) = start(&[]);
    let body = json!({
        "deviceId": ID, "iccid": "8901", "imsi": "9011", "msisdn": "4911", "ip": "10.0.0.1",
        "endpoint": "ep-1", "name": "Cellar",
    });
    let made = caller.post(&format!("{API}/devices"), &body).expect(201);
    let empty = amend(&caller, &json!({})).expect(200);
    assert_eq!(empty, made, "nothing was named");
    let changes = [
        ("iccid", json!("8902")),
        ("imsi", Value::Null),
        ("msisdn", json!("4912")),
        ("ip", json!("2001:db8::1")),
        ("name", Value::Null),
        ("imsi", json!("9012")),
    ];
    let mut expected = made;
    for (name, value) in changes {
        let answered = amend(&caller, &json!({ name: value })).expect(200);
        let fields = expected.as_object_mut().unwrap();
        if value.is_null() {
            fields.remove(name);
        } else {
            fields.insert(name.to_owned(), value);
        }
        assert_eq!(answered, expected, "{name}");
        let mut listed = caller.request("GET", &format!("{API}/devices")).expect(200);
        let mut listed = listed["items"][0].take();
        let presence = listed.as_object_mut().unwrap().remove("presence");
        assert_eq!(presence, Some(json!({"state": "UNREGISTERED"})), "{name}");
        assert_eq!(listed, expected, "{name}");
    }
}

#[test]
fn a_device_is_accepted_at_its_new_address_at_once_and_rejected_at_the_old_one() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let (old, new) = (
        DeviceSocket::to(&service),
        DeviceSocket::from(ELSEWHERE, &service),
    );
    let location = old.register(ID, 1);
    assert_eq!(new.ask(&register(ID, 1)).code, Code::FORBIDDEN);
    amend(&caller, &json!({ "ip": ELSEWHERE })).expect(200);
    assert_eq!(old.ask(&update(&location, 2)).code, Code::NOT_FOUND);
    assert_eq!(old.ask(&register(ID, 3)).code, Code::FORBIDDEN);
    let location = new.register(ID, 2);
    assert_eq!(new.ask(&update(&location, 3)).code, Code::CHANGED);
    assert!(
        text(&caller.inspect(ID)["presence"]["address"]).starts_with(ELSEWHERE),
        "it is where it came from"
    );
    amend(&caller, &json!({ "ip": null })).expect(200);
    assert_eq!(new.ask(&register(ID, 4)).code, Code::FORBIDDEN);
}

#[test]
fn the_new_address_of_an_unregistered_device_applies() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    amend(&caller, &json!({ "ip": ELSEWHERE })).expect(200);
    let old = DeviceSocket::to(&service);
    assert_eq!(old.ask(&register(ID, 1)).code, Code::FORBIDDEN);
    DeviceSocket::from(ELSEWHERE, &service).register(ID, 1);
}

#[test]
fn a_registration_keeps_its_location_under_a_new_endpoint_name() {
    let mut setup = TestService::new();
    amend(&setup.caller, &json!({ "endpoint": "attic" })).expect(200);
    setup.device.update();
    let action = setup.caller.perform(ID, &read("/3/0/0"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    let wire = DeviceSocket::to(&setup.service);
    assert_eq!(wire.ask(&register(ID, 1)).code, Code::FORBIDDEN);
    let answer = wire.ask(&register("attic", 2));
    assert_eq!(answer.code, Code::CREATED);
    assert_eq!(
        wire.ask(&update(&location_of(&answer), 3)).code,
        Code::CHANGED
    );
    let heir = json!({ "deviceId": "heir", "endpoint": ID, "ip": DEVICE_IP });
    let made = setup.caller.post(&format!("{API}/devices"), &heir);
    made.expect(201);
    let wire = DeviceSocket::to(&setup.service);
    wire.register(ID, 4);
    let heir = setup.caller.inspect("heir");
    assert_eq!(heir["presence"]["state"], "AWAKE", "{heir}");
}

#[test]
fn new_entries_and_requests_name_the_current_sim() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    DeviceSocket::to(&service).register(ID, 1);
    let before = caller.create_action(ID, &when_active(read("/3/0/0")));
    amend(&caller, &json!({ "iccid": "8902", "imsi": "9012" })).expect(200);
    let after = caller.create_action(ID, &when_active(read("/3/0/0")));
    let stranger = DeviceSocket::from(ELSEWHERE, &service);
    assert_eq!(stranger.ask(&register(ID, 1)).code, Code::FORBIDDEN);
    let entries = caller.log_entries();
    let named: Vec<_> = entries.iter().map(|it| text(&it["iccid"])).collect();
    assert_eq!(named, ["8902", ID], "newest first");
    assert_eq!(entries[0]["imsi"], "9012");
    let of_new = format!("{API}/administrationLogs?iccid=8902");
    let of_new = caller.request("GET", &of_new).expect(200);
    assert_eq!(of_new["items"], json!([entries[0]]));
    assert_eq!(caller.action(&before)["requestData"]["iccid"], ID);
    assert_eq!(caller.action(&after)["requestData"]["iccid"], "8902");
}

#[test]
fn a_change_and_the_names_it_freed_survive_a_crash() {
    let (mut service, mut caller) = start(&[]);
    let body = json!({ "deviceId": ID, "imsi": "9011", "ip": DEVICE_IP });
    caller.post(&format!("{API}/devices"), &body).expect(201);
    DeviceSocket::to(&service).register(ID, 1);
    let change = json!({ "imsi": null, "ip": ELSEWHERE, "name": "Attic" });
    let changed = amend(&caller, &change).expect(200);
    service.kill();
    service.start_again();
    caller.follow(&service);
    let mut listed = caller.request("GET", &format!("{API}/devices")).expect(200);
    let mut listed = listed["items"][0].take();
    listed.as_object_mut().unwrap().remove("presence");
    assert_eq!(listed, changed);
    let stranger = Caller::of_new_customer(&service, "Umbrella");
    let heir = json!({ "deviceId": "heir", "imsi": "9011" });
    stranger.post(&format!("{API}/devices"), &heir).expect(201);
    let old = DeviceSocket::to(&service);
    assert_eq!(old.ask(&register(ID, 1)).code, Code::FORBIDDEN);
    DeviceSocket::from(ELSEWHERE, &service).register(ID, 1);
}

#[test]
fn concurrent_changes_of_different_properties_are_all_stored() {
    let (_service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let changes = [
        ("name", json!("Attic")),
        ("imsi", json!("9011")),
        ("msisdn", json!("4911")),
        ("ip", json!("10.0.0.9")),
    ];
    for round in 0..5 {
        let calls = changes.clone().map(|(name, value)| {
            let caller = caller.clone();
            let value = if round % 2 == 0 { value } else { Value::Null };
            std::thread::spawn(move || amend(&caller, &json!({ name: value })).status)
        });
        for call in calls {
            assert_eq!(call.join().unwrap(), 200);
        }
        let device = caller.inspect(ID);
        for (name, value) in &changes {
            let expected = (round % 2 == 0).then_some(value);
            assert_eq!(device.get(*name), expected, "round {round}: {device}");
        }
    }
}

#[test]
fn the_last_of_many_changes_applies() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    DeviceSocket::to(&service).register(ID, 1);
    let calls = (0..6).map(|number| {
        let caller = caller.clone();
        let ip = if number % 2 == 0 {
            ELSEWHERE
        } else {
            DEVICE_IP
        };
        std::thread::spawn(move || amend(&caller, &json!({ "ip": ip })).status)
    });
    for call in calls.collect::<Vec<_>>() {
        // A caller that repeatedly loses against concurrent changes is asked to try again.
        assert!([200, 503].contains(&call.join().unwrap()));
    }
    let (home, elsewhere) = (
        DeviceSocket::to(&service),
        DeviceSocket::from(ELSEWHERE, &service),
    );
    let (admitted, refused) = match text(&caller.inspect(ID)["ip"]).as_str() {
        DEVICE_IP => (home, elsewhere),
        _ => (elsewhere, home),
    };
    assert_eq!(refused.ask(&register(ID, 7)).code, Code::FORBIDDEN);
    assert_eq!(admitted.ask(&register(ID, 8)).code, Code::CREATED);
}

#[test]
fn a_name_that_two_devices_request_at_once_goes_to_one() {
    let (_service, caller) = start(&[]);
    let ids = ["a", "b", "c", "d"];
    ids.iter()
        .for_each(|id| caller.create_device(id, DEVICE_IP));
    let calls = ids.map(|id| {
        let caller = caller.clone();
        std::thread::spawn(move || amend_one(&caller, id, &json!({ "imsi": "9011" })))
    });
    let mut statuses = Vec::new();
    for call in calls {
        let answer = call.join().unwrap();
        if answer.status == 409 {
            let refused = answer.expect(409);
            assert_eq!(error_codes(&refused), ["DEVICE_EXISTS"], "{refused}");
            assert_eq!(refused["errors"][0]["field"], "imsi", "{refused}");
        }
        statuses.push(answer.status);
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409]);
}

#[test]
fn the_psk_identity_follows_the_endpoint_until_a_key_is_set() {
    let (_service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let moved = amend(&caller, &json!({ "endpoint": "ep-2" })).expect(200);
    assert_eq!(moved["psk"]["identity"], "ep-2");
    let key = json!({ "secretKey": "0123456789", "format": "STRING" });
    let given = caller.post(&format!("{API}/devices/{ID}/psk"), &key);
    assert_eq!(given.status, 204);
    let moved = amend(&caller, &json!({ "endpoint": "ep-3" })).expect(200);
    assert_eq!(moved["endpoint"], "ep-3");
    assert_eq!(moved["psk"]["identity"], "ep-2");
    assert_eq!(moved["psk"]["configured"], true);
    let freed = json!({ "deviceId": "other", "endpoint": ID });
    caller.post(&format!("{API}/devices"), &freed).expect(201);
    let held = json!({ "deviceId": "third", "endpoint": "ep-2" });
    let refused = caller.post(&format!("{API}/devices"), &held).expect(409);
    assert_eq!(refused["errors"][0]["field"], "identity", "{refused}");
}

fn amend(caller: &Caller, body: &Value) -> Response {
    amend_one(caller, ID, body)
}

fn amend_one(caller: &Caller, id: &str, body: &Value) -> Response {
    let request = caller.authorized("PATCH", &format!("{API}/devices/{id}"));
    request.json(body).send(caller.address())
}
