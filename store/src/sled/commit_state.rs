//! How much is queued, and is the store still to be trusted?

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use engine::delivery::backlog::Sequence;
use tokio::sync::watch;

use super::meters::StoreMeters;
use super::shard_notifiers::ShardNotifiers;
use crate::{Pressure, Unavailable};

/// The bytes of all batches that wait: what a burst may cost in memory. One more is refused.
const QUEUED_BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// What the committer and everyone who hands it work know of each other.
pub(super) struct CommitState {
    /// From how many waiting batches on new work is unwelcome: what was accepted still has to
    /// finish, so room is left for it.
    batches_high: usize,
    batches: AtomicUsize,
    bytes: AtomicUsize,
    disk_full: AtomicBool,
    failed: AtomicBool,
    /// The group written last: the newest that a question may have seen.
    written: AtomicU64,
    /// The newest group that is durable.
    durable: watch::Sender<u64>,
    /// The newest number of an event that waits and is durable.
    newest: AtomicU64,
    /// Held while a group is put into the tree, and by those who must not see it come.
    applying: RwLock<()>,
    /// Who is told what begins to wait.
    pub(super) notifiers: ShardNotifiers,
    /// What is told of all this.
    pub(super) meters: StoreMeters,
}

impl CommitState {
    /// A gauge of an empty queue that holds so many batches.
    pub(super) fn new(queue_max: usize) -> Self {
        Self {
            batches_high: (queue_max / 4 * 3).max(1),
            batches: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            disk_full: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            written: AtomicU64::new(0),
            durable: watch::Sender::new(0),
            newest: AtomicU64::new(0),
            applying: RwLock::new(()),
            notifiers: ShardNotifiers::default(),
            meters: StoreMeters::new(),
        }
    }

    /// Counts a batch in, unless there is no room for its bytes.
    pub(super) fn enter(&self, bytes: usize) -> bool {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before > 0 && before.saturating_add(bytes) > QUEUED_BYTES_MAX {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.meters.enter(bytes);
        true
    }

    /// Counts a batch out.
    pub(super) fn leave(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.batches.fetch_sub(1, Ordering::Relaxed);
        self.meters.leave(bytes);
    }

    /// Says that the disk is full.
    pub(super) fn fill_disk(&self) {
        self.disk_full.store(true, Ordering::Relaxed);
    }

    /// Says that the disk has room.
    pub(super) fn free_disk(&self) {
        self.disk_full.store(false, Ordering::Relaxed);
    }

    /// Says that nothing can be promised from now on.
    pub(super) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
        // Who waits for a group to be durable waits no longer.
        self.durable.send_modify(|_| {});
    }

    /// Says that a group is about to be seen. Only the committer says so.
    pub(super) fn begin_group(&self) {
        self.written.fetch_add(1, Ordering::SeqCst);
    }

    /// Says that the group is durable.
    pub(super) fn end_group(&self) {
        self.durable
            .send_replace(self.written.load(Ordering::SeqCst));
        self.meters.group();
    }

    /// Says that what waits is durable up to a number. Only the committer says so.
    pub(super) fn reach(&self, Sequence(newest): Sequence) {
        self.newest.store(newest, Ordering::SeqCst);
    }

    /// Up to which number what waits is durable.
    pub(super) fn reached(&self) -> Sequence {
        Sequence(self.newest.load(Ordering::SeqCst))
    }

    /// Puts a group into the tree. A single look at the tree sees all of it or nothing anyway.
    pub(super) fn apply<T>(&self, put: impl FnOnce() -> T) -> T {
        let _applying = self
            .applying
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        put()
    }

    /// Looks at rows between which a group may move what they count, while none does. That keeps
    /// commits waiting: it must not take longer than a group does.
    pub(super) fn between_groups<T>(&self, look: impl FnOnce() -> T) -> T {
        let _looking = self.applying.read().unwrap_or_else(PoisonError::into_inner);
        look()
    }

    /// The newest group that a question answered by now may have seen.
    pub(super) fn seen(&self) -> u64 {
        self.written.load(Ordering::SeqCst)
    }

    /// Waits until a group is durable, or is known never to be.
    pub(super) async fn settled(&self, group: u64) -> Result<(), Unavailable> {
        let mut durable = self.durable.subscribe();
        let waited = durable.wait_for(|durable| *durable >= group || self.failed());
        match waited.await {
            Ok(durable) if *durable >= group => Ok(()),
            Ok(_) | Err(_) => Err(Unavailable),
        }
    }

    /// Whether the disk was full when last looked at.
    pub(super) fn disk_full(&self) -> bool {
        self.disk_full.load(Ordering::Relaxed)
    }

    /// Whether nothing can be promised any more.
    pub(super) fn failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Whether new work is welcome.
    pub(super) fn pressure(&self) -> Pressure {
        let full = self.disk_full()
            || self.failed()
            || self.batches.load(Ordering::Relaxed) >= self.batches_high
            || self.bytes.load(Ordering::Relaxed) >= QUEUED_BYTES_MAX / 4 * 3;
        if full { Pressure::Full } else { Pressure::Open }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn new_work_is_unwelcome_before_the_queue_is_full() {
        let state = CommitState::new(4);
        assert!(state.enter(1) && state.enter(1));
        assert_eq!(state.pressure(), Pressure::Open);
        assert!(state.enter(1));
        assert_eq!(state.pressure(), Pressure::Full);
        state.leave(1);
        assert_eq!(state.pressure(), Pressure::Open);
    }

    #[test]
    fn bytes_are_bounded_but_one_batch_always_has_room() {
        let state = CommitState::new(100);
        assert!(state.enter(QUEUED_BYTES_MAX + 1));
        assert!(!state.enter(1));
        state.leave(QUEUED_BYTES_MAX + 1);
        assert!(state.enter(1));
    }

    #[test]
    fn what_was_seen_of_a_group_is_settled_once_the_group_is_durable() {
        let state = CommitState::new(1);
        let before = state.seen();
        assert_eq!(poll(state.settled(before)), Poll::Ready(Ok(())));
        state.begin_group();
        let during = state.seen();
        assert_eq!(poll(state.settled(before)), Poll::Ready(Ok(())));
        assert_eq!(poll(state.settled(during)), Poll::Pending);
        state.end_group();
        assert_eq!(poll(state.settled(during)), Poll::Ready(Ok(())));
    }

    #[test]
    fn what_was_seen_of_a_group_that_failed_is_never_settled() {
        let state = CommitState::new(1);
        state.begin_group();
        let during = state.seen();
        let mut waiting = std::pin::pin!(state.settled(during));
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(waiting.as_mut().poll(&mut context), Poll::Pending);
        state.fail();
        let settled = waiting.as_mut().poll(&mut context);
        assert_eq!(settled, Poll::Ready(Err(Unavailable)));
    }

    fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
        let mut future = std::pin::pin!(future);
        future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
    }
}
