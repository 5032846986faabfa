//! Which pieces of images are in memory? Those that were used last, within a bound, so that devices
//! that are given the same image do not each read the file.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::ids::ImageId;
use engine::limits::IMAGE_CACHE_BYTES_MAX;

/// The bytes that are read at a time: many blocks, and few enough for the bound to hold hundreds of
/// pieces. Every block is within one of them.
pub(super) const PIECE_BYTES: u64 = 64 * 1_024;

/// An image and the number of a piece of it.
pub(super) type PieceId = (ImageId, u64);

/// The pieces in memory.
#[derive(Default)]
pub(super) struct PieceCache {
    pieces: Mutex<Pieces>,
}

#[derive(Default)]
struct Pieces {
    kept: HashMap<PieceId, KeptPiece>,
    bytes: usize,
    /// Counts uses.
    uses: u64,
}

struct KeptPiece {
    bytes: Arc<[u8]>,
    used: u64,
}

impl PieceCache {
    /// A piece, if it is in memory.
    pub(super) fn find(&self, id: PieceId) -> Option<Arc<[u8]>> {
        let mut pieces = self.lock();
        pieces.uses += 1;
        let uses = pieces.uses;
        let kept = pieces.kept.get_mut(&id)?;
        kept.used = uses;
        Some(Arc::clone(&kept.bytes))
    }

    /// Keeps a piece that was read. What was not used for longest makes room for it.
    pub(super) fn keep(&self, id: PieceId, bytes: Arc<[u8]>) {
        let mut pieces = self.lock();
        pieces.uses += 1;
        let used = pieces.uses;
        pieces.bytes += bytes.len();
        if let Some(before) = pieces.kept.insert(id, KeptPiece { bytes, used }) {
            pieces.bytes -= before.bytes.len();
        }
        while pieces.bytes > IMAGE_CACHE_BYTES_MAX {
            let kept = pieces.kept.iter();
            let Some(oldest) = kept.min_by_key(|(_, kept)| kept.used).map(|(id, _)| *id) else {
                return;
            };
            if let Some(dropped) = pieces.kept.remove(&oldest) {
                pieces.bytes -= dropped.bytes.len();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_were_not_used_make_room_for_others() {
        let (cache, image) = (PieceCache::default(), ImageId::from_bytes([1; 16]));
        let piece: Arc<[u8]> = vec![7; IMAGE_CACHE_BYTES_MAX / 4].into();
        for number in 0..4 {
            cache.keep((image, number), Arc::clone(&piece));
        }
        assert!(cache.find((image, 0)).is_some());
        cache.keep((image, 4), Arc::clone(&piece));
        let found = (0..5).filter(|number| cache.find((image, *number)).is_some());
        assert_eq!(found.collect::<Vec<_>>(), [0, 2, 3, 4]);
        cache.keep((image, 4), piece);
        assert!(cache.find((image, 0)).is_some(), "it is counted once");
    }
}
