//! What is answered while the service waits for the lease of its shards, or for the server of its
//! store? It is alive, has metrics, and the operator can list and drain nodes. Everything else is
//! answered by the active node, if this one can relay calls to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix_web::http::ConnectionType;
use actix_web::{HttpRequest, HttpResponse, web};

use actors::arbiters::OtherNodes;
use actors::clock::Clock;
use actors::lease;
use actors::relay::calls::CallRelay;
use actors::relay::links::LinkState;
use actors::web::Connection;
use engine::ids::{NodeId, TraceId};
use store::Nodes;
use tokio::sync::watch;

use crate::operator::OperatorToken;

use super::ServedRoutes;
use super::access::authorise_operator;
use super::error::ApiError;
use super::health::{HealthBody, UNREACHABLE};
use super::metrics;
use super::nodes;
use super::segment::PathSegment;

/// The answer of a node that stands by.
const STANDBY: &str = "this node stands by: another node serves";

/// What the handlers have before there is a store.
#[derive(Clone)]
pub struct WaitingState {
    /// The randomness for ids.
    pub clock: Clock,
    /// Whether the database answers: then the node waits for its lease alone.
    pub is_standby: Arc<AtomicBool>,
    /// The nodes on the database, at an address that serves the operator once the node has joined.
    pub nodes: Option<Arc<dyn Nodes>>,
    /// Authorises calls of the operator API.
    pub operator: OperatorToken,
    /// How the active node answers, if this one stands by and relays to it.
    pub relay: Option<WaitingRelay>,
    /// What is served at this address.
    pub served: ServedRoutes,
}

/// What reaches the active node through a node that stands by.
#[derive(Clone)]
pub struct WaitingRelay {
    /// Calls.
    pub calls: CallRelay,
    /// Whether there are links to it.
    pub links: LinkState,
    /// The other nodes: while the active one is being replaced, calls wait for the next one.
    pub others: watch::Receiver<OtherNodes>,
    /// Whether this node is about to stop.
    pub is_leaving: Arc<AtomicBool>,
}

impl WaitingRelay {
    /// Whether what arrives reaches the active node, or the next one soon.
    fn is_ready(&self) -> bool {
        let is_answered = self.links.is_complete() || self.others.borrow().is_active_replaced;
        is_answered && !self.is_leaving()
    }

    fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }
}

impl WaitingState {
    /// Mounts the routes.
    pub fn mount(self, app: &mut web::ServiceConfig) {
        let alive = || async { HttpResponse::Ok().json(HealthBody::OK) };
        app.route("/livez", web::get().to(alive));
        app.route("/metrics", web::get().to(metrics::show));
        app.route("/readyz", web::get().to(readyz));
        if let Some(nodes) = &self.nodes {
            app.app_data(web::Data::from(Arc::clone(nodes)));
            app.route("/operator-api/v1/nodes", web::get().to(list));
            app.route("/operator-api/v1/nodes/{node}/drain", web::post().to(drain));
        }
        app.app_data(web::Data::new(self));
        app.default_service(web::to(relay));
    }

    /// Answers the operator.
    async fn answer(
        &self,
        request: &HttpRequest,
        answer: impl Future<Output = Result<HttpResponse, ApiError>>,
    ) -> HttpResponse {
        let answered = match authorise_operator(&self.operator, request.headers()) {
            Ok(()) => answer.await,
            Err(failure) => Err(failure),
        };
        answered.unwrap_or_else(|failure| failure.response(self.trace()))
    }

    /// Whether the database says where the others are: it answers, or did so within a lease.
    fn knows_others(&self) -> bool {
        self.is_standby.load(Ordering::Relaxed) || lease::is_held()
    }

    fn refuse(&self) -> HttpResponse {
        let why = match self.is_standby.load(Ordering::Relaxed) {
            true => STANDBY,
            false => UNREACHABLE,
        };
        ApiError::unhealthy(why).response(self.trace())
    }

    fn trace(&self) -> TraceId {
        TraceId::new(self.clock.moment().uuid())
    }
}

async fn list(
    state: web::Data<WaitingState>,
    request: HttpRequest,
    nodes: web::Data<dyn Nodes>,
) -> HttpResponse {
    state.answer(&request, nodes::list(nodes)).await
}

async fn drain(
    state: web::Data<WaitingState>,
    request: HttpRequest,
    node: Result<PathSegment<NodeId>, ApiError>,
    nodes: web::Data<dyn Nodes>,
) -> HttpResponse {
    let drained = async { nodes::drain(node?, nodes).await };
    state.answer(&request, drained).await
}

/// Answers 200 while the active node, or soon the next one, gets what devices and callers send to
/// this one.
async fn readyz(state: web::Data<WaitingState>) -> HttpResponse {
    match &state.relay {
        Some(relay) if relay.is_ready() && state.knows_others() => {
            HttpResponse::Ok().json(HealthBody::OK)
        }
        Some(_) | None => state.refuse(),
    }
}

/// Has the active node answer, if this one can relay to it.
async fn relay(
    state: web::Data<WaitingState>,
    request: HttpRequest,
    body: web::Payload,
) -> HttpResponse {
    let Some(relay) = &state.relay else {
        return state.refuse();
    };
    let Some(connection) = request.conn_data::<Connection>() else {
        return state.refuse();
    };
    connection.serve();
    let (body, served) = (body.into_inner(), state.served.word());
    let answered = relay.calls.relay(&request, body, served, connection.left());
    match answered.await {
        Ok(mut response) => {
            if relay.is_leaving() {
                let head = response.head_mut();
                head.set_connection_type(ConnectionType::Close);
            }
            response.map_body(|_, body| connection.answer(body))
        }
        Err(fault) => ApiError::unhealthy(&fault.to_string()).response(state.trace()),
    }
}
