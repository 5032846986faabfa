//! Which answers does the device still owe? Separate responses (RFC 7252 section 5.2.2) that wait
//! for their time, or for the acknowledgement of the server.

use protocol::coap::exchange::{Exchange, Expiry, Reception, Transmission};
use protocol::coap::message::{Kind, Message};

use super::event::{Event, Output, Uplink};
use crate::chance::Chance;

/// How many answers are owed at most; the oldest is given up for a new one. A server has one
/// request under way at a device, so more than one or two are already strange.
const ANSWERS_MAX: usize = 8;

/// The answers that are owed.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    owed: Vec<Owed>,
}

/// An answer that waits for its time.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) due_at_ms: i64,
    pub(super) response: Message,
    /// What is told of it.
    pub(super) news: Event,
}

#[derive(Clone, Debug)]
enum Owed {
    Waiting(Waiting),
    // The exchange repeats the answer until it is acknowledged; it expects no response to it.
    Unacknowledged(Exchange),
}

impl Answers {
    pub(super) fn owe(&mut self, answer: Waiting) {
        if self.owed.len() >= ANSWERS_MAX {
            self.owed.remove(0);
        }
        self.owed.push(Owed::Waiting(answer));
    }

    /// Takes the server's Empty message for one of the answers.
    pub(super) fn handle(&mut self, now_ms: i64, message: &Message) {
        match message.kind {
            Kind::Acknowledgement | Kind::Reset => {}
            Kind::Confirmable | Kind::NonConfirmable => return,
        }
        self.owed.retain_mut(|owed| match owed {
            Owed::Waiting(_) => true,
            Owed::Unacknowledged(exchange) => match exchange.handle(now_ms, message) {
                Reception::NotMine => true,
                Reception::Acknowledged
                | Reception::Answered { .. }
                | Reception::Unusable { .. }
                | Reception::Reset => false,
            },
        });
    }

    /// Sends what is due, for the first time or again.
    pub(super) fn handle_timeout(
        &mut self,
        now_ms: i64,
        transmission: &Transmission,
        chance: &mut Chance,
        out: &mut Vec<Output>,
    ) {
        self.owed.retain_mut(|owed| match owed {
            Owed::Waiting(waiting) if now_ms < waiting.due_at_ms => true,
            Owed::Waiting(waiting) => match waiting.send(now_ms, transmission, chance, out) {
                Some(exchange) => {
                    *owed = Owed::Unacknowledged(exchange);
                    true
                }
                None => false,
            },
            Owed::Unacknowledged(exchange) => repeat(exchange, now_ms, Uplink::Answer, out),
        });
    }

    pub(super) fn next_timeout(&self) -> Option<i64> {
        self.owed.iter().map(Owed::next_timeout).min()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.owed.is_empty()
    }
}

impl Waiting {
    fn send(
        &self,
        now_ms: i64,
        transmission: &Transmission,
        chance: &mut Chance,
        out: &mut Vec<Output>,
    ) -> Option<Exchange> {
        out.push(Output::Send(self.response.encode()));
        out.push(Output::Told(self.news.clone()));
        (self.response.kind == Kind::Confirmable)
            .then(|| Exchange::begin(now_ms, transmission, &self.response, chance.number_u32()))
    }
}

impl Owed {
    fn next_timeout(&self) -> i64 {
        match self {
            Self::Waiting(waiting) => waiting.due_at_ms,
            Self::Unacknowledged(exchange) => exchange.next_timeout(),
        }
    }
}

/// Repeats or gives up what is due to be, and tells whether its acknowledgement is still awaited.
pub(super) fn repeat(
    exchange: &mut Exchange,
    now_ms: i64,
    said: Uplink,
    out: &mut Vec<Output>,
) -> bool {
    match exchange.handle_timeout(now_ms) {
        Expiry::NotYet => true,
        Expiry::Retransmit => {
            out.push(Output::Send(exchange.datagram().to_vec()));
            true
        }
        Expiry::GaveUp(_) => {
            out.push(Output::Told(Event::GaveUp(said)));
            false
        }
    }
}
