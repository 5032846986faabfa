//! One step of a device: each input goes to the part it is for, and finally the next request to the
//! device begins.
//!
//! Where a step crosses parts, one part returns what happened and the step passes it to the next.

mod bootstrapping;
mod downlink;
mod updating;
mod uplink;

use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageKind};

use crate::action::timeline::{TimelineEvent, WaitReason};
use crate::action::{Action, Mode, NewAction, Outcome, Protocol, Status};
use crate::datagram::Datagram;
use crate::device::bootstrap::RunningBootstrap;
use crate::device::bootstrap_pack::ServedPack;
use crate::device::busy::{Busy, Idle};
use crate::device::context::Context;
use crate::device::exchange::{Exchange, ExchangeRequest, ExchangeTarget};
use crate::device::formats::AttemptState;
use crate::device::ingest::Ingest;
use crate::device::messages::{self, Messages};
use crate::device::observations::Observations;
use crate::device::passive::PassiveReading;
use crate::device::queue::{self, Accepted, ActionQueue};
use crate::device::refusal::SubmitRefusal;
use crate::device::rejections::RejectedMessage;
use crate::device::request::{OutgoingRequest, RequestContext};
use crate::diagnostic;
use crate::directory::sms::waking::{self, SleepingDevice, WakeUpSms, WakingAction};
use crate::effect::Effects;
use crate::moment::Moment;
use crate::peer::Peer;
use crate::policy::CustomerPolicy;
use crate::route::{CoapRoute, DeviceOperation};
use crate::step_event::UplinkKind;

/// The parts of a device in a step. A part depends only on those before it.
pub(super) struct Step<'s> {
    pub(super) cx: Context<'s>,
    pub(super) messages: Messages<'s>,
    ingest: Ingest<'s>,
    exchange: &'s mut Exchange,
    bootstrap: &'s mut Option<Box<RunningBootstrap>>,
    bootstrap_pack: &'s mut Option<Box<ServedPack>>,
    observations: Observations<'s>,
    passive: PassiveReading<'s>,
    pub(super) queue: &'s mut ActionQueue,
}

impl<'s> Step<'s> {
    pub(super) fn new(
        (m, out): (&'s mut Moment, &'s mut Effects),
        policy: &'s CustomerPolicy,
        idle: &'s mut Idle,
        busy: &'s mut Busy,
    ) -> Self {
        Self {
            cx: Context {
                m,
                out,
                policy,
                next_message_id: &mut idle.next_message_id,
                registration: &mut idle.registration,
                update: &mut busy.update,
                reporting: None,
            },
            messages: Messages::new(&mut idle.recent, &mut busy.other_peer),
            ingest: Ingest::new(&mut idle.rate, &mut busy.incoming_body, &mut busy.retained),
            exchange: &mut busy.exchange,
            bootstrap: &mut busy.bootstrap,
            bootstrap_pack: &mut busy.bootstrap_pack,
            observations: Observations::new(&mut idle.observed, &mut busy.requests),
            passive: PassiveReading::new(&mut idle.capabilities, &mut busy.round),
            queue: &mut busy.queue,
        }
    }

    /// Handles a message that is not a duplicate.
    pub(super) fn handle_inbound(&mut self, datagram: &Datagram) -> UplinkKind {
        let message = &datagram.message;
        match message.kind {
            MessageKind::Acknowledgement | MessageKind::Reset => {
                return self.take_named_answer(datagram);
            }
            // RFC 7252 section 4.3: a ping.
            MessageKind::Confirmable if message.code == Code::EMPTY => {
                self.messages.reject(&mut self.cx, datagram);
                return UplinkKind::Ping;
            }
            MessageKind::Confirmable | MessageKind::NonConfirmable => {}
        }
        if !message.code.is_request() {
            return self.take_named_answer(datagram);
        }
        let route = CoapRoute::of(message);
        match route {
            CoapRoute::Send | CoapRoute::Data => self.take_report(route, datagram),
            CoapRoute::Register
            | CoapRoute::Update(_)
            | CoapRoute::Deregister(_)
            | CoapRoute::Bootstrap
            | CoapRoute::Download(..)
            | CoapRoute::BootstrapPack
            | CoapRoute::NotAllowed(_)
            | CoapRoute::UnknownLocation
            | CoapRoute::Unknown => self.take_request(route, datagram),
        }
    }

    /// Handles an answer. What is published names it, so that the events of one message are known
    /// as such after a restart, and do not displace those of many messages.
    fn take_named_answer(&mut self, datagram: &Datagram) -> UplinkKind {
        self.cx.reporting = Some(messages::mark_of(datagram));
        let kind = self.take_answer(datagram);
        self.cx.reporting = None;
        kind
    }

    /// Handles values or data. What is published names the message, which is recognised by that if
    /// it is repeated after a restart.
    fn take_report(&mut self, route: CoapRoute, datagram: &Datagram) -> UplinkKind {
        let may_report = self.may_send_blocks(route, datagram);
        if may_report && self.messages.was_stored(&self.cx, datagram) {
            return self.accept_again(route, datagram);
        }
        self.cx.reporting = Some(messages::mark_of(datagram));
        let kind = self.take_request(route, datagram);
        self.cx.reporting = None;
        kind
    }

    /// Handles a request, which may be a block of one.
    fn take_request(&mut self, route: CoapRoute, datagram: &Datagram) -> UplinkKind {
        let message = &datagram.message;
        if message.block1().is_none() || !self.may_send_blocks(route, datagram) {
            return self.handle_request(route, datagram);
        }
        match self.gather(datagram) {
            Some(whole) => {
                let kind = self.handle_request(route, &whole);
                self.messages.remember_alike(&self.cx, datagram, &whole);
                kind
            }
            None => UplinkKind::BlockPart,
        }
    }

    fn handle_request(&mut self, route: CoapRoute, datagram: &Datagram) -> UplinkKind {
        match route {
            // A sender who would be rejected anyway is not answered 4.13.
            CoapRoute::Register | CoapRoute::Update(_) | CoapRoute::Send
                if self.is_too_long(&datagram.message) && self.may_send_blocks(route, datagram) =>
            {
                self.refuse_length(datagram);
                UplinkKind::Unsupported
            }
            CoapRoute::Register => {
                self.register(datagram);
                UplinkKind::Register
            }
            CoapRoute::Update(location) => {
                self.update(datagram, location);
                UplinkKind::Update
            }
            CoapRoute::Deregister(location) => {
                self.deregister(datagram, location);
                UplinkKind::Deregister
            }
            CoapRoute::Send => {
                self.take_send(datagram);
                UplinkKind::Send
            }
            CoapRoute::Data => {
                self.take_data(datagram);
                UplinkKind::CoapData
            }
            CoapRoute::Bootstrap => {
                self.request_bootstrap(datagram);
                UplinkKind::Bootstrap
            }
            CoapRoute::BootstrapPack => {
                self.request_bootstrap_pack(datagram);
                UplinkKind::Bootstrap
            }
            CoapRoute::Download(..) | CoapRoute::Unknown => {
                let (code, text) = (Code::NOT_FOUND, diagnostic::NO_RESOURCE);
                self.refuse(datagram, (code, text), "there is no such resource");
                UplinkKind::Unsupported
            }
            CoapRoute::UnknownLocation => {
                let why = "it names no registration";
                self.refuse(datagram, (Code::NOT_FOUND, diagnostic::REGISTER_AGAIN), why);
                UplinkKind::Unsupported
            }
            CoapRoute::NotAllowed(_) => {
                let (code, text) = (Code::METHOD_NOT_ALLOWED, diagnostic::NO_METHOD);
                self.refuse(datagram, (code, text), "the resource has no such method");
                UplinkKind::Unsupported
            }
        }
    }

    /// Creates an action request. One whose value does not fit its resource is accepted, and fails
    /// in the same step. The device is woken by this SMS for it, if there is one.
    pub(super) fn submit(
        &mut self,
        new: NewAction,
        waking: Option<WakeUpSms>,
    ) -> Result<Accepted, SubmitRefusal> {
        let in_flight = self.exchange.action();
        let mut action = self.queue.admit(&mut self.cx, new, in_flight)?;
        let begins_at_once = waking.is_none()
            && self.exchange.is_idle()
            && self.queue.begins_at_once(&self.cx, &action);
        if begins_at_once {
            action.status = Status::InProgress;
        }
        let (id, status) = (action.id, action.status);
        match self.request_context().check(&action) {
            Ok(()) => {
                action.woken_by = waking.as_ref().map(WakeUpSms::id);
                self.note_waiting(&mut action);
                self.queue.push(&mut self.cx, action);
                if let Some(WakeUpSms::New(sms)) = waking {
                    self.cx.out.save_sms(*sms);
                }
                self.begin_next();
            }
            Err(unfit) => {
                self.cx.out.save_action(None, &action);
                let outcome = Outcome::failure(&unfit.why);
                queue::fail(&mut self.cx, action, unfit.failure, outcome);
            }
        }
        Ok(Accepted { id, status })
    }

    /// Creates an action request, and wakes the device for it if it sleeps.
    pub(super) fn submit_waking(
        &mut self,
        waking: WakingAction,
    ) -> Result<Accepted, SubmitRefusal> {
        waking::check(&waking.facts)?;
        if !self.cx.reachability().sleeps(self.cx.now()) {
            return self.submit(waking.new, None);
        }
        let device = SleepingDevice {
            heard_at: self.cx.registration.last_seen_at(),
            woken_by: self.queue.actions().filter_map(|it| it.woken_by).max(),
        };
        let expires_at = queue::expiry_of(&self.cx, &waking.new);
        let rules = self.cx.rules().limits.sms;
        let stored = (&waking.facts, waking.sms);
        let sms = waking::wake(self.cx.m, stored, device, expires_at, rules)?;
        self.submit(waking.new, Some(sms))
    }

    /// Notes why a request that is to be sent now is not sent at once.
    fn note_waiting(&self, action: &mut Action) {
        let now = self.cx.now();
        let deferred = action.is_deferred(now).then_some(WaitReason::NotBefore);
        let obstacle = self.cx.reachability().obstacle(&action.request, now);
        let in_flight = self.exchange.target().map(ExchangeTarget::wait_reason);
        let woken = action.woken_by.map(|_| WaitReason::Uplink);
        match (action.mode, deferred.or(obstacle).or(in_flight).or(woken)) {
            (Mode::SendNow, Some(why)) => action.timeline.note(now, TimelineEvent::Waiting(why)),
            (Mode::SendNow, None) | (Mode::SendWhenActive, _) => {}
        }
    }

    pub(super) fn settle_restored(&mut self) {
        let in_flight = self.exchange.action();
        self.queue.settle_restored(&mut self.cx, in_flight);
    }

    pub(super) fn expire_actions(&mut self) {
        let in_flight = self.exchange.action();
        self.queue.expire(&mut self.cx, in_flight);
    }

    pub(super) fn release_timed(&mut self) {
        self.queue.release_timed(&self.cx);
    }

    /// Forgets what was remembered only until now.
    pub(super) fn forget(&mut self) {
        if self.ingest.forget(self.cx.now()) {
            self.messages.forget_other_peer();
        }
        self.forget_bootstrap_pack();
    }

    /// Begins the next exchange, unless one is in flight. During a bootstrap that is its next
    /// request. The order of others: the rest of a notification, which the device is in the middle
    /// of, then the oldest request that is ready and can be sent, then observations to renew, then
    /// what its firmware update needs, then reads because the device registered or updated its
    /// registration. After the rest of a notification a request goes first.
    pub(super) fn begin_next(&mut self) {
        self.give_way();
        while self.exchange.is_idle() {
            if self.bootstrap.is_some() {
                if self.continue_bootstrap() {
                    continue;
                }
                break;
            }
            let is_reachable = self.cx.reachability().is_reachable(self.cx.now());
            let is_turn = is_reachable && self.observations.is_turn_of_notification();
            if is_turn && self.continue_notification() {
                continue;
            }
            if self.begin_action() {
                self.observations.note_turn_of_action();
                continue;
            }
            if !is_reachable {
                break;
            }
            if self.continue_notification() {
                continue;
            }
            let next = self.observations.next_request(&mut self.cx);
            let next = next.or_else(|| self.next_update_request());
            let next = next.or_else(|| {
                let observations = &self.observations;
                self.passive.next_request(&mut self.cx, observations)
            });
            let Some((target, message)) = next else {
                break;
            };
            let outgoing = ExchangeRequest {
                target,
                trace: None,
                to: None,
                state: AttemptState::default(),
            };
            match self.upload_of(target) {
                Some(body) => self.begin_upload(outgoing, message, body),
                None => self.exchange.begin(&mut self.cx, outgoing, message),
            }
        }
        // What the device cannot be requested now is dropped.
        if self.exchange.is_idle() {
            self.observations.drop_notified();
            self.passive.stop();
        }
        self.hold_back_update();
    }

    /// Requests the further blocks of the next notification. Returns whether there is one.
    fn continue_notification(&mut self) -> bool {
        let Some((request, first)) = self.observations.next_continuation(&mut self.cx) else {
            return false;
        };
        let outgoing = ExchangeRequest {
            target: ExchangeTarget::Notification(first.token),
            trace: None,
            to: None,
            state: AttemptState::default(),
        };
        let (cx, part) = (&mut self.cx, (request, &first));
        if let Err(fault) = self.exchange.continue_notification(cx, outgoing, part) {
            let (ingest, why) = (&mut self.ingest, fault.to_string());
            self.observations.missed(cx, ingest, &why);
        }
        true
    }

    /// Begins an attempt at the next request. Returns whether there is one.
    fn begin_action(&mut self) -> bool {
        let Some(action) = self.queue.next(&self.cx) else {
            return false;
        };
        let id = action.id;
        let to = self.cx.reachability().peer_for(&action.request);
        let is_elsewhere = action.protocol() != Protocol::Lwm2m;
        let outgoing = ExchangeRequest {
            target: ExchangeTarget::Action(id),
            trace: Some(action.trace),
            to: to.filter(|_| is_elsewhere),
            state: AttemptState::default(),
        };
        match self.outgoing_request_of(id, AttemptState::default()) {
            Some(Ok(leaving)) => {
                self.queue.begin_attempt(&mut self.cx, id);
                match leaving {
                    OutgoingRequest::Message(message) => {
                        self.exchange.begin(&mut self.cx, outgoing, message);
                    }
                    OutgoingRequest::Bytes(bytes) => {
                        self.exchange.send_udp(&mut self.cx, outgoing, bytes)
                    }
                }
            }
            Some(Err(unfit)) => {
                if let Some(action) = self.queue.take(id) {
                    let outcome = Outcome::failure(&unfit.why);
                    queue::fail(&mut self.cx, action, unfit.failure, outcome);
                }
            }
            None => {}
        }
        true
    }

    fn request_context(&mut self) -> RequestContext<'_, 's> {
        RequestContext {
            cx: &mut self.cx,
            observations: &self.observations,
            queue: self.queue,
        }
    }

    fn answer(&mut self, datagram: &Datagram, code: Code) {
        self.messages.answer(&mut self.cx, datagram, code);
    }

    /// Answers a request with an error and a diagnostic text, and logs the reason.
    fn refuse(&mut self, datagram: &Datagram, answer: (Code, &str), why: &str) {
        self.log_rejection(datagram, Some(answer.0), why);
        self.messages.refuse(&mut self.cx, datagram, answer);
    }

    /// Answers that the device sends too often, and logs the reason.
    fn put_off(&mut self, datagram: &Datagram, why: &str) {
        self.log_rejection(datagram, Some(Code::SERVICE_UNAVAILABLE), why);
        Messages::put_off(&mut self.cx, datagram);
    }

    /// Logs that a message was rejected, but not each time.
    fn log_rejection(&mut self, datagram: &Datagram, answer: Option<Code>, why: &str) {
        let operation = DeviceOperation::of(&datagram.message);
        self.note_rejected((operation, datagram.peer), answer, why);
    }

    /// Logs that something a peer wanted was rejected, but not each time.
    pub(super) fn note_rejected(
        &mut self,
        (operation, from): (DeviceOperation, Peer),
        answer: Option<Code>,
        why: &str,
    ) {
        let rejected = RejectedMessage {
            operation,
            from,
            registered_at: self.cx.registration.bound_peer(),
            answer,
            why: why.into(),
        };
        self.ingest.log_rejection(&mut self.cx, rejected);
    }

    /// Logs the rejected messages that were counted until now.
    pub(super) fn log_unlogged_rejections(&mut self) {
        self.ingest.log_unlogged_rejections(&mut self.cx);
    }

    /// Whether a message exceeds the limit for the data of a device.
    fn is_too_long(&self, message: &Message) -> bool {
        message.payload.len() > self.cx.rules().limits.data_bytes_max
    }

    /// Saves the record if something of it that must not be lost changed since it was saved.
    pub(super) fn save_unsaved_record(&mut self) {
        if self.cx.registration.must_be_saved() {
            self.save_record();
        }
    }

    fn save_record(&mut self) {
        self.observations.save_record(&mut self.cx);
    }

    fn save_stale_record(&mut self) {
        if self.cx.registration.is_stale(self.cx.now()) {
            self.save_record();
        }
    }
}
