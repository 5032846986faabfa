//! How many posts does the HTTP client make that has nothing else to do? The yardstick of
//! deliveries.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actors::http::{HttpClient, HttpMethod, HttpOptions, HttpOutcome, HttpRequest};
use engine::delivery::address::policy::AddressPolicy;
use tokio::task::JoinSet;

use crate::endpoint::Endpoint;

/// Posts in flight: the default of the service.
pub(crate) const PARALLEL: usize = 64;

/// The result of the client.
pub(crate) struct Bare {
    /// Posts that were answered 200, per second.
    pub(crate) rate: f64,
    /// Connections that it opened.
    pub(crate) connections: f64,
}

/// Posts the last body that the endpoint received, again and again for this long.
pub(crate) async fn post(endpoint: &Endpoint, time: Duration) -> Bare {
    let (before, connections) = (endpoint.posts(), endpoint.connections());
    let http = HttpClient::new(HttpOptions::under(AddressPolicy::PrivateAllowed))
        .expect("HTTP can be set up");
    let letter = Arc::new(letter(endpoint));
    let begun_at = Instant::now();
    let mut all = JoinSet::new();
    for _ in 0..PARALLEL {
        let (http, letter) = (http.clone(), Arc::clone(&letter));
        all.spawn(async move {
            while begun_at.elapsed() < time {
                let posted = http.send(HttpRequest::clone(&letter)).await;
                assert_eq!(posted, HttpOutcome::Accepted(200));
            }
        });
    }
    all.join_all().await;
    let posts = (endpoint.posts() - before) as f64;
    let opened = endpoint.connections() - connections;
    Bare {
        rate: posts / begun_at.elapsed().as_secs_f64(),
        connections: opened as f64,
    }
}

/// The last post of the service, as a request of the bare client.
fn letter(endpoint: &Endpoint) -> HttpRequest {
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let headers = [
        ("content-type", "application/json"),
        ("webhook-id", "019aa0d8-1f4e-7b7e-8000-000000000000"),
        ("webhook-timestamp", "1795219200"),
    ];
    HttpRequest {
        method: HttpMethod::Post,
        url: format!("http://{}/hook", endpoint.address),
        headers: headers.map(owned).to_vec(),
        body: endpoint.last_body(),
    }
}
