//! Who observes what of the plugtest server, and whom does it owe a notification? RFC 7641
//! sections 3 and 4.

use std::net::SocketAddr;

use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;

use super::peer::MessageOutcome;

/// All observers, in the order in which they came.
#[derive(Default)]
pub(super) struct Observers {
    all: Vec<Observer>,
    last_sequence: u32,
}

/// What an observer is to be told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum State {
    /// The resource as it is now.
    New,
    /// That it is observed no longer, and why.
    Ended(Code),
}

/// A notification that is to leave.
pub(super) struct Due {
    pub(super) peer: SocketAddr,
    pub(super) resource: &'static str,
    /// The request whose answer has changed.
    pub(super) request: Message,
    pub(super) state: State,
    pub(super) sequence: u32,
}

struct Observer {
    peer: SocketAddr,
    resource: &'static str,
    request: Message,
    /// The last state counts: those in between need not be told (section 4.2).
    owed: Option<State>,
    told: Option<MessageId>,
    /// One notification at a time waits for its acknowledgement (section 4.5).
    is_waiting: bool,
}

impl Observers {
    /// Adds an observer, in the place of itself if it observes under this token already.
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
            told: None,
            is_waiting: false,
        });
        self.next_sequence()
    }

    /// Forgets an observer.
    pub(super) fn remove(&mut self, peer: SocketAddr, token: Token) {
        self.all
            .retain(|it| (it.peer, it.request.token) != (peer, token));
    }

    /// Forgets all.
    pub(super) fn forget_all(&mut self) {
        self.all.clear();
    }

    /// Takes note of what the observers of a resource are to be told.
    pub(super) fn note(&mut self, resource: &str, state: State) {
        let its = self.all.iter_mut().filter(|it| it.resource == resource);
        for observer in its {
            let has_ended = matches!(observer.owed, Some(State::Ended(_)));
            if !has_ended {
                observer.owed = Some(state);
            }
        }
    }

    /// What is to be told now.
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

    /// Takes note of the message in which an observer is told.
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
            observer.told = Some(id);
            observer.is_waiting = kind == MessageKind::Confirmable;
        }
    }

    /// Takes note of what became of a notification; whoever refuses it or does not hear it
    /// observes no longer.
    pub(super) fn conclude(&mut self, peer: SocketAddr, id: MessageId, fate: MessageOutcome) {
        let is_it = |it: &Observer| (it.peer, it.told) == (peer, Some(id));
        match fate {
            MessageOutcome::Heard => self.all.iter_mut().filter(|it| is_it(it)).for_each(|it| {
                it.is_waiting = false;
            }),
            MessageOutcome::Refused | MessageOutcome::Unheard => self.all.retain(|it| !is_it(it)),
        }
    }

    fn next_sequence(&mut self) -> u32 {
        self.last_sequence += 1;
        self.last_sequence
    }
}
