//! How does somebody do by hand what the demo did? Lines for a shell, with what is real here.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

use super::caller::{Caller, LOG, Over, WEBHOOKS};
use super::cast::Servers;
use super::narrator::Narrator;
use super::role::{ALARM, BRIGHTNESS, Role, VOLUME};
use super::story::plain::blink;
use crate::api_client::{DEVICES, REQUESTS, TOKENS};

const BEARER: &str = "-H \"authorization: Bearer $TOKEN\"";

/// What the lines are made of.
pub(super) struct Handout<'a> {
    /// Where the API is, like `http://127.0.0.1:8080`.
    pub(super) base: &'a str,
    /// Where devices reach the service.
    pub(super) servers: Servers,
    /// Where the device without LwM2M is, if it is there.
    pub(super) sensor: Option<SocketAddr>,
    /// The file with the operator's token, unless the configuration gave it.
    pub(super) operator_token: Option<&'a Path>,
    /// The directory that is removed at the end.
    pub(super) temporary: Option<&'a Path>,
    /// The program whose token is shown.
    pub(super) caller: &'a Caller,
    /// A request that was made.
    pub(super) request: &'a str,
    /// The webhook that was made.
    pub(super) webhook: &'a str,
}

impl Handout<'_> {
    /// Tells where things are, and how to do it all by hand.
    pub(super) fn tell(&self, narrator: &mut Narrator) -> io::Result<()> {
        narrator.chapter("Where things are")?;
        for (what, place) in self.places() {
            narrator.line(format!("  {what:<15} {place}"))?;
        }
        narrator.chapter("The same by hand, in another terminal")?;
        narrator.line(format!("export TOKEN={}", self.caller.token().token))?;
        let commands = self.commands().into_iter();
        for (what, command) in commands.chain(self.commands_without_lwm2m()) {
            narrator.pause()?;
            narrator.line(format!("  {what}:"))?;
            narrator.line(command)?;
        }
        narrator.chapter("The devices live on; what happens is told here. Ctrl-C ends it.")
    }

    fn places(&self) -> Vec<(&'static str, String)> {
        let operator_token = match self.operator_token {
            Some(path) => path.display().to_string(),
            None => "as configured".to_owned(),
        };
        let mut places = vec![
            ("API", self.base.to_owned()),
            ("documentation", format!("{}/docs", self.base)),
            ("devices", format!("coap://{}", self.servers.coap)),
            ("bare datagrams", format!("udp://{}", self.servers.udp)),
            ("operator token", operator_token),
        ];
        if let Some(temporary) = self.temporary {
            places.push((
                "store",
                format!("{}, removed at the end", temporary.display()),
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
                "Ask the lamp now how bright it is",
                self.ask(Over::Lwm2m, Role::Lamp, &at_once),
            ),
            (
                "Ask the meter, which answers when it wakes",
                self.ask(Over::Lwm2m, Role::Meter, &queued),
            ),
            (
                "Inspect the lamp: what is known, observed, and was told lately",
                self.read(&format!("{DEVICES}/{}", Role::Lamp.id())),
            ),
            (
                "See what the lamp told, the latest first",
                self.read(&format!("{DEVICES}/{}/messages", Role::Lamp.id())),
            ),
            (
                "See what became of a request",
                self.read(&format!("{REQUESTS}/{}", self.request)),
            ),
            ("List all requests, the latest first", self.read(REQUESTS)),
            ("List the administration log", self.read(LOG)),
            (
                "Look at the webhook, and what waits for it",
                self.read(&format!("{WEBHOOKS}/{}", self.webhook)),
            ),
            (
                "Have a test message sent to its endpoint",
                self.order(&format!("{WEBHOOKS}/{}/test", self.webhook)),
            ),
        ];
        let mut commands = commands
            .map(|(what, line)| (what.to_owned(), line))
            .to_vec();
        let token = format!("Take another token (one lasts {minutes} minutes)");
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
                "Ask the leak sensor over CoAP at how many millimetres it warns",
                self.ask(Over::Coap, Role::Sensor, &alarm),
            ),
            (
                "Have a datagram wait until the leak sensor is heard",
                self.ask(Over::Udp, Role::Sensor, &blink(port)),
            ),
            (
                "Be the leak sensor: throw a datagram yourself, from its address",
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

    fn ask(&self, over: Over, role: Role, asked: &Value) -> String {
        self.post(BEARER, asked, &over.path(role.id()))
    }

    fn post(&self, proof: &str, body: &Value, path: &str) -> String {
        let json = "-H 'content-type: application/json'";
        format!(
            "curl -sw '\\n' {proof} {json} \\\n     -d '{body}' \\\n     {}{path}",
            self.base
        )
    }
}
