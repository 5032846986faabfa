//! What does the plugtest server know of one peer: its earlier answers and its open exchanges?

use std::collections::VecDeque;

use protocol::coap::assembly::Assembly;
use protocol::coap::code::Code;
use protocol::coap::dedup::{DedupWindow, Duplicate, RECENT_MAX};
use protocol::coap::exchange::{Exchange, ExchangeReception, ExchangeTimeout, Transmission};
use protocol::coap::message::{Message, MessageId};

use super::site::{path_of, response};

/// One peer.
#[derive(Default)]
pub(super) struct Peer {
    /// The body that the peer is sending in blocks.
    pub(super) assembly: Assembly,
    recent: DedupWindow,
    /// The answers to its last requests, byte for byte; empty for a separate response that is still
    /// to come.
    answers: VecDeque<(MessageId, Vec<u8>)>,
    /// The last answer to a request that must not be performed again for each block.
    whole_answer: Option<(Code, String, Message)>,
    exchanges: Vec<Exchange>,
    given_up: Vec<MessageId>,
}

/// The outcome of a confirmable message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum MessageOutcome {
    /// It was acknowledged.
    Acknowledged,
    /// It was reset.
    Refused,
    /// It was never acknowledged, despite all retransmissions.
    Unacknowledged,
}

/// A message of the server and its outcome.
pub(super) struct Concluded {
    pub(super) id: MessageId,
    pub(super) fate: MessageOutcome,
}

impl Peer {
    /// The earlier answer to a repeated request; an empty slice if there was none.
    pub(super) fn answer_before(&self, now_ms: i64, request: &Message) -> Option<&[u8]> {
        self.recent.find(now_ms, request)?;
        let mut answers = self.answers.iter().rev();
        let found = answers.find(|(id, _)| *id == request.message_id);
        found.map(|(_, answer)| answer.as_slice())
    }

    /// Records the answer to a request.
    pub(super) fn remember(&mut self, now_ms: i64, request: &Message, answer: Option<&Message>) {
        let what = match answer {
            Some(answer) if answer.code != Code::EMPTY => Duplicate::Answered(answer.code),
            Some(_) | None => Duplicate::Acknowledged,
        };
        self.recent.remember(now_ms, request, what);
        if self.answers.len() == RECENT_MAX {
            self.answers.pop_front();
        }
        let datagram = answer.map(Message::encode).unwrap_or_default();
        self.answers.push_back((request.message_id, datagram));
    }

    /// Keeps an answer whose later blocks may be requested.
    pub(super) fn keep_whole_answer(&mut self, request: &Message, answer: &Message) {
        self.whole_answer =
            (request.code != Code::GET).then(|| (request.code, path_of(request), answer.clone()));
    }

    /// The whole answer of which a request asks for a later block.
    pub(super) fn whole_answer(&self, request: &Message) -> Option<Message> {
        request.block2().filter(|block| block.number() > 0)?;
        let (code, path, answer) = self.whole_answer.as_ref()?;
        let is_it = (*code, path) == (request.code, &path_of(request));
        let fresh = response(request, answer.code);
        let mut answer = answer.clone();
        answer.kind = fresh.kind;
        answer.message_id = fresh.message_id;
        answer.token = fresh.token;
        is_it.then_some(answer)
    }

    /// Waits for the acknowledgement of a message that is sent now.
    pub(super) fn begin(&mut self, now_ms: i64, rules: &Transmission, message: &Message) {
        let exchange = Exchange::begin(now_ms, rules, message, 0);
        self.exchanges.push(exchange);
    }

    /// Handles an Acknowledgement or a Reset, and returns the message it concludes.
    pub(super) fn conclude(&mut self, now_ms: i64, message: &Message) -> Option<Concluded> {
        let handle = |exchange: &mut Exchange| exchange.handle(now_ms, message);
        let receptions = self.exchanges.iter_mut().map(handle);
        let (place, fate) = receptions.enumerate().find_map(|(place, reception)| {
            let fate = match reception {
                ExchangeReception::NotMine => return None,
                ExchangeReception::Reset => MessageOutcome::Refused,
                ExchangeReception::Acknowledged
                | ExchangeReception::Answered { .. }
                | ExchangeReception::Unusable { .. } => MessageOutcome::Acknowledged,
            };
            Some((place, fate))
        })?;
        let id = self.exchanges.swap_remove(place).message_id();
        Some(Concluded { id, fate })
    }

    /// The retransmissions that are due.
    pub(super) fn repetitions(&mut self, now_ms: i64) -> Vec<Vec<u8>> {
        let mut repeated = Vec::new();
        let given_up = &mut self.given_up;
        self.exchanges
            .retain_mut(|exchange| match exchange.handle_timeout(now_ms) {
                ExchangeTimeout::NotYet => true,
                ExchangeTimeout::Retransmit => {
                    repeated.push(exchange.datagram().to_vec());
                    true
                }
                ExchangeTimeout::GaveUp(_) => {
                    given_up.push(exchange.message_id());
                    false
                }
            });
        repeated
    }

    /// The message ids that were never acknowledged, each once.
    pub(super) fn given_up(&mut self) -> Vec<MessageId> {
        std::mem::take(&mut self.given_up)
    }
}
