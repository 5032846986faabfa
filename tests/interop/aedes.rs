//! Are events delivered to a second broker, on aedes, and commands of it performed? It speaks MQTT
//! 3.1.1 and keeps nothing when it ends.
//!
//! The program is `aedes/broker.js`: it does as it is told by lines of words, and prints lines of
//! JSON.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::mosquitto::{MqttService, QUICK, STEADY};
use crate::vocabulary::caller::text;
use crate::vocabulary::lwm2m::{read, when_active};
use crate::vocabulary::poll::until;
use crate::vocabulary::program::Program;

#[test]
fn events_arrive_in_order_although_aedes_is_killed_in_the_middle() {
    let setup = MqttService::with(&[STEADY]);
    let mut broker = Aedes::start(&[]);
    let made = setup.create_at(&broker.url(), &json!({ "version": 3 }));
    let mut meters = [
        setup.meter("meter-1", "127.77.3.1"),
        setup.meter("meter-2", "127.77.3.2"),
    ];
    for value in 1..=40 {
        for meter in &mut meters {
            meter.send(value);
        }
        if value % 20 == 10 {
            broker.kill_and_start_again();
        }
    }
    for name in ["meter-1", "meter-2"] {
        let topic = format!("acme/{name}/telemetry");
        let values = until("every value", || {
            let values = broker.values(&topic);
            (values.len() >= 40).then_some(values)
        });
        assert_eq!(values, Vec::from_iter(1..=40), "{name}");
    }
    setup.once_in(&made, "INTEGRATION_ACTIVE");
}

#[test]
fn a_login_that_aedes_refuses_is_named_until_it_is_right() {
    let setup = MqttService::with(&[QUICK]);
    let mut broker = Aedes::start(&["meters", "open-sesame"]);
    let wrong = json!({ "version": 3, "username": "meters", "password": "sesame" });
    let made = setup.create_at(&broker.url(), &wrong);
    setup.meter("meter-1", "127.77.3.3").send(1);
    let failed = setup.once_in(&made, "INTEGRATION_FAILED");
    let reason = "the broker refused the connection: bad user name or password";
    assert_eq!(failed["failureReason"], reason);
    assert_eq!(failed["connected"], false);
    assert_eq!(failed["lastError"], reason);
    let right = json!({ "password": "open-sesame" });
    let amended = setup.caller.try_send("PATCH", &made, &right);
    amended.unwrap().expect(200);
    setup.ask(&made, "deadletters/replay", 202);
    setup.ask(&made, "restart", 200);
    until("the value", || {
        (broker.values("acme/meter-1/telemetry") == [1]).then_some(())
    });
    setup.once_in(&made, "INTEGRATION_ACTIVE");
}

#[test]
fn commands_of_aedes_are_performed_also_after_it_lost_the_subscription() {
    let setup = MqttService::with(&[STEADY]);
    let mut broker = Aedes::start(&[]);
    setup.caller.create_device("lamp", "127.77.3.4");
    let commands = json!({ "version": 3, "commands": true });
    let made = setup.create_at(&broker.url(), &commands);
    for round in 1..=2 {
        broker.printed("subscribed", |filter| filter == "acme/+/actions/+");
        let body = when_active(read("/3/0/0"));
        broker.tell(&format!("publish acme/lamp/actions/LWM2M {body}"));
        let answers = until("the answer", || {
            let answers = broker.messages("acme/lamp/action");
            (answers.len() == round).then_some(answers)
        });
        let answer = answers.last().unwrap();
        assert_eq!(answer["status"], 202, "{answer}");
        let action = setup.caller.action(&text(&answer["body"]["id"]));
        assert_eq!(action["status"], "SCHEDULED", "{action}");
        if round == 1 {
            broker.kill_and_start_again();
        }
    }
    let sessions = |broker: &mut Aedes, count: usize| {
        until("the sessions", || {
            broker.tell("sessions");
            let last = broker.last("sessions")?;
            (last == count).then_some(())
        });
    };
    sessions(&mut broker, 1);
    assert_eq!(setup.caller.request("DELETE", &made).status, 204);
    sessions(&mut broker, 0);
}

/// A broker on a port of its own.
struct Aedes {
    program: Program,
    port: u16,
    login: Vec<&'static str>,
    /// Its output before it was killed.
    before: Vec<String>,
}

impl Aedes {
    /// Starts one that accepts this name and password, or all clients.
    fn start(login: &[&'static str]) -> Self {
        let (program, port) = run(0, login);
        Self {
            program,
            port,
            login: login.to_vec(),
            before: Vec::new(),
        }
    }

    fn url(&self) -> String {
        format!("mqtt://127.0.0.1:{}", self.port)
    }

    fn kill_and_start_again(&mut self) {
        self.program.kill();
        // Its output is complete only now.
        self.before.extend(self.program.printed().to_vec());
        self.program = run(self.port, &self.login).0;
    }

    fn tell(&mut self, line: &str) {
        self.program.write_line(line);
    }

    /// Waits until the running program printed a property with a value.
    fn printed(&mut self, name: &str, is_it: impl Fn(&Value) -> bool) {
        until(name, || {
            let mut lines = self.program.printed().iter();
            let printed = |line: &String| serde_json::from_str::<Value>(line).ok();
            let has = |line: &String| printed(line).is_some_and(|it| is_it(&it[name]));
            lines.any(has).then_some(())
        });
    }

    /// The value that was printed last of a property.
    fn last(&mut self, name: &str) -> Option<Value> {
        let lines = self.program.printed().iter().rev();
        let mut printed = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        printed.find_map(|it| it.get(name).cloned())
    }

    /// The messages at a topic, in the order in which they came.
    fn messages(&mut self, topic: &str) -> Vec<Value> {
        let lines = self.before.iter().chain(self.program.printed());
        let printed = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let at_topic = printed.filter(|it| it["topic"] == topic);
        at_topic
            .map(|it| serde_json::from_str(it["payload"].as_str().unwrap()).unwrap())
            .collect()
    }

    /// The values at a topic, in the order of their first deliveries.
    fn values(&mut self, topic: &str) -> Vec<u64> {
        let (mut ids, mut values) = (Vec::new(), Vec::new());
        for event in self.messages(topic) {
            let id = text(&event["id"]);
            if !ids.contains(&id) {
                ids.push(id);
                values.push(event["payload"]["value"].as_u64().unwrap());
            }
        }
        values
    }
}

fn run(port: u16, login: &[&str]) -> (Program, u16) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let modules = root.join("target/interop/aedes/node_modules");
    assert!(
        modules.exists(),
        "`cargo xtask prepare` makes {}",
        modules.display()
    );
    let mut command = Command::new("node");
    command.env("NODE_PATH", modules);
    command.arg(root.join("tests/interop/aedes/broker.js"));
    command.arg(port.to_string()).args(login);
    let mut program = Program::start(&mut command);
    let port = program.wait_for("where it listens", |line| {
        let printed: Value = serde_json::from_str(line).ok()?;
        printed["port"].as_u64()
    });
    (program, port.try_into().unwrap())
}
