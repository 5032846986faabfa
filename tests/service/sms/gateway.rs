//! May an API client of the network do what the network does, and nothing else?

use serde_json::json;

use super::{MSISDN, NETWORK, SmsService, received, text_to_device};
use crate::test_service::error_codes;
use crate::vocabulary::caller::{Caller, text};
use crate::vocabulary::client::{ApiClient, NETWORK_CLIENTS};
use crate::vocabulary::http::{Request, Response};

#[test]
fn a_client_of_the_network_hands_in_messages_and_reports_until_it_is_revoked() {
    let mut setup = SmsService::new();
    let gateway = ApiClient::of_network(&setup.service);
    assert_eq!(
        gateway.ask_token(&setup.service).expect(200)["scope"],
        "network"
    );
    setup.network = gateway.caller(&setup.service);
    setup.hand_in("closed");
    let id = setup.send(&text_to_device("open"));
    setup.report(&id, "DELIVERED").expect(202);
    assert_eq!(setup.shown(&id)["status"]["status"], "DELIVERED");
    let taken = setup.network.post(&format!("{NETWORK}/mt"), &json!({}));
    assert_eq!(error_codes(&taken.expect(403)), ["FORBIDDEN"]);

    let operator = Caller::operator(&setup.service);
    let secrets = format!("{}/secrets", gateway.path());
    let second = operator.post(&secrets, &json!({})).expect(201);
    let renewed = ApiClient {
        secret: text(&second["clientSecret"]),
        ..gateway.clone()
    };
    let listed = operator.request("GET", NETWORK_CLIENTS).expect(200);
    assert_eq!(listed["items"][0]["scopes"], json!(["network"]));
    let listed_secrets = listed["items"][0]["secrets"].as_array();
    assert_eq!(listed_secrets.map(Vec::len), Some(2));
    setup.crash();
    setup.network = renewed.caller(&setup.service);
    setup.hand_in("closed again");
    let operator = Caller::operator(&setup.service);
    assert_eq!(operator.request("DELETE", &gateway.path()).status, 204);
    assert_eq!(setup.mo(&received(MSISDN, "too late")).status, 401);
    assert_eq!(renewed.ask_token(&setup.service).status, 401);
}

#[test]
fn a_token_of_the_network_has_one_scope_and_no_other_client_has_it() {
    let setup = SmsService::new();
    let gateway = ApiClient::of_network(&setup.service);
    let answer = token(&setup, &gateway, "network").expect(200);
    assert_eq!(answer["scope"], "network");
    for more in ["all", "sms:write", "network%20all"] {
        let refused = token(&setup, &gateway, more).expect(400);
        assert_eq!(error_codes(&refused), ["invalid_scope"], "{more}");
    }
    let customer = ApiClient::of_new_customer(&setup.service, "Umbrella");
    let refused = token(&setup, &customer, "network").expect(400);
    assert_eq!(error_codes(&refused), ["invalid_scope"]);
    let operator = Caller::operator(&setup.service);
    let with_scopes = json!({ "name": "a gateway", "scopes": ["all"] });
    let refused = operator.post(NETWORK_CLIENTS, &with_scopes).expect(400);
    assert_eq!(error_codes(&refused), ["UNKNOWN_PROPERTY"]);
}

fn token(setup: &SmsService, client: &ApiClient, scope: &str) -> Response {
    let form = format!("grant_type=client_credentials&scope={scope}");
    Request::new("POST", "/oauth/token")
        .header("authorization", &client.basic())
        .text("application/x-www-form-urlencoded", &form)
        .send(setup.service.http)
}
