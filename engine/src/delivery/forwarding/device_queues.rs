//! The open events of each device, in order; those of a device in flight are in one delivery.

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
    /// The last delivery it was part of, so that a failed one is repeated as it was.
    batch: Option<BatchNumber>,
}

/// A delivery.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
struct BatchNumber(u64);

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
    /// How many of the events are in flight: the first ones, in one delivery.
    in_flight: usize,
    /// How many of the events had a failed try.
    tried: usize,
}

/// Whether any of the events of a device had a failed try.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Tried {
    No,
    Yes,
}

impl DeviceQueue {
    fn has_tried(&self) -> Tried {
        match self.tried {
            0 => Tried::No,
            1.. => Tried::Yes,
        }
    }
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
    /// The events of each delivery that is in flight or has failed, in their order in it.
    batches: BTreeMap<BatchNumber, Vec<Sequence>>,
    /// The number of the last one.
    last_batch: BatchNumber,
    /// Deliveries in flight.
    deliveries: usize,
    /// Events in flight.
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
            batch: None,
        });
    }

    /// Adds an event that was read.
    pub(super) fn add(&mut self, queued: QueuedEvent) {
        self.insert(OpenEvent {
            queued,
            tries: 0,
            stage: Stage::Fresh,
            batch: None,
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

    /// Removes and returns an event that is not in flight.
    pub(super) fn remove(&mut self, sequence: Sequence) -> Option<OpenEvent> {
        let open = self.open.remove(&sequence)?;
        self.retrying -= usize::from(open.is_retrying());
        self.tried -= usize::from(open.tries > 0);
        self.leave_batch(&open);
        if let Stage::Retrying(due_at) = open.stage {
            self.due.remove(&(due_at, sequence));
        }
        let device = open.queued.device;
        if let Some(queue) = self.by_device.get_mut(&device) {
            queue.order.remove(&sequence);
            queue.tried -= usize::from(open.tries > 0);
            if queue.order.is_empty() {
                self.by_device.remove(&device);
            }
        }
        self.enqueue(device);
        Some(open)
    }

    /// Begins the next delivery of devices with a failed try, of at most `max` events. Empty if
    /// there is nothing to deliver.
    pub(super) fn begin_retries(&mut self, max: usize) -> Vec<QueuedEvent> {
        self.begin_delivery(Tried::Yes, max)
    }

    /// Begins the next delivery of devices without a failed try, likewise.
    pub(super) fn begin_untried(&mut self, max: usize) -> Vec<QueuedEvent> {
        self.begin_delivery(Tried::No, max)
    }

    /// How many events [`DeviceQueues::begin_untried`] would begin to deliver.
    pub(super) fn ready(&self, max: usize) -> usize {
        let mut ready = 0;
        let mut seen = BTreeSet::new();
        for device in &self.fresh {
            if ready >= max {
                break;
            }
            if self.may_begin(*device, Tried::No) && seen.insert(*device) {
                let queue = self.by_device.get(device);
                let order = queue.into_iter().flat_map(|queue| &queue.order);
                let open = order.map_while(|sequence| self.open.get(sequence));
                let ready_of = open.take_while(|open| self.started(open.stage).is_some());
                ready += ready_of.take(max - ready).count();
            }
        }
        ready
    }

    /// Ends the delivery that begins with this event; returns its events.
    pub(super) fn end_delivery(&mut self, first: Sequence) -> Vec<QueuedEvent> {
        let batch = self.open.get(&first).and_then(|open| open.batch);
        let sequences = batch.and_then(|number| self.batches.get(&number)).cloned();
        let mut ended = Vec::new();
        for sequence in sequences.unwrap_or_default() {
            let Some(open) = self.open.get_mut(&sequence) else {
                continue;
            };
            open.stage = match open.stage {
                Stage::InFlight => Stage::Fresh,
                Stage::RetryInFlight => Stage::Due,
                Stage::Fresh | Stage::Retrying(_) | Stage::Due => continue,
            };
            ended.push(open.queued);
            self.in_flight -= 1;
            if let Some(queue) = self.by_device.get_mut(&open.queued.device) {
                queue.in_flight -= 1;
            }
        }
        self.deliveries -= usize::from(!ended.is_empty());
        ended
    }

    /// A delivery did not begin: its events wait for their turn again.
    pub(super) fn put_back(&mut self, first: Sequence) {
        for queued in self.end_delivery(first) {
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

    /// How many deliveries are in flight.
    pub(super) fn deliveries(&self) -> usize {
        self.deliveries
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
        match first.stage {
            Stage::Fresh | Stage::Due => {
                let queue = self.by_device.get(&device);
                let tried = queue.map_or(Tried::No, DeviceQueue::has_tried);
                self.turns(tried).push_back(device);
            }
            Stage::Retrying(due_at) => {
                let sequence = first.queued.sequence;
                self.due.insert((due_at, sequence));
            }
            Stage::InFlight | Stage::RetryInFlight => {}
        }
    }

    /// Begins a delivery of at most `max` events of devices that have a failed try, or have none.
    /// One that failed is repeated with the events it had.
    fn begin_delivery(&mut self, tried: Tried, max: usize) -> Vec<QueuedEvent> {
        self.last_batch.0 += 1;
        let number = self.last_batch;
        let mut begun = Vec::new();
        while begun.len() < max
            && let Some(device) = self.turns(tried).pop_front()
        {
            if !self.may_begin(device, tried) {
                continue;
            }
            if let Some(failed) = self.first_of(device).and_then(|open| open.batch) {
                if begun.is_empty() {
                    return self.begin_again(failed, max);
                }
                self.turns(tried).push_front(device);
                break;
            }
            while begun.len() < max
                && let Some(queued) = self.begin_event(device, number)
            {
                begun.push(queued);
            }
        }
        self.note_begun(number, begun)
    }

    /// Repeats a delivery, without the events that others of their device have come before.
    fn begin_again(&mut self, number: BatchNumber, max: usize) -> Vec<QueuedEvent> {
        let mut begun = Vec::new();
        for sequence in self.batches.remove(&number).unwrap_or_default() {
            let Some(open) = self.open.get_mut(&sequence) else {
                continue;
            };
            open.batch = None;
            let device = open.queued.device;
            if let Stage::Retrying(due_at) = open.stage {
                open.stage = Stage::Due;
                self.due.remove(&(due_at, sequence));
            }
            let next = match begun.len() < max {
                true => self.begin_event(device, number),
                false => None,
            };
            match next {
                Some(queued) => begun.push(queued),
                None => self.enqueue(device),
            }
        }
        self.note_begun(number, begun)
    }

    fn note_begun(&mut self, number: BatchNumber, begun: Vec<QueuedEvent>) -> Vec<QueuedEvent> {
        if !begun.is_empty() {
            self.deliveries += 1;
            let sequences = begun.iter().map(|queued| queued.sequence);
            self.batches.insert(number, sequences.collect());
        }
        begun
    }

    /// Begins to deliver the next event of a device, if it may be delivered now and what is in
    /// flight of the device is part of the same delivery.
    fn begin_event(&mut self, device: DeviceKey, number: BatchNumber) -> Option<QueuedEvent> {
        let queue = self.by_device.get(&device)?;
        let first = self.open.get(queue.order.first()?)?;
        if queue.in_flight > 0 && first.batch != Some(number) {
            return None;
        }
        let next = *queue.order.iter().nth(queue.in_flight)?;
        let open = self.open.get(&next).filter(|open| open.batch.is_none())?;
        let stage = self.started(open.stage)?;
        self.by_device.get_mut(&device)?.in_flight += 1;
        self.in_flight += 1;
        let open = self.open.get_mut(&next)?;
        open.stage = stage;
        open.batch = Some(number);
        Some(open.queued)
    }

    /// The stage in flight of an event that may be delivered now.
    fn started(&self, stage: Stage) -> Option<Stage> {
        match (stage, self.eligible) {
            (Stage::Fresh, Eligible::All) => Some(Stage::InFlight),
            (Stage::Due, _) => Some(Stage::RetryInFlight),
            (Stage::Fresh, Eligible::RetriesOnly)
            | (Stage::Retrying(_) | Stage::InFlight | Stage::RetryInFlight, _) => None,
        }
    }

    /// Whether a delivery may begin with the first event of a device.
    fn may_begin(&self, device: DeviceKey, tried: Tried) -> bool {
        let Some(queue) = self.by_device.get(&device) else {
            return false;
        };
        let first = self.first_of(device).map(|open| open.stage);
        queue.in_flight == 0
            && queue.has_tried() == tried
            && first.is_some_and(|stage| self.started(stage).is_some())
    }

    /// The devices whose turn it may be.
    fn turns(&mut self, tried: Tried) -> &mut VecDeque<DeviceKey> {
        match tried {
            Tried::No => &mut self.fresh,
            Tried::Yes => &mut self.retries,
        }
    }

    fn leave_batch(&mut self, open: &OpenEvent) {
        let Some(number) = open.batch else {
            return;
        };
        if let Some(sequences) = self.batches.get_mut(&number) {
            sequences.retain(|sequence| *sequence != open.queued.sequence);
            if sequences.is_empty() {
                self.batches.remove(&number);
            }
        }
    }
}
