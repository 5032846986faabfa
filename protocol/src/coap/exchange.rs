//! Was our request received, and is this its response? The client's side of RFC 7252 sections 4.2,
//! 4.8, 5.2 and 5.3, for one outstanding request.
//!
//! ```text
//!                 empty ACK                      response
//!   Transmitting -----------> Awaiting -----------------------> Over
//!     |  |  ^                    |                               ^
//!     |  +--+ timeout:           +- Reset, timeout (NotAnswered) -+
//!     |       retransmit                                          |
//!     +- response, Reset, last timeout (NotAcknowledged) ---------+
//! ```
//! A Non-confirmable request starts in Awaiting. The caller sends the datagram, and drops the
//! exchange when it is over.

use super::code::Code;
use super::message::{Message, MessageId, MessageKind};
use super::option;
use super::token::Token;

/// Block1 and Block2 are the critical options that a response may have.
const KNOWN_IN_RESPONSES: [u16; 2] = [option::BLOCK2, option::BLOCK1];

/// The timeouts and the number of retransmissions: RFC 7252 section 4.8.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Transmission {
    /// The shortest initial timeout for an acknowledgement.
    pub ack_timeout_ms: u32,
    /// The longest initial timeout, relative to the shortest: 150 is ACK_RANDOM_FACTOR 1.5.
    pub ack_random_factor_percent: u32,
    /// How often an unacknowledged request is retransmitted.
    pub max_retransmit: u8,
    /// How long to wait for the response of an acknowledged request. The standard has no bound for
    /// it, and some devices never respond.
    pub response_timeout_ms: u32,
}

impl Transmission {
    /// The values of RFC 7252 section 4.8; the wait for the response is MAX_TRANSMIT_WAIT.
    pub const STANDARD: Transmission = Transmission {
        ack_timeout_ms: 2_000,
        ack_random_factor_percent: 150,
        max_retransmit: 4,
        response_timeout_ms: 93_000,
    };

    fn ack_timeout_span_ms(&self) -> u64 {
        let excess_percent = u64::from(self.ack_random_factor_percent.saturating_sub(100));
        u64::from(self.ack_timeout_ms) * excess_percent / 100
    }
}

/// One request that waits for its response.
#[derive(Clone, Debug)]
pub struct Exchange {
    datagram: Vec<u8>,
    message_id: MessageId,
    token: Token,
    kind: MessageKind,
    stops_observing: StopsObserving,
    state: State,
    next_timeout_ms: i64,
    response_timeout_ms: u32,
}

/// The result of a message for the exchange.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExchangeReception {
    /// It belongs to another exchange.
    NotMine,
    /// The request was received; its response will be a separate message. Returned once.
    Acknowledged,
    /// It is the response. The exchange is over.
    Answered {
        /// The separate Confirmable response to acknowledge.
        acknowledge: Option<MessageId>,
    },
    /// It is the response, but has a critical option that is unknown or misused, so it must not be
    /// interpreted (section 5.4.1). The exchange is over.
    Unusable {
        /// The first such option.
        option: u16,
        /// The separate Confirmable response to reset.
        reset: Option<MessageId>,
    },
    /// The device rejected the request's message. The exchange is over.
    Reset,
}

/// The result of a timeout for the exchange.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExchangeTimeout {
    /// Nothing to do: the wake-up was early, or too late to retransmit.
    NotYet,
    /// Send the datagram again.
    Retransmit,
    /// The exchange is over.
    GaveUp(GiveUp),
}

/// Why an exchange ended without an answer.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum GiveUp {
    /// No transmission was acknowledged: the request may or may not have arrived.
    NotAcknowledged,
    /// The request was acknowledged, or needed no acknowledgement, and no response was received.
    NotAnswered,
}

impl Exchange {
    /// Starts with a request that the caller sends now. `jitter` spreads the first timeout over its
    /// range, so that devices that became silent together are not requested again together.
    pub fn begin(
        now_ms: i64,
        parameters: &Transmission,
        request: &Message,
        jitter: u32,
    ) -> Exchange {
        let (state, timeout_ms) = match request.kind {
            MessageKind::Confirmable => Transmitting::begin(now_ms, parameters, jitter),
            MessageKind::NonConfirmable | MessageKind::Acknowledgement | MessageKind::Reset => {
                (State::Awaiting, i64::from(parameters.response_timeout_ms))
            }
        };
        Exchange {
            datagram: request.encode(),
            message_id: request.message_id,
            token: request.token,
            kind: request.kind,
            stops_observing: StopsObserving::of(request),
            state,
            next_timeout_ms: now_ms.saturating_add(timeout_ms),
            response_timeout_ms: parameters.response_timeout_ms,
        }
    }

    /// Handles a message of the request's peer.
    pub fn handle(&mut self, now_ms: i64, message: &Message) -> ExchangeReception {
        if self.state == State::Over || !self.is_mine(message) {
            return ExchangeReception::NotMine;
        }
        match message.kind {
            MessageKind::Reset => {
                self.end();
                ExchangeReception::Reset
            }
            MessageKind::Acknowledgement if message.code == Code::EMPTY => self.acknowledge(now_ms),
            MessageKind::Confirmable => self.answer(message, Some(message.message_id)),
            MessageKind::Acknowledgement | MessageKind::NonConfirmable => {
                self.answer(message, None)
            }
        }
    }

    /// Handles a wake-up. The clock counts, not the wake-up: an early one changes nothing, and a
    /// late one sends no more than one datagram.
    pub fn handle_timeout(&mut self, now_ms: i64) -> ExchangeTimeout {
        if now_ms < self.next_timeout_ms {
            return ExchangeTimeout::NotYet;
        }
        match &mut self.state {
            State::Over => ExchangeTimeout::NotYet,
            State::Awaiting => {
                self.end();
                ExchangeTimeout::GaveUp(GiveUp::NotAnswered)
            }
            State::Transmitting(Transmitting {
                retransmissions_left: 0,
                ..
            }) => {
                self.end();
                ExchangeTimeout::GaveUp(GiveUp::NotAcknowledged)
            }
            State::Transmitting(transmitting) => {
                let expiry = transmitting.back_off(now_ms);
                self.next_timeout_ms = now_ms.saturating_add(transmitting.timeout_ms);
                expiry
            }
        }
    }

    /// Ends the exchange early, and returns what is still missing.
    pub(super) fn give_up(&mut self) -> GiveUp {
        let is_transmitting = matches!(self.state, State::Transmitting(_));
        self.end();
        if is_transmitting {
            GiveUp::NotAcknowledged
        } else {
            GiveUp::NotAnswered
        }
    }

    // A duplicate acknowledgement changes nothing.
    fn acknowledge(&mut self, now_ms: i64) -> ExchangeReception {
        match self.state {
            State::Transmitting(_) => {
                self.state = State::Awaiting;
                self.next_timeout_ms = now_ms.saturating_add(self.response_timeout_ms.into());
                ExchangeReception::Acknowledged
            }
            State::Awaiting | State::Over => ExchangeReception::NotMine,
        }
    }

    // A separate response implies the acknowledgement that it overtook (section 5.2.2).
    fn answer(&mut self, response: &Message, confirmable: Option<MessageId>) -> ExchangeReception {
        self.end();
        match response.unknown_critical_option(&KNOWN_IN_RESPONSES) {
            Some(option) => ExchangeReception::Unusable {
                option,
                reset: confirmable,
            },
            None => ExchangeReception::Answered {
                acknowledge: confirmable,
            },
        }
    }

    fn end(&mut self) {
        self.state = State::Over;
        self.next_timeout_ms = i64::MAX;
    }

    /// Returns the encoded request, for the first transmission and for retransmissions.
    pub fn datagram(&self) -> &[u8] {
        &self.datagram
    }

    /// Returns the request's message id.
    pub fn message_id(&self) -> MessageId {
        self.message_id
    }

    /// Returns the request's token.
    pub fn token(&self) -> Token {
        self.token
    }

    /// Returns when to call `handle_timeout`; never (`i64::MAX`) once the exchange is over.
    pub fn next_timeout(&self) -> i64 {
        self.next_timeout_ms
    }

    fn is_mine(&self, message: &Message) -> bool {
        let is_my_id = message.message_id == self.message_id;
        let is_my_response = message.code.is_response() && message.token == self.token;
        match message.kind {
            MessageKind::Reset => is_my_id,
            MessageKind::Acknowledgement => {
                self.kind == MessageKind::Confirmable
                    && is_my_id
                    && (message.code == Code::EMPTY || is_my_response)
            }
            MessageKind::Confirmable | MessageKind::NonConfirmable => {
                is_my_response && !self.stops_observing.is_crossed_by(message)
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Transmitting(Transmitting),
    Awaiting,
    Over,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Transmitting {
    timeout_ms: i64,
    retransmissions_left: u8,
    last_transmission_at_ms: i64,
}

impl Transmitting {
    fn begin(now_ms: i64, parameters: &Transmission, jitter: u32) -> (State, i64) {
        let span_ms = parameters.ack_timeout_span_ms();
        let shortest_ms = i64::from(parameters.ack_timeout_ms);
        let timeout_ms = shortest_ms.saturating_add(scaled(span_ms, jitter));
        let longest_ms = shortest_ms.saturating_add(scaled(span_ms, u32::MAX));
        // MAX_TRANSMIT_SPAN (section 4.8.2), plus one timeout for late wake-ups. A datagram
        // retransmitted after that could reach a device that has forgotten the first one, and would
        // be executed twice.
        let doublings = (1_i64 << parameters.max_retransmit.min(32)) - 1;
        let last_transmission_at_ms = now_ms
            .saturating_add(longest_ms.saturating_mul(doublings))
            .saturating_add(shortest_ms);
        let retransmissions_left = parameters.max_retransmit;
        let transmitting = Transmitting {
            timeout_ms,
            retransmissions_left,
            last_transmission_at_ms,
        };
        (State::Transmitting(transmitting), timeout_ms)
    }

    fn back_off(&mut self, now_ms: i64) -> ExchangeTimeout {
        self.timeout_ms = self.timeout_ms.saturating_mul(2);
        if now_ms > self.last_transmission_at_ms {
            self.retransmissions_left = 0;
            return ExchangeTimeout::NotYet;
        }
        self.retransmissions_left = self.retransmissions_left.saturating_sub(1);
        ExchangeTimeout::Retransmit
    }
}

/// Whether the request ends an observation under the observation's own token. Notifications may
/// then cross it; only a response without Observe answers it (RFC 7641 section 4.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum StopsObserving {
    Yes,
    No,
}

impl StopsObserving {
    fn of(request: &Message) -> StopsObserving {
        match request.observe() {
            Some(1) => StopsObserving::Yes,
            Some(_) | None => StopsObserving::No,
        }
    }

    fn is_crossed_by(self, message: &Message) -> bool {
        self == StopsObserving::Yes && message.observe().is_some()
    }
}

// Scales the jitter to 0 to `span`, both included.
fn scaled(span: u64, jitter: u32) -> i64 {
    let product = u128::from(span + 1) * u128::from(jitter);
    i64::try_from(product >> 32).unwrap_or(i64::MAX)
}
