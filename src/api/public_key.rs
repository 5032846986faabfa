//! Which handlers set and remove the raw public key of a device?

pub(super) mod described;
pub(super) mod request_body;

use actix_web::{HttpResponse, web};

use engine::directory::credentials::{with_public_key, without_public_key};
use engine::ids::{DeviceId, DeviceKey};

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::Json;
use super::error::ApiError;
use super::psk::{change_keys, end_keys};
use super::segment::PathSegment;
use request_body::parse_public_key;

/// PUT: sets the public key of a device.
pub(super) async fn put(
    caller: AuthenticatedCaller,
    PathSegment(device): PathSegment<DeviceId>,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let key = fields.required("publicKey", parse_public_key);
    let key = fields.finish(key)?;
    let device = DeviceKey::of(&caller.customer, &device);
    let now = api.clock.now();
    change_keys(api, device, move |was| Ok(with_public_key(was, key, now))).await
}

/// DELETE: removes the public key of a device, and the one before it.
pub(super) async fn remove(
    caller: AuthenticatedCaller,
    PathSegment(device): PathSegment<DeviceId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let device = DeviceKey::of(&caller.customer, &device);
    end_keys(api, device, without_public_key).await
}
