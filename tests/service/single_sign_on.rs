//! Does a person sign in with the identity provider only if the provider says so, in the browser
//! that asked, and with no more than the rules give? The provider here is of the test, because it
//! lies.

mod identity_provider;

use std::io::Write as _;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::test_service::ID;
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::client::{ApiClient, CUSTOMERS};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::endpoint::Reply;
use crate::vocabulary::http::{Request, Response};
use crate::vocabulary::service::Service;

use identity_provider::{CLIENT_ID, CLIENT_SECRET, CODE, IdentityProvider, parameters};

/// The customer that rules are about.
const CUSTOMER: &str = "acme";

const SIGN_IN: &str = "/console/oidc/sign-in";
const CALLBACK: &str = "/console/oidc/callback";
const SESSION: &str = "/console/session";

#[test]
fn a_person_has_the_scopes_of_their_groups_for_one_customer() {
    let setup = Setup::new();
    let offered = setup.ask("GET", "/console/oidc").send(setup.service.http);
    assert_eq!(offered.expect(200), json!({ "name": "Acme accounts" }));
    let person = setup.signed_in(json!({ "groups": ["nobody", "readers", "others"] }));
    let session = setup.session(&person);
    assert_eq!(session["role"], "PERSON");
    assert_eq!(session["person"], "Ada Lovelace");
    assert_eq!(session["customerId"], CUSTOMER);
    assert_eq!(session["scopes"], json!(["devices:read"]));
    let owner = ApiClient::make(&setup.service, CUSTOMER, &json!({ "name": "owner" }));
    owner.caller(&setup.service).create_device(ID, DEVICE_IP);
    let page = setup.api(&person, "GET", "/devices").expect(200);
    assert_eq!(page["items"][0]["deviceId"], ID);
    assert_eq!(setup.api(&person, "GET", "/administrationLogs").status, 403);
    let removed = setup.api(&person, "DELETE", &format!("/devices/{ID}"));
    assert_eq!(removed.status, 403);
    let customers = person.ask(&setup, "GET", &format!("/console/api{CUSTOMERS}"));
    assert_eq!(customers.send(setup.service.http).status, 403);
}

#[test]
fn an_operator_has_the_operator_api_and_no_data_of_customers() {
    let setup = Setup::new();
    let person = setup.signed_in(json!({ "groups": "operators" }));
    let session = setup.session(&person);
    assert_eq!(
        (&session["role"], &session["person"]),
        (&json!("OPERATOR"), &json!("Ada Lovelace"))
    );
    let customers = person.ask(&setup, "GET", &format!("/console/api{CUSTOMERS}"));
    let customers = customers.send(setup.service.http).expect(200);
    assert_eq!(customers["items"][0]["id"], CUSTOMER);
    assert_eq!(setup.api(&person, "GET", "/devices").status, 403);
    let apart = Setup::with(&[("SIGNALBOX_OPERATOR_HTTP", "127.0.0.1:0")]);
    let refused = apart.tried(json!({ "groups": "operators" }));
    expect_page(&refused, 403, "not served at this address");
}

#[test]
fn the_request_to_the_provider_is_bound_to_the_browser_and_the_code_to_the_request() {
    let setup = Setup::new();
    let begun = setup.begin("?to=/console/devices?q=a");
    let asked = &begun.asked;
    let redirect_uri = format!("http://localhost:{}{CALLBACK}", setup.service.http.port());
    for (name, value) in [
        ("response_type", "code"),
        ("client_id", CLIENT_ID),
        ("redirect_uri", &redirect_uri),
        ("scope", "openid profile email"),
        ("code_challenge_method", "S256"),
    ] {
        assert_eq!(asked[name], value);
    }
    let attributes = begun.set_cookie.split_once("; ").unwrap().1;
    assert_eq!(attributes, "Path=/console/oidc; HttpOnly; SameSite=Lax");
    let entered = setup.finish(&begun, json!({ "groups": ["readers"] }));
    assert_eq!(entered.status, 303, "{}", entered.text());
    assert_eq!(entered.header("location"), Some("/console/devices?q=a"));
    let session = entered.header("set-cookie").unwrap();
    assert!(session.starts_with("signalbox-session="), "{session}");
    assert!(
        session.ends_with("; HttpOnly; SameSite=Strict"),
        "{session}"
    );

    let redeemed = setup.provider.asked("/token").remove(0);
    let form = parameters(&redeemed.text);
    assert_eq!(form["grant_type"], "authorization_code");
    assert_eq!(
        (&*form["code"], &form["redirect_uri"]),
        (CODE, &redirect_uri)
    );
    assert!(!form.contains_key("client_secret"), "it is in the header");
    let credentials = redeemed.header("authorization").unwrap();
    let credentials = STANDARD.decode(credentials.strip_prefix("Basic ").unwrap());
    let credentials = String::from_utf8(credentials.unwrap()).unwrap();
    assert_eq!(credentials, "the+console:s3cret+of%3A+the+console");
    let digest = engine::customer::SecretDigest::of(&form["code_verifier"]);
    let challenge = URL_SAFE_NO_PAD.encode(digest.as_bytes());
    assert_eq!(asked["code_challenge"], challenge);

    let secure = Request::to_host("iot.example", "GET", SIGN_IN);
    let secure = secure.header("x-forwarded-proto", "https");
    let secure = secure.send(setup.service.http);
    let cookie = secure.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-signalbox-oidc="), "{cookie}");
    assert!(
        cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax; Secure"),
        "{cookie}"
    );
    let asked = parameters(secure.header("location").unwrap());
    assert_eq!(
        asked["redirect_uri"],
        format!("https://iot.example{CALLBACK}")
    );
}

#[test]
fn a_response_that_this_browser_did_not_ask_for_signs_nobody_in() {
    let setup = Setup::new();
    let begun = setup.begin("");
    setup.provider.expect(&begun.asked["nonce"]);
    setup.provider.claim(json!({ "groups": ["readers"] }));
    let unknown = "begun in another browser";
    let state = &begun.asked["state"];
    let other = setup.begin("");
    for (query, cookie) in [
        (format!("state=none&code={CODE}"), &begun.cookie),
        (format!("code={CODE}"), &begun.cookie),
        (String::new(), &begun.cookie),
        (format!("state={state}&code={CODE}"), &other.cookie),
        // Whoever has the state and not the cookie has used it up.
        (format!("state={state}&code={CODE}"), &begun.cookie),
    ] {
        let refused = setup.come_back(&query, cookie);
        expect_page(&refused, 401, unknown);
    }
    assert_eq!(setup.provider.asked("/token").len(), 0);
    let entered = setup.finish(&other, json!({ "groups": ["readers"] }));
    assert_eq!(entered.status, 303, "{}", entered.text());
    // The same response again.
    let state = &other.asked["state"];
    let again = setup.come_back(&format!("state={state}&code={CODE}"), &other.cookie);
    expect_page(&again, 401, unknown);
    assert_eq!(setup.provider.asked("/token").len(), 1);
}

#[test]
fn a_token_that_proves_nothing_signs_nobody_in() {
    let setup = Setup::new();
    for (changed, why) in [
        (json!({ "nonce": "another" }), "nonce"),
        (json!({ "nonce": null }), "nonce"),
        (json!({ "aud": "another client" }), "another client"),
        (
            json!({ "aud": [CLIENT_ID, "another"], "azp": "another" }),
            "another client",
        ),
        (
            json!({ "iss": "http://localhost/another" }),
            "another provider",
        ),
        (json!({ "exp": 1_000_000 }), "expired"),
    ] {
        expect_page(&setup.tried(changed), 502, why);
    }
    for header in [
        json!({ "alg": "none" }),
        json!({ "alg": "HS256", "kid": "key-1" }),
    ] {
        let claims = json!({ "iss": setup.provider.issuer(), "aud": CLIENT_ID, "sub": "1" });
        let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
        let token = format!("{}.{}.", part(&header), part(&claims));
        setup.provider.issue(&token);
        expect_page(&setup.tried(json!({})), 502, "is not accepted");
    }
}

#[test]
fn a_new_key_is_fetched_once_and_an_unpublished_one_refused() {
    let setup = Setup::new();
    setup.signed_in(json!({ "groups": ["readers"] }));
    assert_eq!(setup.provider.asked("/keys").len(), 1);
    setup.provider.sign_with("key-2");
    setup.provider.publish();
    setup.signed_in(json!({ "groups": ["readers"] }));
    assert_eq!(setup.provider.asked("/keys").len(), 2);
    setup.provider.sign_with("key-3");
    for _ in 0..3 {
        let refused = setup.tried(json!({ "groups": ["readers"] }));
        expect_page(&refused, 502, "does not publish");
    }
    assert_eq!(setup.provider.asked("/keys").len(), 2, "not for each token");
}

#[test]
fn a_person_without_a_rule_is_told_so() {
    let setup = Setup::new();
    for (groups, why) in [
        (
            json!(["guests", "<b>"]),
            "none of your groups may use this service (guests, &lt;b&gt;)",
        ),
        (json!([]), "names no group of yours"),
        (json!(null), "names no group of yours"),
        (json!(["lost"]), "the customer gone, which does not exist"),
    ] {
        expect_page(&setup.tried(json!({ "groups": groups })), 403, why);
    }
    let elsewhere = json!({ "groups": null, "_claim_names": { "groups": "src1" } });
    expect_page(&setup.tried(elsewhere), 502, "in more groups than");
}

#[test]
fn what_the_provider_refuses_is_told() {
    let setup = Setup::new();
    for (query, status, why) in [
        (
            "error=access_denied",
            403,
            "identity provider refused: access_denied",
        ),
        ("error=%3Cb%3E", 403, "it does not say why"),
        (
            "iss=http://localhost/another&code=1",
            502,
            "names another issuer",
        ),
        ("nothing=1", 502, "has no code"),
    ] {
        let begun = setup.begin("");
        let query = format!("state={}&{query}", begun.asked["state"]);
        expect_page(&setup.come_back(&query, &begun.cookie), status, why);
    }
    for (status, body, shown, why) in [
        (
            400,
            r#"{"error":"invalid_grant"}"#,
            401,
            "used before, or is too old",
        ),
        (
            401,
            r#"{"error":"invalid_client"}"#,
            502,
            "answered 401 invalid_client",
        ),
        (500, "", 502, "its token endpoint answered 500"),
        (200, "{}", 502, "response of the token endpoint"),
    ] {
        setup.provider.refuse(Reply::Json(status, body.to_owned()));
        expect_page(&setup.tried(json!({})), shown, why);
    }
}

#[test]
fn a_provider_that_is_down_or_lies_about_itself_is_told() {
    for (metadata, why) in [
        (
            json!({ "issuer": "http://localhost/another" }),
            "another issuer than oidc_issuer",
        ),
        (
            json!({ "token_endpoint": "http://id.example/token" }),
            "its token_endpoint is not",
        ),
        (json!({ "jwks_uri": null }), "its configuration is not"),
    ] {
        let setup = Setup::new();
        setup.provider.configure(metadata);
        expect_page(&setup.sign_in("").send(setup.service.http), 502, why);
    }
    for (reply, why) in [
        (Reply::Status(503), "configuration was 503"),
        (
            Reply::With(302, "location", "/elsewhere".to_owned()),
            "configuration was 302",
        ),
        (Reply::Break, "cannot be reached"),
        (
            Reply::Json(200, "x".repeat(300_000)),
            "longer than 262144 bytes",
        ),
    ] {
        let setup = Setup::new();
        setup.provider.reply(reply);
        expect_page(&setup.sign_in("").send(setup.service.http), 502, why);
    }
    let mut setup = Setup::new();
    let begun = setup.begin("");
    setup.provider.close();
    let query = format!("state={}&code={CODE}", begun.asked["state"]);
    let refused = setup.come_back(&query, &begun.cookie);
    expect_page(&refused, 502, "its token endpoint cannot be reached");
}

#[test]
fn a_person_signs_out_everywhere_and_alone() {
    let setup = Setup::new();
    let sign_in = |subject| {
        let person = setup.signed_in(json!({ "sub": subject, "groups": ["readers"] }));
        let csrf = text(&setup.session(&person)["csrfToken"]);
        (person, csrf)
    };
    let ((one, csrf), (two, _), (other, _)) = (sign_in("1"), sign_in("1"), sign_in("2"));
    let everywhere = one.ask(&setup, "DELETE", "/console/sessions");
    let everywhere = everywhere.header("x-csrf-token", &csrf);
    assert_eq!(everywhere.send(setup.service.http).status, 204);
    for ended in [&one, &two] {
        assert_eq!(setup.api(ended, "GET", "/devices").status, 401);
    }
    assert_eq!(setup.api(&other, "GET", "/devices").status, 200);
    let removed = Caller::operator(&setup.service);
    let removed = removed.request("DELETE", &format!("{CUSTOMERS}/{CUSTOMER}"));
    assert_eq!(removed.status, 204);
    assert_eq!(setup.api(&other, "GET", "/devices").status, 401);
    let session = other.ask(&setup, "GET", SESSION).send(setup.service.http);
    assert_eq!(session.status, 204);
}

#[test]
fn nobody_signs_in_over_http_from_elsewhere_or_without_a_provider() {
    let setup = Setup::new();
    for path in [SIGN_IN, CALLBACK] {
        let request = Request::to_host("iot.example", "GET", path);
        expect_page(&request.send(setup.service.http), 403, "needs https");
    }
    let service = Service::start();
    let offered = Request::new("GET", "/console/oidc").send(service.http);
    assert_eq!(offered.status, 204);
    let refused = Request::to_host(&local_host(service.http), "GET", SIGN_IN);
    assert_eq!(refused.send(service.http).status, 404);
}

#[test]
fn only_views_of_the_console_are_returned_to() {
    let setup = Setup::new();
    for to in [
        "https://evil.example",
        "//evil.example",
        "/consoles",
        "/docs",
        "/console/%0d%0ax",
    ] {
        let begun = setup.begin(&format!("?to={to}"));
        let entered = setup.finish(&begun, json!({ "groups": ["readers"] }));
        assert_eq!(entered.header("location"), Some("/console"), "{to}");
    }
}

#[test]
fn nothing_of_a_sign_in_is_in_the_log() {
    let mut setup = Setup::with_customer(&[("SIGNALBOX_LOG", "trace")]);
    let begun = setup.begin("");
    let entered = setup.finish(&begun, json!({ "groups": ["readers"] }));
    let redeemed = setup.provider.asked("/token").remove(0);
    let form = parameters(&redeemed.text);
    let session = entered.header("set-cookie").unwrap();
    let secret_of = |cookie: &str| {
        let pair = cookie.split(';').next().unwrap();
        pair.split_once('=').unwrap().1.to_owned()
    };
    let secrets = [
        CODE.to_owned(),
        CLIENT_SECRET.to_owned(),
        redeemed.header("authorization").unwrap()[6..].to_owned(),
        form["code_verifier"].clone(),
        begun.asked["state"].clone(),
        begun.asked["nonce"].clone(),
        secret_of(&begun.set_cookie),
        secret_of(session),
    ];
    assert!(setup.service.stop().success());
    let log = setup.service.printed().join("\n");
    assert!(log.contains("a person signed in") && log.contains("person-7"));
    for secret in secrets {
        assert!(!log.contains(&secret), "{secret}");
    }
}

/// A service with an identity provider and rules for its groups.
struct Setup {
    service: Service,
    provider: IdentityProvider,
    _secret: NamedTempFile,
}

/// A browser that was sent to the provider.
struct BegunSignIn {
    asked: std::collections::HashMap<String, String>,
    set_cookie: String,
    cookie: String,
}

/// A browser with a session.
struct SignedIn {
    cookie: String,
}

impl Setup {
    fn new() -> Self {
        Self::with_customer(&[])
    }

    fn with_customer(settings: &[(&str, &str)]) -> Self {
        let setup = Self::with(settings);
        let customer = json!({ "id": CUSTOMER, "name": "Acme" });
        let operator = Caller::operator(&setup.service);
        operator.post(CUSTOMERS, &customer).expect(201);
        setup
    }

    fn with(settings: &[(&str, &str)]) -> Self {
        let provider = IdentityProvider::new();
        let mut secret = NamedTempFile::new().unwrap();
        writeln!(secret, "{CLIENT_SECRET}").unwrap();
        let rules = json!([
            { "group": "readers", "customer": CUSTOMER, "scopes": ["devices:read"] },
            { "group": "operators", "operator": true },
            { "group": "others", "customer": "gone", "scopes": ["all"] },
            { "group": "lost", "customer": "gone", "scopes": ["all"] },
        ]);
        let always = [
            ("SIGNALBOX_OIDC_ISSUER", &*provider.issuer()),
            ("SIGNALBOX_OIDC_CLIENT_ID", CLIENT_ID),
            (
                "SIGNALBOX_OIDC_CLIENT_SECRET_FILE",
                secret.path().to_str().unwrap(),
            ),
            ("SIGNALBOX_OIDC_NAME", "Acme accounts"),
            ("SIGNALBOX_OIDC_GROUPS", &rules.to_string()),
        ];
        let service = Service::start_with(&[&always, settings].concat());
        Self {
            service,
            provider,
            _secret: secret,
        }
    }

    fn ask(&self, method: &str, path: &str) -> Request {
        Request::to_host(&local_host(self.service.http), method, path)
    }

    fn sign_in(&self, query: &str) -> Request {
        self.ask("GET", &format!("{SIGN_IN}{query}"))
    }

    fn begin(&self, query: &str) -> BegunSignIn {
        let begun = self.sign_in(query).send(self.service.http);
        assert_eq!(begun.status, 303, "{}", begun.text());
        let location = begun.header("location").unwrap();
        let endpoint = format!("{}/authorize?", self.provider.issuer());
        assert!(location.starts_with(&endpoint), "{location}");
        let set_cookie = begun.header("set-cookie").unwrap();
        BegunSignIn {
            asked: parameters(location),
            set_cookie: set_cookie.to_owned(),
            cookie: set_cookie.split(';').next().unwrap().to_owned(),
        }
    }

    fn come_back(&self, query: &str, cookie: &str) -> Response {
        let request = self.ask("GET", &format!("{CALLBACK}?{query}"));
        request.header("cookie", cookie).send(self.service.http)
    }

    /// Comes back with a code for a token with these claims.
    fn finish(&self, begun: &BegunSignIn, changed: Value) -> Response {
        self.provider.expect(&begun.asked["nonce"]);
        self.provider.claim(changed);
        let query = format!("code={CODE}&state={}", begun.asked["state"]);
        self.come_back(&query, &begun.cookie)
    }

    fn tried(&self, changed: Value) -> Response {
        self.finish(&self.begin(""), changed)
    }

    fn signed_in(&self, changed: Value) -> SignedIn {
        let entered = self.tried(changed);
        assert_eq!(entered.status, 303, "{}", entered.text());
        let cookie = entered.header("set-cookie").unwrap();
        SignedIn {
            cookie: cookie.split(';').next().unwrap().to_owned(),
        }
    }

    fn session(&self, person: &SignedIn) -> Value {
        let session = person.ask(self, "GET", SESSION);
        session.send(self.service.http).expect(200)
    }

    /// A call of the API, with the CSRF token of the session.
    fn api(&self, person: &SignedIn, method: &str, path: &str) -> Response {
        let request = person.ask(self, method, &format!("/console/api{API}{path}"));
        let session = person.ask(self, "GET", SESSION).send(self.service.http);
        let csrf = match session.status {
            200 => text(&session.json()["csrfToken"]),
            _ => String::new(),
        };
        let request = request.header("x-csrf-token", &csrf);
        request.send(self.service.http)
    }
}

impl SignedIn {
    fn ask(&self, setup: &Setup, method: &str, path: &str) -> Request {
        setup.ask(method, path).header("cookie", &self.cookie)
    }
}

/// Expects a page for a person that says why, and gives no session.
fn expect_page(page: &Response, status: u16, why: &str) {
    assert_eq!(page.status, status, "{}", page.text());
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    assert!(page.text().contains(why), "{why}: {}", page.text());
    assert_eq!(page.header("set-cookie"), None);
}

fn local_host(http: SocketAddr) -> String {
    format!("localhost:{}", http.port())
}
