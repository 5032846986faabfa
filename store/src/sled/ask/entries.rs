//! What does the administration log say?
//!
//! The bounds of a window are bounds of ids, because ids sort by time. Category and subject are
//! parts of the key. The total is counted key by key, so the cost of a list grows with its window
//! and not only with its page; an entry is read only if it is shown.

use engine::admin_log::entry::Entry;
use engine::query::{LogFilter, Page, PageWanted};
use sled::{Db, IVec};

use super::load;
use crate::key::{self, Key};
use crate::record::code;
use crate::record::entry::read_entry;
use crate::record::number::read_last_entry;
use crate::sled::fault::Fault;

/// A page of the entries that pass a filter.
pub(in crate::sled) fn entries(
    db: &Db,
    filter: &LogFilter,
    page: PageWanted,
) -> Result<Page<Entry>, Fault> {
    let log = match &filter.iccid {
        Some(iccid) => key::log::of_iccid(&filter.customer, iccid),
        None => key::log::of_customer(&filter.customer),
    };
    let (total, wanted) = page_of_keys(db, filter, &log, page)?;
    let mut items = Vec::new();
    for found in wanted {
        let key = entry_key(filter, key::rest_of(&found, &log));
        items.extend(load(db, &key, read_entry)?);
    }
    Ok(Page { items, total })
}

/// How many keys pass, and those of them on the page.
fn page_of_keys(
    db: &Db,
    filter: &LogFilter,
    log: &[u8],
    page: PageWanted,
) -> Result<(u64, Vec<IVec>), Fault> {
    let first = first_key(db, filter, log)?;
    let end = key::ids_after(log.to_vec(), filter.window.until);
    let mut total = 0;
    let mut wanted = Vec::new();
    if first >= end {
        return Ok((total, wanted));
    }
    let last_wanted = page.skip().saturating_add(u64::from(page.size));
    for key in db
        .range::<&[u8], _>(first.as_slice()..end.as_slice())
        .keys()
        .rev()
    {
        let key = key?;
        if !passes(&key, filter) {
            continue;
        }
        if total >= page.skip() && total < last_wanted {
            wanted.push(key);
        }
        total += 1;
    }
    Ok((total, wanted))
}

/// Where the window begins: not before the end of the log of a customer that had the same id.
fn first_key(db: &Db, filter: &LogFilter, log: &[u8]) -> Result<Key, Fault> {
    let first = key::ids_from(log.to_vec(), filter.window.from);
    let removed = load(db, &key::log::removed_of(&filter.customer), read_last_entry)?;
    Ok(match removed {
        Some(last) => first.max(key::behind(key::append(log.to_vec(), last.as_bytes()))),
        None => first,
    })
}

fn passes(key: &[u8], filter: &LogFilter) -> bool {
    let Some([category, subject]) = key.last_chunk() else {
        return false;
    };
    filter
        .category
        .is_none_or(|wanted| code::of_category(wanted) == *category)
        && filter
            .subject
            .is_none_or(|wanted| code::of_subject(wanted) == *subject)
}

/// The key of an entry, from the part of an index key that is the same in both.
fn entry_key(filter: &LogFilter, id_and_kind: &[u8]) -> Key {
    key::append(key::log::of_customer(&filter.customer), id_and_kind)
}
