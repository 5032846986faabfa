//! How are the API's words spelled in events? As in the API.

use crate::action::{PayloadType, Protocol, Status};
use crate::event::{EventType, Lifecycle};
use crate::sms::SmsStatus;

/// The type of a test event.
pub const TEST_MESSAGE: &str = "TEST_MESSAGE";

/// The word for a type of events.
pub const fn event_type(event_type: EventType) -> &'static str {
    match event_type {
        EventType::TelemetryData => "TELEMETRY_DATA",
        EventType::Lifecycle => "LIFECYCLE",
        EventType::Error => "ERROR",
        EventType::ActionResult => "ACTION_RESULT",
        EventType::SmsReceived => "SMS_RECEIVED",
        EventType::SmsReport => "SMS_REPORT",
    }
}

/// The word for the status of an SMS.
pub const fn sms_status(status: SmsStatus) -> &'static str {
    match status {
        SmsStatus::Pending => "PENDING",
        SmsStatus::InProgress => "IN PROGRESS",
        SmsStatus::Buffered => "BUFFERED",
        SmsStatus::Delivered => "DELIVERED",
        SmsStatus::Failed => "FAILED",
        SmsStatus::Expired => "EXPIRED",
        SmsStatus::Canceled => "CANCELED",
    }
}

/// The word for a protocol.
pub const fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Udp => "UDP",
        Protocol::Coap => "COAP",
        Protocol::Lwm2m => "LWM2M",
    }
}

/// The word for the status of a request.
pub const fn status(status: Status) -> &'static str {
    match status {
        Status::Scheduled => "SCHEDULED",
        Status::InProgress => "IN_PROGRESS",
        Status::Succeeded => "SUCCEEDED",
        Status::Failed => "FAILED",
        Status::Cancelled => "CANCELLED",
    }
}

/// The word for the encoding of a payload.
pub const fn payload_type(payload_type: PayloadType) -> &'static str {
    match payload_type {
        PayloadType::Text => "TEXT",
        PayloadType::Base64 => "BASE64",
    }
}

/// The word for a lifecycle event.
pub const fn lifecycle(what: Lifecycle) -> &'static str {
    match what {
        Lifecycle::FirstContact => "FIRST_CONTACT",
        Lifecycle::Registered => "REGISTERED",
        Lifecycle::Updated => "UPDATED",
        Lifecycle::Deregistered => "DEREGISTERED",
        Lifecycle::Expired => "EXPIRED",
        Lifecycle::Offline => "OFFLINE",
        Lifecycle::Back => "BACK",
        Lifecycle::Awake => "AWAKE",
        Lifecycle::Asleep => "ASLEEP",
        Lifecycle::Bootstrapped => "BOOTSTRAPPED",
    }
}

/// A lifecycle event as a sentence.
pub const fn lifecycle_sentence(what: Lifecycle) -> &'static str {
    match what {
        Lifecycle::FirstContact => "The device was heard for the first time.",
        Lifecycle::Registered => "The device registered.",
        Lifecycle::Updated => "The device updated its registration, and something changed.",
        Lifecycle::Deregistered => "The device deregistered.",
        Lifecycle::Expired => "The registration of the device expired.",
        Lifecycle::Offline => "The device is offline: it was silent for too long.",
        Lifecycle::Back => "The device is back: it was heard after it had been offline.",
        Lifecycle::Awake => "The device is awake.",
        Lifecycle::Asleep => "The device is asleep.",
        Lifecycle::Bootstrapped => "The device was bootstrapped.",
    }
}
