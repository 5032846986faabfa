//! Which handlers read the administration log (seed 4.8)?

pub(super) mod described;
pub(super) mod statistics;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::admin_log::entry::{Category, Entry, Subject};
use engine::admin_log::window::TimeWindow;
use engine::ids::{CustomerId, DeviceId, DeviceKey, EntryId, Iccid};
use engine::moment::Timestamp;
use engine::query::{EntryKind, LogFilter, Page};

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::Query;
use super::error::ApiError;
use super::fields::{Fields, instant};
use super::page::{PageBody, wanted_of};
use super::segment::{PathSegment, Segment};
use super::words::Word;

/// The most entries on a page (seed 8).
const PAGE_SIZE_MAX: u32 = 25;

/// An entry of the log (seed 2.2).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EntryBody {
    id: String,
    customer_id: String,
    timestamp: String,
    #[serde(rename = "type")]
    subject: &'static str,
    message: String,
    description: String,
    trace_id: String,
    category: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    imsi: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iccid: Option<String>,
    /// The path of the stored payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_reference: Option<String>,
}

/// GET: lists the entries of the caller's log, newest first.
pub(super) async fn list(
    caller: AuthenticatedCaller,
    Query(mut fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let wanted = wanted_of(&mut fields, PAGE_SIZE_MAX);
    let (filter, device, kind) = filter(caller.customer, api.clock.now(), fields)?;
    let page = match (of_device(&api, filter, device).await?, kind) {
        (Some(filter), None) => api.store.entries(filter, wanted).await?,
        (Some(filter), Some(kind)) => api.store.entries_of_kind(filter, kind, wanted).await??,
        (None, _) => Page {
            items: Vec::new(),
            total: 0,
        },
    };
    Ok(HttpResponse::Ok().json(PageBody::of(wanted, page, |entry| EntryBody::of(&entry))))
}

/// GET: one entry.
pub(super) async fn show(
    caller: AuthenticatedCaller,
    PathSegment(entry): PathSegment<EntryId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let entry = api.store.entry(caller.customer, entry).await?;
    let entry = entry.ok_or_else(|| ApiError::unknown(EntryId::NAME))?;
    Ok(HttpResponse::Ok().json(EntryBody::of(&entry)))
}

/// GET: the payload of an entry, as the device sent it.
pub(super) async fn payload(
    caller: AuthenticatedCaller,
    PathSegment(entry): PathSegment<EntryId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let payload = api
        .store
        .entry_payload(caller.customer.clone(), entry)
        .await?;
    let Some(bytes) = payload else {
        let entry = api.store.entry(caller.customer, entry).await?;
        let without = |_| ApiError::no_payload();
        return Err(entry.map_or_else(|| ApiError::unknown(EntryId::NAME), without));
    };
    Ok(HttpResponse::Ok()
        .content_type("application/octet-stream")
        .body(Vec::from(bytes)))
}

/// Narrows a filter to the SIM of a device, if one is wanted; nothing if no entry can pass.
async fn of_device(
    api: &Api,
    filter: LogFilter,
    device: Option<DeviceId>,
) -> Result<Option<LogFilter>, ApiError> {
    let Some(device) = device else {
        return Ok(Some(filter));
    };
    let key = DeviceKey::of(&filter.customer, &device);
    let profile = api.store.profile(key).await?;
    let iccid = profile.map(|profile| profile.iccid);
    let iccid = iccid.filter(|it| filter.iccid.as_ref().is_none_or(|wanted| wanted == it));
    Ok(iccid.map(|iccid| LogFilter {
        iccid: Some(iccid),
        ..filter
    }))
}

fn filter(
    customer: CustomerId,
    now: Timestamp,
    mut fields: Fields,
) -> Result<(LogFilter, Option<DeviceId>, Option<EntryKind>), ApiError> {
    let iccid = fields.optional("iccid", Iccid::parse);
    let device = fields.optional("deviceId", DeviceId::parse);
    let category = fields.optional("category", Category::read);
    let subject = fields.optional("type", Subject::read);
    let kind = fields.optional("kind", EntryKind::parse);
    let window = window(now, &mut fields);
    let filter = window.map(|window| LogFilter {
        customer,
        window,
        iccid,
        category,
        subject,
    });
    fields.finish(filter.map(|filter| (filter, device, kind)))
}

fn window(now: Timestamp, fields: &mut Fields) -> Option<TimeWindow> {
    let mut are_read = true;
    let mut bound =
        |name| fields.optional(name, |text| instant(text).inspect_err(|_| are_read = false));
    let (start, end) = (bound("startDateTime"), bound("endDateTime"));
    if !are_read {
        return None;
    }
    match TimeWindow::of(now, start, end) {
        Ok(window) => Some(window),
        Err(reversed) => {
            fields.fault("startDateTime", reversed);
            None
        }
    }
}

impl EntryBody {
    /// The entry.
    pub(super) fn of(entry: &Entry) -> Self {
        let about = entry.about.as_ref();
        Self {
            id: entry.id.to_string(),
            customer_id: entry.customer.to_string(),
            timestamp: entry.at.iso().to_string(),
            subject: entry.subject.word(),
            message: entry.message.to_string(),
            description: entry.description.to_string(),
            trace_id: entry.trace.to_string(),
            category: entry.category.word(),
            imsi: about
                .and_then(|device| device.imsi.as_ref())
                .map(ToString::to_string),
            ip: about.and_then(|device| device.ip).map(|ip| ip.to_string()),
            iccid: about.map(|device| device.iccid.to_string()),
            payload_reference: entry.payload.as_ref().map(|_| reference(entry.id)),
        }
    }
}

/// The path of the payload of an entry.
fn reference(entry: EntryId) -> String {
    format!("/management-api/v1/administrationLogs/{entry}/payload")
}
