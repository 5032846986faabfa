//! How is a device asked for a device management operation? For the document of the API.

use engine::action::Operation;
use engine::limits::ACTION_DATA_BYTES_MAX;

use super::{as_often, one_of, one_of_many, when};
use crate::api::openapi::{Operation as Described, Schema};
use crate::api::words::Word;

/// A number of an object, an instance or a resource.
const NUMBER: &str = "(0|[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}\
                      |655[0-2][0-9]|6553[0-5])";

/// POST for one device.
pub(in crate::api) fn create() -> Described {
    let text = "Has the device read, write or execute a resource, or tell each later value of \
                it.\n\nWith `SEND_NOW` the request leaves as soon as the device can hear it; a \
                device that sleeps hears it when it next wakes.";
    let refusal = (
        "DEVICE_NOT_REGISTERED",
        "The device is not registered and the request was to be sent now",
    );
    let titles = ["Read or observe", "Write", "Execute"];
    let body = one_of(cases().into_iter().zip(titles), "Lwm2mAction");
    let summary = "Ask a device over LwM2M";
    super::create("createLwm2mAction", summary, text, body, refusal)
}

/// POST for several devices.
pub(in crate::api) fn create_many() -> Described {
    // Programs are made of this document that name their types by these titles, each once.
    let titles = [
        "Read or observe on several devices",
        "Write to several devices",
        "Execute on several devices",
    ];
    let body = one_of_many(cases().into_iter().zip(titles), "Lwm2mActions");
    super::create_many("createLwm2mActions", "Ask several devices over LwM2M", body)
}

fn cases() -> [Schema; 3] {
    let look = Schema::one_of_words(vec![
        Operation::Read.word(),
        Operation::ObserveStart.word(),
        Operation::ObserveEnd.word(),
    ]);
    let read = Schema::closed()
        .must(
            "action",
            look,
            "Read a value, be told each later one, or no more.",
        )
        .must("resourceAddress", anything(), ANY_ADDRESS);
    let value = format!(
        "The value as a text, of at most {ACTION_DATA_BYTES_MAX} bytes in UTF-8: `21.5`, `true`, \
         base64 for OPAQUE, ISO 8601 or seconds since 1970 for TIME, `o:i` for OBJLINK."
    );
    let write = Schema::closed()
        .must(
            "action",
            Schema::only(Operation::Write.word()),
            "Write a value.",
        )
        .must("resourceAddress", resource_or_instance(), ADDRESS)
        .must("data", data().example("21.5"), &value);
    let execute = Schema::closed()
        .must(
            "action",
            Schema::only(Operation::Execute.word()),
            "Run something.",
        )
        .must("resourceAddress", resource().example("/3/0/4"), ADDRESS)
        .may("data", data(), "Arguments of the execution.");
    [read, write, execute].map(when).map(as_often)
}

const ADDRESS: &str = "`/object/instance/resource`, each a number from 0 to 65535.";

const ANY_ADDRESS: &str = "`/object/instance/resource`, each a number from 0 to 65535; an object, \
                           an instance of one or an instance of a resource will do as well.";

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

/// A value. Its type is that of the resource, so it is a text whatever it means.
fn data() -> Schema {
    Schema::text_of(0..=ACTION_DATA_BYTES_MAX)
}
