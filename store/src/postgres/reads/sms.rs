//! Which SMS are there?

use engine::directory::sms::FoundParts;
use engine::directory::sms::waking::WakeUpFacts;
use engine::ids::SmsId;
use engine::limits::SmsRules;
use engine::moment::Timestamp;
use engine::profile::Profile;
use engine::query::{Page, PageRequest};
use engine::sms::{PartsKey, Sms};

use super::{count_in, customers, page_of_owner, record, record_in, records, shown};
use crate::postgres::PostgresStore;
use crate::postgres::fault::PostgresFault;
use crate::postgres::readers::Reader;
use crate::postgres::sql_types::SqlTime;
use crate::record::Unreadable;
use crate::record::sms::read_sms;
use crate::{ReadAnswer, SmsReads};

impl SmsReads for PostgresStore {
    fn sms(&self, id: SmsId) -> ReadAnswer<Option<Sms>> {
        self.readers
            .ask(move |reader| async move { sms(&reader, id).await })
    }

    fn sms_of(&self, device: u64, page: PageRequest) -> ReadAnswer<Page<Sms>> {
        self.readers
            .list(move |reader| async move { sms_of(&reader, device, page).await })
    }

    fn sms_of_parts(&self, parts: PartsKey) -> ReadAnswer<FoundParts> {
        self.readers
            .ask(move |reader| async move { sms_of_parts(&reader, parts).await })
    }

    fn open_sms(&self, device: u64, max: u32) -> ReadAnswer<u32> {
        self.readers
            .ask(move |reader| async move { open_sms(&reader, device, max).await })
    }

    fn open_sms_of(&self, device: u64, max: u32) -> ReadAnswer<Vec<Sms>> {
        self.readers
            .ask(move |reader| async move { open_sms_of(&reader, device, max).await })
    }

    fn open_sms_by_message(&self, keys: Vec<String>, max: u32) -> ReadAnswer<Vec<Sms>> {
        self.readers
            .ask(move |reader| async move { open_sms_by_message(&reader, &keys, max).await })
    }

    fn sms_for_network(&self, max: u32) -> ReadAnswer<Vec<Sms>> {
        self.readers
            .ask(move |reader| async move { sms_for_network(&reader, max).await })
    }

    fn sms_due(&self, at: Timestamp, max: u32) -> ReadAnswer<Vec<Sms>> {
        self.readers
            .ask(move |reader| async move { sms_due(&reader, at, max).await })
    }
}

async fn sms(reader: &Reader, id: SmsId) -> Result<Option<Sms>, PostgresFault> {
    const SQL: &str = "SELECT sms.record FROM sms_id JOIN sms ON sms.id = sms_id.sms \
        WHERE sms_id.id = $1";
    record_in(reader.row(SQL, &[&number_of(id)]).await?, read_sms)
}

async fn sms_of(
    reader: &Reader,
    device: u64,
    page: PageRequest,
) -> Result<Page<Sms>, PostgresFault> {
    const COUNT: &str = "SELECT count(*) FROM sms WHERE device_number = $1";
    // What is skipped is read from the index alone.
    const PAGE: &str = "SELECT record FROM sms WHERE id IN ( \
            SELECT id FROM sms WHERE device_number = $1 ORDER BY id DESC OFFSET $2 LIMIT $3) \
        ORDER BY id DESC";
    page_of_owner(reader, [COUNT, PAGE], &device.cast_signed(), page, read_sms).await
}

async fn sms_of_parts(reader: &Reader, parts: PartsKey) -> Result<FoundParts, PostgresFault> {
    const SQL: &str = "SELECT sms.record, sms.id FROM sms_parts JOIN sms ON sms.id = sms_parts.sms \
        WHERE sms_parts.device_number = $1 AND total = $2 AND identifier = $3";
    let device = parts.device_number.cast_signed();
    let (total, identifier) = (i16::from(parts.total), i32::from(parts.identifier));
    let Some(row) = reader.row(SQL, &[&device, &total, &identifier]).await? else {
        return Ok(FoundParts::default());
    };
    let id: i64 = row.try_get(1)?;
    let id = SmsId::from_number(id.cast_unsigned());
    Ok(FoundParts {
        id: Some(id.ok_or(Unreadable::Damaged("the id of an SMS"))?),
        sms: Some(record(&row, 0, read_sms)?),
    })
}

/// How many SMS to a device have no final status, up to `max`.
async fn open_sms(reader: &Reader, device: u64, max: u32) -> Result<u32, PostgresFault> {
    const SQL: &str = "SELECT count(*) FROM (SELECT FROM sms \
        WHERE device_number = $1 AND due_at IS NOT NULL LIMIT $2) AS open";
    let row = reader
        .row(SQL, &[&device.cast_signed(), &i64::from(max)])
        .await?;
    Ok(u32::try_from(count_in(row)?).unwrap_or(max))
}

async fn open_sms_of(reader: &Reader, device: u64, max: u32) -> Result<Vec<Sms>, PostgresFault> {
    const SQL: &str = "SELECT record FROM sms \
        WHERE device_number = $1 AND due_at IS NOT NULL ORDER BY id LIMIT $2";
    let rows = reader
        .rows(SQL, &[&device.cast_signed(), &i64::from(max)])
        .await?;
    shown(&rows, |row| record(row, 0, read_sms))
}

async fn open_sms_by_message(
    reader: &Reader,
    keys: &[String],
    max: u32,
) -> Result<Vec<Sms>, PostgresFault> {
    const SQL: &str = "SELECT sms.record FROM sms_message JOIN sms ON sms.id = sms_message.sms \
        WHERE message_id = $1 AND due_at IS NOT NULL ORDER BY sms_message.sms LIMIT $2";
    let mut found = Vec::new();
    // PostgreSQL has no text with a null character.
    for key in keys.iter().filter(|key| !key.contains('\0')) {
        let rows = reader.rows(SQL, &[key, &i64::from(max)]).await?;
        for sms in shown(&rows, |row| record(row, 0, read_sms))? {
            if !found.contains(&sms) {
                found.push(sms);
            }
        }
    }
    Ok(found)
}

/// What is stored of the SMS to a device that a request may wake.
pub(super) async fn wake_up_facts(
    reader: &Reader,
    device: Profile,
    rules: SmsRules,
) -> Result<WakeUpFacts, PostgresFault> {
    const NEWEST: &str = "SELECT record FROM sms WHERE device_number = $1 AND wake_up \
        ORDER BY id DESC LIMIT $2";
    let customer = customers::customer(reader, &device.customer).await?;
    let number = device.number.cast_signed();
    let newest = reader
        .rows(NEWEST, &[&number, &i64::from(rules.wake_ups_max)])
        .await?;
    Ok(WakeUpFacts {
        of_customer: customer.and_then(|customer| customer.wake_up),
        newest: records(&newest, read_sms)?,
        open: open_sms(reader, device.number, rules.open_max).await?,
        device,
    })
}

async fn sms_for_network(reader: &Reader, max: u32) -> Result<Vec<Sms>, PostgresFault> {
    const SQL: &str = "SELECT record FROM sms WHERE for_network ORDER BY id LIMIT $1";
    let rows = reader.rows(SQL, &[&i64::from(max)]).await?;
    shown(&rows, |row| record(row, 0, read_sms))
}

async fn sms_due(reader: &Reader, at: Timestamp, max: u32) -> Result<Vec<Sms>, PostgresFault> {
    const SQL: &str = "SELECT record FROM sms WHERE due_at <= $1 ORDER BY due_at, id LIMIT $2";
    let rows = reader.rows(SQL, &[&SqlTime(at), &i64::from(max)]).await?;
    shown(&rows, |row| record(row, 0, read_sms))
}

fn number_of(id: SmsId) -> i64 {
    id.number().cast_signed()
}
