//! How does the exchange in flight continue and end, and what follows from that for the part it
//! belongs to?

use protocol::coap::code::Code;
use protocol::coap::exchange::GiveUp;
use protocol::coap::message::{Message, MessageKind};
use protocol::coap::token::Token;
use protocol::coap::transfer::{FreshIds, TransferReception, TransferTimeout};

use super::Step;
use crate::action::timeline::TimelineEvent;
use crate::action::{Action, Lwm2mRequest, Outcome, Protocol, Request, Status};
use crate::datagram::Datagram;
use crate::device::exchange::{EndedExchange, ExchangeRequest, ExchangeTarget};
use crate::device::formats::AttemptState;
use crate::device::queue::{self, ActionFailure, Unsendable};
use crate::device::request::{self, AnsweredAction, OutgoingRequest};
use crate::diagnostic;
use crate::effect::SendOutcome;
use crate::ids::ActionId;
use crate::step_event::{ExchangeOutcome, StepEventKind, UplinkKind};

impl Step<'_> {
    /// Handles a message that may answer the exchange in flight.
    pub(super) fn take_answer(&mut self, datagram: &Datagram) -> UplinkKind {
        let message = &datagram.message;
        match self.exchange.handle(&self.cx, datagram) {
            TransferReception::NotMine
                if message.code.is_response() && message.kind != MessageKind::Acknowledgement =>
            {
                return self.take_notification(datagram);
            }
            TransferReception::NotMine => return UplinkKind::Unsolicited,
            TransferReception::Acknowledged => {
                self.cx.note_heard();
                self.exchange.note_acknowledged(&self.cx);
                self.cx
                    .out
                    .note(self.exchange.trace(), StepEventKind::Acknowledged);
                self.note(TimelineEvent::Acknowledged);
            }
            TransferReception::Reset => {
                self.cx.note_heard();
                self.exchange
                    .note_ending(ExchangeOutcome::Reset, self.cx.out);
                self.note(TimelineEvent::Rejected);
                // The next attempt begins at the next uplink.
                if let Some(ended) = self.end_exchange() {
                    let outcome = Outcome::failure("the device rejected the message with a Reset");
                    self.end_attempt(&ended, outcome);
                }
            }
            TransferReception::Proceeds { acknowledge } => {
                self.cx.note_heard();
                self.messages.confirm(&mut self.cx, datagram, acknowledge);
                self.note_pushed();
                if self.is_superseded() {
                    self.exchange
                        .note_ending(ExchangeOutcome::with(message.code), self.cx.out);
                    self.end_exchange();
                    self.observations.drop_superseded(&mut self.cx);
                } else if self.is_push_in_the_way() {
                    self.exchange
                        .note_ending(ExchangeOutcome::with(message.code), self.cx.out);
                    self.end_exchange();
                } else {
                    self.send_next();
                }
                return UplinkKind::BlockPart;
            }
            TransferReception::Unusable { option, reset } => {
                let why = format!("the response has the unsupported critical option {option}");
                self.unusable(message.code, &why);
                if reset.is_some() {
                    self.messages.reject(&mut self.cx, datagram);
                }
            }
            TransferReception::Broken { acknowledge, fault } => {
                self.cx.note_heard();
                let why = format!("the block-wise response is invalid: {fault}");
                self.unusable(message.code, &why);
                self.messages.confirm(&mut self.cx, datagram, acknowledge);
            }
            TransferReception::Answered { acknowledge, whole } => {
                self.cx.note_heard();
                let answer = whole.as_deref().unwrap_or(message);
                let ending = ExchangeOutcome::with(answer.code);
                self.exchange.note_ending(ending, self.cx.out);
                self.answered(answer);
                self.messages.confirm(&mut self.cx, datagram, acknowledge);
            }
        }
        UplinkKind::Answer
    }

    /// Ends every request because the device is removed. The attempt in flight ends without an
    /// answer.
    pub(in crate::device) fn end_requests(&mut self) {
        self.exchange
            .note_ending(ExchangeOutcome::DeviceGone, self.cx.out);
        self.note(TimelineEvent::GaveUp);
        self.queue.end_all(&mut self.cx);
    }

    /// Drops the blocks of unfinished bodies. An attempt whose response arrived in part ends.
    pub(in crate::device) fn drop_unfinished(&mut self) {
        self.ingest.drop_unfinished();
        if self.exchange.memory() > 0 {
            let why = "the blocks of the response were dropped: too many bodies were unfinished";
            self.unanswered(ExchangeOutcome::NotAnswered, why);
        }
    }

    /// Retransmits the datagram in flight, or gives up, when that is due.
    pub(in crate::device) fn drive_exchange(&mut self) {
        let Some(expiry) = self.exchange.handle_timeout(self.cx.now()) else {
            return;
        };
        match expiry {
            TransferTimeout::GaveUp(_) if self.exchange.is_awaiting_send() => {
                let why = "it is unknown whether the datagram was sent";
                self.end_send(Err(why.to_owned()));
            }
            TransferTimeout::NotYet => {}
            // A device must not be told once more to install the image.
            TransferTimeout::Retransmit if self.is_outdated_for_update() => {}
            TransferTimeout::Retransmit => {
                if !self.exchange.is_under_way() {
                    self.note(TimelineEvent::DatagramRepeated);
                }
                self.exchange.send_again(&mut self.cx);
            }
            TransferTimeout::Again if self.has_expired() => self.expire_in_flight(),
            TransferTimeout::Again => {
                self.cx
                    .out
                    .note(self.exchange.trace(), StepEventKind::Repeated);
                self.proceed();
            }
            TransferTimeout::GaveUp(GiveUp::NotAcknowledged) => {
                let why = "the device did not acknowledge the message";
                self.unanswered(ExchangeOutcome::NotAcknowledged, why);
            }
            TransferTimeout::GaveUp(GiveUp::NotAnswered) => {
                self.unanswered(
                    ExchangeOutcome::NotAnswered,
                    "the device did not answer in time",
                );
            }
        }
    }

    /// Takes the outcome of sending a bare datagram, unless its attempt is over.
    pub(in crate::device) fn take_send_outcome(&mut self, action: ActionId, outcome: SendOutcome) {
        if self.exchange.is_udp_of(action) {
            self.end_send(match outcome {
                SendOutcome::Sent => Ok(()),
                SendOutcome::Refused(why) => Err(format!("the datagram could not be sent: {why}")),
            });
        }
    }

    fn end_send(&mut self, sent: Result<(), String>) {
        let id = self.exchange.action();
        self.end_exchange();
        let Some(mut action) = id.and_then(|id| self.queue.take(id)) else {
            return;
        };
        match sent {
            Ok(()) => {
                action
                    .timeline
                    .note(self.cx.now(), TimelineEvent::DatagramSent);
                queue::conclude(&mut self.cx, action, Status::Succeeded);
            }
            Err(why) => {
                action.timeline.note(self.cx.now(), TimelineEvent::GaveUp);
                self.fail(action, Outcome::failure(&why));
            }
        }
    }

    /// Continues with the next block. A request that expired ends instead: each block renews the
    /// timeout, and a slow device must not keep it open for months.
    fn send_next(&mut self) {
        if self.has_expired() {
            return self.expire_in_flight();
        }
        self.proceed();
    }

    /// Whether the exchange in flight is about a notification that is not needed any more.
    fn is_superseded(&self) -> bool {
        match self.exchange.target() {
            Some(ExchangeTarget::Notification(token)) => self.observations.is_superseded(token),
            Some(
                ExchangeTarget::Action(_)
                | ExchangeTarget::Observation(_)
                | ExchangeTarget::Report(_)
                | ExchangeTarget::Bootstrap
                | ExchangeTarget::Update(_),
            )
            | None => false,
        }
    }

    /// Sends the next block; one of a body that is not in memory is read first.
    fn proceed(&mut self) {
        match self.exchange.wanted() {
            Some(wanted) => self.read_image(wanted),
            None => self.send_block(&[]),
        }
    }

    /// Sends the next block, which is this one if the body is not in memory.
    pub(super) fn send_block(&mut self, supplied: &[u8]) {
        let fresh = FreshIds {
            message_id: self.cx.message_id(),
            token: self.observations.draw_token(self.cx.m),
            jitter: self.cx.m.next_u32(),
        };
        self.exchange.proceed(&mut self.cx, fresh, supplied);
        self.exchange.send(&mut self.cx);
    }

    /// Whether the request in flight has expired, or is of no use to the update any more.
    fn has_expired(&self) -> bool {
        let action = self.action_in_flight();
        action.is_some_and(|action| action.expires_at <= self.cx.now())
            || self.is_outdated_for_update()
    }

    fn expire_in_flight(&mut self) {
        self.note(TimelineEvent::GaveUp);
        self.exchange
            .note_ending(ExchangeOutcome::NotAnswered, self.cx.out);
        if let Some(campaign) = self.exchange.campaign() {
            self.update_unanswered(campaign);
        }
        self.end_exchange();
        self.expire_actions();
    }

    /// Ends the attempt in flight with the device's answer.
    fn answered(&mut self, answer: &Message) {
        let code = answer.code;
        if let Some(ExchangeTarget::Bootstrap) = self.exchange.target() {
            return self.take_bootstrap_answer(answer);
        }
        if code.is_success() {
            return match self.is_before_observing() {
                true => self.begin_observing(code),
                false => self.succeeded(answer),
            };
        }
        let error = (code, diagnostic::text_of(answer));
        let in_flight = self.exchange.action();
        self.queue.note_error(in_flight, self.cx.now(), error);
        if self.try_otherwise(code) {
            return;
        }
        let mut outcome = request::refusal_in(answer, self.action_in_flight());
        if self.is_before_observing()
            && let Some(why) = &mut outcome.error
        {
            *why = format!("the attributes were not written: {why}").into();
        }
        match code {
            Code::REQUEST_ENTITY_INCOMPLETE if self.exchange.wanted().is_some() => {
                self.refused(code, outcome);
            }
            // The device cannot take the request now.
            Code::REQUEST_ENTITY_INCOMPLETE
            | Code::TOO_MANY_REQUESTS
            | Code::SERVICE_UNAVAILABLE => {
                if let Some(ended) = self.end_exchange() {
                    self.end_attempt(&ended, outcome);
                }
            }
            _ => self.refused(code, outcome),
        }
    }

    /// Whether the message in flight writes the attributes of an observation that begins: before
    /// LwM2M 1.2 an Observe cannot have them.
    fn is_before_observing(&self) -> bool {
        self.exchange.is_put()
            && match self.exchange.target() {
                Some(ExchangeTarget::Observation(_)) => true,
                Some(ExchangeTarget::Action(id)) => {
                    let action = self.queue.find(id);
                    action.is_some_and(|action| queue::observation_of(action).is_some())
                }
                Some(
                    ExchangeTarget::Report(_)
                    | ExchangeTarget::Notification(_)
                    | ExchangeTarget::Bootstrap
                    | ExchangeTarget::Update(_),
                )
                | None => false,
            }
    }

    /// Requests the observation, once its attributes were written. If that is no longer possible,
    /// because the device registered in another release or its objects changed, the request fails:
    /// the answer in flight is not that to an Observe.
    fn begin_observing(&mut self, code: Code) {
        self.note(TimelineEvent::AttributesWritten(code));
        let Some(outgoing) = self.exchange.note_attributes_written() else {
            return;
        };
        match self.message_otherwise(&outgoing) {
            Some(Ok(message)) => {
                self.note(TimelineEvent::DatagramSent);
                self.exchange.begin(&mut self.cx, outgoing, message);
            }
            Some(Err(unsendable)) => {
                let action = self.exchange.action().and_then(|id| self.queue.take(id));
                self.end_exchange();
                if let Some(action) = action {
                    let outcome = Outcome::failure(&unsendable.why);
                    queue::fail(&mut self.cx, action, unsendable.failure, outcome);
                }
            }
            None => drop(self.end_exchange()),
        }
    }

    /// Continues in another way if the device refuses this one: such a refusal does not end the
    /// attempt. Returns whether there is another way.
    ///
    /// A format that was requested or written (4.06, 4.15) is followed by the next one, and not
    /// used again until the device registers again. The replacement of an absent resource instance
    /// (4.04) is followed by a partial update, which creates it.
    fn try_otherwise(&mut self, code: Code) -> bool {
        let outgoing = match code == Code::NOT_FOUND && self.is_replacing_instance() {
            true => self.exchange.refuse_replacement(),
            false => self.exchange.refuse_format(&mut self.cx, code),
        };
        let message = outgoing.and_then(|outgoing| self.message_otherwise(&outgoing));
        let (Some(outgoing), Some(Ok(message))) = (outgoing, message) else {
            return false;
        };
        self.note(TimelineEvent::DatagramSent);
        self.exchange.begin(&mut self.cx, outgoing, message);
        true
    }

    /// Whether the request in flight may be to replace the instance of a resource.
    fn is_replacing_instance(&self) -> bool {
        match self.action_in_flight().map(|action| &action.request) {
            Some(Request::Lwm2m(Lwm2mRequest::Write(path, _))) => {
                self.cx.codec().replaces_instance(*path)
            }
            Some(Request::Coap(_) | Request::Udp(_) | Request::Lwm2m(_)) | None => false,
        }
    }

    /// The same request, without what was refused in this attempt; none if it is no longer needed.
    fn message_otherwise(
        &mut self,
        outgoing: &ExchangeRequest,
    ) -> Option<Result<Message, Unsendable>> {
        let state = outgoing.state;
        match outgoing.target {
            ExchangeTarget::Action(id) => match self.outgoing_request_of(id, state)? {
                Ok(OutgoingRequest::Message(message)) => Some(Ok(message)),
                Ok(OutgoingRequest::Bytes(_)) => None,
                Err(unsendable) => Some(Err(unsendable)),
            },
            ExchangeTarget::Observation(key) => {
                let message = self.observations.observe_again(&mut self.cx, key, state);
                message.map(Ok)
            }
            ExchangeTarget::Report(part) => {
                let read = (part, state.refused.formats);
                let observations = &self.observations;
                let message = self.passive.message_of(&mut self.cx, observations, read);
                message.map(Ok)
            }
            // Its further blocks are in the format of the first. A bootstrap has formats of its
            // own.
            ExchangeTarget::Notification(_) | ExchangeTarget::Bootstrap => None,
            ExchangeTarget::Update(of) => self.update_message(of, state).map(Ok),
        }
    }

    /// What is sent for a queued request.
    pub(super) fn outgoing_request_of(
        &mut self,
        id: ActionId,
        state: AttemptState,
    ) -> Option<Result<OutgoingRequest, Unsendable>> {
        let mut outbound = self.request_context();
        let action = outbound.queue.find(id)?;
        Some(outbound.outgoing_request_of(action, state))
    }

    fn succeeded(&mut self, answer: &Message) {
        let Some(ended) = self.end_exchange() else {
            return;
        };
        let Some(token) = ended.token else {
            return;
        };
        let (cx, ingest) = (&mut self.cx, &mut self.ingest);
        match ended.target {
            ExchangeTarget::Action(id) => {
                let Some(mut action) = self.queue.take(id) else {
                    return;
                };
                action
                    .timeline
                    .note(cx.now(), TimelineEvent::Answered(answer.code));
                let answered = AnsweredAction {
                    action: &action,
                    token,
                    answer,
                };
                match request::take_result(cx, ingest, &mut self.observations, answered) {
                    Ok(outcome) => {
                        action.outcome = Some(outcome);
                        queue::conclude(cx, action, Status::Succeeded);
                    }
                    Err(why) => self.fail(action, request::refusal(answer.code, &why)),
                }
            }
            ExchangeTarget::Observation(key) => {
                let answered = (token, answer);
                self.observations.observed_again(cx, ingest, key, answered);
            }
            ExchangeTarget::Report(part) => self.passive.answered(cx, ingest, (part, answer)),
            ExchangeTarget::Notification(token) => self.take_assembled(token, answer),
            ExchangeTarget::Bootstrap => self.take_bootstrap_answer(answer),
            ExchangeTarget::Update(of) => self.update_answered(of, answer),
        }
    }

    /// Handles a notification whose blocks are all there.
    fn take_assembled(&mut self, token: Token, message: &Message) {
        if self.observations.is_superseded(token) {
            return self.observations.drop_superseded(&mut self.cx);
        }
        let Some(key) = self.observations.end_continued() else {
            return;
        };
        self.note_uplink(Protocol::Lwm2m);
        let (cx, ingest) = (&mut self.cx, &mut self.ingest);
        let outcome = self.observations.take_assembled(cx, ingest, (key, message));
        self.cx.note(StepEventKind::Notified(outcome));
    }

    /// Ends the attempt in flight with an answer that is invalid or must not be used.
    fn unusable(&mut self, code: Code, why: &str) {
        self.exchange
            .note_ending(ExchangeOutcome::Unusable, self.cx.out);
        self.note(TimelineEvent::Answered(code));
        self.refused(code, request::refusal(code, why));
    }

    /// Ends the attempt in flight with an answer that repeating the request would not change.
    fn refused(&mut self, code: Code, outcome: Outcome) {
        let is_before_observing = self.is_before_observing();
        let Some(ended) = self.end_exchange() else {
            return;
        };
        let (cx, ingest) = (&mut self.cx, &mut self.ingest);
        let why = outcome.error.clone().unwrap_or_default();
        match ended.target {
            ExchangeTarget::Action(id) => {
                let Some(action) = self.queue.take(id) else {
                    return;
                };
                // If it refuses to begin or to end an observation, it does not hold one.
                if !is_before_observing && let Some((_, target)) = queue::observation_of(&action) {
                    self.observations.ended(cx, &target);
                }
                self.fail(action, outcome);
            }
            ExchangeTarget::Observation(key) => self.observations.lose(cx, key, &why),
            ExchangeTarget::Report(part) => self.passive.refused(cx, part, (code, &why)),
            ExchangeTarget::Notification(_) => self.observations.missed(cx, ingest, &why),
            ExchangeTarget::Bootstrap => self.miss_bootstrap_answer(&outcome),
            ExchangeTarget::Update(of) => self.update_refused(of, (code, &why)),
        }
    }

    /// Ends the attempt in flight, if there is one, without an answer. The next attempt begins at
    /// the next uplink.
    pub(super) fn unanswered(&mut self, ending: ExchangeOutcome, why: &str) {
        self.exchange.note_ending(ending, self.cx.out);
        self.note(TimelineEvent::GaveUp);
        let is_wanted = !self.is_outdated_for_update();
        let Some(ended) = self.end_exchange() else {
            return;
        };
        match ended.target {
            ExchangeTarget::Report(part) => {
                let read = (part, ended.begun_at);
                self.passive.unanswered(&mut self.cx, read, (ending, why));
                self.save_stale_record();
            }
            // The value is requested again with its observation.
            ExchangeTarget::Notification(_) => {
                self.observations.abandon(&mut self.cx);
            }
            ExchangeTarget::Action(_)
            | ExchangeTarget::Observation(_)
            | ExchangeTarget::Bootstrap => {
                self.end_attempt(&ended, Outcome::failure(why));
            }
            ExchangeTarget::Update(of) => self.update_unanswered(of),
        }
        // If nothing was received since the attempt began, not even an acknowledgement, the device
        // is gone, and no further attempts are spent on it. What is not wanted any more was not
        // retransmitted, so its silence says nothing.
        let is_acknowledged = ending == ExchangeOutcome::NotAnswered;
        if !is_acknowledged && is_wanted && self.cx.registration.note_silence(ended.begun_at) {
            self.queue.hold_back(&ended);
            if ended.as_registered {
                self.observations.hold_back();
                self.passive.stop();
            }
        }
    }

    /// Ends a read for passive reporting that the device acknowledged and does not answer, if
    /// anything else waits for the device.
    pub(super) fn give_way(&mut self) {
        let now = self.cx.now();
        let is_reachable = self.cx.reachability().is_reachable(now);
        if self.exchange.is_patience_over(now)
            && (self.queue.next(&self.cx).is_some()
                || is_reachable && self.observations.has_requests())
        {
            let why = "the device acknowledged the request and did not answer";
            self.unanswered(ExchangeOutcome::NotAnswered, why);
        }
    }

    /// Ends an attempt that may be followed by another. An observation is requested again at the
    /// next uplink, a read for passive reporting at the next update of the registration.
    fn end_attempt(&mut self, ended: &EndedExchange, outcome: Outcome) {
        let (cx, ingest) = (&mut self.cx, &mut self.ingest);
        let why = outcome.error.clone().unwrap_or_default();
        match ended.target {
            ExchangeTarget::Action(id) => self.queue.end_attempt(cx, id, outcome),
            ExchangeTarget::Observation(_) => {}
            ExchangeTarget::Notification(_) => self.observations.missed(cx, ingest, &why),
            ExchangeTarget::Report(part) => self.passive.missed(cx, part, &why),
            ExchangeTarget::Bootstrap => self.miss_bootstrap_answer(&outcome),
            ExchangeTarget::Update(of) => self.update_unanswered(of),
        }
    }

    pub(super) fn end_exchange(&mut self) -> Option<EndedExchange> {
        let bound_peer = self.cx.registration.bound_peer();
        self.exchange.end(bound_peer, self.cx.out)
    }

    fn fail(&mut self, action: Action, outcome: Outcome) {
        queue::fail(&mut self.cx, action, ActionFailure::Refused, outcome);
    }

    /// Adds an event to the timeline of the request in flight.
    fn note(&mut self, what: TimelineEvent) {
        let in_flight = self.exchange.action();
        self.queue.note(in_flight, self.cx.now(), what);
    }

    fn action_in_flight(&self) -> Option<&Action> {
        self.queue.find(self.exchange.action()?)
    }
}
