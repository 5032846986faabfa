//! How are customers made, listed and removed? For the document of the API.

use crate::api::openapi::{Operation, Schema, Tag, names};
use crate::api::page::described::{page_of, paged};

/// POST.
pub(in crate::api) fn create() -> Operation {
    let body = Schema::closed()
        .may(
            "id",
            names::customer_id(),
            "What programs call it; made where none is given.",
        )
        .must("name", names::label().example("Acme Metering"), NAME)
        .named("NewCustomer");
    Operation::new("createCustomer", Tag::Customers, "Make a customer")
        .description("Devices, their data and API clients belong to a customer.")
        .json(body, "Who the customer is.")
        .answer(201, created(), "The customer.")
        .answer_header(201, "Location", Schema::text(), "The path of the customer.")
        .leads_to(
            201,
            &["createClient", "listClients", "deleteCustomer"],
            &[("customer", "$response.body#/id")],
        )
        .refusal(409, &["CUSTOMER_EXISTS"], "Another customer has the id.")
}

/// GET all.
pub(in crate::api) fn list() -> Operation {
    let operation = Operation::new("listCustomers", Tag::Customers, "List customers")
        .description("All customers, by id.");
    paged(operation).answer(200, page_of(customer()), "A page of customers.")
}

/// DELETE.
pub(in crate::api) fn delete() -> Operation {
    let text = "Removes the customer with its clients, devices and all their data. If it is \
                interrupted, calling it again goes on.";
    Operation::new("deleteCustomer", Tag::Customers, "Remove a customer")
        .description(text)
        .answer_empty(204, "The customer is gone.")
}

const NAME: &str = "What people call it.";

fn created() -> Schema {
    Schema::object()
        .must("id", names::customer_id(), "What programs call it.")
        .must("name", names::label().example("Acme Metering"), NAME)
}

fn customer() -> Schema {
    created()
        .must(
            "number",
            Schema::count().example(80_063_993_375_475_u64),
            "What it is called where only numbers will do.",
        )
        .must("created", names::instant(), "When it was made.")
        .named("Customer")
}
