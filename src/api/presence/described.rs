//! Which operations show and change after how long a silence devices are offline? The OpenAPI
//! descriptions.

use crate::api::device::described::offline_after;
use crate::api::openapi::{ApiOperation, Schema, Tag};

/// GET.
pub(in crate::api) fn show() -> ApiOperation {
    ApiOperation::new(
        "getPresenceSettings",
        Tag::Settings,
        "Get the presence settings",
    )
    .description("Returns after how long a silence the devices of the customer are offline.")
    .answer(200, settings(), "The presence settings.")
}

/// PATCH.
pub(in crate::api) fn change() -> ApiOperation {
    let text = "A device that is silent for longer than `offlineAfter` seconds is offline: a \
                `LIFECYCLE` event of the kind `OFFLINE` says so, and one of the kind `BACK` once \
                it is heard again. A device may have an `offlineAfter` of its own instead. Without \
                any, a registered device is offline when it is silent for longer than the lifetime \
                of its registration, and a device without registration never is.\n\nA change \
                takes effect with the next message of each device.";
    let body = Schema::closed()
        .may("offlineAfter", offline_after(), OFFLINE_AFTER)
        .named("NewPresenceSettings");
    ApiOperation::new(
        "changePresenceSettings",
        Tag::Settings,
        "Update the presence settings",
    )
    .description(text)
    .json(body, "The properties to change.")
    .answer(200, settings(), "The updated presence settings.")
}

const OFFLINE_AFTER: &str =
    "After how many seconds without a message a device is offline. `null`: it is not set.";

fn settings() -> Schema {
    Schema::object()
        .must("offlineAfter", offline_after().or_null(), OFFLINE_AFTER)
        .named("PresenceSettings")
}
