//! Are the notifications of a device on Leshan received for as long as a path is observed?

use serde_json::{Value, json};

use super::{Device, ID, TestService};
use crate::vocabulary::caller::{API, text};
use crate::vocabulary::lwm2m::{observe_end, observe_start, outcome, read};
use crate::vocabulary::poll::until;

const TEMPERATURE: &str = "/3303/0/5700";

#[test]
fn each_new_value_of_an_observed_path_is_stored() {
    let setup = TestService::new("127.0.9.60");
    let mut device = setup.registered();
    let started = setup.observe(TEMPERATURE);
    assert_eq!(started["resultData"]["payload"], "21.5", "{started}");
    assert_eq!(device.wait_for("observed"), TEMPERATURE);
    assert_eq!(setup.observed(), [TEMPERATURE]);
    let values = [22.5, -3.25, 0.0, 1e-3];
    for value in values {
        device.command(&format!("set {TEMPERATURE} {value}"));
        setup.until_known(TEMPERATURE, &json!(value));
    }
    let notified = setup.notified(TEMPERATURE);
    let expected = values.map(|value| json!({ TEMPERATURE: value }));
    assert_eq!(notified, expected);
}

#[test]
fn an_observed_instance_notifies_which_value_is_new() {
    let setup = TestService::new("127.0.9.61");
    let mut device = setup.registered();
    let started = setup.observe("/3311/0");
    let first = json!({ "/3311/0/5850": false, "/3311/0/5851": 40 });
    assert_eq!(setup.map_of(&started), first, "{started}");
    device.command("set /3311/0/5851 90");
    setup.until_known("/3311/0/5851", &json!(90));
    device.command("set /3311/0/5850 true");
    setup.until_known("/3311/0/5850", &json!(true));
    let expected = [
        json!({ "/3311/0/5850": false, "/3311/0/5851": 90 }),
        json!({ "/3311/0/5850": true, "/3311/0/5851": 90 }),
    ];
    assert_eq!(setup.notified("/3311/0"), expected);
}

#[test]
fn an_observed_multiple_resource_notifies_all_its_instances() {
    let setup = TestService::new("127.0.9.62");
    let mut device = setup.registered();
    let started = setup.observe("/3/0/7");
    let first = json!({ "/3/0/7/0": 3800, "/3/0/7/1": 5000 });
    assert_eq!(setup.map_of(&started), first, "{started}");
    device.command("set /3/0/7 3600");
    setup.until_known("/3/0/7/0", &json!(3600));
    let expected = [json!({ "/3/0/7/0": 3600, "/3/0/7/1": 5000 })];
    assert_eq!(setup.notified("/3/0/7"), expected);
}

#[test]
fn an_ended_observation_is_not_notified() {
    let setup = TestService::new("127.0.9.63");
    let mut device = setup.registered();
    setup.observe(TEMPERATURE);
    setup.observe("/3311/0/5851");
    let ended = setup.caller.perform(ID, &observe_end(TEMPERATURE));
    assert_eq!(outcome(&ended), ("SUCCEEDED", "205"), "{ended}");
    assert_eq!(device.wait_for("unobserved"), TEMPERATURE);
    assert_eq!(setup.observed(), ["/3311/0/5851"]);
    device.command(&format!("set {TEMPERATURE} 30.5"));
    device.command("set /3311/0/5851 41");
    setup.until_known("/3311/0/5851", &json!(41));
    assert_eq!(setup.notified(TEMPERATURE), Vec::<Value>::new());
    assert_eq!(setup.value_of(TEMPERATURE), "30.5");
}

#[test]
fn observing_a_missing_path_or_ending_no_observation_fails() {
    let setup = TestService::new("127.0.9.64");
    let mut device = setup.registered();
    for (address, code) in [("/3/0/4", "405"), ("/3/0/10", "404")] {
        let action = setup.caller.perform(ID, &observe_start(address));
        assert_eq!(outcome(&action), ("FAILED", code), "{action}");
    }
    let action = setup.caller.perform(ID, &observe_end(TEMPERATURE));
    assert_eq!(action["status"], "FAILED", "{action}");
    let why = text(&action["resultData"]["errorMessage"]);
    assert!(why.contains("not observed"), "{why}");
    assert_eq!(device.times("observed"), 0);
    assert_eq!(setup.observed(), Vec::<String>::new());
}

#[test]
fn an_observation_survives_a_reboot_of_the_device() {
    let setup = TestService::new("127.0.9.65");
    let mut device = setup.registered();
    setup.observe(TEMPERATURE);
    device.wait_for("observed");
    device.command("reboot");
    setup.until_requested_again(&mut device);
    device.command(&format!("set {TEMPERATURE} 25.5"));
    setup.until_known(TEMPERATURE, &json!(25.5));
}

#[test]
fn an_observation_survives_an_unreachable_device() {
    let setup = TestService::new("127.0.9.69");
    let mut device = setup.device(ID, &["--lifetime", "4"]);
    device.wait_for("registered");
    setup.observe(TEMPERATURE);
    device.wait_for("observed");
    device.signal("-STOP");
    until("the end of the lifetime", || {
        setup.caller.inspect(ID)["registration"]
            .is_null()
            .then_some(())
    });
    device.signal("-CONT");
    setup.until_requested_again(&mut device);
    device.command(&format!("set {TEMPERATURE} 25.5"));
    setup.until_known(TEMPERATURE, &json!(25.5));
}

#[test]
fn an_observation_survives_a_kill_of_the_service() {
    let mut setup = TestService::new("127.0.9.66");
    let mut device = setup.registered();
    setup.observe(TEMPERATURE);
    device.command(&format!("set {TEMPERATURE} 25.5"));
    setup.until_known(TEMPERATURE, &json!(25.5));
    setup.service.kill();
    setup.service.start_again();
    setup.caller.follow(&setup.service);
    device.command(&format!("set {TEMPERATURE} 26.5"));
    setup.until_known(TEMPERATURE, &json!(26.5));
    assert_eq!(device.times("observed"), 1, "it was not requested again");
    let expected = [25.5, 26.5].map(|value| json!({ TEMPERATURE: value }));
    assert_eq!(setup.notified(TEMPERATURE), expected);
}

#[test]
fn an_unexpected_notification_is_rejected() {
    let setup = TestService::new("127.0.9.67");
    let mut device = setup.registered();
    setup.observe(TEMPERATURE);
    device.wait_for("observed");
    let path = format!("{API}/devices/{ID}");
    assert_eq!(setup.caller.request("DELETE", &path).status, 204);
    setup.caller.create_device(ID, &setup.address);
    device.command("update");
    device.wait_for("registered");
    device.command(&format!("set {TEMPERATURE} 25.5"));
    assert_eq!(device.wait_for("unobserved"), TEMPERATURE, "it was reset");
    assert_eq!(setup.observed(), Vec::<String>::new());
    assert_eq!(setup.notified(TEMPERATURE), Vec::<Value>::new());
}

#[test]
fn an_observation_survives_a_deregistration_of_the_device() {
    let setup = TestService::new("127.0.9.68");
    let mut device = setup.registered();
    setup.observe(TEMPERATURE);
    device.wait_for("observed");
    device.command("deregister");
    device.wait_for("deregistered");
    let refused = setup.caller.try_action(ID, &read(TEMPERATURE)).expect(409);
    assert_eq!(
        refused["errors"][0]["code"], "DEVICE_NOT_REGISTERED",
        "{refused}"
    );
    device.command("reboot");
    setup.until_requested_again(&mut device);
    device.command(&format!("set {TEMPERATURE} 18.5"));
    setup.until_known(TEMPERATURE, &json!(18.5));
}

impl TestService {
    /// Begins an observation, which must succeed.
    fn observe(&self, address: &str) -> Value {
        let started = self.caller.perform(ID, &observe_start(address));
        assert_eq!(outcome(&started), ("SUCCEEDED", "205"), "{started}");
        started
    }

    /// Waits until the observation of the temperature was requested again and answered.
    fn until_requested_again(&self, device: &mut Device) {
        assert_eq!(device.wait_for("observed"), TEMPERATURE);
        until("an observation the device knows of", || {
            (self.observed() == [TEMPERATURE]).then_some(())
        });
    }

    /// The paths of the established observations.
    fn observed(&self) -> Vec<String> {
        let shown = self.caller.inspect(ID);
        let observations = shown["observations"].as_array().unwrap().iter();
        let held = observations.filter(|observation| observation["state"] == "HELD");
        held.map(|observation| text(&observation["path"])).collect()
    }

    /// Waits until a value is the last known one.
    fn until_known(&self, path: &str, value: &Value) {
        until(&format!("{path} is {value}"), || {
            let known = self.caller.known_value(ID, path)?;
            (known["value"] == *value).then_some(())
        });
    }

    /// The notified values of an observed path, oldest first.
    fn notified(&self, path: &str) -> Vec<Value> {
        self.caller.notified(ID, path)
    }
}
