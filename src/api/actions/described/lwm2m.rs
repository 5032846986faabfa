//! Which operations create LwM2M requests? The OpenAPI descriptions.

use engine::AttributeName;
use engine::action::Operation;
use engine::limits::REQUEST_PATHS_MAX;
use serde_json::{Value, json};

use super::{as_often, later, one_of, one_of_many, when};
use crate::api::openapi::{ApiOperation as Described, Schema};
use crate::api::words::Word;

/// An object id, an instance id or a resource id.
const NUMBER: &str = "(0|[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}\
                      |655[0-2][0-9]|6553[0-5])";

/// POST for one device.
pub(in crate::api) fn create() -> Described {
    let text = "Creates an LwM2M request to the device. `action` is its operation, which \
                determines the other properties.\n\nValues are checked against the object model \
                before they are sent; a request with values that do not fit becomes `FAILED`, and \
                its `errorMessage` names each of them. So does a request that the LwM2M version \
                of the device does not have.\n\nWith `SEND_NOW` the request is sent immediately, \
                or when the device next wakes if it is asleep. If the registration of the device \
                ends before that, the request fails.";
    let refusal = (
        "DEVICE_NOT_REGISTERED",
        "the mode is `SEND_NOW` and the device is not registered",
    );
    let cases = cases().into_iter().zip(examples());
    let cases = cases.map(|(case, bodies)| case.examples(bodies));
    let body = one_of(cases.zip(TITLES), "Lwm2mAction");
    let summary = "Create an LwM2M request";
    super::create("createLwm2mAction", summary, text, body, refusal)
}

/// POST for several devices.
pub(in crate::api) fn create_many() -> Described {
    // Client generators name types after these titles, so each title is unique.
    let titles = [
        "Read, discover or end an observation on several devices",
        "Write to several devices",
        "Execute on several devices",
        "Create an object instance on several devices",
        "Delete on several devices",
        "Write attributes on several devices",
        "Write an object instance of several devices",
        "Read several paths of several devices",
        "Write several paths of several devices",
        "Observe on several devices",
        "Observe several paths of several devices",
        "End the observation of several paths of several devices",
    ];
    let body = one_of_many(cases().into_iter().zip(titles), "Lwm2mActions");
    let summary = "Create an LwM2M request for several devices";
    super::create_many("createLwm2mActions", summary, body)
}

fn cases() -> [Schema; 12] {
    kinds().map(later)
}

const TITLES: [&str; 12] = [
    "Read, discover or end an observation",
    "Write",
    "Execute",
    "Create an object instance",
    "Delete",
    "Write attributes",
    "Write an object instance",
    "Read several paths",
    "Write several paths",
    "Observe",
    "Observe several paths",
    "End the observation of several paths",
];

/// Whole bodies for each kind of request. A device with the objects of `signalbox demo` performs
/// them in this order.
fn examples() -> [Vec<Value>; 12] {
    const SENSOR: &str = "/3303/0/5700";
    let of = |action: &str, address: &str| json!({ "action": action, "resourceAddress": address });
    let with = |mut body: Value, name: &str, value: Value| {
        body[name] = value;
        body
    };
    let several = |action: &str| json!({ "action": action, "resourceAddresses": [SENSOR, "/3/0"] });
    let sensor = json!({ "5700": "21.5", "5701": "Cel" });
    let offset = json!({ "14": "+02:00" });
    let written = json!({ "/1/0/1": "600", "/3/0/14": "+02:00" });
    let observe = of("observe-start", "/3303/0/5701");
    let conditions = of("observe-start", SENSOR);
    [
        vec![
            of("read", SENSOR),
            of("read", "/3/0"),
            of("discover", "/3303"),
        ],
        vec![with(of("write", "/3/0/14"), "data", json!("+01:00"))],
        vec![of("execute", "/1/0/8")],
        vec![with(of("create", "/3303/1"), "data", sensor)],
        vec![of("delete", "/3303/1")],
        vec![with(
            of("write-attributes", SENSOR),
            "attributes",
            json!({ "pmin": 10, "gt": 30, "lt": null }),
        )],
        vec![with(of("write-instance", "/3/0"), "data", offset)],
        vec![several("read-composite")],
        vec![json!({ "action": "write-composite", "data": written })],
        vec![
            observe,
            with(conditions, "attributes", json!({ "pmin": 60, "st": 0.5 })),
        ],
        vec![several("observe-composite-start")],
        vec![several("observe-composite-end")],
    ]
}

/// The kinds of requests, without the devices and the time.
pub(super) fn kinds() -> [Schema; 12] {
    let look = Schema::one_of_words(vec![
        Operation::Read.word(),
        Operation::Discover.word(),
        Operation::ObserveEnd.word(),
    ]);
    let read = Schema::closed()
        .must(
            "action",
            look,
            "Read a value, list what is at and below a path, or end an observation.",
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
    let create = of(Operation::Create, "Create an object instance.")
        .must(
            "resourceAddress",
            up_to_instance().example("/3303"),
            "`/object/instance`, or `/object`: the device chooses the number of the instance. The \
             `payload` of the result is the path of the new instance.",
        )
        .may("data", by_resource(), BY_RESOURCE);
    let delete = of(
        Operation::Delete,
        "Delete an object instance or a resource instance.",
    )
    .must(
        "resourceAddress",
        deletable().example("/3303/1"),
        "`/object/instance` or `/object/instance/resource/resourceInstance`.",
    );
    let write_attributes = of(Operation::WriteAttributes, "Write attributes of a path.")
        .must("resourceAddress", anything(), ANY_ADDRESS)
        .must("attributes", attributes(), ATTRIBUTES);
    let write_instance = of(
        Operation::WriteInstance,
        "Write values of an object instance.",
    )
    .must(
        "resourceAddress",
        instance().example("/3/0"),
        "`/object/instance`.",
    )
    .must("data", by_resource(), BY_RESOURCE)
    .may(
        "replace",
        Schema::truth().default(false),
        "`true`: the values replace those of the instance. `false`: its other resources stay.",
    );
    let paths = || {
        let some = Schema::list(anything())
            .many(1..=REQUEST_PATHS_MAX as u64)
            .unique();
        let all = Schema::list(Schema::only("/")).many(1..=1);
        Schema::any_of([some, all]).example(vec!["/3303/0/5700", "/3/0"])
    };
    let read_composite = of(
        Operation::ReadComposite,
        "Read several paths at once (LwM2M 1.1).",
    )
    .must(
        "resourceAddresses",
        paths(),
        "The paths; `/` alone is everything that the device has. The result has the values of \
             those that exist.",
    );
    let write_composite = of(
        Operation::WriteComposite,
        "Write several paths at once (LwM2M 1.1).",
    )
    .must(
        "data",
        values().of_names(resource_or_instance(), REQUEST_PATHS_MAX as u64),
        "The value of each path of a resource or a resource instance.",
    );
    let observe = of(Operation::ObserveStart, "Start an observation.")
        .must("resourceAddress", anything(), ANY_ADDRESS)
        .may(
            "attributes",
            attributes(),
            "The conditions of its notifications (LwM2M Core 1.2 section 7.3). They are in the \
             Observe of a device of LwM2M 1.2; before, a Write-Attributes of their own precedes \
             it, and the timeline shows `ATTRIBUTES_WRITTEN`.",
        );
    let several = "The paths; `/` alone is everything that the device has.";
    let start = Operation::ObserveCompositeStart;
    let observe_composite = of(start, "Observe several paths at once (LwM2M 1.1).")
        .must("resourceAddresses", paths(), several)
        .may(
            "attributes",
            attributes(),
            "The conditions of its notifications, for a device of LwM2M 1.2 (LwM2M Core 1.2 \
             section 7.3). For an older one write the attributes of each path before.",
        );
    let end = Operation::ObserveCompositeEnd;
    let end_composite = of(
        end,
        "End the observation of exactly these paths, in any order.",
    )
    .must("resourceAddresses", paths(), several);
    [
        read,
        write,
        execute,
        create,
        delete,
        write_attributes,
        write_instance,
        read_composite,
        write_composite,
        observe,
        observe_composite,
        end_composite,
    ]
    .map(when)
    .map(as_often)
}

fn of(operation: Operation, why: &str) -> Schema {
    Schema::closed().must("action", Schema::only(operation.word()), why)
}

/// Values of an instance.
fn by_resource() -> Schema {
    let name = format!("^{NUMBER}(/{NUMBER})?$");
    let name = Schema::text().pattern(&name);
    values().of_names(name, REQUEST_PATHS_MAX as u64)
}

fn values() -> Schema {
    let value = Schema::any_of([Schema::text(), Schema::number(), Schema::truth()]);
    Schema::map(value).with_some_property()
}

/// The attributes to write.
pub(super) fn attributes() -> Schema {
    let seconds = || or_text(Schema::whole(0..=u64::from(u32::MAX)), "^[0-9]+$");
    let number = || or_text(Schema::number(), NUMBER_TEXT);
    let bit = || or_text(Schema::whole(0..=1), "^[01]$");
    let of = |name: AttributeName| match name {
        AttributeName::MinimumPeriod => (seconds(), "The fewest seconds between notifications."),
        AttributeName::MaximumPeriod => (seconds(), "The most seconds between notifications."),
        AttributeName::MinimumEvaluationPeriod => (
            seconds(),
            "The fewest seconds between evaluations (LwM2M 1.1).",
        ),
        AttributeName::MaximumEvaluationPeriod => (
            seconds(),
            "The most seconds between evaluations (LwM2M 1.1).",
        ),
        AttributeName::GreaterThan => (number(), "Notify when the value crosses this."),
        AttributeName::LessThan => (number(), "Notify when the value crosses this."),
        AttributeName::Step => (
            or_text(Schema::number().above(0), NUMBER_TEXT),
            "Notify when the value changed by this much.",
        ),
        AttributeName::Edge => (
            bit(),
            "Notify when the value becomes false (0) or true (1) (LwM2M 1.2).",
        ),
        AttributeName::Confirmable => (bit(), "Notify in Confirmable messages (LwM2M 1.2)."),
        AttributeName::MaximumHistoricalQueue => {
            (seconds(), "How many values are kept meanwhile (LwM2M 1.2).")
        }
    };
    AttributeName::ALL
        .into_iter()
        .fold(Schema::closed(), |schema, name| {
            let (value, why) = of(name);
            schema.may(name.as_str(), value, why)
        })
        .with_some_property()
}

/// The text of a number.
const NUMBER_TEXT: &str = "^-?[0-9]+(\\.[0-9]+)?([eE][+-]?[0-9]+)?$";

/// A number, or its text: that is how it is shown.
fn or_text(number: Schema, pattern: &str) -> Schema {
    Schema::any_of([number, Schema::text().pattern(pattern)])
}

const ATTRIBUTES: &str = "The attributes to write (LwM2M Core 1.2 section 7.3); `null` removes \
                          one. `gt`, `lt` and `st` need the address of a number, `edge` that of a \
                          boolean.";

const BY_RESOURCE: &str = "The value of each resource, by its id: `{\"5700\": \"21.5\"}`. A \
                           resource instance is named `6/1`.";

const ADDRESS: &str = "`/object/instance/resource`, each a number from 0 to 65535.";

const ANY_ADDRESS: &str = "`/object/instance/resource`, each a number from 0 to 65535. The paths \
                           `/object`, `/object/instance` and \
                           `/object/instance/resource/resourceInstance` are accepted, too.";

fn anything() -> Schema {
    let any = format!("^(/{NUMBER}){{1,4}}$");
    Schema::text().pattern(&any).example("/3303/0/5700")
}

fn up_to_instance() -> Schema {
    let two = format!("^(/{NUMBER}){{1,2}}$");
    Schema::text().pattern(&two)
}

fn instance() -> Schema {
    let two = format!("^/{NUMBER}/{NUMBER}$");
    Schema::text().pattern(&two)
}

fn deletable() -> Schema {
    let two_or_four = format!("^/{NUMBER}/{NUMBER}(/{NUMBER}/{NUMBER})?$");
    Schema::text().pattern(&two_or_four)
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
