//! How is the administration log read? For the document of the API.

use engine::admin_log::entry::{Category, Subject};

use super::PAGE_SIZE_MAX;
use crate::api::openapi::{Operation, Schema, Tag, names};
use crate::api::page::described::{page_of, paged_by};

/// GET all.
pub(in crate::api) fn list() -> Operation {
    let text = "Newest first. Without a time, the entries of the last seven days; with an end \
                alone, those of the seven days before it; with a start alone, those until now.";
    let operation = Operation::new("listLogEntries", Tag::Log, "Read the administration log")
        .description(text)
        .query("iccid", names::iccid(), "Entries about this SIM alone.")
        .query(
            "startDateTime",
            names::log_time(),
            "Entries from this time on (UTC): `2026-11-24T12:00:00.000`; the milliseconds may be \
             left out, and a `Z` may follow.",
        )
        .query(
            "endDateTime",
            names::log_time(),
            "Entries up to and with this time (UTC), in the same form.",
        )
        .query(
            "category",
            Schema::word::<Category>(),
            "Entries of this category alone.",
        )
        .query(
            "type",
            Schema::word::<Subject>(),
            "Entries of this type alone.",
        );
    paged_by(operation, PAGE_SIZE_MAX).answer(200, page_of(entry()), "A page of entries.")
}

/// GET statistics.
pub(in crate::api) fn statistics() -> Operation {
    let text = "Counts the entries of each of the last seven days of a time zone, today included, \
                and the devices they are about.";
    Operation::new("getLogStatistics", Tag::Log, "Count log entries by day")
        .description(text)
        .needed_query(
            "timezone",
            Schema::text()
                .pattern("^[A-Za-z0-9_+/-]+$")
                .example("Europe/Zurich"),
            "Whose days: a name of the IANA time zone database, URL-encoded.",
        )
        .query(
            "category",
            Schema::word::<Category>(),
            "Entries of this category alone.",
        )
        .answer(200, statistics_body(), "What the log has.")
}

/// GET a payload.
pub(in crate::api) fn payload() -> Operation {
    let text = "An entry about something that a device sent and that cannot be read has a \
                `payloadReference`. It leads here: to the bytes as the device sent them.";
    let bytes = Schema::text().format("binary");
    Operation::new(
        "getLogPayload",
        Tag::Log,
        "Read the bytes a log entry is about",
    )
    .description(text)
    .answer_in(
        200,
        vec![("application/octet-stream", bytes)],
        "The bytes as they came.",
    )
}

fn statistics_body() -> Schema {
    let day = Schema::text().pattern(r"^\d{4}-\d{2}-\d{2}T00:00:00\.000\+0000$");
    let day = Schema::object()
        .must(
            "amount",
            Schema::count().example(12_u64),
            "How many entries it has.",
        )
        .must(
            "day",
            day.example("2026-11-24T00:00:00.000+0000"),
            "The date in the time zone.",
        )
        .named("LogDay");
    let days = Schema::list(day);
    Schema::object()
        .must(
            "totalUniqueDevices",
            Schema::count().example(5_u64),
            "How many devices the entries are about.",
        )
        .must(
            "administrationLogs",
            days,
            "The days that have entries, oldest first.",
        )
        .named("LogStatistics")
}

/// An entry.
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
        .must("id", id, "The entry.")
        .must("customerId", names::customer_id(), "Whose it is.")
        .must("timestamp", names::instant(), "When it happened.")
        .must("type", Schema::word::<Subject>(), "What it is about.")
        .must("message", message, "What happened: `Component[Kind]`.")
        .must("description", description, "What happened, for people.")
        .must("traceId", names::trace(), "What it happened with.")
        .must(
            "category",
            Schema::word::<Category>().example("info"),
            "Whether something went wrong.",
        )
        .may(
            "imsi",
            names::imsi(),
            "The subscriber, where a device is known.",
        )
        .may("ip", names::ip(), "Where the device was heard from.")
        .may("iccid", names::iccid(), "The SIM, where a device is known.")
        .may(
            "payloadReference",
            payload,
            "The path of the bytes it is about, where there are any.",
        )
        .named("LogEntry")
}
