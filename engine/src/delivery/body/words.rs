//! How is it spelled in events what has a word of its own in the API? As it is there.

use crate::action::{PayloadType, Protocol, Status};
use crate::event::{EventType, Lifecycle};

/// The type of an event that no device caused, by which a customer sees that events arrive.
pub const TEST_MESSAGE: &str = "TEST_MESSAGE";

/// The word for a type of events.
pub const fn event_type(event_type: EventType) -> &'static str {
    match event_type {
        EventType::TelemetryData => "TELEMETRY_DATA",
        EventType::Lifecycle => "LIFECYCLE",
        EventType::Error => "ERROR",
        EventType::ActionResult => "ACTION_RESULT",
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

/// The word for how a payload is written.
pub const fn payload_type(payload_type: PayloadType) -> &'static str {
    match payload_type {
        PayloadType::Text => "TEXT",
        PayloadType::Base64 => "BASE64",
    }
}

/// The word for how a device came or went.
pub const fn lifecycle(what: Lifecycle) -> &'static str {
    match what {
        Lifecycle::Registered => "REGISTERED",
        Lifecycle::Deregistered => "DEREGISTERED",
        Lifecycle::RegistrationExpired => "REGISTRATION_EXPIRED",
    }
}

/// How a device came or went, as a sentence.
pub const fn lifecycle_sentence(what: Lifecycle) -> &'static str {
    match what {
        Lifecycle::Registered => "The device registered.",
        Lifecycle::Deregistered => "The device deregistered.",
        Lifecycle::RegistrationExpired => "The registration of the device expired.",
    }
}
