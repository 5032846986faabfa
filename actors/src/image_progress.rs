//! How much of an image was given to the devices that get one? Known as long as the process runs,
//! because it must not cost a write for each block.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::ids::CampaignId;
use engine::limits::IMAGE_PROGRESS_MAX;

/// A device by its campaign and its place there.
type Place = (CampaignId, u32);

/// How far devices are. The one that began first is forgotten beyond the bound.
#[derive(Clone, Default)]
pub struct ImageProgress(Arc<Mutex<Transfers>>);

#[derive(Default)]
struct Transfers {
    bytes_by_place: HashMap<Place, u64>,
    oldest_first: VecDeque<Place>,
}

impl ImageProgress {
    /// Notes that a device was given an image up to this byte.
    pub fn note(&self, campaign: CampaignId, place: u32, bytes: u64) {
        let (mut transfers, place) = (self.lock(), (campaign, place));
        if transfers.bytes_by_place.insert(place, bytes).is_some() {
            return;
        }
        transfers.oldest_first.push_back(place);
        if transfers.oldest_first.len() > IMAGE_PROGRESS_MAX
            && let Some(oldest) = transfers.oldest_first.pop_front()
        {
            transfers.bytes_by_place.remove(&oldest);
        }
    }

    /// How much a device was given, if it is known.
    pub fn of(&self, campaign: CampaignId, place: u32) -> Option<u64> {
        let transfers = self.lock();
        transfers.bytes_by_place.get(&(campaign, place)).copied()
    }

    fn lock(&self) -> MutexGuard<'_, Transfers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_that_began_first_is_forgotten_beyond_the_bound() {
        let (progress, campaign) = (ImageProgress::default(), CampaignId::from_bytes([1; 16]));
        let places = u32::try_from(IMAGE_PROGRESS_MAX).unwrap();
        for place in 0..places {
            progress.note(campaign, place, 7);
        }
        progress.note(campaign, 0, 9);
        assert_eq!(progress.of(campaign, 0), Some(9));
        progress.note(campaign, places, 7);
        assert_eq!(progress.of(campaign, 0), None);
        assert_eq!(progress.of(campaign, 1), Some(7));
    }
}
