//! `/livez` and `/readyz`: is the service alive, and does it accept calls?

pub(super) mod described;

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::query::PageRequest;

use super::Api;
use super::error::ApiError;

/// A store that takes longer to respond is not ready.
const STORE_PATIENCE: Duration = Duration::from_secs(2);

/// Whether the service accepts calls.
#[derive(Debug)]
pub(super) struct Readiness(AtomicU8);

/// The phase of the service.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(super) enum ServicePhase {
    /// It is starting.
    Starting,
    /// It accepts calls.
    Ready,
    /// It completes accepted calls and accepts no new ones.
    Draining,
}

impl Readiness {
    /// A service that is starting.
    pub(super) fn starting() -> Self {
        Self(AtomicU8::new(ServicePhase::Starting as u8))
    }

    /// Enters a phase.
    pub(super) fn enter(&self, phase: ServicePhase) {
        self.0.store(phase as u8, Ordering::Release);
    }

    /// Whether the service accepts no new calls.
    pub(super) fn is_draining(&self) -> bool {
        self.is(ServicePhase::Draining)
    }

    fn is(&self, phase: ServicePhase) -> bool {
        self.0.load(Ordering::Acquire) == phase as u8
    }
}

#[derive(Serialize)]
struct HealthBody {
    status: &'static str,
}

/// Answers 200 as long as the process serves HTTP.
pub(super) async fn livez() -> HttpResponse {
    HttpResponse::Ok().json(HealthBody { status: "ok" })
}

/// Answers 200 while the service accepts calls and its store responds.
pub(super) async fn readyz(api: web::Data<Api>) -> Result<HttpResponse, ApiError> {
    if !api.readiness.is(ServicePhase::Ready) {
        return Err(ApiError::not_ready());
    }
    let question = api.store.customers(PageRequest { number: 1, size: 1 });
    let answered = tokio::time::timeout(STORE_PATIENCE, question).await;
    answered.map_err(|_| ApiError::from(store::Unavailable))??;
    Ok(HttpResponse::Ok().json(HealthBody { status: "ok" }))
}
