//! Which URLs may a destination have? Those of public hosts; that of a webhook may have
//! placeholders for a device in path and query.
//!
//! The URL is parsed as browsers parse it (WHATWG URL), so that an unusual spelling of an address
//! is recognised. A name is resolved only when a connection is made; its addresses are then checked
//! by the same [`AddressPolicy`].

pub mod broker;
pub mod headers;
mod placeholder;
pub mod plugin;
pub mod policy;

use std::net::IpAddr;

use url::{Host, Url};

use self::policy::AddressPolicy;
use crate::event::DeviceInfo;
use crate::limits::WEBHOOK_URL_BYTES_MAX;

/// The URL of a destination, with placeholders for a device.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DestinationUrl(Box<str>);

/// Why a URL is refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum UrlFault {
    /// It is too long.
    #[error("must not be longer than {max} bytes")]
    TooLong {
        /// The longest allowed.
        max: usize,
    },
    /// It is not a URL with a host.
    #[error(
        "must be a URL like https://example.com/path; placeholders are allowed in path and query"
    )]
    Malformed,
    /// Its scheme is not HTTPS.
    #[error("must begin with https://")]
    NotHttps,
    /// Its scheme is neither HTTPS nor HTTP.
    #[error("must begin with https:// or http://")]
    NotHttp,
    /// It has a user name or a password.
    #[error("must not contain a user name or password; use a header instead")]
    UserInfo,
    /// It has a fragment, which is never sent.
    #[error("must not have a fragment")]
    Fragment,
    /// It points to an address that is not public.
    #[error("must not point to a private address ({0})")]
    Private(String),
}

impl DestinationUrl {
    /// Parses the URL of a webhook; the error says why it is refused.
    pub fn parse(text: &str, policy: AddressPolicy) -> Result<Self, UrlFault> {
        check_length(text)?;
        let url = String::from(admit(text, policy)?);
        // Characters beyond ASCII are longer once they are encoded.
        check_length(&url)?;
        Ok(Self(url.into()))
    }

    /// The URL as text, normalised; parsing it again gives the same URL.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The URL for an event of this device, or for an event without a device.
    pub fn of(&self, device: Option<&DeviceInfo>) -> String {
        placeholder::fill(&self.0, device, placeholder::in_url)
    }
}

/// Parses a URL that the policy allows.
pub fn admit(text: &str, policy: AddressPolicy) -> Result<Url, UrlFault> {
    check_spelling(text)?;
    let url = Url::parse(text).map_err(|_| UrlFault::Malformed)?;
    check_scheme(url.scheme(), policy)?;
    if authority_of(text).contains('@') {
        return Err(UrlFault::UserInfo);
    }
    if url.fragment().is_some() {
        return Err(UrlFault::Fragment);
    }
    check_host(&url, policy)?;
    if url.port() == Some(0) {
        return Err(UrlFault::Malformed);
    }
    Ok(url)
}

/// Parses a URL that is used exactly as it is written.
pub fn exact(text: &str, policy: AddressPolicy) -> Result<Box<str>, UrlFault> {
    check_length(text)?;
    admit(text, policy)?;
    Ok(text.into())
}

/// The authority as written; the parser drops an empty user name.
fn authority_of(text: &str) -> &str {
    let behind = text.split_once("://").map_or("", |(_, behind)| behind);
    behind.split(['/', '?', '#']).next().unwrap_or_default()
}

fn check_length(text: &str) -> Result<(), UrlFault> {
    let max = WEBHOOK_URL_BYTES_MAX;
    if text.len() > max {
        return Err(UrlFault::TooLong { max });
    }
    Ok(())
}

/// Browsers repair such spellings; the customer would not see which URL is called instead.
fn check_spelling(text: &str) -> Result<(), UrlFault> {
    let is_repaired = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    let host = text.split_once("://").map(|(_, behind)| behind);
    if text.contains(is_repaired) || host.is_none_or(|host| host.starts_with('/')) {
        return Err(UrlFault::Malformed);
    }
    Ok(())
}

fn check_scheme(scheme: &str, policy: AddressPolicy) -> Result<(), UrlFault> {
    match (scheme, policy) {
        ("https", _) | ("http", AddressPolicy::PrivateAllowed) => Ok(()),
        (_, AddressPolicy::PrivateAllowed) => Err(UrlFault::NotHttp),
        (_, AddressPolicy::PublicOnly) => Err(UrlFault::NotHttps),
    }
}

fn check_host(url: &Url, policy: AddressPolicy) -> Result<(), UrlFault> {
    let host = url.host().ok_or(UrlFault::Malformed)?;
    let is_allowed = match host {
        Host::Domain(name) if has_empty_label(name) => return Err(UrlFault::Malformed),
        Host::Domain(name) => policy == AddressPolicy::PrivateAllowed || !is_local_name(name),
        Host::Ipv4(ip) => policy.may_reach(IpAddr::V4(ip)),
        Host::Ipv6(ip) => policy.may_reach(IpAddr::V6(ip)),
    };
    if is_allowed {
        Ok(())
    } else {
        Err(UrlFault::Private(host.to_string()))
    }
}

/// Whether there are two dots in a row, or one at the beginning; a dot at the end is the root.
fn has_empty_label(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.split('.').any(str::is_empty)
}

/// Names that always resolve to the local host (RFC 6761 section 6.3).
fn is_local_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let behind = name.strip_suffix("localhost");
    behind.is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

#[cfg(test)]
mod tests;
