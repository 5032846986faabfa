//! Which observers does the plugtest server have, and which of them must it notify? RFC 7641
//! sections 3 and 4.

use std::net::SocketAddr;

use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;

use super::peer::MessageOutcome;

/// All observers, in the order of their registrations.
#[derive(Default)]
pub(super) struct Observers {
    all: Vec<Observer>,
    last_sequence: u32,
}

/// The state to notify an observer of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum State {
    /// The current representation of the resource.
    New,
    /// The end of the observation, with its code.
    Ended(Code),
}

/// A notification to be sent.
pub(super) struct Due {
    pub(super) peer: SocketAddr,
    pub(super) resource: &'static str,
    /// The request whose response has changed.
    pub(super) request: Message,
    pub(super) state: State,
    pub(super) sequence: u32,
}

struct Observer {
    peer: SocketAddr,
    resource: &'static str,
    request: Message,
    /// The last state counts: those in between need not be notified (section 4.2).
    owed: Option<State>,
    notified_in: Option<MessageId>,
    /// One notification at a time waits for its acknowledgement (section 4.5).
    is_waiting: bool,
}

impl Observers {
    /// Adds an observer. It replaces an observer with the same peer and token.
    pub(super) fn add(
        &mut self,
        peer: SocketAddr,
        resource: &'static str,
        request: &Message,
    ) -> u32 {
        self.remove(peer, request.token);
        self.all.push(Observer {
            peer,
            resource,
            request: request.clone(),
            owed: None,
            notified_in: None,
            is_waiting: false,
        });
        self.next_sequence()
    }

    /// Removes an observer.
    pub(super) fn remove(&mut self, peer: SocketAddr, token: Token) {
        self.all
            .retain(|it| (it.peer, it.request.token) != (peer, token));
    }

    /// Removes all observers.
    pub(super) fn forget_all(&mut self) {
        self.all.clear();
    }

    /// Records the new state of a resource for its observers.
    pub(super) fn note(&mut self, resource: &str, state: State) {
        let its = self.all.iter_mut().filter(|it| it.resource == resource);
        for observer in its {
            let has_ended = matches!(observer.owed, Some(State::Ended(_)));
            if !has_ended {
                observer.owed = Some(state);
            }
        }
    }

    /// The notifications to be sent now.
    pub(super) fn due(&mut self) -> Vec<Due> {
        let mut due = Vec::new();
        for place in 0..self.all.len() {
            let sequence = self.next_sequence();
            let observer = &mut self.all[place];
            if let Some(state) = observer.owed.take_if(|_| !observer.is_waiting) {
                due.push(Due {
                    peer: observer.peer,
                    resource: observer.resource,
                    request: observer.request.clone(),
                    state,
                    sequence,
                });
            }
        }
        let has_ended = |it: &Observer| {
            let mut its = due.iter().filter(|due| due.peer == it.peer);
            its.any(|due| due.request.token == it.request.token && due.state != State::New)
        };
        self.all.retain(|it| !has_ended(it));
        due
    }

    /// Records the message in which an observer is notified.
    pub(super) fn notified(
        &mut self,
        peer: SocketAddr,
        token: Token,
        id: MessageId,
        kind: MessageKind,
    ) {
        let mut all = self.all.iter_mut();
        let found = all.find(|it| (it.peer, it.request.token) == (peer, token));
        if let Some(observer) = found {
            observer.notified_in = Some(id);
            observer.is_waiting = kind == MessageKind::Confirmable;
        }
    }

    /// Records the outcome of a notification; an observer that rejects or never acknowledges it is
    /// removed.
    pub(super) fn conclude(&mut self, peer: SocketAddr, id: MessageId, outcome: MessageOutcome) {
        let is_it = |it: &Observer| (it.peer, it.notified_in) == (peer, Some(id));
        match outcome {
            MessageOutcome::Acknowledged => {
                self.all.iter_mut().filter(|it| is_it(it)).for_each(|it| {
                    it.is_waiting = false;
                })
            }
            MessageOutcome::Refused | MessageOutcome::Unacknowledged => {
                self.all.retain(|it| !is_it(it))
            }
        }
    }

    fn next_sequence(&mut self) -> u32 {
        self.last_sequence += 1;
        self.last_sequence
    }
}
