//! What does the administration log contain, and how is it queried?

use std::collections::BTreeSet;

use harness::device::configuration::Configuration;
use serde_json::{Value, json};

use crate::test_service::{ID, keys, page, silent_device, start};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::device::{DEVICE_IP, Device};
use crate::vocabulary::lwm2m::{when_active, write};
use crate::vocabulary::poll::another_millisecond;

const LOG: &str = "/administrationLogs";

#[test]
fn an_entry_has_its_time_its_message_and_its_device() {
    let (service, caller) = start(&[]);
    let body = json!({
        "deviceId": ID, "iccid": "8988280666000000001", "imsi": "901288000000001",
        "ip": DEVICE_IP,
    });
    caller.post(&format!("{API}/devices"), &body).expect(201);
    let _device = Device::registered(&service, Configuration::new(ID));
    let entries = caller.log_entries();
    assert_eq!(entries.len(), 1, "{entries:?}");
    let entry = &entries[0];
    let expected = [
        "category",
        "customerId",
        "description",
        "iccid",
        "id",
        "imsi",
        "ip",
        "message",
        "timestamp",
        "traceId",
        "type",
    ];
    assert_eq!(keys(entry), expected);
    assert_eq!(entry["type"], "LIFECYCLE");
    assert_eq!(entry["category"], "info");
    assert_eq!(entry["message"], "Lifecycle[DeviceFirstTimeRegistered]");
    assert_eq!(entry["iccid"], "8988280666000000001");
    assert_eq!(entry["imsi"], "901288000000001");
    assert_eq!(entry["ip"], DEVICE_IP);
    assert!(!text(&entry["description"]).is_empty());
    let time = text(&entry["timestamp"]);
    let form: String = time
        .chars()
        .map(|c| if c.is_ascii_digit() { '9' } else { c })
        .collect();
    assert_eq!(form, "9999-99-99T99:99:99.999Z");
}

#[test]
fn an_entry_about_a_request_carries_the_trace_of_its_call() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let id = fail(&caller, ID);
    let action = caller.action(&id);
    let entry = &caller.log_entries()[0];
    assert_eq!(entry["traceId"], action["requestData"]["traceId"]);
    assert_eq!(entry["customerId"], action["requestData"]["customerId"]);
    assert_eq!(
        (&entry["type"], &entry["category"]),
        (&json!("DEVICE"), &json!("error"))
    );
    assert!(
        entry.get("imsi").is_none() && entry.get("ip").is_none(),
        "unknown: {entry}"
    );
}

#[test]
fn an_entry_names_the_address_of_a_device_before_its_first_contact() {
    let (_service, caller) = start(&[]);
    caller.create_device(ID, "10.1.2.3");
    fail(&caller, ID);
    let entry = &caller.log_entries()[0];
    assert_eq!(
        (&entry["iccid"], &entry["ip"]),
        (&json!(ID), &json!("10.1.2.3"))
    );
}

#[test]
fn without_parameters_the_latest_ten_entries_are_listed_newest_first() {
    let (_service, caller) = start(&[]);
    let ids = twelve_failures(&caller);
    let list = caller.request("GET", &format!("{API}{LOG}")).expect(200);
    assert_eq!(keys(&list), ["items", "page", "pageAmount"]);
    assert_eq!((&list["page"], &list["pageAmount"]), (&json!(1), &json!(2)));
    let items = list["items"].as_array().unwrap();
    let listed: Vec<String> = items
        .iter()
        .map(|entry| text(&entry["description"]))
        .collect();
    assert_eq!(listed.len(), 10);
    for (entry, id) in listed.iter().zip(ids.iter().rev()) {
        assert!(entry.contains(id.as_str()), "{entry} is about {id}");
    }
}

#[test]
fn the_log_is_read_page_by_page() {
    let (_service, caller) = start(&[]);
    twelve_failures(&caller);
    let (all, _) = page(&caller, &format!("{LOG}?pageSize=25"));
    let distinct: BTreeSet<_> = all.iter().collect();
    assert_eq!((all.len(), distinct.len()), (12, 12));
    let cases = [
        ("?page=1", 0..10, 1, 2),
        ("?page=2", 10..12, 2, 2),
        ("?page=3", 12..12, 3, 2),
        ("?pageSize=1&page=12", 11..12, 12, 12),
        ("?pageSize=5&page=3", 10..12, 3, 3),
        ("?pageSize=25", 0..12, 1, 1),
    ];
    for (query, range, number, amount) in cases {
        let expected = (
            all[range].to_vec(),
            json!({ "page": number, "pageAmount": amount }),
        );
        assert_eq!(page(&caller, &format!("{LOG}{query}")), expected, "{query}");
    }
}

#[test]
fn the_log_is_filtered_by_a_window_of_time() {
    let (_service, caller) = start(&[]);
    twelve_failures(&caller);
    let entries = caller.log_entries();
    let at = |entry: &Value| text(&entry["timestamp"]).trim_end_matches('Z').to_owned();
    let (early, late) = (at(&entries[8]), at(&entries[3]));
    let within = |from: &str, until: &str| {
        let matching = entries
            .iter()
            .filter(|it| *from <= *at(it) && *at(it) <= *until);
        matching.map(|entry| text(&entry["id"])).collect::<Vec<_>>()
    };
    let (ever, never) = ("0000", "9999");
    let cases = [
        (format!("startDateTime={early}"), within(&early, never)),
        (format!("endDateTime={late}"), within(ever, &late)),
        (
            format!("startDateTime={early}&endDateTime={late}"),
            within(&early, &late),
        ),
        (
            format!("startDateTime={early}&endDateTime={early}"),
            within(&early, &early),
        ),
        (
            format!("startDateTime={early}Z&endDateTime={late}Z"),
            within(&early, &late),
        ),
        (
            format!("endDateTime={}", late.replace(':', "%3A")),
            within(ever, &late),
        ),
        (
            "startDateTime=2020-01-01T00:00:00.000".to_owned(),
            within(ever, never),
        ),
        (
            "startDateTime=2999-01-01T00:00:00.000&endDateTime=2999-01-02T00:00:00.000".to_owned(),
            vec![],
        ),
        ("endDateTime=2020-01-01T00:00:00.000".to_owned(), vec![]),
        // Without a start, the window is the seven days before the end.
        ("endDateTime=2999-01-01T00:00:00.000".to_owned(), vec![]),
    ];
    for (query, expected) in cases {
        let (found, _) = page(&caller, &format!("{LOG}?pageSize=25&{query}"));
        assert_eq!(found, expected, "{query}");
    }
}

#[test]
fn the_log_is_filtered_by_device_category_and_type() {
    let (service, caller) = start(&[]);
    let stranger = Caller::of_new_customer(&service, "Umbrella");
    silent_device(&stranger, "theirs");
    fail(&stranger, "theirs");
    for id in ["one", "two"] {
        let body = json!({ "deviceId": id, "iccid": format!("sim-{id}"), "ip": DEVICE_IP });
        caller.post(&format!("{API}/devices"), &body).expect(201);
        another_millisecond();
        let _device = Device::registered(&service, Configuration::new(id));
        another_millisecond();
        fail(&caller, id);
    }
    let cases: [(&str, &[(&str, &str)]); 12] = [
        (
            "iccid=sim-one",
            &[("sim-one", "DEVICE"), ("sim-one", "LIFECYCLE")],
        ),
        ("iccid=sim-nobody", &[]),
        ("iccid=theirs", &[]),
        (
            "category=info",
            &[("sim-two", "LIFECYCLE"), ("sim-one", "LIFECYCLE")],
        ),
        (
            "category=error",
            &[("sim-two", "DEVICE"), ("sim-one", "DEVICE")],
        ),
        (
            "type=LIFECYCLE",
            &[("sim-two", "LIFECYCLE"), ("sim-one", "LIFECYCLE")],
        ),
        (
            "kind=InvalidDataType",
            &[("sim-two", "DEVICE"), ("sim-one", "DEVICE")],
        ),
        (
            "kind=InvalidDataType&deviceId=one",
            &[("sim-one", "DEVICE")],
        ),
        ("kind=DataType", &[]),
        ("type=INTEGRATION", &[]),
        ("type=DEVICE&category=info", &[]),
        (
            "type=DEVICE&category=error&iccid=sim-two",
            &[("sim-two", "DEVICE")],
        ),
    ];
    for (query, expected) in cases {
        let list = caller
            .request("GET", &format!("{API}{LOG}?{query}"))
            .expect(200);
        let items = list["items"].as_array().unwrap();
        let found: Vec<(&str, &str)> = items
            .iter()
            .map(|entry| {
                (
                    entry["iccid"].as_str().unwrap(),
                    entry["type"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(found, expected, "{query}");
    }
}

/// Fails requests to a device, each at a time of its own; returns their ids.
fn twelve_failures(caller: &Caller) -> Vec<String> {
    silent_device(caller, ID);
    let ids = (0..12).map(|_| {
        another_millisecond();
        fail(caller, ID)
    });
    ids.collect()
}

/// Creates a request whose value does not fit. It fails at once, and the failure is logged.
pub(crate) fn fail(caller: &Caller, device: &str) -> String {
    let id = caller.create_action(device, &when_active(write("/3303/0/5700", "warm")));
    assert_eq!(caller.final_action(&id)["status"], "FAILED");
    id
}

#[test]
fn an_entry_is_read_by_its_id_and_a_log_by_its_device() {
    let (service, caller) = start(&[]);
    let stranger = Caller::of_new_customer(&service, "Umbrella");
    for device in [ID, "other"] {
        silent_device(&caller, device);
        caller.create_action(device, &when_active(write("/3303/0/5700", "warm")));
    }
    let entries = caller.log_entries();
    assert_eq!(entries.len(), 2, "{entries:?}");
    for entry in &entries {
        let path = format!("{API}{LOG}/{}", text(&entry["id"]));
        assert_eq!(caller.request("GET", &path).expect(200), *entry);
        stranger.request("GET", &path).expect(404);
    }
    let unknown = format!("{API}{LOG}/019a0000-0000-7000-8000-000000000000");
    caller.request("GET", &unknown).expect(404);
    let of = |query: &str| page(&caller, &format!("{LOG}?{query}")).0;
    assert_eq!(of(&format!("deviceId={ID}")).len(), 1);
    assert_eq!(of("deviceId=other&iccid=other").len(), 1);
    assert_eq!(of(&format!("deviceId=other&iccid={ID}")).len(), 0);
    assert_eq!(of("deviceId=nobody").len(), 0);
}
