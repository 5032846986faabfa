//! Which answers are pending? Separate responses (RFC 7252 section 5.2.2) that wait for their time,
//! or for the acknowledgement of the server.

use protocol::coap::exchange::{Exchange, ExchangeReception, ExchangeTimeout, Transmission};
use protocol::coap::message::{Message, MessageKind};

use super::event::{DeviceEvent, DeviceOutput, Uplink};
use crate::rng::Rng;

/// The maximum number of pending answers; the oldest is dropped for a new one. A server has one
/// request in progress per device, so more than one or two are already unusual.
const ANSWERS_MAX: usize = 8;

/// The pending answers.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingAnswers {
    owed: Vec<OwedAnswer>,
}

/// An answer that waits for its time.
#[derive(Clone, Debug)]
pub(super) struct PendingAnswer {
    pub(super) due_at_ms: i64,
    pub(super) response: Message,
    /// The event to report when it is sent.
    pub(super) event: DeviceEvent,
}

#[derive(Clone, Debug)]
enum OwedAnswer {
    Waiting(PendingAnswer),
    // The exchange retransmits the answer until it is acknowledged; it expects no response.
    Unacknowledged(Exchange),
}

impl PendingAnswers {
    pub(super) fn owe(&mut self, answer: PendingAnswer) {
        if self.owed.len() >= ANSWERS_MAX {
            self.owed.remove(0);
        }
        self.owed.push(OwedAnswer::Waiting(answer));
    }

    /// Handles an Empty message of the server that matches an answer.
    pub(super) fn handle(&mut self, now_ms: i64, message: &Message) {
        match message.kind {
            MessageKind::Acknowledgement | MessageKind::Reset => {}
            MessageKind::Confirmable | MessageKind::NonConfirmable => return,
        }
        self.owed.retain_mut(|owed| match owed {
            OwedAnswer::Waiting(_) => true,
            OwedAnswer::Unacknowledged(exchange) => match exchange.handle(now_ms, message) {
                ExchangeReception::NotMine => true,
                ExchangeReception::Acknowledged
                | ExchangeReception::Answered { .. }
                | ExchangeReception::Unusable { .. }
                | ExchangeReception::Reset => false,
            },
        });
    }

    /// Sends what is due, for the first time or again.
    pub(super) fn handle_timeout(
        &mut self,
        now_ms: i64,
        transmission: &Transmission,
        rng: &mut Rng,
        out: &mut Vec<DeviceOutput>,
    ) {
        self.owed.retain_mut(|owed| match owed {
            OwedAnswer::Waiting(waiting) if now_ms < waiting.due_at_ms => true,
            OwedAnswer::Waiting(waiting) => match waiting.send(now_ms, transmission, rng, out) {
                Some(exchange) => {
                    *owed = OwedAnswer::Unacknowledged(exchange);
                    true
                }
                None => false,
            },
            OwedAnswer::Unacknowledged(exchange) => repeat(exchange, now_ms, Uplink::Answer, out),
        });
    }

    pub(super) fn next_timeout(&self) -> Option<i64> {
        self.owed.iter().map(OwedAnswer::next_timeout).min()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.owed.is_empty()
    }
}

impl PendingAnswer {
    fn send(
        &self,
        now_ms: i64,
        transmission: &Transmission,
        rng: &mut Rng,
        out: &mut Vec<DeviceOutput>,
    ) -> Option<Exchange> {
        out.push(DeviceOutput::Send(self.response.encode()));
        out.push(DeviceOutput::Report(self.event.clone()));
        (self.response.kind == MessageKind::Confirmable)
            .then(|| Exchange::begin(now_ms, transmission, &self.response, rng.number_u32()))
    }
}

impl OwedAnswer {
    fn next_timeout(&self) -> i64 {
        match self {
            Self::Waiting(waiting) => waiting.due_at_ms,
            Self::Unacknowledged(exchange) => exchange.next_timeout(),
        }
    }
}

/// Retransmits or gives up an exchange if it is due; returns whether its acknowledgement is still
/// awaited.
pub(super) fn repeat(
    exchange: &mut Exchange,
    now_ms: i64,
    uplink: Uplink,
    out: &mut Vec<DeviceOutput>,
) -> bool {
    match exchange.handle_timeout(now_ms) {
        ExchangeTimeout::NotYet => true,
        ExchangeTimeout::Retransmit => {
            out.push(DeviceOutput::Send(exchange.datagram().to_vec()));
            true
        }
        ExchangeTimeout::GaveUp(_) => {
            out.push(DeviceOutput::Report(DeviceEvent::GaveUp(uplink)));
            false
        }
    }
}
