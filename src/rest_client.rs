//! How does a program call the REST API? One call, its JSON response, and why a call fails.
//!
//! The demo, the load test and the benches use it: they know of a service only what any program of
//! a customer can know.

use std::error::Error;
use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

/// Where access tokens are issued.
pub const TOKENS: &str = "/management-api/oauth/token";
/// Where devices are created and read.
pub const DEVICES: &str = "/management-api/v1/devices";
/// Where requests to devices are created.
pub const ACTIONS: &str = "/management-api/v1/integrate/devices";
/// Where requests to devices are read.
pub const REQUESTS: &str = "/management-api/v1/integrate/devices/actions/requests";

/// Where firmware images are stored.
pub const IMAGES: &str = "/management-api/v1/firmware/images";
/// Where firmware campaigns are created and read.
pub const CAMPAIGNS: &str = "/management-api/v1/firmware/campaigns";
/// Where webhooks are created.
pub const WEBHOOKS: &str = "/management-api/v1/integrate/clouds/webhooks";

const CUSTOMERS: &str = "/operator-api/v1/customers";

const NETWORK_CLIENTS: &str = "/operator-api/v1/network/clients";

/// Longer than any response of a healthy service takes.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// How long an idle connection is kept: less than the service keeps it, so that no call leaves on a
/// connection that is being closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3);

/// Calls the API at one address, with one set of credentials.
#[derive(Clone)]
pub struct RestClient {
    http: reqwest::Client,
    base: String,
    credentials: ClientCredentials,
}

/// The credentials of a call.
#[derive(Clone)]
pub enum ClientCredentials {
    /// None: for paths without authorisation.
    None,
    /// An access token, or the operator's token.
    Bearer(String),
    /// The id and secret of an API client.
    Key(ApiKey),
}

/// The id and secret of an API client.
#[derive(Clone)]
pub struct ApiKey {
    /// The id.
    pub id: String,
    /// The secret, which the API shows once.
    pub secret: String,
}

/// An access token, as issued.
pub struct AccessToken {
    /// The token.
    pub token: String,
    /// How long it is valid.
    pub lifetime_s: u64,
}

/// The JSON of one response, and the call it answers.
pub struct JsonAnswer {
    call: String,
    body: Value,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// There was no response in time.
    #[error("{call}: no answer: {}", cause(.source))]
    NoAnswer {
        /// The call.
        call: String,
        /// The cause.
        source: reqwest::Error,
    },
    /// The API rejected the call.
    #[error("{call}: {status} {body}")]
    Refused {
        /// The call.
        call: String,
        /// The status code.
        status: u16,
        /// The body of the response.
        body: String,
    },
    /// The response lacks a property that the contract promises.
    #[error("{call}: the answer has no {missing}: {body}")]
    Incomplete {
        /// The call.
        call: String,
        /// The missing property.
        missing: String,
        /// The received JSON.
        body: String,
    },
}

impl RestClient {
    /// A client of the API at an address like `http://127.0.0.1:8080`.
    pub fn new(base: &str, credentials: ClientCredentials) -> Result<Self, CallError> {
        // A proxy in the environment is meant for other hosts.
        let http = reqwest::Client::builder()
            .no_proxy()
            // The API is plain HTTP here: the client also works on a machine without certificate
            // authorities.
            .tls_certs_only([])
            .tcp_nodelay(true)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .timeout(CALL_TIMEOUT)
            .build();
        let no_client = |source| CallError::NoAnswer {
            call: base.to_owned(),
            source,
        };
        Ok(Self {
            http: http.map_err(no_client)?,
            base: base.to_owned(),
            credentials,
        })
    }

    /// Replaces the credentials; the connections stay.
    pub fn authenticate(&mut self, credentials: ClientCredentials) {
        self.credentials = credentials;
    }

    /// GET.
    pub async fn read(&self, path: &str) -> Result<JsonAnswer, CallError> {
        self.send(Method::GET, path, |call| call).await
    }

    /// DELETE.
    pub async fn delete(&self, path: &str) -> Result<JsonAnswer, CallError> {
        self.send(Method::DELETE, path, |call| call).await
    }

    /// POST with a JSON body.
    pub async fn post(&self, path: &str, body: &Value) -> Result<JsonAnswer, CallError> {
        self.send(Method::POST, path, |call| call.json(body)).await
    }

    /// POST with a JSON body, which is executed once however often it is repeated with the key.
    pub async fn post_once(
        &self,
        path: &str,
        body: &Value,
        key: &str,
    ) -> Result<JsonAnswer, CallError> {
        let with_key = |call: RequestBuilder| call.header("idempotency-key", key).json(body);
        self.send(Method::POST, path, with_key).await
    }

    /// PUT with a JSON body.
    pub async fn put(&self, path: &str, body: &Value) -> Result<JsonAnswer, CallError> {
        self.send(Method::PUT, path, |call| call.json(body)).await
    }

    /// PATCH with a JSON body.
    pub async fn patch(&self, path: &str, body: &Value) -> Result<JsonAnswer, CallError> {
        self.send(Method::PATCH, path, |call| call.json(body)).await
    }

    /// Imports devices from lines of JSON, with a timeout of its own.
    pub async fn import(&self, lines: String, timeout: Duration) -> Result<JsonAnswer, CallError> {
        let with_lines = |call: RequestBuilder| {
            call.timeout(timeout)
                .header("content-type", "application/x-ndjson")
                .body(lines)
        };
        let path = format!("{DEVICES}/import");
        self.send(Method::POST, &path, with_lines).await
    }

    /// POST with bytes, such as a firmware image.
    pub async fn upload(&self, path: &str, bytes: Vec<u8>) -> Result<JsonAnswer, CallError> {
        let with_bytes = |call: RequestBuilder| {
            call.header("content-type", "application/octet-stream")
                .body(bytes)
        };
        self.send(Method::POST, path, with_bytes).await
    }

    /// Creates a customer, as the operator; an existing one is kept.
    pub async fn ensure_customer(&self, id: &str, name: &str) -> Result<(), CallError> {
        let customer = json!({ "id": id, "name": name });
        let made = self.post(CUSTOMERS, &customer).await;
        made.map(drop).or_else(CallError::forgive_conflict)
    }

    /// Creates an API client of a customer, as the operator.
    pub async fn create_key(&self, customer: &str, name: &str) -> Result<ApiKey, CallError> {
        let path = format!("{CUSTOMERS}/{customer}/clients");
        self.create_key_at(&path, name).await
    }

    /// Creates an API client of the network, as the operator.
    pub async fn create_network_key(&self, name: &str) -> Result<ApiKey, CallError> {
        self.create_key_at(NETWORK_CLIENTS, name).await
    }

    async fn create_key_at(&self, path: &str, name: &str) -> Result<ApiKey, CallError> {
        let made = self.post(path, &json!({ "name": name })).await?;
        Ok(ApiKey {
            id: made.text("/clientId")?,
            secret: made.text("/clientSecret")?,
        })
    }

    /// Gets an access token for a key, and uses it from now on.
    pub async fn authorize(&mut self, key: &ApiKey) -> Result<AccessToken, CallError> {
        self.authenticate(ClientCredentials::Key(key.clone()));
        let grant = json!({ "grant_type": "client_credentials" });
        let issued = self.post(TOKENS, &grant).await?;
        let token = AccessToken {
            token: issued.text("/access_token")?,
            lifetime_s: issued.number("/expires_in")?,
        };
        self.authenticate(ClientCredentials::Bearer(token.token.clone()));
        Ok(token)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        complete: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<JsonAnswer, CallError> {
        let call = format!("{method} {path}");
        let request = self.http.request(method, format!("{}{path}", self.base));
        let request = match &self.credentials {
            ClientCredentials::None => request,
            ClientCredentials::Bearer(token) => request.bearer_auth(token),
            ClientCredentials::Key(ApiKey { id, secret }) => request.basic_auth(id, Some(secret)),
        };
        let request = complete(request);
        let answered = async {
            let response = request.send().await?;
            Ok((response.status(), response.text().await?))
        };
        match answered.await {
            Err(source) => Err(CallError::NoAnswer { call, source }),
            Ok((status, body)) if status.is_success() => JsonAnswer::parse(call, body),
            Ok((status, body)) => Err(CallError::Refused {
                call,
                status: status.as_u16(),
                body,
            }),
        }
    }
}

impl JsonAnswer {
    fn parse(call: String, text: String) -> Result<Self, CallError> {
        if text.is_empty() {
            let body = Value::Null;
            return Ok(Self { call, body });
        }
        match serde_json::from_str(&text) {
            Ok(body) => Ok(Self { call, body }),
            Err(_) => Err(CallError::Incomplete {
                call,
                missing: "JSON".to_owned(),
                body: text,
            }),
        }
    }

    /// The value at a JSON pointer; None if it is absent or null.
    pub fn at(&self, pointer: &str) -> Option<&Value> {
        let found = self.body.pointer(pointer);
        found.filter(|value| !value.is_null())
    }

    /// The string at a JSON pointer, if there is one.
    pub fn maybe_text(&self, pointer: &str) -> Option<String> {
        self.at(pointer)?.as_str().map(str::to_owned)
    }

    /// The string at a JSON pointer.
    pub fn text(&self, pointer: &str) -> Result<String, CallError> {
        self.maybe_text(pointer).ok_or_else(|| self.lacks(pointer))
    }

    /// The number at a JSON pointer.
    pub fn number(&self, pointer: &str) -> Result<u64, CallError> {
        let number = self.at(pointer).and_then(Value::as_u64);
        number.ok_or_else(|| self.lacks(pointer))
    }

    /// The items of a page, each read like a response.
    pub fn items(&self) -> Result<Vec<Self>, CallError> {
        let items = self.at("/items").and_then(Value::as_array);
        let items = items.ok_or_else(|| self.lacks("/items"))?;
        let item = |body: &Value| Self {
            call: self.call.clone(),
            body: body.clone(),
        };
        Ok(items.iter().map(item).collect())
    }

    fn lacks(&self, pointer: &str) -> CallError {
        CallError::Incomplete {
            call: self.call.clone(),
            missing: pointer.trim_start_matches('/').to_owned(),
            body: self.body.to_string(),
        }
    }
}

impl CallError {
    /// Whether the API rejects the credentials, as when a token has expired.
    pub fn is_unauthorized(&self) -> bool {
        matches!(self, Self::Refused { status: 401, .. })
    }

    /// Treats the conflict as success: the object to create exists.
    pub fn forgive_conflict(self) -> Result<(), Self> {
        match self {
            Self::Refused { status: 409, .. } => Ok(()),
            Self::Refused { .. } | Self::NoAnswer { .. } | Self::Incomplete { .. } => Err(self),
        }
    }
}

/// The root cause of an error, which reqwest prints last.
fn cause(error: &reqwest::Error) -> String {
    let mut last: &dyn Error = error;
    while let Some(deeper) = last.source() {
        last = deeper;
    }
    last.to_string()
}
