//! Who gets a token, what does it allow, and when does it end?

use serde_json::{Value, json};

use crate::test_service::{ID, error_codes, keys, silent_device, start};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::client::ApiClient;
use crate::vocabulary::http::{Request, Response};
use crate::vocabulary::lwm2m::{read, when_active};
use crate::vocabulary::service::Service;

const PATHS: [&str; 2] = ["/management-api/oauth/token", "/oauth/token"];
const GRANT: &str = "grant_type=client_credentials";
const FORM: &str = "application/x-www-form-urlencoded";

#[test]
fn a_client_gets_a_token_with_basic_credentials_or_fields_in_json_or_a_form() {
    let service = Service::start();
    let client = ApiClient::of_new_customer(&service, "Acme");
    let fields = format!(
        "{GRANT}&client_id={}&client_secret={}",
        client.id, client.secret
    );
    let json_fields = json!({
        "grant_type": "client_credentials",
        "client_id": client.id, "client_secret": client.secret,
    });
    for path in PATHS {
        let basic = || Request::new("POST", path).header("authorization", &client.basic());
        let ways = [
            basic().json(&json!({ "grant_type": "client_credentials" })),
            basic().text(FORM, GRANT),
            basic().text("application/x-www-form-urlencoded; charset=UTF-8", GRANT),
            Request::new("POST", path).text(FORM, &fields),
            Request::new("POST", path).json(&json_fields),
        ];
        for way in ways {
            let answer = way.send(service.http);
            assert_eq!(answer.header("cache-control"), Some("no-store"));
            let token = answer.expect(200);
            let expected = [
                "access_token",
                "expires_in",
                "scope",
                "status_code",
                "token_type",
                "userId",
            ];
            assert_eq!(keys(&token), expected);
            assert_eq!(token["status_code"], 200);
            assert_eq!(token["token_type"], "bearer");
            assert_eq!(token["expires_in"], 3_600);
            assert_eq!(token["scope"], "all");
            let caller = Caller::with_token(&service, &text(&token["access_token"]));
            caller.request("GET", &format!("{API}/devices")).expect(200);
        }
    }
}

#[test]
fn wrong_credentials_get_no_token() {
    let service = Service::start();
    let client = ApiClient::of_new_customer(&service, "Acme");
    let form = |id: &str, secret: &str| {
        let fields = format!("{GRANT}&client_id={id}&client_secret={secret}");
        Request::new("POST", PATHS[0]).text(FORM, &fields)
    };
    let basic = |value: &str| {
        Request::new("POST", PATHS[0])
            .header("authorization", value)
            .text(FORM, GRANT)
    };
    let wrong = [
        form(&client.id, "wrong"),
        form("nobody", &client.secret),
        form(&client.id, ""),
        form("", ""),
        basic("Basic bm9ib2R5OndoYXRldmVy"),
        basic("Basic !!!"),
        basic("Basic"),
        basic(&format!("Bearer {}", client.secret)),
        Request::new("POST", PATHS[0]).text(FORM, GRANT),
    ];
    for request in wrong {
        let answer = request.send(service.http).expect(401);
        assert_eq!(keys(&answer), ["errorCode", "message", "statusCode"]);
        assert_eq!(answer["statusCode"], 401);
        assert_eq!(answer["errorCode"], "BadCredentials");
    }
}

#[test]
fn another_grant_type_is_refused() {
    let service = Service::start();
    let client = ApiClient::of_new_customer(&service, "Acme");
    for body in ["", "grant_type=password", "scope=all"] {
        let answer = Request::new("POST", PATHS[0])
            .header("authorization", &client.basic())
            .text(FORM, body)
            .send(service.http)
            .expect(400);
        assert_eq!(answer["errors"][0]["field"], "grant_type", "{answer}");
    }
}

#[test]
fn schemes_and_header_names_are_case_insensitive() {
    let service = Service::start();
    let client = ApiClient::of_new_customer(&service, "Acme");
    let basic = client.basic().replacen("Basic", "bASIC", 1);
    let token = Request::new("POST", PATHS[1])
        .header("AUTHORIZATION", &basic)
        .text(FORM, GRANT)
        .send(service.http)
        .expect(200);
    let token = text(&token["access_token"]);
    for scheme in ["Bearer", "bearer", "BEARER"] {
        for name in ["authorization", "Authorization", "AUTHORIZATION"] {
            let answer = Request::new("GET", &format!("{API}/devices"))
                .header(name, &format!("{scheme} {token}"))
                .send(service.http);
            assert_eq!(answer.status, 200, "{name}: {scheme}");
        }
    }
}

#[test]
fn without_a_valid_token_nothing_is_served() {
    let (service, caller) = start(&[]);
    let devices = format!("{API}/devices");
    let headers = [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Basic Zm9vOmJhcg==",
        "wrong",
    ];
    for header in headers {
        let request = Request::new("GET", &devices).header("authorization", header);
        let answer = request.send(service.http);
        assert!(
            answer
                .header("www-authenticate")
                .is_some_and(|it| it.starts_with("Bearer"))
        );
        assert_eq!(
            error_codes(&answer.expect(401)),
            ["UNAUTHORIZED"],
            "{header:?}"
        );
    }
    let operator = Caller::operator(&service);
    let customers = "/operator-api/v1/customers";
    assert_eq!(
        operator.request("GET", &devices).status,
        401,
        "the operator is no customer"
    );
    assert_eq!(
        caller.request("GET", customers).status,
        401,
        "a customer is no operator"
    );
    assert_eq!(operator.request("GET", customers).status, 200);
}

#[test]
fn a_revoked_client_ends_with_its_tokens() {
    let service = Service::start();
    let client = ApiClient::of_new_customer(&service, "Acme");
    let other = ApiClient::make(&service, &client.customer, &json!({ "name": "another" }));
    let callers = [client.caller(&service), client.caller(&service)];
    let staying = other.caller(&service);
    let operator = Caller::operator(&service);
    assert_eq!(operator.request("DELETE", &client.path()).status, 204);
    for caller in callers {
        assert_eq!(caller.request("GET", &format!("{API}/devices")).status, 401);
    }
    assert_eq!(
        client.ask_token(&service).expect(401)["errorCode"],
        "BadCredentials"
    );
    staying
        .request("GET", &format!("{API}/devices"))
        .expect(200);
    assert_eq!(operator.request("DELETE", &client.path()).status, 404);
}

#[test]
fn removing_a_customer_ends_its_tokens() {
    let service = Service::start();
    let client = ApiClient::of_new_customer(&service, "Acme");
    let caller = client.caller(&service);
    silent_device(&caller, ID);
    caller.create_action(ID, &when_active(read("/3/0/0")));
    let operator = Caller::operator(&service);
    let path = format!("/operator-api/v1/customers/{}", client.customer);
    assert_eq!(operator.request("DELETE", &path).status, 204);
    assert_eq!(caller.request("GET", &format!("{API}/devices")).status, 401);
    assert_eq!(operator.request("DELETE", &path).status, 404);
    let again = Caller::of_new_customer(&service, "Acme");
    silent_device(&again, ID);
}

#[test]
fn a_client_may_do_what_its_scopes_allow() {
    let service = Service::start();
    let whole = ApiClient::of_new_customer(&service, "Acme");
    silent_device(&whole.caller(&service), ID);
    let calls = calls();
    for (scope, ..) in &calls {
        let body = json!({ "name": scope, "scopes": [scope] });
        let client = ApiClient::make(&service, &whole.customer, &body);
        assert_eq!(client.ask_token(&service).expect(200)["scope"], *scope);
        let caller = client.caller(&service);
        for (needed, method, path, body) in &calls {
            let answer = send(&caller, method, path, body);
            if needed == scope {
                assert!(
                    answer.status < 300 || answer.status == 409,
                    "{scope}: {}",
                    answer.text()
                );
            } else {
                assert_eq!(
                    error_codes(&answer.expect(403)),
                    ["FORBIDDEN"],
                    "{scope}: {path}"
                );
            }
        }
    }
}

#[test]
fn every_scope_is_granted_by_its_name_and_nothing_else_is() {
    let service = Service::start();
    let client = ApiClient::of_new_customer(&service, "Acme");
    let scopes = [
        "actions:read",
        "actions:write",
        "logs:read",
        "settings:read",
        "settings:write",
        "integrations:read",
        "integrations:write",
        "plugins:read",
        "plugins:write",
        "sms:read",
        "sms:write",
        "devices:read",
        "devices:write",
        "all",
    ];
    let body = |scope: &str| json!({ "name": "a test", "scopes": [scope] });
    for scope in scopes {
        let made = ApiClient::make(&service, &client.customer, &body(scope));
        assert_eq!(made.ask_token(&service).expect(200)["scope"], scope);
    }
    let path = format!("/operator-api/v1/customers/{}/clients", client.customer);
    for scope in [
        "",
        "logs",
        "logs:write",
        "LOGS:READ",
        "actions:read logs:read",
    ] {
        let answer = Caller::operator(&service).post(&path, &body(scope));
        let answer = answer.expect(400);
        assert_eq!(answer["errors"][0]["field"], "scopes", "{scope}");
    }
}

#[test]
fn customers_and_clients_are_created_and_listed_separately() {
    let service = Service::start();
    let operator = Caller::operator(&service);
    let customers = "/operator-api/v1/customers";
    let made = operator
        .post(customers, &json!({ "id": "acme", "name": "Acme" }))
        .expect(201);
    assert_eq!(made, json!({ "id": "acme", "name": "Acme" }));
    let again = operator
        .post(customers, &json!({ "id": "acme", "name": "Acme 2" }))
        .expect(409);
    assert_eq!(error_codes(&again), ["CUSTOMER_EXISTS"]);
    let list = operator.request("GET", customers).expect(200);
    assert_eq!(
        (&list["items"][0]["id"], &list["items"][0]["name"]),
        (&made["id"], &made["name"])
    );
    let clients = format!("{customers}/acme/clients");
    let client = operator
        .post(&clients, &json!({ "name": "meters" }))
        .expect(201);
    assert_eq!(keys(&client), ["clientId", "clientSecret"]);
    let listed = operator.request("GET", &clients);
    assert!(
        !listed.text().contains(&text(&client["clientSecret"])),
        "it is shown once"
    );
    assert_eq!(
        listed.expect(200)["items"][0]["clientId"],
        client["clientId"]
    );
    let nobody = operator.post(
        &format!("{customers}/nobody/clients"),
        &json!({ "name": "x" }),
    );
    assert_eq!(error_codes(&nobody.expect(404)), ["NOT_FOUND"]);
}

fn send(caller: &Caller, method: &str, path: &str, body: &Value) -> Response {
    if body.is_null() {
        caller.request(method, path)
    } else {
        caller.try_send(method, path, body).unwrap()
    }
}

/// A call that needs a scope: the scope, the method, the path and the body.
type Scoped = (&'static str, &'static str, String, Value);

fn calls() -> Vec<Scoped> {
    let call = |scope, method, path: &str, body| (scope, method, format!("{API}/{path}"), body);
    let setting = "settings/signalbox/LWM2M_PASSIVE_REPORTING";
    let of_device = format!("integrate/devices/{ID}/actions");
    let create = format!("{of_device}/LWM2M");
    let action = when_active(read("/3/0/0"));
    vec![
        call("devices:read", "GET", "devices", Value::Null),
        call(
            "devices:write",
            "POST",
            "devices",
            json!({ "deviceId": "new" }),
        ),
        call(
            "actions:read",
            "GET",
            "integrate/devices/actions/requests",
            Value::Null,
        ),
        call("actions:write", "POST", &create, action),
        call(
            "actions:write",
            "DELETE",
            &format!("{of_device}/requests"),
            Value::Null,
        ),
        call("logs:read", "GET", "administrationLogs", Value::Null),
        call("settings:read", "GET", "settings/signalbox", Value::Null),
        call(
            "settings:write",
            "PATCH",
            setting,
            json!({ "state": "DISABLED" }),
        ),
    ]
}
