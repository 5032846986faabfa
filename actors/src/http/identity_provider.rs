//! How is the identity provider of the operator called?
//!
//! The operator configures it, so it may be at a private address, unlike the systems of customers;
//! apart from that it is trusted no more than they are: redirects are not followed, proxies of the
//! environment are not used, and time and size of a response are bounded.

use std::time::Duration;

use reqwest::header::ACCEPT;
use reqwest::{Client, RequestBuilder};
use tokio::time::timeout;

use super::{HttpError, UnreachableReason, client_builder, fault, trust};

/// How long a request may take, its response included: a person waits for it.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest response. Key sets and tokens have a few kilobytes; a longer one is refused.
const RESPONSE_BYTES_MAX: usize = 262_144;

/// Calls the identity provider.
#[derive(Clone, Debug)]
pub struct IdentityProviderHttp {
    client: Client,
    timeout: Duration,
}

/// How a program proves at the token endpoint that it is the client (RFC 6749 section 2.3).
#[derive(Clone, Copy)]
pub enum ClientAuthentication<'a> {
    /// By HTTP Basic authentication with this user name and password.
    Basic(&'a str, &'a str),
    /// By fields of the form, or not at all.
    InForm,
}

/// A response of the provider.
pub struct ProviderResponse {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// Why there is no response.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ProviderFault {
    /// No response came.
    #[error("{0}")]
    Unreachable(#[from] UnreachableReason),
    /// The response is too long.
    #[error("the response is longer than {RESPONSE_BYTES_MAX} bytes")]
    TooLong,
}

impl IdentityProviderHttp {
    /// Makes requests that trust the authorities of the system, and those of this PEM text.
    pub fn new(authorities: Option<&[u8]>) -> Result<Self, HttpError> {
        Self::within(CALL_TIMEOUT, authorities)
    }

    pub(super) fn within(timeout: Duration, authorities: Option<&[u8]>) -> Result<Self, HttpError> {
        let client = client_builder(trust::client_config(authorities)?).build()?;
        Ok(Self { client, timeout })
    }

    /// Fetches a document.
    pub async fn fetch(&self, url: &str) -> Result<ProviderResponse, ProviderFault> {
        self.answered(self.client.get(url)).await
    }

    /// Posts a form.
    pub async fn post(
        &self,
        url: &str,
        form: &[(&str, &str)],
        authentication: ClientAuthentication<'_>,
    ) -> Result<ProviderResponse, ProviderFault> {
        let request = self.client.post(url).form(form);
        let request = match authentication {
            ClientAuthentication::Basic(name, password) => request.basic_auth(name, Some(password)),
            ClientAuthentication::InForm => request,
        };
        self.answered(request).await
    }

    async fn answered(&self, request: RequestBuilder) -> Result<ProviderResponse, ProviderFault> {
        let request = request.header(ACCEPT, "application/json");
        let answered = timeout(self.timeout, received(request)).await;
        answered.unwrap_or(Err(UnreachableReason::Timeout.into()))
    }
}

async fn received(request: RequestBuilder) -> Result<ProviderResponse, ProviderFault> {
    let unreachable = |error: reqwest::Error| ProviderFault::from(fault::of(&error));
    let mut response = request.send().await.map_err(unreachable)?;
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(unreachable)? {
        if body.len() + part.len() > RESPONSE_BYTES_MAX {
            return Err(ProviderFault::TooLong);
        }
        body.extend_from_slice(&part);
    }
    let status = response.status().as_u16();
    Ok(ProviderResponse { status, body })
}
