//! Which queries answer the questions of firmware images and campaigns?

use engine::firmware::FirmwareImage;
use engine::firmware::campaign::{Campaign, CampaignCounts, CampaignDevice};
use engine::firmware::runner::{CampaignLook, WantedRows};
use engine::ids::{CampaignId, CustomerId, ImageId};
use engine::query::{Page, PageRequest};

use crate::postgres::PostgresStore;
use crate::{FirmwareReads, ReadAnswer};

impl FirmwareReads for PostgresStore {
    fn image(&self, _customer: CustomerId, _id: ImageId) -> ReadAnswer<Option<FirmwareImage>> {
        unimplemented!()
    }

    fn images_of(
        &self,
        _customer: CustomerId,
        _page: PageRequest,
    ) -> ReadAnswer<Page<FirmwareImage>> {
        unimplemented!()
    }

    fn images(&self) -> ReadAnswer<Vec<FirmwareImage>> {
        unimplemented!()
    }

    fn campaign(&self, _customer: CustomerId, _id: CampaignId) -> ReadAnswer<Option<Campaign>> {
        unimplemented!()
    }

    fn campaigns_of(
        &self,
        _customer: CustomerId,
        _page: PageRequest,
    ) -> ReadAnswer<Page<Campaign>> {
        unimplemented!()
    }

    fn open_campaigns(&self) -> ReadAnswer<Vec<Campaign>> {
        unimplemented!()
    }

    fn campaign_devices(
        &self,
        _id: CampaignId,
        _page: PageRequest,
    ) -> ReadAnswer<Vec<CampaignDevice>> {
        unimplemented!()
    }

    fn campaign_counts(&self, _id: CampaignId) -> ReadAnswer<CampaignCounts> {
        unimplemented!()
    }

    fn campaign_look(&self, _id: CampaignId, _wanted: WantedRows) -> ReadAnswer<CampaignLook> {
        unimplemented!()
    }
}
