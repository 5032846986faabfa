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
            "Entries from this time on (UTC).",
        )
        .query(
            "endDateTime",
            names::log_time(),
            "Entries up to and with this time (UTC).",
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

/// An entry.
pub(in crate::api) fn entry() -> Schema {
    let id = Schema::uuid().example("01a20d6d-5a00-7000-8167-89abcdef0123");
    let message = Schema::text().pattern(r"^[A-Za-z0-9]+\[[A-Za-z0-9]+\]$");
    let message = message.example("Lifecycle[DeviceFirstTimeRegistered]");
    let description = Schema::text();
    let description = description.example("The device registered for the first time as meter-7.");
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
        .named("LogEntry")
}
