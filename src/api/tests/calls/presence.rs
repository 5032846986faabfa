//! After how long a silence are devices offline, and which settings of that are refused? The
//! black-box tests cover the effect on devices.

use actix_web::http::StatusCode;
use serde_json::json;

use crate::api::tests::test_service::TestService;

const DEVICES: &str = "/management-api/v1/devices";
const PRESENCE: &str = "/management-api/v1/presence";

#[actix_web::test]
async fn the_silence_that_a_customer_allows_is_set_and_removed() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let unset = json!({ "offlineAfter": null });
    assert_eq!(setup.get(PRESENCE, &acme.bearer).await.json(), unset);
    let set = json!({ "offlineAfter": 7_200 });
    for (given, shown) in [(&set, &set), (&json!({}), &set), (&unset, &unset)] {
        let changed = setup.patch(PRESENCE, &acme.bearer, given.clone()).await;
        assert_eq!((changed.status, &changed.json()), (StatusCode::OK, shown));
        assert_eq!(setup.get(PRESENCE, &acme.bearer).await.json(), *shown);
    }
    for (wrong, code) in [(json!(0), "OUT_OF_RANGE"), (json!("1"), "WRONG_TYPE")] {
        let refused = setup.patch(PRESENCE, &acme.bearer, json!({ "offlineAfter": wrong }));
        let refused = refused.await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);
        assert_eq!(refused.json()["errors"][0]["code"], code);
    }
}

#[actix_web::test]
async fn the_silence_of_a_device_has_a_bound() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let body = json!({ "deviceId": "meter", "offlineAfter": 600 });
    let made = setup.post(DEVICES, &acme.bearer, body).await;
    assert_eq!(made.json()["offlineAfter"], 600);
    let wrong = json!({ "offlineAfter": 31_536_001 });
    let path = format!("{DEVICES}/meter");
    let refused = setup.patch(&path, &acme.bearer, wrong).await;
    assert_eq!(refused.json()["errors"][0]["code"], "OUT_OF_RANGE");
}
