//! The open events of each device, in order; one event of a device is in flight at a time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use crate::delivery::backlog::{PendingRetry, QueuedEvent, Sequence};
use crate::ids::DeviceKey;
use crate::moment::Timestamp;

/// An event that is not done.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenEvent {
    pub(super) queued: QueuedEvent,
    pub(super) tries: u8,
    stage: Stage,
}

/// The stage of an open event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    /// It waits for its turn; after a restart it is read again.
    Fresh,
    /// It is a retry, due at this time.
    Retrying(Timestamp),
    /// It is a retry that is due.
    Due,
    /// It is in flight for the first time.
    InFlight,
    /// It is a retry in flight.
    RetryInFlight,
}

impl OpenEvent {
    /// Whether it is stored as a retry.
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

/// The open events of a device.
#[derive(Debug, Default)]
struct DeviceQueue {
    order: BTreeSet<Sequence>,
    /// The event in flight.
    in_flight: Option<Sequence>,
    /// How many of the events had a failed try.
    tried: usize,
}

/// Which events may be delivered.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Eligible {
    #[default]
    All,
    /// Only retries: older events of the same device may still have to be read.
    RetriesOnly,
}

/// The open events by device.
#[derive(Debug, Default)]
pub(super) struct DeviceQueues {
    open: BTreeMap<Sequence, OpenEvent>,
    by_device: BTreeMap<DeviceKey, DeviceQueue>,
    /// Devices without a failed try. A device whose next event cannot be tried now, because an
    /// older one was added or one is in flight, is skipped when its turn comes.
    fresh: VecDeque<DeviceKey>,
    /// Devices with a failed try, likewise. The tried event need not be the next: replayed events
    /// come before it.
    retries: VecDeque<DeviceKey>,
    /// When retries are due that are or were the next of their devices.
    due: BTreeSet<(Timestamp, Sequence)>,
    eligible: Eligible,
    in_flight: usize,
    retrying: usize,
    /// How many events had a failed try.
    tried: usize,
}

impl DeviceQueues {
    /// Adds a stored retry.
    pub(super) fn restore(&mut self, retry: PendingRetry) {
        let PendingRetry {
            queued,
            tries,
            due_at,
        } = retry;
        self.retrying += 1;
        self.tried += usize::from(tries > 0);
        self.insert(OpenEvent {
            queued,
            tries,
            stage: Stage::Retrying(due_at),
        });
    }

    /// Adds an event that was read.
    pub(super) fn add(&mut self, queued: QueuedEvent) {
        self.insert(OpenEvent {
            queued,
            tries: 0,
            stage: Stage::Fresh,
        });
    }

    /// Makes an event a retry, due at a time.
    pub(super) fn schedule_retry(&mut self, sequence: Sequence, due_at: Timestamp) {
        if let Some(open) = self.open.get_mut(&sequence) {
            self.retrying += usize::from(!open.is_retrying());
            open.stage = Stage::Retrying(due_at);
            let device = open.queued.device;
            self.enqueue(device);
        }
    }

    /// Makes an event in flight a retry; returns how often it was tried before.
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

    /// Removes and returns an event.
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

    /// Begins the next delivery; devices with a failed try come first.
    pub(super) fn begin_next(&mut self) -> Option<QueuedEvent> {
        self.begin_next_retry().or_else(|| {
            while let Some(device) = self.fresh.pop_front() {
                if let Some(queued) = self.begin_delivery(device, |tried| tried == 0) {
                    return Some(queued);
                }
            }
            None
        })
    }

    /// Begins the next delivery of a device with a failed try.
    pub(super) fn begin_next_retry(&mut self) -> Option<QueuedEvent> {
        while let Some(device) = self.retries.pop_front() {
            if let Some(queued) = self.begin_delivery(device, |tried| tried > 0) {
                return Some(queued);
            }
        }
        None
    }

    /// Ends a delivery; returns its event, if it is still open.
    pub(super) fn end_delivery(&mut self, sequence: Sequence) -> Option<QueuedEvent> {
        let open = self.open.get_mut(&sequence)?;
        open.stage = match open.stage {
            Stage::InFlight => Stage::Fresh,
            Stage::RetryInFlight => Stage::Due,
            Stage::Fresh | Stage::Retrying(_) | Stage::Due => return None,
        };
        self.in_flight -= 1;
        let queued = open.queued;
        if let Some(queue) = self.by_device.get_mut(&queued.device) {
            queue.in_flight = None;
        }
        Some(queued)
    }

    /// A delivery did not begin: its event waits for its turn again.
    pub(super) fn put_back(&mut self, sequence: Sequence) {
        if let Some(queued) = self.end_delivery(sequence) {
            self.enqueue(queued.device);
        }
    }

    /// Counts a failed try; returns how many there were.
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

    /// Holds back fresh events.
    pub(super) fn pause_fresh(&mut self) {
        self.eligible = Eligible::RetriesOnly;
    }

    /// Allows all deliveries.
    pub(super) fn resume_fresh(&mut self) {
        self.eligible = Eligible::All;
        let devices: Vec<DeviceKey> = self.by_device.keys().copied().collect();
        for device in devices {
            self.enqueue(device);
        }
    }

    /// Makes retries due whose time has come.
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

    /// When the next retry is due.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Whether the event directly before this one of its device is a retry.
    pub(super) fn waits_behind_retry(&self, queued: &QueuedEvent) -> bool {
        let queue = self.by_device.get(&queued.device);
        let before = queue.and_then(|queue| queue.order.range(..queued.sequence).next_back());
        before.is_some_and(|before| self.open.get(before).is_some_and(OpenEvent::is_retrying))
    }

    /// The fresh events of a device behind this one.
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

    /// The events that are not in flight, in order.
    pub(super) fn idle(&self) -> Vec<OpenEvent> {
        let open = self.open.values().filter(|open| !open.is_in_flight());
        open.copied().collect()
    }

    /// How many events are open.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// How many events of a device are open.
    pub(super) fn open_of(&self, device: DeviceKey) -> usize {
        self.by_device
            .get(&device)
            .map_or(0, |queue| queue.order.len())
    }

    /// How many retries there are.
    pub(super) fn retrying(&self) -> usize {
        self.retrying
    }

    /// How many events had a failed try.
    pub(super) fn tried(&self) -> usize {
        self.tried
    }

    /// How many events are in flight.
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

    /// Puts a device into the queue of its next event.
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

    /// Begins the delivery of the next event of a device, if it may be tried now, `has_tried` holds
    /// for the number of failed tries, and no other event of the device is in flight.
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
