//! The link to an SMS centre: a session of SMPP, and what is under way over it.
//!
//! ```text
//!   Closed --connect--> Connecting --connected--> Binding --bound--> Bound --stop--> Unbinding
//!     ^                     |                        |                 |                 |
//!     |                     v                        v                 v                 v
//!     +---- back-off, next SMS centre --------------- or the first one again          Stopped
//! ```
//!
//! An SMS is IN PROGRESS on disk before its first part is submitted. A part whose submission has no
//! response is never submitted again; one that was refused for now is, and its SMS waits for the
//! network again if no other part was accepted. The parts of an SMS follow one another.

use std::collections::{BTreeMap, BTreeSet};

use protocol::smpp::message::ShortMessage;
use protocol::smpp::pdu::{Credentials, Pdu, SmppCommand};
use protocol::smpp::receipt::Receipt;
use protocol::smpp::status::{
    ESME_RINVBNDSTS, ESME_RINVCMDID, ESME_RMSGQFUL, ESME_ROK, ESME_RTHROTTLED, ESME_RX_P_APPN,
    ESME_RX_T_APPN,
};
use protocol::sms::parts::EncodedPart;

use super::effect::{
    ConnectionId, HandedIn, LinkEffect, LinkEvent, LossReason, Sender, SmsTask, SubmitOutcome,
};
use super::flow::SubmitFlow;
use super::inbound::{InboundContent, InboundDelivery, InboundQueues};
use super::message::{cancellations, device_of, received, submission};
use crate::back_off::back_off_ms;
use crate::ids::{Msisdn, SmsId};
use crate::limits::{
    SMPP_BACK_OFF_MS_MIN, SMPP_INBOUND_MAX, SMPP_STOP_MS, SMPP_TAKE_EVERY_MS, SMS_TAKEN_MAX,
};
use crate::moment::{Moment, Timestamp};
use crate::sms::{NetworkTask, Sms};

/// The greatest sequence number (SMPP 3.4 section 3.2).
const SEQUENCE_MAX: u32 = 0x7fff_ffff;

/// The rules of a link.
#[derive(Clone, Debug)]
pub struct LinkRules {
    /// How it binds.
    pub credentials: Credentials,
    /// How many SMS centres there are, in the order of preference.
    pub servers: usize,
    /// The submissions without a response at a time.
    pub window: usize,
    /// How long the SMS centre may be silent before it is asked whether it is there.
    pub enquire_link_ms: i64,
    /// How long a response may take.
    pub response_timeout_ms: i64,
    /// The longest pause between two attempts to bind.
    pub back_off_ms_max: i64,
}

/// The link.
#[derive(Debug)]
pub struct SmppLink {
    rules: LinkRules,
    phase: Phase,
    connection: ConnectionId,
    /// The place of the SMS centre that is tried or used.
    server: usize,
    /// Rounds over all SMS centres in which none was bound.
    rounds: u32,
    last_sequence: u32,
    /// The requests without a response, by their sequence number.
    awaited: BTreeMap<u32, Awaited>,
    enquire_at: Timestamp,
    flow: SubmitFlow,
    submitting: BTreeMap<SmsId, Submitting>,
    is_taking: bool,
    take_at: Timestamp,
    inbound: InboundQueues,
    /// When a stop ends in any case.
    stop_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Closed { retry_at: Timestamp },
    Connecting,
    Binding,
    Bound,
    Unbinding,
    Stopped,
}

#[derive(Clone, Copy, Debug)]
struct Awaited {
    until: Timestamp,
    request: Request,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Request {
    Bind,
    Submit(SmsId),
    Cancel,
    Enquire,
    Unbind,
}

/// An SMS that was taken.
#[derive(Debug)]
struct Submitting {
    sms: Sms,
    device: Msisdn,
    parts: Vec<EncodedPart>,
    /// How many parts the SMS centre accepted.
    accepted: u8,
    state: PartState,
}

/// Where its next part is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum PartState {
    /// It is to be submitted.
    Waiting,
    /// It is submitted, and there is no response.
    Submitted,
    /// It is accepted, and that is being stored.
    Storing,
}

impl SmppLink {
    /// A link that connects at the first timeout.
    pub fn new(rules: LinkRules) -> Self {
        let window = rules.window;
        Self {
            rules,
            phase: Phase::Closed {
                retry_at: Timestamp::default(),
            },
            connection: ConnectionId::default(),
            server: 0,
            rounds: 0,
            last_sequence: 0,
            awaited: BTreeMap::new(),
            enquire_at: Timestamp::default(),
            flow: SubmitFlow::new(window),
            submitting: BTreeMap::new(),
            is_taking: false,
            take_at: Timestamp::default(),
            inbound: InboundQueues::default(),
            stop_at: None,
        }
    }

    /// The connection is open.
    pub fn connected(&mut self, m: &Moment, connection: ConnectionId, out: &mut Vec<LinkEffect>) {
        if connection != self.connection || self.phase != Phase::Connecting {
            return;
        }
        self.phase = Phase::Binding;
        self.last_sequence = 0;
        let bind = SmppCommand::BindTransceiver(self.rules.credentials.clone());
        self.request(m, Request::Bind, bind, out);
    }

    /// The connection could not be opened, or was closed by the other side.
    pub fn closed(&mut self, m: &mut Moment, connection: ConnectionId, out: &mut Vec<LinkEffect>) {
        if connection == self.connection {
            self.end(m, LossReason::Closed, out);
        }
    }

    /// A PDU came over a connection.
    pub fn received(
        &mut self,
        m: &mut Moment,
        connection: ConnectionId,
        pdu: Pdu,
        out: &mut Vec<LinkEffect>,
    ) {
        let is_open = matches!(self.phase, Phase::Binding | Phase::Bound | Phase::Unbinding);
        if connection != self.connection || !is_open {
            return;
        }
        self.enquire_at = m.now().plus_ms(self.rules.enquire_link_ms);
        let Pdu {
            sequence,
            status,
            command,
        } = pdu;
        match command {
            SmppCommand::BindTransceiverResp => self.bound(m, sequence, status, out),
            SmppCommand::SubmitSmResp(message_id) => {
                self.submitted(m, sequence, status, message_id, out);
            }
            SmppCommand::GenericNack => self.refused(m, sequence, status, out),
            SmppCommand::EnquireLinkResp | SmppCommand::CancelSmResp => {
                self.awaited.remove(&sequence);
            }
            SmppCommand::UnbindResp => self.unbound(m, out),
            SmppCommand::EnquireLink => {
                respond(sequence, ESME_ROK, SmppCommand::EnquireLinkResp, out);
            }
            SmppCommand::Unbind => {
                respond(sequence, ESME_ROK, SmppCommand::UnbindResp, out);
                out.push(LinkEffect::Close);
                self.end(m, LossReason::Unbound, out);
            }
            SmppCommand::DeliverSm(message) => self.delivered(sequence, &message, out),
            SmppCommand::BindTransceiver(_)
            | SmppCommand::SubmitSm(_)
            | SmppCommand::CancelSm(_)
            | SmppCommand::OtherRequest(_) => {
                respond(sequence, ESME_RINVCMDID, SmppCommand::GenericNack, out);
            }
            SmppCommand::DeliverSmResp | SmppCommand::OtherResponse(_) => {}
        }
        self.proceed(m, out);
    }

    /// SMS were taken from the store; none if it could not be read or written.
    pub fn taken(
        &mut self,
        m: &mut Moment,
        taken: Vec<(NetworkTask, Sms)>,
        out: &mut Vec<LinkEffect>,
    ) {
        self.is_taking = false;
        if taken.is_empty() {
            self.take_at = m.now().plus_ms(SMPP_TAKE_EVERY_MS);
        }
        for (task, sms) in taken {
            match task {
                NetworkTask::Send => self.send(sms, out),
                NetworkTask::Withdraw => self.withdraw(m, &sms, out),
            }
        }
        self.proceed(m, out);
    }

    /// It is stored that a part was accepted. The next part follows, unless the SMS is settled or
    /// gone.
    pub fn part_stored(
        &mut self,
        m: &mut Moment,
        id: SmsId,
        is_open: bool,
        out: &mut Vec<LinkEffect>,
    ) {
        let Some(submitting) = self.submitting.get_mut(&id) else {
            return;
        };
        let is_whole = usize::from(submitting.accepted) >= submitting.parts.len();
        submitting.state = PartState::Waiting;
        if is_whole || !is_open {
            self.submitting.remove(&id);
        }
        self.resume(id, out);
        self.proceed(m, out);
    }

    /// The first message or receipt of a sender was handed in.
    pub fn handed_in(
        &mut self,
        m: &mut Moment,
        sender: &Sender,
        outcome: HandedIn,
        out: &mut Vec<LinkEffect>,
    ) {
        let Some(first) = self.inbound.first(sender) else {
            return;
        };
        let is_receipt = matches!(first.content, InboundContent::Receipt(_));
        if is_receipt && outcome == HandedIn::Unknown {
            // It may be about a part whose response follows.
            let submitted = self.submitted_to(sender);
            if self.inbound.hold(sender, submitted) {
                return;
            }
        }
        let Some(first) = self.inbound.first(sender) else {
            return;
        };
        let status = match outcome {
            HandedIn::Stored => ESME_ROK,
            // It would be delivered again and again.
            HandedIn::Unknown if is_receipt => ESME_ROK,
            HandedIn::Unknown => ESME_RX_P_APPN,
            HandedIn::Refused => ESME_RX_T_APPN,
        };
        out.push(LinkEffect::Report(LinkEvent::Answered(
            first.kind(),
            outcome,
        )));
        if let Some(sequence) = first.sequence {
            respond(sequence, status, SmppCommand::DeliverSmResp, out);
        }
        let next = self.inbound.pop(sender);
        out.extend(next.map(LinkEffect::Store));
        self.proceed(m, out);
    }

    /// Stops: takes no more SMS, lets responses come for a while, and unbinds.
    pub fn stop(&mut self, m: &mut Moment, out: &mut Vec<LinkEffect>) {
        self.stop_at = Some(m.now().plus_ms(SMPP_STOP_MS));
        let untouched = self.submitting.extract_if(.., |_, it| {
            it.state == PartState::Waiting && it.accepted == 0
        });
        out.extend(untouched.map(|(id, _)| LinkEffect::Store(SmsTask::Release(id))));
        match self.phase {
            Phase::Closed { .. } => self.phase = Phase::Stopped,
            Phase::Connecting | Phase::Binding => {
                out.push(LinkEffect::Close);
                self.phase = Phase::Stopped;
            }
            Phase::Bound | Phase::Unbinding | Phase::Stopped => {}
        }
        self.proceed(m, out);
    }

    /// What is due.
    pub fn handle_timeout(&mut self, m: &mut Moment, out: &mut Vec<LinkEffect>) {
        let now = m.now();
        if self.stop_at.is_some_and(|at| at <= now) && self.phase != Phase::Stopped {
            out.push(LinkEffect::Close);
            self.forget_session(out);
            self.phase = Phase::Stopped;
            return;
        }
        if let Phase::Closed { retry_at } = self.phase
            && retry_at <= now
        {
            self.phase = Phase::Connecting;
            self.connection.0 += 1;
            out.push(LinkEffect::Connect(self.connection, self.server));
        }
        if self.awaited.values().any(|awaited| awaited.until <= now) {
            out.push(LinkEffect::Close);
            self.end(m, LossReason::Silent, out);
        }
        if self.phase == Phase::Bound && self.enquire_at <= now {
            self.enquire_at = now.plus_ms(self.rules.enquire_link_ms);
            self.request(m, Request::Enquire, SmppCommand::EnquireLink, out);
        }
        self.proceed(m, out);
    }

    /// When [`Self::handle_timeout`] has something to do.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        let of_phase = match self.phase {
            Phase::Closed { retry_at } => Some(retry_at),
            Phase::Bound => Some(self.enquire_at),
            Phase::Connecting | Phase::Binding | Phase::Unbinding | Phase::Stopped => None,
        };
        let responses = self.awaited.values().map(|awaited| awaited.until).min();
        let work = (self.phase == Phase::Bound && self.has_work())
            .then(|| self.take_at.max(self.flow.paused_until()));
        let stop = self.stop_at.filter(|_| self.phase != Phase::Stopped);
        [of_phase, responses, work, stop]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether SMS can be submitted and messages come.
    pub fn is_bound(&self) -> bool {
        self.phase == Phase::Bound
    }

    /// Whether it has stopped.
    pub fn is_stopped(&self) -> bool {
        self.phase == Phase::Stopped
    }

    /// The submissions without a response.
    pub fn unanswered(&self) -> usize {
        let is_submit = |it: &&Awaited| matches!(it.request, Request::Submit(_));
        self.awaited.values().filter(is_submit).count()
    }

    fn bound(&mut self, m: &mut Moment, sequence: u32, status: u32, out: &mut Vec<LinkEffect>) {
        let was = self.awaited.remove(&sequence);
        if was.is_none_or(|it| it.request != Request::Bind) {
            return;
        }
        if status != ESME_ROK {
            out.push(LinkEffect::Close);
            return self.not_bound(m, Some(status), out);
        }
        self.phase = Phase::Bound;
        self.rounds = 0;
        self.take_at = m.now();
        out.push(LinkEffect::Report(LinkEvent::Bound(self.server)));
    }

    /// The response to a submission.
    fn submitted(
        &mut self,
        m: &mut Moment,
        sequence: u32,
        status: u32,
        message_id: Box<str>,
        out: &mut Vec<LinkEffect>,
    ) {
        let Some(Request::Submit(id)) = self.awaited.get(&sequence).map(|it| it.request) else {
            return;
        };
        if status != ESME_ROK {
            return self.refused(m, sequence, status, out);
        }
        self.awaited.remove(&sequence);
        self.flow.accepted();
        out.push(reported(SubmitOutcome::Accepted));
        if let Some(submitting) = self.submitting.get_mut(&id) {
            submitting.accepted = submitting.accepted.saturating_add(1);
            submitting.state = PartState::Storing;
            let number = submitting.accepted;
            out.push(LinkEffect::Store(SmsTask::AcceptPart(
                id, number, message_id,
            )));
        }
    }

    /// A request was refused.
    fn refused(&mut self, m: &mut Moment, sequence: u32, status: u32, out: &mut Vec<LinkEffect>) {
        let Some(awaited) = self.awaited.remove(&sequence) else {
            return;
        };
        let id = match awaited.request {
            Request::Submit(id) => id,
            Request::Bind => {
                out.push(LinkEffect::Close);
                return self.not_bound(m, Some(status), out);
            }
            Request::Unbind => return self.unbound(m, out),
            Request::Cancel | Request::Enquire => return,
        };
        let Some(submitting) = self.submitting.get_mut(&id) else {
            return;
        };
        match status {
            ESME_RTHROTTLED | ESME_RMSGQFUL | ESME_RINVBNDSTS => {
                self.flow.throttled(m.now());
                out.push(reported(SubmitOutcome::Throttled));
                submitting.state = PartState::Waiting;
                if submitting.accepted == 0 {
                    self.submitting.remove(&id);
                    self.take_at = self.flow.paused_until();
                    out.push(LinkEffect::Store(SmsTask::Release(id)));
                }
            }
            _ => {
                out.push(reported(SubmitOutcome::Refused));
                self.submitting.remove(&id);
                let reason = format!("refused by the SMS centre with command_status {status:#x}");
                out.push(LinkEffect::Store(SmsTask::Refuse(id, reason.into())));
            }
        }
        self.resume(id, out);
    }

    /// A message of a device or a receipt.
    fn delivered(&mut self, sequence: u32, message: &ShortMessage, out: &mut Vec<LinkEffect>) {
        let mut answer = |status| respond(sequence, status, SmppCommand::DeliverSmResp, out);
        if self.phase == Phase::Binding {
            return answer(ESME_RINVBNDSTS);
        }
        if self.inbound.count() >= SMPP_INBOUND_MAX {
            return answer(ESME_RX_T_APPN);
        }
        let content = match message.is_receipt() {
            true => Some(InboundContent::Receipt(Box::new(Receipt::of(message)))),
            false => received(message).map(|it| InboundContent::Message(Box::new(it))),
        };
        let sender = device_of(message);
        let content = content.filter(|_| sender.is_some() || message.is_receipt());
        let Some(content) = content else {
            return answer(ESME_RX_P_APPN);
        };
        let inbound = InboundDelivery {
            sequence: Some(sequence),
            content,
        };
        let task = self.inbound.push(&sender, inbound);
        out.extend(task.map(LinkEffect::Store));
    }

    /// Prepares an SMS that was taken.
    fn send(&mut self, sms: Sms, out: &mut Vec<LinkEffect>) {
        let device = sms.dest.as_deref().and_then(|it| Msisdn::parse(it).ok());
        let encoded = sms.encoded();
        let Some((device, encoded)) = device.zip(encoded) else {
            let reason = "the device has no msisdn".into();
            return out.push(LinkEffect::Store(SmsTask::Refuse(sms.id, reason)));
        };
        if self.phase != Phase::Bound || self.stop_at.is_some() {
            return out.push(LinkEffect::Store(SmsTask::Release(sms.id)));
        }
        let submitting = Submitting {
            device,
            parts: encoded.parts,
            accepted: 0,
            state: PartState::Waiting,
            sms,
        };
        self.submitting.insert(submitting.sms.id, submitting);
    }

    /// Has the SMS centre delete a cancelled SMS. Nobody waits for the outcome.
    fn withdraw(&mut self, m: &Moment, sms: &Sms, out: &mut Vec<LinkEffect>) {
        if self.phase != Phase::Bound {
            return;
        }
        for cancellation in cancellations(sms) {
            let cancel = SmppCommand::CancelSm(Box::new(cancellation));
            self.request(m, Request::Cancel, cancel, out);
        }
    }

    /// Submits what may be submitted now, takes more, and unbinds if it is to stop.
    fn proceed(&mut self, m: &Moment, out: &mut Vec<LinkEffect>) {
        if self.phase != Phase::Bound {
            return;
        }
        let is_paused = m.now() < self.flow.paused_until();
        while !is_paused && self.unanswered() < self.flow.allowed() {
            let mut all = self.submitting.iter();
            let waiting = all.find(|(_, it)| it.state == PartState::Waiting);
            let Some(id) = waiting.map(|(id, _)| *id) else {
                break;
            };
            self.submit(m, id, out);
        }
        if self.stop_at.is_some() {
            if self.submitting.is_empty() && self.inbound.count() == 0 {
                self.phase = Phase::Unbinding;
                self.request(m, Request::Unbind, SmppCommand::Unbind, out);
            }
            return;
        }
        if self.can_take() && !is_paused && self.take_at <= m.now() {
            let free = self.flow.allowed().saturating_sub(self.submitting.len());
            let max = u32::try_from(free).unwrap_or(SMS_TAKEN_MAX);
            self.is_taking = true;
            out.push(LinkEffect::Store(SmsTask::Take(max.min(SMS_TAKEN_MAX))));
        }
    }

    /// Whether SMS could be taken or submitted.
    fn has_work(&self) -> bool {
        let mut all = self.submitting.values();
        let may_submit = self.unanswered() < self.flow.allowed();
        self.can_take() || may_submit && all.any(|it| it.state == PartState::Waiting)
    }

    fn can_take(&self) -> bool {
        let has_room = self.submitting.len() < self.flow.allowed();
        !self.is_taking && self.stop_at.is_none() && has_room
    }

    /// Submits the next part of an SMS. It is on the air from now on.
    fn submit(&mut self, m: &Moment, id: SmsId, out: &mut Vec<LinkEffect>) {
        let Some(submitting) = self.submitting.get_mut(&id) else {
            return;
        };
        let part = submitting.parts.get(usize::from(submitting.accepted));
        let Some((submitted, part)) = submitting.sms.submitted().zip(part) else {
            self.submitting.remove(&id);
            return;
        };
        let has_ended = submitted.expires_at <= m.now();
        let numbered = (submitting.accepted.saturating_add(1), part);
        let message = submission(&submitting.sms, submitted, numbered);
        let command = SmppCommand::SubmitSm(Box::new(message));
        let pdu = Pdu::request(1, command);
        let unencodable = pdu.encode().err();
        if has_ended || unencodable.is_some() {
            let is_untouched = submitting.accepted == 0;
            self.submitting.remove(&id);
            if let Some(why) = unencodable {
                out.push(LinkEffect::Store(SmsTask::Refuse(
                    id,
                    why.to_string().into(),
                )));
            } else if is_untouched {
                out.push(LinkEffect::Store(SmsTask::Release(id)));
            }
            return;
        }
        submitting.state = PartState::Submitted;
        self.request(m, Request::Submit(id), pdu.command, out);
    }

    fn request(
        &mut self,
        m: &Moment,
        request: Request,
        command: SmppCommand,
        out: &mut Vec<LinkEffect>,
    ) {
        self.last_sequence = match self.last_sequence {
            SEQUENCE_MAX => 1,
            last => last + 1,
        };
        let until = m.now().plus_ms(self.rules.response_timeout_ms);
        self.awaited
            .insert(self.last_sequence, Awaited { until, request });
        out.push(LinkEffect::Send(Pdu::request(self.last_sequence, command)));
    }

    /// The SMS of which a part is submitted, and what became of it is not stored yet: those to a
    /// device, or all, if the number is that of none of them.
    fn submitted_to(&self, sender: &Sender) -> BTreeSet<SmsId> {
        let open = self.submitting.iter();
        let open = open.filter(|(_, it)| it.state != PartState::Waiting);
        let is_its = |it: &Submitting| Some(&it.device) == sender.as_ref();
        let its: BTreeSet<SmsId> = open
            .clone()
            .filter(|(_, it)| is_its(it))
            .map(|(id, _)| *id)
            .collect();
        match its.is_empty() {
            true => open.map(|(id, _)| *id).collect(),
            false => its,
        }
    }

    /// Hands receipts in again that waited for what became of an SMS.
    fn resume(&mut self, id: SmsId, out: &mut Vec<LinkEffect>) {
        let tasks = self.inbound.resume(id);
        out.extend(tasks.into_iter().map(LinkEffect::Store));
    }

    /// The SMS centre accepts the end of the session.
    fn unbound(&mut self, m: &mut Moment, out: &mut Vec<LinkEffect>) {
        if self.phase == Phase::Unbinding {
            out.push(LinkEffect::Close);
            self.end(m, LossReason::Unbound, out);
        }
    }

    /// The connection has ended.
    fn end(&mut self, m: &mut Moment, reason: LossReason, out: &mut Vec<LinkEffect>) {
        match self.phase {
            Phase::Connecting | Phase::Binding => self.not_bound(m, None, out),
            Phase::Bound => {
                out.push(LinkEffect::Report(LinkEvent::Lost(reason)));
                self.forget_session(out);
                // The preferred one again, after a moment in which it may come back.
                self.server = 0;
                self.phase = match self.stop_at {
                    Some(_) => Phase::Stopped,
                    None => Phase::Closed {
                        retry_at: m.now().plus_ms(back_off_ms(
                            m,
                            SMPP_BACK_OFF_MS_MIN,
                            SMPP_BACK_OFF_MS_MIN,
                            0,
                        )),
                    },
                };
            }
            Phase::Unbinding => {
                self.forget_session(out);
                self.phase = Phase::Stopped;
            }
            Phase::Closed { .. } | Phase::Stopped => {}
        }
    }

    /// No session began: the next SMS centre is tried at once, and after the last the first again
    /// after a pause.
    fn not_bound(&mut self, m: &mut Moment, status: Option<u32>, out: &mut Vec<LinkEffect>) {
        out.push(LinkEffect::Report(LinkEvent::NotBound(self.server, status)));
        self.awaited.clear();
        self.server += 1;
        let pause_ms = if self.server < self.rules.servers {
            0
        } else {
            self.server = 0;
            let rounds = self.rounds;
            self.rounds = self.rounds.saturating_add(1);
            back_off_ms(m, SMPP_BACK_OFF_MS_MIN, self.rules.back_off_ms_max, rounds)
        };
        self.phase = Phase::Closed {
            retry_at: m.now().plus_ms(pause_ms),
        };
    }

    /// Nothing of the session is awaited any more. What became of the parts that are submitted and
    /// not answered is unknown, and they are never submitted again.
    fn forget_session(&mut self, out: &mut Vec<LinkEffect>) {
        self.awaited.clear();
        self.inbound.disconnect();
        let ended = self.submitting.extract_if(.., |_, it| match it.state {
            PartState::Submitted => true,
            PartState::Waiting => it.accepted == 0,
            PartState::Storing => false,
        });
        for (id, it) in ended {
            out.push(match it.state {
                PartState::Submitted | PartState::Storing => reported(SubmitOutcome::Unknown),
                PartState::Waiting => LinkEffect::Store(SmsTask::Release(id)),
            });
        }
    }
}

fn respond(sequence: u32, status: u32, command: SmppCommand, out: &mut Vec<LinkEffect>) {
    out.push(LinkEffect::Send(Pdu {
        sequence,
        status,
        command,
    }));
}

fn reported(outcome: SubmitOutcome) -> LinkEffect {
    LinkEffect::Report(LinkEvent::Submitted(outcome))
}

#[cfg(test)]
mod tests;
