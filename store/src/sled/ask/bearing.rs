//! Which of many names do devices bear, and what is there under the ids among them?

use engine::change::Name;
use engine::directory::import::Known;
use sled::Db;

use super::devices::{bearer, profile};
use crate::sled::fault::Fault;

/// Those of the names that devices bear, and the devices that bear the ids among them.
pub(in crate::sled) fn known(db: &Db, names: Vec<Name>) -> Result<Known, Fault> {
    let mut known = Known::default();
    for name in names {
        let is_borne = match &name {
            Name::Device(key) => match profile(db, *key)? {
                Some(there) => {
                    known.profile_by_key.insert(*key, there);
                    true
                }
                None => false,
            },
            Name::Customer(_)
            | Name::Client(_)
            | Name::Iccid(_)
            | Name::Imsi(_)
            | Name::Msisdn(_)
            | Name::Endpoint(_)
            | Name::PskIdentity(_) => bearer(db, &name)?.is_some(),
        };
        if is_borne {
            known.borne.insert(name);
        }
    }
    Ok(known)
}
