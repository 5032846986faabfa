//! Does the OpenAPI document describe all that the routes do, and nothing else?

pub(super) mod judge;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::golden;
use super::test_service::TestService;
use crate::api::access::Access;
use crate::api::openapi::{ShownSettings, document};
use crate::api::routes::{ROUTES, Route};
use crate::api::words::Word;
use crate::config::Config;

use judge::faults;

const JOB: &str = "/management-api/v1/jobs/{job}";
const IMAGES: &str = "/management-api/v1/firmware/images";
const CAMPAIGNS: &str = "/management-api/v1/firmware/campaigns";
const SCHEDULES: &str = "/management-api/v1/schedules";
const SCHEDULE: &str = "/management-api/v1/schedules/{schedule}";

/// The golden bodies, each with its path, method and status.
const GOLDEN: &[(&str, &str, &str, u16)] = &[
    ("webhook", WEBHOOKS, "post", 201),
    ("webhook", WEBHOOK, "patch", 200),
    ("webhook_followed", WEBHOOK, "get", 200),
    ("webhook_tested", WEBHOOK_TEST, "post", 200),
    ("webhook_unreachable", WEBHOOK_TEST, "post", 200),
    ("dead_letters", DEAD_LETTERS, "get", 200),
    ("broker", BROKERS, "post", 201),
    ("broker", BROKER, "patch", 200),
    ("broker_followed", BROKER, "get", 200),
    ("webhook_tested", BROKER_TEST, "post", 200),
    ("dead_letters", BROKER_DEAD_LETTERS, "get", 200),
    ("plugin", PLUGINS_OF_PARTNER, "post", 201),
    ("plugin_followed", PLUGIN, "get", 200),
    ("plugin_restarted", PLUGIN_RESTART, "post", 200),
    ("plugin_not_restarted", PLUGIN_RESTART, "post", 200),
    ("dead_letters", PLUGIN_DEAD_LETTERS, "get", 200),
    ("dead_letters", SMS_DEAD_LETTERS, "get", 200),
    ("sms_forwarder", SMS_FORWARDER, "put", 200),
    ("sms_forwarder_followed", SMS_FORWARDER, "get", 200),
    ("sms_submitted", SMS_OF_SIM, "post", 201),
    ("sms_page", SMS_OF_SIM, "get", 200),
    ("sms_pending", SMS, "get", 200),
    ("sms_failed", SMS, "get", 200),
    ("sms_of_device", SMS, "get", 200),
    (
        "sms_received",
        "/operator-api/v1/network/sms/mo",
        "post",
        202,
    ),
    (
        "sms_reported",
        "/operator-api/v1/network/sms/dlr",
        "post",
        202,
    ),
    ("sms_taken", "/operator-api/v1/network/sms/mt", "post", 200),
    ("action_accepted", BY_UDP, "post", 202),
    ("action_accepted", BY_COAP, "post", 202),
    ("action_accepted", BY_LWM2M, "post", 202),
    ("action_followed", REQUEST, "get", 200),
    ("action_woken", REQUEST, "get", 200),
    (
        "wake_up_message",
        "/management-api/v1/sms/wakeup",
        "get",
        200,
    ),
    ("action_page", REQUESTS, "get", 200),
    ("action_page", ACTIVE, "get", 200),
    ("action_page", ARCHIVED, "get", 200),
    ("actions_accepted", MANY_BY_UDP, "post", 202),
    ("job", JOB, "get", 200),
    ("job", JOB, "delete", 200),
    ("job_created", MANY_BY_UDP, "post", 202),
    (
        "job_devices",
        "/management-api/v1/jobs/{job}/devices",
        "get",
        200,
    ),
    ("job_dry_run", MANY_BY_UDP, "post", 200),
    ("schedule", SCHEDULES, "post", 201),
    ("schedule", SCHEDULE, "patch", 200),
    ("schedule_daily", SCHEDULES, "post", 201),
    ("schedule_with_request", SCHEDULE, "get", 200),
    ("schedule_with_filter", SCHEDULE, "get", 200),
    ("firmware_image", IMAGES, "post", 201),
    ("firmware_campaign", CAMPAIGNS, "post", 201),
    (
        "firmware_campaign_devices",
        "/management-api/v1/firmware/campaigns/{campaign}/devices",
        "get",
        200,
    ),
    ("actions_accepted", MANY_BY_COAP, "post", 202),
    ("actions_accepted", MANY_BY_LWM2M, "post", 202),
    ("device", DEVICES, "post", 201),
    ("device", DEVICE, "patch", 200),
    ("device_page", DEVICES, "get", 200),
    ("device_inspector_asleep", DEVICE, "get", 200),
    ("device_inspector_plain", DEVICE, "get", 200),
    ("device_inspector_unheard", DEVICE, "get", 200),
    ("bootstrap_configuration", BOOTSTRAP, "get", 200),
    ("bootstrap_configuration", BOOTSTRAP, "put", 200),
    ("bootstrap_configuration", BOOTSTRAP_OF_DEVICE, "put", 200),
    ("failure", DEVICES, "post", 400),
    ("object_definition", OBJECTS, "put", 200),
    ("object_definition", OBJECTS, "put", 201),
    ("object_definition_whole", OBJECT, "get", 200),
    ("object_definitions", OBJECTS, "get", 200),
    ("log_statistics", LOG_STATISTICS, "get", 200),
    ("messages", MESSAGES, "get", 200),
    ("activity", "/management-api/v1/activity", "get", 200),
    ("series", SERIES, "get", 200),
    ("series_truncated", SERIES, "get", 200),
    ("dtls", "/management-api/v1/dtls", "get", 200),
    ("certificate_authorities", AUTHORITIES, "get", 200),
    ("certificate_authorities", AUTHORITIES, "put", 200),
];

const AUTHORITIES: &str = "/management-api/v1/dtls/certificate-authorities";

/// The golden parts of bodies, each with its schema.
const GOLDEN_PARTS: &[(&str, &str)] = &[
    ("action_failed", "ActionRequest"),
    ("action_over_coap", "ActionRequest"),
    ("action_over_coap_bare", "ActionRequest"),
    ("action_over_udp", "ActionRequest"),
    ("action_scheduled", "ActionRequest"),
    ("action_succeeded", "ActionRequest"),
    ("log_entry", "LogEntry"),
    ("log_entry_with_payload", "LogEntry"),
    ("node_active", "Node"),
    ("node_standby", "Node"),
    ("stranger", "Stranger"),
];

const DEVICES: &str = "/management-api/v1/devices";
const DEVICE: &str = "/management-api/v1/devices/{device}";
const BOOTSTRAP: &str = "/management-api/v1/bootstrap";
const BOOTSTRAP_OF_DEVICE: &str = "/management-api/v1/devices/{device}/bootstrap";
const LOG_STATISTICS: &str = "/management-api/v1/administrationLogs/stats";
const MESSAGES: &str = "/management-api/v1/devices/{device}/messages";
const SERIES: &str = "/management-api/v1/devices/{device}/series";
const OBJECTS: &str = "/management-api/v1/lwm2m/objects";
const OBJECT: &str = "/management-api/v1/lwm2m/objects/{object}/{version}";
const REQUESTS: &str = "/management-api/v1/integrate/devices/actions/requests";
const ACTIVE: &str = "/management-api/v1/integrate/devices/actions/requests/active";
const ARCHIVED: &str = "/management-api/v1/integrate/devices/actions/requests/archived";
const BY_UDP: &str = "/management-api/v1/integrate/devices/{device}/actions/UDP";
const BY_COAP: &str = "/management-api/v1/integrate/devices/{device}/actions/COAP";
const BY_LWM2M: &str = "/management-api/v1/integrate/devices/{device}/actions/LWM2M";
const MANY_BY_UDP: &str = "/management-api/v1/integrate/devices/actions/UDP";
const MANY_BY_COAP: &str = "/management-api/v1/integrate/devices/actions/COAP";
const MANY_BY_LWM2M: &str = "/management-api/v1/integrate/devices/actions/LWM2M";
const WEBHOOKS: &str = "/management-api/v1/integrate/clouds/webhooks";
const WEBHOOK: &str = "/management-api/v1/integrate/clouds/webhooks/{webhook}";
const WEBHOOK_TEST: &str = "/management-api/v1/integrate/clouds/webhooks/{webhook}/test";
const DEAD_LETTERS: &str = "/management-api/v1/integrate/clouds/webhooks/{webhook}/deadletters";
const BROKERS: &str = "/management-api/v1/integrate/clouds/mqtt";
const BROKER: &str = "/management-api/v1/integrate/clouds/mqtt/{broker}";
const BROKER_TEST: &str = "/management-api/v1/integrate/clouds/mqtt/{broker}/test";
const BROKER_DEAD_LETTERS: &str = "/management-api/v1/integrate/clouds/mqtt/{broker}/deadletters";
const SMS_FORWARDER: &str = "/management-api/v1/sms/forwarder";
const SMS_DEAD_LETTERS: &str = "/management-api/v1/sms/forwarder/deadletters";
const SMS_OF_SIM: &str = "/management-api/v1/sims/{iccid}/sms";
const SMS: &str = "/management-api/v1/sims/{iccid}/sms/{sms}";
const PLUGINS_OF_PARTNER: &str = "/management-api/v1/partners/{partner}/plugins";
const PLUGIN: &str = "/management-api/v1/partners/plugins/{plugin}";
const PLUGIN_RESTART: &str = "/management-api/v1/partners/plugins/{plugin}/restart";
const PLUGIN_DEAD_LETTERS: &str = "/management-api/v1/partners/plugins/{plugin}/deadletters";
const REQUEST: &str = "/management-api/v1/integrate/devices/actions/requests/{request}";

#[test]
fn every_route_has_a_unique_operation_id() {
    let document = shown();
    let mut ids = BTreeSet::new();
    for route in ROUTES {
        let operation = described(&document, route);
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id.to_owned()), "{id} is described twice");
        for name in ["summary", "description"] {
            let text = operation[name].as_str().unwrap_or_default();
            assert!(!text.trim().is_empty(), "{id} has no {name}");
        }
        let tags: Vec<_> = document["tags"].as_array().unwrap().iter().collect();
        let tag = &operation["tags"][0];
        assert!(tags.iter().any(|known| known["name"] == *tag), "{id}");
    }
    let paths = document["paths"].as_object().unwrap().values();
    let operations: usize = paths.map(|path| path.as_object().unwrap().len()).sum();
    assert_eq!(operations, ROUTES.len(), "what is described is routed");
}

#[test]
fn security_and_its_errors_follow_from_the_access() {
    let document = shown();
    for route in ROUTES {
        let operation = described(&document, route);
        let statuses = statuses(operation);
        let has = |status: &str| statuses.contains(status);
        match route.access {
            Access::Open => {
                let gives_tokens = route.path.ends_with("/oauth/token");
                assert!(!has("403") && has("429") == gives_tokens, "{}", route.path);
            }
            Access::Operator => {
                assert_eq!(operation["security"], json!([{"operatorToken": []}]));
                assert!(has("401") && has("403") && has("429"), "{}", route.path);
            }
            Access::Network => {
                let either = json!([{"operatorToken": []}, {"accessToken": ["network"]}]);
                assert_eq!(operation["security"], either);
                assert!(has("401") && has("403") && has("429"), "{}", route.path);
            }
            Access::Customer(scope) => {
                let needed = json!([{"accessToken": [scope.word()]}]);
                assert_eq!(operation["security"], needed);
                assert!(has("401") && has("403") && has("429"), "{}", route.path);
            }
        }
    }
}

#[test]
fn every_path_parameter_is_described_once() {
    let document = shown();
    for route in ROUTES {
        let parameters = described(&document, route)["parameters"].as_array();
        let parameters = parameters.into_iter().flatten();
        let named = parameters.filter(|it| it["in"] == "path");
        let named: BTreeSet<_> = named.map(|it| it["name"].as_str().unwrap()).collect();
        let segments = route.path.split('/');
        let wanted = segments.filter_map(|it| it.strip_prefix('{')?.strip_suffix('}'));
        assert_eq!(named, wanted.collect(), "{}", route.path);
    }
}

#[test]
fn every_response_has_a_description_and_every_error_a_body() {
    let document = shown();
    for route in ROUTES {
        let operation = described(&document, route);
        for (status, answer) in operation["responses"].as_object().unwrap() {
            let place = format!("{} {} {status}", route.method, route.path);
            assert!(answer["description"].is_string(), "{place}");
            assert!(answer["headers"]["X-Trace-Id"].is_object(), "{place}");
            if status.as_str() >= "400" {
                let schema = &answer["content"]["application/json"]["schema"];
                assert!(schema.is_object(), "{place}");
            }
            for (status_of, header) in [
                ("401", "WWW-Authenticate"),
                ("403", "WWW-Authenticate"),
                ("429", "Retry-After"),
                ("503", "Retry-After"),
            ] {
                let has = answer["headers"][header].is_object();
                assert!(has || status != status_of, "{place} lacks {header}");
            }
        }
    }
}

#[test]
fn every_reference_resolves() {
    let document = shown();
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 20);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

#[test]
fn every_link_leads_to_an_operation_with_its_parameters() {
    let document = shown();
    let paths = document["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|path| path.as_object().unwrap().values());
    let operations: Vec<_> = operations.collect();
    let answers = operations.iter().map(|it| it["responses"].as_object());
    let answers = answers.flatten().flat_map(|answers| answers.values());
    let links = answers.filter_map(|answer| answer["links"].as_object());
    let links: Vec<_> = links.flat_map(|links| links.values()).collect();
    assert!(links.len() > 5);
    for link in links {
        let to = operations
            .iter()
            .find(|it| it["operationId"] == link["operationId"]);
        let parameters = to.unwrap()["parameters"].as_array().unwrap();
        for name in link["parameters"].as_object().unwrap().keys() {
            let is_taken = parameters.iter().any(|it| it["name"] == **name);
            assert!(is_taken, "{link}");
        }
    }
}

/// A change of the API is thereby a change of the console, whose types are generated from the file.
#[test]
fn the_console_is_built_from_the_document() {
    let mut served = shown();
    without_texts(&mut served, Names::OfOpenApi);
    golden::check_file("console/openapi.json", &line_by_line(&served));
}

/// What the names of an object are.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Names {
    OfOpenApi,
    OfProperties,
}

/// Removes what no type is made of.
fn without_texts(value: &mut Value, names: Names) {
    match value {
        Value::Object(members) => {
            if names == Names::OfOpenApi {
                members.retain(|name, value| match name.as_str() {
                    "description" | "summary" => !value.is_string(),
                    "example" | "examples" | "links" => false,
                    _ => true,
                });
            }
            for (name, value) in members {
                let is_schema = names == Names::OfOpenApi && name == "properties";
                let inner = match is_schema {
                    true => Names::OfProperties,
                    false => Names::OfOpenApi,
                };
                without_texts(value, inner);
            }
        }
        Value::Array(items) => {
            let items = items.iter_mut();
            items.for_each(|item| without_texts(item, Names::OfOpenApi));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A document with a line for each path and for each schema.
fn line_by_line(document: &Value) -> String {
    let listed = |of: &Value| {
        let members = of.as_object().unwrap().iter();
        let lines = members.map(|(name, value)| format!("{}: {value}", json!(name)));
        lines.collect::<Vec<_>>().join(",\n")
    };
    let version = &document["openapi"];
    let info = &document["info"];
    let paths = listed(&document["paths"]);
    let mut components = document["components"].clone();
    let schemas = listed(&components["schemas"].take());
    components.as_object_mut().unwrap().remove("schemas");
    let others = listed(&components);
    let others = match others.is_empty() {
        true => others,
        false => format!(",\n{others}"),
    };
    format!(
        "{{\"openapi\": {version},\n\"info\": {info},\n\"paths\": {{\n{paths}\n}},\n\
         \"components\": {{\"schemas\": {{\n{schemas}\n}}{others}}}}}\n"
    )
}

#[test]
fn every_golden_body_matches_its_schema() {
    let document = shown();
    for (name, path, method, status) in GOLDEN {
        let answer = &document["paths"][path][method]["responses"][status.to_string()];
        let schema = &answer["content"]["application/json"]["schema"];
        assert_eq!(
            faults(&document, schema, &golden_body(name)),
            [""; 0],
            "{name}"
        );
    }
}

#[test]
fn every_golden_part_matches_its_schema() {
    let document = shown();
    for (name, schema) in GOLDEN_PARTS {
        let schema = json!({ "$ref": format!("#/components/schemas/{schema}") });
        assert_eq!(
            faults(&document, &schema, &golden_body(name)),
            [""; 0],
            "{name}"
        );
    }
}

#[test]
fn no_golden_file_is_left_out() {
    let files = fs::read_dir(golden_folder()).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let names = files.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
    let names: BTreeSet<_> = names.collect();
    let bodies = GOLDEN.iter().map(|(name, ..)| (*name).to_owned());
    let parts = GOLDEN_PARTS.iter().map(|(name, _)| (*name).to_owned());
    assert_eq!(names, bodies.chain(parts).collect());
}

#[test]
fn every_example_matches_its_schema() {
    let document = shown();
    let mut schemas = Vec::new();
    with_examples(&document, &mut schemas);
    assert!(schemas.len() > 20);
    for schema in schemas {
        for example in schema["examples"].as_array().unwrap() {
            assert_eq!(faults(&document, schema, example), [""; 0], "{schema}");
        }
    }
}

#[actix_web::test]
async fn the_document_needs_no_token() {
    let answer = TestService::new()
        .call(TestService::request("GET", "/openapi.json"))
        .await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json(), shown());
    assert_eq!(answer.json()["openapi"], "3.1.1");
}

/// The document as programs parse it.
pub(super) fn shown() -> Value {
    let settings = ShownSettings::of(&Config::of_defaults());
    serde_json::to_value(document(ROUTES, "signalbox", &settings)).unwrap()
}

fn golden_body(name: &str) -> Value {
    let body = fs::read_to_string(golden_folder().join(format!("{name}.json"))).unwrap();
    serde_json::from_str(&body).unwrap()
}

fn golden_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn described<'a>(document: &'a Value, route: &Route) -> &'a Value {
    let method = route.method.as_str().to_ascii_lowercase();
    let operation = &document["paths"][route.path][&method];
    assert!(operation.is_object(), "{method} {}", route.path);
    operation
}

fn statuses(operation: &Value) -> BTreeSet<&str> {
    let answers = operation["responses"].as_object().unwrap();
    answers.keys().map(String::as_str).collect()
}

fn collect<'a>(value: &'a Value, references: &mut Vec<&'a str>) {
    match value {
        Value::Object(properties) => {
            for (name, value) in properties {
                match value.as_str().filter(|_| name == "$ref") {
                    Some(to) => references.push(to),
                    None => collect(value, references),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn with_examples<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(properties) => {
            if value["examples"].is_array() {
                found.push(value);
            }
            properties
                .values()
                .for_each(|value| with_examples(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| with_examples(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
