//! What is read next of what waits: shard by shard in turns, as far as there is room.

use crate::delivery::forwarding::errand::{Errand, Errands};
use crate::delivery::forwarding::place::Place;
use crate::delivery::forwarding::{Forwarding, HELD_MAX, REPLAYED_MAX, Replaying};
use crate::ids::Shard;

/// Events of a destination in memory, tried or not: some hundred bytes each, and enough that a
/// thousand devices are served side by side.
const OPEN_MAX: usize = 4_096;

/// Events of one shard in memory that were not tried yet; the shard is read on when half of them
/// are done with. A shard has a thousandth of the devices.
const OPEN_PER_SHARD_MAX: usize = 64;

/// What is read of a shard for a destination that takes nothing, or too little.
const SET_ASIDE_MAX: usize = 512;

impl Forwarding {
    pub(super) fn note(&mut self, shards: Vec<Shard>) {
        for shard in shards {
            let place = self.places.entry(shard);
            place.or_insert_with(|| Place::at(self.since)).note_news();
            self.queue(shard);
        }
    }

    /// Lets a shard be read on when its turn comes, if there is something and room for it.
    pub(super) fn queue(&mut self, shard: Shard) {
        let open_max = self.open_per_shard_max();
        if let Some(place) = self.places.get_mut(&shard)
            && place.room(open_max) > 0
            && place.begin_queueing()
        {
            self.to_read.push_back(shard);
        }
    }

    pub(super) fn queue_all(&mut self) {
        let shards: Vec<Shard> = self.places.keys().copied().collect();
        for shard in shards {
            self.queue(shard);
        }
    }

    fn sets_aside(&self) -> bool {
        self.is_failed() || self.excess > 0
    }

    /// What may be open of a shard when it is read on; what is set aside does not stay open.
    fn open_per_shard_max(&self) -> usize {
        match self.sets_aside() {
            true => usize::MAX,
            false => OPEN_PER_SHARD_MAX,
        }
    }

    /// Reads on: what is to be delivered again comes before anything new.
    pub(super) fn read_on(&mut self, out: &mut Errands) {
        match self.replay {
            Replaying::Behind(after) if self.lanes.held() < HELD_MAX / 2 => {
                self.replay = Replaying::Reading;
                let max = REPLAYED_MAX;
                out.errand(Errand::ReadDead { after, max });
            }
            Replaying::Behind(_) | Replaying::Reading => {}
            Replaying::No => self.read_shards(out),
        }
    }

    fn read_shards(&mut self, out: &mut Errands) {
        while self.may_read()
            && let Some(shard) = self.to_read.pop_front()
        {
            let sets_aside = self.sets_aside();
            let open_max = self.open_per_shard_max();
            let Some(place) = self.places.get_mut(&shard) else {
                continue;
            };
            place.end_queueing();
            let room = place.room(open_max);
            let max = match sets_aside {
                true => room.min(SET_ASIDE_MAX),
                false => room,
            };
            if max > 0 {
                let max_rows = u32::try_from(max).unwrap_or(u32::MAX);
                let after = place.begin_read(max_rows);
                self.coming += max;
                out.errand(Errand::Read {
                    shard,
                    after,
                    max: max_rows,
                });
            }
        }
    }

    /// Whether there is room for more; what is set aside is read bit by bit.
    fn may_read(&self) -> bool {
        match self.sets_aside() {
            true => self.coming == 0,
            false => self.lanes.open() + self.coming < OPEN_MAX && self.lanes.held() < HELD_MAX,
        }
    }
}
