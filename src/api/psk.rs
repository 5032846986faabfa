//! Which handler sets the pre-shared key of a device?

pub(super) mod described;

use actix_web::{HttpResponse, web};

use engine::directory::amending::{amend_device, names_gained};
use engine::directory::credentials::with_psk;
use engine::directory::psk::{PskFormat, PskIdentity, parse_key};
use engine::ids::{DeviceId, DeviceKey};

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::Json;
use super::devices::{borne, found};
use super::error::ApiError;
use super::fields::Fields;
use super::records::settle;
use super::segment::PathSegment;
use super::words::Word;

/// POST: sets the key of a device.
pub(super) async fn give(
    caller: AuthenticatedCaller,
    PathSegment(device): PathSegment<DeviceId>,
    Json(fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let (identity, key) = new_key(fields)?;
    let device = DeviceKey::of(&caller.customer, &device);
    // Bound to the device: with another record, the key cannot be decrypted.
    let sealed = api.master_key.seal(&key, device.as_bytes());
    settle(&*api.commits, async || {
        let was = found(api.store.profile(device).await?)?;
        let now = api.clock.now();
        let is = with_psk(&was, identity.as_ref(), sealed.clone(), now);
        let taken = borne(&api, names_gained(&was, &is)).await?;
        Ok(amend_device(was, is, taken)?)
    })
    .await?;
    Ok(HttpResponse::NoContent().finish())
}

fn new_key(mut fields: Fields) -> Result<(Option<PskIdentity>, Vec<u8>), ApiError> {
    let identity = fields.optional("identity", PskIdentity::parse);
    let format = fields.required("format", PskFormat::read);
    let text = fields.required("secretKey", |text| Ok::<_, String>(text.to_owned()));
    let key = match (format, text) {
        (Some(format), Some(text)) => match parse_key(format, &text) {
            Ok(key) => Some(key),
            Err(fault) => {
                fields.fault("secretKey", fault);
                None
            }
        },
        (None, _) | (_, None) => None,
    };
    fields.finish(key.map(|key| (identity, key)))
}
