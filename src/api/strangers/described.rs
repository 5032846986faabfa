//! Which operation lists the senders that are no known device? The OpenAPI description.

use engine::action::Protocol;
use engine::limits::{STRANGER_NAME_BYTES_MAX, STRANGERS_MAX};
use engine::route::DeviceOperation;

use crate::api::openapi::{ApiOperation, Schema, Tag, names};
use crate::api::page::described::{page_of, paged};

/// GET.
pub(in crate::api) fn list() -> ApiOperation {
    let text = format!(
        "Returns the last {STRANGERS_MAX} senders that are no known device, the latest first: they \
         have an address that no device has or, if they send bare datagrams, one that several \
         devices have. They are in memory and forgotten at a restart. A refused message from the \
         address of a device is in the administration log of its customer instead."
    );
    let operation =
        ApiOperation::new("listStrangers", Tag::Service, "List unknown senders").description(&text);
    paged(operation).answer(200, page_of(stranger()), "A page of senders.")
}

fn stranger() -> Schema {
    let endpoint = Schema::text_of(0..=STRANGER_NAME_BYTES_MAX).example("metre-7");
    let answer = Schema::text().pattern(r"^\d\.\d{2}$").example("4.03");
    let named = format!(
        "The endpoint name in its registrations, at most {STRANGER_NAME_BYTES_MAX} bytes of it."
    );
    Schema::object()
        .may_never_null("endpoint", endpoint, &named)
        .must(
            "address",
            Schema::text().example("10.0.0.7:5683"),
            "The address and port of its last message.",
        )
        .must(
            "protocol",
            Schema::word::<Protocol>().example("LWM2M"),
            "The protocol of its last message.",
        )
        .must(
            "operation",
            Schema::word::<DeviceOperation>().example("REGISTER"),
            "What it wanted with its last message.",
        )
        .may_never_null(
            "answer",
            answer,
            "The code of the answer to its last message. Without one, the message was dropped.",
        )
        .must(
            "firstSeen",
            names::instant(),
            "When its first message was received.",
        )
        .must(
            "lastSeen",
            names::instant(),
            "When its last message was received.",
        )
        .must(
            "count",
            Schema::count().example(17_u64),
            "The number of its messages.",
        )
        .named("Stranger")
}
