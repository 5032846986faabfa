//! Where a forwarder reads in which shards something begins to wait.

use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::ids::Shard;
use tokio::sync::Notify;

use crate::shards::ShardSet;

/// The shards of a customer in which something began to wait since the board was last read. What
/// is told of a shard again before that is told once, so that a board has a bound.
#[derive(Debug, Default)]
pub struct ShardNotifier {
    noted: Mutex<ShardSet>,
    notify: Notify,
}

impl ShardNotifier {
    /// Notes that something waits in a shard.
    pub fn note(&self, shard: Shard) {
        self.noted().insert(shard);
        self.notify.notify_one();
    }

    /// Waits until something is noted, and takes the shards off the board, in order.
    pub async fn read(&self) -> Vec<Shard> {
        loop {
            let shards = self.take();
            if !shards.is_empty() {
                return shards;
            }
            self.notify.notified().await;
        }
    }

    /// Takes the shards off the board that are noted by now.
    pub fn take(&self) -> Vec<Shard> {
        let shards = std::mem::take(&mut *self.noted());
        shards.iter().collect()
    }

    /// A set of bits cannot be left half.
    fn noted(&self) -> MutexGuard<'_, ShardSet> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_told_once_however_often_it_is_noted() {
        let notifier = ShardNotifier::default();
        for shard in [1_023, 0, 64, 0, 1_023] {
            notifier.note(Shard(shard));
        }
        assert_eq!(notifier.take(), [Shard(0), Shard(64), Shard(1_023)]);
        assert_eq!(notifier.take(), []);
    }
}
