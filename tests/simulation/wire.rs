//! What do the bytes of a datagram show at a glance?

use engine::action::timeline::TimelineEvent;
use engine::action::{Action, Protocol, Status};
use engine::change::Change;
use engine::effect::Outbound;
use engine::ids::ActionId;
use engine::step_event::{self, StepEvent};
use harness::device::resource::FIRMWARE_PACKAGE;
use protocol::coap::block::Block;
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageKind};
use protocol::lwm2m::path::Path;

/// One attempt, as the network identifies it: its message id and its token.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct AttemptKey {
    pub(crate) message_id: u16,
    token: [u8; 9],
}

impl AttemptKey {
    pub(crate) fn token(&self) -> &[u8] {
        &self.token[1..=usize::from(self.token[0])]
    }

    pub(crate) fn new(message_id: u16, token: &[u8]) -> Self {
        let mut held = [0; 9];
        held[0] = token.len() as u8;
        held[1..=token.len()].copy_from_slice(token);
        Self {
            message_id,
            token: held,
        }
    }

    /// Whether a message answers the attempt, by its token or its message id.
    pub(crate) fn is_met_by(&self, met: &AnsweredBy) -> bool {
        match met.by {
            MatchedBy::Token(token) => token == self.token,
            MatchedBy::Id(message_id) => message_id == self.message_id,
        }
    }
}

/// The request that a message may answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnsweredBy {
    by: MatchedBy,
    /// Whether the message refuses the requested format.
    pub(crate) format: FormatFound,
}

/// How an answer is matched to a request.
#[derive(Clone, Copy, Debug)]
enum MatchedBy {
    Token([u8; 9]),
    Id(u16),
}

/// What an answer says about the requested format.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FormatFound {
    Fit,
    Unfit,
}

impl AnsweredBy {
    /// The request that a message may end; an empty acknowledgement ends none.
    pub(crate) fn by(message: &Message) -> Option<Self> {
        let id = message.message_id.0;
        let by = match message.kind {
            MessageKind::Confirmable | MessageKind::NonConfirmable
                if message.code.is_response() =>
            {
                let key = AttemptKey::new(id, message.token.as_bytes());
                MatchedBy::Token(key.token)
            }
            MessageKind::Acknowledgement if message.code == Code::EMPTY => return None,
            MessageKind::Acknowledgement | MessageKind::Reset => MatchedBy::Id(id),
            MessageKind::Confirmable | MessageKind::NonConfirmable => return None,
        };
        let format = match message.code {
            Code::NOT_ACCEPTABLE | Code::UNSUPPORTED_CONTENT_FORMAT => FormatFound::Unfit,
            _ => FormatFound::Fit,
        };
        Some(Self { by, format })
    }
}

const ACKNOWLEDGEMENT: u8 = 2;
const RESET: u8 = 3;

/// The header of a message.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    kind: u8,
    code: u8,
    pub(crate) message_id: u16,
    pub(crate) token: &'a [u8],
}

impl<'a> Head<'a> {
    pub(crate) fn of(datagram: &'a [u8]) -> Option<Self> {
        let [first, code, high, low, rest @ ..] = datagram else {
            return None;
        };
        let length = usize::from(first & 0b1111);
        Some(Self {
            kind: first >> 4 & 0b11,
            code: *code,
            message_id: u16::from_be_bytes([*high, *low]),
            token: rest.get(..length).filter(|_| length <= 8)?,
        })
    }

    pub(crate) fn is_request(&self) -> bool {
        self.code >> 5 == 0 && self.code != 0
    }

    pub(crate) fn is_response(&self) -> bool {
        self.code >> 5 >= 2
    }

    /// Whether it is a 2.04 in an acknowledgement.
    pub(crate) fn is_changed(&self) -> bool {
        self.kind == ACKNOWLEDGEMENT && self.code == 2 << 5 | 4
    }

    /// Whether it is a success.
    fn is_success(&self) -> bool {
        self.code >> 5 == 2
    }

    /// Whether it is a refusal.
    pub(crate) fn is_refusal(&self) -> bool {
        self.code >> 5 >= 4
    }

    /// Whether it is an empty acknowledgement.
    pub(crate) fn is_empty_acknowledgement(&self) -> bool {
        self.kind == ACKNOWLEDGEMENT && self.code == 0
    }

    /// Whether it answers the message with its id: an acknowledgement or a Reset.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self.kind, ACKNOWLEDGEMENT | RESET)
    }

    /// Whether it contains the location of a registration.
    pub(crate) fn is_created(&self) -> bool {
        self.code == 2 << 5 | 1
    }

    pub(crate) fn key(&self) -> AttemptKey {
        AttemptKey::new(self.message_id, self.token)
    }
}

/// The purpose of a request to a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RequestPurpose {
    /// A request of a caller, and its protocol.
    Action(ActionId, Protocol),
    /// A request that is not saved: a retransmission, or one to establish the observation of the
    /// path again.
    Unsaved(Option<Path>),
    /// Passive reporting of the path, if it is one.
    Report(Option<Path>),
    /// Further blocks of a notification of the path.
    Rest(Option<Path>),
    /// The firmware update of a campaign.
    Update,
    /// The bootstrap of the device.
    Bootstrap,
}

impl RequestPurpose {
    /// The protocol of the request.
    pub(crate) fn protocol(self) -> Protocol {
        match self {
            Self::Action(_, protocol) => protocol,
            Self::Unsaved(_) | Self::Report(_) | Self::Rest(_) | Self::Bootstrap | Self::Update => {
                Protocol::Lwm2m
            }
        }
    }
}

/// A request that a step sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentRequest {
    pub(crate) attempt: AttemptKey,
    pub(crate) purpose: RequestPurpose,
    /// The purpose of the exchange that begins with it.
    begins: Option<step_event::ExchangePurpose>,
    /// Whether it continues a transfer that another message began.
    pub(crate) continues: Continuation,
}

impl SentRequest {
    /// Whether it repeats the request of an earlier exchange in a new exchange.
    pub(crate) fn asks_again(&self, before: RequestPurpose) -> bool {
        match (self.begins, before) {
            (Some(step_event::ExchangePurpose::Action), RequestPurpose::Action(..)) => true,
            (Some(step_event::ExchangePurpose::Action) | None, _) => false,
            (
                Some(
                    step_event::ExchangePurpose::Observation
                    | step_event::ExchangePurpose::Report
                    | step_event::ExchangePurpose::Bootstrap
                    | step_event::ExchangePurpose::FirmwareUpdate,
                ),
                _,
            ) => before == self.purpose,
        }
    }
}

/// Whether a request continues what another began.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Continuation {
    /// It is no block, or the first.
    No,
    /// It contains or requests a further block.
    InBlocks,
}

/// The requests that a step sends, with their purposes (each attempt is saved before its request),
/// and the caller's request that is sent as a bare datagram.
pub(crate) fn requests_sent(
    saved: &[Change],
    outbound: &[Outbound],
    events: &[StepEvent],
) -> (Vec<SentRequest>, Option<ActionId>) {
    let mut saved = saved.iter().rev().find_map(begun);
    let begins = events.iter().find_map(begins);
    let mut sent = Vec::new();
    let mut thrown = None;
    for item in outbound {
        match item {
            Outbound::Send { datagram, .. } => {
                let head = Head::of(datagram).filter(Head::is_request);
                if let Some(head) = head {
                    sent.push(request_sent(head.key(), saved.take(), begins, datagram));
                }
            }
            Outbound::SendUdp { action, .. } => {
                let begun = saved.take().map(|(begun, _)| begun);
                thrown = begun.filter(|it| it == action);
            }
            Outbound::Rebind { .. }
            | Outbound::PrepareBootstrap(_)
            | Outbound::ReadImage(_)
            | Outbound::NoteTransferred { .. } => {}
        }
    }
    (sent, thrown)
}

/// The request whose attempt begins with a change, and its protocol.
fn begun(change: &Change) -> Option<(ActionId, Protocol)> {
    if let Change::PutAction { action, .. } = change {
        return begins_attempt(action).then(|| (action.id, action.protocol()));
    }
    None
}

/// Whether a step answers a request with success.
pub(crate) fn is_accepted(outbound: &[Outbound]) -> bool {
    let is_success = |item: &Outbound| match item {
        Outbound::Send { datagram, .. } => Head::of(datagram).is_some_and(|head| head.is_success()),
        Outbound::Rebind { .. }
        | Outbound::SendUdp { .. }
        | Outbound::PrepareBootstrap(_)
        | Outbound::ReadImage(_)
        | Outbound::NoteTransferred { .. } => false,
    };
    outbound.iter().any(is_success)
}

/// The purpose of the exchange that began.
fn begins(step_event: &StepEvent) -> Option<step_event::ExchangePurpose> {
    if let step_event::StepEventKind::Begun(purpose) = step_event.kind {
        return Some(purpose);
    }
    None
}

fn request_sent(
    attempt: AttemptKey,
    saved: Option<(ActionId, Protocol)>,
    begins: Option<step_event::ExchangePurpose>,
    datagram: &[u8],
) -> SentRequest {
    let message = Message::decode(datagram).expect("the service speaks well");
    let is_further = |block: Block| block.number() > 0 || message.code != Code::FETCH;
    let purpose = saved.map_or_else(
        || unsaved(&message, begins),
        |(action, protocol)| RequestPurpose::Action(action, protocol),
    );
    // A Write of an image begins in the step in which its first block is read.
    let begins_push = purpose == RequestPurpose::Update
        && message.block1().is_some_and(|block| block.number() == 0);
    let is_block = message.block1().is_some_and(is_further) || message.block2().is_some();
    let is_block = is_block && !begins_push;
    // The first request for the rest of a notification names a further block.
    let continues_notification = begins == Some(step_event::ExchangePurpose::Observation);
    SentRequest {
        attempt,
        purpose,
        begins,
        continues: match is_block && saved.is_none() && !continues_notification {
            true => Continuation::InBlocks,
            false => Continuation::No,
        },
    }
}

/// The purpose of a request that is not saved.
fn unsaved(message: &Message, begins: Option<step_event::ExchangePurpose>) -> RequestPurpose {
    let segments = message.uri_path();
    let text: String = segments.map(|segment| format!("/{segment}")).collect();
    let path = text.parse().ok();
    let is_read = message.code == Code::GET && message.observe().is_none();
    match begins {
        // A request to establish an observation registers it, so a plain read fetches further
        // blocks.
        Some(step_event::ExchangePurpose::Observation) if is_read => RequestPurpose::Rest(path),
        Some(step_event::ExchangePurpose::Bootstrap) => RequestPurpose::Bootstrap,
        Some(step_event::ExchangePurpose::FirmwareUpdate) => RequestPurpose::Update,
        _ if path == Some(FIRMWARE_PACKAGE) => RequestPurpose::Update,
        _ if message.code == Code::FETCH || is_read => RequestPurpose::Report(path),
        _ => RequestPurpose::Unsaved(path),
    }
}

/// Whether this state of a request begins an attempt.
fn begins_attempt(action: &Action) -> bool {
    let happened = action.timeline.as_slice().last().map(|last| last.what);
    let begins = matches!(
        happened,
        Some(TimelineEvent::DatagramSent | TimelineEvent::AttemptBegun(_))
    );
    action.status == Status::InProgress && begins
}
