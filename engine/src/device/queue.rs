//! The requests that wait for a device: submitting, cancelling, order and expiry.

use protocol::coap::code::Code;
use protocol::lwm2m::path::Path;

use crate::action::timeline::{Timeline, TimelineEvent, WaitReason};
use crate::action::{
    Action, Addressee, Lwm2mRequest, Mode, NewAction, Outcome, Protocol, Request, Status,
};
use crate::admin_log::entry::Entry;
use crate::device::context::Context;
use crate::device::exchange::{EndedExchange, ExchangeTarget};
use crate::device::reachability::Reachability;
use crate::device::record::ObservationTarget;
use crate::device::refusal::{ForbiddenAddress, SubmitRefusal};
use crate::event::{ActionResult, EventContent};
use crate::idempotency::{CreatedByCall, IdempotencyRecord, IdentifiedDevice};
use crate::ids::ActionId;
use crate::moment::{Moment, Timestamp};
use crate::policy::Wanted;

/// A request was accepted. Once its step is durable the acceptance is binding.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Accepted {
    /// The id of the request.
    pub id: ActionId,
    /// The status it begins with.
    pub status: Status,
}

/// A request was cancelled: it is never sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cancelled {
    /// The id of the request.
    pub id: ActionId,
}

/// A request that cannot be cancelled.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CancelRefusal {
    /// The device has no such request waiting.
    #[error("only a scheduled request can be cancelled; this one is final")]
    NotPending,
    /// It is in progress, whether or not anything of it was sent.
    #[error("only a scheduled request can be cancelled; this one is in progress")]
    NotScheduled,
}

/// A request that is not final.
struct Pending {
    action: Action,
    /// Whether it may be sent as soon as no other exchange is in flight.
    ready: bool,
    /// Whether it is to be sent at the time before which it must not be sent.
    is_timed: bool,
}

impl Pending {
    /// A request that waits for an uplink, unless it is to be sent now, was never tried, and does
    /// not wait until the device is woken.
    fn new(action: Action, now: Timestamp) -> Self {
        let is_now =
            action.mode == Mode::SendNow && action.attempts_made == 0 && action.woken_by.is_none();
        let is_deferred = action.is_deferred(now);
        Self {
            action,
            ready: is_now && !is_deferred,
            is_timed: is_now && is_deferred,
        }
    }

    /// When something is due for it.
    fn due_at(&self) -> Timestamp {
        let expires_at = self.action.expires_at;
        let not_before = self.action.not_before.filter(|_| self.is_timed);
        not_before.map_or(expires_at, |at| at.min(expires_at))
    }
}

/// Why a request cannot be sent.
pub(super) struct Unsendable {
    pub(super) failure: ActionFailure,
    pub(super) why: String,
}

/// Why a request is finally failed; each case has its own entry in the customer's log.
#[derive(Clone, Copy)]
pub(super) enum ActionFailure {
    /// The device refused it or did not answer.
    Refused,
    /// Its value does not fit the resource it addresses.
    Unsendable,
    /// It expired.
    Expired,
}

impl Outcome {
    /// The outcome of a request that got no answer.
    pub(super) fn failure(why: &str) -> Self {
        Self {
            error: Some(why.into()),
            ..Self::default()
        }
    }
}

/// Requests that are not final, oldest first.
#[derive(Default)]
pub(super) struct ActionQueue {
    pending: Vec<Pending>,
    /// Requests restored from the store have not been checked yet.
    unsettled: bool,
}

impl ActionQueue {
    /// Requests restored from the store. A request to be sent now that was never tried is ready;
    /// any other waits for an uplink.
    pub(super) fn restored(actions: Vec<Action>, now: Timestamp) -> Self {
        let restored = |action: Action| Pending::new(action, now);
        Self {
            unsettled: !actions.is_empty(),
            pending: actions.into_iter().map(restored).collect(),
        }
    }

    /// Makes an action of a caller's request, if there is room for it. It begins as scheduled.
    pub(super) fn admit(
        &self,
        cx: &mut Context<'_>,
        new: NewAction,
        in_flight: Option<ActionId>,
    ) -> Result<Action, SubmitRefusal> {
        self.check_room(cx, &new, in_flight)?;
        check_address(cx, &new)?;
        let once = new.idempotent_call;
        let action = self.action_of(cx, new);
        if let Some(once) = once {
            cx.out.save_idempotency_record(IdempotencyRecord {
                call: once,
                created: CreatedByCall::Action {
                    device: IdentifiedDevice {
                        key: action.device,
                        number: cx.registration.identity().number(),
                    },
                    action: action.id,
                },
                at: cx.m.now(),
            });
        }
        Ok(action)
    }

    /// Whether an attempt at a new request begins in this step, if no exchange is in flight: it is
    /// to be sent now, the device can be sent it, and no other request goes first.
    pub(super) fn begins_at_once(&self, cx: &Context<'_>, action: &Action) -> bool {
        action.mode == Mode::SendNow
            && !action.is_deferred(cx.now())
            && cx.reachability().can_take(&action.request, cx.now())
            && self.next(cx).is_none()
    }

    /// Adds a request at the end. Capacity grows by one: most devices that have any request have
    /// one.
    pub(super) fn push(&mut self, cx: &mut Context<'_>, action: Action) {
        cx.out.save_action(None, &action);
        let can_go = cx.reachability().can_take(&action.request, cx.now());
        let mut pending = Pending::new(action, cx.now());
        pending.ready &= can_go;
        self.pending.reserve_exact(1);
        self.pending.push(pending);
    }

    /// Cancels a request that was not sent.
    pub(super) fn cancel(
        &mut self,
        cx: &mut Context<'_>,
        id: ActionId,
    ) -> Result<Cancelled, CancelRefusal> {
        let action = self.actions().find(|action| action.id == id);
        if action.ok_or(CancelRefusal::NotPending)?.status != Status::Scheduled {
            return Err(CancelRefusal::NotScheduled);
        }
        self.cancel_if(cx, |action| action.id == id);
        Ok(Cancelled { id })
    }

    /// Cancels every request that was not sent.
    pub(super) fn cancel_all(&mut self, cx: &mut Context<'_>) -> Vec<Cancelled> {
        self.cancel_if(cx, |action| action.status == Status::Scheduled)
    }

    /// Ends every request because the device is removed: one that was not sent is cancelled, and
    /// any other fails.
    pub(super) fn end_all(&mut self, cx: &mut Context<'_>) {
        self.cancel_all(cx);
        for action in self.take_if(|_| true) {
            let outcome = Outcome::failure("the device was removed");
            fail(cx, action, ActionFailure::Refused, outcome);
        }
    }

    /// Releases everything that waits but for what must not be sent yet; the request in flight was
    /// not waiting.
    pub(super) fn release(&mut self, now: Timestamp, in_flight: Option<ActionId>) {
        for pending in &mut self.pending {
            let is_deferred = pending.action.is_deferred(now);
            pending.is_timed &= is_deferred;
            pending.ready = !is_deferred && Some(pending.action.id) != in_flight;
        }
    }

    /// Releases requests to be sent now whose time has come. One that the device cannot be sent
    /// waits for an uplink.
    pub(super) fn release_timed(&mut self, cx: &Context<'_>) {
        let now = cx.now();
        for pending in &mut self.pending {
            if pending.is_timed && !pending.action.is_deferred(now) {
                pending.is_timed = false;
                pending.ready = cx.reachability().can_take(&pending.action.request, now);
            }
        }
    }

    /// A device that is silent is gone: requests that need an answer wait for an uplink, so that no
    /// attempt is wasted. Silence over another protocol does not show that the device is gone from
    /// where it is registered, and a bare datagram needs no answer.
    pub(super) fn hold_back(&mut self, unanswered: &EndedExchange) {
        for pending in &mut self.pending {
            let would_be_unanswered = match pending.action.protocol() {
                Protocol::Lwm2m => unanswered.as_registered,
                Protocol::Coap => true,
                Protocol::Udp => false,
            };
            pending.ready &= !would_be_unanswered;
        }
    }

    /// Fails requests over LwM2M that were to be sent now and were not sent before the registration
    /// ended. One of which an attempt was made waits for the next registration.
    pub(super) fn end_registration(&mut self, cx: &mut Context<'_>, why: &str) {
        let now = cx.now();
        let is_too_late = |action: &Action| {
            action.status == Status::Scheduled
                && action.mode == Mode::SendNow
                && action.protocol() == Protocol::Lwm2m
                && !action.is_deferred(now)
        };
        for action in self.take_if(is_too_late) {
            fail(cx, action, ActionFailure::Refused, Outcome::failure(why));
        }
    }

    /// Fails requests whose last attempt was in flight when the service stopped: that attempt
    /// counts as made.
    pub(super) fn settle_restored(&mut self, cx: &mut Context<'_>, in_flight: Option<ActionId>) {
        if !std::mem::take(&mut self.unsettled) {
            return;
        }
        // A last attempt may have begun since the start, after an uplink: that one continues.
        let is_interrupted = |action: &Action| {
            action.status == Status::InProgress
                && action.attempts_left() == 0
                && Some(action.id) != in_flight
        };
        for action in self.take_if(is_interrupted) {
            let why = "the service stopped during the last attempt; \
                       the device may have executed the request";
            fail(cx, action, ActionFailure::Refused, Outcome::failure(why));
        }
    }

    /// Fails requests that expired; an attempt in flight may still succeed.
    pub(super) fn expire(&mut self, cx: &mut Context<'_>, in_flight: Option<ActionId>) {
        let now = cx.now();
        let is_due = |action: &Action| action.expires_at <= now && Some(action.id) != in_flight;
        for action in self.take_if(is_due) {
            let event = match action.attempts_made {
                0 => "it was sent",
                1.. => "the device answered",
            };
            let why = format!(
                "the request expired at {} before {event}",
                action.expires_at.iso()
            );
            fail(cx, action, ActionFailure::Expired, Outcome::failure(&why));
        }
    }

    /// The next request to send: the oldest that is ready and can be sent. Expired and interrupted
    /// requests are excluded here, because an uplink may come before the timeout that fails them.
    pub(super) fn next(&self, cx: &Context<'_>) -> Option<&Action> {
        let may_begin = |Pending { action, ready, .. }: &&Pending| {
            *ready
                && action.attempts_left() > 0
                && cx.now() < action.expires_at
                && cx.reachability().can_take(&action.request, cx.now())
        };
        self.pending.iter().find(may_begin).map(|it| &it.action)
    }

    /// Records an attempt, before its datagram is sent.
    pub(super) fn begin_attempt(&mut self, cx: &mut Context<'_>, id: ActionId) {
        let Some(pending) = self.pending_mut(id) else {
            return;
        };
        pending.ready = false;
        let action = &mut pending.action;
        let was = action.state();
        action.status = Status::InProgress;
        action.attempts_made = action.attempts_made.saturating_add(1);
        action.updated_at = cx.now();
        let attempt = TimelineEvent::AttemptBegun(action.attempts_made);
        action.timeline.note(cx.now(), attempt);
        match action.protocol() {
            // Noted when the socket reports that it was sent.
            Protocol::Udp => {}
            Protocol::Coap | Protocol::Lwm2m => {
                action.timeline.note(cx.now(), TimelineEvent::DatagramSent);
            }
        }
        cx.out.save_action(Some(was), action);
    }

    /// Adds an event to the timeline of a request.
    pub(super) fn note(&mut self, id: Option<ActionId>, now: Timestamp, what: TimelineEvent) {
        if let Some(pending) = id.and_then(|id| self.pending_mut(id)) {
            pending.action.timeline.note(now, what);
        }
    }

    /// Adds an answer that is an error to the timeline of a request.
    pub(super) fn note_error(
        &mut self,
        id: Option<ActionId>,
        now: Timestamp,
        (code, diagnostic): (Code, Option<Box<str>>),
    ) {
        if let Some(pending) = id.and_then(|id| self.pending_mut(id)) {
            pending.action.timeline.note_error(now, code, diagnostic);
        }
    }

    /// Ends an attempt that may be followed by another.
    pub(super) fn end_attempt(&mut self, cx: &mut Context<'_>, id: ActionId, outcome: Outcome) {
        let Some(pending) = self.pending_mut(id) else {
            return;
        };
        let action = &mut pending.action;
        if action.attempts_left() > 0 {
            let was = action.state();
            action.updated_at = cx.now();
            cx.out.save_action(Some(was), action);
        } else if let Some(action) = self.take(id) {
            fail(cx, action, ActionFailure::Refused, outcome);
        }
    }

    pub(super) fn take(&mut self, id: ActionId) -> Option<Action> {
        let index = self.pending.iter().position(|it| it.action.id == id)?;
        Some(self.pending.remove(index).action)
    }

    pub(super) fn find(&self, id: ActionId) -> Option<&Action> {
        self.actions().find(|action| action.id == id)
    }

    /// The requests, oldest first.
    pub(super) fn actions(&self) -> impl Iterator<Item = &Action> {
        self.pending.iter().map(|pending| &pending.action)
    }

    /// Why a request is not sent yet; none if it is in flight.
    pub(super) fn wait_reason(
        &self,
        reachability: Reachability<'_>,
        (action, now): (&Action, Timestamp),
        in_flight: Option<ExchangeTarget>,
    ) -> Option<WaitReason> {
        if let Some(ExchangeTarget::Action(id)) = in_flight
            && id == action.id
        {
            return None;
        }
        if action.is_deferred(now) {
            return Some(WaitReason::NotBefore);
        }
        let mut pending = self.pending.iter();
        let is_ready = pending.any(|it| it.action.id == action.id && it.ready);
        let obstacle = reachability.obstacle(&action.request, now);
        let otherwise = match is_ready {
            true => in_flight.map(ExchangeTarget::wait_reason),
            false => Some(WaitReason::Uplink),
        };
        obstacle.or(otherwise)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// When something is due; never for the request in flight.
    pub(super) fn next_timeout(&self, in_flight: Option<ActionId>) -> Option<Timestamp> {
        if self.unsettled {
            return Some(Timestamp::default());
        }
        let waiting = self
            .pending
            .iter()
            .filter(|it| Some(it.action.id) != in_flight);
        waiting.map(Pending::due_at).min()
    }

    /// Whether a waiting request will observe this.
    pub(super) fn begins_observing(&self, target: &ObservationTarget) -> bool {
        let begins = |action: &Action| {
            observation_of(action)
                .is_some_and(|(change, of)| change == ObservationChange::Begins && of == *target)
        };
        self.actions().any(begins)
    }

    fn cancel_if(
        &mut self,
        cx: &mut Context<'_>,
        wanted: impl Fn(&Action) -> bool,
    ) -> Vec<Cancelled> {
        let cancel = |action: Action| {
            let id = action.id;
            conclude(cx, action, Status::Cancelled);
            Cancelled { id }
        };
        self.take_if(wanted).into_iter().map(cancel).collect()
    }

    fn take_if(&mut self, wanted: impl Fn(&Action) -> bool) -> Vec<Action> {
        let taken = self.pending.extract_if(.., |it| wanted(&it.action));
        taken.map(|pending| pending.action).collect()
    }

    fn pending_mut(&mut self, id: ActionId) -> Option<&mut Pending> {
        self.pending.iter_mut().find(|it| it.action.id == id)
    }

    fn check_room(
        &self,
        cx: &Context<'_>,
        new: &NewAction,
        in_flight: Option<ActionId>,
    ) -> Result<(), SubmitRefusal> {
        let limits = &cx.rules().limits;
        let now = cx.now();
        let is_due = new.not_before.is_none_or(|at| at <= now);
        let is_out_of_reach = || cx.reachability().is_out_of_reach(&new.request, now);
        let (max, waits): (u32, fn(&Action) -> bool) = match new.mode {
            Mode::SendNow if is_due && is_out_of_reach() => {
                return Err(match new.request {
                    Request::Udp(_) | Request::Coap(_) => SubmitRefusal::NoAddress,
                    Request::Lwm2m(_) => SubmitRefusal::NotRegistered,
                });
            }
            Mode::SendNow => (limits.waiting_max, |a| a.mode == Mode::SendNow),
            Mode::SendWhenActive => (limits.scheduled_max, |a| {
                a.mode == Mode::SendWhenActive && a.status == Status::Scheduled
            }),
        };
        let is_waiting = |action: &&Action| waits(action) && Some(action.id) != in_flight;
        let waiting = self.actions().filter(is_waiting).count();
        let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
        if waiting < max {
            return self.check_data(&new.request, limits.waiting_bytes_max);
        }
        let mode = new.mode;
        Err(SubmitRefusal::QueueFull { mode, waiting, max })
    }

    /// Waiting requests are in memory, so their size has a bound, too.
    fn check_data(&self, request: &Request, max: usize) -> Result<(), SubmitRefusal> {
        let bytes: usize = self.actions().map(|it| it.request.data_bytes()).sum();
        let more = request.data_bytes();
        let total = bytes.saturating_add(more);
        if total > max {
            return Err(SubmitRefusal::DataFull { more, total, max });
        }
        Ok(())
    }

    fn action_of(&self, cx: &mut Context<'_>, new: NewAction) -> Action {
        let now = cx.now();
        let id = self.draw_id(cx.m);
        let expires_at = expiry_of(cx, &new);
        let identity = cx.registration.identity();
        let seen_at = cx.registration.peer().map(|peer| peer.ip());
        Action {
            id,
            customer: identity.customer(),
            device: cx.registration.key(),
            request: new.request,
            status: Status::Scheduled,
            mode: new.mode,
            attempts_permitted: new.attempts_permitted,
            attempts_made: 0,
            created_at: now,
            updated_at: now,
            expires_at,
            expires_in_s: new.expires_in_s,
            not_before: new.not_before,
            wake_up: new.wake_up,
            woken_by: None,
            addressee: Addressee {
                device: identity.device(),
                iccid: identity.iccid(),
                imsi: identity.imsi(),
                ip: identity.ip().or(seen_at),
            },
            trace: new.trace,
            outcome: None,
            timeline: Timeline::default(),
        }
    }

    /// An id greater than those that wait: after a restart, only the order of ids shows which of
    /// two requests of the same millisecond is older.
    fn draw_id(&self, m: &mut Moment) -> ActionId {
        let drawn = ActionId::new(m.uuid());
        let newest = self.pending.last().map(|pending| pending.action.id);
        newest.map_or(drawn, |newest| drawn.max(newest.next()))
    }
}

/// When a request expires.
pub(super) fn expiry_of(cx: &Context<'_>, new: &NewAction) -> Timestamp {
    match new.expires_in_s {
        Some(expires_in_s) => cx.now().plus_s(i64::from(expires_in_s)),
        None => cx.rules().limits.expiry_of(cx.now()),
    }
}

/// Whether a request may go to the address of its device, as far as that is known: a device that is
/// heard from its address before the request leaves may be there.
fn check_address(cx: &Context<'_>, new: &NewAction) -> Result<(), SubmitRefusal> {
    let is_due = new.not_before.is_none_or(|at| at <= cx.now());
    let is_now = new.mode == Mode::SendNow && is_due;
    match cx.reachability().forbidden(&new.request) {
        Some(ForbiddenAddress::Unheard(_)) if !is_now => Ok(()),
        Some(why) => Err(SubmitRefusal::AddressForbidden(why)),
        None => Ok(()),
    }
}

/// Ends a request as failed and logs it.
pub(super) fn fail(
    cx: &mut Context<'_>,
    mut action: Action,
    failure: ActionFailure,
    outcome: Outcome,
) {
    let why = outcome.error.clone().unwrap_or_default();
    action.outcome = Some(outcome);
    let action = conclude(cx, action, Status::Failed);
    cx.log(|m, sighting| match failure {
        ActionFailure::Refused => Entry::action_failed(m, sighting, &action, &why),
        ActionFailure::Unsendable => Entry::invalid_data_type(m, sighting, &action, &why),
        ActionFailure::Expired => Entry::action_expired(m, sighting, &action, &why),
    });
}

/// Sets the final status of a request, and publishes the result if the customer wants results.
pub(super) fn conclude(cx: &mut Context<'_>, mut action: Action, status: Status) -> Action {
    let was = action.state();
    action.status = status;
    action.updated_at = cx.now();
    cx.out.save_action(Some(was), &action);
    match cx.policy.results {
        Wanted::No => {}
        Wanted::Yes => cx.publish(EventContent::ActionResult(Box::new(ActionResult {
            action: action.id,
            protocol: action.protocol(),
            status: action.status,
            outcome: action.outcome.clone(),
        }))),
    }
    action
}

/// What a request does to an observation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ObservationChange {
    Begins,
    Ends,
}

/// The observation that a request begins or ends, and which of the two.
pub(super) fn observation_of(action: &Action) -> Option<(ObservationChange, ObservationTarget)> {
    match &action.request {
        Request::Lwm2m(request) => observation_in(request),
        Request::Udp(_) | Request::Coap(_) => None,
    }
}

/// The observation that an operation begins or ends, and which of the two.
pub(super) fn observation_in(
    request: &Lwm2mRequest,
) -> Option<(ObservationChange, ObservationTarget)> {
    let one = |path: &Path| ObservationTarget::Path(*path);
    let several = |paths: &[Path]| ObservationTarget::Paths(paths.into());
    match request {
        Lwm2mRequest::ObserveStart(path, _) => Some((ObservationChange::Begins, one(path))),
        Lwm2mRequest::ObserveEnd(path) => Some((ObservationChange::Ends, one(path))),
        Lwm2mRequest::ObserveCompositeStart(paths, _) => {
            Some((ObservationChange::Begins, several(paths)))
        }
        Lwm2mRequest::ObserveCompositeEnd(paths) => Some((ObservationChange::Ends, several(paths))),
        Lwm2mRequest::Read(_)
        | Lwm2mRequest::Write(..)
        | Lwm2mRequest::Execute(..)
        | Lwm2mRequest::Discover(_)
        | Lwm2mRequest::Create(_)
        | Lwm2mRequest::Delete(_)
        | Lwm2mRequest::WriteAttributes(..)
        | Lwm2mRequest::WriteInstance(_)
        | Lwm2mRequest::ReadComposite(_)
        | Lwm2mRequest::WriteComposite(_) => None,
    }
}
