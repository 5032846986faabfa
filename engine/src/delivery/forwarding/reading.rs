//! Which queued events are read next: the shards take turns, as far as there is room.

use crate::delivery::forwarding::shard_cursor::ShardCursor;
use crate::delivery::forwarding::task::{ForwarderOutput, ForwarderTask};
use crate::delivery::forwarding::{Forwarding, REPLAYED_MAX, RETRYING_MAX, Replaying};
use crate::ids::Shard;

/// Events of a destination in memory, tried or not: some hundred bytes each, and enough to serve a
/// thousand devices in parallel.
const OPEN_MAX: usize = 4_096;

/// Events of one shard in memory that were not tried yet; the shard is read further when half of
/// them are done. A shard has a thousandth of the devices.
const OPEN_PER_SHARD_MAX: usize = 64;

/// Events read at once from a shard while events become dead letters.
const DEAD_LETTERED_MAX: usize = 512;

impl Forwarding {
    pub(super) fn note(&mut self, shards: Vec<Shard>) {
        for shard in shards {
            let cursor = self.cursors.entry(shard);
            cursor
                .or_insert_with(|| ShardCursor::at(self.since))
                .note_more();
            self.queue(shard);
        }
    }

    /// Queues a shard to be read further, if it has events and there is room.
    pub(super) fn queue(&mut self, shard: Shard) {
        let open_max = self.open_per_shard_max();
        if let Some(cursor) = self.cursors.get_mut(&shard)
            && cursor.room(open_max) > 0
            && cursor.begin_queueing()
        {
            self.to_read.push_back(shard);
        }
    }

    pub(super) fn queue_all(&mut self) {
        let shards: Vec<Shard> = self.cursors.keys().copied().collect();
        for shard in shards {
            self.queue(shard);
        }
    }

    fn is_dead_lettering(&self) -> bool {
        self.is_failed() || self.excess > 0
    }

    /// How many events of a shard may be open; dead letters do not stay open.
    fn open_per_shard_max(&self) -> usize {
        match self.is_dead_lettering() {
            true => usize::MAX,
            false => OPEN_PER_SHARD_MAX,
        }
    }

    /// Reads further: dead letters of a replay before new events.
    pub(super) fn read_on(&mut self, out: &mut ForwarderOutput) {
        match self.replay {
            Replaying::Behind(after) if self.queues.retrying() < RETRYING_MAX / 2 => {
                self.replay = Replaying::Reading;
                let max = REPLAYED_MAX;
                out.task(ForwarderTask::ReadDeadLetters { after, max });
            }
            Replaying::Behind(_) | Replaying::Reading => {}
            Replaying::No => self.read_shards(out),
        }
    }

    fn read_shards(&mut self, out: &mut ForwarderOutput) {
        while self.may_read()
            && let Some(shard) = self.to_read.pop_front()
        {
            let is_dead_lettering = self.is_dead_lettering();
            let open_max = self.open_per_shard_max();
            let Some(cursor) = self.cursors.get_mut(&shard) else {
                continue;
            };
            cursor.end_queueing();
            let room = cursor.room(open_max);
            let max = match is_dead_lettering {
                true => room.min(DEAD_LETTERED_MAX),
                false => room,
            };
            if max > 0 {
                let max_rows = u32::try_from(max).unwrap_or(u32::MAX);
                let after = cursor.begin_read(max_rows);
                self.requested += max;
                out.task(ForwarderTask::Read {
                    shard,
                    after,
                    max: max_rows,
                });
            }
        }
    }

    /// Whether there is room for more; events that become dead letters are read in small parts.
    fn may_read(&self) -> bool {
        match self.is_dead_lettering() {
            true => self.requested == 0,
            false => {
                self.queues.open() + self.requested < OPEN_MAX
                    && self.queues.retrying() < RETRYING_MAX
            }
        }
    }
}
