//! How are API clients made, listed and revoked? For the document of the API.

use crate::api::openapi::{Operation, Schema, Tag, names};
use crate::api::page::described::page_of;
use crate::api::words::every_scope_word;

/// POST.
pub(in crate::api) fn create() -> Operation {
    let text = "A client is a program that acts for the customer. Its secret is shown in this \
                answer and never again: the service keeps a digest of it.";
    Operation::new("createClient", Tag::Customers, "Make an API client")
        .description(text)
        .json(new_client(), "Who the client is.")
        .answer(201, created(), "The client with its secret.")
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
            "The customer has as many clients as it may.",
        )
}

/// GET all.
pub(in crate::api) fn list() -> Operation {
    Operation::new("listClients", Tag::Customers, "List API clients")
        .description("The clients of a customer by id, on one page.")
        .answer(200, page_of(client()), "The clients.")
}

/// DELETE.
pub(in crate::api) fn delete() -> Operation {
    Operation::new("deleteClient", Tag::Customers, "Revoke an API client")
        .description("Its tokens end at once.")
        .answer_empty(204, "The client is gone.")
}

fn new_client() -> Schema {
    Schema::closed()
        .must("name", names::label(), "What people call it.")
        .may(
            "scopes",
            scopes().at_least_one(),
            "What it may do; everything where nothing is said.",
        )
        .named("NewClient")
}

fn created() -> Schema {
    let secret = Schema::text().example("o0h4rN8XvJ2kZfLwC7uEaGiMtRsAd5mS0jQp3bTq9y1");
    Schema::object()
        .must("clientId", names::client_id(), "What it calls itself.")
        .must("clientSecret", secret, "What proves that it is the client.")
        .named("ClientWithSecret")
}

fn client() -> Schema {
    Schema::object()
        .must("clientId", names::client_id(), "What it calls itself.")
        .must("name", names::label(), "What people call it.")
        .must("scopes", scopes(), "What it may do.")
        .must("created", names::instant(), "When it was made.")
        .named("Client")
}

fn scopes() -> Schema {
    let scope = Schema::one_of_words(every_scope_word());
    Schema::list(scope).example(vec!["all"])
}
