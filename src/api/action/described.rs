//! Which properties does an action request have? The OpenAPI schemas.

use engine::action::timeline::WaitReason;
use engine::action::{
    ContentEncoding, Method, Mode, Operation, PayloadType, Protocol, Status, WakeUp,
};
use engine::limits::SEND_ATTEMPTS_MAX;
use engine::sms::SmsStatus;

use crate::api::action::{EVENT_WORDS, OMITTED_WORDS, WAKE_UP_EVENT};
use crate::api::openapi::{Schema, names};

const AT_CREATION: &str = "The value known when the request was created.";

const CODE: &str = "The CoAP response code without its dot: `205` is 2.05 Content.";

const WAITS_FOR: &str = "`REQUEST`: another request is in flight. `PASSIVE_REPORTING`: a read for \
                         passive reporting is in flight. `OBSERVATION`: an observation is being \
                         renewed. `NOTIFICATION`: the further blocks of a notification are being \
                         requested. `ASLEEP`: the device sleeps. `UNREGISTERED`: the device is \
                         not registered. `UPLINK`: the request is sent after the next message \
                         from the device. `NOT_BEFORE`: its `notBefore` is still to come.";

const PERMITTED: &str = "The number of attempts permitted.";

/// An action request in a list.
pub(in crate::api) fn action() -> Schema {
    record().named("ActionRequest")
}

/// A request of a device in the device inspector.
pub(in crate::api) fn pending() -> Schema {
    let why = format!("Why the request is not sent yet; absent while it is in flight. {WAITS_FOR}");
    record()
        .may("waitsFor", Schema::word::<WaitReason>(), &why)
        .named("PendingActionRequest")
}

/// A single action request, with its timeline.
pub(in crate::api) fn followed() -> Schema {
    record()
        .must(
            "timeline",
            Schema::list(happened()),
            "The events of the request, oldest first. The events of an attempt are added when \
             the attempt ends.",
        )
        .named("FollowedActionRequest")
}

fn happened() -> Schema {
    Schema::object()
        .must("time", names::spaced(), "The time of the event (UTC).")
        .must(
            "event",
            Schema::one_of_words([&EVENT_WORDS[..], &[WAKE_UP_EVENT]].concat()).example("ANSWERED"),
            "`WAITING`: the request could not be sent at once. An attempt is one request to the \
             device with its retransmissions (RFC 7252 section 4.2). `ACKNOWLEDGED`: the device \
             sent an empty acknowledgement, and its response follows separately. \
             `ATTRIBUTES_WRITTEN`: the device took the attributes of an `observe-start`, which is \
             sent next; before LwM2M 1.2 they have a message of their own. `REJECTED`: the device \
             sent a Reset. `GAVE_UP`: the attempt ended without a response. `WAKE_UP_SMS`: the SMS \
             that wakes the device got a status.",
        )
        .may("attempt", attempts(), "The number of the attempt, from 1.")
        .may("code", code(), CODE)
        .may(
            "diagnostic",
            Schema::text().example("no such instance"),
            "What the device says about its error response (RFC 7252 section 5.5.2): at most 200 \
             characters.",
        )
        .may("for", Schema::word::<WaitReason>(), WAITS_FOR)
        .may(
            "sms",
            names::sms_id(),
            "The id of the SMS that wakes the device.",
        )
        .may(
            "status",
            Schema::word::<SmsStatus>(),
            "The status of the SMS.",
        )
        .may(
            "reason",
            Schema::text().example("outcome unknown"),
            "Why the SMS is `FAILED`, where known.",
        )
        .named("TimelineEvent")
}

fn code() -> Schema {
    Schema::text().pattern("^[2-5][0-9]{2}$").example("205")
}

fn record() -> Schema {
    let id = Schema::uuid().example("01935c5a-0000-7000-8000-000000000001");
    let left = Schema::whole(0..=u64::from(SEND_ATTEMPTS_MAX)).example(2_u64);
    let status = Schema::word::<Status>().example("SUCCEEDED");
    Schema::object()
        .must("id", id, "The id of the request.")
        .must("status", status, "The status of the request.")
        .must("deviceId", names::device_id(), "The device.")
        .may("ip", names::ip(), AT_CREATION)
        .must(
            "protocol",
            Schema::word::<Protocol>().example("LWM2M"),
            "The protocol of the request.",
        )
        .must(
            "created",
            names::spaced(),
            "When the request was created (UTC).",
        )
        .must(
            "updated",
            names::spaced(),
            "When the request last changed (UTC).",
        )
        .must("mode", Schema::word::<Mode>(), "The `requestMode`.")
        .must("requestData", request_data(), "The body of the call.")
        .may(
            "resultData",
            result_data(),
            "The result, once there is one. A successful UDP request has none.",
        )
        .must("sendAttempts", attempts(), PERMITTED)
        .must("sendAttemptsLeft", left, "Attempts that have not started.")
        .may(
            "omitted",
            Schema::list(Schema::one_of_words(OMITTED_WORDS.to_vec())),
            "The properties left out of this list because they exceed 4096 characters. \
             `getAction` returns them.",
        )
}

/// The number of attempts a request permits.
pub(in crate::api) fn attempts() -> Schema {
    Schema::whole(1..=u64::from(SEND_ATTEMPTS_MAX)).example(3_u64)
}

/// The body of the call that created the request, over any protocol.
fn request_data() -> Schema {
    Schema::any_of([udp_data(), coap_data(), lwm2m_data()])
}

fn udp_data() -> Schema {
    known(Schema::object())
        .must("payload", Schema::text().example("on"), "The payload.")
        .must(
            "payloadType",
            Schema::word::<ContentEncoding>(),
            "The encoding of `payload`.",
        )
        .must("port", port(), "The UDP port on the device.")
        .named("UdpRequestData")
}

fn coap_data() -> Schema {
    let path = Schema::text().example("/led?color=r");
    known(Schema::object())
        .may("payload", Schema::text(), "The payload.")
        .may(
            "payloadType",
            Schema::word::<ContentEncoding>(),
            "The encoding of `payload`.",
        )
        .must("port", port(), "The UDP port on the device.")
        .must("path", path, "The path, with its query.")
        .must("requestType", Schema::word::<Method>(), "The CoAP method.")
        .must("sendAttempts", attempts(), PERMITTED)
        .named("CoapRequestData")
}

fn lwm2m_data() -> Schema {
    let address = Schema::text().example("/3303/0/5700");
    known(Schema::object())
        .must(
            "action",
            Schema::word::<Operation>(),
            "The LwM2M operation.",
        )
        .may("resourceAddress", address, "The path of the target.")
        .may(
            "resourceAddresses",
            Schema::list(Schema::text().example("/3/0")),
            "The paths of an operation on several of them.",
        )
        .may(
            "data",
            Schema::any_of([Schema::text(), Schema::map(Schema::text())]),
            "The value to write, the values by resource id or path, or the arguments to execute \
             with.",
        )
        .may(
            "attributes",
            Schema::map(Schema::text().or_null()),
            "The attributes to write; one to remove is `null`.",
        )
        .may(
            "replace",
            Schema::truth(),
            "Whether the values replace those of the instance.",
        )
        .must("sendAttempts", attempts(), PERMITTED)
        .named("Lwm2mRequestData")
}

fn port() -> Schema {
    Schema::whole(1..=u64::from(u16::MAX)).example(5_683_u64)
}

/// The same schema with the properties that every request has.
fn known(data: Schema) -> Schema {
    data.must(
        "requestMode",
        Schema::word::<Mode>(),
        "When to send the request.",
    )
    .may(
        "expiresIn",
        Schema::whole(1..=u64::from(u32::MAX)),
        "The expiry given in the call, in seconds.",
    )
    .may(
        "notBefore",
        names::instant(),
        "The time before which the request is not sent.",
    )
    .may(
        "wakeUp",
        Schema::word::<WakeUp>(),
        "How the device is woken if it sleeps.",
    )
    .must("iccid", names::iccid(), AT_CREATION)
    .may("imsi1", names::imsi(), AT_CREATION)
    .must(
        "traceId",
        names::trace(),
        "The trace id of the call that created the request.",
    )
    .must("deviceId", names::device_id(), "The device.")
    .must(
        "requestId",
        Schema::uuid().example("01935c5a-0000-7000-8000-000000000001"),
        "The request.",
    )
    .must("customerId", names::customer_id(), "The customer.")
    .may("deviceIpAddress", names::ip(), AT_CREATION)
}

/// The result of a request.
pub(in crate::api) fn result_data() -> Schema {
    Schema::object()
        .may("code", code(), CODE)
        .may(
            "payload",
            Schema::text().example("21.5"),
            "CoAP: the payload of the response, encoded as `payloadType` says. LwM2M: the value \
             as a string, such as `false` or `21.5`; base64 for OPAQUE, ISO 8601 for TIME, `o:i` \
             for OBJLINK. For an object, an object instance or several paths: a string of JSON \
             that maps each path to its typed value. After `discover`: a string of JSON that maps \
             each path to its attributes. After `create`: the path of the new instance.",
        )
        .may(
            "payloadType",
            Schema::word::<PayloadType>(),
            "CoAP only. `TEXT` if the response has a text Content-Format and its payload is \
             UTF-8, otherwise `BASE64`.",
        )
        .may("errorMessage", Schema::text(), "Why the request failed.")
        .named("ResultData")
}
