//! What is the update of one device, as it is stored with the device?

use crate::firmware::image_key::ImageKey;
use crate::ids::{CampaignId, ImageId};

/// The state of a device in a campaign.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum UpdateState {
    /// It has not begun.
    Pending,
    /// It is to get the image, or gets it.
    Transferring,
    /// It has the image.
    Downloaded,
    /// It installs the image.
    Updating,
    /// It runs the image.
    Succeeded,
    /// It does not.
    Failed,
    /// It was not given the image.
    Skipped,
}

impl UpdateState {
    /// Every state, in the order of the variants.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Transferring,
        Self::Downloaded,
        Self::Updating,
        Self::Succeeded,
        Self::Failed,
        Self::Skipped,
    ];

    /// Whether the device is under way.
    pub fn is_active(self) -> bool {
        match self {
            Self::Transferring | Self::Downloaded | Self::Updating => true,
            Self::Pending | Self::Succeeded | Self::Failed | Self::Skipped => false,
        }
    }

    /// Whether the state never changes again.
    pub fn is_final(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed | Self::Skipped => true,
            Self::Pending | Self::Transferring | Self::Downloaded | Self::Updating => false,
        }
    }
}

/// How devices get the image (resource `/5/0/9` says what a device can do).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DeliveryMethod {
    /// As each device can.
    Auto,
    /// Each device downloads it from a URI.
    Pull,
    /// Each device is sent it (block-wise Write of `/5/0/0`).
    Push,
}

/// The update of a device.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FirmwareUpdate {
    /// The campaign.
    pub campaign: CampaignId,
    /// The place of the device in the campaign.
    pub place: u32,
    /// Where the image is.
    pub image: UpdateImage,
    /// How the device gets it.
    pub method: DeliveryMethod,
    /// How often the device may try again.
    pub retries_left: u8,
    /// How far it is.
    pub step: UpdateStep,
    /// The version of the firmware (`/3/0/3`) that the device had before it was told to install the
    /// image; none until then, or if the device does not say it.
    pub version_before: Option<Box<str>>,
}

/// Where the image of an update is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum UpdateImage {
    /// The service has it.
    Stored {
        /// The image.
        image: ImageId,
        /// Its length.
        bytes: u64,
        /// The part of the path that only this device is told.
        key: ImageKey,
    },
    /// The device is given this URI of another server.
    Elsewhere(Box<str>),
}

/// How far the update of a device is. Each step is stored before the request that follows from it
/// leaves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UpdateStep {
    /// It is to be found out how the device gets the image, or the device is to be given the URI.
    Offers,
    /// The device is sent the image.
    Pushes,
    /// The device accepted the URI, or was sent the whole image.
    Downloads,
    /// The device has the image, and is to install it.
    Applies,
    /// The device accepted to install it.
    Installs,
    /// The device registered since: it may have restarted.
    Verifies,
}

impl UpdateStep {
    /// The state of a device in this step.
    pub fn state(self) -> UpdateState {
        match self {
            Self::Offers | Self::Pushes | Self::Downloads => UpdateState::Transferring,
            Self::Applies => UpdateState::Downloaded,
            Self::Installs | Self::Verifies => UpdateState::Updating,
        }
    }
}

impl FirmwareUpdate {
    /// The length of the image, if it is known.
    pub fn image_bytes(&self) -> Option<u64> {
        match self.image {
            UpdateImage::Stored { bytes, .. } => Some(bytes),
            UpdateImage::Elsewhere(_) => None,
        }
    }
}
