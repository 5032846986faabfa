//! How does a customer's program get a token?

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::caller::{Caller, text};
use super::http::{Request, Response};
use super::service::Service;

pub(crate) const CUSTOMERS: &str = "/operator-api/v1/customers";

/// The API clients of the network.
pub(crate) const NETWORK_CLIENTS: &str = "/operator-api/v1/network/clients";

/// An API client: the credentials a program needs to get tokens.
#[derive(Clone, Debug)]
pub(crate) struct ApiClient {
    /// The customer it belongs to; empty if it is one of the network.
    pub(crate) customer: String,
    /// Its `clientId`.
    pub(crate) id: String,
    /// Its `clientSecret`.
    pub(crate) secret: String,
}

impl ApiClient {
    /// Creates a customer and an API client with all scopes.
    pub(crate) fn of_new_customer(service: &Service, name: &str) -> Self {
        let operator = Caller::operator(service);
        let customer = operator.post(CUSTOMERS, &json!({ "name": name }));
        let customer = text(&customer.expect(201)["id"]);
        Self::make(service, &customer, &json!({ "name": "a test" }))
    }

    /// Creates an API client of a customer.
    pub(crate) fn make(service: &Service, customer: &str, body: &Value) -> Self {
        Self::made_at(service, &format!("{CUSTOMERS}/{customer}/clients"), body).of(customer)
    }

    /// Creates an API client of the network.
    pub(crate) fn of_network(service: &Service) -> Self {
        Self::made_at(service, NETWORK_CLIENTS, &json!({ "name": "a gateway" }))
    }

    fn of(self, customer: &str) -> Self {
        let customer = customer.to_owned();
        Self { customer, ..self }
    }

    fn made_at(service: &Service, path: &str, body: &Value) -> Self {
        let client = Caller::operator(service).post(path, body).expect(201);
        Self {
            customer: String::new(),
            id: text(&client["clientId"]),
            secret: text(&client["clientSecret"]),
        }
    }

    /// The client's path in the operator API.
    pub(crate) fn path(&self) -> String {
        match self.customer.as_str() {
            "" => format!("{NETWORK_CLIENTS}/{}", self.id),
            customer => format!("{CUSTOMERS}/{customer}/clients/{}", self.id),
        }
    }

    /// The value of an Authorization header that names the client.
    pub(crate) fn basic(&self) -> String {
        let credentials = format!("{}:{}", self.id, self.secret);
        format!("Basic {}", BASE64_STANDARD.encode(credentials))
    }

    /// Requests a token and returns the response unchecked.
    pub(crate) fn ask_token(&self, service: &Service) -> Response {
        Request::new("POST", "/management-api/oauth/token")
            .header("authorization", &self.basic())
            .json(&json!({ "grant_type": "client_credentials" }))
            .send(service.http)
    }

    /// Gets a token.
    pub(crate) fn caller(&self, service: &Service) -> Caller {
        let answer = self.ask_token(service).expect(200);
        Caller::with_token(service, &text(&answer["access_token"]))
    }
}
