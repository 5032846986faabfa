//! How does a client take a token? For the document of the API.

use engine::customer::TOKEN_LIFETIME_S;

use super::GRANT;
use crate::api::error::described::bad_credentials;
use crate::api::openapi::{JSON, Operation, Schema, Tag, names};

/// POST.
pub(in crate::api) fn issue() -> Operation {
    issue_as("issueToken")
}

/// POST at the other path.
pub(in crate::api) fn issue_for_management() -> Operation {
    issue_as("issueManagementToken")
}

fn issue_as(id: &'static str) -> Operation {
    let text = "The grant `client_credentials` of OAuth 2.0 (RFC 6749 section 4.4). The client \
                shows its id and its secret in an `Authorization: Basic` header, or as \
                `client_id` and `client_secret` in the body. The same at `/oauth/token` and at \
                `/management-api/oauth/token`.";
    Operation::new(id, Tag::Tokens, "Take an access token")
        .description(text)
        .by_client_secret()
        .body(
            vec![
                (JSON, asked(Schema::text().or_null())),
                ("application/x-www-form-urlencoded", asked(Schema::text())),
            ],
            "The grant, and who asks where the header does not say.",
        )
        .answer(200, token(), "A token.")
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
            ],
            "What was asked cannot be understood.",
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
            "What credentials would do (RFC 7617).",
        )
}

const SECRET: &str = "A token is never cached (RFC 6749 section 5.1).";

fn asked(text: Schema) -> Schema {
    Schema::object()
        .must("grant_type", Schema::only(GRANT), "The grant.")
        .may("client_id", text.clone(), "The `clientId`.")
        .may("client_secret", text, "The `clientSecret`.")
        .open()
}

fn token() -> Schema {
    Schema::object()
        .must("status_code", Schema::whole(200..=200), "The status again.")
        .must(
            "access_token",
            Schema::text().example("d5mS0jQp3bTq9y1o0h4rN8XvJ2kZfLwC7uEaGiMtRsA"),
            "The token, for `Authorization: Bearer`.",
        )
        .must("token_type", Schema::only("bearer"), "Its type.")
        .must(
            "expires_in",
            Schema::count().example(u64::from(TOKEN_LIFETIME_S)),
            "Seconds it holds.",
        )
        .must("userId", names::client_id(), "The client.")
        .must(
            "scope",
            Schema::text().example("all"),
            "What the client may do: scopes with blanks between them, or `all`.",
        )
        .named("Token")
}
