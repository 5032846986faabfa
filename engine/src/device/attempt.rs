//! One attempt at one thing a device is asked: recorded before its datagram leaves, ended by an
//! answer, a rejection or silence.

mod ending;
mod going_on;

use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;
use protocol::coap::token::Token;
use protocol::coap::transfer::Transfer;
use protocol::lwm2m::path::Path;

use crate::action::timeline::Stage;
use crate::action::{Action, Outcome, Protocol, Status};
use crate::device::Device;
use crate::device::asking::Leaving;
use crate::device::formats::{FormatSet, format_in};
use crate::device::passive::Part;
use crate::device::queue::Pending;
use crate::effect::{Effect, Effects, Speech};
use crate::ids::{ActionId, TraceId};
use crate::limits::DEPARTURE_MS;
use crate::moment::{Moment, Timestamp};
use crate::occurrence::{Ending, Purpose, What};
use crate::peer::Peer;

/// The attempt in flight.
pub(super) struct Attempt {
    pub(super) way: Way,
    /// The one place an answer may come from; where the device is registered, if it is none.
    pub(super) to: Option<Peer>,
    target: Target,
    /// The format its message asks for or carries.
    format: Option<ContentFormat>,
    /// The formats the device refused in it.
    pub(super) refused: FormatSet,
    begun_at: Timestamp,
    /// The call behind it.
    trace: Option<TraceId>,
}

/// How what is asked gets to the device.
pub(super) enum Way {
    /// In messages that it answers.
    Transfer(Transfer),
    /// In a bare datagram; after a while it is taken that nobody will say whether it left.
    Departure { gives_up_at: Timestamp },
}

/// What an attempt is at.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// A request of a caller.
    Action(ActionId),
    /// A path that is observed and that the device forgot.
    Observation(Path),
    /// What is read because the device registered or updated its registration.
    Report(Part),
    /// A notification that goes on in further blocks, by its token.
    Notification(Token),
}

impl Target {
    fn purpose(self) -> Purpose {
        match self {
            Self::Action(_) => Purpose::Action,
            Self::Observation(_) | Self::Notification(_) => Purpose::Observation,
            Self::Report(_) => Purpose::Report,
        }
    }
}

impl Attempt {
    /// The call behind it, where it is an attempt at a request of a caller.
    pub(super) fn trace(&self) -> Option<TraceId> {
        self.trace
    }

    pub(super) fn next_timeout(&self) -> Timestamp {
        match &self.way {
            Way::Transfer(transfer) => Timestamp::from_ms(transfer.next_timeout()),
            Way::Departure { gives_up_at } => *gives_up_at,
        }
    }

    /// The transfer it is in, if it is in one.
    pub(super) fn transfer_mut(&mut self) -> Option<&mut Transfer> {
        match &mut self.way {
            Way::Transfer(transfer) => Some(transfer),
            Way::Departure { .. } => None,
        }
    }

    /// Whether an answer may come from a peer. One the device is asked where it is registered may
    /// come from where it was before.
    pub(super) fn may_be_answered_from(&self, peer: Peer) -> bool {
        self.to.is_none_or(|to| to == peer)
    }

    /// Whether it is a bare datagram that leaves.
    pub(super) fn is_departing(&self) -> bool {
        match &self.way {
            Way::Transfer(_) => false,
            Way::Departure { .. } => true,
        }
    }

    /// What it is at.
    pub(super) fn target(&self) -> Target {
        self.target
    }

    /// The format its message asks for or carries, if any.
    pub(super) fn format(&self) -> Option<ContentFormat> {
        self.format
    }

    /// The request it is at, if it is at one.
    pub(super) fn action(&self) -> Option<ActionId> {
        match self.target {
            Target::Action(action) => Some(action),
            Target::Observation(_) | Target::Report(_) | Target::Notification(_) => None,
        }
    }

    /// The path it asks for again, if it asks for one.
    pub(super) fn observation(&self) -> Option<Path> {
        match self.target {
            Target::Action(_) | Target::Report(_) | Target::Notification(_) => None,
            Target::Observation(path) => Some(path),
        }
    }

    /// The part of a round it asks for, if it asks for one.
    pub(super) fn part(&self) -> Option<Part> {
        match self.target {
            Target::Action(_) | Target::Observation(_) | Target::Notification(_) => None,
            Target::Report(part) => Some(part),
        }
    }
}

impl Device {
    /// Begins an attempt, unless one is in flight: of the oldest request that is ready and can
    /// leave, or else of what is to be observed again, or else of what is to be read because the
    /// device registered or updated its registration.
    pub(super) fn begin_attempt(&mut self, m: &mut Moment, out: &mut Effects) {
        while self.is_at_nothing() {
            if let Some(index) = self.next_to_begin(m.now())
                && let Some(pending) = self.take_pending(index)
            {
                self.begin_attempt_of(m, index, pending, out);
            } else if !self.is_there(m.now()) {
                break;
            } else if let Some(datagram) = self.next_notification() {
                self.begin_fetch(m, datagram, out);
            } else if let Some(path) = self.next_owed() {
                self.begin_observation(m, path, out);
            } else if let Some(part) = self.next_part() {
                self.begin_part(m, part, out);
            } else {
                break;
            }
        }
        self.drop_what_cannot_be_asked();
    }

    fn is_at_nothing(&self) -> bool {
        let busy = self.busy.as_ref();
        busy.is_some_and(|busy| busy.attempt.is_none())
    }

    /// Where the request stands whose turn it is.
    fn next_to_begin(&self, now: Timestamp) -> Option<usize> {
        let may_begin = |pending: &Pending| {
            pending.may_begin(now) && self.can_take(&pending.action.request, now)
        };
        self.pending().iter().position(may_begin)
    }

    fn begin_attempt_of(
        &mut self,
        m: &mut Moment,
        index: usize,
        mut pending: Pending,
        out: &mut Effects,
    ) {
        let Some(to) = self.peer_for(&pending.action.request) else {
            return;
        };
        let leaving = match self.leaving_of(m, &pending.action, FormatSet::default()) {
            Ok(leaving) => leaving,
            Err(unfit) => {
                let outcome = Outcome::failure(&unfit.why);
                return self.fail(m, pending.action, unfit.failure, outcome, out);
            }
        };
        let was = pending.action.standing();
        pending.ready = false;
        note_begun(m.now(), &mut pending.action);
        let target = Target::Action(pending.action.id);
        let trace = Some(pending.action.trace);
        match leaving {
            Leaving::Message(message) => {
                pending.action.timeline.note(m.now(), Stage::DatagramSent);
                out.save_action(Some(was), &pending.action);
                let elsewhere = pending.action.protocol() != Protocol::Lwm2m;
                let to = elsewhere.then_some(to);
                self.begin_exchange(m, (target, trace), (to, message), out);
            }
            Leaving::Bytes(bytes) => {
                out.save_action(Some(was), &pending.action);
                self.begin_departure(m, (target, trace), (to, bytes), out);
            }
        }
        let busy = self.busy.get_or_insert_default();
        busy.pending.insert(index, pending);
    }

    fn begin_observation(&mut self, m: &mut Moment, path: Path, out: &mut Effects) {
        if let Some(message) = self.observe_again(m, path, FormatSet::default()) {
            self.begin_exchange(m, (Target::Observation(path), None), (None, message), out);
        }
    }

    fn begin_part(&mut self, m: &mut Moment, part: Part, out: &mut Effects) {
        if let Some(message) = self.message_of_part(m, part, FormatSet::default()) {
            self.begin_exchange(m, (Target::Report(part), None), (None, message), out);
        }
    }

    /// Begins an exchange with the device, at a peer or else where it is registered. From a peer
    /// its answers are let through for as long as the exchange lasts.
    pub(super) fn begin_exchange(
        &mut self,
        m: &mut Moment,
        (target, trace): (Target, Option<TraceId>),
        (to, message): (Option<Peer>, Message),
        out: &mut Effects,
    ) {
        let format = format_in(&message);
        let rules = self.terms.rules.transfers();
        let transfer = Transfer::begin(m.now().as_ms(), &rules, message, m.next_u32());
        self.busy.get_or_insert_default().attempt = Some(Box::new(Attempt {
            way: Way::Transfer(transfer),
            to,
            target,
            format,
            refused: FormatSet::default(),
            begun_at: m.now(),
            trace,
        }));
        self.send_in_flight(out);
        out.note(trace, What::Begun(target.purpose()));
    }

    fn begin_departure(
        &mut self,
        m: &mut Moment,
        (target, trace): (Target, Option<TraceId>),
        (to, bytes): (Peer, Vec<u8>),
        out: &mut Effects,
    ) {
        out.push(Effect::Say(Speech::SendBare { to, bytes }));
        self.busy.get_or_insert_default().attempt = Some(Box::new(Attempt {
            way: Way::Departure {
                gives_up_at: m.now().plus_ms(DEPARTURE_MS),
            },
            to: Some(to),
            target,
            format: None,
            refused: FormatSet::default(),
            begun_at: m.now(),
            trace,
        }));
    }

    /// Whether an attempt is in flight to where the device is registered.
    pub(super) fn is_asked_as_registered(&self) -> bool {
        self.attempt().is_some_and(|attempt| attempt.to.is_none())
    }

    /// Whether the device is asked at a peer where it is not registered.
    pub(super) fn is_asked_elsewhere(&self, peer: Peer) -> bool {
        let is_asked = |attempt: &Attempt| attempt.to == Some(peer);
        self.attempt().is_some_and(is_asked) && self.bound_peer() != Some(peer)
    }

    /// Has the answers to the attempt in flight let through, if it is with a peer of its own.
    pub(super) fn await_elsewhere(&self, out: &mut Effects) {
        if let Some(attempt) = self.attempt()
            && attempt.to.is_some()
            && attempt.to != self.bound_peer()
            && !attempt.is_departing()
        {
            out.rebind(None, attempt.to);
        }
    }

    /// Remarks how the exchange in flight ends, if there is one.
    pub(super) fn note_ending(&self, ending: Ending, out: &mut Effects) {
        if let Some(attempt) = self.attempt()
            && !attempt.is_departing()
        {
            out.note(attempt.trace, What::Ended(ending));
        }
    }

    pub(super) fn attempt(&self) -> Option<&Attempt> {
        self.busy.as_ref()?.attempt.as_deref()
    }

    pub(super) fn attempt_mut(&mut self) -> Option<&mut Attempt> {
        self.busy.as_mut()?.attempt.as_deref_mut()
    }

    pub(super) fn action_in_flight(&self) -> Option<ActionId> {
        self.busy.as_ref()?.action_in_flight()
    }

    pub(super) fn observation_in_flight(&self) -> Option<Path> {
        self.attempt()?.observation()
    }

    /// The request the attempt in flight is at.
    fn pending_in_flight(&self) -> Option<&Pending> {
        let index = self.position_of(self.action_in_flight()?)?;
        self.pending().get(index)
    }

    /// Whether the answer to the attempt in flight, of which a part is there, may begin an
    /// observation under a token.
    pub(super) fn is_about_to_observe(&self, token: Token) -> bool {
        self.attempt().is_some_and(|attempt| match &attempt.way {
            Way::Transfer(transfer) => transfer.is_under_way() && transfer.token() == token,
            Way::Departure { .. } => false,
        })
    }

    /// Notes what happened to the request in flight.
    pub(super) fn note_in_flight(&mut self, now: Timestamp, what: Stage) {
        let in_flight = self.action_in_flight();
        let mut pending = self.pending_mut().iter_mut();
        if let Some(pending) = pending.find(|pending| Some(pending.action.id) == in_flight) {
            pending.action.timeline.note(now, what);
        }
    }

    /// Ends the attempt in flight; where it was with a peer of its own, nothing is let through from
    /// there any more.
    pub(super) fn end_exchange(&mut self, out: &mut Effects) -> Option<Box<Attempt>> {
        let attempt = self.busy.as_mut()?.attempt.take()?;
        if let Some(peer) = attempt.to
            && !attempt.is_departing()
            && self.bound_peer() != Some(peer)
        {
            out.rebind(Some(peer), None);
        }
        Some(attempt)
    }

    pub(super) fn take_action(&mut self, id: ActionId) -> Option<Action> {
        let index = self.position_of(id)?;
        self.take_pending(index).map(|pending| pending.action)
    }
}

fn note_begun(now: Timestamp, action: &mut Action) {
    action.status = Status::InProgress;
    action.attempts_made = action.attempts_made.saturating_add(1);
    action.updated_at = now;
    let attempt = Stage::AttemptBegun(action.attempts_made);
    action.timeline.note(now, attempt);
}
