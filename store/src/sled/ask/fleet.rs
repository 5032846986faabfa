//! Which devices does a customer have?
//!
//! Devices are listed by their ids among those with the same flags. A list over several
//! combinations of flags merges as many ranges, so its cost grows with what is skipped and shown
//! and not with what exists; its total is a sum of counts. Devices are searched by name prefix: by
//! id among the customer's own, by other names among all customers' devices, because those names
//! are unique service-wide. If more names have the prefix than the customer has devices, its
//! devices are read instead.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};

use engine::change::Counter;
use engine::ids::{CustomerId, DeviceKey, Imsi, Msisdn};
use engine::limits::NAMES_SEARCHED_MAX;
use engine::profile::Profile;
use engine::query::devices::{DeviceFilter, SearchTooBroad};
use engine::query::{Page, PageRequest};
use sled::{Db, IVec, Iter};

use super::devices::profile;
use super::{count, load, rows_of};
use crate::sled::fault::Fault;
use crate::sled::key;
use crate::sled::record::device_flags::{DeviceFlags, read_device_flags};
use crate::sled::record::number::read_name_owner;

/// A page of the devices of a customer that pass a filter.
pub(in crate::sled) fn devices_of(
    db: &Db,
    filter: &DeviceFilter,
    page: PageRequest,
) -> Result<Page<Profile>, Fault> {
    let customer = &filter.customer;
    let mut total = 0;
    let mut ranges = Vec::new();
    for flags in wanted(filter) {
        let counted = count(db, &key::device::counted(customer, flags))?;
        if counted > 0 {
            total += counted;
            ranges.push(Range::of(db, customer, flags, ""));
        }
    }
    if *filter == DeviceFilter::all_of(customer.clone()) {
        total = count(db, &key::counter(&Counter::Devices(customer.clone())))?;
    }
    let mut items = Vec::new();
    if page.skip() < total {
        for device in page_of_devices(ranges, page)? {
            items.extend(profile(db, device)?);
        }
    }
    Ok(Page { items, total })
}

/// A page of the devices that pass a filter and have a name with a prefix.
pub(in crate::sled) fn devices_named(
    db: &Db,
    beginning: &str,
    filter: &DeviceFilter,
    page: PageRequest,
) -> Result<Result<Page<Profile>, SearchTooBroad>, Fault> {
    let mut own = 0;
    for flags in wanted(filter) {
        own += count(db, &key::device::counted(&filter.customer, flags))?;
    }
    let own = usize::try_from(own).unwrap_or(usize::MAX);
    let mut search = Search::of(own.min(NAMES_SEARCHED_MAX));
    if let Err(broad) = search.look_at_names(db, beginning, filter)? {
        if own > NAMES_SEARCHED_MAX {
            return Ok(Err(broad));
        }
        search = Search::among_own(db, beginning, filter)?;
    }
    search.page(db, page).map(Ok)
}

fn wanted(filter: &DeviceFilter) -> impl Iterator<Item = DeviceFlags> {
    DeviceFlags::every().filter(|flags| flags.pass(filter))
}

/// The devices of a customer with the same flags, in the order of their ids.
struct Range {
    rows: Iter,
    /// The length of a key before the id.
    before_id: usize,
}

impl Range {
    fn of(db: &Db, customer: &CustomerId, flags: DeviceFlags, beginning: &str) -> Self {
        let devices = key::device::devices_of(customer, flags);
        let before_id = devices.len();
        Self {
            rows: rows_of(db, &key::append(devices, beginning.as_bytes())),
            before_id,
        }
    }

    /// The id of the next device, and its key.
    fn next(&mut self) -> Result<Option<(IVec, IVec)>, Fault> {
        let Some(row) = self.rows.next() else {
            return Ok(None);
        };
        let (key, owner) = row?;
        let id = key.subslice(self.before_id, key.len() - self.before_id);
        Ok(Some((id, owner)))
    }
}

/// Merges ranges, the smallest id first, and cuts a page out. A device that changes while the list
/// is read may be found twice and is shown once.
fn page_of_devices(mut ranges: Vec<Range>, page: PageRequest) -> Result<Vec<DeviceKey>, Fault> {
    let mut heads = BinaryHeap::new();
    for (number, range) in ranges.iter_mut().enumerate() {
        heads.extend(range.next()?.map(|head| (Reverse(head), number)));
    }
    let mut skip = page.skip();
    let mut last = None;
    let mut devices = Vec::new();
    while let Some((Reverse((id, owner)), number)) = heads.pop() {
        if let Some(range) = ranges.get_mut(number) {
            heads.extend(range.next()?.map(|head| (Reverse(head), number)));
        }
        if last.as_ref() == Some(&id) {
            continue;
        }
        last = Some(id);
        if skip > 0 {
            skip -= 1;
            continue;
        }
        devices.push(read_name_owner(&owner)?);
        if u32::try_from(devices.len()).unwrap_or(u32::MAX) >= page.size {
            break;
        }
    }
    Ok(devices)
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

    /// The devices found by looking at every device of the customer that passes the filter.
    fn among_own(db: &Db, beginning: &str, filter: &DeviceFilter) -> Result<Self, Fault> {
        let mut search = Self::of(0);
        for flags in wanted(filter) {
            let mut range = Range::of(db, &filter.customer, flags, "");
            while let Some((id, owner)) = range.next()? {
                let device = read_name_owner(&owner)?;
                if profile(db, device)?.is_some_and(|it| has_name(&it, beginning)) {
                    search.find(device, id);
                }
            }
        }
        Ok(search)
    }

    /// Looks at every name with the prefix, the customer's own ids first, unless there are too
    /// many.
    fn look_at_names(
        &mut self,
        db: &Db,
        beginning: &str,
        filter: &DeviceFilter,
    ) -> Result<Result<(), SearchTooBroad>, Fault> {
        for flags in wanted(filter) {
            let mut range = Range::of(db, &filter.customer, flags, beginning);
            while let Some((id, owner)) = range.next()? {
                if let Err(broad) = self.count_one() {
                    return Ok(Err(broad));
                }
                self.find(read_name_owner(&owner)?, id);
            }
        }
        for names in key::device::names_beginning(beginning) {
            for owner in rows_of(db, &names).values() {
                if let Err(broad) = self.count_one() {
                    return Ok(Err(broad));
                }
                self.look_at(db, read_name_owner(&owner?)?, filter)?;
            }
        }
        Ok(Ok(()))
    }

    /// Counts one more name, unless there are too many.
    fn count_one(&mut self) -> Result<(), SearchTooBroad> {
        self.names_left = self.names_left.checked_sub(1).ok_or(SearchTooBroad)?;
        Ok(())
    }

    fn find(&mut self, device: DeviceKey, id: IVec) {
        self.seen.insert(device);
        self.device_by_id.insert(id, device);
    }

    /// Adds a device to the results if it passes the filter.
    fn look_at(&mut self, db: &Db, device: DeviceKey, filter: &DeviceFilter) -> Result<(), Fault> {
        if !self.seen.insert(device) {
            return Ok(());
        }
        let Some(profile) = profile(db, device)? else {
            return Ok(());
        };
        if profile.customer == filter.customer && flags_of(db, device)?.pass(filter) {
            let id = IVec::from(profile.device.as_str());
            self.device_by_id.insert(id, device);
        }
        Ok(())
    }

    fn page(self, db: &Db, page: PageRequest) -> Result<Page<Profile>, Fault> {
        let total = u64::try_from(self.device_by_id.len()).expect("a bounded count");
        let skip = usize::try_from(page.skip()).unwrap_or(usize::MAX);
        let size = usize::try_from(page.size).unwrap_or(usize::MAX);
        let mut items = Vec::new();
        for device in self.device_by_id.into_values().skip(skip).take(size) {
            items.extend(profile(db, device)?);
        }
        Ok(Page { items, total })
    }
}

fn flags_of(db: &Db, device: DeviceKey) -> Result<DeviceFlags, Fault> {
    let flags = load(db, &key::device::record(device), read_device_flags)?;
    Ok(flags.unwrap_or_default())
}

/// Whether a device has a name with a prefix.
fn has_name(profile: &Profile, beginning: &str) -> bool {
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
    names.any(|name| name.starts_with(beginning))
}
