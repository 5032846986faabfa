//! Where is a peer that seems to have moved? RFC 9853: what is sent to a new address until the peer
//! has answered from there.

use std::net::SocketAddr;

use super::Endpoint;
use crate::association::{AssociationId, AssociationState, Established};
use crate::effect::Effects;
use crate::moment::{Moment, Timestamp};
use crate::path_check::{PathCheck, PathMessage};
use crate::record::ContentType;

impl Endpoint {
    /// Begins the check of the address that a peer has moved to, if the peer knows how to answer.
    pub(super) fn check_path(
        &mut self,
        moment: &mut Moment<'_>,
        (id, from): (AssociationId, SocketAddr),
        length: usize,
        out: &mut Effects,
    ) {
        let earlier = self.remove_path_check(id);
        let previous = earlier.as_ref().map_or(from, |it| it.previous);
        let has_returned = self.peer(id) == Some(previous);
        if has_returned || !self.checks_paths(id) {
            return self.send_waiting(id, earlier, out);
        }
        let mut check = PathCheck::new(previous, moment.random());
        check.note_received(length);
        for content in earlier.into_iter().flat_map(PathCheck::into_waiting) {
            check.keep(&content);
        }
        self.challenge(moment.now, id, check, out);
    }

    /// Counts what comes from an address under check.
    pub(super) fn note_received_from(
        &mut self,
        id: AssociationId,
        peer: SocketAddr,
        length: usize,
    ) {
        if self.peer(id) == Some(peer)
            && let Some(check) = self.path_checks.get_mut(&id)
        {
            check.note_received(length);
        }
    }

    /// A message of the check. Any peer may send a challenge that has agreed on the check.
    pub(super) fn handle_path_message(
        &mut self,
        id: AssociationId,
        peer: SocketAddr,
        content: &[u8],
        out: &mut Effects,
    ) {
        let Ok(message) = PathMessage::decode(content) else {
            return;
        };
        if !self.checks_paths(id) {
            return;
        }
        match message {
            PathMessage::Challenge(cookie) => {
                self.send_path_message(id, peer, PathMessage::Response(cookie), out);
            }
            PathMessage::Response(cookie) => {
                let is_there = self.peer(id) == Some(peer);
                let check = self.path_checks.get(&id);
                if is_there && check.is_some_and(|check| check.cookie == cookie) {
                    let check = self.remove_path_check(id);
                    self.send_waiting(id, check, out);
                }
            }
            PathMessage::Drop(_) => {}
        }
    }

    /// Sends the cookie again, or gives the address up.
    pub(super) fn handle_path_deadline(
        &mut self,
        now: Timestamp,
        id: AssociationId,
        out: &mut Effects,
    ) {
        if let Some(check) = self.remove_path_check(id) {
            self.challenge(now, id, check, out);
        }
    }

    pub(super) fn remove_path_check(&mut self, id: AssociationId) -> Option<PathCheck> {
        let check = self.path_checks.remove(&id)?;
        self.deadlines.remove(&(check.deadline, id));
        Some(check)
    }

    fn challenge(
        &mut self,
        now: Timestamp,
        id: AssociationId,
        mut check: PathCheck,
        out: &mut Effects,
    ) {
        let Some(association) = self.associations.find_mut(id) else {
            return;
        };
        let peer = association.peer;
        if !check.next_challenge(now, self.config.retransmission.initial_ms) {
            association.peer = check.previous;
            return out.moved(id, peer, check.previous);
        }
        let message = PathMessage::Challenge(check.cookie);
        // That of a last flight may be at the same time.
        while self.deadlines.contains(&(check.deadline, id)) {
            check.deadline = check.deadline.plus_ms(1);
        }
        self.deadlines.insert((check.deadline, id));
        self.path_checks.insert(id, check);
        self.send_path_message(id, peer, message, out);
    }

    /// Sends a message of the check, unless too much was sent already.
    fn send_path_message(
        &mut self,
        id: AssociationId,
        peer: SocketAddr,
        message: PathMessage,
        out: &mut Effects,
    ) {
        let content = message.encode();
        let Some(association) = self.associations.find_mut(id) else {
            return;
        };
        let AssociationState::Established(Established { session, .. }) = &mut association.state
        else {
            return;
        };
        let length = content.len() + session.overhead_max();
        let check = self.path_checks.get_mut(&id);
        if check.as_ref().is_some_and(|check| !check.admits(length)) {
            return;
        }
        let start = out.bytes().len();
        let sealed = session.seal(ContentType::ReturnRoutabilityCheck, &content, out.bytes());
        if sealed.is_ok() {
            out.transmit(peer, start);
            if let Some(check) = check {
                check.note_sent(length);
            }
        }
    }

    /// Sends what has waited for a check.
    fn send_waiting(&mut self, id: AssociationId, check: Option<PathCheck>, out: &mut Effects) {
        for content in check.into_iter().flat_map(PathCheck::into_waiting) {
            // A session that has ended meanwhile takes it along.
            let _ = self.send(id, &content, out);
        }
    }

    fn checks_paths(&self, id: AssociationId) -> bool {
        let association = self.associations.find(id);
        association.is_some_and(|association| match &association.state {
            AssociationState::Established(established) => established.session.checks_paths,
            AssociationState::Handshaking(_) => false,
        })
    }
}
