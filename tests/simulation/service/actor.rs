//! The actor of a device in this world: its cell, its mailbox, and what it is at.

use std::collections::VecDeque;

use engine::arbiter::cell::{CellEffect, DeviceCell};
use engine::arbiter::input::Ending;
use engine::arbiter::input::Input;
use engine::change::Batch;
use engine::datagram::Arrival;
use engine::device::Device;
use engine::effect::{Departure, Speech};
use engine::ids::{ActionId, DeviceKey};
use engine::occurrence::{Heard, Occurrence};
use engine::supervision::Generation;

use super::{Act, Occasion, Saves, Took, Turn};
use crate::wire::{self, Met};

/// How many inputs may wait for a device; the network repeats datagrams, and callers are told.
const WAITING_MAX: usize = 16;

type Machine = engine::arbiter::Arbiter<Generation, u64>;

/// A running actor.
pub(super) struct Actor {
    who: usize,
    pub(super) cell: DeviceCell<u64>,
    pub(super) mailbox: VecDeque<Input<u64>>,
    /// The step it takes, or took last.
    pub(super) step: u64,
    /// What it takes the step for.
    pub(super) took: Decided,
    /// Who waits for an answer of the step.
    call: Option<u64>,
    /// What became of a bare datagram, while the cell waits for something else.
    departed: Option<(ActionId, Departure)>,
}

/// What an actor handles.
#[derive(Debug, Default)]
pub(super) struct Decided {
    datagram: Option<Box<Arrival>>,
    is_input: bool,
}

impl Decided {
    /// Nothing that was heard.
    pub(super) const NOTHING: Self = Self {
        datagram: None,
        is_input: true,
    };
}

/// What came of an effect.
pub(super) enum Performed {
    Done,
    /// The actor ends, or could.
    Ended(Ending),
}

impl Actor {
    pub(super) fn new(who: usize, device: Device, generation: Generation) -> Self {
        Self {
            who,
            cell: DeviceCell::new(device, generation),
            mailbox: VecDeque::new(),
            step: 0,
            took: Decided::default(),
            call: None,
            departed: None,
        }
    }

    /// Takes an input into the mailbox.
    pub(super) fn take(&mut self, input: Input<u64>) -> Result<(), Input<u64>> {
        if self.mailbox.len() >= WAITING_MAX {
            return Err(input);
        }
        self.mailbox.push_back(input);
        Ok(())
    }

    /// The next input to handle, if it is its turn.
    pub(super) fn next(&mut self) -> Option<Input<u64>> {
        match self.cell.is_waiting() {
            true => None,
            false => self.mailbox.pop_front(),
        }
    }

    /// Takes what became of a bare datagram, for the cell's next step.
    pub(super) fn take_departed(&mut self, departed: (ActionId, Departure)) {
        self.departed = Some(departed);
    }

    /// What became of a bare datagram, if it is its turn.
    pub(super) fn next_departed(&mut self) -> Option<(ActionId, Departure)> {
        match self.cell.is_waiting() {
            true => None,
            false => self.departed.take(),
        }
    }

    /// Notes what is handled next.
    pub(super) fn note_taken(&mut self, input: &Input<u64>) {
        self.took = Decided::NOTHING;
        match input {
            Input::Datagram(arrival) => self.took.datagram = Some(arrival.clone()),
            Input::Asked(asked) => self.call = Some(asked.reply),
            Input::Timeout => {}
        }
    }

    /// Whether the cell decides something new, and does not go on with what it waited for.
    pub(super) fn is_deciding(&self) -> bool {
        self.took.is_input
    }

    /// Who would have been answered, of an actor that is gone.
    pub(super) fn take_call(&mut self) -> Option<u64> {
        self.call.take()
    }

    /// Shows the judge what the cell decided.
    pub(super) fn see(&mut self, out: &[CellEffect<u64>], turn: &mut Turn<'_>) {
        if !std::mem::take(&mut self.took.is_input) {
            return;
        }
        self.step = turn.number();
        if out.iter().any(|it| matches!(it, CellEffect::ReadProfile)) {
            return;
        }
        let saved = out.iter().find_map(committed);
        let (speeches, occurred) = match self.cell.report_to_come() {
            Some(report) => (self.cell.speeches_to_come().to_vec(), &*report.occurred),
            None => (
                speeches(out),
                out.iter().find_map(reported).unwrap_or_default(),
            ),
        };
        let changes = saved.map_or(&[][..], |batch| &batch.changes);
        let (sends, throws) = wire::requests_sent(changes, &speeches, occurred);
        let mut took = match (self.took.datagram.take(), out.iter().find_map(heard_as)) {
            (Some(arrival), Some(heard)) => took(&arrival, heard),
            (_, _) => Took::NOTHING,
        };
        took.on = Occasion::of(&took, &speeches, occurred);
        turn.acts.push(Act::Decided {
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

    /// Does one thing of a step.
    pub(super) fn perform(
        &mut self,
        effect: CellEffect<u64>,
        (key, machine): (DeviceKey, &mut Machine),
        turn: &mut Turn<'_>,
    ) -> Performed {
        let (who, step) = (self.who, self.step);
        match effect {
            CellEffect::Heard(..) | CellEffect::Report(_) => {}
            CellEffect::Commit(batch, _) => turn.acts.push(Act::Commit { who, step, batch }),
            CellEffect::ReadProfile => turn.acts.push(Act::ReadNames { who, step }),
            CellEffect::Rebind(from, to) => {
                turn.acts.push(Act::Rebound { who, from, to });
                machine.rebind(key, (from, to), self.cell.said_mut());
            }
            CellEffect::Send(to, datagram) => turn.acts.push(Act::Send {
                step: Some(step),
                who: Some(who),
                to,
                datagram,
            }),
            CellEffect::SendBare(to, bytes, action) => {
                let departure = turn.departure();
                turn.acts.push(Act::Throw {
                    step,
                    who,
                    to,
                    bytes,
                    action,
                    departure,
                });
            }
            CellEffect::Reply(call, reply) => {
                self.call = None;
                turn.acts.push(Act::Reply {
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

fn took(arrival: &Arrival, heard: Heard) -> Took {
    let took = Took {
        heard: Some(heard),
        from: Some(arrival.peer()),
        ..Took::NOTHING
    };
    match arrival {
        Arrival::Message(datagram) => Took {
            meets: Met::by(&datagram.message),
            ..took
        },
        Arrival::Ambiguous(_) => Took {
            is_ambiguous: true,
            ..took
        },
        Arrival::Bare(bare) => Took {
            bare: vec![bare.bytes.clone()],
            ..took
        },
        Arrival::Burst(first, more) => Took {
            bare: std::iter::once(first)
                .chain(more)
                .map(|bare| bare.bytes.clone())
                .collect(),
            ..took
        },
    }
}

/// What a step says at once that saves nothing.
fn speeches(out: &[CellEffect<u64>]) -> Vec<Speech> {
    let mut speeches = Vec::new();
    for effect in out {
        if let CellEffect::Send(to, datagram) = effect {
            let (to, datagram) = (*to, datagram.clone());
            speeches.push(Speech::Send { to, datagram });
        } else if let CellEffect::SendBare(to, bytes, action) = effect {
            let (to, bytes, action) = (*to, bytes.clone(), *action);
            speeches.push(Speech::SendBare { to, bytes, action });
        }
    }
    speeches
}

fn committed(effect: &CellEffect<u64>) -> Option<&Batch> {
    if let CellEffect::Commit(batch, _) = effect {
        return Some(batch);
    }
    None
}

fn reported(effect: &CellEffect<u64>) -> Option<&[Occurrence]> {
    if let CellEffect::Report(report) = effect {
        return Some(&report.occurred);
    }
    None
}

fn heard_as(effect: &CellEffect<u64>) -> Option<Heard> {
    if let CellEffect::Heard(heard, _) = effect {
        return Some(*heard);
    }
    None
}
