//! How are the queries of the store answered?

pub(super) mod actions;
pub(super) mod bootstrap;
pub(super) mod customers;
pub(super) mod devices;
pub(super) mod entries;
pub(super) mod events;
pub(super) mod firmware;
pub(super) mod fleet;
pub(super) mod jobs;
pub(super) mod outbox;
pub(super) mod restoring;
pub(super) mod schedules;
pub(super) mod settings;
pub(super) mod sms;
pub(super) mod statistics;

use engine::query::{Page, PageRequest};
use sled::{Db, IVec, Iter};

use super::fault::Fault;
use super::key;
use super::kv;
use crate::record::{Unreadable, number};

/// Reads the value of a key, if there is one.
fn load<T>(
    db: &Db,
    key: &[u8],
    read: impl FnOnce(&[u8]) -> Result<T, Unreadable>,
) -> Result<Option<T>, Fault> {
    match kv::load(&**db, key)? {
        Some(value) => Ok(Some(read(&value)?)),
        None => Ok(None),
    }
}

/// Reads a count; one below zero counts as zero.
fn count(db: &Db, key: &[u8]) -> Result<u64, Fault> {
    let count = match db.get(key)? {
        Some(row) => number::read_count(&row)?,
        None => 0,
    };
    Ok(u64::try_from(count).unwrap_or(0))
}

/// The rows whose keys begin with a prefix.
fn rows_of(db: &Db, prefix: &[u8]) -> Iter {
    db.range::<&[u8], _>(prefix..key::behind(prefix.to_vec()).as_slice())
}

/// The keys with a prefix that are on one page.
fn page_of_keys(db: &Db, prefix: &[u8], skip: u64, size: u32) -> Result<Vec<IVec>, Fault> {
    let skip = usize::try_from(skip).unwrap_or(usize::MAX);
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let keys = rows_of(db, prefix).keys().skip(skip).take(size);
    Ok(keys.collect::<Result<_, _>>()?)
}

/// A page of the values whose keys begin with a prefix and end with their ids, newest first. There
/// is a bounded number of them, so that the keys themselves are counted.
fn newest_page<T>(
    db: &Db,
    prefix: &[u8],
    page: PageRequest,
    read: fn(&[u8]) -> Result<T, Unreadable>,
) -> Result<Page<T>, Fault> {
    let keys = rows_of(db, prefix).keys().rev();
    let keys = keys.collect::<Result<Vec<_>, _>>()?;
    let skip = usize::try_from(page.skip()).unwrap_or(usize::MAX);
    let size = usize::try_from(page.size).unwrap_or(usize::MAX);
    let mut items = Vec::new();
    for key in keys.iter().skip(skip).take(size) {
        items.extend(load(db, key, read)?);
    }
    Ok(Page {
        items,
        total: keys.len() as u64,
    })
}
