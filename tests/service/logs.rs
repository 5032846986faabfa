//! Does the operator find in the log of the service what a caller asks about?

use serde_json::Value;

use crate::test_service::{ID, TestService};
use crate::vocabulary::caller::{API, text};
use crate::vocabulary::http::Request;
use crate::vocabulary::lwm2m::{read, write};
use crate::vocabulary::poll::until;
use crate::vocabulary::service::Service;
use harness::device::configuration::Configuration;

/// A log in JSON with the spans of single calls.
const FOR_MACHINES: [(&str, &str); 2] =
    [("SIGNALBOX_LOG", "debug"), ("SIGNALBOX_LOG_FORMAT", "json")];

#[test]
fn a_failed_call_is_found_by_the_trace_of_its_answer() {
    let mut setup = setup();
    let answer = Request::new("GET", "/nothing").send(setup.service.http);
    let trace = text(&answer.expect(404)["traceId"]);
    assert_eq!(answer.header("x-trace-id"), Some(trace.as_str()));
    let line = line_of(&mut setup.service, &trace, "call answered");
    assert_eq!(line["status"], 404, "{line}");
    assert_eq!(line["span"]["path"], "/nothing", "{line}");
}

#[test]
fn a_successful_answer_has_its_trace_too() {
    let mut setup = setup();
    let path = format!("{API}/devices/{ID}");
    let answer = setup.caller.request("GET", &path);
    answer.expect(200);
    let trace = answer.header("x-trace-id").unwrap().to_owned();
    line_of(&mut setup.service, &trace, "call answered");
}

#[test]
fn the_outcome_of_a_request_is_found_by_the_trace_of_its_call() {
    let mut setup = setup();
    let action = setup.caller.perform(ID, &read("/3/0/0"));
    let trace = text(&action["requestData"]["traceId"]);
    let lines = [
        "a request was created",
        "an attempt began",
        "an exchange is over",
        "a request is final",
        "call answered",
    ];
    for line in lines {
        line_of(&mut setup.service, &trace, line);
    }
    let last = line_of(&mut setup.service, &trace, "a request is final");
    assert_eq!(last["action"], action["id"], "{last}");
    assert_eq!(last["status"], "succeeded", "{last}");
}

#[test]
fn an_entry_of_the_administration_log_is_found_by_its_trace() {
    let mut setup = setup();
    setup.caller.create_action(ID, &write("/3/0/13", "noon"));
    let entries = setup.caller.log_entries();
    let messages: Vec<_> = entries.iter().map(|entry| &entry["message"]).collect();
    let expected = [
        "DeviceController[InvalidDataType]",
        "Lifecycle[DeviceFirstTimeRegistered]",
    ];
    assert_eq!(messages, expected);
    for entry in &entries {
        let trace = text(&entry["traceId"]);
        let line = "the administration log has an entry";
        let line = line_of(&mut setup.service, &trace, line);
        assert_eq!(line["entry"], entry["message"], "{line}");
    }
}

#[test]
fn payloads_and_tokens_are_not_logged() {
    let mut setup = setup();
    setup.caller.perform(ID, &write("/3/0/15", "Europe/Lisbon"));
    let action = setup.caller.perform(ID, &read("/3/0/15"));
    assert_eq!(action["resultData"]["payload"], "Europe/Lisbon", "{action}");
    let trace = text(&action["requestData"]["traceId"]);
    line_of(&mut setup.service, &trace, "a request is final");
    let token = setup.caller.token().to_owned();
    for secret in ["Lisbon", &token, &setup.service.operator_token()] {
        let lines = setup.service.printed().iter();
        let lines = lines.filter(|line| line.contains(secret)).count();
        assert_eq!(lines, 0, "{secret}");
    }
}

fn setup() -> TestService {
    TestService::with(&FOR_MACHINES, Configuration::new(ID))
}

/// The line with this message in the span of this trace.
fn line_of(service: &mut Service, trace: &str, message: &str) -> Value {
    until(message, || {
        let lines = service.printed().iter();
        let mut lines = lines.filter_map(|line| serde_json::from_str(line).ok());
        lines.find(|line: &Value| line["span"]["trace"] == trace && line["message"] == message)
    })
}
