//! What a caller may change of a device, and what is refused. What a change means for the device
//! is asked of the whole service elsewhere.

use actix_web::http::StatusCode;
use serde_json::{Value, json};

use crate::api::tests::world::{Answer, Credentials, World};

const DEVICES: &str = "/management-api/v1/devices";
const METER: &str = "/management-api/v1/devices/meter";

#[actix_web::test]
async fn every_fault_of_a_change_is_told_at_once() {
    let (world, acme) = with_meter().await;
    let body = json!({
        "deviceId": "other", "number": 7, "psk": {"identity": "x"}, "created": null,
        "iccid": null, "endpoint": null, "imsi": "12a", "msisdn": 49, "ip": "here", "name": " ",
        "tint": null, "shade": "dark",
    });
    let refused = world.patch(METER, &acme.bearer, body).await;
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
    let told = refused.json();
    let messages: Vec<_> = told["errors"].as_array().unwrap().iter().collect();
    assert_eq!(messages[6]["message"], "cannot be changed");
    assert_eq!(shown(&world, &acme).await["iccid"], "8901");
}

#[actix_web::test]
async fn each_name_that_another_device_bears_is_told_and_nothing_changes() {
    let (world, acme) = with_meter().await;
    let umbrella = world.customer("umbrella", &["all"]).await;
    let taken = json!({
        "deviceId": "theirs", "iccid": "8902", "imsi": "9012", "msisdn": "4912", "endpoint": "ep",
    });
    world.post(DEVICES, &umbrella.bearer, taken).await;
    let before = shown(&world, &acme).await;
    let body = json!({
        "iccid": "8902", "imsi": "9012", "msisdn": "4912", "endpoint": "ep", "name": "Attic",
    });
    let refused = world.patch(METER, &acme.bearer, body).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    let expected = ["iccid", "endpoint", "imsi", "msisdn"].map(|field| ("DEVICE_EXISTS", field));
    assert_eq!(faults(&refused), expected);
    assert_eq!(shown(&world, &acme).await, before);
}

#[actix_web::test]
async fn a_device_that_is_not_the_caller_s_cannot_be_changed() {
    let (world, acme) = with_meter().await;
    let umbrella = world.customer("umbrella", &["all"]).await;
    let body = || json!({"name": "Attic"});
    let theirs = world.patch(METER, &umbrella.bearer, body()).await;
    assert_eq!(theirs.status, StatusCode::NOT_FOUND);
    let nobody = format!("{DEVICES}/nobody");
    let nobody = world.patch(&nobody, &acme.bearer, body()).await;
    assert_eq!(nobody.status, StatusCode::NOT_FOUND);
    let reader = world.client("acme", &["devices:read"]).await;
    let reader = world.patch(METER, &reader.bearer, body()).await;
    assert_eq!(reader.status, StatusCode::FORBIDDEN);
    assert_eq!(shown(&world, &acme).await["name"], Value::Null);
}

async fn with_meter() -> (World, Credentials) {
    let world = World::new();
    let acme = world.customer("acme", &["all"]).await;
    let body = json!({"deviceId": "meter", "iccid": "8901"});
    let made = world.post(DEVICES, &acme.bearer, body).await;
    assert_eq!(made.status, StatusCode::CREATED);
    (world, acme)
}

/// The device as the list shows it.
async fn shown(world: &World, caller: &Credentials) -> Value {
    let listed = world.get(DEVICES, &caller.bearer).await;
    listed.json()["items"][0].clone()
}

fn faults(answer: &Answer) -> Vec<(&'static str, &'static str)> {
    let told = answer.faults().into_iter();
    told.map(|(code, field)| (&*code.leak(), &*field.leak()))
        .collect()
}
