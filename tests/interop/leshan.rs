//! Does a device on Eclipse Leshan register, answer, perform requests, return and deregister?
//!
//! The device is `leshan/src/LeshanDevice.java`: it prints each event as a line of words.

mod observing;
mod reading;
mod sending;
mod updating;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::lwm2m::{execute, outcome, read, when_active, write};
use crate::vocabulary::poll::until;
use crate::vocabulary::program::Program;
use crate::vocabulary::service::Service;

#[test]
fn a_registration_is_shown_with_all_its_parameters() {
    let setup = TestService::new("127.0.9.40");
    let mut device = setup.device(ID, &["--lifetime", "600"]);
    let location = device.wait_for("registered");
    assert!(location.starts_with("/rd/"), "{location}");
    let shown = setup.caller.inspect(ID);
    assert_eq!(shown["presence"]["state"], "AWAKE", "{shown}");
    let registration = &shown["registration"];
    assert_eq!(registration["version"], "1.1", "{shown}");
    assert_eq!(registration["lifetime"], 600, "{shown}");
    assert_eq!(registration["binding"], "U", "{shown}");
    assert_eq!(registration["queueMode"], false, "{shown}");
    let objects = json!([
        { "id": 1, "instances": [0] },
        { "id": 3, "version": "1.2", "instances": [0] },
        { "id": 3303, "version": "1.1", "instances": [0] },
        { "id": 3311, "instances": [0] },
        { "id": 3442, "instances": [0] },
    ]);
    assert_eq!(registration["objects"], objects, "{shown}");
}

#[test]
fn a_sleeping_device_receives_its_request_when_it_wakes() {
    let service = Service::start_with(&[("SIGNALBOX_AWAKE_WINDOW_MS", "100")]);
    let setup = TestService::of(service, "127.0.9.41");
    let mut device = setup.device(ID, &["--queue-mode", "yes"]);
    device.wait_for("registered");
    let shown = until("a sleeping device", || {
        let shown = setup.caller.inspect(ID);
        (shown["presence"]["state"] == "ASLEEP").then_some(shown)
    });
    assert_eq!(shown["registration"]["queueMode"], true, "{shown}");
    let id = setup.caller.create_action(ID, &read("/3/0/0"));
    let waiting = setup.caller.action(&id);
    assert_eq!(waiting["status"], "SCHEDULED", "{waiting}");
    assert_eq!(waiting["sendAttemptsLeft"], 1, "{waiting}");
    device.command("update");
    let action = setup.caller.final_action(&id);
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
}

#[test]
fn values_are_read_as_the_device_holds_them() {
    let setup = TestService::new("127.0.9.43");
    let mut device = setup.registered();
    for (address, payload) in [
        ("/3/0/0", "Lamp Works"),
        ("/3/0/9", "80"),
        ("/3303/0/5700", "21.5"),
        ("/3311/0/5850", "false"),
        ("/3311/0/5851", "40"),
    ] {
        assert_eq!(setup.value_of(address), payload, "{address}");
    }
    device.command("set /3303/0/5700 -3.25");
    assert_eq!(device.wait_for("set"), "/3303/0/5700");
    assert_eq!(setup.value_of("/3303/0/5700"), "-3.25");
}

#[test]
fn a_value_of_every_type_is_read_written_and_read_back() {
    let setup = TestService::new("127.0.9.55");
    let _device = setup.registered();
    for (resource, first, data) in [
        (110, "initial value", "späte Änderung"),
        (120, "1024", "-9000000000"),
        (125, "9223372036854775808", "18446744073709551615"),
        (130, "3.14159", "-0.125"),
        (140, "true", "false"),
        (150, "ASNFZ4mrze8=", "AAH/"),
        (160, "2000-01-01T00:00:00Z", "2026-02-28T23:59:59Z"),
        (170, "3:0", "3303:1"),
        (180, "</3442>", "</3>,</3303/0>"),
    ] {
        let address = format!("/3442/0/{resource}");
        assert_eq!(setup.value_of(&address), first, "{address}");
        let action = setup.caller.perform(ID, &write(&address, data));
        assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
        assert_eq!(setup.value_of(&address), data, "{address}");
    }
}

#[test]
fn an_empty_value_is_a_value() {
    let setup = TestService::new("127.0.9.56");
    let _device = setup.registered();
    let clear = setup.caller.perform(ID, &execute("/3442/0/2"));
    assert_eq!(outcome(&clear), ("SUCCEEDED", "204"), "{clear}");
    for (resource, empty) in [
        (110, ""),
        (120, "0"),
        (125, "0"),
        (130, "0"),
        (140, "false"),
        (150, ""),
        (160, "1970-01-01T00:00:00Z"),
        (170, "65535:65535"),
        (180, ""),
    ] {
        let address = format!("/3442/0/{resource}");
        assert_eq!(setup.value_of(&address), empty, "{address}");
    }
}

#[test]
fn a_written_value_reaches_the_device_and_is_read_back() {
    let setup = TestService::new("127.0.9.44");
    let mut device = setup.registered();
    for (address, data) in [
        ("/3311/0/5850", "true"),
        ("/3311/0/5851", "75"),
        ("/3/0/15", "Asia/Tokyo"),
    ] {
        let action = setup.caller.perform(ID, &write(address, data));
        assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
        assert_eq!(device.wait_for("wrote"), format!("{address} {data}"));
        assert_eq!(setup.value_of(address), data);
    }
}

#[test]
fn an_executed_resource_runs_once_with_its_arguments() {
    let setup = TestService::new("127.0.9.45");
    let mut device = setup.registered();
    let mut reboot = execute("/3/0/4");
    reboot["data"] = json!("0='soon',7");
    let action = setup.caller.perform(ID, &reboot);
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    assert_eq!(device.wait_for("executed"), "/3/0/4 0='soon',7");
    assert_eq!(setup.value_of("/3/0/0"), "Lamp Works");
    assert_eq!(device.times("executed"), 1);
}

#[test]
fn a_missing_or_forbidden_resource_fails_with_its_code() {
    let setup = TestService::new("127.0.9.46");
    let mut device = setup.registered();
    for (body, code) in [
        (read("/3/0/10"), "404"),
        (read("/3303/7/5700"), "404"),
        (read("/3/0/4"), "405"),
        (write("/3303/0/5700", "1.5"), "405"),
        (execute("/3311/0/5850"), "405"),
    ] {
        let action = setup.caller.perform(ID, &body);
        assert_eq!(outcome(&action), ("FAILED", code), "{action}");
        assert!(action["resultData"]["errorMessage"].is_string(), "{action}");
    }
    assert_eq!(device.times("wrote"), 0);
    assert_eq!(device.times("executed"), 0);
}

#[test]
fn an_update_trigger_releases_waiting_requests() {
    let setup = TestService::new("127.0.9.48");
    let mut device = setup.registered();
    let waiting = when_active(write("/3311/0/5850", "true"));
    let waiting = setup.caller.create_action(ID, &waiting);
    let trigger = setup.caller.perform(ID, &execute("/1/0/8"));
    assert_eq!(outcome(&trigger), ("SUCCEEDED", "204"), "{trigger}");
    device.wait_for("updated");
    let action = setup.caller.final_action(&waiting);
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
}

#[test]
fn changes_by_an_update_are_shown() {
    let setup = TestService::new("127.0.9.49");
    let mut device = setup.registered();
    let action = setup.caller.perform(ID, &write("/1/0/1", "1200"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    device.wait_for("updated");
    assert_eq!(setup.caller.inspect(ID)["registration"]["lifetime"], 1200);
    device.command("create /3303/1");
    device.wait_for("updated");
    let shown = setup.caller.inspect(ID);
    let thermometers = json!({ "id": 3303, "version": "1.1", "instances": [0, 1] });
    assert_eq!(shown["registration"]["objects"][2], thermometers, "{shown}");
    assert_eq!(setup.value_of("/3303/1/5701"), "Cel");
}

#[test]
fn a_device_may_deregister_and_return_repeatedly() {
    let setup = TestService::new("127.0.9.51");
    let mut device = setup.registered();
    for _ in 0..3 {
        device.command("deregister");
        device.wait_for("deregistered");
        let shown = setup.caller.inspect(ID);
        assert_eq!(shown["presence"]["state"], "UNREGISTERED", "{shown}");
        assert_eq!(shown["registration"], Value::Null, "{shown}");
        let refused = setup.caller.try_action(ID, &read("/3/0/0")).expect(409);
        assert_eq!(
            refused["errors"][0]["code"], "DEVICE_NOT_REGISTERED",
            "{refused}"
        );
        device.command("reboot");
        device.wait_for("registered");
        assert_eq!(setup.value_of("/3/0/0"), "Lamp Works");
    }
    let first = |message: &String| message == "Lifecycle[DeviceFirstTimeRegistered]";
    let messages = setup.caller.log_messages();
    assert_eq!(messages.into_iter().filter(first).count(), 1);
}

#[test]
fn a_device_whose_registration_was_deleted_registers_again() {
    let setup = TestService::new("127.0.9.53");
    let mut device = setup.registered();
    let path = format!("{API}/devices/{ID}");
    assert_eq!(setup.caller.request("DELETE", &path).status, 204);
    setup.caller.create_device(ID, &setup.address);
    device.command("update");
    assert_eq!(device.wait_for("update-failed"), "404");
    device.wait_for("registered");
    assert_eq!(setup.value_of("/3/0/0"), "Lamp Works");
}

#[test]
fn a_registration_survives_a_kill_of_the_service() {
    let mut setup = TestService::new("127.0.9.54");
    let mut device = setup.registered();
    let waiting = when_active(execute("/3/0/4"));
    let waiting = setup.caller.create_action(ID, &waiting);
    setup.service.kill();
    setup.service.start_again();
    setup.caller.follow(&setup.service);
    device.command("update");
    device.wait_for("updated");
    let action = setup.caller.final_action(&waiting);
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    device.command("update");
    device.wait_for("updated");
    assert_eq!(setup.value_of("/3/0/0"), "Lamp Works");
    assert_eq!(device.times("executed"), 1, "sent once");
    assert_eq!(device.times("registered"), 1, "once, before the kill");
}

const ID: &str = "8944000000000000002";

/// A service, a caller of its API and one device it knows.
struct TestService {
    service: Service,
    caller: Caller,
    address: String,
}

impl TestService {
    fn new(address: &str) -> Self {
        Self::of(Service::start(), address)
    }

    fn of(service: Service, address: &str) -> Self {
        let caller = Caller::of_new_customer(&service, "Lamp Works");
        caller.create_device(ID, address);
        Self {
            service,
            caller,
            address: address.to_owned(),
        }
    }

    /// The known device, once it is registered.
    fn registered(&self) -> Device {
        let mut device = self.device(ID, &[]);
        device.wait_for("registered");
        device
    }

    fn device(&self, endpoint: &str, arguments: &[&str]) -> Device {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = root.join("target/interop/leshan");
        assert!(
            folder.exists(),
            "`cargo xtask prepare` makes {}",
            folder.display()
        );
        let folder = folder.display();
        let mut command = Command::new("java");
        command.args(QUICK_START);
        command.args(["-cp", &format!("{folder}/classes:{folder}/lib/*")]);
        command.args(["LeshanDevice", "--endpoint", endpoint]);
        command.args(["--bind", &self.address, "--server"]);
        command.arg(format!("coap://{}", self.service.coap));
        Device {
            program: Program::start(command.args(arguments)),
        }
    }

    /// What a read of the device returns now.
    fn value_of(&self, address: &str) -> String {
        let action = self.caller.perform(ID, &read(address));
        assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
        text(&action["resultData"]["payload"])
    }

    /// The values by path in the result of an action.
    fn map_of(&self, action: &Value) -> Value {
        assert_eq!(outcome(action), ("SUCCEEDED", "205"), "{action}");
        let payload = text(&action["resultData"]["payload"]);
        serde_json::from_str(&payload).unwrap()
    }
}

/// Options of a Java machine that lives for seconds, without the warnings of its libraries.
pub(crate) const QUICK_START: [&str; 5] = [
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xmx64m",
    "-Djava.net.preferIPv4Stack=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
];

/// A running `LeshanDevice`.
struct Device {
    program: Program,
}

impl Device {
    fn command(&mut self, command: &str) {
        self.program.write_line(command);
    }

    /// The details of the next event of this name; others are skipped.
    fn wait_for(&mut self, event: &str) -> String {
        self.program.wait_for(event, |line| {
            let (name, details) = line.split_once(' ').unwrap_or((line, ""));
            (name == event).then(|| details.to_owned())
        })
    }

    /// Suspends or resumes the device, which does nothing meanwhile and does not notice.
    fn signal(&self, signal: &str) {
        let mut kill = Command::new("kill");
        kill.arg(signal).arg(self.program.pid().to_string());
        assert!(kill.status().unwrap().success(), "{signal}");
    }

    /// How many events of this name the device has printed since it started.
    fn times(&mut self, event: &str) -> usize {
        let lines = self.program.printed().iter();
        lines
            .filter(|line| line.split(' ').next() == Some(event))
            .count()
    }
}
