//! Which firmware images and campaigns are there, and what became of the devices of a campaign?

use engine::firmware::FirmwareImage;
use engine::firmware::campaign::{Campaign, CampaignCounts, CampaignDevice, ImageSource};
use engine::firmware::download::OfferedImage;
use engine::firmware::runner::{CampaignLook, WantedRows};
use engine::firmware::update::UpdateState;
use engine::ids::{CampaignId, CustomerId, ImageId};
use engine::limits::CAMPAIGN_ROWS_READ;
use engine::query::{Page, PageRequest};

use super::{cut, page_of_owner, record, record_in, records, shown};
use crate::postgres::PostgresStore;
use crate::postgres::fault::PostgresFault;
use crate::postgres::readers::Reader;
use crate::postgres::sql_types::SqlId;
use crate::record::firmware::{read_campaign, read_campaign_device, read_image};
use crate::record::{Unreadable, code};
use crate::{FirmwareReads, ReadAnswer};

/// The devices of a campaign that are read together in search of those it wants to see.
const ROWS_AT_ONCE: i64 = 1_024;

impl FirmwareReads for PostgresStore {
    fn image(&self, customer: CustomerId, id: ImageId) -> ReadAnswer<Option<FirmwareImage>> {
        self.readers
            .ask(move |reader| async move { image(&reader, &customer, id).await })
    }

    fn images_of(
        &self,
        customer: CustomerId,
        page: PageRequest,
    ) -> ReadAnswer<Page<FirmwareImage>> {
        self.readers
            .list(move |reader| async move { images_of(&reader, &customer, page).await })
    }

    fn images(&self) -> ReadAnswer<Vec<FirmwareImage>> {
        const SQL: &str = "SELECT record FROM firmware_image ORDER BY customer, id";
        self.readers
            .list(move |reader| async move { records(&reader.rows(SQL, &[]).await?, read_image) })
    }

    fn campaign(&self, customer: CustomerId, id: CampaignId) -> ReadAnswer<Option<Campaign>> {
        self.readers
            .ask(move |reader| async move { campaign(&reader, &customer, id).await })
    }

    fn campaigns_of(&self, customer: CustomerId, page: PageRequest) -> ReadAnswer<Page<Campaign>> {
        self.readers
            .list(move |reader| async move { campaigns_of(&reader, &customer, page).await })
    }

    fn open_campaigns(&self) -> ReadAnswer<Vec<Campaign>> {
        const SQL: &str = "SELECT record FROM campaign WHERE open ORDER BY id";
        self.readers.list(move |reader| async move {
            records(&reader.rows(SQL, &[]).await?, read_campaign)
        })
    }

    fn campaign_devices(
        &self,
        id: CampaignId,
        page: PageRequest,
    ) -> ReadAnswer<Vec<CampaignDevice>> {
        self.readers
            .list(move |reader| async move { campaign_devices(&reader, id, page).await })
    }

    fn campaign_counts(&self, id: CampaignId) -> ReadAnswer<CampaignCounts> {
        self.readers
            .ask(move |reader| async move { campaign_counts(&reader, id).await })
    }

    fn campaign_look(&self, id: CampaignId, wanted: WantedRows) -> ReadAnswer<CampaignLook> {
        self.readers
            .list(move |reader| async move { campaign_look(&reader, id, wanted).await })
    }
}

async fn image(
    reader: &Reader,
    customer: &CustomerId,
    id: ImageId,
) -> Result<Option<FirmwareImage>, PostgresFault> {
    const SQL: &str = "SELECT record FROM firmware_image WHERE customer = $1 AND id = $2";
    let row = reader
        .row(SQL, &[&customer.as_str(), &SqlId(*id.as_bytes())])
        .await?;
    record_in(row, read_image)
}

/// Their quota bounds the images of a customer.
async fn images_of(
    reader: &Reader,
    customer: &CustomerId,
    page: PageRequest,
) -> Result<Page<FirmwareImage>, PostgresFault> {
    const COUNT: &str = "SELECT count(*) FROM firmware_image WHERE customer = $1";
    const PAGE: &str = "SELECT record FROM firmware_image WHERE customer = $1 \
        ORDER BY id DESC OFFSET $2 LIMIT $3";
    page_of_owner(reader, [COUNT, PAGE], &customer.as_str(), page, read_image).await
}

async fn campaign(
    reader: &Reader,
    customer: &CustomerId,
    id: CampaignId,
) -> Result<Option<Campaign>, PostgresFault> {
    const SQL: &str = "SELECT record FROM campaign WHERE id = $1 AND customer = $2";
    let row = reader
        .row(SQL, &[&SqlId(*id.as_bytes()), &customer.as_str()])
        .await?;
    record_in(row, read_campaign)
}

/// A customer has a bounded number of campaigns.
async fn campaigns_of(
    reader: &Reader,
    customer: &CustomerId,
    page: PageRequest,
) -> Result<Page<Campaign>, PostgresFault> {
    const COUNT: &str = "SELECT count(*) FROM campaign WHERE customer = $1";
    const PAGE: &str = "SELECT record FROM campaign WHERE customer = $1 \
        ORDER BY id DESC OFFSET $2 LIMIT $3";
    page_of_owner(
        reader,
        [COUNT, PAGE],
        &customer.as_str(),
        page,
        read_campaign,
    )
    .await
}

/// The stored image of a campaign that has not ended.
pub(super) async fn offered_image(
    reader: &Reader,
    id: CampaignId,
) -> Result<Option<OfferedImage>, PostgresFault> {
    const SQL: &str = "SELECT record FROM campaign WHERE id = $1 AND open";
    let row = reader.row(SQL, &[&SqlId(*id.as_bytes())]).await?;
    let Some(campaign) = record_in(row, read_campaign)? else {
        return Ok(None);
    };
    let ImageSource::Stored { image: stored, .. } = campaign.source else {
        return Ok(None);
    };
    let offered = image(reader, &campaign.customer, stored).await?;
    Ok(offered.map(|image| OfferedImage {
        image,
        secret: campaign.secret,
    }))
}

async fn campaign_devices(
    reader: &Reader,
    id: CampaignId,
    page: PageRequest,
) -> Result<Vec<CampaignDevice>, PostgresFault> {
    const SQL: &str = "SELECT record FROM campaign_device WHERE campaign = $1 AND place IN ( \
            SELECT place FROM campaign_device WHERE campaign = $1 \
            ORDER BY place OFFSET $2 LIMIT $3) \
        ORDER BY place";
    let (id, (skip, size)) = (SqlId(*id.as_bytes()), cut(page));
    let rows = reader.rows(SQL, &[&id, &skip, &size]).await?;
    shown(&rows, |row| record(row, 0, read_campaign_device))
}

async fn campaign_counts(reader: &Reader, id: CampaignId) -> Result<CampaignCounts, PostgresFault> {
    const SQL: &str = "SELECT state, sum(count)::bigint FROM campaign_device_count \
        WHERE campaign = $1 GROUP BY state";
    let mut counts = [0; UpdateState::ALL.len()];
    for row in reader.rows(SQL, &[&SqlId(*id.as_bytes())]).await? {
        let (state, count): (i16, i64) = (row.try_get(0)?, row.try_get(1)?);
        let state = UpdateState::ALL.map(|one| i16::from(code::of_update_state(one)) == state);
        for (counted, _) in counts.iter_mut().zip(state).filter(|(_, is_it)| *is_it) {
            *counted = u32::try_from(count.max(0)).unwrap_or(u32::MAX);
        }
    }
    Ok(CampaignCounts::restored(counts))
}

async fn campaign_look(
    reader: &Reader,
    id: CampaignId,
    wanted: WantedRows,
) -> Result<CampaignLook, PostgresFault> {
    const SQL: &str = "SELECT place, record FROM campaign_device \
        WHERE campaign = $1 AND place >= $2 ORDER BY place LIMIT $3";
    let counts = campaign_counts(reader, id).await?;
    let (id, mut first) = (SqlId(*id.as_bytes()), i64::from(wanted.first()));
    let mut look = CampaignLook {
        counts,
        rows: Vec::new(),
    };
    loop {
        let rows = reader.rows(SQL, &[&id, &first, &ROWS_AT_ONCE]).await?;
        if rows.is_empty() {
            return Ok(look);
        }
        for row in rows {
            let place: i64 = row.try_get(0)?;
            let device = record(&row, 1, read_campaign_device)?;
            first = place.saturating_add(1);
            if wanted.includes(device.state) {
                let place = u32::try_from(place).map_err(|_| Unreadable::Damaged("a place"))?;
                look.rows.push((place, device));
            }
            if look.rows.len() >= CAMPAIGN_ROWS_READ {
                return Ok(look);
            }
        }
    }
}
