//! How are firmware images, campaigns and the update of a device stored?

use engine::firmware::FirmwareImage;
use engine::firmware::campaign::{Campaign, CampaignDevice, CampaignRules, ImageSource};
use engine::firmware::image_key::{IMAGE_KEY_BYTES, ImageKey};
use engine::firmware::update::{FirmwareUpdate, UpdateImage};
use engine::ids::{CampaignId, ImageId};
use engine::moment::Timestamp;
use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};

use super::customer::customer_id;
use super::profile::device_id;
use super::{Unreadable, code, read, write};

const VERSION: u8 = 1;

#[derive(Decode, Encode)]
#[cbor(array)]
struct ImageV1<'a> {
    #[n(0)]
    id: ByteArray<16>,
    #[b(1)]
    customer: &'a str,
    #[b(2)]
    name: Option<&'a str>,
    #[b(3)]
    version: Option<&'a str>,
    #[n(4)]
    created_at_ms: i64,
    #[n(5)]
    bytes: u64,
    #[n(6)]
    sha256: ByteArray<32>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct CampaignV1<'a> {
    #[n(0)]
    id: ByteArray<16>,
    #[b(1)]
    customer: &'a str,
    #[n(2)]
    state: u8,
    #[n(3)]
    created_at_ms: i64,
    /// Absent if devices are given the URI of another server.
    #[n(4)]
    image: Option<ByteArray<16>>,
    #[n(5)]
    image_bytes: u64,
    /// Empty if the service has the image.
    #[b(6)]
    uri: &'a str,
    #[n(7)]
    secret: ByteArray<16>,
    #[n(8)]
    method: u8,
    #[n(9)]
    devices: u32,
    #[n(10)]
    concurrency: u32,
    #[n(11)]
    rate_per_minute: Option<u32>,
    #[n(12)]
    retries: u8,
    #[n(13)]
    canary_percent: Option<u8>,
    #[n(14)]
    halt_at_failed_percent: Option<u8>,
    #[n(15)]
    not_before_ms: Option<i64>,
    #[n(16)]
    not_after_ms: i64,
    #[n(17)]
    failures_accepted: u32,
    #[n(18)]
    is_stopping: bool,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct CampaignDeviceV1<'a> {
    #[b(0)]
    device: &'a str,
    #[n(1)]
    state: u8,
    #[n(2)]
    bytes: u64,
    #[b(3)]
    reason: Option<&'a str>,
    #[n(4)]
    updated_at_ms: i64,
}

/// The update of a device, as a part of its record.
#[derive(Decode, Encode)]
#[cbor(array)]
pub(super) struct FirmwareUpdateV1<'a> {
    #[n(0)]
    campaign: ByteArray<16>,
    #[n(1)]
    place: u32,
    /// Empty if the service has the image.
    #[b(2)]
    uri: &'a str,
    #[n(3)]
    image_bytes: u64,
    #[n(4)]
    retries_left: u8,
    #[n(5)]
    step: u8,
    #[n(6)]
    method: u8,
    /// Absent if the device is given the URI of another server.
    #[n(7)]
    image: Option<ByteArray<16>>,
    #[n(8)]
    key: Option<ByteArray<IMAGE_KEY_BYTES>>,
    #[b(9)]
    version_before: Option<&'a str>,
}

/// Writes an image.
pub(crate) fn write_image(image: &FirmwareImage) -> Vec<u8> {
    let record = ImageV1 {
        id: ByteArray::from(*image.id.as_bytes()),
        customer: image.customer.as_str(),
        name: image.name.as_deref(),
        version: image.version.as_deref(),
        created_at_ms: image.created_at.as_ms(),
        bytes: image.bytes,
        sha256: ByteArray::from(image.sha256),
    };
    write(VERSION, &record)
}

/// Reads an image.
pub(crate) fn read_image(value: &[u8]) -> Result<FirmwareImage, Unreadable> {
    let record: ImageV1<'_> = read(VERSION, value)?;
    Ok(FirmwareImage {
        id: ImageId::from_bytes(record.id.into()),
        customer: customer_id(record.customer)?,
        name: record.name.map(Into::into),
        version: record.version.map(Into::into),
        created_at: Timestamp::from_ms(record.created_at_ms),
        bytes: record.bytes,
        sha256: record.sha256.into(),
    })
}

/// Writes a campaign.
pub(crate) fn write_campaign(campaign: &Campaign) -> Vec<u8> {
    let rules = &campaign.rules;
    let (image, image_bytes, uri) = match &campaign.source {
        ImageSource::Stored { image, bytes } => (Some(*image), *bytes, ""),
        ImageSource::Elsewhere(uri) => (None, 0, &**uri),
    };
    let record = CampaignV1 {
        id: ByteArray::from(*campaign.id.as_bytes()),
        customer: campaign.customer.as_str(),
        state: code::of_campaign_state(campaign.state),
        created_at_ms: campaign.created_at.as_ms(),
        image: image.map(|image| ByteArray::from(*image.as_bytes())),
        image_bytes,
        uri,
        secret: ByteArray::from(campaign.secret),
        method: code::of_delivery_method(campaign.method),
        devices: campaign.devices,
        concurrency: rules.concurrency,
        rate_per_minute: rules.rate_per_minute,
        retries: rules.retries,
        canary_percent: rules.canary_percent,
        halt_at_failed_percent: rules.halt_at_failed_percent,
        not_before_ms: rules.not_before.map(Timestamp::as_ms),
        not_after_ms: rules.not_after.as_ms(),
        failures_accepted: campaign.failures_accepted,
        is_stopping: campaign.is_stopping,
    };
    write(VERSION, &record)
}

/// Reads a campaign.
pub(crate) fn read_campaign(value: &[u8]) -> Result<Campaign, Unreadable> {
    let record: CampaignV1<'_> = read(VERSION, value)?;
    Ok(Campaign {
        id: CampaignId::from_bytes(record.id.into()),
        customer: customer_id(record.customer)?,
        state: code::campaign_state(record.state)?,
        created_at: Timestamp::from_ms(record.created_at_ms),
        source: match record.image {
            Some(image) => ImageSource::Stored {
                image: ImageId::from_bytes(image.into()),
                bytes: record.image_bytes,
            },
            None => ImageSource::Elsewhere(record.uri.into()),
        },
        secret: record.secret.into(),
        method: code::delivery_method(record.method)?,
        devices: record.devices,
        rules: CampaignRules {
            concurrency: record.concurrency,
            rate_per_minute: record.rate_per_minute,
            retries: record.retries,
            canary_percent: record.canary_percent,
            halt_at_failed_percent: record.halt_at_failed_percent,
            not_before: record.not_before_ms.map(Timestamp::from_ms),
            not_after: Timestamp::from_ms(record.not_after_ms),
        },
        failures_accepted: record.failures_accepted,
        is_stopping: record.is_stopping,
    })
}

/// Writes a device of a campaign.
pub(crate) fn write_campaign_device(device: &CampaignDevice) -> Vec<u8> {
    let record = CampaignDeviceV1 {
        device: device.device.as_str(),
        state: code::of_update_state(device.state),
        bytes: device.bytes,
        reason: device.reason.as_deref(),
        updated_at_ms: device.updated_at.as_ms(),
    };
    write(VERSION, &record)
}

/// Reads a device of a campaign.
pub(crate) fn read_campaign_device(value: &[u8]) -> Result<CampaignDevice, Unreadable> {
    let record: CampaignDeviceV1<'_> = read(VERSION, value)?;
    Ok(CampaignDevice {
        device: device_id(record.device)?,
        state: code::update_state(record.state)?,
        bytes: record.bytes,
        reason: record.reason.map(Into::into),
        updated_at: Timestamp::from_ms(record.updated_at_ms),
    })
}

/// The update of a device as it is stored.
pub(super) fn update_record(update: &FirmwareUpdate) -> FirmwareUpdateV1<'_> {
    let (image, key, uri) = match &update.image {
        UpdateImage::Stored { image, key, .. } => (Some(image), Some(key), ""),
        UpdateImage::Elsewhere(uri) => (None, None, &**uri),
    };
    FirmwareUpdateV1 {
        campaign: ByteArray::from(*update.campaign.as_bytes()),
        place: update.place,
        uri,
        image_bytes: update.image_bytes().unwrap_or_default(),
        retries_left: update.retries_left,
        step: code::of_update_step(update.step),
        method: code::of_delivery_method(update.method),
        image: image.map(|image| ByteArray::from(*image.as_bytes())),
        key: key.map(|key| ByteArray::from(*key.as_bytes())),
        version_before: update.version_before.as_deref(),
    }
}

/// The update of a device as it was stored.
pub(super) fn read_update(record: &FirmwareUpdateV1<'_>) -> Result<FirmwareUpdate, Unreadable> {
    let image = match (record.image, record.key) {
        (Some(image), Some(key)) => UpdateImage::Stored {
            image: ImageId::from_bytes(image.into()),
            bytes: record.image_bytes,
            key: ImageKey::from_bytes(key.into()),
        },
        (Some(_), None) => return Err(Unreadable::Damaged("the key of an image")),
        (None, _) => UpdateImage::Elsewhere(record.uri.into()),
    };
    Ok(FirmwareUpdate {
        campaign: CampaignId::from_bytes(record.campaign.into()),
        place: record.place,
        image,
        method: code::delivery_method(record.method)?,
        retries_left: record.retries_left,
        step: code::update_step(record.step)?,
        version_before: record.version_before.map(Into::into),
    })
}
