//! What does another node, which stands by, want of this one? Answers to the calls that it relays,
//! and to have the datagrams received that it relays.
//!
//! Whoever reaches these routes has the secret of the nodes. A relayed call is served as if its
//! caller had called this node: it has its address, and what is served at the address that it
//! called.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::guard::{GuardContext, fn_guard};
use actix_web::http::header::HeaderMap;
use actix_web::middleware::{Next, from_fn};
use actix_web::{Error, HttpMessage as _, HttpRequest, HttpResponse, web};

use actors::relay::calls::{RELAYED, RelayedCall};
use actors::relay::news;
use actors::relay::receiving::{self, RelayId};
use actors::web::Connection;
use engine::ids::NodeId;

use super::error::ApiError;
use super::{Api, ApiState, ServedRoutes, configure};

/// Mounts what other nodes may call.
pub fn mount(app: &mut web::ServiceConfig, state: &ApiState) {
    for (served, word) in ServedRoutes::WORDS {
        let state = state.clone();
        let is_served =
            move |headers: &HeaderMap| call(headers).is_some_and(|it| it.served == word);
        app.service(
            web::scope("")
                .guard(fn_guard(move |context| is_served(context.head().headers())))
                .configure(move |app| configure(app, state, served))
                .wrap(from_fn(as_called)),
        );
    }
    app.app_data(state.0.clone());
    app.route(
        "/v1/datagrams/{node}/{stream}",
        web::post().guard(fn_guard(is_by_node)).to(receive),
    );
    app.route(news::NEWS, web::get().guard(fn_guard(is_by_node)).to(tell));
}

/// Whether a node itself calls: a call that it relays has the header, whatever its path.
fn is_by_node(context: &GuardContext<'_>) -> bool {
    !context.head().headers().contains_key(RELAYED)
}

fn call(headers: &HeaderMap) -> Option<RelayedCall> {
    headers.get(RELAYED)?.to_str().ok()?.parse().ok()
}

/// Serves a relayed call as its caller made it.
async fn as_called(
    mut request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    if let Some(call) = call(request.headers()) {
        request.headers_mut().remove(RELAYED);
        request.head_mut().peer_addr = Some(call.caller);
        request.extensions_mut().insert(call);
    }
    next.call(request).await
}

/// Whether a call came over TLS: to this node, or to the one that relayed it.
pub(super) fn is_secure(request: &HttpRequest) -> bool {
    let extensions = request.extensions();
    let relayed = extensions.get::<RelayedCall>();
    relayed.map_or_else(|| request.app_config().secure(), |call| call.is_secure)
}

/// POST: receives datagrams for as long as the node relays them.
async fn receive(
    request: HttpRequest,
    path: web::Path<(String, u16)>,
    body: web::Payload,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    if api.readiness.is_draining() {
        return Err(ApiError::not_ready());
    }
    let (node, stream) = path.into_inner();
    let node = NodeId::parse(&node).map_err(|_| ApiError::path_unknown())?;
    // It is never complete, so its connection never waits for a request.
    if let Some(connection) = request.conn_data::<Connection>() {
        connection.serve();
    }
    let relay = RelayId { node, stream };
    Ok(receiving::receive(relay, body, api.devices.clone()))
}

/// GET: tells which events are new for as long as the node delivers.
async fn tell(request: HttpRequest, api: web::Data<Api>) -> Result<HttpResponse, ApiError> {
    if api.readiness.is_draining() {
        return Err(ApiError::not_ready());
    }
    if let Some(connection) = request.conn_data::<Connection>() {
        connection.serve();
    }
    Ok(news::stream(&*api.store))
}
