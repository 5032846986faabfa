//! How are lists asked for, and what do they look like? For the document of the API.

use super::{SIZE_DEFAULT, SIZE_MAX};
use crate::api::openapi::{Operation, Schema};

/// The same operation with the parameters of a list without a bound of its own.
pub(in crate::api) fn paged(operation: Operation) -> Operation {
    paged_by(operation, SIZE_MAX)
}

/// The same operation with the parameters of a list that shows at most so many.
pub(in crate::api) fn paged_by(operation: Operation, size_max: u32) -> Operation {
    let page = Schema::whole(1..=u64::from(u32::MAX)).default(1_u64);
    let operation = operation.query("page", page, "Which page; one beyond the end is empty.");
    sized_by(operation, size_max)
}

/// The same operation with the size of a list that is read on from where a stretch ended.
pub(in crate::api) fn sized(operation: Operation) -> Operation {
    sized_by(operation, SIZE_MAX)
}

fn sized_by(operation: Operation, size_max: u32) -> Operation {
    let size = Schema::whole(1..=u64::from(size_max)).default(u64::from(SIZE_DEFAULT));
    operation.query("pageSize", size, "How many there are at once.")
}

/// A page of such things.
pub(in crate::api) fn page_of(item: Schema) -> Schema {
    let number = Schema::whole(1..=u64::from(u32::MAX)).example(1_u64);
    Schema::object()
        .must("items", Schema::list(item), "What is on the page.")
        .must("page", number, "Which page it is.")
        .must(
            "pageAmount",
            Schema::count().example(1_u64),
            "How many pages there are; an empty list has one.",
        )
}
