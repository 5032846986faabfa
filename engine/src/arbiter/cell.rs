//! How does a device take one input after the other? The law of order, for one device.
//!
//! [`DeviceCell`] holds the machine of a device and runs its steps: what a step saves is committed
//! first, then its datagrams are sent, then the caller is answered. While the cell waits for a
//! receipt or for the store, its next input waits, too ([`DeviceCell::is_waiting`]); other devices
//! do not. If a step was not saved, nothing of it is sent: the cell reports that it failed, and the
//! device is restored from the store.
//!
//! ```text
//!           input                      receipt ok, or nothing to save
//!  ready ---------> deciding -> saving -----------------------------> sending --> ready
//!                                 |
//!                                 | not saved
//!                                 v
//!                               failed
//! ```

use std::iter;
use std::sync::Arc;

use crate::arbiter::input::{ActorExit, DeviceCommand, DeviceInput, DeviceReply, PendingCommand};
use crate::bootstrap::{BootstrapFault, BootstrapOrder, BootstrapPlan};
use crate::change::{Batch, Owner};
use crate::datagram::Inbound;
use crate::device::Device;
use crate::dispatch::peer_table::PeerBinding;
use crate::effect::{Effect, Effects, Outbound, SendOutcome};
use crate::firmware::{ImageRange, ImageUnreadable};
use crate::ids::{ActionId, CampaignId, TraceId};
use crate::moment::{Moment, Timestamp};
use crate::peer::Peer;
use crate::policy::CustomerPolicy;
use crate::profile::Profile;
use crate::step_event::{StepEvent, UplinkKind};
use crate::supervision::Unserved;
use crate::supervision::{ActorFailure, Generation};

/// An effect for the shell of a device, performed in order.
#[derive(Debug)]
pub enum CellEffect<R> {
    /// Count a datagram by its kind; a burst counts as this many.
    CountUplink(UplinkKind, usize),
    /// Report to the arbiter that the datagram with this number came from a peer where the device
    /// is not.
    ReportImpostor(u64, Peer),
    /// Commit a batch, then call `handle_receipt`; the batch belongs to this call.
    Commit(Batch, Option<TraceId>),
    /// Read the profile, then call `handle_profile`.
    ReadProfile,
    /// Prepare the bootstrap of the device, then call `handle_bootstrap`.
    PrepareBootstrap(Box<BootstrapOrder>),
    /// Read a part of an image, then call `handle_image`.
    ReadImage(ImageRange),
    /// Note how many bytes of its image the device at a place of a campaign has.
    NoteTransferred(CampaignId, u32, u64),
    /// Route the device's datagrams to it: it was at the first peer and is at the second.
    Rebind(Option<Peer>, Option<Peer>),
    /// Send a datagram.
    Send(Peer, Vec<u8>),
    /// Send the bare datagram of a request; call `handle_send_outcome` when the outcome is known.
    SendUdp(Peer, Vec<u8>, ActionId),
    /// The bodies received in part occupy this many bytes now.
    NoteUnfinished(usize),
    /// Report the step to the operator.
    Report(StepReport),
    /// Answer a command.
    Reply(R, Result<DeviceReply, Unserved>),
    /// Wake the device at this time.
    Arm(Timestamp),
    /// Do not wake the device at this time.
    Disarm(Timestamp),
    /// Report to the arbiter that the actor ends, or could.
    End(ActorExit),
}

/// What is reported to the operator about a step.
#[derive(Debug, Default)]
pub struct StepReport {
    /// The events of the step.
    pub events: Vec<StepEvent>,
    /// The messages of new entries in the administration log, with the trace of the call behind
    /// each.
    pub entries: Vec<(TraceId, Box<str>)>,
}

/// What a step is given.
#[derive(Debug)]
pub struct StepContext<'a> {
    /// Time and entropy.
    pub moment: Moment,
    /// The present policy of the device's customer.
    pub policy: &'a Arc<CustomerPolicy>,
    /// The epoch in which this process owns the device's shard.
    pub epoch: u64,
}

/// Why a batch was not committed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CommitFailure {
    /// An expectation of the batch does not hold.
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
    binding: PeerBinding,
    armed_at: Option<Timestamp>,
    handled: u32,
    /// The bytes of unfinished bodies that were announced last.
    unfinished_bytes: u32,
    phase: Phase,
    open: Option<Box<Awaiting<R>>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// It serves its device.
    Serving,
    /// Its device was removed.
    Retired,
    /// A step was not saved, or the profile could not be read.
    Failed,
}

/// What a cell waits for.
enum Awaiting<R> {
    /// The receipt of its batch.
    Receipt {
        outbound: Vec<Outbound>,
        report: StepReport,
        answer: Option<(R, DeviceReply)>,
    },
    /// The profile of its device.
    Profile(R),
    /// What its device is written in its bootstrap.
    Bootstrap,
    /// A part of the image that its device is sent.
    Image,
}

impl<R> DeviceCell<R> {
    /// The cell of a restored device.
    pub fn new(device: Device, generation: Generation) -> Self {
        Self {
            device,
            generation,
            binding: PeerBinding::default(),
            armed_at: None,
            handled: 0,
            unfinished_bytes: 0,
            phase: Phase::Serving,
            open: None,
        }
    }

    /// Announces the peer of the device and its deadline.
    pub fn start(&mut self, out: &mut Vec<CellEffect<R>>) {
        self.announce_binding(out);
        self.arm(out);
    }

    /// Handles an input; not while the cell is waiting.
    pub fn handle(
        &mut self,
        context: &mut StepContext<'_>,
        input: DeviceInput<R>,
        out: &mut Vec<CellEffect<R>>,
    ) {
        self.handled = self.handled.wrapping_add(1);
        if self.is_retired() {
            return refuse(input, out);
        }
        self.update_policy(context.policy);
        let mut effects = Effects::new();
        let answer = match input {
            DeviceInput::Datagram(arrival) => {
                let kind = self.handle_datagram(&mut context.moment, &arrival, &mut effects);
                out.push(CellEffect::CountUplink(kind, arrival.datagrams()));
                if !self.device.may_be_at(arrival.peer()) {
                    out.push(CellEffect::ReportImpostor(arrival.number(), arrival.peer()));
                }
                None
            }
            DeviceInput::Timeout => {
                self.disarm(out);
                self.device
                    .handle_timeout(&mut context.moment, &mut effects);
                None
            }
            DeviceInput::DropUnfinished => {
                self.device
                    .drop_unfinished(&mut context.moment, &mut effects);
                None
            }
            DeviceInput::Command(pending) => {
                let PendingCommand { command, reply } = *pending;
                match self.answer(&mut context.moment, command, &mut effects) {
                    Some(answer) => Some((reply, answer)),
                    None => {
                        self.open = Some(Box::new(Awaiting::Profile(reply)));
                        return out.push(CellEffect::ReadProfile);
                    }
                }
            }
        };
        self.settle(context.epoch, effects, answer, out);
    }

    /// Takes the receipt of the step's batch.
    pub fn handle_receipt(
        &mut self,
        receipt: Result<(), CommitFailure>,
        out: &mut Vec<CellEffect<R>>,
    ) {
        let Some(Awaiting::Receipt {
            outbound,
            report,
            answer,
        }) = self.open.take().map(|open| *open)
        else {
            return;
        };
        match receipt {
            Ok(()) => self.send(outbound, report, answer, out),
            Err(not_saved) => self.give_up(not_saved, answer, out),
        }
    }

    /// Takes the profile of the device: none if the device does not exist any more, an error if the
    /// store could not read it.
    pub fn handle_profile(
        &mut self,
        profile: Result<Option<&Profile>, CommitFailure>,
        out: &mut Vec<CellEffect<R>>,
    ) {
        let Some(Awaiting::Profile(reply)) = self.open.take().map(|open| *open) else {
            return;
        };
        let answer = match profile {
            Ok(Some(profile)) => {
                self.device.adopt(profile);
                self.announce_binding(out);
                self.finish(out);
                Ok(DeviceReply::ProfileRead)
            }
            Ok(None) => Err(Unserved::Unknown),
            Err(_) => {
                self.fail(out);
                Err(Unserved::Failed)
            }
        };
        out.push(CellEffect::Reply(reply, answer));
    }

    /// Takes what the device is written in its bootstrap; that is durable.
    pub fn handle_bootstrap(
        &mut self,
        context: &mut StepContext<'_>,
        prepared: Result<BootstrapPlan, BootstrapFault>,
        out: &mut Vec<CellEffect<R>>,
    ) {
        let Some(Awaiting::Bootstrap) = self.open.take().map(|open| *open) else {
            return;
        };
        self.update_policy(context.policy);
        let mut effects = Effects::new();
        self.device
            .handle_bootstrap(&mut context.moment, prepared, &mut effects);
        self.settle(context.epoch, effects, None, out);
    }

    /// Takes a part of the image that its device is sent, at once or later.
    pub fn handle_image(
        &mut self,
        context: &mut StepContext<'_>,
        read: Result<Vec<u8>, ImageUnreadable>,
        out: &mut Vec<CellEffect<R>>,
    ) {
        let Some(Awaiting::Image) = self.open.take().map(|open| *open) else {
            return;
        };
        self.update_policy(context.policy);
        let mut effects = Effects::new();
        self.device
            .handle_image(&mut context.moment, read, &mut effects);
        self.settle(context.epoch, effects, None, out);
    }

    /// Takes the outcome of sending the bare datagram of a request, at once or later; not while the
    /// cell is waiting.
    pub fn handle_send_outcome(
        &mut self,
        context: &mut StepContext<'_>,
        sent: (ActionId, SendOutcome),
        out: &mut Vec<CellEffect<R>>,
    ) {
        if self.is_retired() {
            return;
        }
        self.update_policy(context.policy);
        let mut effects = Effects::new();
        self.device
            .handle_send_outcome(&mut context.moment, sent, &mut effects);
        self.settle(context.epoch, effects, None, out);
    }

    /// Whether the next input has to wait.
    pub fn is_waiting(&self) -> bool {
        self.open.is_some()
    }

    /// Whether the device was removed: further inputs are refused.
    pub fn is_retired(&self) -> bool {
        self.phase == Phase::Retired
    }

    /// What is sent after the receipt of the pending step.
    pub fn outbound_pending(&self) -> &[Outbound] {
        match self.open.as_deref() {
            Some(Awaiting::Receipt { outbound, .. }) => outbound,
            Some(Awaiting::Profile(_) | Awaiting::Bootstrap | Awaiting::Image) | None => &[],
        }
    }

    /// The report of the pending step.
    pub fn report_pending(&self) -> Option<&StepReport> {
        match self.open.as_deref() {
            Some(Awaiting::Receipt { report, .. }) => Some(report),
            Some(Awaiting::Profile(_) | Awaiting::Bootstrap | Awaiting::Image) | None => None,
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

    /// Its last announcement of the device's peer.
    pub fn binding_mut(&mut self) -> &mut PeerBinding {
        &mut self.binding
    }

    /// The number of its actor.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    fn update_policy(&mut self, policy: &Arc<CustomerPolicy>) {
        if !Arc::ptr_eq(self.device.policy(), policy) {
            self.device.take_policy(Arc::clone(policy));
        }
    }

    fn handle_datagram(
        &mut self,
        m: &mut Moment,
        arrival: &Inbound,
        out: &mut Effects,
    ) -> UplinkKind {
        match arrival {
            Inbound::Message(datagram) => self.device.handle_datagram(m, datagram, out),
            Inbound::Ambiguous(datagram) => self.device.handle_ambiguous(m, datagram, out),
            Inbound::BootstrapOnly(datagram) => self.device.handle_bootstrap_only(m, datagram, out),
            Inbound::RefusedHandshake(refused) => {
                self.device.handle_refused_handshake(m, *refused, out)
            }
            Inbound::Udp(bare) => self.device.handle_udp(m, bare, out),
            Inbound::UdpBurst(first, more) => {
                let burst = iter::once(first).chain(more);
                self.device.handle_udp_burst(m, burst, out)
            }
        }
    }

    /// The reply of the machine; none if the profile is read from the store first.
    fn answer(
        &mut self,
        m: &mut Moment,
        command: DeviceCommand,
        out: &mut Effects,
    ) -> Option<DeviceReply> {
        Some(match command {
            DeviceCommand::Submit(new) => DeviceReply::Submitted(self.device.submit(m, new, out)),
            DeviceCommand::SubmitWaking(waking) => {
                DeviceReply::Submitted(self.device.submit_waking(m, *waking, out))
            }
            DeviceCommand::Cancel(id) => DeviceReply::Cancelled(self.device.cancel(m, id, out)),
            DeviceCommand::CancelAll => DeviceReply::CancelledAll(self.device.cancel_all(m, out)),
            DeviceCommand::BeginUpdate(new) => {
                self.device.begin_update(m, *new, out);
                DeviceReply::UpdateTaken
            }
            DeviceCommand::EndUpdate(campaign, end) => {
                self.device.end_update(m, (campaign, end), out);
                DeviceReply::UpdateTaken
            }
            DeviceCommand::Retire => {
                self.device.retire(m, out);
                self.phase = Phase::Retired;
                DeviceReply::Retired
            }
            DeviceCommand::Inspect => {
                DeviceReply::Inspected(Box::new(self.device.snapshot(m.now())))
            }
            DeviceCommand::ReadProfile => return None,
        })
    }

    /// Commits what a step saves; the rest of the step is performed when that is durable.
    fn settle(
        &mut self,
        epoch: u64,
        mut effects: Effects,
        answer: Option<(R, DeviceReply)>,
        out: &mut Vec<CellEffect<R>>,
    ) {
        self.announce_unfinished(out);
        let report = StepReport::of(&mut effects);
        let shard = self.device.key().shard();
        let (batch, outbound) = effects.settle(Owner::Shard { shard, epoch });
        if batch.is_empty() {
            return self.send(outbound, report, answer, out);
        }
        let trace = report.events.iter().find_map(|it| it.trace);
        self.open = Some(Box::new(Awaiting::Receipt {
            outbound,
            report,
            answer,
        }));
        out.push(CellEffect::Commit(batch, trace));
    }

    /// Performs, in order, the rest of a step that is durable.
    fn send(
        &mut self,
        outbound: Vec<Outbound>,
        report: StepReport,
        answer: Option<(R, DeviceReply)>,
        out: &mut Vec<CellEffect<R>>,
    ) {
        for outgoing in outbound {
            out.push(match outgoing {
                Outbound::Rebind { from, to } => CellEffect::Rebind(from, to),
                Outbound::Send { to, datagram } => CellEffect::Send(to, datagram),
                Outbound::SendUdp { to, bytes, action } => CellEffect::SendUdp(to, bytes, action),
                Outbound::PrepareBootstrap(order) => {
                    self.open = Some(Box::new(Awaiting::Bootstrap));
                    CellEffect::PrepareBootstrap(order)
                }
                Outbound::NoteTransferred {
                    campaign,
                    place,
                    bytes,
                } => CellEffect::NoteTransferred(campaign, place, bytes),
                Outbound::ReadImage(range) => {
                    self.open = Some(Box::new(Awaiting::Image));
                    CellEffect::ReadImage(range)
                }
            });
        }
        out.push(CellEffect::Report(report));
        self.finish(out);
        let reply = answer.map(|(reply, answer)| CellEffect::Reply(reply, Ok(answer)));
        out.extend(reply);
    }

    /// Ends the step: arms the next deadline.
    ///
    /// The removal of a device is reported to the arbiter before the caller is answered, so that
    /// any later command for the device is answered that it does not exist.
    fn finish(&mut self, out: &mut Vec<CellEffect<R>>) {
        match self.phase {
            Phase::Retired => out.push(CellEffect::End(ActorExit::Retired)),
            Phase::Serving | Phase::Failed => self.arm(out),
        }
    }

    /// Nothing of the step was saved, so nothing of it happened.
    fn give_up(
        &mut self,
        not_saved: CommitFailure,
        answer: Option<(R, DeviceReply)>,
        out: &mut Vec<CellEffect<R>>,
    ) {
        let why = match (not_saved, self.phase) {
            (CommitFailure::Full, _) => Unserved::Busy,
            // It was removed already: only its actor changes what else the removal expects.
            (CommitFailure::Conflict, Phase::Retired) => Unserved::Unknown,
            (CommitFailure::Conflict | CommitFailure::Failed, _) => Unserved::Failed,
        };
        let reply = answer.map(|(reply, _)| CellEffect::Reply(reply, Err(why)));
        out.extend(reply);
        self.fail(out);
    }

    fn fail(&mut self, out: &mut Vec<CellEffect<R>>) {
        self.phase = Phase::Failed;
        out.push(CellEffect::End(ActorExit::Failed(ActorFailure::Unsaved)));
    }

    /// Announces the peer that the device is found at, if it is registered.
    fn announce_binding(&self, out: &mut Vec<CellEffect<R>>) {
        if let Some(peer) = self.device.bound_peer() {
            out.push(CellEffect::Rebind(Some(peer), self.device.found_at()));
        }
    }

    /// Announces the memory of unfinished bodies, which exists before the step is committed.
    fn announce_unfinished(&mut self, out: &mut Vec<CellEffect<R>>) {
        let bytes = self.device.unfinished_bytes();
        let counted = u32::try_from(bytes).unwrap_or(u32::MAX);
        if counted != self.unfinished_bytes {
            self.unfinished_bytes = counted;
            out.push(CellEffect::NoteUnfinished(bytes));
        }
    }

    /// Arms the machine's deadline; an earlier wake-up that is armed already suffices.
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
            out.push(CellEffect::End(ActorExit::Idle { handled }));
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
            Effect::Save(_) | Effect::Expect(_) | Effect::Count(_) | Effect::Send(_) => None,
        };
        Self {
            entries: effects.as_slice().iter().filter_map(entry).collect(),
            events: effects.take_events(),
        }
    }
}

/// Refuses an input of a device that was removed.
fn refuse<R>(input: DeviceInput<R>, out: &mut Vec<CellEffect<R>>) {
    match input {
        DeviceInput::Command(pending) => {
            out.push(CellEffect::Reply(pending.reply, Err(Unserved::Unknown)));
        }
        DeviceInput::Datagram(_) | DeviceInput::Timeout | DeviceInput::DropUnfinished => {}
    }
}

#[cfg(test)]
mod tests;
