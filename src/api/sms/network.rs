//! Which handlers does the network call? They hand in messages of devices and reports, and hand
//! out messages to devices.

use actix_web::{HttpResponse, web};

use engine::limits::SMS_TAKEN_MAX;

use super::request_body::{new_received, new_report};
use super::{NetworkSmsBody, ReceivedBody, ReportedBody, TakenBody};
use crate::api::Api;
use crate::api::body::Json;
use crate::api::error::ApiError;
use crate::api::idempotency::{self, CreatedResponse, IdempotencyKeyHeader, ResponseKeeper};

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
    let network = api.sms_network.clone();
    let act = async move |keeper: ResponseKeeper| {
        let keep = |received| {
            keeper.keep(received, |id| {
                CreatedResponse::of(None, &ReceivedBody::of(id))
            })
        };
        network.receive(&sender, &new, keep).await
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
    let status = api.sms_network.report(id, status).await?;
    Ok(HttpResponse::Accepted().json(ReportedBody::of(id, status)))
}

/// POST: takes messages to devices, each once.
pub(in crate::api) async fn take(
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let max = fields.number("max", 1..=SMS_TAKEN_MAX);
    fields.finish(Some(()))?;
    let taken = api.sms_network.take(max.unwrap_or(TAKEN_DEFAULT)).await?;
    Ok(HttpResponse::Ok().json(TakenBody::of(&taken, NetworkSmsBody::of)))
}
