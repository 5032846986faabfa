//! How does a handshake go on, from the first hello to the session?

use std::net::SocketAddr;

use super::{Endpoint, Handled, unlist};
use crate::alert::Alert;
use crate::association::{
    AssociationId, AssociationState, Established, Handshake, RepeatableFlight, Role,
};
use crate::connection_id;
use crate::effect::{CloseReason, Effects, Establishment, HandshakeFailure};
use crate::export;
use crate::handshake::cookie;
use crate::handshake::flight::LastFlight;
use crate::handshake::hello::{self, ClientHelloStart};
use crate::handshake::message::{Fragment, Message, MessageType};
use crate::handshake::reassembly::Reception;
use crate::handshake::server::{ServerContext, ServerHandshake};
use crate::handshake::transport::{Due, Protection};
use crate::handshake::{Outcome, Refused, Step};
use crate::key_schedule::RANDOM_LENGTH;
use crate::moment::{Moment, Timestamp};
use crate::presentation::Reader;
use crate::record::{self, ContentType, Record};

impl Endpoint {
    /// A ClientHello that begins a handshake: without a valid cookie it gets one, and nothing is
    /// remembered. None if the record is not the beginning of a handshake.
    pub(super) fn handle_first_flight(
        &mut self,
        moment: &mut Moment<'_>,
        peer: SocketAddr,
        current: Option<AssociationId>,
        record: &Record<'_>,
        out: &mut Effects,
    ) -> Option<Handled> {
        let fragment = Fragment::decode(&mut Reader::new(record.fragment)).ok()?;
        let is_start = fragment.message_type == MessageType::ClientHello && fragment.offset == 0;
        if !is_start || !self.config.accepts_clients {
            return None;
        }
        let start = ClientHelloStart::decode(&mut Reader::new(fragment.bytes)).ok()?;
        let secret = &self.config.cookie_secret;
        let has_cookie = cookie::is_valid(secret, moment.now, peer, &start);
        if current.is_some_and(|id| self.is_hello_of(id, &start, has_cookie)) {
            return None;
        }
        if !has_cookie {
            self.counters.cookies_sent += 1;
            let cookie = cookie::make(secret, moment.now, peer, &start);
            send_hello_verify_request(&cookie, record, &fragment, peer, out);
            return Some(Handled::Done);
        }
        if let Some(id) = current {
            let handshake = self.handshake_mut(id);
            if handshake.is_some_and(|it| matches!(it.role, Role::Client(_))) {
                return Some(Handled::Dropped);
            }
            self.fail_handshake(id, HandshakeFailure::Replaced, out);
        }
        let Some(id) = self.make_room(moment, out) else {
            return Some(Handled::Dropped);
        };
        self.counters.handshakes_begun += 1;
        let transport = self.transport(moment.now, fragment.sequence, record.sequence);
        let role = Role::Server(Box::new(ServerHandshake::new(start.random)));
        self.insert_handshake(moment.now, id, peer, transport, role);
        Some(self.handle_fragments(moment, id, record.fragment, Protection::Plain, out))
    }

    /// Whether a ClientHello, repeated, is the one that a handshake began with, also when it has
    /// led to a session: in a second handshake, the rest of the client's flight would be wrong. A
    /// client whose randoms repeat can begin anew once there is a session: its hello has no valid
    /// cookie then. As a client we await none.
    fn is_hello_of(
        &self,
        id: AssociationId,
        start: &ClientHelloStart<'_>,
        has_cookie: bool,
    ) -> bool {
        let is_begun_by = |random| random == Some(start.random);
        self.associations
            .find(id)
            .is_some_and(|it| match &it.state {
                AssociationState::Handshaking(handshake) => {
                    is_begun_by(begun_by(&handshake.role)) && !start.cookie.is_empty()
                }
                AssociationState::Established(established) => {
                    let last_flight = established.last_flight.as_ref();
                    is_begun_by(last_flight.and_then(|it| it.begun_by)) && has_cookie
                }
            })
    }

    pub(super) fn handle_fragments(
        &mut self,
        moment: &mut Moment<'_>,
        id: AssociationId,
        content: &[u8],
        protection: Protection,
        out: &mut Effects,
    ) -> Handled {
        let mut reader = Reader::new(content);
        let mut handled = Handled::Done;
        while !reader.is_empty() {
            let Some(handshake) = self.handshake_mut(id) else {
                break;
            };
            let Ok(fragment) = Fragment::decode(&mut reader) else {
                return Handled::Dropped;
            };
            match handshake.transport.insert(&fragment, protection) {
                Reception::Kept => self.handle_messages(moment, id, out),
                Reception::Repeated => handled = Handled::Repeated(id),
                Reception::Dropped => return Handled::Dropped,
            }
        }
        handled
    }

    fn handle_messages(&mut self, moment: &mut Moment<'_>, id: AssociationId, out: &mut Effects) {
        while let Some(handshake) = self.handshake_mut(id)
            && let Some(message) = handshake.transport.next_message()
        {
            match self.handle_message(moment, id, &message) {
                Some(Ok(Step::Wait)) => (),
                Some(Ok(Step::SendFlight)) => {
                    self.send_flight(moment.now, id, out);
                    // A client's keys are known with its flight, a server's when it resumes.
                    self.open_early(moment, id, out);
                }
                Some(Ok(Step::LookUpPsk(identity))) => out.look_up_psk(id, identity),
                Some(Ok(Step::AdmitPublicKey(key))) => out.admit_public_key(id, key),
                Some(Ok(Step::AdmitCertificate(chain))) => out.admit_certificate(id, chain),
                Some(Ok(Step::Establish(outcome))) => self.establish(moment, id, *outcome, out),
                Some(Err(Refused(description))) => {
                    self.send_alert(id, Alert::fatal(description), out);
                    self.fail_handshake(id, HandshakeFailure::Refused(description), out);
                }
                None => return,
            }
            self.note_deadline(id);
        }
    }

    fn handle_message(
        &mut self,
        moment: &mut Moment<'_>,
        id: AssociationId,
        message: &Message,
    ) -> Option<Result<Step, Refused>> {
        let association = self.associations.find_mut(id)?;
        let AssociationState::Handshaking(handshake) = &mut association.state else {
            return None;
        };
        let Handshake {
            transport, role, ..
        } = &mut **handshake;
        Some(match role {
            Role::Server(server) => {
                let mut context = ServerContext {
                    config: &self.config,
                    moment,
                    cache: &self.cache,
                    association: id,
                };
                server.handle_message(message, transport, &mut context)
            }
            Role::Client(client) => client.handle_message(message, transport, moment),
        })
    }

    /// Opens the records that came before their keys, if the keys are known.
    pub(super) fn open_early(
        &mut self,
        moment: &mut Moment<'_>,
        id: AssociationId,
        out: &mut Effects,
    ) {
        let length = connection_id::length(self.config.connection_id_prefix.len());
        let Some(association) = self.associations.find_mut(id) else {
            return;
        };
        let peer = association.peer;
        let AssociationState::Handshaking(handshake) = &mut association.state else {
            return;
        };
        if !handshake.transport.can_open() {
            return;
        }
        for bytes in handshake.transport.take_early() {
            let Some(record) = Record::of_kept(&bytes, length) else {
                continue;
            };
            let is_established = self.associations.find(id).is_some_and(|association| {
                matches!(association.state, AssociationState::Established(_))
            });
            if is_established {
                self.handle_in_session(moment, id, peer, &record, out);
            } else {
                self.handle_in_handshake(moment, id, peer, &record, out);
            }
        }
    }

    fn establish(
        &mut self,
        moment: &Moment<'_>,
        id: AssociationId,
        outcome: Outcome,
        out: &mut Effects,
    ) {
        let Some(association) = self.associations.find_mut(id) else {
            return;
        };
        let peer = association.peer;
        let AssociationState::Handshaking(handshake) = &mut association.state else {
            return;
        };
        self.deadlines.remove(&(handshake.deadline, id));
        let begun_by = begun_by(&handshake.role);
        let overtaking = handshake.transport.take_overtaking();
        let mut session = outcome.session;
        let until = moment.now.plus_ms(self.config.retransmission.give_up_ms);
        let last_flight = outcome.last_flight.map(|mut last| {
            last.flight
                .transmit(last.limits, Some(&mut session), peer, out);
            self.deadlines.insert((until, id));
            Box::new(RepeatableFlight {
                last,
                until,
                peer,
                begun_by,
            })
        });
        if last_flight.is_none() {
            unlist(&mut self.handshake_by_peer, peer, id);
        }
        if !session.has_connection_id {
            let earlier = self.session_by_peer.insert(peer, id);
            if let Some(earlier) = earlier {
                self.end_session(earlier, CloseReason::Replaced, out);
            }
        }
        let established = Established {
            session,
            identity: outcome.identity.clone(),
            last_flight,
        };
        self.associations.establish(id, moment.now, established);
        self.counters.handshakes_completed += 1;
        out.established(Establishment {
            association: id,
            peer,
            identity: outcome.identity,
            security: outcome.security,
            resumption: outcome.resumption,
            cached: outcome.cached.map(|(id, session)| {
                let record = export::encode_cached(&id, &session);
                let sessions_max = self.config.cached_sessions_max;
                self.cache.insert(id, session, sessions_max);
                record
            }),
        });
        for content in overtaking {
            let start = out.bytes().len();
            out.bytes().extend_from_slice(&content);
            out.received(id, start);
        }
    }

    pub(super) fn answer_repetition(&mut self, id: AssociationId, out: &mut Effects) {
        let Some(association) = self.associations.find_mut(id) else {
            return;
        };
        let peer = association.peer;
        match &mut association.state {
            AssociationState::Handshaking(handshake) => {
                handshake.transport.answer_repetition(peer, out);
            }
            AssociationState::Established(established) => {
                if let Some(last_flight) = &mut established.last_flight
                    && last_flight.last.flight.may_answer()
                {
                    let LastFlight { flight, limits } = &mut last_flight.last;
                    let session = Some(&mut established.session);
                    flight.transmit(*limits, session, peer, out);
                }
            }
        }
    }

    pub(super) fn send_flight(&mut self, now: Timestamp, id: AssociationId, out: &mut Effects) {
        let Some(association) = self.associations.find_mut(id) else {
            return;
        };
        let peer = association.peer;
        if let AssociationState::Handshaking(handshake) = &mut association.state {
            handshake.transport.send_flight(now, peer, out);
        }
        self.note_deadline(id);
    }

    pub(super) fn send_alert(&mut self, id: AssociationId, alert: Alert, out: &mut Effects) {
        let Some(association) = self.associations.find_mut(id) else {
            return;
        };
        let start = out.bytes().len();
        match &mut association.state {
            AssociationState::Handshaking(handshake) => {
                let sequence = handshake.transport.next_plain_sequence();
                let content = alert.encode();
                record::encode_plaintext(ContentType::Alert, sequence, &content, out.bytes());
            }
            AssociationState::Established(established) => {
                // A session without record numbers cannot even tell that.
                let content = alert.encode();
                let session = &mut established.session;
                let _ = session.seal(ContentType::Alert, &content, out.bytes());
            }
        }
        out.transmit(association.peer, start);
    }

    pub(super) fn handle_deadline(&mut self, now: Timestamp, id: AssociationId, out: &mut Effects) {
        let Some(association) = self.associations.find_mut(id) else {
            return;
        };
        let peer = association.peer;
        match &mut association.state {
            AssociationState::Established(established) => {
                let last_flight = &mut established.last_flight;
                if let Some(last_flight) = last_flight.take_if(|it| it.until <= now) {
                    unlist(&mut self.handshake_by_peer, last_flight.peer, id);
                }
                if self
                    .path_checks
                    .get(&id)
                    .is_some_and(|it| it.deadline <= now)
                {
                    self.handle_path_deadline(now, id, out);
                }
            }
            AssociationState::Handshaking(handshake) => match handshake.transport.due(now) {
                Due::GiveUp => {
                    self.fail_handshake(id, HandshakeFailure::TimedOut, out);
                }
                Due::Resend => {
                    handshake.transport.resend(now, peer, out);
                    self.note_deadline(id);
                }
                Due::Nothing => self.note_deadline(id),
            },
        }
    }
}

/// The random of the ClientHello that a handshake began with, if we are the server.
fn begun_by(role: &Role) -> Option<[u8; RANDOM_LENGTH]> {
    match role {
        Role::Server(server) => Some(server.begun_by()),
        Role::Client(_) => None,
    }
}

/// Answers in the numbers of the hello: there is no state that could have others (RFC 6347 section
/// 4.2.1).
fn send_hello_verify_request(
    cookie: &[u8],
    record: &Record<'_>,
    hello: &Fragment<'_>,
    peer: SocketAddr,
    out: &mut Effects,
) {
    let message = Message {
        message_type: MessageType::HelloVerifyRequest,
        sequence: hello.sequence,
        body: hello::encode_hello_verify_request(cookie),
    };
    let mut content = Vec::with_capacity(64);
    message.as_fragment().encode(&mut content);
    let start = out.bytes().len();
    record::encode_plaintext(
        ContentType::Handshake,
        record.sequence,
        &content,
        out.bytes(),
    );
    out.transmit(peer, start);
}
