//! Which queued events are read next: the partitions take turns, as far as there is room.

use crate::delivery::forwarding::partition_cursor::PartitionCursor;
use crate::delivery::forwarding::task::{ForwarderOutput, ForwarderTask};
use crate::delivery::forwarding::{Forwarding, REPLAYED_MAX, RETRYING_MAX, Replaying};
use crate::ids::Partition;

/// Events of a destination in memory, tried or not: some hundred bytes each, and enough to serve a
/// thousand devices in parallel.
const OPEN_MAX: usize = 4_096;

/// Events of one partition in memory that were not tried yet; the partition is read further when
/// half of them are done. An eighth of those of all partitions, so that a few partitions in which
/// devices wait for retries leave room for the others.
const OPEN_PER_PARTITION_MAX: usize = OPEN_MAX / 8;

/// Events read at once from a partition while events become dead letters.
const DEAD_LETTERED_MAX: usize = 512;

impl Forwarding {
    pub(super) fn note(&mut self, partitions: Vec<Partition>) {
        for partition in partitions {
            let cursor = self.cursors.entry(partition);
            cursor
                .or_insert_with(|| PartitionCursor::at(self.since))
                .note_more();
            self.queue(partition);
        }
    }

    /// Queues a partition to be read further, if it has events and there is room.
    pub(super) fn queue(&mut self, partition: Partition) {
        let open_max = self.open_per_partition_max();
        if let Some(cursor) = self.cursors.get_mut(&partition)
            && cursor.room(open_max) > 0
            && cursor.begin_queueing()
        {
            self.to_read.push_back(partition);
        }
    }

    pub(super) fn queue_all(&mut self) {
        let partitions: Vec<Partition> = self.cursors.keys().copied().collect();
        for partition in partitions {
            self.queue(partition);
        }
    }

    fn is_dead_lettering(&self) -> bool {
        self.is_failed() || self.excess > 0
    }

    /// How many events of a partition may be open; dead letters do not stay open.
    fn open_per_partition_max(&self) -> usize {
        match self.is_dead_lettering() {
            true => usize::MAX,
            false => OPEN_PER_PARTITION_MAX,
        }
    }

    /// Reads further: dead letters of a replay before new events.
    pub(super) fn read_on(&mut self, out: &mut ForwarderOutput) {
        match self.replay {
            // What happens until the restart becomes a dead letter, too.
            Replaying::Behind(_) if self.is_failed() => self.read_partitions(out),
            Replaying::Behind(after) if self.queues.retrying() < RETRYING_MAX / 2 => {
                self.replay = Replaying::Reading;
                let max = REPLAYED_MAX;
                out.task(ForwarderTask::ReadDeadLetters { after, max });
            }
            Replaying::Behind(_) | Replaying::Reading => {}
            Replaying::No => self.read_partitions(out),
        }
    }

    fn read_partitions(&mut self, out: &mut ForwarderOutput) {
        while self.may_read()
            && let Some(partition) = self.to_read.pop_front()
        {
            let is_dead_lettering = self.is_dead_lettering();
            let open_max = self.open_per_partition_max();
            let Some(cursor) = self.cursors.get_mut(&partition) else {
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
                    partition,
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
