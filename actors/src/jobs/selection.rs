//! Which devices does a filter select for a job?

use std::sync::Arc;

use engine::ids::DeviceId;
use engine::limits::DEVICES_EXAMINED_MAX;
use engine::query::PageRequest;
use engine::query::devices::{DeviceFilter, DevicePageRequest, DeviceTotal, SearchTooBroad};
use store::{Reads, Unavailable};

/// Reads the devices of jobs.
#[derive(Clone)]
pub struct DeviceSelection {
    /// Lists devices.
    pub store: Arc<dyn Reads>,
    /// The most devices of a job.
    pub devices_max: u32,
}

/// Why a filter selects no devices for a job.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SelectionFailure {
    /// Too many match.
    TooMany {
        /// How many match.
        matched: DeviceTotal,
        /// The most devices of a job.
        max: u32,
    },
    /// More identifiers match its prefix than a search reads.
    TooBroad(SearchTooBroad),
    /// The store could not be read.
    Unavailable(Unavailable),
}

impl DeviceSelection {
    /// The devices that pass a filter, by device id, unless they are too many for a job. One that
    /// changes while they are read may be missing, but none is there twice.
    pub async fn matching(&self, filter: DeviceFilter) -> Result<Vec<DeviceId>, SelectionFailure> {
        let mut devices = Vec::new();
        let mut wanted = DevicePageRequest::of(PageRequest {
            number: 1,
            size: DEVICES_EXAMINED_MAX,
        });
        loop {
            let page = self.store.devices_of(filter.clone(), wanted.clone()).await;
            let page = page.map_err(SelectionFailure::Unavailable)?;
            let page = page.map_err(SelectionFailure::TooBroad)?;
            // The total is that of the list behind the cursor.
            let matched = page.total.and(devices.len() as u64);
            let max = self.devices_max;
            if matched.count() > u64::from(max) {
                return Err(SelectionFailure::TooMany { matched, max });
            }
            devices.extend(page.items.into_iter().map(|listed| listed.profile.device));
            match page.next {
                Some(last) => wanted.after = Some(last),
                None => return Ok(devices),
            }
        }
    }
}
