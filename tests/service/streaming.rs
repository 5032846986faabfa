//! Does a reader of a stream receive each event of its customer once and in order, whatever happens
//! to the service, and nothing else?

mod reader;

use serde_json::{Value, json};

use crate::metrics::scrape;
use crate::operations::closed;
use crate::test_service::{ID, crash, error_codes, error_fields, start};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::client::{ApiClient, CUSTOMERS};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::endpoint::Endpoint;
use crate::vocabulary::lwm2m::{read, when_active};
use crate::vocabulary::plain::UdpDevice;
use crate::vocabulary::poll::until;
use crate::vocabulary::service::Service;
use crate::vocabulary::wire::DeviceSocket;

use reader::{StreamReader, StreamedEvent};

const STREAM: &str = "/management-api/v1/events/stream";

/// Another device, at its own address.
const OTHER: &str = "meter-2";
const OTHER_IP: &str = "127.0.0.2";

/// A service that sends a heartbeat to a silent stream several times a second.
const QUICK_HEARTBEAT: (&str, &str) = ("SIGNALBOX_EVENT_STREAM_HEARTBEAT_MS", "50");

#[test]
fn an_event_is_streamed_as_webhooks_receive_it() {
    let (service, caller) = start(&[("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true")]);
    caller.create_device(ID, DEVICE_IP);
    let endpoint = Endpoint::new();
    let types = json!([{ "type": "LIFECYCLE" }, { "type": "TELEMETRY_DATA" }, { "type": "ERROR" },
        { "type": "ACTION_RESULT" }]);
    let webhook = json!({ "name": "All", "url": endpoint.url("/"), "eventTypes": types });
    let webhooks = format!("{API}/integrate/clouds/webhooks");
    caller.post(&webhooks, &webhook).expect(201);
    let mut reader = StreamReader::open(&caller, "");
    DeviceSocket::to(&service).register(ID, 1);
    send(&service, &caller, DEVICE_IP, ID, 1..=1);
    let request = caller.create_action(ID, &when_active(read("/3/0/0")));
    caller.cancel_action(&request).expect(200);
    let mut streamed = vec![reader.event()];
    while streamed[streamed.len() - 1].event != "ACTION_RESULT" {
        streamed.push(reader.event());
    }
    let posted = endpoint.once(streamed.len());
    let posted: Vec<_> = posted.iter().map(|it| it.json()).collect();
    assert_eq!(data_of(&streamed), posted);
    let has = |event: &str| streamed.iter().any(|it| it.event == event);
    assert!(has("LIFECYCLE") && has("TELEMETRY_DATA"), "{streamed:?}");
}

#[test]
fn a_filter_selects_by_type_device_and_tag() {
    let (service, caller) = start(&[]);
    let tags = json!({ "site": "berlin", "floor": "2" });
    let tagged = json!({ "deviceId": ID, "ip": DEVICE_IP, "tags": tags });
    caller.post(&format!("{API}/devices"), &tagged).expect(201);
    caller.create_device(OTHER, OTHER_IP);
    make_contact(&service, &caller, &[(DEVICE_IP, ID), (OTHER_IP, OTHER)]);
    let open = |query| StreamReader::open(&caller, query);
    let mut all = open("");
    let mut readers = [
        ("deviceId=meter-1", vec!["meter-1"]),
        ("tag=site:berlin&tag=floor:2", vec!["meter-1"]),
        ("tag=site:berlin&tag=floor:3", vec![]),
        ("type=TELEMETRY_DATA", vec!["meter-1", "meter-2"]),
        ("type=ERROR,TELEMETRY_DATA", vec!["meter-1", "meter-2"]),
        ("type=LIFECYCLE&type=ERROR", vec![]),
        ("deviceId=meter-2&tag=site:berlin", vec![]),
    ]
    .map(|(query, devices)| (query, devices, open(query)));
    for ip in [DEVICE_IP, OTHER_IP] {
        UdpDevice::from(ip, &service).send(b"on");
        all.event();
    }
    let deleted = caller.request("DELETE", &format!("{API}/devices/{OTHER}"));
    assert_eq!(deleted.status, 204);
    for (query, devices, reader) in &mut readers {
        let seen = reader.events(devices.len());
        assert_eq!(sorted_devices(&seen), *devices, "{query}");
    }
    // The rest of each stream is empty: it ends with the service.
    let [first, second, third, fourth, fifth, sixth, seventh] = readers;
    let mut service = service;
    assert!(service.stop().success());
    for (query, _, reader) in [first, second, third, fourth, fifth, sixth, seventh] {
        let (rest, is_complete) = reader.rest();
        assert!(rest.is_empty() && is_complete, "{query}: {rest:?}");
    }
}

#[test]
fn a_stream_resumes_after_a_kill_without_loss_and_without_repeating() {
    let (mut service, mut caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    caller.create_device(OTHER, OTHER_IP);
    make_contact(&service, &caller, &[(DEVICE_IP, ID), (OTHER_IP, OTHER)]);
    let mut reader = StreamReader::open(&caller, "");
    let begin = reader.last_id.clone();
    send(&service, &caller, DEVICE_IP, ID, 1..=5);
    let first = reader.events(2);
    drop(reader);
    crash(&mut service, &mut caller);
    send(&service, &caller, OTHER_IP, OTHER, 1..=3);
    let last_id = &first[1].id;
    let mut reader = StreamReader::resumed(&caller, "", last_id);
    let rest = reader.events(6);
    assert_eq!(
        payloads_of(&first, ID),
        ["1", "2"],
        "the events of a device are in their order"
    );
    assert_eq!(payloads_of(&rest, ID), ["3", "4", "5"]);
    assert_eq!(payloads_of(&rest, OTHER), ["1", "2", "3"]);
    // Anything that a reader was told is a place to resume from.
    let mut again = StreamReader::resumed(&caller, "", &begin);
    let again = again.events(8);
    assert_eq!(payloads_of(&again, ID), ["1", "2", "3", "4", "5"]);
    assert_eq!(payloads_of(&again, OTHER), ["1", "2", "3"]);
    let mut behind = StreamReader::resumed(&caller, "", &rest[5].id);
    send(&service, &caller, OTHER_IP, OTHER, 4..=4);
    assert_eq!(payloads_of(&behind.events(1), OTHER), ["4"]);
}

#[test]
fn a_silent_stream_sends_heartbeats_with_the_position_behind_what_its_filter_refused() {
    let (service, caller) = start(&[QUICK_HEARTBEAT]);
    caller.create_device(ID, DEVICE_IP);
    make_contact(&service, &caller, &[(DEVICE_IP, ID)]);
    let mut reader = StreamReader::open(&caller, "type=LIFECYCLE");
    let begin = reader.last_id.clone();
    send(&service, &caller, DEVICE_IP, ID, 1..=1);
    until("a heartbeat behind the event", || {
        reader.heartbeat();
        (reader.last_id != begin).then_some(())
    });
    let mut resumed = StreamReader::resumed(&caller, "", &reader.last_id);
    send(&service, &caller, DEVICE_IP, ID, 2..=2);
    assert_eq!(payloads_of(&resumed.events(1), ID), ["2"]);
}

#[test]
fn a_reader_that_takes_nothing_is_dropped() {
    let (service, caller) = start(&[("SIGNALBOX_HTTP_RESPONSE_WAIT_MS", "300")]);
    caller.create_device(ID, DEVICE_IP);
    let reader = StreamReader::open(&caller, "");
    assert_eq!(open_streams(&service), 1.0);
    let device = UdpDevice::from(DEVICE_IP, &service);
    let long = vec![b'x'; 60_000];
    until("the end of the stream", || {
        (0..3).for_each(|_| device.send(&long));
        (open_streams(&service) == 0.0).then_some(())
    });
    assert_eq!(closed(&service, "response_not_taken"), 1.0);
    // What it missed is there when it comes back.
    let (taken, is_complete) = reader.rest();
    assert!(!is_complete);
    let last_id = &taken[taken.len() - 1].id;
    let mut reader = StreamReader::resumed(&caller, "", last_id);
    let events = caller.reported(ID);
    assert!(taken.len() < events.len() && reader.event().event == "TELEMETRY_DATA");
}

#[test]
fn a_customer_has_a_bounded_number_of_streams() {
    let (service, caller) = start(&[]);
    let mut readers: Vec<_> = (0..10).map(|_| StreamReader::open(&caller, "")).collect();
    let refused = caller.request("GET", STREAM).expect(409);
    assert_eq!(error_codes(&refused), ["TOO_MANY_STREAMS"]);
    let other = Caller::of_new_customer(&service, "Umbrella");
    let _of_other = StreamReader::open(&other, "");
    readers.pop();
    until("a free place", || {
        (caller.request("GET", STREAM).status == 200).then_some(())
    });
}

#[test]
fn a_stream_ends_when_its_client_or_its_customer_is_removed() {
    let (service, _) = start(&[QUICK_HEARTBEAT]);
    let operator = Caller::operator(&service);
    for removes_customer in [false, true] {
        let client = ApiClient::of_new_customer(&service, "Acme");
        let reader = StreamReader::open(&client.caller(&service), "");
        let path = match removes_customer {
            true => format!("{CUSTOMERS}/{}", client.customer),
            false => client.path(),
        };
        assert_eq!(operator.request("DELETE", &path).status, 204);
        let (events, is_complete) = reader.rest();
        assert!(events.is_empty() && is_complete, "{events:?}");
    }
}

#[test]
fn no_event_is_sent_once_the_client_is_revoked() {
    let service = Service::start();
    let client = ApiClient::of_new_customer(&service, "Acme");
    let caller = client.caller(&service);
    caller.create_device(ID, DEVICE_IP);
    let revoked = ApiClient::make(&service, &client.customer, &json!({ "name": "another" }));
    let reader = StreamReader::open(&revoked.caller(&service), "");
    let operator = Caller::operator(&service);
    assert_eq!(operator.request("DELETE", &revoked.path()).status, 204);
    send(&service, &caller, DEVICE_IP, ID, 1..=1);
    let (events, is_complete) = reader.rest();
    assert!(events.is_empty() && is_complete, "{events:?}");
}

#[test]
fn a_stream_ends_as_a_response_does_when_the_service_stops() {
    let (mut service, caller) = start(&[]);
    let readers: Vec<_> = (0..3).map(|_| StreamReader::open(&caller, "")).collect();
    assert!(service.stop().success());
    for reader in readers {
        // A stop that waited in vain for the end of a response would break its connection.
        let (events, is_complete) = reader.rest();
        assert!(events.is_empty() && is_complete, "{events:?}");
    }
}

#[test]
fn the_events_of_another_customer_are_never_seen() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let other = Caller::of_new_customer(&service, "Umbrella");
    other.create_device(OTHER, OTHER_IP);
    let refused = other.request("GET", &format!("{STREAM}?deviceId={ID}"));
    assert_eq!(error_codes(&refused.expect(404)), ["NOT_FOUND"]);
    make_contact(&service, &caller, &[(DEVICE_IP, ID)]);
    make_contact(&service, &other, &[(OTHER_IP, OTHER)]);
    let position = StreamReader::open(&caller, "").last_id;
    let mut reader = StreamReader::open(&other, "");
    let mut resumed = StreamReader::resumed(&other, "", &position);
    send(&service, &caller, DEVICE_IP, ID, 1..=2);
    send(&service, &other, OTHER_IP, OTHER, 3..=3);
    for reader in [&mut reader, &mut resumed] {
        assert_eq!(payloads_of(&reader.events(1), OTHER), ["3"]);
    }
}

#[test]
fn every_fault_of_a_stream_is_named_at_once() {
    let (_service, caller) = start(&[]);
    let refused = |query: &str, last_id: &str| {
        let request = caller.authorized("GET", &format!("{STREAM}?{query}"));
        let request = request.header("last-event-id", last_id);
        error_fields(&request.send(caller.address()).expect(400))
    };
    assert_eq!(
        refused(
            "type=LIFECYCLE,SMS_RECEIVED&deviceId=&tag=berlin&since=1",
            "17"
        ),
        ["Last-Event-ID", "deviceId", "since", "tag", "type"]
    );
    // It has a form that is right, and is of a store that is far ahead.
    let ahead = "AYCAgICAgICAgAEAAAAAAAAAAAAAAAAAAAAA";
    assert_eq!(refused("", ahead), ["Last-Event-ID"]);
}

/// Has devices be heard for the first time, which is an event of its own.
fn make_contact(service: &Service, caller: &Caller, devices: &[(&str, &str)]) {
    for (ip, device) in devices {
        send(service, caller, ip, device, 0..=0);
    }
}

/// Has a device report numbers, one after the other.
fn send(
    service: &Service,
    caller: &Caller,
    ip: &str,
    device: &str,
    numbers: std::ops::RangeInclusive<usize>,
) {
    let socket = UdpDevice::from(ip, service);
    let before = caller.reported(device).len();
    for (number, sent) in numbers.zip(1..) {
        socket.send(number.to_string().as_bytes());
        caller.once_reported(device, before + sent);
    }
}

fn data_of(events: &[StreamedEvent]) -> Vec<Value> {
    events.iter().map(|event| event.data.clone()).collect()
}

/// What a device reported, of several events.
fn payloads_of(events: &[StreamedEvent], device: &str) -> Vec<String> {
    use base64::Engine as _;
    let data = events.iter().map(|event| &event.data);
    let data = data.filter(|data| data["device"]["deviceId"] == device);
    let bytes = data.map(|data| {
        let text = text(&data["payload"]["value"]);
        base64::prelude::BASE64_STANDARD.decode(text).unwrap()
    });
    bytes
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .collect()
}

fn sorted_devices(events: &[StreamedEvent]) -> Vec<String> {
    let devices = events
        .iter()
        .map(|event| text(&event.data["device"]["deviceId"]));
    let mut devices: Vec<_> = devices.collect();
    devices.sort();
    devices
}

fn open_streams(service: &Service) -> f64 {
    scrape(service).sum("signalbox_event_streams", &[])
}
