//! What does the identity provider say, and whom does it send? Its documents are fetched when they
//! are needed and kept for a while.

use std::sync::Arc;

use actors::clock::Clock;
use actors::http::identity_provider::{ClientAuthentication, ProviderFault};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use engine::customer::SecretDigest;
use engine::moment::Timestamp;
use jsonwebtoken::jwk::Jwk;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Mutex;
use url::Url;
use url::form_urlencoded::byte_serialize;

use super::SignedInPerson;
use super::attempts::SignInAttempt;
use super::id_token::{Claims, ExpectedClaims, InvalidIdToken, printable, verified};
use crate::config::{PersonGrant, is_confidential_url};
use crate::oidc::IdentityProviderOptions;

/// How long the documents of the provider are kept.
const DOCUMENTS_LIFETIME_S: i64 = 3_600;

/// How long the provider is not asked for its documents again after that failed, so that people who
/// wait for a provider that is down do not wait for each other.
const FAILURE_LIFETIME_S: i64 = 2;

/// The least time between two searches for a key that the documents do not have: a token with such
/// a key costs whoever made it nothing.
const KEY_SEARCH_PAUSE_S: i64 = 60;

/// The groups of a person that a refusal names.
const GROUPS_SHOWN_MAX: usize = 20;

/// Why a person is not signed in. The text is for the person, and repeats no secret.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(in crate::api) enum SignInProblem {
    /// The provider is down, or says what it must not.
    #[error("the identity provider cannot be used: {0}")]
    Provider(String),
    /// The ID token is not believed.
    #[error("the ID token of the identity provider is not accepted: {0}")]
    IdToken(#[from] InvalidIdToken),
    /// The provider has not signed the person in.
    #[error("the identity provider refused: {0}")]
    Refused(String),
    /// The code was used before or is too old.
    #[error("the identity provider does not accept the code: it was used before, or is too old")]
    Code,
    /// No rule is about the person.
    #[error("{0}")]
    NoGroup(String),
}

/// The identity provider, and what its groups may do.
pub(in crate::api) struct IdentityProvider {
    options: IdentityProviderOptions,
    clock: Clock,
    known: Mutex<KnownDocuments>,
}

/// The documents of the provider, as far as they are known.
#[derive(Default)]
struct KnownDocuments {
    current: Option<(Arc<ProviderDocuments>, Timestamp)>,
    failed: Option<(SignInProblem, Timestamp)>,
    key_searched_at: Option<Timestamp>,
}

/// The configuration of the provider and its keys.
struct ProviderDocuments {
    metadata: ProviderMetadata,
    keys: Vec<Jwk>,
}

/// The configuration of the provider (OpenID Connect Discovery 1.0 section 3).
#[derive(Deserialize)]
struct ProviderMetadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

/// Keys (RFC 7517 section 5). One that cannot be read is as good as none.
#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

/// The response of the token endpoint (RFC 6749 section 5.1); its other tokens are not used.
#[derive(Deserialize)]
struct TokenResponse {
    id_token: String,
}

/// An error of the token endpoint (RFC 6749 section 5.2).
#[derive(Deserialize)]
struct TokenError {
    error: String,
}

impl IdentityProvider {
    /// A provider that was not asked yet.
    pub(in crate::api) fn new(options: IdentityProviderOptions, clock: Clock) -> Self {
        Self {
            options,
            clock,
            known: Mutex::default(),
        }
    }

    /// What people know it as.
    pub(in crate::api) fn name(&self) -> &str {
        &self.options.name
    }

    /// Its issuer identifier.
    pub(in crate::api) fn issuer(&self) -> &str {
        &self.options.issuer
    }

    /// Where browsers reach the console, if the operator says so.
    pub(in crate::api) fn console(&self) -> Option<&str> {
        self.options.console.as_deref()
    }

    /// The URL at which a person signs in (OpenID Connect Core 1.0 section 3.1.2.1).
    pub(in crate::api) async fn authorization_url(
        &self,
        state: &str,
        attempt: &SignInAttempt,
    ) -> Result<String, SignInProblem> {
        let documents = self.documents().await?;
        let endpoint = &documents.metadata.authorization_endpoint;
        let digest = SecretDigest::of(&attempt.verifier);
        let challenge = URL_SAFE_NO_PAD.encode(digest.as_bytes());
        let parameters = [
            ("response_type", "code"),
            ("client_id", &self.options.client_id),
            ("redirect_uri", &attempt.redirect_uri),
            ("scope", &self.options.scope),
            ("state", state),
            ("nonce", &attempt.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        let url = Url::parse_with_params(endpoint, parameters);
        url.map(Into::into)
            .map_err(|_| unusable("authorization_endpoint"))
    }

    /// Who has the code, and what they may do.
    pub(in crate::api) async fn person(
        &self,
        code: &str,
        attempt: &SignInAttempt,
    ) -> Result<SignedInPerson, SignInProblem> {
        let documents = self.documents().await?;
        let token = self.id_token(&documents.metadata, code, attempt).await?;
        let claims = self.claims(&token, &documents).await?;
        let expected = ExpectedClaims {
            issuer: &self.options.issuer,
            client_id: &self.options.client_id,
            nonce: &attempt.nonce,
        };
        let named = claims.person(expected, &self.options.groups_claim, self.clock.now())?;
        let grant = PersonGrant::of(&self.options.rules, &named.groups);
        let grant = grant.ok_or_else(|| SignInProblem::NoGroup(without_rule(&named.groups)))?;
        Ok(SignedInPerson {
            subject: named.subject,
            name: named.name,
            grant,
        })
    }

    /// Exchanges the code (OpenID Connect Core 1.0 section 3.1.3).
    async fn id_token(
        &self,
        metadata: &ProviderMetadata,
        code: &str,
        attempt: &SignInAttempt,
    ) -> Result<String, SignInProblem> {
        let id = self.options.client_id.as_str();
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &attempt.redirect_uri),
            ("code_verifier", &attempt.verifier),
        ];
        // RFC 6749 section 2.3.1: both are encoded as those of a form first.
        let (encoded_id, encoded_secret);
        let mut authentication = ClientAuthentication::InForm;
        match &self.options.client_secret {
            Some(secret) if metadata.takes_basic() => {
                (encoded_id, encoded_secret) = (form_encoded(id), form_encoded(secret.expose()));
                authentication = ClientAuthentication::Basic(&encoded_id, &encoded_secret);
            }
            Some(secret) => {
                form.extend([("client_id", id), ("client_secret", secret.expose())]);
            }
            None => form.push(("client_id", id)),
        }
        let url = &metadata.token_endpoint;
        let answered = self.options.http.post(url, &form, authentication).await;
        let response = answered.map_err(|fault| unavailable("token endpoint", fault))?;
        if response.status == 200 {
            let read = serde_json::from_slice::<TokenResponse>(&response.body);
            return read
                .map(|response| response.id_token)
                .map_err(|_| unusable("response of the token endpoint"));
        }
        let refusal = serde_json::from_slice::<TokenError>(&response.body).ok();
        Err(
            match refusal.as_ref().map(|refusal| refusal.error.as_str()) {
                Some("invalid_grant") => SignInProblem::Code,
                Some(error) if is_error_code(error) => SignInProblem::Provider(format!(
                    "its token endpoint answered {} {error}",
                    response.status
                )),
                Some(_) | None => SignInProblem::Provider(format!(
                    "its token endpoint answered {}",
                    response.status
                )),
            },
        )
    }

    async fn claims(
        &self,
        token: &str,
        documents: &ProviderDocuments,
    ) -> Result<Claims, SignInProblem> {
        match verified(token, &documents.keys) {
            // The provider may have changed its keys.
            Err(InvalidIdToken::UnknownKey) => {
                let documents = self.documents_with_other_keys().await?;
                Ok(verified(token, &documents.keys)?)
            }
            read => Ok(read?),
        }
    }

    async fn documents(&self) -> Result<Arc<ProviderDocuments>, SignInProblem> {
        let mut known = self.known.lock().await;
        if let Some((documents, ends_at)) = &known.current
            && self.clock.now() < *ends_at
        {
            return Ok(Arc::clone(documents));
        }
        self.fetched(&mut known).await
    }

    async fn documents_with_other_keys(&self) -> Result<Arc<ProviderDocuments>, SignInProblem> {
        let mut known = self.known.lock().await;
        let now = self.clock.now();
        let searched_at = known.key_searched_at;
        if searched_at.is_some_and(|at| now < at.plus_s(KEY_SEARCH_PAUSE_S)) {
            return Err(InvalidIdToken::UnknownKey.into());
        }
        known.key_searched_at = Some(now);
        self.fetched(&mut known).await
    }

    async fn fetched(
        &self,
        known: &mut KnownDocuments,
    ) -> Result<Arc<ProviderDocuments>, SignInProblem> {
        if let Some((problem, ends_at)) = &known.failed
            && self.clock.now() < *ends_at
        {
            return Err(problem.clone());
        }
        let fetched = self.fetch().await;
        let now = self.clock.now();
        match fetched {
            Ok(documents) => {
                let documents = Arc::new(documents);
                let ends_at = now.plus_s(DOCUMENTS_LIFETIME_S);
                known.current = Some((Arc::clone(&documents), ends_at));
                Ok(documents)
            }
            Err(problem) => {
                known.failed = Some((problem.clone(), now.plus_s(FAILURE_LIFETIME_S)));
                Err(problem)
            }
        }
    }

    async fn fetch(&self) -> Result<ProviderDocuments, SignInProblem> {
        let issuer = &self.options.issuer;
        let place = issuer.trim_end_matches('/');
        let place = format!("{place}/.well-known/openid-configuration");
        let metadata: ProviderMetadata = self.document("configuration", &place).await?;
        if metadata.issuer != *issuer {
            return Err(SignInProblem::Provider(
                "its configuration is that of another issuer than oidc_issuer".to_owned(),
            ));
        }
        for (name, url) in [
            ("authorization_endpoint", &metadata.authorization_endpoint),
            ("token_endpoint", &metadata.token_endpoint),
            ("jwks_uri", &metadata.jwks_uri),
        ] {
            if !is_confidential_url(url) {
                return Err(unusable(name));
            }
        }
        let set: KeySet = self.document("key set", &metadata.jwks_uri).await?;
        let keys = set.keys.into_iter();
        let keys = keys.filter_map(|key| serde_json::from_value(key).ok());
        Ok(ProviderDocuments {
            keys: keys.collect(),
            metadata,
        })
    }

    async fn document<T: DeserializeOwned>(
        &self,
        what: &str,
        url: &str,
    ) -> Result<T, SignInProblem> {
        let answered = self.options.http.fetch(url).await;
        let response = answered.map_err(|fault| unavailable(what, fault))?;
        if response.status != 200 {
            let status = response.status;
            return Err(SignInProblem::Provider(format!(
                "the answer to the request for its {what} was {status}"
            )));
        }
        serde_json::from_slice(&response.body).map_err(|_| unusable(what))
    }
}

impl ProviderMetadata {
    /// Basic authentication is what a provider accepts that does not say (Discovery section 3).
    fn takes_basic(&self) -> bool {
        let methods = self.token_endpoint_auth_methods_supported.as_ref();
        methods.is_none_or(|methods| methods.iter().any(|it| it == "client_secret_basic"))
    }
}

/// Whether a text is an error code (RFC 6749 section 5.2), and not anything that somebody wants to
/// have shown.
pub(in crate::api) fn is_error_code(text: &str) -> bool {
    let is_short = (1..=64).contains(&text.len());
    is_short && text.bytes().all(|it| it.is_ascii_lowercase() || it == b'_')
}

fn unavailable(what: &str, fault: ProviderFault) -> SignInProblem {
    SignInProblem::Provider(format!("its {what} cannot be reached: {fault}"))
}

fn unusable(what: &str) -> SignInProblem {
    SignInProblem::Provider(format!("its {what} is not as OpenID Connect says"))
}

fn without_rule(groups: &[String]) -> String {
    if groups.is_empty() {
        return "you are signed in at the identity provider, but it names no group of yours; ask \
                the operator of this service for access"
            .to_owned();
    }
    let shown = groups.iter().take(GROUPS_SHOWN_MAX);
    let shown: Vec<String> = shown.map(|group| printable(group)).collect();
    let more = match groups.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "you are signed in at the identity provider, but none of your groups may use this service \
         ({}{more}); ask its operator for access",
        shown.join(", ")
    )
}

fn form_encoded(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}
