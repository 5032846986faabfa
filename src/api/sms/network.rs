//! Which handlers does the network call? They hand in messages of devices and reports, and hand
//! out messages to devices.

use actix_web::{HttpResponse, web};

use engine::change::UniqueName;
use engine::directory::sms::{FoundParts, receive as received, report as reported, take as taken};
use engine::limits::SMS_TAKEN_MAX;

use super::request_body::{new_received, new_report};
use super::{NetworkSmsBody, ReceivedBody, ReportedBody, TakenBody, named};
use crate::api::Api;
use crate::api::body::Json;
use crate::api::error::ApiError;
use crate::api::idempotency::{self, CreatedResponse, IdempotencyKeyHeader, ResponseKeeper};
use crate::api::records::settle;

/// SMS taken at once, by default.
const TAKEN_DEFAULT: u32 = 10;

/// POST: accepts a message of a device.
pub(in crate::api) async fn receive(
    idempotency_key: IdempotencyKeyHeader,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let identity = idempotency_key.read(&["sms of a device"], &mut fields);
    let (sender, new) = new_received(fields)?;
    let receiving = api.clone();
    let act = async move |keeper: ResponseKeeper| {
        let api = receiving;
        settle(&*api.commits, async || {
            let device = named(&api, UniqueName::Msisdn(sender.clone())).await?;
            let device = device.ok_or_else(|| ApiError::unknown("device"))?;
            let found = match new.parts_key(&device) {
                Some(parts) => api.store.sms_of_parts(parts).await?,
                None => FoundParts::default(),
            };
            let m = &mut api.clock.moment();
            keeper.keep(received(m, &device, new.clone(), found), |id| {
                CreatedResponse::of(None, &ReceivedBody::of(id))
            })
        })
        .await
    };
    let created = idempotency::create_once(&api, None, identity, act).await?;
    Ok(created.accepted())
}

/// POST: accepts a report about a message to a device.
pub(in crate::api) async fn report(
    Json(fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let (id, status) = new_report(fields)?;
    let unknown = || ApiError::unknown("sms");
    settle(&*api.commits, async || {
        let sms = api.store.sms(id).await?;
        let sms = sms.filter(|sms| sms.submitted().is_some());
        let sms = sms.ok_or_else(unknown)?;
        let device = api.store.profile(sms.device).await?;
        let device = device.ok_or_else(unknown)?;
        Ok(reported(&mut api.clock.moment(), &device, sms, status))
    })
    .await?;
    let sms = api.store.sms(id).await?.ok_or_else(unknown)?;
    let submitted = sms.submitted().ok_or_else(unknown)?;
    Ok(HttpResponse::Accepted().json(ReportedBody::of(id, submitted.status)))
}

/// POST: takes messages to devices, each once.
pub(in crate::api) async fn take(
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let max = fields.number("max", 1..=SMS_TAKEN_MAX);
    fields.finish(Some(()))?;
    // One at a time, so that calls do not take the same messages and conflict.
    let _turn = api.taking_sms.lock().await;
    let taken = settle(&*api.commits, async || {
        let waiting = api.store.sms_for_network(max.unwrap_or(TAKEN_DEFAULT));
        Ok(taken(api.clock.now(), waiting.await?))
    })
    .await?;
    Ok(HttpResponse::Ok().json(TakenBody::of(&taken, NetworkSmsBody::of)))
}
