//! What was promised to a call?

use engine::promise::{OnceKey, Promise};
use sled::Db;

use super::rows_of;
use crate::sled::fault::Fault;
use crate::sled::key;
use crate::sled::record::Unreadable;
use crate::sled::record::promise::read_promise;

/// All that was promised under a key: one row for each device of one call.
pub(in crate::sled) fn promises_under(db: &Db, key: OnceKey) -> Result<Vec<Promise>, Fault> {
    let mut promises = Vec::new();
    for row in rows_of(db, &key::promise::promises_under(key)) {
        let (row, value) = row?;
        let device = key::promise::device_of(&row);
        let device = device.ok_or(Unreadable::Damaged("a promise"))?;
        promises.push(read_promise(key, device, &value)?);
    }
    Ok(promises)
}
