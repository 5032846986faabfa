//! Which operations create, list and delete customers? The OpenAPI descriptions.

use crate::api::openapi::{ApiOperation, Schema, Tag, names};
use crate::api::page::described::{page_of, paged};

/// POST.
pub(in crate::api) fn create() -> ApiOperation {
    let body = Schema::closed()
        .may(
            "id",
            names::customer_id(),
            "The id of the customer. Default: a generated id.",
        )
        .must("name", names::label().example("Acme Metering"), NAME)
        .named("NewCustomer");
    ApiOperation::new("createCustomer", Tag::Customers, "Create a customer")
        .description("Devices, their data and API clients belong to a customer.")
        .json(body, "The customer to create.")
        .answer(201, created(), "The created customer.")
        .answer_header(201, "Location", Schema::text(), "The path of the customer.")
        .leads_to(
            201,
            &["createClient", "listClients", "deleteCustomer"],
            &[("customer", "$response.body#/id")],
        )
        .once(&["CUSTOMER_EXISTS"], "another customer has this id.")
}

/// GET all.
pub(in crate::api) fn list() -> ApiOperation {
    let operation = ApiOperation::new("listCustomers", Tag::Customers, "List customers")
        .description("Returns all customers, sorted by id.");
    paged(operation).answer(200, page_of(customer()), "A page of customers.")
}

/// DELETE.
pub(in crate::api) fn delete() -> ApiOperation {
    let text = "Deletes the customer with its API clients, its devices and all their data. If \
                the call is interrupted, repeat it to continue.";
    ApiOperation::new("deleteCustomer", Tag::Customers, "Delete a customer")
        .description(text)
        .answer_empty(204, "The customer is deleted.")
}

const NAME: &str = "The display name.";

fn created() -> Schema {
    Schema::object()
        .must("id", names::customer_id(), "The id of the customer.")
        .must("name", names::label().example("Acme Metering"), NAME)
}

fn customer() -> Schema {
    created()
        .must(
            "number",
            Schema::count().example(80_063_993_375_475_u64),
            "The numeric id of the customer.",
        )
        .must("created", names::instant(), "The creation time.")
        .named("Customer")
}
