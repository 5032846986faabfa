//! One device: its machine, which decides about the messages it sends and the requests to it.
//!
//! [`Device`] has four kinds of calls. `restore` builds it. `handle_datagram` and `handle_timeout`
//! report what happened. `submit`, `submit_waking`, `cancel`, `cancel_all`, `begin_update`,
//! `end_update` and `retire` are commands. The others only read. Each call leaves all its effects
//! in the buffer it is given. `next_timeout` says when `handle_timeout` is due; an early call does
//! no harm.
//!
//! A device is made of parts that own their fields. A step gives each input to the part it is for.
//! A part knows those above it in this list and none below it:
//!
//! ```text
//!  registration     who the device is, its registration, when and from where it was last received
//!   > reachability  where the device is and whether it listens
//!   > codec         in which format the device is requested, how its payloads are decoded
//!   > context       what every part is given in a step
//!   > messages      deduplication, message ids, answers
//!   > ingest        uplink data, how much of it is accepted, and what of the rest is logged
//!   > exchange      the one request in flight
//!   > bootstrap     the bootstrap under way
//!   > bootstrap_pack the Bootstrap-Pack that was sent last
//!   > observations  what is observed, and the requests needed for that
//!   > update        what its firmware update needs
//!   > passive       what is read because the device registered or updated
//!   > queue         requests of callers
//!   > request       what such a request is on the wire
//!   > step          the order of a step
//! ```
//!
//! What only a device with work in progress needs is in one box, `Busy`.

pub mod activity;
mod bootstrap;
mod bootstrap_pack;
mod busy;
mod codec;
mod context;
mod exchange;
mod formats;
pub mod identity;
mod ingest;
pub mod log_quota;
mod messages;
pub mod objects;
mod observations;
mod passive;
pub mod queue;
mod reachability;
pub mod record;
pub mod refusal;
mod registration;
pub mod rejections;
mod request;
mod samples;
pub mod snapshot;
mod step;
pub mod update;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::action::{Action, NewAction, Status};
use crate::bootstrap::{BootstrapFault, BootstrapPlan};
use crate::change::{Change, Counter, CounterDelta, Expect, UniqueName};
use crate::datagram::{Datagram, RefusedHandshake, UdpDatagram};
use crate::directory::sms::waking::WakingAction;
use crate::effect::{Effect, Effects, SendOutcome};
use crate::firmware::ImageUnreadable;
use crate::firmware::campaign::NewUpdate;
use crate::ids::{ActionId, CampaignId, DeviceKey, TraceId};
use crate::moment::{Moment, Timestamp};
use crate::peer::Peer;
use crate::policy::CustomerPolicy;
use crate::profile::Profile;
use crate::route::DeviceOperation;
use crate::setting::SettingState;
use crate::step_event::UplinkKind;

use activity::{DeviceActivity, InFlight};
use busy::{Busy, Idle};
use exchange::ExchangeTarget;
use identity::Identity;
use ingest::RateWindow;
use objects::ObjectLists;
use passive::LearnedCapabilities;
use queue::{Accepted, ActionQueue, CancelRefusal, Cancelled};
use reachability::Reachability;
use record::RestoredDevice;
use refusal::SubmitRefusal;
use registration::RegistrationState;
use snapshot::{CurrentExchange, PendingAction, Presence, Snapshot};
use step::Step;
use update::{OngoingUpdate, UpdateEnd};

/// One device.
///
/// There are a million of them: what an update needs is stored inline, what is rarely used is
/// boxed.
pub struct Device {
    policy: Arc<CustomerPolicy>,
    idle: Idle,
    /// Work in progress; an idle device has none.
    busy: Option<Box<Busy>>,
}

impl Device {
    /// Restores a device from its record. An attempt that was in flight counts as made.
    pub fn restore(
        m: &mut Moment,
        policy: Arc<CustomerPolicy>,
        mut restored: RestoredDevice,
    ) -> Self {
        let update = restored.record.update.take();
        let busy = Busy {
            queue: ActionQueue::restored(restored.pending, m.now()),
            update: update.map(|it| Box::new(OngoingUpdate::new(*it))),
            ..Busy::default()
        };
        let (registration, observed) =
            RegistrationState::restored(&restored.profile, restored.record, m.now());
        let idle = Idle {
            recent: messages::restored(m.now(), registration.key(), &restored.recent_events),
            registration,
            observed,
            capabilities: LearnedCapabilities::default(),
            next_message_id: u16::try_from(m.next_u32() >> 16).expect("shifted to 16 bits"),
            rate: RateWindow::default(),
        };
        let busy = (!busy.is_over()).then(|| Box::new(busy));
        Self { policy, idle, busy }
    }

    /// Handles a message from this device, or from a sender that claims to be this device. Returns
    /// how the message was classified.
    pub fn handle_datagram(
        &mut self,
        m: &mut Moment,
        datagram: &Datagram,
        out: &mut Effects,
    ) -> UplinkKind {
        self.step(m, out, |step| {
            if step.messages.repeat(&mut step.cx, datagram) {
                return UplinkKind::Repeated;
            }
            let kind = step.handle_inbound(datagram);
            step.begin_next();
            kind
        })
    }

    /// Handles a bare datagram from the address of this device.
    pub fn handle_udp(
        &mut self,
        m: &mut Moment,
        bare: &UdpDatagram,
        out: &mut Effects,
    ) -> UplinkKind {
        self.handle_udp_burst(m, [bare], out)
    }

    /// Handles several bare datagrams that arrived in a row.
    pub fn handle_udp_burst<'b>(
        &mut self,
        m: &mut Moment,
        burst: impl IntoIterator<Item = &'b UdpDatagram>,
        out: &mut Effects,
    ) -> UplinkKind {
        self.step(m, out, |step| {
            let mut kind = UplinkKind::Unsolicited;
            for bare in burst {
                if step.handle_udp(bare) {
                    kind = UplinkKind::UdpData;
                }
            }
            step.begin_next();
            kind
        })
    }

    /// Handles a message from an address that several devices share, this one among them. Any of
    /// them may have sent it, so it is accepted for none.
    pub fn handle_ambiguous(
        &mut self,
        m: &mut Moment,
        datagram: &Datagram,
        out: &mut Effects,
    ) -> UplinkKind {
        self.step(m, out, |step| step.refuse_ambiguous(datagram));
        UplinkKind::Unsupported
    }

    /// Handles a request that was made with a key that is valid for bootstrap alone.
    pub fn handle_bootstrap_only(
        &mut self,
        m: &mut Moment,
        datagram: &Datagram,
        out: &mut Effects,
    ) -> UplinkKind {
        self.step(m, out, |step| step.refuse_bootstrap_key(datagram));
        UplinkKind::Unsupported
    }

    /// Logs that a handshake was refused to somebody who claims to be the device.
    pub fn handle_refused_handshake(
        &mut self,
        m: &mut Moment,
        refused: RefusedHandshake,
        out: &mut Effects,
    ) -> UplinkKind {
        self.step(m, out, |step| {
            let why = refused.why.to_string();
            step.note_rejected((DeviceOperation::Handshake, refused.peer), None, &why);
        });
        UplinkKind::Unsupported
    }

    /// Takes the outcome of sending a bare datagram for a request. Other inputs may have been
    /// handled since it was handed to the socket.
    pub fn handle_send_outcome(
        &mut self,
        m: &mut Moment,
        (action, outcome): (ActionId, SendOutcome),
        out: &mut Effects,
    ) {
        self.step(m, out, |step| {
            step.take_send_outcome(action, outcome);
            step.begin_next();
        });
    }

    /// Takes what the device is to be written in its bootstrap, in answer to
    /// [`Outbound::PrepareBootstrap`](crate::effect::Outbound::PrepareBootstrap).
    pub fn handle_bootstrap(
        &mut self,
        m: &mut Moment,
        prepared: Result<BootstrapPlan, BootstrapFault>,
        out: &mut Effects,
    ) {
        self.step(m, out, |step| {
            step.take_bootstrap(prepared);
            step.begin_next();
        });
    }

    /// Takes a part of an image, in answer to
    /// [`Outbound::ReadImage`](crate::effect::Outbound::ReadImage).
    pub fn handle_image(
        &mut self,
        m: &mut Moment,
        read: Result<Vec<u8>, ImageUnreadable>,
        out: &mut Effects,
    ) {
        self.step(m, out, |step| {
            step.take_image(read);
            step.begin_next();
        });
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, m: &mut Moment, out: &mut Effects) {
        self.step(m, out, |step| {
            step.settle_restored();
            // First, so that nothing is retransmitted to a device whose registration has expired.
            step.note_absence();
            step.note_asleep();
            step.drive_exchange();
            step.expire_actions();
            step.release_timed();
            step.begin_next();
            step.forget();
            step.log_unlogged_rejections();
        });
    }

    /// Drops the bodies that were received in part: a body that the device sends, and the response
    /// to a request, whose attempt ends.
    pub fn drop_unfinished(&mut self, m: &mut Moment, out: &mut Effects) {
        self.step(m, out, |step| {
            step.drop_unfinished();
            step.begin_next();
        });
    }

    /// Creates an action request.
    ///
    /// One whose value does not fit its resource is accepted, and fails in the same step.
    pub fn submit(
        &mut self,
        m: &mut Moment,
        new: NewAction,
        out: &mut Effects,
    ) -> Result<Accepted, SubmitRefusal> {
        self.step(m, out, |step| step.submit(new, None))
    }

    /// Creates an action request, and wakes the device for it if it sleeps.
    pub fn submit_waking(
        &mut self,
        m: &mut Moment,
        waking: WakingAction,
        out: &mut Effects,
    ) -> Result<Accepted, SubmitRefusal> {
        self.step(m, out, |step| step.submit_waking(waking))
    }

    /// Cancels a request that was not sent.
    pub fn cancel(
        &mut self,
        m: &mut Moment,
        id: ActionId,
        out: &mut Effects,
    ) -> Result<Cancelled, CancelRefusal> {
        self.step(m, out, |step| step.queue.cancel(&mut step.cx, id))
    }

    /// Cancels every request that was not sent.
    pub fn cancel_all(&mut self, m: &mut Moment, out: &mut Effects) -> Vec<Cancelled> {
        self.step(m, out, |step| step.queue.cancel_all(&mut step.cx))
    }

    /// Begins the firmware update of a campaign.
    pub fn begin_update(&mut self, m: &mut Moment, new: NewUpdate, out: &mut Effects) {
        self.step(m, out, |step| step.begin_update(new));
    }

    /// Ends the firmware update of a campaign that ended before the device did.
    pub fn end_update(
        &mut self,
        m: &mut Moment,
        (campaign, end): (CampaignId, UpdateEnd),
        out: &mut Effects,
    ) {
        self.step(m, out, |step| step.end_update(campaign, end));
    }

    /// Removes the device. Every request that is not final ends before.
    pub fn retire(&mut self, m: &mut Moment, out: &mut Effects) {
        let exists = Expect::Taken(UniqueName::Device(self.key()));
        out.push(Effect::Expect(exists));
        self.step(m, out, |step| {
            step.end_requests();
            step.retire_update();
        });
        out.push(Effect::Save(Change::RemoveDevice(self.key())));
        let counter = Counter::Devices(self.identity().customer());
        out.push(Effect::Count(CounterDelta { counter, delta: -1 }));
        let from = self.bound_peer();
        if let Some(mut busy) = self.busy.take() {
            busy.exchange.end(from, out);
        }
        self.idle.registration.end(self.policy.offline_after_s);
        out.rebind(from, None);
    }

    /// Replaces the identity of the device after its customer changed the profile.
    ///
    /// An existing registration stays, wherever it came from. The next register, update or
    /// deregister is checked against the new identity.
    pub fn adopt(&mut self, profile: &Profile) {
        self.idle.registration.adopt(profile);
    }

    /// Applies a new policy after the customer changed the settings.
    pub fn take_policy(&mut self, policy: Arc<CustomerPolicy>) {
        match policy.passive_reporting {
            SettingState::Enabled => {}
            // The answer to a read in flight is not published.
            SettingState::Disabled => {
                if let Some(busy) = &mut self.busy {
                    busy.round = None;
                }
            }
        }
        self.policy = policy;
    }

    /// Replaces the device's own copy of its object list by the shared one. Called after the device
    /// was restored and after each step.
    pub fn share_objects(&mut self, lists: &mut ObjectLists) {
        self.idle.registration.share_objects(lists);
    }

    /// The policy in force.
    pub fn policy(&self) -> &Arc<CustomerPolicy> {
        &self.policy
    }

    /// The identity of the device.
    pub fn identity(&self) -> &Identity {
        self.idle.registration.identity()
    }

    /// The key of the device.
    pub fn key(&self) -> DeviceKey {
        self.idle.registration.key()
    }

    /// When `handle_timeout` is due.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        let registration = self.idle.registration.registration();
        let busy = self.busy.as_ref().and_then(|busy| busy.next_timeout());
        let ends = [
            registration.map(|it| it.expires_at),
            self.silence_timeout(),
            self.reachability().asleep_at(self.policy.sleep_events),
            busy,
        ];
        ends.into_iter().flatten().min()
    }

    /// Where datagrams of this device come from, while it is registered.
    pub fn bound_peer(&self) -> Option<Peer> {
        self.idle.registration.bound_peer()
    }

    /// The peer from which requests of this device are accepted: the one it registered from, unless
    /// its customer has changed its address since. Another device may have the old address now.
    pub fn found_at(&self) -> Option<Peer> {
        self.reachability().found_at()
    }

    /// Whether the device may be at a peer. Another sender there only claims to be the device.
    pub fn may_be_at(&self, peer: Peer) -> bool {
        self.found_at() == Some(peer) || self.reachability().admit(peer).is_ok()
    }

    /// Whether nothing would be lost if the device were restored from the store instead.
    pub fn is_idle(&self) -> bool {
        !self.idle.registration.is_registered()
            && self.busy.is_none()
            && self.silence_timeout().is_none()
    }

    /// Whether the device listens now.
    pub fn presence(&self, now: Timestamp) -> Presence {
        self.reachability().presence(now)
    }

    /// The trace of the call behind the exchange in flight, if there is one.
    pub fn trace_in_flight(&self) -> Option<TraceId> {
        self.busy.as_ref()?.exchange.trace()
    }

    /// The bytes of memory that bodies received in part occupy (RFC 7959).
    pub fn unfinished_bytes(&self) -> usize {
        self.busy.as_ref().map_or(0, |busy| busy.unfinished_bytes())
    }

    /// What is counted about the device. Cheap enough to call after every step.
    pub fn activity(&self) -> DeviceActivity {
        let mut activity = DeviceActivity {
            listens: self.reachability().listens(),
            scheduled: 0,
            in_progress: 0,
            exchange: InFlight::No,
        };
        if let Some(busy) = &self.busy {
            activity.exchange = busy.exchange.in_flight();
            for action in busy.queue.actions() {
                match action.status == Status::Scheduled {
                    true => activity.scheduled += 1,
                    false => activity.in_progress += 1,
                }
            }
        }
        activity
    }

    /// What the device is doing right now.
    pub fn snapshot(&self, now: Timestamp) -> Snapshot {
        let record = self.idle.registration.record(&self.idle.observed, None);
        let busy = self.busy.as_ref();
        Snapshot {
            first_contact_at: record.first_contact_at,
            last_seen_at: record.last_seen_at,
            peer: record.peer,
            protocols_seen: record.protocols_seen.last(),
            presence: self.presence(now),
            connectivity: record.connectivity,
            registration: record.registration,
            pending: busy.map_or(Vec::new(), |busy| self.pending_in(busy, now)),
            exchange: busy.and_then(|busy| self.current_exchange(busy)),
            observations: record.observations.into_vec(),
            bootstrap: busy.and_then(|busy| busy.bootstrap_under_way()).cloned(),
        }
    }

    fn pending_in(&self, busy: &Busy, now: Timestamp) -> Vec<PendingAction> {
        let (reachability, in_flight) = (self.reachability(), busy.exchange.target());
        let pending = |action: &Action| PendingAction {
            waits_for: busy
                .queue
                .wait_reason(reachability, (action, now), in_flight),
            action: action.clone(),
        };
        busy.queue.actions().map(pending).collect()
    }

    fn current_exchange(&self, busy: &Busy) -> Option<CurrentExchange> {
        let target = busy.exchange.target()?;
        let path = match target {
            ExchangeTarget::Observation(key) => {
                let mut observed = self.idle.observed.iter();
                let found = observed.find(|it| it.action == key);
                found.and_then(|it| it.target.path())
            }
            ExchangeTarget::Notification(token) => {
                let mut observed = self.idle.observed.iter();
                let found = observed.find(|it| it.token == *token.as_bytes());
                found.and_then(|it| it.target.path())
            }
            ExchangeTarget::Update(_) => Some(update::instance()),
            ExchangeTarget::Action(_) | ExchangeTarget::Report(_) | ExchangeTarget::Bootstrap => {
                None
            }
        };
        Some(CurrentExchange {
            purpose: target.wait_reason(),
            action: busy.exchange.action(),
            path,
            begun_at: busy.exchange.begun_at()?,
        })
    }

    /// When the device is offline unless it is heard; at once if that was not counted yet.
    fn silence_timeout(&self) -> Option<Timestamp> {
        let (state, customer_s) = (&self.idle.registration, self.policy.offline_after_s);
        match state.is_to_be_watched(customer_s) {
            true => state.last_seen_at(),
            false => state.offline_at(customer_s),
        }
    }

    fn reachability(&self) -> Reachability<'_> {
        Reachability::of(&self.idle.registration, &self.policy.rules)
    }

    /// Runs one step with all parts and then drops what is finished. The parts that an idle device
    /// does without are on the stack until they turn out to be needed.
    fn step<T>(
        &mut self,
        m: &mut Moment,
        out: &mut Effects,
        act: impl FnOnce(&mut Step<'_>) -> T,
    ) -> T {
        let mut unneeded = Busy::default();
        let was_busy = self.busy.is_some();
        let busy = self.busy.as_deref_mut().unwrap_or(&mut unneeded);
        let mut step = Step::new((m, out), &self.policy, &mut self.idle, busy);
        if was_busy {
            step.messages.keep_other_peers();
        }
        let acted = act(&mut step);
        step.save_unsaved_record();
        self.busy.take_if(|busy| busy.is_over());
        if !was_busy && !unneeded.is_over() {
            self.busy = Some(Box::new(unneeded));
        }
        acted
    }
}
