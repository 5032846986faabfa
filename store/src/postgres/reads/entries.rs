//! Which entries does the administration log have, and how many each day?
//!
//! The bounds of a window are bounds of ids, because ids sort by time. What is counted or skipped
//! is read from an index alone; an entry is read only if it is shown. Only a list of one SIM reads
//! entries one by one, those of its devices.

use engine::admin_log::daily::{DayAmount, Statistics, StatisticsQuery};
use engine::admin_log::entry::{Category, Entry, Subject};
use engine::admin_log::window::TimeWindow;
use engine::ids::{CustomerId, EntryId, Iccid};
use engine::limits::LOG_ENTRIES_SEARCHED_MAX;
use engine::query::{EntryKind, LogFilter, LogSearchTooBroad, Page, PageRequest};
use tokio_postgres::Row;

use super::{count_in, cut, id_in, shown};
use crate::postgres::fault::PostgresFault;
use crate::postgres::readers::Reader;
use crate::postgres::sql_types::SqlId;
use crate::record::code;
use crate::record::entry::{read_entry, read_payload};
use crate::record::entry_place::{EntryPlace, Kind};

/// A page of the entries that pass a filter.
pub(super) async fn entries(
    reader: &Reader,
    filter: &LogFilter,
    page: PageRequest,
) -> Result<Page<Entry>, PostgresFault> {
    const COUNT: &str = "SELECT count(*) FROM log_entry \
        WHERE customer = $1 AND id >= $2 AND id < $3 \
        AND category = ANY($4) AND subject = ANY($5)";
    if let Some(iccid) = &filter.iccid {
        let every = entries_of_sim(reader, filter, iccid).await?;
        return Ok(page.page_of(every));
    }
    let (customer, (skip, size)) = (filter.customer.as_str(), cut(page));
    let window = Window::of(reader, &filter.customer, &filter.window).await?;
    let (categories, subjects) = (categories(filter.category), subjects(filter.subject));
    let Window { first, end } = &window;
    let total = reader
        .row(COUNT, &[&customer, first, end, &categories, &subjects])
        .await?;
    let total = count_in(total)?;
    let mut items = Vec::new();
    if page.skip() < total {
        items = newest(reader, filter, &window, (skip, size)).await?;
    }
    Ok(Page { items, total })
}

/// A page of the entries of a kind that pass a filter. Their messages are in the entries alone, so
/// each that passes is read, up to a bound.
pub(super) async fn entries_of_kind(
    reader: &Reader,
    filter: &LogFilter,
    kind: &EntryKind,
    page: PageRequest,
) -> Result<Result<Page<Entry>, LogSearchTooBroad>, PostgresFault> {
    let mut passing = match &filter.iccid {
        Some(iccid) => entries_of_sim(reader, filter, iccid).await?,
        None => {
            let window = Window::of(reader, &filter.customer, &filter.window).await?;
            let one_more = i64::from(LOG_ENTRIES_SEARCHED_MAX) + 1;
            newest(reader, filter, &window, (0, one_more)).await?
        }
    };
    if passing.len() > LOG_ENTRIES_SEARCHED_MAX as usize {
        return Ok(Err(LogSearchTooBroad));
    }
    passing.retain(|entry| kind.is_of(&entry.message));
    Ok(Ok(page.page_of(passing)))
}

/// One entry. Entries of a former customer with the same id are not shown.
pub(super) async fn entry(
    reader: &Reader,
    customer: &CustomerId,
    id: EntryId,
) -> Result<Option<Entry>, PostgresFault> {
    const SQL: &str = "SELECT id, category, subject, record FROM log_entry \
        WHERE customer = $1 AND id = $2";
    let id = SqlId(*id.as_bytes());
    if removed_to(reader, customer).await? >= Some(id) {
        return Ok(None);
    }
    let row = reader.row(SQL, &[&customer.as_str(), &id]).await?;
    row.map(|row| entry_in(&row, customer)).transpose()
}

/// The payload of an entry. Payloads of a former customer with the same id are not shown.
pub(super) async fn payload(
    reader: &Reader,
    customer: &CustomerId,
    id: EntryId,
) -> Result<Option<Box<[u8]>>, PostgresFault> {
    const SQL: &str = "SELECT payload FROM log_entry WHERE customer = $1 AND id = $2";
    let id = SqlId(*id.as_bytes());
    if removed_to(reader, customer).await? >= Some(id) {
        return Ok(None);
    }
    let Some(row) = reader.row(SQL, &[&customer.as_str(), &id]).await? else {
        return Ok(None);
    };
    let payload: Option<&[u8]> = row.try_get(0)?;
    Ok(payload.map(read_payload).transpose()?)
}

/// The statistics of a log.
pub(super) async fn statistics(
    reader: &Reader,
    query: &StatisticsQuery,
) -> Result<Statistics, PostgresFault> {
    const AMOUNTS: &str = "SELECT (SELECT count(*) FROM log_entry \
            WHERE customer = $1 AND id >= day.first AND id < day.behind AND id > $4 \
            AND category = ANY($5)) \
        FROM unnest($2::uuid[], $3::uuid[]) WITH ORDINALITY AS day (first, behind, place) \
        ORDER BY place";
    // A hash of the devices, and not a sort of the entries.
    const DEVICES: &str = "SELECT count(*) FROM (SELECT DISTINCT device FROM log_entry \
        WHERE customer = $1 AND id >= $2 AND id > $3 AND category = ANY($4) \
        AND device IS NOT NULL) AS devices";
    let StatisticsQuery { customer, days, .. } = query;
    let (customer, categories) = (customer.as_str(), categories(query.category));
    let removed = removed_to(reader, &query.customer).await?;
    let removed = removed.unwrap_or(SqlId([0; 16]));
    let first: Vec<SqlId> = days.iter().map(|day| SqlId::made_from(day.from)).collect();
    let behind: Vec<SqlId> = days.iter().map(|day| SqlId::made_from(day.end)).collect();
    let rows = reader
        .rows(
            AMOUNTS,
            &[&customer, &first, &behind, &removed, &categories],
        )
        .await?;
    let mut amounts = Vec::new();
    for (row, day) in rows.into_iter().zip(days.iter()) {
        let (date, amount) = (day.date, count_in(Some(row))?);
        amounts.extend((amount > 0).then_some(DayAmount { date, amount }));
    }
    let from = SqlId::made_from(days.from());
    let devices = reader
        .row(DEVICES, &[&customer, &from, &removed, &categories])
        .await?;
    Ok(Statistics {
        devices: count_in(devices)?,
        amounts,
    })
}

/// The ids of a time window in the log of a customer.
struct Window {
    first: SqlId,
    /// Behind the last one.
    end: SqlId,
}

impl Window {
    /// Up to some entry it is the log of a former customer with the same id, not swept yet.
    async fn of(
        reader: &Reader,
        customer: &CustomerId,
        window: &TimeWindow,
    ) -> Result<Self, PostgresFault> {
        let first = SqlId::made_from(window.from);
        let removed = removed_to(reader, customer).await?;
        Ok(Self {
            first: removed.map_or(first, |last| first.max(next(last))),
            end: SqlId::made_from(window.until.plus_ms(1)),
        })
    }
}

/// Up to which entry the log is that of a former customer.
async fn removed_to(
    reader: &Reader,
    customer: &CustomerId,
) -> Result<Option<SqlId>, PostgresFault> {
    const SQL: &str = "SELECT last_entry FROM removed_customer WHERE customer = $1";
    let row = reader.row(SQL, &[&customer.as_str()]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// The newest entries of a window, after the first few.
async fn newest(
    reader: &Reader,
    filter: &LogFilter,
    window: &Window,
    (skip, size): (i64, i64),
) -> Result<Vec<Entry>, PostgresFault> {
    const SQL: &str = "WITH page AS (SELECT id FROM log_entry \
            WHERE customer = $1 AND id >= $2 AND id < $3 \
            AND category = ANY($4) AND subject = ANY($5) \
            ORDER BY id DESC OFFSET $6 LIMIT $7) \
        SELECT entry.id, category, subject, record FROM page CROSS JOIN LATERAL ( \
            SELECT id, category, subject, record FROM log_entry \
            WHERE customer = $1 AND log_entry.id = page.id OFFSET 0) AS entry \
        ORDER BY entry.id DESC";
    let customer = filter.customer.as_str();
    let (categories, subjects) = (categories(filter.category), subjects(filter.subject));
    let Window { first, end } = window;
    let rows = reader
        .rows(
            SQL,
            &[&customer, first, end, &categories, &subjects, &skip, &size],
        )
        .await?;
    shown(&rows, |row| entry_in(row, &filter.customer))
}

/// The entries about a SIM that pass a filter, newest first: every entry about its devices in the
/// window is read.
async fn entries_of_sim(
    reader: &Reader,
    filter: &LogFilter,
    iccid: &Iccid,
) -> Result<Vec<Entry>, PostgresFault> {
    const DEVICES: &str = "SELECT device FROM former_sim WHERE customer = $1 AND iccid = $2 \
        UNION SELECT device.key FROM device_name JOIN device ON device.key = device_name.device \
        WHERE kind = 1 AND name = $3 AND device.customer = $1";
    const SQL: &str = "SELECT id, category, subject, record FROM log_entry \
        WHERE device = ANY($1) AND customer = $2 AND id >= $3 AND id < $4 \
        AND category = ANY($5) AND subject = ANY($6) ORDER BY id DESC";
    let (customer, name) = (filter.customer.as_str(), iccid.as_str());
    let found = reader
        .rows(DEVICES, &[&customer, &name, &name.as_bytes()])
        .await?;
    let devices: Result<Vec<SqlId>, _> = found.iter().map(|row| row.try_get(0)).collect();
    let Window { first, end } = Window::of(reader, &filter.customer, &filter.window).await?;
    let (categories, subjects) = (categories(filter.category), subjects(filter.subject));
    let rows = reader
        .rows(
            SQL,
            &[&devices?, &customer, &first, &end, &categories, &subjects],
        )
        .await?;
    let mut entries = shown(&rows, |row| entry_in(row, &filter.customer))?;
    entries.retain(|entry| entry.about.as_ref().is_some_and(|it| it.iccid == *iccid));
    Ok(entries)
}

/// Reads an entry from the columns `id, category, subject, record`.
fn entry_in(row: &Row, customer: &CustomerId) -> Result<Entry, PostgresFault> {
    let (category, subject): (i16, i16) = (row.try_get(1)?, row.try_get(2)?);
    let kind = [category, subject].map(|code| u8::try_from(code).unwrap_or(u8::MAX));
    let place = EntryPlace {
        id: EntryId::from_bytes(id_in(row, 0)?),
        kind: Kind::from_bytes(kind),
    };
    super::record(row, 3, |value| read_entry(customer.as_str(), place, value))
}

fn categories(category: Option<Category>) -> Vec<i16> {
    let categories = Category::ALL.into_iter();
    let wanted = categories.filter(|one| category.is_none_or(|wanted| wanted == *one));
    wanted.map(|one| code::of_category(one).into()).collect()
}

fn subjects(subject: Option<Subject>) -> Vec<i16> {
    let subjects = Subject::ALL.into_iter();
    let wanted = subjects.filter(|one| subject.is_none_or(|wanted| wanted == *one));
    wanted.map(|one| code::of_subject(one).into()).collect()
}

/// The id that follows another one.
fn next(SqlId(id): SqlId) -> SqlId {
    let number = u128::from_be_bytes(id).saturating_add(1);
    SqlId(number.to_be_bytes())
}
