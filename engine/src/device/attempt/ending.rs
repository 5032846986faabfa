//! How an attempt ends: by an answer, a rejection or silence, and what follows from it for what it
//! was at.

use protocol::coap::code::Code;
use protocol::coap::message::Message;
use protocol::coap::token::Token;

use super::{Attempt, Target, Way};
use crate::action::timeline::Stage;
use crate::action::{Action, Outcome, Protocol, Status};
use crate::device::Device;
use crate::device::plain::outcome_of;
use crate::device::queue::Failure;
use crate::effect::Effects;
use crate::moment::{Moment, Timestamp};
use crate::occurrence::What;

impl Device {
    /// Takes note that the device has the message and answers later.
    pub(in crate::device) fn attempt_acknowledged(&mut self, now: Timestamp, out: &mut Effects) {
        out.note(self.trace_in_flight(), What::Acknowledged);
        self.note_in_flight(now, Stage::Acknowledged);
    }

    /// Ends the attempt in flight with the device's answer.
    pub(in crate::device) fn attempt_answered(
        &mut self,
        m: &mut Moment,
        answer: &Message,
        out: &mut Effects,
    ) {
        let code = answer.code;
        if code.is_success() {
            return self.attempt_succeeded(m, answer, out);
        }
        if self.ask_otherwise(m, code, out) {
            return;
        }
        let outcome = self.refusal_in(answer);
        match code {
            Code::REQUEST_ENTITY_INCOMPLETE
            | Code::TOO_MANY_REQUESTS
            | Code::SERVICE_UNAVAILABLE => self.attempt_put_off(m, code, &outcome, out),
            _ => self.attempt_refused(m, code, outcome, out),
        }
    }

    /// Ends the attempt in flight, if there is one, in silence: the next is due when the device is
    /// next heard.
    pub(in crate::device) fn attempt_unanswered(
        &mut self,
        m: &mut Moment,
        why: &str,
        out: &mut Effects,
    ) {
        let Some(attempt) = self.end_exchange(out) else {
            return;
        };
        if let Some(part) = attempt.part() {
            self.part_unanswered(m, (part, attempt.begun_at), why, out);
            return self.note_silence(&attempt);
        }
        self.end_attempt(m, &attempt, Stage::GaveUp, &refusal(None, why), out);
        self.note_silence(&attempt);
    }

    /// Ends the attempt in flight because the device rejects its message: the next is due when the
    /// device is next heard, but it is there for other requests.
    pub(in crate::device) fn attempt_rejected(&mut self, m: &mut Moment, out: &mut Effects) {
        if let Some(attempt) = self.end_exchange(out) {
            let outcome = refusal(None, "the device rejected the message");
            self.end_attempt(m, &attempt, Stage::Rejected, &outcome, out);
        }
    }

    /// Ends the attempt in flight with an answer that must not, or cannot, be taken for one.
    pub(in crate::device) fn attempt_unusable(
        &mut self,
        m: &mut Moment,
        code: Code,
        why: &str,
        out: &mut Effects,
    ) {
        self.attempt_refused(m, code, refusal(Some(code), why), out);
    }

    /// Ends the attempt in flight with an answer that no repetition would change.
    fn attempt_refused(&mut self, m: &mut Moment, code: Code, outcome: Outcome, out: &mut Effects) {
        let Some(attempt) = self.end_exchange(out) else {
            return;
        };
        let why = outcome.error.clone().unwrap_or_default();
        match attempt.target {
            Target::Action(id) => {
                let Some(mut action) = self.take_action(id) else {
                    return;
                };
                action.timeline.note(m.now(), Stage::Answered(code));
                self.forget_refused(m, &action, out);
                self.fail(m, action, Failure::Refused, outcome, out);
            }
            Target::Observation(path) => self.lose_observation(m, path, &why, out),
            Target::Report(part) => self.part_refused(m, part, (code, &why), out),
            Target::Notification(token) => self.notification_missed(m, token, &why, out),
        }
    }

    /// Ends the attempt in flight because the device does not take the request now.
    fn attempt_put_off(
        &mut self,
        m: &mut Moment,
        code: Code,
        outcome: &Outcome,
        out: &mut Effects,
    ) {
        if let Some(attempt) = self.end_exchange(out) {
            self.end_attempt(m, &attempt, Stage::Answered(code), outcome, out);
        }
    }

    /// What an answer says that refuses what was asked. Over CoAP its payload may explain it (RFC
    /// 7252 section 5.5.2).
    fn refusal_in(&self, answer: &Message) -> Outcome {
        let asked = self.pending_in_flight();
        let refused = refusal(
            Some(answer.code),
            &format!("the device answered {}", answer.code),
        );
        match asked.map(|pending| pending.action.protocol()) {
            Some(Protocol::Coap) => Outcome {
                error: refused.error,
                ..outcome_of(answer)
            },
            Some(Protocol::Udp | Protocol::Lwm2m) | None => refused,
        }
    }

    fn attempt_succeeded(&mut self, m: &mut Moment, answer: &Message, out: &mut Effects) {
        let Some(attempt) = self.end_exchange(out) else {
            return;
        };
        let Way::Transfer(transfer) = &attempt.way else {
            return;
        };
        let token = transfer.token();
        match attempt.target {
            Target::Action(id) => {
                if let Some(action) = self.take_action(id) {
                    self.action_succeeded(m, action, token, answer, out);
                }
            }
            Target::Observation(path) => {
                self.observed_again(m, path, token, answer, out);
            }
            Target::Report(part) => self.part_answered(m, part, answer, out),
            Target::Notification(token) => self.notification_fetched(m, token, answer, out),
        }
    }

    fn action_succeeded(
        &mut self,
        m: &mut Moment,
        mut action: Action,
        token: Token,
        answer: &Message,
        out: &mut Effects,
    ) {
        action.timeline.note(m.now(), Stage::Answered(answer.code));
        match self.take_result(m, &action, token, answer, out) {
            Ok(outcome) => {
                action.outcome = Some(outcome);
                self.conclude(m, action, Status::Succeeded, out);
            }
            Err(why) => {
                let outcome = refusal(Some(answer.code), &why);
                self.fail(m, action, Failure::Refused, outcome, out);
            }
        }
    }

    /// Ends an attempt that may be followed by another. What is observed again is asked for when
    /// the device is next heard, what is reported when it next updates its registration.
    fn end_attempt(
        &mut self,
        m: &mut Moment,
        attempt: &Attempt,
        how: Stage,
        outcome: &Outcome,
        out: &mut Effects,
    ) {
        let id = match attempt.target {
            Target::Action(id) => id,
            Target::Observation(_) => return,
            Target::Notification(token) => {
                let why = outcome.error.as_deref().unwrap_or_default();
                return self.notification_missed(m, token, why, out);
            }
            Target::Report(part) => {
                let why = outcome.error.as_deref().unwrap_or_default();
                return self.part_missed(m, part, why, out);
            }
        };
        let Some(index) = self.position_of(id) else {
            return;
        };
        let Some(mut pending) = self.take_pending(index) else {
            return;
        };
        let was = pending.action.standing();
        pending.action.timeline.note(m.now(), how);
        if pending.action.attempts_left() == 0 {
            return self.fail(m, pending.action, Failure::Refused, outcome.clone(), out);
        }
        pending.action.updated_at = m.now();
        out.save_action(Some(was), &pending.action);
        let busy = self.busy.get_or_insert_default();
        busy.pending.insert(index, pending);
    }

    /// A device that was not heard since the attempt began is gone: what else it would have to
    /// answer waits for it, too, instead of being spent on silence. Silence elsewhere says nothing
    /// of where it is registered, and a bare datagram asks for no answer. A device in queue mode
    /// sleeps from now on.
    fn note_silence(&mut self, attempt: &Attempt) {
        let is_heard = |at: Timestamp| at > attempt.begun_at;
        if self.record.last_seen_at.is_some_and(is_heard) {
            return;
        }
        self.silent = true;
        let is_registered_there = attempt.to.is_none();
        let Some(busy) = &mut self.busy else {
            return;
        };
        for pending in &mut busy.pending {
            let would_be_unanswered = match pending.action.protocol() {
                Protocol::Lwm2m => is_registered_there,
                Protocol::Coap => true,
                Protocol::Udp => false,
            };
            pending.ready &= !would_be_unanswered;
        }
        if is_registered_there {
            busy.owed.clear();
            busy.notified.clear();
            busy.round = None;
        }
    }
}

fn refusal(code: Option<Code>, why: &str) -> Outcome {
    Outcome {
        code: code.map(|code| code.digits().into()),
        ..Outcome::failure(why)
    }
}
