//! Where a forwarder reads in which shards something begins to wait.

use std::sync::Mutex;

use engine::ids::Shard;
use engine::limits::SHARDS;
use tokio::sync::Notify;

const WORDS: usize = SHARDS as usize / 64;

/// The shards of a customer in which something began to wait since the board was last read. What
/// is told of a shard again before that is told once, so that a board has a bound.
#[derive(Debug, Default)]
pub struct Board {
    noted: Mutex<Noted>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct Noted([u64; WORDS]);

impl Board {
    /// Notes that something waits in a shard.
    pub fn note(&self, shard: Shard) {
        let (word, bit) = (usize::from(shard.0 / 64), shard.0 % 64);
        let mut noted = self.noted.lock().expect("nobody panics while noting");
        if let Some(word) = noted.0.get_mut(word) {
            *word |= 1 << bit;
        }
        drop(noted);
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
        let words = std::mem::take(&mut *self.noted.lock().expect("nobody panics while noting"));
        let shards = (0..SHARDS).map(Shard);
        let is_noted = |shard: &Shard| {
            let word = words.0.get(usize::from(shard.0 / 64));
            word.is_some_and(|word| word & (1 << (shard.0 % 64)) != 0)
        };
        shards.filter(is_noted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_told_once_however_often_it_is_noted() {
        let board = Board::default();
        for shard in [1_023, 0, 64, 0, 1_023] {
            board.note(Shard(shard));
        }
        assert_eq!(board.take(), [Shard(0), Shard(64), Shard(1_023)]);
        assert_eq!(board.take(), []);
    }
}
