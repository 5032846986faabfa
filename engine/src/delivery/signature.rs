//! How does a customer verify that an event is from this service? By its signature (Standard
//! Webhooks 1.0.0).

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use protocol::base64_text;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::ids::EventId;
use crate::moment::Timestamp;

/// The prefix that marks a text as a secret.
const PREFIX: &str = "whsec_";

/// The length of a secret in bytes, as Standard Webhooks defines it.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// The secret that signs the events of a destination.
#[derive(Clone, Eq, PartialEq)]
pub struct SigningSecret(Zeroizing<Box<[u8]>>);

/// Why a secret is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidSecret {
    /// It is not base64.
    #[error("must be {PREFIX} followed by base64 (RFC 4648 section 4)")]
    NotBase64,
    /// It is too short to be safe, or longer than the standard allows.
    #[error("must have {} to {} bytes when decoded", SECRET_BYTES.start(), SECRET_BYTES.end())]
    Length,
}

impl SigningSecret {
    /// Parses a secret, with or without its prefix. A text that is not base64 is refused, not used
    /// as it is: libraries of the standard decode the secret before they check signatures.
    pub fn parse(text: &str) -> Result<Self, InvalidSecret> {
        let encoded = text.strip_prefix(PREFIX).unwrap_or(text);
        let bytes = base64_text::decode(encoded);
        let bytes = bytes.map_err(|_| InvalidSecret::NotBase64)?;
        if !SECRET_BYTES.contains(&bytes.len()) {
            return Err(InvalidSecret::Length);
        }
        Ok(Self(Zeroizing::new(bytes.into())))
    }

    /// The headers of an event that is sent at this time, signed.
    pub fn sign(&self, id: &EventId, at: Timestamp, body: &[u8]) -> [(&'static str, String); 3] {
        let [id, timestamp] = unsigned(id, at);
        let mac = Hmac::<Sha256>::new_from_slice(&self.0);
        let mut mac = mac.expect("HMAC takes keys of every length (RFC 2104 section 2)");
        for part in [id.1.as_bytes(), b".", timestamp.1.as_bytes(), b".", body] {
            mac.update(part);
        }
        let signature = base64_text::encode(&mac.finalize().into_bytes());
        let signature = ("webhook-signature", format!("v1,{signature}"));
        [id, timestamp, signature]
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The headers of an event that is sent at this time to a destination without a secret: the id
/// still distinguishes a repeated delivery from a new event.
pub fn unsigned(id: &EventId, at: Timestamp) -> [(&'static str, String); 2] {
    let at_s = at.as_ms().div_euclid(1_000);
    [
        ("webhook-id", id.to_string()),
        ("webhook-timestamp", at_s.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use standardwebhooks::Webhook;

    use super::*;

    const AT: Timestamp = Timestamp::from_ms(1_763_726_400_999);
    const ID: &str = "0198c0de-0000-7000-8000-000000000001";

    #[test]
    fn a_signature_is_the_one_of_an_independent_library() {
        let id = EventId::parse(ID).unwrap();
        for key in [vec![0_u8; 24], (0..64).collect(), vec![255; 33]] {
            for body in ["", "{}", r#"{"type":"TELEMETRY_DATA","text":"grün"}"#] {
                for prefix in ["", PREFIX] {
                    let text = format!("{prefix}{}", STANDARD.encode(&key));
                    let theirs = Webhook::new(&text).unwrap();
                    let theirs = theirs.sign(ID, 1_763_726_400, body.as_bytes()).unwrap();
                    let headers = SigningSecret::parse(&text).unwrap();
                    let headers = headers.sign(&id, AT, body.as_bytes());
                    assert_eq!(
                        headers,
                        [
                            ("webhook-id", ID.to_owned()),
                            ("webhook-timestamp", "1763726400".to_owned()),
                            ("webhook-signature", theirs),
                        ]
                    );
                }
            }
        }
    }

    #[test]
    fn a_signature_is_of_one_event_at_one_time_under_one_secret() {
        let sign = |key: u8, id: &str, at, body: &[u8]| {
            let secret = SigningSecret::parse(&STANDARD.encode([key; 32])).unwrap();
            let [_, _, (_, signature)] = secret.sign(&EventId::parse(id).unwrap(), at, body);
            signature
        };
        let one = sign(1, ID, AT, b"{}");
        assert_eq!(one, sign(1, ID, AT, b"{}"));
        let other = "0198c0de-0000-7000-8000-000000000002";
        for signature in [
            sign(2, ID, AT, b"{}"),
            sign(1, other, AT, b"{}"),
            sign(1, ID, AT.plus_s(1), b"{}"),
            sign(1, ID, AT, b"{ }"),
        ] {
            assert_ne!(one, signature);
        }
    }

    #[test]
    fn a_secret_is_base64_of_as_many_bytes_as_the_standard_allows() {
        let secret = |bytes| STANDARD.encode(vec![7_u8; bytes]);
        for bytes in [24, 32, 64] {
            let with_prefix = SigningSecret::parse(&format!("whsec_{}", secret(bytes))).unwrap();
            let without_padding = secret(bytes).replace('=', "");
            for text in [secret(bytes), without_padding] {
                assert_eq!(
                    SigningSecret::parse(&text),
                    Ok(with_prefix.clone()),
                    "{text}"
                );
            }
        }
        for (text, expected) in [
            (secret(23), InvalidSecret::Length),
            (secret(65), InvalidSecret::Length),
            (String::new(), InvalidSecret::Length),
            ("whsec_".to_owned(), InvalidSecret::Length),
            ("my secret".to_owned(), InvalidSecret::NotBase64),
            (
                format!("whsec_whsec_{}", secret(24)),
                InvalidSecret::NotBase64,
            ),
            (secret(25).replace("==", "="), InvalidSecret::NotBase64),
            ("-_".repeat(16), InvalidSecret::NotBase64),
        ] {
            assert_eq!(SigningSecret::parse(&text), Err(expected), "{text}");
        }
        assert_eq!(
            InvalidSecret::Length.to_string(),
            "must have 24 to 64 bytes when decoded"
        );
        assert_eq!(
            InvalidSecret::NotBase64.to_string(),
            "must be whsec_ followed by base64 (RFC 4648 section 4)"
        );
    }

    #[test]
    fn a_secret_is_never_printed() {
        let secret = SigningSecret::parse(&STANDARD.encode([7; 32])).unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }
}
