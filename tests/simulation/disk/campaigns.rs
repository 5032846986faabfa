//! What is stored of firmware campaigns: each campaign, and its devices by place.

use std::collections::BTreeMap;

use engine::change::Counter;
use engine::firmware::campaign::{Campaign, CampaignCounts, CampaignDevice, ImageSource};
use engine::firmware::runner::{CampaignLook, WantedRows};
use engine::firmware::update::UpdateState;
use engine::ids::{CampaignId, ImageId};
use engine::limits::CAMPAIGN_ROWS_READ;

use super::{BatchSummary, Durable};

/// Where devices download stored images.
pub(crate) const IMAGES_AT: &str = "http://images.example";

/// The bytes of a stored image: up to some blocks of the longest, or many of the shortest.
pub(crate) fn stored_image(image: ImageId) -> Vec<u8> {
    let id = image.as_bytes();
    let length = match id[15] % 8 {
        0 => 2_500,
        few => 40 * usize::from(few),
    };
    let byte_at = |(at, byte): (usize, &u8)| byte ^ (at % 251) as u8;
    id.iter()
        .cycle()
        .enumerate()
        .map(byte_at)
        .take(length)
        .collect()
}

/// All campaigns with their devices.
#[derive(Default)]
pub(super) struct Campaigns {
    campaigns: BTreeMap<CampaignId, Campaign>,
    rows: BTreeMap<CampaignId, BTreeMap<u32, CampaignDevice>>,
}

/// What a batch did to a device of a campaign.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowMove {
    pub(crate) campaign: CampaignId,
    pub(crate) place: u32,
    /// The state before the batch, if the device was in the campaign.
    pub(crate) from: Option<UpdateState>,
    pub(crate) to: UpdateState,
}

impl Campaigns {
    pub(super) fn put(&mut self, campaign: Campaign) {
        self.campaigns.insert(campaign.id, campaign);
    }

    pub(super) fn put_row(
        &mut self,
        (campaign, place): (CampaignId, u32),
        row: CampaignDevice,
        done: &mut BatchSummary,
    ) {
        let to = row.state;
        let rows = self.rows.entry(campaign).or_default();
        let from = rows.insert(place, row).map(|before| before.state);
        done.rows.push(RowMove {
            campaign,
            place,
            from,
            to,
        });
    }

    /// Whether the device at a place is exactly this.
    pub(super) fn has_row(&self, campaign: CampaignId, place: u32, row: &CampaignDevice) -> bool {
        let rows = self.rows.get(&campaign);
        rows.and_then(|rows| rows.get(&place)) == Some(row)
    }
}

impl Durable {
    /// A campaign.
    pub(crate) fn campaign(&self, id: CampaignId) -> Option<&Campaign> {
        self.campaigns.campaigns.get(&id)
    }

    /// The campaigns that the runner has something left to do with, oldest first.
    pub(crate) fn open_campaigns(&self) -> impl Iterator<Item = &Campaign> {
        self.campaigns().filter(|campaign| campaign.is_open())
    }

    /// All campaigns.
    pub(crate) fn campaigns(&self) -> impl Iterator<Item = &Campaign> {
        self.campaigns.campaigns.values()
    }

    /// The campaign whose image has a URI.
    pub(crate) fn campaign_with(&self, uri: &str) -> Option<&Campaign> {
        let is_it = |campaign: &&Campaign| match &campaign.source {
            ImageSource::Elsewhere(of_campaign) => **of_campaign == *uri,
            ImageSource::Stored { .. } => {
                uri.starts_with(&format!("{IMAGES_AT}/firmware/{}/", campaign.id))
            }
        };
        self.campaigns().find(is_it)
    }

    /// The campaign that sends an image.
    pub(crate) fn campaign_with_image(&self, bytes: &[u8]) -> Option<&Campaign> {
        let is_it = |campaign: &&Campaign| match &campaign.source {
            ImageSource::Stored { image, .. } => stored_image(*image) == bytes,
            ImageSource::Elsewhere(_) => false,
        };
        self.campaigns().find(is_it)
    }

    /// The states of the devices of a campaign.
    pub(crate) fn campaign_states(&self, id: CampaignId) -> impl Iterator<Item = UpdateState> {
        let rows = self.campaigns.rows.get(&id).into_iter().flatten();
        rows.map(|(_, row)| row.state)
    }

    /// How many devices of a campaign are in each state, as it is counted.
    pub(crate) fn campaign_counts(&self, campaign: CampaignId) -> CampaignCounts {
        CampaignCounts::restored(UpdateState::ALL.map(|state| {
            let count = self.count(&Counter::CampaignDevices { campaign, state });
            u32::try_from(count).expect("a campaign has no fewer than no devices in a state")
        }))
    }

    /// What a campaign sees of its devices.
    pub(crate) fn campaign_look(&self, id: CampaignId, wanted: WantedRows) -> CampaignLook {
        let rows = self.campaigns.rows.get(&id).into_iter();
        let rows = rows.flat_map(|rows| rows.range(wanted.first()..));
        let rows = rows.filter(|(_, row)| wanted.includes(row.state));
        let rows = rows.map(|(place, row)| (*place, row.clone()));
        CampaignLook {
            counts: self.campaign_counts(id),
            rows: rows.take(CAMPAIGN_ROWS_READ).collect(),
        }
    }
}
