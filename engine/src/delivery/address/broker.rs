//! Where is an MQTT broker of a customer?
//!
//! `mqtts://host[:port]`, or `mqtt://` where private addresses are allowed. The host is checked by
//! the same [`AddressPolicy`] as the URL of a webhook, now and at each connection.

use url::Host;

use super::policy::AddressPolicy;
use super::{UrlFault, admit, authority_of, check_length};

/// The ports of MQTT without and with TLS (IANA).
const PORT: u16 = 1883;
const TLS_PORT: u16 = 8883;

/// The URL of a broker, parsed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BrokerUrl {
    /// Its host name or address; an IPv6 address has no brackets.
    pub host: Box<str>,
    /// Its port.
    pub port: u16,
    /// Whether the connection is encrypted.
    pub encryption: BrokerEncryption,
}

/// Whether the connection to a broker is encrypted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BrokerEncryption {
    /// By TLS.
    Tls,
    /// It is not.
    Plain,
}

/// Why the URL of a broker is refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BrokerUrlFault {
    /// It is too long.
    #[error("must not be longer than {max} bytes")]
    TooLong {
        /// The longest allowed.
        max: usize,
    },
    /// It is not the URL of a broker.
    #[error("must be a URL like mqtts://broker.example.com:8883, without a path")]
    Malformed,
    /// It is one without TLS.
    #[error("must begin with mqtts://")]
    NotTls,
    /// It has a user name or a password.
    #[error("must not contain a user name or password; use username and password")]
    UserInfo,
    /// It is an address that is not public.
    #[error("must not point to a private address ({0})")]
    Private(String),
}

impl BrokerUrl {
    /// Parses the URL of a broker; the error says why it is refused.
    pub fn parse(text: &str, policy: AddressPolicy) -> Result<Self, BrokerUrlFault> {
        check_length(text)?;
        let (encryption, behind) = match text.split_once("://") {
            Some(("mqtts", behind)) => (BrokerEncryption::Tls, behind),
            Some(("mqtt", behind)) => (BrokerEncryption::Plain, behind),
            Some(_) | None => return Err(BrokerUrlFault::Malformed),
        };
        if encryption == BrokerEncryption::Plain && policy == AddressPolicy::PublicOnly {
            return Err(BrokerUrlFault::NotTls);
        }
        // Only hosts of the schemes of browsers are parsed as addresses.
        let as_https = format!("https://{behind}");
        let url = admit(&as_https, policy)?;
        let authority = authority_of(text);
        if behind.trim_end_matches('/') != authority {
            return Err(BrokerUrlFault::Malformed);
        }
        let host = match url.host().ok_or(BrokerUrlFault::Malformed)? {
            Host::Domain(name) => name.into(),
            Host::Ipv4(ip) => ip.to_string().into(),
            Host::Ipv6(ip) => ip.to_string().into(),
        };
        Ok(Self {
            host,
            port: port_in(authority).unwrap_or(match encryption {
                BrokerEncryption::Tls => TLS_PORT,
                BrokerEncryption::Plain => PORT,
            }),
            encryption,
        })
    }
}

/// The port as written: the parser drops the one that is usual for its scheme.
fn port_in(authority: &str) -> Option<u16> {
    let (_, port) = authority.rsplit_once(':')?;
    port.parse().ok()
}

impl From<UrlFault> for BrokerUrlFault {
    fn from(fault: UrlFault) -> Self {
        match fault {
            UrlFault::Private(host) => Self::Private(host),
            UrlFault::TooLong { max } => Self::TooLong { max },
            UrlFault::UserInfo => Self::UserInfo,
            UrlFault::Malformed | UrlFault::NotHttps | UrlFault::NotHttp | UrlFault::Fragment => {
                Self::Malformed
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_has_a_host_and_a_port() {
        for (text, host, port) in [
            ("mqtts://broker.example.com", "broker.example.com", 8883),
            ("mqtts://Broker.example.com:443/", "broker.example.com", 443),
            ("mqtts://8.8.8.8:1883", "8.8.8.8", 1883),
            ("mqtts://[2606:4700::1111]", "2606:4700::1111", 8883),
            ("mqtts://[2606:4700::1111]:1", "2606:4700::1111", 1),
        ] {
            let url = BrokerUrl::parse(text, AddressPolicy::PublicOnly).unwrap();
            assert_eq!((&*url.host, url.port), (host, port), "{text}");
            assert_eq!(url.encryption, BrokerEncryption::Tls);
        }
    }

    #[test]
    fn what_is_no_broker_is_refused() {
        for text in [
            "",
            "broker.example.com",
            "https://broker.example.com",
            "MQTTS://broker.example.com",
            "mqtts://",
            "mqtts:///x",
            "mqtts://broker.example.com/path",
            "mqtts://broker.example.com?x",
            "mqtts://broker.example.com#x",
            "mqtts://broker.example.com:0",
            "mqtts://broker.example.com:port",
            "mqtts://two hosts",
            "mqtts://a..b",
        ] {
            for policy in [AddressPolicy::PublicOnly, AddressPolicy::PrivateAllowed] {
                let refused = BrokerUrl::parse(text, policy);
                assert_eq!(refused, Err(BrokerUrlFault::Malformed), "{text}");
            }
        }
        let refused = BrokerUrl::parse("mqtts://me:x@h.example", AddressPolicy::PublicOnly);
        assert_eq!(refused, Err(BrokerUrlFault::UserInfo));
    }

    #[test]
    fn a_private_or_plain_broker_is_refused_unless_private_addresses_are_allowed() {
        for text in [
            "mqtts://localhost",
            "mqtts://127.0.0.1",
            "mqtts://2130706433",
        ] {
            let refused = BrokerUrl::parse(text, AddressPolicy::PublicOnly);
            assert!(matches!(refused, Err(BrokerUrlFault::Private(_))), "{text}");
            assert!(BrokerUrl::parse(text, AddressPolicy::PrivateAllowed).is_ok());
        }
        let text = "mqtt://127.0.0.1";
        let refused = BrokerUrl::parse(text, AddressPolicy::PublicOnly);
        assert_eq!(refused, Err(BrokerUrlFault::NotTls));
        let url = BrokerUrl::parse(text, AddressPolicy::PrivateAllowed).unwrap();
        assert_eq!((url.encryption, url.port), (BrokerEncryption::Plain, 1883));
    }
}
