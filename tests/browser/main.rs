//! Does the console work in a browser, with real devices behind it?
//!
//! Each test starts the real binary and a simulated device, and has Node drive Chromium through a
//! story in `tests/browser/*.mjs`. What a story needs of the world, such as a device that wakes up,
//! it asks for with a line on its standard output. `cargo xtask test` installs Chromium and the
//! packages and runs this; `cargo xtask prepare`, then `cargo test --test browser` runs this alone.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../support/vocabulary.rs"]
mod vocabulary;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use harness::device::configuration::{Configuration, Reachability};

use vocabulary::caller::{API, Caller, text};
use vocabulary::client::ApiClient;
use vocabulary::device::{DEVICE_IP, Device};
use vocabulary::endpoint::{Endpoint, Reply};
use vocabulary::lwm2m::write;
use vocabulary::poll::until;
use vocabulary::program::Program;
use vocabulary::service::Service;

/// The device id, which the stories know, too.
const ID: &str = "meter-1";

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
fn every_view_is_accessible_in_light_and_dark_on_desk_and_phone() {
    let fleet = Fleet::new();
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
    service: Service,
}

impl Fleet {
    fn new() -> Self {
        let service = Service::start_with(&[
            ("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true"),
            ("SIGNALBOX_AWAKE_WINDOW_MS", "1"),
            ("SIGNALBOX_DELIVERY_RETRY_MS", "50,50,50,50"),
        ]);
        let owner = ApiClient::of_new_customer(&service, "Acme");
        let caller = owner.caller(&service);
        let endpoint = Endpoint::replying(|_, _| Reply::Status(500));
        let webhook = failing_webhook(&caller, &endpoint);
        caller.create_device(ID, DEVICE_IP);
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
        Self {
            device,
            owner,
            endpoint,
            webhook,
            request,
            service,
        }
    }

    /// Begins a story, told by a person with these credentials.
    fn story(&self, name: &str, client: &ApiClient) -> Story {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let packages = root.join("target/console/work/console/package.json");
        assert!(
            packages.is_file(),
            "cargo xtask prepare installs the packages"
        );
        let mut command = Command::new("node");
        command
            .arg(root.join(format!("tests/browser/{name}.mjs")))
            .env("CONSOLE_PACKAGES", packages)
            .env("CONSOLE_ADDRESS", format!("http://{}", self.service.http))
            .env("CLIENT_ID", &client.id)
            .env("CLIENT_SECRET", &client.secret)
            .env("WEBHOOK", &self.webhook)
            .env("FAILED_REQUEST", &self.request);
        Story(Program::start(&mut command))
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

/// A browser with a person before it.
struct Story(Program);

impl Story {
    /// Waits until the story asks for something.
    fn wait_for(&mut self, wish: &str) {
        self.0
            .wait_for_within(PATIENCE, wish, |line| (line == wish).then_some(()));
    }

    /// Tells the story that what it asked for is done.
    fn go_on(&mut self) {
        self.0.write_line("done");
    }

    fn end(self) {
        self.0.finish();
    }
}
