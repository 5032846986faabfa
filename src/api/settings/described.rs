//! Which operations read and change settings? The OpenAPI descriptions.

use engine::setting::{SettingName, SettingState};

use crate::api::openapi::{ApiOperation, Schema, Tag, names};
use crate::api::page::described::page_of;

/// GET all.
pub(in crate::api) fn list() -> ApiOperation {
    ApiOperation::new("listSettings", Tag::Settings, "List the settings")
        .description("Returns every setting with its state, on one page.")
        .answer(200, page_of(setting()), "The settings.")
}

/// GET one.
pub(in crate::api) fn show() -> ApiOperation {
    ApiOperation::new("getSetting", Tag::Settings, "Get a setting")
        .description("Returns a setting with its state.")
        .answer(200, setting(), "The setting.")
}

/// PATCH.
pub(in crate::api) fn change() -> ApiOperation {
    let text = "`LWM2M_PASSIVE_REPORTING`: if `ENABLED`, the service reads the objects of a \
                device each time the device registers or updates its registration. Default: \
                `DISABLED`. A change takes effect with the next registration or update.\n\nThe \
                service reads each registered object that has an instance and a readable \
                resource, and objects without a definition; never objects 0, 1, 2, 3 and 21, and \
                at most 64 objects. It sends the reads after your action requests, one object at \
                a time, or all in one Read-Composite if the device supports it (LwM2M 1.1). An \
                object that the device refuses to read (4.05) is skipped until the device \
                registers again. The values are messages with the cause `PASSIVE_REPORT`. A 4.04 \
                response is ignored; any other failure is logged as \
                `LwM2M[PassiveReportingFailed]`, at most once a day per device. If the device \
                stops responding or falls asleep, the service starts again with its next update.";
    let body = Schema::closed().must("state", Schema::word::<SettingState>(), STATE);
    ApiOperation::new("changeSetting", Tag::Settings, "Update a setting")
        .description(text)
        .json(body, "The new state.")
        .answer(200, setting(), "The updated setting.")
}

const STATE: &str = "Whether the setting is enabled.";

fn setting() -> Schema {
    Schema::object()
        .must("customerId", names::customer_id(), "The customer.")
        .must("name", Schema::word::<SettingName>(), "The setting.")
        .must("state", Schema::word::<SettingState>(), STATE)
        .named("Setting")
}
