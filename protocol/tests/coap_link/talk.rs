//! How does a transfer with a peer over a link end?

use protocol::coap::block::BlockSize;
use protocol::coap::code::Code;
use protocol::coap::exchange::Transmission;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use protocol::coap::transfer::{
    FreshIds, Transfer, TransferReception, TransferRules, TransferTimeout,
};

use crate::link::{Link, LinkConditions, Recipient};
use crate::peer::{Peer, ResponseMode, body};

/// What is to be transferred, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TransferSpec {
    pub(crate) block_bytes: u16,
    pub(crate) to_peer: usize,
    pub(crate) from_peer: usize,
    pub(crate) idle_ms: i64,
    pub(crate) manner: ResponseMode,
}

/// How it ended.
#[derive(Debug)]
pub(crate) enum TransferOutcome {
    Answered(Message),
    Failed,
    GaveUp { at_ms: i64, is_under_way: bool },
}

/// Sends a body to a peer, and receives the body of its answer.
pub(crate) fn conversation(
    task: &TransferSpec,
    conditions: &LinkConditions,
    seed: u64,
) -> (TransferOutcome, Peer) {
    let block = BlockSize::of_bytes(task.block_bytes).expect("a size of blocks");
    let rules = TransferRules {
        transmission: &Transmission::STANDARD,
        block,
        answer_bytes_max: task.from_peer,
        idle_ms: task.idle_ms,
    };
    let mut conversation = Conversation {
        transfer: Transfer::begin(0, &rules, request(task), 0),
        link: Link::new(*conditions, seed),
        peer: Peer::new(body(task.from_peer), block, task.manner),
        rules,
        now_ms: 0,
        messages: 1,
    };
    conversation.send();
    loop {
        if let Some(outcome) = conversation.step() {
            return (outcome, conversation.peer);
        }
    }
}

fn request(task: &TransferSpec) -> Message {
    let code = match task.to_peer {
        0 => Code::GET,
        _ => Code::POST,
    };
    Message::request(
        MessageKind::Confirmable,
        code,
        MessageId(1),
        Token::from_u64(1),
    )
    .with_uri_path(["body"])
    .with_payload(body(task.to_peer))
}

struct Conversation<'a> {
    transfer: Transfer,
    rules: TransferRules<'a>,
    link: Link,
    peer: Peer,
    now_ms: i64,
    messages: u64,
}

impl Conversation<'_> {
    fn step(&mut self) -> Option<TransferOutcome> {
        let arrival_ms = self.link.next_arrival();
        self.now_ms = arrival_ms.min(self.transfer.next_timeout());
        if self.now_ms < arrival_ms {
            return self.time_out();
        }
        let (to, datagram) = self.link.arrive()?;
        match to {
            Recipient::Us => self.hear(&datagram),
            Recipient::Peer => {
                for message in self.peer.handle(self.now_ms, &datagram) {
                    self.link
                        .send(self.now_ms, Recipient::Us, &message.encode());
                }
                None
            }
        }
    }

    fn time_out(&mut self) -> Option<TransferOutcome> {
        match self.transfer.handle_timeout(self.now_ms) {
            TransferTimeout::NotYet => {}
            TransferTimeout::Retransmit => self.send(),
            TransferTimeout::Again => self.proceed(),
            TransferTimeout::GaveUp(_) => {
                return Some(TransferOutcome::GaveUp {
                    at_ms: self.now_ms,
                    is_under_way: self.transfer.is_under_way(),
                });
            }
        }
        None
    }

    fn hear(&mut self, datagram: &[u8]) -> Option<TransferOutcome> {
        let message = Message::decode(datagram).expect("what we write is well-formed");
        match self.transfer.handle(self.now_ms, &self.rules, &message) {
            TransferReception::NotMine | TransferReception::Acknowledged => None,
            TransferReception::Proceeds { .. } => {
                self.proceed();
                None
            }
            TransferReception::Answered { whole, .. } => {
                let answer = whole.map_or(message, |whole| *whole);
                Some(TransferOutcome::Answered(answer))
            }
            TransferReception::Broken { .. }
            | TransferReception::Reset
            | TransferReception::Unusable { .. } => Some(TransferOutcome::Failed),
        }
    }

    fn proceed(&mut self) {
        self.messages += 1;
        let [.., high, low] = self.messages.to_be_bytes();
        let jitter = self.link.rng.below(1 << 32);
        let fresh = FreshIds {
            message_id: MessageId(u16::from_be_bytes([high, low])),
            token: Token::from_u64(self.messages),
            jitter: u32::try_from(jitter).expect("32 bits"),
        };
        self.transfer.proceed(self.now_ms, &self.rules, fresh);
        self.send();
    }

    fn send(&mut self) {
        let datagram = self.transfer.datagram();
        self.link.send(self.now_ms, Recipient::Peer, datagram);
    }
}
