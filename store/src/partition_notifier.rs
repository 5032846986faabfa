//! In which partitions are new events? A forwarder reads that here.

use std::sync::atomic::{AtomicU16, Ordering};

use engine::ids::Partition;
use tokio::sync::Notify;

/// The partitions of a customer in which events were stored since the last read. One noted several
/// times between two reads is reported once.
#[derive(Debug, Default)]
pub struct PartitionNotifier {
    /// A bit for each partition.
    noted: AtomicU16,
    notify: Notify,
}

impl PartitionNotifier {
    /// Notes that a partition has a new event.
    pub fn note(&self, partition: Partition) {
        self.noted.fetch_or(1 << partition.0, Ordering::SeqCst);
        self.notify.notify_one();
    }

    /// Waits until a partition is noted; returns and clears the noted partitions, in order.
    pub async fn read(&self) -> Vec<Partition> {
        loop {
            let partitions = self.take();
            if !partitions.is_empty() {
                return partitions;
            }
            self.notify.notified().await;
        }
    }

    /// Returns and clears the partitions noted so far.
    pub fn take(&self) -> Vec<Partition> {
        let noted = self.noted.swap(0, Ordering::SeqCst);
        let is_noted = |partition: &Partition| noted & (1 << partition.0) != 0;
        Partition::all().filter(is_noted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_reported_once_however_often_it_is_noted() {
        let notifier = PartitionNotifier::default();
        for partition in [15, 0, 4, 0, 15] {
            notifier.note(Partition(partition));
        }
        assert_eq!(notifier.take(), [Partition(0), Partition(4), Partition(15)]);
        assert_eq!(notifier.take(), []);
    }
}
