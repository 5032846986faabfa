//! Which SMS are there?

use engine::directory::sms::FoundParts;
use engine::directory::sms::waking::WakeUpFacts;
use engine::ids::{DeviceKey, SmsId};
use engine::limits::SmsRules;
use engine::moment::Timestamp;
use engine::query::{Page, PageRequest};
use engine::sms::{PartsKey, Sms};
use sled::Db;

use super::{count, customers, devices, load, rows_of};
use crate::record::Unreadable;
use crate::record::sms::{read_place, read_sms};
use crate::sled::fault::Fault;
use crate::sled::key;

/// Rows of a list that are examined for one answer: rows of removed devices are passed over until
/// they are swept.
const EXAMINED_MAX: usize = 10_000;

/// The SMS with this id, or with a part of this id.
pub(in crate::sled) fn sms(db: &Db, id: SmsId) -> Result<Option<Sms>, Fault> {
    match load(db, &key::sms::of_id(id), read_place)? {
        Some(place) => at(db, place),
        None => Ok(None),
    }
}

/// A page of the SMS of a device, newest first.
pub(in crate::sled) fn sms_of(db: &Db, device: u64, page: PageRequest) -> Result<Page<Sms>, Fault> {
    let total = count(db, &key::sms::counted(device))?;
    let skip = usize::try_from(page.skip()).unwrap_or(usize::MAX);
    let size = usize::try_from(page.size).unwrap_or(usize::MAX);
    let mut items = Vec::new();
    if page.skip() < total {
        let keys = rows_of(db, &key::sms::of_device(device)).keys().rev();
        for key in keys.skip(skip).take(size) {
            let place = key::sms::place_of(&key?);
            let place = place.ok_or(Unreadable::Damaged("the key of an SMS"))?;
            items.extend(at(db, place)?);
        }
    }
    Ok(Page { items, total })
}

/// The last SMS of a device with these parts.
pub(in crate::sled) fn sms_of_parts(db: &Db, parts: PartsKey) -> Result<FoundParts, Fault> {
    let place = load(db, &key::sms::of_parts(parts), read_place)?;
    let sms = place.map(|place| at(db, place)).transpose()?.flatten();
    Ok(FoundParts {
        id: place.map(|(_, id)| id),
        sms,
    })
}

/// How many SMS to a device have no final status, up to `max`.
pub(in crate::sled) fn open_sms(db: &Db, device: u64, max: u32) -> Result<u32, Fault> {
    let most = usize::try_from(max).unwrap_or(usize::MAX);
    let mut open = 0;
    for key in rows_of(db, &key::sms::open_of(device)).keys().take(most) {
        key?;
        open += 1;
    }
    Ok(open)
}

/// The SMS to a device without a final status, the oldest first.
pub(in crate::sled) fn open_sms_of(db: &Db, device: u64, max: u32) -> Result<Vec<Sms>, Fault> {
    let prefix = key::sms::open_of(device);
    listed(db, &prefix, &key::behind(prefix.clone()), max)
}

/// The SMS to devices without a final status that have one of these keys of message ids.
pub(in crate::sled) fn open_sms_by_message(
    db: &Db,
    keys: &[String],
    max: u32,
) -> Result<Vec<Sms>, Fault> {
    let mut found = Vec::new();
    for named in keys {
        let prefix = key::sms::with_message(named);
        for sms in listed(db, &prefix, &key::behind(prefix.clone()), max)? {
            if !found.contains(&sms) {
                found.push(sms);
            }
        }
    }
    Ok(found)
}

/// What is stored of a device that a request may wake.
pub(in crate::sled) fn wake_up_facts(
    db: &Db,
    device: DeviceKey,
    rules: SmsRules,
) -> Result<Option<WakeUpFacts>, Fault> {
    let Some(device) = devices::profile(db, device)? else {
        return Ok(None);
    };
    let customer = customers::customer(db, &device.customer)?;
    let most = usize::try_from(rules.wake_ups_max).unwrap_or(usize::MAX);
    let mut newest = Vec::new();
    let rows = rows_of(db, &key::sms::wake_ups_of(device.number));
    for row in rows.values().rev().take(most) {
        newest.extend(at(db, read_place(&row?)?)?);
    }
    Ok(Some(WakeUpFacts {
        of_customer: customer.and_then(|customer| customer.wake_up),
        newest,
        open: open_sms(db, device.number, rules.open_max)?,
        device,
    }))
}

/// SMS for which the network has something to do, the oldest first.
pub(in crate::sled) fn sms_for_network(db: &Db, max: u32) -> Result<Vec<Sms>, Fault> {
    let prefix = key::sms::for_network();
    listed(db, &prefix, &key::behind(prefix.clone()), max)
}

/// SMS whose validity is over at an instant.
pub(in crate::sled) fn sms_due(db: &Db, now: Timestamp, max: u32) -> Result<Vec<Sms>, Fault> {
    let end = key::sms::due_from(now.plus_ms(1));
    listed(db, &key::sms::due(), &end, max)
}

fn listed(db: &Db, first: &[u8], end: &[u8], max: u32) -> Result<Vec<Sms>, Fault> {
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    for row in db.range::<&[u8], _>(first..end).take(EXAMINED_MAX) {
        if found.len() >= max {
            break;
        }
        let (_, place) = row?;
        found.extend(at(db, read_place(&place)?)?);
    }
    Ok(found)
}

/// The SMS at its place, unless its device is removed.
fn at(db: &Db, (device, id): (u64, SmsId)) -> Result<Option<Sms>, Fault> {
    match db.contains_key(key::sms::removed(device))? {
        true => Ok(None),
        false => load(db, &key::sms::sms(device, id), read_sms),
    }
}
