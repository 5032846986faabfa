//! Is every operation of the OpenAPI document open to its callers alone?
//!
//! The test walks the document that the service serves. Each operation is called with the tokens
//! of callers that must not use it, on objects of another customer that would be there for the
//! right caller. Then the right caller uses it. An operation without an entry in the table fails
//! the test.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::keys::PUBLIC_KEY;
use crate::main_job::after_s;
use crate::test_service::{ID, with};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::client::{ApiClient, NETWORK_CLIENTS};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::http::{Request, Response};
use crate::vocabulary::lwm2m::{read, when_active};
use crate::vocabulary::plain::{UdpDevice, coap, datagram};
use crate::vocabulary::poll::until;
use crate::vocabulary::postgres::is_on_postgres;
use crate::vocabulary::service::Service;

const SCOPES: [&str; 13] = [
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
];

/// What an API client needs to do no more than ask for tokens.
const FORM: &str = "application/x-www-form-urlencoded";

const OBJECT: &str = include_str!("../../protocol/tests/definitions/heat_meter.xml");

/// A broker that no name server knows.
const BROKER: &str = "mqtts://signalbox.invalid";

/// The id of no node.
const NO_NODE: &str = "01935c5a-0000-7000-8000-0000000000e0";

/// A day of the past.
const DAY_BEGINS: &str = "2026-01-01T00:00:00.000";
const DAY_ENDS: &str = "2026-01-02T00:00:00.000";

/// In a body, the name of the caller: ids of devices are unique service-wide.
const UNIQUE: &str = "of-caller";

/// The number of the device of the owner.
const MSISDN: &str = "882285100000001";

/// In a body, the id of the SMS of the owner.
const SMS: &str = "the-sms";

/// The lifetime of tokens that expire within the test, in seconds.
const SHORT_LIVED: (&str, &str) = ("SIGNALBOX_TOKEN_LIFETIME_S", "1");

/// The longest data of a device, in bytes: longer data is kept with a log entry.
const SMALL_DATA: (&str, &str) = ("SIGNALBOX_DATA_BYTES_MAX", "16");

#[test]
fn every_operation_is_open_to_its_callers_alone() {
    let (service, owner, strangers) = Owner::with_strangers();
    let operations = operations(&service);
    let known: BTreeSet<&str> = table().iter().map(|it| it.id).collect();
    let documented: BTreeSet<&str> = operations.keys().map(String::as_str).collect();
    assert_eq!(
        documented, known,
        "each operation has an entry, and no other"
    );
    let before = owner.objects(&operations);
    for entry in table() {
        let operation = &operations[entry.id];
        for (name, authorization) in strangers.of(operation) {
            let answer = owner.call(&entry, operation, (name, authorization.as_deref()));
            let expected = match (operation.access(), name) {
                (Access::Open, _) => entry.answer,
                (Access::Customer(_), "another customer") => entry.to_another,
                (Access::Customer(scope), name) if SCOPES.contains(&name) => {
                    assert_ne!(scope, name, "that token is of the right caller");
                    403
                }
                (Access::Network, name) if name.starts_with("a customer") => 403,
                (Access::Operator | Access::Customer(_), "the network") => 403,
                (Access::Customer(_) | Access::Operator | Access::Network, _) => 401,
            };
            let what = format!("{} with the token of {name}", entry.id);
            assert_eq!(answer.status, expected, "{what}: {}", answer.text());
        }
        for (reader, object) in owner.objects(&operations) {
            assert_eq!(object, before[&reader], "{} changed it", entry.id);
        }
    }
    for entry in table() {
        let operation = &operations[entry.id];
        let token = strangers.right(operation);
        let answer = owner.call(&entry, operation, ("owner", token.as_deref()));
        assert_eq!(
            answer.status,
            entry.answer,
            "{}: {}",
            entry.id,
            answer.text()
        );
    }
}

/// An operation of the table.
struct Entry {
    id: &'static str,
    /// The media type and the text of a body that the operation accepts of the owner.
    body: Option<(&'static str, String)>,
    /// The status of the answer to the right caller.
    answer: u16,
    /// That of the answer to a caller of another customer, whose token has every scope: the objects
    /// in the path are not found, and what has none is about the objects of the caller.
    to_another: u16,
}

/// Every operation, in an order in which what is deleted was used before. Dead letters are not
/// discarded while they are replayed, so that comes last.
fn table() -> Vec<Entry> {
    let device = |body: Value| with(body, "deviceIds", json!([ID]));
    let (lwm2m, coap) = (
        when_active(read("/3/0/0")),
        when_active(coap("GET", "/", 5_683)),
    );
    let udp = when_active(datagram("on", 4_445));
    let webhook = json!({ "name": "Another", "url": "https://signalbox.invalid/another" });
    let broker = json!({ "name": "Another", "url": BROKER, "topicPrefix": "another" });
    let plugin = json!({ "serverDomain": "signalbox.invalid", "webhookKey": "7b0cf" });
    let psk = json!({ "format": "STRING", "secretKey": "correct horse" });
    let line = json!({ "deviceId": format!("{UNIQUE}-imported") }).to_string();
    let grant = "grant_type=client_credentials".to_owned();
    vec![
        of("getLiveness", 200),
        of("getReadiness", 200),
        of("getOpenapi", 200),
        of("getFront", 302),
        of("getDocs", 200),
        of("getDocsStyle", 200),
        of("getDocsScript", 200),
        of("getMetrics", 200),
        Entry {
            body: Some((FORM, grant.clone())),
            ..of("issueToken", 401)
        },
        Entry {
            body: Some((FORM, grant)),
            ..of("issueManagementToken", 401)
        },
        of("listDevices", 200),
        found("getDevice", 200),
        found("listMessages", 200),
        found("getSeries", 200),
        of("streamEvents", 200),
        of("createDevice", 201).json(json!({ "deviceId": UNIQUE })),
        found("amendDevice", 200).json(json!({ "name": "Mine now" })),
        found("setDeviceKey", 204).json(psk),
        found("generateDeviceKey", 201).json(json!({})),
        found("deleteDeviceKey", 204),
        found("setDevicePublicKey", 204).json(json!({ "publicKey": PUBLIC_KEY })),
        found("deleteDevicePublicKey", 204),
        of("getDtls", 200),
        of("setCertificateAuthorities", 200).json(authorities()),
        of("getCertificateAuthorities", 200),
        of("deleteCertificateAuthorities", 204),
        found("setDeviceWakeUpMessage", 200).json(wake_up()),
        found("getDeviceWakeUpMessage", 200),
        found("deleteDeviceWakeUpMessage", 204),
        of("setBootstrapConfiguration", 200).json(bootstrap()),
        of("getBootstrapConfiguration", 200),
        of("deleteBootstrapConfiguration", 204),
        found("setDeviceBootstrapConfiguration", 200).json(bootstrap()),
        found("getDeviceBootstrapConfiguration", 200),
        found("deleteDeviceBootstrapConfiguration", 204),
        Entry {
            body: Some(("application/x-ndjson", line)),
            ..of("importDevices", 200)
        },
        found("createUdpAction", 202).json(udp.clone()),
        found("createCoapAction", 202).json(coap.clone()),
        found("createLwm2mAction", 202).json(lwm2m.clone()),
        of("createUdpActions", 202).json(device(udp)),
        of("createCoapActions", 202).json(device(coap)),
        of("createLwm2mActions", 202).json(device(lwm2m)),
        of("listActions", 200),
        of("listActiveActions", 200),
        of("listArchivedActions", 200),
        found("getAction", 200),
        found("cancelAction", 200),
        found("cancelActions", 200),
        of("listJobs", 200),
        found("getJob", 200),
        found("listJobDevices", 200),
        // It has no devices, and so it is done.
        found("cancelJob", 409),
        of("createSchedule", 201).json(schedule()),
        of("listSchedules", 200),
        found("getSchedule", 200),
        found("amendSchedule", 200).json(json!({ "state": "PAUSED" })),
        Entry {
            body: Some(("application/octet-stream", "an image".to_owned())),
            ..of("createFirmwareImage", 201)
        },
        of("listFirmwareImages", 200),
        found("getFirmwareImage", 200),
        of("createFirmwareCampaign", 201).json(campaign()),
        of("listFirmwareCampaigns", 200),
        found("getFirmwareCampaign", 200),
        found("listFirmwareCampaignDevices", 200),
        found("pauseFirmwareCampaign", 200),
        found("resumeFirmwareCampaign", 200),
        found("cancelFirmwareCampaign", 200),
        // The image of the campaign is elsewhere.
        of("downloadFirmware", 404),
        of("createWebhook", 201).json(webhook),
        of("listWebhooks", 200),
        found("getWebhook", 200),
        found("amendWebhook", 200).json(json!({ "name": "Mine now" })),
        found("testWebhook", 200),
        found("restartWebhook", 200),
        found("listDeadLetters", 200),
        found("discardDeadLetter", 404),
        found("discardDeadLetters", 204),
        found("replayDeadLetters", 202),
        of("createBroker", 201).json(broker),
        of("listBrokers", 200),
        found("getBroker", 200),
        found("amendBroker", 200).json(json!({ "name": "Mine now" })),
        found("testBroker", 200),
        found("restartBroker", 200),
        found("listBrokerDeadLetters", 200),
        found("discardBrokerDeadLetter", 404),
        found("discardBrokerDeadLetters", 204),
        found("replayBrokerDeadLetters", 202),
        of("installPlugin", 201).json(plugin),
        of("listPlugins", 200),
        of("listPluginsOfPartner", 200),
        found("getPlugin", 200),
        found("restartPlugin", 200),
        found("listPluginDeadLetters", 200),
        found("discardPluginDeadLetter", 404),
        found("discardPluginDeadLetters", 204),
        found("replayPluginDeadLetters", 202),
        of("setSmsForwarder", 200).json(json!({ "url": "https://signalbox.invalid/sms/" })),
        of("getSmsForwarder", 200),
        of("testSmsForwarder", 200),
        of("listSmsDeadLetters", 200),
        of("discardSmsDeadLetter", 404),
        of("discardSmsDeadLetters", 204),
        of("replaySmsDeadLetters", 202),
        of("setWakeUpMessage", 200).json(wake_up()),
        of("getWakeUpMessage", 200),
        of("deleteWakeUpMessage", 204),
        found("sendSms", 201).json(json!({ "source_address": "1234", "payload": "open" })),
        found("listSms", 200),
        found("getSms", 200),
        found("cancelSms", 204),
        of("listSettings", 200),
        of("getSetting", 200),
        of("changeSetting", 200).json(json!({ "state": "ENABLED" })),
        of("getActivity", 200),
        of("getPresenceSettings", 200),
        of("changePresenceSettings", 200).json(json!({ "offlineAfter": 3_600 })),
        of("listObjectDefinitions", 200),
        found("getObjectDefinition", 200),
        Entry {
            body: Some(("application/xml", OBJECT.to_owned())),
            to_another: 201,
            ..of("putObjectDefinition", 200)
        },
        of("listLogEntries", 200),
        of("getLogStatistics", 200),
        found("getLogEntry", 200),
        found("getLogPayload", 200),
        // The other customer has defined the object, too.
        of("deleteObjectDefinition", 204),
        found("deleteFirmwareImage", 204),
        found("deleteSchedule", 204),
        found("deleteWebhook", 204),
        found("deleteBroker", 204),
        found("uninstallPlugin", 204),
        of("deleteSmsForwarder", 204),
        of("createNetworkClient", 201).json(json!({ "name": "another" })),
        of("listNetworkClients", 200),
        of("createNetworkClientSecret", 201).json(json!({})),
        of("receiveSms", 202).json(received_sms()),
        of("takeSms", 200).json(json!({})),
        // It is cancelled, and so the report changes nothing.
        of("reportSms", 202).json(json!({ "id": SMS, "status": "DELIVERED" })),
        of("deleteNetworkClientSecret", 204),
        of("deleteNetworkClient", 204),
        found("deleteDevice", 204),
        of("createCustomer", 201).json(json!({ "name": "Initech" })),
        of("listCustomers", 200),
        of("createClient", 201).json(json!({ "name": "another" })),
        of("listClients", 200),
        of("getNetworks", 200),
        of("setNetworks", 200).json(json!({ "networks": [] })),
        of("createClientSecret", 201).json(json!({})),
        // Backups of a database are made with its tools.
        of("getBackup", if is_on_postgres() { 409 } else { 200 }),
        of("listStrangers", 200),
        of("listNodes", 200),
        // A node that is there would stop, on PostgreSQL.
        of("drainNode", 404).json(json!({})),
        of("deleteClientSecret", 204),
        of("deleteClient", 204),
        of("deleteCustomer", 204),
    ]
}

/// A schedule that is not due while the test runs.
fn schedule() -> Value {
    let request = with(read("/3/0/0"), "filter", json!({ "q": "nobody" }));
    json!({ "every": 86_400, "request": with(request, "protocol", "LWM2M") })
}

/// A campaign that does not begin while the test runs.
fn campaign() -> Value {
    json!({
        "url": "https://signalbox.invalid/image", "deviceIds": [ID], "concurrency": 1,
        "notBefore": after_s(86_400),
    })
}

/// A message that wakes devices.
fn wake_up() -> Value {
    json!({ "source_address": "1234", "type": "TEXT", "payload": "wake up" })
}

fn bootstrap() -> Value {
    let server = json!({ "shortId": 1, "lifetime": 60, "binding": "U", "security": "NOSEC" });
    json!({ "servers": [server] })
}

fn authorities() -> Value {
    let authority = rcgen::generate_simple_self_signed(["ca.example".to_owned()]).unwrap();
    json!({ "certificates": authority.cert.pem() })
}

/// A message of the device of the owner.
fn received_sms() -> Value {
    json!({
        "source_address": MSISDN,
        "dest_address": "1234",
        "payload": "closed",
        "dcs": 0,
        "pid": 0,
    })
}

/// An operation without an object in its path.
fn of(id: &'static str, answer: u16) -> Entry {
    Entry {
        id,
        body: None,
        answer,
        to_another: answer,
    }
}

/// An operation with an object in its path.
fn found(id: &'static str, answer: u16) -> Entry {
    Entry {
        to_another: 404,
        ..of(id, answer)
    }
}

impl Entry {
    fn json(self, body: Value) -> Self {
        Self {
            body: Some(("application/json", body.to_string())),
            ..self
        }
    }
}

/// Who may call an operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Access<'a> {
    Open,
    Operator,
    Network,
    Customer(&'a str),
}

/// An operation of the document.
struct Operation {
    method: String,
    path: String,
    document: Value,
}

impl Operation {
    fn access(&self) -> Access<'_> {
        let security = self.document["security"].as_array();
        let security = security.expect("an operation says who may call it");
        let scheme = |name: &str| security.iter().find_map(|it| it.get(name));
        match (scheme("operatorToken"), scheme("accessToken")) {
            (Some(_), Some(_)) => Access::Network,
            (Some(_), None) => Access::Operator,
            (None, Some(scopes)) => {
                Access::Customer(scopes[0].as_str().expect("a scope is a word"))
            }
            (None, None) => Access::Open,
        }
    }
}

/// Every operation of the document, by its id.
fn operations(service: &Service) -> BTreeMap<String, Operation> {
    let document = Request::new("GET", "/openapi.json").send(service.http);
    let document = document.expect(200);
    let mut operations = BTreeMap::new();
    for (path, methods) in document["paths"].as_object().expect("there are paths") {
        for (method, operation) in methods.as_object().expect("there are methods") {
            let (method, path) = (method.to_uppercase(), path.clone());
            let document = operation.clone();
            let id = text(&document["operationId"]);
            operations.insert(
                id,
                Operation {
                    method,
                    path,
                    document,
                },
            );
        }
    }
    operations
}

/// The customer whose objects others must not reach.
struct Owner {
    caller: Caller,
    operator: Caller,
    /// What the parameters of paths stand for.
    named: Vec<(&'static str, String)>,
    /// What they stand for in paths of the network.
    named_of_network: Vec<(&'static str, String)>,
}

/// The tokens of callers that are not the right ones, and those of the right ones.
struct Strangers {
    expired: String,
    revoked: String,
    another: String,
    operator: String,
    network: String,
    whole: String,
    by_scope: BTreeMap<&'static str, String>,
}

impl Owner {
    fn with_strangers() -> (Service, Self, Strangers) {
        let mut service = Service::start_with(&[SHORT_LIVED]);
        let client = ApiClient::of_new_customer(&service, "Acme");
        let expired = client.caller(&service);
        until("the end of the token", || {
            let answer = expired.request("GET", &format!("{API}/devices"));
            (answer.status == 401).then_some(())
        });
        service.stop();
        service.start_again_with(&[SMALL_DATA]);
        let path = format!("/operator-api/v1/customers/{}/clients", client.customer);
        let revoked_client =
            ApiClient::make(&service, &client.customer, &json!({ "name": "revoked" }));
        let revoked = revoked_client.caller(&service);
        let operator = Caller::operator(&service);
        let deleted = operator.request("DELETE", &revoked_client.path());
        assert_eq!(deleted.status, 204);
        let caller = client.caller(&service);
        let narrowed = |scope: &'static str| (scope, token(&service, &client, scope));
        let strangers = Strangers {
            expired: expired.token().to_owned(),
            revoked: revoked.token().to_owned(),
            another: Caller::of_new_customer(&service, "Umbrella")
                .token()
                .to_owned(),
            operator: operator.token().to_owned(),
            network: ApiClient::of_network(&service)
                .caller(&service)
                .token()
                .to_owned(),
            whole: caller.token().to_owned(),
            by_scope: SCOPES.map(narrowed).into(),
        };
        let named = Self::make_objects(&service, &caller);
        let client_body = operator.request("GET", &path).expect(200);
        let secret = &client_body["items"][0]["secrets"][0]["secretId"];
        let gateway = ApiClient::of_network(&service);
        let gateways = operator.request("GET", NETWORK_CLIENTS).expect(200);
        let gateways = gateways["items"].as_array().expect("a list").iter();
        let mut gateways = gateways.filter(|it| it["clientId"] == *gateway.id);
        let its_secret = &gateways.next().expect("it is listed")["secrets"][0]["secretId"];
        let named_of_network = vec![
            ("{client}", gateway.id.clone()),
            ("{secret}", text(its_secret)),
        ];
        let of_operator = [
            ("{customer}", client.customer.clone()),
            ("{node}", NO_NODE.to_owned()),
            ("{client}", client.id.clone()),
            ("{secret}", text(secret)),
        ];
        let owner = Self {
            caller,
            operator,
            named: named.into_iter().chain(of_operator).collect(),
            named_of_network,
        };
        (service, owner, strangers)
    }

    /// Creates an object of each kind.
    fn make_objects(service: &Service, caller: &Caller) -> Vec<(&'static str, String)> {
        let body = json!({ "deviceId": ID, "ip": DEVICE_IP, "msisdn": MSISDN });
        caller.post(&format!("{API}/devices"), &body).expect(201);
        let body = json!({ "source_address": "1234", "payload": "open" });
        let sms = caller
            .post(&format!("{API}/sims/{ID}/sms"), &body)
            .expect(201);
        let request = caller.create_action(ID, &when_active(read("/3/0/0")));
        let many = format!("{API}/integrate/devices/actions/LWM2M");
        let nobody = with(read("/3/0/0"), "filter", json!({ "q": "nobody" }));
        let job = text(&caller.post(&many, &nobody).expect(202)["jobId"]);
        let schedules = format!("{API}/schedules");
        let schedule = text(&caller.post(&schedules, &schedule()).expect(201)["id"]);
        let image = caller.authorized("POST", &format!("{API}/firmware/images"));
        let image = image.text("application/octet-stream", "an image");
        let image = text(&image.send(service.http).expect(201)["id"]);
        let campaigns = format!("{API}/firmware/campaigns");
        let campaign = text(&caller.post(&campaigns, &campaign()).expect(201)["id"]);
        let device = UdpDevice::from(DEVICE_IP, service);
        device.send(&[b'x'; 17]);
        device.send(b"on");
        caller.once_reported(ID, 1);
        let entries = caller.log_entries();
        let entry = entries
            .iter()
            .find(|it| it.get("payloadReference").is_some());
        let entry = text(&entry.expect("the bytes are kept")["id"]);
        let body = json!({ "name": "Mine", "url": "https://signalbox.invalid/" });
        let webhooks = format!("{API}/integrate/clouds/webhooks");
        let webhook = text(&caller.post(&webhooks, &body).expect(201)["id"]);
        let body = json!({ "name": "Mine", "url": BROKER, "topicPrefix": "mine" });
        let brokers = format!("{API}/integrate/clouds/mqtt");
        let broker = text(&caller.post(&brokers, &body).expect(201)["id"]);
        let body = json!({ "serverDomain": "signalbox.invalid", "webhookKey": "7b0cf" });
        let plugins = format!("{API}/partners/gateway/plugins");
        let plugin = text(&caller.post(&plugins, &body).expect(201)["id"]);
        let body = json!({ "url": "https://signalbox.invalid/sms/" });
        let put = caller.authorized("PUT", &format!("{API}/sms/forwarder"));
        put.json(&body).send(service.http).expect(200);
        for path in ["sms/wakeup".to_owned(), format!("devices/{ID}/wakeup")] {
            let put = caller.authorized("PUT", &format!("{API}/{path}"));
            put.json(&wake_up()).send(service.http).expect(200);
        }
        let path = format!("{API}/dtls/certificate-authorities");
        let put = caller.authorized("PUT", &path).json(&authorities());
        put.send(service.http).expect(200);
        for path in ["bootstrap".to_owned(), format!("devices/{ID}/bootstrap")] {
            let put = caller.authorized("PUT", &format!("{API}/{path}"));
            put.json(&bootstrap()).send(service.http).expect(200);
        }
        let put = caller.authorized("PUT", &format!("{API}/lwm2m/objects"));
        let object = put.text("application/xml", OBJECT).send(service.http);
        let object = object.expect(201);
        vec![
            ("{device}", ID.to_owned()),
            ("{request}", request),
            ("{job}", job),
            ("{schedule}", schedule),
            ("{image}", image),
            ("{campaign}", campaign),
            ("{key}", "unknown".to_owned()),
            ("{entry}", entry),
            ("{webhook}", webhook),
            ("{broker}", broker),
            ("{plugin}", plugin),
            ("{partner}", "dashboard".to_owned()),
            ("{event}", "019a0000-0000-7000-8000-000000000000".to_owned()),
            ("{platform}", "signalbox".to_owned()),
            ("{setting}", "LWM2M_PASSIVE_REPORTING".to_owned()),
            ("{iccid}", ID.to_owned()),
            ("{sms}", sms["id"].to_string()),
            ("{object}", object["objectId"].to_string()),
            ("{version}", text(&object["version"])),
        ]
    }

    /// Calls an operation on the objects of this customer.
    fn call(
        &self,
        entry: &Entry,
        operation: &Operation,
        (caller, authorization): (&str, Option<&str>),
    ) -> Response {
        let path = self.path(operation);
        let mut call = Request::new(&operation.method, &path);
        if let Some(authorization) = authorization {
            call = call.header("authorization", authorization);
        }
        if let Some((media_type, body)) = &entry.body {
            let body = body.replace(UNIQUE, &caller.replace(' ', "-"));
            let (_, sms) = self
                .named
                .iter()
                .find(|(name, _)| *name == "{sms}")
                .unwrap();
            call = call.text(media_type, &body.replace(&format!("\"{SMS}\""), sms));
        }
        call.send(self.caller.address())
    }

    /// What every operation that reads says about the objects of this customer.
    fn objects(&self, operations: &BTreeMap<String, Operation>) -> BTreeMap<String, String> {
        let mut objects = BTreeMap::new();
        for (id, operation) in operations {
            let reader = match operation.access() {
                Access::Open => continue,
                // Other customers come and go.
                Access::Operator if id != "listClients" => continue,
                Access::Operator | Access::Network => &self.operator,
                Access::Customer(_) => &self.caller,
            };
            if operation.method == "GET" {
                let answer = reader.request("GET", &self.path(operation));
                assert_eq!(answer.status, 200, "{id}: {}", answer.text());
                let object = match id.as_str() {
                    // It begins with a position, not with an object.
                    "streamEvents" => continue,
                    "getActivity" => active_minutes(&answer.expect(200)),
                    _ => answer.text().to_owned(),
                };
                objects.insert(id.clone(), object);
            }
        }
        objects
    }

    fn path(&self, operation: &Operation) -> String {
        let is_of_network = operation.path.contains("/network/");
        let of_network = self.named_of_network.iter().filter(|_| is_of_network);
        let named = of_network.chain(&self.named);
        let path = named.fold(operation.path.clone(), |path, (name, value)| {
            path.replace(name, value)
        });
        assert!(
            !path.contains('{'),
            "{path} has a parameter without a value"
        );
        match operation.document["operationId"].as_str() {
            Some("getLogStatistics") => format!("{path}?timezone=UTC"),
            // What is in it depends on the time without these.
            Some("getSeries") => format!("{path}?path=/3/0/9&from={DAY_BEGINS}&to={DAY_ENDS}"),
            Some(_) | None => path,
        }
    }
}

/// The minutes in which anything happened. A minute without anything is there from its beginning.
fn active_minutes(activity: &Value) -> String {
    let minutes = activity["minutes"].as_array().expect("a list").iter();
    let active = minutes.filter(|it| it["events"] != 0 || it["requests"] != 0);
    Value::Array(active.cloned().collect()).to_string()
}

impl Strangers {
    /// The callers that must not use an operation, and their `Authorization` headers.
    fn of(&self, operation: &Operation) -> Vec<(&'static str, Option<String>)> {
        let bearer = |token: &str| Some(format!("Bearer {token}"));
        let mut strangers = vec![
            ("nobody", None),
            ("nobody, empty", Some("Bearer ".to_owned())),
            ("nobody, malformed", Some("Bearer a b/\u{e9}".to_owned())),
            (
                "nobody, in another scheme",
                Some(format!("Basic {}", self.whole)),
            ),
            ("an expired caller", bearer(&self.expired)),
            ("a revoked caller", bearer(&self.revoked)),
        ];
        match operation.access() {
            Access::Open => {}
            Access::Operator | Access::Network => {
                strangers.push(("a customer", bearer(&self.whole)));
                strangers.push(("a customer without its objects", bearer(&self.another)));
                if operation.access() == Access::Operator {
                    strangers.push(("the network", bearer(&self.network)));
                }
            }
            Access::Customer(scope) => {
                strangers.push(("the operator", bearer(&self.operator)));
                strangers.push(("the network", bearer(&self.network)));
                strangers.push(("another customer", bearer(&self.another)));
                let others = self.by_scope.iter().filter(|(it, _)| **it != scope);
                strangers.extend(others.map(|(scope, token)| (*scope, bearer(token))));
            }
        }
        strangers
    }

    /// The header of the caller that may use an operation and hardly any other.
    fn right(&self, operation: &Operation) -> Option<String> {
        let token = match operation.access() {
            Access::Open => return None,
            Access::Operator => &self.operator,
            Access::Network => &self.network,
            Access::Customer(scope) => &self.by_scope[scope],
        };
        Some(format!("Bearer {token}"))
    }
}

/// A token of a client with one scope.
fn token(service: &Service, client: &ApiClient, scope: &str) -> String {
    let call = Request::new("POST", "/oauth/token").header("authorization", &client.basic());
    let form = format!("grant_type=client_credentials&scope={scope}");
    let answer = call.text(FORM, &form).send(service.http).expect(200);
    assert_eq!(answer["scope"], scope);
    text(&answer["access_token"])
}
