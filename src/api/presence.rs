//! Which handlers show and change after how long a silence the devices of a customer are offline?

pub(super) mod described;

use std::num::NonZeroU32;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::customer::Customer;
use engine::directory::DirectoryRefusal;
use engine::directory::amending::FieldAmendment;
use engine::directory::customer::put_offline_after;
use engine::ids::CustomerId;
use engine::limits::OFFLINE_AFTER_S_MAX;

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::Json;
use super::error::ApiError;
use super::records::{settle, to_its_end};

/// What applies to the presence of every device of a customer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PresenceSettingsBody {
    offline_after: Option<NonZeroU32>,
}

/// GET: shows it.
pub(super) async fn show(
    caller: AuthenticatedCaller,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let customer = known(&api, &caller.customer).await?;
    Ok(PresenceSettingsBody::answer(customer.offline_after_s))
}

/// PATCH: changes it.
pub(super) async fn change(
    caller: AuthenticatedCaller,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let amended = fields
        .number_amendment("offlineAfter", 1..=OFFLINE_AFTER_S_MAX)
        .and_then(NonZeroU32::new);
    let amended = fields.finish(Some(amended))?;
    let offline_after_s = to_its_end(changed(api, caller.customer, amended)).await?;
    Ok(PresenceSettingsBody::answer(offline_after_s))
}

/// Stores the change, then has the devices follow it.
async fn changed(
    api: web::Data<Api>,
    customer: CustomerId,
    amended: FieldAmendment<NonZeroU32>,
) -> Result<Option<NonZeroU32>, ApiError> {
    let offline_after_s = settle(&*api.commits, async || {
        let was = known(&api, &customer).await?;
        Ok(put_offline_after(was, amended.clone()))
    })
    .await?;
    api.devices.take_policy(customer).await?;
    Ok(offline_after_s)
}

async fn known(api: &Api, customer: &CustomerId) -> Result<Customer, ApiError> {
    let known = api.store.customer(customer.clone()).await?;
    known.ok_or_else(|| DirectoryRefusal::CustomerUnknown.into())
}

impl PresenceSettingsBody {
    fn answer(offline_after: Option<NonZeroU32>) -> HttpResponse {
        HttpResponse::Ok().json(Self { offline_after })
    }
}
