//! Is the history of a resource reduced to buckets as a naive computation would?

use harness::device::event::DeviceEvent;
use protocol::coap::content::ContentFormat;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{Measured, Sample};
use protocol::lwm2m::value::Value as DeviceValue;
use serde_json::{Value, json};

use crate::test_service::{ID, TestService, error_codes, error_fields, silent_device, start};
use crate::vocabulary::caller::{API, Caller, text};

const TEMPERATURE: Path = Path::resource(3303, 0, 5700);
const ADDRESS: &str = "/3303/0/5700";

/// 2025-11-21T12:00:00Z.
const NOON_S: i64 = 1_763_726_400;

#[test]
fn values_are_reduced_to_buckets_by_the_time_they_were_measured() {
    let mut setup = TestService::new();
    let values = [(0, 20.0), (10, 22.0), (59, 24.0), (60, -5.0), (119, 3.5)];
    let samples = values.map(|(second, degrees)| Sample {
        path: TEMPERATURE,
        value: DeviceValue::Float(degrees),
        measured: Some(Measured::Absolute((NOON_S + second) * 1_000)),
    });
    let sent = setup.device.send(ContentFormat::SENML_CBOR, samples.into());
    assert_eq!(sent, DeviceEvent::Sent);
    let window = "from=2025-11-21T12:00:00.000&to=2025-11-21T12:02:00.000&points=4";
    let series = series(&setup.caller, &format!("path={ADDRESS}&{window}"));
    let expected = json!({
        "path": ADDRESS,
        "from": "2025-11-21T12:00:00.000Z",
        "to": "2025-11-21T12:02:00.000Z",
        "points": 4,
        "items": [
            {
                "time": "2025-11-21T12:00:00.000Z", "count": 2, "min": 20.0, "max": 22.0,
                "mean": 21.0, "last": 22.0, "lastTime": "2025-11-21T12:00:10.000Z",
            },
            {
                "time": "2025-11-21T12:00:30.000Z", "count": 1, "min": 24.0, "max": 24.0,
                "mean": 24.0, "last": 24.0, "lastTime": "2025-11-21T12:00:59.000Z",
            },
            {
                "time": "2025-11-21T12:01:00.000Z", "count": 1, "min": -5.0, "max": -5.0,
                "mean": -5.0, "last": -5.0, "lastTime": "2025-11-21T12:01:00.000Z",
            },
            {
                "time": "2025-11-21T12:01:30.000Z", "count": 1, "min": 3.5, "max": 3.5,
                "mean": 3.5, "last": 3.5, "lastTime": "2025-11-21T12:01:59.000Z",
            },
        ],
        "truncated": false,
    });
    assert_eq!(series, expected);
}

#[test]
fn values_without_a_time_are_in_the_last_day_and_numbers_keep_their_digits() {
    let mut setup = TestService::new();
    let (on, total) = (Path::resource(3342, 0, 5500), Path::resource(3, 0, 13));
    let now = |path, value| Sample {
        path,
        value,
        measured: None,
    };
    let samples = vec![
        now(on, DeviceValue::Boolean(true)),
        now(Path::resource(3, 0, 9), DeviceValue::Integer(i64::MAX)),
        now(
            Path::resource(3303, 0, 5701),
            DeviceValue::String("Cel".into()),
        ),
        now(total, DeviceValue::Time(NOON_S)),
    ];
    let sent = setup.device.send(ContentFormat::SENML_CBOR, samples);
    assert_eq!(sent, DeviceEvent::Sent);
    let only = |path: &str| {
        let series = series(&setup.caller, &format!("path={path}&points=1"));
        let items = series["items"].as_array().unwrap().clone();
        items
            .iter()
            .map(|it| (it["count"].clone(), it["last"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(only("/3342/0/5500"), [(json!(1), json!(1))]);
    assert_eq!(only("/3/0/9"), [(json!(1), json!(i64::MAX))]);
    for no_number in ["/3303/0/5701", "/3/0/13", "/3303/1/5700"] {
        assert_eq!(only(no_number), [], "{no_number}");
    }
}

#[test]
fn a_series_of_many_messages_is_continued() {
    let mut setup = TestService::new();
    // More than a call reads are not sent in a test: the cursor is that of an older message.
    let at = |second: i64| Sample {
        path: TEMPERATURE,
        value: DeviceValue::Integer(second),
        measured: Some(Measured::Absolute((NOON_S + second) * 1_000)),
    };
    for second in 0..3 {
        let sent = setup
            .device
            .send(ContentFormat::SENML_CBOR, vec![at(second)]);
        assert_eq!(sent, DeviceEvent::Sent);
    }
    let page = setup
        .caller
        .request("GET", &format!("{API}/devices/{ID}/messages?pageSize=1"));
    let newest = text(&page.expect(200)["nextCursor"]);
    let window = "from=2025-11-21T12:00:00.000&to=2025-11-21T12:00:10.000&points=10";
    let lasts = |cursor: &str| {
        let query = format!("path={ADDRESS}&{window}&cursor={cursor}");
        let series = series(&setup.caller, &query);
        let items = series["items"].as_array().unwrap().clone();
        items
            .iter()
            .map(|it| it["last"].as_f64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(lasts(&newest), [0.0, 1.0, 2.0]);
    let older = setup
        .caller
        .request("GET", &format!("{API}/devices/{ID}/messages?pageSize=2"));
    let older = text(&older.expect(200)["nextCursor"]);
    assert_eq!(lasts(&older), [0.0, 1.0]);
}

#[test]
fn every_fault_of_a_query_is_named_at_once() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let refused = |query: &str| {
        let answer = caller.request("GET", &format!("{API}/devices/{ID}/series?{query}"));
        error_fields(&answer.expect(400))
    };
    assert_eq!(
        refused("points=2001&from=now&to=then&cursor=first&step=1"),
        ["cursor", "from", "path", "points", "step", "to"]
    );
    assert_eq!(refused("path=/3303/0&points=0"), ["path", "points"]);
    let from_after_to = "from=2026-01-02T00:00:00.000&to=2026-01-02T00:00:00.000";
    assert_eq!(refused(&format!("path=/3/0/9&{from_after_to}")), ["from"]);
    assert_eq!(
        refused("path=/3/0/9&from=2120-01-01T00:00:00.000"),
        ["from"]
    );
}

#[test]
fn a_series_belongs_to_the_customer_of_its_device() {
    let (service, caller) = start(&[]);
    silent_device(&caller, ID);
    let path = format!("{API}/devices/{ID}/series?path=/3/0/9");
    assert_eq!(caller.request("GET", &path).expect(200)["items"], json!([]));
    let stranger = Caller::of_new_customer(&service, "Umbrella");
    let refused = stranger.request("GET", &path).expect(404);
    assert_eq!(error_codes(&refused), ["NOT_FOUND"]);
}

fn series(caller: &Caller, query: &str) -> Value {
    let path = format!("{API}/devices/{ID}/series?{query}");
    caller.request("GET", &path).expect(200)
}
