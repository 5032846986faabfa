//! How does a device take one input after the other? The law of order, for one device.
//!
//! [`DeviceCell`] holds the machine of a device and conducts its steps: what a step saves is
//! committed first, then it is said, then whoever asked is answered. While it waits for a receipt
//! or for the store, its next input waits with it ([`DeviceCell::is_waiting`]); other devices do
//! not. A step that was not saved is not said: the cell reports that it failed, and is restored
//! from the store.
//!
//! ```text
//!              input                      receipt ok, or nothing to save
//!   at rest ---------> deciding -> saving -----------------------------> saying --> at rest
//!                                    |
//!                                    | not saved
//!                                    v
//!                                  failed
//! ```

use std::iter;
use std::sync::Arc;

use crate::arbiter::input::{Answer, Asked, Ending, Input, Question};
use crate::change::{Batch, Owner};
use crate::datagram::Arrival;
use crate::device::Device;
use crate::effect::{Departure, Effect, Effects, Speech};
use crate::ids::{ActionId, TraceId};
use crate::moment::{Moment, Timestamp};
use crate::occurrence::{Heard, Occurrence};
use crate::peer::Peer;
use crate::profile::Profile;
use crate::registry::peers::Said;
use crate::supervision::Unserved;
use crate::supervision::{Failure, Generation};
use crate::terms::Terms;

/// What the shell of a device performs, in order.
#[derive(Debug)]
pub enum CellEffect<R> {
    /// The machine took a datagram for this; a burst counts as so many.
    Heard(Heard, usize),
    /// Commit a batch, then call `handle_receipt`; it belongs to this call.
    Commit(Batch, Option<TraceId>),
    /// Read who the device is, then call `handle_profile`.
    ReadProfile,
    /// Let the device's datagrams reach it: it was at the first peer and is at the second.
    Rebind(Option<Peer>, Option<Peer>),
    /// Send a datagram.
    Send(Peer, Vec<u8>),
    /// Send the bare datagram of a request; call `handle_departure` when it is known what became of
    /// it.
    SendBare(Peer, Vec<u8>, ActionId),
    /// Tell the operator what the step was about.
    Report(StepReport),
    /// Answer a question.
    Reply(R, Result<Answer, Unserved>),
    /// Wake the device at a time.
    Arm(Timestamp),
    /// The device need not be woken at that time.
    Disarm(Timestamp),
    /// Report to the arbiter that the actor ends, or could.
    End(Ending),
}

/// What an operator may want to know of a step.
#[derive(Debug, Default)]
pub struct StepReport {
    /// What happened.
    pub occurred: Vec<Occurrence>,
    /// The calls whose requests have a new entry in the administration log, and what it says.
    pub entries: Vec<(TraceId, Box<str>)>,
}

/// What a step is taken by.
#[derive(Debug)]
pub struct StepContext<'a> {
    /// Time and chance.
    pub moment: Moment,
    /// What the customer of the device chose last.
    pub terms: &'a Arc<Terms>,
    /// In which epoch this process owns the device's shard.
    pub epoch: u64,
}

/// Why a batch was not committed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotSaved {
    /// What it expects does not hold.
    Conflict,
    /// The store has no room.
    Full,
    /// The store failed, or the shard has another owner.
    Failed,
}

/// A device and its step.
pub struct DeviceCell<R> {
    device: Device,
    generation: Generation,
    said: Said,
    armed_at: Option<Timestamp>,
    handled: u64,
    phase: Phase,
    open: Option<Box<Open<R>>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// It serves its device.
    Serving,
    /// Its device was removed.
    Retired,
    /// A step was not saved, or the store did not say who the device is.
    Failed,
}

/// What a cell waits for.
enum Open<R> {
    /// The receipt of what it saves.
    Receipt {
        speeches: Vec<Speech>,
        report: StepReport,
        answer: Option<(R, Answer)>,
    },
    /// Who its device is.
    Profile(R),
}

impl<R> DeviceCell<R> {
    /// The cell of a device that was restored.
    pub fn new(device: Device, generation: Generation) -> Self {
        Self {
            device,
            generation,
            said: Said::default(),
            armed_at: None,
            handled: 0,
            phase: Phase::Serving,
            open: None,
        }
    }

    /// Begins: says where the device is and when it is due.
    pub fn start(&mut self, out: &mut Vec<CellEffect<R>>) {
        self.say_where_it_is(out);
        self.arm(out);
    }

    /// Takes an input; not while the cell is waiting.
    pub fn handle(
        &mut self,
        context: &mut StepContext<'_>,
        input: Input<R>,
        out: &mut Vec<CellEffect<R>>,
    ) {
        self.handled += 1;
        if self.is_retired() {
            return refuse(input, out);
        }
        self.take_terms(context.terms);
        let mut effects = Effects::new();
        let answer = match input {
            Input::Datagram(arrival) => {
                let heard = self.hear(&mut context.moment, &arrival, &mut effects);
                out.push(CellEffect::Heard(heard, arrival.datagrams()));
                None
            }
            Input::Timeout => {
                self.disarm(out);
                self.device
                    .handle_timeout(&mut context.moment, &mut effects);
                None
            }
            Input::Asked(asked) => {
                let Asked { question, reply } = *asked;
                match self.answer(&mut context.moment, question, &mut effects) {
                    Some(answer) => Some((reply, answer)),
                    None => {
                        self.open = Some(Box::new(Open::Profile(reply)));
                        return out.push(CellEffect::ReadProfile);
                    }
                }
            }
        };
        self.settle(context.epoch, effects, answer, out);
    }

    /// Takes the receipt of what the step saves.
    pub fn handle_receipt(&mut self, receipt: Result<(), NotSaved>, out: &mut Vec<CellEffect<R>>) {
        let Some(Open::Receipt {
            speeches,
            report,
            answer,
        }) = self.open.take().map(|open| *open)
        else {
            return;
        };
        match receipt {
            Ok(()) => self.say(speeches, report, answer, out),
            Err(not_saved) => self.give_up(not_saved, answer, out),
        }
    }

    /// Takes who the device is: nothing if there is no such device any more, an error if the store
    /// does not say.
    pub fn handle_profile(
        &mut self,
        profile: Result<Option<&Profile>, NotSaved>,
        out: &mut Vec<CellEffect<R>>,
    ) {
        let Some(Open::Profile(reply)) = self.open.take().map(|open| *open) else {
            return;
        };
        let answer = match profile {
            Ok(Some(profile)) => {
                self.device.adopt(profile);
                self.say_where_it_is(out);
                self.rest(out);
                Ok(Answer::ProfileRead)
            }
            Ok(None) => Err(Unserved::Unknown),
            Err(_) => {
                self.fail(out);
                Err(Unserved::Failed)
            }
        };
        out.push(CellEffect::Reply(reply, answer));
    }

    /// Takes what became of the bare datagram of a request, at once or later; not while the cell is
    /// waiting.
    pub fn handle_departure(
        &mut self,
        context: &mut StepContext<'_>,
        departed: (ActionId, Departure),
        out: &mut Vec<CellEffect<R>>,
    ) {
        if self.is_retired() {
            return;
        }
        self.take_terms(context.terms);
        let mut effects = Effects::new();
        self.device
            .handle_departure(&mut context.moment, departed, &mut effects);
        self.settle(context.epoch, effects, None, out);
    }

    /// Whether the next input has to wait.
    pub fn is_waiting(&self) -> bool {
        self.open.is_some()
    }

    /// Whether the device was removed: whatever comes for it is refused.
    pub fn is_retired(&self) -> bool {
        self.phase == Phase::Retired
    }

    /// What the step that waits for its receipt says after it.
    pub fn speeches_to_come(&self) -> &[Speech] {
        match self.open.as_deref() {
            Some(Open::Receipt { speeches, .. }) => speeches,
            Some(Open::Profile(_)) | None => &[],
        }
    }

    /// What is reported of the step that waits for its receipt.
    pub fn report_to_come(&self) -> Option<&StepReport> {
        match self.open.as_deref() {
            Some(Open::Receipt { report, .. }) => Some(report),
            Some(Open::Profile(_)) | None => None,
        }
    }

    /// The machine.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The machine, for what the shell shares among devices.
    pub fn device_mut(&mut self) -> &mut Device {
        &mut self.device
    }

    /// What it last said of where the device is.
    pub fn said_mut(&mut self) -> &mut Said {
        &mut self.said
    }

    /// The number of its actor.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    fn take_terms(&mut self, terms: &Arc<Terms>) {
        if !Arc::ptr_eq(self.device.terms(), terms) {
            self.device.take_terms(Arc::clone(terms));
        }
    }

    fn hear(&mut self, m: &mut Moment, arrival: &Arrival, out: &mut Effects) -> Heard {
        match arrival {
            Arrival::Message(datagram) => self.device.handle_datagram(m, datagram, out),
            Arrival::Ambiguous(datagram) => self.device.handle_ambiguous(m, datagram, out),
            Arrival::Bare(bare) => self.device.handle_bare(m, bare, out),
            Arrival::Burst(first, more) => {
                let burst = iter::once(first).chain(more);
                self.device.handle_burst(m, burst, out)
            }
        }
    }

    /// What the machine answers; nothing if the store is asked instead.
    fn answer(&mut self, m: &mut Moment, question: Question, out: &mut Effects) -> Option<Answer> {
        Some(match question {
            Question::Submit(new) => Answer::Submitted(self.device.submit(m, new, out)),
            Question::Cancel(id) => Answer::Cancelled(self.device.cancel(m, id, out)),
            Question::CancelAll => Answer::CancelledAll(self.device.cancel_all(m, out)),
            Question::Retire => {
                self.device.retire(out);
                self.phase = Phase::Retired;
                Answer::Retired
            }
            Question::Inspect => Answer::Inspected(Box::new(self.device.snapshot(m.now()))),
            Question::ReadProfile => return None,
        })
    }

    /// Saves what a step saves; says the rest when that is durable.
    fn settle(
        &mut self,
        epoch: u64,
        mut effects: Effects,
        answer: Option<(R, Answer)>,
        out: &mut Vec<CellEffect<R>>,
    ) {
        let report = StepReport::of(&mut effects);
        let shard = self.device.key().shard();
        let (batch, speeches) = effects.settle(Owner::Shard { shard, epoch });
        if batch.is_empty() {
            return self.say(speeches, report, answer, out);
        }
        let trace = report.occurred.iter().find_map(|it| it.trace);
        self.open = Some(Box::new(Open::Receipt {
            speeches,
            report,
            answer,
        }));
        out.push(CellEffect::Commit(batch, trace));
    }

    /// Says in order what is left of a step that is durable.
    fn say(
        &mut self,
        speeches: Vec<Speech>,
        report: StepReport,
        answer: Option<(R, Answer)>,
        out: &mut Vec<CellEffect<R>>,
    ) {
        for speech in speeches {
            out.push(match speech {
                Speech::Rebind { from, to } => CellEffect::Rebind(from, to),
                Speech::Send { to, datagram } => CellEffect::Send(to, datagram),
                Speech::SendBare { to, bytes, action } => CellEffect::SendBare(to, bytes, action),
            });
        }
        out.push(CellEffect::Report(report));
        self.rest(out);
        let reply = answer.map(|(reply, answer)| CellEffect::Reply(reply, Ok(answer)));
        out.extend(reply);
    }

    /// The step is done: says when the device is due next.
    ///
    /// Of a removed device the arbiter hears before whoever asked does: who asks next is told that
    /// there is no such device.
    fn rest(&mut self, out: &mut Vec<CellEffect<R>>) {
        match self.phase {
            Phase::Retired => out.push(CellEffect::End(Ending::Retired)),
            Phase::Serving | Phase::Failed => self.arm(out),
        }
    }

    /// Nothing of the step was saved, so nothing of it happened.
    fn give_up(
        &mut self,
        not_saved: NotSaved,
        answer: Option<(R, Answer)>,
        out: &mut Vec<CellEffect<R>>,
    ) {
        let why = match (not_saved, self.phase) {
            (NotSaved::Full, _) => Unserved::Busy,
            // It was removed already: nothing else is expected of a device to remove it.
            (NotSaved::Conflict, Phase::Retired) => Unserved::Unknown,
            (NotSaved::Conflict | NotSaved::Failed, _) => Unserved::Failed,
        };
        let reply = answer.map(|(reply, _)| CellEffect::Reply(reply, Err(why)));
        out.extend(reply);
        self.fail(out);
    }

    fn fail(&mut self, out: &mut Vec<CellEffect<R>>) {
        self.phase = Phase::Failed;
        out.push(CellEffect::End(Ending::Failed(Failure::Unsaved)));
    }

    /// Says where the device is found by now, if it is found by where it is registered.
    fn say_where_it_is(&self, out: &mut Vec<CellEffect<R>>) {
        if let Some(peer) = self.device.bound_peer() {
            out.push(CellEffect::Rebind(Some(peer), self.device.found_at()));
        }
    }

    /// Asks to be woken at the machine's deadline; an earlier wake-up does instead.
    fn arm(&mut self, out: &mut Vec<CellEffect<R>>) {
        if let Some(at) = self.device.next_timeout()
            && self.armed_at.is_none_or(|armed_at| at < armed_at)
        {
            self.disarm(out);
            self.armed_at = Some(at);
            out.push(CellEffect::Arm(at));
        }
        if self.device.is_idle() {
            let handled = self.handled;
            out.push(CellEffect::End(Ending::Idle { handled }));
        }
    }

    fn disarm(&mut self, out: &mut Vec<CellEffect<R>>) {
        out.extend(self.armed_at.take().map(CellEffect::Disarm));
    }
}

impl StepReport {
    fn of(effects: &mut Effects) -> Self {
        let entry = |effect: &Effect| match effect {
            Effect::Log(entry) => Some((entry.trace, entry.message.clone())),
            Effect::Save(_) | Effect::Expect(_) | Effect::Count(_) | Effect::Say(_) => None,
        };
        Self {
            entries: effects.as_slice().iter().filter_map(entry).collect(),
            occurred: effects.take_occurred(),
        }
    }
}

/// What reaches a device that was removed meanwhile.
fn refuse<R>(input: Input<R>, out: &mut Vec<CellEffect<R>>) {
    match input {
        Input::Asked(asked) => {
            out.push(CellEffect::Reply(asked.reply, Err(Unserved::Unknown)));
        }
        Input::Datagram(_) | Input::Timeout => {}
    }
}

#[cfg(test)]
mod tests;
