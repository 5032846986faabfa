//! What does an action request look like? For the document of the API.

use engine::action::{ContentForm, Method, Mode, Operation, PayloadType, Protocol, Status};
use engine::limits::SEND_ATTEMPTS_MAX;

use crate::api::action::{EVENT_WORDS, OMITTED_WORDS};
use crate::api::openapi::{Schema, names};

/// An action request as lists show it.
pub(in crate::api) fn action() -> Schema {
    record().named("ActionRequest")
}

/// An action request as it is shown by itself.
pub(in crate::api) fn followed() -> Schema {
    record()
        .must(
            "timeline",
            Schema::list(happened()),
            "What happened to the request on its way, oldest first. What happens during an \
             attempt is told when the attempt is over.",
        )
        .named("FollowedActionRequest")
}

fn happened() -> Schema {
    Schema::object()
        .must("time", names::spaced(), "When (UTC).")
        .must(
            "event",
            Schema::one_of_words(EVENT_WORDS.to_vec()).example("ANSWERED"),
            "What happened. An attempt is one datagram and its repetitions (RFC 7252 section \
             4.2); `ACKNOWLEDGED` means that the answer comes apart.",
        )
        .may("attempt", attempts(), "The number of the attempt.")
        .may("code", code(), "The code of the answer, without its dot.")
        .named("TimelineEvent")
}

fn code() -> Schema {
    Schema::text().pattern("^[2-5][0-9]{2}$").example("205")
}

fn record() -> Schema {
    let id = Schema::uuid().example("01935c5a-0000-7000-8000-000000000001");
    let left = Schema::whole(0..=u64::from(SEND_ATTEMPTS_MAX)).example(2_u64);
    let status = Schema::word::<Status>().example("SUCCEEDED");
    let ip = "The address of the device, where it had one when the request was made.";
    Schema::object()
        .must("id", id, "What to follow and cancel the request by.")
        .must("status", status, "Where the request stands.")
        .must("deviceId", names::device_id(), "The device that is asked.")
        .may("ip", names::ip(), ip)
        .must(
            "protocol",
            Schema::word::<Protocol>().example("LWM2M"),
            "How the device is asked.",
        )
        .must(
            "created",
            names::spaced(),
            "When the request was made (UTC).",
        )
        .must("updated", names::spaced(), "When it last changed (UTC).")
        .must("mode", Schema::word::<Mode>(), "When it is sent.")
        .must("requestData", request_data(), "What was asked.")
        .may(
            "resultData",
            result_data(),
            "What came of it, once something did. A datagram that left has no answer, and no \
             result.",
        )
        .must("sendAttempts", attempts(), "Attempts that are permitted.")
        .must("sendAttemptsLeft", left, "Attempts that were not begun.")
        .may(
            "omitted",
            Schema::list(Schema::one_of_words(OMITTED_WORDS.to_vec())),
            "What is longer than 4096 characters and left out of lists; it is there where the \
             request is shown by itself.",
        )
}

/// Attempts a caller may permit.
pub(in crate::api) fn attempts() -> Schema {
    Schema::whole(1..=u64::from(SEND_ATTEMPTS_MAX)).example(3_u64)
}

/// What was asked over any protocol.
fn request_data() -> Schema {
    Schema::any_of([udp_data(), coap_data(), lwm2m_data()])
}

fn udp_data() -> Schema {
    known(Schema::object())
        .must("payload", Schema::text().example("on"), "What is sent.")
        .must(
            "payloadType",
            Schema::word::<ContentForm>(),
            "How the payload is written.",
        )
        .must("port", port(), "The port that it is sent to.")
        .named("UdpRequestData")
}

fn coap_data() -> Schema {
    let path = Schema::text().example("/led?color=r");
    known(Schema::object())
        .may("payload", Schema::text(), "What is sent along.")
        .may(
            "payloadType",
            Schema::word::<ContentForm>(),
            "How the payload is written, where there is one.",
        )
        .must("port", port(), "The port that the request is made at.")
        .must("path", path, "The resource.")
        .must("requestType", Schema::word::<Method>(), "The method.")
        .must("sendAttempts", attempts(), "Attempts that are permitted.")
        .named("CoapRequestData")
}

fn lwm2m_data() -> Schema {
    let address = Schema::text().example("/3303/0/5700");
    known(Schema::object())
        .must(
            "action",
            Schema::word::<Operation>(),
            "What the device is to do.",
        )
        .must("resourceAddress", address, "Where.")
        .may(
            "data",
            Schema::text(),
            "What was given to write or execute.",
        )
        .must("sendAttempts", attempts(), "Attempts that are permitted.")
        .named("Lwm2mRequestData")
}

fn port() -> Schema {
    Schema::whole(1..=u64::from(u16::MAX)).example(5_683_u64)
}

/// The same with what is known of every request.
fn known(data: Schema) -> Schema {
    let now_known = "What was known of the device when the request was made.";
    data.must("requestMode", Schema::word::<Mode>(), "When it is sent.")
        .may(
            "expiresIn",
            Schema::whole(1..=u64::from(u32::MAX)),
            "Seconds the request may wait, where its caller said so.",
        )
        .must("iccid", names::iccid(), now_known)
        .may("imsi1", names::imsi(), now_known)
        .must(
            "traceId",
            names::trace(),
            "The trace of the call that made it.",
        )
        .must("deviceId", names::device_id(), "The device.")
        .must(
            "requestId",
            Schema::uuid().example("01935c5a-0000-7000-8000-000000000001"),
            "The request.",
        )
        .must("customerId", names::customer_id(), "The customer.")
        .may("deviceIpAddress", names::ip(), now_known)
}

/// What came of a request.
pub(in crate::api) fn result_data() -> Schema {
    Schema::object()
        .may(
            "code",
            code(),
            "The code of the device's answer, without its dot.",
        )
        .may(
            "payload",
            Schema::text().example("21.5"),
            "Over CoAP what the device answered, as `payloadType` says. Over LwM2M the value as a \
             text: `false`, `21.5`, base64 for OPAQUE, ISO 8601 for TIME, `o:i` for OBJLINK. Of \
             an object or an instance of one it is a JSON object as text: typed values by path.",
        )
        .may(
            "payloadType",
            Schema::word::<PayloadType>(),
            "How the payload of an answer over CoAP is written: `TEXT` where its content format \
             is one of text and its bytes are, `BASE64` where they are not or it has none.",
        )
        .may("errorMessage", Schema::text(), "What went wrong.")
        .named("ResultData")
}
