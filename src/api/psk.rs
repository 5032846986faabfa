//! Which handlers set, generate and remove the pre-shared key of a device?

pub(super) mod described;
pub(super) mod request_body;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::directory::amending::{amend_device, names_gained};
use engine::directory::credentials::without_psk;
use engine::directory::psk::{PskFormat, PskIdentity};
use engine::directory::{Decision, DirectoryRefusal};
use engine::ids::{DeviceId, DeviceKey};
use engine::profile::Profile;

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::Json;
use super::devices::{borne, found};
use super::error::ApiError;
use super::idempotency::{self, CreatedResponse, IdempotencyKeyHeader, ResponseKeeper};
use super::records::{settle, to_its_end};
use super::secret;
use super::segment::PathSegment;
use super::words::Word;
use request_body::{NewPsk, read_psk};

/// A generated key, which only this response contains.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeneratedBody {
    identity: String,
    secret_key: String,
    format: &'static str,
}

/// POST: sets the key of a device.
pub(super) async fn give(
    caller: AuthenticatedCaller,
    PathSegment(device): PathSegment<DeviceId>,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let psk = read_psk(&mut fields);
    let psk = fields.finish(psk)?;
    let device = DeviceKey::of(&caller.customer, &device);
    let keys = api.clone();
    change_keys(api, device, move |was| Ok(psk.given_to(was, &keys))).await
}

/// POST: generates a key for a device.
pub(super) async fn generate(
    caller: AuthenticatedCaller,
    PathSegment(device): PathSegment<DeviceId>,
    named: IdempotencyKeyHeader,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let call = named.read(&["psk", device.as_str()], &mut fields);
    let identity = fields.optional("identity", PskIdentity::parse);
    let identity = fields.finish(Some(identity))?;
    let device = DeviceKey::of(&caller.customer, &device);
    let key = secret::draw_psk().map_err(ApiError::internal)?;
    let psk = NewPsk { identity, key };
    let devices = api.clone();
    let act = async move |keeper: ResponseKeeper| {
        let api = devices;
        let created = settle(&*api.commits, async || {
            let was = found(api.store.profile(device).await?)?;
            let is = psk.given_to(&was, &api);
            keeper.keep(amended(&api, was, is).await?, |is| {
                let body = GeneratedBody {
                    identity: is.psk_identity().to_owned(),
                    secret_key: psk.hex(),
                    format: PskFormat::Hex.word(),
                };
                CreatedResponse::of(None, &body)
            })
        });
        let created = created.await?;
        api.devices.take_identity(device).await?;
        Ok(created)
    };
    idempotency::create(&api, Some(&caller), call, act).await
}

/// DELETE: removes the key of a device, and the one before it.
pub(super) async fn remove(
    caller: AuthenticatedCaller,
    PathSegment(device): PathSegment<DeviceId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let device = DeviceKey::of(&caller.customer, &device);
    end_keys(api, device, without_psk).await
}

/// Changes the keys of a device: 204. The change completes even if the caller disconnects.
pub(super) async fn change_keys(
    api: web::Data<Api>,
    device: DeviceKey,
    change: impl Fn(&Profile) -> Result<Profile, DirectoryRefusal> + 'static,
) -> Result<HttpResponse, ApiError> {
    to_its_end(async move {
        change_and_tell(&api, device, change).await?;
        Ok(HttpResponse::NoContent().finish())
    })
    .await
}

/// Removes keys of a device, and then ends its sessions, which may be made with them: 204.
pub(super) async fn end_keys(
    api: web::Data<Api>,
    device: DeviceKey,
    change: impl Fn(&Profile) -> Result<Profile, DirectoryRefusal> + 'static,
) -> Result<HttpResponse, ApiError> {
    to_its_end(async move {
        change_and_tell(&api, device, change).await?;
        api.devices.end_sessions(device).await?;
        Ok(HttpResponse::NoContent().finish())
    })
    .await
}

/// Changes the keys of a device, and then has its arbiter learn of it.
async fn change_and_tell(
    api: &Api,
    device: DeviceKey,
    change: impl Fn(&Profile) -> Result<Profile, DirectoryRefusal>,
) -> Result<(), ApiError> {
    settle(&*api.commits, async || {
        let was = found(api.store.profile(device).await?)?;
        let is = change(&was)?;
        amended(api, was, is).await
    })
    .await?;
    Ok(api.devices.take_identity(device).await?)
}

async fn amended(api: &Api, was: Profile, is: Profile) -> Result<Decision<Profile>, ApiError> {
    let taken = borne(api, names_gained(&was, &is)).await?;
    Ok(amend_device(was, is, taken)?)
}
