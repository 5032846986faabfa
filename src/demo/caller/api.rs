//! How is one call made, and what is found in its answer?

use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use super::Client;

/// Longer than any answer of a service on this machine takes; a call without an end would leave
/// the demo waiting without a word.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// The API at one address.
pub(super) struct Api {
    http: reqwest::Client,
    base: String,
}

/// A token that is shown with a call.
pub(super) struct Bearer(pub(super) String);

/// The JSON of one answer, and which call it answered.
pub(super) struct Answer {
    call: String,
    body: Value,
}

/// Why a call came to nothing.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum CallError {
    /// Nobody answered, or not in time.
    #[error("{call}: no answer: {source}")]
    NoAnswer {
        /// The call.
        call: String,
        /// Why.
        source: reqwest::Error,
    },
    /// The API refused.
    #[error("{call}: {status} {body}")]
    Refused {
        /// The call.
        call: String,
        /// The status code.
        status: u16,
        /// What the API says of it.
        body: String,
    },
    /// The answer lacks what the contract promises.
    #[error("{call}: the answer has no {missing}: {body}")]
    Incomplete {
        /// The call.
        call: String,
        /// What was looked for.
        missing: String,
        /// What was found.
        body: String,
    },
}

/// How a call proves whose it is.
pub(super) trait Proof {
    /// Shows the proof with the call.
    fn show(&self, call: RequestBuilder) -> RequestBuilder;
}

impl Proof for Bearer {
    fn show(&self, call: RequestBuilder) -> RequestBuilder {
        call.bearer_auth(&self.0)
    }
}

impl Proof for Client {
    fn show(&self, call: RequestBuilder) -> RequestBuilder {
        call.basic_auth(&self.id, Some(&self.secret))
    }
}

impl Api {
    /// The API at an address like `http://127.0.0.1:8080`.
    pub(super) fn at(base: &str) -> Result<Self, CallError> {
        // A proxy of the environment is for other hosts than this one.
        let http = reqwest::Client::builder()
            .no_proxy()
            // It speaks plain HTTP: a machine without authorities of certificates will do.
            .tls_certs_only([])
            .timeout(CALL_TIMEOUT)
            .build();
        let http = http.map_err(|source| CallError::NoAnswer {
            call: base.to_owned(),
            source,
        })?;
        Ok(Self {
            http,
            base: base.to_owned(),
        })
    }

    /// Makes a call without a body.
    pub(super) async fn call(
        &self,
        proof: &impl Proof,
        method: Method,
        path: &str,
    ) -> Result<Answer, CallError> {
        let request = self
            .http
            .request(method.clone(), format!("{}{path}", self.base));
        send(format!("{method} {path}"), proof.show(request)).await
    }

    /// Posts a JSON body.
    pub(super) async fn post(
        &self,
        proof: &impl Proof,
        path: &str,
        body: &Value,
    ) -> Result<Answer, CallError> {
        let request = self.http.post(format!("{}{path}", self.base)).json(body);
        send(format!("POST {path}"), proof.show(request)).await
    }

    /// Says what is to be otherwise in a JSON body.
    pub(super) async fn patch(
        &self,
        proof: &impl Proof,
        path: &str,
        body: &Value,
    ) -> Result<Answer, CallError> {
        let request = self.http.patch(format!("{}{path}", self.base)).json(body);
        send(format!("PATCH {path}"), proof.show(request)).await
    }
}

impl CallError {
    /// Whether the API does not believe who calls, as when a token has ended.
    pub(in super::super) fn is_unauthorized(&self) -> bool {
        matches!(self, Self::Refused { status: 401, .. })
    }

    /// Takes it that what was to be made is there already.
    pub(super) fn forgive_conflict(self) -> Result<(), Self> {
        match self {
            Self::Refused { status: 409, .. } => Ok(()),
            Self::Refused { .. } | Self::NoAnswer { .. } | Self::Incomplete { .. } => Err(self),
        }
    }
}

impl Answer {
    /// The text at a JSON pointer.
    pub(super) fn text(&self, pointer: &str) -> Result<String, CallError> {
        self.maybe_text(pointer).ok_or_else(|| self.lacks(pointer))
    }

    /// The text at a JSON pointer, if there is any.
    pub(super) fn maybe_text(&self, pointer: &str) -> Option<String> {
        self.body.pointer(pointer)?.as_str().map(str::to_owned)
    }

    /// The number at a JSON pointer.
    pub(super) fn number(&self, pointer: &str) -> Result<u64, CallError> {
        let number = self.body.pointer(pointer).and_then(Value::as_u64);
        number.ok_or_else(|| self.lacks(pointer))
    }

    /// The numbers at a pointer within each element of a list.
    pub(super) fn numbers(&self, list: &str, pointer: &str) -> Vec<u64> {
        let elements = self
            .body
            .pointer(list)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        elements
            .filter_map(|element| element.pointer(pointer)?.as_u64())
            .collect()
    }

    /// The value of that element of a list that has a given text under a name.
    pub(super) fn value_where(&self, list: &str, name: &str, text: &str) -> Option<Value> {
        let elements = self.body.pointer(list)?.as_array()?;
        let found = elements.iter().find(|element| element[name] == text)?;
        found.get("value").cloned()
    }

    /// Whether it says true at a JSON pointer.
    pub(super) fn is_true(&self, pointer: &str) -> bool {
        self.body.pointer(pointer) == Some(&Value::Bool(true))
    }

    /// Whether there is anything but null at a JSON pointer.
    pub(super) fn has(&self, pointer: &str) -> bool {
        self.body
            .pointer(pointer)
            .is_some_and(|value| !value.is_null())
    }

    /// The items of a page, each to be read like an answer.
    pub(super) fn items(&self) -> Result<Vec<Self>, CallError> {
        let items = self.body.pointer("/items").and_then(Value::as_array);
        let items = items.ok_or_else(|| self.lacks("/items"))?;
        let item = |body: &Value| Self {
            call: self.call.clone(),
            body: body.clone(),
        };
        Ok(items.iter().map(item).collect())
    }

    fn lacks(&self, pointer: &str) -> CallError {
        let missing = pointer.trim_start_matches('/').to_owned();
        CallError::Incomplete {
            call: self.call.clone(),
            missing,
            body: self.body.to_string(),
        }
    }
}

async fn send(call: String, request: RequestBuilder) -> Result<Answer, CallError> {
    let answered = async {
        let response = request.send().await?;
        Ok((response.status(), response.text().await?))
    };
    let (status, text) = match answered.await {
        Ok(answered) => answered,
        Err(source) => return Err(CallError::NoAnswer { call, source }),
    };
    if !status.is_success() {
        return Err(CallError::Refused {
            call,
            status: status.as_u16(),
            body: text,
        });
    }
    let body = match text.is_empty() {
        true => Ok(Value::Null),
        false => serde_json::from_str(&text),
    };
    match body {
        Ok(body) => Ok(Answer { call, body }),
        Err(_) => Err(CallError::Incomplete {
            call,
            missing: "JSON".to_owned(),
            body: text,
        }),
    }
}
