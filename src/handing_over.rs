//! What does a node that has stopped leave to the one that takes over? The sessions of its devices
//! over DTLS, which are in files that only the next process can open.

use std::sync::Arc;
use std::time::Duration;

use actix_web::error::ErrorInternalServerError;
use actix_web::{Error, HttpResponse, web};

use actors::kept_sessions::KeptSessions;
use actors::relay::sessions::{CACHED_SESSIONS, SESSIONS};
use actors::web::Routes;
use tokio::sync::Notify;
use tokio::time::timeout;
use tracing::{info, warn};

/// How long it waits for the next node: that looks for the lease every half second, and opens its
/// store before it takes the last file.
const HAND_OVER_MAX: Duration = Duration::from_secs(3);

/// The sessions of a node that has stopped.
pub(crate) struct HandingOver {
    kept: KeptSessions,
    is_over: Arc<Notify>,
}

impl HandingOver {
    /// The sessions in these files.
    pub(crate) fn of(kept: KeptSessions) -> Self {
        let is_over = Arc::default();
        Self { kept, is_over }
    }

    /// What the next node asks for.
    pub(crate) fn routes(&self) -> Routes {
        let kept = web::Data::new(self.kept.clone());
        let is_over = web::Data::from(Arc::clone(&self.is_over));
        Arc::new(move |app| {
            app.app_data(kept.clone()).app_data(is_over.clone());
            app.route(
                &format!("{SESSIONS}/{{arbiter}}"),
                web::post().to(hand_over),
            );
            app.route(CACHED_SESSIONS, web::get().to(copy_cached));
            app.route(SESSIONS, web::delete().to(end));
        })
    }

    /// Returns once the next node has taken them, or if none has for a while.
    pub(crate) async fn taken(&self) {
        match timeout(HAND_OVER_MAX, self.is_over.notified()).await {
            Ok(()) => info!("the DTLS sessions are handed over"),
            Err(_) => warn!("no node has taken the DTLS sessions: devices resume theirs"),
        }
    }
}

/// POST: the sessions of an arbiter, which are gone from here.
async fn hand_over(
    arbiter: web::Path<u16>,
    kept: web::Data<KeptSessions>,
) -> Result<HttpResponse, Error> {
    let read = web::block(move || kept.hand_over(*arbiter)).await?;
    answer(read)
}

/// GET: with what sessions are resumed by their ids.
async fn copy_cached(kept: web::Data<KeptSessions>) -> Result<HttpResponse, Error> {
    let read = web::block(move || kept.copy_cached()).await?;
    answer(read)
}

/// DELETE: the next node takes no more of them.
async fn end(is_over: web::Data<Notify>) -> HttpResponse {
    is_over.notify_one();
    HttpResponse::NoContent().finish()
}

fn answer(read: std::io::Result<Vec<u8>>) -> Result<HttpResponse, Error> {
    let file = read.map_err(ErrorInternalServerError)?;
    Ok(HttpResponse::Ok().body(file))
}
