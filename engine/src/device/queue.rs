//! What is asked of a device and waits its turn: submitting, cancelling, order and expiry.

use crate::action::timeline::Timeline;
use crate::action::{Action, Addressee, Mode, NewAction, Outcome, Request, Status};
use crate::admin_log::entry::Entry;
use crate::device::Device;
use crate::device::busy::Busy;
use crate::effect::Effects;
use crate::ids::ActionId;
use crate::limits::WAITING_BYTES_MAX;
use crate::moment::{Moment, Timestamp};
use crate::promise::Promise;

/// A request was accepted: once its step is durable it is a promise.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Accepted {
    /// The id to follow it by.
    pub id: ActionId,
    /// The status it begins with.
    pub status: Status,
}

/// A well-formed request that this device cannot take now.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SubmitRefusal {
    /// It is to be sent now over LwM2M, and the device has no registration.
    #[error("the device is not registered")]
    NotRegistered,
    /// It is to be sent now over UDP or CoAP, and nobody knows where the device is.
    #[error("the device has no address")]
    NoAddress,
    /// As many requests of its kind wait for the device as may.
    #[error("{max} requests already wait for the device")]
    QueueFull {
        /// How many may wait.
        max: u32,
    },
    /// As much data as may wait for the device does.
    #[error("{max} bytes of data already wait for the device")]
    DataFull {
        /// How many may wait.
        max: usize,
    },
}

/// A request was taken back: it is never sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cancelled {
    /// Which.
    pub id: ActionId,
}

/// A request that cannot be taken back.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CancelRefusal {
    /// The device has no such request waiting.
    #[error("only a scheduled request can be taken back; this one is final")]
    NotPending,
    /// It is in progress, whether or not anything of it was sent.
    #[error("only a scheduled request can be taken back; this one is in progress")]
    NotScheduled,
}

/// A request that is not final.
pub(super) struct Pending {
    pub(super) action: Action,
    /// Whether it may go out as soon as no other exchange is in flight.
    pub(super) ready: bool,
}

impl Pending {
    /// A request brought back from the store: one to be sent now that was never tried goes out,
    /// any other waits for the device to be heard.
    pub(super) fn restored(action: Action) -> Self {
        let untried = action.status == Status::InProgress && action.attempts_made == 0;
        Self {
            action,
            ready: untried,
        }
    }

    /// Whether an attempt may begin. Here alone it is decided, because the device may be heard
    /// before the wake-up that fails what expired or was interrupted.
    pub(super) fn may_begin(&self, now: Timestamp) -> bool {
        self.ready && self.action.attempts_left() > 0 && now < self.action.expires_at
    }
}

/// Why a request cannot be sent as it is.
pub(super) struct Unfit {
    pub(super) failure: Failure,
    pub(super) why: String,
}

/// Why a request failed for ever; each kind has its own entry in the customer's log.
#[derive(Clone, Copy)]
pub(super) enum Failure {
    /// The device refused it or did not answer.
    Refused,
    /// Its value does not fit the resource it addresses.
    Unfit,
    /// It was not done in time.
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

impl Device {
    /// Creates an action request.
    ///
    /// One whose value does not fit its resource is accepted, and fails in the same step.
    pub fn submit(
        &mut self,
        m: &mut Moment,
        new: NewAction,
        out: &mut Effects,
    ) -> Result<Accepted, SubmitRefusal> {
        self.check_room(m.now(), &new)?;
        let once = new.once;
        let action = self.action_of(m, new);
        if let Some(once) = once {
            out.keep_promise(Promise {
                once,
                device: action.device,
                number: self.identity.number(),
                action: action.id,
                at: m.now(),
            });
        }
        let accepted = Accepted {
            id: action.id,
            status: action.status,
        };
        match self.value_of(&action) {
            Ok(_) => {
                out.save_action(None, &action);
                let ready = action.mode == Mode::SendNow && self.can_take(&action.request, m.now());
                let busy = self.busy.get_or_insert_default();
                busy.push(Pending { action, ready });
                self.begin_attempt(m, out);
                self.rest();
            }
            Err(unfit) => {
                out.save_action(None, &action);
                let outcome = Outcome::failure(&unfit.why);
                self.fail(m, action, unfit.failure, outcome, out);
            }
        }
        Ok(accepted)
    }

    /// Takes back a request that was not sent.
    pub fn cancel(
        &mut self,
        m: &mut Moment,
        id: ActionId,
        out: &mut Effects,
    ) -> Result<Cancelled, CancelRefusal> {
        let pending = self.pending().iter().find(|p| p.action.id == id);
        let pending = pending.ok_or(CancelRefusal::NotPending)?;
        if pending.action.status != Status::Scheduled {
            return Err(CancelRefusal::NotScheduled);
        }
        for pending in self.take_pending_if(|pending| pending.action.id == id) {
            self.conclude(m, pending.action, Status::Cancelled, out);
        }
        self.rest();
        Ok(Cancelled { id })
    }

    /// Takes back every request that was not sent.
    pub fn cancel_all(&mut self, m: &mut Moment, out: &mut Effects) -> Vec<Cancelled> {
        let is_scheduled = |pending: &mut Pending| pending.action.status == Status::Scheduled;
        let scheduled = self.take_pending_if(is_scheduled);
        self.rest();
        let conclude = |pending: Pending| {
            let id = pending.action.id;
            self.conclude(m, pending.action, Status::Cancelled, out);
            Cancelled { id }
        };
        scheduled.into_iter().map(conclude).collect()
    }

    pub(super) fn pending_mut(&mut self) -> &mut [Pending] {
        self.busy.as_mut().map_or(&mut [], |busy| &mut busy.pending)
    }

    pub(super) fn take_pending(&mut self, index: usize) -> Option<Pending> {
        self.busy.as_mut().map(|busy| busy.pending.remove(index))
    }

    pub(super) fn take_pending_if(
        &mut self,
        wanted: impl FnMut(&mut Pending) -> bool,
    ) -> Vec<Pending> {
        let taken = |busy: &mut Box<Busy>| busy.pending.extract_if(.., wanted).collect();
        self.busy.as_mut().map(taken).unwrap_or_default()
    }

    /// Lets everything that waits go out; what is in flight was not waiting.
    pub(super) fn release_pending(&mut self) {
        self.release_observations();
        let in_flight = self.action_in_flight();
        for pending in self.pending_mut() {
            pending.ready = Some(pending.action.id) != in_flight;
        }
    }

    /// Fails what was in its last attempt when the service stopped: the attempt counts as made.
    pub(super) fn settle_restored(&mut self, m: &mut Moment, out: &mut Effects) {
        let unsettled = self.busy.as_mut().map(|busy| &mut busy.unsettled);
        if !unsettled.is_some_and(std::mem::take) {
            return;
        }
        // The device may have been heard since, and an attempt begun: that one goes on.
        let in_flight = self.action_in_flight();
        let interrupted = |p: &mut Pending| {
            p.action.status == Status::InProgress
                && p.action.attempts_left() == 0
                && Some(p.action.id) != in_flight
        };
        for pending in self.take_pending_if(interrupted) {
            let why = "the service was interrupted during the last attempt; \
                       the device may have done it";
            self.fail(
                m,
                pending.action,
                Failure::Refused,
                Outcome::failure(why),
                out,
            );
        }
    }

    /// Fails what was not done in time; an attempt in flight may still succeed.
    pub(super) fn expire_actions(&mut self, m: &mut Moment, out: &mut Effects) {
        let (now, in_flight) = (m.now(), self.action_in_flight());
        let is_due = |pending: &mut Pending| {
            pending.action.expires_at <= now && Some(pending.action.id) != in_flight
        };
        for pending in self.take_pending_if(is_due) {
            let action = pending.action;
            let event = match action.attempts_made {
                0 => "it was sent",
                1.. => "the device answered",
            };
            let why = format!("it expired at {} before {event}", action.expires_at.iso());
            self.fail(m, action, Failure::Expired, Outcome::failure(&why), out);
        }
    }

    /// Ends a request as failed for ever and tells the customer.
    pub(super) fn fail(
        &self,
        m: &mut Moment,
        mut action: Action,
        failure: Failure,
        outcome: Outcome,
        out: &mut Effects,
    ) {
        let why = outcome.error.clone().unwrap_or_default();
        action.outcome = Some(outcome);
        let action = self.conclude(m, action, Status::Failed, out);
        self.log_failure(m, &action, failure, &why, out);
    }

    fn log_failure(
        &self,
        m: &mut Moment,
        action: &Action,
        failure: Failure,
        why: &str,
        out: &mut Effects,
    ) {
        let seen = self.seen_at(self.record.peer);
        let entry = match failure {
            Failure::Refused => Entry::action_failed(m, seen, action, why),
            Failure::Unfit => Entry::invalid_data_type(m, seen, action, why),
            Failure::Expired => Entry::action_expired(m, seen, action, why),
        };
        self.log(m, entry, out);
    }

    /// Gives a request its final status.
    pub(super) fn conclude(
        &self,
        m: &mut Moment,
        mut action: Action,
        status: Status,
        out: &mut Effects,
    ) -> Action {
        let was = action.standing();
        action.status = status;
        action.updated_at = m.now();
        out.save_action(Some(was), &action);
        self.tell_concluded(m, &action, out);
        action
    }

    pub(super) fn position_of(&self, id: ActionId) -> Option<usize> {
        let is_it = |pending: &Pending| pending.action.id == id;
        self.pending().iter().position(is_it)
    }

    fn check_room(&self, now: Timestamp, new: &NewAction) -> Result<(), SubmitRefusal> {
        let limits = &self.terms.rules.limits;
        let in_flight = self.action_in_flight();
        let (max, waits): (u32, fn(&Action) -> bool) = match new.mode {
            Mode::SendNow if self.is_out_of_reach(&new.request, now) => {
                return Err(match new.request {
                    Request::Udp(_) | Request::Coap(_) => SubmitRefusal::NoAddress,
                    Request::Lwm2m(_) => SubmitRefusal::NotRegistered,
                });
            }
            Mode::SendNow => (limits.waiting_max, |a| a.mode == Mode::SendNow),
            Mode::SendWhenActive => (limits.scheduled_max, |a| a.status == Status::Scheduled),
        };
        let is_waiting = |p: &&Pending| waits(&p.action) && Some(p.action.id) != in_flight;
        let waiting = self.pending().iter().filter(is_waiting).count();
        if u32::try_from(waiting).is_ok_and(|waiting| waiting < max) {
            return self.check_data(&new.request);
        }
        Err(SubmitRefusal::QueueFull { max })
    }

    /// What waits is in memory, so it has a bound by its size, too.
    fn check_data(&self, request: &Request) -> Result<(), SubmitRefusal> {
        let waiting = self.pending().iter();
        let bytes: usize = waiting.map(|it| it.action.request.data_bytes()).sum();
        if bytes.saturating_add(request.data_bytes()) > WAITING_BYTES_MAX {
            return Err(SubmitRefusal::DataFull {
                max: WAITING_BYTES_MAX,
            });
        }
        Ok(())
    }

    fn action_of(&self, m: &mut Moment, new: NewAction) -> Action {
        let now = m.now();
        let expires_at = match new.expires_in_s {
            Some(expires_in_s) => now.plus_s(i64::from(expires_in_s)),
            None => self.terms.rules.limits.expiry_of(now),
        };
        Action {
            id: self.draw_id(m),
            customer: self.identity.customer(),
            device: self.key(),
            request: new.request,
            status: match new.mode {
                Mode::SendNow => Status::InProgress,
                Mode::SendWhenActive => Status::Scheduled,
            },
            mode: new.mode,
            attempts_permitted: new.attempts_permitted,
            attempts_made: 0,
            created_at: now,
            updated_at: now,
            expires_at,
            expires_in_s: new.expires_in_s,
            addressee: Addressee {
                device: self.identity.device(),
                iccid: self.identity.iccid(),
                imsi: self.identity.imsi(),
                ip: self
                    .identity
                    .ip()
                    .or(self.record.peer.map(|peer| peer.ip())),
            },
            trace: new.trace,
            outcome: None,
            timeline: Timeline::default(),
        }
    }

    /// An id after those that wait: their order is all that tells, after a restart, which of two
    /// requests of one millisecond is older.
    fn draw_id(&self, m: &mut Moment) -> ActionId {
        let drawn = ActionId::new(m.uuid());
        let newest = self.pending().last().map(|pending| pending.action.id);
        newest.map_or(drawn, |newest| drawn.max(newest.next()))
    }
}
