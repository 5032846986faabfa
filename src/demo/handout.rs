//! Which shell commands does the demo print? The calls it made itself, with the real values.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

use super::api::{DemoCaller, DemoProtocol, LOG, WEBHOOKS, sms_of};
use super::devices::ServerAddresses;
use super::output::DemoOutput;
use super::role::{ALARM, BRIGHTNESS, DeviceRole, VOLUME};
use super::walkthrough::plain::blink;
use crate::rest_client::{DEVICES, REQUESTS, TOKENS};

const BEARER: &str = "-H \"authorization: Bearer $TOKEN\"";

/// The values in the commands.
pub(super) struct Handout<'a> {
    /// The base URL of the API, like `http://127.0.0.1:8080`.
    pub(super) base: &'a str,
    /// The addresses of the service for devices.
    pub(super) servers: ServerAddresses,
    /// The address of the device without LwM2M, if it runs.
    pub(super) sensor: Option<SocketAddr>,
    /// The file with the operator's token, unless the configuration gives the token.
    pub(super) operator_token: Option<&'a Path>,
    /// The directory that is removed at the end.
    pub(super) temporary: Option<&'a Path>,
    /// How a person gets into the console.
    pub(super) console: ConsoleAccess,
    /// The program whose token is printed.
    pub(super) caller: &'a DemoCaller,
    /// A request that was created.
    pub(super) request: &'a str,
    /// The webhook that was created.
    pub(super) webhook: &'a str,
}

/// How a person gets into the console.
pub(super) enum ConsoleAccess {
    /// By a link with this code.
    Code(String),
    /// Not over a connection like that of the demo.
    Refused,
    /// This build has no console.
    NotBuilt,
}

impl Handout<'_> {
    /// Prints the addresses of the service, and the commands.
    pub(super) fn print(&self, output: &mut DemoOutput) -> io::Result<()> {
        output.chapter("Addresses and files")?;
        for (what, place) in self.places() {
            output.line(format!("  {what:<15} {place}"))?;
        }
        output.chapter("Open the console in a browser")?;
        for line in self.console_lines() {
            output.line(line)?;
        }
        output.chapter("Try it yourself in another terminal")?;
        output.line(format!("export TOKEN={}", self.caller.token().token))?;
        let commands = self.commands().into_iter();
        for (what, command) in commands.chain(self.commands_without_lwm2m()) {
            output.pause()?;
            output.line(format!("  {what}:"))?;
            output.line(command)?;
        }
        output.chapter("The devices keep running, and events are printed here. Stop with Ctrl-C.")
    }

    fn console_lines(&self) -> Vec<String> {
        let base = self.base;
        let place = match &self.console {
            ConsoleAccess::Code(code) => format!("  {base}/console#code={code}"),
            ConsoleAccess::Refused => format!("  {base}/console, over https or on its machine"),
            ConsoleAccess::NotBuilt => {
                return vec![format!("  not part of this build: {base}/console says why")];
            }
        };
        let key = self.caller.key();
        let once = "  The link signs in once, within 10 minutes.".to_owned();
        let credentials = format!(
            "  Sign in with client id {} and secret {}",
            key.id, key.secret
        );
        match &self.console {
            ConsoleAccess::Code(_) => vec![place, once, credentials],
            ConsoleAccess::Refused | ConsoleAccess::NotBuilt => vec![place, credentials],
        }
    }

    fn places(&self) -> Vec<(&'static str, String)> {
        let operator_token = match self.operator_token {
            Some(path) => path.display().to_string(),
            None => "from the configuration".to_owned(),
        };
        let mut places = vec![
            ("API", self.base.to_owned()),
            ("documentation", format!("{}/docs", self.base)),
            ("CoAP, LwM2M", format!("coap://{}", self.servers.coap)),
            ("UDP", format!("udp://{}", self.servers.udp)),
            ("operator token", operator_token),
        ];
        if let Some(temporary) = self.temporary {
            places.push((
                "store",
                format!("{}, deleted at the end", temporary.display()),
            ));
        }
        places
    }

    fn commands(&self) -> Vec<(String, String)> {
        let key = self.caller.key();
        let credentials = format!("-u {}:{}", key.id, key.secret);
        let grant = json!({ "grant_type": "client_credentials" });
        let minutes = self.caller.token().lifetime_s / 60;
        let queued = json!({
            "action": "read",
            "resourceAddress": VOLUME.to_string(),
            "requestMode": "SEND_WHEN_ACTIVE",
            "sendAttempts": 3,
        });
        let at_once = json!({ "action": "read", "resourceAddress": BRIGHTNESS.to_string() });
        let commands = [
            ("List the devices", self.read(DEVICES)),
            (
                "Read the brightness of the lamp",
                self.ask(DemoProtocol::Lwm2m, DeviceRole::Lamp, &at_once),
            ),
            (
                "Queue a read of the meter until it wakes up",
                self.ask(DemoProtocol::Lwm2m, DeviceRole::Meter, &queued),
            ),
            (
                "Inspect the lamp",
                self.read(&format!("{DEVICES}/{}", DeviceRole::Lamp.id())),
            ),
            (
                "List the messages of the lamp",
                self.read(&format!("{DEVICES}/{}/messages", DeviceRole::Lamp.id())),
            ),
            (
                "Get the result of a request",
                self.read(&format!("{REQUESTS}/{}", self.request)),
            ),
            ("List all requests", self.read(REQUESTS)),
            (
                "List the SMS of the tracker, in both directions",
                self.read(&sms_of(DeviceRole::Tracker.id())),
            ),
            ("List the administration log", self.read(LOG)),
            (
                "Show the webhook and its backlog",
                self.read(&format!("{WEBHOOKS}/{}", self.webhook)),
            ),
            (
                "Send a test event to the webhook",
                self.order(&format!("{WEBHOOKS}/{}/test", self.webhook)),
            ),
        ];
        let mut commands = commands
            .map(|(what, line)| (what.to_owned(), line))
            .to_vec();
        let token = format!("Get another access token (valid for {minutes} minutes)");
        commands.push((token, self.post(&credentials, &grant, TOKENS)));
        commands
    }

    fn commands_without_lwm2m(&self) -> Vec<(String, String)> {
        let Some(sensor) = self.sensor else {
            return Vec::new();
        };
        let (ip, port) = (sensor.ip(), sensor.port());
        let udp = self.servers.udp;
        let alarm = json!({ "requestType": "GET", "path": ALARM, "port": port });
        let commands = [
            (
                "Read the alarm level of the leak sensor over CoAP",
                self.ask(DemoProtocol::Coap, DeviceRole::Sensor, &alarm),
            ),
            (
                "Queue a UDP datagram for the leak sensor",
                self.ask(DemoProtocol::Udp, DeviceRole::Sensor, &blink(port)),
            ),
            (
                "Send a UDP datagram from the address of the leak sensor",
                format!(
                    "printf wet | nc -u -w 1 -s {ip} {} {}",
                    udp.ip(),
                    udp.port()
                ),
            ),
        ];
        commands
            .map(|(what, line)| (what.to_owned(), line))
            .to_vec()
    }

    fn read(&self, path: &str) -> String {
        format!("curl -sw '\\n' {BEARER} {}{path}", self.base)
    }

    fn order(&self, path: &str) -> String {
        format!("curl -sw '\\n' -X POST {BEARER} {}{path}", self.base)
    }

    fn ask(&self, over: DemoProtocol, role: DeviceRole, body: &Value) -> String {
        self.post(BEARER, body, &over.path(role.id()))
    }

    fn post(&self, proof: &str, body: &Value, path: &str) -> String {
        let json = "-H 'content-type: application/json'";
        format!(
            "curl -sw '\\n' {proof} {json} \\\n     -d '{body}' \\\n     {}{path}",
            self.base
        )
    }
}
