//! Which partners can a customer install a plugin of, and what do they receive?
//!
//! A partner is an entry of [`PARTNERS`] and a golden request; nothing else names one.

use crate::delivery::address::DestinationUrl;
use crate::delivery::address::plugin::{ServerDomain, WebhookKey};
use crate::delivery::destination::JsonPayload;

/// What is replaced by the key of a plugin in the path of its partner.
const KEY: &str = "{webhookKey}";

/// Every partner.
pub const PARTNERS: [Partner; 2] = [
    Partner {
        id: "gateway",
        name: "Gateway",
        path: "/webhook/{webhookKey}",
        json: JsonPayload::Parsed,
    },
    Partner {
        id: "dashboard",
        name: "Dashboard",
        path: "/webhook/{webhookKey}",
        json: JsonPayload::Parsed,
    },
];

/// A third party whose plugin forwards the events of a customer to it, each by an HTTP POST of the
/// envelope.
#[derive(Debug, Eq, PartialEq)]
pub struct Partner {
    /// Its id, a segment of paths of the API.
    pub id: &'static str,
    /// Its display name.
    pub name: &'static str,
    /// The path of its webhook, with a place for the key.
    pub path: &'static str,
    /// How payloads of devices that are JSON are sent.
    pub json: JsonPayload,
}

impl Partner {
    /// The partner with this id.
    pub fn find(id: &str) -> Option<&'static Self> {
        PARTNERS.iter().find(|partner| partner.id == id)
    }

    /// The URL that events are posted to.
    pub fn url(&self, server: &ServerDomain, key: &WebhookKey) -> DestinationUrl {
        server.url(&self.path.replace(KEY, &key.segment()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::address::admit;
    use crate::delivery::address::policy::AddressPolicy;

    #[test]
    fn every_partner_has_an_id_of_its_own_that_fits_a_path() {
        for (at, partner) in PARTNERS.iter().enumerate() {
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(partner.id.chars().all(is_plain), "{}", partner.id);
            assert_ne!(partner.id, "plugins", "it is another path of the API");
            assert!(
                PARTNERS[at + 1..]
                    .iter()
                    .all(|other| other.id != partner.id)
            );
            assert_eq!(Partner::find(partner.id), Some(partner));
        }
        assert_eq!(Partner::find("nobody"), None);
    }

    #[test]
    fn every_partner_is_called_at_the_server_and_with_the_key_of_the_plugin() {
        let server = ServerDomain::parse("h.example:8443", AddressPolicy::PublicOnly).unwrap();
        let key = WebhookKey::parse("open sesame").unwrap();
        for partner in &PARTNERS {
            assert!(partner.path.starts_with('/') && partner.path.contains(KEY));
            let url = partner.url(&server, &key).of(None);
            let url = admit(&url, AddressPolicy::PublicOnly).unwrap();
            assert_eq!(
                (url.host_str(), url.port()),
                (Some("h.example"), Some(8443))
            );
            assert!(url.path().contains("open%20sesame"), "{url}");
        }
    }
}
