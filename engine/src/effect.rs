//! What a step wants done: the closed list of effects, in the order they were decided.
//!
//! The law of order is the shell's to keep: everything that changes something for good is one
//! batch, committed first; the rest is done in order once the receipt is Ok.

use crate::action::{Action, ActionState, Status};
use crate::admin_log::entry::Entry;
use crate::change::{Batch, Change, Counter, CounterDelta, Expect, Owner};
use crate::idempotency::IdempotencyRecord;
use crate::ids::{ActionId, TraceId};
use crate::peer::Peer;
use crate::step_event::{ActionRef, StepEvent, StepEventKind};

/// One thing a step wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Change something for good.
    Save(Change),
    /// Let none of the step's changes happen unless this holds.
    Expect(Expect),
    /// Count.
    Count(CounterDelta),
    /// Tell the customer, in the same batch as the fact.
    Log(Box<Entry>),
    /// Say something once all of that is durable.
    Send(Outbound),
}

/// The effects of one step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    wanted: Vec<Effect>,
    events: Vec<StepEvent>,
}

/// What is not part of the batch, to be done after the receipt.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outbound {
    /// Let datagrams of `to` reach this device from now on, and those of `from` no longer. Without
    /// `from` the device is only asked at `to`: what answers from there reaches it.
    Rebind {
        /// The peer that was the device, or still is.
        from: Option<Peer>,
        /// The peer that is the device.
        to: Option<Peer>,
    },
    /// Send a datagram to the device.
    Send {
        /// To where.
        to: Peer,
        /// The bytes on the wire.
        datagram: Vec<u8>,
    },
    /// Send bare bytes to the device and, at any time later, tell it whether the socket took them.
    SendUdp {
        /// To where.
        to: Peer,
        /// The bytes.
        bytes: Vec<u8>,
        /// The request that they are.
        action: ActionId,
    },
}

/// What became of bare bytes that were to be sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SendOutcome {
    /// The socket took them.
    Sent,
    /// It did not: nothing left.
    Refused,
}

impl Effects {
    /// No effects yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an effect.
    pub fn push(&mut self, effect: Effect) {
        self.wanted.push(effect);
    }

    /// Remarks that something happened, and what set it off.
    pub fn note(&mut self, trace: Option<TraceId>, what: StepEventKind) {
        self.events.push(StepEvent { kind: what, trace });
    }

    /// Adds a datagram to be sent.
    pub fn send(&mut self, to: Peer, datagram: Vec<u8>) {
        self.push(Effect::Send(Outbound::Send { to, datagram }));
    }

    /// Adds that a device is behind another peer, or is to be looked for there anew, or is asked
    /// there.
    pub fn rebind(&mut self, from: Option<Peer>, to: Option<Peer>) {
        self.push(Effect::Send(Outbound::Rebind { from, to }));
    }

    /// Keeps what a call was promised, unless it was promised something before.
    pub fn save_idempotency_record(&mut self, record: IdempotencyRecord) {
        let IdempotencyRecord {
            call: once,
            device,
            number,
            ..
        } = record;
        self.push(Effect::Expect(Expect::IdempotencyKeyUnused {
            key: once.key,
            device,
            number,
        }));
        self.push(Effect::Save(Change::PutIdempotencyRecord(record)));
    }

    /// Saves an action request with its counts; `was` is where it stood in lists, if it was there.
    ///
    /// What the step itself makes it cannot expect: a batch is checked before any of it happens.
    pub fn save_action(&mut self, was: Option<ActionState>, action: &Action) {
        let was_in = was.map(|was| was.status);
        if was_in != Some(action.status) {
            if let Some(was) = was_in {
                if !self.makes(action.id) {
                    self.push(Effect::Expect(Expect::Status {
                        action: action.id,
                        is: was,
                    }));
                }
                self.count_action(action, was, -1);
            }
            self.count_action(action, action.status, 1);
            self.note_action(was_in, action);
        }
        self.push(Effect::Save(Change::PutAction {
            was,
            action: Box::new(action.clone()),
        }));
    }

    /// The effects in the order they were decided.
    pub fn as_slice(&self) -> &[Effect] {
        &self.wanted
    }

    /// What happened in the step, in order; it is remarked on once.
    pub fn take_events(&mut self) -> Vec<StepEvent> {
        std::mem::take(&mut self.events)
    }

    /// Parts what must be durable first from what is said afterwards.
    pub fn settle(self, owner: Owner) -> (Batch, Vec<Outbound>) {
        let mut batch = Batch {
            owner,
            ..Batch::default()
        };
        let mut outbound = Vec::new();
        for effect in self.wanted {
            match effect {
                Effect::Save(change) => batch.changes.push(change),
                Effect::Expect(expect) => batch.expects.push(expect),
                Effect::Count(add) => batch.adds.push(add),
                Effect::Log(entry) => batch.changes.push(Change::AppendEntry(entry)),
                Effect::Send(speech) => outbound.push(speech),
            }
        }
        (batch, outbound)
    }

    /// Whether the step makes this request.
    fn makes(&self, id: ActionId) -> bool {
        self.wanted.iter().any(|effect| match effect {
            Effect::Save(Change::PutAction { was: None, action }) => action.id == id,
            Effect::Save(_)
            | Effect::Expect(_)
            | Effect::Count(_)
            | Effect::Log(_)
            | Effect::Send(_) => false,
        })
    }

    fn note_action(&mut self, was: Option<Status>, action: &Action) {
        let (asked, trace) = (ActionRef::by(action), Some(action.trace));
        if was.is_none() {
            self.note(trace, StepEventKind::Created(asked));
        }
        if !action.status.is_pending() {
            self.note(trace, StepEventKind::Concluded(asked, action.status));
        }
    }

    fn count_action(&mut self, action: &Action, status: Status, delta: i64) {
        let (protocol, device) = (action.protocol(), action.device);
        let customer = action.customer.clone();
        let of_customer = Counter::CustomerActions {
            customer,
            protocol,
            status,
        };
        let of_device = Counter::DeviceActions {
            device,
            protocol,
            status,
        };
        for counter in [of_customer, of_device] {
            self.push(Effect::Count(CounterDelta { counter, delta }));
        }
    }
}
