//! Which operation imports devices? The OpenAPI description.

use super::report::REFUSALS_MAX;
use crate::api::error::described::{error, error_with, fault};
use crate::api::openapi::{ApiOperation, JSON, Schema, Tag};

const NDJSON: &str = "application/x-ndjson";

/// POST.
pub(in crate::api) fn create() -> ApiOperation {
    let text = "Creates one device per line. The body is NDJSON, one object per line with the \
                properties of `createDevice`, or CSV with a header row of the same names; the \
                value of the tag `site` is in a column `tag:site`, and the properties of `psk` are \
                in the columns `pskIdentity`, `pskSecretKey` and `pskFormat`. By default an \
                import has at most 1,000,000 lines. Devices are created while the body is \
                uploaded. An invalid line is refused and reported with its number; the other lines \
                are imported. An import can be repeated: existing identical devices are \
                counted as `unchanged`.\n\nWith `Accept: application/x-ndjson`, the response \
                streams the progress and each refused line during the import.";
    let operation = ApiOperation::new("importDevices", Tag::Devices, "Import devices")
        .description(text)
        .body(lines(), "The devices, one per line.")
        .answer_in(
            200,
            vec![
                (JSON, summary().named("ImportSummary")),
                (NDJSON, report_lines()),
            ],
            "The import is complete. Some lines may be refused.",
        )
        .refusal(
            409,
            &["IMPORT_RUNNING"],
            "Another import of this customer is in progress.",
        );
    stopped(operation)
}

/// The same operation with the errors that stop an import. Their responses have the counts so far.
fn stopped(operation: ApiOperation) -> ApiOperation {
    let stops = [
        (
            400,
            "The body is malformed or incomplete. Codes: `MALFORMED_BODY`.",
        ),
        (
            401,
            "The token is missing, unknown, expired or revoked. A client revoked during the \
             import stops it. Codes: `UNAUTHORIZED`.",
        ),
        (
            408,
            "The body arrives too slowly: less than 1 KiB a second for longer than the service \
             waits, 30 seconds by default. Codes: `BODY_TOO_SLOW`.",
        ),
        (413, "The body has too many lines. Codes: `TOO_MANY_LINES`."),
        (500, "Internal error. Codes: `INTERNAL`."),
        (
            503,
            "The service is overloaded or stopping, or its store does not respond. Codes: \
             `UNAVAILABLE`.",
        ),
    ];
    let describe = |operation: ApiOperation, (status, why)| operation.answer(status, partly(), why);
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

/// An error after a part of the lines was imported.
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
            "The number of refused lines that are not listed.",
        )
}

fn tally() -> Schema {
    Schema::object()
        .must(
            "lines",
            Schema::count().example(2_u64),
            "Processed lines: `created` + `unchanged` + `refused`. Blank lines do not count.",
        )
        .must(
            "created",
            Schema::count().example(2_u64),
            "Created devices.",
        )
        .must(
            "unchanged",
            Schema::count(),
            "Lines whose device already exists with the same values.",
        )
        .must("refused", Schema::count(), "Refused lines.")
        .must(
            "through",
            Schema::count().example(2_u64),
            "A line number. All lines up to and including it are processed.",
        )
}

fn refusal() -> Schema {
    Schema::object()
        .must("line", Schema::count(), "The line number, from 1.")
        .must("errors", Schema::list(fault()), "The faults of the line.")
        .named("RefusedLine")
}

fn report_lines() -> Schema {
    let json = "{\"progress\":{\"lines\":2,\"created\":2,\"unchanged\":0,\"refused\":0,\
                \"through\":2}}\n{\"summary\":{\"lines\":2,\"created\":2,\"unchanged\":0,\
                \"refused\":0,\"through\":2}}\n";
    Schema::text().example(json)
}

#[cfg(test)]
mod tests {
    use crate::api::devices::described::new_device;
    use crate::api::import::records::COLUMNS;

    #[test]
    fn lines_have_the_properties_of_a_device() {
        let columns = COLUMNS.into_iter().chain(["psk", "tags"]);
        let columns: Vec<_> = columns.collect();
        assert_eq!(new_device().property_names("NewDevice"), columns);
    }
}
