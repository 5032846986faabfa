//! How are settings read and changed? For the document of the API.

use engine::setting::{SettingName, SettingState};

use crate::api::openapi::{Operation, Schema, Tag, names};
use crate::api::page::described::page_of;

/// GET all.
pub(in crate::api) fn list() -> Operation {
    Operation::new("listSettings", Tag::Settings, "List the settings")
        .description("Every setting with its state, on one page.")
        .answer(200, page_of(setting()), "The settings.")
}

/// PATCH.
pub(in crate::api) fn change() -> Operation {
    let text = "`LWM2M_PASSIVE_REPORTING`: whether the service is to read a device whenever it \
                registers or updates its registration. Off until it is switched on. This version \
                keeps the setting and does not read yet; to be told values, observe them.";
    let body = Schema::closed().must(
        "state",
        Schema::word::<SettingState>(),
        "Whether it is in force.",
    );
    Operation::new("changeSetting", Tag::Settings, "Switch a setting on or off")
        .description(text)
        .json(body, "The state it is to have.")
        .answer(200, setting(), "The setting as it is now.")
}

fn setting() -> Schema {
    Schema::object()
        .must("customerId", names::customer_id(), "Whose it is.")
        .must("name", Schema::word::<SettingName>(), "Which it is.")
        .must(
            "state",
            Schema::word::<SettingState>(),
            "Whether it is in force.",
        )
        .named("Setting")
}
