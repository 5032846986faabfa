//! The effects of a step: a closed list, in the order they were decided.
//!
//! The shell keeps the law of order: all durable changes are one batch, which is committed first;
//! the other effects are performed in order once the receipt is Ok.

use crate::action::{Action, ActionState, Status};
use crate::admin_log::entry::Entry;
use crate::bootstrap::BootstrapOrder;
use crate::change::{Batch, Change, Counter, CounterDelta, Expect, Owner};
use crate::directory::firmware::moved;
use crate::firmware::ImageRange;
use crate::firmware::campaign::CampaignDevice;
use crate::firmware::update::UpdateState;
use crate::idempotency::IdempotencyRecord;
use crate::ids::{ActionId, CampaignId, TraceId};
use crate::peer::Peer;
use crate::sms::Sms;
use crate::step_event::{ActionRef, StepEvent, StepEventKind};

/// The effects of a step with an action request, with some to spare: the effects are large, and
/// most steps have none or one, so that room for them is made here.
const EFFECTS_WITH_ACTION: usize = 12;

/// One effect of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Save a change.
    Save(Change),
    /// Commit the step's changes only if this holds.
    Expect(Expect),
    /// Change a counter.
    Count(CounterDelta),
    /// Write to the customer's log, in the same batch as the fact.
    Log(Box<Entry>),
    /// Perform this once the batch is durable.
    Send(Outbound),
}

/// The effects of one step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    effects: Vec<Effect>,
    events: Vec<StepEvent>,
}

/// An effect that is not part of the batch and is performed after the receipt.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outbound {
    /// Route datagrams of `to` to this device from now on, and those of `from` no longer. Without
    /// `from` the device is only in an exchange at `to`: only answers from there reach it.
    Rebind {
        /// The former peer of the device, or its current one.
        from: Option<Peer>,
        /// The new peer of the device.
        to: Option<Peer>,
    },
    /// Send a datagram to the device.
    Send {
        /// The peer it is sent to.
        to: Peer,
        /// The bytes on the wire.
        datagram: Vec<u8>,
    },
    /// Send a bare datagram to the device, and report the [`SendOutcome`] to it later.
    SendUdp {
        /// The peer it is sent to.
        to: Peer,
        /// The bytes.
        bytes: Vec<u8>,
        /// The action request that it belongs to.
        action: ActionId,
    },
    /// Prepare the bootstrap of the device, and give it to the device.
    PrepareBootstrap(Box<BootstrapOrder>),
    /// Read a part of an image, and give it to the device.
    ReadImage(ImageRange),
    /// Note how much of its image the device has.
    NoteTransferred {
        /// The campaign.
        campaign: CampaignId,
        /// The place of the device in the campaign.
        place: u32,
        /// The bytes that it acknowledged.
        bytes: u64,
    },
}

/// The outcome of sending a bare datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SendOutcome {
    /// The socket accepted it.
    Sent,
    /// The socket did not accept it; nothing was sent.
    Refused(SendRefusal),
}

/// Why a socket does not accept a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SendRefusal {
    /// It is longer than the path takes in one piece.
    #[error("it is too large for the path to the device")]
    TooLarge,
    /// No route leads to the address.
    #[error("there is no route to the address of the device")]
    NoRoute,
    /// The operating system does not permit it: a firewall, or a broadcast address.
    #[error("the operating system does not permit sending to the address of the device")]
    NotPermitted,
    /// The socket cannot send to such an address.
    #[error("the socket cannot send to the address of the device")]
    UnusableAddress,
    /// Too much waits to be sent.
    #[error("the send buffer of the socket is full")]
    BufferFull,
    /// Any other error of the operating system.
    #[error("the operating system reports error {0}")]
    Other(i32),
}

impl Effects {
    /// No effects yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an effect.
    pub fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Adds a step event, and the trace of the request behind it.
    pub fn note(&mut self, trace: Option<TraceId>, what: StepEventKind) {
        self.events.push(StepEvent { kind: what, trace });
    }

    /// Adds a datagram to be sent.
    pub fn send(&mut self, to: Peer, datagram: Vec<u8>) {
        self.push(Effect::Send(Outbound::Send { to, datagram }));
    }

    /// Adds that a device is bound to a peer, has left one, or is in an exchange at one.
    pub fn rebind(&mut self, from: Option<Peer>, to: Option<Peer>) {
        self.push(Effect::Send(Outbound::Rebind { from, to }));
    }

    /// Saves a new SMS, unless its id is taken.
    pub fn save_sms(&mut self, sms: Sms) {
        self.push(Effect::Expect(Expect::SmsIdFree(sms.id)));
        self.push(Effect::Save(Change::PutSms {
            was: None,
            sms: Box::new(sms),
        }));
    }

    /// Saves the idempotency record of a call, unless there is one already.
    pub fn save_idempotency_record(&mut self, record: IdempotencyRecord) {
        self.push(Effect::Expect(Expect::no_record_like(&record)));
        self.push(Effect::Save(Change::PutIdempotencyRecord(record)));
    }

    /// Saves an action request with its counters; `was` is its previous state, if it existed.
    ///
    /// A request that this step creates cannot be expected: the preconditions of a batch are
    /// checked before any of its changes.
    pub fn save_action(&mut self, was: Option<ActionState>, action: &Action) {
        self.effects.reserve(EFFECTS_WITH_ACTION);
        let previous = was.map(|was| was.status);
        if previous != Some(action.status) {
            if let Some(was) = previous {
                if !self.creates(action.id) {
                    self.push(Effect::Expect(Expect::Status {
                        action: action.id,
                        is: was,
                    }));
                }
                self.count_action(action, was, -1);
            }
            self.count_action(action, action.status, 1);
            self.note_action(previous, action);
        }
        self.push(Effect::Save(Change::PutAction {
            was,
            action: Box::new(action.clone()),
        }));
    }

    /// Saves the row of the device in a firmware campaign, with the counts of the campaign.
    pub fn save_campaign_device(
        &mut self,
        (campaign, place): (CampaignId, u32),
        was: UpdateState,
        row: CampaignDevice,
    ) {
        let moved = moved(campaign, Some(was), row.state);
        self.effects.extend(moved.into_iter().map(Effect::Count));
        self.push(Effect::Save(Change::PutCampaignDevice {
            campaign,
            place,
            row: Box::new(row),
        }));
    }

    /// The effects in the order they were decided.
    pub fn as_slice(&self) -> &[Effect] {
        &self.effects
    }

    /// Takes the step events, in order.
    pub fn take_events(&mut self) -> Vec<StepEvent> {
        std::mem::take(&mut self.events)
    }

    /// Splits the effects into the batch that must be durable first and the effects after it.
    pub fn settle(self, owner: Owner) -> (Batch, Vec<Outbound>) {
        let mut batch = Batch {
            owner,
            ..Batch::default()
        };
        let mut outbound = Vec::new();
        for effect in self.effects {
            match effect {
                Effect::Save(Change::PutAction { was, action }) => batch.put_action(was, action),
                Effect::Save(change) => batch.changes.push(change),
                Effect::Expect(expect) => batch.expects.push(expect),
                Effect::Count(add) => batch.adds.push(add),
                Effect::Log(entry) => batch.changes.push(Change::AppendEntry(entry)),
                Effect::Send(sent) => outbound.push(sent),
            }
        }
        (batch, outbound)
    }

    /// Whether the step creates this request.
    fn creates(&self, id: ActionId) -> bool {
        self.effects.iter().any(|effect| match effect {
            Effect::Save(Change::PutAction { was: None, action }) => action.id == id,
            Effect::Save(_)
            | Effect::Expect(_)
            | Effect::Count(_)
            | Effect::Log(_)
            | Effect::Send(_) => false,
        })
    }

    fn note_action(&mut self, was: Option<Status>, action: &Action) {
        let (request, trace) = (ActionRef::by(action), Some(action.trace));
        if was.is_none() {
            self.note(trace, StepEventKind::Created(request));
        }
        if !action.status.is_pending() {
            self.note(trace, StepEventKind::Concluded(request, action.status));
        }
    }

    fn count_action(&mut self, action: &Action, status: Status, delta: i64) {
        let counter = Counter::of_action(action, status);
        self.push(Effect::Count(CounterDelta { counter, delta }));
    }
}
