//! Is the operator API served at an address of its own, and then only there?

use std::net::SocketAddr;

use serde_json::json;

use crate::vocabulary::http::Request;
use crate::vocabulary::service::Service;

const CUSTOMERS: &str = "/operator-api/v1/customers";

#[test]
fn the_operator_api_is_served_at_its_own_address_alone() {
    let mut service = Service::start_with(&[("SIGNALBOX_OPERATOR_HTTP", "127.0.0.1:0")]);
    let token = format!("Bearer {}", service.operator_token());
    let operator = operator_http(&mut service);
    let status = |method: &str, path: &str, at: SocketAddr| {
        let request = Request::new(method, path).header("authorization", &token);
        let request = match method {
            "POST" => request.json(&json!({ "id": "acme", "name": "Acme" })),
            _ => request,
        };
        request.send(at).status
    };
    for (method, path) in [("POST", CUSTOMERS), ("GET", CUSTOMERS)] {
        assert_eq!(status(method, path, service.http), 404, "{method}");
    }
    assert_eq!(status("POST", CUSTOMERS, operator), 201);
    assert_eq!(status("GET", CUSTOMERS, operator), 200);
    for path in ["/livez", "/readyz", "/metrics", "/openapi.json", "/docs"] {
        assert_eq!(status("GET", path, service.http), 200, "{path}");
        assert_eq!(status("GET", path, operator), 200, "{path}");
    }
    // The API clients of the network get their tokens there; this call names no grant type.
    assert_eq!(status("POST", "/oauth/token", operator), 400);
    let of_customers = "/management-api/v1/devices";
    assert_eq!(status("GET", of_customers, operator), 404);
}

#[test]
fn connections_of_customers_do_not_keep_the_operator_out() {
    let settings = [
        ("SIGNALBOX_OPERATOR_HTTP", "127.0.0.1:0"),
        ("SIGNALBOX_HTTP_CONNECTIONS_MAX", "16"),
        ("SIGNALBOX_HTTP_CONNECTIONS_PER_ADDRESS_MAX", "8"),
    ];
    let mut service = Service::start_with(&settings);
    let operator = operator_http(&mut service);
    let hold = |_| std::net::TcpStream::connect(service.http).unwrap();
    let held: Vec<_> = (0..64).map(hold).collect();
    let token = format!("Bearer {}", service.operator_token());
    let request = Request::new("GET", CUSTOMERS).header("authorization", &token);
    assert_eq!(request.send(operator).status, 200);
    drop(held);
}

fn operator_http(service: &mut Service) -> SocketAddr {
    let line = "listening operator-http=";
    let mut printed = service.printed().iter();
    let address = printed.find_map(|printed| printed.strip_prefix(line));
    address.expect("it is printed").parse().expect("an address")
}
