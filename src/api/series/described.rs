//! Which operation reduces the history of a resource? The OpenAPI description.

use engine::limits::{SERIES_EVENTS_MAX, SERIES_POINTS_MAX};

use super::POINTS_DEFAULT;
use crate::api::openapi::{ApiOperation, Schema, Tag, names};
use crate::api::page::described::cursor;

/// GET.
pub(in crate::api) fn show() -> ApiOperation {
    let text = format!(
        "Returns the numbers that a device reported for a path, reduced to `points` buckets of \
         equal length. Buckets without a number are left out. A number counts at the time that \
         the device measured it, or at the time it was received if that is earlier or the device \
         sent no time. `false` and `true` count as 0 and 1; texts, times, and other values that \
         are no numbers do not count. `min`, `max` and `last` are exact, `mean` is a \
         floating-point number.\n\nA call reads {SERIES_EVENTS_MAX} messages of the device at \
         most, from the newest back. If that does not reach `from`, `truncated` is `true`. Call \
         again with `nextCursor` as `cursor` and the same `path`, `from`, `to` and `points` to \
         continue with older messages. Of two answers with the same bucket, add `count`, weight \
         `mean` with it, and take the `last` with the later `lastTime`. Messages are deleted \
         after {{{{history_retention_days}}}}."
    );
    ApiOperation::new("getSeries", Tag::Devices, "Chart a resource")
        .description(text)
        .needed_query(
            "path",
            Schema::text()
                .pattern("^(/[0-9]{1,5}){3,4}$")
                .example("/3303/0/5700"),
            "The resource, or the instance of a resource. Exactly this path is read.",
        )
        .query(
            "from",
            names::log_time(),
            "The beginning of the first bucket (UTC). The milliseconds and a final `Z` are \
             optional. By default a day before `to`.",
        )
        .query(
            "to",
            names::log_time(),
            "The end of the last bucket, in the same format. By default now.",
        )
        .query(
            "points",
            Schema::whole(1..=SERIES_POINTS_MAX.into()),
            &format!("The number of buckets. By default {POINTS_DEFAULT}."),
        )
        .query("cursor", cursor(), "The `nextCursor` of the previous call.")
        .answer(200, series(), "The series.")
}

fn series() -> Schema {
    Schema::object()
        .must("path", Schema::text().example("/3303/0/5700"), "The path.")
        .must(
            "from",
            names::instant(),
            "The beginning of the first bucket.",
        )
        .must("to", names::instant(), "The end of the last bucket.")
        .must(
            "points",
            Schema::whole(1..=SERIES_POINTS_MAX.into()),
            "The number of buckets, with those that are left out.",
        )
        .must(
            "items",
            Schema::list(bucket()),
            "The buckets that have a number, the oldest first.",
        )
        .must(
            "truncated",
            Schema::truth(),
            "Whether older messages were not read.",
        )
        .may(
            "nextCursor",
            cursor(),
            "The cursor to continue with older messages. Present if `truncated` is `true`.",
        )
}

fn bucket() -> Schema {
    Schema::object()
        .must("time", names::instant(), "The beginning of the bucket.")
        .must("count", Schema::count(), "How many numbers it has.")
        .must("min", Schema::number(), "The least of them.")
        .must("max", Schema::number(), "The greatest of them.")
        .must("mean", Schema::number(), "Their mean.")
        .must("last", Schema::number(), "The last of them by time.")
        .must("lastTime", names::instant(), "The time of `last`.")
        .named("SeriesBucket")
}
