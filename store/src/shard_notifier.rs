//! In which shards did events begin to wait? A forwarder reads that here.

use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::ids::Shard;
use tokio::sync::Notify;

use crate::shards::ShardSet;

/// The shards of a customer in which an event began to wait since the last read. A shard noted
/// several times between two reads is reported once, so the size is bounded.
#[derive(Debug, Default)]
pub struct ShardNotifier {
    noted: Mutex<ShardSet>,
    notify: Notify,
}

impl ShardNotifier {
    /// Notes that an event waits in a shard.
    pub fn note(&self, shard: Shard) {
        self.noted().insert(shard);
        self.notify.notify_one();
    }

    /// Waits until a shard is noted; returns and clears the noted shards, in order.
    pub async fn read(&self) -> Vec<Shard> {
        loop {
            let shards = self.take();
            if !shards.is_empty() {
                return shards;
            }
            self.notify.notified().await;
        }
    }

    /// Returns and clears the shards noted so far.
    pub fn take(&self) -> Vec<Shard> {
        let shards = std::mem::take(&mut *self.noted());
        shards.iter().collect()
    }

    /// The lock may be poisoned: a set of bits is always consistent.
    fn noted(&self) -> MutexGuard<'_, ShardSet> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_reported_once_however_often_it_is_noted() {
        let notifier = ShardNotifier::default();
        for shard in [1_023, 0, 64, 0, 1_023] {
            notifier.note(Shard(shard));
        }
        assert_eq!(notifier.take(), [Shard(0), Shard(64), Shard(1_023)]);
        assert_eq!(notifier.take(), []);
    }
}
