//! Does each customer have its own settings, and do they stay as set?

use serde_json::{Value, json};

use crate::test_service::{error_codes, keys, start};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::client::ApiClient;

const NAME: &str = "LWM2M_PASSIVE_REPORTING";

#[test]
fn passive_reporting_is_off_until_it_is_enabled() {
    let (mut service, _) = start(&[]);
    let client = ApiClient::of_new_customer(&service, "Acme");
    let mut caller = client.caller(&service);
    let stranger = Caller::of_new_customer(&service, "Umbrella");
    assert_eq!(state(&caller, "signalbox"), "DISABLED");
    for wanted in ["ENABLED", "ENABLED", "DISABLED", "ENABLED"] {
        let path = format!("{API}/settings/signalbox/{NAME}");
        let answer = caller
            .try_send("PATCH", &path, &json!({ "state": wanted }))
            .unwrap();
        let expected = json!({ "customerId": client.customer, "name": NAME, "state": wanted });
        assert_eq!(answer.expect(200), expected);
        assert_eq!(caller.request("GET", &path).expect(200), expected);
        assert_eq!(state(&caller, "signalbox"), wanted);
        assert_eq!(state(&stranger, "signalbox"), "DISABLED");
    }
    service.kill();
    service.start_again();
    caller.follow(&service);
    assert_eq!(state(&caller, "signalbox"), "ENABLED");
}

#[test]
fn a_refused_change_leaves_a_setting_as_it_is() {
    let (_service, caller) = start(&[]);
    let setting = format!("{API}/settings/signalbox/{NAME}");
    let change = |body: Value| caller.try_send("PATCH", &setting, &body).unwrap();
    change(json!({ "state": "ENABLED" })).expect(200);
    let refused = [
        json!({ "state": "OFF" }),
        json!({ "state": "disabled" }),
        json!({ "state": null }),
        json!({ "state": false }),
        json!({ "state": "DISABLED", "until": "tomorrow" }),
        json!({}),
    ];
    for body in refused {
        let answer = change(body.clone()).expect(400);
        assert!(!error_codes(&answer).is_empty(), "{body}");
        assert_eq!(state(&caller, "signalbox"), "ENABLED", "{body}");
    }
    let elsewhere = format!("{API}/settings/elsewhere/{NAME}");
    let disable = json!({ "state": "DISABLED" });
    let answer = caller.try_send("PATCH", &elsewhere, &disable).unwrap();
    assert_eq!(answer.status, 404);
    assert_eq!(state(&caller, "signalbox"), "ENABLED");
}

#[test]
fn the_platform_has_the_name_the_operator_configured() {
    let (_service, caller) = start(&[("SIGNALBOX_PLATFORM", "acme-connect")]);
    assert_eq!(state(&caller, "acme-connect"), "DISABLED");
    let path = format!("{API}/settings/acme-connect/{NAME}");
    let enabled = json!({ "state": "ENABLED" });
    assert_eq!(
        caller.try_send("PATCH", &path, &enabled).unwrap().status,
        200
    );
    assert_eq!(
        caller
            .request("GET", &format!("{API}/settings/signalbox"))
            .status,
        404
    );
}

/// The state of the only setting in the list.
fn state(caller: &Caller, platform: &str) -> String {
    let list = caller
        .request("GET", &format!("{API}/settings/{platform}"))
        .expect(200);
    let items = list["items"].as_array().expect("a list").clone();
    assert_eq!(items.len(), 1, "{list}");
    assert_eq!(keys(&items[0]), ["customerId", "name", "state"]);
    assert_eq!(items[0]["name"], NAME);
    items[0]["state"].as_str().expect("a state").to_owned()
}
