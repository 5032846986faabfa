//! What does a record mean for the association that it is for?

use std::net::SocketAddr;

use super::{AGE_STEPS, Endpoint, Handled, unlist};
use crate::alert::{Alert, AlertDescription};
use crate::association::{AssociationId, AssociationState, Role};
use crate::connection_id;
use crate::effect::{CloseReason, Effects, HandshakeFailure};
use crate::handshake::message::{Fragment, MessageType};
use crate::handshake::transport::Protection;
use crate::moment::Moment;
use crate::presentation::Reader;
use crate::record::{ContentType, HEADER_LENGTH, Record};

impl Endpoint {
    /// A record with a Connection ID of ours.
    pub(super) fn handle_with_id(
        &mut self,
        moment: &mut Moment<'_>,
        peer: SocketAddr,
        record: &Record<'_>,
        out: &mut Effects,
    ) -> Handled {
        let prefix = &self.config.connection_id_prefix;
        let Some(id) = connection_id::decode(prefix, record.connection_id) else {
            return Handled::Dropped;
        };
        let Some(association) = self.associations.find(id) else {
            self.counters.unknown_connection_ids += 1;
            return Handled::Dropped;
        };
        match association.state {
            AssociationState::Established(_) => {
                self.handle_in_session(moment, id, peer, record, out)
            }
            AssociationState::Handshaking(_) => {
                self.handle_in_handshake(moment, id, peer, record, out)
            }
        }
    }

    /// A protected record without a Connection ID.
    pub(super) fn handle_by_peer(
        &mut self,
        moment: &mut Moment<'_>,
        peer: SocketAddr,
        record: &Record<'_>,
        out: &mut Effects,
    ) -> Handled {
        if let Some(id) = self.session_by_peer.get(&peer).copied() {
            let handled = self.handle_in_session(moment, id, peer, record, out);
            if handled != Handled::Dropped {
                return handled;
            }
        }
        match self.handshake_by_peer.get(&peer).copied() {
            Some(id) => self.handle_in_handshake(moment, id, peer, record, out),
            None => Handled::Dropped,
        }
    }

    pub(super) fn handle_in_session(
        &mut self,
        moment: &mut Moment<'_>,
        id: AssociationId,
        peer: SocketAddr,
        record: &Record<'_>,
        out: &mut Effects,
    ) -> Handled {
        let step_ms = self.config.idle_timeout_ms / AGE_STEPS;
        let length = HEADER_LENGTH + record.connection_id.len() + record.fragment.len();
        let Some(association) = self.associations.find_mut(id) else {
            return Handled::Dropped;
        };
        let AssociationState::Established(established) = &mut association.state else {
            return Handled::Dropped;
        };
        let start = out.bytes().len();
        let Ok(opened) = established.session.open(record, out.bytes()) else {
            self.counters.not_authentic += 1;
            return Handled::Dropped;
        };
        // RFC 9146 section 6: authentic, and newer than all before.
        let mut moved_from = None;
        if opened.is_newest && association.peer != peer {
            out.moved(id, association.peer, peer);
            moved_from = Some(std::mem::replace(&mut association.peer, peer));
        }
        let is_aged = moment.now.since_ms(association.heard_at) > step_ms;
        let mut path_message = None;
        match opened.content_type {
            ContentType::ApplicationData => {
                if let Some(last_flight) = established.last_flight.take() {
                    self.deadlines.remove(&(last_flight.until, id));
                    unlist(&mut self.handshake_by_peer, last_flight.peer, id);
                }
                out.received(id, start);
            }
            ContentType::Handshake => self.handle_late_handshake(id, start, out),
            ContentType::Alert => self.handle_protected_alert(id, start, out),
            ContentType::ReturnRoutabilityCheck => {
                path_message = Some(out.bytes().split_off(start));
            }
            ContentType::ChangeCipherSpec | ContentType::Cid => (),
        }
        match moved_from {
            Some(from) => self.check_path(moment, (id, from), length, out),
            None => self.note_received_from(id, peer, length),
        }
        // An echo that moves the peer proves nothing about where it comes from.
        if let Some(content) = path_message {
            self.handle_path_message(id, peer, &content, out);
        }
        if is_aged {
            self.associations.touch(id, moment.now);
        }
        Handled::Done
    }

    /// A handshake message in a session: a repeated Finished, or a renegotiation.
    fn handle_late_handshake(&mut self, id: AssociationId, start: usize, out: &mut Effects) {
        let content = out.bytes().split_off(start);
        let mut reader = Reader::new(&content);
        while let Ok(fragment) = Fragment::decode(&mut reader) {
            match fragment.message_type {
                MessageType::Finished => self.answer_repetition(id, out),
                MessageType::ClientHello | MessageType::HelloRequest => {
                    let alert = Alert::warning(AlertDescription::NO_RENEGOTIATION);
                    self.send_alert(id, alert, out);
                }
                MessageType::ServerHello
                | MessageType::HelloVerifyRequest
                | MessageType::NewSessionTicket
                | MessageType::Certificate
                | MessageType::ServerKeyExchange
                | MessageType::CertificateRequest
                | MessageType::ServerHelloDone
                | MessageType::CertificateVerify
                | MessageType::ClientKeyExchange => (),
            }
        }
    }

    fn handle_protected_alert(&mut self, id: AssociationId, start: usize, out: &mut Effects) {
        let alert = Alert::decode(&out.bytes().split_off(start));
        let Ok(alert) = alert else {
            return;
        };
        if !alert.ends_session() {
            return;
        }
        let reason = match alert.description {
            AlertDescription::CLOSE_NOTIFY => {
                // RFC 5246 section 7.2.1: answered in kind.
                self.send_alert(id, Alert::warning(AlertDescription::CLOSE_NOTIFY), out);
                CloseReason::CloseNotify
            }
            description => CloseReason::Alert(description),
        };
        self.end_session(id, reason, out);
    }

    /// A protected record of the epoch that a handshake leads to.
    pub(super) fn handle_in_handshake(
        &mut self,
        moment: &mut Moment<'_>,
        id: AssociationId,
        peer: SocketAddr,
        record: &Record<'_>,
        out: &mut Effects,
    ) -> Handled {
        let Some(handshake) = self.handshake_mut(id) else {
            return Handled::Dropped;
        };
        if !handshake.transport.can_open() {
            handshake.transport.keep_early(record);
            return Handled::Done;
        }
        let start = out.bytes().len();
        let Ok(content_type) = handshake.transport.open(record, out.bytes()) else {
            let is_first = handshake.transport.reject_protected();
            if is_first && matches!(handshake.role, Role::Server(_)) {
                // The handshake stays: whoever sent the record may not be the peer.
                self.send_alert(id, Alert::fatal(AlertDescription::DECRYPT_ERROR), out);
            }
            self.counters.not_authentic += 1;
            return Handled::Dropped;
        };
        let content = out.bytes().split_off(start);
        match content_type {
            ContentType::Handshake => {
                self.set_peer(id, peer);
                self.handle_fragments(moment, id, &content, Protection::Protected, out)
            }
            ContentType::Alert => {
                self.handle_handshake_alert(id, &content, out);
                Handled::Done
            }
            // Nobody is believed before the Finished.
            ContentType::ApplicationData => {
                let handshake = self.handshake_mut(id);
                match handshake.is_some_and(|it| it.transport.keep_overtaking(content)) {
                    true => Handled::Done,
                    false => Handled::Dropped,
                }
            }
            ContentType::ReturnRoutabilityCheck
            | ContentType::ChangeCipherSpec
            | ContentType::Cid => Handled::Dropped,
        }
    }

    /// A record of epoch 0.
    pub(super) fn handle_plain(
        &mut self,
        moment: &mut Moment<'_>,
        peer: SocketAddr,
        record: &Record<'_>,
        out: &mut Effects,
    ) -> Handled {
        let id = self.handshake_by_peer.get(&peer).copied();
        match (record.content_type, id) {
            (ContentType::Handshake, id) => {
                if let Some(begun) = self.handle_first_flight(moment, peer, id, record, out) {
                    return begun;
                }
                let Some(id) = id else {
                    return Handled::Dropped;
                };
                self.handle_fragments(moment, id, record.fragment, Protection::Plain, out)
            }
            (ContentType::ChangeCipherSpec, Some(id)) => {
                if let Some(handshake) = self.handshake_mut(id) {
                    handshake.transport.change_cipher_spec(record.fragment);
                }
                self.open_early(moment, id, out);
                Handled::Done
            }
            (ContentType::Alert, Some(id)) => {
                self.handle_handshake_alert(id, record.fragment, out);
                Handled::Done
            }
            (
                ContentType::ChangeCipherSpec
                | ContentType::Alert
                | ContentType::ApplicationData
                | ContentType::ReturnRoutabilityCheck
                | ContentType::Cid,
                _,
            ) => Handled::Dropped,
        }
    }

    fn handle_handshake_alert(&mut self, id: AssociationId, content: &[u8], out: &mut Effects) {
        let alert = Alert::decode(content);
        let Ok(alert) = alert else {
            return;
        };
        if alert.ends_session() {
            let reason = HandshakeFailure::RefusedByPeer(alert.description);
            self.fail_handshake(id, reason, out);
        }
    }
}
