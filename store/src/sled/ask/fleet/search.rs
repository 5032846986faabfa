//! Which devices of a customer have a name with a prefix?

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;

use engine::ids::{DeviceKey, Imsi, Msisdn};
use engine::limits::NAMES_SEARCHED_MAX;
use engine::profile::Profile;
use engine::query::devices::{DevicePage, DevicePageRequest, DeviceTotal, SearchTooBroad};
use sled::{Db, IVec};

use super::{After, Candidates, Chosen, Examination};
use crate::record::number::read_name_owner;
use crate::sled::ask::devices::profile;
use crate::sled::ask::rows_of;
use crate::sled::fault::Fault;
use crate::sled::key;

/// A page of the candidates that have a name with a prefix and pass the rest of the filter.
pub(super) fn devices_named(
    db: &Db,
    prefix: &str,
    candidates: &Candidates<'_>,
    wanted: &DevicePageRequest,
) -> Result<Result<DevicePage, SearchTooBroad>, Fault> {
    let own = usize::try_from(candidates.count).unwrap_or(usize::MAX);
    let mut search = Search::of(own.min(NAMES_SEARCHED_MAX));
    if let Err(broad) = search.look_at_names(db, prefix, candidates)? {
        if own > NAMES_SEARCHED_MAX {
            return Ok(Err(broad));
        }
        search = Search::among(db, prefix, candidates)?;
    }
    search.page(db, wanted).map(Ok)
}

/// A search in progress.
struct Search {
    /// The devices found, by their ids.
    device_by_id: BTreeMap<IVec, DeviceKey>,
    /// The devices already looked at: by default all names of a device are the same.
    seen: HashSet<DeviceKey>,
    names_left: usize,
}

impl Search {
    /// A search that looks at a bounded number of names.
    fn of(names_max: usize) -> Self {
        Self {
            device_by_id: BTreeMap::new(),
            seen: HashSet::new(),
            names_left: names_max,
        }
    }

    /// The devices found by looking at every candidate.
    fn among(db: &Db, prefix: &str, candidates: &Candidates<'_>) -> Result<Self, Fault> {
        let (mut search, mut rest) = (Self::of(0), candidates.rest(db)?);
        let mut devices = candidates.devices(db, After::Prefix(""))?;
        while let Some((id, device)) = devices.next()? {
            let is_named = profile(db, device)?.is_some_and(|it| has_name(&it, prefix));
            if is_named && rest.passes(db, &id, device)? {
                search.device_by_id.insert(id, device);
            }
        }
        Ok(search)
    }

    /// Looks at every name with the prefix, the ids of candidates first, unless there are too many.
    fn look_at_names(
        &mut self,
        db: &Db,
        prefix: &str,
        candidates: &Candidates<'_>,
    ) -> Result<Result<(), SearchTooBroad>, Fault> {
        let mut rest = candidates.rest(db)?;
        let mut devices = candidates.devices(db, After::Prefix(prefix))?;
        while let Some((id, device)) = devices.next()? {
            if let Err(broad) = self.count_one() {
                return Ok(Err(broad));
            }
            if self.seen.insert(device) && rest.passes(db, &id, device)? {
                self.device_by_id.insert(id, device);
            }
        }
        let mut whole = Examination::of((db, candidates.heads), candidates.filter)?;
        for names in key::device::names_beginning(prefix) {
            for owner in rows_of(db, &names).values() {
                if let Err(broad) = self.count_one() {
                    return Ok(Err(broad));
                }
                self.look_at(db, read_name_owner(&owner?)?, &mut whole)?;
            }
        }
        Ok(Ok(()))
    }

    /// Counts one more name, unless there are too many.
    fn count_one(&mut self) -> Result<(), SearchTooBroad> {
        self.names_left = self.names_left.checked_sub(1).ok_or(SearchTooBroad)?;
        Ok(())
    }

    /// Adds a device to the results if it is the customer's and passes the filter.
    fn look_at(
        &mut self,
        db: &Db,
        device: DeviceKey,
        whole: &mut Examination<'_>,
    ) -> Result<(), Fault> {
        if !self.seen.insert(device) {
            return Ok(());
        }
        let Some(profile) = profile(db, device)? else {
            return Ok(());
        };
        let id = IVec::from(profile.device.as_str());
        if profile.customer == whole.filter.customer && whole.passes(db, &id, device)? {
            self.device_by_id.insert(id, device);
        }
        Ok(())
    }

    fn page(self, db: &Db, wanted: &DevicePageRequest) -> Result<DevicePage, Fault> {
        let first = match &wanted.after {
            Some(id) => Bound::Excluded(IVec::from(id.as_str())),
            None => Bound::Unbounded,
        };
        let (mut chosen, mut total) = (Chosen::default(), 0);
        for (id, device) in self.device_by_id.range((first, Bound::Unbounded)) {
            total += 1;
            if total > wanted.page.skip() {
                chosen.take((id.clone(), *device), wanted.page.size);
            }
        }
        chosen.page(db, DeviceTotal::Exactly(total))
    }
}

/// Whether a device has a name with a prefix.
fn has_name(profile: &Profile, prefix: &str) -> bool {
    let Profile {
        device,
        iccid,
        imsi,
        msisdn,
        endpoint,
        ..
    } = profile;
    let names = [device.as_str(), iccid.as_str(), endpoint.as_str()];
    let imsi = imsi.as_ref().map(Imsi::as_str);
    let msisdn = msisdn.as_ref().map(Msisdn::as_str);
    let mut names = names.into_iter().chain(imsi).chain(msisdn);
    names.any(|name| name.starts_with(prefix))
}
