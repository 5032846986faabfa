//! What is read of firmware images and campaigns?

use engine::firmware::FirmwareImage;
use engine::firmware::campaign::{Campaign, CampaignCounts, CampaignDevice};
use engine::firmware::runner::{CampaignLook, WantedRows};
use engine::ids::{CampaignId, CustomerId, ImageId};
use engine::query::{Page, PageRequest};

use crate::ReadAnswer;

/// The queries of images and campaigns.
pub trait FirmwareReads: Send + Sync {
    /// An image of a customer.
    fn image(&self, customer: CustomerId, id: ImageId) -> ReadAnswer<Option<FirmwareImage>>;

    /// The images of a customer, newest first.
    fn images_of(&self, customer: CustomerId, page: PageRequest)
    -> ReadAnswer<Page<FirmwareImage>>;

    /// Every image; read at the start.
    fn images(&self) -> ReadAnswer<Vec<FirmwareImage>>;

    /// A campaign of a customer.
    fn campaign(&self, customer: CustomerId, id: CampaignId) -> ReadAnswer<Option<Campaign>>;

    /// The campaigns of a customer, newest first.
    fn campaigns_of(&self, customer: CustomerId, page: PageRequest) -> ReadAnswer<Page<Campaign>>;

    /// The campaigns that have not ended, the oldest first; read at the start.
    fn open_campaigns(&self) -> ReadAnswer<Vec<Campaign>>;

    /// The devices of a campaign, in the order in which they begin.
    fn campaign_devices(
        &self,
        id: CampaignId,
        page: PageRequest,
    ) -> ReadAnswer<Vec<CampaignDevice>>;

    /// How many devices of a campaign are in each state.
    fn campaign_counts(&self, id: CampaignId) -> ReadAnswer<CampaignCounts>;

    /// What a campaign sees of its devices.
    fn campaign_look(&self, id: CampaignId, wanted: WantedRows) -> ReadAnswer<CampaignLook>;
}
