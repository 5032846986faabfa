//! The post office of the service: a desk for each destination, whose machine takes one step after
//! the other.
//!
//! A step that changes something for good waits for its receipt, and the destination's next input
//! with it. If it was not saved, the machine is dropped and brought back from the disk.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use engine::change::Batch;
use engine::delivery::forwarding::{Delivered, Errand, Errands, Forwarding};
use engine::delivery::letter::{DeadLetter, Sequence, Waiting};
use engine::ids::{DestinationId, Shard};
use engine::moment::{Moment, Timestamp};

/// All desks.
#[derive(Default)]
pub(crate) struct Post {
    desks: BTreeMap<DestinationId, Desk>,
}

/// Where a destination is served.
pub(crate) enum Desk {
    /// Its machine is to be brought back.
    Closed,
    Open(Box<Clerk>),
}

/// Who serves a destination.
pub(crate) struct Clerk {
    pub(crate) forwarding: Forwarding,
    /// Which of those that served it.
    pub(crate) generation: u64,
    /// Where something began to wait since the board was last read.
    board: BTreeSet<Shard>,
    inputs: VecDeque<Input>,
    /// What is to be done once the step is durable.
    pending: Option<(u64, Vec<Errand>)>,
    armed_at: Option<Timestamp>,
}

/// What a destination's machine is told.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    News(Vec<Shard>),
    Rows(Shard, Vec<Waiting>),
    Dead(Vec<DeadLetter>),
    Delivered(Sequence, Delivered),
    Due,
    Backlog(u64),
    Restart,
    Replay,
    /// The disk did not answer a question.
    Unread,
}

/// What a step wants.
pub(crate) struct Step {
    pub(crate) batch: Batch,
    pub(crate) errands: Vec<Errand>,
}

impl Post {
    /// Sets up a desk, whose machine is to be brought back.
    pub(crate) fn close(&mut self, id: DestinationId) {
        self.desks.insert(id, Desk::Closed);
    }

    pub(crate) fn open(&mut self, id: DestinationId, generation: u64, forwarding: Forwarding) {
        let clerk = Clerk {
            forwarding,
            generation,
            board: BTreeSet::new(),
            inputs: VecDeque::new(),
            pending: None,
            armed_at: None,
        };
        self.desks.insert(id, Desk::Open(Box::new(clerk)));
    }

    pub(crate) fn remove(&mut self, id: DestinationId) {
        self.desks.remove(&id);
    }

    pub(crate) fn clear(&mut self) {
        self.desks.clear();
    }

    pub(crate) fn has(&self, id: DestinationId) -> bool {
        self.desks.contains_key(&id)
    }

    pub(crate) fn ids(&self) -> Vec<DestinationId> {
        self.desks.keys().copied().collect()
    }

    pub(crate) fn clerk(&self, id: DestinationId) -> Option<&Clerk> {
        match self.desks.get(&id)? {
            Desk::Open(clerk) => Some(clerk),
            Desk::Closed => None,
        }
    }

    pub(crate) fn clerk_mut(&mut self, id: DestinationId) -> Option<&mut Clerk> {
        match self.desks.get_mut(&id)? {
            Desk::Open(clerk) => Some(clerk),
            Desk::Closed => None,
        }
    }

    /// The clerk of a destination, if it is still this one.
    pub(crate) fn same_clerk(&mut self, id: DestinationId, generation: u64) -> Option<&mut Clerk> {
        let clerk = self.clerk_mut(id)?;
        (clerk.generation == generation).then_some(clerk)
    }
}

impl Clerk {
    /// Notes on the board that something waits; says whether the board was empty.
    pub(crate) fn note(&mut self, shard: Shard) -> bool {
        let was_empty = self.board.is_empty();
        self.board.insert(shard);
        was_empty
    }

    /// Takes all off the board.
    pub(crate) fn read_board(&mut self) -> Vec<Shard> {
        std::mem::take(&mut self.board).into_iter().collect()
    }

    /// Puts an input behind the others.
    pub(crate) fn wait(&mut self, input: Input) {
        self.inputs.push_back(input);
    }

    /// The next input, unless a receipt is to come first.
    pub(crate) fn next_input(&mut self) -> Option<Input> {
        match self.pending {
            Some(_) => None,
            None => self.inputs.pop_front(),
        }
    }

    /// Lets the machine take a step.
    pub(crate) fn step(&mut self, mut m: Moment, input: Input) -> Step {
        let mut out = Errands::new();
        let machine = &mut self.forwarding;
        match input {
            Input::News(shards) => machine.note_news(&mut m, shards, &mut out),
            Input::Rows(shard, rows) => machine.handle_rows(&mut m, shard, rows, &mut out),
            Input::Dead(letters) => machine.handle_dead(&mut m, letters, &mut out),
            Input::Delivered(sequence, delivered) => {
                machine.handle_delivered(&mut m, sequence, delivered, &mut out);
            }
            Input::Due => {
                self.armed_at.take_if(|armed_at| *armed_at <= m.now());
                machine.handle_timeout(&mut m, &mut out);
            }
            Input::Backlog(waiting) => machine.note_backlog(&mut m, waiting, &mut out),
            Input::Restart => {
                machine.restart(&mut m, &mut out);
            }
            Input::Unread => panic!("a machine that misses something is dropped"),
            // One that is in failure is to be restarted first.
            Input::Replay => {
                let _ = machine.replay(&mut m, &mut out).is_ok();
            }
        }
        let (batch, errands) = out.settle();
        Step { batch, errands }
    }

    /// Keeps what is to be done once a step is durable.
    pub(crate) fn await_receipt(&mut self, step: u64, errands: Vec<Errand>) {
        self.pending = Some((step, errands));
    }

    /// Takes the receipt of a step: what is to be done now.
    pub(crate) fn receive(&mut self, step: u64) -> Vec<Errand> {
        let (pending, errands) = self.pending.take().expect("a step waits for its receipt");
        assert_eq!(pending, step, "receipts come in the order of their steps");
        errands
    }

    /// When the machine is to be woken, if nobody was asked for that yet.
    pub(crate) fn arm(&mut self) -> Option<Timestamp> {
        let at = self.forwarding.next_timeout()?;
        if self.armed_at.is_some_and(|armed_at| armed_at <= at) {
            return None;
        }
        self.armed_at = Some(at);
        Some(at)
    }

    /// Whether nothing is open and nothing is under way.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.pending.is_none()
            && self.inputs.is_empty()
            && self.board.is_empty()
            && self.forwarding.in_flight() == 0
            && self.forwarding.open() == 0
    }
}
