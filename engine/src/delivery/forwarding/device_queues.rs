//! What is open of each device, in order: one of a device is under way at a time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use crate::delivery::backlog::{PendingRetry, QueuedEvent, Sequence};
use crate::ids::DeviceKey;
use crate::moment::Timestamp;

/// An event that is not done with.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenEvent {
    pub(super) queued: QueuedEvent,
    pub(super) tries: u8,
    stage: Stage,
}

/// How far an open event has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    /// It waits for its turn, and will be read again if the service stops.
    Fresh,
    /// It is an exception, to be tried from this time on.
    Retrying(Timestamp),
    /// It is an exception whose time has come.
    Due,
    /// It is under way for the first time.
    InFlight,
    /// It is an exception and under way.
    RetryInFlight,
}

impl OpenEvent {
    /// Whether it is kept as an exception.
    pub(super) fn is_retrying(&self) -> bool {
        match self.stage {
            Stage::Retrying(_) | Stage::Due | Stage::RetryInFlight => true,
            Stage::Fresh | Stage::InFlight => false,
        }
    }

    fn is_in_flight(&self) -> bool {
        match self.stage {
            Stage::InFlight | Stage::RetryInFlight => true,
            Stage::Fresh | Stage::Retrying(_) | Stage::Due => false,
        }
    }
}

/// What is open of a device.
#[derive(Debug, Default)]
struct DeviceQueue {
    order: BTreeSet<Sequence>,
    /// What of it is under way.
    in_flight: Option<Sequence>,
    /// How many of it were tried in vain.
    tried: usize,
}

/// Which events may go on their way.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Eligible {
    #[default]
    All,
    /// What is no exception waits: of its device, too, something older may yet come.
    RetriesOnly,
}

/// What is open, by device.
#[derive(Debug, Default)]
pub(super) struct DeviceQueues {
    open: BTreeMap<Sequence, OpenEvent>,
    by_device: BTreeMap<DeviceKey, DeviceQueue>,
    /// Devices of which nothing was tried in vain. One whose next event is not to be tried now,
    /// because another came before it or is under way, is passed over when its turn comes.
    fresh: VecDeque<DeviceKey>,
    /// Devices of which something was, likewise. It need not be the next event: what is delivered
    /// again comes before it.
    retries: VecDeque<DeviceKey>,
    /// When exceptions are tried that are or were the next of their devices.
    due: BTreeSet<(Timestamp, Sequence)>,
    eligible: Eligible,
    in_flight: usize,
    retrying: usize,
    /// How many were tried in vain.
    tried: usize,
}

impl DeviceQueues {
    /// Adds an exception that was kept.
    pub(super) fn restore(&mut self, retry: PendingRetry) {
        let PendingRetry {
            queued: waiting,
            tries,
            due_at,
        } = retry;
        self.retrying += 1;
        self.tried += usize::from(tries > 0);
        self.insert(OpenEvent {
            queued: waiting,
            tries,
            stage: Stage::Retrying(due_at),
        });
    }

    /// Adds an event that was read.
    pub(super) fn add(&mut self, waiting: QueuedEvent) {
        self.insert(OpenEvent {
            queued: waiting,
            tries: 0,
            stage: Stage::Fresh,
        });
    }

    /// Makes an event an exception, to be tried from a time on.
    pub(super) fn schedule_retry(&mut self, sequence: Sequence, due_at: Timestamp) {
        if let Some(open) = self.open.get_mut(&sequence) {
            self.retrying += usize::from(!open.is_retrying());
            open.stage = Stage::Retrying(due_at);
            let device = open.queued.device;
            self.enqueue(device);
        }
    }

    /// Makes an event under way an exception; says how often it was tried before.
    pub(super) fn retry_in_flight(&mut self, sequence: Sequence) -> Option<u8> {
        let open = self.open.get_mut(&sequence)?;
        if open.stage != Stage::InFlight {
            return None;
        }
        open.stage = Stage::RetryInFlight;
        self.retrying += 1;
        Some(open.tries)
    }

    /// Whether an event is open.
    pub(super) fn has(&self, sequence: Sequence) -> bool {
        self.open.contains_key(&sequence)
    }

    /// An open event.
    pub(super) fn find(&self, sequence: Sequence) -> Option<OpenEvent> {
        self.open.get(&sequence).copied()
    }

    /// Takes an event out; says what it was.
    pub(super) fn remove(&mut self, sequence: Sequence) -> Option<OpenEvent> {
        let open = self.open.remove(&sequence)?;
        self.retrying -= usize::from(open.is_retrying());
        self.tried -= usize::from(open.tries > 0);
        self.in_flight -= usize::from(open.is_in_flight());
        if let Stage::Retrying(due_at) = open.stage {
            self.due.remove(&(due_at, sequence));
        }
        let device = open.queued.device;
        if let Some(queue) = self.by_device.get_mut(&device) {
            queue.order.remove(&sequence);
            queue.tried -= usize::from(open.tries > 0);
            queue.in_flight.take_if(|in_flight| *in_flight == sequence);
            if queue.order.is_empty() {
                self.by_device.remove(&device);
            }
        }
        self.enqueue(device);
        Some(open)
    }

    /// The next event to be delivered: one of a device of which something was tried comes first.
    pub(super) fn begin_next(&mut self) -> Option<QueuedEvent> {
        self.begin_next_retry().or_else(|| {
            while let Some(device) = self.fresh.pop_front() {
                if let Some(waiting) = self.begin_delivery(device, |tried| tried == 0) {
                    return Some(waiting);
                }
            }
            None
        })
    }

    /// The next event to be delivered of a device of which something was tried in vain.
    pub(super) fn begin_next_retry(&mut self) -> Option<QueuedEvent> {
        while let Some(device) = self.retries.pop_front() {
            if let Some(waiting) = self.begin_delivery(device, |tried| tried > 0) {
                return Some(waiting);
            }
        }
        None
    }

    /// A delivery ended; says what was delivered, if it is still open.
    pub(super) fn end_delivery(&mut self, sequence: Sequence) -> Option<QueuedEvent> {
        let open = self.open.get_mut(&sequence)?;
        open.stage = match open.stage {
            Stage::InFlight => Stage::Fresh,
            Stage::RetryInFlight => Stage::Due,
            Stage::Fresh | Stage::Retrying(_) | Stage::Due => return None,
        };
        self.in_flight -= 1;
        let waiting = open.queued;
        if let Some(queue) = self.by_device.get_mut(&waiting.device) {
            queue.in_flight = None;
        }
        Some(waiting)
    }

    /// A delivery did not begin: its event waits for its turn again.
    pub(super) fn put_back(&mut self, sequence: Sequence) {
        if let Some(waiting) = self.end_delivery(sequence) {
            self.enqueue(waiting.device);
        }
    }

    /// Counts a try in vain; says how many there were.
    pub(super) fn count_try(&mut self, sequence: Sequence) -> u8 {
        let Some(open) = self.open.get_mut(&sequence) else {
            return 0;
        };
        let is_first = open.tries == 0;
        open.tries = open.tries.saturating_add(1);
        let (device, tries) = (open.queued.device, open.tries);
        self.tried += usize::from(is_first);
        if let Some(queue) = self.by_device.get_mut(&device) {
            queue.tried += usize::from(is_first);
        }
        tries
    }

    /// Has whatever is no exception wait.
    pub(super) fn pause_fresh(&mut self) {
        self.eligible = Eligible::RetriesOnly;
    }

    /// Lets everything go on its way.
    pub(super) fn resume_fresh(&mut self) {
        self.eligible = Eligible::All;
        let devices: Vec<DeviceKey> = self.by_device.keys().copied().collect();
        for device in devices {
            self.enqueue(device);
        }
    }

    /// Lets those be tried again whose time has come.
    pub(super) fn wake(&mut self, now: Timestamp) {
        while let Some((at, sequence)) = self.due.pop_first() {
            if at > now {
                self.due.insert((at, sequence));
                break;
            }
            if let Some(open) = self.open.get_mut(&sequence) {
                open.stage = Stage::Due;
                let device = open.queued.device;
                self.enqueue(device);
            }
        }
    }

    /// When the next one may be tried again.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Whether what is right before an event of its device is an exception.
    pub(super) fn waits_behind_retry(&self, waiting: &QueuedEvent) -> bool {
        let queue = self.by_device.get(&waiting.device);
        let before = queue.and_then(|queue| queue.order.range(..waiting.sequence).next_back());
        before.is_some_and(|before| self.open.get(before).is_some_and(OpenEvent::is_retrying))
    }

    /// What waits behind an event of its device and is no exception.
    pub(super) fn fresh_behind(&self, head: &QueuedEvent) -> Vec<QueuedEvent> {
        let queue = self.by_device.get(&head.device);
        let behind = queue.into_iter().flat_map(|queue| {
            let behind = (Bound::Excluded(head.sequence), Bound::Unbounded);
            queue.order.range(behind)
        });
        let open = behind.filter_map(|sequence| self.open.get(sequence));
        open.filter(|open| open.stage == Stage::Fresh)
            .map(|open| open.queued)
            .collect()
    }

    /// All that is not under way, in order.
    pub(super) fn idle(&self) -> Vec<OpenEvent> {
        let open = self.open.values().filter(|open| !open.is_in_flight());
        open.copied().collect()
    }

    /// How much is open.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// How much is open of a device.
    pub(super) fn open_of(&self, device: DeviceKey) -> usize {
        self.by_device
            .get(&device)
            .map_or(0, |queue| queue.order.len())
    }

    /// How many exceptions there are.
    pub(super) fn retrying(&self) -> usize {
        self.retrying
    }

    /// How many were tried in vain.
    pub(super) fn tried(&self) -> usize {
        self.tried
    }

    /// How much is under way.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn insert(&mut self, open: OpenEvent) {
        let QueuedEvent {
            sequence, device, ..
        } = open.queued;
        self.open.insert(sequence, open);
        let queue = self.by_device.entry(device).or_default();
        queue.order.insert(sequence);
        queue.tried += usize::from(open.tries > 0);
        if queue.order.first() == Some(&sequence) {
            self.enqueue(device);
        }
    }

    fn first_of(&self, device: DeviceKey) -> Option<&OpenEvent> {
        let first = self.by_device.get(&device)?.order.first()?;
        self.open.get(first)
    }

    /// Puts a device where its next event belongs.
    fn enqueue(&mut self, device: DeviceKey) {
        let Some(first) = self.first_of(device) else {
            return;
        };
        let tried = self.by_device.get(&device).map_or(0, |queue| queue.tried);
        match (first.stage, tried) {
            (Stage::Fresh | Stage::Due, 0) => self.fresh.push_back(device),
            (Stage::Fresh | Stage::Due, 1..) => self.retries.push_back(device),
            (Stage::Retrying(due_at), _) => {
                let sequence = first.queued.sequence;
                self.due.insert((due_at, sequence));
            }
            (Stage::InFlight | Stage::RetryInFlight, _) => {}
        }
    }

    /// Sends the next event of a device on its way, if it may be tried now, as many of the device
    /// were tried in vain as are to be, and no other of it is under way.
    fn begin_delivery(
        &mut self,
        device: DeviceKey,
        has_tried: fn(usize) -> bool,
    ) -> Option<QueuedEvent> {
        let queue = self.by_device.get_mut(&device)?;
        let first = *queue.order.first()?;
        let open = self.open.get_mut(&first)?;
        if queue.in_flight.is_some() || !has_tried(queue.tried) {
            return None;
        }
        open.stage = match (open.stage, self.eligible) {
            (Stage::Fresh, Eligible::All) => Stage::InFlight,
            (Stage::Due, _) => Stage::RetryInFlight,
            (Stage::Fresh, Eligible::RetriesOnly)
            | (Stage::Retrying(_) | Stage::InFlight | Stage::RetryInFlight, _) => return None,
        };
        queue.in_flight = Some(first);
        self.in_flight += 1;
        Some(open.queued)
    }
}
