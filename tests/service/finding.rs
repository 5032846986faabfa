//! Does a search find the right devices, whatever has changed since they were created?

use std::ops::Range;

use protocol::coap::code::Code;
use serde_json::{Value, json};

use crate::test_service::{error_codes, silent_device, start};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::poll::until;
use crate::vocabulary::wire::{DeviceSocket, deregister, register_with};

#[test]
fn devices_are_found_by_their_registration_state() {
    let (service, caller) = start(&[]);
    for id in ["a", "b", "c", "d"] {
        caller.create_device(id, DEVICE_IP);
    }
    assert_eq!(registered(&caller, true), [""; 0]);
    let wire = DeviceSocket::to(&service);
    wire.register("b", 1);
    let location = wire.register("c", 2);
    wire.register("d", 3);
    assert_eq!(registered(&caller, true), ["b", "c", "d"]);
    assert_eq!(registered(&caller, false), ["a"]);
    wire.ask(&deregister(&location, 4));
    assert_eq!(registered(&caller, true), ["b", "d"]);
    assert_eq!(registered(&caller, false), ["a", "c"]);
    let forgotten = caller.request("DELETE", &format!("{API}/devices/d"));
    assert_eq!(forgotten.status, 204);
    assert_eq!(registered(&caller, true), ["b"]);
    assert_eq!(found(&caller, "").len(), 3);
}

#[test]
fn a_device_whose_registration_expired_is_not_found_as_registered() {
    let (service, caller) = start(&[]);
    caller.create_device("brief", DEVICE_IP);
    let wire = DeviceSocket::to(&service);
    let brief = register_with(&["ep=brief", "lt=1", "lwm2m=1.1", "b=U"], "</3/0>", 1);
    assert_eq!(wire.ask(&brief).code, Code::CREATED);
    until("the end of a registration", || {
        registered(&caller, true).is_empty().then_some(())
    });
    assert_eq!(registered(&caller, false), ["brief"]);
    assert_eq!(found(&caller, "protocol=LWM2M"), ["brief"]);
}

#[test]
fn a_search_finds_the_same_after_a_crash() {
    let (mut service, mut caller) = start(&[]);
    for id in ["a", "b", "c"] {
        caller.create_device(id, DEVICE_IP);
    }
    let wire = DeviceSocket::to(&service);
    wire.register("a", 1);
    let location = wire.register("b", 2);
    wire.ask(&deregister(&location, 3));
    service.kill();
    service.start_again();
    caller.follow(&service);
    assert_eq!(registered(&caller, true), ["a"]);
    assert_eq!(registered(&caller, false), ["b", "c"]);
    assert_eq!(found(&caller, "protocol=LWM2M"), ["a", "b"]);
    assert_eq!(found(&caller, "protocol=LWM2M&registered=false"), ["b"]);
    assert_eq!(found(&caller, "protocol=UDP"), [""; 0]);
    DeviceSocket::to(&service).register("b", 4);
    assert_eq!(registered(&caller, true), ["a", "b"]);
}

#[test]
fn devices_are_found_by_the_beginning_of_a_current_name() {
    let (service, caller) = start(&[]);
    let stranger = Caller::of_new_customer(&service, "Umbrella");
    silent_device(&stranger, "meter-theirs");
    let body = json!({
        "deviceId": "meter-1", "iccid": "8988280001", "imsi": "901288001", "msisdn": "491710001",
        "endpoint": "urn:imei:350001",
    });
    caller.post(&format!("{API}/devices"), &body).expect(201);
    silent_device(&caller, "meter-2");
    for beginning in ["898828", "9012", "49171", "urn%3Aimei%3A35", "meter-1"] {
        let query = format!("q={beginning}");
        assert_eq!(found(&caller, &query), ["meter-1"], "{beginning}");
    }
    assert_eq!(found(&caller, "q=meter"), ["meter-1", "meter-2"]);
    let change = json!({ "endpoint": "urn:imei:360001", "imsi": null });
    let path = format!("{API}/devices/meter-1");
    let amended = caller.authorized("PATCH", &path).json(&change);
    amended.send(caller.address()).expect(200);
    assert_eq!(found(&caller, "q=urn:imei:35"), [""; 0]);
    assert_eq!(found(&caller, "q=9012"), [""; 0]);
    assert_eq!(found(&caller, "q=urn:imei:36"), ["meter-1"]);
    assert_eq!(found(&caller, "q=urn:imei:36&registered=true"), [""; 0]);
}

#[test]
fn a_filtered_list_is_read_page_by_page() {
    let (service, caller) = start(&[]);
    let wire = DeviceSocket::to(&service);
    for number in 0..25_u16 {
        let id = format!("meter-{number:02}");
        caller.create_device(&id, DEVICE_IP);
        if number % 2 == 0 {
            wire.register(&id, 1 + number);
        }
    }
    for (query, count) in [
        ("registered=true", 13),
        ("registered=false", 12),
        ("q=meter-1", 10),
        ("q=meter-1&registered=false", 5),
    ] {
        let mut listed: Vec<String> = Vec::new();
        for number in 1..=5 {
            let path = format!("{API}/devices?pageSize=4&page={number}&{query}");
            let page = caller.request("GET", &path).expect(200);
            assert_eq!(page["pageAmount"], u64::div_ceil(count, 4), "{query}");
            listed.extend(ids(&page));
        }
        assert_eq!(u64::try_from(listed.len()).unwrap(), count, "{query}");
        assert!(listed.is_sorted(), "{query}: {listed:?}");
    }
}

#[test]
fn a_search_that_finds_too_much_is_refused_with_its_reason() {
    let (service, caller) = start(&[]);
    import_meters(&caller, 0..20_000);
    let path = format!("{API}/devices?q=meter&pageSize=1");
    let all = caller.request("GET", &path).expect(200);
    assert_eq!(all["pageAmount"], 20_000, "{all}");
    import_meters(&caller, 20_000..20_001);
    let refused = caller.request("GET", &path).expect(400);
    assert_eq!(error_codes(&refused), ["TOO_BROAD"], "{refused}");
    assert_eq!(refused["errors"][0]["field"], "q", "{refused}");
    let more = format!("{API}/devices?q=meter-05&pageSize=1");
    let more = caller.request("GET", &more).expect(200);
    assert_eq!(more["pageAmount"], 1_000, "{more}");
    assert_eq!(found(&caller, "q=meter-0669").len(), 10);
    // Few devices are found, however many names other customers have.
    let stranger = Caller::of_new_customer(&service, "Umbrella");
    silent_device(&stranger, "meter-theirs");
    assert_eq!(found(&stranger, "q=meter"), ["meter-theirs"]);
}

fn import_meters(caller: &Caller, numbers: Range<usize>) {
    let count = numbers.len();
    let lines = numbers.map(|number| format!("{{\"deviceId\":\"meter-{number:05}\"}}\n"));
    let import = caller.authorized("POST", &format!("{API}/devices/import"));
    let import = import.text("application/x-ndjson", &lines.collect::<String>());
    let summary = import.send(caller.address()).expect(200);
    assert_eq!(summary["created"], count, "{summary}");
}

fn registered(caller: &Caller, wanted: bool) -> Vec<String> {
    found(caller, &format!("registered={wanted}"))
}

/// The ids of the devices that a query finds.
fn found(caller: &Caller, query: &str) -> Vec<String> {
    let path = format!("{API}/devices?{query}");
    ids(&caller.request("GET", &path).expect(200))
}

fn ids(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().expect("a page has items");
    items.iter().map(|item| text(&item["deviceId"])).collect()
}
