//! Are objects, instances and multiple resources of Leshan read and written completely?

use serde_json::json;

use super::{ID, TestService};
use crate::vocabulary::lwm2m::{execute, outcome, read, write};

#[test]
fn an_instance_is_read_as_a_map_of_its_values() {
    let setup = TestService::new("127.0.9.80");
    let _device = setup.registered();
    let action = setup.caller.perform(ID, &read("/3311/0"));
    let values = json!({ "/3311/0/5850": false, "/3311/0/5851": 40 });
    assert_eq!(setup.map_of(&action), values, "{action}");
    let action = setup.caller.perform(ID, &write("/3311/0/5851", "41"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    let action = setup.caller.perform(ID, &read("/3311/0"));
    assert_eq!(setup.map_of(&action)["/3311/0/5851"], json!(41), "{action}");
}

#[test]
fn an_object_is_read_as_a_map_of_all_its_instances() {
    let setup = TestService::new("127.0.9.81");
    let mut device = setup.registered();
    device.command("create /3303/1");
    device.wait_for("updated");
    device.command("set /3303/1/5700 -7.5");
    device.wait_for("set");
    let action = setup.caller.perform(ID, &read("/3303"));
    let values = json!({
        "/3303/0/5700": 21.5,
        "/3303/0/5701": "Cel",
        "/3303/1/5700": -7.5,
        "/3303/1/5701": "Cel",
    });
    assert_eq!(setup.map_of(&action), values, "{action}");
}

#[test]
#[allow(clippy::approx_constant, reason = "it is what Leshan begins with")]
fn an_instance_with_values_of_every_type_is_read_completely() {
    let setup = TestService::new("127.0.9.82");
    let _device = setup.registered();
    let action = setup.caller.perform(ID, &read("/3442/0"));
    let values = json!({
        "/3442/0/110": "initial value",
        "/3442/0/120": 1024,
        "/3442/0/125": 9_223_372_036_854_775_808_u64,
        "/3442/0/130": 3.14159,
        "/3442/0/140": true,
        "/3442/0/150": "ASNFZ4mrze8=",
        "/3442/0/160": "2000-01-01T00:00:00Z",
        "/3442/0/170": "3:0",
        "/3442/0/180": "</3442>",
        "/3442/0/1110/0": "initial value",
        "/3442/0/1120/0": 1024,
        "/3442/0/1125/0": 9_223_372_036_854_775_808_u64,
        "/3442/0/1130/0": 3.14159,
        "/3442/0/1140/0": true,
        "/3442/0/1150/0": "ASNFZ4mrze8=",
        "/3442/0/1160/0": "2000-01-01T00:00:00Z",
        "/3442/0/1170/0": "3:0",
        "/3442/0/1180/0": "</3442>",
    });
    assert_eq!(setup.map_of(&action), values, "{action}");
}

#[test]
fn a_multiple_resource_is_read_as_a_map_of_its_instances() {
    let setup = TestService::new("127.0.9.83");
    let _device = setup.registered();
    let action = setup.caller.perform(ID, &read("/3/0/7"));
    let values = json!({ "/3/0/7/0": 3800, "/3/0/7/1": 5000 });
    assert_eq!(setup.map_of(&action), values, "{action}");
    assert_eq!(setup.value_of("/3/0/7/1"), "5000");
    let mut arguments = execute("/3442/0/3");
    arguments["data"] = json!("0='soon',7");
    let action = setup.caller.perform(ID, &arguments);
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    let action = setup.caller.perform(ID, &read("/3442/0/4"));
    let values = json!({ "/3442/0/4/0": "soon", "/3442/0/4/7": "" });
    assert_eq!(setup.map_of(&action), values, "{action}");
}

#[test]
fn a_write_to_a_multiple_resource_writes_its_first_instance() {
    let setup = TestService::new("127.0.9.84");
    let _device = setup.registered();
    for (resource, data, value) in [
        (1110, "späte Änderung", json!("späte Änderung")),
        (1120, "-7", json!(-7)),
        // Leshan treats the first bit of unsigned numbers as a sign, except in numbers of eight
        // bytes.
        (
            1125,
            "9223372036854775809",
            json!(9_223_372_036_854_775_809_u64),
        ),
        (1130, "-0.125", json!(-0.125)),
        (1140, "false", json!(false)),
        (1150, "AAH/", json!("AAH/")),
        (1160, "2026-02-28T23:59:59Z", json!("2026-02-28T23:59:59Z")),
        (1170, "3303:1", json!("3303:1")),
        (1180, "</3>", json!("</3>")),
    ] {
        let address = format!("/3442/0/{resource}");
        let action = setup.caller.perform(ID, &write(&address, data));
        assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
        let action = setup.caller.perform(ID, &read(&address));
        let values = json!({ format!("{address}/0"): value });
        assert_eq!(setup.map_of(&action), values, "{action}");
    }
}
