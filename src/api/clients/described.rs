//! Which operations create, list and revoke API clients? The OpenAPI descriptions.

use crate::api::openapi::{ApiOperation, Schema, Tag, names};
use crate::api::page::described::page_of;
use crate::api::words::every_scope_word;

/// POST.
pub(in crate::api) fn create() -> ApiOperation {
    let text = "An API client is a program that calls the management API for the customer. Only \
                this response contains the secret: the service stores a digest of it.";
    ApiOperation::new("createClient", Tag::Customers, "Create an API client")
        .description(text)
        .json(new_client(), "The API client to create.")
        .answer(201, created(), "The API client and its secret.")
        .leads_to(
            201,
            &["deleteClient"],
            &[
                ("customer", "$request.path.customer"),
                ("client", "$response.body#/clientId"),
            ],
        )
        .refusal(
            409,
            &["TOO_MANY_CLIENTS"],
            "The customer has the maximum number of API clients.",
        )
}

/// GET all.
pub(in crate::api) fn list() -> ApiOperation {
    ApiOperation::new("listClients", Tag::Customers, "List API clients")
        .description("Returns all API clients of the customer on one page, sorted by id.")
        .answer(200, page_of(client()), "The API clients.")
}

/// DELETE.
pub(in crate::api) fn delete() -> ApiOperation {
    ApiOperation::new("deleteClient", Tag::Customers, "Revoke an API client")
        .description("The access tokens of the client become invalid immediately.")
        .answer_empty(204, "The API client is revoked.")
}

fn new_client() -> Schema {
    Schema::closed()
        .must("name", names::label(), "The display name.")
        .may(
            "scopes",
            scopes().at_least_one(),
            "The permissions of the client. Default: `all`.",
        )
        .named("NewClient")
}

fn created() -> Schema {
    let secret = Schema::text().example("o0h4rN8XvJ2kZfLwC7uEaGiMtRsAd5mS0jQp3bTq9y1");
    Schema::object()
        .must("clientId", names::client_id(), "The id of the client.")
        .must("clientSecret", secret, "The secret of the client.")
        .named("ClientWithSecret")
}

fn client() -> Schema {
    Schema::object()
        .must("clientId", names::client_id(), "The id of the client.")
        .must("name", names::label(), "The display name.")
        .must("scopes", scopes(), "The permissions of the client.")
        .must("created", names::instant(), "The creation time.")
        .named("Client")
}

fn scopes() -> Schema {
    let scope = Schema::one_of_words(every_scope_word());
    Schema::list(scope).example(vec!["all"])
}
