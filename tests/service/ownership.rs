//! Are objects of a customer invisible to others, in every operation of the OpenAPI document?

use serde_json::{Value, json};

use crate::test_service::{ID, TestService, start};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::http::Request;
use crate::vocabulary::lwm2m::{read, when_active};
use crate::vocabulary::plain::{coap, datagram};
use crate::vocabulary::service::Service;

#[test]
fn objects_of_another_customer_are_not_found_by_any_operation() {
    let setup = TestService::new();
    let request = setup.caller.create_action(ID, &when_active(read("/3/0/0")));
    let entry = text(&setup.caller.log_entries()[0]["id"]);
    let webhooks = format!("{API}/integrate/clouds/webhooks");
    let body = json!({ "name": "Mine", "url": "https://signalbox.invalid/" });
    let webhook = setup.caller.post(&webhooks, &body).expect(201);
    let webhook = text(&webhook["id"]);
    let stranger = Caller::of_new_customer(&setup.service, "Umbrella");
    let named = |path: &str| {
        path.replace("{device}", ID)
            .replace("{request}", &request)
            .replace("{entry}", &entry)
            .replace("{webhook}", &webhook)
    };
    let mut checked = 0;
    for (method, path, operation) in operations(&setup.service) {
        let names_something = ["{device}", "{request}", "{entry}", "{webhook}"];
        if !names_something.iter().any(|name| path.contains(name)) {
            continue;
        }
        let call = stranger.authorized(&method, &named(&path));
        let answer = match body_of(&operation) {
            Some(body) => call.json(&body).send(setup.service.http),
            None => call.send(setup.service.http),
        };
        assert_eq!(answer.status, 404, "{method} {path}: {}", answer.text());
        checked += 1;
    }
    assert!(checked >= 18, "only {checked} operations name something");
    assert_eq!(setup.caller.action(&request)["status"], "SCHEDULED");
    let unchanged = setup
        .caller
        .request("GET", &format!("{webhooks}/{webhook}"));
    assert_eq!(unchanged.expect(200)["name"], "Mine");
}

#[test]
fn the_lists_of_a_new_customer_are_empty() {
    let setup = TestService::new();
    setup.caller.create_action(ID, &when_active(read("/3/0/0")));
    let webhook = json!({ "name": "Mine", "url": "https://signalbox.invalid/" });
    let webhooks = format!("{API}/integrate/clouds/webhooks");
    setup.caller.post(&webhooks, &webhook).expect(201);
    let stranger = Caller::of_new_customer(&setup.service, "Umbrella");
    for path in [
        "/devices",
        "/integrate/devices/actions/requests",
        "/integrate/devices/actions/requests?deviceId=meter-1",
        "/administrationLogs",
        "/integrate/clouds/webhooks",
    ] {
        let page = stranger.request("GET", &format!("{API}{path}")).expect(200);
        assert_eq!(page["items"], json!([]), "{path}");
    }
}

/// Every operation of the document: its method, its path, and its description.
fn operations(service: &Service) -> Vec<(String, String, Value)> {
    let document = Request::new("GET", "/openapi.json").send(service.http);
    let document = document.expect(200);
    let paths = document["paths"].as_object().expect("a document has paths");
    let operations = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().expect("a path has methods");
        let each = |(method, operation): (&String, &Value)| {
            (method.to_uppercase(), path.clone(), operation.clone())
        };
        methods.iter().map(each).collect::<Vec<_>>()
    });
    operations.collect()
}

/// A body that the operation would accept from the owner.
fn body_of(operation: &Value) -> Option<Value> {
    operation.get("requestBody")?;
    let body = match text(&operation["operationId"]).as_str() {
        "createLwm2mAction" => when_active(read("/3/0/0")),
        "createCoapAction" => when_active(coap("GET", "/", 5_683)),
        "createUdpAction" => when_active(datagram("mine", 4_445)),
        "amendDevice" | "amendWebhook" => json!({ "name": "Mine now" }),
        "setDeviceKey" => json!({ "format": "STRING", "secretKey": "correct horse" }),
        other => panic!("no body for {other}"),
    };
    Some(body)
}

#[test]
fn an_address_is_free_once_its_customer_has_no_device_with_it() {
    let (service, caller) = start(&[]);
    let other = Caller::of_new_customer(&service, "Umbrella");
    caller.create_device("one", "10.0.0.7");
    caller.create_device("two", "10.0.0.7");
    let devices = format!("{API}/devices");
    let body = json!({ "deviceId": "three", "ip": "10.0.0.7" });
    for remaining in ["one", "two"] {
        let refused = other.post(&devices, &body).expect(409);
        assert_eq!(refused["errors"][0]["code"], "ADDRESS_IN_USE", "{refused}");
        let path = format!("{devices}/{remaining}");
        assert_eq!(caller.request("DELETE", &path).status, 204);
    }
    other.post(&devices, &body).expect(201);
}
