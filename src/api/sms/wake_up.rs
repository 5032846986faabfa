//! Which handlers set the SMS that wakes the devices of a customer, or one of them?

use actix_web::{HttpResponse, web};

use engine::directory::DirectoryRefusal;
use engine::directory::{customer, device};
use engine::ids::{DeviceId, DeviceKey};
use engine::wake_up::WakeUpMessage;

use super::WakeUpMessageBody;
use super::request_body::new_wake_up;
use crate::api::Api;
use crate::api::access::AuthenticatedCaller;
use crate::api::body::Json;
use crate::api::error::ApiError;
use crate::api::records::settle;
use crate::api::segment::OptionalSegment;

/// What a 404 names if there is no message.
const NAME: &str = "wake-up message";

/// GET: shows the message of the customer, or of a device.
pub(in crate::api) async fn show(
    caller: AuthenticatedCaller,
    OptionalSegment(device): OptionalSegment<DeviceId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let message = stored(&api, &caller, device.as_ref()).await?;
    Ok(HttpResponse::Ok().json(WakeUpMessageBody::of(&message)))
}

/// PUT: sets it.
pub(in crate::api) async fn put(
    caller: AuthenticatedCaller,
    OptionalSegment(device): OptionalSegment<DeviceId>,
    Json(fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let message = new_wake_up(fields)?;
    replace(&api, &caller, device.as_ref(), Some(&message)).await?;
    Ok(HttpResponse::Ok().json(WakeUpMessageBody::of(&message)))
}

/// DELETE: removes it.
pub(in crate::api) async fn delete(
    caller: AuthenticatedCaller,
    OptionalSegment(device): OptionalSegment<DeviceId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    stored(&api, &caller, device.as_ref()).await?;
    replace(&api, &caller, device.as_ref(), None).await?;
    Ok(HttpResponse::NoContent().finish())
}

async fn stored(
    api: &Api,
    caller: &AuthenticatedCaller,
    device: Option<&DeviceId>,
) -> Result<WakeUpMessage, ApiError> {
    let found = match device {
        Some(device) => {
            let key = DeviceKey::of(&caller.customer, device);
            let profile = api.store.profile(key).await?;
            profile.ok_or(DirectoryRefusal::DeviceUnknown)?.wake_up
        }
        None => {
            let customer = api.store.customer(caller.customer.clone()).await?;
            customer.ok_or(DirectoryRefusal::CustomerUnknown)?.wake_up
        }
    };
    found.ok_or_else(|| ApiError::unknown(NAME))
}

async fn replace(
    api: &Api,
    caller: &AuthenticatedCaller,
    device: Option<&DeviceId>,
    message: Option<&WakeUpMessage>,
) -> Result<(), ApiError> {
    settle(&*api.commits, async || {
        let message = message.cloned();
        match device {
            Some(device) => {
                let key = DeviceKey::of(&caller.customer, device);
                let profile = api.store.profile(key).await?;
                Ok(device::put_wake_up(profile, message)?)
            }
            None => {
                let customer = api.store.customer(caller.customer.clone()).await?;
                let customer = customer.ok_or(DirectoryRefusal::CustomerUnknown)?;
                Ok(customer::put_wake_up(customer, message))
            }
        }
    })
    .await
}
