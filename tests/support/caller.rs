//! What does a customer's program say to the API?

use std::net::SocketAddr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::http::{Request, Response};
use super::poll::until;
use super::service::Service;

const API: &str = "/management-api/v1";

/// A customer's program with an access token.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    http: SocketAddr,
    token: String,
}

impl Caller {
    /// Makes a customer, an API client of it, and takes a token.
    pub(crate) fn of_new_customer(service: &Service, name: &str) -> Self {
        let operator = Self {
            http: service.http,
            token: service.operator_token(),
        };
        let customers = "/operator-api/v1/customers";
        let customer = operator
            .post(customers, &json!({ "name": name }))
            .expect(201);
        let clients = format!("{customers}/{}/clients", text(&customer["id"]));
        let client = operator
            .post(&clients, &json!({ "name": "a test" }))
            .expect(201);
        let credentials = format!(
            "{}:{}",
            text(&client["clientId"]),
            text(&client["clientSecret"])
        );
        let answer = Request::new("POST", "/management-api/oauth/token")
            .header(
                "authorization",
                &format!("Basic {}", BASE64_STANDARD.encode(credentials)),
            )
            .json(&json!({ "grant_type": "client_credentials" }))
            .send(service.http)
            .expect(200);
        Self {
            http: service.http,
            token: text(&answer["access_token"]),
        }
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

    /// The latest messages of the administration log.
    pub(crate) fn log_messages(&self) -> Vec<String> {
        let page = self.request("GET", &format!("{API}/administrationLogs?pageSize=25"));
        let page = page.expect(200);
        let items = page["items"].as_array().expect("a page has items");
        items.iter().map(|entry| text(&entry["message"])).collect()
    }

    /// Sends a request without a body.
    pub(crate) fn request(&self, method: &str, path: &str) -> Response {
        self.authorized(method, path).send(self.http)
    }

    /// Posts a JSON body.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Response {
        self.authorized("POST", path).json(body).send(self.http)
    }

    fn authorized(&self, method: &str, path: &str) -> Request {
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
