//! How much is queued, and is the store still reliable?

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use engine::delivery::backlog::Sequence;
use engine::known_devices::KnownDevices;
use engine::moment::Timestamp;
use tokio::sync::{oneshot, watch};

use crate::activity::Activity;
use crate::meters::StoreMeters;
use crate::partition_notifiers::PartitionNotifiers;
use crate::{CommitError, Pressure, Receipt, Unavailable};

/// The bytes of all queued batches: what a burst may cost in memory. A batch beyond it is refused.
const QUEUED_BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// What the committer shares with everyone who queues work for it.
pub(crate) struct CommitState {
    /// From how many queued batches on the store reports pressure: accepted work still has to
    /// finish, so room is left for it.
    batches_high: usize,
    batches: AtomicUsize,
    bytes: AtomicUsize,
    disk_full: AtomicBool,
    unreachable: AtomicBool,
    failed: AtomicBool,
    /// The group written last: the newest that a query may have seen.
    written: AtomicU64,
    /// The newest group that is durable.
    durable: watch::Sender<u64>,
    /// The newest number of an event that is durable.
    newest: AtomicU64,
    /// Held while a group is applied to the tree, and by readers that must not see that happen.
    applying: RwLock<()>,
    /// Who is notified of events that begin to wait.
    pub(crate) notifiers: PartitionNotifiers,
    /// How busy each customer was.
    pub(crate) activity: Activity,
    /// The metrics of the committer.
    pub(crate) meters: StoreMeters,
    /// The marks of all devices.
    pub(crate) known_devices: Arc<KnownDevices>,
}

impl CommitState {
    /// The state of an empty queue that holds this many batches, with a clock.
    pub(crate) fn new(queue_max: usize, now: fn() -> Timestamp) -> Self {
        Self {
            batches_high: (queue_max / 4 * 3).max(1),
            batches: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            disk_full: AtomicBool::new(false),
            unreachable: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            written: AtomicU64::new(0),
            durable: watch::Sender::new(0),
            newest: AtomicU64::new(0),
            applying: RwLock::new(()),
            notifiers: PartitionNotifiers::default(),
            activity: Activity::new(now),
            meters: StoreMeters::new(),
            known_devices: Arc::default(),
        }
    }

    /// The time.
    pub(crate) fn now(&self) -> Timestamp {
        self.activity.now()
    }

    /// Counts a batch in, unless there is no room for its bytes.
    pub(crate) fn enter(&self, bytes: usize) -> bool {
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
    pub(crate) fn leave(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.batches.fetch_sub(1, Ordering::Relaxed);
        self.meters.leave(bytes);
    }

    /// The receipt of a batch that was queued, or refused at once.
    pub(crate) fn receipt(
        &self,
        queued: Result<(), CommitError>,
        verdict: oneshot::Receiver<Result<(), CommitError>>,
    ) -> Receipt {
        if let Err(refused) = queued {
            self.meters.refused(refused);
            return Box::pin(std::future::ready(queued));
        }
        Box::pin(async move { verdict.await.unwrap_or(Err(CommitError::Unavailable)) })
    }

    /// Records that the disk is full.
    pub(crate) fn fill_disk(&self) {
        self.disk_full.store(true, Ordering::Relaxed);
    }

    /// Records that the disk has room.
    pub(crate) fn free_disk(&self) {
        self.disk_full.store(false, Ordering::Relaxed);
    }

    /// Records that there is no connection to the server.
    pub(crate) fn lose_server(&self) {
        self.unreachable.store(true, Ordering::Relaxed);
    }

    /// Records that there is a connection to the server.
    pub(crate) fn reach_server(&self) {
        self.unreachable.store(false, Ordering::Relaxed);
    }

    /// Whether there was no connection to the server when last tried.
    pub(crate) fn is_server_lost(&self) -> bool {
        self.unreachable.load(Ordering::Relaxed)
    }

    /// Records that no commit can succeed from now on.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
        // Wakes those who wait for a group to become durable.
        self.durable.send_modify(|_| {});
    }

    /// Records that a group is about to become visible. Only the committer calls this.
    pub(crate) fn begin_group(&self) {
        self.written.fetch_add(1, Ordering::SeqCst);
    }

    /// Records that the group is durable.
    pub(crate) fn end_group(&self) {
        self.durable
            .send_replace(self.written.load(Ordering::SeqCst));
        self.meters.group();
    }

    /// Records that events are durable up to a number. Only the committer calls this.
    pub(crate) fn reach(&self, Sequence(newest): Sequence) {
        self.newest.store(newest, Ordering::SeqCst);
    }

    /// The number up to which events are durable.
    pub(crate) fn reached(&self) -> Sequence {
        Sequence(self.newest.load(Ordering::SeqCst))
    }

    /// Applies a group to the tree. A single read of the tree sees all of it or nothing anyway.
    pub(crate) fn apply<T>(&self, put: impl FnOnce() -> T) -> T {
        let _applying = self
            .applying
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        put()
    }

    /// Reads rows and their counts while no group changes them. Commits wait meanwhile, so this
    /// must not take longer than a group does.
    pub(crate) fn between_groups<T>(&self, look: impl FnOnce() -> T) -> T {
        let _looking = self.applying.read().unwrap_or_else(PoisonError::into_inner);
        look()
    }

    /// The newest group that a query answered now may have seen.
    pub(crate) fn seen(&self) -> u64 {
        self.written.load(Ordering::SeqCst)
    }

    /// Waits until a group is durable, or is known to have failed.
    pub(crate) async fn settled(&self, group: u64) -> Result<(), Unavailable> {
        let mut durable = self.durable.subscribe();
        let waited = durable.wait_for(|durable| *durable >= group || self.failed());
        match waited.await {
            Ok(durable) if *durable >= group => Ok(()),
            Ok(_) | Err(_) => Err(Unavailable),
        }
    }

    /// Whether the disk was full when last checked.
    pub(crate) fn disk_full(&self) -> bool {
        self.disk_full.load(Ordering::Relaxed)
    }

    /// Whether no commit can succeed any more.
    pub(crate) fn failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Whether the store accepts new work.
    pub(crate) fn pressure(&self) -> Pressure {
        let is_queue_full = self.batches.load(Ordering::Relaxed) >= self.batches_high
            || self.bytes.load(Ordering::Relaxed) >= QUEUED_BYTES_MAX / 4 * 3;
        match (
            self.failed(),
            self.is_server_lost(),
            self.disk_full(),
            is_queue_full,
        ) {
            (true, _, _, _) => Pressure::Failed,
            (false, true, _, _) => Pressure::Unreachable,
            (false, false, true, _) => Pressure::DiskFull,
            (false, false, false, true) => Pressure::Full,
            (false, false, false, false) => Pressure::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn new_work_is_refused_before_the_queue_is_full() {
        let state = CommitState::new(4, Timestamp::default);
        assert!(state.enter(1) && state.enter(1));
        assert_eq!(state.pressure(), Pressure::Open);
        assert!(state.enter(1));
        assert_eq!(state.pressure(), Pressure::Full);
        state.leave(1);
        assert_eq!(state.pressure(), Pressure::Open);
    }

    #[test]
    fn a_server_that_is_away_outweighs_a_full_disk() {
        let state = CommitState::new(1, Timestamp::default);
        state.fill_disk();
        state.lose_server();
        assert_eq!(state.pressure(), Pressure::Unreachable);
        state.reach_server();
        assert_eq!(state.pressure(), Pressure::DiskFull);
    }

    #[test]
    fn bytes_are_bounded_but_one_batch_always_has_room() {
        let state = CommitState::new(100, Timestamp::default);
        assert!(state.enter(QUEUED_BYTES_MAX + 1));
        assert!(!state.enter(1));
        state.leave(QUEUED_BYTES_MAX + 1);
        assert!(state.enter(1));
    }

    #[test]
    fn an_answer_waits_until_what_it_shows_is_durable() {
        let state = CommitState::new(1, Timestamp::default);
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
        let state = CommitState::new(1, Timestamp::default);
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
