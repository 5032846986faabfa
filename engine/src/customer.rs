//! Who uses the API: customers, API clients, scopes and access tokens.
//!
//! Client secrets and access tokens are 256 random bits, so a plain SHA-256 of them is stored: a
//! slow hash would make the token endpoint easy to overload.

use std::num::NonZeroU32;

use sha2::{Digest as _, Sha256};

use crate::certificate_authorities::CertificateAuthorities;
use crate::ids::{ClientId, CustomerId, SecretId, kept_as_bytes};
use crate::moment::Timestamp;
use crate::network::Network;
use crate::wake_up::WakeUpMessage;

/// A customer: owner of devices, action requests, log and settings.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Customer {
    /// Its name in every path and record.
    pub id: CustomerId,
    /// Its id in the SMS events of seed 6, an integer.
    pub number: u64,
    /// Its display name.
    pub name: Box<str>,
    /// When it was created.
    pub created_at: Timestamp,
    /// The networks that its devices have their addresses in; none if the operator set none.
    pub networks: Box<[Network]>,
    /// What wakes its devices, if it set that.
    pub wake_up: Option<WakeUpMessage>,
    /// How long its devices may be silent before they are offline, in seconds, if it set that.
    pub offline_after_s: Option<NonZeroU32>,
    /// Who certifies its devices, if it set that.
    pub authorities: Option<CertificateAuthorities>,
}

/// A program that acts for a customer or for the network.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ApiClient {
    /// The `client_id` of OAuth 2.0 (RFC 6749 section 2.2), service-wide.
    pub id: ClientId,
    /// Whom it acts for.
    pub owner: ClientOwner,
    /// Its display name.
    pub name: Box<str>,
    /// Its secrets, the oldest first: two while one replaces the other.
    pub secrets: Vec<ClientSecret>,
    /// Its scopes; one of the network has none.
    pub scopes: Scopes,
    /// When it was created.
    pub created_at: Timestamp,
}

/// Whom an API client acts for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ClientOwner {
    /// A customer: it calls the management API.
    Customer(CustomerId),
    /// The mobile network: it hands in SMS of devices and reports.
    Network,
}

/// A secret of an API client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClientSecret {
    /// Its id, by which it is deleted.
    pub id: SecretId,
    /// Its digest; the secret itself is never stored.
    pub digest: SecretDigest,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires, if it does.
    pub expires_at: Option<Timestamp>,
}

impl ClientSecret {
    /// Whether it is accepted.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|expires_at| now < expires_at)
    }
}

/// A stored access token. It is valid only while its client exists, so removing the client revokes
/// it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AccessToken {
    /// Digest of the token; the token itself is never stored.
    pub digest: SecretDigest,
    /// The client it was issued to.
    pub client: ClientId,
    /// Its scopes: those of the client, or some of them.
    pub scopes: Scopes,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// SHA-256 of a secret of 256 random bits.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct SecretDigest([u8; 32]);

impl SecretDigest {
    /// The digest of a secret that a caller presents.
    pub fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }
}

kept_as_bytes!(SecretDigest, 32);

/// One permission of an API client (contract of the token endpoint).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum Scope {
    /// Read action requests.
    ActionsRead,
    /// Create and cancel action requests.
    ActionsWrite,
    /// Read the administration log.
    LogsRead,
    /// Read settings.
    SettingsRead,
    /// Change settings.
    SettingsWrite,
    /// Read cloud integrations.
    IntegrationsRead,
    /// Change cloud integrations.
    IntegrationsWrite,
    /// Read plugins.
    PluginsRead,
    /// Install and remove plugins.
    PluginsWrite,
    /// Read SMS.
    SmsRead,
    /// Send SMS and configure the forwarder.
    SmsWrite,
    /// Read devices.
    DevicesRead,
    /// Create, change and delete devices.
    DevicesWrite,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 13] = [
        Self::ActionsRead,
        Self::ActionsWrite,
        Self::LogsRead,
        Self::SettingsRead,
        Self::SettingsWrite,
        Self::IntegrationsRead,
        Self::IntegrationsWrite,
        Self::PluginsRead,
        Self::PluginsWrite,
        Self::SmsRead,
        Self::SmsWrite,
        Self::DevicesRead,
        Self::DevicesWrite,
    ];

    const fn bit(self) -> u16 {
        1 << self as u8
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Scopes(u16);

impl Scopes {
    /// No scope at all.
    pub const NONE: Self = Self(0);

    /// Every scope, present and future: `all`.
    pub const ALL: Self = Self(u16::MAX);

    /// The set with one more scope.
    pub const fn with(self, scope: Scope) -> Self {
        Self(self.0 | scope.bit())
    }

    /// Whether the scope is in the set.
    pub const fn has(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Whether every scope of another set is in this one.
    pub const fn contains(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// The scopes that are in both sets.
    pub const fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The scopes that are in either set.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The set of these bits.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// The bits to store.
    pub const fn bits(self) -> u16 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in_and_all_has_everything() {
        let set = Scopes::NONE.with(Scope::LogsRead);
        assert!(set.has(Scope::LogsRead));
        assert!(!set.has(Scope::ActionsRead));
        assert!(Scope::ALL.iter().all(|scope| Scopes::ALL.has(*scope)));
        assert!(Scopes::ALL.contains(set) && set.contains(set));
        assert!(!set.contains(Scopes::ALL), "all has future scopes, too");
    }
}
