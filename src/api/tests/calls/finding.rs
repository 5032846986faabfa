//! Which devices does a list return? Filters, alone and combined.

use actix_web::http::StatusCode;
use serde_json::{Value, json};

use engine::action::Protocol;
use engine::change::{Batch, Change};
use engine::device::record::{DeviceRecord, ProtocolsSeen};
use engine::ids::{CustomerId, DeviceId, DeviceKey};
use store::conformance::samples::{at, record};

use crate::api::tests::test_service::{TestCredentials, TestService};

const DEVICES: &str = "/management-api/v1/devices";

#[actix_web::test]
async fn a_device_is_found_by_a_prefix_of_each_identifier() {
    let (setup, acme) = fleet().await;
    for beginning in ["al", "alpha", "8901", "901401", "49171", "urn:imei:3"] {
        assert_eq!(
            found(&setup, &acme, &format!("q={beginning}")).await,
            ["alpha"]
        );
    }
    assert_eq!(found(&setup, &acme, "q=b").await, ["beta", "bravo"]);
    for beginning in ["AL", "lpha", "alphabet", "psk", "Cellar", "10.0"] {
        let nobody: [&str; 0] = [];
        assert_eq!(
            found(&setup, &acme, &format!("q={beginning}")).await,
            nobody
        );
    }
}

#[actix_web::test]
async fn a_search_finds_only_the_caller_s_devices() {
    let (setup, acme) = fleet().await;
    let umbrella = setup.customer("umbrella", &["all"]).await;
    assert_eq!(found(&setup, &umbrella, "q=8901").await, [""; 0]);
    let body = json!({"deviceId": "theirs", "iccid": "89019"});
    setup.post(DEVICES, &umbrella.bearer, body).await;
    assert_eq!(found(&setup, &umbrella, "q=8901").await, ["theirs"]);
    assert_eq!(found(&setup, &acme, "q=8901").await, ["alpha"]);
}

#[actix_web::test]
async fn devices_are_filtered_by_their_state() {
    let (setup, acme) = fleet().await;
    assert_eq!(found(&setup, &acme, "registered=true").await, ["bravo"]);
    assert_eq!(
        found(&setup, &acme, "registered=false").await,
        ["alpha", "beta"]
    );
    assert_eq!(
        found(&setup, &acme, "protocol=LWM2M").await,
        ["beta", "bravo"]
    );
    assert_eq!(found(&setup, &acme, "protocol=COAP").await, ["beta"]);
    assert_eq!(found(&setup, &acme, "protocol=UDP").await, [""; 0]);
    assert_eq!(
        found(&setup, &acme, "protocol=LWM2M&registered=false&q=b").await,
        ["beta"]
    );
}

#[actix_web::test]
async fn a_filtered_list_has_as_many_pages_as_its_items_fill() {
    let (setup, acme) = fleet().await;
    for (query, pages) in [
        ("registered=false", 2),
        ("q=b", 2),
        ("protocol=UDP", 1),
        ("q=x", 1),
    ] {
        let path = format!("{DEVICES}?pageSize=1&page=2&{query}");
        let page = setup.get(&path, &acme.bearer).await.json();
        assert_eq!(page["pageAmount"], pages, "{query}");
        let shown = page["items"].as_array().unwrap().len();
        assert_eq!(shown, pages - 1, "{query}");
    }
}

#[actix_web::test]
async fn devices_are_filtered_by_what_they_registered_and_when_they_were_seen() {
    let (setup, acme) = fleet().await;
    let seen_at = at(10).iso().to_string();
    let earlier = at(9).iso().to_string();
    let cases: [(&str, &[&str]); 11] = [
        ("tag=site:berlin", &["alpha", "bravo"]),
        ("tag=site:berlin&tag=floor:2", &["bravo"]),
        ("tag=site:berlin&registered=true&q=b", &["bravo"]),
        ("tag=site:paris", &[]),
        ("version=1.1", &["bravo"]),
        ("version=1.0", &[]),
        ("object=3", &["bravo"]),
        ("object=5&tag=floor:2", &[]),
        ("firmware=1.4.2", &[]),
        (&format!("lastSeenBefore={seen_at}"), &[]),
        (&format!("lastSeenAfter={earlier}"), &["beta", "bravo"]),
    ];
    for (query, expected) in cases {
        assert_eq!(found(&setup, &acme, query).await, expected, "{query}");
    }
}

#[actix_web::test]
async fn a_list_is_read_from_one_cursor_to_the_next() {
    let (setup, acme) = fleet().await;
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("{DEVICES}?pageSize=2&lastSeenAfter=1970-01-01T00:00:00{cursor}");
        let page = setup.get(&path, &acme.bearer).await.json();
        assert_eq!(page["totalIsExact"], true);
        let items = page["items"].as_array().unwrap().iter();
        seen.extend(items.map(|it| it["deviceId"].as_str().unwrap().to_owned()));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, ["beta", "bravo"]);
    let page = setup
        .get(&format!("{DEVICES}?pageSize=1"), &acme.bearer)
        .await
        .json();
    assert_eq!(page["nextCursor"], "alpha");
    assert_eq!(
        (&page["total"], &page["pageAmount"]),
        (&json!(3), &json!(3))
    );
    let path = format!("{DEVICES}?pageSize=1&cursor=alpha");
    let page = setup.get(&path, &acme.bearer).await.json();
    assert_eq!(page["items"][0]["deviceId"], "beta");
    assert_eq!(
        (&page["total"], &page["nextCursor"]),
        (&json!(2), &json!("beta"))
    );
}

#[actix_web::test]
async fn a_listed_device_has_its_presence_and_its_tags() {
    let (setup, acme) = fleet().await;
    let page = setup.get(DEVICES, &acme.bearer).await.json();
    let items = page["items"].as_array().unwrap();
    assert_eq!(items[0]["tags"], json!({"site": "berlin"}));
    assert_eq!(items[0]["presence"], json!({"state": "UNREGISTERED"}));
    assert_eq!(items[1]["tags"], json!({}));
    let seen_at = at(10).iso().to_string();
    assert_eq!(items[2]["presence"]["lastSeen"], json!(seen_at));
    assert_eq!(items[2]["presence"]["protocol"], "LWM2M");
    assert_eq!(items[2]["presence"]["address"], "192.0.2.7:5683");
}

#[actix_web::test]
async fn every_invalid_filter_is_reported() {
    let (setup, acme) = fleet().await;
    let path = format!("{DEVICES}?q=&registered=yes&protocol=lwm2m&page=0");
    let refused = setup.get(&path, &acme.bearer).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let expected = [
        ("OUT_OF_RANGE", "page"),
        ("INVALID_VALUE", "q"),
        ("INVALID_VALUE", "registered"),
        ("INVALID_VALUE", "protocol"),
    ];
    let expected = expected.map(|(code, field)| (code.to_owned(), field.to_owned()));
    assert_eq!(refused.faults(), expected);
    for query in [format!("q={}", "x".repeat(256)), "q=a%0A".to_owned()] {
        let refused = setup.get(&format!("{DEVICES}?{query}"), &acme.bearer).await;
        assert_eq!(
            refused.faults(),
            [("INVALID_VALUE".to_owned(), "q".to_owned())]
        );
    }
}

/// A customer with three devices: one without contact, one heard over two protocols, one
/// registered.
async fn fleet() -> (TestService, TestCredentials) {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let bodies = [
        json!({
            "deviceId": "alpha", "iccid": "8901", "imsi": "901401", "msisdn": "491710",
            "endpoint": "urn:imei:35", "name": "Cellar", "ip": "10.0.0.1",
            "tags": {"site": "berlin"},
        }),
        json!({"deviceId": "beta"}),
        json!({"deviceId": "bravo", "iccid": "b", "tags": {"site": "berlin", "floor": "2"}}),
    ];
    for body in bodies {
        let made = setup.post(DEVICES, &acme.bearer, body).await;
        assert_eq!(made.status, StatusCode::CREATED);
    }
    let registered = record(10, "</3/0>");
    let gone = DeviceRecord {
        registration: None,
        protocols_seen: ProtocolsSeen::restored(
            [Protocol::Lwm2m, Protocol::Coap],
            Some(Protocol::Coap),
        ),
        ..registered.clone()
    };
    for (id, record) in [("beta", gone), ("bravo", registered)] {
        let device = DeviceId::parse(id).unwrap();
        let change = Change::PutRecord {
            device: DeviceKey::of(&CustomerId::parse("acme").unwrap(), &device),
            record: Box::new(record),
        };
        let batch = Batch {
            changes: vec![change],
            ..Batch::default()
        };
        setup.store.commit(batch).await.unwrap();
    }
    (setup, acme)
}

/// The ids of the devices that match a query.
async fn found(setup: &TestService, caller: &TestCredentials, query: &str) -> Vec<String> {
    let listed = setup
        .get(&format!("{DEVICES}?{query}"), &caller.bearer)
        .await;
    assert_eq!(listed.status, StatusCode::OK, "{query}");
    let items = listed.json()["items"].as_array().cloned().unwrap();
    let id = |item: &Value| item["deviceId"].as_str().unwrap().to_owned();
    items.iter().map(id).collect()
}
