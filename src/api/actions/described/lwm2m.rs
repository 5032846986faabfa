//! Which operations create LwM2M requests? The OpenAPI descriptions.

use engine::action::Operation;

use super::{as_often, later, one_of, one_of_many, when};
use crate::api::openapi::{ApiOperation as Described, Schema};
use crate::api::words::Word;

/// An object id, an instance id or a resource id.
const NUMBER: &str = "(0|[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}\
                      |655[0-2][0-9]|6553[0-5])";

/// POST for one device.
pub(in crate::api) fn create() -> Described {
    let text = "Creates an LwM2M request to the device: read, write, execute or observe.\n\nWith \
                `SEND_NOW` the request is sent immediately, or when the device next wakes if it \
                is asleep. If the registration of the device ends before that, the request fails.";
    let refusal = (
        "DEVICE_NOT_REGISTERED",
        "the mode is `SEND_NOW` and the device is not registered",
    );
    let titles = ["Read or observe", "Write", "Execute"];
    let body = one_of(cases().into_iter().zip(titles), "Lwm2mAction");
    let summary = "Create an LwM2M request";
    super::create("createLwm2mAction", summary, text, body, refusal)
}

/// POST for several devices.
pub(in crate::api) fn create_many() -> Described {
    // Client generators name types after these titles, so each title is unique.
    let titles = [
        "Read or observe on several devices",
        "Write to several devices",
        "Execute on several devices",
    ];
    let body = one_of_many(cases().into_iter().zip(titles), "Lwm2mActions");
    let summary = "Create an LwM2M request for several devices";
    super::create_many("createLwm2mActions", summary, body)
}

fn cases() -> [Schema; 3] {
    kinds().map(later)
}

/// The kinds of requests, without the devices and the time.
pub(super) fn kinds() -> [Schema; 3] {
    let look = Schema::one_of_words(vec![
        Operation::Read.word(),
        Operation::ObserveStart.word(),
        Operation::ObserveEnd.word(),
    ]);
    let read = Schema::closed()
        .must(
            "action",
            look,
            "Read a value, start an observation, or end it.",
        )
        .must("resourceAddress", anything(), ANY_ADDRESS);
    let value = "The value as a string of at most {{action_data_bytes_max}} bytes in UTF-8: \
                 `21.5`, `true`, base64 for OPAQUE, ISO 8601 or Unix seconds for TIME, `o:i` for \
                 OBJLINK.";
    let write = Schema::closed()
        .must(
            "action",
            Schema::only(Operation::Write.word()),
            "Write a value.",
        )
        .must("resourceAddress", resource_or_instance(), ADDRESS)
        .must("data", data().example("21.5"), value);
    let execute = Schema::closed()
        .must(
            "action",
            Schema::only(Operation::Execute.word()),
            "Execute a resource.",
        )
        .must("resourceAddress", resource().example("/3/0/4"), ADDRESS)
        .may("data", data(), "The arguments.");
    [read, write, execute].map(when).map(as_often)
}

const ADDRESS: &str = "`/object/instance/resource`, each a number from 0 to 65535.";

const ANY_ADDRESS: &str = "`/object/instance/resource`, each a number from 0 to 65535. The paths \
                           `/object`, `/object/instance` and \
                           `/object/instance/resource/resourceInstance` are accepted, too.";

fn anything() -> Schema {
    let any = format!("^(/{NUMBER}){{1,4}}$");
    Schema::text().pattern(&any).example("/3303/0/5700")
}

fn resource() -> Schema {
    let three = format!("^/{NUMBER}/{NUMBER}/{NUMBER}$");
    Schema::text().pattern(&three)
}

fn resource_or_instance() -> Schema {
    let four = format!("^/{NUMBER}/{NUMBER}/{NUMBER}(/{NUMBER})?$");
    Schema::text().pattern(&four).example("/3303/0/5700")
}

/// A value as a string. The resource defines its type.
fn data() -> Schema {
    Schema::text().bounded_by("maxLength", "action_data_bytes_max")
}
