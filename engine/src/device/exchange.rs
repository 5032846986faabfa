//! The one exchange in flight: what the device is requested, at which peer, and how the exchange
//! continues until it ends with an answer, a Reset or a timeout (RFC 7252 section 4.2, NSTART is 1;
//! RFC 7959).

use std::ops::Range;

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::exchange::GiveUp;
use protocol::coap::message::Message;
use protocol::coap::token::Token;
use protocol::coap::transfer::{
    FreshIds, Transfer, TransferFault, TransferReception, TransferTimeout, UploadPosition,
};
use protocol::lwm2m::payload::formats::WriteMethod;

use crate::action::timeline::WaitReason;
use crate::datagram::Datagram;
use crate::device::activity::InFlight;
use crate::device::context::Context;
use crate::device::formats::{AttemptState, FormatSet, WrittenAttributes};
use crate::effect::{Effect, Effects, Outbound};
use crate::ids::{ActionId, CampaignId, TraceId};
use crate::limits::DEPARTURE_MS;
use crate::moment::Timestamp;
use crate::peer::Peer;
use crate::step_event::{ExchangeOutcome, ExchangePurpose, StepEventKind};

/// The attempt in flight, if there is one.
#[derive(Default)]
pub(super) struct Exchange {
    attempt: Option<Box<Attempt>>,
}

/// What is requested, where, and for whom.
#[derive(Clone, Copy)]
pub(super) struct ExchangeRequest {
    pub(super) target: ExchangeTarget,
    /// The trace of the call behind it.
    pub(super) trace: Option<TraceId>,
    /// The only peer an answer is accepted from; if none, where the device is registered.
    pub(super) to: Option<Peer>,
    /// How far the attempt is.
    pub(super) state: AttemptState,
}

/// The purpose of an attempt.
#[derive(Clone, Copy)]
pub(super) enum ExchangeTarget {
    /// A request of a caller.
    Action(ActionId),
    /// An observation to be requested again, by the request that began it.
    Observation(ActionId),
    /// A read because the device registered or updated its registration.
    Report(ReadPart),
    /// The further blocks of a notification, by its token.
    Notification(Token),
    /// The next request of a bootstrap.
    Bootstrap,
    /// The firmware update of a campaign, which may have ended since.
    Update(CampaignId),
}

/// What one request of a round of reads covers.
#[derive(Clone, Copy)]
pub(super) enum ReadPart {
    /// One object.
    Object(u16),
    /// All remaining objects.
    Rest,
}

/// An exchange that is over.
pub(super) struct EndedExchange {
    pub(super) target: ExchangeTarget,
    pub(super) begun_at: Timestamp,
    /// Whether the request went to where the device is registered.
    pub(super) as_registered: bool,
    /// The token of its request, if it had one.
    pub(super) token: Option<Token>,
}

/// The attempt in flight.
struct Attempt {
    /// The messages of a CoAP exchange; none for a bare datagram.
    transfer: Option<Transfer>,
    request: ExchangeRequest,
    /// The format the message requests or carries.
    format: Option<ContentFormat>,
    /// The method of the message.
    method: Code,
    begun_at: Timestamp,
    patience: Patience,
}

/// How long an exchange keeps others waiting.
#[derive(Clone, Copy)]
enum Patience {
    /// Until its transfer ends.
    Full,
    /// The device acknowledged a read for passive reporting: until this time.
    Until(Timestamp),
    /// It ends as soon as anything else waits for the device.
    Over,
}

impl ExchangeTarget {
    /// What a request waits for while this is in flight.
    pub(super) fn wait_reason(self) -> WaitReason {
        match self {
            Self::Action(_) => WaitReason::Request,
            Self::Observation(_) => WaitReason::Observation,
            Self::Report(_) => WaitReason::PassiveReporting,
            Self::Notification(_) => WaitReason::Notification,
            Self::Bootstrap => WaitReason::Bootstrap,
            Self::Update(_) => WaitReason::FirmwareUpdate,
        }
    }

    fn purpose(self) -> ExchangePurpose {
        match self {
            Self::Action(_) => ExchangePurpose::Action,
            Self::Observation(_) | Self::Notification(_) => ExchangePurpose::Observation,
            Self::Report(_) => ExchangePurpose::Report,
            Self::Bootstrap => ExchangePurpose::Bootstrap,
            Self::Update(_) => ExchangePurpose::FirmwareUpdate,
        }
    }
}

impl Exchange {
    /// Begins an exchange. If it has a peer of its own, answers from there are accepted while it
    /// lasts.
    pub(super) fn begin(
        &mut self,
        cx: &mut Context<'_>,
        outgoing: ExchangeRequest,
        message: Message,
    ) {
        let (format, method) = (format_in(&message), message.code);
        let rules = cx.rules().transfers();
        let transfer = Transfer::begin(cx.now().as_ms(), &rules, message, cx.m.next_u32());
        self.begin_transfer(cx, outgoing, (transfer, format, method));
    }

    /// Begins to request the further blocks of a notification, unless its first block is invalid.
    pub(super) fn continue_notification(
        &mut self,
        cx: &mut Context<'_>,
        outgoing: ExchangeRequest,
        part: (Message, &Message),
    ) -> Result<(), TransferFault> {
        let (now_ms, jitter) = (cx.now().as_ms(), cx.m.next_u32());
        let rules = cx.rules().transfers();
        let transfer = Transfer::continue_notification(now_ms, &rules, part, jitter)?;
        self.begin_transfer(cx, outgoing, (transfer, None, Code::GET));
        Ok(())
    }

    /// Begins, or goes on, with a request whose body of this length is supplied block by block.
    /// Nothing is sent before the first block is there.
    pub(super) fn begin_upload(
        &mut self,
        cx: &mut Context<'_>,
        outgoing: ExchangeRequest,
        message: Message,
        body: (usize, UploadPosition),
    ) {
        let (format, method) = (format_in(&message), message.code);
        let (now_ms, jitter) = (cx.now().as_ms(), cx.m.next_u32());
        let rules = cx.rules().transfers();
        let transfer = Transfer::begin_streamed(now_ms, &rules, message, body, jitter);
        self.hold_transfer(cx, outgoing, (transfer, format, method));
    }

    fn begin_transfer(
        &mut self,
        cx: &mut Context<'_>,
        outgoing: ExchangeRequest,
        begun: (Transfer, Option<ContentFormat>, Code),
    ) {
        self.hold_transfer(cx, outgoing, begun);
        self.send(cx);
    }

    fn hold_transfer(
        &mut self,
        cx: &mut Context<'_>,
        outgoing: ExchangeRequest,
        (transfer, format, method): (Transfer, Option<ContentFormat>, Code),
    ) {
        self.attempt = Some(Box::new(Attempt {
            transfer: Some(transfer),
            request: outgoing,
            format,
            method,
            begun_at: cx.now(),
            patience: Patience::Full,
        }));
        let purpose = outgoing.target.purpose();
        cx.out.note(outgoing.trace, StepEventKind::Begun(purpose));
    }

    /// Sends a bare datagram.
    pub(super) fn send_udp(
        &mut self,
        cx: &mut Context<'_>,
        outgoing: ExchangeRequest,
        bytes: Vec<u8>,
    ) {
        if let (Some(to), ExchangeTarget::Action(action)) = (outgoing.to, outgoing.target) {
            cx.out
                .push(Effect::Send(Outbound::SendUdp { to, bytes, action }));
        }
        self.attempt = Some(Box::new(Attempt {
            transfer: None,
            request: outgoing,
            format: None,
            method: Code::EMPTY,
            begun_at: cx.now(),
            patience: Patience::Full,
        }));
    }

    /// Handles a message that may answer the exchange in flight.
    pub(super) fn handle(&mut self, cx: &Context<'_>, datagram: &Datagram) -> TransferReception {
        let rules = cx.rules().transfers();
        // A request to where the device is registered may be answered from its previous peer.
        let may_answer = |to: Peer| to == datagram.peer;
        let attempt = self.attempt.as_mut();
        let attempt = attempt.filter(|it| it.request.to.is_none_or(may_answer));
        match attempt.and_then(|it| it.transfer.as_mut()) {
            Some(transfer) => transfer.handle(cx.now().as_ms(), &rules, &datagram.message),
            None => TransferReception::NotMine,
        }
    }

    /// What is due, if anything is in flight.
    pub(super) fn handle_timeout(&mut self, now: Timestamp) -> Option<TransferTimeout> {
        let attempt = self.attempt.as_mut()?;
        if attempt.is_patience_over(now) {
            attempt.patience = Patience::Over;
        }
        match &mut attempt.transfer {
            Some(transfer) => Some(transfer.handle_timeout(now.as_ms())),
            None => (attempt.next_timeout() <= now)
                .then_some(TransferTimeout::GaveUp(GiveUp::NotAnswered)),
        }
    }

    /// Continues with the next block, or repeats the block in a new message; a block of a body that
    /// is not in memory is supplied.
    pub(super) fn proceed(&mut self, cx: &mut Context<'_>, fresh: FreshIds, supplied: &[u8]) {
        let (now_ms, rules) = (cx.now().as_ms(), cx.rules().transfers());
        if let Some(attempt) = &mut self.attempt {
            attempt.patience = Patience::Full;
        }
        if let Some(transfer) = self.transfer_mut() {
            transfer.proceed_with(now_ms, &rules, fresh, supplied);
        }
    }

    /// The device acknowledged the message in flight; its answer is to follow.
    pub(super) fn note_acknowledged(&mut self, cx: &Context<'_>) {
        let wait_ms = cx.rules().limits.passive_response_timeout_ms;
        if let Some(attempt) = &mut self.attempt
            && let ExchangeTarget::Report(_) = attempt.request.target
        {
            attempt.patience = Patience::Until(cx.now().plus_ms(wait_ms));
        }
    }

    /// Retransmits the datagram in flight.
    pub(super) fn send_again(&mut self, cx: &mut Context<'_>) {
        cx.out.note(self.trace(), StepEventKind::Repeated);
        self.send(cx);
    }

    /// Sends the datagram in flight. The device may have moved since the last transmission: a
    /// request to where it is registered goes to its present peer. Nothing is sent to, or accepted
    /// from, an address that the customer took from the device: another device may have it now.
    pub(super) fn send(&mut self, cx: &mut Context<'_>) {
        let own = self.attempt.as_ref().and_then(|it| it.request.to);
        let to = own.or(cx.registration.bound_peer());
        let Some(to) = to.filter(|to| cx.reachability().may_be_at(*to)) else {
            return;
        };
        self.route_answers(cx);
        if let Some(transfer) = self.transfer_mut() {
            cx.out.send(to, transfer.datagram().to_vec());
        }
    }

    /// The device refuses the format that was requested or written. Returns the request to repeat
    /// in another format, if the code is such a refusal.
    pub(super) fn refuse_format(
        &mut self,
        cx: &mut Context<'_>,
        code: Code,
    ) -> Option<ExchangeRequest> {
        if !is_refusal_of_format(code) {
            return None;
        }
        let attempt = self.attempt.as_mut()?;
        let format = attempt.format?;
        attempt.request.state.refused.formats.add(format);
        cx.registration.refuse(format);
        Some(attempt.request)
    }

    /// The device has the attributes of the observation that begins. Returns the request to begin
    /// it with.
    pub(super) fn note_attributes_written(&mut self) -> Option<ExchangeRequest> {
        let request = &mut self.attempt.as_mut()?.request;
        request.state.attributes = WrittenAttributes::Yes;
        Some(*request)
    }

    /// Whether the message in flight writes something, by PUT.
    pub(super) fn is_put(&self) -> bool {
        let attempt = self.attempt.as_ref();
        attempt.is_some_and(|it| it.method == Code::PUT)
    }

    /// The device does not have the resource instance that was to be replaced. Returns the request
    /// to repeat as a partial update, which creates it, unless that is what was refused.
    pub(super) fn refuse_replacement(&mut self) -> Option<ExchangeRequest> {
        let request = &mut self.attempt.as_mut()?.request;
        let refused = &mut request.state.refused.write;
        let refused = std::mem::replace(refused, WriteMethod::PartialUpdate);
        (refused == WriteMethod::Replace).then_some(*request)
    }

    /// Ends the exchange in flight. If it had a peer of its own, answers from there are no longer
    /// accepted.
    pub(super) fn end(
        &mut self,
        bound_peer: Option<Peer>,
        out: &mut Effects,
    ) -> Option<EndedExchange> {
        let attempt = self.attempt.take()?;
        let ExchangeRequest { target, to, .. } = attempt.request;
        if let Some(peer) = to
            && !attempt.is_udp()
            && bound_peer != Some(peer)
        {
            out.rebind(Some(peer), None);
        }
        Some(EndedExchange {
            target,
            begun_at: attempt.begun_at,
            as_registered: to.is_none(),
            token: attempt.transfer.as_ref().map(Transfer::token),
        })
    }

    /// Reports how the exchange in flight ends, if there is one.
    pub(super) fn note_ending(&self, ending: ExchangeOutcome, out: &mut Effects) {
        if let Some(attempt) = &self.attempt
            && !attempt.is_udp()
        {
            out.note(attempt.request.trace, StepEventKind::Ended(ending));
        }
    }

    /// Has answers from the exchange's own peer routed to this device, if it has one.
    pub(super) fn route_answers(&self, cx: &mut Context<'_>) {
        if let Some(attempt) = &self.attempt
            && attempt.request.to.is_some()
            && attempt.request.to != cx.registration.bound_peer()
            && !attempt.is_udp()
        {
            cx.out.rebind(None, attempt.request.to);
        }
    }

    /// Whether the exchange in flight is to end as soon as anything else waits for the device.
    pub(super) fn is_patience_over(&self, now: Timestamp) -> bool {
        let attempt = self.attempt.as_ref();
        attempt.is_some_and(|it| it.is_patience_over(now))
    }

    pub(super) fn is_idle(&self) -> bool {
        self.attempt.is_none()
    }

    pub(super) fn next_timeout(&self) -> Option<Timestamp> {
        self.attempt.as_ref().map(|it| it.next_timeout())
    }

    /// Whether a bare datagram is at the socket.
    pub(super) fn is_awaiting_send(&self) -> bool {
        self.attempt.as_ref().is_some_and(|it| it.is_udp())
    }

    /// Whether the bare datagram of this request is at the socket.
    pub(super) fn is_udp_of(&self, action: ActionId) -> bool {
        self.is_awaiting_send() && self.action() == Some(action)
    }

    /// Whether an answer of the device is awaited.
    pub(super) fn in_flight(&self) -> InFlight {
        match &self.attempt {
            Some(attempt) if !attempt.is_udp() => InFlight::Yes,
            Some(_) | None => InFlight::No,
        }
    }

    /// The trace of the call behind the exchange in flight.
    pub(super) fn trace(&self) -> Option<TraceId> {
        self.attempt.as_ref()?.request.trace
    }

    /// The request of a caller in flight.
    pub(super) fn action(&self) -> Option<ActionId> {
        match self.target()? {
            ExchangeTarget::Action(action) => Some(action),
            ExchangeTarget::Observation(_)
            | ExchangeTarget::Report(_)
            | ExchangeTarget::Notification(_)
            | ExchangeTarget::Bootstrap
            | ExchangeTarget::Update(_) => None,
        }
    }

    /// The campaign for whose update the exchange in flight is.
    pub(super) fn campaign(&self) -> Option<CampaignId> {
        match self.target()? {
            ExchangeTarget::Update(campaign) => Some(campaign),
            ExchangeTarget::Action(_)
            | ExchangeTarget::Observation(_)
            | ExchangeTarget::Report(_)
            | ExchangeTarget::Notification(_)
            | ExchangeTarget::Bootstrap => None,
        }
    }

    /// The purpose of the exchange in flight.
    pub(super) fn target(&self) -> Option<ExchangeTarget> {
        self.attempt.as_ref().map(|it| it.request.target)
    }

    /// When the exchange in flight began.
    pub(super) fn begun_at(&self) -> Option<Timestamp> {
        self.attempt.as_ref().map(|it| it.begun_at)
    }

    /// The part of the body in flight that has to be supplied for the next message.
    pub(super) fn wanted(&self) -> Option<Range<usize>> {
        self.transfer()?.wanted()
    }

    /// How much of a body that is supplied the device acknowledged.
    pub(super) fn position(&self) -> Option<UploadPosition> {
        self.transfer()?.position()
    }

    /// The bytes of memory that the received blocks of the response occupy.
    pub(super) fn memory(&self) -> usize {
        self.transfer().map_or(0, Transfer::memory)
    }

    /// Whether at least one block of the transfer got across.
    pub(super) fn is_under_way(&self) -> bool {
        self.transfer().is_some_and(Transfer::is_under_way)
    }

    /// Whether a part of the answer has arrived that may begin an observation under this token.
    pub(super) fn is_about_to_observe(&self, token: Token) -> bool {
        self.is_under_way() && self.transfer().map(Transfer::token) == Some(token)
    }

    /// Whether the exchange in flight goes to where the device is registered.
    pub(super) fn is_to_registered_peer(&self) -> bool {
        let attempt = self.attempt.as_ref();
        attempt.is_some_and(|it| it.request.to.is_none())
    }

    /// Whether the exchange in flight goes to this peer, and the device is not registered there.
    pub(super) fn is_to_other_peer(&self, cx: &Context<'_>, peer: Peer) -> bool {
        let attempt = self.attempt.as_ref();
        let is_to_peer = attempt.is_some_and(|it| it.request.to == Some(peer));
        is_to_peer && cx.registration.bound_peer() != Some(peer)
    }

    fn transfer(&self) -> Option<&Transfer> {
        self.attempt.as_ref()?.transfer.as_ref()
    }

    fn transfer_mut(&mut self) -> Option<&mut Transfer> {
        self.attempt.as_mut()?.transfer.as_mut()
    }
}

impl Attempt {
    /// After a while the outcome of sending a bare datagram is considered unknown.
    fn next_timeout(&self) -> Timestamp {
        let transfer = match &self.transfer {
            Some(transfer) => Timestamp::from_ms(transfer.next_timeout()),
            None => self.begun_at.plus_ms(DEPARTURE_MS),
        };
        match self.patience {
            Patience::Until(at) => transfer.min(at),
            Patience::Full | Patience::Over => transfer,
        }
    }

    fn is_patience_over(&self, now: Timestamp) -> bool {
        match self.patience {
            Patience::Full => false,
            Patience::Until(at) => at <= now,
            Patience::Over => true,
        }
    }

    /// Whether it is a bare datagram at the socket.
    fn is_udp(&self) -> bool {
        self.transfer.is_none()
    }
}

/// Whether a device that answers this refuses the format that was requested or written.
pub(super) fn is_refusal_of_format(code: Code) -> bool {
    [Code::NOT_ACCEPTABLE, Code::UNSUPPORTED_CONTENT_FORMAT].contains(&code)
}

/// The format for which a device may refuse a request: the requested format of the answer, or the
/// format of the value in it. A format outside the set could not be remembered as refused, and
/// would be requested again without end.
fn format_in(message: &Message) -> Option<ContentFormat> {
    // The arguments of an execution are text, which no partial update is.
    let is_write = |format: &ContentFormat| {
        [Code::PUT, Code::IPATCH].contains(&message.code)
            || message.code == Code::POST && *format != ContentFormat::TEXT
    };
    let of_value = message.content_format().filter(is_write);
    let named = message.accept().or(of_value);
    named.filter(|format| FormatSet::has_place_for(*format))
}
