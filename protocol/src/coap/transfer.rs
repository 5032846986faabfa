//! Were our request and its response transferred completely? The client's side of RFC 7959, for one
//! outstanding request of any length.
//!
//! ```text
//!            block of the request got across     block of the answer got across
//!                       +---+                               +---+
//!   first exchange -----|   v-------------------------------|   v-----> Over
//!         |            Upload ----------------------------> Download      ^
//!         +---------------------------------------------------------------+
//!   first block in a notification -----------------------> Download
//! ```
//! Each block is an exchange of its own. Once a block was transferred, an exchange without an
//! answer starts again until the transfer has been idle for too long. The caller sends the
//! datagrams, and drops the transfer when it is over. A body that is too long for memory is
//! supplied by the caller, block by block; such an upload may go on where an earlier one stood.

mod download;
mod fault;
mod kind;
mod upload;

use std::ops::Range;

use self::kind::{TransferKind, TransferStep};
use super::block::BlockSize;
use super::exchange::{self, Exchange, ExchangeReception, GiveUp, Transmission};
use super::message::{Message, MessageId};
use super::token::Token;

pub use self::fault::TransferFault;
pub use self::upload::UploadPosition;

const NEVER_MS: i64 = i64::MAX;

/// The parameters of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct TransferRules<'a> {
    /// The parameters of each exchange.
    pub transmission: &'a Transmission,
    /// The size of our blocks; a longer body is sent in blocks.
    pub block: BlockSize,
    /// The longest accepted response, and so the memory one transfer needs.
    pub answer_bytes_max: usize,
    /// How long a transfer in progress may be without a transferred block.
    pub idle_ms: i64,
}

/// The unique parts of the next message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FreshIds {
    /// The message id.
    pub message_id: MessageId,
    /// The token.
    pub token: Token,
    /// Spreads the first timeout.
    pub jitter: u32,
}

/// One request, with as many exchanges as it needs.
#[derive(Clone, Debug)]
pub struct Transfer {
    exchange: Exchange,
    // Most requests and answers fit one message each, and there are many devices.
    way: Option<Box<TransferKind>>,
}

/// The result of a message for the transfer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TransferReception {
    /// It belongs to something else.
    NotMine,
    /// The message in flight was received; its response will be a separate message.
    Acknowledged,
    /// The device rejected the message in flight. The transfer is over.
    Reset,
    /// A block was transferred: call `proceed` and send the datagram.
    Proceeds {
        /// The separate Confirmable response to acknowledge.
        acknowledge: Option<MessageId>,
    },
    /// The response. The transfer is over.
    Answered {
        /// The separate Confirmable response to acknowledge.
        acknowledge: Option<MessageId>,
        /// The response assembled from blocks; nothing if the message itself is the response.
        whole: Option<Box<Message>>,
    },
    /// A response that must not be interpreted. The transfer is over.
    Unusable {
        /// The first critical option that is unknown or misused.
        option: u16,
        /// The separate Confirmable response to reset.
        reset: Option<MessageId>,
    },
    /// The blocks are inconsistent. The transfer is over.
    Broken {
        /// The separate Confirmable response to acknowledge.
        acknowledge: Option<MessageId>,
        /// The inconsistency.
        fault: TransferFault,
    },
}

/// The result of a timeout for the transfer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TransferTimeout {
    /// Nothing to do: the wake-up was early, or too late to retransmit.
    NotYet,
    /// Send the datagram again.
    Retransmit,
    /// Send the block in a new message: call `proceed` and send the datagram.
    Again,
    /// The transfer is over.
    GaveUp(GiveUp),
}

impl Transfer {
    /// Starts with a request and its whole body; the caller sends the datagram now.
    pub fn begin(
        now_ms: i64,
        rules: &TransferRules<'_>,
        request: Message,
        jitter: u32,
    ) -> Transfer {
        let is_long = request.payload.len() > rules.block.bytes();
        if !is_long || request.block1().is_some() {
            let exchange = Exchange::begin(now_ms, rules.transmission, &request, jitter);
            return Transfer {
                exchange,
                way: None,
            };
        }
        let way = TransferKind::with_long_body(rules, request);
        Transfer {
            exchange: Exchange::begin(now_ms, rules.transmission, &way.first(), jitter),
            way: Some(Box::new(way)),
        }
    }

    /// Starts, or goes on, with a request whose body of this length is not in memory. Nothing is
    /// sent yet: the caller supplies the part that `wanted` names to `proceed_with`.
    pub fn begin_streamed(
        now_ms: i64,
        rules: &TransferRules<'_>,
        request: Message,
        body: (usize, UploadPosition),
        jitter: u32,
    ) -> Transfer {
        let way = TransferKind::with_streamed_body(request, body);
        Transfer {
            exchange: Exchange::begin(now_ms, rules.transmission, &way.first(), jitter),
            way: Some(Box::new(way)),
        }
    }

    /// Continues a body whose first block was received in a notification, with the request for its
    /// second block (RFC 7959 section 2.6); the caller sends the datagram now.
    pub fn continue_notification(
        now_ms: i64,
        rules: &TransferRules<'_>,
        (request, notification): (Message, &Message),
        jitter: u32,
    ) -> Result<Transfer, TransferFault> {
        let way = TransferKind::with_first_block(rules, request, notification)?;
        Ok(Transfer {
            exchange: Exchange::begin(now_ms, rules.transmission, &way.first(), jitter),
            way: Some(Box::new(way)),
        })
    }

    /// Handles a message of the request's peer.
    pub fn handle(
        &mut self,
        now_ms: i64,
        rules: &TransferRules<'_>,
        message: &Message,
    ) -> TransferReception {
        match self.exchange.handle(now_ms, message) {
            ExchangeReception::NotMine => TransferReception::NotMine,
            ExchangeReception::Acknowledged => TransferReception::Acknowledged,
            ExchangeReception::Reset => {
                self.end();
                TransferReception::Reset
            }
            ExchangeReception::Unusable { option, reset } => {
                self.end();
                TransferReception::Unusable { option, reset }
            }
            ExchangeReception::Answered { acknowledge } => {
                self.handle_response(now_ms, rules, message, acknowledge)
            }
        }
    }

    fn handle_response(
        &mut self,
        now_ms: i64,
        rules: &TransferRules<'_>,
        response: &Message,
        acknowledge: Option<MessageId>,
    ) -> TransferReception {
        let step = self.step(rules, response);
        match (&step, &mut self.way) {
            (Ok(TransferStep::Next), Some(way)) => {
                way.ends_at_ms = Some(now_ms.saturating_add(rules.idle_ms));
            }
            (Ok(_) | Err(_), _) => self.end(),
        }
        match step {
            Ok(TransferStep::Next) => TransferReception::Proceeds { acknowledge },
            Ok(TransferStep::Answered) => TransferReception::Answered {
                acknowledge,
                whole: None,
            },
            Ok(TransferStep::Whole(whole)) => TransferReception::Answered {
                acknowledge,
                whole: Some(whole),
            },
            Err(fault) => TransferReception::Broken { acknowledge, fault },
        }
    }

    fn step(
        &mut self,
        rules: &TransferRules<'_>,
        response: &Message,
    ) -> Result<TransferStep, TransferFault> {
        if let Some(way) = &mut self.way {
            return way.handle(rules, response);
        }
        let way = TransferKind::after(rules, self.exchange.datagram(), response)?;
        self.way = way.map(Box::new);
        Ok(match self.way {
            Some(_) => TransferStep::Next,
            None => TransferStep::Answered,
        })
    }

    /// Makes the next datagram, after `TransferReception::Proceeds` and `TransferTimeout::Again`;
    /// the caller sends it now. Not for a body that the caller supplies.
    pub fn proceed(&mut self, now_ms: i64, rules: &TransferRules<'_>, fresh: FreshIds) {
        self.proceed_with(now_ms, rules, fresh, &[]);
    }

    /// The same with the part of the body that `wanted` names.
    pub fn proceed_with(
        &mut self,
        now_ms: i64,
        rules: &TransferRules<'_>,
        fresh: FreshIds,
        supplied: &[u8],
    ) {
        if let Some(way) = &self.way {
            let message = way.message((fresh.message_id, fresh.token), supplied);
            self.exchange = Exchange::begin(now_ms, rules.transmission, &message, fresh.jitter);
        }
    }

    /// Handles a wake-up. The clock counts, not the wake-up.
    pub fn handle_timeout(&mut self, now_ms: i64) -> TransferTimeout {
        if self.is_idle_at(now_ms) {
            self.end();
            return TransferTimeout::GaveUp(self.exchange.give_up());
        }
        match self.exchange.handle_timeout(now_ms) {
            exchange::ExchangeTimeout::NotYet => TransferTimeout::NotYet,
            exchange::ExchangeTimeout::Retransmit => TransferTimeout::Retransmit,
            exchange::ExchangeTimeout::GaveUp(_) if self.is_under_way() => TransferTimeout::Again,
            exchange::ExchangeTimeout::GaveUp(reason) => TransferTimeout::GaveUp(reason),
        }
    }

    fn end(&mut self) {
        if let Some(way) = &mut self.way {
            way.ends_at_ms = way.ends_at_ms.map(|_| NEVER_MS);
        }
    }

    /// Returns the encoded message in flight, for the first transmission and for retransmissions.
    pub fn datagram(&self) -> &[u8] {
        self.exchange.datagram()
    }

    /// Returns the id of the message in flight.
    pub fn message_id(&self) -> MessageId {
        self.exchange.message_id()
    }

    /// Returns the token of the first message, which is the token of an observation.
    pub fn token(&self) -> Token {
        let way = self.way.as_ref();
        way.map_or(self.exchange.token(), |way| way.token)
    }

    /// Returns when to call `handle_timeout`; never (`i64::MAX`) once the transfer is over.
    pub fn next_timeout(&self) -> i64 {
        self.exchange.next_timeout().min(self.ends_at_ms())
    }

    /// Returns whether a block was transferred, so that more than the first exchange is at stake.
    pub fn is_under_way(&self) -> bool {
        let way = self.way.as_ref();
        way.is_some_and(|way| way.ends_at_ms.is_some())
    }

    /// Returns the part of the body that the caller supplies for the next datagram; nothing if the
    /// body is in memory.
    pub fn wanted(&self) -> Option<Range<usize>> {
        self.way.as_ref()?.wanted()
    }

    /// Returns how far the peer has a body that the caller supplies.
    pub fn position(&self) -> Option<UploadPosition> {
        self.way.as_ref()?.position()
    }

    /// Returns how many bytes of memory the received blocks of the response occupy.
    pub fn memory(&self) -> usize {
        self.way.as_ref().map_or(0, |way| way.memory())
    }

    fn is_idle_at(&self, now_ms: i64) -> bool {
        let ends_at_ms = self.ends_at_ms();
        ends_at_ms != NEVER_MS && now_ms >= ends_at_ms
    }

    fn ends_at_ms(&self) -> i64 {
        let way = self.way.as_ref();
        way.and_then(|way| way.ends_at_ms).unwrap_or(NEVER_MS)
    }
}
