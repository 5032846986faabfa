//! Is the history of a device stored, listed page by page, and shown to its customer only?

use std::process::Output;

use harness::device::configuration::Configuration;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value as DeviceValue;
use serde_json::{Value, json};

use crate::test_service::{ID, TestService, error_codes, silent_device, start};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::lwm2m::{observe_start, read};
use crate::vocabulary::poll::until;
use crate::vocabulary::service::signalbox;
use crate::vocabulary::wire::{DeviceSocket, deregister};

const TEMPERATURE: Path = Path::resource(3303, 0, 5700);
const ADDRESS: &str = "/3303/0/5700";

#[test]
fn messages_of_a_device_are_listed_newest_first() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let wire = DeviceSocket::to(&service);
    let location = wire.register(ID, 1);
    wire.ask(&deregister(&location, 2));
    let listed = caller.messages(ID);
    let kinds: Vec<_> = listed
        .iter()
        .map(|it| text(&it["lifecycle"]["type"]))
        .collect();
    assert_eq!(kinds, ["DEREGISTERED", "REGISTERED", "FIRST_CONTACT"]);
    for message in &listed {
        assert_eq!(message["type"], "LIFECYCLE", "{message}");
        assert!(text(&message["time"]).ends_with('Z'), "{message}");
        assert!(
            text(&message["received"]).parse::<u64>().is_ok(),
            "{message}"
        );
    }
}

#[test]
fn messages_are_found_by_time_type_and_path() {
    let setup = TestService::new();
    setup.caller.perform(ID, &read(ADDRESS));
    let ask = |query: &str| {
        let path = format!("{API}/devices/{ID}/messages?{query}");
        setup.caller.request("GET", &path)
    };
    let types = |query: &str| {
        let items = ask(query).expect(200)["items"].as_array().unwrap().clone();
        items.iter().map(|it| text(&it["type"])).collect::<Vec<_>>()
    };
    let all = setup.caller.messages(ID);
    let (newest, oldest) = (text(&all[0]["time"]), text(&all[all.len() - 1]["time"]));
    assert_eq!(types("type=TELEMETRY_DATA"), ["TELEMETRY_DATA"]);
    assert_eq!(types("path=/3303/0"), ["TELEMETRY_DATA"]);
    assert_eq!(types("path=/3"), Vec::<String>::new());
    assert_eq!(types("type=LIFECYCLE&path=/3303"), Vec::<String>::new());
    assert_eq!(
        types(&format!("from={oldest}&to={newest}")).len(),
        all.len()
    );
    assert_eq!(types("to=2020-01-01T00:00:00.000"), Vec::<String>::new());
    assert_eq!(types("from=2120-01-01T00:00:00.000"), Vec::<String>::new());
    for refused in [
        "type=EVERYTHING",
        "path=3303",
        "from=yesterday",
        "from=2026-01-02T00:00:00.000&to=2026-01-01T00:00:00.000",
        "until=2026-01-01T00:00:00.000",
    ] {
        assert_eq!(ask(refused).status, 400, "{refused}");
    }
}

#[test]
fn a_value_that_was_read_names_its_request() {
    let setup = TestService::new();
    let action = setup.caller.perform(ID, &read(ADDRESS));
    let message = &setup.caller.messages(ID)[0];
    assert_eq!(message["type"], "TELEMETRY_DATA", "{message}");
    assert_eq!(
        message["cause"],
        json!({ "type": "ACTION", "requestId": action["id"] })
    );
    assert_eq!(
        message["payload"],
        json!({ "type": "JSON", "value": { ADDRESS: 21.5 } })
    );
    let known = setup.caller.known_value(ID, ADDRESS).unwrap();
    assert_eq!(known["value"], 21.5, "{known}");
    assert_eq!(known["time"], message["time"]);
}

#[test]
fn acknowledged_messages_survive_a_crash() {
    let mut setup = TestService::with(&[], Configuration::new(ID));
    let begun = setup.caller.perform(ID, &observe_start(ADDRESS));
    assert_eq!(begun["status"], "SUCCEEDED", "{begun}");
    for (degrees, times) in [(22.0, 1), (23.5, 2)] {
        setup.device.set(TEMPERATURE, DeviceValue::Float(degrees));
        setup.caller.once_notified(ID, ADDRESS, times);
    }
    let before = (setup.caller.messages(ID), shown_values(&setup.caller));
    setup.crash();
    assert_eq!(
        (setup.caller.messages(ID), shown_values(&setup.caller)),
        before
    );
    let known = setup.caller.known_value(ID, ADDRESS).unwrap();
    assert_eq!(known["value"], 23.5, "{known}");
}

#[test]
fn paging_skips_and_repeats_nothing_while_messages_arrive() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let wire = DeviceSocket::to(&service);
    for id in 1..=24 {
        wire.register(ID, id);
    }
    let whole = ids(&caller.messages(ID));
    assert_eq!(whole.len(), 25);
    let mut read = Vec::new();
    let mut cursor = None;
    let mut next_id = 100;
    loop {
        let stretch = messages(&caller, 7, cursor.as_deref());
        let items = ids(stretch["items"].as_array().unwrap());
        assert!(items.len() <= 7, "{stretch}");
        read.extend(items);
        // Messages that arrive meanwhile are newer than all that are still to be read.
        wire.register(ID, next_id);
        next_id += 1;
        let Some(next) = stretch.get("nextCursor") else {
            break;
        };
        cursor = Some(text(next));
    }
    assert_eq!(read, whole);
}

#[test]
fn a_page_with_all_messages_has_no_next_cursor() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let wire = DeviceSocket::to(&service);
    for id in 1..=2 {
        wire.register(ID, id);
    }
    let whole = messages(&caller, 3, None);
    assert_eq!(ids(whole["items"].as_array().unwrap()).len(), 3);
    assert!(whole.get("nextCursor").is_none(), "{whole}");
    let nearly = messages(&caller, 2, None);
    let last = messages(&caller, 2, Some(&text(&nearly["nextCursor"])));
    assert_eq!(ids(last["items"].as_array().unwrap()).len(), 1);
    assert!(last.get("nextCursor").is_none(), "{last}");
}

#[test]
fn an_invalid_page_is_refused() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let faults = [
        ("cursor=newest", "INVALID_VALUE", "cursor"),
        ("cursor=", "INVALID_VALUE", "cursor"),
        ("pageSize=0", "OUT_OF_RANGE", "pageSize"),
        ("pageSize=101", "OUT_OF_RANGE", "pageSize"),
        ("page=2", "UNKNOWN_PARAMETER", "page"),
    ];
    for (query, code, field) in faults {
        let path = format!("{API}/devices/{ID}/messages?{query}");
        let refused = caller.request("GET", &path).expect(400);
        assert_eq!(error_codes(&refused), [code], "{refused}");
        assert_eq!(refused["errors"][0]["field"], field, "{refused}");
    }
    assert_eq!(caller.messages(ID), [] as [Value; 0]);
}

#[test]
fn a_history_belongs_to_its_customer_and_is_deleted_with_the_device() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let stranger = Caller::of_new_customer(&service, "Umbrella");
    DeviceSocket::to(&service).register(ID, 1);
    let path = format!("{API}/devices/{ID}/messages");
    assert_eq!(caller.messages(ID).len(), 2);
    let refused = stranger.request("GET", &path).expect(404);
    assert_eq!(error_codes(&refused), ["NOT_FOUND"]);
    let device = format!("{API}/devices/{ID}");
    assert_eq!(caller.request("DELETE", &device).status, 204);
    assert_eq!(caller.request("GET", &path).status, 404);
    caller.create_device(ID, DEVICE_IP);
    assert_eq!(caller.messages(ID), [] as [Value; 0]);
}

#[test]
fn an_expired_registration_is_in_the_history() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let wire = DeviceSocket::to(&service);
    let registration = crate::vocabulary::wire::register_with(
        &[&format!("ep={ID}"), "lt=1", "lwm2m=1.1", "b=U"],
        "</1/0>,</3/0>",
        1,
    );
    wire.ask(&registration);
    until("the end of a registration", || {
        let mut messages = caller.messages(ID).into_iter();
        messages.find(|message| message["lifecycle"]["type"] == "EXPIRED")
    });
}

#[test]
fn the_days_of_a_history_are_a_setting() {
    let output = configuration(&[]);
    let line = line_of(&output, "history-retention-days");
    assert!(line.contains('7'), "{line}");
    let output = configuration(&[("SIGNALBOX_HISTORY_RETENTION_DAYS", "30")]);
    let line = line_of(&output, "history-retention-days");
    assert!(
        line.contains("30") && line.contains("SIGNALBOX_HISTORY_RETENTION_DAYS"),
        "{line}"
    );
    for refused in ["0", "3651", "week"] {
        let output = configure(&[("SIGNALBOX_HISTORY_RETENTION_DAYS", refused)]);
        assert!(!output.status.success(), "{refused}");
    }
}

fn messages(caller: &Caller, size: u32, cursor: Option<&str>) -> Value {
    let cursor = cursor.map(|cursor| format!("&cursor={cursor}"));
    let cursor = cursor.unwrap_or_default();
    let path = format!("{API}/devices/{ID}/messages?pageSize={size}{cursor}");
    caller.request("GET", &path).expect(200)
}

fn ids(messages: &[Value]) -> Vec<String> {
    messages.iter().map(|it| text(&it["id"])).collect()
}

fn shown_values(caller: &Caller) -> Value {
    caller.inspect(ID)["values"].clone()
}

fn configuration(settings: &[(&str, &str)]) -> String {
    let output = configure(settings);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn configure(settings: &[(&str, &str)]) -> Output {
    let mut program = signalbox();
    program.arg("config").envs(settings.iter().copied());
    program.output().unwrap()
}

fn line_of<'t>(output: &'t str, setting: &str) -> &'t str {
    let name = setting.replace('-', "_");
    output
        .lines()
        .find(|line| line.contains(setting) || line.contains(&name))
        .unwrap_or_else(|| panic!("no {setting}: {output}"))
}
