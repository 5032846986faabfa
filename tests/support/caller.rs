//! How does a customer's program call the API?

use std::io;
use std::net::SocketAddr;

use serde_json::{Value, json};

use super::client::ApiClient;
use super::http::{Request, Response};
use super::poll::until;
use super::service::Service;

/// The path prefix of every call of a customer.
pub(crate) const API: &str = "/management-api/v1";

/// A customer's program with an access token.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    http: SocketAddr,
    token: String,
}

impl Caller {
    /// Creates a customer with an API client and gets a token.
    pub(crate) fn of_new_customer(service: &Service, name: &str) -> Self {
        ApiClient::of_new_customer(service, name).caller(service)
    }

    /// The operator.
    pub(crate) fn operator(service: &Service) -> Self {
        Self::with_token(service, &service.operator_token())
    }

    /// A caller with this token.
    pub(crate) fn with_token(service: &Service, token: &str) -> Self {
        Self {
            http: service.http,
            token: token.to_owned(),
        }
    }

    /// The token.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// The address it calls.
    pub(crate) fn address(&self) -> SocketAddr {
        self.http
    }

    /// The same caller after the service moved to another port.
    pub(crate) fn follow(&mut self, service: &Service) {
        self.http = service.http;
    }

    /// Creates a device that registers from an address.
    pub(crate) fn create_device(&self, id: &str, ip: &str) {
        let body = json!({ "deviceId": id, "ip": ip });
        self.post(&format!("{API}/devices"), &body).expect(201);
    }

    /// Creates an action request and returns the response unchecked.
    pub(crate) fn try_action(&self, device: &str, body: &Value) -> Response {
        self.post(
            &format!("{API}/integrate/devices/{device}/actions/LWM2M"),
            body,
        )
    }

    /// Creates an action request and returns its id.
    pub(crate) fn create_action(&self, device: &str, body: &Value) -> String {
        text(&self.try_action(device, body).expect(202)["id"])
    }

    /// An action request.
    pub(crate) fn action(&self, id: &str) -> Value {
        self.request(
            "GET",
            &format!("{API}/integrate/devices/actions/requests/{id}"),
        )
        .expect(200)
    }

    /// An action request once it is final.
    pub(crate) fn final_action(&self, id: &str) -> Value {
        until("a final status", || {
            let action = self.action(id);
            let is_open = matches!(
                text(&action["status"]).as_str(),
                "SCHEDULED" | "IN_PROGRESS"
            );
            (!is_open).then_some(action)
        })
    }

    /// Creates an action request, waits until it is final and returns the record.
    pub(crate) fn perform(&self, device: &str, body: &Value) -> Value {
        self.final_action(&self.create_action(device, body))
    }

    /// Cancels a request.
    pub(crate) fn cancel_action(&self, id: &str) -> Response {
        self.request(
            "DELETE",
            &format!("{API}/integrate/devices/actions/requests/{id}"),
        )
    }

    /// The latest entries of the administration log.
    pub(crate) fn log_entries(&self) -> Vec<Value> {
        let page = self.request("GET", &format!("{API}/administrationLogs?pageSize=25"));
        let page = page.expect(200);
        page["items"].as_array().expect("a page has items").clone()
    }

    /// The latest messages of the administration log.
    pub(crate) fn log_messages(&self) -> Vec<String> {
        let entries = self.log_entries().into_iter();
        entries.map(|entry| text(&entry["message"])).collect()
    }

    /// Sends a request without a body.
    pub(crate) fn request(&self, method: &str, path: &str) -> Response {
        self.authorized(method, path).send(self.http)
    }

    /// Posts a JSON body.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Response {
        self.authorized("POST", path).json(body).send(self.http)
    }

    /// Sends a request with a JSON body and returns network errors.
    pub(crate) fn try_send(&self, method: &str, path: &str, body: &Value) -> io::Result<Response> {
        self.authorized(method, path).json(body).try_send(self.http)
    }

    /// Begins a request with the caller's token.
    pub(crate) fn authorized(&self, method: &str, path: &str) -> Request {
        Request::new(method, path).header("authorization", &format!("Bearer {}", self.token))
    }
}

/// The text of a JSON string.
pub(crate) fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("not a string: {value}"))
        .to_owned()
}
