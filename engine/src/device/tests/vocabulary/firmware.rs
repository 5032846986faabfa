//! The vocabulary of firmware updates: a campaign begins and ends the update of the device.

use crate::device::Device;
use crate::device::update::UpdateEnd;
use crate::firmware::ImageUnreadable;
use crate::firmware::campaign::CampaignDevice;
use crate::firmware::campaign::NewUpdate;
use crate::firmware::image_key::ImageKey;
use crate::firmware::update::{DeliveryMethod, FirmwareUpdate, UpdateImage, UpdateStep};
use crate::ids::{CampaignId, ImageId};

use super::rendering::Lines;
use super::{DeviceFixture, START, without_record};

/// Where devices download images.
pub(in crate::device::tests) const DOWNLOADS: &str = "http://10.0.0.9";

/// The objects of a device that can be updated.
pub(in crate::device::tests) const UPDATABLE: &str = "</1/0>,</3/0>,</5/0>";

impl DeviceFixture {
    /// The store has this part of the image, or cannot be read.
    pub(in crate::device::tests) fn image(
        &mut self,
        read: Result<Vec<u8>, ImageUnreadable>,
    ) -> Lines {
        let sent = self.step(|device, m, out| device.handle_image(m, read, out));
        without_record(sent.1)
    }

    /// A campaign begins the update of the device; its record is left out of the effects.
    pub(in crate::device::tests) fn begin_update(&mut self, retries: u8) -> Lines {
        self.begin_update_of(7, retries)
    }

    /// The same of another campaign.
    pub(in crate::device::tests) fn begin_update_of(&mut self, id: u8, retries: u8) -> Lines {
        self.begin_update_with((id, retries), (900, DeliveryMethod::Auto))
    }

    /// A campaign begins to send the device an image of this length.
    pub(in crate::device::tests) fn begin_push(&mut self, bytes: u64) -> Lines {
        self.begin_update_with((7, 0), (bytes, DeliveryMethod::Push))
    }

    fn begin_update_with(
        &mut self,
        (id, retries): (u8, u8),
        (bytes, method): (u64, DeliveryMethod),
    ) -> Lines {
        let update = FirmwareUpdate {
            campaign: CampaignId::from_bytes([id; 16]),
            place: 3,
            image: UpdateImage::Stored {
                image: ImageId::from_bytes([4; 16]),
                bytes,
                key: ImageKey::of(&[1; 16], 3),
            },
            method,
            retries_left: retries,
            step: UpdateStep::Offers,
            version_before: None,
        };
        let row = CampaignDevice::new(super::profile().device, START);
        let new = NewUpdate { update, row };
        let begun = self.step(|device, m, out| device.begin_update(m, new, out));
        without_record(begun.1)
    }

    /// The campaign of the device ended; its record is left out of the effects.
    pub(in crate::device::tests) fn end_update(&mut self, end: UpdateEnd) -> Lines {
        let campaign = CampaignId::from_bytes([7; 16]);
        let ended = self.step(|device, m, out| device.end_update(m, (campaign, end), out));
        without_record(ended.1)
    }

    /// The customer removes the device; its record is left out of the effects.
    pub(in crate::device::tests) fn removed(&mut self) -> Lines {
        without_record(self.step(Device::retire).1)
    }
}
