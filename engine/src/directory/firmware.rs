//! Decisions about images and campaigns that no actor owns: how images are stored and removed, what
//! a new campaign consists of, how the counts of a campaign change.

use crate::change::{Batch, Change, Counter, CounterDelta, Expect, UniqueName};
use crate::firmware::FirmwareImage;
use crate::firmware::campaign::CampaignDevice;
use crate::firmware::update::UpdateState;
use crate::ids::{CampaignId, CustomerId, DeviceId};
use crate::limits::CAMPAIGN_ROWS_COMMITTED;
use crate::moment::Timestamp;

/// The batch that stores an image, unless its customer was removed meanwhile.
pub fn creation_of(image: FirmwareImage) -> Batch {
    Batch {
        expects: vec![Expect::Taken(UniqueName::Customer(image.customer.clone()))],
        changes: vec![Change::PutImage(Box::new(image))],
        ..Batch::default()
    }
}

/// The batch that removes images.
pub fn removal_of(images: &[FirmwareImage]) -> Batch {
    let removal = |image: &FirmwareImage| Change::RemoveImage {
        customer: image.customer.clone(),
        image: image.id,
    };
    Batch {
        changes: images.iter().map(removal).collect(),
        ..Batch::default()
    }
}

/// The batch that removes some of the devices of a campaign.
pub fn removal_of_devices(campaign: CampaignId) -> Batch {
    Batch {
        changes: vec![Change::RemoveCampaignDevices(campaign)],
        ..Batch::default()
    }
}

/// The batch that removes a campaign whose devices are gone.
pub fn removal_of_campaign(customer: CustomerId, campaign: CampaignId) -> Batch {
    Batch {
        changes: vec![Change::RemoveCampaign { customer, campaign }],
        ..Batch::default()
    }
}

/// The batches that store the devices of a new campaign, before the campaign itself.
pub fn devices_of(
    now: Timestamp,
    campaign: CampaignId,
    devices: Vec<DeviceId>,
) -> impl Iterator<Item = Batch> {
    let mut rows = (0..).zip(devices).peekable();
    std::iter::from_fn(move || {
        rows.peek()?;
        let mut batch = Batch::default();
        for (place, device) in rows.by_ref().take(CAMPAIGN_ROWS_COMMITTED) {
            let row = CampaignDevice::new(device, now);
            put_device(&mut batch, (campaign, place), None, row);
        }
        Some(batch)
    })
}

/// Adds to a batch that a device of a campaign is now in this state, and before in another.
pub fn put_device(
    batch: &mut Batch,
    (campaign, place): (CampaignId, u32),
    was: Option<UpdateState>,
    row: CampaignDevice,
) {
    batch.adds.extend(moved(campaign, was, row.state));
    batch.changes.push(Change::PutCampaignDevice {
        campaign,
        place,
        row: Box::new(row),
    });
}

/// How the counts of a campaign change with the state of a device.
pub fn moved(
    campaign: CampaignId,
    was: Option<UpdateState>,
    state: UpdateState,
) -> Vec<CounterDelta> {
    if was == Some(state) {
        return Vec::new();
    }
    let count = |state, delta| CounterDelta {
        counter: Counter::CampaignDevices { campaign, state },
        delta,
    };
    let left = was.map(|was| count(was, -1));
    left.into_iter().chain([count(state, 1)]).collect()
}
