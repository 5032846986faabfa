//! Which association is a datagram for, and what follows from it? The dispatcher of one socket.
//!
//! ```text
//! tls12_cid -> the association that the Connection ID names
//! epoch 0   -> the handshake with the address; a ClientHello without one gets a cookie
//! epoch 1   -> the session, or else the handshake, with the address
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use crate::alert::{Alert, AlertDescription};
use crate::association::{
    Association, AssociationId, AssociationState, AssociationTable, Established, Handshake, Role,
};
use crate::config::{ClientConfig, Config};
use crate::connection_id;
use crate::counters::Counters;
use crate::effect::{CloseReason, Effects, Establishment, HandshakeFailure};
use crate::handshake::client::ClientHandshake;
use crate::handshake::cookie;
use crate::handshake::flight::SizeLimits;
use crate::handshake::hello::{self, ClientHelloStart};
use crate::handshake::message::{Fragment, Message, MessageType};
use crate::handshake::reassembly::Reception;
use crate::handshake::resumption::SessionCache;
use crate::handshake::server::{ServerContext, ServerHandshake};
use crate::handshake::transport::{Due, Protection, Transport};
use crate::handshake::{Outcome, Refused, Step};
use crate::moment::{Moment, Timestamp};
use crate::presentation::Reader;
use crate::record::{self, ContentType, PLAINTEXT_MAX, Record};
use crate::session::EPOCH;

/// A session moves to the end of the order of age only after this part of the idle timeout: a
/// record then touches one session in memory, not three.
const AGE_STEPS: u64 = 16;

/// All associations of one socket.
///
/// There are three kinds of calls:
///
/// - inputs, which leave their effects in a buffer: [`Self::handle_datagram`],
///   [`Self::handle_timeout`], [`Self::provide_psk`], [`Self::admit`], [`Self::refuse`];
/// - commands: [`Self::connect`], [`Self::send`], [`Self::close`], [`Self::forget`];
/// - questions: [`Self::next_timeout`], [`Self::peer`], [`Self::counters`].
#[derive(Debug)]
pub struct Endpoint {
    pub(crate) config: Arc<Config>,
    pub(crate) associations: AssociationTable,
    handshake_by_peer: BTreeMap<SocketAddr, AssociationId>,
    /// Of sessions without a Connection ID.
    pub(crate) session_by_peer: BTreeMap<SocketAddr, AssociationId>,
    deadlines: BTreeSet<(Timestamp, AssociationId)>,
    pub(crate) cache: SessionCache,
    counters: Counters,
}

/// Why nothing was sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SendError {
    /// There is no such association, or no longer.
    #[error("the association does not exist")]
    Unknown,
    /// Its handshake is not over.
    #[error("the handshake is not finished")]
    NotEstablished,
    /// The peer accepts only shorter records.
    #[error("the peer accepts at most {max} bytes in a record")]
    TooLong {
        /// The longest content that it accepts.
        max: usize,
    },
    /// The record numbers of the session are used up; a new handshake is needed.
    #[error("the session has no record numbers left")]
    Exhausted,
}

/// No handshake was begun: the table is full of handshakes, or the address has one already.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no handshake can be begun with this address now")]
pub struct CannotConnect;

impl Endpoint {
    /// An endpoint without associations.
    pub fn new(config: Arc<Config>) -> Self {
        Self {
            config,
            associations: AssociationTable::default(),
            handshake_by_peer: BTreeMap::new(),
            session_by_peer: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            cache: SessionCache::default(),
            counters: Counters::default(),
        }
    }

    /// Takes a datagram from the socket.
    pub fn handle_datagram(
        &mut self,
        moment: &mut Moment<'_>,
        peer: SocketAddr,
        datagram: &[u8],
        out: &mut Effects,
    ) {
        let connection_id_length = connection_id::length(self.config.connection_id_prefix.len());
        let mut reader = Reader::new(datagram);
        let mut repeats_flight = None;
        while !reader.is_empty() {
            let Ok(record) = Record::decode(&mut reader, connection_id_length) else {
                self.counters.malformed += 1;
                break;
            };
            self.counters.records_received += 1;
            let handled = match (record.content_type, record.epoch) {
                (ContentType::Cid, EPOCH) => self.handle_with_id(moment, peer, &record, out),
                (ContentType::Cid, _) => Handled::Dropped,
                (_, 0) => self.handle_plain(moment, peer, &record, out),
                (_, EPOCH) => self.handle_by_peer(moment, peer, &record, out),
                (_, _) => Handled::Dropped,
            };
            match handled {
                Handled::Done => (),
                Handled::Dropped => self.counters.records_dropped += 1,
                Handled::Repeated(id) => repeats_flight = Some(id),
            }
        }
        // Once for a datagram, however many of its messages were repeated.
        if let Some(id) = repeats_flight {
            self.answer_repetition(id, out);
        }
    }

    /// Does what is due. To be called at [`Self::next_timeout`]; earlier or later is no mistake.
    pub fn handle_timeout(&mut self, moment: &mut Moment<'_>, out: &mut Effects) {
        while let Some((at, id)) = self.deadlines.first().copied() {
            if at > moment.now {
                break;
            }
            self.deadlines.pop_first();
            self.handle_deadline(moment.now, id, out);
        }
        while let Some(at) = self.idle_deadline()
            && at <= moment.now
        {
            let Some(id) = self.associations.oldest_session().map(Association::id) else {
                break;
            };
            self.end_session(id, CloseReason::Idle, out);
        }
    }

    /// Answers [`Effect::LookUpPsk`](crate::Effect::LookUpPsk): the keys that the identity may
    /// have, normally one; two while a key is exchanged for another; none if it is unknown. The
    /// peer cannot tell an unknown identity from a wrong key.
    pub fn provide_psk(
        &mut self,
        moment: &mut Moment<'_>,
        id: AssociationId,
        candidates: &[&[u8]],
        out: &mut Effects,
    ) {
        let Some(handshake) = self.handshake_mut(id) else {
            return;
        };
        let Role::Server(server) = &mut handshake.role else {
            return;
        };
        server.provide_psk(candidates, &mut handshake.transport, moment);
        self.open_early(moment, id, out);
    }

    /// Answers [`Effect::AdmitPublicKey`](crate::Effect::AdmitPublicKey): the owner of the key is
    /// known.
    pub fn admit(&mut self, moment: &mut Moment<'_>, id: AssociationId, out: &mut Effects) {
        let Some(handshake) = self.handshake_mut(id) else {
            return;
        };
        let Role::Server(server) = &mut handshake.role else {
            return;
        };
        server.admit(&mut handshake.transport);
        self.open_early(moment, id, out);
    }

    /// Answers [`Effect::AdmitPublicKey`](crate::Effect::AdmitPublicKey): nobody known has the key.
    pub fn refuse(&mut self, id: AssociationId, out: &mut Effects) {
        let description = AlertDescription::ACCESS_DENIED;
        if self.handshake_mut(id).is_some() {
            self.send_alert(id, Alert::fatal(description), out);
            self.fail_handshake(id, HandshakeFailure::Refused(description), out);
        }
    }

    /// Begins a handshake as a client.
    pub fn connect(
        &mut self,
        moment: &mut Moment<'_>,
        peer: SocketAddr,
        client: ClientConfig,
        out: &mut Effects,
    ) -> Result<AssociationId, CannotConnect> {
        if self.handshake_by_peer.contains_key(&peer) {
            return Err(CannotConnect);
        }
        let id = self.make_room(moment, out).ok_or(CannotConnect)?;
        let mut transport = self.transport(moment.now, 0, 0);
        let prefix = &self.config.connection_id_prefix;
        let role = ClientHandshake::begin(client, prefix, id, &mut transport, moment);
        self.insert_handshake(
            moment.now,
            id,
            peer,
            transport,
            Role::Client(Box::new(role)),
        );
        self.send_flight(moment.now, id, out);
        Ok(id)
    }

    /// Sends a datagram of the application in one record.
    pub fn send(
        &mut self,
        id: AssociationId,
        content: &[u8],
        out: &mut Effects,
    ) -> Result<(), SendError> {
        let association = self.associations.find_mut(id).ok_or(SendError::Unknown)?;
        let AssociationState::Established(established) = &mut association.state else {
            return Err(SendError::NotEstablished);
        };
        let max = established.session.content_max();
        if content.len() > max {
            return Err(SendError::TooLong { max });
        }
        let start = out.bytes().len();
        let session = &mut established.session;
        let sealed = session.seal(ContentType::ApplicationData, content, out.bytes());
        sealed.map_err(|_| SendError::Exhausted)?;
        out.transmit(association.peer, start);
        Ok(())
    }

    /// Ends an association and tells the peer.
    pub fn close(&mut self, id: AssociationId, out: &mut Effects) {
        self.send_alert(id, Alert::warning(AlertDescription::CLOSE_NOTIFY), out);
        self.forget(id);
    }

    /// Ends an association without a word, for example because the peer has a newer one.
    pub fn forget(&mut self, id: AssociationId) {
        let Some(association) = self.associations.remove(id) else {
            return;
        };
        let by_peer = match &association.state {
            AssociationState::Handshaking(handshake) => {
                self.deadlines.remove(&(handshake.deadline, id));
                &mut self.handshake_by_peer
            }
            AssociationState::Established(established) => {
                if let Some(last_flight) = &established.last_flight {
                    self.deadlines.remove(&(last_flight.1, id));
                }
                &mut self.session_by_peer
            }
        };
        if by_peer.get(&association.peer) == Some(&id) {
            by_peer.remove(&association.peer);
        }
    }

    /// When [`Self::handle_timeout`] is to be called.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        let deadline = self.deadlines.first().map(|(at, _)| *at);
        [deadline, self.idle_deadline()].into_iter().flatten().min()
    }

    /// Where the peer of an association is.
    pub fn peer(&self, id: AssociationId) -> Option<SocketAddr> {
        self.associations.find(id).map(|it| it.peer)
    }

    /// The longest content that [`Self::send`] accepts for an association.
    pub fn content_max(&self, id: AssociationId) -> Option<usize> {
        match &self.associations.find(id)?.state {
            AssociationState::Established(established) => Some(established.session.content_max()),
            AssociationState::Handshaking(_) => None,
        }
    }

    /// The number of associations, handshakes included.
    pub fn association_count(&self) -> usize {
        self.associations.count()
    }

    /// The number of handshakes that have passed the cookie and are under way.
    pub fn handshake_count(&self) -> usize {
        self.associations.handshake_count()
    }

    /// What has happened so far, in numbers.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    // Records.

    /// A record with a Connection ID of ours.
    fn handle_with_id(
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
    fn handle_by_peer(
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

    fn handle_in_session(
        &mut self,
        moment: &mut Moment<'_>,
        id: AssociationId,
        peer: SocketAddr,
        record: &Record<'_>,
        out: &mut Effects,
    ) -> Handled {
        let step_ms = self.config.idle_timeout_ms / AGE_STEPS;
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
        if opened.is_newest && association.peer != peer {
            out.moved(id, association.peer, peer);
            association.peer = peer;
        }
        let is_aged = moment.now.since_ms(association.heard_at) > step_ms;
        match opened.content_type {
            ContentType::ApplicationData => {
                if let Some(last_flight) = established.last_flight.take() {
                    self.deadlines.remove(&(last_flight.1, id));
                }
                out.received(id, start);
            }
            ContentType::Handshake => self.handle_late_handshake(id, start, out),
            ContentType::Alert => self.handle_protected_alert(id, start, out),
            ContentType::ChangeCipherSpec | ContentType::Cid => (),
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
    fn handle_in_handshake(
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
            // Overtook the Finished before it; the application repeats what it needs.
            ContentType::ApplicationData | ContentType::ChangeCipherSpec | ContentType::Cid => {
                Handled::Dropped
            }
        }
    }

    /// A record of epoch 0.
    fn handle_plain(
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

    // Handshakes.

    /// A ClientHello that begins a handshake: without a valid cookie it gets one, and nothing is
    /// remembered. None if the record is not the beginning of a handshake.
    fn handle_first_flight(
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
        if current.is_some_and(|id| self.is_hello_of(id, &start)) {
            return None;
        }
        let secret = &self.config.cookie_secret;
        if !cookie::is_valid(secret, moment.now, peer, &start) {
            self.counters.cookies_sent += 1;
            let cookie = cookie::make(secret, moment.now, peer, &start);
            send_hello_verify_request(&cookie, record, &fragment, peer, out);
            return Some(Handled::Done);
        }
        if let Some(id) = current {
            if !matches!(self.handshake_mut(id)?.role, Role::Server(_)) {
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

    /// Whether a ClientHello, repeated, is the one that a handshake began with. As a client we
    /// await none.
    fn is_hello_of(&mut self, id: AssociationId, start: &ClientHelloStart<'_>) -> bool {
        let handshake = self.handshake_mut(id);
        handshake.is_some_and(|handshake| match &handshake.role {
            Role::Server(server) => server.is_begun_by(&start.random) && !start.cookie.is_empty(),
            Role::Client(_) => false,
        })
    }

    fn handle_fragments(
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
                    cache: &mut self.cache,
                    association: id,
                };
                server.handle_message(message, transport, &mut context)
            }
            Role::Client(client) => client.handle_message(message, transport, moment),
        })
    }

    /// Opens the records that came before their keys, if the keys are known.
    fn open_early(&mut self, moment: &mut Moment<'_>, id: AssociationId, out: &mut Effects) {
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
        let Some(association) = self.associations.find(id) else {
            return;
        };
        let peer = association.peer;
        if let AssociationState::Handshaking(handshake) = &association.state {
            self.deadlines.remove(&(handshake.deadline, id));
        }
        self.remove_handshake_of(id);
        let mut session = outcome.session;
        let until = moment.now.plus_ms(self.config.retransmission.give_up_ms);
        let last_flight = outcome.last_flight.map(|mut last| {
            last.flight
                .transmit(last.limits, Some(&mut session), peer, out);
            self.deadlines.insert((until, id));
            Box::new((last, until))
        });
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
        });
    }

    fn answer_repetition(&mut self, id: AssociationId, out: &mut Effects) {
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
                    && last_flight.0.flight.may_answer()
                {
                    let limits = last_flight.0.limits;
                    let session = Some(&mut established.session);
                    last_flight.0.flight.transmit(limits, session, peer, out);
                }
            }
        }
    }

    fn send_flight(&mut self, now: Timestamp, id: AssociationId, out: &mut Effects) {
        let Some(association) = self.associations.find_mut(id) else {
            return;
        };
        let peer = association.peer;
        if let AssociationState::Handshaking(handshake) = &mut association.state {
            handshake.transport.send_flight(now, peer, out);
        }
        self.note_deadline(id);
    }

    fn send_alert(&mut self, id: AssociationId, alert: Alert, out: &mut Effects) {
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

    fn handle_deadline(&mut self, now: Timestamp, id: AssociationId, out: &mut Effects) {
        let Some(association) = self.associations.find_mut(id) else {
            return;
        };
        let peer = association.peer;
        match &mut association.state {
            AssociationState::Established(established) => established.last_flight = None,
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

    // The tables.

    fn transport(&self, now: Timestamp, first_sequence: u16, plain_sequence: u64) -> Transport {
        let limits = SizeLimits {
            datagram_max: self.config.datagram_max,
            plaintext_max: PLAINTEXT_MAX,
        };
        let timers = self.config.retransmission;
        Transport::new(now, limits, timers, first_sequence, plain_sequence)
    }

    /// The id of a new handshake, once others have given way to it.
    fn make_room(&mut self, moment: &mut Moment<'_>, out: &mut Effects) -> Option<AssociationId> {
        if self.associations.handshake_count() >= self.config.handshakes_max.max(1) {
            let oldest = self.associations.oldest_handshake()?.id();
            self.fail_handshake(oldest, HandshakeFailure::Evicted, out);
        }
        if self.associations.count() >= self.config.associations_max.max(1) {
            let oldest = self.associations.oldest_session()?.id();
            self.end_session(oldest, CloseReason::Evicted, out);
        }
        let tag = u32::from_be_bytes(moment.random());
        self.associations.next_id(tag)
    }

    fn insert_handshake(
        &mut self,
        now: Timestamp,
        id: AssociationId,
        peer: SocketAddr,
        transport: Transport,
        role: Role,
    ) {
        let deadline = transport.deadline();
        let handshake = Handshake {
            transport,
            role,
            deadline,
        };
        let state = AssociationState::Handshaking(Box::new(handshake));
        self.associations.insert(id, peer, now, state);
        self.handshake_by_peer.insert(peer, id);
        self.deadlines.insert((deadline, id));
    }

    /// Follows a change of the deadline of a handshake.
    fn note_deadline(&mut self, id: AssociationId) {
        let Some(association) = self.associations.find_mut(id) else {
            return;
        };
        if let AssociationState::Handshaking(handshake) = &mut association.state {
            let deadline = handshake.transport.deadline();
            self.deadlines.remove(&(handshake.deadline, id));
            self.deadlines.insert((deadline, id));
            handshake.deadline = deadline;
        }
    }

    fn handshake_mut(&mut self, id: AssociationId) -> Option<&mut Handshake> {
        match &mut self.associations.find_mut(id)?.state {
            AssociationState::Handshaking(handshake) => Some(handshake),
            AssociationState::Established(_) => None,
        }
    }

    /// Follows the peer of a handshake to another address, with an authentic record.
    fn set_peer(&mut self, id: AssociationId, peer: SocketAddr) {
        let Some(association) = self.associations.find_mut(id) else {
            return;
        };
        if association.peer == peer {
            return;
        }
        let earlier = std::mem::replace(&mut association.peer, peer);
        if self.handshake_by_peer.get(&earlier) == Some(&id) {
            self.handshake_by_peer.remove(&earlier);
        }
    }

    fn remove_handshake_of(&mut self, id: AssociationId) {
        if let Some(peer) = self.peer(id)
            && self.handshake_by_peer.get(&peer) == Some(&id)
        {
            self.handshake_by_peer.remove(&peer);
        }
    }

    fn fail_handshake(&mut self, id: AssociationId, reason: HandshakeFailure, out: &mut Effects) {
        let Some(association) = self.associations.find(id) else {
            return;
        };
        let AssociationState::Handshaking(handshake) = &association.state else {
            return;
        };
        let is_server = matches!(handshake.role, Role::Server(_));
        let has_wrong_key = is_server && handshake.transport.has_rejected_protected();
        let reason = match reason {
            HandshakeFailure::TimedOut
            | HandshakeFailure::Replaced
            | HandshakeFailure::RefusedByPeer(_)
                if has_wrong_key =>
            {
                HandshakeFailure::WrongKey
            }
            HandshakeFailure::TimedOut
            | HandshakeFailure::Replaced
            | HandshakeFailure::RefusedByPeer(_)
            | HandshakeFailure::Refused(_)
            | HandshakeFailure::Evicted
            | HandshakeFailure::WrongKey => reason,
        };
        let peer = association.peer;
        self.counters.handshakes_failed += 1;
        self.forget(id);
        out.failed(id, peer, reason);
    }

    fn end_session(&mut self, id: AssociationId, reason: CloseReason, out: &mut Effects) {
        self.forget(id);
        out.closed(id, reason);
    }

    fn idle_deadline(&self) -> Option<Timestamp> {
        let oldest = self.associations.oldest_session()?;
        Some(oldest.heard_at.plus_ms(self.config.idle_timeout_ms))
    }
}

/// What became of a record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Handled {
    Done,
    Dropped,
    /// The peer has not received our last flight.
    Repeated(AssociationId),
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
