//! What does another node, which stands by, want of this one, which is active? Answers to the calls
//! that it relays.
//!
//! Whoever reaches these routes has the secret of the nodes. A relayed call is served as if its
//! caller had called this node: it has its address, and what is served at the address that it
//! called.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::guard::fn_guard;
use actix_web::http::header::HeaderMap;
use actix_web::middleware::{Next, from_fn};
use actix_web::{Error, HttpMessage as _, HttpRequest, HttpResponse, web};

use actors::relay::ACTIVE;
use actors::relay::calls::{RELAYED, RelayedCall};

use super::{ApiState, ServedRoutes, configure};

/// Mounts what is answered to calls that other nodes relay.
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
    app.route(ACTIVE, web::get().to(HttpResponse::Ok));
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
