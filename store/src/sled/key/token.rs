//! What are the keys of access tokens?

use engine::customer::SecretDigest;
use engine::ids::ClientId;
use engine::moment::Timestamp;

use super::{Builder, Key, Table, append, rest_of};

/// An access token.
pub(crate) fn token(digest: &SecretDigest) -> Key {
    Builder::of(Table::Token).bytes(digest.as_bytes()).end()
}

/// The prefix of the keys of access tokens.
pub(crate) fn tokens() -> Key {
    Builder::of(Table::Token).end()
}

/// Index: an access token of an API client.
pub(crate) fn token_of(client: &ClientId, digest: &SecretDigest) -> Key {
    append(of_client(client), digest.as_bytes())
}

/// The prefix of the keys of an API client's access tokens.
pub(crate) fn of_client(client: &ClientId) -> Key {
    Builder::of(Table::TokenOfClient)
        .text(client.as_str())
        .end()
}

/// Index: an access token by its expiry.
pub(crate) fn expiring(at: Timestamp, digest: &SecretDigest) -> Key {
    append(expiring_from(at), digest.as_bytes())
}

/// Where the access tokens that expire at an instant or later begin.
pub(crate) fn expiring_from(at: Timestamp) -> Key {
    Builder::of(Table::TokenByExpiry).instant(at).end()
}

/// Where the access tokens begin, ordered by their expiry.
pub(crate) fn by_expiry() -> Key {
    Builder::of(Table::TokenByExpiry).end()
}

/// An access token's key, from its key in the index by API client.
pub(crate) fn token_from_client(of_client: &[u8], tokens: &[u8]) -> Key {
    Builder::of(Table::Token)
        .bytes(rest_of(of_client, tokens))
        .end()
}

/// An access token's key, from the key that orders it by its expiry.
pub(crate) fn token_from_expiry(expiring: &[u8]) -> Key {
    let beginning = expiring_from(Timestamp::default());
    Builder::of(Table::Token)
        .bytes(rest_of(expiring, &beginning))
        .end()
}
