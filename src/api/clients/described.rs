//! Which operations create, list and revoke API clients and their secrets? The OpenAPI
//! descriptions.

use super::EXPIRES_IN_S_MAX;
use crate::api::openapi::{ApiOperation, Schema, Tag, names};
use crate::api::page::described::page_of;
use crate::api::words::{NETWORK_SCOPE, every_scope_word};

/// POST, for a customer.
pub(in crate::api) fn create() -> ApiOperation {
    let text = "An API client is a program that calls the management API for the customer. Only \
                this response contains the secret: the service stores a digest of it.";
    ApiOperation::new("createClient", Tag::Customers, "Create an API client")
        .description(text)
        .json(new_client(), "The API client to create.")
        .answer(201, created(), "The API client and its secret.")
        .leads_to(
            201,
            &["deleteClient", "createClientSecret"],
            &[
                ("customer", "$request.path.customer"),
                ("client", "$response.body#/clientId"),
            ],
        )
        .once(
            &["TOO_MANY_CLIENTS"],
            "the customer has the maximum number of API clients.",
        )
}

/// POST, for the network.
pub(in crate::api) fn create_of_network() -> ApiOperation {
    let text = "An API client of the network is a program of the mobile network. With an access \
                token of `POST /oauth/token` it hands in SMS of devices and delivery reports, and \
                may call nothing else. Only this response contains the secret: the service stores \
                a digest of it.";
    let summary = "Create an API client of the network";
    ApiOperation::new("createNetworkClient", Tag::Network, summary)
        .description(text)
        .json(new_network_client(), "The API client to create.")
        .answer(201, created(), "The API client and its secret.")
        .leads_to(
            201,
            &["deleteNetworkClient", "createNetworkClientSecret"],
            &[("client", "$response.body#/clientId")],
        )
        .once(
            &["TOO_MANY_CLIENTS"],
            "the network has the maximum number of API clients.",
        )
}

/// GET all of a customer.
pub(in crate::api) fn list() -> ApiOperation {
    ApiOperation::new("listClients", Tag::Customers, "List API clients")
        .description("Returns all API clients of the customer on one page, sorted by id.")
        .answer(200, page_of(client()), "The API clients.")
}

/// GET all of the network.
pub(in crate::api) fn list_of_network() -> ApiOperation {
    let summary = "List the API clients of the network";
    ApiOperation::new("listNetworkClients", Tag::Network, summary)
        .description("Returns all API clients of the network on one page, sorted by id.")
        .answer(200, page_of(network_client()), "The API clients.")
}

/// DELETE one of a customer.
pub(in crate::api) fn delete() -> ApiOperation {
    revoked("deleteClient", Tag::Customers, "Revoke an API client")
}

/// DELETE one of the network.
pub(in crate::api) fn delete_of_network() -> ApiOperation {
    let summary = "Revoke an API client of the network";
    revoked("deleteNetworkClient", Tag::Network, summary)
}

fn revoked(id: &'static str, tag: Tag, summary: &'static str) -> ApiOperation {
    ApiOperation::new(id, tag, summary)
        .description("The access tokens of the client become invalid immediately.")
        .answer_empty(204, "The API client is revoked.")
}

/// POST a secret of one of a customer.
pub(in crate::api) fn create_secret() -> ApiOperation {
    let summary = "Create a secret of an API client";
    secret_created("createClientSecret", Tag::Customers, summary).leads_to(
        201,
        &["deleteClientSecret"],
        &[
            ("customer", "$request.path.customer"),
            ("client", "$request.path.client"),
            ("secret", "$response.body#/secretId"),
        ],
    )
}

/// POST a secret of one of the network.
pub(in crate::api) fn create_secret_of_network() -> ApiOperation {
    let summary = "Create a secret of an API client of the network";
    secret_created("createNetworkClientSecret", Tag::Network, summary).leads_to(
        201,
        &["deleteNetworkClientSecret"],
        &[
            ("client", "$request.path.client"),
            ("secret", "$response.body#/secretId"),
        ],
    )
}

fn secret_created(id: &'static str, tag: Tag, summary: &'static str) -> ApiOperation {
    let text = "Gives the API client a second secret, so that its programs can change to it before \
                the first one is deleted. Only this response contains the secret.";
    ApiOperation::new(id, tag, summary)
        .description(text)
        .json(new_secret(), "When the secret expires.")
        .answer(201, created_secret(), "The secret.")
        .once(
            &["TOO_MANY_SECRETS"],
            "the API client has two valid secrets.",
        )
}

/// DELETE a secret of one of a customer.
pub(in crate::api) fn delete_secret() -> ApiOperation {
    let summary = "Delete a secret of an API client";
    secret_deleted("deleteClientSecret", Tag::Customers, summary)
}

/// DELETE a secret of one of the network.
pub(in crate::api) fn delete_secret_of_network() -> ApiOperation {
    let summary = "Delete a secret of an API client of the network";
    secret_deleted("deleteNetworkClientSecret", Tag::Network, summary)
}

fn secret_deleted(id: &'static str, tag: Tag, summary: &'static str) -> ApiOperation {
    let text = "The secret is not accepted from now on. Access tokens that were created with it \
                stay valid until they expire; to end them, revoke the API client.";
    ApiOperation::new(id, tag, summary)
        .description(text)
        .answer_empty(204, "The secret is deleted.")
        .refusal(
            409,
            &["LAST_SECRET"],
            "It is the only valid secret of the API client.",
        )
}

fn new_secret() -> Schema {
    Schema::closed()
        .may(
            "expiresIn",
            Schema::whole(1..=u64::from(EXPIRES_IN_S_MAX)),
            "The time after which the secret expires, in seconds. Default: it does not expire.",
        )
        .named("NewClientSecret")
}

fn secret() -> Schema {
    Schema::object()
        .must("secretId", Schema::uuid(), "The id of the secret.")
        .must("created", names::instant(), "The creation time.")
        .must(
            "expires",
            names::instant().or_null(),
            "When it expires; `null`: it does not.",
        )
}

fn created_secret() -> Schema {
    secret()
        .must("clientSecret", secret_text(), "The secret.")
        .named("ClientSecret")
}

fn secret_text() -> Schema {
    Schema::text().example("o0h4rN8XvJ2kZfLwC7uEaGiMtRsAd5mS0jQp3bTq9y1")
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

fn new_network_client() -> Schema {
    Schema::closed()
        .must("name", names::label(), "The display name.")
        .named("NewNetworkClient")
}

fn created() -> Schema {
    Schema::object()
        .must("clientId", names::client_id(), "The id of the client.")
        .must("clientSecret", secret_text(), "The secret of the client.")
        .named("ClientWithSecret")
}

fn client() -> Schema {
    client_with(scopes()).named("Client")
}

fn network_client() -> Schema {
    let network = Schema::list(Schema::only(NETWORK_SCOPE)).example(vec![NETWORK_SCOPE]);
    client_with(network).named("NetworkClient")
}

fn client_with(scopes: Schema) -> Schema {
    Schema::object()
        .must("clientId", names::client_id(), "The id of the client.")
        .must("name", names::label(), "The display name.")
        .must("scopes", scopes, "The permissions of the client.")
        .must("created", names::instant(), "The creation time.")
        .must(
            "secrets",
            Schema::list(secret()),
            "Its secrets, the oldest first.",
        )
}

fn scopes() -> Schema {
    let scope = Schema::one_of_words(every_scope_word());
    Schema::list(scope).example(vec!["all"])
}
