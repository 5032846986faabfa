//! What do other nodes want of this one? To carry out commands for its devices and destinations, to
//! receive what they send to its arbiters, to say which events it stores, and to hand over the
//! sessions of devices that it has no longer.
//!
//! Whoever reaches these routes has the secret of the nodes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix_web::guard::{GuardContext, fn_guard};
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use actors::arbiters::ArbiterInlet;
use actors::delivery::Deliveries;
use actors::devices::Devices;
use actors::kept_sessions::KeptSessions;
use actors::relay::DATAGRAMS;
use actors::relay::calls::RELAYED;
use actors::relay::deliveries::{
    CUSTOMERS, DESTINATIONS, DestinationCall, read_numbers, write_outcome,
};
use actors::relay::devices::{
    ACTIVITY, ASSOCIATIONS, DEVICES, DeviceNotice, NOTICES, STRANGERS, write_minutes,
};
use actors::relay::news::{self, NEWS};
use actors::relay::receiving::{self, RelayId};
use actors::relay::sessions::{CACHED_SESSIONS, SESSIONS};
use actors::web::{Connection, Routes};
use engine::delivery::destination::DestinationAmendment;
use engine::ids::{CustomerId, DestinationId, DeviceKey, NodeId};
use engine::supervision::Unserved;
use store::{
    Store, Unavailable, association_to_bytes, destination_of_bytes, device_command_of_bytes,
    device_reply_to_bytes, strangers_to_bytes,
};
use tracing::warn;

/// What other nodes may call.
#[derive(Clone)]
pub(crate) struct NodeRoutes {
    /// The destinations of this node.
    pub(crate) deliveries: Deliveries,
    /// Its devices.
    pub(crate) devices: Devices,
    /// Its arbiters.
    pub(crate) inlet: ArbiterInlet,
    /// The sessions of devices that it has no longer.
    pub(crate) kept_sessions: KeptSessions,
    /// Its store.
    pub(crate) store: Arc<dyn Store>,
    /// The longest body of a call, which is that of a command with data for a device.
    pub(crate) body_bytes_max: usize,
    /// Whether streams may begin: not any more once the node stops, because they do not end.
    pub(crate) takes_streams: Arc<AtomicBool>,
}

impl NodeRoutes {
    /// The routes alone.
    pub(crate) fn routes(self) -> Routes {
        Arc::new(move |app| {
            self.mount(app);
            app.default_service(web::to(unknown));
        })
    }

    /// Mounts the routes, for calls of nodes themselves: a call that one relays has a header,
    /// whatever its path.
    pub(crate) fn mount(&self, app: &mut web::ServiceConfig) {
        let routes = web::scope("/v1")
            .guard(fn_guard(is_by_node))
            .app_data(web::Data::new(self.clone()))
            .app_data(web::PayloadConfig::new(self.body_bytes_max))
            .route(
                &path(DESTINATIONS, "/{id}/{call}"),
                web::post().to(carry_out),
            )
            .route(&path(CUSTOMERS, "/{id}/forget"), web::post().to(forget))
            .route(&path(DEVICES, "/{key}"), web::post().to(command))
            .route(&path(NOTICES, ""), web::post().to(notify))
            .route(
                &path(ASSOCIATIONS, "/{key}"),
                web::get().to(show_association),
            )
            .route(&path(STRANGERS, ""), web::get().to(list_strangers))
            .route(&path(ACTIVITY, "/{customer}"), web::get().to(show_activity))
            .route(
                &path(DATAGRAMS, "/{node}/{stream}"),
                web::post().to(receive),
            )
            .route(&path(NEWS, ""), web::get().to(tell))
            .configure(|app| SessionRoutes(self.kept_sessions.clone()).mount(app));
        app.service(routes);
    }
}

/// What is handed over to other nodes, also by one that serves nothing any more.
#[derive(Clone)]
pub(crate) struct SessionRoutes(pub(crate) KeptSessions);

impl SessionRoutes {
    /// The routes alone.
    pub(crate) fn routes(self) -> Routes {
        Arc::new(move |app| {
            let routes = web::scope("/v1")
                .guard(fn_guard(is_by_node))
                .configure(|app| self.mount(app));
            app.service(routes).default_service(web::to(unknown));
        })
    }

    /// Mounts the routes within their scope.
    fn mount(&self, app: &mut web::ServiceConfig) {
        app.app_data(web::Data::new(self.clone()));
        app.route(&path(SESSIONS, "/{arbiter}"), web::post().to(hand_over));
        app.route(&path(CACHED_SESSIONS, ""), web::get().to(copy_cached));
    }
}

/// A path within the scope of the routes.
fn path(of: &str, rest: &str) -> String {
    format!("{}{rest}", of.trim_start_matches("/v1"))
}

fn is_by_node(context: &GuardContext<'_>) -> bool {
    !context.head().headers().contains_key(RELAYED)
}

/// Any other call. One that is relayed is for the active node, which this one was, or was taken for
/// (RFC 9110 section 15.5.20).
async fn unknown(request: HttpRequest) -> HttpResponse {
    match request.headers().contains_key(RELAYED) {
        true => HttpResponse::new(StatusCode::MISDIRECTED_REQUEST),
        false => HttpResponse::NotFound().finish(),
    }
}

/// POST: gives a command to a device.
async fn command(
    key: web::Path<String>,
    body: web::Bytes,
    state: web::Data<NodeRoutes>,
) -> HttpResponse {
    let (Some(key), Some(command)) = (DeviceKey::parse(&key), device_command_of_bytes(&body))
    else {
        return HttpResponse::BadRequest().finish();
    };
    match state.devices.carry_out(key, command).await {
        Some(reply) => HttpResponse::Ok().body(device_reply_to_bytes(&reply)),
        None => HttpResponse::NotFound().finish(),
    }
}

/// POST: tells something of devices.
async fn notify(body: String, state: web::Data<NodeRoutes>) -> HttpResponse {
    let Ok(notice) = body.parse::<DeviceNotice>() else {
        return HttpResponse::BadRequest().finish();
    };
    match state.devices.tell_here(notice).await {
        Ok(()) => HttpResponse::NoContent().finish(),
        Err(unserved) => refused(unserved),
    }
}

/// GET: the DTLS session of a device.
async fn show_association(key: web::Path<String>, state: web::Data<NodeRoutes>) -> HttpResponse {
    let Some(key) = DeviceKey::parse(&key) else {
        return HttpResponse::BadRequest().finish();
    };
    let found = state.devices.association_here(key).await;
    HttpResponse::Ok().body(association_to_bytes(found.as_ref()))
}

/// GET: the senders that are no known device.
async fn list_strangers(state: web::Data<NodeRoutes>) -> HttpResponse {
    let strangers = state.devices.strangers_here().await;
    HttpResponse::Ok().body(strangers_to_bytes(&strangers))
}

/// GET: how busy a customer was.
async fn show_activity(id: web::Path<String>, state: web::Data<NodeRoutes>) -> HttpResponse {
    let Ok(customer) = CustomerId::parse(&id) else {
        return HttpResponse::BadRequest().finish();
    };
    HttpResponse::Ok().body(write_minutes(&state.store.activity_of(&customer)))
}

/// POST: receives what is for the arbiters, for as long as the node sends.
async fn receive(
    request: HttpRequest,
    path: web::Path<(String, u16)>,
    body: web::Payload,
    state: web::Data<NodeRoutes>,
) -> HttpResponse {
    if !state.takes_streams.load(Ordering::SeqCst) {
        return HttpResponse::ServiceUnavailable().finish();
    }
    let (node, stream) = path.into_inner();
    let Ok(node) = NodeId::parse(&node) else {
        return HttpResponse::BadRequest().finish();
    };
    // It is never complete, so its connection never waits for a request.
    if let Some(connection) = request.conn_data::<Connection>() {
        connection.serve_node();
    }
    receiving::receive(RelayId { node, stream }, body, &state.inlet)
}

/// GET: tells which events are new, for as long as the node reads.
async fn tell(request: HttpRequest, state: web::Data<NodeRoutes>) -> HttpResponse {
    if !state.takes_streams.load(Ordering::SeqCst) {
        return HttpResponse::ServiceUnavailable().finish();
    }
    if let Some(connection) = request.conn_data::<Connection>() {
        connection.serve_node();
    }
    news::stream(&*state.store)
}

/// POST: the sessions of an arbiter, which are gone from here.
async fn hand_over(arbiter: web::Path<u16>, state: web::Data<SessionRoutes>) -> HttpResponse {
    let kept = state.0.clone();
    file(move || kept.take_file(*arbiter)).await
}

/// GET: with what sessions are resumed by their ids.
async fn copy_cached(state: web::Data<SessionRoutes>) -> HttpResponse {
    let kept = state.0.clone();
    file(move || kept.copy_cached()).await
}

async fn file(read: impl FnOnce() -> io::Result<Vec<u8>> + Send + 'static) -> HttpResponse {
    match web::block(read).await {
        Ok(Ok(file)) => HttpResponse::Ok().body(file),
        Ok(Err(error)) => {
            warn!(%error, "DTLS sessions cannot be handed over");
            HttpResponse::InternalServerError().finish()
        }
        Err(_) => HttpResponse::InternalServerError().finish(),
    }
}

/// POST: carries out a command for a destination.
async fn carry_out(
    path: web::Path<(String, String)>,
    body: web::Bytes,
    state: web::Data<NodeRoutes>,
) -> HttpResponse {
    let (id, call) = path.into_inner();
    let (Ok(id), Some(call)) = (DestinationId::parse(&id), DestinationCall::parse(&call)) else {
        return HttpResponse::NotFound().finish();
    };
    let carried_out = carry_out_call((id, call), &body, &state).await;
    carried_out.unwrap_or_else(refused)
}

async fn carry_out_call(
    (id, call): (DestinationId, DestinationCall),
    body: &[u8],
    state: &NodeRoutes,
) -> Result<HttpResponse, Unserved> {
    let deliveries = &state.deliveries;
    match call {
        DestinationCall::Begin => {
            let created = state.store.destination(id).await;
            let created = created.map_err(|Unavailable| Unserved::Failed)?;
            let created = created.ok_or(Unserved::Unknown)?;
            if !deliveries.begin(created).await? {
                return Err(Unserved::Unknown);
            }
        }
        DestinationCall::Amend => {
            let amended = destination_of_bytes(body).ok_or(Unserved::Failed)?;
            let amendment = DestinationAmendment {
                name: Some(amended.name),
                target: Some(amended.target),
                event_types: Some(amended.event_types),
            };
            deliveries.amend(id, amendment).await?;
        }
        DestinationCall::Restart => drop(deliveries.restart(id).await?),
        DestinationCall::Replay => deliveries.replay(id).await?,
        DestinationCall::Discard => {
            let letters = str::from_utf8(body).ok().and_then(read_numbers);
            let letters = letters.ok_or(Unserved::Failed)?;
            if deliveries.discard(id, letters).await?.is_err() {
                return Ok(HttpResponse::Conflict().finish());
            }
        }
        DestinationCall::Test => {
            let tested = deliveries.test(id).await?;
            return Ok(HttpResponse::Ok().body(write_outcome(&tested)));
        }
        DestinationCall::Remove => deliveries.remove(id).await?,
    }
    Ok(HttpResponse::NoContent().finish())
}

/// POST: forgets the destinations of a customer that is being removed.
async fn forget(id: web::Path<String>, state: web::Data<NodeRoutes>) -> HttpResponse {
    let Ok(customer) = CustomerId::parse(&id) else {
        return HttpResponse::NotFound().finish();
    };
    match state.deliveries.forget(customer).await {
        Ok(()) => HttpResponse::NoContent().finish(),
        Err(unserved) => refused(unserved),
    }
}

fn refused(unserved: Unserved) -> HttpResponse {
    match unserved {
        Unserved::Unknown => HttpResponse::NotFound().finish(),
        Unserved::Busy => HttpResponse::ServiceUnavailable().finish(),
        Unserved::Failed => HttpResponse::InternalServerError().finish(),
    }
}
