//! What does a customer see of others? `access` walks every operation.

use serde_json::json;

use crate::test_service::{ID, TestService, start};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::lwm2m::{read, when_active};

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
