//! Which handlers create, list, inspect, pause, resume and cancel firmware campaigns?

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::directory::firmware::{devices_of, removal_of_campaign, removal_of_devices};
use engine::firmware::campaign::{
    Campaign, CampaignCommand, CampaignCounts, CampaignDevice, CampaignRules, CampaignState,
    ImageSource,
};
use engine::firmware::firmware_uri;
use engine::firmware::update::{DeliveryMethod, UpdateState};
use engine::ids::{CampaignId, CustomerId, DeviceId, ImageId};
use engine::limits::{
    CAMPAIGN_CONCURRENCY_MAX, CAMPAIGN_MS, CAMPAIGN_MS_MAX, CAMPAIGNS_MAX, UPDATE_RETRIES_MAX,
};
use engine::moment::Timestamp;
use engine::query::Page;
use engine::query::devices::DeviceFilter;

use super::first;
use crate::api::Api;
use crate::api::access::AuthenticatedCaller;
use crate::api::actions::request_body::device_ids;
use crate::api::body::{Json, Query};
use crate::api::devices::filter::device_filter;
use crate::api::error::ApiError;
use crate::api::fields::{FieldFault, Fields, instant};
use crate::api::idempotency::{self, CreatedResponse, IdempotencyKeyHeader, ResponseKeeper};
use crate::api::page::{PageBody, wanted};
use crate::api::segment::PathSegment;
use crate::api::words::Word;

/// A campaign.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct CampaignBody {
    id: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    method: &'static str,
    concurrency: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_per_minute: Option<u32>,
    retries: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    canary_percent: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    halt_at_failed_percent: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<String>,
    not_after: String,
    created: String,
    devices: u32,
    counts: CountsBody,
}

/// How many devices are in each state.
#[derive(Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
struct CountsBody {
    pending: u32,
    transferring: u32,
    downloaded: u32,
    updating: u32,
    succeeded: u32,
    failed: u32,
    skipped: u32,
}

/// A device of a campaign.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct CampaignDeviceBody {
    device_id: String,
    state: &'static str,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    updated: String,
}

/// A campaign as its caller wants it.
struct NewCampaign {
    image: WantedImage,
    devices: WantedDevices,
    method: DeliveryMethod,
    rules: CampaignRules,
}

enum WantedImage {
    Stored(ImageId),
    Elsewhere(Box<str>),
}

enum WantedDevices {
    Named(Vec<DeviceId>),
    Selected(Box<DeviceFilter>),
}

/// POST: creates a campaign.
pub(in crate::api) async fn create(
    caller: AuthenticatedCaller,
    named: IdempotencyKeyHeader,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let identity = named.read(&["campaign"], &mut fields);
    let new = new_campaign(&api, &caller.customer, fields).await?;
    let (made_by, customer) = (api.clone(), caller.customer.clone());
    let act = async move |keeper: ResponseKeeper| {
        let api = made_by;
        let _turn = api.images.changing.lock().await;
        make_room(&api, &customer).await?;
        let devices = match new.devices {
            WantedDevices::Named(devices) => devices,
            WantedDevices::Selected(filter) => api.jobs.selection.matching(*filter).await?,
        };
        let mut moment = api.clock.moment();
        let id = CampaignId::new(moment.uuid());
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).map_err(ApiError::internal)?;
        let source = match new.image {
            WantedImage::Elsewhere(uri) => ImageSource::Elsewhere(uri),
            WantedImage::Stored(image) => {
                let stored = api.store.image(customer.clone(), image).await?;
                let bytes = stored.ok_or_else(|| ApiError::unknown("image"))?.bytes;
                ImageSource::Stored { image, bytes }
            }
        };
        let campaign = Campaign {
            id,
            customer,
            state: CampaignState::Running,
            created_at: moment.now(),
            source,
            secret,
            method: new.method,
            devices: u32::try_from(devices.len()).map_err(ApiError::internal)?,
            rules: new.rules,
            failures_accepted: 0,
            is_stopping: false,
        };
        for batch in devices_of(moment.now(), id, devices) {
            api.commits.commit(batch).await?;
        }
        let mut counts = [0; UpdateState::ALL.len()];
        counts[UpdateState::Pending as usize] = campaign.devices;
        let counts = CampaignCounts::restored(counts);
        let location = format!("/management-api/v1/firmware/campaigns/{id}");
        let body = CampaignBody::of(&campaign, counts);
        let response = CreatedResponse::of(Some(location), &body)?;
        api.campaigns
            .create(campaign, keeper.record(&response)?)
            .await?;
        Ok(response)
    };
    idempotency::create(&api, Some(&caller), identity, act).await
}

/// GET: lists the campaigns of the caller, newest first.
pub(in crate::api) async fn list(
    caller: AuthenticatedCaller,
    Query(mut fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let wanted = wanted(&mut fields);
    fields.finish(Some(()))?;
    let page = api.store.campaigns_of(caller.customer, wanted).await?;
    let mut items = Vec::with_capacity(page.items.len());
    for campaign in &page.items {
        items.push(shown(&api, campaign).await?);
    }
    let page = Page {
        items,
        total: page.total,
    };
    Ok(HttpResponse::Ok().json(PageBody::of(wanted, page, |body| body)))
}

/// GET one.
pub(in crate::api) async fn show(
    caller: AuthenticatedCaller,
    PathSegment(id): PathSegment<CampaignId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let campaign = owned(&api, &caller, id).await?;
    Ok(HttpResponse::Ok().json(shown(&api, &campaign).await?))
}

/// GET: lists the devices of a campaign.
pub(in crate::api) async fn devices(
    caller: AuthenticatedCaller,
    PathSegment(id): PathSegment<CampaignId>,
    Query(mut fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let wanted = wanted(&mut fields);
    fields.finish(Some(()))?;
    let campaign = owned(&api, &caller, id).await?;
    let devices = api.store.campaign_devices(id, wanted).await?;
    let shown = |(place, device): (u32, CampaignDevice)| {
        let transferred = api.images.files.progress().of(id, place);
        CampaignDeviceBody::of(device.with_transferred(transferred).shown(campaign.state))
    };
    // Every place has a device.
    let first = u32::try_from(wanted.skip()).unwrap_or(u32::MAX);
    let page = Page {
        items: (first..).zip(devices).map(shown).collect(),
        total: campaign.devices.into(),
    };
    Ok(HttpResponse::Ok().json(PageBody::of(wanted, page, |body| body)))
}

/// POST: no further device begins.
pub(in crate::api) async fn pause(
    caller: AuthenticatedCaller,
    PathSegment(id): PathSegment<CampaignId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    command(&api, &caller, id, CampaignCommand::Pause).await
}

/// POST: devices begin again.
pub(in crate::api) async fn resume(
    caller: AuthenticatedCaller,
    PathSegment(id): PathSegment<CampaignId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    command(&api, &caller, id, CampaignCommand::Resume).await
}

/// POST: ends the campaign.
pub(in crate::api) async fn cancel(
    caller: AuthenticatedCaller,
    PathSegment(id): PathSegment<CampaignId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    command(&api, &caller, id, CampaignCommand::Cancel).await
}

/// Removes the campaigns of a customer that is being removed.
pub(super) async fn remove_all(api: &Api, customer: &CustomerId) -> Result<(), ApiError> {
    api.campaigns.forget(customer.clone()).await;
    loop {
        let all = first(CAMPAIGNS_MAX);
        let campaigns = api.store.campaigns_of(customer.clone(), all).await?.items;
        if campaigns.is_empty() {
            return Ok(());
        }
        for campaign in campaigns {
            remove(api, &campaign).await?;
        }
    }
}

async fn command(
    api: &Api,
    caller: &AuthenticatedCaller,
    id: CampaignId,
    command: CampaignCommand,
) -> Result<HttpResponse, ApiError> {
    owned(api, caller, id).await?;
    let campaign = api.campaigns.command(id, command).await?;
    Ok(HttpResponse::Ok().json(shown(api, &campaign).await?))
}

/// Removes the oldest campaign that has ended, if the customer has the most that are kept.
async fn make_room(api: &Api, customer: &CustomerId) -> Result<(), ApiError> {
    let all = first(CAMPAIGNS_MAX);
    let campaigns = api.store.campaigns_of(customer.clone(), all).await?;
    if campaigns.total < u64::from(CAMPAIGNS_MAX) {
        return Ok(());
    }
    let mut oldest_first = campaigns.items.iter().rev();
    match oldest_first.find(|campaign| !campaign.is_open()) {
        Some(ended) => remove(api, ended).await,
        None => Err(ApiError::too_many_campaigns(CAMPAIGNS_MAX)),
    }
}

async fn remove(api: &Api, campaign: &Campaign) -> Result<(), ApiError> {
    loop {
        let left = api.store.campaign_devices(campaign.id, first(1)).await?;
        if left.is_empty() {
            break;
        }
        api.commits.commit(removal_of_devices(campaign.id)).await?;
    }
    let removal = removal_of_campaign(campaign.customer.clone(), campaign.id);
    api.commits.commit(removal).await?;
    Ok(())
}

/// A campaign of the caller; for those of other customers the answer is 404.
async fn owned(
    api: &Api,
    caller: &AuthenticatedCaller,
    id: CampaignId,
) -> Result<Campaign, ApiError> {
    let campaign = api.store.campaign(caller.customer.clone(), id).await?;
    campaign.ok_or_else(|| ApiError::unknown("campaign"))
}

async fn shown(api: &Api, campaign: &Campaign) -> Result<CampaignBody, ApiError> {
    let counts = api.store.campaign_counts(campaign.id).await?;
    Ok(CampaignBody::of(campaign, counts))
}

/// Parses a new campaign of a customer.
async fn new_campaign(
    api: &Api,
    customer: &CustomerId,
    mut fields: Fields,
) -> Result<NewCampaign, ApiError> {
    let method = wanted_method(api, &mut fields);
    let image = wanted_image(api, customer, &mut fields).await?;
    let devices = wanted_devices(api, customer, &mut fields);
    let rules = rules(&mut fields, api.clock.now());
    let read = image.zip(devices).zip(rules);
    fields.finish(read.map(|((image, devices), rules)| NewCampaign {
        image,
        devices,
        method,
        rules,
    }))
}

/// Either `imageId` or `url`.
async fn wanted_image(
    api: &Api,
    customer: &CustomerId,
    fields: &mut Fields,
) -> Result<Option<WantedImage>, ApiError> {
    const IMAGE: &str = "imageId";
    if !fields.has(IMAGE) {
        if !fields.has("url") {
            let why = "is required, unless url is given";
            fields.fault(IMAGE, FieldFault::required(why));
        }
        let uri = fields.optional("url", firmware_uri);
        return Ok(uri.map(WantedImage::Elsewhere));
    }
    fields.refuse("url", "must not be given together with imageId");
    let Some(id) = fields.optional(IMAGE, ImageId::parse) else {
        return Ok(None);
    };
    if api.store.image(customer.clone(), id).await?.is_none() {
        fields.fault(IMAGE, "is the id of no image");
        return Ok(None);
    }
    Ok(Some(WantedImage::Stored(id)))
}

/// How devices get the image, if the service can give it to them so.
fn wanted_method(api: &Api, fields: &mut Fields) -> DeliveryMethod {
    const METHOD: &str = "method";
    let is_elsewhere = fields.has("url");
    let is_reachable = is_elsewhere || api.images.downloads.is_any();
    let method = fields.optional(METHOD, DeliveryMethod::read);
    match method {
        Some(DeliveryMethod::Push) if is_elsewhere => {
            fields.fault(METHOD, "must not be PUSH for an image on another server");
        }
        Some(DeliveryMethod::Pull) if !is_reachable => {
            let why = "must not be PULL: the operator has set none of SIGNALBOX_PUBLIC_HTTP, \
                       SIGNALBOX_PUBLIC_COAP and SIGNALBOX_PUBLIC_COAPS, where devices reach this \
                       service";
            fields.fault(METHOD, why);
        }
        Some(DeliveryMethod::Auto | DeliveryMethod::Pull | DeliveryMethod::Push) | None => {}
    }
    method.unwrap_or(DeliveryMethod::Auto)
}

/// Either `deviceIds` or a `filter`.
fn wanted_devices(api: &Api, customer: &CustomerId, fields: &mut Fields) -> Option<WantedDevices> {
    if !fields.has("filter") {
        let max = api.jobs.selection.devices_max;
        return device_ids(fields, max).map(WantedDevices::Named);
    }
    fields.refuse("deviceIds", "must not be given together with filter");
    let customer = customer.clone();
    let filter = fields.object("filter", |filter| device_filter(customer, filter))?;
    Some(WantedDevices::Selected(Box::new(filter)))
}

fn rules(fields: &mut Fields, now: Timestamp) -> Option<CampaignRules> {
    const NOT_AFTER: &str = "notAfter";
    let concurrency = fields.required_number("concurrency", 1..=CAMPAIGN_CONCURRENCY_MAX);
    let rate_per_minute = fields.number("ratePerMinute", 1..=1_000_000);
    let retries = fields.number("retries", 0..=u32::from(UPDATE_RETRIES_MAX));
    let canary_percent = percent(fields, "canaryPercent");
    let halt_at_failed_percent = percent(fields, "haltAtFailedPercent");
    let not_before = fields.optional("notBefore", instant);
    let not_after = fields.optional(NOT_AFTER, instant);
    let begins_at = not_before.unwrap_or(now).max(now);
    let latest = now.plus_ms(CAMPAIGN_MS_MAX);
    let not_after = not_after.unwrap_or(begins_at.plus_ms(CAMPAIGN_MS));
    if not_after <= begins_at || not_after > latest {
        let why = format!(
            "must be after notBefore and the present, and not after {}",
            latest.iso()
        );
        fields.fault(NOT_AFTER, FieldFault::out_of_range(why));
    }
    Some(CampaignRules {
        concurrency: concurrency?,
        rate_per_minute,
        retries: retries.and_then(|it| u8::try_from(it).ok()).unwrap_or(0),
        canary_percent,
        halt_at_failed_percent,
        not_before,
        not_after,
    })
}

fn percent(fields: &mut Fields, name: &str) -> Option<u8> {
    let percent = fields.number(name, 1..=100)?;
    u8::try_from(percent).ok()
}

impl CampaignBody {
    pub(in crate::api) fn of(campaign: &Campaign, counts: CampaignCounts) -> Self {
        let rules = &campaign.rules;
        Self {
            id: campaign.id.to_string(),
            state: campaign.state.word(),
            image_id: match &campaign.source {
                ImageSource::Stored { image, .. } => Some(image.to_string()),
                ImageSource::Elsewhere(_) => None,
            },
            url: match &campaign.source {
                ImageSource::Stored { .. } => None,
                ImageSource::Elsewhere(uri) => Some(uri.to_string()),
            },
            method: campaign.method.word(),
            concurrency: rules.concurrency,
            rate_per_minute: rules.rate_per_minute,
            retries: rules.retries,
            canary_percent: rules.canary_percent,
            halt_at_failed_percent: rules.halt_at_failed_percent,
            not_before: rules.not_before.map(|it| it.iso().to_string()),
            not_after: rules.not_after.iso().to_string(),
            created: campaign.created_at.iso().to_string(),
            devices: campaign.devices,
            counts: CountsBody::of(counts.shown(campaign.state)),
        }
    }
}

impl CountsBody {
    fn of(counts: CampaignCounts) -> Self {
        Self {
            pending: counts.of(UpdateState::Pending),
            transferring: counts.of(UpdateState::Transferring),
            downloaded: counts.of(UpdateState::Downloaded),
            updating: counts.of(UpdateState::Updating),
            succeeded: counts.of(UpdateState::Succeeded),
            failed: counts.of(UpdateState::Failed),
            skipped: counts.of(UpdateState::Skipped),
        }
    }
}

impl CampaignDeviceBody {
    pub(in crate::api) fn of(device: CampaignDevice) -> Self {
        Self {
            device_id: device.device.to_string(),
            state: device.state.word(),
            bytes: device.bytes,
            reason: device.reason.map(String::from),
            updated: device.updated_at.iso().to_string(),
        }
    }
}
