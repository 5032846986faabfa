//! What are the statistics of the log?
//!
//! Days consist of whole quarters of an hour in every time zone, and devices are counted by the
//! quarter of their last entry, so both are sums of counts. A log that follows one of a removed
//! customer is counted entry by entry until that is swept.

use std::collections::BTreeSet;

use engine::admin_log::daily::{Statistics, StatisticsQuery};
use engine::moment::Timestamp;
use sled::Db;

use super::entries::{Log, TimeSpan};
use crate::commit_state::CommitState;
use crate::record::entry_place::Kind;
use crate::record::number;
use crate::sled::fault::Fault;
use crate::sled::key;
use crate::sled::key::log::count::{self, BucketSize};

/// The statistics of a log.
pub(in crate::sled) fn statistics(
    db: &Db,
    state: &CommitState,
    query: &StatisticsQuery,
) -> Result<Statistics, Fault> {
    let kinds = Kind::all(query.category, None);
    let log = Log::of(db, &query.customer, kinds)?;
    let mut account = query.days.account();
    let stretch = TimeSpan {
        from: query.days.from(),
        end: query.days.end(),
    };
    let devices = match log.removed {
        None => {
            log.each_count(BucketSize::Quarter, stretch, |quarter, number| {
                account.add(BucketSize::Quarter.start(quarter), number);
            })?;
            state.between_groups(|| devices_counted(db, query))?
        }
        Some(_) => {
            log.each(stretch, |id| account.add(key::made_at(*id.as_bytes()), 1))?;
            devices_behind(&log, query)?
        }
    };
    let amounts = account.close();
    Ok(Statistics { devices, amounts })
}

/// Devices whose last entry is in the days, or after them: seven hundred short rows at most. An
/// entry about a device moves it from one row to another.
fn devices_counted(db: &Db, query: &StatisticsQuery) -> Result<u64, Fault> {
    let StatisticsQuery {
        customer,
        days,
        category,
    } = query;
    let first = count::devices_in(customer, *category, BucketSize::Quarter.bucket(days.from()));
    let end = key::behind(count::devices_among(customer, *category));
    let mut devices = 0;
    for row in db.range::<&[u8], _>(first.as_slice()..end.as_slice()) {
        let (_, row) = row?;
        devices += u64::try_from(number::read_count(&row)?).unwrap_or(0);
    }
    Ok(devices)
}

/// The same for a log that follows one of a removed customer.
fn devices_behind(log: &Log<'_>, query: &StatisticsQuery) -> Result<u64, Fault> {
    let first = BucketSize::Quarter.bucket(query.days.from());
    let stretch = TimeSpan {
        from: BucketSize::Quarter.start(first),
        end: Timestamp::from_ms(i64::MAX),
    };
    let mut devices = BTreeSet::new();
    log.each_entry(stretch, |entry| {
        devices.extend(entry.about.map(|about| about.key));
    })?;
    Ok(u64::try_from(devices.len()).unwrap_or(u64::MAX))
}
