//! What does the record of an action request contain, and how is the list of them queried?

use std::slice;

use harness::device::resource::AnswerMode;
use protocol::lwm2m::path::Path;
use serde_json::{Value, json};

use crate::test_service::{ID, TestService, keys, page, silent_device, start, with};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::lwm2m::{execute, read, when_active, write};
use crate::vocabulary::poll::another_millisecond;
use crate::vocabulary::wire::{DeviceSocket, update};

const REQUESTS: &str = "/integrate/devices/actions/requests";

#[test]
fn a_record_has_the_fields_of_an_action_request_and_no_other() {
    let (_service, caller) = start(&[]);
    let device = json!({
        "deviceId": ID, "iccid": "8988280666000000001", "imsi": "901288000000001",
        "ip": "10.1.2.3",
    });
    let customer = customer_of(&caller, &device);
    let body = json!({
        "action": "write", "resourceAddress": "/3/0/15", "data": "Asia/Tokyo",
        "requestMode": "SEND_WHEN_ACTIVE", "sendAttempts": 3,
    });
    let id = caller.create_action(ID, &body);
    let action = without_timeline(caller.action(&id));
    let expected = [
        "created",
        "deviceId",
        "id",
        "ip",
        "mode",
        "protocol",
        "requestData",
        "sendAttempts",
        "sendAttemptsLeft",
        "status",
        "updated",
    ];
    assert_eq!(keys(&action), expected);
    assert_eq!(action["id"], id);
    assert_eq!(action["status"], "SCHEDULED");
    assert_eq!(action["deviceId"], ID);
    assert_eq!(action["ip"], "10.1.2.3");
    assert_eq!(action["protocol"], "LWM2M");
    assert_eq!(action["mode"], "SEND_WHEN_ACTIVE");
    assert_eq!(
        (&action["sendAttempts"], &action["sendAttemptsLeft"]),
        (&json!(3), &json!(3))
    );
    let mut expected = body;
    expected["iccid"] = json!("8988280666000000001");
    expected["imsi1"] = json!("901288000000001");
    expected["deviceId"] = json!(ID);
    expected["requestId"] = json!(id);
    expected["customerId"] = customer;
    expected["deviceIpAddress"] = json!("10.1.2.3");
    expected["traceId"] = action["requestData"]["traceId"].clone();
    assert!(!text(&expected["traceId"]).is_empty());
    assert_eq!(action["requestData"], expected);
}

#[test]
fn times_are_utc_with_three_digits_of_a_second() {
    let setup = TestService::new();
    let action = setup.caller.perform(ID, &read("/3/0/0"));
    let (created, updated) = (text(&action["created"]), text(&action["updated"]));
    for time in [&created, &updated] {
        let form: String = time
            .chars()
            .map(|c| if c.is_ascii_digit() { '9' } else { c })
            .collect();
        assert_eq!(form, "9999-99-99 99:99:99.999", "{action}");
    }
    assert!(created <= updated, "{action}");
    let log = setup.caller.log_entries();
    let first_contact = text(&log.last().unwrap()["timestamp"]);
    let same_clock = first_contact.replace('T', " ").replace('Z', "");
    assert!(
        same_clock <= created,
        "{first_contact} and {created} are of one clock"
    );
}

#[test]
fn a_record_keeps_the_address_its_device_had_at_its_creation() {
    let (service, caller) = start(&[("SIGNALBOX_TRUST_ENDPOINT_NAMES", "true")]);
    silent_device(&caller, ID);
    let create = || caller.create_action(ID, &when_active(read("/3/0/0")));
    let before = create();
    let wire = DeviceSocket::from("127.0.0.2", &service);
    let location = wire.register(ID, 1);
    let first = create();
    let moved = DeviceSocket::from("127.0.0.3", &service);
    moved.ask_among_others(&update(&location, 2));
    let second = create();
    let expected = [
        (&before, Value::Null),
        (&first, json!("127.0.0.2")),
        (&second, json!("127.0.0.3")),
    ];
    for (id, ip) in expected {
        let action = caller.action(id);
        assert_eq!(action["ip"], ip, "{action}");
        assert_eq!(action["requestData"]["deviceIpAddress"], ip, "{action}");
    }
}

#[test]
fn a_final_record_has_its_result() {
    let setup = TestService::new();
    let action = without_timeline(setup.caller.perform(ID, &execute("/1/0/8")));
    let expected = [
        "created",
        "deviceId",
        "id",
        "ip",
        "mode",
        "protocol",
        "requestData",
        "resultData",
        "sendAttempts",
        "sendAttemptsLeft",
        "status",
        "updated",
    ];
    assert_eq!(keys(&action), expected);
    assert_eq!(action["mode"], "SEND_NOW");
    assert_eq!(action["ip"], DEVICE_IP);
}

#[test]
fn the_list_shows_the_same_records_newest_first() {
    let setup = TestService::new();
    let done = setup.caller.create_action(ID, &read("/3/0/0"));
    setup.caller.final_action(&done);
    another_millisecond();
    let refused = setup.caller.create_action(ID, &write("/3/0/0", "x"));
    setup.caller.final_action(&refused);
    another_millisecond();
    let scheduled = setup.caller.create_action(ID, &when_active(read("/3/0/0")));
    let list = setup
        .caller
        .request("GET", &format!("{API}{REQUESTS}"))
        .expect(200);
    assert_eq!(keys(&list), ["items", "page", "pageAmount"]);
    let expected: Vec<Value> = [&scheduled, &refused, &done]
        .map(|id| without_timeline(setup.caller.action(id)))
        .to_vec();
    assert_eq!(list["items"], json!(expected));
}

#[test]
fn the_list_is_filtered_by_protocol_device_and_status() {
    let mut setup = TestService::new();
    silent_device(&setup.caller, "other");
    let stranger = Caller::of_new_customer(&setup.service, "Umbrella");
    silent_device(&stranger, "theirs");
    stranger.create_action("theirs", &when_active(read("/3/0/0")));
    let done = setup.caller.create_action(ID, &read("/3/0/0"));
    setup.caller.final_action(&done);
    another_millisecond();
    let failed = setup.caller.create_action(ID, &write("/3/0/0", "x"));
    setup.caller.final_action(&failed);
    another_millisecond();
    let cancelled = setup.caller.create_action(ID, &when_active(read("/3/0/0")));
    setup.caller.cancel_action(&cancelled).expect(200);
    another_millisecond();
    let waiting = setup.caller.create_action(ID, &when_active(read("/3/0/0")));
    another_millisecond();
    let of_other = setup
        .caller
        .create_action("other", &when_active(read("/3/0/0")));
    let all = vec![
        of_other.clone(),
        waiting.clone(),
        cancelled.clone(),
        failed.clone(),
        done.clone(),
    ];
    let cases = [
        ("", all.clone()),
        ("?protocol=LWM2M", all),
        ("?protocol=UDP", vec![]),
        ("?protocol=COAP", vec![]),
        ("?deviceId=other", vec![of_other.clone()]),
        ("?deviceId=theirs", vec![]),
        ("?deviceId=nobody", vec![]),
        ("?status=SCHEDULED", vec![of_other.clone(), waiting.clone()]),
        ("?status=IN_PROGRESS", vec![]),
        ("?status=SUCCEEDED", vec![done.clone()]),
        ("?status=FAILED", vec![failed]),
        ("?status=CANCELLED", vec![cancelled]),
        (
            "?status=SCHEDULED&deviceId=other&protocol=LWM2M",
            vec![of_other.clone()],
        ),
        ("?status=SUCCEEDED&deviceId=other", vec![]),
    ];
    for (query, expected) in cases {
        let pages = u64::try_from(expected.len().max(1).div_ceil(10)).unwrap();
        let found = page(&setup.caller, &format!("{REQUESTS}{query}"));
        assert_eq!(
            found,
            (expected, json!({ "page": 1, "pageAmount": pages })),
            "{query}"
        );
    }
    setup.device.update();
    setup.caller.final_action(&waiting);
    let (scheduled, _) = page(&setup.caller, &format!("{REQUESTS}?status=SCHEDULED"));
    assert_eq!(scheduled, [of_other], "a list shows what is, not what was");
    let (succeeded, _) = page(&setup.caller, &format!("{REQUESTS}?status=SUCCEEDED"));
    assert_eq!(succeeded, [waiting, done]);
}

#[test]
fn a_request_in_flight_is_listed_as_in_progress_until_it_is_final() {
    let mut setup = TestService::new();
    let zone = Path::resource(3, 0, 15);
    setup.device.answer_with(zone, AnswerMode::Silent);
    let under_way = setup.caller.create_action(ID, &read("/3/0/15"));
    let waiting = setup.caller.create_action(ID, &when_active(read("/3/0/0")));
    let caller = setup.caller.clone();
    let listed = |query: &str| page(&caller, &format!("{REQUESTS}{query}")).0;
    assert_eq!(listed("?status=IN_PROGRESS"), slice::from_ref(&under_way));
    assert_eq!(listed("/active"), [waiting.clone(), under_way.clone()]);
    // A request that its device leaves unanswered when it deregisters fails.
    setup.device.deregister();
    setup.caller.final_action(&under_way);
    assert_eq!(listed("?status=IN_PROGRESS"), Vec::<String>::new());
    assert_eq!(listed("/active"), [waiting]);
    assert_eq!(listed("/archived"), [under_way]);
}

#[test]
fn the_list_is_read_page_by_page() {
    let (_service, caller) = start(&[("SIGNALBOX_SCHEDULED_MAX", "100")]);
    silent_device(&caller, ID);
    let mut ids: Vec<String> = (0..23)
        .map(|_| caller.create_action(ID, &when_active(read("/3/0/0"))))
        .collect();
    ids.reverse();
    let cases = [
        ("", 0..10, 1, 3),
        ("?page=2", 10..20, 2, 3),
        ("?page=3", 20..23, 3, 3),
        ("?page=4", 23..23, 4, 3),
        ("?page=1000000", 23..23, 1_000_000, 3),
        ("?pageSize=23", 0..23, 1, 1),
        ("?pageSize=100&page=1", 0..23, 1, 1),
        ("?pageSize=1&page=23", 22..23, 23, 23),
        ("?pageSize=22&page=2&status=SCHEDULED", 22..23, 2, 2),
        ("?pageSize=5&page=5&deviceId=meter-1", 20..23, 5, 5),
    ];
    for (query, range, number, amount) in cases {
        let found = page(&caller, &format!("{REQUESTS}{query}"));
        let expected = (
            ids[range].to_vec(),
            json!({ "page": number, "pageAmount": amount }),
        );
        assert_eq!(found, expected, "{query}");
    }
    let (_service, other) = start(&[]);
    let empty = page(&other, REQUESTS);
    assert_eq!(empty, (vec![], json!({ "page": 1, "pageAmount": 1 })));
}

/// Creates the device and returns the id of its customer.
fn customer_of(caller: &Caller, device: &Value) -> Value {
    caller.post(&format!("{API}/devices"), device).expect(201);
    let id = caller.create_action(ID, &with(when_active(read("/3/0/0")), "sendAttempts", 1));
    let action = caller.action(&id);
    caller.cancel_action(&id).expect(200);
    action["requestData"]["customerId"].clone()
}

/// A record as the list shows it; a single record may also have its timeline.
fn without_timeline(mut action: Value) -> Value {
    action
        .as_object_mut()
        .expect("a record is an object")
        .remove("timeline");
    action
}
