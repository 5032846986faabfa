//! Is an ID token believed only if the provider signed it, for this service and this attempt?

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{EncodingKey, encode};
use serde_json::json;

use super::*;

const NOW_S: i64 = 1_800_000_000;

const EXPECTED: ExpectedClaims<'_> = ExpectedClaims {
    issuer: "https://id.example",
    client_id: "signalbox",
    nonce: "nonce-1",
};

#[test]
fn a_token_names_its_person_with_their_groups() {
    let signer = Signer::new("one");
    for (changed, name, groups) in [
        (json!({}), "Ada Lovelace", &["a", "b"][..]),
        (
            json!({ "name": " ", "email": "ada@id.example" }),
            "ada",
            &["a", "b"],
        ),
        (
            json!({ "name": null, "preferred_username": null }),
            "7",
            &["a", "b"],
        ),
        (json!({ "groups": "a" }), "Ada Lovelace", &["a"]),
        (json!({ "groups": ["a", 1] }), "Ada Lovelace", &["a"]),
        (json!({ "groups": null }), "Ada Lovelace", &[]),
        (
            json!({ "aud": ["signalbox"], "nbf": NOW_S }),
            "Ada Lovelace",
            &["a", "b"],
        ),
        (
            json!({ "aud": ["x", "signalbox"], "azp": "signalbox" }),
            "Ada Lovelace",
            &["a", "b"],
        ),
        (json!({ "exp": NOW_S - 59 }), "Ada Lovelace", &["a", "b"]),
    ] {
        let token = signer.sign(&claims(&changed));
        let person = read(&token, &[signer.key()]).unwrap_or_else(|why| panic!("{changed} {why}"));
        assert_eq!((&*person.subject, &*person.name), ("7", name), "{changed}");
        assert_eq!(person.groups, groups, "{changed}");
    }
}

#[test]
fn a_token_of_another_issuer_client_attempt_or_time_is_refused() {
    use InvalidIdToken::{Audience, Expired, Issuer, Malformed, Nonce, Subject, TooManyGroups};
    let signer = Signer::new("one");
    for (changed, expected) in [
        (json!({ "iss": "https://id.example/" }), Issuer),
        (json!({ "aud": "another" }), Audience),
        (json!({ "aud": [] }), Audience),
        (json!({ "aud": ["signalbox", "another"] }), Audience),
        (json!({ "azp": "another" }), Audience),
        (json!({ "exp": NOW_S - 60 }), Expired),
        (json!({ "nbf": NOW_S + 61 }), Expired),
        (json!({ "nonce": "nonce-2" }), Nonce),
        (json!({ "nonce": null }), Nonce),
        (json!({ "sub": "" }), Subject),
        (json!({ "sub": "a\nb" }), Subject),
        (json!({ "sub": "a".repeat(256) }), Subject),
        (json!({ "sub": null }), Malformed),
        (json!({ "exp": null }), Malformed),
        (json!({ "groups": { "a": 1 } }), Malformed),
        (
            json!({ "groups": null, "_claim_names": { "groups": "src1" } }),
            TooManyGroups,
        ),
    ] {
        let token = signer.sign(&claims(&changed));
        assert_eq!(read(&token, &[signer.key()]), Err(expected), "{changed}");
    }
}

#[test]
fn a_signature_counts_only_by_a_published_key_of_its_algorithm() {
    use InvalidIdToken::{Algorithm, Malformed, Signature, UnknownKey};
    let (signer, other) = (Signer::new("one"), Signer::new("two"));
    let token = signer.sign(&claims(&json!({})));
    let parts: Vec<&str> = token.split('.').collect();
    let unsigned = |header: &Value| {
        let header = URL_SAFE_NO_PAD.encode(header.to_string());
        format!("{header}.{}.", parts[1])
    };
    let by_secret = {
        // Of old, a public key passed for a shared secret.
        let header = Header::new(jsonwebtoken::Algorithm::HS256);
        let secret = EncodingKey::from_secret(b"published");
        encode(&header, &claims(&json!({})), &secret).unwrap()
    };
    let pretended = Signer {
        id: "one",
        ..other.clone()
    };
    let for_encryption = {
        let mut key = signer.key();
        key.common.public_key_use = Some(PublicKeyUse::Encryption);
        key
    };
    let critical = {
        let mut header = signer.header();
        header.crit = Some(vec!["exp".to_owned()]);
        encode(&header, &claims(&json!({})), &signer.secret).unwrap()
    };
    let unnamed = {
        let mut header = signer.header();
        header.kid = None;
        encode(&header, &claims(&json!({})), &signer.secret).unwrap()
    };
    let keys = [signer.key(), other.key()];
    for (token, keys, expected) in [
        (&*token, &keys[..], None),
        (&token, &keys[1..], Some(UnknownKey)),
        (&token, &[], Some(UnknownKey)),
        (&token, &[for_encryption], Some(UnknownKey)),
        (&unnamed, &keys[..1], None),
        (&unnamed, &keys, Some(UnknownKey)),
        (&pretended.sign(&claims(&json!({}))), &keys, Some(Signature)),
        (
            &format!("{}.{}.", parts[0], parts[1]),
            &keys,
            Some(Signature),
        ),
        (&unsigned(&json!({ "alg": "none" })), &keys, Some(Malformed)),
        (
            &unsigned(&json!({ "alg": "ES256", "kid": "one" })),
            &keys,
            Some(Signature),
        ),
        (
            &unsigned(&json!({ "alg": "RS256", "kid": "one" })),
            &keys,
            Some(UnknownKey),
        ),
        (&by_secret, &keys, Some(Algorithm)),
        (&critical, &keys, Some(Algorithm)),
        ("", &keys, Some(Malformed)),
        ("a.b.c", &keys, Some(Malformed)),
    ] {
        assert_eq!(read(token, keys).err(), expected, "{token}");
    }
}

/// A key pair of the provider.
#[derive(Clone)]
struct Signer {
    id: &'static str,
    secret: EncodingKey,
}

impl Signer {
    fn new(id: &'static str) -> Self {
        let pair = rcgen::KeyPair::generate().unwrap();
        let secret = EncodingKey::from_ec_der(&pair.serialize_der());
        Self { id, secret }
    }

    fn key(&self) -> Jwk {
        let mut key = Jwk::from_encoding_key(&self.secret, Algorithm::ES256).unwrap();
        key.common.key_id = Some(self.id.to_owned());
        key
    }

    fn header(&self) -> Header {
        let mut header = Header::new(Algorithm::ES256);
        header.kid = Some(self.id.to_owned());
        header
    }

    fn sign(&self, claims: &Value) -> String {
        encode(&self.header(), claims, &self.secret).unwrap()
    }
}

fn read(token: &str, keys: &[Jwk]) -> Result<NamedPerson, InvalidIdToken> {
    let now = Timestamp::from_ms(NOW_S * 1_000);
    verified(token, keys)?.person(EXPECTED, "groups", now)
}

/// The claims of a token that is accepted, with some changed; null takes one away.
fn claims(changed: &Value) -> Value {
    let mut claims = json!({
        "iss": "https://id.example",
        "aud": "signalbox",
        "sub": "7",
        "exp": NOW_S + 60,
        "nonce": "nonce-1",
        "name": "Ada Lovelace",
        "preferred_username": "ada",
        "groups": ["a", "b"],
    });
    let claims_map = claims.as_object_mut().unwrap();
    for (name, value) in changed.as_object().unwrap() {
        match value.is_null() {
            true => claims_map.remove(name),
            false => claims_map.insert(name.clone(), value.clone()),
        };
    }
    claims
}
