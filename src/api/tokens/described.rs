//! Which operations issue access tokens? The OpenAPI descriptions.

use super::{GRANT, INVALID_SCOPE};
use crate::api::error::described::bad_credentials;
use crate::api::openapi::{ApiOperation, JSON, Schema, Tag, names};
use crate::api::words::{NETWORK_SCOPE, every_scope_word};

/// POST.
pub(in crate::api) fn issue() -> ApiOperation {
    issue_as("issueToken")
}

/// POST at the other path.
pub(in crate::api) fn issue_for_management() -> ApiOperation {
    issue_as("issueManagementToken")
}

fn issue_as(id: &'static str) -> ApiOperation {
    let text = "The OAuth 2.0 client credentials grant (RFC 6749 section 4.4). Send the client id \
                and secret in an `Authorization: Basic` header, or as `client_id` and \
                `client_secret` in the body, not in both. `/oauth/token` and \
                `/management-api/oauth/token` are equivalent. `scope` narrows the token to some \
                scopes of the client.";
    ApiOperation::new(id, Tag::Tokens, "Create an access token")
        .description(text)
        .by_client_secret()
        .body(
            vec![
                (JSON, token_request(Schema::text().or_null())),
                (
                    "application/x-www-form-urlencoded",
                    token_request(Schema::text()),
                ),
            ],
            "The grant type, and the client credentials unless they are in the header.",
        )
        .answer(200, token(), "An access token.")
        .answer_header(200, "Cache-Control", Schema::only("no-store"), SECRET)
        .answer_header(200, "Pragma", Schema::only("no-cache"), SECRET)
        .refusal(
            400,
            &[
                "MALFORMED_BODY",
                "REQUIRED",
                "REPEATED",
                "WRONG_TYPE",
                "UNSUPPORTED_GRANT_TYPE",
                INVALID_SCOPE,
            ],
            "The request is invalid.",
        )
        .answer(
            401,
            bad_credentials(),
            "The client id or the secret is wrong.",
        )
        .answer_header(
            401,
            "WWW-Authenticate",
            Schema::text(),
            "The accepted authentication scheme (RFC 7617).",
        )
        .refusal(
            429,
            &["TOO_MANY_REQUESTS"],
            "Too many token requests from this address. See `Retry-After`.",
        )
        .retried(429)
}

const SECRET: &str = "Tokens must not be cached (RFC 6749 section 5.1).";

fn token_request(text: Schema) -> Schema {
    let word = [every_scope_word(), vec![NETWORK_SCOPE]].concat().join("|");
    let scopes = format!("^ *(({word})( +({word}))*)? *$");
    Schema::object()
        .must("grant_type", Schema::only(GRANT), "The grant type.")
        .may("client_id", text.clone(), "The `clientId`.")
        .may("client_secret", text.clone(), "The `clientSecret`.")
        .may(
            "scope",
            text.pattern(&scopes),
            "The scopes of the token, separated by spaces. Default: all of the client.",
        )
        .open()
}

fn token() -> Schema {
    Schema::object()
        .must("status_code", Schema::whole(200..=200), "The HTTP status.")
        .must(
            "access_token",
            Schema::text().example("d5mS0jQp3bTq9y1o0h4rN8XvJ2kZfLwC7uEaGiMtRsA"),
            "The access token, for `Authorization: Bearer`.",
        )
        .must("token_type", Schema::only("bearer"), "The token type.")
        .must(
            "expires_in",
            Schema::count().example(3_600_u64),
            "The lifetime of the token, in seconds.",
        )
        .must("userId", names::client_id(), "The `clientId`.")
        .must(
            "scope",
            Schema::text().example("all"),
            "The scopes of the token, separated by spaces, or `all`; `network` for an API \
             client of the network.",
        )
        .named("Token")
}
