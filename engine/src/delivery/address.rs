//! What may a customer have the service call? A URL that leads to a public host, with what stands
//! for a device in its path and query.
//!
//! The URL is read as browsers read it (WHATWG URL), so that an address in an odd spelling is seen
//! for what it is. Where a name leads is known only when a connection is made, and judged then by
//! the same [`AddressPolicy`].

pub mod headers;
mod placeholder;
pub mod policy;

use std::net::IpAddr;

use url::{Host, Url};

use self::policy::AddressPolicy;
use crate::event::DeviceInfo;
use crate::limits::WEBHOOK_URL_BYTES_MAX;

/// A URL of a customer, with what stands for a device in it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WebhookUrl(Box<str>);

/// Why a text is no URL to call.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum UrlFault {
    /// It is longer than a URL may be.
    #[error("must not be longer than {max} bytes")]
    TooLong {
        /// The longest that would do.
        max: usize,
    },
    /// It is no URL with a host.
    #[error(
        "must be a URL like https://example.com/path; placeholders are allowed in path and query"
    )]
    Malformed,
    /// It is to be called by something else than HTTPS.
    #[error("must begin with https://")]
    NotHttps,
    /// It is to be called by something else than HTTP.
    #[error("must begin with https:// or http://")]
    NotHttp,
    /// It has a user name or a password in it.
    #[error("must not contain a user name or password; use a header instead")]
    UserInfo,
    /// It has a fragment, which is never sent.
    #[error("must not have a fragment")]
    Fragment,
    /// It leads to where only the service itself may go.
    #[error("must not point to a private address ({0})")]
    Private(String),
}

impl WebhookUrl {
    /// Reads it; the error says what is wrong with it.
    pub fn parse(text: &str, policy: AddressPolicy) -> Result<Self, UrlFault> {
        check_length(text)?;
        let url = String::from(admit(text, policy)?);
        // What is not ASCII is longer once it is written for HTTP.
        check_length(&url)?;
        Ok(Self(url.into()))
    }

    /// Its text, as it is written for HTTP, and reads as itself again.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The URL for an event of this device, or for what no device said.
    pub fn of(&self, speaker: Option<&DeviceInfo>) -> String {
        placeholder::fill(&self.0, speaker, placeholder::in_url)
    }
}

/// The URL a text says, if the policy lets it be called.
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

/// What names the host, as it is written: an empty name of a user is gone once it is read.
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

/// A browser mends what is refused here, and a customer would not see what is called instead.
fn check_spelling(text: &str) -> Result<(), UrlFault> {
    let is_mended = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    let host = text.split_once("://").map(|(_, behind)| behind);
    if text.contains(is_mended) || host.is_none_or(|host| host.starts_with('/')) {
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
    let may_be_called = match host {
        Host::Domain(name) if has_empty_label(name) => return Err(UrlFault::Malformed),
        Host::Domain(name) => policy == AddressPolicy::PrivateAllowed || !is_local_name(name),
        Host::Ipv4(ip) => policy.may_reach(IpAddr::V4(ip)),
        Host::Ipv6(ip) => policy.may_reach(IpAddr::V6(ip)),
    };
    if may_be_called {
        Ok(())
    } else {
        Err(UrlFault::Private(host.to_string()))
    }
}

/// Whether two dots stand together, or one at the beginning; one at the end names the root.
fn has_empty_label(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.split('.').any(str::is_empty)
}

/// Names that lead to the machine itself wherever they are asked for (RFC 6761 section 6.3).
fn is_local_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let behind = name.strip_suffix("localhost");
    behind.is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

#[cfg(test)]
mod tests;
