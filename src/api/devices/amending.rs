//! Which handler updates a device?

use std::num::NonZeroU32;

use actix_web::{HttpResponse, web};
use tracing::Instrument;

use engine::directory::amending::{DeviceAmendment, FieldAmendment, amend_device, names_gained};
use engine::ids::{DeviceId, DeviceKey, Endpoint, Iccid, Imsi, Msisdn};
use engine::limits::OFFLINE_AFTER_S_MAX;
use engine::profile::{Profile, SecurityRequirement};
use engine::tags::{InvalidTag, TagText, TagsAmendment};

use super::{borne, found, host};
use crate::api::Api;
use crate::api::access::AuthenticatedCaller;
use crate::api::body::Json;
use crate::api::device::DeviceBody;
use crate::api::error::ApiError;
use crate::api::fields::{Fields, label};
use crate::api::records::settle;
use crate::api::segment::PathSegment;
use crate::api::words::Word as _;

/// The read-only properties of a device, with the message for each.
const READ_ONLY: [(&str, &str); 5] = [
    ("deviceId", "cannot be changed"),
    ("number", "is assigned by the service and cannot be changed"),
    (
        "psk",
        "cannot be changed here; use POST /management-api/v1/devices/{deviceId}/psk",
    ),
    (
        "publicKey",
        "cannot be changed here; use PUT /management-api/v1/devices/{deviceId}/public-key",
    ),
    ("created", "cannot be changed"),
];

/// PATCH: updates a device.
pub(in crate::api) async fn amend(
    caller: AuthenticatedCaller,
    PathSegment(device): PathSegment<DeviceId>,
    Json(fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let amendments = amendments(fields)?;
    let device = DeviceKey::of(&caller.customer, &device);
    // The update completes even if the caller disconnects: the actor of the device must not miss a
    // stored change.
    let amending = settled(api, device, amendments).in_current_span();
    let profile = actix_web::rt::spawn(amending).await;
    let profile = profile.map_err(ApiError::internal)??;
    Ok(HttpResponse::Ok().json(DeviceBody::of(&profile)))
}

/// Stores the change, then applies it to the actor of the device. A caller that gets 503 can repeat
/// the call.
async fn settled(
    api: web::Data<Api>,
    device: DeviceKey,
    amendments: DeviceAmendment,
) -> Result<Profile, ApiError> {
    let profile = settle(&*api.commits, async || {
        let was = found(api.store.profile(device).await?)?;
        let is = amendments.clone().apply(was.clone())?;
        if is.ip != was.ip {
            api.networks.admit(&is.customer, is.ip)?;
        }
        let taken = borne(&api, names_gained(&was, &is)).await?;
        Ok(amend_device(was, is, taken)?)
    });
    let profile = profile.await?;
    api.devices.take_identity(device).await?;
    Ok(profile)
}

fn amendments(mut fields: Fields) -> Result<DeviceAmendment, ApiError> {
    let amendments = DeviceAmendment {
        iccid: fields.replacement("iccid", Iccid::parse),
        imsi: fields.amendment("imsi", Imsi::parse),
        msisdn: fields.amendment("msisdn", Msisdn::parse),
        ip: fields.amendment("ip", host),
        endpoint: fields.replacement("endpoint", Endpoint::parse),
        name: fields.amendment("name", label),
        tags: tags(&mut fields),
        security: fields.replacement("security", SecurityRequirement::read),
        offline_after_s: fields
            .number_amendment("offlineAfter", 1..=OFFLINE_AFTER_S_MAX)
            .and_then(NonZeroU32::new),
    };
    for (name, why) in READ_ONLY {
        fields.read_only(name, why);
    }
    fields.finish(Some(amendments))
}

/// A tag that is `null` is removed, and so are all of them if `tags` is.
fn tags(fields: &mut Fields) -> TagsAmendment {
    let tag = |key: &str, value: Option<&str>| {
        let key = TagText::parse(key).map_err(InvalidTag::Key)?;
        let value = value.map(TagText::parse).transpose();
        Ok::<_, InvalidTag>((key, value.map_err(InvalidTag::Value)?))
    };
    match fields.merge("tags", tag) {
        FieldAmendment::Keep => TagsAmendment::Keep,
        FieldAmendment::Remove => TagsAmendment::Clear,
        FieldAmendment::Put(changes) => TagsAmendment::Merge(changes),
    }
}
