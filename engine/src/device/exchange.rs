//! The one exchange in flight: what the device is asked, where, and how it goes on until it ends
//! by an answer, a rejection or silence (RFC 7252 section 4.2, NSTART is 1; RFC 7959).

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::exchange::GiveUp;
use protocol::coap::message::Message;
use protocol::coap::token::Token;
use protocol::coap::transfer::{FreshIds, Transfer, TransferReception, TransferTimeout};
use protocol::lwm2m::path::Path;

use crate::datagram::Datagram;
use crate::device::activity::InFlight;
use crate::device::context::Context;
use crate::device::formats::FormatSet;
use crate::effect::{Effect, Effects, Outbound};
use crate::ids::{ActionId, TraceId};
use crate::limits::DEPARTURE_MS;
use crate::moment::Timestamp;
use crate::peer::Peer;
use crate::step_event::{ExchangeOutcome, ExchangePurpose, StepEventKind};

/// What is in flight, if anything is.
#[derive(Default)]
pub(super) struct Exchange {
    attempt: Option<Box<Attempt>>,
}

/// What is asked, where, and for whom.
#[derive(Clone, Copy)]
pub(super) struct ExchangeRequest {
    pub(super) target: ExchangeTarget,
    /// The call behind it.
    pub(super) trace: Option<TraceId>,
    /// The one place an answer may come from; where the device is registered, if it is none.
    pub(super) to: Option<Peer>,
    /// The formats the device refused of it.
    pub(super) refused: FormatSet,
}

/// What an attempt is at.
#[derive(Clone, Copy)]
pub(super) enum ExchangeTarget {
    /// A request of a caller.
    Action(ActionId),
    /// A path that is observed and that the device forgot.
    Observation(Path),
    /// What is read because the device registered or updated its registration.
    Report(ReadPart),
    /// A notification that goes on in further blocks, by its token.
    Notification(Token),
}

/// What one request of a round of reads asks for.
#[derive(Clone, Copy)]
pub(super) enum ReadPart {
    /// One object.
    Object(u16),
    /// All that are left.
    Rest,
}

/// An exchange that is over.
pub(super) struct EndedExchange {
    pub(super) target: ExchangeTarget,
    pub(super) begun_at: Timestamp,
    /// Whether the device was asked where it is registered.
    pub(super) as_registered: bool,
    /// Its token, if it had one.
    pub(super) token: Option<Token>,
}

/// The attempt in flight.
struct Attempt {
    /// The messages that the device answers; none for a bare datagram that leaves.
    transfer: Option<Transfer>,
    request: ExchangeRequest,
    /// The format its message asks for or carries.
    format: Option<ContentFormat>,
    begun_at: Timestamp,
}

impl ExchangeTarget {
    fn purpose(self) -> ExchangePurpose {
        match self {
            Self::Action(_) => ExchangePurpose::Action,
            Self::Observation(_) | Self::Notification(_) => ExchangePurpose::Observation,
            Self::Report(_) => ExchangePurpose::Report,
        }
    }
}

impl Exchange {
    /// Begins an exchange. From a peer of its own its answers are let through for as long as it
    /// lasts.
    pub(super) fn begin(
        &mut self,
        cx: &mut Context<'_>,
        outgoing: ExchangeRequest,
        message: Message,
    ) {
        let format = format_in(&message);
        let rules = cx.rules().transfers();
        let transfer = Transfer::begin(cx.now().as_ms(), &rules, message, cx.m.next_u32());
        self.attempt = Some(Box::new(Attempt {
            transfer: Some(transfer),
            request: outgoing,
            format,
            begun_at: cx.now(),
        }));
        self.send(cx);
        let purpose = outgoing.target.purpose();
        cx.out.note(outgoing.trace, StepEventKind::Begun(purpose));
    }

    /// Has bare bytes leave.
    pub(super) fn depart(
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
            begun_at: cx.now(),
        }));
    }

    /// Takes a message that answers nothing but what is in flight, if it does.
    pub(super) fn handle(&mut self, cx: &Context<'_>, datagram: &Datagram) -> TransferReception {
        let rules = cx.rules().transfers();
        // One the device is asked where it is registered may be answered from where it was before.
        let may_answer = |to: Peer| to == datagram.peer;
        let awaited = self.attempt.as_mut();
        let awaited = awaited.filter(|it| it.request.to.is_none_or(may_answer));
        match awaited.and_then(|it| it.transfer.as_mut()) {
            Some(transfer) => transfer.handle(cx.now().as_ms(), &rules, &datagram.message),
            None => TransferReception::NotMine,
        }
    }

    /// What time asks for, if anything is in flight.
    pub(super) fn handle_timeout(&mut self, now: Timestamp) -> Option<TransferTimeout> {
        let attempt = self.attempt.as_mut()?;
        match &mut attempt.transfer {
            Some(transfer) => Some(transfer.handle_timeout(now.as_ms())),
            None => (attempt.next_timeout() <= now)
                .then_some(TransferTimeout::GaveUp(GiveUp::NotAnswered)),
        }
    }

    /// Goes on with the next block, or with the same in a message of its own.
    pub(super) fn proceed(&mut self, cx: &mut Context<'_>, fresh: FreshIds) {
        let (now_ms, rules) = (cx.now().as_ms(), cx.rules().transfers());
        if let Some(transfer) = self.transfer_mut() {
            transfer.proceed(now_ms, &rules, fresh);
        }
    }

    /// Sends the datagram in flight once more.
    pub(super) fn send_again(&mut self, cx: &mut Context<'_>) {
        cx.out.note(self.trace(), StepEventKind::Repeated);
        self.send(cx);
    }

    /// Sends the datagram in flight. The device may have moved since it was sent before: what it is
    /// asked where it is registered goes to where that is by now. Nothing goes to an address that
    /// its customer took away from it, nor is let through from there: somebody else may have that.
    pub(super) fn send(&mut self, cx: &mut Context<'_>) {
        let own = self.attempt.as_ref().and_then(|it| it.request.to);
        let to = own.or(cx.registration.bound_peer());
        let Some(to) = to.filter(|to| cx.reachability().may_be_at(*to)) else {
            return;
        };
        self.await_elsewhere(cx);
        if let Some(transfer) = self.transfer_mut() {
            cx.out.send(to, transfer.datagram().to_vec());
        }
    }

    /// The device refuses the format that was asked for or written. What is asked then, if it may
    /// be asked for otherwise.
    pub(super) fn refuse_format(
        &mut self,
        cx: &mut Context<'_>,
        code: Code,
    ) -> Option<ExchangeRequest> {
        if ![Code::NOT_ACCEPTABLE, Code::UNSUPPORTED_CONTENT_FORMAT].contains(&code) {
            return None;
        }
        let attempt = self.attempt.as_mut()?;
        let format = attempt.format?;
        attempt.request.refused.add(format);
        cx.registration.refuse(format);
        Some(attempt.request)
    }

    /// Ends what is in flight; where it was with a peer of its own, nothing is let through from
    /// there any more.
    pub(super) fn end(
        &mut self,
        bound_peer: Option<Peer>,
        out: &mut Effects,
    ) -> Option<EndedExchange> {
        let attempt = self.attempt.take()?;
        let ExchangeRequest { target, to, .. } = attempt.request;
        if let Some(peer) = to
            && !attempt.is_departing()
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

    /// Remarks how the exchange in flight ends, if there is one.
    pub(super) fn note_ending(&self, ending: ExchangeOutcome, out: &mut Effects) {
        if let Some(attempt) = &self.attempt
            && !attempt.is_departing()
        {
            out.note(attempt.request.trace, StepEventKind::Ended(ending));
        }
    }

    /// Has the answers to the attempt in flight let through, if it is with a peer of its own.
    pub(super) fn await_elsewhere(&self, cx: &mut Context<'_>) {
        if let Some(attempt) = &self.attempt
            && attempt.request.to.is_some()
            && attempt.request.to != cx.registration.bound_peer()
            && !attempt.is_departing()
        {
            cx.out.rebind(None, attempt.request.to);
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.attempt.is_none()
    }

    pub(super) fn next_timeout(&self) -> Option<Timestamp> {
        self.attempt.as_ref().map(|it| it.next_timeout())
    }

    /// Whether it is a bare datagram that leaves.
    pub(super) fn is_awaiting_send(&self) -> bool {
        self.attempt.as_ref().is_some_and(|it| it.is_departing())
    }

    /// Whether the bare datagram of a request leaves.
    pub(super) fn is_departure_of(&self, action: ActionId) -> bool {
        self.is_awaiting_send() && self.action() == Some(action)
    }

    /// Whether a device is awaited to answer.
    pub(super) fn in_flight(&self) -> InFlight {
        match &self.attempt {
            Some(attempt) if !attempt.is_departing() => InFlight::Yes,
            Some(_) | None => InFlight::No,
        }
    }

    /// The call behind what is in flight.
    pub(super) fn trace(&self) -> Option<TraceId> {
        self.attempt.as_ref()?.request.trace
    }

    /// The request of a caller in flight.
    pub(super) fn action(&self) -> Option<ActionId> {
        match self.target()? {
            ExchangeTarget::Action(action) => Some(action),
            ExchangeTarget::Observation(_)
            | ExchangeTarget::Report(_)
            | ExchangeTarget::Notification(_) => None,
        }
    }

    /// What is in flight is for this.
    pub(super) fn target(&self) -> Option<ExchangeTarget> {
        self.attempt.as_ref().map(|it| it.request.target)
    }

    /// Whether a transfer has a block across.
    pub(super) fn is_under_way(&self) -> bool {
        self.transfer().is_some_and(Transfer::is_under_way)
    }

    /// Whether the answer, of which a part is there, may begin an observation under a token.
    pub(super) fn is_about_to_observe(&self, token: Token) -> bool {
        self.is_under_way() && self.transfer().map(Transfer::token) == Some(token)
    }

    /// Whether something is in flight to where the device is registered.
    pub(super) fn is_asked_as_registered(&self) -> bool {
        let attempt = self.attempt.as_ref();
        attempt.is_some_and(|it| it.request.to.is_none())
    }

    /// Whether the device is asked at a peer where it is not registered.
    pub(super) fn is_asked_elsewhere(&self, cx: &Context<'_>, peer: Peer) -> bool {
        let attempt = self.attempt.as_ref();
        let is_asked = attempt.is_some_and(|it| it.request.to == Some(peer));
        is_asked && cx.registration.bound_peer() != Some(peer)
    }

    fn transfer(&self) -> Option<&Transfer> {
        self.attempt.as_ref()?.transfer.as_ref()
    }

    fn transfer_mut(&mut self) -> Option<&mut Transfer> {
        self.attempt.as_mut()?.transfer.as_mut()
    }
}

impl Attempt {
    /// After a while it is taken that nobody will say whether a bare datagram left.
    fn next_timeout(&self) -> Timestamp {
        match &self.transfer {
            Some(transfer) => Timestamp::from_ms(transfer.next_timeout()),
            None => self.begun_at.plus_ms(DEPARTURE_MS),
        }
    }

    /// Whether it is a bare datagram that leaves.
    fn is_departing(&self) -> bool {
        self.transfer.is_none()
    }
}

/// The format that a device may refuse a request for: the one its answer is to have, or the one of
/// the value in it. One without a place could not be remembered, and would be asked for for ever.
fn format_in(message: &Message) -> Option<ContentFormat> {
    let of_value = message.content_format();
    let named = message
        .accept()
        .or(of_value.filter(|_| message.code == Code::PUT));
    named.filter(|format| FormatSet::has_place_for(*format))
}
