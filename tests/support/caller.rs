//! What does a customer's program say to the API?

use std::io;
use std::net::SocketAddr;

use serde_json::{Value, json};

use super::client::ApiClient;
use super::http::{Request, Response};
use super::poll::until;
use super::service::Service;

/// Where every call of a customer begins.
pub(crate) const API: &str = "/management-api/v1";

/// A customer's program with an access token.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    http: SocketAddr,
    token: String,
}

impl Caller {
    /// Makes a customer, an API client of it, and takes a token.
    pub(crate) fn of_new_customer(service: &Service, name: &str) -> Self {
        ApiClient::of_new_customer(service, name).caller(service)
    }

    /// Whoever runs the service.
    pub(crate) fn operator(service: &Service) -> Self {
        Self::with_token(service, &service.operator_token())
    }

    /// Whoever has this token.
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

    /// Where it calls.
    pub(crate) fn address(&self) -> SocketAddr {
        self.http
    }

    /// The same caller after the service moved to another port.
    pub(crate) fn follow(&mut self, service: &Service) {
        self.http = service.http;
    }

    /// Makes a device that registers from an address.
    pub(crate) fn create_device(&self, id: &str, ip: &str) {
        let body = json!({ "deviceId": id, "ip": ip });
        self.post(&format!("{API}/devices"), &body).expect(201);
    }

    /// Asks for an action; the answer is for the caller to judge.
    pub(crate) fn try_action(&self, device: &str, body: &Value) -> Response {
        self.post(
            &format!("{API}/integrate/devices/{device}/actions/LWM2M"),
            body,
        )
    }

    /// Asks for an action and gives the request's id.
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

    /// Asks for an action, waits for its end and gives the record.
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

    /// Sends a request with a JSON body; an error of the network is for the caller to judge.
    pub(crate) fn try_send(&self, method: &str, path: &str, body: &Value) -> io::Result<Response> {
        self.authorized(method, path).json(body).try_send(self.http)
    }

    /// Begins a request with the caller's token.
    pub(crate) fn authorized(&self, method: &str, path: &str) -> Request {
        Request::new(method, path).header("authorization", &format!("Bearer {}", self.token))
    }
}

/// A JSON string's text.
pub(crate) fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("not a string: {value}"))
        .to_owned()
}
