//! Is a secret found anywhere but where it belongs: in a log, a metric, a response, the store?
//!
//! And does a change of the master key leave all of them usable?

use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use dtls::SigningKey;
use engine::base64_text;
use serde_json::{Value, json};

use crate::bootstrap::BootstrapClient;
use crate::test_service::ID;
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::client::ApiClient;
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::endpoint::Endpoint;
use crate::vocabulary::http::Request;
use crate::vocabulary::poll::until;
use crate::vocabulary::secured::SecuredDevice;
use crate::vocabulary::service::{Service, signalbox};
use crate::vocabulary::wire::{DeviceSocket, register};

/// No secret: what must be found wherever secrets are looked for.
const NAME: &str = "Name-of-the-meter";

const PSK_TEXT: &str = "psk-Zk3uQ9xW";
const PSK_HEX: &str = "5a7b9c1d3e5f70819a2b4c6d8e0f1a3b";
const WEBHOOK_SECRET: &str = "whsec_Q2Yx9vKpT3nLs8RbZ0mWcE5dHgJ7uAoi";
const HEADER: &str = "header-Pq7LmT2v";
const PLUGIN_KEY: &str = "plugin-Hn4RbX8s";
const BROKER_PASSWORD: &str = "broker-Tg6YwK1d";

/// The private key of the service for DTLS, and that of a device: a number each.
const SERVER_KEY: [u8; 32] = *b"scalar-Wq8NpX4t-of-the-service-k";
const DEVICE_KEY: [u8; 32] = *b"scalar-Vr5MkZ2s-of-a-device-key-";

/// Where a private key on P-256 is in its PKCS #8 (RFC 5958) of this length.
const SCALAR_AT: usize = 36;

/// An address of no device.
const HERE: &str = "127.0.0.21";

#[test]
fn no_secret_is_found_in_a_log_a_metric_a_response_or_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join("key.pem");
    let server_key = SigningKey::from_scalar(&SERVER_KEY).unwrap();
    let server_key = base64_text::encode(&server_key.private_key().unwrap());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{server_key}\n-----END PRIVATE KEY-----\n");
    fs::write(&key_file, pem).unwrap();
    let mut setup = Setup::new(&[
        ("SIGNALBOX_LOG", "trace"),
        ("SIGNALBOX_COAPS_KEY", key_file.to_str().unwrap()),
    ]);
    let mut secrets = setup.secrets.clone();
    secrets.extend([SERVER_KEY.to_vec(), server_key.into_bytes()]);
    secrets.extend(setup.speak_over_dtls());
    let printed: Vec<_> = secrets.iter().flat_map(|it| forms(it)).collect();
    secrets.extend(printed);
    let responses = setup.responses();
    for (path, body) in &responses {
        assert_eq!(found(body.as_bytes(), &secrets), None, "{path}: {body}");
    }
    assert!(responses.iter().any(|(_, body)| body.contains(NAME)));
    assert!(setup.service.stop().success());
    let log = setup.service.printed().join("\n");
    let of_dtls = "message over DTLS";
    assert!(
        log.contains("TRACE") && log.contains(ID) && log.contains(of_dtls),
        "it logs everything"
    );
    assert_eq!(found(log.as_bytes(), &secrets), None);

    let mut has_name = false;
    for (path, bytes) in files(&setup.service.data_dir().join("store")) {
        assert_eq!(found(&bytes, &secrets), None, "{path}");
        has_name |= has(&bytes, NAME.as_bytes());
    }
    assert!(has_name, "the files are those of the store");
    for folder in ["dtls-sessions", "dtls-cached-sessions"] {
        let kept = files(&setup.service.data_dir().join(folder));
        assert!(!kept.is_empty(), "{folder}");
        for (path, bytes) in kept {
            assert_eq!(found(&bytes, &secrets), None, "{path}");
        }
    }
}

#[test]
fn a_changed_master_key_opens_every_secret_and_the_former_one_none() {
    let mut setup = Setup::new(&[]);
    let refused = setup.rekey(&[]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(stderr.contains("in use by another process"), "{stderr}");
    let server_key = setup.server_key();
    assert!(setup.service.stop().success());
    let key_file = setup.service.data_dir().join("master-key");
    let former = fs::read(&key_file).unwrap();
    // A run that was interrupted has made the next key; the service waits for a complete one.
    let next = "ab".repeat(32);
    fs::write(setup.service.data_dir().join("master-key.next"), &next).unwrap();
    let mut serve = signalbox();
    serve.args(["serve", "--http", "127.0.0.1:0"]);
    serve.args(["--coap", "127.0.0.1:0", "--udp", "127.0.0.1:0"]);
    serve.arg("--data-dir").arg(setup.service.data_dir());
    let refused = serve.output().unwrap();
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(stderr.contains("run `signalbox rekey` again"), "{stderr}");

    let output = setup.rekey(&[]);
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        printed.contains("secrets encrypted with the new master key"),
        "{printed}"
    );
    assert!(!printed.starts_with("0 "), "{printed}");
    assert_eq!(fs::read_to_string(&key_file).unwrap(), next);
    assert!(!setup.service.data_dir().join("master-key.next").exists());
    let repeated = setup.rekey(&["--new-key", "/nowhere/key"]);
    assert!(!repeated.status.success());

    setup.service.start_again();
    setup.caller.follow(&setup.service);
    let before = setup.webhook.posted().len();
    setup.test_webhook();
    let posted = until("an event at the webhook", || {
        let mut posted = setup.webhook.posted().into_iter().skip(before);
        posted.find(|it| it.path == "/in")
    });
    assert_eq!(posted.header("x-key"), Some(HEADER));
    assert!(posted.header("webhook-signature").is_some());
    let again = setup.generate().expect("the response of the first call");
    assert_eq!(again, setup.generated);
    let mut device = SecuredDevice::at(HERE, &setup.service);
    device.connect("of-other", bytes(PSK_HEX)).unwrap();
    device.connect(ID, PSK_TEXT).unwrap();
    assert_eq!(setup.server_key(), server_key);
    let own = Arc::new(SigningKey::from_scalar(&DEVICE_KEY).unwrap());
    device.prove(&own, &server_key).unwrap();

    // The former key opens nothing.
    assert!(setup.service.stop().success());
    fs::write(&key_file, former).unwrap();
    let output = setup.rekey(&[]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("cannot be decrypted with the old key"),
        "{stderr}"
    );
}

/// A service in which every kind of secret is stored.
struct Setup {
    service: Service,
    client: ApiClient,
    caller: Caller,
    webhook: Endpoint,
    webhook_id: String,
    generated: Value,
    secrets: Vec<Vec<u8>>,
}

impl Setup {
    fn new(settings: &[(&str, &str)]) -> Self {
        let private = ("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true");
        let mut service = Service::start_with(&[&[private], settings].concat());
        // The link to a broker that is not there fails.
        service.may_fail();
        let client = ApiClient::of_new_customer(&service, "Acme");
        let caller = client.caller(&service);
        let webhook = Endpoint::new();
        let mut setup = Self {
            webhook_id: String::new(),
            generated: Value::Null,
            secrets: Vec::new(),
            service,
            client,
            caller,
            webhook,
        };
        setup.fill();
        setup
    }

    fn fill(&mut self) {
        let caller = self.caller.clone();
        let psk = json!({ "secretKey": PSK_HEX, "format": "HEX", "identity": "of-other" });
        let other = json!({ "deviceId": "other", "psk": psk });
        caller.post(&format!("{API}/devices"), &other).expect(201);
        let meter = json!({ "deviceId": ID, "ip": DEVICE_IP, "name": NAME });
        caller.post(&format!("{API}/devices"), &meter).expect(201);
        let key = json!({ "secretKey": PSK_TEXT, "format": "STRING" });
        let path = format!("{API}/devices/{ID}/psk");
        assert_eq!(caller.post(&path, &key).status, 204);
        self.generated = self.generate().expect("a generated key");
        let own = SigningKey::from_scalar(&DEVICE_KEY).unwrap();
        let key = json!({ "publicKey": base64_text::encode(own.public_key()) });
        let path = format!("{API}/devices/other/public-key");
        assert_eq!(caller.try_send("PUT", &path, &key).unwrap().status, 204);
        let types = json!([{ "type": "LIFECYCLE" }]);
        let webhook = json!({
            "name": "Webhook", "url": self.webhook.url("/in"), "eventTypes": types,
            "secret": WEBHOOK_SECRET, "headers": { "X-Key": HEADER },
        });
        let clouds = format!("{API}/integrate/clouds");
        let made = caller
            .post(&format!("{clouds}/webhooks"), &webhook)
            .expect(201);
        self.webhook_id = text(&made["id"]);
        let broker = json!({
            "name": "Broker", "url": "mqtt://127.0.0.1:1", "topicPrefix": "signalbox",
            "username": "me", "password": BROKER_PASSWORD,
        });
        caller.post(&format!("{clouds}/mqtt"), &broker).expect(201);
        let server = self.webhook.url("").trim_end_matches('/').to_owned();
        let plugin = json!({ "serverDomain": server, "webhookKey": PLUGIN_KEY });
        let partner = format!("{API}/partners/gateway/plugins");
        caller.post(&partner, &plugin).expect(201);
        // Events of a device go to all of them.
        DeviceSocket::to(&self.service).register(ID, 1);
        until("both events at the webhook and at the plugin", || {
            (self.webhook.posted().len() >= 4).then_some(())
        });
        let hex = text(&self.generated["secretKey"]);
        self.secrets = vec![
            bytes(PSK_HEX),
            bytes(&hex),
            self.service.operator_token().into(),
        ];
        let texts = [
            PSK_TEXT,
            PSK_HEX,
            &hex,
            WEBHOOK_SECRET,
            HEADER,
            PLUGIN_KEY,
            BROKER_PASSWORD,
            &self.client.secret,
            caller.token(),
        ];
        self.secrets
            .extend(texts.map(|text| text.as_bytes().to_vec()));
    }

    /// The meter registers over DTLS with its pre-shared key and is issued a key pair. Returns the
    /// secrets of both.
    fn speak_over_dtls(&self) -> Vec<Vec<u8>> {
        let server = json!({ "shortId": 1, "lifetime": 60, "binding": "U", "security": "RPK" });
        let config = json!({ "servers": [server] });
        let path = format!("{API}/devices/{ID}/bootstrap");
        let configured = self.caller.try_send("PUT", &path, &config).unwrap();
        configured.expect(200);
        let mut device = SecuredDevice::at(HERE, &self.service);
        device.accepts_tickets = false;
        device.connect(ID, PSK_TEXT).unwrap();
        device.register(&register(ID, 1));
        let mut client = BootstrapClient::new(0);
        client.bootstrap(&mut device, &[&format!("ep={ID}")], 2);
        let issued = client.key();
        let scalar = issued[SCALAR_AT..SCALAR_AT + 32].to_vec();
        let of_scalar = SigningKey::from_scalar(scalar.first_chunk().unwrap()).unwrap();
        let of_issued = SigningKey::from_der(&issued, Vec::new()).unwrap();
        assert_eq!(of_scalar.public_key(), of_issued.public_key());
        let base64 = base64_text::encode(&issued).into_bytes();
        let mut secrets = vec![issued, scalar, base64];
        secrets.extend(device.into_session_keys());
        secrets
    }

    /// The public key of the service for DTLS.
    fn server_key(&self) -> Vec<u8> {
        let shown = self.caller.request("GET", &format!("{API}/dtls"));
        base64_text::decode(&text(&shown.expect(200)["publicKey"])).unwrap()
    }

    /// Generates a key for the meter, in one and the same call.
    fn generate(&self) -> Option<Value> {
        let path = format!("{API}/devices/{ID}/psk/generate");
        let request = self.caller.authorized("POST", &path).json(&json!({}));
        let request = request.header("idempotency-key", "generate");
        let response = request.send(self.caller.address());
        (response.status == 201).then(|| response.json())
    }

    fn test_webhook(&self) {
        let path = format!("{API}/integrate/clouds/webhooks/{}/test", self.webhook_id);
        let status = self.caller.request("POST", &path).status;
        assert!((200..300).contains(&status), "{status}");
    }

    /// The response of every GET, and of calls with secrets that are refused.
    fn responses(&self) -> Vec<(String, String)> {
        let document = self.caller.request("GET", "/openapi.json").expect(200);
        let operator = Caller::operator(&self.service);
        let mut responses = Vec::new();
        for (path, operations) in document["paths"].as_object().unwrap() {
            if operations["get"].is_null() || path.ends_with("/backup") {
                continue;
            }
            let path = path
                .replace("{device}", ID)
                .replace("{customer}", &self.client.customer)
                .replace("{client}", &self.client.id)
                .replace("{partner}", "gateway")
                .replace("{iccid}", ID)
                .replace("{platform}", "signalbox")
                .replace("{id}", &self.webhook_id)
                .replace("{webhook}", &self.webhook_id);
            let caller = match path.starts_with("/operator-api") {
                true => &operator,
                false => &self.caller,
            };
            responses.push((path.clone(), caller.request("GET", &path).text().to_owned()));
        }
        let device = format!("{API}/devices/{ID}");
        let long = PSK_TEXT.repeat(40);
        let refused = [
            (
                format!("{device}/psk"),
                json!({ "secretKey": PSK_HEX, "format": PSK_TEXT }),
            ),
            (
                format!("{device}/psk"),
                json!({ "secretKey": long, "format": "STRING" }),
            ),
            (
                format!("{device}/psk"),
                json!({ "secretKey": PSK_TEXT, "format": "HEX" }),
            ),
            (
                format!("{API}/devices"),
                json!({ "deviceId": "other", "psk": { "secretKey": PSK_HEX, "format": "HEX" } }),
            ),
            (
                format!("{API}/partners/gateway/plugins"),
                json!({ "serverDomain": "a/b", "webhookKey": PLUGIN_KEY }),
            ),
            (
                format!("{API}/integrate/clouds/webhooks"),
                json!({ "name": "x", "url": "nowhere", "secret": WEBHOOK_SECRET }),
            ),
            (
                format!("{API}/integrate/clouds/mqtt"),
                json!({ "name": "x", "url": "nowhere", "password": BROKER_PASSWORD }),
            ),
        ];
        for (path, body) in refused {
            let response = self.caller.post(&path, &body);
            assert!(
                (400..500).contains(&response.status),
                "{path}: {}",
                response.status
            );
            responses.push((path, response.text().to_owned()));
        }
        let cut = format!("{{\"secretKey\":\"{PSK_TEXT}\",");
        let request = self.caller.authorized("POST", &format!("{device}/psk"));
        let response = request
            .text("application/json", &cut)
            .send(self.caller.address());
        responses.push(("a body that is cut".to_owned(), response.text().to_owned()));
        let metrics = Request::new("GET", "/metrics").send(self.caller.address());
        responses.push(("/metrics".to_owned(), metrics.text().to_owned()));
        responses.push(("/openapi.json".to_owned(), document.to_string()));
        responses
    }

    fn rekey(&self, more: &[&str]) -> Output {
        let mut rekey = signalbox();
        rekey.arg("rekey").args(more);
        rekey.arg("--data-dir").arg(self.service.data_dir());
        rekey.output().unwrap()
    }
}

/// How the bytes of a secret may be printed.
fn forms(secret: &[u8]) -> [Vec<u8>; 4] {
    let decimal = format!("{secret:?}");
    let hexadecimal = |letters: fn(&u8) -> String| secret.iter().map(letters).collect::<String>();
    [
        decimal.trim_matches(['[', ']']).to_owned(),
        hexadecimal(|byte| format!("{byte:02x}")),
        hexadecimal(|byte| format!("{byte:02X}")),
        secret.escape_ascii().to_string(),
    ]
    .map(String::into_bytes)
}

/// The first secret that is among these bytes.
fn found(bytes: &[u8], secrets: &[Vec<u8>]) -> Option<String> {
    let found = secrets.iter().find(|secret| has(bytes, secret));
    found.map(|secret| String::from_utf8_lossy(secret).into_owned())
}

fn has(bytes: &[u8], wanted: &[u8]) -> bool {
    let (first, _) = wanted.split_first().unwrap();
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        rest = &rest[at..];
        if rest.starts_with(wanted) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}

/// The files of a directory, with what they contain.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push((path.display().to_string(), fs::read(&path).unwrap())),
        }
    }
    found
}

/// The bytes of a key in hexadecimal.
fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let pairs = digits.map(|pair| std::str::from_utf8(pair).unwrap());
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}
