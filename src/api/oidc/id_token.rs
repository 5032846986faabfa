//! Whom does an ID token name, and is it to be believed? (OpenID Connect Core 1.0 section 3.1.3.7)
//!
//! Checked without a clock of its own.

use engine::moment::Timestamp;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::{Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Signatures by which the provider alone can prove itself: none, and none by a shared secret.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// How far the clock of the provider may differ.
const LEEWAY_S: f64 = 60.0;

/// The characters of a name that are shown.
const NAME_CHARS_MAX: usize = 100;

/// The most characters of a subject (OpenID Connect Core 1.0 section 2).
const SUBJECT_CHARS_MAX: usize = 255;

/// The claims of an ID token.
#[derive(Deserialize)]
pub(super) struct Claims {
    iss: String,
    sub: String,
    aud: Audience,
    azp: Option<String>,
    exp: f64,
    nbf: Option<f64>,
    nonce: Option<String>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// For whom a token is.
#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

/// What the claims of a token must say.
#[derive(Clone, Copy)]
pub(super) struct ExpectedClaims<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    pub(super) nonce: &'a str,
}

/// Whom a token names.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct NamedPerson {
    pub(super) subject: Box<str>,
    pub(super) name: Box<str>,
    pub(super) groups: Vec<String>,
}

/// Why a token is not believed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(in crate::api) enum InvalidIdToken {
    #[error("it is no signed JWT with the claims of an ID token")]
    Malformed,
    #[error("its signature has an algorithm that proves nothing")]
    Algorithm,
    #[error("it is signed with a key that the provider does not publish")]
    UnknownKey,
    #[error("its signature is wrong")]
    Signature,
    #[error("another provider issued it (iss)")]
    Issuer,
    #[error("it was issued to another client (aud, azp)")]
    Audience,
    #[error("it has expired, or is not valid yet (exp, nbf)")]
    Expired,
    #[error("it was not issued for this sign-in (nonce)")]
    Nonce,
    #[error("it names nobody, or in more than 255 printable characters (sub)")]
    Subject,
    #[error("the person is in more groups than it can list: have the provider send fewer")]
    TooManyGroups,
}

/// The claims of a token that was signed with one of these keys.
pub(super) fn verified(token: &str, keys: &[Jwk]) -> Result<Claims, InvalidIdToken> {
    // `none` is no algorithm for the library.
    let header = decode_header(token).map_err(|_| InvalidIdToken::Malformed)?;
    if !ALGORITHMS.contains(&header.alg) || header.crit.is_some() {
        return Err(InvalidIdToken::Algorithm);
    }
    let key = key_of(&header, keys).ok_or(InvalidIdToken::UnknownKey)?;
    let key = DecodingKey::from_jwk(key).map_err(|_| InvalidIdToken::UnknownKey)?;
    if key.family() != header.alg.family() {
        return Err(InvalidIdToken::Algorithm);
    }
    // The claims are checked below, by the clock of the service.
    let mut signature_alone = Validation::new(header.alg);
    signature_alone.required_spec_claims.clear();
    signature_alone.validate_exp = false;
    signature_alone.validate_aud = false;
    match decode::<Claims>(token, &key, &signature_alone) {
        Ok(token) => Ok(token.claims),
        Err(error) if *error.kind() == ErrorKind::InvalidSignature => {
            Err(InvalidIdToken::Signature)
        }
        Err(_) => Err(InvalidIdToken::Malformed),
    }
}

/// The key that a header names, or the only one that fits (RFC 7515 section 4.1.4).
fn key_of<'a>(header: &Header, keys: &'a [Jwk]) -> Option<&'a Jwk> {
    let mut fitting = keys.iter().filter(|key| {
        let key = &key.common;
        let is_for_signatures = matches!(key.public_key_use, None | Some(PublicKeyUse::Signature));
        let algorithm = key.key_algorithm.as_ref().map(KeyAlgorithm::to_string);
        let is_for_it = algorithm.is_none_or(|it| it == format!("{:?}", header.alg));
        is_for_signatures && is_for_it
    });
    match &header.kid {
        Some(kid) => fitting.find(|key| key.common.key_id.as_ref() == Some(kid)),
        None => fitting.next().filter(|_| fitting.next().is_none()),
    }
}

impl Claims {
    /// Whom the token names, if it was issued by the provider, to this service, for this attempt,
    /// and has not expired. The groups are in a claim of this name.
    pub(super) fn person(
        self,
        expected: ExpectedClaims<'_>,
        groups_claim: &str,
        now: Timestamp,
    ) -> Result<NamedPerson, InvalidIdToken> {
        let now_s = now.as_ms() as f64 / 1_000.0;
        let is_own = |id: &String| id == expected.client_id;
        let is_for_us = match &self.aud {
            Audience::One(audience) => is_own(audience),
            // Several need the party that the token was issued to.
            Audience::Several(audience) => {
                audience.iter().any(is_own) && (audience.len() == 1 || self.azp.is_some())
            }
        };
        let is_valid =
            now_s < self.exp + LEEWAY_S && self.nbf.is_none_or(|begins| begins - LEEWAY_S <= now_s);
        if self.iss != expected.issuer {
            Err(InvalidIdToken::Issuer)
        } else if !is_for_us || !self.azp.as_ref().is_none_or(is_own) {
            Err(InvalidIdToken::Audience)
        } else if !is_valid {
            Err(InvalidIdToken::Expired)
        } else if self.nonce.as_deref() != Some(expected.nonce) {
            Err(InvalidIdToken::Nonce)
        } else if !is_subject(&self.sub) {
            Err(InvalidIdToken::Subject)
        } else {
            Ok(NamedPerson {
                name: self.name(),
                groups: self.groups(groups_claim)?,
                subject: self.sub.into(),
            })
        }
    }

    /// The first claim of section 5.1 that has a name.
    fn name(&self) -> Box<str> {
        let names = ["name", "preferred_username", "email"].into_iter();
        let mut names = names.filter_map(|claim| self.others.get(claim)?.as_str());
        let name = names.find(|name| !name.trim().is_empty());
        printable(name.unwrap_or(&self.sub)).into()
    }

    fn groups(&self, claim: &str) -> Result<Vec<String>, InvalidIdToken> {
        match self.others.get(claim) {
            Some(Value::String(group)) => Ok(vec![group.clone()]),
            Some(Value::Array(groups)) => {
                let groups = groups.iter().filter_map(Value::as_str);
                Ok(groups.map(str::to_owned).collect())
            }
            Some(_) => Err(InvalidIdToken::Malformed),
            // Section 5.6.2: the claim is elsewhere. Entra does so with more than 200 groups.
            None => match self.others.get("_claim_names").and_then(|it| it.get(claim)) {
                Some(_) => Err(InvalidIdToken::TooManyGroups),
                None => Ok(Vec::new()),
            },
        }
    }
}

fn is_subject(text: &str) -> bool {
    let is_printable = !text.chars().any(char::is_control);
    (1..=SUBJECT_CHARS_MAX).contains(&text.len()) && is_printable
}

/// A name as it may be shown and logged.
pub(super) fn printable(name: &str) -> String {
    let printable = name.chars().filter(|c| !c.is_control());
    printable.take(NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
