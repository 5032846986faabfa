//! Are several values exchanged in one request, and is one of several found by its path?

use harness::device::configuration::Configuration;
use harness::device::resource::Resource;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;
use serde_json::{Value as Json, json};

use crate::test_service::{ID, TestService};
use crate::values::{OBJECT, every_type};
use crate::vocabulary::lwm2m::{outcome, read};

#[test]
fn an_instance_is_read_as_a_map_of_its_values() {
    let setup = TestService::with(&[], several());
    let expected = json!({
        "/3442/0/110": "Grüße",
        "/3442/0/120": -7,
        "/3442/0/125": 7,
        "/3442/0/130": 21.5,
        "/3442/0/140": false,
        "/3442/0/150": "AAH/",
        "/3442/0/160": "2026-01-01T00:00:00Z",
        "/3442/0/170": "3:0",
        "/3442/0/1110/0": "zero",
        "/3442/0/1110/3": "three",
    });
    assert_eq!(map(&setup, "/3442/0"), expected);
    let values = &setup.caller.inspect(ID)["values"];
    let known = |path: &str| {
        let mut values = values.as_array().unwrap().iter();
        values.find(|known| known["path"] == path).cloned()
    };
    for (path, value) in expected.as_object().unwrap() {
        assert_eq!(known(path).unwrap()["value"], *value, "{path}");
    }
}

#[test]
fn an_instance_with_executable_resources_only_is_read_as_an_empty_map() {
    let mut configuration = Configuration::new(ID);
    let only_deed = Resource::executable(Path::resource(3, 1, 4));
    configuration.resources.push(only_deed);
    let setup = TestService::with(&[], configuration);
    assert_eq!(map(&setup, "/3/1"), json!({}));
}

#[test]
fn values_of_an_unknown_object_are_bytes() {
    let mut configuration = Configuration::new(ID);
    let path = Path::resource(42_767, 0, 1);
    let unknown = Resource::holding(path, Value::String("hello".into()));
    configuration.resources.push(unknown);
    let setup = TestService::with(&[], configuration);
    assert_eq!(map(&setup, "/42767/0"), json!({ "/42767/0/1": "aGVsbG8=" }));
}

/// The value read from an object, an instance or a multiple resource.
fn map(setup: &TestService, address: &str) -> Json {
    let action = setup.caller.perform(ID, &read(address));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    let payload = action["resultData"]["payload"].as_str();
    serde_json::from_str(payload.unwrap_or_else(|| panic!("no payload: {action}"))).unwrap()
}

/// A device that has a resource of each type, and one with several instances.
fn several() -> Configuration {
    let mut configuration = every_type(Configuration::new(ID));
    let multiple = [(0, "zero"), (3, "three")].map(|(id, text)| {
        let path = Path::resource_instance(OBJECT, 0, 1110, id);
        Resource::holding(path, Value::String(text.into()))
    });
    configuration.resources.extend(multiple);
    configuration
}
