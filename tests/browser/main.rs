//! Does the console work in a browser, with real devices behind it?
//!
//! Each test starts the real binary and a simulated device, and has Node drive Chromium through a
//! story in `tests/browser/*.mjs`. What a story needs of the world, such as a device that wakes up,
//! it asks for with a line on its standard output. `cargo xtask test` installs Chromium and the
//! packages and runs this; `cargo xtask prepare`, then `cargo test --test browser` runs this alone.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../support/playwright.rs"]
mod playwright;
#[path = "../support/vocabulary.rs"]
mod vocabulary;

use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tempfile::NamedTempFile;

use engine::limits::RECORDS_EXAMINED_MAX;
use harness::device::configuration::{Configuration, Reachability};
use harness::device::resource::firmware;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{Measured, Sample};
use protocol::lwm2m::value::Value;

use vocabulary::caller::{API, Caller, text};
use vocabulary::client::{ApiClient, CUSTOMERS};
use vocabulary::device::{DEVICE_IP, Device};
use vocabulary::endpoint::{Endpoint, Reply};
use vocabulary::lwm2m::{read, when_active, write};
use vocabulary::plain::answer;
use vocabulary::poll::until;
use vocabulary::program::Program;
use vocabulary::service::Service;
use vocabulary::wire::{DeviceSocket, request};

/// The device id, which the stories know, too.
const ID: &str = "meter-1";

/// The id of the customer.
const CUSTOMER: &str = "acme";

/// The number of the device, which the stories know, too.
const MSISDN: &str = "882285100000001";

/// A device that is bootstrapped, which its story knows, too.
const BOOTSTRAPPED_ID: &str = "boot-1";

/// Its address.
const BOOTSTRAPPED_IP: &str = "127.0.0.21";

const NETWORK: &str = "/operator-api/v1/network/sms";

const TEMPERATURE: Path = Path::resource(3303, 0, 5700);

/// A browser shares the processor with other tests.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn a_person_signs_in_and_out() {
    let fleet = Fleet::new();
    fleet.story("signing_in", &fleet.owner).end();
}

#[test]
fn a_write_to_a_sleeping_device_succeeds_once_it_wakes_up() {
    let mut fleet = Fleet::new();
    let mut story = fleet.story("sleeping_device", &fleet.owner);
    story.wait_for("the device wakes up");
    fleet.device.update();
    story.end();
}

#[test]
fn a_failed_webhook_is_mended_and_its_dead_letters_are_replayed() {
    let fleet = Fleet::new();
    let mut story = fleet.story("failed_webhook", &fleet.owner);
    story.wait_for("the endpoint is mended");
    fleet.endpoint.reply(|_, _| Reply::Status(204));
    story.go_on();
    story.end();
    let taken = fleet.endpoint.once_taken(1);
    assert_eq!(taken[0].json()["type"], "LIFECYCLE", "the dead letter");
}

#[test]
fn a_client_that_may_only_read_sees_no_control_that_changes_anything() {
    let fleet = Fleet::new();
    let scopes = ["actions:read", "devices:read", "integrations:read"];
    let body = json!({ "name": "reader", "scopes": scopes });
    let reader = ApiClient::make(&fleet.service, &fleet.owner.customer, &body);
    fleet.story("read_only", &reader).end();
}

#[test]
fn a_person_of_the_identity_provider_has_what_their_groups_give() {
    let provider = IdentityProvider::start();
    let settings = provider.settings();
    let settings: Vec<_> = settings
        .iter()
        .map(|(name, value)| (*name, &**value))
        .collect();
    let fleet = Fleet::with(&settings);
    fleet.story_at("single_sign_on", provider).end();
}

#[test]
fn an_sms_is_sent_and_delivered_and_a_buffered_one_is_cancelled() {
    let fleet = Fleet::new();
    let mut story = fleet.story("sms", &fleet.owner);
    story.wait_for("the network delivers it");
    fleet.report_sms("DELIVERED");
    story.go_on();
    story.wait_for("the network keeps it in its buffer");
    fleet.report_sms("BUFFERED");
    story.go_on();
    story.end();
}

#[test]
fn fifty_devices_are_asked_of_which_three_refuse() {
    let fleet = Fleet::with(&[("SIGNALBOX_SCHEDULED_MAX", "1")]);
    let caller = fleet.owner.caller(&fleet.service);
    for number in 0..50 {
        let pump = format!("pump-{number:02}");
        let body = json!({ "deviceId": pump });
        caller.post(&format!("{API}/devices"), &body).expect(201);
        if number < 3 {
            caller.create_action(&pump, &when_active(read("/3/0/0")));
        }
    }
    // More devices than one page of a filter examines.
    let spares = (0..RECORDS_EXAMINED_MAX).map(|it| format!("{{\"deviceId\":\"spare-{it}\"}}\n"));
    let import = caller.authorized("POST", &format!("{API}/devices/import"));
    let import = import.text("application/x-ndjson", &spares.collect::<String>());
    import.send(caller.address()).expect(200);
    fleet.story("many_devices", &fleet.owner).end();
}

#[test]
fn a_key_of_a_device_is_shown_once() {
    let fleet = Fleet::new();
    fleet.story("device_key", &fleet.owner).end();
}

#[test]
fn settings_definitions_plugins_and_imports_are_made_and_taken_back() {
    let fleet = Fleet::new();
    fleet.story("settings", &fleet.owner).end();
}

#[test]
fn a_value_moves_in_its_chart() {
    let mut fleet = Fleet::new();
    let mut story = fleet.story("moving_value", &fleet.owner);
    story.wait_for("another value is sent");
    fleet.send(25.5);
    story.wait_for("the values of five days are sent");
    fleet.send_of_hours(120);
    story.end();
}

#[test]
fn a_page_follows_events_and_polls_without_a_stream() {
    let mut fleet = Fleet::new();
    let mut story = fleet.story("live", &fleet.owner);
    for degrees in [23.5, 24.5] {
        story.wait_for(&format!("the device sends {degrees}"));
        fleet.send(degrees);
    }
    let caller = fleet.owner.caller(&fleet.service);
    for count in 2..=5 {
        story.wait_for(&format!("request {count} fails"));
        let request = caller.create_action(ID, &write("/1/0/1", "soon"));
        caller.final_action(&request);
    }
    story.wait_for("the device sends 25.5");
    fleet.send(25.5);
    story.end();
}

#[test]
fn a_campaign_halts_and_is_resumed_and_another_is_cancelled() {
    let fleet = Fleet::new();
    let _pumps = [("pump-1", 9), ("pump-2", 0)].map(|(id, result)| fleet.updatable(id, result));
    fleet.story("firmware", &fleet.owner).end();
}

#[test]
fn a_bootstrap_is_configured_and_shown_step_by_step() {
    let fleet = Fleet::with(&[("SIGNALBOX_BOOTSTRAP_NOSEC", "true")]);
    let device = json!({ "deviceId": BOOTSTRAPPED_ID, "ip": BOOTSTRAPPED_IP });
    let caller = fleet.owner.caller(&fleet.service);
    caller.post(&format!("{API}/devices"), &device).expect(201);
    let mut story = fleet.story("bootstrap", &fleet.owner);
    story.wait_for("the device refuses the first step of its bootstrap");
    fleet.refuse_bootstrap(BOOTSTRAPPED_ID);
    story.go_on();
    story.end();
}

#[test]
fn a_request_is_put_on_a_schedule() {
    let fleet = Fleet::new();
    fleet.story("schedules", &fleet.owner).end();
}

#[test]
fn a_webhook_and_a_broker_are_changed_and_devices_found_by_connectivity() {
    let fleet = Fleet::new();
    fleet.story("changed_webhook", &fleet.owner).end();
}

#[test]
fn the_operator_creates_a_customer_and_an_api_client() {
    let fleet = Fleet::new();
    fleet.story("operator", &fleet.owner).end();
}

#[test]
fn every_view_is_accessible_in_light_and_dark_on_desk_and_phone() {
    let fleet = Fleet::new();
    let caller = fleet.owner.caller(&fleet.service);
    let body = json!({ "action": "read", "resourceAddress": "/3/0/0", "filter": {} });
    let many = format!("{API}/integrate/devices/actions/LWM2M");
    caller.post(&many, &body).expect(202);
    fleet.story("every_view", &fleet.owner).end();
}

/// A service with a customer, whose device sleeps unless it was just heard, and whose webhook has
/// failed.
struct Fleet {
    device: Device,
    owner: ApiClient,
    endpoint: Endpoint,
    webhook: String,
    request: String,
    campaign: String,
    schedule: String,
    service: Service,
}

impl Fleet {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(settings: &[(&str, &str)]) -> Self {
        let always = [
            ("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true"),
            ("SIGNALBOX_AWAKE_WINDOW_MS", "1"),
            ("SIGNALBOX_DELIVERY_RETRY_MS", "50,50,50,50"),
        ];
        let service = Service::start_with(&[&always, settings].concat());
        let customer = json!({ "id": CUSTOMER, "name": "Acme" });
        let operator = Caller::operator(&service);
        operator.post(CUSTOMERS, &customer).expect(201);
        let owner = ApiClient::make(&service, CUSTOMER, &json!({ "name": "a test" }));
        let caller = owner.caller(&service);
        let endpoint = Endpoint::replying(|_, _| Reply::Status(500));
        let webhook = failing_webhook(&caller, &endpoint);
        let device = json!({ "deviceId": ID, "ip": DEVICE_IP, "msisdn": MSISDN });
        caller.post(&format!("{API}/devices"), &device).expect(201);
        forward_sms(&caller, &endpoint);
        let configuration = Configuration {
            reachability: Reachability::Queue {
                awake_window_ms: 60_000,
            },
            ..Configuration::new(ID)
        };
        let device = Device::registered(&service, configuration);
        until("a failed webhook", || {
            let path = format!("{API}/integrate/clouds/webhooks/{webhook}");
            let shown = caller.request("GET", &path).expect(200);
            (shown["state"] == "INTEGRATION_FAILED").then_some(())
        });
        // A value of the wrong type fails at once, with an entry of the log.
        let request = caller.create_action(ID, &write("/1/0/1", "soon"));
        caller.final_action(&request);
        let campaign = skipped_campaign(&caller);
        let schedule = daily_schedule(&caller);
        let mut fleet = Self {
            device,
            owner,
            endpoint,
            webhook,
            request,
            campaign,
            schedule,
            service,
        };
        fleet.send(21.0);
        fleet.send(22.0);
        fleet.receive_sms("valve open");
        fleet
    }

    /// Has the device send a temperature.
    fn send(&mut self, degrees: f64) {
        let samples = vec![Sample {
            path: TEMPERATURE,
            value: Value::Float(degrees),
            measured: None,
        }];
        self.device.send(ContentFormat::SENML_JSON, samples);
    }

    /// Has the device send a temperature of each of the last hours.
    fn send_of_hours(&mut self, hours: i64) {
        for hour in 1..=hours {
            let samples = vec![Sample {
                path: TEMPERATURE,
                value: Value::Float(20.0),
                measured: Some(Measured::Relative(-hour * 3_600_000)),
            }];
            self.device.send(ContentFormat::SENML_JSON, samples);
        }
    }

    /// Hands in an SMS of the device, as the network does.
    fn receive_sms(&self, text: &str) {
        let body = json!({
            "source_address": MSISDN, "dest_address": "1234", "payload": text, "dcs": 0, "pid": 0,
        });
        let network = Caller::operator(&self.service);
        network.post(&format!("{NETWORK}/mo"), &body).expect(202);
    }

    /// Takes the SMS to the device, and reports what became of it.
    fn report_sms(&self, status: &str) {
        let network = Caller::operator(&self.service);
        let taken = network.post(&format!("{NETWORK}/mt"), &json!({}));
        let id = taken.expect(200)["items"][0]["id"].clone();
        let report = json!({ "id": id, "status": status });
        network.post(&format!("{NETWORK}/dlr"), &report).expect(202);
    }

    /// A device that downloads firmware with this result, and installs it.
    fn updatable(&self, id: &str, download: u8) -> Device {
        let caller = self.owner.caller(&self.service);
        caller.create_device(id, DEVICE_IP);
        let mut configuration = Configuration::new(id);
        configuration.resources.extend(firmware(download, 1));
        Device::registered(&self.service, configuration)
    }

    /// Has a device ask for its bootstrap, and refuse the first request of it.
    fn refuse_bootstrap(&self, id: &str) {
        let wire = DeviceSocket::from(BOOTSTRAPPED_IP, &self.service);
        let ask = request(Code::POST, 1).with_uri_path(["bs"]);
        let endpoint = format!("ep={id}");
        let accepted = wire.ask_among_others(&ask.with_uri_query([endpoint.as_str()]));
        assert_eq!(accepted.code, Code::CHANGED, "{accepted:?}");
        let asked = wire.receive_request();
        wire.send(&answer(&asked, Code::BAD_REQUEST).encode());
        let caller = self.owner.caller(&self.service);
        until("the end of the bootstrap", || {
            (caller.inspect(id)["bootstrap"]["state"] == "FAILED").then_some(())
        });
    }

    /// Begins a story, told by people of an identity provider.
    fn story_at(&self, name: &str, mut provider: IdentityProvider) -> Story {
        let callback = format!("http://{}/console/oidc/callback", self.service.http);
        provider.program.write_line(&callback);
        let is_ready = |line: &str| line.contains("ready").then_some(());
        provider.program.wait_for("the identity provider", is_ready);
        let mut command = self.command(name, &self.owner);
        command.env("IDENTITY_PROVIDER", provider.issuer());
        Story {
            program: Program::start(&mut command),
            _provider: Some(provider),
        }
    }

    /// Begins a story, told by a person with these credentials.
    fn story(&self, name: &str, client: &ApiClient) -> Story {
        Story {
            program: Program::start(&mut self.command(name, client)),
            _provider: None,
        }
    }

    fn command(&self, name: &str, client: &ApiClient) -> Command {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let of_device = rcgen::generate_simple_self_signed([BOOTSTRAPPED_ID.to_owned()]).unwrap();
        let other_key = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let mut command = Command::new("node");
        command
            .arg(root.join(format!("tests/browser/{name}.mjs")))
            .env("CONSOLE_PACKAGES", playwright::packages())
            .env("CONSOLE_ADDRESS", format!("http://{}", self.service.http))
            .env("CLIENT_ID", &client.id)
            .env("CLIENT_SECRET", &client.secret)
            .env("WEBHOOK", &self.webhook)
            .env("FAILED_REQUEST", &self.request)
            .env("CAMPAIGN", &self.campaign)
            .env("SCHEDULE", &self.schedule)
            .env("CUSTOMER", &self.owner.customer)
            .env("ENDPOINT", self.endpoint.url(""))
            .env("CERTIFICATE", of_device.cert.pem())
            .env("CERTIFICATE_KEY", of_device.signing_key.serialize_pem())
            .env("OTHER_KEY", other_key)
            .env("OPERATOR_TOKEN", self.service.operator_token());
        command
    }
}

fn failing_webhook(caller: &Caller, endpoint: &Endpoint) -> String {
    let body = json!({
        "name": "Warehouse",
        "url": endpoint.url("/events"),
        "eventTypes": [{ "type": "LIFECYCLE", "kinds": ["REGISTERED"] }],
    });
    let made = caller.post(&format!("{API}/integrate/clouds/webhooks"), &body);
    text(&made.expect(201)["id"])
}

/// A campaign that has ended: its device has no object of firmware.
fn skipped_campaign(caller: &Caller) -> String {
    let images = format!("{API}/firmware/images?name=Meter&version=1.5.0");
    let image = caller.authorized("POST", &images);
    let image = image.text("application/octet-stream", "an image");
    let image = image.send(caller.address()).expect(201)["id"].clone();
    let campaigns = format!("{API}/firmware/campaigns");
    let body = json!({ "imageId": image, "deviceIds": [ID], "concurrency": 1 });
    let campaign = text(&caller.post(&campaigns, &body).expect(201)["id"]);
    until("the end of the campaign", || {
        let shown = caller.request("GET", &format!("{campaigns}/{campaign}"));
        (shown.expect(200)["state"] == "DONE").then_some(())
    });
    campaign
}

/// A schedule that is paused: no job of it disturbs a story.
fn daily_schedule(caller: &Caller) -> String {
    let mut request = read("/3/0/9");
    request["protocol"] = json!("LWM2M");
    request["filter"] = json!({ "q": ID });
    let body = json!({
        "name": "Battery",
        "daily": { "at": "06:30", "zone": "UTC" },
        "request": request,
    });
    let made = caller.post(&format!("{API}/schedules"), &body);
    let schedule = text(&made.expect(201)["id"]);
    let path = format!("{API}/schedules/{schedule}");
    let paused = caller.try_send("PATCH", &path, &json!({ "state": "PAUSED" }));
    paused.unwrap().expect(200);
    schedule
}

fn forward_sms(caller: &Caller, endpoint: &Endpoint) {
    let body = json!({ "url": endpoint.url("/sms/") });
    let set = caller.try_send("PUT", &format!("{API}/sms/forwarder"), &body);
    set.unwrap().expect(200);
}

/// A provider on oidc-provider, which tests/interop/oidc-provider has.
struct IdentityProvider {
    program: Program,
    port: u64,
    secret: NamedTempFile,
}

impl IdentityProvider {
    const CLIENT_ID: &str = "the console";
    const CLIENT_SECRET: &str = "a secret: 100% of it";

    fn start() -> Self {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let modules = root.join("target/interop/oidc-provider/node_modules");
        assert!(
            modules.exists(),
            "`cargo xtask prepare` makes {}",
            modules.display()
        );
        let mut command = Command::new("node");
        command.env("NODE_PATH", modules);
        command.arg(root.join("tests/interop/oidc-provider/provider.js"));
        command.args([Self::CLIENT_ID, Self::CLIENT_SECRET]);
        let mut program = Program::start(&mut command);
        let port = program.wait_for("where it listens", |line| {
            let printed: Json = serde_json::from_str(line).ok()?;
            printed["port"].as_u64()
        });
        let mut secret = NamedTempFile::new().unwrap();
        writeln!(secret, "{}", Self::CLIENT_SECRET).unwrap();
        Self {
            program,
            port,
            secret,
        }
    }

    /// Another site than that of the console, which is at an address.
    fn issuer(&self) -> String {
        format!("http://localhost:{}", self.port)
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let read = ["actions:read", "devices:read", "integrations:read"];
        let rules = json!([
            { "group": "readers", "customer": CUSTOMER, "scopes": read },
            { "group": "operators", "operator": true },
        ]);
        let secret = self.secret.path().to_str().unwrap();
        vec![
            ("SIGNALBOX_OIDC_ISSUER", self.issuer()),
            ("SIGNALBOX_OIDC_CLIENT_ID", Self::CLIENT_ID.to_owned()),
            ("SIGNALBOX_OIDC_CLIENT_SECRET_FILE", secret.to_owned()),
            ("SIGNALBOX_OIDC_NAME", "Acme accounts".to_owned()),
            ("SIGNALBOX_OIDC_GROUPS", rules.to_string()),
        ]
    }
}

/// A browser with a person before it.
struct Story {
    program: Program,
    _provider: Option<IdentityProvider>,
}

impl Story {
    /// Waits until the story asks for something.
    fn wait_for(&mut self, wish: &str) {
        self.program
            .wait_for_within(PATIENCE, wish, |line| (line == wish).then_some(()));
    }

    /// Tells the story that what it asked for is done.
    fn go_on(&mut self) {
        self.program.write_line("done");
    }

    fn end(self) {
        self.program.finish();
    }
}
