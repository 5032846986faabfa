//! What are the keys of firmware images and campaigns?
//!
//! Images and campaigns of a customer are ordered by their ids, and so by their age.

use engine::firmware::update::UpdateState;
use engine::ids::{CampaignId, CustomerId, ImageId};

use super::{Builder, Key, Table, append};
use crate::record::code;

/// An image of a customer.
pub(crate) fn image(customer: &CustomerId, image: ImageId) -> Key {
    append(images_of(customer), image.as_bytes())
}

/// The prefix of the keys of the images of a customer.
pub(crate) fn images_of(customer: &CustomerId) -> Key {
    Builder::of(Table::FirmwareImage)
        .text(customer.as_str())
        .end()
}

/// The prefix of the keys of all images.
pub(crate) fn images() -> Key {
    Builder::of(Table::FirmwareImage).end()
}

/// A campaign of a customer.
pub(crate) fn campaign(customer: &CustomerId, campaign: CampaignId) -> Key {
    append(campaigns_of(customer), campaign.as_bytes())
}

/// The prefix of the keys of the campaigns of a customer.
pub(crate) fn campaigns_of(customer: &CustomerId) -> Key {
    Builder::of(Table::Campaign).text(customer.as_str()).end()
}

/// Marks a campaign that its runner continues after a start; the row has its customer.
pub(crate) fn open(campaign: CampaignId) -> Key {
    append(all_open(), campaign.as_bytes())
}

/// The prefix of the keys that mark such campaigns.
pub(crate) fn all_open() -> Key {
    Builder::of(Table::OpenCampaign).end()
}

/// The device at a place of a campaign.
pub(crate) fn device(campaign: CampaignId, place: u32) -> Key {
    append(devices_of(campaign), &place.to_be_bytes())
}

/// The prefix of the keys of the devices of a campaign.
pub(crate) fn devices_of(campaign: CampaignId) -> Key {
    append(
        Builder::of(Table::CampaignDevice).end(),
        campaign.as_bytes(),
    )
}

/// The place of a device, from its key.
pub(crate) fn place_of(device: &[u8]) -> Option<u32> {
    device.last_chunk().copied().map(u32::from_be_bytes)
}

/// How many devices of a campaign are in a state.
pub(crate) fn counted(campaign: CampaignId, state: UpdateState) -> Key {
    Builder::of(Table::CampaignDevicesCounted)
        .bytes(campaign.as_bytes())
        .byte(code::of_update_state(state))
        .end()
}
