//! How is an event written for those it is told to? As a JSON envelope: what every event has, and
//! under a name of its own what this type of event has.
//!
//! What is not known is left out. The same event is always written alike, so that a repeated
//! delivery is the same message.

pub mod value;
pub mod words;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value as Json;
use serde_json::value::RawValue;

use self::words::{TEST_MESSAGE, lifecycle_sentence, payload_type};
use crate::action::{Outcome, ResultPayload};
use crate::delivery::destination::JsonPayload;
use crate::event::{
    ActionResult, Data, DeviceInfo, ErrorReport, Event, EventContent, Lifecycle, PayloadKept,
    Telemetry,
};
use crate::ids::EventId;
use crate::moment::Timestamp;

/// What the envelope is.
pub const CONTENT_TYPE: &str = "application/json";

/// Which form of the envelope it is: it changes when a reader of the one before would not
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
    /// Milliseconds since 1970; text, because readers round large numbers.
    received: String,
    version: &'static str,
    /// When the device measured it, like `received`.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<String>,
    device: DeviceBody,
    #[serde(flatten)]
    happening: EventContentBody,
}

/// Who the device was; empty where no device said anything.
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

/// What the device said or did, wherever it is shown.
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

/// What the device said.
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

/// What came of a request, wherever it is shown (seed 2.1).
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

/// The event as it is sent to a destination that wants JSON so.
pub fn render(event: &Event, json: JsonPayload) -> Vec<u8> {
    written(&EventBody {
        id: event.id.to_string(),
        kind: words::event_type(event.content.event_type()),
        received: epoch_ms(event.at),
        version: VERSION,
        measured: event.content.measured_at().map(epoch_ms),
        device: DeviceBody::of(&event.device_info),
        happening: EventContentBody::of(&event.content, json),
    })
}

/// An event that no device caused, by which a customer sees that events arrive.
pub fn render_test(id: &EventId, at: Timestamp) -> Vec<u8> {
    let message = "This is a test of the integration.";
    written(&EventBody {
        id: id.to_string(),
        kind: TEST_MESSAGE,
        received: epoch_ms(at),
        version: VERSION,
        measured: None,
        device: DeviceBody::default(),
        happening: EventContentBody(ContentVariant::Test {
            test: TestBody { message },
        }),
    })
}

fn written(body: &EventBody) -> Vec<u8> {
    serde_json::to_vec(body).expect("the keys of an envelope are text, and memory takes it")
}

fn epoch_ms(at: Timestamp) -> String {
    at.as_ms().to_string()
}

impl DeviceBody {
    fn of(speaker: &DeviceInfo) -> Self {
        Self {
            device_id: Some(speaker.device.to_string()),
            iccid: Some(speaker.iccid.to_string()),
            imsi: speaker.imsi.as_ref().map(ToString::to_string),
            ip: speaker.ip.map(|ip| ip.to_string()),
        }
    }
}

impl EventContentBody {
    /// What happened as it is shown to those who want JSON so.
    pub fn of(happening: &EventContent, json: JsonPayload) -> Self {
        Self(ContentVariant::of(happening, json))
    }
}

impl ContentVariant {
    fn of(happening: &EventContent, json: JsonPayload) -> Self {
        match happening {
            EventContent::Telemetry(told) => Self::telemetry(told),
            EventContent::Data(data) => Self::data(data, json),
            EventContent::Lifecycle(what) => Self::lifecycle(*what),
            EventContent::Error(failure) => Self::Failure {
                error: ErrorBody::of(failure),
            },
            EventContent::ActionResult(conclusion) => Self::Concluded {
                action: ActionResultBody::of(conclusion),
            },
        }
    }

    fn telemetry(told: &Telemetry) -> Self {
        let payload = PayloadBody {
            kind: JSON,
            value: ValueBody::Values(value::by_path(&told.values)),
            encoding: None,
            topic: None,
        };
        Self::Telemetry {
            source: words::protocol(told.source),
            payload,
        }
    }

    /// Data as JSON where that is wanted and it is, and otherwise as it came, in base64.
    fn data(data: &Data, json: JsonPayload) -> Self {
        let parsed = match json {
            JsonPayload::AsText => None,
            JsonPayload::Parsed => value::json_in(&data.bytes),
        };
        let (kind, value, encoding) = match parsed {
            Some(json) => (JSON, ValueBody::Json(json), None),
            None => {
                let text = STANDARD.encode(&data.bytes);
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
            // An event is of a device, and so is the entry it tells of.
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
    /// The outcome as it is shown.
    pub fn of(outcome: &Outcome) -> Self {
        let text = |text: &Option<Box<str>>| text.as_ref().map(ToString::to_string);
        let payload = |payload: &ResultPayload| match payload {
            ResultPayload::Text(text) => text.to_string(),
            ResultPayload::Values(values) => value::text_by_path(values),
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
