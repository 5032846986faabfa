//! Which handlers create, list, inspect and delete the devices of a customer?

pub(super) mod amending;
pub(super) mod described;
pub(super) mod filter;

use std::net::{AddrParseError, IpAddr};
use std::num::NonZeroU32;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::bootstrap::BootstrapRecord;
use engine::change::UniqueName;
use engine::credentials::RawPublicKey;
use engine::directory::credentials::with_public_key;
use engine::directory::device::{NewDevice, create_device, draft_device, names_wanted};
use engine::dispatch::is_of_one_host;
use engine::ids::{CustomerId, DeviceId, DeviceKey, Endpoint, Iccid, Imsi, Msisdn};
use engine::limits::OFFLINE_AFTER_S_MAX;
use engine::profile::{Profile, SecurityRequirement};
use engine::query::HistoryFilter;
use engine::query::devices::{DevicePage, DevicePageRequest, DeviceTotal, ListedDevice};
use engine::tags::{Tag, Tags};

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::{Json, Query};
use super::device::{DeviceBody, InspectorBody, ListedDeviceBody};
use super::error::ApiError;
use super::fields::{FieldFault, Fields, label};
use super::idempotency::{self, CreatedResponse, IdempotencyKeyHeader, ResponseKeeper};
use super::page::{pages, wanted};
use super::psk::request_body::{NewPsk, read_psk};
use super::public_key::request_body::parse_public_key;
use super::records::settle;
use super::segment::PathSegment;
use super::sms;
use super::words::Word as _;
use filter::device_filter;

/// Recent messages in the device inspector.
const RECENT_MESSAGES: u32 = 20;

/// A page of devices.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DevicePageBody {
    items: Vec<ListedDeviceBody>,
    page: u32,
    page_amount: u64,
    total: u64,
    total_is_exact: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// POST: creates a device.
pub(super) async fn create(
    caller: AuthenticatedCaller,
    named: IdempotencyKeyHeader,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let identity = named.read(&["device"], &mut fields);
    let new = new_device(fields)?;
    let (devices, customer) = (api.clone(), caller.customer.clone());
    let act = async move |keeper: ResponseKeeper| {
        let api = devices;
        settle(&*api.commits, async || {
            let profile = drafted(&api, &customer, new.clone())?;
            let taken = borne(&api, names_wanted(&profile)).await?;
            keeper.keep(create_device(profile, taken)?, |profile| {
                let location = format!("/management-api/v1/devices/{}", profile.device);
                CreatedResponse::of(Some(location), &DeviceBody::of(&profile))
            })
        })
        .await
    };
    idempotency::create(&api, Some(&caller), identity, act).await
}

/// GET: lists the devices of the caller by device id.
pub(super) async fn list(
    caller: AuthenticatedCaller,
    Query(mut fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let wanted = DevicePageRequest {
        after: fields.optional("cursor", DeviceId::parse),
        page: wanted(&mut fields),
    };
    let filter = device_filter(caller.customer, &mut fields);
    fields.finish(Some(()))?;
    let page = api.store.devices_of(filter, wanted.clone()).await??;
    let now = api.clock.moment().now();
    let show = |listed: &ListedDevice| {
        ListedDeviceBody::of(listed, listed.presence(api.awake_window_ms, now))
    };
    Ok(HttpResponse::Ok().json(DevicePageBody::of(&wanted, &page, show)))
}

/// GET one: the device inspector.
pub(super) async fn inspect(
    caller: AuthenticatedCaller,
    PathSegment(device): PathSegment<DeviceId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let device = DeviceKey::of(&caller.customer, &device);
    let snapshot = api.devices.inspect(device).await?;
    // The actor of the device knows neither the whole profile nor a new key.
    let profile = found(api.store.profile(device).await?)?;
    let values = api.store.values_of(device).await?;
    let recent = api.store.events_of(
        HistoryFilter::all_of(caller.customer.clone(), device),
        RECENT_MESSAGES,
    );
    let recent = recent.await?;
    let recent_sms = sms::recent(&api, &profile).await?;
    let bootstrap = match &snapshot.bootstrap {
        Some(running) => Some(running.clone()),
        None => api
            .store
            .bootstrap_of(device)
            .await?
            .map(BootstrapRecord::at_rest),
    };
    let association = api.devices.association(device).await;
    let body = InspectorBody::of(
        &profile,
        (&snapshot, association.as_ref()),
        &values,
        &recent.events,
        (&recent_sms, bootstrap.as_ref()),
    );
    Ok(HttpResponse::Ok().json(body))
}

/// DELETE: deletes a device with all its data but its action requests, which end.
pub(super) async fn delete(
    caller: AuthenticatedCaller,
    PathSegment(device): PathSegment<DeviceId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let device = DeviceKey::of(&caller.customer, &device);
    api.devices.retire(device).await?;
    api.devices.end_sessions(device).await?;
    Ok(HttpResponse::NoContent().finish())
}

impl DevicePageBody {
    /// The page.
    pub(super) fn of(
        wanted: &DevicePageRequest,
        page: &DevicePage,
        show: impl Fn(&ListedDevice) -> ListedDeviceBody,
    ) -> Self {
        let total = page.total.count();
        Self {
            items: page.items.iter().map(show).collect(),
            page: wanted.page.number,
            page_amount: pages(total, wanted.page.size),
            total,
            total_is_exact: match page.total {
                DeviceTotal::Exactly(_) => true,
                DeviceTotal::AtLeast(_) => false,
            },
            next_cursor: page.next.as_ref().map(ToString::to_string),
        }
    }
}

pub(super) fn found(profile: Option<Profile>) -> Result<Profile, ApiError> {
    profile.ok_or_else(|| ApiError::unknown("device"))
}

/// A new device, and the keys that it has.
#[derive(Clone)]
pub(super) struct NewDeviceFields {
    new: NewDevice,
    psk: Option<NewPsk>,
    public_key: Option<RawPublicKey>,
}

/// The device as it would be created.
pub(super) fn drafted(
    api: &Api,
    customer: &CustomerId,
    fields: NewDeviceFields,
) -> Result<Profile, ApiError> {
    let mut profile = draft_device(&mut api.clock.moment(), customer, fields.new)?;
    api.networks.admit(customer, profile.ip)?;
    if let Some(psk) = fields.psk {
        profile = psk.given_to(&profile, api);
    }
    if let Some(key) = fields.public_key {
        profile = with_public_key(&profile, key, api.clock.now());
    }
    Ok(profile)
}

/// The new device in the fields of a body or a line of an import.
pub(super) fn new_device(mut fields: Fields) -> Result<NewDeviceFields, ApiError> {
    let psk = fields.object("psk", read_psk).flatten();
    let public_key = fields.optional("publicKey", parse_public_key);
    let new = NewDevice {
        device: fields.optional("deviceId", DeviceId::parse),
        iccid: fields.optional("iccid", Iccid::parse),
        imsi: fields.optional("imsi", Imsi::parse),
        msisdn: fields.optional("msisdn", Msisdn::parse),
        ip: fields.optional("ip", host),
        endpoint: fields.optional("endpoint", Endpoint::parse),
        name: fields.optional("name", label),
        tags: tags(&mut fields),
        security: fields
            .optional("security", SecurityRequirement::read)
            .unwrap_or_default(),
        offline_after_s: fields
            .number("offlineAfter", 1..=OFFLINE_AFTER_S_MAX)
            .and_then(NonZeroU32::new),
    };
    fields.finish(Some(NewDeviceFields {
        new,
        psk,
        public_key,
    }))
}

fn tags(fields: &mut Fields) -> Tags {
    let given = fields.texts_by_name("tags", Tag::of);
    Tags::of(given.unwrap_or_default()).unwrap_or_else(|why| {
        fields.fault("tags", FieldFault::out_of_range(why));
        Tags::default()
    })
}

/// A unicast address. An IPv4-mapped IPv6 address is that IPv4 address.
fn host(text: &str) -> Result<IpAddr, &'static str> {
    let ip: Result<IpAddr, AddrParseError> = text.parse();
    let ip = ip.map_err(|_| "must be an IPv4 or IPv6 address")?;
    let ip = ip.to_canonical();
    match is_of_one_host(ip) {
        true => Ok(ip),
        false => Err("must be a unicast address of one host"),
    }
}

/// The identifiers that another device already has.
pub(super) async fn borne(api: &Api, names: Vec<UniqueName>) -> Result<Vec<UniqueName>, ApiError> {
    let mut borne = Vec::new();
    for name in names {
        if api.store.device_by_name(name.clone()).await?.is_some() {
            borne.push(name);
        }
    }
    Ok(borne)
}
