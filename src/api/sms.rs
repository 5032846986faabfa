//! Which handlers send, list, show and cancel the SMS of a SIM?

pub(super) mod described;
pub(super) mod forwarder;
pub(super) mod network;
mod request_body;
mod response_body;
pub(super) mod wake_up;

use actix_web::{HttpResponse, web};

use engine::change::UniqueName;
use engine::directory::sms::{cancel as cancelled, submit};
use engine::ids::{Iccid, SmsId};
use engine::profile::Profile;
use engine::query::PageRequest;
use engine::sms::Sms;

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::{Json, Query};
use super::error::ApiError;
use super::idempotency::{self, CreatedResponse, IdempotencyKeyHeader, ResponseKeeper};
use super::page::{PageBody, wanted};
use super::records::settle;
use super::segment::PathSegment;

pub(super) use response_body::{ForwarderBody, NetworkSmsBody, ReportedBody, SmsBody, TakenBody};
pub(super) use response_body::{ReceivedBody, SubmittedBody, WakeUpMessageBody};

/// Recent SMS in the device inspector.
const RECENT: PageRequest = PageRequest {
    number: 1,
    size: 20,
};

/// POST: accepts an SMS to a device.
pub(super) async fn create(
    caller: AuthenticatedCaller,
    PathSegment(iccid): PathSegment<Iccid>,
    named: IdempotencyKeyHeader,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let identity = named.read(&["sms", iccid.as_str()], &mut fields);
    let new = request_body::new_sms(fields, api.clock.now())?;
    let (sending, of) = (api.clone(), caller.clone());
    let act = async move |keeper: ResponseKeeper| {
        let (api, caller) = (sending, of);
        settle(&*api.commits, async || {
            let device = device_with(&api, &caller, &iccid).await?;
            let rules = api.sms_rules;
            let open = api.store.open_sms(device.number, rules.open_max).await?;
            let m = &mut api.clock.moment();
            keeper.keep(submit(m, &device, new.clone(), open, rules)?, |sms| {
                let location = format!("/management-api/v1/sims/{iccid}/sms/{}", sms.id);
                CreatedResponse::of(Some(location), &SubmittedBody::of(&sms))
            })
        })
        .await
    };
    idempotency::create(&api, Some(&caller), identity, act).await
}

/// GET: lists the SMS of a SIM in both directions, newest first.
pub(super) async fn list(
    caller: AuthenticatedCaller,
    PathSegment(iccid): PathSegment<Iccid>,
    Query(mut fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let wanted = wanted(&mut fields);
    fields.finish(Some(()))?;
    let device = device_with(&api, &caller, &iccid).await?;
    let page = api.store.sms_of(device.number, wanted).await?;
    Ok(HttpResponse::Ok().json(PageBody::of(wanted, page, |sms| SmsBody::of(&sms))))
}

/// GET one.
pub(super) async fn show(
    caller: AuthenticatedCaller,
    PathSegment(iccid): PathSegment<Iccid>,
    PathSegment(id): PathSegment<SmsId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let (_, sms) = owned(&api, &caller, &iccid, id).await?;
    Ok(HttpResponse::Ok().json(SmsBody::of(&sms)))
}

/// DELETE: cancels an SMS that the network does not send at this moment.
pub(super) async fn cancel(
    caller: AuthenticatedCaller,
    PathSegment(iccid): PathSegment<Iccid>,
    PathSegment(id): PathSegment<SmsId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    settle(&*api.commits, async || {
        let (device, sms) = owned(&api, &caller, &iccid, id).await?;
        Ok(cancelled(&mut api.clock.moment(), &device, sms)?)
    })
    .await?;
    Ok(HttpResponse::NoContent().finish())
}

/// The last SMS of a device.
pub(super) async fn recent(api: &Api, device: &Profile) -> Result<Vec<Sms>, ApiError> {
    Ok(api.store.sms_of(device.number, RECENT).await?.items)
}

/// The device of the caller that has the SIM; for the SIMs of other customers the answer is 404.
async fn device_with(
    api: &Api,
    caller: &AuthenticatedCaller,
    iccid: &Iccid,
) -> Result<Profile, ApiError> {
    let device = named(api, UniqueName::Iccid(iccid.clone())).await?;
    let device = device.filter(|device| device.customer == caller.customer);
    device.ok_or_else(|| ApiError::unknown("iccid"))
}

/// The device that has a name.
async fn named(api: &Api, name: UniqueName) -> Result<Option<Profile>, ApiError> {
    match api.store.device_by_name(name).await? {
        Some(device) => Ok(api.store.profile(device).await?),
        None => Ok(None),
    }
}

/// An SMS of a SIM of the caller, and the device.
async fn owned(
    api: &Api,
    caller: &AuthenticatedCaller,
    iccid: &Iccid,
    id: SmsId,
) -> Result<(Profile, Sms), ApiError> {
    let device = device_with(api, caller, iccid).await?;
    let sms = api.store.sms(id).await?;
    let sms = sms.filter(|sms| sms.device_number == device.number);
    let sms = sms.ok_or_else(|| ApiError::unknown("sms"))?;
    Ok((device, sms))
}
