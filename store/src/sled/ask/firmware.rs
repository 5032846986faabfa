//! Which firmware images and campaigns are there, and what became of the devices of a campaign?

use engine::firmware::FirmwareImage;
use engine::firmware::campaign::{Campaign, CampaignCounts, CampaignDevice, ImageSource};
use engine::firmware::download::OfferedImage;
use engine::firmware::runner::{CampaignLook, WantedRows};
use engine::firmware::update::UpdateState;
use engine::ids::{CampaignId, CustomerId, ImageId};
use engine::limits::CAMPAIGN_ROWS_READ;
use engine::query::{Page, PageRequest};
use sled::Db;

use super::{count, load, newest_page, page_of_keys, rows_of};
use crate::record::Unreadable;
use crate::record::firmware::{read_campaign, read_campaign_device, read_image};
use crate::sled::fault::Fault;
use crate::sled::key;

/// An image of a customer.
pub(in crate::sled) fn image(
    db: &Db,
    customer: &CustomerId,
    id: ImageId,
) -> Result<Option<FirmwareImage>, Fault> {
    load(db, &key::firmware::image(customer, id), read_image)
}

/// The images of a customer, newest first. Their quota bounds them.
pub(in crate::sled) fn images_of(
    db: &Db,
    customer: &CustomerId,
    page: PageRequest,
) -> Result<Page<FirmwareImage>, Fault> {
    newest_page(db, &key::firmware::images_of(customer), page, read_image)
}

/// Every image.
pub(in crate::sled) fn images(db: &Db) -> Result<Vec<FirmwareImage>, Fault> {
    let mut images = Vec::new();
    for key in rows_of(db, &key::firmware::images()).keys() {
        images.extend(load(db, &key?, read_image)?);
    }
    Ok(images)
}

/// A campaign of a customer.
pub(in crate::sled) fn campaign(
    db: &Db,
    customer: &CustomerId,
    id: CampaignId,
) -> Result<Option<Campaign>, Fault> {
    load(db, &key::firmware::campaign(customer, id), read_campaign)
}

/// The campaigns of a customer, newest first. A customer has a bounded number of them.
pub(in crate::sled) fn campaigns_of(
    db: &Db,
    customer: &CustomerId,
    page: PageRequest,
) -> Result<Page<Campaign>, Fault> {
    let campaigns = key::firmware::campaigns_of(customer);
    newest_page(db, &campaigns, page, read_campaign)
}

/// The stored image of a campaign that has not ended.
pub(in crate::sled) fn offered_image(
    db: &Db,
    id: CampaignId,
) -> Result<Option<OfferedImage>, Fault> {
    let Some(customer) = db.get(key::firmware::open(id))? else {
        return Ok(None);
    };
    let customer = customer_in(&customer)?;
    let Some(campaign) = campaign(db, &customer, id)? else {
        return Ok(None);
    };
    let ImageSource::Stored { image: stored, .. } = campaign.source else {
        return Ok(None);
    };
    let offered = image(db, &customer, stored)?;
    Ok(offered.map(|image| OfferedImage {
        image,
        secret: campaign.secret,
    }))
}

/// The campaigns that have not ended, the oldest first.
pub(in crate::sled) fn open_campaigns(db: &Db) -> Result<Vec<Campaign>, Fault> {
    let mut open = Vec::new();
    for row in rows_of(db, &key::firmware::all_open()) {
        let (key, customer) = row?;
        let id = key::last_id(&key).ok_or(Unreadable::Damaged("an index of campaigns"))?;
        let id = CampaignId::from_bytes(id);
        open.extend(campaign(db, &customer_in(&customer)?, id)?);
    }
    Ok(open)
}

/// A page of the devices of a campaign.
pub(in crate::sled) fn campaign_devices(
    db: &Db,
    id: CampaignId,
    page: PageRequest,
) -> Result<Vec<CampaignDevice>, Fault> {
    let devices = key::firmware::devices_of(id);
    let mut items = Vec::new();
    for key in page_of_keys(db, &devices, page.skip(), page.size)? {
        items.extend(load(db, &key, read_campaign_device)?);
    }
    Ok(items)
}

/// How many devices of a campaign are in each state.
pub(in crate::sled) fn campaign_counts(db: &Db, id: CampaignId) -> Result<CampaignCounts, Fault> {
    let mut counts = [0; UpdateState::ALL.len()];
    for (counted, state) in counts.iter_mut().zip(UpdateState::ALL) {
        let found = count(db, &key::firmware::counted(id, state))?;
        *counted = u32::try_from(found).unwrap_or(u32::MAX);
    }
    Ok(CampaignCounts::restored(counts))
}

/// What a campaign sees of its devices.
pub(in crate::sled) fn campaign_look(
    db: &Db,
    id: CampaignId,
    wanted: WantedRows,
) -> Result<CampaignLook, Fault> {
    let counts = campaign_counts(db, id)?;
    let first = key::firmware::device(id, wanted.first());
    let end = key::behind(key::firmware::devices_of(id));
    let mut rows = Vec::new();
    for key in db.range(first..end).keys() {
        let key = key?;
        let Some(row) = load(db, &key, read_campaign_device)? else {
            continue;
        };
        if wanted.includes(row.state) {
            let place = key::firmware::place_of(&key);
            rows.push((place.ok_or(Unreadable::Damaged("a place"))?, row));
        }
        if rows.len() >= CAMPAIGN_ROWS_READ {
            break;
        }
    }
    Ok(CampaignLook { counts, rows })
}

fn customer_in(row: &[u8]) -> Result<CustomerId, Fault> {
    let text = std::str::from_utf8(row).map_err(|_| Unreadable::Damaged("no customer"))?;
    let customer = CustomerId::parse(text);
    Ok(customer.map_err(|_| Unreadable::Damaged("no customer"))?)
}
