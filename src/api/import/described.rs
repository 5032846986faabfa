//! How are devices imported? For the document of the API.

use super::report::REFUSALS_MAX;
use crate::api::error::described::{error, error_with, fault};
use crate::api::openapi::{JSON, Operation, Schema, Tag};

const NDJSON: &str = "application/x-ndjson";

/// POST.
pub(in crate::api) fn create() -> Operation {
    let text = "Takes as many devices as an import may have lines, as NDJSON (an object a line, \
                each as `POST /management-api/v1/devices` takes it) or as CSV under a header \
                with the same names. Devices are made while the body still comes. A line that \
                cannot be a device is refused and told with its number; the others count. \
                Repeating an import makes no device twice.\n\nWith `Accept: \
                application/x-ndjson` the answer comes line by line as the import goes.";
    let operation = Operation::new("importDevices", Tag::Devices, "Import devices")
        .description(text)
        .body(lines(), "The devices, one a line.")
        .answer_in(
            200,
            vec![(JSON, summary().named("ImportSummary")), (NDJSON, told())],
            "The import came to its end; some lines may be refused.",
        )
        .refusal(
            409,
            &["IMPORT_RUNNING"],
            "Another import of this customer is under way.",
        );
    stopped(operation)
}

/// With whatever may stop an import; then the answer says how far it came.
fn stopped(operation: Operation) -> Operation {
    let stops = [
        (
            400,
            "The body is not what it says it is, or did not come to its end. Codes: \
             `MALFORMED_BODY`.",
        ),
        (
            401,
            "There is no token, or it is unknown, expired or revoked, also while the import is \
             under way. Codes: `UNAUTHORIZED`.",
        ),
        (
            413,
            "The body has more lines than an import may have. Codes: `TOO_MANY_LINES`.",
        ),
        (500, "The service failed. Codes: `INTERNAL`."),
        (
            503,
            "The service has too much to do, is stopping, or its store does not answer. Codes: \
             `UNAVAILABLE`.",
        ),
    ];
    let describe = |operation: Operation, (status, why)| operation.answer(status, partly(), why);
    let operation = stops.into_iter().fold(operation, describe);
    operation.challenged(401).retried(503)
}

fn lines() -> Vec<(&'static str, Schema)> {
    let json = "{\"deviceId\":\"meter-7\",\"ip\":\"10.0.0.7\"}\n{\"deviceId\":\"meter-8\"}\n";
    let json = Schema::text().example(json);
    let csv = Schema::text().example("deviceId,ip\nmeter-7,10.0.0.7\nmeter-8,\n");
    vec![
        (NDJSON, json.clone()),
        ("application/ndjson", json.clone()),
        ("application/jsonl", json),
        ("text/csv", csv),
    ]
}

/// A failure that may come when part of the import was done.
fn partly() -> Schema {
    let stopped = error_with(summary()).named("StoppedImport");
    Schema::any_of([stopped, error()])
}

fn summary() -> Schema {
    let refusal = refusal();
    tally()
        .must(
            "refusals",
            Schema::list(refusal).many(0..=REFUSALS_MAX as u64),
            "The first refused lines.",
        )
        .must(
            "refusalsOmitted",
            Schema::count(),
            "Refused lines that are not listed.",
        )
}

fn tally() -> Schema {
    Schema::object()
        .must(
            "lines",
            Schema::count().example(2_u64),
            "Lines that are settled.",
        )
        .must("created", Schema::count().example(2_u64), "Devices made.")
        .must(
            "unchanged",
            Schema::count(),
            "Lines whose device was there, just as they say.",
        )
        .must("refused", Schema::count(), "Lines that did nothing.")
        .must(
            "through",
            Schema::count().example(2_u64),
            "Up to and with this line of the body everything is settled.",
        )
}

fn refusal() -> Schema {
    Schema::object()
        .must("line", Schema::count(), "The line, from 1.")
        .must("errors", Schema::list(fault()), "What is wrong with it.")
        .named("RefusedLine")
}

fn told() -> Schema {
    let json = "{\"progress\":{\"lines\":2,\"created\":2,\"unchanged\":0,\"refused\":0,\
                \"through\":2}}\n{\"summary\":{\"lines\":2,\"created\":2,\"unchanged\":0,\
                \"refused\":0,\"through\":2}}\n";
    Schema::text().example(json)
}

#[cfg(test)]
mod tests {
    use crate::api::devices::described::new_device;
    use crate::api::import::records::PROPERTIES;

    #[test]
    fn lines_have_the_properties_of_a_device() {
        assert_eq!(new_device().property_names("NewDevice"), PROPERTIES);
    }
}
