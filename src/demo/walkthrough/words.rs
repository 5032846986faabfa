//! How are devices, requests and events of the API printed?

use serde_json::Value;

use super::super::api::{ShownAction, ShownRegistration};
use super::super::role::DeviceRole;

/// A registration in the inspector.
pub(super) fn registered(
    role: DeviceRole,
    presence: &str,
    registration: &ShownRegistration,
) -> String {
    let ShownRegistration {
        version,
        lifetime_s,
        queue_mode,
        objects,
    } = registration;
    let listens = match queue_mode {
        true => "queue mode",
        false => "always awake",
    };
    let objects: Vec<_> = objects.iter().map(u64::to_string).collect();
    format!(
        "shows {}: {presence}, LwM2M {version}, lifetime {lifetime_s} s, {listens}, objects {}",
        role.id(),
        objects.join(" "),
    )
}

/// A request, with what matters in its state.
pub(super) fn change(request: &ShownAction) -> String {
    let ShownAction {
        operation, status, ..
    } = request;
    let made = request.attempts.saturating_sub(request.attempts_left);
    let more = match status.as_str() {
        "SCHEDULED" => ", waits for the device".to_owned(),
        "IN_PROGRESS" => format!(", attempt {made} of {}", request.attempts),
        _ => outcome(request),
    };
    format!("{status}: {operation}{more}")
}

fn outcome(request: &ShownAction) -> String {
    let code = request.code.iter().map(|code| format!(", code {code}"));
    let payload = request
        .payload
        .iter()
        .map(|payload| format!(", value {payload}"));
    let error = request.error.iter().map(|error| format!(", {error}"));
    code.chain(payload).chain(error).collect()
}

/// An event, as posted to the customer's endpoint.
pub(super) fn event(body: &Value) -> String {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
    let kind = text("/type").unwrap_or("an event without a type");
    let device = text("/device/iccid").map(|iccid| format!(" of {iccid}"));
    let more = match kind {
        "TELEMETRY_DATA" => Some(telemetry(body)),
        "LIFECYCLE" => text("/lifecycle/type").map(|it| format!(": {it}")),
        "ERROR" => text("/error/message").map(|it| format!(": {it}")),
        _ => None,
    };
    [Some(kind.to_owned()), device, more]
        .into_iter()
        .flatten()
        .collect()
}

/// An SMS of a device, as posted to the customer's endpoint.
pub(super) fn sms_message(body: &Value) -> String {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
    let (name, payload) = (text("/endpoint/name"), text("/payload"));
    format!(
        "received an SMS of {}: {}",
        name.unwrap_or("a device without a name"),
        payload.unwrap_or_default()
    )
}

/// A delivery report, as patched at the customer's endpoint.
pub(super) fn sms_report(body: &Value) -> String {
    let status = body.pointer("/status/status").and_then(Value::as_str);
    let status = status.unwrap_or("without a status");
    format!(
        "received a delivery report: the SMS {} is {status}",
        body["id"]
    )
}

/// The content of a telemetry event: data over plain CoAP or UDP, or LwM2M values.
fn telemetry(body: &Value) -> String {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
    let Some(source @ ("COAP" | "UDP")) = text("/source") else {
        return format!("{}: {}", measured(body), values(body));
    };
    let topic = text("/payload/topic").map(|topic| format!(", topic {topic}"));
    let data = match (text("/payload/encoding"), text("/payload/value")) {
        (Some(encoding), Some(value)) => format!("{value} ({encoding})"),
        _ => body["payload"]["value"].to_string(),
    };
    format!(" over {source}{}: {data}", topic.unwrap_or_default())
}

/// How long before its arrival the value was measured, if the device gave the time.
fn measured(body: &Value) -> String {
    let ms = |name: &str| body[name].as_str()?.parse::<i64>().ok();
    match (ms("received"), ms("measured")) {
        (Some(received), Some(measured)) => {
            let before_s = received.saturating_sub(measured) / 1_000;
            format!(", measured {before_s} s earlier")
        }
        _ => String::new(),
    }
}

fn values(body: &Value) -> String {
    let values = body.pointer("/payload/value").and_then(Value::as_object);
    let values = values.into_iter().flatten();
    let values: Vec<_> = values
        .map(|(path, value)| format!("{path} is {value}"))
        .collect();
    values.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_printed_with_what_matters_for_its_type() {
        let device = json!({ "iccid": "tracker" });
        for (body, expected) in [
            (
                json!({
                    "type": "TELEMETRY_DATA", "device": device,
                    "received": "61500", "measured": "1000",
                    "payload": { "value": { "/6/0/0": 53.5, "/6/0/1": 9.75 } },
                }),
                "TELEMETRY_DATA of tracker, measured 60 s earlier: /6/0/0 is 53.5, /6/0/1 is 9.75",
            ),
            (
                json!({
                    "type": "TELEMETRY_DATA", "device": device, "received": "61500",
                    "payload": { "value": { "/6/0/0": 53.5 } },
                }),
                "TELEMETRY_DATA of tracker: /6/0/0 is 53.5",
            ),
            (
                json!({
                    "type": "TELEMETRY_DATA", "device": device, "source": "UDP",
                    "payload": { "type": "STRING", "value": "d2V0", "encoding": "base64" },
                }),
                "TELEMETRY_DATA of tracker over UDP: d2V0 (base64)",
            ),
            (
                json!({
                    "type": "TELEMETRY_DATA", "device": device, "source": "COAP",
                    "payload": { "type": "JSON", "value": { "mm": 3 }, "topic": "cellar" },
                }),
                "TELEMETRY_DATA of tracker over COAP, topic cellar: {\"mm\":3}",
            ),
            (
                json!({
                    "type": "LIFECYCLE", "device": device,
                    "lifecycle": { "type": "REGISTERED" },
                }),
                "LIFECYCLE of tracker: REGISTERED",
            ),
            (
                json!({
                    "type": "ERROR", "device": device,
                    "error": { "message": "DeviceController[InvalidDataType]" },
                }),
                "ERROR of tracker: DeviceController[InvalidDataType]",
            ),
            (
                json!({ "type": "TEST_MESSAGE", "device": {} }),
                "TEST_MESSAGE",
            ),
        ] {
            assert_eq!(event(&body), expected);
        }
    }

    #[test]
    fn sms_are_printed_with_their_device_and_their_status() {
        let message = json!({ "payload": "on board", "endpoint": { "name": "Tracker" } });
        assert_eq!(
            sms_message(&message),
            "received an SMS of Tracker: on board"
        );
        let report = json!({ "id": 7, "status": { "id": 4, "status": "DELIVERED" } });
        assert_eq!(
            sms_report(&report),
            "received a delivery report: the SMS 7 is DELIVERED"
        );
    }

    #[test]
    fn a_request_is_printed_with_what_matters_in_its_state() {
        for (request, expected) in [
            (
                shown("SCHEDULED", 3),
                "SCHEDULED: read /3/0/9 of meter, waits for the device",
            ),
            (
                shown("IN_PROGRESS", 2),
                "IN_PROGRESS: read /3/0/9 of meter, attempt 1 of 3",
            ),
            (
                ShownAction {
                    code: Some("205".to_owned()),
                    payload: Some("87".to_owned()),
                    ..shown("SUCCEEDED", 2)
                },
                "SUCCEEDED: read /3/0/9 of meter, code 205, value 87",
            ),
            (
                ShownAction {
                    error: Some("no answer".to_owned()),
                    ..shown("FAILED", 0)
                },
                "FAILED: read /3/0/9 of meter, no answer",
            ),
            (shown("CANCELLED", 3), "CANCELLED: read /3/0/9 of meter"),
        ] {
            assert_eq!(change(&request), expected);
        }
    }

    #[test]
    fn a_registration_is_printed_with_the_reachability_of_the_device() {
        let mut registration = ShownRegistration {
            version: "1.1".to_owned(),
            lifetime_s: 300,
            queue_mode: true,
            objects: vec![1, 3],
        };
        assert_eq!(
            registered(DeviceRole::Meter, "AWAKE", &registration),
            "shows water-meter: AWAKE, LwM2M 1.1, lifetime 300 s, queue mode, objects 1 3"
        );
        registration.queue_mode = false;
        assert!(registered(DeviceRole::Lamp, "AWAKE", &registration).contains("always awake"));
    }

    fn shown(status: &str, attempts_left: u64) -> ShownAction {
        ShownAction {
            id: "1".to_owned(),
            operation: "read /3/0/9 of meter".to_owned(),
            status: status.to_owned(),
            attempts: 3,
            attempts_left,
            code: None,
            payload: None,
            error: None,
        }
    }
}
