//! Can a caller list, create, delete and write whole object instances, and write attributes?

use std::collections::BTreeSet;

use harness::device::configuration::Configuration;
use harness::device::resource::{AnswerMode, Resource};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;
use protocol::lwm2m::version::EnablerVersion;
use serde_json::{Value as Json, json};

use crate::composite::speaking;
use crate::errors::check;
use crate::test_service::{ID, TestService, with};
use crate::values::every_type;
use crate::vocabulary::lwm2m::{observe_end, outcome, read, when_active, write};

#[test]
fn a_discover_lists_instances_resources_and_attributes() {
    let setup = TestService::with(&[], multiple());
    let attributes = json!({ "pmin": 10, "pmax": 60, "gt": 21.5 });
    let written = setup.perform(&write_attributes("/3303/0/5700", attributes));
    assert_eq!(outcome(&written), ("SUCCEEDED", "204"), "{written}");
    let listed = setup.perform(&discover("/3303"));
    let expected = json!({
        "/3303": {},
        "/3303/0": {},
        "/3303/0/5700": { "pmin": 10, "pmax": 60, "gt": 21.5 },
        "/3303/0/5701": {},
    });
    assert_eq!(payload(&listed), expected, "{listed}");
    let listed = setup.perform(&discover("/3/0/6"));
    let expected = json!({ "/3/0/6": { "dim": 2 }, "/3/0/6/0": {}, "/3/0/6/1": {} });
    assert_eq!(payload(&listed), expected, "{listed}");
    let missing = setup.perform(&discover("/3303/7"));
    assert_eq!(outcome(&missing), ("FAILED", "404"), "{missing}");
}

#[test]
fn a_discover_that_is_not_answered_with_links_fails() {
    let setup = TestService::new();
    let path = Path::resource(3, 0, 0);
    setup
        .device
        .answer_with(path, AnswerMode::Code(Code::CONTENT));
    let empty = setup.perform(&discover("/3/0/0"));
    assert_eq!(outcome(&empty), ("SUCCEEDED", "205"), "{empty}");
    assert_eq!(payload(&empty), json!({}), "{empty}");
}

#[test]
fn an_instance_is_created_written_and_deleted() {
    for formats in [
        &[ContentFormat::LWM2M_TLV][..],
        &[ContentFormat::SENML_CBOR],
        &[ContentFormat::SENML_JSON],
        &[ContentFormat::LWM2M_CBOR],
    ] {
        let mut configuration = Configuration::new(ID).speaking(formats);
        configuration.version = EnablerVersion::V1_2;
        let mut setup = TestService::with(&[], configuration);
        let values = json!({ "5700": -3.5, "5701": "Cel", "5603": "-40" });
        let created = setup.perform(&create("/3303", values.clone()));
        assert_eq!(
            outcome(&created),
            ("SUCCEEDED", "201"),
            "{formats:?} {created}"
        );
        assert_eq!(created["resultData"]["payload"], "/3303/1", "{created}");
        let told = json!({ "5603": "-40", "5700": "-3.5", "5701": "Cel" });
        assert_eq!(created["requestData"]["data"], told, "{created}");
        let created = setup.perform(&create("/3303/7", values));
        assert_eq!(
            outcome(&created),
            ("SUCCEEDED", "201"),
            "{formats:?} {created}"
        );
        let held = setup.device.value(Path::resource(3303, 7, 5700));
        assert_eq!(held, Value::Float(-3.5));
        setup.device.update();
        let objects = &setup.caller.inspect(ID)["registration"]["objects"];
        let of_temperature = json!({ "id": 3303, "instances": [0, 1, 7] });
        let objects = objects.as_array().unwrap();
        assert!(objects.contains(&of_temperature), "{objects:?}");
        let deleted = setup.perform(&delete("/3303/1"));
        assert_eq!(outcome(&deleted), ("SUCCEEDED", "202"), "{deleted}");
        let gone = setup.perform(&read("/3303/1"));
        assert_eq!(outcome(&gone), ("FAILED", "404"), "{gone}");
    }
}

#[test]
fn an_instance_that_exists_or_lasts_is_neither_created_nor_deleted() {
    let setup = TestService::new();
    let created = setup.perform(&create("/3303/0", json!({ "5700": "1" })));
    assert_eq!(outcome(&created), ("FAILED", "400"), "{created}");
    let deleted = setup.perform(&delete("/3/0"));
    assert_eq!(outcome(&deleted), ("FAILED", "405"), "{deleted}");
}

#[test]
fn a_resource_instance_is_deleted_alone() {
    let setup = TestService::with(&[], multiple());
    let deleted = setup.perform(&delete("/3/0/6/1"));
    assert_eq!(outcome(&deleted), ("SUCCEEDED", "202"), "{deleted}");
    let left = setup.perform(&read("/3/0/6"));
    assert_eq!(payload(&left), json!({ "/3/0/6/0": 1 }), "{left}");
}

#[test]
fn an_instance_of_a_resource_is_written_in_an_instance_that_was_created() {
    let setup = TestService::with(&[], every_type(Configuration::new(ID)));
    let values = json!({ "110": "new", "1110/0": "zero", "1110/2": "two" });
    let created = setup.perform(&create("/3442/5", values));
    assert_eq!(outcome(&created), ("SUCCEEDED", "201"), "{created}");
    // One that is there is replaced, one that is not is created.
    for (address, text) in [("/3442/5/1110/2", "TWO"), ("/3442/5/1110/7", "seven")] {
        let written = setup.perform(&write(address, text));
        assert_eq!(outcome(&written), ("SUCCEEDED", "204"), "{written}");
    }
    let held = payload(&setup.perform(&read("/3442/5/1110")));
    let expected = json!({
        "/3442/5/1110/0": "zero", "/3442/5/1110/2": "TWO", "/3442/5/1110/7": "seven",
    });
    assert_eq!(held, expected);
    let one = setup.perform(&read("/3442/5/1110/7"));
    assert_eq!(one["resultData"]["payload"], "seven", "{one}");
}

#[test]
fn the_rights_and_the_owner_of_an_object_are_written_like_any_values() {
    let mut configuration = Configuration::new(ID);
    let rights = [
        (Path::resource(2, 0, 0), 3303),
        (Path::resource(2, 0, 1), 0),
        (Path::resource_instance(2, 0, 2, 1111), 15),
        (Path::resource(2, 0, 3), 1111),
    ];
    let rights = rights.map(|(path, value)| Resource::holding(path, Value::Integer(value)));
    configuration.resources.extend(rights);
    let setup = TestService::with(&[], configuration);
    let granted = setup.perform(&write_instance("/2/0", json!({ "2/2222": 1 })));
    assert_eq!(outcome(&granted), ("SUCCEEDED", "204"), "{granted}");
    let passed_on = setup.perform(&write("/2/0/3", "2222"));
    assert_eq!(outcome(&passed_on), ("SUCCEEDED", "204"), "{passed_on}");
    let held = payload(&setup.perform(&read("/2/0")));
    let expected = json!({
        "/2/0/0": 3303, "/2/0/1": 0, "/2/0/2/1111": 15, "/2/0/2/2222": 1, "/2/0/3": 2222,
    });
    assert_eq!(held, expected);
}

#[test]
fn every_operation_is_created_for_many_devices_and_by_a_schedule() {
    const MANY: &str = "/management-api/v1/integrate/devices/actions/LWM2M";
    const SCHEDULES: &str = "/management-api/v1/schedules";
    let setup = TestService::new();
    let bodies = [
        create("/3303/1", json!({ "5700": "1.5" })),
        delete("/3303/1"),
        discover("/3303"),
        with(
            write_instance("/1/0", json!({ "1": "600" })),
            "replace",
            true,
        ),
        write_attributes("/3303/0/5700", json!({ "pmin": "5", "st": "0.5" })),
        json!({ "action": "read-composite", "resourceAddresses": ["/3/0", "/6"] }),
        json!({ "action": "write-composite", "data": { "/3/0/14": "+02:00" } }),
        json!({ "action": "observe-composite-start", "resourceAddresses": ["/"] }),
        json!({ "action": "observe-composite-end", "resourceAddresses": ["/"] }),
    ];
    for body in bodies {
        let body = when_active(body);
        let named = with(body.clone(), "deviceIds", json!([ID]));
        let answer = setup.caller.post(MANY, &named).expect(202);
        let id = answer["acceptedRequests"][0]["requestId"].as_str().unwrap();
        let kept = &setup.caller.action(id)["requestData"];
        for (name, value) in body.as_object().unwrap() {
            assert_eq!(kept[name], *value, "{kept}");
        }
        let selected = with(body.clone(), "filter", json!({}));
        let answer = setup.caller.post(MANY, &selected).expect(202);
        assert_eq!(answer["matched"], 1, "{answer}");
        let request = with(selected, "protocol", "LWM2M");
        let schedule = json!({ "every": 86_400, "request": request });
        let created = setup.caller.post(SCHEDULES, &schedule).expect(201);
        let path = format!("{SCHEDULES}/{}", created["id"].as_str().unwrap());
        let shown = &setup.caller.request("GET", &path).expect(200)["request"];
        for (name, value) in body.as_object().unwrap() {
            assert_eq!(shown[name], *value, "{shown}");
        }
        let cancelled = format!("/management-api/v1/integrate/devices/{ID}/actions/requests");
        setup.caller.request("DELETE", &cancelled).expect(200);
    }
}

#[test]
fn the_bodies_in_the_description_of_the_api_are_performed() {
    let setup = TestService::with(&[], speaking(&[ContentFormat::SENML_CBOR]));
    let described = setup.caller.request("GET", "/openapi.json").expect(200);
    let cases = described["components"]["schemas"]["Lwm2mAction"]["oneOf"].as_array();
    let bodies = cases.unwrap().iter();
    let bodies = bodies.flat_map(|case| case["examples"].as_array().unwrap());
    let mut operations = BTreeSet::new();
    for body in bodies {
        let done = setup.perform(body);
        assert_eq!(done["status"], "SUCCEEDED", "{done}");
        operations.insert(body["action"].as_str().unwrap().to_owned());
    }
    // An example ends what none of them begins.
    let ended = setup.perform(&observe_end("/3303/0/5701"));
    assert_eq!(ended["status"], "SUCCEEDED", "{ended}");
    assert_eq!(operations.len(), 13, "{operations:?}");
}

#[test]
fn a_partial_write_keeps_other_resources_and_a_replacement_does_not() {
    for format in [
        ContentFormat::LWM2M_TLV,
        ContentFormat::LWM2M_JSON,
        ContentFormat::SENML_CBOR,
        ContentFormat::SENML_JSON,
    ] {
        let mut configuration = Configuration::new(ID).speaking(&[format]);
        let path = Path::resource(1, 0, 2);
        let spare = Resource::holding(path, Value::Integer(7));
        configuration.resources.push(spare);
        let setup = TestService::with(&[], configuration);
        let body = write_instance("/1/0", json!({ "1": 3_600 }));
        let written = setup.perform(&body);
        assert_eq!(
            outcome(&written),
            ("SUCCEEDED", "204"),
            "{format} {written}"
        );
        assert_eq!(written["requestData"]["replace"], false, "{written}");
        assert_eq!(
            setup.device.value(Path::resource(1, 0, 1)),
            Value::Integer(3_600)
        );
        assert_eq!(setup.device.value(path), Value::Integer(7));
        let replaced = setup.perform(&with(body, "replace", true));
        assert_eq!(
            outcome(&replaced),
            ("SUCCEEDED", "204"),
            "{format} {replaced}"
        );
        let left = setup.device.with(move |device| device.value(path).cloned());
        assert_eq!(left, None);
    }
}

#[test]
fn every_value_that_does_not_fit_is_named_and_nothing_is_sent() {
    let setup = TestService::new();
    let values = json!({ "5700": "warm", "5701": "Cel", "5601": "cold" });
    let failed = setup.perform(&create("/3303", values));
    assert_eq!(failed["status"], "FAILED", "{failed}");
    let why = failed["resultData"]["errorMessage"].as_str().unwrap();
    assert!(
        why.contains("/3303/0/5700") && why.contains("/3303/0/5601"),
        "{why}"
    );
    assert!(!why.contains("5701"), "{why}");
    let entry = setup.caller.log_entries().remove(0);
    assert_eq!(
        entry["message"], "DeviceController[InvalidDataType]",
        "{entry}"
    );
    let failed = setup.perform(&write_attributes("/3/0/14", json!({ "st": 2, "edge": 1 })));
    let why = failed["resultData"]["errorMessage"].as_str().unwrap();
    assert!(why.contains("edge"), "LwM2M 1.1 does not have it: {why}");
    let failed = setup.perform(&write_attributes("/3/0/14", json!({ "st": 2 })));
    let why = failed["resultData"]["errorMessage"].as_str().unwrap();
    assert!(why.contains("STRING") && why.contains("st"), "{why}");
    assert!(setup.device.performed().is_empty());
}

#[test]
fn an_attribute_is_removed_without_a_value() {
    let setup = TestService::new();
    let attributes = |attributes| write_attributes("/3303/0", attributes);
    setup.perform(&attributes(json!({ "pmin": 10, "pmax": 60 })));
    let removed = setup.perform(&attributes(json!({ "pmax": null })));
    assert_eq!(outcome(&removed), ("SUCCEEDED", "204"), "{removed}");
    assert_eq!(
        removed["requestData"]["attributes"],
        json!({ "pmax": null })
    );
    let listed = payload(&setup.perform(&discover("/3303/0")));
    assert_eq!(listed["/3303/0"], json!({ "pmin": 10 }), "{listed}");
}

#[test]
fn every_fault_of_a_body_is_named() {
    let setup = TestService::new();
    let cases: [(Json, &[(&str, &str)]); 7] = [
        (
            json!({ "action": "write-instance", "resourceAddress": "/3303/0/5700",
                    "data": { "x": 1, "6": [1] }, "replace": "yes", "attributes": {} }),
            &[
                ("WRONG_TYPE", "data.6"),
                ("WRONG_TYPE", "replace"),
                ("INVALID_VALUE", "attributes"),
                ("INVALID_VALUE", "resourceAddress"),
            ],
        ),
        (
            json!({ "action": "write-instance", "resourceAddress": "/3303",
                    "data": { "x": 1, "6": 2, "6/1": 3 } }),
            &[
                ("INVALID_VALUE", "resourceAddress"),
                ("REPEATED", "data.6/1"),
                ("INVALID_VALUE", "data.x"),
            ],
        ),
        (
            json!({ "action": "write-attributes", "resourceAddress": "/3303/0",
                    "attributes": { "pmin": 60, "pmax": 10, "gt": 5, "speed": 1 } }),
            &[
                ("INVALID_VALUE", "attributes.speed"),
                ("INVALID_VALUE", "attributes.pmin"),
            ],
        ),
        (
            json!({ "action": "write-attributes", "resourceAddress": "/3303/0",
                    "attributes": { "gt": 5 } }),
            &[("INVALID_VALUE", "attributes.gt")],
        ),
        (
            json!({ "action": "create", "resourceAddress": "/3303/1", "data": {} }),
            &[("OUT_OF_RANGE", "data")],
        ),
        (
            json!({ "action": "delete", "resourceAddress": "/3303", "data": "1" }),
            &[
                ("INVALID_VALUE", "data"),
                ("INVALID_VALUE", "resourceAddress"),
            ],
        ),
        (
            json!({ "action": "discover" }),
            &[("REQUIRED", "resourceAddress")],
        ),
    ];
    for (body, faults) in cases {
        check(&setup.caller.try_action(ID, &body), 400, faults);
    }
}

#[test]
fn a_request_survives_a_crash_with_its_values() {
    let mut setup = TestService::new();
    let bodies = [
        create("/3303/1", json!({ "5700": "1.5" })),
        write_attributes("/3303/0/5700", json!({ "pmin": 5, "lt": -0.5 })),
        with(
            write_instance("/1/0", json!({ "1": "600" })),
            "replace",
            true,
        ),
        discover("/3303"),
        delete("/3303/1"),
    ];
    let create = |body: &Json| setup.caller.create_action(ID, &when_active(body.clone()));
    let ids: Vec<String> = bodies.iter().map(create).collect();
    setup.crash();
    for (id, body) in ids.iter().zip(&bodies) {
        let kept = setup.caller.action(id);
        assert_eq!(kept["requestData"]["action"], body["action"], "{kept}");
        assert_eq!(kept["status"], "SCHEDULED", "{kept}");
    }
    setup.device.update();
    for id in &ids {
        let done = setup.caller.final_action(id);
        assert_eq!(done["status"], "SUCCEEDED", "{done}");
    }
}

impl TestService {
    /// A request to the device of the test, once it is final.
    pub(crate) fn perform(&self, body: &Json) -> Json {
        self.caller.perform(ID, body)
    }
}

/// The JSON in the payload of a result.
pub(crate) fn payload(action: &Json) -> Json {
    let payload = action["resultData"]["payload"].as_str();
    serde_json::from_str(payload.unwrap_or_else(|| panic!("no payload: {action}"))).unwrap()
}

pub(crate) fn discover(address: &str) -> Json {
    json!({ "action": "discover", "resourceAddress": address })
}

pub(crate) fn write_attributes(address: &str, attributes: Json) -> Json {
    json!({ "action": "write-attributes", "resourceAddress": address, "attributes": attributes })
}

fn create(address: &str, data: Json) -> Json {
    json!({ "action": "create", "resourceAddress": address, "data": data })
}

fn delete(address: &str) -> Json {
    json!({ "action": "delete", "resourceAddress": address })
}

fn write_instance(address: &str, data: Json) -> Json {
    json!({ "action": "write-instance", "resourceAddress": address, "data": data })
}

/// A device with a resource of two instances.
fn multiple() -> Configuration {
    let mut configuration = Configuration::new(ID);
    let instances = [(0, 1), (1, 5)].map(|(id, value)| {
        let path = Path::resource_instance(3, 0, 6, id);
        Resource::holding(path, Value::Integer(value))
    });
    configuration.resources.extend(instances);
    configuration
}
