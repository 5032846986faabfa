//! The actor of a device in the simulation: its cell, its mailbox, and its current step.

use std::collections::VecDeque;

use engine::arbiter::cell::{CellEffect, DeviceCell};
use engine::arbiter::input::ActorExit;
use engine::arbiter::input::DeviceInput;
use engine::change::Batch;
use engine::datagram::Inbound;
use engine::device::Device;
use engine::effect::{Outbound, SendOutcome};
use engine::ids::{ActionId, DeviceKey};
use engine::step_event::{StepEvent, UplinkKind};
use engine::supervision::Generation;
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageKind};

use super::{ArbiterAct, Saves, ServiceTurn, StepInput, StepTrigger};
use crate::wire::{self, AnsweredBy};

/// How many inputs may wait for a device; the network repeats datagrams, and callers get an error.
const WAITING_MAX: usize = 16;

type Machine = engine::arbiter::Arbiter<Generation, u64>;

/// A running actor.
pub(super) struct Actor {
    who: usize,
    pub(super) cell: DeviceCell<u64>,
    pub(super) mailbox: VecDeque<DeviceInput<u64>>,
    /// The current step, or the last one.
    pub(super) step: u64,
    /// The input of the step.
    pub(super) took: DecidedStep,
    /// The call that waits for a reply of the step.
    call: Option<u64>,
    /// The outcome of a bare datagram, while the cell waits for something else.
    departed: Option<(ActionId, SendOutcome)>,
}

/// The input that an actor handles.
#[derive(Debug, Default)]
pub(super) struct DecidedStep {
    datagram: Option<Box<Inbound>>,
    is_input: bool,
}

impl DecidedStep {
    /// No input.
    pub(super) const NOTHING: Self = Self {
        datagram: None,
        is_input: true,
    };
}

/// The result of an effect.
pub(super) enum Performed {
    Done,
    /// The actor ends, or could.
    Ended(ActorExit),
}

impl Actor {
    pub(super) fn new(who: usize, device: Device, generation: Generation) -> Self {
        Self {
            who,
            cell: DeviceCell::new(device, generation),
            mailbox: VecDeque::new(),
            step: 0,
            took: DecidedStep::default(),
            call: None,
            departed: None,
        }
    }

    /// Puts an input into the mailbox.
    pub(super) fn take(&mut self, input: DeviceInput<u64>) -> Result<(), DeviceInput<u64>> {
        if self.mailbox.len() >= WAITING_MAX {
            return Err(input);
        }
        self.mailbox.push_back(input);
        Ok(())
    }

    /// The next input to handle, if the cell is ready for one.
    pub(super) fn next(&mut self) -> Option<DeviceInput<u64>> {
        match self.cell.is_waiting() {
            true => None,
            false => self.mailbox.pop_front(),
        }
    }

    /// Whether its unfinished bodies are to be dropped once its step is saved.
    pub(super) fn is_to_drop(&self) -> bool {
        let mut waiting = self.mailbox.iter();
        waiting.any(|input| matches!(input, DeviceInput::DropUnfinished))
    }

    /// Stores the outcome of a bare datagram for the cell's next step.
    pub(super) fn take_departed(&mut self, departed: (ActionId, SendOutcome)) {
        self.departed = Some(departed);
    }

    /// The outcome of a bare datagram, if the cell is ready for it.
    pub(super) fn next_departed(&mut self) -> Option<(ActionId, SendOutcome)> {
        match self.cell.is_waiting() {
            true => None,
            false => self.departed.take(),
        }
    }

    /// Records the input that is handled next.
    pub(super) fn note_taken(&mut self, input: &DeviceInput<u64>) {
        self.took = DecidedStep::NOTHING;
        match input {
            DeviceInput::Datagram(arrival) => self.took.datagram = Some(arrival.clone()),
            DeviceInput::Command(command) => self.call = Some(command.reply),
            DeviceInput::Timeout | DeviceInput::DropUnfinished => {}
        }
    }

    /// Whether the cell begins a new step, and does not continue one that waited.
    pub(super) fn is_deciding(&self) -> bool {
        self.took.is_input
    }

    /// The call of an actor that is gone.
    pub(super) fn take_call(&mut self) -> Option<u64> {
        self.call.take()
    }

    /// Shows the judge what the cell decided.
    pub(super) fn see(&mut self, out: &[CellEffect<u64>], turn: &mut ServiceTurn<'_>) {
        if !std::mem::take(&mut self.took.is_input) {
            return;
        }
        self.step = turn.number();
        if out.iter().any(|it| matches!(it, CellEffect::ReadProfile)) {
            return;
        }
        let saved = out.iter().find_map(committed);
        let (outbound, events) = match self.cell.report_pending() {
            Some(report) => (self.cell.outbound_pending().to_vec(), &*report.events),
            None => (
                outbound(out),
                out.iter().find_map(reported).unwrap_or_default(),
            ),
        };
        let changes = saved.map_or(&[][..], |batch| &batch.changes);
        let (sends, throws) = wire::requests_sent(changes, &outbound, events);
        let mut took = match (self.took.datagram.take(), out.iter().find_map(meaning_of)) {
            (Some(arrival), Some(meaning)) => took(&arrival, meaning),
            (_, _) => StepInput::NOTHING,
        };
        let prepares = |it: &Outbound| matches!(it, Outbound::PrepareBootstrap(_));
        took.is_bootstrap = outbound.iter().any(prepares);
        took.on = StepTrigger::of(&took, &outbound, events);
        turn.acts.push(ArbiterAct::Decided {
            who: self.who,
            took,
            step: self.step,
            saves: match saved {
                Some(_) => Saves::Something,
                None => Saves::Nothing,
            },
            sends,
            throws,
        });
    }

    /// Performs one effect of a step.
    pub(super) fn perform(
        &mut self,
        effect: CellEffect<u64>,
        (key, machine): (DeviceKey, &mut Machine),
        turn: &mut ServiceTurn<'_>,
    ) -> Performed {
        let (who, step) = (self.who, self.step);
        match effect {
            CellEffect::CountUplink(..)
            | CellEffect::ReportImpostor(..)
            | CellEffect::Report(_) => {}
            CellEffect::Commit(batch, _) => turn.acts.push(ArbiterAct::Commit { who, step, batch }),
            CellEffect::ReadProfile => turn.acts.push(ArbiterAct::ReadNames { who, step }),
            CellEffect::Rebind(from, to) => {
                turn.acts.push(ArbiterAct::Rebound { who, from, to });
                machine.rebind(key, (from, to), self.cell.binding_mut());
            }
            CellEffect::Send(to, datagram) => turn.acts.push(ArbiterAct::Send {
                step: Some(step),
                who: Some(who),
                to,
                datagram,
            }),
            CellEffect::SendUdp(to, bytes, action) => {
                let outcome = turn.outcome();
                turn.acts.push(ArbiterAct::Throw {
                    step,
                    who,
                    to,
                    bytes,
                    action,
                    outcome,
                });
            }
            CellEffect::ReadImage(range) => {
                turn.acts.push(ArbiterAct::ReadImage { who, step, range });
            }
            CellEffect::NoteTransferred(..) => {}
            CellEffect::PrepareBootstrap(order) => {
                turn.acts
                    .push(ArbiterAct::PrepareBootstrap { who, step, order });
            }
            CellEffect::NoteUnfinished(bytes) => {
                machine.note_unfinished(turn.now, key, bytes);
            }
            CellEffect::Reply(call, reply) => {
                self.call = None;
                turn.acts.push(ArbiterAct::Reply {
                    call,
                    step: Some(step),
                    reply,
                });
            }
            CellEffect::Arm(at) => machine.arm(at, key),
            CellEffect::Disarm(at) => machine.disarm(at, key),
            CellEffect::End(ending) => return Performed::Ended(ending),
        }
        Performed::Done
    }
}

fn acknowledged_by(message: &Message) -> Option<u16> {
    let is_empty = message.code == Code::EMPTY;
    let is_acknowledgement = is_empty && message.kind == MessageKind::Acknowledgement;
    is_acknowledgement.then_some(message.message_id.0)
}

fn took(arrival: &Inbound, meaning: UplinkKind) -> StepInput {
    let took = StepInput {
        meaning: Some(meaning),
        from: Some(arrival.peer()),
        ..StepInput::NOTHING
    };
    match arrival {
        Inbound::Message(datagram) => StepInput {
            meets: AnsweredBy::by(&datagram.message),
            acknowledges: acknowledged_by(&datagram.message),
            ..took
        },
        // What is refused for its key answers nothing.
        Inbound::RefusedHandshake(_) | Inbound::BootstrapOnly(_) => took,
        Inbound::Ambiguous(_) => StepInput {
            is_ambiguous: true,
            ..took
        },
        Inbound::Udp(bare) => StepInput {
            bare: vec![bare.bytes.clone()],
            ..took
        },
        Inbound::UdpBurst(first, more) => StepInput {
            bare: std::iter::once(first)
                .chain(more)
                .map(|bare| bare.bytes.clone())
                .collect(),
            ..took
        },
    }
}

/// What a step that saves nothing sends at once.
fn outbound(out: &[CellEffect<u64>]) -> Vec<Outbound> {
    let mut outbound = Vec::new();
    for effect in out {
        if let CellEffect::Send(to, datagram) = effect {
            let (to, datagram) = (*to, datagram.clone());
            outbound.push(Outbound::Send { to, datagram });
        } else if let CellEffect::SendUdp(to, bytes, action) = effect {
            let (to, bytes, action) = (*to, bytes.clone(), *action);
            outbound.push(Outbound::SendUdp { to, bytes, action });
        } else if let CellEffect::PrepareBootstrap(order) = effect {
            outbound.push(Outbound::PrepareBootstrap(order.clone()));
        }
    }
    outbound
}

fn committed(effect: &CellEffect<u64>) -> Option<&Batch> {
    if let CellEffect::Commit(batch, _) = effect {
        return Some(batch);
    }
    None
}

fn reported(effect: &CellEffect<u64>) -> Option<&[StepEvent]> {
    if let CellEffect::Report(report) = effect {
        return Some(&report.events);
    }
    None
}

fn meaning_of(effect: &CellEffect<u64>) -> Option<UplinkKind> {
    if let CellEffect::CountUplink(meaning, _) = effect {
        return Some(*meaning);
    }
    None
}
