//! Who serves the API? This actor starts it, drains it and stops it; it knows none of its routes.

mod connections;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Context, Handler, Message, ResponseFuture};
use actix_web::dev::ServerHandle;
use actix_web::http::header::STRICT_TRANSPORT_SECURITY;
use actix_web::middleware::{Condition, DefaultHeaders};
use actix_web::web::ServiceConfig;
use actix_web::{App, HttpServer};
use rustls::ServerConfig;
use tracing::error;

use connections::Connections;
pub use connections::{Connection, ConnectionLimits, ConnectionUse};

/// How long requests in progress may take once the service stops; with the rest of the stop it
/// stays below the ten seconds that operators are promised.
pub const DRAIN_MAX: Duration = Duration::from_secs(5);

/// Browsers call the API by https alone for a year from now (RFC 6797).
const SECURE_ONLY: &str = "max-age=31536000";

/// Adds the routes to an application; called once per worker.
pub type Routes = Arc<dyn Fn(&mut ServiceConfig) + Send + Sync>;

/// What the API listens on.
pub struct Listening {
    /// The open socket.
    pub listener: TcpListener,
    /// The certificate and key, where the API speaks TLS itself.
    pub tls: Option<ServerConfig>,
    /// How many threads serve it.
    pub workers: usize,
    /// What connections may do.
    pub limits: ConnectionLimits,
    /// How long a stop waits for the calls in progress.
    pub drain_max: Duration,
}

/// Opens the socket that callers connect to.
pub fn open(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address)
}

/// The server of the API.
pub struct Web {
    handle: ServerHandle,
}

impl Web {
    /// Starts to serve; to be called in a running system.
    pub fn start_serving(listening: Listening, routes: Routes) -> io::Result<actix::Addr<Self>> {
        let connections = Connections::new(listening.limits);
        let is_secure = listening.tls.is_some();
        let server = HttpServer::new(move || {
            let routes = Arc::clone(&routes);
            let secure_only = DefaultHeaders::new().add((STRICT_TRANSPORT_SECURITY, SECURE_ONLY));
            App::new()
                .wrap(Condition::new(is_secure, secure_only))
                .configure(move |app| routes(app))
        })
        .on_connect(move |stream, data| {
            if let Some(connection) = connections.admit(stream) {
                data.insert(connection);
            }
        })
        .workers(listening.workers)
        .shutdown_timeout(listening.drain_max.as_secs())
        .disable_signals();
        let server = match listening.tls {
            Some(tls) => server.listen_rustls_0_23(listening.listener, tls)?,
            None => server.listen(listening.listener)?,
        }
        .run();
        let handle = server.handle();
        actix_web::rt::spawn(async move {
            if let Err(error) = server.await {
                error!(%error, "the API server failed");
            }
        });
        Ok(Self { handle }.start())
    }
}

impl Actor for Web {
    type Context = Context<Self>;
}

/// Accepts no new connection and returns when those in progress are served.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Drain;

impl Handler<Drain> for Web {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: Drain, _: &mut Context<Self>) -> ResponseFuture<()> {
        Box::pin(self.handle.stop(true))
    }
}
