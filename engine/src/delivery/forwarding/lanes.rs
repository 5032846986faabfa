//! What is open of each device, in order: one of a device is under way at a time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use crate::delivery::letter::{Held, Sequence, Waiting};
use crate::ids::DeviceKey;
use crate::moment::Timestamp;

/// An event that is not done with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) waiting: Waiting,
    pub(super) tries: u8,
    stage: Stage,
}

/// How far an open event has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    /// It waits for its turn, and will be read again if the service stops.
    Fresh,
    /// It is an exception, to be tried from this time on.
    Held(Timestamp),
    /// It is an exception whose time has come.
    Due,
    /// It is under way for the first time.
    InFlight,
    /// It is an exception and under way.
    HeldInFlight,
}

impl Open {
    /// Whether it is kept as an exception.
    pub(super) fn is_held(&self) -> bool {
        match self.stage {
            Stage::Held(_) | Stage::Due | Stage::HeldInFlight => true,
            Stage::Fresh | Stage::InFlight => false,
        }
    }

    fn is_in_flight(&self) -> bool {
        match self.stage {
            Stage::InFlight | Stage::HeldInFlight => true,
            Stage::Fresh | Stage::Held(_) | Stage::Due => false,
        }
    }
}

/// What is open of a device.
#[derive(Debug, Default)]
struct Lane {
    order: BTreeSet<Sequence>,
    /// What of it is under way.
    in_flight: Option<Sequence>,
    /// How many of it were tried in vain.
    tried: usize,
}

/// Which events may go on their way.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Departing {
    #[default]
    All,
    /// What is no exception waits: of its device, too, something older may yet come.
    Exceptions,
}

/// What is open, by device.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    open: BTreeMap<Sequence, Open>,
    by_device: BTreeMap<DeviceKey, Lane>,
    /// Devices of which nothing was tried in vain. One whose next event is not to be tried now,
    /// because another came before it or is under way, is passed over when its turn comes.
    fresh: VecDeque<DeviceKey>,
    /// Devices of which something was, likewise. It need not be the next event: what is delivered
    /// again comes before it.
    retries: VecDeque<DeviceKey>,
    /// When exceptions are tried that are or were the next of their devices.
    due: BTreeSet<(Timestamp, Sequence)>,
    departing: Departing,
    in_flight: usize,
    held: usize,
    /// How many were tried in vain.
    tried: usize,
}

impl Lanes {
    /// Adds an exception that was kept.
    pub(super) fn restore(&mut self, held: Held) {
        let Held {
            waiting,
            tries,
            due_at,
        } = held;
        self.held += 1;
        self.tried += usize::from(tries > 0);
        self.insert(Open {
            waiting,
            tries,
            stage: Stage::Held(due_at),
        });
    }

    /// Adds an event that was read.
    pub(super) fn add(&mut self, waiting: Waiting) {
        self.insert(Open {
            waiting,
            tries: 0,
            stage: Stage::Fresh,
        });
    }

    /// Makes an event an exception, to be tried from a time on.
    pub(super) fn hold(&mut self, sequence: Sequence, due_at: Timestamp) {
        if let Some(open) = self.open.get_mut(&sequence) {
            self.held += usize::from(!open.is_held());
            open.stage = Stage::Held(due_at);
            let device = open.waiting.device;
            self.line_up(device);
        }
    }

    /// Makes an event under way an exception; says how often it was tried before.
    pub(super) fn except(&mut self, sequence: Sequence) -> Option<u8> {
        let open = self.open.get_mut(&sequence)?;
        if open.stage != Stage::InFlight {
            return None;
        }
        open.stage = Stage::HeldInFlight;
        self.held += 1;
        Some(open.tries)
    }

    /// Whether an event is open.
    pub(super) fn has(&self, sequence: Sequence) -> bool {
        self.open.contains_key(&sequence)
    }

    /// An open event.
    pub(super) fn find(&self, sequence: Sequence) -> Option<Open> {
        self.open.get(&sequence).copied()
    }

    /// Takes an event out; says what it was.
    pub(super) fn remove(&mut self, sequence: Sequence) -> Option<Open> {
        let open = self.open.remove(&sequence)?;
        self.held -= usize::from(open.is_held());
        self.tried -= usize::from(open.tries > 0);
        self.in_flight -= usize::from(open.is_in_flight());
        if let Stage::Held(due_at) = open.stage {
            self.due.remove(&(due_at, sequence));
        }
        let device = open.waiting.device;
        if let Some(lane) = self.by_device.get_mut(&device) {
            lane.order.remove(&sequence);
            lane.tried -= usize::from(open.tries > 0);
            lane.in_flight.take_if(|in_flight| *in_flight == sequence);
            if lane.order.is_empty() {
                self.by_device.remove(&device);
            }
        }
        self.line_up(device);
        Some(open)
    }

    /// The next event to be delivered: one of a device of which something was tried comes first.
    pub(super) fn take_off(&mut self) -> Option<Waiting> {
        self.take_off_tried().or_else(|| {
            while let Some(device) = self.fresh.pop_front() {
                if let Some(waiting) = self.depart(device, |tried| tried == 0) {
                    return Some(waiting);
                }
            }
            None
        })
    }

    /// The next event to be delivered of a device of which something was tried in vain.
    pub(super) fn take_off_tried(&mut self) -> Option<Waiting> {
        while let Some(device) = self.retries.pop_front() {
            if let Some(waiting) = self.depart(device, |tried| tried > 0) {
                return Some(waiting);
            }
        }
        None
    }

    /// A delivery ended; says what was delivered, if it is still open.
    pub(super) fn land(&mut self, sequence: Sequence) -> Option<Waiting> {
        let open = self.open.get_mut(&sequence)?;
        open.stage = match open.stage {
            Stage::InFlight => Stage::Fresh,
            Stage::HeldInFlight => Stage::Due,
            Stage::Fresh | Stage::Held(_) | Stage::Due => return None,
        };
        self.in_flight -= 1;
        let waiting = open.waiting;
        if let Some(lane) = self.by_device.get_mut(&waiting.device) {
            lane.in_flight = None;
        }
        Some(waiting)
    }

    /// A delivery did not begin: its event waits for its turn again.
    pub(super) fn put_back(&mut self, sequence: Sequence) {
        if let Some(waiting) = self.land(sequence) {
            self.line_up(waiting.device);
        }
    }

    /// Counts a try in vain; says how many there were.
    pub(super) fn count_try(&mut self, sequence: Sequence) -> u8 {
        let Some(open) = self.open.get_mut(&sequence) else {
            return 0;
        };
        let is_first = open.tries == 0;
        open.tries = open.tries.saturating_add(1);
        let (device, tries) = (open.waiting.device, open.tries);
        self.tried += usize::from(is_first);
        if let Some(lane) = self.by_device.get_mut(&device) {
            lane.tried += usize::from(is_first);
        }
        tries
    }

    /// Has whatever is no exception wait.
    pub(super) fn keep_fresh_back(&mut self) {
        self.departing = Departing::Exceptions;
    }

    /// Lets everything go on its way.
    pub(super) fn let_fresh_go(&mut self) {
        self.departing = Departing::All;
        let devices: Vec<DeviceKey> = self.by_device.keys().copied().collect();
        for device in devices {
            self.line_up(device);
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
                let device = open.waiting.device;
                self.line_up(device);
            }
        }
    }

    /// When the next one may be tried again.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Whether what is right before an event of its device is an exception.
    pub(super) fn waits_behind_held(&self, waiting: &Waiting) -> bool {
        let lane = self.by_device.get(&waiting.device);
        let before = lane.and_then(|lane| lane.order.range(..waiting.sequence).next_back());
        before.is_some_and(|before| self.open.get(before).is_some_and(Open::is_held))
    }

    /// What waits behind an event of its device and is no exception.
    pub(super) fn unheld_behind(&self, head: &Waiting) -> Vec<Waiting> {
        let lane = self.by_device.get(&head.device);
        let behind = lane.into_iter().flat_map(|lane| {
            let behind = (Bound::Excluded(head.sequence), Bound::Unbounded);
            lane.order.range(behind)
        });
        let open = behind.filter_map(|sequence| self.open.get(sequence));
        open.filter(|open| open.stage == Stage::Fresh)
            .map(|open| open.waiting)
            .collect()
    }

    /// All that is not under way, in order.
    pub(super) fn landed(&self) -> Vec<Open> {
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
            .map_or(0, |lane| lane.order.len())
    }

    /// How many exceptions there are.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// How many were tried in vain.
    pub(super) fn tried(&self) -> usize {
        self.tried
    }

    /// How much is under way.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn insert(&mut self, open: Open) {
        let Waiting {
            sequence, device, ..
        } = open.waiting;
        self.open.insert(sequence, open);
        let lane = self.by_device.entry(device).or_default();
        lane.order.insert(sequence);
        lane.tried += usize::from(open.tries > 0);
        if lane.order.first() == Some(&sequence) {
            self.line_up(device);
        }
    }

    fn first_of(&self, device: DeviceKey) -> Option<&Open> {
        let first = self.by_device.get(&device)?.order.first()?;
        self.open.get(first)
    }

    /// Puts a device where its next event belongs.
    fn line_up(&mut self, device: DeviceKey) {
        let Some(first) = self.first_of(device) else {
            return;
        };
        let tried = self.by_device.get(&device).map_or(0, |lane| lane.tried);
        match (first.stage, tried) {
            (Stage::Fresh | Stage::Due, 0) => self.fresh.push_back(device),
            (Stage::Fresh | Stage::Due, 1..) => self.retries.push_back(device),
            (Stage::Held(due_at), _) => {
                let sequence = first.waiting.sequence;
                self.due.insert((due_at, sequence));
            }
            (Stage::InFlight | Stage::HeldInFlight, _) => {}
        }
    }

    /// Sends the next event of a device on its way, if it may be tried now, as many of the device
    /// were tried in vain as are to be, and no other of it is under way.
    fn depart(&mut self, device: DeviceKey, has_tried: fn(usize) -> bool) -> Option<Waiting> {
        let lane = self.by_device.get_mut(&device)?;
        let first = *lane.order.first()?;
        let open = self.open.get_mut(&first)?;
        if lane.in_flight.is_some() || !has_tried(lane.tried) {
            return None;
        }
        open.stage = match (open.stage, self.departing) {
            (Stage::Fresh, Departing::All) => Stage::InFlight,
            (Stage::Due, _) => Stage::HeldInFlight,
            (Stage::Fresh, Departing::Exceptions)
            | (Stage::Held(_) | Stage::InFlight | Stage::HeldInFlight, _) => return None,
        };
        lane.in_flight = Some(first);
        self.in_flight += 1;
        Some(open.waiting)
    }
}
