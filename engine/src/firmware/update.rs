//! What is the update of one device, as it is stored with the device?

use crate::ids::CampaignId;

/// The state of a device in a campaign.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum UpdateState {
    /// It has not begun.
    Pending,
    /// It is to download the image, or downloads it.
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

/// The update of a device.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FirmwareUpdate {
    /// The campaign.
    pub campaign: CampaignId,
    /// The place of the device in the campaign.
    pub place: u32,
    /// Where the device gets the image.
    pub uri: Box<str>,
    /// The length of the image, if it is known.
    pub image_bytes: Option<u64>,
    /// How often the device may try again.
    pub retries_left: u8,
    /// How far it is.
    pub step: UpdateStep,
}

/// How far the update of a device is. Each step is stored before the request that follows from it
/// leaves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UpdateStep {
    /// The device is to be given the URI.
    Offers,
    /// The device accepted the URI.
    Downloads,
    /// The device has the image, and is to install it.
    Applies,
    /// The device accepted to install it.
    Installs,
}

impl UpdateStep {
    /// The state of a device in this step.
    pub fn state(self) -> UpdateState {
        match self {
            Self::Offers | Self::Downloads => UpdateState::Transferring,
            Self::Applies => UpdateState::Downloaded,
            Self::Installs => UpdateState::Updating,
        }
    }
}
