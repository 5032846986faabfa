//! Which operation shows how busy a customer was? The OpenAPI description.

use engine::limits::ACTIVITY_MINUTES;

use crate::api::openapi::{ApiOperation, Schema, Tag, names};

/// GET.
pub(in crate::api) fn show() -> ApiOperation {
    ApiOperation::new("getActivity", Tag::Devices, "Get the activity per minute")
        .description(format!(
            "Returns how many events and action requests of the customer were stored in each of \
             the last {ACTIVITY_MINUTES} minutes. They are counted in memory: minutes before the \
             last start of the service are left out."
        ))
        .answer(200, activity(), "The minutes, oldest first.")
}

fn activity() -> Schema {
    let minute = Schema::object()
        .must("start", names::instant(), "When the minute began.")
        .must(
            "events",
            Schema::count().example(1_200_u64),
            "Events of devices: data, changes of life cycles, errors and results.",
        )
        .must(
            "requests",
            Schema::count().example(12_u64),
            "Action requests that were created.",
        );
    Schema::object()
        .must(
            "minutes",
            Schema::list(minute).many(1..=ACTIVITY_MINUTES.into()),
            "Each minute, the current one last.",
        )
        .named("Activity")
}
