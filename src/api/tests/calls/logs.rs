//! What does the administration log return?

use actix_web::http::StatusCode;
use actors::clock::Clock;
use engine::action::Protocol;
use engine::admin_log::entry::{DeviceSighting, Entry};
use engine::admin_log::payload::{FurtherPayloads, RejectedPayload};
use engine::change::{Batch, Change};
use engine::device::identity::Identity;
use engine::directory::device::{NewDevice, draft_device};
use engine::ids::{CustomerId, DeviceId};
use engine::limits::LOG_PAYLOAD_BYTES_MAX;
use engine::moment::{Moment, Timestamp};
use engine::profile::Profile;
use serde_json::{Value, json};

use crate::api::tests::test_service::{TestCredentials, TestService};

const LOGS: &str = "/management-api/v1/administrationLogs";
const STATS: &str = "/management-api/v1/administrationLogs/stats";
const DAY_MS: i64 = 86_400_000;

#[actix_web::test]
async fn bytes_that_could_not_be_decoded_are_returned_unchanged() {
    let (setup, acme) = acme().await;
    let globex = setup.customer("globex", &["logs:read"]).await;
    let bytes = [0x00, 0xff, 0x80, b'{', 0x0d, 0x0a];
    let now = Clock::new().now();
    let undecodable = undecodable(&meter("acme", "one"), now.plus_ms(-1), &bytes);
    let first_contact = first_contact(&meter("acme", "one"), now);
    append(&setup, &[&undecodable, &first_contact]).await;

    let path = format!("{LOGS}/{}/payload", undecodable.id);
    let listed = setup.get(LOGS, &acme.bearer).await.json();
    let references: Vec<&Value> = items(&listed)
        .iter()
        .map(|entry| &entry["payloadReference"])
        .collect();
    assert_eq!(references, [&Value::Null, &json!(path)]);
    assert_eq!(items(&listed)[1]["message"], "Translator[UserPayloadError]");

    let answer = setup.get(&path, &acme.bearer).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(
        answer.header("content-type"),
        Some("application/octet-stream")
    );
    assert_eq!(answer.bytes, bytes.as_slice());

    let elsewhere = format!("{LOGS}/{}/payload", first_contact.id);
    let nowhere = format!("{LOGS}/01935c5a-0000-7000-8000-000000000001/payload");
    let unreadable = format!("{LOGS}/stats/payload");
    let (unknown, bare) = ("there is no such entry", "this log entry has no payload");
    for (path, caller, why) in [
        (&elsewhere, &acme, bare),
        (&nowhere, &acme, unknown),
        (&unreadable, &acme, unknown),
        (&path, &globex, unknown),
    ] {
        let answer = setup.get(path, &caller.bearer).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(answer.faults()[0].0, "NOT_FOUND");
        assert_eq!(answer.json()["errors"][0]["message"], why, "{path}");
    }
}

#[actix_web::test]
async fn a_payload_is_stored_up_to_a_bound_and_its_entry_says_so() {
    let (setup, acme) = acme().await;
    let bytes = vec![7; LOG_PAYLOAD_BYTES_MAX + 1];
    let entry = undecodable(&meter("acme", "one"), Clock::new().now(), &bytes);
    append(&setup, &[&entry]).await;
    let listed = setup.get(LOGS, &acme.bearer).await.json();
    let shown = &items(&listed)[0];
    let description = shown["description"].as_str().unwrap();
    assert!(description.contains("The first 65536 of 65537 bytes are stored."));
    let path = shown["payloadReference"].as_str().unwrap();
    let answer = setup.get(path, &acme.bearer).await;
    assert_eq!(answer.bytes, bytes[..LOG_PAYLOAD_BYTES_MAX]);
}

#[actix_web::test]
async fn statistics_count_each_day_of_the_zone_and_every_device_once() {
    let (setup, acme) = acme().await;
    let globex = setup.customer("globex", &["logs:read"]).await;
    let now = Clock::new().now();
    let [one, two, three] = ["one", "two", "three"].map(|device| meter("acme", device));
    let entries = [
        first_contact(&one, now.plus_ms(-20 * DAY_MS)),
        // The day before the seven days that end today.
        first_contact(&three, now.plus_ms(-7 * DAY_MS)),
        undecodable(&three, now.plus_ms(-7 * DAY_MS + 1), &[1]),
        first_contact(&one, now.plus_ms(-6 * DAY_MS)),
        undecodable(&one, now.plus_ms(-6 * DAY_MS), &[1]),
        first_contact(&one, now.plus_ms(-3 * DAY_MS)),
        undecodable(&one, now.plus_ms(-3 * DAY_MS + 1), &[1]),
        undecodable(&one, now.plus_ms(-DAY_MS), &[1]),
        first_contact(&two, now.plus_ms(-2)),
        undecodable(&two, now.plus_ms(-1), &[1]),
    ];
    append(&setup, &entries.iter().collect::<Vec<_>>()).await;

    // These zones have no daylight saving time, so local time is UTC plus a fixed offset.
    for (zone, offset_min) in [
        ("UTC", 0),
        ("Asia%2FKathmandu", 345),
        ("Pacific/Kiritimati", 840),
    ] {
        let day = |before_ms: i64, amount: u64| {
            let there = now
                .plus_ms(offset_min * 60_000 - before_ms)
                .iso()
                .to_string();
            json!({ "amount": amount, "day": format!("{}T00:00:00.000+0000", &there[..10]) })
        };
        let (six, three, one, today) = (6 * DAY_MS, 3 * DAY_MS, DAY_MS, 1);
        let cases = [
            (
                "",
                2,
                vec![day(six, 2), day(three, 2), day(one, 1), day(today, 2)],
            ),
            (
                "&category=error",
                2,
                vec![day(six, 1), day(three, 1), day(one, 1), day(today, 1)],
            ),
            (
                "&category=info",
                2,
                vec![day(six, 1), day(three, 1), day(today, 1)],
            ),
        ];
        for (filter, devices, days) in cases {
            let path = format!("{STATS}?timezone={zone}{filter}");
            let expected = json!({ "totalUniqueDevices": devices, "administrationLogs": days });
            let answer = setup.get(&path, &acme.bearer).await;
            assert_eq!(answer.status, StatusCode::OK);
            assert_eq!(answer.json(), expected, "{path}");
        }
    }
    let nothing = json!({ "totalUniqueDevices": 0, "administrationLogs": [] });
    let answer = setup
        .get(&format!("{STATS}?timezone=UTC"), &globex.bearer)
        .await;
    assert_eq!(answer.json(), nothing);
}

#[actix_web::test]
async fn every_fault_of_a_statistics_query_is_reported() {
    let (setup, acme) = acme().await;
    for (query, faults) in [
        ("", vec![("REQUIRED", "timezone")]),
        (
            "?timezone=Europe/Atlantis",
            vec![("INVALID_VALUE", "timezone")],
        ),
        ("?timezone=", vec![("INVALID_VALUE", "timezone")]),
        ("?timezone=%2B02:00", vec![("INVALID_VALUE", "timezone")]),
        ("?timezone=UTC&timezone=UTC", vec![("REPEATED", "timezone")]),
        (
            "?category=warning&page=1&iccid=8988",
            vec![
                ("REQUIRED", "timezone"),
                ("INVALID_VALUE", "category"),
                ("UNKNOWN_PARAMETER", "iccid"),
                ("UNKNOWN_PARAMETER", "page"),
            ],
        ),
    ] {
        refused(&setup, &acme, &format!("{STATS}{query}"), &faults).await;
    }
}

#[actix_web::test]
async fn every_fault_of_an_entries_query_is_reported() {
    let (setup, acme) = acme().await;
    for (query, faults) in [
        ("pageSize=26", vec![("OUT_OF_RANGE", "pageSize")]),
        ("pageSize=0", vec![("OUT_OF_RANGE", "pageSize")]),
        ("page=0", vec![("OUT_OF_RANGE", "page")]),
        (
            "page=-1&pageSize=ten",
            vec![("OUT_OF_RANGE", "page"), ("WRONG_TYPE", "pageSize")],
        ),
        (
            "startDateTime=2026-11-21",
            vec![("INVALID_VALUE", "startDateTime")],
        ),
        (
            "endDateTime=1795521600000",
            vec![("INVALID_VALUE", "endDateTime")],
        ),
        (
            "startDateTime=2026-11-22T00:00:00.000&endDateTime=2026-11-21T23:59:59.999",
            vec![("INVALID_VALUE", "startDateTime")],
        ),
        (
            "startDateTime=2999-01-01T00:00:00.000",
            vec![("INVALID_VALUE", "startDateTime")],
        ),
        // If one of two times cannot be parsed, their order is unknown.
        (
            "startDateTime=2999-01-01T00:00:00.000&endDateTime=soon",
            vec![("INVALID_VALUE", "endDateTime")],
        ),
        (
            "category=fatal&type=device&iccid=&sort=-created&pageSize=99",
            vec![
                ("OUT_OF_RANGE", "pageSize"),
                ("INVALID_VALUE", "iccid"),
                ("INVALID_VALUE", "category"),
                ("INVALID_VALUE", "type"),
                ("UNKNOWN_PARAMETER", "sort"),
            ],
        ),
    ] {
        refused(&setup, &acme, &format!("{LOGS}?{query}"), &faults).await;
    }
}

#[actix_web::test]
async fn an_absent_bound_follows_from_the_other_or_from_the_time() {
    let (setup, acme) = acme().await;
    let now = Clock::new().now().plus_ms(-60_000);
    let end = now.plus_ms(-2 * DAY_MS);
    let at = [
        ("now", now),
        ("just after the end", end.plus_ms(1)),
        ("the end", end),
        ("within the last week", now.plus_ms(-7 * DAY_MS + 120_000)),
        ("before the last week", now.plus_ms(-7 * DAY_MS - 1)),
        ("a week before the end", end.plus_ms(-7 * DAY_MS)),
        ("just before that", end.plus_ms(-7 * DAY_MS - 1)),
        ("long ago", now.plus_ms(-29 * DAY_MS)),
    ];
    let entries = at.map(|(_, time)| first_contact(&meter("acme", "one"), time));
    append(&setup, &entries.iter().collect::<Vec<_>>()).await;
    let (start, end) = (at[7].1.iso().to_string(), end.iso().to_string());
    for (query, range) in [
        (String::new(), 0..4),
        (format!("startDateTime={start}"), 0..8),
        (format!("endDateTime={end}"), 2..6),
        (format!("startDateTime={start}&endDateTime={end}"), 2..8),
    ] {
        let path = format!("{LOGS}?pageSize=25&{query}");
        let page = setup.get(&path, &acme.bearer).await.json();
        let shown = |item: &Value| {
            let entry = entries
                .iter()
                .position(|it| item["id"] == it.id.to_string());
            at[entry.unwrap()].0
        };
        let shown: Vec<_> = items(&page).iter().map(shown).collect();
        let expected: Vec<_> = at[range].iter().map(|(name, _)| *name).collect();
        assert_eq!(shown, expected, "{query}");
    }
}

#[actix_web::test]
async fn a_page_beyond_the_end_is_empty() {
    let (setup, acme) = acme().await;
    let empty = |page: u64, amount: u64| json!({ "items": [], "page": page, "pageAmount": amount });
    assert_eq!(setup.get(LOGS, &acme.bearer).await.json(), empty(1, 1));
    let now = Clock::new().now();
    let entries = [1, 2, 3].map(|ago| first_contact(&meter("acme", "one"), now.plus_ms(-ago)));
    append(&setup, &entries.iter().collect::<Vec<_>>()).await;
    for (query, page, amount) in [("page=2", 2, 1), ("pageSize=2&page=3", 3, 2)] {
        let answer = setup.get(&format!("{LOGS}?{query}"), &acme.bearer).await;
        assert_eq!(
            (answer.status, answer.json()),
            (StatusCode::OK, empty(page, amount))
        );
    }
}

#[actix_web::test]
async fn a_window_may_begin_before_the_first_entry() {
    let (setup, acme) = acme().await;
    let now = Clock::new().now();
    let entries = [1, 2, 3].map(|ago| first_contact(&meter("acme", "one"), now.plus_ms(-ago)));
    append(&setup, &entries.iter().collect::<Vec<_>>()).await;
    let (first, last) = ("0000-01-01T00:00:00.000", "9999-12-31T23:59:59.999");
    let (epoch, before) = ("1970-01-01T00:00:00.000", "1969-12-31T23:59:59.999");
    for (start, end, number) in [
        (first, last, 3),
        (epoch, last, 3),
        (first, epoch, 0),
        (first, before, 0),
        (before, epoch, 0),
        (last, last, 0),
    ] {
        for filter in [
            "",
            "&iccid=one",
            "&category=info",
            "&category=info&iccid=one",
        ] {
            let query = format!("startDateTime={start}&endDateTime={end}{filter}");
            let answer = setup.get(&format!("{LOGS}?{query}"), &acme.bearer).await;
            assert_eq!(answer.status, StatusCode::OK, "{query}");
            assert_eq!(items(&answer.json()).len(), number, "{query}");
        }
    }
}

async fn refused(
    setup: &TestService,
    caller: &TestCredentials,
    path: &str,
    faults: &[(&str, &str)],
) {
    let answer = setup.get(path, &caller.bearer).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path}");
    let found = answer.faults();
    let found: Vec<_> = found
        .iter()
        .map(|(code, field)| (code.as_str(), field.as_str()))
        .collect();
    assert_eq!(found, faults, "{path}");
}

async fn acme() -> (TestService, TestCredentials) {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["logs:read"]).await;
    (setup, acme)
}

fn meter(customer: &str, device: &str) -> Profile {
    let new = NewDevice {
        device: Some(DeviceId::parse(device).unwrap()),
        ..NewDevice::default()
    };
    let mut moment = Moment::new(Timestamp::from_ms(0), 7);
    draft_device(&mut moment, &CustomerId::parse(customer).unwrap(), new).unwrap()
}

fn undecodable(device: &Profile, at: Timestamp, bytes: &[u8]) -> Entry {
    let identity = Identity::of(device);
    let mut moment = Moment::new(at, Clock::new().moment().next_u64().into());
    Entry::undecodable_payload(
        &mut moment,
        sighting(device, &identity),
        "it breaks off",
        RejectedPayload {
            bytes: Some(bytes),
            further: FurtherPayloads::Logged,
        },
    )
}

fn first_contact(device: &Profile, at: Timestamp) -> Entry {
    let identity = Identity::of(device);
    let mut moment = Moment::new(at, Clock::new().moment().next_u64().into());
    Entry::first_heard(&mut moment, sighting(device, &identity), Protocol::Lwm2m)
}

fn sighting<'a>(device: &Profile, identity: &'a Identity) -> DeviceSighting<'a> {
    DeviceSighting {
        key: device.key(),
        identity,
        at: None,
    }
}

async fn append(setup: &TestService, entries: &[&Entry]) {
    let append = |entry: &&Entry| Change::AppendEntry(Box::new((*entry).clone()));
    let changes = entries.iter().map(append).collect();
    let batch = Batch {
        changes,
        ..Batch::default()
    };
    setup.store.commit(batch).await.unwrap();
}

fn items(page: &Value) -> &Vec<Value> {
    page["items"].as_array().unwrap()
}
