//! Which handlers store, list, inspect and delete firmware images? Campaigns have them installed.

pub(super) mod campaigns;
pub(super) mod described;
pub(super) mod serving;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;

use actors::image_files::{ImageFiles, ImageUpload};
use engine::directory::firmware::{creation_of, removal_of};
use engine::firmware::FirmwareImage;
use engine::firmware::campaign::ImageSource;
use engine::firmware::delivery::DownloadUris;
use engine::ids::{CustomerId, ImageId};
use engine::limits::CAMPAIGNS_MAX;
use engine::query::PageRequest;

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::{Query, expect_plain, media_type};
use super::error::ApiError;
use super::fields::label;
use super::pace::Pace;
use super::page::{PageBody, wanted};
use super::segment::PathSegment;

/// Images that are received at a time; further ones are answered with 503.
pub(super) const RECEIVED_AT_ONCE: usize = 16;

/// The images of a customer: more than a quota of images of devices holds.
const IMAGES_MAX: u32 = 1_000;

/// What images of a customer there may be, and where.
pub(super) struct ImageStore {
    /// Their bytes.
    pub(super) files: ImageFiles,
    /// The longest image.
    pub(super) bytes_max: u64,
    /// The bytes of all images of a customer.
    pub(super) quota_bytes: u64,
    /// Where devices download images.
    pub(super) downloads: DownloadUris,
    /// Room for images that are being received.
    pub(super) receiving: tokio::sync::Semaphore,
    /// Held while an image is stored, and while a campaign is made: an image that a campaign names
    /// stays, and the quota holds.
    pub(super) changing: tokio::sync::Mutex<()>,
}

/// An image.
#[derive(Serialize)]
pub(super) struct ImageBody {
    id: String,
    size: u64,
    sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    created: String,
}

/// POST: stores an image.
pub(super) async fn create(
    caller: AuthenticatedCaller,
    Query(mut fields): Query,
    request: HttpRequest,
    payload: web::Payload,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let name = fields.optional("name", label);
    let version = fields.optional("version", label);
    fields.finish(Some(()))?;
    expect_plain(request.headers())?;
    if media_type(request.headers()) != "application/octet-stream" {
        return Err(ApiError::unsupported_media("application/octet-stream").closing());
    }
    let images = &api.images;
    let _room = images.receiving.try_acquire();
    let _room = _room.map_err(|_| ApiError::busy().closing())?;
    let used = stored_bytes(&api, &caller.customer).await?;
    let quota_left = images.quota_bytes.saturating_sub(used);
    let mut moment = api.clock.moment();
    let id = ImageId::new(moment.uuid());
    let mut upload = images.files.receive(id).await.map_err(ApiError::internal)?;
    receive(&api, &mut upload, payload, quota_left).await?;
    if upload.bytes() == 0 {
        return Err(ApiError::malformed("the image is empty"));
    }
    let bytes = upload.bytes();
    let _turn = images.changing.lock().await;
    if stored_bytes(&api, &caller.customer).await? + bytes > images.quota_bytes {
        return Err(ApiError::image_quota(images.quota_bytes));
    }
    let sha256 = upload.keep().await.map_err(ApiError::internal)?;
    let image = FirmwareImage {
        id,
        customer: caller.customer.clone(),
        name,
        version,
        created_at: moment.now(),
        bytes,
        sha256,
    };
    if let Err(failure) = api.commits.commit(creation_of(image.clone())).await {
        // Without its row the file would stay until the next start.
        images.files.remove(id).await.map_err(ApiError::internal)?;
        return Err(failure.into());
    }
    let location = format!("/management-api/v1/firmware/images/{id}");
    Ok(HttpResponse::Created()
        .insert_header(("Location", location))
        .json(ImageBody::of(&image)))
}

/// Receives the body, as long as it is not too long and not too slow.
async fn receive(
    api: &Api,
    upload: &mut ImageUpload,
    mut payload: web::Payload,
    quota_left: u64,
) -> Result<(), ApiError> {
    let max = api.images.bytes_max;
    let mut pace = Pace::new(api.import_behind_max);
    while let Some(piece) = pace.next_part(&mut payload).await? {
        let bytes = upload.bytes() + piece.len() as u64;
        if bytes > max {
            let max = usize::try_from(max).unwrap_or(usize::MAX);
            return Err(ApiError::body_too_large(max).closing());
        }
        if bytes > quota_left {
            return Err(ApiError::image_quota(api.images.quota_bytes).closing());
        }
        upload.write(piece).await.map_err(ApiError::internal)?;
    }
    Ok(())
}

/// GET: lists the images of the caller, newest first.
pub(super) async fn list(
    caller: AuthenticatedCaller,
    Query(mut fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let wanted = wanted(&mut fields);
    fields.finish(Some(()))?;
    let page = api.store.images_of(caller.customer, wanted).await?;
    let shown = |image| ImageBody::of(&image);
    Ok(HttpResponse::Ok().json(PageBody::of(wanted, page, shown)))
}

/// GET one.
pub(super) async fn show(
    caller: AuthenticatedCaller,
    PathSegment(id): PathSegment<ImageId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let image = owned(&api, &caller, id).await?;
    Ok(HttpResponse::Ok().json(ImageBody::of(&image)))
}

/// DELETE.
pub(super) async fn delete(
    caller: AuthenticatedCaller,
    PathSegment(id): PathSegment<ImageId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let _turn = api.images.changing.lock().await;
    let image = owned(&api, &caller, id).await?;
    let all = first(CAMPAIGNS_MAX);
    let campaigns = api.store.campaigns_of(caller.customer, all).await?;
    let uses = |source: &ImageSource| match source {
        ImageSource::Stored { image, .. } => *image == id,
        ImageSource::Elsewhere(_) => false,
    };
    let mut campaigns = campaigns.items.iter();
    if campaigns.any(|it| !it.state.is_final() && uses(&it.source)) {
        return Err(ApiError::image_in_use());
    }
    api.commits.commit(removal_of(&[image])).await?;
    let removed = api.images.files.remove(id).await;
    removed.map_err(ApiError::internal)?;
    Ok(HttpResponse::NoContent().finish())
}

/// Removes the images and campaigns of a customer that is being removed.
pub(super) async fn remove_all(api: &Api, customer: &CustomerId) -> Result<(), ApiError> {
    campaigns::remove_all(api, customer).await?;
    let images = api.store.images_of(customer.clone(), first(IMAGES_MAX));
    let images = images.await?.items;
    if !images.is_empty() {
        api.commits.commit(removal_of(&images)).await?;
    }
    for image in images {
        let removed = api.images.files.remove(image.id).await;
        removed.map_err(ApiError::internal)?;
    }
    Ok(())
}

/// The bytes of the images of a customer.
async fn stored_bytes(api: &Api, customer: &CustomerId) -> Result<u64, ApiError> {
    let images = api.store.images_of(customer.clone(), first(IMAGES_MAX));
    let images = images.await?;
    if images.total >= u64::from(IMAGES_MAX) {
        return Err(ApiError::image_quota(api.images.quota_bytes));
    }
    Ok(images.items.iter().map(|image| image.bytes).sum())
}

fn first(size: u32) -> PageRequest {
    PageRequest { number: 1, size }
}

/// An image of the caller; for those of other customers the answer is 404.
async fn owned(
    api: &Api,
    caller: &AuthenticatedCaller,
    id: ImageId,
) -> Result<FirmwareImage, ApiError> {
    let image = api.store.image(caller.customer.clone(), id).await?;
    image.ok_or_else(|| ApiError::unknown("image"))
}

impl ImageBody {
    pub(super) fn of(image: &FirmwareImage) -> Self {
        Self {
            id: image.id.to_string(),
            size: image.bytes,
            sha256: hex(&image.sha256),
            name: image.name.as_deref().map(str::to_owned),
            version: image.version.as_deref().map(str::to_owned),
            created: image.created_at.iso().to_string(),
        }
    }
}

/// Bytes in lower-case hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
