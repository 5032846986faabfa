//! How do people sign in with the identity provider of the operator? By the authorization code flow
//! of OpenID Connect Core 1.0 section 3.1 with PKCE (RFC 7636).
//!
//! The provider sends the browser back with a code, for which it gives the service an ID token. The
//! groups in the token say, by the rules of the configuration, what the person may do.

pub(super) mod attempts;
mod id_token;
mod provider;

use crate::config::PersonGrant;

pub(super) use provider::{IdentityProvider, SignInProblem, is_error_code};

/// A person who signed in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct SignedInPerson {
    /// Who it is for the provider (`sub`), which never gives this to another person.
    pub(super) subject: Box<str>,
    /// The name to show.
    pub(super) name: Box<str>,
    /// What the person may do.
    pub(super) grant: PersonGrant,
}
