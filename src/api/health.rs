//! `/livez` and `/readyz`: is the service alive, and does it accept calls?

pub(super) mod described;

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use actors::lease;
use engine::query::PageRequest;

use store::{Loss, Pressure};

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
    /// It accepts calls, and is about to accept none.
    Leaving,
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

    /// Whether callers are to turn to another node for their next calls.
    pub(super) fn is_leaving(&self) -> bool {
        self.is(ServicePhase::Leaving) || self.is_draining()
    }

    fn is(&self, phase: ServicePhase) -> bool {
        self.0.load(Ordering::Acquire) == phase as u8
    }
}

/// The answer when nothing but a start anew can help.
const FAILED: &str = "the store has failed; the service must be started again";

/// The answer while the server of the store is away.
pub(super) const UNREACHABLE: &str = "the PostgreSQL server cannot be reached; the service goes on \
                                      by itself once it can";

/// The answer of a node whose lease has ended, and that nobody has taken over from as far as it
/// knows.
const SILENT: &str = "the node could not renew its lease: it serves nothing until it can";

#[derive(Serialize)]
pub(super) struct HealthBody {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<LossBody>,
    /// The state of the link to an SMS centre, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    smpp: Option<&'static str>,
}

impl HealthBody {
    pub(super) const OK: Self = Self {
        status: "ok",
        lost: None,
        smpp: None,
    };
}

/// What the store lost before it was opened.
#[derive(Serialize)]
struct LossBody {
    groups: u64,
    from: String,
    until: String,
}

impl LossBody {
    fn of(loss: &Loss) -> Self {
        Self {
            groups: loss.groups,
            from: loss.from.iso().to_string(),
            until: loss.until.iso().to_string(),
        }
    }
}

/// Why nothing is served although the service runs, if that is so.
pub(super) fn silence() -> Option<ApiError> {
    (!lease::is_held()).then(|| ApiError::unhealthy(SILENT))
}

/// Answers 200 unless only a restart can help: the store has failed.
pub(super) async fn livez(api: web::Data<Api>) -> Result<HttpResponse, ApiError> {
    match api.commits.pressure() {
        Pressure::Open | Pressure::Full | Pressure::DiskFull | Pressure::Unreachable => {
            Ok(HttpResponse::Ok().json(HealthBody::OK))
        }
        Pressure::Failed => Err(ApiError::unhealthy(FAILED)),
    }
}

/// Answers 200 while the service accepts calls, and its store responds and has room.
pub(super) async fn readyz(api: web::Data<Api>) -> Result<HttpResponse, ApiError> {
    if !api.readiness.is(ServicePhase::Ready) {
        return Err(ApiError::not_ready());
    }
    match api.commits.pressure() {
        Pressure::Open | Pressure::Full => {}
        Pressure::DiskFull => {
            return Err(ApiError::unhealthy(
                "the disk is full, or the files of the store are gone: reading works, and writing \
                 again once there is room, or once they are back",
            ));
        }
        Pressure::Unreachable => return Err(ApiError::unhealthy(UNREACHABLE)),
        Pressure::Failed => return Err(ApiError::unhealthy(FAILED)),
    }
    let question = api.store.customers(PageRequest { number: 1, size: 1 });
    let answered = tokio::time::timeout(STORE_PATIENCE, question).await;
    answered.map_err(|_| ApiError::from(store::Unavailable))??;
    let lost = api.lost.as_ref().map(LossBody::of);
    // Without the link everything but SMS works, and those wait.
    let smpp = api.smpp.as_ref().map(|link| match link.is_bound() {
        true => "bound",
        false => "unbound",
    });
    Ok(HttpResponse::Ok().json(HealthBody {
        lost,
        smpp,
        ..HealthBody::OK
    }))
}
