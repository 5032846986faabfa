//! Who may use the console, from where, and for how long? Sessions, as a browser has them.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::test_service::{ID, start};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::client::{ApiClient, CUSTOMERS};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::http::{Request, Response, next_part};
use crate::vocabulary::poll::until;
use crate::vocabulary::service::Service;

const SESSION: &str = "/console/session";
const SESSIONS: &str = "/console/sessions";
const CODES: &str = "/console/codes";

#[test]
fn an_api_client_signs_in_and_calls_the_api_with_its_cookie() {
    let (service, client) = service_and_client(&[]);
    let browser = Browser::signed_in(&service, &client.credentials());
    let session = browser.call("GET", SESSION).expect(200);
    assert_eq!(session["role"], "API_CLIENT");
    assert_eq!(session["clientId"], client.id.as_str());
    assert_eq!(session["customerId"], client.customer.as_str());
    assert_eq!(session["scopes"], json!(["all"]));
    let page = browser.api("GET", &format!("{API}/devices")).expect(200);
    assert_eq!(page["items"], json!([]));
    let device = json!({ "deviceId": ID, "ip": DEVICE_IP });
    let made = browser.send_api("POST", &format!("{API}/devices"), &device);
    assert_eq!(made.expect(201)["deviceId"], ID);
}

#[test]
fn the_cookie_is_out_of_reach_of_scripts_and_of_other_sites() {
    let (service, client) = service_and_client(&[]);
    let local = local_host(service.http);
    let set_cookie = |host: &str, proto: Option<&str>| {
        let mut request = Request::to_host(host, "POST", SESSION);
        if let Some(proto) = proto {
            request = request.header("x-forwarded-proto", proto);
        }
        let answer = request.json(&client.credentials()).send(service.http);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.header("set-cookie").unwrap().to_owned()
    };
    let loopback = set_cookie(&local, None);
    let (name, attributes) = parts(&loopback);
    assert_eq!(name, "signalbox-session");
    assert_eq!(attributes, "Path=/console; HttpOnly; SameSite=Strict");
    let secure = set_cookie("iot.example", Some("https"));
    let (name, attributes) = parts(&secure);
    assert_eq!(name, "__Host-signalbox");
    assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Strict; Secure");
}

#[test]
fn nobody_signs_in_over_http_from_elsewhere() {
    let (service, client) = service_and_client(&[]);
    for path in [SESSION, CODES] {
        let request = Request::to_host("iot.example", "POST", path);
        let refused = request.json(&client.credentials()).send(service.http);
        assert_eq!(code(&refused.expect(403)), "INSECURE_TRANSPORT", "{path}");
        assert_eq!(refused.header("set-cookie"), None);
    }
    let browser = Browser::signed_in(&service, &client.credentials());
    let elsewhere = Request::to_host("iot.example", "GET", &console_api("/devices"));
    let refused = elsewhere
        .header("cookie", &browser.cookie)
        .send(service.http);
    assert_eq!(code(&refused.expect(403)), "INSECURE_TRANSPORT");
}

#[test]
fn the_cookie_counts_under_the_console_alone() {
    let (service, client) = service_and_client(&[]);
    let browser = Browser::signed_in(&service, &client.credentials());
    assert_eq!(browser.call("GET", &format!("{API}/devices")).status, 401);
    assert_eq!(browser.api("GET", &format!("{API}/devices")).status, 200);
    let token = format!("Bearer {}", client.caller(&service).token());
    let path = console_api("/devices");
    let request = Request::to_host(&local_host(service.http), "GET", &path);
    let refused = request.header("authorization", &token).send(service.http);
    assert_eq!(code(&refused.expect(401)), "SESSION_ENDED");
}

#[test]
fn a_call_that_changes_anything_needs_the_csrf_token() {
    let (service, client) = service_and_client(&[]);
    let browser = Browser::signed_in(&service, &client.credentials());
    let body = json!({ "deviceId": ID });
    for token in [None, Some("another")] {
        let mut request = browser.request("POST", &console_api("/devices"));
        if let Some(token) = token {
            request = request.header("x-csrf-token", token);
        }
        let refused = request.json(&body).send(service.http);
        assert_eq!(code(&refused.expect(403)), "CSRF_TOKEN_MISSING");
    }
    for path in [SESSION, SESSIONS] {
        let refused = browser.request("DELETE", path).send(service.http);
        assert_eq!(code(&refused.expect(403)), "CSRF_TOKEN_MISSING", "{path}");
    }
    let devices = client
        .caller(&service)
        .request("GET", &format!("{API}/devices"));
    assert_eq!(devices.expect(200)["items"], json!([]));
}

#[test]
fn wrong_credentials_open_no_session() {
    let (service, client) = service_and_client(&[]);
    let id = client.id.as_str();
    for body in [
        json!({ "clientId": id, "clientSecret": "wrong" }),
        json!({ "clientId": "nobody", "clientSecret": client.secret }),
        json!({ "clientId": id }),
        json!({ "operatorToken": client.secret }),
        json!({}),
    ] {
        let refused = sign_in(&service, &body);
        assert_eq!(code(&refused.expect(401)), "BAD_CREDENTIALS", "{body}");
        assert_eq!(refused.header("set-cookie"), None);
    }
    let form = Request::to_host(&local_host(service.http), "POST", SESSION);
    let form = form.text("application/x-www-form-urlencoded", "code=1");
    assert_eq!(form.send(service.http).status, 415);
}

#[test]
fn signing_out_ends_one_session_or_all_of_the_client() {
    let (service, client) = service_and_client(&[]);
    let sign_in = || Browser::signed_in(&service, &client.credentials());
    let (one, other, third) = (sign_in(), sign_in(), sign_in());
    let operator = Browser::signed_in(&service, &operator(&service));
    assert_eq!(one.send("DELETE", SESSION).status, 204);
    assert!(!one.is_signed_in());
    assert!(other.is_signed_in() && third.is_signed_in());
    let everywhere = other.send("DELETE", SESSIONS);
    assert_eq!(everywhere.status, 204);
    assert!(
        everywhere
            .header("set-cookie")
            .unwrap()
            .ends_with("Max-Age=0")
    );
    assert!(!other.is_signed_in() && !third.is_signed_in());
    assert_eq!(operator.call("GET", SESSION).status, 200);
}

#[test]
fn a_stream_of_events_ends_with_its_session() {
    let (service, client) = service_and_client(&[("SIGNALBOX_EVENT_STREAM_HEARTBEAT_MS", "50")]);
    let browser = Browser::signed_in(&service, &client.credentials());
    let request = browser.request("GET", &console_api("/events/stream"));
    let mut connection = request.begin(service.http);
    let mut received = next_part(&mut connection).unwrap().expect("a response");
    assert_eq!(browser.send("DELETE", SESSION).status, 204);
    while let Some(part) = next_part(&mut connection).unwrap() {
        received.extend(part);
    }
    assert!(received.starts_with(b"HTTP/1.1 200") && received.ends_with(b"\r\n0\r\n\r\n"));
}

#[test]
fn pages_of_the_console_take_no_stream_from_a_program() {
    let (service, client) = service_and_client(&[("SIGNALBOX_EVENT_STREAMS_MAX", "1")]);
    let browser = Browser::signed_in(&service, &client.credentials());
    let request = browser.request("GET", &console_api("/events/stream"));
    let mut page = request.begin(service.http);
    let opened = next_part(&mut page).unwrap().expect("a response");
    assert!(opened.starts_with(b"HTTP/1.1 200"));
    let refused = browser.api("GET", &format!("{API}/events/stream"));
    assert_eq!(refused.expect(409)["errors"][0]["code"], "TOO_MANY_STREAMS");
    let program = client.caller(&service);
    let request = program.authorized("GET", &format!("{API}/events/stream"));
    let mut stream = request.begin(service.http);
    let opened = next_part(&mut stream).unwrap().expect("a response");
    assert!(opened.starts_with(b"HTTP/1.1 200"));
}

#[test]
fn a_session_ends_when_nobody_uses_it_and_when_it_is_old() {
    let idle = [("SIGNALBOX_CONSOLE_IDLE_S", "1")];
    let (service, client) = service_and_client(&idle);
    let browser = Browser::signed_in(&service, &client.credentials());
    // A page that refreshes itself does not prolong its session.
    until("the end of an idle session", || {
        (!browser.is_signed_in()).then_some(())
    });
    let old = [("SIGNALBOX_CONSOLE_SESSION_S", "1")];
    let (service, client) = service_and_client(&old);
    let browser = Browser::signed_in(&service, &client.credentials());
    until("the end of an old session", || {
        let request = browser.request("GET", &console_api("/devices"));
        let answer = request.header("x-user-activity", "1").send(service.http);
        (answer.status == 401).then_some(())
    });
}

#[test]
fn a_code_signs_in_once() {
    let (service, client) = service_and_client(&[]);
    let local = local_host(service.http);
    let request = Request::to_host(&local, "POST", CODES).json(&client.credentials());
    let made = request.send(service.http).expect(201);
    assert_eq!(made["expiresIn"], 600);
    let body = json!({ "code": made["code"] });
    let browser = Browser::signed_in(&service, &body);
    assert_eq!(
        browser.call("GET", SESSION).expect(200)["clientId"],
        client.id.as_str()
    );
    let again = sign_in(&service, &body);
    assert_eq!(code(&again.expect(401)), "CODE_UNUSABLE");
    let wrong = json!({ "clientId": client.id, "clientSecret": "wrong" });
    let request = Request::to_host(&local, "POST", CODES).json(&wrong);
    assert_eq!(
        code(&request.send(service.http).expect(401)),
        "BAD_CREDENTIALS"
    );
}

#[test]
fn a_session_may_do_what_its_client_may_and_ends_with_it() {
    let (service, owner) = service_and_client(&[]);
    let reader = json!({ "name": "reader", "scopes": ["devices:read"] });
    let reader = ApiClient::make(&service, &owner.customer, &reader);
    let browser = Browser::signed_in(&service, &reader.credentials());
    let session = browser.call("GET", SESSION).expect(200);
    assert_eq!(session["scopes"], json!(["devices:read"]));
    assert_eq!(browser.api("GET", &format!("{API}/devices")).status, 200);
    let made = browser.send_api(
        "POST",
        &format!("{API}/devices"),
        &json!({ "deviceId": ID }),
    );
    assert_eq!(made.status, 403);
    assert_eq!(
        browser
            .api("GET", &format!("{API}/administrationLogs"))
            .status,
        403
    );
    assert_eq!(
        browser.api("GET", CUSTOMERS).status,
        401,
        "that is the operator's"
    );
    let removed = Caller::operator(&service).request("DELETE", &reader.path());
    assert_eq!(removed.status, 204);
    assert_eq!(browser.call("GET", SESSION).status, 204);
    assert_eq!(browser.api("GET", &format!("{API}/devices")).status, 401);
}

#[test]
fn a_session_of_one_customer_never_reaches_a_device_of_another() {
    let (service, owner) = service_and_client(&[]);
    owner.caller(&service).create_device(ID, DEVICE_IP);
    let other = ApiClient::of_new_customer(&service, "Other");
    let browser = Browser::signed_in(&service, &other.credentials());
    let device = format!("{API}/devices/{ID}");
    for path in [device.clone(), format!("{device}/messages")] {
        assert_eq!(browser.api("GET", &path).status, 404, "{path}");
    }
    assert_eq!(browser.send_api("DELETE", &device, &json!({})).status, 404);
    let page = browser.api("GET", &format!("{API}/devices")).expect(200);
    assert_eq!(page["items"], json!([]));
}

#[test]
fn the_operator_signs_in_where_the_operator_api_is() {
    let (service, client) = service_and_client(&[]);
    let browser = Browser::signed_in(&service, &operator(&service));
    assert_eq!(browser.call("GET", SESSION).expect(200)["role"], "OPERATOR");
    let customers = browser.api("GET", CUSTOMERS).expect(200);
    assert_eq!(customers["items"][0]["id"], client.customer.as_str());
    let apart = Service::start_with(&[("SIGNALBOX_OPERATOR_HTTP", "127.0.0.1:0")]);
    let refused = sign_in(&apart, &operator(&apart));
    assert_eq!(code(&refused.expect(401)), "BAD_CREDENTIALS");
}

#[test]
fn a_restart_signs_everybody_out() {
    let (mut service, client) = service_and_client(&[]);
    let mut browser = Browser::signed_in(&service, &client.credentials());
    service.kill();
    service.start_again();
    browser.http = service.http;
    assert!(!browser.is_signed_in());
}

#[test]
fn the_page_loads_nothing_foreign_and_says_if_it_is_missing() {
    let (service, _) = start(&[]);
    let page = Request::new("GET", "/console").send(service.http);
    if page.status == 501 {
        assert!(page.text().contains("install Node.js"), "{}", page.text());
        return;
    }
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    let shared = Request::new("GET", "/console/devices/meter-1").send(service.http);
    assert_eq!(shared.text(), page.text(), "every view has an address");
    let files: Vec<&str> = page
        .text()
        .split('"')
        .filter(|it| it.contains("/assets/"))
        .collect();
    assert!(files.len() >= 3, "{}", page.text());
    for path in files {
        let request = |encoding| Request::new("HEAD", path).header("accept-encoding", encoding);
        let file = request("gzip, deflate").send(service.http);
        assert_eq!(file.status, 200, "{path}");
        assert_eq!(file.header("content-encoding"), Some("gzip"));
        let cached = file.header("cache-control").unwrap();
        assert!(cached.contains("immutable"), "{cached}");
        assert_eq!(request("identity").send(service.http).status, 406);
    }
    let unknown = Request::new("GET", "/console/assets/none.js").send(service.http);
    assert_eq!(unknown.status, 404);
}

/// A browser that keeps the cookie and the CSRF token of its session.
struct Browser {
    http: SocketAddr,
    cookie: String,
    csrf: String,
}

impl Browser {
    fn signed_in(service: &Service, credentials: &Value) -> Self {
        let answer = sign_in(service, credentials);
        let session = answer.expect(200);
        let cookie = answer.header("set-cookie").unwrap();
        Self {
            http: service.http,
            cookie: cookie.split(';').next().unwrap().to_owned(),
            csrf: text(&session["csrfToken"]),
        }
    }

    fn request(&self, method: &str, path: &str) -> Request {
        Request::to_host(&local_host(self.http), method, path).header("cookie", &self.cookie)
    }

    /// A call without the CSRF token.
    fn call(&self, method: &str, path: &str) -> Response {
        self.request(method, path).send(self.http)
    }

    /// A call with it.
    fn send(&self, method: &str, path: &str) -> Response {
        let request = self.request(method, path);
        request.header("x-csrf-token", &self.csrf).send(self.http)
    }

    fn api(&self, method: &str, path: &str) -> Response {
        self.call(method, &format!("/console/api{path}"))
    }

    fn send_api(&self, method: &str, path: &str, body: &Value) -> Response {
        let request = self.request(method, &format!("/console/api{path}"));
        let request = request.header("x-csrf-token", &self.csrf);
        request.json(body).send(self.http)
    }

    fn is_signed_in(&self) -> bool {
        let answer = self.api("GET", &format!("{API}/devices"));
        match answer.status {
            200 => true,
            status => {
                assert_eq!(
                    (status, code(&answer.json())),
                    (401, "SESSION_ENDED".into())
                );
                false
            }
        }
    }
}

impl ApiClient {
    fn credentials(&self) -> Value {
        json!({ "clientId": self.id, "clientSecret": self.secret })
    }
}

fn service_and_client(settings: &[(&str, &str)]) -> (Service, ApiClient) {
    let service = Service::start_with(settings);
    let client = ApiClient::of_new_customer(&service, "Acme");
    (service, client)
}

fn operator(service: &Service) -> Value {
    json!({ "operatorToken": service.operator_token() })
}

fn sign_in(service: &Service, credentials: &Value) -> Response {
    let request = Request::to_host(&local_host(service.http), "POST", SESSION);
    request.json(credentials).send(service.http)
}

/// The host in the address of a browser on the machine of the service.
fn local_host(http: SocketAddr) -> String {
    format!("localhost:{}", http.port())
}

fn console_api(path: &str) -> String {
    format!("/console/api{API}{path}")
}

/// The name of a cookie, and its attributes.
fn parts(set_cookie: &str) -> (&str, &str) {
    let (pair, attributes) = set_cookie.split_once("; ").unwrap();
    let (name, value) = pair.split_once('=').unwrap();
    assert!(value.len() >= 43, "it cannot be guessed: {value}");
    (name, attributes)
}

fn code(failure: &Value) -> String {
    text(&failure["errors"][0]["code"])
}
