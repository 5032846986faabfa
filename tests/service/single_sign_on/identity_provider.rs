//! An identity provider of the test, which lies as the test says. One that behaves is driven in
//! `tests/browser`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use crate::vocabulary::endpoint::{Endpoint, ReceivedPost, Reply};

/// The client that the service is.
pub(crate) const CLIENT_ID: &str = "the console";

/// Its secret, which a form encodes.
pub(crate) const CLIENT_SECRET: &str = "s3cret of: the console";

/// The code for whoever comes back.
pub(crate) const CODE: &str = "code-Wq7RmZ2v";

/// When tokens expire: in the year 2100.
const EXPIRES_S: u64 = 4_102_444_800;

/// The provider.
pub(crate) struct IdentityProvider {
    endpoint: Endpoint,
    shared: Arc<Mutex<ProviderState>>,
}

/// What the provider says.
struct ProviderState {
    issuer: String,
    signer: Signer,
    published: Vec<Jwk>,
    /// Claims that differ from those of a good token; null takes one away.
    changed: Value,
    /// The ID token in place of a signed one.
    token: Option<String>,
    /// The response of the token endpoint in place of a token.
    refusal: Option<Reply>,
    /// The response to everything in place of what is right.
    everything: Option<Reply>,
    metadata: Value,
    nonce: String,
}

/// A key pair of the provider.
struct Signer {
    id: &'static str,
    secret: EncodingKey,
}

impl IdentityProvider {
    /// A provider that says the truth.
    pub(crate) fn new() -> Self {
        let signer = Signer::new("key-1");
        let shared = Arc::new(Mutex::new(ProviderState {
            issuer: String::new(),
            published: vec![signer.key()],
            signer,
            changed: json!({}),
            token: None,
            refusal: None,
            everything: None,
            metadata: json!({}),
            nonce: String::new(),
        }));
        let state = Arc::clone(&shared);
        let endpoint = Endpoint::replying(move |received, _| state.lock().unwrap().reply(received));
        shared.lock().unwrap().issuer = endpoint.url("");
        Self { endpoint, shared }
    }

    /// Its issuer identifier.
    pub(crate) fn issuer(&self) -> String {
        self.endpoint.url("")
    }

    /// Its endpoint, for how often it was asked for what.
    pub(crate) fn asked(&self, path: &str) -> Vec<ReceivedPost> {
        let mut posted = self.endpoint.posted();
        posted.retain(|received| received.path == path);
        posted
    }

    /// Breaks its connections and accepts none.
    pub(crate) fn close(&mut self) {
        self.endpoint.close();
    }

    /// The nonce that tokens repeat from now on.
    pub(crate) fn expect(&self, nonce: &str) {
        self.with(|it| it.nonce = nonce.to_owned());
    }

    /// Changes the claims of tokens.
    pub(crate) fn claim(&self, changed: Value) {
        self.with(|it| it.changed = changed);
    }

    /// Changes its configuration.
    pub(crate) fn configure(&self, metadata: Value) {
        self.with(|it| it.metadata = metadata);
    }

    /// Gives this token to whoever has a code.
    pub(crate) fn issue(&self, token: &str) {
        self.with(|it| it.token = Some(token.to_owned()));
    }

    /// Gives no token.
    pub(crate) fn refuse(&self, refusal: Reply) {
        self.with(|it| it.refusal = Some(refusal));
    }

    /// Replies so to everything.
    pub(crate) fn reply(&self, reply: Reply) {
        self.with(|it| it.everything = Some(reply));
    }

    /// Signs with another key from now on.
    pub(crate) fn sign_with(&self, id: &'static str) {
        self.with(|it| it.signer = Signer::new(id));
    }

    /// Publishes the key that it signs with, and no other.
    pub(crate) fn publish(&self) {
        self.with(|it| it.published = vec![it.signer.key()]);
    }

    fn with(&self, change: impl FnOnce(&mut ProviderState)) {
        change(&mut self.shared.lock().unwrap());
    }
}

impl ProviderState {
    fn reply(&self, received: &ReceivedPost) -> Reply {
        if let Some(reply) = &self.everything {
            return reply.clone();
        }
        let body = match received.path.as_str() {
            "/.well-known/openid-configuration" => {
                let metadata = json!({
                    "issuer": self.issuer,
                    "authorization_endpoint": format!("{}/authorize", self.issuer),
                    "token_endpoint": format!("{}/token", self.issuer),
                    "jwks_uri": format!("{}/keys", self.issuer),
                });
                changed(metadata, &self.metadata)
            }
            "/keys" => json!({ "keys": self.published }),
            "/token" => match &self.refusal {
                Some(refusal) => return refusal.clone(),
                None => json!({ "token_type": "Bearer", "id_token": self.id_token() }),
            },
            _ => return Reply::Status(404),
        };
        Reply::Json(200, body.to_string())
    }

    fn id_token(&self) -> String {
        if let Some(token) = &self.token {
            return token.clone();
        }
        let claims = json!({
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "sub": "person-7",
            "exp": EXPIRES_S,
            "nonce": self.nonce,
            "name": "Ada Lovelace",
        });
        let claims = changed(claims, &self.changed);
        encode(&self.signer.header(), &claims, &self.signer.secret).unwrap()
    }
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
}

/// The values of the query of a URL, or of a form.
pub(crate) fn parameters(encoded: &str) -> HashMap<String, String> {
    let encoded = encoded.split_once('?').map_or(encoded, |(_, query)| query);
    let url = reqwest::Url::parse(&format!("http://form/?{encoded}")).unwrap();
    url.query_pairs().into_owned().collect()
}

fn changed(mut object: Value, changes: &Value) -> Value {
    let properties = object.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        match value.is_null() {
            true => properties.remove(name),
            false => properties.insert(name.clone(), value.clone()),
        };
    }
    object
}
