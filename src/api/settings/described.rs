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
                registers or updates its registration. Off until it is switched on, and in force \
                at once: a device is read with its next update.\n\nOf the objects a device \
                registers, those are read that have an instance and a resource to read, and those \
                that neither OMA nor you define; never 0, 1, 2, 3 and 21. A device is asked after \
                your requests, for one object after the other, or for all at once where it \
                announces a format for that (LwM2M 1.1); what it refuses as not readable is not \
                asked for again until it registers anew. At most 64 objects are read, and only \
                answers that fit one datagram. The values are messages of the device with the \
                cause `PASSIVE_REPORT`. An object that is not there is passed over; of others that \
                cannot be read the log says so, once a day for a device: \
                `LwM2M[PassiveReportingFailed]`. A device that falls silent or asleep is read on \
                with its next update, from the first object.";
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
