//! Which properties of a device can a caller change, and which changes are refused? The black-box
//! tests cover the effect on the device.

use actix_web::http::StatusCode;
use serde_json::{Value, json};

use crate::api::tests::test_service::{CallAnswer, TestCredentials, TestService};

const DEVICES: &str = "/management-api/v1/devices";
const METER: &str = "/management-api/v1/devices/meter";

#[actix_web::test]
async fn every_fault_of_an_update_is_reported_at_once() {
    let (setup, acme) = with_meter().await;
    let body = json!({
        "deviceId": "other", "number": 7, "psk": {"identity": "x"}, "created": null,
        "iccid": null, "endpoint": null, "imsi": "12a", "msisdn": 49, "ip": "here", "name": " ",
        "tint": null, "shade": "dark",
    });
    let refused = setup.patch(METER, &acme.bearer, body).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let expected = [
        ("WRONG_TYPE", "iccid"),
        ("INVALID_VALUE", "imsi"),
        ("WRONG_TYPE", "msisdn"),
        ("INVALID_VALUE", "ip"),
        ("WRONG_TYPE", "endpoint"),
        ("INVALID_VALUE", "name"),
        ("READ_ONLY", "deviceId"),
        ("READ_ONLY", "number"),
        ("READ_ONLY", "psk"),
        ("READ_ONLY", "created"),
        ("UNKNOWN_PROPERTY", "shade"),
        ("UNKNOWN_PROPERTY", "tint"),
    ];
    assert_eq!(faults(&refused), expected);
    let response = refused.json();
    let messages: Vec<_> = response["errors"].as_array().unwrap().iter().collect();
    assert_eq!(messages[6]["message"], "cannot be changed");
    assert_eq!(shown(&setup, &acme).await["iccid"], "8901");
}

#[actix_web::test]
async fn every_invalid_tag_is_reported() {
    let (setup, acme) = with_meter().await;
    let body = json!({"tags": {"a b": "c", "d": "", "e": 1, "f": "x".repeat(65), "g": "ok"}});
    let refused = setup.patch(METER, &acme.bearer, body).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let expected = [
        ("INVALID_VALUE", "tags.a b"),
        ("INVALID_VALUE", "tags.d"),
        ("WRONG_TYPE", "tags.e"),
        ("INVALID_VALUE", "tags.f"),
    ];
    assert_eq!(faults(&refused), expected);
    let many: serde_json::Map<_, _> = (0..33).map(|it| (format!("k{it}"), json!("v"))).collect();
    let body = json!({ "tags": many });
    let refused = setup.patch(METER, &acme.bearer, body.clone()).await;
    assert_eq!(faults(&refused), [("OUT_OF_RANGE", "tags")]);
    let refused = setup.post(DEVICES, &acme.bearer, body).await;
    assert_eq!(faults(&refused), [("OUT_OF_RANGE", "tags")]);
    assert_eq!(faults(&refused), [("OUT_OF_RANGE", "tags")]);
}

#[actix_web::test]
async fn each_identifier_of_another_device_is_reported_and_nothing_changes() {
    let (setup, acme) = with_meter().await;
    let umbrella = setup.customer("umbrella", &["all"]).await;
    let taken = json!({
        "deviceId": "theirs", "iccid": "8902", "imsi": "9012", "msisdn": "4912", "endpoint": "ep",
    });
    setup.post(DEVICES, &umbrella.bearer, taken).await;
    let before = shown(&setup, &acme).await;
    let body = json!({
        "iccid": "8902", "imsi": "9012", "msisdn": "4912", "endpoint": "ep", "name": "Attic",
    });
    let refused = setup.patch(METER, &acme.bearer, body).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    let expected = ["iccid", "endpoint", "imsi", "msisdn"].map(|field| ("DEVICE_EXISTS", field));
    assert_eq!(faults(&refused), expected);
    assert_eq!(shown(&setup, &acme).await, before);
}

#[actix_web::test]
async fn the_device_of_another_customer_cannot_be_changed() {
    let (setup, acme) = with_meter().await;
    let umbrella = setup.customer("umbrella", &["all"]).await;
    let body = || json!({"name": "Attic"});
    let theirs = setup.patch(METER, &umbrella.bearer, body()).await;
    assert_eq!(theirs.status, StatusCode::NOT_FOUND);
    let nobody = format!("{DEVICES}/nobody");
    let nobody = setup.patch(&nobody, &acme.bearer, body()).await;
    assert_eq!(nobody.status, StatusCode::NOT_FOUND);
    let reader = setup.client("acme", &["devices:read"]).await;
    let reader = setup.patch(METER, &reader.bearer, body()).await;
    assert_eq!(reader.status, StatusCode::FORBIDDEN);
    assert_eq!(shown(&setup, &acme).await["name"], Value::Null);
}

async fn with_meter() -> (TestService, TestCredentials) {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let body = json!({"deviceId": "meter", "iccid": "8901"});
    let made = setup.post(DEVICES, &acme.bearer, body).await;
    assert_eq!(made.status, StatusCode::CREATED);
    (setup, acme)
}

/// The device as in the list.
async fn shown(setup: &TestService, caller: &TestCredentials) -> Value {
    let listed = setup.get(DEVICES, &caller.bearer).await;
    listed.json()["items"][0].clone()
}

fn faults(answer: &CallAnswer) -> Vec<(&'static str, &'static str)> {
    let details = answer.faults().into_iter();
    details
        .map(|(code, field)| (&*code.leak(), &*field.leak()))
        .collect()
}
