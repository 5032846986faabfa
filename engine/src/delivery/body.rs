//! How is an event sent to destinations? As a JSON envelope: the fields of every event, and one
//! field for the content of its type.
//!
//! Unknown fields are left out. The same event is always the same bytes, so that a repeated
//! delivery is the same message.

pub mod sms;
pub mod value;
pub mod words;

use std::collections::BTreeMap;

use protocol::base64_text;
use serde::Serialize;
use serde_json::Value as Json;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use self::sms::{ReceivedBody, ReportBody, SmsBody};
use self::words::{TEST_MESSAGE, lifecycle_sentence, payload_type};
use crate::action::{Outcome, ResultPayload};
use crate::delivery::destination::JsonPayload;
use crate::event::{
    ActionResult, Data, DeviceInfo, ErrorReport, Event, EventContent, Lifecycle, PayloadKept,
    Telemetry,
};
use crate::ids::EventId;
use crate::moment::Timestamp;

/// The content type of the envelope.
pub const CONTENT_TYPE: &str = "application/json";

/// The version of the envelope: it changes when readers of the previous version would not
/// understand the new one.
const VERSION: &str = "1.0.0";

/// The type of a payload that is JSON.
const JSON: &str = "JSON";

/// The envelope.
#[derive(Serialize)]
struct EventBody {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    /// Milliseconds since 1970, as text: JSON readers round large numbers.
    received: String,
    version: &'static str,
    /// When the device measured the values, like `received`.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<String>,
    device: DeviceBody,
    #[serde(flatten)]
    content: EventContentBody,
}

/// The device of the event; empty if it has none.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct DeviceBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    device_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iccid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    imsi: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<String>,
}

/// The content of an event, for deliveries and the API.
#[derive(Serialize)]
#[serde(transparent)]
pub struct EventContentBody(ContentVariant);

#[derive(Serialize)]
#[serde(untagged)]
enum ContentVariant {
    Telemetry {
        source: &'static str,
        payload: PayloadBody,
    },
    Lifecycle {
        lifecycle: LifecycleBody,
    },
    Failure {
        error: ErrorBody,
    },
    Concluded {
        action: ActionResultBody,
    },
    Sms {
        sms: SmsBody,
    },
    Test {
        test: TestBody,
    },
}

#[derive(Serialize)]
struct PayloadBody {
    #[serde(rename = "type")]
    kind: &'static str,
    value: ValueBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
}

/// The payload.
#[derive(Serialize)]
#[serde(untagged)]
enum ValueBody {
    Values(BTreeMap<String, Json>),
    Json(Box<RawValue>),
    Text(String),
}

#[derive(Serialize)]
struct LifecycleBody {
    #[serde(rename = "type")]
    kind: &'static str,
    message: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ErrorBody {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    message: String,
    description: String,
    payload_exists: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ActionResultBody {
    request_id: String,
    status: &'static str,
    protocol: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_data: Option<ResultData>,
}

/// The result of a request, for deliveries and the API (seed 2.1).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResultData {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<String>,
}

#[derive(Serialize)]
struct TestBody {
    message: &'static str,
}

/// Several events in one body.
#[derive(Serialize)]
struct BatchBody {
    events: Vec<EventBody>,
}

/// The event as it is sent to a destination with this setting for JSON payloads.
pub fn render(event: &Event, json: JsonPayload) -> Vec<u8> {
    written(&EventBody::of(event, json))
}

/// These events as they are sent in one request.
pub fn render_batch(events: &[Event], json: JsonPayload) -> Vec<u8> {
    let events = events.iter().map(|event| EventBody::of(event, json));
    written(&BatchBody {
        events: events.collect(),
    })
}

/// The id of a request with these events: always the same for the same events, so that a receiver
/// recognises a repeated request. A UUID of version 8 (RFC 9562 section 5.8).
pub fn batch_id(events: &[Event]) -> EventId {
    let mut digest = Sha256::new();
    for event in events {
        digest.update(event.id.as_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.finalize()[..16]);
    EventId::new(uuid::Builder::from_custom_bytes(bytes).into_uuid())
}

/// A test event, which has no device.
pub fn render_test(id: &EventId, at: Timestamp) -> Vec<u8> {
    let message = "This is a test of the integration.";
    written(&EventBody {
        id: id.to_string(),
        kind: TEST_MESSAGE,
        received: epoch_ms(at),
        version: VERSION,
        measured: None,
        device: DeviceBody::default(),
        content: EventContentBody(ContentVariant::Test {
            test: TestBody { message },
        }),
    })
}

fn written(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("the keys of an envelope are text, and memory takes it")
}

fn epoch_ms(at: Timestamp) -> String {
    at.as_ms().to_string()
}

impl EventBody {
    fn of(event: &Event, json: JsonPayload) -> Self {
        Self {
            id: event.id.to_string(),
            kind: words::event_type(event.content.event_type()),
            received: epoch_ms(event.at),
            version: VERSION,
            measured: event.content.measured_at().map(epoch_ms),
            device: DeviceBody::of(&event.device_info),
            content: EventContentBody::of(&event.content, json),
        }
    }
}

impl DeviceBody {
    fn of(device: &DeviceInfo) -> Self {
        Self {
            device_id: Some(device.device.to_string()),
            iccid: Some(device.iccid.to_string()),
            imsi: device.imsi.as_ref().map(ToString::to_string),
            ip: device.ip.map(|ip| ip.to_string()),
        }
    }
}

impl EventContentBody {
    /// The content with this setting for JSON payloads.
    pub fn of(content: &EventContent, json: JsonPayload) -> Self {
        Self(ContentVariant::of(content, json))
    }
}

impl ContentVariant {
    fn of(content: &EventContent, json: JsonPayload) -> Self {
        match content {
            EventContent::Telemetry(telemetry) => Self::telemetry(telemetry),
            EventContent::Data(data) => Self::data(data, json),
            EventContent::Lifecycle(what) => Self::lifecycle(*what),
            EventContent::Error(failure) => Self::Failure {
                error: ErrorBody::of(failure),
            },
            EventContent::ActionResult(conclusion) => Self::Concluded {
                action: ActionResultBody::of(conclusion),
            },
            EventContent::SmsReceived(received) => Self::Sms {
                sms: SmsBody::Received(ReceivedBody::of(received)),
            },
            EventContent::SmsReport(report) => Self::Sms {
                sms: SmsBody::Report(ReportBody::of(report)),
            },
        }
    }

    fn telemetry(telemetry: &Telemetry) -> Self {
        let payload = PayloadBody {
            kind: JSON,
            value: ValueBody::Values(value::by_path(&telemetry.values)),
            encoding: None,
            topic: None,
        };
        Self::Telemetry {
            source: words::protocol(telemetry.source),
            payload,
        }
    }

    /// Data as JSON if the destination wants that and the data is JSON; otherwise in base64.
    fn data(data: &Data, json: JsonPayload) -> Self {
        let parsed = match json {
            JsonPayload::AsText => None,
            JsonPayload::Parsed => value::json_in(&data.bytes),
        };
        let (kind, value, encoding) = match parsed {
            Some(json) => (JSON, ValueBody::Json(json), None),
            None => {
                let text = base64_text::encode(&data.bytes);
                ("STRING", ValueBody::Text(text), Some("base64"))
            }
        };
        Self::Telemetry {
            source: words::protocol(data.source),
            payload: PayloadBody {
                kind,
                value,
                encoding,
                topic: data.topic.as_ref().map(ToString::to_string),
            },
        }
    }

    fn lifecycle(what: Lifecycle) -> Self {
        let lifecycle = LifecycleBody {
            kind: words::lifecycle(what),
            message: lifecycle_sentence(what),
        };
        Self::Lifecycle { lifecycle }
    }
}

impl ErrorBody {
    fn of(failure: &ErrorReport) -> Self {
        Self {
            id: failure.entry.to_string(),
            // An event has a device, and so has its log entry.
            kind: "DEVICE",
            message: failure.message.to_string(),
            description: failure.description.to_string(),
            payload_exists: failure.payload == PayloadKept::Yes,
        }
    }
}

impl ActionResultBody {
    fn of(conclusion: &ActionResult) -> Self {
        Self {
            request_id: conclusion.action.to_string(),
            status: words::status(conclusion.status),
            protocol: words::protocol(conclusion.protocol),
            result_data: conclusion.outcome.as_ref().map(ResultData::of),
        }
    }
}

impl ResultData {
    /// The outcome for deliveries and the API.
    pub fn of(outcome: &Outcome) -> Self {
        let text = |text: &Option<Box<str>>| text.as_ref().map(ToString::to_string);
        let payload = |payload: &ResultPayload| match payload {
            ResultPayload::Text(text) => text.to_string(),
            ResultPayload::Values(values) => value::text_by_path(values),
            ResultPayload::Links(links) => value::text_of_links(links),
        };
        Self {
            code: text(&outcome.code),
            payload: outcome.payload.as_ref().map(payload),
            payload_type: outcome.payload_type.map(payload_type),
            error_message: text(&outcome.error),
        }
    }
}

#[cfg(test)]
mod tests;
