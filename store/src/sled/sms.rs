//! What happens to the SMS of a device that is removed, and to the rows of an SMS?

use engine::ids::SmsId;
use sled::IVec;

use super::fault::Fault;
use super::key;
use super::kv::{self, Rows};
use super::overlay::Overlay;
use super::plan::sms::lists_of;
use crate::record::sms::{read_place, read_sms};

/// Marks the SMS of a device as removed, if it has any: they may be many, and are swept later.
pub(super) fn end(device: u64, rows: &mut Overlay<'_>) -> Result<(), Fault> {
    if rows.row(&key::sms::counted(device))?.is_some() {
        rows.put(key::sms::removed(device).into(), IVec::default());
    }
    Ok(())
}

/// Removes an SMS with every row that lists it, and counts it out.
pub(super) fn remove(device: u64, id: SmsId, rows: &mut Overlay<'_>) -> Result<(), Fault> {
    let key = key::sms::sms(device, id);
    let Some(value) = kv::load(rows, &key)? else {
        return Ok(());
    };
    let sms = read_sms(&value)?;
    rows.erase(key)?;
    for id in sms.ids() {
        rows.remove(key::sms::of_id(id));
    }
    for list in lists_of(&sms, sms.state()) {
        rows.remove(list);
    }
    if let Some(parts) = sms.parts_key() {
        let of_parts = key::sms::of_parts(parts);
        let last = rows.row(&of_parts)?;
        let last = last.map(|row| read_place(&row)).transpose()?;
        if last == Some((device, id)) {
            rows.remove(of_parts);
        }
    }
    rows.add(key::sms::counted(device).into(), -1)
}
