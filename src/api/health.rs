//! `/livez` and `/readyz`: is the service alive, and does it take calls?

pub(super) mod described;

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::query::PageWanted;

use super::Api;
use super::error::Failure;

/// A store that takes longer to answer is not ready for anybody.
const STORE_PATIENCE: Duration = Duration::from_secs(2);

/// Whether the service takes calls.
#[derive(Debug)]
pub(super) struct Readiness(AtomicU8);

/// What the service is doing as a whole.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(super) enum Phase {
    /// It is not there yet.
    Starting,
    /// It takes calls.
    Ready,
    /// It finishes what it took and takes no more.
    Draining,
}

impl Readiness {
    /// A service that is starting.
    pub(super) fn starting() -> Self {
        Self(AtomicU8::new(Phase::Starting as u8))
    }

    /// Enters a phase.
    pub(super) fn enter(&self, phase: Phase) {
        self.0.store(phase as u8, Ordering::Release);
    }

    /// Whether the service takes no more.
    pub(super) fn is_draining(&self) -> bool {
        self.is(Phase::Draining)
    }

    fn is(&self, phase: Phase) -> bool {
        self.0.load(Ordering::Acquire) == phase as u8
    }
}

#[derive(Serialize)]
struct HealthBody {
    status: &'static str,
}

/// Answers as long as the process can answer at all.
pub(super) async fn livez() -> HttpResponse {
    HttpResponse::Ok().json(HealthBody { status: "ok" })
}

/// Answers while the service takes calls and its store answers.
pub(super) async fn readyz(api: web::Data<Api>) -> Result<HttpResponse, Failure> {
    if !api.readiness.is(Phase::Ready) {
        return Err(Failure::not_ready());
    }
    let question = api.store.customers(PageWanted { number: 1, size: 1 });
    let answered = tokio::time::timeout(STORE_PATIENCE, question).await;
    answered.map_err(|_| Failure::from(store::Unavailable))??;
    Ok(HttpResponse::Ok().json(HealthBody { status: "ok" }))
}
