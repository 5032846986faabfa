//! Where is the server of a partner, and which key is in the path of its webhook?
//!
//! A customer names only the server: the path belongs to the partner. The server is checked by the
//! same [`AddressPolicy`] as the URL of a webhook.

use std::fmt;

use zeroize::Zeroizing;

use super::placeholder::in_url;
use super::policy::AddressPolicy;
use super::{DestinationUrl, UrlFault, admit};
use crate::limits::{SERVER_DOMAIN_BYTES_MAX, WEBHOOK_KEY_CHARACTERS_MAX};

/// The scheme that a customer may write where private addresses are allowed.
const HTTP: &str = "http://";

/// The server of a partner: a host with an optional port, as its customer wrote it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServerDomain(Box<str>);

/// The key that a partner gave the customer; it is a credential.
#[derive(Clone, Eq, PartialEq)]
pub struct WebhookKey(Zeroizing<Box<str>>);

/// Why a server is refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ServerDomainFault {
    /// It is too long.
    #[error("must not be longer than {max} bytes")]
    TooLong {
        /// The longest allowed.
        max: usize,
    },
    /// It is not a host with an optional port.
    #[error("must be a host with an optional port, like gateway.example.com:8443")]
    Malformed,
    /// It is to be called by HTTP.
    #[error("must not begin with http://")]
    NotHttps,
    /// It is an address that is not public.
    #[error("must not point to a private address ({0})")]
    Private(String),
}

/// Why a key is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum WebhookKeyFault {
    /// It is empty or too long.
    #[error("must have 1 to {max} characters")]
    Length {
        /// The most characters allowed.
        max: usize,
    },
    /// It has a control character.
    #[error("must not contain control characters")]
    Control,
    /// It cannot be a segment of a path (RFC 3986 section 5.2.4).
    #[error("must not be . or ..")]
    Dots,
}

impl ServerDomain {
    /// Parses a server; the error says why it is refused.
    pub fn parse(text: &str, policy: AddressPolicy) -> Result<Self, ServerDomainFault> {
        let max = SERVER_DOMAIN_BYTES_MAX;
        if text.len() > max {
            return Err(ServerDomainFault::TooLong { max });
        }
        let server = Self(text.into());
        let authority = text.strip_prefix(HTTP).unwrap_or(text);
        if authority.contains(['/', '?', '#', '@']) {
            return Err(ServerDomainFault::Malformed);
        }
        admit(&server.origin(), policy)?;
        Ok(server)
    }

    /// The server as its customer wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The URL of a path of the server.
    pub(in crate::delivery) fn url(&self, path: &str) -> DestinationUrl {
        DestinationUrl((self.origin() + path).into())
    }

    fn origin(&self) -> String {
        match self.0.starts_with(HTTP) {
            true => self.0.to_string(),
            false => format!("https://{}", self.0),
        }
    }
}

impl WebhookKey {
    /// Parses a key; the error says why it is refused.
    pub fn parse(text: &str) -> Result<Self, WebhookKeyFault> {
        let max = WEBHOOK_KEY_CHARACTERS_MAX;
        if text.is_empty() || text.chars().count() > max {
            return Err(WebhookKeyFault::Length { max });
        }
        if text.contains(char::is_control) {
            return Err(WebhookKeyFault::Control);
        }
        if matches!(text, "." | "..") {
            return Err(WebhookKeyFault::Dots);
        }
        Ok(Self(Zeroizing::new(text.into())))
    }

    /// The key as the partner gave it, to be sealed.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key as a segment of a path.
    pub(in crate::delivery) fn segment(&self) -> String {
        in_url(&self.0)
    }
}

impl fmt::Debug for WebhookKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookKey(..)")
    }
}

impl From<UrlFault> for ServerDomainFault {
    fn from(fault: UrlFault) -> Self {
        match fault {
            UrlFault::Private(host) => Self::Private(host),
            UrlFault::NotHttps => Self::NotHttps,
            UrlFault::TooLong { max } => Self::TooLong { max },
            UrlFault::Malformed | UrlFault::NotHttp | UrlFault::UserInfo | UrlFault::Fragment => {
                Self::Malformed
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_public_host_with_an_optional_port() {
        for text in [
            "gateway.example.com",
            "Gateway.example.com:8443",
            "8.8.8.8",
            "[2606:4700::1111]:443",
        ] {
            let server = ServerDomain::parse(text, AddressPolicy::PublicOnly).unwrap();
            assert_eq!(server.as_str(), text);
            let url = server.url("/webhook/k");
            assert_eq!(url.as_str(), format!("https://{text}/webhook/k"));
        }
    }

    #[test]
    fn what_is_no_host_with_a_port_is_refused() {
        for text in [
            "",
            " ",
            "https://gateway.example.com",
            "HTTP://gateway.example.com",
            "gateway.example.com/",
            "gateway.example.com/webhook",
            "gateway.example.com?x",
            "gateway.example.com#x",
            "me:secret@gateway.example.com",
            "gateway.example.com\\x",
            "gateway..example.com",
            "gateway.example.com:0",
            "gateway.example.com:port",
            "gateway.example.com:iccid:",
            "two hosts",
            "http://",
        ] {
            for policy in [AddressPolicy::PublicOnly, AddressPolicy::PrivateAllowed] {
                let refused = ServerDomain::parse(text, policy).unwrap_err();
                let expected = match (text, policy) {
                    ("http://", AddressPolicy::PublicOnly) => {
                        [ServerDomainFault::NotHttps, ServerDomainFault::Malformed]
                    }
                    _ => [ServerDomainFault::Malformed, ServerDomainFault::Malformed],
                };
                assert!(expected.contains(&refused), "{text}: {refused}");
            }
        }
        let long = "a".repeat(SERVER_DOMAIN_BYTES_MAX + 1);
        let max = SERVER_DOMAIN_BYTES_MAX;
        assert_eq!(
            ServerDomain::parse(&long, AddressPolicy::PublicOnly),
            Err(ServerDomainFault::TooLong { max })
        );
    }

    #[test]
    fn a_private_server_is_refused_unless_private_addresses_are_allowed() {
        for text in [
            "localhost",
            "127.0.0.1:8080",
            "[::1]",
            "10.0.0.7",
            "2130706433",
        ] {
            let refused = ServerDomain::parse(text, AddressPolicy::PublicOnly).unwrap_err();
            assert!(matches!(refused, ServerDomainFault::Private(_)), "{text}");
            assert!(ServerDomain::parse(text, AddressPolicy::PrivateAllowed).is_ok());
        }
        let plain = "http://localhost:8080";
        let refused = ServerDomain::parse(plain, AddressPolicy::PublicOnly);
        assert_eq!(refused, Err(ServerDomainFault::NotHttps));
        let server = ServerDomain::parse(plain, AddressPolicy::PrivateAllowed).unwrap();
        assert_eq!(server.url("/in").as_str(), "http://localhost:8080/in");
    }

    #[test]
    fn a_key_is_one_segment_of_a_path_whatever_is_in_it() {
        let server = ServerDomain::parse("h.example", AddressPolicy::PublicOnly).unwrap();
        let long = "ä".repeat(WEBHOOK_KEY_CHARACTERS_MAX);
        for text in [
            "k",
            "a/b",
            "../x",
            "%2e%2e",
            "a?b#c",
            ":iccid:",
            "a b",
            long.as_str(),
        ] {
            let key = WebhookKey::parse(text).unwrap();
            let url = server.url(&format!("/webhook/{}", key.segment())).of(None);
            let read = admit(&url, AddressPolicy::PublicOnly).unwrap();
            assert_eq!(read.as_str(), url, "nothing is repaired");
            assert_eq!(read.path_segments().unwrap().count(), 2, "{text}");
            assert_eq!((read.query(), read.fragment()), (None, None), "{text}");
        }
        assert_eq!(WebhookKey::parse("a/b").unwrap().segment(), "a%2Fb");
    }

    #[test]
    fn what_cannot_be_a_segment_is_no_key() {
        let max = WEBHOOK_KEY_CHARACTERS_MAX;
        let long = "k".repeat(max + 1);
        for (text, expected) in [
            ("", WebhookKeyFault::Length { max }),
            (long.as_str(), WebhookKeyFault::Length { max }),
            ("a\nb", WebhookKeyFault::Control),
            (".", WebhookKeyFault::Dots),
            ("..", WebhookKeyFault::Dots),
        ] {
            assert_eq!(WebhookKey::parse(text), Err(expected), "{text:?}");
        }
        let key = WebhookKey::parse("open sesame").unwrap();
        assert_eq!(format!("{key:?}"), "WebhookKey(..)");
    }
}
