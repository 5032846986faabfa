//! What do the bytes of a datagram show at a glance?

use engine::action::Status;
use engine::change::Change;
use engine::effect::{Effect, Effects, Speech};
use engine::ids::ActionId;

/// One attempt, as it is known on the wire: its message id and its token.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct AttemptKey {
    pub(crate) message_id: u16,
    token: [u8; 9],
}

impl AttemptKey {
    pub(crate) fn new(message_id: u16, token: &[u8]) -> Self {
        let mut held = [0; 9];
        held[0] = token.len() as u8;
        held[1..=token.len()].copy_from_slice(token);
        Self {
            message_id,
            token: held,
        }
    }

    /// Whether a message is an answer to the attempt, as its token or its message id shows.
    pub(crate) fn is_met_by(&self, head: &Head<'_>) -> bool {
        let own = &self.token[1..=usize::from(self.token[0])];
        match head.kind {
            CONFIRMABLE | NON_CONFIRMABLE => head.is_response() && head.token == own,
            _ => head.message_id == self.message_id,
        }
    }
}

const CONFIRMABLE: u8 = 0;
const NON_CONFIRMABLE: u8 = 1;
const ACKNOWLEDGEMENT: u8 = 2;

/// The first bytes of a message.
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

    /// Whether it only says that a message has arrived.
    pub(crate) fn is_empty_acknowledgement(&self) -> bool {
        self.kind == ACKNOWLEDGEMENT && self.code == 0
    }

    /// Whether it says where a registration is.
    pub(crate) fn is_created(&self) -> bool {
        self.code == 2 << 5 | 1
    }

    pub(crate) fn key(&self) -> AttemptKey {
        AttemptKey::new(self.message_id, self.token)
    }
}

/// Which attempts a step begins: each is saved before the request that it sends.
pub(crate) fn attempts_begun(effects: &Effects) -> Vec<(AttemptKey, ActionId)> {
    let mut begun = Vec::new();
    let mut saved = None;
    for effect in effects.as_slice() {
        match effect {
            Effect::Save(Change::PutAction { action, .. })
                if action.status == Status::InProgress && action.attempts_made > 0 =>
            {
                saved = Some(action.id);
            }
            Effect::Say(Speech::Send { datagram, .. }) => {
                let head = Head::of(datagram).filter(Head::is_request);
                if let (Some(head), Some(action)) = (head, saved) {
                    saved = None;
                    begun.push((head.key(), action));
                }
            }
            Effect::Save(_)
            | Effect::Expect(_)
            | Effect::Count(_)
            | Effect::Log(_)
            | Effect::Say(Speech::Rebind { .. }) => {}
        }
    }
    begun
}
