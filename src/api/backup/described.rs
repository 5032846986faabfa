//! Which operation sends a backup? The OpenAPI description.

use crate::api::openapi::{ApiOperation, Schema, Tag};

/// GET.
pub(in crate::api) fn send() -> ApiOperation {
    let text = "Returns everything in the store, as it is at one moment during the call, for \
                `signalbox restore`. Calls and devices are served meanwhile. The last bytes tell \
                whether a backup is complete: `signalbox backup` makes one and checks it. The keys \
                in the data directory are not part of it.";
    let bytes = vec![("application/octet-stream", Schema::text().format("binary"))];
    ApiOperation::new("getBackup", Tag::Service, "Make a backup")
        .description(text)
        .answer_in(200, bytes, "The backup.")
        .refusal(
            409,
            &["BACKUP_IN_PROGRESS", "BACKUP_OF_DATABASE"],
            "Another backup is in progress, or the store is on PostgreSQL, whose own tools make \
             backups.",
        )
}
