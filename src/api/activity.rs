//! Which handler shows how busy a customer was?

pub(super) mod described;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::query::activity::ActivityMinute;

use super::Api;
use super::access::AuthenticatedCaller;

/// The minutes of the last hour.
#[derive(Serialize)]
pub(super) struct ActivityBody {
    minutes: Vec<MinuteBody>,
}

#[derive(Serialize)]
struct MinuteBody {
    start: String,
    events: u64,
    requests: u64,
}

/// GET: shows what was stored of the customer in each minute.
pub(super) async fn show(caller: AuthenticatedCaller, api: web::Data<Api>) -> HttpResponse {
    let here = api.store.activity_of(&caller.customer);
    let minutes = api.devices.activity(&caller.customer, here).await;
    HttpResponse::Ok().json(ActivityBody::of(&minutes))
}

impl ActivityBody {
    /// These minutes.
    pub(super) fn of(minutes: &[ActivityMinute]) -> Self {
        let minutes = minutes.iter().map(|minute| MinuteBody {
            start: minute.begun_at.iso().to_string(),
            events: minute.events,
            requests: minute.requests,
        });
        Self {
            minutes: minutes.collect(),
        }
    }
}
