//! Which parameters and properties do lists have? The OpenAPI descriptions.

use super::{SIZE_DEFAULT, SIZE_MAX};
use crate::api::openapi::{ApiOperation, Schema};

/// The same operation with the parameters of a paged list of the usual maximum page size.
pub(in crate::api) fn paged(operation: ApiOperation) -> ApiOperation {
    paged_by(operation, SIZE_MAX)
}

/// The same operation with the parameters of a paged list of this maximum page size.
pub(in crate::api) fn paged_by(operation: ApiOperation, size_max: u32) -> ApiOperation {
    let page = Schema::whole(1..=u64::from(u32::MAX)).default(1_u64);
    let text = "The page number. A page beyond the last is empty.";
    let operation = operation.query("page", page, text);
    sized_by(operation, size_max)
}

/// The same operation with the page size of a list that is read by cursor.
pub(in crate::api) fn sized(operation: ApiOperation) -> ApiOperation {
    sized_by(operation, SIZE_MAX)
}

/// Where a page of a list that is read by cursor begins.
pub(in crate::api) fn cursor() -> Schema {
    Schema::text().pattern("^[0-9]{1,20}$").example("4711")
}

fn sized_by(operation: ApiOperation, size_max: u32) -> ApiOperation {
    let size = Schema::whole(1..=u64::from(size_max)).default(u64::from(SIZE_DEFAULT));
    operation.query("pageSize", size, "The maximum number of items on a page.")
}

/// A page of these items.
pub(in crate::api) fn page_of(item: Schema) -> Schema {
    let number = Schema::whole(1..=u64::from(u32::MAX)).example(1_u64);
    Schema::object()
        .must("items", Schema::list(item), "The items on the page.")
        .must("page", number, "The page number.")
        .must(
            "pageAmount",
            Schema::count().example(1_u64),
            "The number of pages. An empty list has one.",
        )
}
