//! The queries, a file for each kind of caller.
//!
//! The column `record` of a table has what the writer of the same name in `store/src/record` wrote,
//! for example `action.record` what `write_action` did. Not named for their table: `device.record`
//! (`write_profile`), `device_state.record` (`row_of`), `known_value.record` (`write_known`),
//! `definition.record` (`write_text`), `log_entry.record` (`write_entry`, which is not linked) and
//! `log_entry.payload` (`write_payload`), `pending_retry.record` (`write_retry`),
//! `dead_letter.record` (`write_dead`), `bootstrap.record` (`write_bootstrap`), configurations
//! (`write_config`), firmware tables (`write_image`, `write_campaign`, `write_campaign_device`).
//! Numbers of `u64` are stored as the `bigint` of the same bits; none that is compared by size is
//! that large.

mod actions;
mod customers;
mod deliveries;
mod devices;
mod directory;
mod entries;
mod events;
mod firmware;
mod fleet;
mod jobs;
mod restoring;
mod settings;
mod sms;

use engine::query::{Page, PageRequest};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::fault::PostgresFault;
use super::readers::Reader;
use super::sql_types::SqlId;
use crate::record::Unreadable;

/// Reads the record in a column.
fn record<T>(
    row: &Row,
    column: usize,
    read: impl FnOnce(&[u8]) -> Result<T, Unreadable>,
) -> Result<T, PostgresFault> {
    Ok(read(row.try_get(column)?)?)
}

/// Reads the record in the only column of a row, if there is a row.
fn record_in<T>(
    row: Option<Row>,
    read: impl FnOnce(&[u8]) -> Result<T, Unreadable>,
) -> Result<Option<T>, PostgresFault> {
    row.map(|row| record(&row, 0, read)).transpose()
}

/// Reads the records in the first column of some rows.
fn records<T>(
    rows: &[Row],
    read: impl Fn(&[u8]) -> Result<T, Unreadable>,
) -> Result<Vec<T>, PostgresFault> {
    rows.iter().map(|row| record(row, 0, &read)).collect()
}

/// What is shown of some rows: those that cannot be read are left out, so that one of them does not
/// hide the others.
fn shown<T>(
    rows: &[Row],
    mut read: impl FnMut(&Row) -> Result<T, PostgresFault>,
) -> Result<Vec<T>, PostgresFault> {
    let mut items = Vec::with_capacity(rows.len());
    for row in rows {
        match read(row) {
            Ok(item) => items.push(item),
            Err(PostgresFault::Unreadable(why)) => {
                tracing::error!(%why, "a row of a list is unreadable")
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(items)
}

/// A page of the records of an owner, by the statement that counts them and the one that reads
/// them: the owner is `$1`, `$2` rows are skipped and `$3` are read.
async fn page_of_owner<T>(
    reader: &Reader,
    [count, read_page]: [&'static str; 2],
    owner: &(dyn ToSql + Sync),
    page: PageRequest,
    read: impl Fn(&[u8]) -> Result<T, Unreadable>,
) -> Result<Page<T>, PostgresFault> {
    let (skip, size) = cut(page);
    let rows = reader.rows(read_page, &[owner, &skip, &size]).await?;
    Ok(Page {
        items: shown(&rows, |row| record(row, 0, &read))?,
        total: count_in(reader.row(count, &[owner]).await?)?,
    })
}

/// Reads the sixteen bytes in a column.
fn id_in(row: &Row, column: usize) -> Result<[u8; 16], PostgresFault> {
    let SqlId(id) = row.try_get(column)?;
    Ok(id)
}

/// Reads a count that is never below zero.
fn count_in(row: Option<Row>) -> Result<u64, PostgresFault> {
    let count: i64 = match row {
        Some(row) => row.try_get(0)?,
        None => 0,
    };
    Ok(u64::try_from(count).unwrap_or(0))
}

/// How many rows precede a page, and how many it has.
fn cut(page: PageRequest) -> (i64, i64) {
    let skip = i64::try_from(page.skip()).unwrap_or(i64::MAX);
    (skip, i64::from(page.size))
}
