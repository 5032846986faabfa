//! Which operations read the administration log? The OpenAPI descriptions.

use engine::admin_log::entry::{Category, Subject};
use engine::query::KIND_CHARACTERS_MAX;

use super::PAGE_SIZE_MAX;
use crate::api::openapi::{ApiOperation, Schema, Tag, names};
use crate::api::page::described::{page_of, paged_by};

/// GET all.
pub(in crate::api) fn list() -> ApiOperation {
    let text = "Returns entries newest first. Entries are deleted after {{log_retention_days}}.";
    let operation = ApiOperation::new("listLogEntries", Tag::Log, "List log entries")
        .description(text)
        .query("iccid", names::iccid(), "Only entries about this SIM.")
        .query(
            "deviceId",
            names::device_id(),
            "Only entries about the SIM of this device. The list is empty if the device does not \
             exist.",
        )
        .query(
            "startDateTime",
            names::log_time(),
            "The start of the time range, inclusive (UTC): `2026-11-24T12:00:00.000`. The \
             milliseconds and a final `Z` are optional. Default: 7 days before the end.",
        )
        .query(
            "endDateTime",
            names::log_time(),
            "The end of the time range, inclusive, in the same format. Default: now.",
        )
        .query("category", Schema::word::<Category>(), CATEGORY)
        .query(
            "type",
            Schema::word::<Subject>(),
            "Only entries of this type.",
        )
        .query(
            "kind",
            Schema::text_of(1..=KIND_CHARACTERS_MAX)
                .pattern("^[A-Za-z0-9]+$")
                .example("ActionRequestFailed"),
            KIND,
        )
        .faults(&["TOO_BROAD"]);
    paged_by(operation, PAGE_SIZE_MAX).answer(200, page_of(entry()), "A page of entries.")
}

/// GET one.
pub(in crate::api) fn show() -> ApiOperation {
    ApiOperation::new("getLogEntry", Tag::Log, "Get a log entry")
        .description("Returns one entry, as the list shows it.")
        .answer(200, entry(), "The entry.")
}

/// GET statistics.
pub(in crate::api) fn statistics() -> ApiOperation {
    let text = "Counts the entries of each of the last 7 days, today included, and the distinct \
                devices they are about.";
    ApiOperation::new("getLogStatistics", Tag::Log, "Get daily log statistics")
        .description(text)
        .needed_query(
            "timezone",
            Schema::text()
                .pattern("^[A-Za-z0-9_+/-]+$")
                .example("Europe/Zurich"),
            "The time zone of the days: an IANA time zone name, URL-encoded.",
        )
        .query("category", Schema::word::<Category>(), CATEGORY)
        .answer(200, statistics_body(), "The statistics.")
}

const KIND: &str = "Only entries with this kind, which is in the brackets of `message`. If more \
                    than 20,000 entries pass the other filters, the response is 400 `TOO_BROAD`: \
                    narrow the time range, or add a type, a category or a device.";

const CATEGORY: &str = "Only entries of this category.";

/// GET a payload.
pub(in crate::api) fn payload() -> ApiOperation {
    let text = "Returns the bytes a device sent and the service could not decode. The \
                `payloadReference` of a log entry is the path of this operation.";
    let bytes = vec![("application/octet-stream", Schema::text().format("binary"))];
    ApiOperation::new("getLogPayload", Tag::Log, "Get the payload of a log entry")
        .description(text)
        .answer_in(200, bytes, "The bytes as received.")
}

fn statistics_body() -> Schema {
    let day = Schema::text().pattern(r"^\d{4}-\d{2}-\d{2}T00:00:00\.000\+0000$");
    let day = Schema::object()
        .must(
            "amount",
            Schema::count().example(12_u64),
            "The number of entries on this day.",
        )
        .must(
            "day",
            day.example("2026-11-24T00:00:00.000+0000"),
            "The local date in `timezone`. The time and offset are constant.",
        )
        .named("LogDay");
    let days = Schema::list(day);
    Schema::object()
        .must(
            "totalUniqueDevices",
            Schema::count().example(5_u64),
            "The number of distinct devices in the entries.",
        )
        .must(
            "administrationLogs",
            days,
            "The days with entries, oldest first.",
        )
        .named("LogStatistics")
}

/// A log entry.
pub(in crate::api) fn entry() -> Schema {
    let id = Schema::uuid().example("01a20d6d-5a00-7000-8167-89abcdef0123");
    let message = Schema::text().pattern(r"^[A-Za-z0-9]+\[[A-Za-z0-9]+\]$");
    let message = message.example("Lifecycle[DeviceFirstTimeRegistered]");
    let description = Schema::text();
    let description = description.example("The device registered for the first time as meter-7.");
    let payload = Schema::text().example(
        "/management-api/v1/administrationLogs/01a20d6d-5a00-7000-8167-89abcdef0123/payload",
    );
    Schema::object()
        .must("id", id, "The id of the entry.")
        .must("customerId", names::customer_id(), "The customer.")
        .must("timestamp", names::instant(), "The time of the entry.")
        .must(
            "type",
            Schema::word::<Subject>(),
            "The subject of the entry.",
        )
        .must("message", message, "The kind of entry: `Component[Kind]`.")
        .must("description", description, "The details, for people.")
        .must("traceId", names::trace(), "The trace id of the cause.")
        .must(
            "category",
            Schema::word::<Category>().example("info"),
            "`error` if something failed, otherwise `info`.",
        )
        .may("imsi", names::imsi(), "The IMSI of the device.")
        .may("ip", names::ip(), "The IP address of the device.")
        .may("iccid", names::iccid(), "The ICCID of the device.")
        .may(
            "payloadReference",
            payload,
            "The path of the stored payload, if there is one.",
        )
        .named("LogEntry")
}
